"""Group rewards: each completion beside the others of its prompt."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from builtin_rewards.groups import diversity, rank_by_length
from rewardkit import Rollout, Runtime


def values(made: Any, completions: list[str], **columns: Any) -> list[float | None]:
    return [score.value for score in made(completions=completions, **columns)]


@pytest.mark.parametrize(
    ("completions", "scores"),
    [
        (["a b c", "a b c"], [0.0, 0.0]),
        (["a b c", "d e f"], [1.0, 1.0]),
        (["a b c", "a b d"], [2 / 3, 2 / 3]),
        (["a b c", "a b c", "x y z"], [0.5, 0.5, 1.0]),
        (["A  b\u200b c", "a b c"], [0.0, 0.0]),
        (["a", "a", "b"], [0.5, 0.5, 1.0]),
        (["", "a b c", "a b c"], [0.0, 0.0, 0.0]),
        (["", "a b"], [0.0, None]),
        (["", ""], [0.0, 0.0]),
        (["alone"], [None]),
        (["\ud800 \0", "[" * 10_000], [1.0, 1.0]),
        (["\u54c8" * 40, "\u54c8" * 50], [0.0, 0.0]),
    ],
)
def test_diversity_is_one_less_the_mean_likeness(completions: list[str], scores: list[float | None]) -> None:
    assert values(diversity, completions) == [None if score is None else pytest.approx(score) for score in scores]


def test_diversity_does_not_depend_on_order() -> None:
    texts = ["a b c d", "a b x", "c d a b", "", "q r s a b"]
    forward = dict(zip(texts, values(diversity, texts), strict=True))
    backward = dict(zip(texts[::-1], values(diversity, texts[::-1]), strict=True))
    assert forward == backward


@pytest.mark.parametrize(
    ("completions", "scores"),
    [
        (["a", "bb", "ccc"], [1.0, 0.5, 0.0]),
        (["ccc", "a", "bb"], [0.0, 1.0, 0.5]),
        (["a", "b", "ccc"], [0.75, 0.75, 0.0]),
        (["aa", "bb", "cc"], [0.5, 0.5, 0.5]),
        (["", "a", "bb"], [0.0, 1.0, 0.0]),
        (["", "a"], [0.0, 0.5]),
        (["\u200b ", "\n", ""], [0.0, 0.0, 0.0]),
        (["alone"], [None]),
        (["\ud800", "\0\0", "x" * 1_000_000], [1.0, 0.5, 0.0]),
    ],
)
def test_ties_share_the_mean_rank(completions: list[str], scores: list[float | None]) -> None:
    """The shortest that says something scores 1.0; an empty completion never gains."""
    assert values(rank_by_length, completions) == scores


def test_rank_settings() -> None:
    texts = ["a b c", "dddddddd"]
    assert values(rank_by_length(unit="words"), texts) == [0.0, 1.0]
    assert values(rank_by_length(longest_first=True), texts) == [0.0, 1.0]
    assert values(rank_by_length(longest_first=True), ["", "a", "bb", "cc"]) == [0.0, 0.0, 0.75, 0.75]
    assert values(rank_by_length(unit="tokens"), texts, completion_ids=[[1], [1, 2]]) == [1.0, 0.0]
    assert values(rank_by_length(unit="tokens"), texts, completion_ids=[[1], None]) == [None, None]
    assert values(rank_by_length(unit="tokens"), texts) == [None, None]


def test_the_reason_tells_the_length_or_that_there_is_none() -> None:
    """An empty completion of some tokens has not 0 tokens."""
    scores = rank_by_length(unit="tokens")(completions=["", "a b"], completion_ids=[[1] * 50, [1, 2]])
    assert [score.reason for score in scores] == ["it is empty", "2 tokens"]


@pytest.mark.parametrize(("make", "words"), [(lambda: diversity(0), "n="), (lambda: rank_by_length(unit="x"), "unit")])
def test_senseless_settings_are_named(make: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()


@pytest.mark.parametrize("made", [diversity, rank_by_length, diversity(1), rank_by_length(unit="words")], ids=repr)
def test_they_travel(made: Any) -> None:
    texts = ["a b", "a b c", "d e"]
    assert values(pickle.loads(pickle.dumps(made)), texts) == values(made, texts)


def test_in_the_runtime_groups_come_whole() -> None:
    rollouts = [Rollout("?", text, completion_ids=[1] * len(text)) for text in ("a b", "a b", "c d e")]
    with Runtime([diversity, rank_by_length(unit="tokens")], workers=1) as runtime:
        batch = runtime.score(rollouts)
    assert batch.scores["diversity"] == [0.5, 0.5, 1.0]
    assert batch.scores["rank_by_length"] == [0.75, 0.75, 0.0]


def test_diversity_reads_the_beginning() -> None:
    """What stands behind the first 20,000 characters makes no difference."""
    same = "a b c d " * 2500
    assert values(diversity, [same + "x y z", same + "u v w"]) == [0.0, 0.0]
