"""What the calls of a run took of servers, from its record."""

from __future__ import annotations

from typing import Any

from rewardkit.record.call_costs import Cost
from rewardkit.record.reader import RunReader
from rewardkit.record.recorder import Recorder
from rewardkit.score_batch import ScoreBatch
from rewardkit.types import Cause, Outcome, Rollout, Status

PAID = {"requests": 1.0, "prompt_tokens": 100.0, "cost_usd": 2.5e-07, "grade/a": 3.0}


def _record(path: Any) -> None:
    rollouts = [Rollout("p", str(number), {}) for number in range(5)]
    judge = [
        Outcome(Status.SCORED, 1.0, version="1" * 12, metrics=PAID),
        Outcome(Status.SCORED, 1.0, version="1" * 12, metrics={"requests": 2.0, 'x,"cost_usd":9}': 7.0}),
        Outcome(Status.FAILED, None, cause=Cause.BAD_RETURN, version="1" * 12, metrics={"requests": 1.0}),
        Outcome(Status.SCORED, 1.0, version="1" * 12, metrics=PAID, cached=True),
        Outcome(Status.SKIPPED, None, version="1" * 12),
    ]
    plain = [Outcome(Status.SCORED, 1.0, version="2" * 12, metrics={"length": 4.0})] * 5
    with Recorder(path) as recorder:
        recorder.record(ScoreBatch(rollouts, {"judge": judge, "plain": plain}, {"judge": 1.0, "plain": 1.0}), step=0)


def test_costs_are_the_sums_of_all_calls_that_the_cache_did_not_answer(place: Any) -> None:
    """Failed calls count; a sum is of some calls alone where others do not say what they took."""
    _record(place)
    with RunReader(place) as run:
        expected = {"requests": Cost(4.0, True), "prompt_tokens": Cost(100.0, False), "cost_usd": Cost(2.5e-07, False)}
        assert {"judge": expected} == run.call_costs()
        assert {} == run.call_costs("eval")
