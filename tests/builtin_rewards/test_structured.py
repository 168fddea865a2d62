"""Rewards for JSON: one value, and one that satisfies a schema."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from typing import Any

import pytest
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from builtin_rewards.structured import json_schema, json_text, json_valid, read_json
from rewardkit import Rollout, Runtime, Status

DEEP = "[" * 10_000 + "]" * 10_000
HOSTILE = {
    "empty": "",
    "white": " \n",
    "nul": "\0",
    "surrogates": "\ud800\udfff",
    "deep array": DEEP,
    "deep object": '{"a":' * 10_000 + "1" + "}" * 10_000,
    "deep, open": "[" * 200_000,
    "tags": "<answer></answer>",
    "digits": "1" * 5_000,
    "fences": "```json\n" * 20_000,
    "long": "word " * 200_000,
}


@pytest.mark.parametrize(
    ("completion", "score"),
    [
        ('{"a": [1, 2.5e3, true, null, "x"]}', 1.0),
        (' \n[1]\t\r\n"'[:-1], 1.0),
        ("42", 1.0),
        ('"\ud800"', 1.0),
        ('{"a": "```json"}', 1.0),
        ('{"a": "</think>"}', 1.0),
        ('Here:\n```json\n{"a": 1}\n```\nThat is it.', 1.0),
        ('```json\n{"a": \n```\n```json\n{"a": 1}\n```', 1.0),
        ("```\n[1]\n```", 1.0),
        ("<think>hm {</think>\n[1]", 1.0),
        ('```json\n{"a": 1}\n```\n```json\n{"a": \n```', 0.0),
        ('Here: {"a": 1}', 0.0),
        ('{"a": 1} {"b": 2}', 0.0),
        ("```python\n[1]\n```", 0.0),
        ("{'a': 1}", 0.0),
        ('{"a": 1,}', 0.0),
        ('{"a": 1} // one', 0.0),
        ("NaN", 0.0),
        ("[Infinity]", 0.0),
        ("[-Infinity]", 0.0),
        ("[1e999]", 0.0),
        ("[01]", 0.0),
        ("[\uff11]", 0.0),
        ("\u00a0[1]", 0.0),
        ("\ufeff[1]", 1.0),
        ("[1]<|im_end|>", 1.0),
        ("[1]</s>\n", 1.0),
        ("[1]</s> so", 0.0),
        ("<think>hm</think><answer>[1]</answer>", 1.0),
        ("<think>hm</think>So:\n<answer>\n```json\n[1]\n```\n</answer><|eot_id|>", 1.0),
        ("<answer>[1]</answer><answer>[2]</answer>", 0.0),
        ("<answer>[1]</answer> so", 1.0),
        ("[THINK]hm[/THINK][1]", 1.0),
        ("<thinking>[1]</thinking> no", 0.0),
        ("[1] <answer>so</answer>", 0.0),
        ('{"a": 1, "a": 2}', 0.0),
        ('[{"b": {"a": 1, "\\u0061": 2}}]', 0.0),
        ('"a\nb"', 0.0),
        ("true false", 0.0),
        ("True", 0.0),
        *((text, 0.0) for text in HOSTILE.values()),
    ],
)
def test_one_json_value(completion: str, score: float) -> None:
    """Strictly one value: in the last fenced block, or the whole completion."""
    assert score == json_valid(completion=completion).value


def test_the_kind_of_value() -> None:
    """An object or an array may be asked for."""
    assert 1.0 == json_valid("object")(completion="{}").value
    assert 0.0 == json_valid("object")(completion="42").value
    assert 0.0 == json_valid("array")(completion="{}").value
    with pytest.raises(ValueError, match="kind='list'"):
        json_valid("list")


def test_reading() -> None:
    """Where the value stands, and what is said of one that is none."""
    assert "1" == json_text("<think>[2]</think>1")
    assert json_text("```python\n1\n```") is None
    assert {"a": [1, 1.5]} == read_json('{"a": [1, 1.5]}')
    for text, words in ((DEEP, "too deep"), ('{"a":1,"a":1}', "'a' stands twice"), ("[NaN]", "NaN is no JSON")):
        with pytest.raises(ValueError, match=words):
            read_json(text)


PERSON = {
    "type": "object",
    "required": ["name", "age"],
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}, "tags": {"type": "array"}},
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("completion", "score"),
    [
        ('{"name": "A", "age": 3}', 1.0),
        ('```json\n{"name": "A", "age": 3, "tags": []}\n```', 1.0),
        ('{"name": "A", "age": -1}', 0.5),
        ('{"name": "A"}', 0.5),
        ('{"name": 1, "age": true}', 0.0),
        ('{"name": "A", "age": 3, "more": 1}', 2 / 3),
        ('{"name": "A", "age": 3, "tags": 1}', 2 / 3),
        ('{"name": "A", "more": 1}', 0.5),
        ("{}", 0.0),
        ("[]", 0.0),
        ('["name", "age"]', 0.0),
        ("{", 0.0),
        ('{"n\u0430me": "A", "age": 3}', 0.5),
        ('{"Name": "A", "age": 3}', 0.5),
        ('{"name": "A", "name": "B", "age": 3}', 0.0),
        *((text, 0.0) for text in HOSTILE.values()),
    ],
)
def test_partial_credit(completion: str, score: float) -> None:
    """1.0 exactly where it is valid, else the share of required properties that are satisfied."""
    for schema in (PERSON, json.dumps(PERSON)):
        assert score == pytest.approx(json_schema(completion=completion, schema=schema).value)
    assert float(score == 1.0) == json_schema(PERSON, partial=False)(completion=completion).value


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (None, "no schema"),
        ("", "no schema"),
        ("null", "no schema"),
        ("{", "cannot be used"),
        ("[]", "not list"),
        (3, "not int"),
        ({"type": "strin"}, "cannot be used"),
        ({"pattern": "("}, "cannot be used"),
        ({"required": "name"}, "cannot be used"),
        ({"$schema": 3}, "cannot be used"),
        ({"$schema": "http://[", "type": "object"}, "cannot be used"),
        ({"x": {1, 2}}, "cannot be used"),
        ({"$ref": "#/$defs/none"}, "PointerToNowhere"),
        ({"properties": {"other": {"$ref": "http://localhost:1/x.json"}}}, "Unresolvable"),
        ({"properties": {"other": {"$ref": "https://json-schema.org/none"}}}, "Unresolvable"),
        ({"properties": {"other": {"$ref": "file:///etc/passwd"}}}, "Unresolvable"),
        ({"$ref": "#"}, "round in a circle"),
        ('{"type": "object", "type": "array"}', "cannot be used"),
        ('{"not": ' * 5_000 + "{}" + "}" * 5_000, "cannot be used"),
    ],
)
def test_rows_with_a_broken_schema_are_skipped(schema: Any, words: str) -> None:
    """It is not the completion's fault; and a reference is never fetched."""
    score = json_schema(completion='{"name": "A", "age": 3}', schema=schema)
    assert score.value is None
    assert words in (score.reason or "")


def test_deep_values_are_the_completion_s_fault() -> None:
    """A value nested too deep for a schema that refers to itself scores 0.0, and is no skip."""
    tree = {"items": {"$ref": "#"}}
    assert 1.0 == json_schema(completion="[[[]]]", schema=tree).value
    deep = json_schema(completion="[" * 900 + "]" * 900, schema=tree)
    assert (0.0, "nested too deep to be validated") == (deep.value, deep.reason)


def test_the_draft_is_the_schema_s_own_or_the_setting_s() -> None:
    """``dependencies`` means something in draft 7 alone."""
    old = {"dependencies": {"a": ["b"]}}
    value = '{"a": 1}'
    assert 1.0 == json_schema(completion=value, schema=old).value
    assert 0.0 == json_schema(draft="7")(completion=value, schema=old).value
    named = {"$schema": "http://json-schema.org/draft-07/schema#", **old}
    assert 0.0 == json_schema(completion=value, schema=named).value
    unknown = {"$schema": "http://json-schema.org/schema#", **old}
    assert 1.0 == json_schema(completion=value, schema=unknown).value


def test_remotes_are_given_not_fetched() -> None:
    """As a dict or a registry; both reach worker processes."""
    schema = {"properties": {"a": {"$ref": "http://x/int"}}}
    resource = Resource.from_contents({"type": "integer"}, default_specification=DRAFT202012)
    for remotes in ({"http://x/int": {"type": "integer"}}, Registry().with_resource("http://x/int", resource)):
        made = json_schema(schema, remotes=remotes)
        assert [1.0, 0.0] == [made(completion=text).value for text in ('{"a": 1}', '{"a": "1"}')]
        with Runtime([made], workers=1) as runtime:
            assert [1.0, 0.0] == runtime.score([Rollout("", '{"a": 1}'), Rollout("", '{"a": ""}')]).scores[made.name]


def test_a_schema_s_pattern_that_backtracks_is_ended_by_the_deadline() -> None:
    """It costs its own call alone."""
    made = json_schema({"pattern": "^(a+)+$"}).with_options(timeout_s=1.8)
    with Runtime([made], workers=1) as runtime:
        batch = runtime.score([Rollout("", json.dumps("a" * 40 + "b")), Rollout("", '"aaa"')])
    assert [Status.FAILED, Status.SCORED] == [outcome.status for outcome in batch.outcomes["json_schema"]]


@pytest.mark.parametrize("settings", [{"draft": "5"}, {"schema": "{"}, {"schema": {"type": "strin"}}], ids=repr)
def test_settings_of_schemas(settings: dict[str, Any]) -> None:
    """What makes no sense is refused by name."""
    with pytest.raises(ValueError, match=f"json_schema: {next(iter(settings))}="):
        json_schema(**settings)


def test_the_schema_column_is_not_changed() -> None:
    """Rows stay as they are."""
    schema = json.loads(json.dumps(PERSON))
    json_schema(completion="{}", schema=schema)
    assert PERSON == schema


@pytest.mark.parametrize("made", [json_valid, json_schema, json_valid("object"), json_schema(PERSON, remotes={})])
def test_rewards_travel(made: Any) -> None:
    """They pickle, and score the same afterwards."""
    again = pickle.loads(pickle.dumps(made))
    assert made.name == again.name
    assert made(completion="{}") == again(completion="{}")


def test_the_library_is_loaded_on_first_use() -> None:
    """Importing the module loads no jsonschema."""
    program = (
        "import sys, builtin_rewards.structured, builtin_rewards.formats, builtin_rewards.tools, builtin_rewards.sql, "
        "builtin_rewards.urls; assert not {'jsonschema', 'referencing', 'lxml'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
