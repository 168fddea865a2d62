"""Text that is not the answer is not read: what stands in a thought earns nothing and costs nothing."""

from __future__ import annotations

from typing import Any

import pytest

from builtin_rewards.formats import code_fence, markdown_structure, xml_valid
from builtin_rewards.instructions import instructions
from builtin_rewards.matching import (
    contains_all,
    contains_any,
    contains_none,
    edit_similarity,
    exact_match,
    fuzzy_match,
    multiple_choice,
    normalized_match,
    numeric_list,
    set_f1,
    token_f1,
)
from builtin_rewards.math import math_answer, numeric_close
from builtin_rewards.overlap import bleu, chrf, rouge
from builtin_rewards.refusals import no_refusal
from builtin_rewards.structured import json_schema, json_valid

THOUGHTS = (
    *(("<think>", "</think>"), ("<THINKING>", "</THINKING>"), ("<reasoning>", "</reasoning>"), ("[THINK]", "[/THINK]")),
    ("\u25c1think\u25b7", "\u25c1/think\u25b7"),
    ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
)
STOPS = ("<|im_end|>", "<|end|>", "<|return|>", "<|eot|>", "</s>", "<|END_OF_TURN_TOKEN|>", "<end_of_turn>")
NO_COMMA: dict[str, Any] = {"instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]}
# A reward, its columns, what it pays in full, and what it pays less.
PAID: list[tuple[Any, dict[str, Any], str, str]] = [
    (math_answer, {"answer": "42"}, "42", "41"),
    (numeric_close, {"answer": "42"}, "42", "41"),
    (exact_match, {"answer": "42"}, "42", "41"),
    (normalized_match, {"answer": "Paris"}, "paris.", "Rome"),
    (fuzzy_match, {"answer": "Paris"}, "Paris", "Rome"),
    (edit_similarity, {"answer": "Paris"}, "Paris", "Rome"),
    (token_f1, {"answer": "Paris"}, "Paris", "Rome"),
    (contains_all, {"answer": ["Paris"]}, "It is Paris.", "It is Rome."),
    (contains_any, {"answer": ["Paris"]}, "It is Paris.", "It is Rome."),
    (contains_none, {"forbidden": ["Rome"]}, "It is Paris.", "It is Rome."),
    (multiple_choice, {"answer": "B"}, "The answer is B.", "The answer is A."),
    (numeric_list, {"answer": [1, 2]}, "[1, 2]", "[3, 4]"),
    (set_f1, {"answer": ["red", "blue"]}, "red, blue", "green"),
    (bleu, {"answer": "the cat sat on the mat"}, "the cat sat on the mat", "no dog ran to a house"),
    (chrf, {"answer": "the cat sat"}, "the cat sat", "no dog ran"),
    (rouge, {"answer": "the cat sat"}, "the cat sat", "no dog ran"),
    (no_refusal, {}, "Here it is.", "I'm sorry, but I can't help with that."),
    (json_valid, {}, '{"a": 1}', "{a"),
    (json_schema, {"schema": {"type": "object"}}, '{"a": 1}', "[1]"),
    (xml_valid, {}, "<a>1</a>", "<a>1"),
    (code_fence, {}, "```\n1\n```", "1"),
    (markdown_structure, {}, "# One\n\n- two", "One two"),
    (instructions, NO_COMMA, "one two", "one, two"),
]


def value(made: Any, completion: str, columns: dict[str, Any]) -> float:
    """A reward's score."""
    given = made(completion=completion, **columns)
    return float(getattr(given, "value", given))


@pytest.mark.parametrize(("opening", "closing"), THOUGHTS, ids=[opening for opening, _ in THOUGHTS])
@pytest.mark.parametrize(("made", "columns", "right", "wrong"), PAID, ids=[row[0].name for row in PAID])
def test_a_thought_counts_neither_for_nor_against(
    made: Any, columns: dict[str, Any], right: str, wrong: str, opening: str, closing: str
) -> None:
    """The answer behind it decides; where nothing follows, or the thought never ends, nothing is paid in full."""
    assert 1.0 == value(made, right, columns)
    assert 1.0 == value(made, f"{opening}\n{wrong}\n{closing}\n{right}", columns)
    assert 1.0 > value(made, f"{opening}\n{right}\n{closing}\n{wrong}", columns)
    assert 1.0 > value(made, f"{opening}\n{right}\n", columns)
    assert 1.0 > value(made, f"{opening}\n{right}\n{closing}\n", columns)


@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize(("made", "columns", "right", "wrong"), PAID, ids=[row[0].name for row in PAID])
def test_stop_tokens_are_no_content(made: Any, columns: dict[str, Any], right: str, wrong: str, stop: str) -> None:
    """Of whatever template."""
    assert 1.0 == value(made, right + stop, columns)
    assert 1.0 > value(made, wrong + stop, columns)


@pytest.mark.parametrize("made", [exact_match, normalized_match, fuzzy_match, edit_similarity, token_f1, math_answer])
@pytest.mark.parametrize(
    ("completion", "rule"),
    [
        ("42<|end|>", "whole"),
        ("The result is $\\boxed{42}$.", "boxed"),
        ("<answer>42</answer> I hope it helps.", "answer_tag"),
        ("\\boxed{41} Wait, that is wrong. \\boxed{42}", "boxed"),
    ],
)
def test_rewards_of_one_answer_read_the_same_one_and_name_its_rule(made: Any, completion: str, rule: str) -> None:
    """In text as in mathematics."""
    given = made(completion=completion, answer="42")
    assert 1.0 == given.value
    assert f"({rule})" in given.reason


@pytest.mark.parametrize("made", [exact_match, normalized_match, math_answer])
@pytest.mark.parametrize(
    "completion",
    [
        "\\boxed{41} or \\boxed{42}",
        "\\boxed{42} <answer>41</answer>",
        "The answer is 41. \\boxed{42}",
        "<answer>42</answer> Wait, that is wrong.",
        "<answer>41</answer><answer>42</answer>",
        "not \\boxed{42}",
        "\\boxed{42",
    ],
)
def test_marks_that_differ_or_do_not_stand_are_paid_by_none(made: Any, completion: str) -> None:
    """Stuffed, denied, withdrawn or cut off."""
    assert 0.0 == made(completion=completion, answer="42").value
