"""What a run's record costs: rows a second beside bare inserts, pages, curves, bytes, memory, growth.

    python tests/benchmarks/bench_record.py [--rows 50000] [--full] [--folder DIR]

A step is 1,000 completions of 2 kB with four rewards, in groups of 8 of 2,500 prompts; ``--full`` writes 1,000 steps.
The bare side is ``sqlite3`` alone with the same pragmas: zlib at level 1 and one insert of the blob a completion, in
one transaction a step, all in one thread. Both sides write the same texts in turns of ten steps; the ratio is that of
the medians of their turns. A turn of the record ends when all that was handed over is in the file.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import sqlite3
import statistics
import tempfile
import time
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from rich.console import Console
from rich.table import Table

from rewardkit.record.reader import RunReader
from rewardkit.record.recorder import Recorder
from rewardkit.record.sqlite_file import CHECKPOINT_PAGES
from rewardkit.score_batch import ScoreBatch
from rewardkit.types import Outcome, Rollout, Status

STEP, GROUP, PROMPTS, TURN, SIZE = 1000, 8, 2500, 10, 2000
REWARDS = ("correct", "format", "length", "rare")
PAGES = 40
"""Pages of each kind that are asked for."""


class Source:
    """Steps of completions that differ and compress as prose does, about twice; ``rare`` pays 1 in 20,000."""

    def __init__(self, seed: int = 14) -> None:
        self._random = random.Random(seed)
        words = ["".join(self._random.choices("etaoinshrdlucmfw", k=self._random.randint(2, 9))) for _ in range(4000)]
        self._prose = [" ".join(self._random.choices(words, k=4000)) for _ in range(50)]
        self._prompts = [(f"{number} {self._cut(300)}", {"answer": str(number)}) for number in range(PROMPTS)]

    def _cut(self, size: int) -> str:
        start = self._random.randrange(10000)
        return self._random.choice(self._prose)[start : start + size]

    def step(self, number: int) -> ScoreBatch:
        """Return one step."""
        rollouts = []
        for group in range(STEP // GROUP):
            prompt, example = self._prompts[(number * (STEP // GROUP) + group) % PROMPTS]
            for _ in range(GROUP):
                text = f"{self._cut(SIZE // 2)} {self._random.random()} {self._cut(SIZE // 2)}"[:SIZE]
                rollouts.append(Rollout(prompt, text, example))
        draws = np.random.default_rng(number).random((len(REWARDS), STEP))
        draws[-1] = draws[-1] < 1 / 20000
        outcomes = {
            name: [Outcome(Status.SCORED, score, duration_s=0.001, version=f"{place:012}") for score in column]
            for place, (name, column) in enumerate(zip(REWARDS, draws.round(3).tolist(), strict=True))
        }
        return ScoreBatch(rollouts, outcomes, dict.fromkeys(REWARDS, 1.0))


class Bare:
    """The same texts, by ``sqlite3`` alone."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "cache_size = -65536"):
            self._connection.execute(f"PRAGMA {pragma}")
        self._connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        self._connection.execute("CREATE TABLE text (id INTEGER PRIMARY KEY, body BLOB)")

    def write(self, batch: ScoreBatch) -> None:
        """Write a step's completions in one transaction."""
        bodies = [(zlib.compress(str(one.completion).encode(), 1),) for one in batch.rollouts]
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany("INSERT INTO text (body) VALUES (?)", bodies)
        self._connection.execute("COMMIT")

    def close(self) -> None:
        """Bring all that was written into the file."""
        self._connection.close()


def timed(act: Callable[[], object]) -> float:
    """Return the seconds that something takes."""
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def written(folder: Path, steps: int, told: Callable[[int, dict[str, float]], None]) -> dict[str, float]:
    """Write a run and its bare twin in turns, and return the figures; ``told`` is called at 10k, 100k and 1M rows."""
    source, bare, process = Source(), Bare(folder / "bare.db"), psutil.Process()
    record_s: list[float] = []
    bare_s: list[float] = []
    caller = total = 0.0
    most = process.memory_info().rss
    with Recorder(folder / "run") as one:
        one.flush()
        first = process.memory_info().rss
        for start in range(0, steps, TURN):
            batches = [source.step(number) for number in range(start, min(start + TURN, steps))]

            def turn(batches: Sequence[ScoreBatch] = batches, start: int = start) -> None:
                nonlocal caller
                began = time.thread_time()
                for place, batch in enumerate(batches):
                    one.record(batch, step=start + place, epoch=(start + place) / 20)
                caller += time.thread_time() - began
                if not one.flush(600):
                    raise SystemExit("something was not written")

            def twin(batches: Sequence[ScoreBatch] = batches) -> None:
                for batch in batches:
                    bare.write(batch)

            acts: list[tuple[Callable[[], None], list[float]]] = [(turn, record_s), (twin, bare_s)]
            for act, times in acts if start // TURN % 2 else acts[::-1]:
                cpu = sum(process.cpu_times()[:2])
                times.append(timed(act) / len(batches))
                total += (sum(process.cpu_times()[:2]) - cpu) if act is turn else 0.0
            most = max(most, process.memory_info().rss)
            rows = (start + len(batches)) * STEP
            if rows in (10_000, 100_000, 1_000_000):
                recent = record_s[-max(1, len(record_s) // 10) :]
                told(rows, {"ms a step": 1000 * statistics.median(recent)})
    bare.close()
    thousands = steps * STEP / 1000
    return {
        "record, rows/s": STEP / statistics.median(record_s),
        "bare sqlite3, rows/s": STEP / statistics.median(bare_s),
        "ratio (aim: 0.6 or more)": statistics.median(bare_s) / statistics.median(record_s),
        "CPU ms / 1,000 rows, caller": 1000 * caller / thousands,
        "CPU ms / 1,000 rows, all threads": 1000 * total / thousands,
        "bytes a completion": (folder / "run" / "record.db").stat().st_size / (steps * STEP),
        "bytes a completion, bare": (folder / "bare.db").stat().st_size / (steps * STEP),
        "memory before, MB": first / 1e6,
        "memory at most, MB": most / 1e6,
    }


def read(run: Path, pages: int = PAGES) -> dict[str, float]:
    """Return the milliseconds of pages and curves: p95 over pages of each kind."""
    draw = random.Random(1)
    with RunReader(run) as found:
        steps = found.steps()
        count = found.count()

        def page(**search: Any) -> None:
            list(found.completions(**search, limit=50))

        kinds: dict[str, Callable[[], None]] = {
            "first page": page,
            "of a step": lambda: page(step=draw.choice(steps)),
            "of a prompt": lambda: page(prompt=draw.randrange(min(PROMPTS, count // GROUP))),
            "of a prompt, deep": lambda: page(prompt=draw.randrange(min(PROMPTS, count // GROUP)), after=count // 2),
            "after a place in the run": lambda: page(after=draw.randrange(count)),
            "correct >= 0.99": lambda: page(reward="correct", min_score=0.99, after=draw.randrange(count)),
            "rare >= 1": lambda: page(reward="rare", min_score=1.0, after=draw.randrange(count)),
            "rare >= 1, from the start": lambda: page(reward="rare", min_score=1.0),
            "total >= 3.2": lambda: page(min_score=3.2, after=draw.randrange(count)),
            "in a step, correct >= 0.5": lambda: page(step=draw.choice(steps), reward="correct", min_score=0.5),
        }
        p95 = {
            f"page of 50, {kind}: p95 ms": 1000 * float(np.quantile([timed(act) for _ in range(pages)], 0.95))
            for kind, act in kinds.items()
        }
        series = [timed(lambda: found.series("correct")) for _ in range(pages)]
        sums = [timed(lambda: found.summaries("correct")) for _ in range(5)]
    return {
        **p95,
        "a series, p95 ms (aim: 5)": 1000 * float(np.quantile(series, 0.95)),
        "sums of a reward, ms": 1000 * statistics.median(sums),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=50_000, help="completions that are written")
    parser.add_argument("--full", action="store_true", help="1,000,000 of them")
    parser.add_argument("--folder", type=Path, help="where, instead of a temporary folder")
    given = parser.parse_args()
    steps = max(1, (1_000_000 if given.full else given.rows) // STEP)
    console = Console()
    growth = Table("rows", "what", "figure", title="growth")

    with contextlib.ExitStack() as stack:
        folder = given.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)

        def told(rows: int, figures: dict[str, float]) -> None:
            for name, value in (figures | read(folder / "run", 10)).items():
                growth.add_row(f"{rows:,}", name, f"{value:,.2f}")
            console.print(f"{rows:,} rows: {figures}")

        figures = written(folder, steps, told) | read(folder / "run")
    table = Table("what", f"{steps * STEP:,} rows, {os.cpu_count()} cores")
    for name, value in figures.items():
        table.add_row(name, f"{value:,.2f}")
    console.print(growth)
    console.print(table)


if __name__ == "__main__":
    main()
