"""``rewardkit check`` tells which tasks of a folder train nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from harbor_folders import TASK, write_task
from typer.testing import CliRunner

from rewardkit.cli.program import app
from sandbox import why_not_run

ALL_PASS = {"tests/test_outputs.py": "def test_nothing():\n    pass\n"}
BROKEN = {"solution/solve.sh": "echo 'def area(side): return 1' > /app/shapes.py\n"}


def check(folder: Path, *options: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["check", str(folder), "--examine", "2", *options], prog_name="rewardkit")
    return done.exit_code, done.output


def test_a_sound_task_passes_and_a_flawed_one_is_told(tmp_path: Path) -> None:
    """The solution passes, the rest fails; each fault of another task has its line."""
    if reason := why_not_run("bash"):
        pytest.skip(reason)
    write_task(tmp_path / "sound")
    code, output = check(tmp_path / "sound")
    assert (0, True) == (code, "0 of 2" in output), output
    write_task(tmp_path / "hollow", ALL_PASS)
    write_task(tmp_path / "wrong", BROKEN)
    write_task(tmp_path / "old", {"task.toml": 'version = "2"'})
    write_task(tmp_path / "imaged", {"task.toml": TASK.replace("cpus", "gpus")})
    code, output = check(tmp_path, "--json")
    tasks = {task["task"]: task for task in json.loads(output)["tasks"]}
    assert 1 == code
    assert {"sound"} == {name for name, task in tasks.items() if task["ok"] and not task["needs"]}
    assert ["what the agent finds passes", "an empty folder passes"] == tasks["hollow"]["faults"]
    assert 2 == len(tasks["hollow"]["survivors"])
    assert "its solution: " in tasks["wrong"]["faults"][0]
    assert "tasks of version 1 are read" in tasks["old"]["faults"][0]
    assert (True, None) == (tasks["imaged"]["ok"], tasks["imaged"]["solution"])
    code, output = check(tmp_path)
    assert "3 of 5 tasks tried, 3 with a fault" in output


def test_tasks_that_all_need_an_image_are_not_judged(tmp_path: Path) -> None:
    """Which is no success."""
    write_task(tmp_path / "imaged", {"task.toml": TASK.replace("cpus", "gpus")})
    code, output = check(tmp_path)
    assert (4, True) == (code, "a GPU" in output)


def test_a_task_without_a_solution_is_tried_without_it(tmp_path: Path) -> None:
    """And that is told."""
    code, output = check(write_task(tmp_path, {"solution/solve.sh": None}))
    assert (0, True) == (code, "its solution was not tried" in " ".join(output.split()))
