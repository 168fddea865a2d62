"""Each reward is looked at alone before the sum: what a second reward makes of a sparse one is not what is advised."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from rewardkit.health import diagnose_rows
from rewardkit.health.evidence import Evidence
from rewardkit.health.examine import table_of
from rewardkit.health.gradient import zero_variance
from rewardkit.score_batch import ScoreBatch
from rewardkit.types import Outcome, Rollout, Status

PROMPTS, EACH = 20, 4
HARD = 14  # Prompts that are never solved


def _batch(second: Callable[[int, int], float] | None, weight: float = 1.0) -> ScoreBatch:
    """Return scores of a sparse reward, 0 on hard prompts and 0 or 1 on others, perhaps beside a second reward."""
    places = [(prompt, index) for prompt in range(PROMPTS) for index in range(EACH)]
    rollouts = [Rollout(f"{prompt}?", f"text {prompt} {index}", {}) for prompt, index in places]
    scores = {"sparse": [float(prompt >= HARD and index % 2 == 0) for prompt, index in places]}
    if second is not None:
        scores["second"] = [second(prompt, index) for prompt, index in places]
    outcomes = {
        name: [Outcome(Status.SCORED, value, version="a" * 12) for value in column] for name, column in scores.items()
    }
    return ScoreBatch(rollouts, outcomes, {"sparse": 1.0, "second": weight} if second else {"sparse": 1.0})


SECONDS: dict[str, tuple[Callable[[int, int], float] | None, float]] = {
    "alone": (None, 1.0),
    "one number": (lambda prompt, index: 0.7, 1.0),
    "by prompt": (lambda prompt, index: (prompt * 7 % 10) / 10, 1.0),
    "a penalty by prompt": (lambda prompt, index: (prompt * 7 % 10) / 10, -1.0),
    "dense": (lambda prompt, index: (prompt + 3 * index) % 11 / 11, 1.0),
}


@pytest.mark.parametrize("second", SECONDS)
def test_the_sparse_reward_is_the_cause_whatever_stands_beside_it(second: str) -> None:
    """Its groups that are all worst are counted alone, and where groups are flat the advice is for it."""
    diagnosis = diagnose_rows(_batch(*SECONDS[second]))
    flags = [flag for flag in diagnosis.flags if flag.detector == "zero_variance"]
    if second != "alone":
        assert (0.7, 0.7, 0.0) == (
            pytest.approx(diagnosis.alone["sparse"].share),
            pytest.approx(diagnosis.alone["sparse"].worst),
            diagnosis.alone["sparse"].best,
        )
        assert diagnosis.gradient.startswith("sparse alone gives no gradient in 70% of groups (70% all worst), second")
        assert diagnosis.as_row()["no_gradient_alone"]["sparse"]["worst"] == pytest.approx(0.7)
    assert (second != "dense") is bool(flags)
    assert all("The prompts are too hard or the reward too strict" in flag.action for flag in flags)
    assert all(flag.action.startswith("For sparse: ") is ("by prompt" in second) for flag in flags)


ENDS: dict[str, tuple[float, tuple[float, float] | None, tuple[float, float] | None, str]] = {
    "low end": (0.0, (0.0, 1.0), (0.0, 1.0), "too hard or the reward too strict"),
    "high end": (1.0, (0.0, 1.0), (1.0, 0.0), "The prompts are too easy"),
    "low end below 0": (-1.0, (-1.0, 1.0), (0.0, 1.0), "too hard or the reward too strict"),
    "middle": (0.5, (0.0, 1.0), (0.0, 0.0), "Whole groups have one middling reward"),
    "no range": (0.0, None, None, "Declare the score_range"),
}


@pytest.mark.parametrize("case", ENDS)
def test_one_score_for_all_is_as_good_as_the_declared_range_says(case: str) -> None:
    """Where nothing varies, the ends of the range are worst and best, and without a range neither is claimed."""
    score, span, shares, advice = ENDS[case]
    batch = _batch(None)
    outcomes = {"sparse": [outcome._replace(score=score) for outcome in batch.outcomes["sparse"]]}
    constant_batch, ranges = replace(batch, outcomes=outcomes), {} if span is None else {"sparse": span}
    flag = zero_variance(Evidence(table_of(constant_batch), ranges=ranges), None)
    assert flag is not None
    if shares is None:
        assert "no score_range says whether it is the worst or the best" in flag.message
    else:
        assert f"in {shares[0]:.0%} all completions are best, in {shares[1]:.0%} all worst" in flag.message
    assert advice in flag.action
    (constant,) = diagnose_rows(constant_batch, ranges).flags
    assert ("constant", "too hard" in advice) == (constant.detector, "the worst of its score_range" in constant.words)
    assert ("too hard" in advice) is ("The prompts are too hard" in constant.action)


def test_a_reward_that_is_learned_is_told_from_one_that_is_too_hard() -> None:
    """Best and worst follow the sign of the weight: of a penalty the lowest score is the best."""
    diagnosis = diagnose_rows(_batch(lambda prompt, index: float(prompt >= HARD), weight=-1.0))
    assert (0.7, 0.3) == pytest.approx((diagnosis.alone["second"].best, diagnosis.alone["second"].worst))
