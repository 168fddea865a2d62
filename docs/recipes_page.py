"""Writes ``docs/how-to/recipes.md`` from the recipes that ``rewardkit new --recipe`` copies.

    python docs/recipes_page.py [--check]

Each recipe's section has its own files, what the commands print, and the scores of completions that cheat. With
``--check`` nothing is written, audits are not run anew, and the exit code is 1 where a section is not what would be
written.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
RECIPES = ROOT / "rewardkit" / "recipes"
PAGE = ROOT / "docs" / "how-to" / "recipes.md"
INTRODUCTION = """# Recipes

Each recipe is a reward for a kind of task, with data, test cases, an audit, and the ways in which a model can game it.
`rewardkit new --recipe NAME` copies its files into a new folder.
Built-in rewards need more than the core: `pip install '.[rewards]'` in a checkout installs it.
The whole set-up of a training is in [Use rewards with TRL](use-with-trl.md).
"""
_AUDITED = re.compile(r"^(?:(?:NOT )?passed|not judged): .*", re.DOTALL | re.MULTILINE)
_SHOWN_CHARS = 90


def written(folder: Path, audited: str) -> str:
    """Return a recipe's section.

    Args:
        folder: The recipe's.
        audited: What ``rewardkit audit`` says at its end.
    """
    about = yaml.safe_load((folder / "recipe.yaml").read_text(encoding="utf-8"))
    name, file = folder.name.replace("_", "-"), f"{folder.name}.py"
    reference = yaml.safe_load((folder / "cases.yaml").read_text(encoding="utf-8"))["reward"]
    attribute = reference.partition(":")[2]
    first = (folder / "rows.jsonl").read_text(encoding="utf-8").splitlines()[0]
    code = (folder / file).read_text(encoding="utf-8")
    sections = [
        f"## {about['title']}",
        f"{about['trains']}",
        f"```console\n$ rewardkit new --recipe {name}\n$ cd {name}\n```",
        f"### {about['title']}: data\n\n{_lines(about['data'])}\n\n```json\n{first}\n```",
        f"### {about['title']}: reward\n\n```python no-run\n# {file}\n{code}```\n\n{_lines(about['reward'])}",
        f"### {about['title']}: cases\n\n```yaml\n{(folder / 'cases.yaml').read_text(encoding='utf-8')}```\n\n"
        f"```console\n$ rewardkit test cases.yaml\n{_tested(folder)}\n```",
        f"### {about['title']}: audit\n\n"
        f"```console\n$ rewardkit audit {reference} rows.jsonl --rows 3\n...\n{audited}\n```\n\n"
        f"{_lines(about['audit'])}",
        f"### {about['title']}: training",
        f"```python no-run\nfrom datasets import load_dataset\nfrom {folder.name} import {attribute}\n"
        "from trainer_adapter import RewardAdapter\nfrom trl import GRPOTrainer\n\n"
        'rows = load_dataset("json", data_files="rows.jsonl", split="train")\n'
        f'adapter = RewardAdapter([{attribute}], record="runs/{name}")\n'
        "trainer = GRPOTrainer(\n"
        '    "HuggingFaceTB/SmolLM2-135M-Instruct", adapter.reward_funcs, train_dataset=rows, '
        "callbacks=[adapter.callback]\n"
        ")\ntrainer.train()\nadapter.close()\n```",
        f"### {about['title']}: how a model games it",
        _cheats(folder, reference, about["cheats"]),
        _lines(about["defence"]),
        _lines(about["next"]),
    ]
    return "\n\n".join(sections) + "\n"


def _lines(text: str) -> str:
    """Return prose with one sentence a line."""
    return re.sub(r"(?<=[.!?]) (?=[A-Z`\[])", "\n", " ".join(text.split()))


def _ran(folder: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "rewardkit", *arguments]
    env = {**os.environ, "COLUMNS": "100", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=env, timeout=600)  # noqa: S603 - ours
    return done.stdout.strip()


def _tested(folder: Path) -> str:
    from typer.testing import CliRunner

    from rewardkit.cli.program import app

    with contextlib.chdir(folder):
        return CliRunner().invoke(app, ["test", "cases.yaml"], prog_name="rewardkit").stdout.strip()


def _audited(folder: Path) -> str:
    reference = yaml.safe_load((folder / "cases.yaml").read_text(encoding="utf-8"))["reward"]
    found = _AUDITED.search(_ran(folder, "audit", reference, "rows.jsonl", "--rows", "3"))
    assert found is not None, folder.name
    return found[0]


def section_of(name: str) -> str:
    """Return a recipe's section of the page as it is now; empty where there is none."""
    text = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    sections = re.split(r"\n(?=## )", text)
    own = [section for section in sections if f"$ rewardkit new --recipe {name}\n" in section]
    return own[0].rstrip("\n") + "\n" if own else ""


def _before(name: str) -> str:
    """Return what a recipe's section says of its audit now."""
    audit = re.search(r"--rows 3\n\.\.\.\n(.*?)\n```", section_of(name), re.DOTALL)
    return audit[1] if audit else ""


def _cheats(folder: Path, reference: str, cheats: list[dict[str, Any]]) -> str:
    from rewardkit import Rollout, Runtime

    rollouts = [
        Rollout(
            one["columns"].get("prompt", ""),
            one["completion"],
            {k: v for k, v in one["columns"].items() if k != "prompt"},
        )
        for one in cheats
    ]
    with Runtime([str(folder / reference)], workers=1) as runtime:
        scores = runtime.score(rollouts).totals
    lines = ["| a completion that cheats | what it does | scores |", "|---|---|---|"]
    for one, score in zip(cheats, scores, strict=True):
        shown = one["completion"] if isinstance(one["completion"], str) else _said(one["completion"])
        shown = " ".join(shown.split())
        shown = shown if len(shown) <= _SHOWN_CHARS else shown[: _SHOWN_CHARS - 1] + "…"
        lines.append(f"| {_in_code(shown)} | {one['words']} | {score:.3g} |")
    return "\n".join(lines)


def _own(cheat: dict[str, Any]) -> dict[str, Any]:
    return {**cheat, "columns": dict(cheat["columns"])}


def _said(messages: list[dict[str, Any]]) -> str:
    calls = [call["function"] for one in messages for call in one.get("tool_calls", ())]
    return " ".join([*(f"{one['name']}({one['arguments']})" for one in calls), str(messages[-1]["content"])])


def _in_code(text: str) -> str:
    text = text.replace("|", "\\|")
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def main() -> int:
    """Write the page, or check it."""
    check = "--check" in sys.argv[1:]
    sections, wrong = [INTRODUCTION], []
    for folder in sorted(one for one in RECIPES.iterdir() if (one / "recipe.yaml").is_file()):
        name = folder.name.replace("_", "-")
        sections.append(written(folder, _before(name) if check else _audited(folder)))
        if check and section_of(name) != sections[-1]:
            wrong.append(name)
    if not check:
        PAGE.write_text("\n".join(sections), encoding="utf-8")
    if wrong:
        print(json.dumps(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
