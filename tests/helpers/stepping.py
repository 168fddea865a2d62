"""A process that goes through steps at its own speed and takes changes of its rewards, without a trainer or workers."""

from __future__ import annotations

import contextlib
import json
import random
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rewardkit import reward
from rewardkit.record.changes import trainers_of
from rewardkit.record.places import place_of_record
from rewardkit.replay.reward_state import RewardState
from rewardkit.replay.updates import Updates


@reward
def first(completion: str) -> float:
    """The reward that every process begins with."""
    return 0.0


class Stand:
    """Stands in the place of a runtime: it has rewards, and takes its time to load them."""

    def __init__(self, rewards: Mapping[str, Any], slow_s: float) -> None:
        self.rewards, self._slow_s = rewards, slow_s

    def with_rewards(self, rewards: Mapping[str, Any], weights: Mapping[str, float]) -> Stand:
        """Return another of these."""
        return Stand(rewards, self._slow_s)

    def wait_loaded(self) -> None:
        """Take some time."""
        time.sleep(random.random() * self._slow_s)

    def start(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class Scoring:
    """What a process of these scores with."""

    def __init__(self, slow_s: float) -> None:
        self.runtime: Any = Stand({"first": first}, slow_s)
        self.state = RewardState({"first": first}, {"first": 1.0})

    def check(self, state: RewardState) -> None:
        """Refuse nothing."""

    def put(self, runtime: Any, state: RewardState) -> None:
        """Take other rewards."""
        self.runtime, self.state = runtime, state

    def told(self) -> list[Any]:
        """Return what tells the rewards and weights from others."""
        return sorted((name, *standing) for name, standing in self.state.standings.items())


def _wait_for_all(run: str, ranks: int) -> None:
    """Wait, for a minute at most, until every process is there: one that starts late would find the others done."""
    until = time.monotonic() + 60
    with contextlib.closing(place_of_record(run).connect_to_read()) as connection:
        while len(trainers_of(connection)) < ranks and time.monotonic() < until:
            time.sleep(0.02)


def main(run: str, folder: str, rank: int, ranks: int, steps: int, slow_s: float, begin: int = 0) -> None:
    """Go through steps, and write down what each was scored with at its beginning and at its end."""
    scoring = Scoring(slow_s)
    updates = Updates(run, scoring, rank=rank, ranks=ranks)
    updates.join(step=begin, actions=["replace", "shadow", "weight", "add", "remove"])
    own_s = slow_s * (0.5 + 0.5 * random.random())  # no process is done before any change is decided
    _wait_for_all(run, ranks)
    with (Path(folder) / f"told-{rank}.jsonl").open("a", encoding="utf-8") as file:
        for step in range(begin, steps):
            updates.begin(step)
            before = scoring.told()
            time.sleep(own_s * random.random())
            updates.begin(step)  # a second batch of the step
            print(json.dumps([step, before, scoring.told()]), file=file, flush=True)
    updates.leave()


if __name__ == "__main__":
    arguments = sys.argv[1:]
    main(*arguments[:2], *map(int, arguments[2:5]), float(arguments[5]), *map(int, arguments[6:]))
