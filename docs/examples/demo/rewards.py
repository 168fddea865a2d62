"""The demo's three rewards: two that teach, and one that misbehaves."""

from __future__ import annotations

import os
import random
import re
import time

from rewardkit import reward

ANSWER = re.compile(r" ?([0-9]{1,2})")


@reward(score_range=(0, 1))
def format_ok(completion: str) -> float:
    """1 where the completion is a number of one or two digits and then ends."""
    return float(ANSWER.fullmatch(completion) is not None)


@reward(score_range=(0, 1))
def correct(completion: str, answer: int) -> float:
    """1 where that number is the sum. The column holds text, and the annotation makes it a number."""
    found = ANSWER.fullmatch(completion)
    return float(found is not None and int(found[1]) == answer)


@reward(timeout_s=1.0, default=0.0)
def troublesome(completion: str) -> float:
    """A slow reward with bugs, like an early draft or an overloaded service: it raises, hangs and crashes."""
    time.sleep(random.uniform(0.02, 0.06))
    luck = random.random()
    if luck < 0.002:
        os._exit(1)
    if luck < 0.005:
        time.sleep(3600)
    if luck < 0.05:
        raise ValueError(f"cannot make sense of {completion[:20]!r}")
    return float(len(completion) < 40)
