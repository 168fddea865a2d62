"""What ``rewardkit diagnose`` says of trainings that go wrong, and of some that go well.

    python tests/benchmarks/table_of_diagnosis.py [--seeds N] [--only NAME] [--jobs N] [--keep FOLDER] [--check]

Trains a small model of a policy with each kind of reward, data and fault in ``tests/helpers/simulated``, records it in
a folder as every training is recorded, and asks the diagnosis, as ``rewardkit diagnose FOLDER --json`` does. Of all
kinds it writes ``docs/reference/diagnosis-table.md``; with ``--only`` it prints the flags of the kinds whose name has
this text. With ``--check`` it makes the first run of some kinds anew, and exits with 1 where the page says otherwise.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))

from simulated.faults import ALL_TROUBLES as TROUBLES
from simulated.healthy import HEALTHY
from simulated.misses import MISSES

from rewardkit.health.examine import diagnose_run
from rewardkit.record.reader import RunReader

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "diagnosis-table.md"
SEEDS, SEEDS_OF_HEALTHY = 5, 2
CHECKED = ("strict newline", "other type", "labels", "short run")
"""The kinds whose first run ``--check`` makes anew."""
NAMED, MISSED = "●", "○"
HEAD = """# The table of the diagnosis

What [`rewardkit diagnose`](cli.md) says of {troubles} kinds of trainings that go wrong, and {healthy} that go well.
`python tests/benchmarks/table_of_diagnosis.py` trains, records and diagnoses them, and writes this page.

The policy is a small model with a chance of each habit, a skill and a length.
It moves by the policy gradient of its completions' advantages, as GRPO does.
So a flaw is exploited because it pays, as fast as it pays, and not from a step that the table chose.
Texts are prose, solutions, programs, records, labels and conversations with tools, in up to five languages.
Steps, groups, lengths and rates of learning differ from seed to seed: 25 to 200 steps of 16 to 160 completions.
Nothing here was made to fit the [detectors](detectors.md), whose own tests plant other faults.

- **{named} of {troubles} troubles are named** in at least {enough} of {seeds} runs by a flag that says what is wrong.
- **{alarms} flags in {steps:,} steps of healthy runs** ({rate:.2f} in 1,000); {quiet} of {healthy} kinds have none.
"""


class Result(NamedTuple):
    """The diagnosis of a run."""

    name: str
    seed: int
    steps: int
    flags: tuple[tuple[str, str, str], ...]  # Detector, reward, steps


def record(name: str, seed: int, folder: Path) -> Path:
    """Train and record a kind in a folder, unless it is recorded there already; return its run."""
    run = folder / f"{name.replace(' ', '-')}-{seed}"
    if not run.exists():
        making = run.with_suffix(".making")
        shutil.rmtree(making, ignore_errors=True)
        kind = TROUBLES[name] if name in TROUBLES else HEALTHY[name]
        kind.make(random.Random(f"{name} {seed}")).record(making)
        making.rename(run)
    return run


def diagnose(name: str, seed: int, folder: Path | None = None) -> Result:
    """Train, record and diagnose a kind; a run that the folder has is diagnosed as it is."""
    with (
        tempfile.TemporaryDirectory(prefix="diagnosis-") as scratch,
        RunReader(record(name, seed, folder or Path(scratch))) as run,
    ):
        flags, steps = diagnose_run(run).flags, len(run.steps())
    return Result(name, seed, steps, tuple((flag.detector, flag.reward or "", flag.steps) for flag in flags))


def diagnose_all(names: Sequence[str], seeds: int, jobs: int, folder: Path | None) -> list[Result]:
    """Return the diagnosis of each kind and seed, and print progress."""
    healthy = min(seeds, SEEDS_OF_HEALTHY)
    work = [(name, seed) for seed in range(seeds) for name in names if name in TROUBLES or seed < healthy]
    results, began = [], time.monotonic()
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        for run in as_completed([pool.submit(diagnose, name, seed, folder) for name, seed in work]):
            results.append(run.result())
            took = time.monotonic() - began
            print(f"  {len(results)} of {len(work)}, {took:.0f} s: {_line(results[-1])}", flush=True)
    return sorted(results, key=lambda result: (names.index(result.name), result.seed))


def _line(result: Result) -> str:
    """Return a result as a line."""
    flags = ", ".join(f"{detector}{reward and f' ({reward})'} {steps}" for detector, reward, steps in result.flags)
    kind = TROUBLES.get(result.name)
    is_named = kind is not None and is_named_in(result)
    mark = "" if kind is None else f"{NAMED if is_named else MISSED} "
    return f"{mark}{result.name}, seed {result.seed}, {result.steps} steps: {flags or 'no flag'}"


def is_named_in(result: Result) -> bool:
    """Return whether a flag names the trouble of a run."""
    return not TROUBLES[result.name].flags.isdisjoint(detector for detector, *_ in result.flags)


def marks_of(results: Sequence[Result]) -> str:
    return "".join(NAMED if is_named_in(result) else MISSED for result in results)


def page(by_name: Mapping[str, Sequence[Result]], seeds: int) -> str:
    """Return the page's text."""
    enough = max(1, seeds - 1)
    named = [name for name in TROUBLES if marks_of(by_name[name]).count(NAMED) >= enough]
    alarms = {name: sum(len(result.flags) for result in by_name[name]) for name in HEALTHY}
    steps = sum(result.steps for name in HEALTHY for result in by_name[name])
    numbers = {
        "troubles": len(TROUBLES), "healthy": len(HEALTHY), "named": len(named), "enough": enough, "seeds": seeds,
        "alarms": sum(alarms.values()), "steps": steps, "rate": 1000 * sum(alarms.values()) / steps,
        "quiet": sum(count == 0 for count in alarms.values()),
    }  # fmt: skip
    lines = [HEAD.format(**numbers), *_troubles_of(by_name, seeds), *_misses_of(by_name), *_healthy_of(by_name)]
    return "\n".join(lines) + "\n"


def _troubles_of(by_name: Mapping[str, Sequence[Result]], seeds: int) -> Iterator[str]:
    yield f"## What goes wrong\n\nEach dot is a run: {NAMED} is named, {MISSED} is not.\n"
    yield "| trouble | what happens | an account | runs | named by | flagged besides |"
    yield "|---|---|---|---|---|---|"
    for name, kind in TROUBLES.items():
        flags = Counter(flag for result in by_name[name] for flag in {detector for detector, *_ in result.flags})
        right = _list({flag: count for flag, count in flags.items() if flag in kind.flags}, seeds)
        others = _list({flag: count for flag, count in flags.items() if flag not in kind.flags}, seeds)
        cells = name, kind.about, kind.source, marks_of(by_name[name]), right, others
        yield f"| {' | '.join(cells)} |"
    yield ""


def _list(flags: Mapping[str, int], seeds: int) -> str:
    """Return flags with the number of runs that have each, where it is not all."""
    counted = sorted(flags.items(), key=lambda pair: -pair[1])
    return ", ".join(f"`{flag}`{'' if count == seeds else f' {count}'}" for flag, count in counted) or "-"


def _misses_of(by_name: Mapping[str, Sequence[Result]]) -> Iterator[str]:
    missed = [name for name in TROUBLES if MISSED in marks_of(by_name[name])]
    if missed:
        yield "## What is missed, and why\n"
        for name in missed:
            yield f"- **{name}** ({marks_of(by_name[name])}): {MISSES.get(name, 'not looked into')}"
        yield ""


def _healthy_of(by_name: Mapping[str, Sequence[Result]]) -> Iterator[str]:
    yield "## What goes well\n"
    yield "| kind | what is special | steps | false alarms |"
    yield "|---|---|---|---|"
    for name, kind in HEALTHY.items():
        results = by_name[name]
        flags = Counter(detector for result in results for detector, *_ in result.flags)
        alarms = ", ".join(f"`{flag}` {count}" for flag, count in flags.most_common())
        yield f"| {name} | {kind.about} | {sum(result.steps for result in results):,} | {alarms or '0'} |"
    alarmed = [name for name in HEALTHY if any(result.flags for result in by_name[name])]
    if alarmed:
        yield "\n## What is flagged falsely, and why\n"
        for name in alarmed:
            yield f"- **{name}**: {MISSES.get(name, 'not looked into')}"


def check(text: str) -> list[str]:
    """Return where the page says otherwise than the first runs of some kinds."""
    faults_of_page = []
    for name in CHECKED:
        result = diagnose(name, 0)
        print(f"  {_line(result)}", flush=True)
        row = next((line for line in text.splitlines() if line.startswith(f"| {name} |")), "")
        cell = row.split("|")[4].strip() if row else ""
        mark = marks_of([result]) if name in TROUBLES else ""
        is_right = cell.startswith(mark) if mark else cell != "0" or not result.flags
        if not row or not is_right:
            faults_of_page.append(f"{name}: the page says {row or 'nothing'}, and seed 0 gives: {_line(result)}")
    return faults_of_page


def main() -> int:
    """Read the command line, and print or write what was found."""
    options = argparse.ArgumentParser(description="What rewardkit diagnose says of trainings, good and bad ones.")
    options.add_argument("--seeds", type=int, default=SEEDS, help="runs of each trouble")
    options.add_argument("--only", metavar="NAME", action="append", help="kinds with this in their name; no page")
    options.add_argument("--jobs", type=int, default=2, help="processes")
    options.add_argument("--keep", metavar="FOLDER", type=Path, help="keeps the runs, and diagnoses those it has")
    options.add_argument("--check", action="store_true", help="compare the page with a few runs, and write nothing")
    chosen = options.parse_args()
    if chosen.check:
        wrong = check(PAGE.read_text(encoding="utf-8"))
        print("\n".join(wrong), file=sys.stderr)
        return bool(wrong)
    parts = chosen.only or [""]
    names = [name for name in (*TROUBLES, *HEALTHY) if any(part in name for part in parts)]
    if not names:
        options.error(f"no kind has {chosen.only!r} in its name; there are: {', '.join((*TROUBLES, *HEALTHY))}")
    results = diagnose_all(names, chosen.seeds, chosen.jobs, chosen.keep)
    if chosen.only is None:
        by_name = {name: [result for result in results if result.name == name] for name in names}
        PAGE.write_text(page(by_name, chosen.seeds), encoding="utf-8")
        print(f"wrote {PAGE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
