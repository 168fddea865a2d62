"""What the runtime costs, beside pebble and beside plain calls, in one interleaved run.

    python tests/benchmarks/bench_runtime.py [--rounds 5] [--calls 10000]

Figures are medians over rounds and ratios between things measured in turn, for machines are noisy.
"""

from __future__ import annotations

import argparse
import functools
import gc
import os
import signal
import statistics
import subprocess
import sys
import time
import timeit
from collections.abc import Callable, Iterable
from typing import Any

import pebble
from rich.console import Console
from rich.table import Table

from rewardkit import Rollout, Runtime, reward

COMPLETION = "x" * 2000
BATCH = 64
WAIT_S = 0.05


def trivial(completion: str) -> float:
    return float(len(completion))


def spins(completion: str) -> float:
    total = 0
    for number in range(60_000):
        total += number & 7
    return float(total % 7)


def ignores_sigterm(completion: str) -> float:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        time.sleep(60)


def blocks(completion: str) -> float:
    time.sleep(WAIT_S)
    return 1.0


async def waits(completion: str) -> float:
    import asyncio

    await asyncio.sleep(WAIT_S)
    return 1.0


def timed(act: Callable[[], Any]) -> float:
    gc.collect()
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def interleaved(acts: dict[str, Callable[[], Any]], rounds: int) -> dict[str, list[float]]:
    """Return the seconds of each act in each round, the acts taking turns."""
    for act in acts.values():
        act()  # warm
    seconds: dict[str, list[float]] = {name: [] for name in acts}
    for _ in range(rounds):
        for name, act in acts.items():
            seconds[name].append(timed(act))
    return seconds


def rollouts(count: int) -> list[Rollout]:
    return [Rollout("p", COMPLETION) for _ in range(count)]


def throughput_seconds(calls: int, rounds: int) -> dict[str, list[float]]:
    """Return the seconds that trivial calls take here and in pebble, taken in turn, with the same deadline."""
    batch = rollouts(calls)
    with Runtime([reward(timeout_s=1.0)(trivial)], workers=2) as runtime, pebble.ProcessPool(max_workers=2) as pool:

        def with_pebble() -> None:
            futures = [pool.schedule(trivial, args=(one.completion,), timeout=1.0) for one in batch]
            assert all(future.result() == 2000.0 for future in futures)

        def with_rewardkit() -> None:
            outcomes = runtime.score(batch)["trivial"]
            assert all(outcome.score == 2000.0 for outcome in outcomes)

        return interleaved({"pebble": with_pebble, "rewardkit": with_rewardkit}, rounds)


async def yields(completion: str) -> float:
    import asyncio

    await asyncio.sleep(0)
    return float(len(completion))


def loop_seconds(calls: int, rounds: int) -> list[float]:
    """Return the seconds that trivial calls take on an event loop."""
    batch = rollouts(calls)
    with Runtime([reward(timeout_s=60.0)(yields)]) as runtime:
        return interleaved({"loop": lambda: runtime.score(batch)}, rounds)["loop"]


def throughput(calls: int, rounds: int) -> Iterable[tuple[str, str, str]]:
    """Trivial calls a second, beside pebble's schedule per call with the same deadline."""
    seconds = throughput_seconds(calls, rounds)
    ratios = [slow / fast for slow, fast in zip(seconds["pebble"], seconds["rewardkit"], strict=True)]
    ours, theirs = statistics.median(seconds["rewardkit"]), statistics.median(seconds["pebble"])
    yield f"{calls:,} trivial calls, rewardkit", f"{calls / ours:,.0f} calls/s", ""
    yield f"{calls:,} trivial calls, pebble schedule", f"{calls / theirs:,.0f} calls/s", ""
    yield (
        f"{calls:,} trivial calls, event loop",
        f"{calls / statistics.median(loop_seconds(calls, rounds)):,.0f} calls/s",
        "",
    )
    yield "throughput against pebble (median of rounds)", f"{statistics.median(ratios):.1f}x", ">= 10x"


def deadlines(rounds: int) -> Iterable[tuple[str, str, str]]:
    """How late a call is stopped, and what six calls that ignore SIGTERM cost."""
    marked = reward(timeout_s=0.25)(ignores_sigterm)
    with Runtime([marked], workers=2) as runtime:
        runtime.score(rollouts(1))
        overruns = sorted(timed(lambda: runtime.score(rollouts(1))) - 0.25 for _ in range(20))
        six = statistics.median(timed(lambda: runtime.score(rollouts(6))) for _ in range(rounds))
    yield "deadline overrun, p95 of 20", f"{overruns[18] * 1000:.0f} ms", "<= 150 ms"
    yield "six SIGTERM-ignorers, 0.25 s, against the ideal 0.75 s", f"{six / 0.75:.2f}x", "<= 2x"


def waiting(rounds: int) -> Iterable[tuple[str, str, str]]:
    """Four rewards that wait, against one of them alone, and against TRL's calls one after another."""
    batch = rollouts(BATCH)
    kinds = {
        "async": [reward(name=f"waits{n}")(waits) for n in range(4)],
        "blocking, concurrency=32": [reward(name=f"blocks{n}", concurrency=32)(blocks) for n in range(4)],
    }
    serial = timed(lambda: [blocks(COMPLETION) for _ in range(4 * BATCH)])
    for kind, marked in kinds.items():
        with Runtime(marked[:1]) as alone, Runtime(marked) as together:
            seconds = interleaved(
                {"alone": lambda: alone.score(batch), "together": lambda: together.score(batch)}, 3 * rounds
            )
        ratios = [four / one for one, four in zip(seconds["alone"], seconds["together"], strict=True)]
        four = statistics.median(seconds["together"])
        yield f"{BATCH} rollouts, one {kind} reward", f"{statistics.median(seconds['alone']) * 1000:.0f} ms", ""
        yield f"{BATCH} rollouts, four {kind}", f"{four * 1000:.0f} ms", ""
        yield f"four {kind} against one", f"{statistics.median(ratios):.2f}x", "<= 1.15x"
        yield "the same four called as TRL calls plain functions", f"{serial / four:.0f}x slower", ""


def cores(rounds: int) -> Iterable[tuple[str, str, str]]:
    """Four CPU-bound rewards on two workers, against the same calls on one core."""
    batch = rollouts(BATCH)
    marked = [reward(name=f"spins{n}")(spins) for n in range(4)]
    with Runtime(marked, workers=2) as two, Runtime(marked, workers=1) as one:
        seconds = interleaved({"one": lambda: one.score(batch), "two": lambda: two.score(batch)}, rounds)
    ratios = [slow / fast for slow, fast in zip(seconds["one"], seconds["two"], strict=True)]
    yield "four CPU-bound rewards, two workers against one", f"{statistics.median(ratios):.2f}x", ">= 1.7x"


def coercion() -> Iterable[tuple[str, str, str]]:
    """Microseconds to coerce one column."""
    from rewardkit.coercion.coerce import build_coercer  # here, so that the other parts measure older checkouts too

    for annotation, value in ((str, "four"), (int, "4"), (float, "4.5"), (bool, "False"), (list[str], "['a', 'b']")):
        coerce = build_coercer(annotation)
        times = 20_000
        seconds = min(timeit.repeat(functools.partial(coerce, value), number=times, repeat=3))
        yield f"coercing a column to {coerce.expected}", f"{seconds / times * 1e6:.2f} us", ""


def import_s() -> float:
    """Return the seconds that `import rewardkit` takes in a new process, beyond starting Python."""
    probe = "import time, sys; t = time.perf_counter(); import rewardkit; print(time.perf_counter() - t)"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    return float(done.stdout)


def importing(rounds: int) -> Iterable[tuple[str, str, str]]:
    """Seconds that `import rewardkit` takes, beyond starting Python."""
    import_s()
    yield "import rewardkit", f"{statistics.median(import_s() for _ in range(max(5, rounds))):.3f} s", "<= 0.25 s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each interleaved comparison")
    parser.add_argument("--calls", type=int, default=10_000, help="trivial calls a round")
    parser.add_argument("--only", default="", help="comma-separated parts to run, such as throughput,waiting")
    options = parser.parse_args()
    parts: dict[str, Callable[[], Iterable[tuple[str, str, str]]]] = {
        "throughput": lambda: throughput(options.calls, options.rounds),
        "deadlines": lambda: deadlines(options.rounds),
        "waiting": lambda: waiting(options.rounds),
        "cores": lambda: cores(options.rounds),
        "coercion": coercion,
        "importing": lambda: importing(options.rounds),
    }
    table = Table(title=f"rewardkit runtime, {os.cpu_count()} cores, Python {sys.version.split()[0]}")
    for column in ("what", "measured", "aim"):
        table.add_column(column, justify="left" if column == "what" else "right")
    for name, part in parts.items():
        if not options.only or name in options.only.split(","):
            for row in part():
                table.add_row(*row)
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
