"""What real suites cost as canaries, and whether right code is accused: ``bench_check_suite.py PACKAGE...``.

Each package is a source distribution, packed or not, with its own tests, which are its expected ones where they pass as
they are. A verdict other than ``passed`` on the distribution's own code is a false catch.

``bench_check_suite.py --tasks FOLDER RECORD [PATTERN [CONFIDENCE]]`` grades the tasks of a folder that the script of
``docs/examples/seeded_bugs`` wrote, with the solution and as they are, adds a line of JSON for each to the file RECORD,
and prints the table of all its lines. Tasks that have a line already are not graded again; a pattern of names chooses
among the others.
"""

from __future__ import annotations

import json
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from rewardkit import SealedWorkspace, SuiteVerdict, check_suite, from_harbor
from rewardkit.harbor.seeded_bugs import read_package

TIMEOUT_S = 300.0


def measure(folder: Path) -> bool:
    """Print the line of one distribution; return whether its own code is accused."""
    package = read_package(folder)
    workspace, tests = package.sources, package.tests
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


def grade_task(folder: Path, confidence: float) -> dict[str, Any]:
    """Return what becomes of a task's solution, and of the folder as the agent finds it."""
    task = from_harbor(folder)
    began = time.perf_counter()
    right = task.grade(task.solved(), confidence=confidence)
    seconds = time.perf_counter() - began
    wrong = task.grade(SealedWorkspace(task.start))
    suite = right.suite or SuiteVerdict(right.status)
    return {
        "task": folder.name,
        "package": task.metadata["package"],
        "fixed": right.status.value,
        "unfixed": wrong.status.value,
        "tests": len(right.results),
        "weak": len(suite.weak),
        "runs": suite.runs,
        "confidence": confidence,
        "seconds": round(seconds, 2),
        "reason": "" if right.passed else right.reason()[:600],
    }


def grade_tasks(folder: Path, record: Path, pattern: str = "*", confidence: str = "1e-3") -> None:
    """Grade the tasks of a folder that have no line yet, the first of each package first, and print the table."""
    graded = {line["task"] for line in lines_of(record)}
    tasks = [path.parent for path in folder.glob(f"{pattern}/task.toml") if path.parent.name not in graded]
    for task in sorted(tasks, key=lambda task: (int(task.name.rpartition("-")[2]), task.name)):
        line = grade_task(task, float(confidence))
        with record.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        if (line["fixed"], line["unfixed"]) != ("passed", "failed"):
            print(line, flush=True)
    print_table(lines_of(record))


def lines_of(record: Path) -> list[dict[str, Any]]:
    """Return the lines of a record; a file that is not there has none yet."""
    texts = record.read_text(encoding="utf-8").splitlines() if record.exists() else []
    return [{"confidence": 1e-3, **json.loads(text)} for text in texts]


def print_table(lines: list[dict[str, Any]]) -> None:
    """Print the figures of each package, and of all."""
    by_package: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in lines:
        by_package[line["package"]].append(line)
    print("| package | tasks | tests | weak | runs |\n|---|---|---|---|---|")
    for name, own in sorted(by_package.items()):
        surest = min(line["confidence"] for line in own)
        sure = [line for line in own if line["confidence"] == surest]
        weak = sum(line["weak"] for line in sure) / max(1, sum(line["tests"] for line in sure))
        runs = " to ".join(map(str, sorted({min(counts := [line["runs"] for line in sure]), max(counts)})))
        print(f"| {name} | {len(own)} | {own[0]['tests']} | {weak:.0%} | {runs} |")
    fixed, unfixed = (
        sum(line[key] == status for line in lines) for key, status in (("fixed", "passed"), ("unfixed", "failed"))
    )
    canaries = sum(line["runs"] - 1 for line in lines)
    print(
        f"{len(lines)} tasks of {len(by_package)} packages: {fixed} solutions pass, {unfixed} unfixed fail, "
        f"{len(lines) - fixed} accused; {canaries:,} canaries"
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--tasks"]:
        grade_tasks(Path(sys.argv[2]), Path(sys.argv[3]), *sys.argv[4:6])
    else:
        accused = [folder for folder in sys.argv[1:] if measure(Path(folder))]
        print(f"{len(accused)} of {len(sys.argv) - 1} accused")
