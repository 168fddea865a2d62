"""Completions that rewards meet in training and tests forget: a list of them, and a strategy that makes more."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

_CHARACTERS = (
    *("\0", "\x1b[31m", "\x7f", "\ud800", "\udfff\ud83d", "\ufffe", "\u200b", "\u2060", "\ufeff", "\u202e", "\u2028"),
    *("e\u0301", "ﬁ", "İ", "ß", "\uff21", "\u0430", "\uff11\uff12", "١٢٣", "²", "½", "\u22121", "😀", "👩‍👩‍👧"),
)
_NUMBERS = (
    *("0", "-0", "4", "4.0", "4.", ".5", "1,000", "1_000", "1e3", "1e999", "NaN", "inf", "1/0", "0x10", "50%", "$4"),
    *("٤", "4 feet", "not 4", "[4, 5)", "9**9**9"),
)
_MARKUP = (
    *("<", "<think>", "</think>", "<answer>", "</answer>", "<answer></answer>", "<answer>4</answer>", "<a b='"),
    *("```", "```python\n", "**", "# ", "- ", "| a |", "[a](b)", "\\", "$", "\\(", "\\boxed{", "\\boxed{}", "&amp;"),
    *("\\boxed{4}", "\\frac{1}{0}", "\\frac", "{", "}", "[", "]", "(", ")", "{}", "[]", "null", "true", '{"a": 1}'),
    *('{"a":', '"', "'", ",", ":", ";", "%s", "{0}", "../", "A", "(B)", "The answer is", "the"),
    *("\n", "\r\n", "\t", " "),
)
TOKENS = ("a", *sorted((*_NUMBERS, *_MARKUP, *_CHARACTERS), key=len))
"""What generated completions are put together from, the shortest first."""

_REPEATED = ("a", " ", "\n", "1", "\0", "(", "[", '{"a":', "<think>", "\\boxed{", "a b ", "\ud800")
_TIMES = (100, 10_000)
_LONGEST = 1_000_000

LONG = (
    *(token * times + end for times in _TIMES for end in ("", "!") for token in _REPEATED),
    "[" * 10_000 + "]" * 10_000,
    '{"a":' * 10_000 + "1" + "}" * 10_000,
    "a" * _LONGEST,
    "\n" * _LONGEST,
)
"""Completions that are long, or nested deep."""

HOSTILE = ("", *TOKENS, *LONG)  # Completions that every reward is tried on


_FORMS = ("{}", "<answer>{}</answer>", "<think>a</think><answer>{}</answer>", "\\boxed{{{}}}", "The answer is {}.")


def dressed(value: str) -> list[str]:
    """Return the usual ways of writing an answer: a right one takes other paths than noise does."""
    return [form.format(value) for form in _FORMS]


def completions(more: Iterable[str] = ()) -> Any:
    """Return a hypothesis strategy of completions.

    Args:
        more: Further texts to put completions together from, such as right answers.
    """
    from hypothesis import strategies

    tokens = strategies.sampled_from((*TOKENS, *more))
    letters = strategies.integers(0, 0x10FFFF).map(chr)  # lone surrogates among them, unlike strategies.text()
    pieces = strategies.lists(strategies.one_of(tokens, letters), max_size=12).map("".join)
    repeated = strategies.tuples(tokens, strategies.integers(1, 2_000)).map(lambda pair: pair[0] * pair[1])
    return strategies.one_of(pieces, repeated)
