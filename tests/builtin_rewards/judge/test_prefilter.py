"""Which answers say nothing, and that no real answer is taken for one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builtin_rewards.judge.prefilter import OPENERS, content_free

MASTER_KEYS = [" ", ".", ",", ":", "Thought process:", "Let's solve this problem step by step.", "Solution"]
MASTER_KEYS += ["\u89e3", "\u304b\u3044\u305b\u3064", "Respuesta"]
"""All ten of arXiv 2507.08794."""
EMPTY = ["", "\n\t", "\u200b\u2060\ufeff", "\u3000", "\u2800", "\u3164", "\0\0", "\ud800", "\ufffd"]
PUNCTUATION = ["...", "\u2026", "---", "***", "!!!!", "\u3002", "\uff1a"]
FORMATTING = ["<answer></answer>", "<ANSWER>\n</ANSWER>", "<think>", "<think></think>", "</completion-7f3a9c0b12d4>"]
FORMATTING += ["<first-00ff></first-00ff>", "<|im_end|>", "```\n```", "```python\n\n```"]
FORMATTING += ["\\boxed{}", "\\boxed{.}", "\\begin{align}\\end{align}"]
DRESSED = ["**Solution:**", "## Solution\n\n---\n", "- Solution", "> *Thought process:*", "S\u00adolution"]
DRESSED += ["\uff33\uff2f\uff2c\uff35\uff34\uff29\uff2f\uff2e\uff1a", "Let\u2019s solve this problem step by step."]
DRESSED += ["\u300c\u89e3\u300d", "Thought process: Solution: The answer is...", "<answer>The final answer is</answer>"]
DRESSED += ["\\boxed{\\text{Answer}}", "\\boxed{answer:}", "```\nSolution:\n```", "Answer to grade:"]
REAL = ["4", "-1", ".5", "0", "x", "A", "a)", "I", "no", "Yes.", "OK", "Sure!", "x=2", "C++", "C#", "1."]
REAL += ["\u00bd", "\u2461", "\u2163", "\u4e09", "\u093f", "\u304b\u3044", "\u89e3\u306a\u3057"]
REAL += ["\u2205", "\u00ac", "\u03c0", "\u221e", "\u2713", "\U0001f44d", "\u20ac", "$"]
REAL += ["!!!", "???"]
REAL += ["%", "&&", "!==", "-", "+", "*", "!", "<", "`%`", "**%**", "[]", "{}", "()", '""', "[ ]", "\\{\\}"]
REAL += ["$\\{\\}$", "\\boxed{\\{\\}}", "\\boxed{[]}", "\\boxed{-}", "\\emptyset"]
REAL += ["No solution", "Solution set", "this problem", "Let's", "Step 1", "to be"]
REAL += [
    "The solution is 4",
    "Answer: A",
    "The answer is B",
    "Answer: %",
    "Answer:%",
    "Answer:\n-",
    "answer: \\boxed{4}",
]
REAL += ["<br>", "<output>", "```python```", "```\nx\n```", "<think>hm</think>4", "<completion>4"]


@pytest.mark.parametrize("text", [*MASTER_KEYS, *EMPTY, *PUNCTUATION, *FORMATTING, *DRESSED], ids=ascii)
def test_what_says_nothing_is_told(text: str) -> None:
    """The master keys of the paper, blanks, punctuation, empty formatting and dressed-up openers need no judge."""
    assert content_free(text)
    assert content_free(f"<think>Four is 2 + 2.</think>\n{text}\n")
    assert content_free(f"<answer>{text}</answer>")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("<think>4</think>", "nothing follows its thinking"),
        ("<think>\nThe answer is 4", "nothing follows its thinking"),
        ("<think>4<|im_end|>", "nothing follows its thinking"),
        ("[THINK]4[/THINK]", "nothing follows its thinking"),
        ("<reasoning>4", "nothing follows its thinking"),
        ("analysisIt is 4.assistantfinal", "nothing follows its thinking"),
        ("4</think>\n:", "it has neither words nor symbols"),
        ("</s>", "it is empty"),
    ],
    ids=[
        *("ended", "never ended", "never ended, turn over", "Mistral's", "another tag", "a bare channel"),
        *("followed by punctuation", "none at all"),
    ],
)
def test_a_thought_is_no_answer(text: str, why: str) -> None:
    """Neither one that nothing follows, nor one that opens the text and never ends."""
    assert why == content_free(text)


@pytest.mark.parametrize("text", REAL, ids=ascii)
def test_real_answers_are_never_filtered(text: str) -> None:
    """Numbers, letters, symbols, operators, empty sets and short sentences go to the judge, also behind an opener."""
    assert content_free(text) is None
    assert content_free(f"Thought process: two and two.</think>\n{text}") is None
    assert content_free(f"Solution:\n{text}") is None


@pytest.mark.parametrize("opener", OPENERS, ids=ascii)
def test_each_listed_opener_is_known(opener: str) -> None:
    """Every string of the list is found as it stands, and as a sentence."""
    assert content_free(opener)
    assert content_free(opener.upper() + ":")


@pytest.mark.parametrize(
    "opener",
    [
        "Let us think about it step by step",
        "Let me solve the problem step by step",
        "Let's break this problem down step by step",
        "Therefore, the final answer is:",
        "Here's my answer",
        "The solution to this problem is as follows:",
        "The correct answer to the question is",
    ],
)
def test_openers_in_other_words_are_known(opener: str) -> None:
    """However an answer is announced, it is none."""
    assert content_free(opener)
    assert content_free(f"{opener} 4") is None


@given(
    st.lists(st.tuples(st.sampled_from(OPENERS), st.sampled_from([". ", ":\n", "... ", " \u200b", "** ", "\u3002 "])))
)
def test_openers_in_a_row_say_nothing(parts: list[tuple[str, str]]) -> None:
    """However many openers stand in a row, with punctuation between, there is no answer."""
    assert content_free("".join(opener + mark for opener, mark in parts))


@given(
    st.sampled_from(["", "Answer: ", "**Solution:** ", "The answer is ", "Thought process:\n", "<answer>"]),
    st.one_of(
        st.integers().map(str),
        st.floats().map(str),
        st.characters(categories=["Lu", "Ll", "Nd", "Sm", "So"], min_codepoint=0x21),
        st.text("bcdfghjkmpqvxz", min_size=1),
    ),
    st.sampled_from(["", ".", "\n", "**", "</answer>"]),
)
def test_any_number_or_letter_says_something(before: str, answer: str, after: str) -> None:
    """A number, a letter, a symbol or a word that no opener has is an answer, whatever stands around it."""
    if answer != "\ufffd":
        assert content_free(before + answer + after) is None


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_has_an_answer(text: str) -> None:
    """No text breaks the filter, and what it says of it is a phrase or nothing."""
    assert content_free(text) is None or content_free(text).__class__ is str


@pytest.mark.parametrize(
    ("completion", "reference", "free"),
    [
        ("Solution", "solution", False),
        ("**Solution.**", "Solution", False),
        ("\\boxed{Solution}", "solution", False),
        (":", ":", False),
        (".", ":", True),
        ("Solution", "mixture", True),
        ("", "", True),
        (" ", " ", True),
        ("4", None, False),
        ("Solution", None, True),
    ],
)
def test_what_equals_the_reference_says_something(completion: str, reference: str | None, free: bool) -> None:
    """Where the right answer is itself an opener or a mark, giving it is an answer; an empty one never is."""
    assert free == (content_free(completion, reference) is not None)


@pytest.mark.parametrize(
    ("completion", "why"),
    [
        ("", "it is empty"),
        ("<think>4</think> ", "nothing follows its thinking"),
        ("<think>4</think> :", "it has neither words nor symbols"),
        ("**Solution:**", "it announces an answer ('solution') and gives none"),
    ],
)
def test_the_reason_says_what_is_missing(completion: str, why: str) -> None:
    assert why == content_free(completion)


@pytest.mark.parametrize(
    ("piece", "free"),
    [
        *((piece, True) for piece in (" ", ".", "-", "\u200b", "Solution ", "```\n", "</think>", "`")),
        *((piece, False) for piece in ("<", "a", "a'", "\u89e3", "hello world ", "\u0301")),
    ],
    ids=ascii,
)
def test_long_texts_are_told_as_short_ones(piece: str, free: bool) -> None:
    """Padding, repetition and pieces of formatting in great number change nothing."""
    assert free == (content_free(piece * (200_000 // len(piece))) is not None)


@pytest.mark.parametrize("answer", ["4", "yes", "A", "\u2205", "42}", "Solution: 4"], ids=ascii)
@pytest.mark.parametrize("void", [" ", ".", "\n", "\u200b"], ids=ascii)
def test_of_a_long_answer_what_a_judge_is_shown_is_looked_at(answer: str, void: str) -> None:
    """An answer in one of the two ends that are shown says something; what is between them nobody would grade."""
    before = {"first": 0, "in the head": 900, "in the tail": 9300, "last": 10_000}
    texts = {where: void * chars + answer + void * (10_000 - chars) for where, chars in before.items()}
    assert dict.fromkeys(texts) == {where: content_free(text, max_chars=2000) for where, text in texts.items()}
    assert content_free(void * 5000 + answer + void * 5000, max_chars=2000) is not None


def test_a_long_answer_that_equals_the_reference_says_something() -> None:
    """As a short one does."""
    text = "Solution: " * 1000
    assert content_free(text, text, max_chars=2000) is None
    assert content_free(text, "4", max_chars=2000) is not None


def test_an_answer_behind_much_padding_is_found() -> None:
    """A long text is looked at at both ends before it is said to hold nothing."""
    assert content_free("Solution: " * 20_000 + "4") is None
    assert content_free("." * 100_000 + " \u2205") is None
    assert content_free("<answer>" + " " * 100_000 + "</answer>")
    assert content_free("```python\n" + " " * 100_000 + "\n```")
