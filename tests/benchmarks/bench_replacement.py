"""What replaced workers cost where loading the rewards takes long, with and without a nursery, in turn.

    python tests/benchmarks/bench_replacement.py [--rounds 5] [--rows 100] [--crashes 10]

The reward's module imports torch, and so many of its calls end their worker. Figures are medians over rounds.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import psutil
from rich.console import Console
from rich.table import Table

from rewardkit import Rollout, Runtime
from sandbox.workers import link

MODULE = """
import os
import torch
from rewardkit import reward

@reward(timeout_s=60)
def heavy(completion: str) -> float:
    if completion == "bad":
        os._exit(3)
    return float(torch.tensor([float(len(completion))]).sum())
"""
KINDS = {"loaded anew": math.inf, "from a nursery": link.NURSERY_FROM_S}


def once(reference: str, rows: int, crashes: int, workers: int) -> tuple[float, float, float, float]:
    """Return the seconds of a batch without crashes and of two with them, and the mebibytes held by all at the end."""
    bad = {(2 * n + 1) * rows // (2 * crashes) for n in range(crashes)} if crashes else set()
    rollouts = [Rollout("p", "bad" if n in bad else "x" * (n + 1)) for n in range(rows)]
    seconds = []
    with Runtime([reference], workers=workers) as runtime:
        for batch in ([one for one in rollouts if one.completion != "bad"], rollouts, rollouts):
            began = time.perf_counter()
            outcomes = runtime.score(batch)["heavy"]
            seconds.append(time.perf_counter() - began)
            for rollout, outcome in zip(batch, outcomes, strict=True):
                assert rollout.completion == "bad" or outcome.score == len(rollout.completion)
        held = sum(_proportional_bytes(one) for one in psutil.Process().children(recursive=True))
    return seconds[0], seconds[1], seconds[2], held / 2**20


def _proportional_bytes(process: psutil.Process) -> int:
    try:
        return int(process.memory_full_info().pss)
    except psutil.Error:
        return 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="rounds of the interleaved comparison")
    parser.add_argument("--rows", type=int, default=100, help="calls of a batch")
    parser.add_argument("--crashes", type=int, default=10, help="calls of a batch that end their worker")
    parser.add_argument("--workers", type=int, default=2, help="worker processes")
    options = parser.parse_args()
    table = Table(title=f"replaced workers, {os.cpu_count()} cores, Python {sys.version.split()[0]}")
    parts = ("start and rows", "first crashes, s", "more crashes, s", "memory, MiB")
    for column in ("workers", *parts):
        table.add_column(column, justify="left" if column == "workers" else "right")
    figures: dict[tuple[str, int], list[tuple[float, ...]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        module = Path(folder) / "heavy_reward.py"
        module.write_text(MODULE)
        for _ in range(options.rounds):
            for crashes in (options.crashes, 0):
                for kind, slow_s in KINDS.items():
                    link.NURSERY_FROM_S = slow_s
                    found = once(f"{module}:heavy", options.rows, crashes, options.workers)
                    figures.setdefault((kind, crashes), []).append(found)
    for (kind, crashes), rounds in figures.items():
        medians = [statistics.median(values) for values in zip(*rounds, strict=True)]
        words = [f"{value:.0f}" if n == 3 else f"{value:.2f}" for n, value in enumerate(medians)]
        table.add_row(f"{kind}, {crashes} crashes a batch", *words)
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
