"""What the files of a folder cost before a suite runs: ``bench_graded_start.py [FILES] [RUNS]``.

Prints the median and the 95th percentile, in milliseconds, of sealing a folder, and of a run in the jail that suites
have: of a program that does nothing, with the folder's files and with one, and of a suite of one test. Runs follow each
other at once, so each waits until the one before has been cleaned up. At ``standard`` the files lie among the temporary
ones: on a disk that takes its time to make a file, so does the start, and ``TMPDIR`` may name a folder in memory.
"""

from __future__ import annotations

import functools
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from rewardkit import Workspace
from rewardkit.jailed.jail import LEVEL_VARIABLE, close_shared, shared_sandbox
from rewardkit.suites.grading import _limits
from rewardkit.suites.packages import installed_packages
from rewardkit.suites.suite_jail import SuiteJail

TESTS = {"test_s.py": b"from solution import double\ndef test_a():\n    assert double(2) == 4\n"}
FILE_BYTES = 4_000
LEVELS = ("strict", "standard")


def make_folder(folder: Path, count: int) -> Path:
    """Write so many modules, twenty-five in each of some packages, and the one that is tested."""
    for number in range(count - 1):
        path = folder / f"package{number // 25}" / "inner" / f"module{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"VALUE = {number}\n".ljust(FILE_BYTES, "#"))
    (folder / "solution.py").write_text("def double(x):\n    return 2 * x\n")
    return folder


def measure(label: str, act: Callable[[], object], runs: int) -> None:
    """Print how long an act takes, without the first three times."""
    times_ms = []
    for _ in range(runs + 3):
        began = time.perf_counter()
        act()
        times_ms.append(1e3 * (time.perf_counter() - began))
    p50, p95 = np.percentile(times_ms[3:], [50, 95])
    print(f"{label:44} p50 {p50:7.1f} ms  p95 {p95:7.1f} ms", flush=True)


def main(count: int, runs: int) -> None:
    with tempfile.TemporaryDirectory() as top:
        workspace = Workspace(make_folder(Path(top), count))
        measure(f"sealing {count:,} files", workspace.sealed, runs)
        files = dict(workspace.sealed().files)
    packages, single = installed_packages(()), {"solution.py": files["solution.py"]}
    limits = _limits(30.0, files, TESTS)
    for level in LEVELS:
        os.environ[LEVEL_VARIABLE] = level
        close_shared()
        sandbox = shared_sandbox(profile="pytest")
        for label, own in (("1 file", single), (f"{count:,} files", files)):
            start = functools.partial(sandbox.run, "pass", files=own, limits=limits)
            measure(f"{level}: start, {label}", start, runs)
            suite = functools.partial(SuiteJail(own, packages, limits).run, TESTS, [*TESTS])
            measure(f"{level}: a suite of one test, {label}", suite, runs)


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:]]
    main(*[*numbers, *(1_000, 50)[len(numbers) :]])
