"""Rows a second of a record in a file and in PostgreSQL, by one writer and by four of one run.

    PYTHONPATH=tests/helpers python tests/benchmarks/bench_record_stores.py [--rows 20000] [--fsync]

A step is 1,000 completions of 2 kB with four rewards, as in ``bench_record.py``, made before the clock starts. A writer
is a process with a ``Recorder``; all begin at one moment, and the time ends when all of them have flushed. A server is
made for it, on a socket, without ``fsync`` unless asked for. The figures are the medians of three turns, a turn of
each kind after the other.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from databases import FAST, serving
from rich.console import Console
from rich.table import Table

HERE = Path(__file__).resolve()
TURNS = 3
WRITER = f"""
import sys, time
sys.path[:0] = [{str(HERE.parent)!r}, {str(HERE.parents[1] / "helpers")!r}]
from bench_record import Source
from rewardkit.record.recorder import Recorder
url, rank, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
source = Source(rank)
batches = [source.step(number) for number in range(steps)]
with Recorder(url, append=True, rank=rank) as one:
    assert one.flush()
    print("ready", flush=True)
    time.sleep(max(0.0, float(sys.stdin.readline()) - time.time()))
    for number, batch in enumerate(batches):
        one.record(batch, step=number)
    assert one.flush(600)
    print(time.time(), one.lost + one.left_out, flush=True)
"""


def rows_per_s(place: str, writers: int, steps: int) -> float:
    """Return the rows a second of several writers together."""
    from rewardkit.record.recorder import Recorder

    Recorder(place).close()
    command = [sys.executable, "-c", WRITER, place]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    children = [
        subprocess.Popen(
            [*command, str(rank), str(steps)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        for rank in range(writers)
    ]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    begins = time.time() + 0.2
    ends = []
    for child in children:
        assert child.stdin is not None
        child.stdin.write(f"{begins}\n")
        child.stdin.flush()
    for child in children:
        assert child.stdout is not None
        end, lost = child.stdout.readline().split()
        assert lost == "0"
        ends.append(float(end))
        child.communicate()
    return writers * steps * 1000 / (max(ends) - begins)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print the table and one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=20_000, help="rows of each writer in a turn")
    parser.add_argument("--fsync", action="store_true", help="let the server wait for its disk")
    given = parser.parse_args(arguments)
    steps = max(1, given.rows // 1000)
    found: dict[str, list[float]] = {}
    with (
        tempfile.TemporaryDirectory(prefix="rk-bench-") as folder,
        tempfile.TemporaryDirectory(prefix="rk-pg-") as home,
        serving(Path(home), "" if given.fsync else FAST) as server,
    ):
        for turn in range(TURNS):
            for writers in (1, 4):
                places = {
                    f"SQLite, {writers} writing": str(Path(folder, f"{turn}-{writers}")),
                    f"PostgreSQL, {writers} writing": server.url(f"bench-{turn}-{writers}"),
                }
                for name, place in places.items():
                    found.setdefault(name, []).append(rows_per_s(place, writers, steps))
                server.sql(f'DROP SCHEMA "bench-{turn}-{writers}" CASCADE')
    figures = {f"{name}, rows/s": statistics.median(those) for name, those in found.items()}
    one, four = (figures[f"PostgreSQL, {number} writing, rows/s"] for number in (1, 4))
    figures["PostgreSQL / SQLite (aim: 0.5 or more)"] = one / figures["SQLite, 1 writing, rows/s"]
    figures["four / one in PostgreSQL (aim: 1.5 or more)"] = four / one
    table = Table("figure", "value")
    for name, value in figures.items():
        table.add_row(name, f"{value:,.0f}" if value > 100 else f"{value:.2f}")
    Console().print(table)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
