"""How many calls a second a machine carries, by the number of workers.

    python tests/benchmarks/bench_cores.py [--most 16] [--kinds trivial,5ms,jailed,judge,record] [--round 1.0]

Trivial calls, some of 5 ms of processor time, some that run a program in a jail, some that ask a judge which answers
after 20 ms, and trivial ones that are recorded. "Of linear" is the share of what as many times one worker would do; the
serial share is that of Amdahl's law; the main process's part is what all workers share, in processor time of a call.
``rewardkit doctor --bench`` measures a short form.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import platform
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from rewardkit import reward
from rewardkit.cli.core_scaling import COLUMNS, busy, jailed, measure, table_rows, trivial, verdict, worker_steps
from sandbox import cores, usable_cores

ANSWER_S = 0.02


@reward(timeout_s=30, concurrency=64)
async def judge(completion: str) -> float:
    """Wait as for a judge that answers after :data:`ANSWER_S`."""
    await asyncio.sleep(ANSWER_S)
    return 1.0


@reward(timeout_s=30)
def recorded(completion: str) -> float:
    """Score at once; what is scored is recorded."""
    return float(len(completion))


KINDS: dict[str, tuple[Any, int]] = {
    "trivial": (trivial, 1000),
    "5ms": (busy, 32),
    "jailed": (jailed, 64),
    "judge": (judge, 256),
    "record": (recorded, 1000),
}


def main() -> None:
    """Measure and print one table, and how many workers this machine carries."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--most", type=int, default=cores(), help="most workers (default: the cores, %(default)s)")
    parser.add_argument("--kinds", default=",".join(KINDS), help="comma-separated kinds (default: %(default)s)")
    parser.add_argument("--round", type=float, default=1.0, help="seconds of a round, of three (default: 1)")
    options = parser.parse_args()
    kinds = {name: KINDS[name] for name in options.kinds.split(",")}
    folder = Path(tempfile.mkdtemp(prefix="rewardkit-bench-"))
    numbers = itertools.count()

    def options_of(kind: str) -> Mapping[str, Any]:
        return {"record": folder / f"run {next(numbers)}"} if kind == "record" else {}

    console = Console(width=100)
    try:
        with console.status("") as status:
            steps = worker_steps(options.most)
            rows = measure(kinds, steps, round_s=options.round, options=options_of, say=status.update)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    count, reason = usable_cores()
    table = Table(title=f"{count} cores ({reason}), Python {platform.python_version()}, {platform.machine()}")
    for column in COLUMNS:
        table.add_column(column, justify="left" if column == "calls" else "right")
    for row in table_rows(rows):
        table.add_row(*row)
    console.print(table)
    print(verdict(rows))


if __name__ == "__main__":
    main()
