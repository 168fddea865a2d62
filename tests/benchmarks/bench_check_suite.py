"""What real suites cost as canaries, and whether right code is accused: ``bench_check_suite.py FOLDER...``.

Each folder is an unpacked source distribution with its own tests, which are its expected ones where they pass as they
are. A verdict other than ``passed`` on the distribution's own code is a false catch.
"""

from __future__ import annotations

import fnmatch
import sys
import time
from pathlib import Path

from rewardkit.jailed.sealed import SealedWorkspace
from rewardkit.suites.grading import check_suite

TIMEOUT_S = 300.0
TESTS = ("test/*", "tests/*", "*/tests/*", "*/test/*", "test_*.py", "tests.py", "*_test.py")


def split(folder: Path) -> tuple[SealedWorkspace, dict[str, bytes]]:
    """Return a distribution's files, and those of its tests."""
    files = {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }
    tests = {
        name: data
        for name, data in files.items()
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in TESTS) or name.endswith(("conftest.py", "pytest.ini"))
    }
    return SealedWorkspace({name: data for name, data in files.items() if name not in tests}), tests


def measure(folder: Path) -> bool:
    """Print the line of one distribution; return whether its own code is accused."""
    workspace, tests = split(folder)
    began = time.perf_counter()
    written = check_suite(workspace, tests, confidence=1.0, timeout_s=TIMEOUT_S)
    once_s = time.perf_counter() - began
    names = [result.name for result in written.results if result.outcome == "passed"]
    if not names:
        print(f"{folder.name:28} {written.status}: {written.reason()[:200]}")
        return False
    began = time.perf_counter()
    verdict = check_suite(workspace, tests, expected=names, timeout_s=TIMEOUT_S)
    ratio = (time.perf_counter() - began) / once_s
    weak = len(verdict.weak) / len(names)
    print(
        f"{folder.name:28} {verdict.status:8} {len(names):5} tests of {len(written.results):5}, weak {weak:4.0%}, "
        f"runs {verdict.runs:2}, once {once_s:5.1f} s, {ratio:4.1f} times that",
        flush=True,
    )
    if not verdict.passed:
        print(f"    {verdict.reason()[:600]}", flush=True)
    return not verdict.passed


if __name__ == "__main__":
    accused = [folder for folder in sys.argv[1:] if measure(Path(folder))]
    print(f"{len(accused)} of {len(sys.argv) - 1} accused")
