"""Rewards of repetition, by repeated or distinct n-grams and by compression. Add them to a reward for content."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

from builtin_rewards.adjustable import adjustable, require
from builtin_rewards.reading.normalisation import fold
from rewardkit import Reward, Score, reward

_LONG_WORDS, _LONGEST_WORD = 16, 32


def units(text: str) -> list[str]:
    """Return a text's words in lower case; where their mean length is over 16, those of over 32 as characters."""
    tokens = fold(text).lower().split()
    if len(text) > _LONG_WORDS * len(tokens):
        return [part for token in tokens for part in (token if len(token) > _LONGEST_WORD else (token,))]
    return tokens


def grams(tokens: list[str], n: int) -> Iterable[tuple[str, ...]]:
    """Return the n-grams of a list of words, in order; fewer words make one n-gram."""
    n = min(n, len(tokens))
    return zip(tokens, *(tokens[offset:] for offset in range(1, n)), strict=False)


def _count_grams(text: str, n: int) -> tuple[int, int]:
    ngrams = list(grams(units(text), n))
    return len(set(ngrams)), len(ngrams)


@adjustable
def repetition_penalty(n: int = 3, *, max_penalty: float = 1.0) -> Reward[..., Score]:
    """Return ``repetition_penalty`` with these settings.

    Args:
        n: How many words an n-gram has, 1 to 100.
        max_penalty: The penalty of a text that only repeats itself, as a positive number.
    """
    require(1 <= n <= 100, "1 to 100", n=n)
    require(0 < max_penalty < float("inf"), "a positive number", max_penalty=max_penalty)

    @reward(score_range=(-max_penalty, 0))
    def repetition_penalty(completion: str) -> Score:
        """A penalty from 0 to -1 by the share of the completion's n-grams that are repeated.

        Formula: -max_penalty (1 - distinct n-grams / n-grams), over blank-separated words in lower case. 0.0 for an
        empty completion: a penalty is not a judge of content. Source: the n-gram penalty of arXiv 2502.03373, as its
        code at eddycmu/demystify-long-cot gives one number for a completion. No columns; never ``None``.
        """
        distinct, total = _count_grams(completion, n)
        share = (total - distinct) / max(1, total)
        reason = f"{total - distinct} of {total} {n}-grams repeated"
        return Score(0.0 - max_penalty * share, reason=reason, metrics={"repeated_share": share})

    return repetition_penalty


@adjustable
def distinct_n(n: int = 2) -> Reward[..., Score]:
    """Return ``distinct_n`` with these settings.

    Args:
        n: How many words an n-gram has, 1 to 100.
    """
    require(1 <= n <= 100, "1 to 100", n=n)

    @reward(score_range=(0, 1))
    def distinct_n(completion: str) -> Score:
        """The share of the completion's n-grams that are distinct, 0 to 1.

        Formula: distinct n-grams / n-grams, over blank-separated words in lower case; a shorter completion is one
        n-gram. Source: distinct-1 and distinct-2 of Li et al., arXiv 1510.03055, which divide by words instead. 0.0
        for an empty completion. Short texts repeat little, so ask for length too. No columns; never ``None``.
        """
        distinct, total = _count_grams(completion, n)
        return Score(distinct / total if total else 0.0, reason=f"{distinct} of {total} {n}-grams distinct")

    return distinct_n


@adjustable
def compression_ratio(low: float = 0.0, high: float = 1.0) -> Reward[..., Score]:
    """Return ``compression_ratio`` with these settings.

    Args:
        low: The ratio at which, and below which, the score is 0.0.
        high: The ratio at which, and above which, it is 1.0. English prose of some pages has 0.35 to 0.5.
    """
    require(0 <= low < high <= 1, "0 <= low < high <= 1", low=low, high=high)

    @reward(score_range=(0, 1))
    def compression_ratio(completion: str) -> Score:
        """How little zlib shrinks the completion, 0 to 1: near 0 for a text that repeats itself.

        Formula: r = compressed bytes / UTF-8 bytes, at most 1, then (r - low) / (high - low), held to 0 and 1. Texts
        of under some hundred bytes hardly shrink. 0.0 for an empty completion. No columns; never ``None``.
        """
        if not fold(completion).strip():
            return Score(0.0, reason="the completion is empty")
        raw = completion.encode("utf-8", "surrogatepass")
        ratio = min(1.0, len(zlib.compress(raw)) / len(raw))
        score = min(1.0, max(0.0, (ratio - low) / (high - low)))
        return Score(score, reason=f"shrinks to {ratio:.2f}", metrics={"ratio": ratio})

    return compression_ratio
