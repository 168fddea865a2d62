"""How many calls a second this machine carries, by the number of workers: what ``rewardkit doctor --bench`` measures.

``tests/benchmarks/bench_cores.py`` measures the same for longer, and judges and records besides.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from rewardkit.declare.decorator import reward
from rewardkit.runtime.runtime import Runtime
from rewardkit.types import Rollout, Status
from sandbox import Sandbox, cores
from sandbox.errors import SandboxUnavailableError

COMPLETION = "x" * 2000
PROGRAM = """
def two_sum(numbers, target):
    seen = {}
    for index, number in enumerate(numbers):
        if target - number in seen:
            return [seen[target - number], index]
        seen[number] = index
assert two_sum([2, 7, 11], 9) == [0, 1]
"""
BUSY_S = 0.005
GOOD_EFFICIENCY = 0.8
"""Of linear, at least, that workers keep whose number a machine carries."""


@reward(timeout_s=30)
def trivial(completion: str) -> float:
    """Score at once."""
    return float(len(completion))


@reward(timeout_s=30)
def busy(completion: str) -> float:
    """Take :data:`BUSY_S` of processor time."""
    until = time.thread_time() + BUSY_S
    while time.thread_time() < until:
        continue
    return 1.0


@reward(timeout_s=30)
def jailed(completion: str, sandbox: Sandbox) -> float:
    """Run a program of eight lines in a jail of its own."""
    return float(sandbox.run(PROGRAM).status == "ok")


SHORT_KINDS = {"trivial": (trivial, 500), f"{1000 * BUSY_S:g} ms": (busy, 16), "jailed": (jailed, 32)}
"""Of each kind its reward, and the calls of a worker in a batch."""


class ScalingRow(NamedTuple):
    """What so many workers do of one kind of call.

    Attributes:
        kind: The kind of call.
        workers: Worker processes.
        calls_per_s: Calls that got their score in a second: the median of the rounds.
        efficiency: Share of what as many times one worker would do.
        main_us: Microseconds of processor time that a call takes of the main process, which all workers share.
    """

    kind: str
    workers: int
    calls_per_s: float
    efficiency: float
    main_us: float


def worker_steps(most: int) -> list[int]:
    """Return the numbers of workers that are measured: 1, 2, 4 and on, and the most.

    >>> worker_steps(12)
    [1, 2, 4, 8, 12]
    """
    powers = [1 << power for power in range(most.bit_length()) if 1 << power < most]
    return [*powers, most]


def serial_share(workers: int, speedup: float) -> float:
    """Return the share of a call that cannot be done at once, by Amdahl's law, from 0 to 1; 0 for one worker.

    >>> serial_share(2, 1.9)
    0.05263157894736836
    """
    if workers < 2 or speedup <= 0:
        return 0.0
    return min(1.0, max(0.0, (workers / speedup - 1) / (workers - 1)))


def measure(
    kinds: Mapping[str, tuple[Any, int]],
    workers: Sequence[int],
    *,
    round_s: float = 0.3,
    rounds: int = 3,
    options: Callable[[str], Mapping[str, Any]] = lambda kind: {},
    say: Callable[[str], None] = lambda label: None,
) -> list[ScalingRow]:
    """Return a row for each kind and number of workers; a call without a score is an error.

    Args:
        kinds: Of each kind its reward, and how many calls a worker has in a batch.
        workers: Numbers of workers, 1 first.
        round_s: Seconds that a round takes at least.
        rounds: Rounds, of which the median counts, after one that is not measured.
        options: Gives the further options of a runtime for a kind, such as where it records.
        say: Hears what is measured next.

    Raises:
        RuntimeError: A call failed, so that its speed says nothing.
    """
    rows: list[ScalingRow] = []
    for kind, (scored, calls) in kinds.items():
        single = 0.0
        for count in workers:
            say(f"{kind}, {count} workers")
            batch = [Rollout("p", COMPLETION)] * (calls * count)
            with Runtime({"measured": scored}, workers=count, **options(kind)) as runtime:
                runtime.wait_loaded()
                _round(runtime, batch, round_s / 2)
                figures = [_round(runtime, batch, round_s) for _ in range(rounds)]
            speed, main_us = (statistics.median(values) for values in zip(*figures, strict=True))
            single = single or speed
            rows.append(ScalingRow(kind, count, speed, speed / (count / workers[0] * single), main_us))
    return rows


def _round(runtime: Runtime, batch: Sequence[Rollout], round_s: float) -> tuple[float, float]:
    """Score batches for a while; return calls a second, and the main process's microseconds of a call."""
    calls, began, processor = 0, time.perf_counter(), time.process_time()
    while (took := time.perf_counter() - began) < round_s or not calls:
        scored = runtime.score(batch)["measured"]
        failed = next((outcome for outcome in scored if outcome.status is not Status.SCORED), None)
        if failed is not None:
            raise RuntimeError(f"a call got no score: {failed.error or failed.reason}")
        calls += len(batch)
    return calls / took, 1e6 * (time.process_time() - processor) / calls


def carried(rows: Sequence[ScalingRow], kind: str) -> int:
    """Return the largest number of workers up to which a kind keeps :data:`GOOD_EFFICIENCY`; at least the first."""
    of_kind = [row for row in rows if row.kind == kind]
    workers = of_kind[0].workers
    for row in of_kind:
        if row.efficiency < GOOD_EFFICIENCY:
            break
        workers = row.workers
    return workers


def short_form() -> list[ScalingRow]:
    """Return the rows of the short form, which takes some seconds; without a jail, those of the other kinds."""
    kinds = dict(SHORT_KINDS)
    try:
        Sandbox(workers=1).start().close()
    except SandboxUnavailableError:
        del kinds["jailed"]
    return measure(kinds, worker_steps(cores()))


def table_rows(rows: Sequence[ScalingRow]) -> list[tuple[str, ...]]:
    """Return a row of a table for each: kind, workers, calls/s, efficiency, serial share, main process's part."""
    single = {row.kind: row.calls_per_s / row.efficiency / row.workers for row in rows}
    return [
        (
            row.kind,
            str(row.workers),
            f"{row.calls_per_s:,.0f}",
            f"{row.efficiency:.2f}",
            f"{serial_share(row.workers, row.calls_per_s / single[row.kind]):.3f}" if row.workers > 1 else "",
            f"{row.main_us:.1f} us",
        )
        for row in rows
    ]


COLUMNS = ("calls", "workers", "a second", "of linear", "serial share", "main process")


def verdict(rows: Sequence[ScalingRow]) -> str:
    """Return in a line how many workers this machine carries."""
    parts = [f"{carried(rows, kind)} ({kind})" for kind in dict.fromkeys(row.kind for row in rows)]
    return f"workers that keep {GOOD_EFFICIENCY:.0%} of linear here: {', '.join(parts)}"
