"""Which part of a completion is its final answer."""

from __future__ import annotations

import pickle

import pytest

from builtin_rewards.reading.answer import Extraction, Rule, extract_answer


@pytest.mark.parametrize(
    ("completion", "rule", "answer"),
    [
        ("\\boxed{42}", Rule.BOXED, "42"),
        ("\\boxed 42.", Rule.BOXED, "42"),
        ("\\fbox{42}", Rule.BOXED, "42"),
        ("\\boxed{\\boxed{42}}", Rule.BOXED, "42"),
        ("\\boxed{\\frac{1}{\\sqrt{2}}} and so on 5", Rule.BOXED, "\\frac{1}{\\sqrt{2}}"),
        ("\\boxed{\\{1, 2\\}}", Rule.BOXED, "\\{1, 2\\}"),
        ("<answer>7</answer> \\boxed{7}", Rule.BOXED, "7"),
        ("write it in \\boxed{}. It is \\boxed{42}", Rule.BOXED, "42"),
        ("\\boxed{\\phantom{2}} first, then \\boxed{42}", Rule.BOXED, "42"),
        ("<think>\\boxed{41}</think>\\boxed{42}", Rule.BOXED, "42"),
        ("<answer>42</answer> 7", Rule.TAG, "42"),
        ("<ANSWER> 42 </ANSWER>", Rule.TAG, " 42 "),
        ("<answer>42", Rule.TAG, "42"),
        ("<answer></answer>The answer is 42", Rule.PHRASE, "42"),
        ("The answer is 42. That took 5 steps.", Rule.PHRASE, "42"),
        ("The final answer is: 42", Rule.PHRASE, "42"),
        ("Final answer: 42 meters", Rule.PHRASE, "42 meters"),
        ("**Final Answer**\n42", Rule.PHRASE, "42"),
        ("The answer to part (a) would be $\\frac{1}{2}$.", Rule.PHRASE, "$\\frac{1}{2}$"),
        ("the answer is 3.5, because 7 / 2 = 3.5", Rule.PHRASE, "3.5"),
        ("2 + 2\n#### 4", Rule.PHRASE, "4"),
        ("2 + 2\nA: 4", Rule.PHRASE, "4"),
        ("#### Step 3\nThen 5", Rule.LAST_NUMBER, "5"),
        ("To answer this, note that x is 5 and y is 7", Rule.LAST_NUMBER, "7"),
        ("x^2 + 1", Rule.WHOLE, "x^2 + 1"),
        ("(2, 3)", Rule.WHOLE, "(2, 3)"),
        ("east", Rule.WHOLE, "east"),
        ("She has 3 and buys 4, so 7 apples.", Rule.LAST_NUMBER, "7 apples"),
        ("It costs $1,234.50 in all.", Rule.LAST_NUMBER, "$1,234.50 in all"),
        ("The chance is $\\frac{3}{8}$.", Rule.LAST_NUMBER, "\\frac{3}{8}"),
        ("The chance is 3/8 then", Rule.LAST_NUMBER, "3/8 then"),
        ("We get y = 2x + 5", Rule.LAST_NUMBER, "2x + 5"),
        ("The answer is **42** dollars.", Rule.PHRASE, "42 dollars"),
        ("The answer is 42.<|im_end|>", Rule.PHRASE, "42"),
        ("It is 42 apples, not 41.", Rule.LAST_NUMBER, "42 apples"),
        ("<think>a</think>The answer is 42 <think>41", Rule.PHRASE, "42 "),
        ("<think>The answer is \\boxed{42}", Rule.NONE, None),
        ("It takes 1 1/2 hours", Rule.LAST_NUMBER, "1 1/2 hours"),
        ("", Rule.NONE, None),
        (" \n", Rule.NONE, None),
        ("words " * 50, Rule.NONE, None),
    ],
)
def test_the_order_of_the_rules(completion: str, rule: Rule, answer: str | None) -> None:
    found = extract_answer(completion)
    assert (rule, answer, False) == (found.rule, found.answer, found.stuffed)


@pytest.mark.parametrize(
    ("completion", "candidates"),
    [
        ("\\boxed{1} \\boxed{2}", ("1", "2")),
        ("\\boxed{2} \\boxed{1} \\boxed{2}", ("1", "2")),
        ("The answer is 3 or 4", ("3", "4")),
        ("The answer is 3, 4 and 5.", ("3", "4", "5")),
        ("<answer>3; 4</answer>", ("3", "4")),
        ("<answer>east or west</answer>", ("east", "west")),
        ("<answer>1</answer><answer>2</answer>", ("1", "2")),
        ("\\boxed{1} <answer>2</answer>", ("2", "1")),
        ("The answer is 1. \\boxed{2}", ("1", "2")),
        ("The answer is 1. Wait, the answer is 2.", ("1", "2")),
        ("Perhaps it is 40, 41 or 42", ("40", "41", "42")),
    ],
)
def test_several_distinct_final_answers_are_stuffing(completion: str, candidates: tuple[str, ...]) -> None:
    found = extract_answer(completion)
    assert found.stuffed
    assert candidates == found.candidates


@pytest.mark.parametrize(
    "completion",
    [
        "\\boxed{42} = \\boxed{42.0}",
        "\\boxed{0.5} that is \\boxed{\\frac{1}{2}}",
        "<answer>\\boxed{42}</answer>",
        "The answer is 42. \\boxed{42}",
        "The answer is a multiple of 7. The answer is 42.",
        "We have 3 apples, 4 pears and 35 plums, which makes 42 pieces.",
        "9 + 9 = 18, 18 + 24 = 42",
        "\\boxed{1,234,567}",
        "\\boxed{(1, 2)}",
    ],
)
def test_steps_and_repetitions_are_no_stuffing(completion: str) -> None:
    assert not extract_answer(completion).stuffed


@pytest.mark.parametrize(
    "completion",
    [
        "not \\boxed{42}",
        "The answer isn't \\boxed{42}",
        "\\boxed{42} is incorrect",
        "The answer is not 42",
        "It is not 42.",
        "It can't be 42",
        "It is not true that the answer is 42.",
        "The answer is 42? No, 41.",
        "I considered 42 and rejected it.",
        "twice 42",
        "\\boxed{42",
        "9" * 5_000 + " apples are too many",
    ],
)
def test_what_cannot_count_has_a_problem(completion: str) -> None:
    assert extract_answer(completion).problem


def test_an_extraction_travels() -> None:
    found = extract_answer("\\boxed{1} \\boxed{2}")
    assert found == pickle.loads(pickle.dumps(found))
    assert Extraction(None, Rule.NONE).stuffed is False
