"""What of an agent's folder does not go into the jail beside the tests, because a test runner reads it before them."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping

_CONFIGURATION = frozenset(
    {"conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "pyproject.toml", "setup.cfg"}
    | {"tox.ini", "sitecustomize.py", "usercustomize.py", "noxfile.py", ".coveragerc"}
)
"""Files that pytest reads, or imports, before a test: https://docs.pytest.org/en/stable/reference/customize.html; and
what Python's ``site`` imports: https://docs.python.org/3/library/site.html."""
_BYTECODE = (".pyc", ".pyo", ".pth")
_FOLDERS_OF_TESTS = frozenset({"test", "tests", "testing"})
RUNNER_PACKAGES = ("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments", "exceptiongroup", "py")
"""What pytest imports besides the standard library."""


def import_roots(tests: Iterable[str]) -> list[str]:
    """Return the folders in which a runner looks for modules: the root, ``src`` and those of the tests."""
    return list(dict.fromkeys(["", "src", *(_parent(name) for name in tests)]))


def without_protected(
    files: Mapping[str, bytes], tests: Mapping[str, bytes], modules: Collection[str] = ()
) -> tuple[dict[str, bytes], dict[str, str]]:
    """Return an agent's files that may lie beside the tests, and why others may not, by name.

    Args:
        files: The agent's, by relative name.
        tests: The trusted ones, which stand in the place of the agent's.
        modules: Names of installed modules that must not be shadowed, besides those of Python and of pytest.
    """
    reserved = {*sys.stdlib_module_names, *RUNNER_PACKAGES, *modules}
    roots = import_roots(name for name in tests if name.endswith(".py"))
    folders = {folder for name in tests for folder in _folders_of_tests(name)}
    accepted, left_out = {}, {}
    for name, content in files.items():
        if name in tests:
            if content != tests[name]:
                left_out[name] = "the tests' own stands in its place"
        elif reason := _reason(name, roots, folders, reserved):
            left_out[name] = reason
        else:
            accepted[name] = content
    return accepted, left_out


def _reason(name: str, roots: Iterable[str], folders: Collection[str], reserved: Collection[str]) -> str:
    file = name.rpartition("/")[2]
    if file in _CONFIGURATION:
        return "read before the tests"
    if file.endswith(_BYTECODE):
        return "runs in place of a source, or at Python's start"
    if any(f"{folder}/" in f"{name}/"[: len(folder) + 1] for folder in folders):
        return "in the folder of the tests"
    for root in roots:
        if name.startswith(f"{root}/" if root else ""):
            module = name[len(root) + 1 if root else 0 :].split("/")[0].split(".")[0]
            if module in reserved:
                return f"shadows the module {module!r}"
    return ""


def _folders_of_tests(name: str) -> Iterator[str]:
    """Yield the folder above a test's file that holds tests alone, by its name."""
    parts = name.split("/")[:-1]
    for count, part in enumerate(parts, 1):
        if part in _FOLDERS_OF_TESTS:
            yield "/".join(parts[:count])
            return


def _parent(name: str) -> str:
    return name.rpartition("/")[0]
