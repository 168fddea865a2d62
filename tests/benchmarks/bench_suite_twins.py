"""How many tests of real suites have a twin, and whether right code fails each: ``bench_suite_twins.py FOLDER...``.

Each folder is an unpacked source distribution with its own tests. Its suite runs as written, then with all tests
changed that can be, a few draws. A test that passes both is a false catch of right code.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path
from random import Random

from rewardkit.suites.twins import KINDS, SuiteTwins

DRAWS = 3
TIMEOUT_S = 600


def results(folder: Path, files: list[str]) -> dict[str, set[str]]:
    """Run tests; return the outcomes of each function: those of its rows, without their names."""
    report = folder / "report.xml"
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-o",
        "junit_family=xunit1",
        "-W",
        "ignore",
    ]
    environment = {
        **os.environ,
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTHONPATH": os.pathsep.join([str(folder), str(folder / "src")]),
    }
    subprocess.run([*command, f"--junitxml={report}", *files], cwd=folder, env=environment, timeout=TIMEOUT_S,
                   capture_output=True, check=False)  # fmt: skip
    found: dict[str, set[str]] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        file, name = case.get("file", ""), case.get("name", "").partition("[")[0]
        classes = case.get("classname", "").removeprefix(file.removesuffix(".py").replace("/", ".")).strip(".")
        label = "::".join([file, *filter(None, classes.split(".")), name])
        bad = [child.tag for child in case if child.tag in ("failure", "error", "skipped")]
        found.setdefault(label, set()).add(bad[0] if bad else "passed")
    report.unlink()
    return found


def measure(folder: Path) -> None:
    """Print the line of one distribution, and its false catches."""
    with tempfile.TemporaryDirectory() as place:
        work = Path(place) / folder.name
        shutil.copytree(folder, work)
        paths = [
            path for path in work.rglob("*.py") if {"test", "tests"} & {*path.parts} or path.name.startswith("test_")
        ]
        files = {str(path.relative_to(work)): path.read_text(encoding="utf-8") for path in paths}
        twins = SuiteTwins(files)
        suite = sorted({test.name.partition("::")[0] for test in twins.tests})
        before = results(work, suite)
        right = {test.name: test for test in twins.tests if before.get(test.name) == {"passed"}}
        kinds = Counter(test.kind or "weak" for test in right.values())
        asserts, places = (sum(getattr(test, name) for test in right.values()) for name in ("asserts", "perturbable"))
        caught: Counter[str] = Counter()
        drawn = [name for name, test in right.items() if test.kind and name not in twins.disturbed]
        for seed in range(DRAWS):
            changed = twins.draw(
                [name for name, test in right.items() if test.kind and name not in twins.disturbed], Random(seed)
            ).files
            for name in suite:
                (work / name).write_text(changed[name], encoding="utf-8")
            after = results(work, suite)
            for name, test in right.items():
                if name in drawn and "passed" in after.get(name, {"passed"}):
                    caught[f"{name} ({test.kind})"] += 1
    shares = " | ".join(str(kinds[kind]) for kind in (*KINDS, "weak"))
    print(f"| {folder.name} | {len(right)} | {shares} | {places} of {asserts} | {len(caught)} |", flush=True)
    for name, count in caught.items():
        print(f"  passes both, {count} of {DRAWS} draws: {name}", flush=True)


if __name__ == "__main__":
    print(f"| suite | tests that pass | {' | '.join(KINDS)} | weak | asserts | false catches |", flush=True)
    for argument in sys.argv[1:]:
        measure(Path(argument))
