"""What diff, rescore and export of a long run take, in one checkout or in two in turn.

    python tests/benchmarks/bench_replay.py [--rows 200000] [--rounds 5] [--before ../before] [--folder DIR]

The run has steps of 1,000 completions of 1 kB in groups of 8, scored by two rewards of weight 1 and 0.2; a second
version of the first one is scored now, or was in a pass. Each command runs in a process of its own, from its start to
its end, as a person waits for it; with ``--before`` both checkouts run in turn on copies of one record, and which comes
first alternates. Printed are medians, of the seconds on the clock and of those of all its processors, and the ratios.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from rewardkit.record.recorder import Recorder
from rewardkit.score_batch import ScoreBatch
from rewardkit.types import Outcome, Rollout, Status

STEP, GROUP, CHARS = 1000, 8, 1000
ROOT = Path(__file__).parents[2]
REWARDS = """\
from rewardkit import Score, reward


@reward
def correct(completion: str, answer: str) -> float:
    return float(completion.endswith(answer))


@reward
def strict(completion: str, answer: str) -> Score:
    return Score(float(completion.endswith(" " + answer)), "the last word")
"""
COMMANDS = {
    "diff, both versions recorded": ["diff", "RUN", "correct@1", "correct@2", "--examples", "5"],
    "diff, one scored now": ["diff", "RUN", "correct@1", "rewards.py:strict", "--examples", "5"],
    "rescore": ["rescore", "RUN", "--reward", "rewards.py:strict"],
    "export to Parquet": ["export", "RUN", "--to", "out.parquet", "--force"],
    "export to JSON Lines": ["export", "RUN", "--to", "out.jsonl", "--force"],
}


def record(path: Path, rows: int) -> None:
    """Record a run of so many completions."""
    chance = np.random.default_rng(11)
    words = ["".join(map(chr, chance.integers(97, 123, 7))) for _ in range(3000)]
    prose = " ".join(words[place] for place in chance.integers(0, len(words), 200_000))
    with Recorder(path) as recorder:
        for step in range(rows // STEP):
            rollouts = []
            for group in range(STEP // GROUP):
                example = {"answer": str(group), "level": group % 5}
                for _ in range(GROUP):
                    start = int(chance.integers(0, len(prose) - CHARS))
                    text = f"{prose[start : start + CHARS]} {chance.integers(0, 2) * group}"
                    rollouts.append(Rollout(f"prompt {group} of part {step % 20}", text, example))
            columns = {}
            for number, name in enumerate(("correct", "brief")):
                scores = chance.integers(0, 2, STEP).tolist()
                columns[name] = [
                    Outcome(Status.SCORED, float(score), "why", duration_s=1e-4, version=f"{number:012}")
                    for score in scores
                ]
            recorder.record(ScoreBatch(rollouts, columns, {"correct": 1.0, "brief": 0.2}), step=step)
            recorder.flush()


def seconds(checkout: Path, folder: Path, command: list[str]) -> tuple[float, float]:
    """Return the seconds that a command takes in a folder, run by a checkout's code: by the clock and of processors."""
    arguments = ["runs/one" if part == "RUN" else part for part in command]
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    start, used = time.perf_counter(), _processor_seconds()
    done = subprocess.run(
        [sys.executable, "-m", "rewardkit", *arguments], cwd=folder, env=environment, capture_output=True, text=True
    )
    took = time.perf_counter() - start, _processor_seconds() - used
    if done.returncode:
        raise SystemExit(f"{checkout}: {' '.join(arguments)}: {done.stderr[-2000:]}")
    return took


def _processor_seconds() -> float:
    """Return the seconds of processors that the ended children of this process have used, theirs included."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    checkouts = [*([options.before.resolve()] if options.before else []), ROOT]
    commands = {name: command for name, command in COMMANDS.items() if options.only in name}
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        origin = folder / f"origin_{options.rows}"
        if not origin.exists():
            record(origin, options.rows)
            (folder / "rewards.py").write_text(REWARDS)
            command = ["rescore", str(origin), "--reward", "rewards.py:strict", "--name", "correct"]
            seconds(checkouts[0], folder, command)
        folders = []
        for number, _ in enumerate(checkouts):
            copy = folder / f"checkout_{number}"
            shutil.rmtree(copy, ignore_errors=True)
            (copy / "runs").mkdir(parents=True)
            shutil.copytree(origin, copy / "runs" / "one")
            (copy / "rewards.py").write_text(REWARDS)
            folders.append(copy)
        times: dict[str, list[list[tuple[float, float]]]] = {name: [[] for _ in checkouts] for name in commands}
        for turn in range(options.rounds):
            order = list(enumerate(checkouts))
            for name, command in commands.items():
                for number, checkout in order if turn % 2 else order[::-1]:
                    times[name][number].append(seconds(checkout, folders[number], command))
    show(times, checkouts)


def show(times: dict[str, list[list[tuple[float, float]]]], checkouts: list[Path]) -> None:
    """Print the medians of each command."""
    table = Table("command", "seconds", *(checkout.name for checkout in checkouts), "times as fast")
    for name, columns in times.items():
        for place, kind in enumerate(("clock", "processors")):
            medians = [statistics.median(pair[place] for pair in column) for column in columns]
            ratio = f"{medians[0] / medians[-1]:.2f}" if len(medians) > 1 else ""
            table.add_row(name, kind, *(f"{median:.2f}" for median in medians), ratio)
    Console().print(table)


if __name__ == "__main__":
    main()
