"""Each reward is looked at alone before the sum: what a second reward makes of a sparse one is not what is advised."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rewardkit import Composable, Composite, Reward, gate, product, reward, scheduled
from rewardkit.health import diagnose_rows
from rewardkit.health.evidence import Evidence
from rewardkit.health.examine import table_of
from rewardkit.health.gradient import zero_variance
from rewardkit.health.score_ranges import declared_ranges, ranges_of
from rewardkit.record.reader import RunReader
from rewardkit.record.recorder import Recorder
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
    "no range": (0.0, None, None, "Declare the score_range of sparse, and score completions that must be right"),
}


@pytest.mark.parametrize("case", ENDS)
def test_one_score_for_all_is_as_good_as_the_declared_range_says(case: str) -> None:
    """Where nothing varies, the ends of the range are worst and best, and without a range neither is claimed."""
    score, span, shares, advice = ENDS[case]
    batch = _batch(None)
    outcomes = {"sparse": [outcome._replace(score=score) for outcome in batch.outcomes["sparse"]]}
    constant_batch, ranges = replace(batch, outcomes=outcomes), {} if span is None else {"sparse": span}
    undeclared = {"sparse": ("sparse",)} if span is None else {}
    flag = zero_variance(Evidence(table_of(constant_batch), ranges=ranges, undeclared=undeclared), None)
    assert flag is not None
    if shares is None:
        assert "whether it is the worst or the best is not known: sparse declares no score_range" in flag.message
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


def _declared(name: str, score_range: tuple[float, float] | None) -> Reward[..., Any]:
    return reward(name=name, score_range=score_range)(lambda completion: 0.0)


RIGHT, NEAR = _declared("right", (0, 1)), _declared("near", (0, 1))
BRIEF, LONG = _declared("brief", None), _declared("long", None)
_WORST, _BEST = "in 0% all completions are best, in 100% all worst", "in 100% all completions are best, in 0% all worst"
_HARD, _EASY = "The prompts are too hard", "The prompts are too easy"
_SCORE = "core completions that must be right and some that must be wrong"

COMPOSED: dict[str, tuple[Composable, float, str, str]] = {
    "a sum that is all worst": (0.8 * RIGHT + 0.2 * NEAR, 0.0, _WORST, _HARD),
    "a sum that is all best": (0.8 * RIGHT + 0.2 * NEAR, 1.0, _BEST, _EASY),
    "a penalty that is all best": (RIGHT - 0.5 * NEAR, 1.0, _BEST, _EASY),
    "a penalty that is all worst": (RIGHT - 0.5 * NEAR, -0.5, _WORST, _HARD),
    "a gate that is all worst": (gate(RIGHT, NEAR), 0.0, _WORST, _HARD),
    "a product that is all best": (product(RIGHT, NEAR), 1.0, _BEST, _EASY),
    "a sum between": (0.8 * RIGHT + 0.2 * NEAR, 0.2, "in 0% all completions are best, in 0% all worst", "middling"),
    "a part without a range": (
        gate(RIGHT, BRIEF), 0.0, "is not known: brief declares no score_range",
        f"Declare the score_range of brief, and s{_SCORE}",
    ),
    "two parts without a range": (
        RIGHT + BRIEF - LONG, 0.0, "is not known: brief and long declare no score_range",
        f"Declare the score_range of brief and of long, and s{_SCORE}",
    ),
    "a weight that moves": (
        scheduled(RIGHT, lambda step: 1.0), 0.0, "is not known: the ranges of its parts do not bound whole",
        f"Bound whole by clip(whole, lowest, highest), and s{_SCORE}",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", COMPOSED)
@pytest.mark.parametrize("kind", ["rows", "a run"])
def test_a_composition_is_as_good_as_its_parts_ranges_say(case: str, kind: str, tmp_path: Path) -> None:
    """Of rows and of a recorded run; where a part has no range it is named, and where none is at fault a clip is."""
    composed, score, message, advice = COMPOSED[case]
    whole = composed.named("whole") if isinstance(composed, Composite) else composed
    batch = _batch(None)
    column = [outcome._replace(score=score, version=whole.version) for outcome in batch.outcomes["sparse"]]
    flat = ScoreBatch(batch.rollouts, {"whole": column}, {"whole": 1.0})
    if kind == "rows":
        evidence = Evidence(table_of(flat), **declared_ranges({"whole": whole})._asdict())
    else:
        with Recorder(tmp_path / "one") as recorder:
            recorder.record(flat, step=0, rewards={"whole": whole})
        with RunReader(tmp_path / "one") as run:
            evidence = Evidence(run.table(), **ranges_of(run)._asdict())
    flag = zero_variance(evidence, None)
    assert flag is not None
    assert (message in flag.message, advice in flag.action) == (True, True), (flag.message, flag.action)


def test_where_nothing_is_recorded_of_a_reward_no_declaration_is_asked_for(tmp_path: Path) -> None:
    """A record without the rewards' settings, and rows that were scored before: what must be right is scored."""
    batch = _batch(None)
    flat = replace(batch, outcomes={"sparse": [outcome._replace(score=0.0) for outcome in batch.outcomes["sparse"]]})
    with Recorder(tmp_path / "one") as recorder:
        recorder.record(flat, step=0)
    with RunReader(tmp_path / "one") as run:
        flag = zero_variance(Evidence(run.table(), **ranges_of(run)._asdict()), None)
    assert flag is not None
    assert flag.message.endswith("whether it is the worst or the best is not known")
    assert flag.action.startswith(f"S{_SCORE}")
