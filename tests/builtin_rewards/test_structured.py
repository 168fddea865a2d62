"""Rewards for JSON: one value, one that satisfies a schema, and the share of its fields that is right."""

from __future__ import annotations

import json
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from patience import in_time
from pydantic import BaseModel, TypeAdapter
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from builtin_rewards.reading.completion_json import completion_json
from builtin_rewards.structured import json_fields, json_schema, json_valid
from rewardkit import Cause, Outcome, Rollout, Runtime, Status

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
        ("1" * 305, 1.0),
        ("1" * 310, 0.0),
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
        ('{"a": 1} and so</think>[1]', 1.0),
        ('{"a": 1} and so</think>', 0.0),
        ("<think>[1]</think>", 0.0),
        ("<think>[1]", 0.0),
        ("<thinking>hm</thinking>[1]", 1.0),
        ("[THINK]hm[/THINK][1]", 1.0),
        ("<|channel|>analysis<|message|>[2<|end|><|start|>assistant<|channel|>final<|message|>[1]<|return|>", 1.0),
        ("<think>hm</think><answer>[1]</answer>", 1.0),
        ("<think>hm</think>So:\n<answer>\n```json\n[1]\n```\n</answer><|eot_id|>", 1.0),
        ("<answer>[1]</answer><answer>[2]</answer>", 0.0),
        ("<answer>[1]</answer> so", 1.0),
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


DENIALS = [  # what stands before and behind a fence that holds no answer
    ("This is not the answer:\n", "\nIt is wrong."),
    ("This is not the answer:\n", ""),
    ("", "\nIt is wrong."),
    ("Not this:\n", ""),
    ("Wrong answer:\n\n", ""),
    ("The answer is not:\n", ""),
    ("The answer is:\n", "\n\nNo, that is wrong."),
    ("I considered\n", "\nand rejected it."),
]
REMARKS = [  # words of an honest answer, with negations in them
    ("Here is the JSON:\n", "\nThat is the answer."),
    ("The invoice has no tax, so it is null:\n", ""),
    ("Fields that are not in the invoice are null:\n", ""),
    ("I could not find the tax:\n", "\nLet me know if anything is wrong."),
    ("Here is the record. The tax is not listed.\n", "\nNote: the total may be wrong in the source."),
    ("The extracted data, without null fields:\n", "\nThe vendor's address is not given."),
    ("The date is not in ISO form, so I converted it:\n", "\nIf this is incorrect, tell me."),
    ("I doubt that the total is right, but here is what the invoice says:\n", ""),
    ("This is not right:\n```\n[]\n```\nHere it is again.\n", ""),
]


@pytest.mark.parametrize("fence", ["```json\n{}\n```", "```\n{}\n```", "~~~json\n{}\n~~~"])
@pytest.mark.parametrize(
    ("before", "behind", "counts"), [*((*words, False) for words in DENIALS), *((*words, True) for words in REMARKS)]
)
def test_a_fence_that_is_denied_is_no_answer(before: str, behind: str, counts: bool, fence: str) -> None:
    """What the words right before or behind it deny or take back; other negations say nothing of it."""
    text = '{"vendor": "ACME", "tax": null}'
    completion = f"{before}{fence.replace('{}', text)}{behind}"
    score: Any = json_fields(completion=completion, answer=json.loads(text))
    assert float(counts) == score.value, score.reason
    assert float(counts) == json_valid(completion=completion).value
    assert counts or "the JSON does not count" in score.reason


def test_the_kind_of_value() -> None:
    """An object or an array may be asked for."""
    assert 1.0 == json_valid("object")(completion="{}").value
    assert 0.0 == json_valid("object")(completion="42").value
    assert 0.0 == json_valid("array")(completion="{}").value
    with pytest.raises(ValueError, match="kind='list'"):
        json_valid("list")


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
    given = {
        "dict": {"http://x/int": {"type": "integer"}},
        "registry": Registry().with_resource("http://x/int", resource),
    }
    made = [json_schema(schema, remotes=remotes).with_options(name=kind) for kind, remotes in given.items()]
    with Runtime(made, workers=1) as runtime:
        scores = runtime.score([Rollout("", '{"a": 1}'), Rollout("", '{"a": ""}')]).scores
    for one in made:
        assert [1.0, 0.0] == [one(completion=text).value for text in ('{"a": 1}', '{"a": "1"}')]
        assert [1.0, 0.0] == scores[one.name]


def test_a_schema_s_pattern_that_backtracks_is_ended_by_the_deadline() -> None:
    """It costs its own call alone."""

    def score(timeout_s: float) -> list[Outcome]:
        made = json_schema({"pattern": "^(a+)+$"}).with_options(timeout_s=timeout_s)
        with Runtime([made], workers=1) as runtime:
            return list(runtime.score([Rollout("", json.dumps("a" * 40 + "b")), Rollout("", '"aaa"')])["json_schema"])

    outcomes = in_time(score, lambda found: found[1].cause is not Cause.TIMEOUT, 0.8)
    assert [Status.FAILED, Status.SCORED] == [outcome.status for outcome in outcomes]


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


ORDER = {"customer": "Ann Lee", "item": {"name": "mug", "colours": ["red", "blue"]}, "quantity": 3, "gift": False}
"""Six fields: a gold object that is nested."""


def order(**changes: Any) -> str:
    """Return the order as JSON with other values; ``...`` leaves a name out."""
    return json.dumps({name: value for name, value in {**ORDER, **changes}.items() if value is not ...})


def item(name: Any = "mug", colours: Any = ("red", "blue"), **more: Any) -> dict[str, Any]:
    return {"name": name, "colours": colours, **more}


@pytest.mark.parametrize(
    ("completion", "score"),
    [
        (order(), 1.0),
        (f"<think>{{}}</think>Here:\n```json\n{order()}\n```", 1.0),
        (f"<answer>{order()}</answer>", 1.0),
        (order() + "<|im_end|>", 1.0),
        (order(quantity=3.0), 1.0),
        # Missing, wrong, and of another kind.
        (order(customer=...), 5 / 6),
        (order(customer="Ann"), 5 / 6),
        (order(customer="ann lee"), 5 / 6),
        (order(customer="Ann Lee "), 5 / 6),
        (order(customer=None), 5 / 6),
        (order(quantity="3"), 5 / 6),
        (order(quantity=True), 5 / 6),
        (order(gift=0), 5 / 6),
        (order(gift=None), 5 / 6),
        (order(gift="false"), 5 / 6),
        (order(item=...), 3 / 6),
        (order(item="mug"), 3 / 6),
        (order(item=[]), 3 / 6),
        (order(item={}), 3 / 6),
        (order(item=item(colours=["red"])), 5 / 6),
        (order(item=item(colours=["blue", "red"])), 4 / 6),
        (order(item=item(colours="red, blue")), 4 / 6),
        (order(item=item(colours={"0": "red", "1": "blue"})), 4 / 6),
        # Guesses in the place of one value are one wrong value.
        (order(customer=["Ann Lee", "Bob"]), 5 / 6),
        (order(customer={"a": "Ann Lee", "b": "Bob"}), 5 / 6),
        (order(quantity=[3]), 5 / 6),
        # Extra names, nested ones, and items.
        (order(note="x"), 6 / 7),
        (order(note={"a": [1, 2], "b": {}}), 6 / 9),
        (order(Customer="Ann Lee"), 6 / 7),
        (order(customer=..., Customer="Ann Lee"), 5 / 7),
        (order(item=item(colours=["red", "blue", "green"])), 6 / 7),
        (order(item=item(size=1)), 6 / 7),
        # Padding: all that is right, and much more.
        (order(**{f"n{number}": number for number in range(60)}), 6 / 66),
        (order(**{f"n{number}": number for number in range(100)}), 0.0),
        (order(item=item(colours=["red", "blue", *map(str, range(40))])), 6 / 46),
        # One JSON value, strictly.
        (order() + order(), 0.0),
        (f"```json\n{order()}\n```\n```json\n{order(customer='Bob')}\n```", 5 / 6),
        (f"[{order()}]", 0.0),
        (f"[{order()}, {order(customer='Bob')}]", 0.0),
        ('{"customer": "Ann Lee", "customer": "Bob"}', 0.0),
        (order()[:-1] + ', "quantity": 3}', 0.0),
        (order().replace("3", "NaN"), 0.0),
        (order().replace("3", "1e999"), 0.0),
        (order()[:-1], 0.0),
        (order().replace('"', "'"), 0.0),
        (f"Here: {order()}", 0.0),
        (f"<think>{order()}</think>I do not know.", 0.0),
        (f"<think>{order()}", 0.0),
        ("{}", 0.0),
        ("[]", 0.0),
        ("null", 0.0),
        ('"Ann Lee"', 0.0),
        *((text, 0.0) for text in HOSTILE.values()),
    ],
)
def test_the_share_of_right_fields(completion: str, score: float) -> None:
    """Missing and wrong fields count 0, extra ones cost, and text that is no JSON has none."""
    for answer in (ORDER, json.dumps(ORDER)):
        assert score == pytest.approx(json_fields(completion=completion, answer=answer).value)
    assert float(score == 1.0) == json_fields(partial=False)(completion=completion, answer=ORDER).value


@pytest.mark.parametrize(
    ("settings", "answer", "given", "score"),
    [
        ({"rel": 0.01}, {"a": 100}, {"a": 101}, 1.0),
        ({"rel": 0.01}, {"a": 100}, {"a": 101.1}, 0.0),
        ({"rel": 0.01}, {"a": -100}, {"a": -99}, 1.0),
        ({"rel": 0.01}, {"a": 0}, {"a": 0.001}, 0.0),
        ({"rel": 0.01}, {"a": 100}, {"a": "101"}, 0.0),
        ({"rel": 0.5}, {"a": 1}, {"a": True}, 0.0),
        ({"rel": 0.5}, {"a": True}, {"a": 1}, 0.0),
        ({"abs": 0.5}, {"a": 0}, {"a": 0.5}, 1.0),
        ({"abs": 0.5}, {"a": 1e308}, {"a": -1e308}, 0.0),
        ({"abs": 0.5}, {"a": 10**299}, {"a": -1e308}, 0.0),
        ({}, {"a": 0.1}, {"a": 0.10000000000000001}, 1.0),
        ({}, {"a": 2**53}, {"a": 2**53 + 1}, 0.0),
        ({"text": "normalised"}, {"a": "The Red Mug."}, {"a": "red mug"}, 1.0),
        ({"text": "normalised"}, {"a": "3.5"}, {"a": "35"}, 0.0),
        ({"text": "normalised"}, {"a": "3"}, {"a": 3}, 0.0),
        ({"text": "normalised"}, {"a": ""}, {"a": "?"}, 0.0),
        ({"text": "normalised"}, {"A": "x"}, {"a": "x"}, 0.0),
        ({"ordered": False}, ["a", "b"], ["b", "a"], 1.0),
        ({"ordered": False}, ["a", "a"], ["a"], 0.5),
        ({"ordered": False}, ["a"], ["a", "a"], 0.5),
        ({"ordered": False}, ["a"], list("abcdefghij"), 0.1),
        ({"ordered": False}, ["a", "b"], ["b", "c"], 0.5),
        ({"ordered": False}, [1], [True, 1], 0.5),
        ({"ordered": False}, [{"n": 1, "m": 2}, {"n": 3, "m": 4}], [{"n": 3, "m": 4}, {"n": 1, "m": 2}], 1.0),
        ({"ordered": False}, [{"n": 1, "m": 2}, {"n": 3, "m": 4}], [{"n": 3, "m": 5}, {"n": 1, "m": 2}], 0.75),
        ({"ordered": False}, {"a": [[1, 2], [3]]}, {"a": [[3], [2, 1]]}, 1.0),
        ({"ordered": False, "text": "normalised"}, ["The Mug"], ["a cup", "mug"], 0.5),
        ({"ordered": False, "abs": 1}, [1, 2], [3, 2], 0.5),
        ({"ordered": False, "abs": 1}, [1, 5], [6, 2], 1.0),
        ({"ordered": False}, ["a", "b", "c"], ["x", "c"], 1 / 3),
        ({"extra": 0}, {"a": 1}, {"a": 1, "b": 2}, 1.0),
        ({"extra": 0.5}, {"a": 1}, {"a": 1, "b": 2}, 1 / 1.5),
        ({"extra": 2}, {"a": 1}, {"a": 1, "b": 2}, 1 / 3),
        ({"extra": 0}, {"a": 1}, {"a": 2, "A": 1}, 0.0),
        # A list that holds every guess is never free.
        ({"extra": 0, "ordered": False}, {"a": ["x"]}, {"a": ["x", "y", "z"]}, 1 / 3),
        ({}, {"a": {}, "b": []}, {"a": {}, "b": []}, 1.0),
        ({}, {"a": {}, "b": []}, {"a": [], "b": {}}, 0.0),
        ({}, {"a": {}, "b": []}, {}, 0.0),
        ({}, {"a": None}, {}, 0.0),
        ({}, {"a": None}, {"a": None}, 1.0),
        ({}, [1, 2], [1, 2], 1.0),
    ],
)
def test_settings_of_fields(settings: dict[str, Any], answer: Any, given: Any, score: float) -> None:
    """Tolerances are the gold's share, text may be normalised, lists may be in any order, names may be more."""
    made = json_fields(**settings)
    assert score == pytest.approx(made(completion=json.dumps(given), answer=json.dumps(answer)).value)


@pytest.mark.parametrize(
    "answer",
    [None, "", "null", "{}", "[]", {}, [], "3", 3, "text", "{", '{"a": 1, "a": 2}', "[NaN]", [float("inf")], {1}],
    ids=repr,
)
def test_rows_without_fields_are_skipped(answer: Any) -> None:
    """No score is made up, not even for ``{}`` where that is the answer."""
    for completion in ("{}", order(), ""):
        score = json_fields(completion=completion, answer=answer)
        assert score.value is None
        assert "the row's answer" in (score.reason or "") or "the row has no answer" == score.reason


@pytest.mark.slow
def test_answers_too_deep_or_too_many_are_skipped(full: bool) -> None:
    """Comparing cannot recurse too deep, nor take each with each of very many."""
    deep = "[" * 200 + "1" + "]" * 200
    assert json_fields(completion=deep, answer=deep).value is None
    many = json.dumps(list(range(201)))
    assert 1.0 == json_fields(completion=many, answer=many).value
    assert json_fields(ordered=False)(completion=many, answer=many).value is None
    most = json.dumps(list(range(200)))
    assert 0.1 > json_fields(ordered=False)(completion=json.dumps(["x"] * (2_000 if full else 500)), answer=most).value


def test_metrics_of_fields() -> None:
    """What the score is made of."""
    score = json_fields(completion=order(customer="Bob", note=1), answer=ORDER)
    assert {"right": 5.0, "fields": 6.0, "extra": 1.0} == score.metrics
    assert "5 of 6 fields right, 1 extra; wrong 'customer'; extra 'note'" == score.reason


@pytest.mark.parametrize(
    ("value", "ending"),
    [
        ('{"a": 1, "b": [1, 2], "c": null}', "right, 0 extra"),
        ('{"a": "1", "b": [1, 2, 3]}', "; wrong 'a', 'b'; missing 'c'"),
        ('{"A": 1, "b": [1, 2], "c": null}', "; missing 'a'; extra 'A'"),
        (json.dumps({"b": [1], **dict.fromkeys("vwxyz")}), "; wrong 'b'; missing 'a', 'c'; extra 'v', 'w', 'x'"),
        ('[{"a": 1}]', "right, 0 extra: a list, not an object"),
        ("true", "right, 0 extra: a bool, not an object"),
    ],
)
def test_a_reason_names_the_fields_that_are_not_right(value: str, ending: str) -> None:
    """Those of the answer's own names, at most three of a kind; none where all are right."""
    score = json_fields(completion=value, answer='{"a": 1, "b": [1, 2], "c": null}')
    assert score.reason.endswith(ending)


class _Model(BaseModel):
    total: float


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (_Model, r"its model_json_schema\(\) returns"),
        (_Model(total=1), r"its model_json_schema\(\) returns"),
        (TypeAdapter(list[_Model]), r"its json_schema\(\) returns"),
        (list[_Model], r"TypeAdapter\(...\).json_schema\(\)"),
        (Path("invoice.json"), r"Path\(...\).read_text\(\)"),
        ("invoice.json", r"Path\(...\).read_text\(\)"),
        ({"total": 12.5, "vendor": "Acme"}, "keywords such as 'type' and 'properties'; this has none"),
        (["total"], "JSON text, a dict or a bool"),
    ],
    ids=str,
)
def test_what_is_given_for_a_schema_is_refused_with_the_way_on(schema: Any, words: str) -> None:
    """A model, a type, a file's name and an example of the answer are no schemas."""
    with pytest.raises(ValueError, match=words):
        json_schema(schema)


@pytest.mark.parametrize("schema", [{}, True, "{}", {"title": "x"}, {"$defs": {}}, _Model.model_json_schema()])
def test_a_schema_that_asserts_little_is_one(schema: Any) -> None:
    """An empty one, and one that only says what it is."""
    assert 1.0 == json_schema(schema)(completion='{"total": 1}').value


@pytest.mark.parametrize(
    "settings", [{"text": "loose"}, {"rel": -1}, {"rel": 1.0}, {"abs": float("nan")}, {"extra": float("inf")}], ids=repr
)
def test_settings_of_fields_that_make_no_sense(settings: dict[str, Any]) -> None:
    """They are refused by name."""
    with pytest.raises(ValueError, match=f"json_fields: {next(iter(settings))}="):
        json_fields(**settings)


@pytest.mark.parametrize(
    "made",
    [json_valid, json_schema, json_fields, json_valid("object"), json_schema(PERSON, remotes={}), json_fields(rel=0.1)],
)
def test_rewards_travel(made: Any) -> None:
    """They pickle, and score the same afterwards."""
    again = pickle.loads(pickle.dumps(made))
    assert made.name == again.name
    columns = {"answer": ORDER} if made.name == "json_fields" else {}
    assert made(completion="{}", **columns) == again(completion="{}", **columns)


def test_the_library_is_loaded_on_first_use() -> None:
    """Importing the module loads no jsonschema."""
    program = (
        "import sys, builtin_rewards.structured, builtin_rewards.formats, builtin_rewards.tools, builtin_rewards.sql, "
        "builtin_rewards.urls; assert not {'jsonschema', 'referencing', 'lxml'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


_ODD_JSON = (
    '{"a": 1,}',
    '{"a": NaN}',
    '{"a": 1, "a": 2}',
    "Sure: [1]",
    "```json\n[1]\n```",
    "null",
    "```python\n1\n```",
)


@pytest.mark.parametrize("text", [*HOSTILE.values(), *_ODD_JSON])
def test_ones_own_reward_reads_the_json_that_json_valid_reads(text: str) -> None:
    """The value where ``json_valid`` scores 1.0, and else an error with its reason."""
    score = json_valid(completion=text)
    if score.value:
        completion_json(text)
    else:
        with pytest.raises(ValueError, match=f"^{re.escape(score.reason)}$"):
            completion_json(text)


def test_the_json_of_a_completion_is_its_value() -> None:
    """``null`` is a value as any other."""
    with pytest.raises(TypeError, match="expected a text, got list"):
        completion_json([])  # type: ignore[arg-type]
    assert [None, {"a": [1.5]}] == [completion_json(text) for text in ("null", '```json\n{"a": [1.5]}\n```')]


@pytest.mark.parametrize(
    ("completion", "metrics"),
    [
        ('{"a": 1, "b": {"c": 2, "d": 4}, "e": []}', {"field/a": 1.0, "field/b": 0.5, "field/e": 1.0}),
        ('{"a": 1, "b": {"c": 2, "d": 3, "f": 3}}', {"field/a": 1.0, "field/b": 2 / 3, "field/e": 0.0}),
        ("[1]", {"field/a": 0.0, "field/b": 0.0, "field/e": 0.0}),
        (json.dumps(dict.fromkeys(map(str, range(99)))), {"field/a": 0.0, "field/b": 0.0, "field/e": 0.0}),
        ("no JSON", {"field/a": 0.0, "field/b": 0.0, "field/e": 0.0}),
    ],
)
def test_a_field_has_a_metric_of_its_own(completion: str, metrics: dict[str, float]) -> None:
    """With ``per_field`` alone, over all rows that have the field, whatever the completion is."""
    answer = {"a": 1, "b": {"c": 2, "d": 3}, "e": []}
    own = json_fields(per_field=True)(completion=completion, answer=answer)
    plain = json_fields(completion=completion, answer=answer)
    assert metrics == {name: value for name, value in own.metrics.items() if name.startswith("field/")}
    assert (plain.value, plain.metrics | metrics) == (own.value, own.metrics)
