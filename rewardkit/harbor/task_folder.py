"""Writes a seeded bug as a folder in Harbor's form: instruction, environment, tests and solution."""

from __future__ import annotations

import importlib.metadata
import json
import os
import shlex
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from rewardkit.errors import SuiteError
from rewardkit.harbor.seeded_bugs import SeededBug

_MOST_NAMED = 5
_MOST_CHARS = 300
_VERSION = "1.1"
_PYTHON = "python:3.11-slim"


def write_task(bug: SeededBug, folder: str | os.PathLike[str], number: int, *, timeout_s: float = 600.0) -> Path:
    """Write a task as a folder of its own below another one, and return its path.

    Args:
        bug: What is to be repaired.
        folder: The folder of tasks; the task's is named by the package and the number.
        number: Which of the package's tasks it is.
        timeout_s: Seconds that the tests may take.

    Raises:
        SuiteError: The task is there already.
        OSError: It cannot be written.
    """
    target = Path(folder, f"{bug.package.name}-{number}")
    if target.exists():
        raise SuiteError(f"task {str(target)!r:.200}: is there already; give another folder, or remove it")
    modules = sorted({name.split("::")[0] for name in bug.package.passing})
    _write(target, {"task.toml": _task_file(bug, number, timeout_s), "instruction.md": _instruction(bug)})
    _write(target / "environment", {**bug.workspace().files, "Dockerfile": _dockerfile(bug)})
    tests = {name.removeprefix("tests/"): content for name, content in bug.package.tests.items()}
    _write(target / "tests", {**tests, "test.sh": _test_script(modules, bug.package.broken)})
    original = bug.package.sources.files[bug.file]
    _write(target / "solution", {f"files/{bug.file}": original, "solve.sh": _SOLVE})
    return target


_SOLVE = "#!/bin/bash\ncp -r /solution/files/. /app/\n"


def _task_file(bug: SeededBug, number: int, timeout_s: float) -> str:
    failing, passing = list(bug.failing), bug.passing
    difficulty = "hard" if len(failing) == 1 else "medium" if len(failing) <= _MOST_NAMED else "easy"
    sections: dict[str, Mapping[str, object]] = {
        "task": {
            "name": f"seeded/{bug.package.name}-{number}",
            "description": f"Repair {bug.package.name}, in which a small mistake makes {len(failing)} tests fail.",
            "keywords": ["python", "debugging"],
        },
        "metadata": {
            "difficulty": difficulty,
            "category": "debugging",
            "package": bug.package.name,
            "file": bug.file,
            "change": bug.label,
            "packages": list(bug.package.packages),
            "fail_to_pass": failing,
            "pass_to_pass": passing,
        },
        "verifier": {"timeout_sec": timeout_s},
        "agent": {"timeout_sec": 1800.0},
        "environment": {"build_timeout_sec": 600.0, "cpus": 1, "memory_mb": 2048, "storage_mb": 4096},
    }
    parts = [f'schema_version = "{_VERSION}"']
    for section, values in sections.items():
        parts.append("\n".join([f"[{section}]", *(f"{name} = {_toml(value)}" for name, value in values.items())]))
    return "\n\n".join(parts) + "\n"


def _toml(value: object) -> str:
    """Return a value as TOML writes it."""
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _instruction(bug: SeededBug) -> str:
    lines = [
        f"# Repair {bug.package.name}",
        "",
        f"The folder `/app` has the sources of {bug.package.name}, a Python package, without its tests.",
        f"Since a change {len(bug.failing)} of its {len(bug.package.passing)} tests "
        f"{'fails' if len(bug.failing) == 1 else 'fail'}:",
        "",
    ]
    for name, message in list(bug.failing.items())[:_MOST_NAMED]:
        lines.append(f"- `{name}`")
        lines += [f"  {line}" for line in ("", "```", message[:_MOST_CHARS].replace("```", "'''"), "```")] * bool(
            message
        )
    if len(bug.failing) > _MOST_NAMED:
        lines.append(f"- and {len(bug.failing) - _MOST_NAMED} more")
    return "\n".join(
        [
            *lines,
            "",
            "Find the mistake in the sources and repair it there.",
            "Everything else stays as it is: all tests must pass in the end, and they run with files of their own.",
            "",
        ]
    )


def _dockerfile(bug: SeededBug) -> str:
    packages = " ".join(_pinned(["pytest", *bug.package.packages]))
    return f"FROM {_PYTHON}\nRUN pip install --no-cache-dir {packages}\nWORKDIR /app\nCOPY . /app\n"


def _pinned(packages: Iterable[str]) -> list[str]:
    return [f"{name}=={importlib.metadata.version(name)}" for name in packages]


def _test_script(modules: Collection[str], broken: Iterable[str]) -> str:
    """Return a script that runs the files of tests and writes the reward, 1 or 0."""
    files = [shlex.quote(f"/{module}") for module in modules]
    left_out = [f"--deselect={shlex.quote(name)}" for name in broken]
    lines = [
        "#!/bin/bash",
        "cd /app",
        "export PYTHONPATH=/app:/app/src",
        *([f"export PYTEST_ADDOPTS={shlex.quote(' '.join(left_out))}"] if left_out else []),
        f"if python -m pytest -q -p no:cacheprovider --rootdir=/ {' '.join(files)}; then",
        "  echo 1 > /logs/verifier/reward.txt",
        "else",
        "  echo 0 > /logs/verifier/reward.txt",
        "fi",
    ]
    return "\n".join([*lines, ""])


def _write(folder: Path, files: Mapping[str, str | bytes]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        if name.endswith(".sh"):
            path.chmod(0o755)
