"""Rewards that compare the completions of one prompt with each other."""

from __future__ import annotations

import math

from builtin_rewards.adjustable import adjustable, require
from builtin_rewards.length import UNITS, measure_length
from builtin_rewards.reading.normalisation import fold
from builtin_rewards.repetition import grams, units
from rewardkit import Reward, Score, group_reward

_COMPARED_CHARS = 20_000  # the sets of all pairs are compared, so a long text costs a group
_ALONE = "a group of one: nothing to compare with"


@adjustable
def diversity(n: int = 2) -> Reward[..., list[Score]]:
    """Return ``diversity`` with these settings.

    Args:
        n: How many words the n-grams have that are compared, 1 to 20.
    """
    require(1 <= n <= 20, "1 to 20", n=n)

    @group_reward(score_range=(0, 1))
    def diversity(completions: list[str]) -> list[Score]:
        """How far each completion differs from the others of its group, 0 to 1.

        Formula: 1 - the mean Jaccard similarity |A & B| / |A | B| of its set of word n-grams with each other
        completion's; a shorter completion is one n-gram. 0.0 for an empty completion, which the others do not count
        either. The first 20,000 characters count. It rewards being different, not being right or readable: add it with
        a small weight. No columns. ``None`` in a group of one, or where all others are empty.
        """
        sets = [set(grams(units(text[:_COMPARED_CHARS]), n)) for text in completions]
        return [_difference(ngrams, [*sets[:index], *sets[index + 1 :]]) for index, ngrams in enumerate(sets)]

    return diversity


def _difference(ngrams: set[tuple[str, ...]], peers: list[set[tuple[str, ...]]]) -> Score:
    if not ngrams and peers:
        return Score(0.0, reason="the completion is empty")
    similarities = [len(ngrams & peer) / len(ngrams | peer) for peer in peers if peer]
    if not similarities:
        return Score(None, reason="all other completions of the group are empty" if peers else _ALONE)
    similarity = math.fsum(similarities) / len(similarities)
    return Score(min(1.0, max(0.0, 1 - similarity)), reason=f"{similarity:.2f} alike to {len(similarities)} others")


@adjustable
def rank_by_length(*, longest_first: bool = False, unit: str = "characters") -> Reward[..., list[Score]]:
    """Return ``rank_by_length`` with these settings.

    Args:
        longest_first: The longest completion scores 1.0, not the shortest.
        unit: ``characters``, ``words`` or ``tokens``.
    """
    require(unit in UNITS, f"one of {', '.join(UNITS)}", unit=unit)

    @group_reward(score_range=(0, 1))
    def rank_by_length(completions: list[str], completion_ids: list[list[int] | None] | None = None) -> list[Score]:
        """Each completion's place by length in its group, 0 to 1: 1.0 for the shortest, 0.0 for the longest.

        Formula: 1 - (rank - 1) / (k - 1) among the k completions that are not empty, rank 1 the shortest; equal
        lengths share the mean of their ranks, so a group of equals, or one alone among empty ones, scores 0.5. An
        empty completion scores 0.0 and is not ranked. No columns. ``None`` in a group of one, or where the unit is
        tokens and the caller did not give ``completion_ids`` for all.
        """
        if len(completions) == 1:
            return [Score(None, reason=_ALONE)]
        tokens = completion_ids or [None] * len(completions)
        lengths = [measure_length(text, ids, unit) for text, ids in zip(completions, tokens, strict=True)]
        if None in lengths:
            return [Score(None, reason="the caller gave no completion_ids for some of the group")] * len(completions)
        sizes = [length or 0 if fold(text).strip() else 0 for length, text in zip(lengths, completions, strict=True)]
        ordered = sorted(filter(None, sizes), reverse=not longest_first)
        return [Score(_rank_share(ordered, size), reason=f"{size} {unit}" if size else "it is empty") for size in sizes]

    return rank_by_length


def _rank_share(ordered: list[int], length: int) -> float:
    """Return a length's place in an order, 0 to 1. Equals get their mean, and an empty completion the worst."""
    if length not in ordered or len(ordered) == 1:
        return 0.5 if length else 0.0
    return (ordered.index(length) + (ordered.count(length) - 1) / 2) / (len(ordered) - 1)
