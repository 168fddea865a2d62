"""Hostile calls drawn from seeds, among innocents: nothing hangs, no innocent is wrong, and nothing is left."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import fuzz_workers
import pytest
from patience import LONG_S, wait_for

FULL_S, SHORT_S = 1200, 40
FIRST_SEED = 1000
"""Of the short form, which draws the same sessions each time; in full there are new ones."""
LATE_S = 600.0
"""Seconds beyond its own time that only a fuzzer which never ends takes: every session has a bound of its own."""
SHOWN_CHARS = 6000
SCRIPTS = (
    "shortens/1@now",
    "writes/3@now",
    "writes_zeros/1@now",
    "forks_twice/3@now | forks/1@now",
    "freezes_clock/1@now | empties_module/1@now",
    "is_traced/1@now | signals_starter/1@now",
    "stops_loop/1@now | cancels_everything/1@now | patches_loop/1@now | empties_loop/1@now",
    "sets_up_loop/11@later",
    "plans_a_crash/1@now | sets_alarm/2@now",
    "closes/12@later | shuts_down/12@later",
)
"""Sessions that once went wrong; the first ended the trainer."""
SEEDS = (1, 6)
"""Seeds whose sessions once went wrong."""


def _fuzz(folder: Path, *arguments: str, takes_s: float = 0.0) -> str:
    """Run the fuzzer in a process of its own, for what workers do may end it; give what it told where it failed."""
    told = folder / "told.txt"
    command = [sys.executable, fuzz_workers.__file__, *arguments]
    with told.open("w") as file:
        path = ":".join(filter(None, sys.path))
        fuzzer = subprocess.Popen(
            command,
            env=fuzz_workers.environment(PYTHONPATH=path),
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
        )
        try:
            code = fuzzer.wait(takes_s + LATE_S)
        except subprocess.TimeoutExpired:
            code = -1
        finally:
            fuzzer.kill()
            fuzzer.wait()
    gone = wait_for(lambda: not fuzz_workers.processes_of(fuzzer.pid), LONG_S)
    for process in fuzz_workers.processes_of(fuzzer.pid):
        process.kill()
    words = told.read_text()[-SHOWN_CHARS:]
    return "" if code == 0 and gone else f"{words}\nexit code {code}; everything it started is gone: {gone}"


@pytest.mark.slow
def test_what_once_went_wrong_goes_right(tmp_path: Path) -> None:
    """Acts and seeds that once hung a batch, cost an innocent its score or left something do so no more."""
    scripts = [part for script in SCRIPTS for part in ("--script", script)]
    assert "" == _fuzz(tmp_path, *scripts)
    for seed in SEEDS:
        assert "" == _fuzz(tmp_path, str(seed))


@pytest.mark.slow
def test_hostile_calls_of_any_seed_cost_themselves_alone(tmp_path: Path, full: bool) -> None:
    """Twenty minutes of sessions (less than one in short form) in every lane; a failure names its seed."""
    first, takes_s = (random.randrange(10**9), FULL_S) if full else (FIRST_SEED, SHORT_S)
    assert "" == _fuzz(tmp_path, str(first), "--for", str(takes_s), takes_s=takes_s)
