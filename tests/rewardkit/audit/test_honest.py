"""Honest forms: the ways in which people write a right answer of that kind, and no others."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rewardkit.audit.honest import right_answers
from rewardkit.audit.rows import row_of

CODE = "def add(a, b):\n    return a + b"
CALL = {"name": "add", "arguments": {"a": 1}}
TAGGED = ["<answer>", "<think> and <answer>", "<think> and <answer>, one line", "<reasoning> and <answer>"]


@pytest.mark.parametrize(
    "reference", [CODE, f"```python\n{CODE}\n```", f"Here it is:\n```py\n{CODE}\n```\nIt adds.", f"```python\n{CODE}"]
)
def test_code_is_fenced_once(reference: str) -> None:
    """Whether or not the data has fenced it, and words around it."""
    row = row_of(1, {"prompt": "Write add.", "tests": "assert add(1, 2) == 3", "reference": reference}, None)
    assert {
        "fenced code": f"```python\n{CODE}\n```",
        "bare code": CODE,
        "words and fenced code": f"Here is the solution:\n\n```python\n{CODE}\n```\n\nIt passes.",
    } == {form.name: form.text for form in right_answers(row)}


@pytest.mark.parametrize("reference", ["    return a + b", "```python\n    return a + b\n```"])
def test_a_body_stands_behind_the_head_in_the_prompt(reference: str) -> None:
    """A reference that is a function's body alone is one program with the prompt."""
    row = row_of(1, {"prompt": "def add(a, b):\n", "tests": "assert add(1, 2) == 3", "reference": reference}, None)
    assert CODE in {form.text for form in right_answers(row)}


def test_a_frame_stands_around_the_gold_and_not_inside_another_number() -> None:
    """A reference's own words frame other answers where the gold is a number of its own, whatever follows it."""
    text = "The answer is 5, found in 15 steps."
    row = row_of(1, {"prompt": "How many?", "answer": "5", "reference": text}, "answer")
    (reference,) = [form for form in right_answers(row) if form.name == "the data's reference"]
    assert reference.frame is not None
    assert "The answer is 12, found in 15 steps." == reference.frame.around("12")


@pytest.mark.parametrize(
    ("gold", "counted", "uncounted"),
    [
        ("42", ["\\boxed", "bold", "Answer: X", '{"answer": X}'], []),
        ("word " * 20, ["bare", "Answer: X", *TAGGED], ["\\boxed", "$X$", "bold in a sentence", '{"answer": X}']),
        ({"a": 1}, ["bare", "code fence", *TAGGED], ["\\boxed", "Answer: X", "#### X", '{"answer": X}']),
        ([CALL], ["bare", "<tool_call>", "tool_calls of a message"], ["The answer is X.", "Final answer: X"]),
    ],
    ids=["short", "long", "object", "call"],
)
def test_a_refusal_counts_where_people_write_such_an_answer_so(
    gold: Any, counted: list[str], uncounted: list[str]
) -> None:
    """Nobody puts an object or a paragraph into a box; what is paid there is attacked there all the same."""
    value = gold if isinstance(gold, str) else json.dumps(gold)
    forms = {form.name: form.counted for form in right_answers(row_of(1, {"prompt": "", "answer": value}, "answer"))}
    assert (set(), set()) == ({n for n in counted if not forms[n]}, {n for n in uncounted if forms[n]})
