"""When a failed call is tried again: the one place that decides, on tenacity's rules."""

from __future__ import annotations

import functools
import random
from typing import TYPE_CHECKING

from rewardkit.declare.options import RewardOptions
from rewardkit.types import Cause

if TYPE_CHECKING:
    from tenacity import Retrying

FIRST_WAIT_S = 0.05  # Seconds before the second attempt; doubled with each further one
LONGEST_WAIT_S = 2.0

INFRASTRUCTURE_RETRIES = 2
"""Further attempts, at least, at a call whose reward said that it could not reach what it depends on. A call whose
worker is lost is sent again by the worker pool itself, and is not tried again when that has given up."""
_random = random.SystemRandom()  # leaves the caller's seeded numbers alone, which tenacity's own jitter does not


def delay_before_next(options: RewardOptions, cause: Cause, attempts: int) -> float | None:
    """Return the seconds to wait before another attempt, or ``None`` for no further attempt.

    ``attempts`` counts those made so far, at least 1.
    """
    retries = max(options.retries, INFRASTRUCTURE_RETRIES) if cause.is_loss else options.retries
    if not cause.is_curable or retries == 0:
        return None
    from tenacity import RetryCallState

    rule = _rule(retries)
    state = RetryCallState(retry_object=rule, fn=None, args=(), kwargs={})
    state.attempt_number = attempts
    if rule.stop(state):
        return None
    return min(rule.wait(state) + _random.uniform(0, FIRST_WAIT_S), LONGEST_WAIT_S)


@functools.cache
def _rule(retries: int) -> Retrying:
    from tenacity import Retrying, stop_after_attempt, wait_exponential

    wait = wait_exponential(multiplier=FIRST_WAIT_S, max=LONGEST_WAIT_S)
    return Retrying(stop=stop_after_attempt(retries + 1), wait=wait)
