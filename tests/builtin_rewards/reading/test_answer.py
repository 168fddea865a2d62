"""Which part of a completion is its final answer."""

from __future__ import annotations

import pickle

import pytest

from builtin_rewards.math import math_answer
from builtin_rewards.reading.answer import (
    AnswerRule,
    Extraction,
    answer_as_text,
    extract_answer,
    final_answer,
    opening_verdict,
)


@pytest.mark.parametrize(
    ("completion", "rule", "answer"),
    [
        ("\\boxed{42}", AnswerRule.BOXED, "42"),
        ("\\boxed 42.", AnswerRule.BOXED, "42"),
        ("\\fbox{42}", AnswerRule.BOXED, "42"),
        ("\\boxed{\\boxed{42}}", AnswerRule.BOXED, "42"),
        ("\\boxed{\\frac{1}{\\sqrt{2}}} and so on 5", AnswerRule.BOXED, "\\frac{1}{\\sqrt{2}}"),
        ("\\boxed{\\{1, 2\\}}", AnswerRule.BOXED, "\\{1, 2\\}"),
        ("<answer>7</answer> \\boxed{7}", AnswerRule.BOXED, "7"),
        ("write it in \\boxed{}. It is \\boxed{42}", AnswerRule.BOXED, "42"),
        ("\\boxed{\\phantom{2}} first, then \\boxed{42}", AnswerRule.BOXED, "42"),
        ("<think>\\boxed{41}</think>\\boxed{42}", AnswerRule.BOXED, "42"),
        ("<answer>42</answer> 7", AnswerRule.TAG, "42"),
        ("<ANSWER> 42 </ANSWER>", AnswerRule.TAG, " 42 "),
        ("<answer>42", AnswerRule.TAG, "42"),
        ("<answer></answer>The answer is 42", AnswerRule.PHRASE, "42"),
        ("The answer is 42. That took 5 steps.", AnswerRule.PHRASE, "42"),
        ("The final answer is: 42", AnswerRule.PHRASE, "42"),
        ("Final answer: 42 meters", AnswerRule.PHRASE, "42 meters"),
        ("**Final Answer**\n42", AnswerRule.PHRASE, "42"),
        ("The answer to part (a) would be $\\frac{1}{2}$.", AnswerRule.PHRASE, "$\\frac{1}{2}$"),
        ("the answer is 3.5, because 7 / 2 = 3.5", AnswerRule.PHRASE, "3.5"),
        ("2 + 2\n#### 4", AnswerRule.PHRASE, "4"),
        ("2 + 2\nA: 4", AnswerRule.PHRASE, "4"),
        ("#### Step 3\nThen 5", AnswerRule.LAST_NUMBER, "5"),
        ("To answer this, note that x is 5 and y is 7", AnswerRule.LAST_NUMBER, "7"),
        ("x^2 + 1", AnswerRule.WHOLE, "x^2 + 1"),
        ("(2, 3)", AnswerRule.WHOLE, "(2, 3)"),
        ("east", AnswerRule.WHOLE, "east"),
        ("She has 3 and buys 4, so 7 apples.", AnswerRule.LAST_NUMBER, "7 apples"),
        ("It costs $1,234.50 in all.", AnswerRule.LAST_NUMBER, "$1,234.50 in all"),
        ("The chance is $\\frac{3}{8}$.", AnswerRule.LAST_NUMBER, "\\frac{3}{8}"),
        ("The chance is 3/8 then", AnswerRule.LAST_NUMBER, "3/8 then"),
        ("We get y = 2x + 5", AnswerRule.LAST_NUMBER, "2x + 5"),
        ("It is log 4.", AnswerRule.LAST_NUMBER, "log 4."),
        ("So it is 3 mod 4", AnswerRule.LAST_NUMBER, "3 mod 4"),
        ("So it is 1 in 7.", AnswerRule.LAST_NUMBER, "1 in 7."),
        ("So x > 7", AnswerRule.LAST_NUMBER, "x > 7"),
        ("It costs 3.\n#### Nothing", AnswerRule.PHRASE, "Nothing"),
        ("It is 4\u00b75", AnswerRule.LAST_NUMBER, "4\u00b75"),
        ("It is 2\u2075.", AnswerRule.LAST_NUMBER, "2\u2075"),
        ("The answer is **42** dollars.", AnswerRule.PHRASE, "42 dollars"),
        ("The answer is 42.<|im_end|>", AnswerRule.PHRASE, "42"),
        ("It is 42 apples, not 41.", AnswerRule.LAST_NUMBER, "42 apples"),
        ("<think>a</think>The answer is 42 <think>41", AnswerRule.PHRASE, "42 "),
        ("<think>The answer is \\boxed{42}", AnswerRule.NONE, None),
        ("It takes 1 1/2 hours", AnswerRule.LAST_NUMBER, "1 1/2 hours"),
        ("", AnswerRule.NONE, None),
        (" \n", AnswerRule.NONE, None),
        ("words " * 50, AnswerRule.NONE, None),
    ],
)
def test_the_order_of_the_rules(completion: str, rule: AnswerRule, answer: str | None) -> None:
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
        "I considered 42% and rejected it.",
        "The answer isn't \\{1, 3, 42\\}",
        "not \\{1, 3, 42\\}",
        "\\{1, 2, 42\\} is wrong.",
        "It is neither 3 nor 42",
        "anything but x^2 + 42",
        "anything but y = 2x + 42",
        "42° is wrong.",
        "42 \\text{ cm} is false",
        "I considered 42^\\circ and rejected it.",
        "The length is not $x^2 + 42$.",
        "$x^2 + 42$ is wrong",
        "$\\pi$ is wrong",
        "<answer>0 is false</answer>",
        "\\boxed{42 \\text{ is wrong}}",
        "<answer>42 is not the answer</answer>",
        "\u202e42\u202c",
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
    assert Extraction(None, AnswerRule.NONE).stuffed is False


@pytest.mark.parametrize(
    "completion",
    [
        "The answer isn't 3, it's 4.",
        "The answer isn't 3; it's 4",
        "It isn't 3. It's 4.",
        "The answer is not 3, but 4.",
        "The answer is not 3 but rather 4",
        "The answer is not 3; it is 4.",
    ],
)
def test_an_answer_may_be_set_against_another_one(completion: str) -> None:
    """What is denied is not listed with what stands."""
    found = extract_answer(completion)
    assert ("4", "", False) == ((found.answer or "").rstrip("."), found.problem, found.stuffed)


WRONG = "Wait, that is wrong."


@pytest.mark.parametrize(
    ("completion", "answer"),
    [
        (f"The answer is 41. {WRONG} The answer is 42.", "42"),
        (f"\\boxed{{41}} {WRONG} \\boxed{{42}}", "42"),
        (f"$$\\boxed{{41}}$$\n\n{WRONG}\n\n$$\\boxed{{42}}$$", "42"),
        (f"<answer>41</answer> {WRONG} <answer>42</answer>", "42"),
        (f"<answer>The answer is 41. {WRONG} The answer is 42.</answer>", "42"),
        (f"The answer is 41. {WRONG} \\boxed{{42}}", "42"),
        (f"The answer is 41, because 40 + 1 is. {WRONG} The answer is 42.", "42"),
        (f"It is 41. {WRONG} It is 42", "42"),
        ("The answer is 41. No, the answer is 42.", "42"),
        ("The answer is 41. Actually, the answer is 42.", "42"),
        ("So \\boxed{41}. Hmm, that can't be right. \\boxed{42}", "42"),
        ("\\boxed{41} is wrong. \\boxed{42}", "42"),
        ("not \\boxed{41}; \\boxed{42}", "42"),
        ("The answer is 42. Wait, 41 is wrong.", "42"),
        ("The answer is 42. No other value works.", "42"),
        ("The answer is 42. It is not possible to get more.", "42"),
        ("".join(f"The answer is {n}. No, wait. " for n in range(50)) + "The answer is 42.", "42"),
        ("".join(f"\\boxed{{{n}}} {WRONG} " for n in range(300)) + "\\boxed{42}", "42"),
    ],
)
def test_a_withdrawn_answer_is_neither_the_answer_nor_stuffing(completion: str, answer: str) -> None:
    """The one that is left is read, however many were withdrawn before it."""
    found = extract_answer(completion)
    assert (answer, "", (answer,)) == (found.answer, found.problem, found.candidates)


@pytest.mark.parametrize(
    "completion",
    [
        "The answer is 41. The answer is 42. Wait",
        "The answer is 41. Wait, the answer is 42.",
        "The answer is 41. Is that wrong? The answer is 42.",
        "The answer is 41 or else the answer is 42.",
        "The answer is 41 and the answer is 42.",
        "42 is the answer. 41 is the answer.",
        "The answer is 41. Let me verify. The answer is 42.",
        "The answer is 41. Wait, 40 is wrong. The answer is 42.",
        f"The answer is 40. The answer is 41. {WRONG} The answer is 42.",
        "The answer is 41. The answer is 42. Wait, 41 is wrong.",
        f"\\boxed{{41}} \\boxed{{40}} {WRONG} \\boxed{{42}}",
        "\\boxed{41} Let me check that. \\boxed{42}",
        "<answer>The answer is 41. The answer is 42.</answer>",
        "<think>Wait, that is wrong.</think>The answer is 41. The answer is 42.",
    ],
)
def test_two_answers_that_both_stand_are_stuffing(completion: str) -> None:
    """Words that take nothing back, take another answer back, or stand too far off."""
    assert extract_answer(completion).stuffed


@pytest.mark.parametrize(
    "completion",
    [
        f"The answer is 42. {WRONG}",
        f"\\boxed{{42}} {WRONG}",
        f"<answer>42</answer> {WRONG}",
        f"The answer is 42. The answer is 42. {WRONG}",
        f"It is 42. {WRONG}",
        f"\\boxed{{42. {WRONG} 41}} is not right.",
        "".join(f"The answer is {n}. No. " for n in range(43)),
        "I doubt that it is 42.",
        "I doubt that the answer is 42.",
        "It is false that the correct answer is 42.",
        "I don't believe the final answer is 42.",
        "If the answer is 42, we are done.",
        "The answer is 41, no, 42, no.",
        "The answer is 42. I mean 41.",
        "\\boxed{42}. But it should be 41.",
        "Who says the answer is 42?",
        "It is a mistake to think the answer is 42.",
        "\u7b54\u6848\u662f42\u3002\u4e0d\u5bf9\u3002",
    ],
)
def test_where_the_last_answer_does_not_stand_there_is_none(completion: str) -> None:
    """Though others before it might."""
    assert extract_answer(completion).problem


@pytest.mark.parametrize(
    "completion",
    [
        "Ans: 42",
        "6 times 7.\nAnswer: 42\nThat took 3 steps.",
        "Answer: 41\nNo wait, that's wrong.\nAnswer: 42",
        "The answer is 41, no, 42.",
        "The answer is 40, no, 41 -- wait, no, 42.",
        "The answer is 41. On second thought, that's not correct. The answer is 42.",
        "The answer is 41. Actually, let me recompute: 6*7=42. So the answer is 42.",
        "Die Antwort ist 41. Nein, das ist falsch. Die Antwort ist 42.",
        "\u7b54\u6848\u662f41\u3002\u4e0d\u5bf9\uff0c\u7b54\u6848\u662f42\u3002",
        "Ans. 42",
        "Answer (in dollars): 42",
        "Answer = 42",
        "Answer - 42",
        "The final result is 42. It took 3 steps.",
        "So 42 is the answer. It took 3 steps.",
        "Answer is 42. It took 3 steps.",
        "Answer\n42\nIt took 3 steps.",
        "The answer is 41. But wait, I forgot one. The answer is 42.",
        "41 is not the answer, 42 is the answer.",
        "41 is the answer. No, 42 is the answer.",
        "Final answer: The answer is 42. It took 3 steps.",
        "so that they will not\nA: 42",
        "The answer comes out to 42. It took 3 steps.",
        "The answer, in dollars, is 42. It took 3 steps.",
        "The overall correct answer is 42. It took 3 steps.",
        "La respuesta es 42. Son 3 pasos.",
        "La r\u00e9ponse finale est 42. Trois fois 3.",
        "Die Antwort lautet 42. Das sind 3 Schritte.",
        "\u7b54\u6848\u662f42\u3002\u7528\u4e863\u6b65",
        "\u7b54\u6848\uff1a42\n3",
        "\u041e\u0442\u0432\u0435\u0442: 42\n3",
    ],
)
def test_other_wordings_announce_an_answer(completion: str) -> None:
    """Short forms, other words around it and other languages."""
    found = extract_answer(completion)
    assert (AnswerRule.PHRASE, "42") == (found.rule, (found.answer or "").strip())
    assert not found.problem


@pytest.mark.parametrize(
    ("completion", "rule", "text"),
    [
        ("42", AnswerRule.WHOLE, "42"),
        ("42<|end|>", AnswerRule.WHOLE, "42"),
        ("The result is $\\boxed{42}$.<|return|>", AnswerRule.BOXED, "42"),
        ("<answer>42</answer> I hope it helps.", AnswerRule.TAG, "42"),
        ("<answer>42", AnswerRule.TAG, "42"),
        ("<answer>The result is \\boxed{42}</answer>", AnswerRule.BOXED, "42"),
        (f"\\boxed{{41}} {WRONG} \\boxed{{42}}", AnswerRule.BOXED, "42"),
        ("<think>\\boxed{41}</think>\\boxed{42}", AnswerRule.BOXED, "42"),
        ("<answer>Trinidad and Tobago, or *both*</answer>", AnswerRule.TAG, "Trinidad and Tobago, or *both*"),
        ("\\boxed{41} \\boxed{42}", AnswerRule.WHOLE, "\\boxed{41} \\boxed{42}"),
        ("\\boxed{42} <answer>41</answer>", AnswerRule.WHOLE, "\\boxed{42} <answer>41</answer>"),
        ("The answer is 41. \\boxed{42}", AnswerRule.WHOLE, "The answer is 41. \\boxed{42}"),
        ("not <answer>42</answer>", AnswerRule.WHOLE, "not <answer>42</answer>"),
        (f"\\boxed{{42}} {WRONG}", AnswerRule.WHOLE, f"\\boxed{{42}} {WRONG}"),
        ("\\boxed{42", AnswerRule.WHOLE, "\\boxed{42"),
        ("<think>42", AnswerRule.WHOLE, ""),
    ],
)
def test_the_answer_as_text_is_the_marked_one_or_all_that_is_said(completion: str, rule: AnswerRule, text: str) -> None:
    """As it stands there; what is marked twice, denied or withdrawn marks nothing."""
    found = answer_as_text(completion)
    assert (rule, text) == (found.rule, found.answer)
    assert text == final_answer(completion)
    if rule is not AnswerRule.WHOLE:
        assert text == extract_answer(completion).answer or "*" in text


@pytest.mark.parametrize(
    ("completion", "word"),
    [
        ("Yes, it is.", "yes"),
        ("**Yes**, because 17 has no divisors.", "yes"),
        ("No.", "no"),
        ("No, it is not.", "no"),
        ("True", "true"),
        ("Yes it is", "yes"),
        ("Yes, but no.", None),
        ("Yes. Wait, that is wrong.", None),
        ("Yes, no", None),
        ("Yesterday it was.", None),
        ("I say yes.", None),
        ("<think>Yes.", None),
    ],
)
def test_the_verdict_that_a_completion_begins_with(completion: str, word: str | None) -> None:
    """None where it is taken back or its opposite ends a clause."""
    assert word == opening_verdict(completion)


@pytest.mark.parametrize(
    "mark",
    [
        *("The answer is 41. ", "The answer is ", "#### 1\n", "42 is the answer. ", "\\boxed{1} ", "\\boxed{", "no "),
        *("<answer>1</answer> ", "<answer>", "wait, ", "a' ", "the ", "final ", "1 ", "$1$ ", "** ", "that is wrong. "),
    ],
)
def test_repeated_phrases_are_read_in_a_bounded_number_of_passes(mark: str) -> None:
    """100,000 characters of each; what is not linear would not end."""
    text = mark * (100_000 // len(mark))
    assert extract_answer(text).rule in AnswerRule
    assert len(final_answer(text)) <= len(text)


@pytest.mark.parametrize(
    ("completion", "gold", "score"),
    [
        ("The solutions are:\n- x = 3\n- x = -3", "3, -3", 1.0),
        ("The solutions are x = 3 and x = -3.", "-3, 3", 1.0),
        ("The roots are:\n1. 3\n2. -3", "3, -3", 1.0),
        ("The solutions to the equation are $x_1 = 3$ and $x_2 = -3$.", "3, -3", 1.0),
        ("The zeros are 1, 2, and 3.", "1, 2, 3", 1.0),
        ("The roots are 2 and 3, so the sum is 5.", "5", 1.0),
        ("The solutions are x = 3 and x = -3.", "3", 0.0),
        ("The solutions are x = 3 and x = 4.", "3, -3", 0.0),
        ("The solutions are:\n- x = 3\n- x = -3\n- x = 5", "3, -3", 0.0),
        ("The solutions are x = 3 and y = -3.", "3, -3", 0.0),
        ("It is false that the solutions are 3 and -3.", "3, -3", 0.0),
    ],
)
def test_solutions_listed_at_the_end_are_one_answer(completion: str, gold: str, score: float) -> None:
    """They stand in a sentence or in the lines of a list, all for one variable."""
    assert score == math_answer(completion=completion, answer=gold).value
