"""What reading the leavings of a hostile evaluation costs the process that asked for it.

    python tests/benchmarks/bench_hostile_leavings.py [--rounds 3]

Each row is a completion that writes what is slow to read to a place that its caller reads: results, standard
output, values, the judge's socket. The figure is the processor time of the calling thread, at the default limits,
for the worst of some rounds. The documented bound is a second.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from sandbox import Limits, Sandbox

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))
from hostile_leavings import evaluations

BOUND_S = 1.0
LIMITS = Limits(timeout_s=20.0)


def main() -> None:
    """Measure and print one table, the dearest first."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    worst: dict[str, float] = {}
    with Sandbox(workers=1, limits=LIMITS) as sandbox:
        for name, act in evaluations(sandbox, LIMITS).items():
            for _ in range(rounds):
                began = time.thread_time()
                act()
                worst[name] = max(worst.get(name, 0.0), time.thread_time() - began)
    table = Table(title=f"processor time of the caller, worst of {rounds}; the bound is {BOUND_S:g} s")
    for column in ("hostile evaluation", "seconds", ""):
        table.add_column(column, justify="right" if column == "seconds" else "left")
    for name, seconds in sorted(worst.items(), key=lambda item: -item[1]):
        table.add_row(name, f"{seconds:.3f}", "" if seconds <= BOUND_S else "beyond the bound")
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
