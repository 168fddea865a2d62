"""Runs of a program of Python on several inputs: which of them share a process, and what shows how each ended.

Only the wait status of a process shows how a run ended, the last one. What is said of the runs before it stands in what
the process itself wrote, so it counts only where the process ended by itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sandbox.evaluation import Evaluation
from sandbox.jail.levels import Level
from sandbox.limits import Limits
from sandbox.results import ExecutionResult, ExecutionStatus
from sandbox.shared_time import SharedTime

PROOF_S = 0.5  # seconds beyond the time of an evaluation in which runs may be run again to show that they end


class InputRuns:
    """Runs of one program.

    Args:
        evaluate: Evaluates a request within limits.
        request: The program, without its inputs.
        level: The level of isolation.
    """

    def __init__(
        self, evaluate: Callable[[dict[str, Any], Limits], Evaluation], request: Mapping[str, Any], level: Level
    ) -> None:
        self._evaluate = evaluate
        self._request = request
        self._level = level

    def run(self, inputs: Sequence[str], limits: Limits) -> list[ExecutionResult]:
        """Run the program once for each input, all of them in the time of ``limits``."""
        results: list[ExecutionResult] = []
        deadline = time.monotonic() + limits.timeout_s
        while len(results) < len(inputs):
            rest = limits if not results else limits.until(deadline)
            batch, ended_itself = self._run_together(inputs[len(results) :], rest)
            if not ended_itself and len(batch) > 1:
                batch = self._run_again(inputs[len(results) :][: len(batch) - 1], batch[-1], limits, deadline)
            results += batch
            if results[-1].status in (ExecutionStatus.TIMEOUT, ExecutionStatus.INFRASTRUCTURE):
                results += [results[-1]] * (len(inputs) - len(results))
        return results

    def run_each(self, inputs: Sequence[str], limits: Limits, run_timeout_s: float) -> list[ExecutionResult]:
        """Run the program once for each input, each run in ``run_timeout_s``, all of them in the time of ``limits``.

        Runs share a process only while all of them together are done in the time of one. Where a process did not end by
        itself, the runs before its last one have processes of their own, and the last one is the first of the next
        process. So a run is late only if it alone had all of its time.
        """
        shared = SharedTime(limits, run_timeout_s)
        results: list[ExecutionResult] = []
        while len(results) < len(inputs):
            rest = inputs[len(results) :]
            batch, ended_itself = self._run_together(rest, shared.next_limits())
            if ended_itself or len(batch) == 1:
                shared.charge(batch[-1])
                results += batch
            else:
                results += self._run_apart(rest[: len(batch) - 1], shared)
            if shared.ends_with(results[-1]):
                results += [results[-1]] * (len(inputs) - len(results))
        return results

    def _run_apart(self, inputs: Sequence[str], shared: SharedTime) -> list[ExecutionResult]:
        """Run each input in a process of its own, until no time is left."""
        results: list[ExecutionResult] = []
        for text in inputs:
            batch, _ = self._run_together([text], shared.next_limits())
            shared.charge(batch[0])
            results += batch
            if shared.ends_with(batch[0]):
                break
        return results

    def _run_together(self, inputs: Sequence[str], limits: Limits) -> tuple[list[ExecutionResult], bool]:
        """Run the first of some inputs in one process; return their results, and whether the process ended itself."""
        together = list(inputs[: _count_together(inputs[1:], limits)])
        evaluation = self._evaluate({**self._request, "inputs": together}, limits)
        return evaluation.results(len(together), self._level), evaluation.ended_itself

    def _run_again(
        self, inputs: Sequence[str], last: ExecutionResult, limits: Limits, deadline: float
    ) -> list[ExecutionResult]:
        """Run the inputs before the last again, as a signal ended their process, and return the results of all.

        Where a signal ends that process too, nothing shows which input is to blame: all get the last one's result.
        """
        results: list[ExecutionResult] = []
        deadline = max(deadline, time.monotonic() + PROOF_S)
        while last.status is not ExecutionStatus.INFRASTRUCTURE and len(results) < len(inputs):
            batch, ended_itself = self._run_together(inputs[len(results) :], limits.until(deadline))
            if not ended_itself:
                return [last] * (len(inputs) + 1)
            results += batch
        return [*results, last]


def _count_together(following: Sequence[str], limits: Limits) -> int:
    """Return how many inputs one process can read: it writes each but the first to a file whose size is bounded."""
    most = max(limits.output_bytes, limits.file_bytes)
    for number, text in enumerate(following):
        if len(text) > most // 4 and len(text.encode("utf-8", "surrogatepass")) > most:
            return number + 1
    return len(following) + 1
