"""Rewards for form: tags, patterns, XML, fenced blocks, Markdown."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from patience import in_time

from builtin_rewards.formats import code_fence, format_tags, markdown_structure, regex_match, xml_valid
from builtin_rewards.reading.markdown import split_fences
from builtin_rewards.reading.normalisation import shows
from rewardkit import Cause, Outcome, Rollout, Runtime

GOOD = "<think>\nhm\n</think>\n<answer>4</answer>\n"
HOSTILE = {
    "empty": "",
    "white": " \n\t",
    "nul": "\0" * 10_000,
    "surrogates": "\ud800\udfff" * 1_000,
    "tags": "<think></think><answer></answer>" * 1_000 + "</answer>",
    "deep tags": "<think>" * 10_000 + "</think>" * 10_000,
    "deep json": "[" * 10_000 + "]" * 10_000,
    "spaces in a tag": "<" + " " * 100_000,
    "openings": "<" * 100_000,
    "marks": "\u0300\u0327" * 20_000 + "\uff1c",
    "long": "word " * 200_000,
}


@pytest.mark.parametrize(
    ("completion", "score"),
    [
        (GOOD, 1.0),
        ("<think>a</think><answer>b</answer>", 1.0),
        ("<think>a < b > c</think> <answer><b>4</b></answer>", 1.0),
        ("<answer>4</answer><think>a</think>", 2 / 3),
        ("So: " + GOOD, 2 / 3),
        (GOOD + "Done.", 2 / 3),
        (GOOD + "\u200b", 2 / 3),
        ("<think>a</think> and <answer>b</answer>", 2 / 3),
        ("<think>a</think>", 1 / 3),
        ("<answer>a</answer>", 1 / 3),
        ("<think>a</think><answer>b", 1 / 3),
        ("<think>a</think><answer>b</answer><answer>c</answer>", 1 / 3),
        ("<think>a</think><answer>b</answer></answer>", 1 / 3),
        ("<think>a <answer>1</answer></think><answer>b</answer>", 1 / 3),
        ("<think>a<answer>b</answer></think>", 0.0),
        ("<think>a<answer>b</think>c</answer>", 0.0),
        ("</think>a<think><answer>b</answer>", 1 / 3),
        ("<think></think><answer> \n</answer>", 0.0),
        ("<think>\u200b</think><answer>\u3164\u2800</answer>", 0.0),
        ("<think>\0</think><answer>\u00a0</answer>", 0.0),
        ("<think>&nbsp;</think><answer>4</answer>", 1 / 3),
        ("<think>&#160;&zwnj;</think><answer>4</answer>", 1 / 3),
        ("<think>.</think><answer>...</answer>", 0.0),
        ("<think>a</think><answer>+</answer>", 1.0),
        ("<think>a</think><answer>\u4e2d</answer>", 1.0),
        (GOOD + "<|im_end|>", 1.0),
        ("\ufeff" + GOOD + "<|eot_id|>\n", 1.0),
        (GOOD + "</s><|endoftext|>", 1.0),
        (GOOD + "<|im_end|> so", 2 / 3),
        ("<|im_end|>" + GOOD, 2 / 3),
        ("<Think>a</Think><ANSWER>b</ANSWER>", 0.0),
        ("<think>a</think><Answer>b</Answer>", 1 / 3),
        ("<think>a</think><answer>b<ANSWER>c</ANSWER></answer>", 1 / 3),
        ("<think>a</think><answer>b\uff1canswer\uff1e</answer>", 1 / 3),
        ("<think>a</think><answer>b<\uff41nswer></answer>", 1 / 3),
        ("<think>a</think><answer>b<an\u200bswer></answer>", 1 / 3),
        ("<think>a</think><answer>b< answer x='1'></answer>", 1 / 3),
        ("<think>a</think><\u0430nswer>b</\u0430nswer>", 1 / 3),
        ("&lt;think&gt;a&lt;/think&gt;", 0.0),
        ("", 0.0),
    ],
)
def test_tags(completion: str, score: float) -> None:
    """Each tag once, in order, nothing around; look-alikes, repeats, nesting and empty bodies are not paid."""
    assert score == pytest.approx(format_tags(completion=completion).value)


def test_tags_with_settings() -> None:
    """Any list of tags, empty ones if wanted, and a prompt that has opened the first."""
    plan = format_tags(["plan", "plan-b", "code"])
    assert 1.0 == plan(completion="<plan>a</plan><plan-b>b</plan-b><code>c</code>").value
    assert 0.5 == plan(completion="<plan>a</plan><code>c</code>").value
    assert 1.0 == format_tags(nonempty=False)(completion="<think></think><answer></answer>").value
    opened = format_tags(first_is_open=True)
    assert 1.0 == opened(completion="hm</think><answer>4</answer>").value
    assert 1 / 3 == opened(completion=GOOD).value


@pytest.mark.parametrize("tags", [(), ("a", "a"), ("a", "A"), ("a b",), ("<a>",), ("",), ("d\u00e9",)], ids=repr)
def test_tags_that_are_none(tags: tuple[str, ...]) -> None:
    """A list of tags that makes no sense is refused by name."""
    with pytest.raises(ValueError, match="format_tags: "):
        format_tags(tags)


@pytest.mark.parametrize(
    ("completion", "pattern", "score"),
    [
        ("abc", "abc", 1.0),
        ("abcd", "abc", 0.0),
        ("xabc", "abc", 0.0),
        ("abc\n", "abc", 0.0),
        ("abc\n", r"abc\s*", 1.0),
        ("a\nb", "a.b", 0.0),
        ("a\nb", "(?s)a.b", 1.0),
        ("a\nabc", "^abc$", 0.0),
        ("", "a*", 1.0),
        ("[", "[[]", 1.0),
        ("abc", None, None),
        ("abc", "", None),
        ("abc", "(", None),
        ("abc", "a{99999999999999999999}", None),
        ("abc", "(" * 5_000, None),
    ],
)
def test_a_row_s_pattern(completion: str, pattern: str | None, score: float | None) -> None:
    """The whole completion must match; a row without a pattern that compiles is skipped."""
    assert score == regex_match(completion=completion, pattern=pattern).value


def test_a_pattern_as_setting() -> None:
    """It goes before the column, and may match a part; one that does not compile is refused."""
    assert 1.0 == regex_match(r"\d+")(completion="12", pattern="x").value
    assert 0.0 == regex_match(r"\d+")(completion="a12").value
    assert 1.0 == regex_match(r"\d+", full=False)(completion="a12").value
    for bad in ("(", ""):
        with pytest.raises(ValueError, match="regex_match: pattern="):
            regex_match(bad)


def test_a_pattern_that_backtracks_is_ended_by_the_deadline() -> None:
    """It costs its own call alone, and is a timeout."""

    def score(timeout_s: float) -> list[Outcome]:
        bomb = regex_match("(a+)+$").with_options(timeout_s=timeout_s)
        with Runtime([bomb], workers=1) as runtime:
            return list(runtime.score([Rollout("", "a" * 40 + "b"), Rollout("", "aaa")])["regex_match"])

    outcomes = in_time(score, lambda found: found[1].cause is not Cause.TIMEOUT, 0.6)
    assert [Cause.TIMEOUT, None] == [outcome.cause for outcome in outcomes]
    assert 1.0 == outcomes[1].score


ENTITIES = '<!DOCTYPE a [<!ENTITY b "bbbb"><!ENTITY c "&b;&b;&b;">]><a>&c;</a>'


@pytest.mark.parametrize(
    ("completion", "score"),
    [
        ("<a/>", 1.0),
        ("  <a x='1'><b>t</b></a>\n", 1.0),
        ('<?xml version="1.0" encoding="utf-16"?><a>\u00e9</a>', 1.0),
        ("Here:\n```xml\n<a/>\n```\n", 1.0),
        ("<think>x</think>\n<a/>", 1.0),
        ("so, < b</think>\n<a/>", 1.0),
        ("<a><think>x</think></a>", 1.0),
        ("<a>" * 10_000 + "</a>" * 10_000, 1.0),
        ("<a>&amp;&#65;</a>", 1.0),
        ("Here: <a/>", 0.0),
        ("<a/><b/>", 0.0),
        ("<a><b></a></b>", 0.0),
        ("<a x=1/>", 0.0),
        ("<a>&nbsp;</a>", 0.0),
        (ENTITIES, 0.0),
        ('<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>', 0.0),
        ("<a>\0</a>", 0.0),
        ("<a>\ud800</a>", 0.0),
        ("```python\n<a/>\n```", 0.0),
        ("text", 0.0),
        ("", 0.0),
    ],
)
def test_xml(completion: str, score: float) -> None:
    """Well-formed, one element, no document type declaration."""
    assert score == xml_valid(completion=completion).value


def test_the_root_of_xml() -> None:
    """A setting names it; it counts to the letter."""
    assert 1.0 == xml_valid("a")(completion="<a/>").value
    assert 0.0 == xml_valid("a")(completion="<A><a/></A>").value
    with pytest.raises(ValueError, match="root=' '"):
        xml_valid(" ")


PY = "```python\nx = 1\n```\n"


@pytest.mark.parametrize(
    ("settings", "completion", "score"),
    [
        ({}, "text\n" + PY, 1.0),
        ({}, "~~~\nx\n~~~", 1.0),
        ({}, "- a\n  ```\n  x\n  ```", 1.0),
        ({}, "````\n```\n````", 1.0),
        ({}, "x = 1", 0.0),
        ({}, "```x```", 0.0),
        ({}, "```python\nx", 0.0),
        ({}, PY + "```python\nx", 0.0),
        ({}, "```\n```", 0.0),
        ({}, "```\n\u200b \n```", 0.0),
        ({}, "````\nx\n```", 0.0),
        ({}, "\u02cb\u02cb\u02cb\nx\n\u02cb\u02cb\u02cb", 0.0),
        ({}, "", 0.0),
        ({"language": "python"}, PY, 1.0),
        ({"language": "Python"}, "```PY\nx\n```", 1.0),
        ({"language": "python"}, "```{.python}\nx\n```", 1.0),
        ({"language": "golang"}, "```go\nx\n```", 1.0),
        ({"language": "yaml"}, "```yml\nx\n```", 1.0),
        ({"language": "python"}, "```pythonic\nx\n```", 0.0),
        ({"language": "python"}, "```\nx\n```", 0.0),
        ({"language": "python"}, PY + "```bash\nls\n```", 1.0),
        ({"language": "python", "exactly": 1}, PY + "```bash\nls\n```", 0.0),
        ({"exactly": 1}, PY, 1.0),
        ({"exactly": 1}, PY + PY, 0.0),
        ({"at_least": 2}, PY, 0.0),
        ({"at_least": 2}, PY + PY + PY, 1.0),
    ],
)
def test_fences(settings: dict[str, Any], completion: str, score: float) -> None:
    """Closed, not empty, of the language and the number asked for."""
    assert score == code_fence(**settings)(completion=completion).value


@pytest.mark.parametrize("settings", [{"exactly": 0}, {"at_least": 0}, {"language": " "}], ids=repr)
def test_settings_of_fences(settings: dict[str, Any]) -> None:
    """What makes no sense is refused by name."""
    with pytest.raises(ValueError, match=f"code_fence: {next(iter(settings))}="):
        code_fence(**settings)


def test_fences_and_what_lies_outside() -> None:
    """Blocks come with mark and body; of each only the opening fence stays among the lines."""
    blocks, lines = split_fences("a\n" + PY + "b")
    assert [("python", "x = 1", True)] == blocks
    assert ["a", "```python", "b"] == lines


TABLE = "| a | b |\n|---|:-:|\n| 1 | 2 |\n"


@pytest.mark.parametrize(
    ("settings", "completion", "score"),
    [
        ({}, "# A\n\n- one\n", 1.0),
        ({}, "A\n===\n1. one\n", 1.0),
        ({}, "# A", 0.5),
        ({}, "```\n# A\n- b\n```", 0.0),
        ({}, "#A\n-b\n", 0.0),
        ({}, "#\n- \n", 0.0),
        ({}, "# \u200b\n* * *\n", 0.0),
        ({}, "", 0.0),
        ({"headings": 2, "list_items": 0}, "# A\n# A\n# a\n", 0.5),
        ({"headings": 2, "list_items": 0}, "# A\nB\n---\n", 1.0),
        ({"headings": 0, "list_items": 3}, "- a\n- a\n- b\n", 2 / 3),
        ({"headings": 0, "list_items": 0, "tables": 1}, TABLE, 1.0),
        ({"headings": 0, "list_items": 0, "tables": 2}, TABLE + "\n" + TABLE, 1.0),
        ({"headings": 0, "list_items": 0, "tables": 1}, "| a | b |\n|---|---|\n", 0.0),
        ({"headings": 0, "list_items": 0, "tables": 1}, "| a | b |\n|---|\n| 1 | 2 |\n", 0.0),
        ({"headings": 0, "list_items": 0, "tables": 1}, "|-|\n|-|\n|-|\n", 0.0),
        ({"headings": 0, "list_items": 0, "code_blocks": 1}, PY, 1.0),
        ({"headings": 0, "list_items": 0, "code_blocks": 1}, "```\n```", 0.0),
        ({"sections": ["Plan", "Result"], "headings": 0, "list_items": 0}, "## **PLAN**:\nx\n## Result ##\ny", 1.0),
        ({"sections": ["Plan", "Result"], "headings": 0, "list_items": 0}, "# Plan\n# Result\nx", 0.5),
        ({"sections": ["Plan"], "headings": 0, "list_items": 0}, "# Plan\n## Part\n```\nx\n```", 1.0),
        ({"sections": ["Plan"], "headings": 0, "list_items": 0}, "# Plan\n---\n***\n", 0.0),
        ({"sections": ["Plan"], "headings": 0, "list_items": 0}, "Plan: x", 0.0),
    ],
)
def test_markdown(settings: dict[str, Any], completion: str, score: float) -> None:
    """Each part asked for counts its share; repeats, empty parts and what stands in code do not."""
    assert score == pytest.approx(markdown_structure(**settings)(completion=completion).value)


@pytest.mark.parametrize(
    "settings",
    [{"headings": -1}, {"headings": 0, "list_items": 0}, {"sections": ["a", "A"]}, {"sections": [" "]}],
    ids=repr,
)
def test_settings_of_markdown(settings: dict[str, Any]) -> None:
    """What makes no sense is refused."""
    with pytest.raises(ValueError, match="markdown_structure: "):
        markdown_structure(**settings)


ADJUSTED = (
    format_tags(["a", "b"]),
    regex_match("x+"),
    xml_valid("a"),
    code_fence("python", exactly=1),
    markdown_structure(["Plan"], tables=1),
)


@pytest.mark.parametrize("completion", HOSTILE.values(), ids=HOSTILE)
def test_hostile_completions_get_no_score_and_crash_nothing(completion: str) -> None:
    """Whatever the completion is, the score is finite, in range, and not full."""
    for made in (format_tags, xml_valid, code_fence, markdown_structure, *ADJUSTED):
        value = made(completion=completion).value
        assert value is not None
        assert 0.0 <= value < 1.0


@pytest.mark.parametrize("made", [format_tags, regex_match, xml_valid, code_fence, markdown_structure, *ADJUSTED])
def test_rewards_travel(made: Any) -> None:
    """They pickle, and score the same afterwards."""
    again = pickle.loads(pickle.dumps(made))
    assert made.name == again.name
    assert made(completion=GOOD) == again(completion=GOOD)


@pytest.mark.parametrize(
    ("text", "visible"),
    [("a", True), (".", True), ("\u4e2d", True), ("\u00e9", True), ("", False), (" \n\u00a0\u200b\0\u3164", False)],
)
def test_what_a_reader_sees(text: str, visible: bool) -> None:
    """Letters and marks show; white space, controls, zero-width and blank characters do not."""
    assert visible is shows(text)
