"""Rows a second of a record in a file and in PostgreSQL, by one writer and by four of one run.

    PYTHONPATH=tests/helpers python tests/benchmarks/bench_record_stores.py [--rows 20000] [--fsync]

A step is 1,000 completions of 2 kB with four rewards, as in ``bench_record.py``, made before the clock starts. A writer
is a process with a ``Recorder``; all begin at one moment, and the time ends when all of them have flushed. A server is
made for it, on a socket, without ``fsync`` unless asked for. The figures are the medians of three turns, a turn of
each kind after the other.

Writers of one machine share its cores with the server. So the processor time of a step, of all processes together, says
how many rows a second its cores allow at most, however many write.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import psutil
from databases import FAST, Server, serving
from rich.console import Console
from rich.table import Table

from sandbox import cores

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
    spent_s = time.process_time()
    for number, batch in enumerate(batches):
        one.record(batch, step=number)
    assert one.flush(600)
    print(time.time(), time.process_time() - spent_s, one.lost + one.left_out, flush=True)
"""


class Turn(NamedTuple):
    """What came of several writers.

    Attributes:
        rows_per_s: Of all together.
        step_s: Processor time of a step in the process that writes it.
    """

    rows_per_s: float
    step_s: float


def turn_of(place: str, writers: int, steps: int) -> Turn:
    """Have several processes write."""
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
    ends, spent_s = [], 0.0
    for child in children:
        assert child.stdin is not None
        child.stdin.write(f"{begins}\n")
        child.stdin.flush()
    for child in children:
        assert child.stdout is not None
        end, spent, lost = child.stdout.readline().split()
        assert lost == "0"
        ends.append(float(end))
        spent_s += float(spent)
        child.communicate()
    return Turn(writers * steps * 1000 / (max(ends) - begins), spent_s / writers / steps)


def processor_s(server: Server) -> float:
    """Return the processor time that a server has taken so far, with its processes that have ended."""
    first = psutil.Process(int((server.folder / "data" / "postmaster.pid").read_text().split()[0]))
    found = sum(first.cpu_times()[:4])
    for one in first.children():
        with contextlib.suppress(psutil.NoSuchProcess):
            found += sum(one.cpu_times()[:2])
    return float(found)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print the table and one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=20_000, help="rows of each writer in a turn")
    parser.add_argument("--fsync", action="store_true", help="let the server wait for its disk")
    given = parser.parse_args(arguments)
    steps = max(1, given.rows // 1000)
    found: dict[str, list[Turn]] = {}
    server_s: list[float] = []
    with (
        tempfile.TemporaryDirectory(prefix="rk-bench-") as folder,
        tempfile.TemporaryDirectory(prefix="rk-pg-") as home,
        serving(Path(home), "" if given.fsync else FAST) as server,
    ):
        for turn in range(TURNS):
            for writers in (1, 4):
                place = str(Path(folder, f"{turn}-{writers}"))
                found.setdefault(f"SQLite, {writers} writing", []).append(turn_of(place, writers, steps))
                before_s, place = processor_s(server), server.url(f"bench-{turn}-{writers}")
                found.setdefault(f"PostgreSQL, {writers} writing", []).append(turn_of(place, writers, steps))
                server_s.append((processor_s(server) - before_s) / writers / steps)
                server.sql(f'DROP SCHEMA "bench-{turn}-{writers}" CASCADE')
    figures = {f"{name}, rows/s": statistics.median(one.rows_per_s for one in those) for name, those in found.items()}
    one, four = (figures[f"PostgreSQL, {number} writing, rows/s"] for number in (1, 4))
    figures["PostgreSQL / SQLite (aim: 0.5 or more)"] = one / figures["SQLite, 1 writing, rows/s"]
    figures["four / one in PostgreSQL (aim: 1.5 or more)"] = four / one
    of_writer_s = statistics.median(one.step_s for one in found["PostgreSQL, 1 writing"])
    of_server_s = statistics.median(server_s)
    figures["processor time of a step, the writer's, ms"] = 1000 * of_writer_s
    figures["processor time of a step, the server's, ms"] = 1000 * of_server_s
    figures["rows/s that the cores here allow at most"] = 1000 * cores() / (of_writer_s + of_server_s)
    table = Table("figure", "value")
    for name, value in figures.items():
        table.add_row(name, f"{value:,.0f}" if value > 100 else f"{value:.2f}")
    Console().print(table)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
