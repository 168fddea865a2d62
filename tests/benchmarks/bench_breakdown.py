"""What groups, histograms and pass rates of a long run take: the first answer, which reads the scores, and the next.

    python tests/benchmarks/bench_breakdown.py [--completions 200000] [--prompts 4000] [--times 5]

The run has 1,024 completions a step in groups of eight, four rewards, and four columns of the data. Each time is the
median of so many, by the clock and in processor time, on a machine that should do nothing else.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from rewardkit.breakdown.data_column import DataColumn
from rewardkit.breakdown.data_rows import data_form, data_rows
from rewardkit.breakdown.grouped import completions_by_prompt, group_curves, group_means
from rewardkit.breakdown.histogram import histogram
from rewardkit.breakdown.prompt_profile import prompt_profile
from rewardkit.breakdown.run_scores import RunScores, measure
from rewardkit.cli.output import write_rows
from rewardkit.record.reader import RunReader
from rewardkit.record.recorder import Recorder
from rewardkit.score_batch import ScoreBatch
from rewardkit.types import Outcome, Rollout, Status

WEIGHTS = {"correct": 1.0, "format": 0.05, "length": -0.2, "watch": 0.0}
STEP, SIZE = 1024, 8


def record(folder: Path, completions: int, prompts: int) -> None:
    """Record a run of so many completions of so many prompts."""
    chance = random.Random(0)
    rows = [
        {"level": chance.choice("abcd"), "uid": f"u{number}", "difficulty": chance.random(), "answer": str(number)}
        for number in range(prompts)
    ]
    visit = 0
    with Recorder(folder) as recorder:
        for step in range(completions // STEP):
            rollouts = []
            for _ in range(STEP // SIZE):
                number = visit % prompts
                rollouts += [Rollout(f"prompt {number}", f"text {k}", rows[number]) for k in range(SIZE)]
                visit += 1
            outcomes = {
                name: [Outcome(Status.SCORED, float(chance.random() < 0.5), version=f"{index:012}") for _ in rollouts]
                for index, name in enumerate(WEIGHTS)
            }
            recorder.record(ScoreBatch(rollouts, outcomes, WEIGHTS), step=step, num_generations=SIZE)
            recorder.flush()


def main() -> None:
    """Record the run, and print what each part takes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--completions", type=int, default=200_000)
    parser.add_argument("--prompts", type=int, default=4_000)
    parser.add_argument("--times", type=int, default=5)
    options = parser.parse_args()
    table = Table("what", "by the clock", "processor", title=f"{options.completions:,} completions")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        record(folder / "long", options.completions, options.prompts)
        with RunReader(folder / "long") as run:
            for what, task in tasks(run, folder).items():
                clock, processor = measured(task, options.times)
                table.add_row(what, f"{clock * 1000:.0f} ms", f"{processor * 1000:.0f} ms")
    Console().print(table)


def tasks(run: RunReader, folder: Path) -> dict[str, Callable[[], object]]:
    """Return what is measured."""
    run_scores, column = RunScores(), DataColumn("level")
    run_scores.read(run)
    column.read(run)
    scores = run_scores.of("train")
    total = measure(scores, run.rewards)
    grouping = column.grouping(completions_by_prompt(scores, total, run.prompt_count))
    profile = prompt_profile(scores, total)
    chosen = profile.prompts[(profile.rates >= 0.1) & (profile.rates <= 0.9)].tolist()

    def write() -> None:
        write_rows(folder / "keep.jsonl", data_rows(run, data_form(run, chosen)))

    return {
        "reading the scores": lambda: RunScores().read(run),
        "reading a column of the data": lambda: DataColumn("level").read(run),
        "means by group": lambda: group_means(scores, total, grouping),
        "curves by group": lambda: group_curves(scores, total, grouping),
        "histogram": lambda: histogram(scores, total),
        "pass rates": lambda: prompt_profile(scores, total),
        f"writing {len(chosen):,} prompts": write,
    }


def measured(task: Callable[[], object], times: int) -> tuple[float, float]:
    """Return the median time by the clock and in processor time."""
    pairs = []
    for _ in range(times):
        clock, processor = time.perf_counter(), time.process_time()
        task()
        pairs.append((time.perf_counter() - clock, time.process_time() - processor))
    return statistics.median(clock for clock, _ in pairs), statistics.median(processor for _, processor in pairs)


if __name__ == "__main__":
    main()
