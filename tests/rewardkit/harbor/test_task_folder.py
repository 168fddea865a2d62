"""A seeded bug as a folder in Harbor's form: what each file says, and that its own script gives the reward."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from rewardkit import SealedWorkspace
from rewardkit.errors import SuiteError
from rewardkit.harbor.seeded_bugs import PackageWithTests, SeededBug
from rewardkit.harbor.task_folder import write_task

TESTS = """\
import shapes
import pytest

def test_area():
    assert shapes.area(3) == 9

@pytest.mark.parametrize("text", ['a"b', "c\\\\d", "\\x7f"])
def test_text(text):
    assert shapes.area(1) == 1

def test_broken():
    assert shapes.area(1) == 2
"""
NAMES = [
    f"tests/test_shapes.py::{name}" for name in ("test_area", 'test_text[a"b]', "test_text[c\\\\d]", "test_text[\\x7f]")
]
PACKAGE = PackageWithTests(
    "shapes-1.0",
    SealedWorkspace({"src/shapes.py": b"def area(side):\n    return side * side\n", "README": b"words\n"}),
    {"tests/test_shapes.py": TESTS.encode(), "tests/data.txt": b"1"},
    tuple(NAMES),
    ("tests/test_shapes.py::test_broken",),
)
BUG = SeededBug(
    PACKAGE,
    "src/shapes.py",
    "line 2: '*' becomes '+'",
    b"def area(side):\n    return side + side\n",
    {NAMES[0]: "assert 6 == 9\n```", NAMES[1]: ""},
)


@pytest.fixture
def task(tmp_path: Path) -> Path:
    """The task's folder."""
    return write_task(BUG, tmp_path, 3)


def test_the_task_file_names_the_tests(task: Path) -> None:
    """TOML with the groups, whatever signs stand in the names."""
    values = tomllib.loads((task / "task.toml").read_text(encoding="utf-8"))
    assert ("1.1", "seeded/shapes-1.0-3", "shapes-1.0-3") == (
        values["schema_version"],
        values["task"]["name"],
        task.name,
    )
    assert NAMES[:2] == values["metadata"]["fail_to_pass"]
    assert NAMES[2:] == values["metadata"]["pass_to_pass"]
    assert "medium" == values["metadata"]["difficulty"]
    assert values["verifier"]["timeout_sec"] > 0 < values["agent"]["timeout_sec"]


def test_the_agent_has_the_mistake_and_no_test(task: Path) -> None:
    """Neither the tests, nor the solution, nor a name of what was changed."""
    files = {path.relative_to(task / "environment").as_posix() for path in (task / "environment").rglob("*.*")}
    assert {"src/shapes.py"} == {name for name in files if name.endswith((".py", ".txt"))}
    assert b"side + side" in (task / "environment" / "src" / "shapes.py").read_bytes()
    assert "COPY . /app" in (task / "environment" / "Dockerfile").read_text()
    text = (task / "instruction.md").read_text()
    assert "2 of its 4 tests fail" in text
    assert "assert 6 == 9" in text
    assert text.count("```") == 2
    assert BUG.label not in text
    assert "side * side" not in text


@pytest.mark.parametrize("is_solved", [True, False], ids=["solved", "as it is"])
def test_its_own_script_gives_the_reward(task: Path, tmp_path: Path, is_solved: bool) -> None:
    """1 for the solution and 0 without it; a test that never passed does not count."""
    script = (task / "solution" / "solve.sh").read_text() * is_solved + (task / "tests" / "test.sh").read_text()
    app, logs, tests = tmp_path / "app", tmp_path / "logs", tmp_path / "tests"
    for folder in (app, logs):
        folder.mkdir()
    (task / "tests").rename(tests)
    for name, folder in (
        ("/app", app),
        ("--rootdir=/", f"--rootdir={tmp_path}"),
        ("/logs/verifier", logs),
        ("/tests/", tests),
        ("/solution", task / "solution"),
    ):
        script = script.replace(name, f"{folder}/" if name.endswith("/") else str(folder))
    subprocess.run(["cp", "-r", f"{task}/environment/.", str(app)], check=True)
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    subprocess.run(["bash", "-c", script], check=True, env=environment, capture_output=True)
    assert f"{int(is_solved)}\n" == (logs / "reward.txt").read_text()


def test_a_task_is_not_written_over_another(task: Path) -> None:
    with pytest.raises(SuiteError, match="is there already"):
        write_task(BUG, task.parent, 3)
