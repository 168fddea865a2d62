"""How long hostile code holds up its supervisor beyond its deadline: with threads, forks and a full directory.

    PYTHONPATH=tests/helpers python tests/benchmarks/bench_overrun.py [--times 1000] [--level strict]

An overrun is the time from an evaluation's deadline to the return of its result, which is none where it ends before.
After each tenth an innocent program follows, whose whole time is shown: it waits for the cleaning up.
"""

from __future__ import annotations

import argparse
import collections
import time

from hostile import EXCHANGE, FILES, FORKS, RAW_THREADS, SPIN
from rich.console import Console
from rich.progress import track
from rich.table import Table

from sandbox import Limits, Sandbox

SOURCES = {"exchanged links": EXCHANGE, "spinning threads": SPIN, "full directory": FILES, "forks": FORKS}
DEADLINE_S = 0.2
INNOCENT_EVERY = 10


def main() -> None:
    """Measure and print one table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--times", type=int, default=1000, help="hostile evaluations")
    parser.add_argument("--level", default="strict", help="level of the jail (default: strict)")
    times, level = parser.parse_args().times, parser.parse_args().level
    late: dict[str, list[float]] = {name: [] for name in SOURCES}
    ends: dict[str, collections.Counter[str]] = {name: collections.Counter() for name in SOURCES}
    innocent: list[float] = []
    with Sandbox(level=level, workers=1) as sandbox:
        sandbox.run("pass")
        for number in track(range(times), "attacking", console=Console(stderr=True), transient=True):
            name = list(SOURCES)[number % len(SOURCES)]
            forks = 16 if name == "forks" and level == "strict" else 1
            limits = Limits(timeout_s=DEADLINE_S, processes=forks)
            began = time.perf_counter()
            result = sandbox.run(RAW_THREADS + SOURCES[name], args=['{"outside": "/tmp"}'], limits=limits)
            late[name].append(max(0.0, time.perf_counter() - began - DEADLINE_S))
            ends[name][str(result.status)] += 1
            if number % INNOCENT_EVERY == 0:
                began = time.perf_counter()
                assert sandbox.run("print(1)").stdout == "1\n"
                innocent.append(time.perf_counter() - began)
    show(late, ends, innocent, level)


def show(
    late: dict[str, list[float]], ends: dict[str, collections.Counter[str]], innocent: list[float], level: str
) -> None:
    """Print medians, 99th percentiles and the longest."""
    table = Table(title=f"overrun of {DEADLINE_S:g} s at {level!r}")
    for column in ("what", "times", "median", "p99", "longest", "ends"):
        table.add_column(column)
    whole = [seconds for some in late.values() for seconds in some]
    rows = [*((name, some, str(dict(ends[name]))) for name, some in late.items()), ("all", whole, "aim: p99 <= 1 s")]
    for name, some, words in (*rows, ("an innocent after it", innocent, "")):
        ordered = sorted(some)
        shown = (ordered[len(ordered) // 2], ordered[int(0.99 * (len(ordered) - 1))], ordered[-1])
        table.add_row(name, str(len(ordered)), *(f"{seconds * 1000:.0f} ms" for seconds in shown), words)
    Console(width=130).print(table)


if __name__ == "__main__":
    main()
