"""Programs drawn at random against every channel of the jail: nothing passes, hangs, leaks or harms the next one.

A failure names its seed: ``draw_program(seed)`` of ``tests/helpers/fuzz_jail.py`` gives the program again, and
:data:`KEPT` holds the seeds that once found a fault.
"""

from __future__ import annotations

import gc
import os
import random
import secrets
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from fuzz_jail import draw_program
from patience import LONG_S, alive, wait_for

from sandbox import (
    CheckReport,
    CheckStatus,
    ExecutionStatus,
    FunctionCheck,
    Limits,
    ProgramCheck,
    Sandbox,
    check_asserts,
    check_functions,
    check_programs,
)
from sandbox.errors import SandboxUnavailableError

FULL_S, SHORT_S = 600.0, 3.0
"""Seconds at each of two levels."""
PROCESSOR_S = 1.0
"""The documented bound: seconds of the caller's processor for what a hostile evaluation left."""
KEPT: tuple[int, ...] = ()
TOKEN = f"TOKEN-{secrets.token_hex(8)}"
HOSTILE = Limits(timeout_s=0.4, memory_bytes=256 << 20, file_bytes=2 << 20)
HONEST = Limits(timeout_s=LONG_S)
HONEST_SOURCE = f"def solve(n):\n    return {TOKEN!r}\n"

Judged = Callable[[Sandbox, str, Limits], CheckReport]


def _functions(sandbox: Sandbox, source: str, limits: Limits) -> CheckReport:
    checks = [FunctionCheck([1], TOKEN), FunctionCheck([2], TOKEN, rel_tol=0.1)]
    return check_functions(sandbox, source, "solve", checks, limits=limits)


def _programs(sandbox: Sandbox, source: str, limits: Limits) -> CheckReport:
    checks = [ProgramCheck(text, TOKEN) for text in ("1", "2", "3")]
    return check_programs(sandbox, source + "\nprint(solve(int(input())))\n", checks, limits=limits)


def _asserts(sandbox: Sandbox, source: str, limits: Limits) -> CheckReport:
    tests = f"data = [1]\nassert solve(data) == {TOKEN!r}\nassert set(solve(2)) == set({TOKEN!r})"
    return check_asserts(sandbox, source, tests, limits=limits)


def _check(sandbox: Sandbox, source: str, limits: Limits) -> CheckReport:
    tests = f"def check(candidate):\n    for n in range(2):\n        assert candidate(n) == {TOKEN!r}\n"
    return check_asserts(sandbox, source, tests, entry_point="solve", limits=limits)


KINDS: dict[str, Judged] = {"functions": _functions, "programs": _programs, "asserts": _asserts, "check": _check}


def _timed(judged: Judged, sandbox: Sandbox, source: str) -> tuple[CheckReport, float]:
    began = time.thread_time()
    return judged(sandbox, source, HOSTILE), time.thread_time() - began


def _try(sandbox: Sandbox, threads: ThreadPoolExecutor, seed: int) -> None:
    """Judge a seed's program, then one that is right, both in one zygote."""
    dice = random.Random(seed)
    kind, honest = dice.choice(list(KINDS)), dice.choice(list(KINDS))
    program = draw_program(seed)
    said = (f"seed {seed}", kind, program.acts)
    report, processor_s = threads.submit(_timed, KINDS[kind], sandbox, program.source).result(timeout=LONG_S)
    assert 0 == report.passed < report.total, (said, report)
    assert ExecutionStatus.INFRASTRUCTURE is not report.execution.status, (said, report)
    assert CheckStatus.INFRASTRUCTURE not in {check.status for check in report.checks}, (said, report)
    assert processor_s <= PROCESSOR_S, said
    after = threads.submit(KINDS[honest], sandbox, HONEST_SOURCE, HONEST).result(timeout=2 * LONG_S)
    assert after.all_passed, (said, honest, after)


def _folders() -> list[Path]:
    return sorted(Path(tempfile.gettempdir()).glob(f"rewardkit-jail-*-{os.getpid()}-*"))


def _left_over() -> list[Path]:
    """Give what lies in scratch directories, which may themselves be in folders of their zygotes."""
    return [path for folder in _folders() for path in folder.rglob("*") if path.parent != folder or not path.is_dir()]


def _state() -> tuple[int, list[Path]]:
    gc.collect()
    return psutil.Process().num_fds(), _folders()


def _seeds(full: bool) -> Iterable[int]:
    """Give those that once found something, then others until the time is up: new ones in full, else the same."""
    yield from KEPT
    first = secrets.randbits(32) if full else 0
    print(f"seeds from {first}")
    deadline = time.monotonic() + (FULL_S if full else SHORT_S)
    number = first
    while time.monotonic() < deadline:
        yield number
        number += 1


@pytest.mark.fuzz
@pytest.mark.parametrize("level", ["strict", "standard"])
def test_no_program_does_harm_by_what_it_writes(level: str, full: bool) -> None:
    """Ten minutes at each level (3 seconds in short form): no pass, no hang, no wrong innocent, nothing left over."""
    gc.collect()
    gc.freeze()  # what other tests have loaded: a walk of the collector through it is no cost of an evaluation
    before = _state()
    others = set(psutil.Process().children(recursive=True))
    try:
        sandbox = Sandbox(level=level, workers=1, limits=HONEST).start()
    except SandboxUnavailableError as fault:
        pytest.skip(f"this machine does not give level {level!r}: {fault}")
    with sandbox, ThreadPoolExecutor(1) as threads:
        for judged in KINDS.values():
            assert judged(sandbox, HONEST_SOURCE, HONEST).all_passed
        threads.submit(os.getpid).result()
        settled, zygotes = _state(), sandbox.processes
        tried = 0
        for seed in _seeds(full):
            _try(sandbox, threads, seed)
            tried += 1
        print(f"{tried} programs at {level}")
        assert zygotes == sandbox.processes, "a zygote was ended"
        assert wait_for(lambda: settled == _state())
        assert wait_for(lambda: not _left_over())
        below = set(psutil.Process().children(recursive=True)) - others
        assert len(below) <= 3, below
    assert [] == alive(below)
    assert wait_for(lambda: before == _state())
    gc.unfreeze()


def test_a_seed_gives_its_program_again() -> None:
    """What a failure names can be run again, and no two seeds are alike."""
    programs = [draw_program(seed) for seed in range(50)]
    assert programs == [draw_program(seed) for seed in range(50)]
    assert 50 == len({program.source for program in programs})
    for program in programs:
        compile(program.source, "main.py", "exec")
