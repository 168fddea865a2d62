"""What trainers beside TRL are told of turns: rewards a token, and what stands in a trace or a sample."""

from __future__ import annotations

import asyncio
import logging
import math
import pickle
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit import RewardFailedError, Step, reward, step_reward
from trainer_adapter import TrainerAsks, TrainerRewards
from trainer_adapter.credit import CreditedNumber, TurnCredit
from trainer_adapter.slime import slime_rm
from trainer_adapter.verl import verl_score

PROMPT = [{"role": "user", "content": "go"}]


@step_reward(credit="turns")
def length(part: Step) -> float | None:
    return float(len(part.text)) if part.text else None


@step_reward(credit="potential", score_range=(0, 8))
def level(part: Step) -> float:
    if part.text == "boom":
        raise ValueError("boom")
    return float(len(part.text))


@reward
def end(completion: list[dict[str, Any]]) -> float:
    return float(completion[-1]["content"] == "cc")


def _turns(*texts: str) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    for text in texts:
        messages += [{"role": "assistant", "content": text}, {"role": "user", "content": "?"}]
    return messages[:-1]


def _credit(rewards: list[Any], *texts: str, weights: list[float] | None = None, **options: Any) -> TurnCredit:
    core = TrainerRewards(rewards, weights=weights, workers=1, **options)
    try:
        rollout = core.rollout(PROMPT, _turns(*texts))
        (row,) = core.score([rollout])
        return core.credit(row, rollout)
    finally:
        core.close()


def test_a_total_comes_apart_into_its_turns_and_the_rest() -> None:
    """A potential's numbers add up to its score, so the whole is the total; a turn that is not known stays so."""
    own = _credit([level, end], "aaa", "", "cc", weights=[0.5, 2.0])
    assert TurnCredit((1.5, -1.5, 1.0), 2.0) == own
    assert 0.5 * 2 + 2.0 * 1 == own.sum
    assert TurnCredit((3.0, None, 2.0), 0.0) == _credit([length], "aaa", "", "cc")


def test_a_failure_has_no_turns_and_its_stand_in_is_in_the_rest() -> None:
    assert TurnCredit((2.0, 4.0), 0.0) == _credit([length, level], "aa", "boom")
    assert TurnCredit((None, None), 0.0) == _credit([level], "a", "boom")


@step_reward(credit="turns", default=None)
def strict(part: Step) -> float:
    return level.function(part)


def test_no_turn_is_paid_where_the_total_is_unknown() -> None:
    """Another reward has scored, but a part of the total is missing, and 0.0 is what is told instead."""
    assert TurnCredit((None, None), 0.0) == _credit([length, strict], "aa", "boom", on_unknown="zero")
    with pytest.raises(RewardFailedError):
        _credit([length, strict], "aa", "boom")


def test_rewards_of_tokens_stand_at_the_last_token_of_each_turn() -> None:
    credit = TurnCredit((1.0, None, 3.0), 0.5)
    assert [0, 1.0, 0, 0.0, 0, 0, 3.5] == credit.token_rewards([1, 1, 0, 1, 0, 1, 1])
    assert [1.0, 0, 0.0, 0, 3.0, 0.5] == credit.token_rewards([1, 0, 1, 0, 1, 0])
    assert credit.token_rewards([1, 1, 0, 1]) is None
    assert credit.token_rewards([]) is None


_TURN = st.tuples(st.none() | st.floats(-100, 100), st.integers(1, 4), st.integers(1, 3))
"""A turn's number, and how many tokens it has and stand behind it."""


@given(st.lists(_TURN, min_size=1, max_size=8), st.floats(-100, 100))
def test_rewards_of_tokens_add_up_to_the_turns_and_the_rest(
    turns: list[tuple[float | None, int, int]], rest: float
) -> None:
    """However long turns and what stands between them are."""
    mask = [key for _, own, other in turns for key in [1] * own + [0] * other]
    credit = TurnCredit(tuple(number for number, _, _ in turns), rest)
    tokens = credit.token_rewards(mask)
    assert tokens is not None
    assert math.isclose(credit.sum, math.fsum(tokens), abs_tol=1e-9)


def test_a_number_that_brings_its_turns_is_that_number_and_pickles() -> None:
    number = CreditedNumber.of(0.5, TurnCredit((0.25,), 0.25))
    number.tokens = [0.25, 0.25]
    copy = pickle.loads(pickle.dumps(number))
    assert (0.5, number.credit, [0.25, 0.25]) == (copy, copy.credit, copy.tokens)


def test_verls_score_brings_the_turns_along() -> None:
    score = verl_score([length, end], workers=1)
    info = {"prompt": PROMPT, "rewardkit_messages": [*PROMPT, *_turns("aaa", "cc")]}
    reply = asyncio.run(score("sums", "aaa?cc", "4", info))
    assert 3.5 == reply["score"]
    assert TurnCredit((3.0, 2.0), 1.0) == reply["score"].credit  # type: ignore[attr-defined]
    score.rewardkit.close()  # type: ignore[attr-defined]


def test_a_sample_of_slimes_has_its_turns_in_its_metadata() -> None:
    rm = slime_rm([length, end], workers=1)
    sample = SimpleNamespace(
        prompt=PROMPT, response="", label=None, metadata={}, messages=[*PROMPT, *_turns("a", "cc")]
    )
    assert 2.5 == asyncio.run(rm(SimpleNamespace(), sample))
    assert ((1.0, 2.0), 1.0) == tuple(sample.metadata["rewardkit"][name] for name in ("turns", "rest"))


def test_a_trainer_of_one_number_is_told_so_once(caplog: pytest.LogCaptureFixture) -> None:
    asks = TrainerAsks("one trainer", one_number="take another")
    with caplog.at_level(logging.WARNING, "trainer_adapter"):
        for _ in range(2):
            TrainerRewards([length, end], asks=asks, workers=1)
    (record,) = caplog.records
    expected = "length: one trainer takes one number a completion, so each turn's number is lost in one; take another"
    assert expected == record.getMessage()
