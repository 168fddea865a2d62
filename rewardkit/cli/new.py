"""``rewardkit new``: a small reward and its test, to begin from."""

from __future__ import annotations

import importlib.util
import keyword
import re
import sys
from pathlib import Path
from typing import Annotated

import typer

from rewardkit.cli.arguments import AsJson, argument, option
from rewardkit.cli.exits import finish
from rewardkit.errors import ConfigError

_REWARD = '''\
"""{title}: scores the answer at the end of a completion."""

import re

from rewardkit import Score, reward

NUMBER = r"-?\\d+(?:\\.\\d+)?"
UNSOLVED = r"(?<![\\d.])\\d[\\d.]*(?: ?[-+*/^]+ ?\\d[\\d.]*)+"  # who writes 18 / 9 has answered neither 9 nor 2


@reward(timeout_s=5, score_range=(0, 1))
def {name}(completion: str, answer: float) -> Score | None:
    """1 if the last number in the completion is the answer, else 0; skipped where it holds no number."""
    numbers = re.findall(NUMBER, re.sub(UNSOLVED, "", completion))
    if not numbers:
        return None
    return Score(float(float(numbers[-1]) == answer), reason=f"read {{numbers[-1]}}, expected {{answer:g}}")
'''

_TEST = '''\
"""Tests of {name}: as a plain function, and as a run would score it."""

from {name} import {name}
from rewardkit import Rollout, Runtime, Score, Status


def test_the_right_answer_scores_1() -> None:
    """The last number counts, and the column's text becomes the number that the reward asks for."""
    assert {name}(completion="2 + 2 is 4", answer="4") == Score(1.0, reason="read 4, expected 4")


def test_a_run_scores_and_skips() -> None:
    """A wrong answer scores 0; a completion without a number is skipped, which is not a score of 0."""
    rollouts = [Rollout("2+2=", text, {{"answer": "4"}}) for text in ("4", "5", "I do not know")]
    with Runtime([{name}], lane="inline") as runtime:
        batch = runtime.score(rollouts)
    assert [1.0, 0.0, None] == batch.scores["{name}"]
    assert batch["{name}"][2].status is Status.SKIPPED
'''


def new_command(
    name: Annotated[str, argument("What to call the reward: a Python identifier.", "NAME")],
    folder: Annotated[Path, option("The folder to write to.", "DIR", "--dir")] = Path(),
    as_json: AsJson = False,
) -> None:
    """Write NAME.py, a small reward with typed columns, and test_NAME.py, which passes with pytest.

    Files that are there already are never overwritten.

    Example:

    [bold]rewardkit new correct && pytest test_correct.py[/]
    """
    _check_name(name, folder)
    files = {folder / f"{name}.py": _REWARD, folder / f"test_{name}.py": _TEST}
    for path in files:
        if path.exists() or path.is_symlink():
            raise ConfigError(f"{path} is there already; choose another name, or remove it")
    written: list[Path] = []
    try:
        for path, text in files.items():
            with path.open("x", encoding="utf-8") as file:
                written.append(path)
                file.write(text.format(name=name, title=name.replace("_", " ").strip().capitalize()))
    except BaseException as fault:
        for path in written:
            path.unlink()
        if isinstance(fault, OSError):
            raise ConfigError(f"{folder}: {fault.strerror or fault}") from fault
        raise
    reward_file, test_file = files
    after = f"next:  pytest {test_file}\n       rewardkit score {reward_file} rollouts.jsonl"
    words = f"wrote {reward_file} and {test_file}\n{after}"
    told = {"reward_file": str(reward_file), "test_file": str(test_file)}
    finish(told, lambda: typer.echo(words), as_json=as_json)


def _check_name(name: str, folder: Path) -> None:
    if not name.isidentifier() or keyword.iskeyword(name):
        near = re.sub(r"\W+", "_", name.removesuffix(".py")).strip("_")
        near = f"reward_{near}".rstrip("_") if not near.isidentifier() or keyword.iskeyword(near) else near
        raise ConfigError(f"{name!r} is not a Python identifier; try {near!r}")
    if name.startswith("test_"):
        raise ConfigError(f"{name!r}: pytest takes test_* for tests; try {name.removeprefix('test_') or 'reward'!r}")
    if not folder.is_dir():
        raise ConfigError(f"{folder}: no such folder")
    mine = (folder / f"{name}.py").exists()
    if name in sys.stdlib_module_names or (not mine and name != "__main__" and importlib.util.find_spec(name)):
        raise ConfigError(
            f"{name!r} is the name of an installed module, which {name}.py would hide; try '{name}_reward'"
        )
