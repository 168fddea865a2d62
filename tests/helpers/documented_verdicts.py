"""Verdicts as recipes and guides have them: read from their files and pages, and asked of the integrity suite's task.

Each function takes a task and a completion and says whether that passes; the suite loads it as any other harness.
What is written here hands a row to what the page shows, and nothing of it decides.
"""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```python[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def _block(page: str, sign: str) -> str:
    """Return the one block of a page that has a text."""
    (block,) = (text for text in _BLOCK.findall((ROOT / "docs" / page).read_text(encoding="utf-8")) if sign in text)
    return block


def _names_of(page: str, sign: str, folder: str, **changes: str) -> dict[str, Any]:
    """Return the names that a page's block binds, as a file in a folder, with some texts written for this task."""
    text = _block(page, sign)
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    path = Path(folder, "documented.py")
    path.write_text(text, encoding="utf-8")
    return runpy.run_path(str(path))


def _scored(rewards: list[Any], prompt: str, completion: str, row: dict[str, Any]) -> float:
    from rewardkit import Rollout, Runtime

    with Runtime(rewards, workers=1) as runtime:
        return runtime.score([Rollout(prompt, completion, row)]).totals[0] or 0.0


def _recipe(name: str, reward: str) -> Any:
    from rewardkit.loading.registry import resolve

    return resolve(f"{ROOT}/rewardkit/recipes/{name}/{name}.py:{reward}")


def code_with_tests(task: Any, completion: Any) -> float:
    """The recipe's reward over a row like its own."""
    row = {"tests": "\n".join(task.asserts)}
    return _scored([_recipe("code_with_tests", "tested")], task.prompt, f"```python\n{completion.text}\n```", row)


def mathematics(task: Any, completion: Any) -> float:
    """A box alone earns a tenth: what is above half is paid for being right."""
    return float(_scored([_recipe("mathematics", "solved")], "q", completion.text, {"answer": str(task.gold)}) > 0.5)


def long_reasoning(task: Any, completion: Any) -> float:
    """Form alone earns three tenths."""
    row = {"answer": str(task.gold)}
    return float(_scored([_recipe("long_reasoning", "reasoned")], "q", completion.text, row) > 0.5)


def solved_by_the_agent(task: Any, completion: Any) -> float:
    """``solved`` of the guide to tool agents, whose other rewards need the environment."""
    sys.modules["desk"] = type(sys)("desk")
    sys.modules["desk"].Desk = object  # type: ignore[attr-defined]
    solved = _names_of("how-to/train-a-tool-agent.md", "# agent_rewards.py", _above(completion))["solved"]
    check = " and ".join(line.removeprefix("assert ") for line in task.asserts)
    return _of_workspace(solved, completion, check=check)


def fixed_by_the_agent(task: Any, completion: Any) -> float:
    """``fixed`` of the guide to tool agents, with this task beside its own."""
    names = _names_of("how-to/train-a-tool-agent.md", "# repairs.py", _above(completion))
    names["TASKS"]["blend"] = ({}, {"test_solution.py": task.pytest})
    return _of_workspace(names["fixed"], completion, task="blend")


def fixed_repository(task: Any, completion: Any) -> float:
    """``fixed`` of the guide to repositories, with this task's suite in place of its own."""
    named = {"tests/test_shapes.py::test_area[12-144]": "tests/test_shapes.py::test_case_0"}
    names = _names_of("how-to/grade-a-repository.md", "def fixed(workspace: Workspace)", _above(completion), **named)
    names["TESTS"]["tests/test_shapes.py"] = task.pytest
    return _of_workspace(names["fixed"], completion)


def harbor_task(task: Any, completion: Any) -> float:
    """The guide's reward over a task in Harbor's form."""
    solved = _names_of("how-to/grade-a-repository.md", "def solved(workspace: Workspace", _above(completion))["solved"]
    return _of_workspace(solved, completion, task=_written_task(task, completion))


def seeded_bugs(task: Any, completion: Any) -> float:
    """The recipe's reward over the same."""
    names = _names_of("how-to/grade-a-repository.md", "def repaired(workspace: Workspace", _above(completion))
    repaired = names["repaired"]
    return _of_workspace(repaired, completion, task=_written_task(task, completion))


def _above(completion: Any) -> str:
    return str(Path(completion.folder).parent)


def _written_task(task: Any, completion: Any) -> str:
    folder = Path(_above(completion), "task")
    files = {
        "task.toml": 'version = "1.0"\n[verifier]\ntimeout_sec = 20.0\n',
        "instruction.md": task.prompt,
        "environment/solution.py": "def blend(a, b):\n    pass\n",
        "environment/Dockerfile": "FROM python:3.11-slim\nWORKDIR /app\nCOPY . /app\n",
        "tests/test.sh": "#!/bin/bash\npytest /tests/test_outputs.py -rA\n",
        "tests/test_outputs.py": f'import sys\n\nsys.path.insert(0, "/app")\n{task.pytest}',
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return str(folder)


def _of_workspace(reward: Any, completion: Any, **row: str) -> float:
    return _scored([reward], "Mend it.", "Done.", {"workspace": completion.folder, **row})
