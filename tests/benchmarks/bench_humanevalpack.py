"""Judges HumanEvalPack by its own tests in the jail: right solutions accepted, buggy ones refused, rows not judged.

    python tests/benchmarks/bench_humanevalpack.py [cpp|javascript ...] [--first N] [--rows N] [--data F] [--workers N]

Each row is judged twice by ``check_suite``, with a limit of 3 s: its canonical solution and its buggy one. It exits
with 1 where a right solution is not accepted, a buggy one is, or the sandbox failed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sandbox import Limits, Sandbox, check_suite, why_not_run
from sandbox.errors import CheckError

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))
from humanevalpack import FILES, NOT_JUDGED, PackRow, read_rows

ROOT = Path(__file__).parents[2]
LIMITS = Limits(timeout_s=3.0)


def judge(sandbox: Sandbox, language: str, row: PackRow) -> tuple[str, str]:
    """Return the status of the canonical and of the buggy solution, or why the row is at fault."""
    statuses = []
    for source in (row.canonical, row.buggy):
        try:
            check = check_suite(sandbox, source, row.suite, language, limits=LIMITS).checks[0]
            statuses.append(f"{check.status}" if check.status == "passed" else f"{check.status}: {check.reason}")
        except CheckError as error:
            statuses.append(f"not judged: {error}")
    return statuses[0], statuses[1]


def report(language: str, rows: Sequence[PackRow], statuses: Iterable[tuple[str, str]]) -> bool:
    """Print what becomes of a language's rows as they end, and return whether all is as it must be."""
    accepted = buggy_accepted = 0
    is_sound = True
    for row, (canonical, buggy) in zip(rows, statuses, strict=True):
        accepted += canonical == "passed"
        buggy_accepted += buggy == "passed"
        known = NOT_JUDGED.get((language, row.number))
        if canonical != "passed" or buggy == "passed" or "infrastructure" in buggy:
            reason = f"known ({known}), " if known else ""
            print(f"  {row.number}: {reason}{canonical[:160]} | buggy: {buggy[:80]}", flush=True)
            is_sound = is_sound and known is not None and buggy != "passed"
    print(f"{language}: {accepted} of {len(rows)} right solutions accepted, {buggy_accepted} buggy ones accepted")
    return is_sound


def main() -> None:
    """Judge the rows of each language."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("languages", nargs="*", default=sorted(FILES))
    parser.add_argument("--first", type=int, default=0, help="the first row")
    parser.add_argument("--rows", type=int, default=164)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    is_sound = True
    with Sandbox(workers=arguments.workers) as sandbox, ThreadPoolExecutor(arguments.workers) as threads:
        for language in arguments.languages:
            if reason := why_not_run(language):
                print(f"left out: {reason}", file=sys.stderr)
                continue
            rows = read_rows(arguments.data, language)[arguments.first :][: arguments.rows]
            began = time.perf_counter()
            statuses = threads.map(lambda row, name=language: judge(sandbox, name, row), rows)
            is_sound = report(language, rows, statuses) and is_sound
            print(f"  {time.perf_counter() - began:.0f} s")
    sys.exit(not is_sound)


if __name__ == "__main__":
    main()
