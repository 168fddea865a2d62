"""``rewardkit new``: a small reward to begin from, or a recipe, each with its cases and its data.

``docs/how-to/recipes.md`` has a section for each recipe; ``python docs/recipes_page.py`` writes it from the same files.
"""

from __future__ import annotations

import difflib
import importlib.util
import keyword
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from rewardkit.cli.arguments import AsJson, argument, option
from rewardkit.cli.exits import finish
from rewardkit.cli.output import json_line, write_new
from rewardkit.errors import ConfigError
from rewardkit.testing.table import read_table

RECIPES = Path(__file__).parents[1] / "recipes"
_OF_THE_PAGE = "recipe.yaml"
_ROLLOUTS_FILE = "rollouts.jsonl"
_REWARD = r'''"""{title}: 1 for the right answer in a box at the end of the completion, as the prompt asks for it."""

import re

from rewardkit import Score, reward

BOX = re.compile(r"\\boxed\{{(-?[0-9]{{1,15}})\}}\.?\s*$")


@reward(timeout_s=5, score_range=(0, 1))
def {name}(completion: str, answer: int | None) -> Score | None:
    """Return 1 if the completion ends with the answer in its only box, else 0; skip a row without an answer."""
    if answer is None:
        return None
    box = BOX.search(completion)
    if box is None or completion.count("\\boxed") > 1:
        return Score(0.0, reason="no single box at the end")
    return Score(float(int(box[1]) == answer), reason=f"read {{box[1]}}, expected {{answer}}")
'''
_CASES = r"""reward: {name}.py:{name}
cases:
- {{id: right, completion: "2 and 2 are \\boxed{{4}}.", answer: "4", expect: 1}}
- {{id: wrong, completion: "\\boxed{{5}}", answer: "4", expect: 0}}
- {{id: denied, completion: "The answer is not 4.", answer: "4", expect: 0}}
- {{id: two answers, completion: "\\boxed{{4}} or \\boxed{{5}}", answer: "5", expect: 0}}
- {{id: nothing, completion: "", answer: "4", expect: 0}}
- {{id: a row without an answer, completion: "\\boxed{{4}}", answer: null, expect: null}}
"""
_ROWS = r"""{{"prompt": "What is 2 + 2? End with \\boxed{{answer}}.", "answer": "4"}}
{{"prompt": "What is 17 - 20? End with \\boxed{{answer}}.", "answer": "-3"}}
{{"prompt": "What is 18 / 9? End with \\boxed{{answer}}.", "answer": "2"}}
{{"prompt": "What is 12 * 12? End with \\boxed{{answer}}.", "answer": "144"}}
{{"prompt": "How many days do two weeks have? End with \\boxed{{answer}}.", "answer": "14"}}
"""
_FILES = {"{name}.py": _REWARD, "{name}.yaml": _CASES, "{name}.jsonl": _ROWS}
"""The files of a new reward: the reward, its cases and its data, in the order in which they are printed."""


def new_command(
    name: Annotated[str | None, argument("What to call the reward: a Python identifier.", "NAME")] = None,
    folder: Annotated[Path | None, option("The folder to write to.", "DIR", "--dir")] = None,
    recipe: Annotated[str | None, option("Start from a recipe; an unknown name lists them.", "RECIPE")] = None,
    as_json: AsJson = False,
) -> None:
    """Write a small reward to begin from: NAME.py, its test cases NAME.yaml and a few rows of data, NAME.jsonl.

    The reward passes its own test, check and audit. Change it to your task step by step, and run the three again.

    With --recipe the files are those of a whole kind of task, such as json-extraction, mathematics, code-with-tests
    or tool-use. They go to a new folder with the recipe's name; --dir names another folder.

    Files that exist are never overwritten.

    Examples:

    [bold]rewardkit new correct && rewardkit test correct.yaml
    rewardkit new --recipe json-extraction[/]
    """
    if recipe is not None:
        if name is not None:
            raise ConfigError(f"{name!r} and --recipe {recipe!r}: a recipe has a name of its own; give one of them")
        _from_recipe(recipe, folder, as_json=as_json)
        return
    if name is None:
        raise ConfigError("give the NAME of a new reward, or --recipe and one of " + ", ".join(recipe_names()))
    folder = folder or Path()
    _check_name(name, folder)
    title = name.replace("_", " ").strip().capitalize()
    files = {folder / file.format(name=name): text.format(name=name, title=title) for file, text in _FILES.items()}
    for path in files:
        if path.exists() or path.is_symlink():
            raise ConfigError(f"{path} is there already; choose another name, or remove it")
    write_new(folder, files)
    reward_file, test_file, data_file = files
    result = {"reward_file": str(reward_file), "test_file": str(test_file), "data_file": str(data_file)}
    commands: list[list[Path | str]] = [["rewardkit", "test", test_file]]
    commands += [["rewardkit", command, reward_file, data_file] for command in ("check", "audit")]
    _finish(f"{reward_file}, {test_file} and {data_file}", commands, result, as_json=as_json)


def _finish(written: str, commands: Sequence[Sequence[Path | str]], result: dict[str, str], *, as_json: bool) -> None:
    """Print what was written, and the commands to go on with, as a shell takes them."""
    lines = [shlex.join(map(str, command)) for command in commands]
    text = f"wrote {written}\n" + "\n".join(f"{'' if index else 'next:':<7}{line}" for index, line in enumerate(lines))
    finish(result, lambda: typer.echo(text), as_json=as_json)


def _from_recipe(recipe: str, folder: Path | None, *, as_json: bool) -> None:
    reward_file, cases_file, data_file = copy_recipe(recipe, folder)
    rollouts_file = data_file.with_name(_ROLLOUTS_FILE)
    names = ("reward_file", "cases_file", "data_file", "rollouts_file")
    result = dict(zip(names, map(str, (reward_file, cases_file, data_file, rollouts_file)), strict=True))
    reference = f"{reward_file}:{_tested_by(cases_file)}"
    commands: list[list[Path | str]] = [
        ["rewardkit", "test", cases_file.parent],
        ["rewardkit", "score", reference, rollouts_file],
        ["rewardkit", "check", reference, data_file],
        ["rewardkit", "audit", reference, data_file, "--rows", "3"],
    ]
    written = f"{reward_file}, {cases_file.name}, {data_file.name} and {rollouts_file.name}"
    _finish(written, commands, result, as_json=as_json)


def _rollouts_of(cases: Path) -> str:
    """Return the completions of a recipe's cases as rows to score, as far as they have the columns of most of them."""
    rows: dict[frozenset[str], list[dict[str, Any]]] = {}
    for case in read_table(cases).cases:
        for rollout in case.rollouts:
            row = {"prompt": rollout.prompt, "completion": rollout.completion, **rollout.example}
            rows.setdefault(frozenset(row), []).append(row)
    return "".join(json_line(row) for row in max(rows.values(), key=len))


def _tested_by(cases: Path) -> str:
    """Return the name of the reward that a recipe's table names in its first line."""
    return cases.read_text(encoding="utf-8").splitlines()[0].rpartition(":")[2].strip()


def _check_name(name: str, folder: Path) -> None:
    """Raise ConfigError where no file of a name can be written, imported and tested, with a name that can."""
    if not name.isidentifier() or keyword.iskeyword(name):
        near = re.sub(r"\W+", "_", name.removesuffix(".py")).strip("_")
        near = f"reward_{near}".rstrip("_") if not near.isidentifier() or keyword.iskeyword(near) else near
        raise ConfigError(f"{name!r} is not a Python identifier; try {near!r}")
    if name.startswith("test_"):
        raise ConfigError(f"{name!r}: pytest takes test_* for tests; try {name.removeprefix('test_') or 'reward'!r}")
    if not folder.is_dir():
        raise ConfigError(f"--dir {folder}: no such folder; make it first")
    is_own = (folder / f"{name}.py").exists()  # that file is told of later
    if name in sys.stdlib_module_names or (not is_own and name != "__main__" and importlib.util.find_spec(name)):
        reason = f"is the name of an installed module, which {name}.py would hide"
        raise ConfigError(f"{name!r} {reason}; try '{name}_reward'")


def recipe_names() -> list[str]:
    folders = RECIPES.iterdir() if RECIPES.is_dir() else ()
    return sorted(folder.name.replace("_", "-") for folder in folders if (folder / _OF_THE_PAGE).is_file())


def recipe_files(name: str) -> list[Path]:
    """Return the files of a recipe, its reward first; for an unknown name raises ConfigError, with the nearest."""
    names = recipe_names()
    if name.replace("_", "-") not in names:
        near = difflib.get_close_matches(name, names, n=2)
        options = f"did you mean {' or '.join(map(repr, near))}? There are" if near else "there are"
        raise ConfigError(f"--recipe {name!r}: no such recipe; {options} {', '.join(names)}")
    folder = RECIPES / name.replace("-", "_")
    return [folder / f"{folder.name}.py", folder / "cases.yaml", folder / "rows.jsonl"]


def copy_recipe(name: str, folder: Path | None) -> list[Path]:
    """Copy a recipe's files to a folder, a new one of its name where ``folder`` is ``None``, and return where they are.

    Raises ConfigError for an unknown recipe, a folder that cannot be written to, and a file that is there already.
    """
    files = recipe_files(name)
    target = Path(name.replace("_", "-")) if folder is None else folder
    if folder is not None and not folder.is_dir():
        raise ConfigError(f"--dir {folder}: no such folder; make it first")
    texts = {target / source.name: source.read_text(encoding="utf-8") for source in files}
    texts[target / _ROLLOUTS_FILE] = _rollouts_of(files[1])
    taken = next((path for path in texts if path.exists() or path.is_symlink()), None)
    if taken is not None:
        raise ConfigError(f"{taken} is there already; choose another folder with --dir, or remove it")
    write_new(target, texts)
    return [target / source.name for source in files]
