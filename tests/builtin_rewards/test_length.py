"""Rewards of length: the formulas at their corners."""

from __future__ import annotations

import math
import pickle
from typing import Any

import pytest

from builtin_rewards.groups import diversity
from builtin_rewards.length import cosine_length, length_between, soft_overlong_punishment
from builtin_rewards.matching import exact_match, multiple_choice, numeric_list
from rewardkit import Rollout, Runtime


@pytest.mark.parametrize(
    ("words", "score"),
    [(0, 0.0), (5, 0.5), (9, 0.9), (10, 1.0), (20, 1.0), (25, 0.75), (40, 0.0), (100_000, 0.0)],
)
def test_length_between(words: int, score: float) -> None:
    """1.0 inside, falling on both sides."""
    assert length_between(10, 20)(completion="word " * words).value == pytest.approx(score)


@pytest.mark.parametrize(("unit", "length"), [("words", 2.0), ("characters", 5.0), ("tokens", 3.0)])
def test_units(unit: str, length: float) -> None:
    """Characters that cannot be seen and blanks around do not count."""
    made = length_between(1, 9, unit=unit)
    assert made(completion=" ab\u200b cd \u200b", completion_ids=[1, 2, 3]).metrics == {"length": length}


@pytest.mark.parametrize("completion", ["", "\0", "\ud800", "\u200b", " \n"], ids=ascii)
def test_hostile_lengths(completion: str) -> None:
    assert length_between(completion=completion).value <= 0.1
    assert length_between(completion=completion, completion_ids=None).value is not None
    assert length_between(unit="tokens")(completion=completion).value is None
    assert length_between(0, 5)(completion="").value == 1.0


@pytest.mark.parametrize(
    ("tokens", "penalty"),
    [(0, 0.0), (60, 0.0), (61, -0.025), (80, -0.5), (100, -1.0), (101, -1.0), (1000, -1.0)],
)
def test_soft_overlong_punishment_is_equation_13(tokens: int, penalty: float) -> None:
    made = soft_overlong_punishment(100, 40)
    assert made(completion_ids=[7] * tokens).value == pytest.approx(penalty)


def test_soft_overlong_punishment_as_in_dapo() -> None:
    """The usual setting is 16,384 tokens free and 4,096 of cache; no tokens, no score."""
    assert soft_overlong_punishment(completion_ids=[0] * 16_384).value == 0.0
    assert soft_overlong_punishment(completion_ids=[0] * 18_432).value == -0.5
    assert soft_overlong_punishment(completion_ids=None).value is None


@pytest.mark.parametrize(
    ("tokens", "right", "wrong"),
    [(0, 2.0, -10.0), (50, 1.5, -5.0), (99, 1.0, 0.0), (100, -10.0, -10.0), (500, -10.0, -10.0)],
)
def test_cosine_length(tokens: int, right: float, wrong: float) -> None:
    """Right completions lose with length, wrong ones gain, and the limit costs both."""
    made = cosine_length(max_length=100)
    near = {"abs": 0.01}
    assert made(completion="Paris", answer="paris", completion_ids=[1] * tokens).value == pytest.approx(right, **near)
    assert made(completion="Rome", answer="paris", completion_ids=[1] * tokens).value == pytest.approx(wrong, **near)


def test_cosine_length_is_the_papers_formula() -> None:
    made = cosine_length(exact_match, max_length=10, unit="characters", rl_correct=0.5)
    wanted = 0.5 + (2.0 - 0.5) * (1 + math.cos(math.pi * 5 / 10)) / 2
    score = made(completion="Paris", answer="Paris")
    assert score.value == pytest.approx(wanted)
    assert score.metrics == {"length": 5.0, "correct": 1.0}
    assert "exact_match" in score.reason


def test_cosine_length_with_other_rewards() -> None:
    """Partial credit counts as right from the threshold on; rows that the reward skips are skipped."""
    made = cosine_length(numeric_list(abs=0.5), unit="words", threshold=0.6)
    assert made(completion="[1, 2]", answer="[1, 2, 3]").value > 0
    assert made(completion="[1]", answer="[1, 2, 3]").value < 0
    assert made(completion="[1]", answer="none at all").value is None
    assert cosine_length(completion="x", answer="", completion_ids=[1]).value is None
    assert cosine_length(completion="x", answer="x").value is None
    assert cosine_length(multiple_choice, unit="words")(completion="B", answer="B").value > 0


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: length_between(5, 4), "lo="),
        (lambda: length_between(-1, 4), "lo="),
        (lambda: length_between(0, 0), "lo="),
        (lambda: length_between(unit="lines"), "unit="),
        (lambda: soft_overlong_punishment(10, 11), "l_cache"),
        (lambda: soft_overlong_punishment(10, 0), "l_cache"),
        (lambda: cosine_length(max_length=0), "max_length"),
        (lambda: cosine_length(exceeded=math.nan), "finite"),
        (lambda: cosine_length(unit="bytes"), "unit"),
        (lambda: cosine_length(diversity), "correct"),
        (lambda: cosine_length(print), "correct"),
    ],
)
def test_senseless_settings_are_named(make: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()


def test_they_travel() -> None:
    """Also with a reward inside."""
    for made in (length_between, soft_overlong_punishment, cosine_length, length_between(1, 2)):
        assert pickle.loads(pickle.dumps(made)).name == made.name
    made = cosine_length(multiple_choice(first_index=1), unit="words")
    travelled = pickle.loads(pickle.dumps(made))
    assert travelled(completion="A", answer="1").value == made(completion="A", answer="1").value > 0
    assert travelled.version == made.version


def test_in_the_runtime_token_ids_are_the_callers() -> None:
    rewards = [soft_overlong_punishment(4, 2), cosine_length(max_length=4), length_between(1, 3, unit="tokens")]
    rollouts = [Rollout("?", "Paris", {"answer": "Paris"}, completion_ids=[1, 2, 3])] * 2
    with Runtime(rewards, workers=1) as runtime:
        batch = runtime.score(rollouts)
    assert batch.scores["soft_overlong_punishment"] == [-0.5, -0.5]
    assert batch.scores["length_between"] == [1.0, 1.0]
    assert batch.scores["cosine_length"][0] == pytest.approx(1.146, abs=0.001)
