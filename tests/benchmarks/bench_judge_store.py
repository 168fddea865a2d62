"""What a judge's budget and its cache do in a second: in one process, and the budget in three that share a ledger.

    python tests/benchmarks/bench_judge_store.py [--seconds 1.0]
    python tests/benchmarks/compare.py BEFORE AFTER --only store

Each figure is the median of five turns.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from builtin_rewards.endpoint.messages import Reply, Usage
from builtin_rewards.judge import Budget, JudgeCache

TURNS = 5
REPLY = Reply('{"correct": {"reason": "It is what the question asks for.", "score": 4}}', "m", usage=Usage(400, 40))


def rate(act: Callable[[int], object], seconds: float) -> float:
    """Give how often an act with a running number is done in a second."""
    act(-1)
    done, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        act(done)
        done += 1
    return done / (time.perf_counter() - began)


def _pay(budget: Budget, seconds: float) -> float:
    return rate(lambda number: budget.reserve("j", Usage(60, 40)).settle(Usage(30, 20)), seconds)


def store_figures(seconds: float = 1.0) -> dict[str, float]:
    """Give the medians of all over turns of so long."""
    with tempfile.TemporaryDirectory() as folder, multiprocessing.get_context("forkserver").Pool(3) as pool:
        budget = Budget(requests=10**9, ledger=Path(folder, "ledger.db"))
        cache = JudgeCache(Path(folder, "judge.db"))
        numbers = itertools.count()
        acts: dict[str, Callable[[], float]] = {
            "budget, calls/s": lambda: _pay(budget, seconds),
            "budget of 3 processes, calls/s": lambda: sum(pool.starmap(_pay, [(budget, seconds)] * 3, chunksize=1)),
            "cache put, calls/s": lambda: rate(lambda _: cache.put(f"{next(numbers):064}", REPLY), seconds),
            "cache get, calls/s": lambda: rate(lambda number: cache.get(f"{number % 100:064}"), seconds),
        }
        turns = [{name: act() for name, act in acts.items()} for _ in range(TURNS)]
        cache.close()
    return {name: statistics.median(turn[name] for turn in turns) for name in acts}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each turn")
    table = Table("what", "a second")
    for name, value in store_figures(parser.parse_args().seconds).items():
        table.add_row(name, f"{value:,.0f}")
    Console().print(table)


if __name__ == "__main__":
    main()
