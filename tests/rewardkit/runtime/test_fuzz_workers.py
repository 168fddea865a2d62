"""Hostile calls drawn from seeds, among innocents: nothing hangs, no innocent is wrong, and nothing is left."""

from __future__ import annotations

import concurrent.futures
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import fuzz_workers
import pytest
from patience import LONG_S, wait_for

FULL_S, SHORT_S = 1200, 5
SIDE_BY_SIDE = 2
"""Fuzzers at once in full; in short form there is one."""
FIRST_SEED = 1003
"""Of the short form, which draws the same sessions each time; in full there are new ones."""
SEEDS_APART = 100_000
LATE_S = 600.0
"""Seconds beyond its own time that only a fuzzer which never ends takes: every session has a bound of its own."""
SHOWN_CHARS = 5000
ONCE_WRONG = (
    ("shortens/1@now", "writes/3@now", "writes_zeros/1@now", "forks_twice/3@now | forks/1@now"),
    ("threads: empties_module/1@now | patches/472@now", "loop: freezes_clock/1@now | sets_up_loop/11@later"),
    ("is_traced/1@now | signals_starter/1@now", "plans_a_crash/1@now | sets_alarm/2@now | sets_alarm/1@now"),
    ("loop: stops_loop/1@now | cancels_everything/1@now | patches_loop/1@now", "loop: empties_loop/1@now"),
    ("threads: closes/12@later | shuts_down/12@later", "loop: patches_loop/12@later | signals_itself/234@later"),
    ("patches_names/3@now patches_builtins/23@later | patches_names/10@thread | seeds/3@now traces/12@later",),
)
"""Sessions that once went wrong, those of a row one after another; the very first ended the trainer."""
SEEDS_ONCE_WRONG = (1017, 5031, 20035, 300197)


def _fuzz(folder: Path, *arguments: str, takes_s: float = 0.0) -> str:
    """Run the fuzzer in a process of its own, for what workers do may end it; give what it told where it failed."""
    folder.mkdir()
    told = folder / "told.txt"
    with told.open("w") as file:
        fuzzer = subprocess.Popen(
            [sys.executable, fuzz_workers.__file__, *arguments],
            env=fuzz_workers.environment(PYTHONPATH=os.pathsep.join(filter(None, sys.path))),
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
    ending = f"exit code {code}; everything that it started is gone: {gone}"
    return "" if code == 0 and gone else "\n".join([*_wrong(told.read_text()), ending])


def _wrong(told: str) -> list[str]:
    """Give what was told of the sessions that did not go right, each cut off where it is long."""
    sessions = re.split(r"(?m)^(?=(?:seed|script) .*: begins: )", told)
    right = re.compile(r"(?m)^.*: ended after [\d.]+ s: right$")
    return [one[:SHOWN_CHARS] for one in sessions if one and not right.search(one)]


def _all_right(folder: Path, runs: list[list[str]], takes_s: float = 0.0) -> None:
    """Run fuzzers side by side, for they wait most of the time, and fail with what they told."""
    with concurrent.futures.ThreadPoolExecutor(len(runs)) as side_by_side:
        runners = [
            side_by_side.submit(_fuzz, folder / str(number), *run, takes_s=takes_s) for number, run in enumerate(runs)
        ]
    failures = [words for runner in runners if (words := runner.result())]
    if failures:
        pytest.fail("\n\n".join(failures), pytrace=False)


@pytest.mark.fuzz
def test_what_once_went_wrong_goes_right(tmp_path: Path, full: bool) -> None:
    """Acts that once hung a batch, ended the trainer, cost an innocent its score or left something do so no more.

    In short form every second row of them, and one seed.
    """
    scripts, seeds = (ONCE_WRONG, SEEDS_ONCE_WRONG) if full else (ONCE_WRONG[::2], SEEDS_ONCE_WRONG[:1])
    runs = [[part for script in row for part in ("--script", script)] for row in scripts]
    _all_right(tmp_path, runs + [[str(seed)] for seed in seeds])


@pytest.mark.fuzz
def test_hostile_calls_of_any_seed_cost_themselves_alone(tmp_path: Path, full: bool) -> None:
    """Twenty minutes of sessions (seconds in short form) in every lane; a failure names its seed."""
    first, takes_s, fuzzers = (
        (random.SystemRandom().randrange(10**6), FULL_S, SIDE_BY_SIDE) if full else (FIRST_SEED, SHORT_S, 1)
    )
    seeds = [first + number * SEEDS_APART for number in range(fuzzers)]
    _all_right(tmp_path, [[str(seed), "--for", str(takes_s)] for seed in seeds], takes_s)
