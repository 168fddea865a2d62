"""Makes tasks of seeded bugs: small mistakes in packages that bring their own tests, each a folder in Harbor's form.

    python docs/examples/seeded_bugs/seeded_bugs.py --output tasks --count 10 inflection tabulate 'xmltodict==1.0.4'

A source distribution is fetched with pip, once, into rewardkit's cache folder; from then on nothing needs a network.
What pip runs to read a distribution's name and version is the distribution's own code, so name packages that you trust;
its tests and sources run in the jail alone. Without names the packages of ``packages.txt`` are used.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from random import Random

from rewardkit.errors import SuiteError
from rewardkit.harbor.seeded_bugs import PackageWithTests, read_package, seed_bugs, with_passing
from rewardkit.harbor.task_folder import write_task
from rewardkit.loading.packages import cache_folder

BACKENDS = ("setuptools", "wheel", "hatchling", "hatch-vcs", "hatch-fancy-pypi-readme", "flit-core", "poetry-core",
            "setuptools-scm", "pdm-backend")  # fmt: skip
"""What most distributions are built with: installed once, so that pip does not do so for each."""
LIST = Path(__file__).with_name("packages.txt")


def main() -> None:
    """Fetch the packages, and write the tasks of those whose suites pass and are quick."""
    options = _options()
    names = options.packages or [line for line in LIST.read_text(encoding="utf-8").split() if line]
    sources = options.cache or cache_folder() / "sdists"
    tasks = 0
    for requirement in names:
        path = fetched(requirement, sources)
        if path is None:
            print(f"{requirement:32} left out: there is no source distribution of it that pip can read", flush=True)
            continue
        made, line = make_tasks(path, options.output, options.count, options.seed, options.most_s)
        tasks += made
        print(f"{path.name:32} {line}", flush=True)
    print(f"{tasks} tasks in {options.output}")


def fetched(requirement: str, folder: Path) -> Path | None:
    """Return a source distribution, from the cache or from the package index; ``None`` where there is none."""
    folder.mkdir(parents=True, exist_ok=True)
    name, _, version = requirement.partition("==")
    plain = re.sub(r"[-_.]+", "[-_.]", name)
    pattern = re.compile(rf"{plain}-{re.escape(version) or '[0-9].*'}\.(tar\.gz|zip)", re.IGNORECASE)
    for _ in range(2):
        paths = sorted(path for path in folder.iterdir() if pattern.fullmatch(path.name))
        if paths:
            return paths[-1]
        _download(requirement, folder)
    return None


def _download(requirement: str, folder: Path) -> None:
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    backends = folder / "backends"
    if not backends.is_dir():
        subprocess.run([*pip, "install", "--no-compile", "--target", backends, *BACKENDS], check=True)  # noqa: S603
    plain = ["download", "--no-deps", "--no-binary", ":all:", "--no-build-isolation", "--dest", str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(backends)}
    subprocess.run([*pip, *plain, requirement], env=environment, check=False, capture_output=True)  # noqa: S603


def make_tasks(path: Path, output: Path, count: int, seed: int, most_s: float) -> tuple[int, str]:
    """Write the tasks of one package; return how many, and what is to be said of it."""
    try:
        package, suite_s = tested(path, most_s)
    except SuiteError as wrong:
        return 0, f"left out: {wrong}"
    if not package.passing:
        return 0, "left out: none of its tests passes in the jail, or they take too long"
    tasks = 0
    for bug in seed_bugs(package, count, Random(f"{seed} {package.name}"), timeout_s=10 * suite_s + 5):
        tasks += 1
        write_task(bug, output, tasks)
    return tasks, f"{tasks:3} tasks, {len(package.passing):5} tests in {suite_s:.1f} s"


def tested(path: Path, most_s: float) -> tuple[PackageWithTests, float]:
    """Return a package with its tests that pass, and the seconds that its suite takes."""
    package = read_package(path)
    began = time.perf_counter()
    package = with_passing(package, most_s)
    return package, (time.perf_counter() - began) / 2


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("packages", nargs="*", help="requirements, such as inflection or inflection==0.5.1")
    parser.add_argument("--output", type=Path, default=Path("tasks"), help="the folder of tasks")
    parser.add_argument("--count", type=int, default=10, help="tasks of each package")
    parser.add_argument("--seed", type=int, default=0, help="what the mistakes are drawn from")
    parser.add_argument("--most-s", type=float, default=20.0, help="seconds that a suite may take")
    parser.add_argument("--cache", type=Path, help="where source distributions are kept")
    return parser.parse_args()


if __name__ == "__main__":
    main()
