"""Rewards of repetition: loops cost, honest prose does not, and nothing crashes them."""

from __future__ import annotations

import pickle
import random
from typing import Any

import pytest

from builtin_rewards.repetition import compression_ratio, distinct_n, repetition_penalty

PROSE = (
    "A pump in the harbour failed last night, and the crew spent hours in cold water to mend it. By dawn they had "
    "found a cracked valve, which nobody could replace before noon. The boats waited; gulls did not."
)


@pytest.mark.parametrize(
    ("completion", "penalty"),
    [
        (PROSE, 0.0),
        ("", 0.0),
        ("one two", 0.0),
        ("a b c a b c", -0.25),
        ("A B C a b c", -0.25),
        ("no " * 102, -0.99),
        ("\u54c8" * 102, -0.99),
        ("x" * 102, -0.99),
        ("\0" * 102, -0.99),
        ("n\u200bo " * 51 + "no " * 51, -0.99),
    ],
)
def test_repeated_trigrams_cost(completion: str, penalty: float) -> None:
    """1 - distinct / all, negative; without blanks, characters are the words."""
    assert repetition_penalty(completion=completion).value == pytest.approx(penalty)


def test_penalty_settings() -> None:
    made = repetition_penalty(1, max_penalty=0.05)
    assert made(completion="a a a a").value == pytest.approx(-0.05 * 0.75)
    assert made.options.score_range == (-0.05, 0)


@pytest.mark.parametrize(
    ("completion", "share"),
    [("", 0.0), (" \u200b", 0.0), ("word", 1.0), ("a b c", 1.0), ("a b a b a", 0.5), ("a " * 101, 0.01), (PROSE, 1.0)],
)
def test_distinct_bigrams(completion: str, share: float) -> None:
    assert distinct_n(completion=completion).value == pytest.approx(share)


def test_compression_tells_loops_from_prose() -> None:
    loop = compression_ratio(completion="all the same " * 500).value
    prose = compression_ratio(completion=PROSE).value
    assert loop < 0.02 < 0.5 < prose <= 1
    assert compression_ratio(completion="").value == compression_ratio(completion="\u200b").value == 0.0
    assert compression_ratio(0.3, 0.5)(completion=PROSE).value == 1.0
    assert compression_ratio(0.3, 0.5)(completion="a" * 1000).value == 0.0
    letters = "".join(random.Random(0).choices("abcdefghijklmnopqrstuvwxyz ", k=50))
    assert compression_ratio(completion=letters).value <= 1.0


@pytest.mark.parametrize("made", [repetition_penalty, distinct_n, compression_ratio], ids=lambda made: made.name)
@pytest.mark.parametrize(
    "completion", ["a" * 1_000_000, "\ud800" * 1000, "\0" * 100_000, "\uff21" * 100_000, "a b " * 250_000]
)
def test_hostile_completions_are_loops(made: Any, completion: str) -> None:
    scored = made(completion=completion)
    low, high = made.options.score_range
    assert low <= scored.value <= low + 0.05 * (high - low)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: repetition_penalty(0), "n="),
        (lambda: repetition_penalty(max_penalty=0.0), "max_penalty"),
        (lambda: repetition_penalty(max_penalty=float("nan")), "max_penalty"),
        (lambda: distinct_n(101), "n="),
        (lambda: compression_ratio(0.5, 0.5), "low="),
        (lambda: compression_ratio(0.5, 1.5), "low="),
    ],
)
def test_senseless_settings_are_named(make: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()


@pytest.mark.parametrize(
    "made",
    [repetition_penalty, distinct_n, compression_ratio, repetition_penalty(2), distinct_n(1), compression_ratio(0.1)],
    ids=repr,
)
def test_they_travel(made: Any) -> None:
    text = "one two one two one three"
    assert pickle.loads(pickle.dumps(made))(completion=text).value == made(completion=text).value
