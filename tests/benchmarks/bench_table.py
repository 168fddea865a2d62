"""What the table of completions takes on a long run: first pages by filters and orders, searches, files, bytes.

    python tests/benchmarks/bench_table.py [--rows 20000] [--full] [--folder DIR]

The run is that of ``bench_dashboard.py``, of 1,000,000 completions with ``--full``; ``--folder`` keeps it, or has one
already. ``rewardkit ui`` serves it. Each question is asked with values that no question before had, so that none
is answered from memory; ``first`` is the one that reads the run's numbers. In the end the command line is asked.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import random
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import psutil
from bench_dashboard import RUN, Client, Figure, made, serving
from bench_record import REWARDS, STEP
from rich.console import Console
from rich.table import Table

from rewardkit.record.reader import RunReader

ASKED = 30
"""Questions of each kind."""
SEARCH_S = 10.0
FIRST_MS, BYTES_SHARE = 300, 5.0


def questions(draw: random.Random) -> dict[str, Callable[[], dict[str, object]]]:
    """Return the kinds of questions, each of which makes another one whenever it is called."""
    numbers = itertools.count(1)

    def share() -> float:
        return round(0.001 + 0.9 * draw.random() + next(numbers) * 1e-9, 9)

    return {
        "sort by the reward, another part": lambda: {"sort": "-reward", "where": f"correct>={share()}"},
        "sort by a score": lambda: {"sort": "format", "where": f"id>{next(numbers)}"},
        "sort by the advantage": lambda: {"sort": "-advantage", "where": f"id>{next(numbers)}"},
        "filter by a score": lambda: {"where": f"correct<{share()}"},
        "filter by two scores and the step": lambda: {
            "where": f"correct<{share()} and length>{share()} and step>={next(numbers)}"
        },
        "filter by an outcome": lambda: {"where": f"outcome=failed and id>{next(numbers)}"},
        "filter by a column of the data": lambda: {"where": f"answer={next(numbers)}"},
        "a further page": lambda: {"sort": "-reward", "from": draw.randrange(20) * 50, "where": f"id>{next(numbers)}"},
    }


def pages(client: Client, process: psutil.Process) -> Iterator[Figure]:
    """Yield the milliseconds until a page of the table is there, by the clock and in the server's processor time."""
    cpu = sum(process.cpu_times()[:2])
    began, answer = time.perf_counter(), {"reading": True}
    while answer["reading"]:
        _, answer = client.get("table", sort="-reward")
    took, cpu = time.perf_counter() - began, sum(process.cpu_times()[:2]) - cpu
    yield Figure("the first page, which reads the numbers: ms", f"{1000 * took:,.0f}", f"{1000 * cpu:,.0f}")
    for name, ask in questions(random.Random(1)).items():
        times, cpu = [], sum(process.cpu_times()[:2])
        for _ in range(ASKED):
            took, answer = client.get("table", **ask())
            while answer["reading"]:
                more, answer = client.get("table", **ask())
                took += more
            times.append(took)
        p50, p95 = np.quantile(times, [0.5, 0.95]) * 1000
        cpu = 1000 * (sum(process.cpu_times()[:2]) - cpu) / ASKED
        yield Figure(f"{name}: p50 / p95 ms", f"{p50:,.0f} / {p95:,.0f}", f"{cpu:,.0f} mean", f"p95 {FIRST_MS}")


def searches(client: Client) -> Iterator[Figure]:
    """Yield how many completions a search looks at in a second, and what an answer of it takes."""
    until, end, times = time.perf_counter() + SEARCH_S, 0, []
    while time.perf_counter() < until:
        took, answer = client.get("table", find="no such text", **{"from": end})
        times.append(took)
        end = answer["end"]
        if end >= answer["matched"]:
            break
    yield Figure("a search for a text: completions a second", f"{end / sum(times):,.0f}")
    yield Figure("an answer of it: p95 ms", f"{1000 * np.quantile(times, 0.95):,.0f}")


def bytes_of(run: Path) -> Iterator[Figure]:
    """Yield what the numbers by column take of the record."""
    with contextlib.closing(sqlite3.connect(run / "record.db")) as file:
        (own,) = file.execute("SELECT sum(length(body)) FROM numbers").fetchone()
        (count,) = file.execute("SELECT count(*) FROM completion").fetchone()
    size = (run / "record.db").stat().st_size
    share = 100 * own / (size - own)
    yield Figure("bytes a completion, of them numbers by column", f"{size / count:,.0f}, {own / count:,.1f}")
    yield Figure("share of the record without them", f"{share:.1f}%", aim=f"{BYTES_SHARE}%")


def commands(run: Path) -> Iterator[Figure]:
    """Yield the seconds of the command line, and of starting it alone."""
    show = [sys.executable, "-m", "rewardkit", "show", str(run)]
    for name, arguments in {
        "rewardkit show --help": ["--help"],
        "rewardkit show --where 'correct<0.2'": ["--where", "correct<0.2"],
        "rewardkit show --sort=-reward": ["--sort=-reward"],
    }.items():
        times = []
        for _ in range(3):
            began = time.perf_counter()
            subprocess.run([*show, *arguments], check=True, stdout=subprocess.DEVNULL)
            times.append(time.perf_counter() - began)
        yield Figure(f"{name}: s", f"{statistics.median(times):.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000, help="completions of the run")
    parser.add_argument("--full", action="store_true", help="1,000,000 of them")
    parser.add_argument("--folder", type=Path, help="where, instead of a temporary folder")
    given = parser.parse_args()
    steps = max(2, (1_000_000 if given.full else given.rows) // STEP)
    console = Console(width=None if sys.stdout.isatty() else 120)
    with contextlib.ExitStack() as stack:
        folder = given.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        if not (folder / RUN / "record.db").exists():
            made(folder / RUN, steps)
        with RunReader(folder / RUN) as reader:
            title = f"{reader.count():,} completions with {len(REWARDS)} rewards, load {os.getloadavg()[0]:.1f} before"
        table = Table("what", "by the clock", "processor ms", "aim", title=title)
        served = stack.enter_context(serving(folder))
        client = Client(served)
        for figure in itertools.chain(
            pages(client, served.process), searches(client), bytes_of(folder / RUN), commands(folder / RUN)
        ):
            table.add_row(*figure)
            console.print(" | ".join(figure), style="dim")
        memory = Figure("server's memory, in the end: MB", f"{served.process.memory_info().rss / 1e6:,.0f}")
        table.add_row(*memory)
    console.print(table)


if __name__ == "__main__":
    main()
