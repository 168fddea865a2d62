"""What the trainers' real code is asked in tests, and what must become of it: one completion in five is faulty."""

from __future__ import annotations

from itertools import cycle

SCORED, SKIPPED, FAILED, UNKNOWN = "scored", "skipped", "failed", "unknown"
FATES = {
    "4": (SCORED, 2.0), "5": (SCORED, 1.0), "skip": (SKIPPED, 0.0), "fail": (FAILED, -1.0),
    "raise": (UNKNOWN, 0.0), "nan": (UNKNOWN, 0.0), "slow": (UNKNOWN, 0.0), "crash": (UNKNOWN, 0.0),
}  # fmt: skip
"""Fate and number of each completion under the rewards ``right`` and ``brave`` of ``faulty_rewards``."""
FLAGS = {"unknown", "skipped", "failed"}
NAMES = FLAGS | {"reward/right", "reward/brave", "failed/right", "failed/brave"}
"""What adapters say beside the number."""
REWARDS = "faulty_rewards:right,faulty_rewards:brave"


def completions(count: int, costly: int = 2) -> list[str]:
    """Return completions, every fifth of which fails or is skipped; ``costly`` of them are slow, as many crash."""
    faults = ["slow", "crash"] * costly
    often = cycle(["raise", "nan", "skip", "fail"])
    texts = []
    for place in range(count):
        if place % 5 < 4:
            texts.append("4" if place % 2 else "5")
        else:
            texts.append(faults.pop() if faults and place % 7 == 0 else next(often))
    return texts


def flags(fate: str) -> dict[str, float]:
    """Return what the flags of a fate are."""
    return {name: float(name == fate) for name in FLAGS}
