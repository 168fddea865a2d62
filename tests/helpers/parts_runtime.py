"""A stand-in for a runtime that scores several callers' rows: each row's score is its completion's number."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from rewardkit import Cause, Composable, DataError, Outcome, RewardError, Rollout, ScoreBatch, Status
from rewardkit.runtime.plan import CallerRows

LOST = "the group is not whole"


class NumberedRuntime:
    """Scores a completion by its number, and a late one as lost.

    Args:
        gate: What each batch waits for; without one it is done at once.

    Attributes:
        batches: The completions of each batch, by caller.
        fails: What the next batches raise, in order; ``None`` for none.
    """

    def __init__(self, gate: asyncio.Event | None = None) -> None:
        self.weights = {"number": 1.0}
        self.batches: list[list[list[str]]] = []
        self.contexts: list[tuple[int | None, float | None]] = []
        self.fails: list[Exception | None] = []
        self.started = self.closed = self.cancelled = 0
        self._gate = gate

    @property
    def names(self) -> list[str]:
        return ["number"]

    @property
    def rewards(self) -> Mapping[str, Composable]:
        return {}

    def check(self, rollouts: Sequence[Rollout]) -> None:
        for one in rollouts:
            if not str(one.completion).isdigit():
                raise DataError(f"no number: {one.completion!r}")

    async def ascore_parts(
        self, parts: Sequence[CallerRows], *, step: int | None = None, epoch: float | None = None
    ) -> list[ScoreBatch | RewardError]:
        self.batches.append([[str(one.completion) for one in part.rollouts] for part in parts])
        self.contexts.append((step, epoch))
        try:
            await asyncio.sleep(0) if self._gate is None else await self._gate.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        fault = self.fails.pop(0) if self.fails else None
        if fault is not None:
            raise fault
        if any("unpacked" in one.example for part in parts for one in part.rollouts):
            raise DataError("row 0 cannot travel to a worker process")
        return [self._scored(part) for part in parts]

    @property
    def changeable(self) -> None:
        return None

    def wait_loaded(self) -> None:
        self.start()

    def start(self) -> object:
        self.started += 1
        return self

    def close(self) -> None:
        self.closed += 1

    def _scored(self, part: CallerRows) -> ScoreBatch:
        column = [
            Outcome(Status.SCORED, float(str(one.completion)))
            if part.late is None
            else Outcome(Status.FAILED, None, cause=Cause.INFRASTRUCTURE, error=part.late)
            for one in part.rollouts
        ]
        return ScoreBatch(part.rollouts, {"number": column}, self.weights)
