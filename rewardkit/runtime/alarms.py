"""Warnings of a reward that fails too often, each given once, in the log ``rewardkit``.

Failing on most completions is normal early in a run. Failing on every call of the first batches with one and the same
error most likely means a broken reward.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rewardkit.declare.decorator import Reward
from rewardkit.shown.text import shortened
from rewardkit.types import Outcome

ENOUGH_CALLS = 32
"""Calls before a reward is called broken (all failed with one error) or is warned of (more than half failed)."""

_log = logging.getLogger("rewardkit")


@dataclass(slots=True)
class _Count:
    """What a reward's calls came to so far."""

    calls: int = 0
    failed: int = 0
    errors: set[str | None] = field(default_factory=set)  # two are enough
    warned_levels: set[int] = field(default_factory=set)


class Alarms:
    """Counts failures over a runtime's life."""

    def __init__(self) -> None:
        self._counts: defaultdict[str, _Count] = defaultdict(_Count)

    def look_at(self, columns: Mapping[Reward[..., Any], Sequence[Outcome]]) -> None:
        """Count a batch's outcomes and warn of what is new."""
        for reward, outcomes in columns.items():
            failed = [o for o in outcomes if o.cause is not None and not o.is_lost]
            count = self._counts[reward.name]
            count.calls += len(outcomes)
            count.failed += len(failed)
            if len(count.errors) < 2:
                count.errors.update(outcome.error for outcome in failed)
            if failed and count.calls >= ENOUGH_CALLS:
                self._warn(reward, count, failed[0])

    def _warn(self, reward: Reward[..., Any], count: _Count, example: Outcome) -> None:
        if count.failed == count.calls and len(count.errors) == 1:
            level = logging.ERROR
            message = f"all {count.calls} calls failed with one error; the reward is most likely broken, "
            message += f"and its default {reward.options.default} stood in: {example.error}"
        elif count.failed > count.calls / 2:
            level, often = logging.WARNING, f"{count.failed} of {count.calls} calls failed so far"
            message = f"{often}, for example ({example.cause}): {example.error}"
        else:
            return
        if level not in count.warned_levels:
            count.warned_levels.add(level)
            _log.log(level, "reward %r: %s", reward.name, shortened(message))  # an error may quote the completion
