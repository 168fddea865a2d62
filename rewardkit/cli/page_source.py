"""What the page of a run is made of: the run while its page is made, read once, and its figures as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rewardkit.cli.render import duration, number
from rewardkit.health.examine import Diagnosis
from rewardkit.record.overview import RewardOverview
from rewardkit.replay.recorded_run import Run

NONE = "\N{EN DASH}"  # what stands for a number that is not known


@dataclass(slots=True)
class RunReport:
    """A run while its page is made: what several sections need."""

    run: Run
    split: str
    head: Mapping[str, Any]
    rewards: Sequence[RewardOverview]
    about: Mapping[str, Any]
    diagnosis: Diagnosis | None
    left_out: list[str] = field(default_factory=list)  # what the page does not have, in words

    def limited(self, noun: str, most: int, count: int) -> str:
        """Return how much of something the page has, and note what it leaves out; ``""`` where it has all."""
        if count <= most:
            return ""
        share = f"{most:,} of {count:,}"
        self.left_out.append(f"{noun}: {share}")
        return f"The page has {share} {noun}."


def figure(value: float | None) -> str:
    return NONE if value is None else number(value)


def seconds_text(value: float | None) -> str:
    return NONE if value is None else duration(value)
