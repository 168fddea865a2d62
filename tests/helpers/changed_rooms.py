"""Prints the tests of the rooms that changed: ``python tests/helpers/changed_rooms.py origin/main``.

Folders of tests mirror those of the packages, so a changed module stands for the tests of its folder. What has no tests
of its own stands for those of the next folder above. `make test-changed` runs what is printed.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[2]
PACKAGES = ("sandbox", "rewardkit", "builtin_rewards", "trainer_adapter")
ALWAYS = ("tests/rewardkit/test_public_api.py", "tests/test_contracts.py", "tests/test_names.py")
"""What holds for all packages, whatever changed."""
OTHERS = {
    ".github": ("tests/test_workflows.py",),
    "Makefile": ("tests/test_makefile.py", "tests/test_workflows.py"),
    "pyproject.toml": ("tests/test_makefile.py",),
    "CONTRIBUTING.md": (),
    "CHANGELOG.md": (),
}
"""The tests of files that belong to no package; pages of Markdown that are not named here have those of the docs."""


def selected_tests(changed: Iterable[str], root: Path = ROOT) -> list[str]:
    """Return files of tests, relative to the root, for changed files, some of which may be gone."""
    tests = {*ALWAYS, *(test for path in changed for test in _tests_of_file(PurePosixPath(path), root))}
    return sorted(test for test in tests if (root / test).exists())


def _tests_of_file(path: PurePosixPath, root: Path) -> Iterator[str]:
    first = path.parts[0]
    if first == "tests" and path.name.startswith("test_"):
        yield str(path)
    elif path.parts[:2] in (("tests", "helpers"), ("tests", "generators")):
        yield from _importers(path.stem, root)
    elif first in PACKAGES:
        yield from _tests_of_module(path, root)
    elif first in OTHERS:
        yield from OTHERS[first]
    elif first == "docs" or path.suffix == ".md":
        yield from ("tests/test_docs.py", "tests/test_docs_yaml.py")


def _tests_of_module(path: PurePosixPath, root: Path) -> Iterator[str]:
    """Yield the tests of a module's folder; of a package's own modules those that have the module's name, if any do.

    A package's own folder has tests of everything that is loose there, and many for one module.
    """
    named = PurePosixPath("tests", *path.parent.parts, f"test_{path.stem}.py")
    if len(path.parts) == 2 and (root / named).exists():
        yield str(named)
        return
    for folder in (path.parent, *path.parent.parents):
        files = sorted((root / "tests" / folder).glob("test_*.py")) if folder.parts else []
        if files:
            yield from (file.relative_to(root).as_posix() for file in files)
            return


def _importers(module: str, root: Path) -> Iterator[str]:
    """Yield the files of tests that import a module of ``tests/helpers`` or ``tests/generators``."""
    imports = re.compile(rf"^\s*(?:from|import) (?:[\w.]+\.)?{re.escape(module)}\b", re.MULTILINE)
    for file in sorted((root / "tests").rglob("test_*.py")):
        if imports.search(file.read_text(encoding="utf-8")):
            yield file.relative_to(root).as_posix()


def changed_since(base: str, root: Path = ROOT) -> list[str]:
    """Return the files that differ from where this branch left another, and those that git does not know yet."""
    commands = (["diff", "--name-only", f"{base}...HEAD"], ["diff", "--name-only", "HEAD"])
    commands += (["ls-files", "--others", "--exclude-standard"],)
    outputs = [
        subprocess.run(["git", *command], cwd=root, capture_output=True, text=True, check=True).stdout
        for command in commands
    ]
    return sorted({line for output in outputs for line in output.splitlines()})


if __name__ == "__main__":
    print(*selected_tests(changed_since(sys.argv[1])), sep="\n")
