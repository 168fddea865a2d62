"""Running cases: through the runtime, as in training, each case on its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from rewardkit.declare.compose import Composable
from rewardkit.runtime.runtime import Runtime
from rewardkit.testing.expectation import Expectation, outcome_words
from rewardkit.testing.table import Case
from rewardkit.testing.words import line, log_lines, quoted, row_lines
from rewardkit.types import Outcome


class Mismatch(NamedTuple):
    """A completion whose outcome is not as expected."""

    position: int  # in the group; 0 in a case of one completion
    expected: Expectation
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class CaseResult:
    """What became of a case.

    Attributes:
        reward: The reward's name.
        case: The case.
        outcomes: The outcome of each of its rollouts.
    """

    reward: str
    case: Case
    outcomes: tuple[Outcome, ...]

    @property
    def passed(self) -> bool:
        """Whether every outcome is as expected."""
        return next(self.differences(), None) is None

    def differences(self) -> Iterator[Mismatch]:
        """Yield the completions whose outcomes are not as expected, in order."""
        for index, (expected, outcome) in enumerate(zip(self.case.expected, self.outcomes, strict=True)):
            if not expected.holds(outcome):
                yield Mismatch(index, expected, outcome)

    def diff(self) -> str:
        """Return the report of a case that failed: its row, the expected and the actual outcome, reason and logs."""
        mismatches = {difference.position for difference in self.differences()}
        first = self.case.rollouts[0]
        lines = [f"{self.case.where}: case {self.case.id!r} of reward {self.reward!r}"]
        lines += row_lines(first.prompt, first.example)
        for index, outcome in enumerate(self.outcomes):
            label = f"completion {index}" if self.case.group else "completion"
            if self.case.group and index not in mismatches:
                preview = quoted(self.case.rollouts[index].completion, 60)
                lines.append(line(label, f"{preview}: {outcome_words(outcome)}, as expected"))
                continue
            lines.append(line(label, quoted(self.case.rollouts[index].completion)))
            lines += _comparison_lines(self.case.expected[index], outcome)
        lines += log_lines(list(dict.fromkeys(outcome.logs for outcome in self.outcomes)))
        return "\n".join(lines)


def _comparison_lines(expected: Expectation, outcome: Outcome) -> Iterator[str]:
    """Yield the lines of an outcome that is not as expected, with its reason and its traceback."""
    yield line("expected", str(expected), "-")
    yield line("got", outcome_words(outcome), "+")
    if outcome.reason is not None:
        yield line("reason", outcome.reason)
    for trace in (outcome.traceback or "").splitlines():
        yield line("", trace)


class Bench:
    """A reward ready to be tested; use it in a ``with`` statement, or call :meth:`close`.

    Args:
        reward: The reward or composition.
        lane: ``"inline"`` or ``"worker"``, as :class:`~rewardkit.Runtime` has them.
    """

    def __init__(self, reward: Composable, lane: str) -> None:
        # calls lost to infrastructure are outcomes here, because a case may expect them
        self._runtime = Runtime([reward], workers=1, lane=lane, max_infrastructure_rate=1.0)
        self.reward = self._runtime.names[0]

    def run(self, case: Case) -> CaseResult:
        """Score a case alone and return what became of it."""
        batch = self._runtime.score(case.rollouts, step=case.step, epoch=case.epoch)
        return CaseResult(self.reward, case, tuple(batch[self.reward]))

    def close(self) -> None:
        """End the worker, if there is one."""
        self._runtime.close()

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
