"""A run of everything that a breakdown has to tell apart, on a file and on a server, and its export as plain rows."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from databases import STORES, place_on

from rewardkit.record.export import export_columns, export_rows
from rewardkit.record.reader import RunReader
from rewardkit.record.recorder import Recorder
from rewardkit.score_batch import ScoreBatch
from rewardkit.types import Cause, Outcome, Rollout, Status

WEIGHTS = {"correct": 10.0, "style": 0.05, "length": -2.0, "watch": 0.0}
SIZE = 4
"""Completions of a group."""


class Recorded(NamedTuple):
    """A run with its export: one row a completion, whose columns of the data are JSON where their types differ."""

    reader: RunReader
    rows: list[dict[str, Any]]


def outcome(rng: random.Random, name: str, version: int) -> Outcome:
    """Return an outcome of any of the three kinds; a default stands in for most failures."""
    digits = f"{version:06}{name:.>6}"[-12:]
    kind = rng.random()
    if kind < 0.1 and name != "watch":
        default = rng.choice([None, 0.0, 0.9])
        return Outcome(Status.FAILED, default, cause=Cause.TIMEOUT, error="late", version=digits)
    if kind < 0.2:
        return Outcome(Status.SKIPPED, None, version=digits)
    return Outcome(Status.SCORED, rng.choice([0.0, 0.0, 0.25, 1.0, 1.0]), version=digits)


def batch(rng: random.Random, rows: list[tuple[Any, dict[str, Any]]], version: int = 1) -> ScoreBatch:
    """Return a batch of one group for each of the rows."""
    rollouts = [Rollout(prompt, f"a text of {place}", row) for prompt, row in rows for place in range(SIZE)]
    outcomes = {name: [outcome(rng, name, version) for _ in rollouts] for name in WEIGHTS}
    return ScoreBatch(rollouts, outcomes, WEIGHTS)


def data() -> list[tuple[str, dict[str, Any]]]:
    """Return rows of prompts: equal texts in different rows, missing values, numbers, lists."""
    rows: list[tuple[str, dict[str, Any]]] = []
    for number in range(40):
        row: dict[str, Any] = {"level": ["easy", "hard", None][number % 3], "difficulty": number / 7, "mixed": "3"}
        if number % 4:
            row["tags"] = [number % 2, "a"]
        if number % 2:
            row["mixed"] = [3, 3.0, True, "true"][number // 2 % 4]
        rows.append((f"what is {number // 2}?", row | {"number": number}))
    return rows


@pytest.fixture(params=STORES)
def place(request: pytest.FixtureRequest, tmp_path: Any) -> Any:
    """Give the place of a run."""
    return place_on(request.param, request, tmp_path)


@pytest.fixture(params=STORES, scope="module")
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    """Give a run of twelve steps by two processes, in which each prompt is met several times and a version changes."""
    place = place_on(request.param, request, tmp_path_factory.mktemp("breakdown"))
    rng, rows = random.Random(7), data()
    with Recorder(place) as one, Recorder(place, rank=1) as two:
        for step in range(12):
            chosen = rng.sample(rows, 8)
            version = 1 if step < 7 else 2
            for number, recorder in enumerate((one, two)):
                part = chosen[4 * number : 4 * number + 4]
                recorder.record(
                    batch(rng, part, version), step=step, epoch=step / 4, num_generations=SIZE, before=16 * number
                )
                recorder.flush()
        one.record(batch(rng, rows[:3]), step=12, split="eval", num_generations=SIZE)
    with RunReader(place) as reader:
        columns = export_columns(reader)
        yield Recorded(reader, list(export_rows(reader, columns, reader.last_id)))
