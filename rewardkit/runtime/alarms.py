"""A reward that fails too often says so, once, in the log ``rewardkit``.

Failing on most completions is normal early in a run. Failing on every call of the first batches with
one and the same error is most likely a broken reward.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from rewardkit.decorator import Reward
from rewardkit.shown import one_line
from rewardkit.types import Cause, Outcome

BROKEN_AFTER = 32
"""Calls that must all have failed with one error before a reward is called broken."""
MOSTLY_AFTER = 32
"""Calls of which more than half must have failed before that is warned of."""

_log = logging.getLogger("rewardkit")


class Alarms:
    """Counts failures over a runtime's life."""

    def __init__(self) -> None:
        self._calls: dict[str, int] = {}
        self._failed: dict[str, int] = {}
        self._errors: dict[str, set[str | None]] = {}
        self._said: set[tuple[str, str]] = set()

    def look_at(self, columns: Mapping[Reward[..., Any], Sequence[Outcome]]) -> None:
        """Count a batch's outcomes and say what is new."""
        for reward, outcomes in columns.items():
            name = reward.name
            failed = [o for o in outcomes if o.cause is not None and o.cause is not Cause.INFRASTRUCTURE]
            self._calls[name] = calls = self._calls.get(name, 0) + len(outcomes)
            self._failed[name] = failures = self._failed.get(name, 0) + len(failed)
            errors = self._errors.setdefault(name, set())
            if len(errors) < 2:
                errors.update(outcome.error for outcome in failed)
            if not failed:
                continue
            example = failed[0]
            if failures == calls >= BROKEN_AFTER and len(errors) == 1:
                self._say(
                    logging.ERROR,
                    name,
                    "broken",
                    f"all {calls} calls failed with one error; the reward is most "
                    f"likely broken, and its default {reward.options.default} stood in: {example.error}",
                )
            elif calls >= MOSTLY_AFTER and failures > calls / 2:
                self._say(
                    logging.WARNING,
                    name,
                    "mostly",
                    f"{failures} of {calls} calls failed so far, for example ({example.cause}): {example.error}",
                )

    def _say(self, level: int, name: str, what: str, words: str) -> None:
        if (name, what) not in self._said:
            self._said.add((name, what))
            _log.log(level, "reward %r: %s", name, one_line(words))  # an error may be words of the completion
