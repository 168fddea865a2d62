"""What a task's verifier says, with Harbor's names of rewards."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from rewardkit.suites.suite_verdict import SuiteResult, SuiteStatus, SuiteVerdict
from rewardkit.types import Score

_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class HarborVerdict:
    """What became of a folder that was graded as a task of Harbor.

    Attributes:
        status: As :class:`SuiteVerdict <rewardkit.SuiteVerdict>` has it; ``unsuitable`` where the task cannot be
            graded here.
        rewards: What Harbor would write to ``reward.json``: each reward by its name.
        results: Each test, or each criterion.
        suite: The verdict of the tests; ``None`` for criteria.
        digest: Of the folder that was graded.
        error: Why it could not be graded, or why all failed at once.
    """

    status: SuiteStatus
    rewards: Mapping[str, float] = field(default_factory=dict)
    results: tuple[SuiteResult, ...] = ()
    suite: SuiteVerdict | None = None
    digest: str = ""
    error: str = ""

    @property
    def passed(self) -> bool:
        return self.status is SuiteStatus.PASSED

    def score(self) -> Score:
        """Return it as a reward's score: the reward ``reward``, or the mean of all where none has this name.

        The rewards are metrics too. A task that cannot be graded here is not applicable.
        """
        if self.status is SuiteStatus.UNSUITABLE:
            return Score(None, self.error)
        if self.suite is not None:
            return self.suite.score()
        mean = math.fsum(self.rewards.values()) / len(self.rewards)
        return Score(self.rewards.get("reward", mean), self.reason(), dict(self.rewards))

    def reason(self) -> str:
        """Return in words what became of tests or criteria."""
        if self.suite is not None:
            return self.suite.reason()
        if self.error:
            return self.error
        failed = [
            f"{result.name} ({result.message})" if result.message else result.name
            for result in self.results
            if result.outcome != "passed"
        ]
        more = f" and {len(failed) - _MOST_NAMED:,} more" if len(failed) > _MOST_NAMED else ""
        failing = f"; not: {', '.join(failed[:_MOST_NAMED])}{more}" if failed else ""
        return f"{len(self.results) - len(failed)} of {len(self.results)} criteria pass{failing}"
