"""What a change costs: two checkouts measured in turn, and the ratio of the second to the first.

    git worktree add ../before HEAD~20
    python tests/benchmarks/compare.py ../before . [--rounds 7] [--only runtime,sandbox,import,store,record]

Each round measures both, each in a process of its own, and which of them comes first alternates. The measuring is this
checkout's for both; what is measured is what each imports. A change is told as real where it has the same sign in
nearly every round and is larger than the rounds differ among themselves. A part that one of the two cannot measure,
because it lacks what the benchmark imports or asks for, is named with the reason; the other parts are compared.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

Figures = dict[str, float]
HIGHER_IS_BETTER = ("calls/s", "rows/s", "throughput", "against the jail", "a check by itself")
NOISE = 0.03
"""Below this share, a difference is none."""
SURE_SHARE = 0.8
"""Share of the rounds that must agree on the sign of a difference."""
FEWEST_ROUNDS = 5
"""Rounds without which nothing is told as a difference."""
LATE_S = 600.0


class Change(NamedTuple):
    """How a figure differs between the two.

    Attributes:
        before: Its median in the first.
        after: Its median in the second.
        ratio: Median of the rounds' ratios, the second's to the first's.
        low: The lower quartile of these.
        high: The upper quartile.
        real: Whether it is more than noise.
    """

    before: float
    after: float
    ratio: float
    low: float
    high: float
    real: bool


class UnmeasuredError(Exception):
    """A part cannot be measured on a checkout; says which, and why."""


def runtime_figures() -> Figures:
    """Measure trivial calls beside pebble's, and on an event loop."""
    import bench_runtime

    calls = 10_000
    seconds = bench_runtime.throughput_seconds(calls, 3)
    ours, theirs = (statistics.median(seconds[name]) for name in ("rewardkit", "pebble"))
    loop = statistics.median(bench_runtime.loop_seconds(calls // 4, 3))
    return {
        "rewardkit, calls/s": calls / ours,
        "throughput against pebble": theirs / ours,
        "event loop, calls/s": calls // 4 / loop,
    }


def sandbox_figures() -> Figures:
    """Measure the jail beside other ways of running code."""
    import bench_sandbox

    seconds, late = bench_sandbox.measure(60, "strict")
    figures = {name: ratio for name, (ratio, _) in bench_sandbox.ratios(seconds).items()}
    jail_ms = 1000 * statistics.median(seconds["jail"])
    return {"jail, ms": jail_ms, **figures, "overrun of a deadline, ms": 1000 * late}


def import_figures() -> Figures:
    """Measure how long the import takes."""
    import bench_runtime

    bench_runtime.import_s()
    return {"import rewardkit, ms": 1000 * statistics.median(bench_runtime.import_s() for _ in range(7))}


def store_figures() -> Figures:
    """Measure a judge's budget and its cache."""
    import bench_judge_store

    return bench_judge_store.store_figures(0.3)


def record_figures() -> Figures:
    """Measure how many completions of 2 kB, with four scores and reasons each, are recorded in a second."""
    from rewardkit import Outcome, Recorder, Rollout, ScoreBatch, Status

    rng, rows, steps = random.Random(0), 1000, 10
    batches = []
    for step in range(steps):
        texts = ["".join(rng.choices("abcdefghij \n", k=2000)) for _ in range(rows)]
        rollouts = [Rollout(f"prompt {row // 8} {step}", text, {"answer": str(row)}) for row, text in enumerate(texts)]
        column = [Outcome(Status.SCORED, rng.random(), "a reason", version="a" * 12) for _ in rollouts]
        names = ("correct", "format", "length", "rare")
        batches.append(ScoreBatch(rollouts, dict.fromkeys(names, column), dict.fromkeys(names, 1.0)))

    def seconds() -> float:
        with tempfile.TemporaryDirectory() as folder:
            began = time.perf_counter()
            with Recorder(Path(folder) / "run") as recorder:
                for step, batch in enumerate(batches):
                    recorder.record(batch, step=step)
            return time.perf_counter() - began

    seconds()  # what is imported late is imported now
    return {"record, rows/s": rows * steps / statistics.median(seconds() for _ in range(3))}


PARTS: dict[str, Callable[[], Figures]] = {
    "runtime": runtime_figures,
    "sandbox": sandbox_figures,
    "import": import_figures,
    "store": store_figures,
    "record": record_figures,
}


def measured(checkout: Path, part: str) -> Figures:
    """Return a part's figures as another process measures them on what a checkout holds.

    Raises:
        UnmeasuredError: That process failed or took too long.
    """
    here = Path(__file__).resolve()
    path = os.pathsep.join([str(checkout.resolve()), str(here.parent)])
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run(
                [sys.executable, str(here), "--measure", part, "--of", str(checkout.resolve())],
                env={**os.environ, "PYTHONPATH": path},
                cwd=folder,
                capture_output=True,
                text=True,
                check=True,
                timeout=LATE_S,
            )
        except subprocess.CalledProcessError as failed:
            why = (failed.stderr.strip().splitlines() or [f"exit code {failed.returncode}"])[-1]
            raise UnmeasuredError(f"{part} cannot be measured in {checkout}: {why}") from None
        except subprocess.TimeoutExpired:
            raise UnmeasuredError(f"{part} cannot be measured in {checkout}: no end within {LATE_S:g} s") from None
    figures: Figures = json.loads(done.stdout.splitlines()[-1])
    return figures


def _measure(part: str, checkout: str) -> None:
    """Measure here, and print the figures."""
    import rewardkit

    if not Path(rewardkit.__file__).is_relative_to(checkout):
        sys.exit(f"rewardkit was imported from {rewardkit.__file__}, which is not in {checkout}")
    print(json.dumps(PARTS[part]()))


def change(before: Sequence[float], after: Sequence[float]) -> Change:
    """Return how a figure differs, from its values in each round."""
    shares = [new / old for old, new in zip(before, after, strict=True)]
    ratio = statistics.median(shares)
    low, _, high = statistics.quantiles(shares, n=4, method="inclusive") if len(shares) > 1 else (ratio,) * 3
    agree = max(sum(share > 1 for share in shares), sum(share < 1 for share in shares)) / len(shares)
    real = len(shares) >= FEWEST_ROUNDS and abs(ratio - 1) > NOISE and agree >= SURE_SHARE and not low <= 1 <= high
    return Change(statistics.median(before), statistics.median(after), ratio, low, high, real)


def verdict(name: str, one: Change) -> str:
    """Return a word for a change."""
    if not one.real:
        return "same"
    higher = any(words in name for words in HIGHER_IS_BETTER)
    return "better" if (one.ratio > 1) is higher else "WORSE"


class Comparison(NamedTuple):
    """What became of comparing two checkouts.

    Attributes:
        changes: The change of each figure.
        unmeasured: Why parts could not be measured in one of the two.
    """

    changes: dict[str, Change]
    unmeasured: list[str]


def compare(checkouts: Sequence[Path], parts: Sequence[str], rounds: int) -> Comparison:
    """Measure both checkouts in turn and return each figure's change; leave out parts that one cannot measure."""
    figures: list[dict[str, list[float]]] = [{}, {}]
    left, unmeasured = list(parts), []
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("measuring", total=rounds * len(parts))
        for number in range(rounds):
            for part in list(left):
                try:
                    both = {
                        which: measured(checkouts[which], part) for which in ((0, 1) if number % 2 == 0 else (1, 0))
                    }
                except UnmeasuredError as why:
                    left.remove(part)
                    unmeasured.append(str(why))
                    continue
                for which, found in both.items():
                    for name, value in found.items():
                        figures[which].setdefault(name, []).append(value)
                progress.advance(task)
    shared = [name for name in figures[0] if len(figures[0][name]) == len(figures[1].get(name, []))]
    return Comparison({name: change(figures[0][name], figures[1][name]) for name in shared}, unmeasured)


def main() -> int:
    """Print a table of both; the exit code is 1 where something is worse or nothing could be measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, nargs="?", help="folder of the checkout that is compared with")
    parser.add_argument("after", type=Path, nargs="?", default=Path(), help="folder of the other (default: here)")
    parser.add_argument("--rounds", type=int, default=7, help="times that each is measured (default: 7)")
    parser.add_argument("--only", default=",".join(PARTS), help="comma-separated parts (default: %(default)s)")
    parser.add_argument("--measure", choices=PARTS, help=argparse.SUPPRESS)
    parser.add_argument("--of", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        _measure(options.measure, options.of)
        return 0
    if options.before is None:
        parser.error("name the checkout to compare with")
    changes, unmeasured = compare((options.before, options.after), options.only.split(","), options.rounds)
    table = Table(
        title=f"{options.before} and {options.after}, {options.rounds} rounds in turn, {os.cpu_count()} cores"
    )
    for column in ("what", "before", "after", "ratio", "quartiles", ""):
        table.add_column(column, justify="left" if column == "what" else "right")
    for name, one in changes.items():
        quartiles = f"{one.low:.2f} to {one.high:.2f}"
        numbers = (f"{one.before:,.4g}", f"{one.after:,.4g}", f"{one.ratio:.2f}x", quartiles)
        table.add_row(name, *numbers, verdict(name, one))
    if changes:
        Console(width=120).print(table)
    for why in unmeasured:
        print(f"not compared: {why}")
    return int(not changes or any(verdict(name, one) == "WORSE" for name, one in changes.items()))


if __name__ == "__main__":
    sys.exit(main())
