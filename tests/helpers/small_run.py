"""A small run that is recorded with rewards of a file, for what is done with a record afterwards."""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from rewardkit import Rollout, Runtime
from rewardkit.cli.program import app

REWARDS = '''\
import random
from pathlib import Path

from rewardkit import InfrastructureError, Score, group_reward, reward, scheduled


@reward
def steady(completion: str, answer: str, step: int) -> Score | None:
    """Skip, fail, and score by the step."""
    if completion == "skip":
        return None
    if completion == "fail":
        raise ValueError("cannot")
    return Score(float(answer in completion) + step / 100, "has it" if answer in completion else "lacks it")


@reward
def coin(completion: str) -> float:
    return random.random()


@reward
def judge(completion: str) -> Score:
    """A judge that is up where there is a file of this name."""
    if len(completion) > 6 and not Path(__file__).with_name("up").exists():
        down = InfrastructureError("the judge is down")
        down.retry = False
        raise down
    return Score(len(completion) / 100, None, {"requests": 1, "cost_usd": 0.002})


@group_reward
def longest(completions: list[str]) -> list[float]:
    return [float(len(one) == max(map(len, completions))) for one in completions]


both = (scheduled(steady, lambda step: 1.0 + step) + longest).named("both")
'''
REVERSED = '''\
from rewardkit import Score, reward


@reward
def steady(completion: str, answer: str) -> Score | None:
    """Skip the same, and turn the rest round."""
    return None if completion == "skip" else Score(float(answer not in completion), "turned round")
'''
WORDS = ["yes", "no", "skip", "fail", "well, yes", "no idea at all", "yes yes yes"]
STEPS, PROMPTS, GROUP = 4, 3, 4
COMPLETIONS = STEPS * PROMPTS * GROUP


def drawn(step: int) -> list[Rollout]:
    """Return a step's rollouts: three prompts with four completions each, alike in every run."""
    chance = random.Random(step)
    rows = [(f"{step}-{prompt}", {"answer": "yes"}) for prompt in range(PROMPTS)]
    return [Rollout(prompt, chance.choice(WORDS), row) for prompt, row in rows for _ in range(GROUP)]


def recorded(folder: Path, weights: Mapping[str, float], name: str = "one", file: str = "mine.py") -> Path:
    """Record a run of four steps with rewards of a file, and return its folder; the file is made where there is none.

    Args:
        folder: Where the file and the runs are.
        weights: The rewards' weights, by their names in the file.
        name: The run's name.
        file: The file.
    """
    if not (folder / file).exists():
        (folder / file).write_text(REWARDS)
    references = [f"{folder / file}:{reward}" for reward in weights]
    run = folder / "runs" / name
    given = {"weights": list(weights.values()), "lane": "inline", "max_infrastructure_rate": 1.0}
    with Runtime(references, record=run, **given) as runtime:  # type: ignore[arg-type]  # of several types
        for step in range(STEPS):
            runtime.score(drawn(step), step=step, epoch=step / STEPS)
    return run


def forget() -> None:
    """Forget the files that were imported, as a further process does not know them."""
    for name in [name for name in sys.modules if name.startswith("rewardkit_file_")]:
        del sys.modules[name]


def command(*arguments: str | os.PathLike[str]) -> tuple[int, str, str]:
    """Run a command as a further process would; return its exit code and what it printed to stdout and stderr."""
    forget()
    done = CliRunner().invoke(app, [str(one) for one in arguments], prog_name="rewardkit")
    return done.exit_code, done.stdout, done.stderr


def told(*arguments: str | os.PathLike[str], code: int = 0) -> dict[str, Any]:
    """Return what a command tells as JSON; it must end with this exit code."""
    given, out, err = command(*arguments, "--json")
    assert code == given, err
    found: dict[str, Any] = json.loads(out)
    return found


MANY = 12
"""Rewards of the run of ``crowded``."""


def crowded(folder: Path, name: str = "many") -> Path:
    """Record a run with twelve rewards whose names are long, and return its folder."""
    names = [f"a_reward_whose_name_is_as_long_as_a_sentence_{place}" for place in range(MANY)]
    functions = [
        f"@reward\ndef {one}(completion: str) -> float:\n    return len(completion) / {place + 10}\n"
        for place, one in enumerate(names)
    ]
    (folder / "many.py").write_text("\n\n".join(["from rewardkit import reward\n", *functions]))
    return recorded(folder, dict.fromkeys(names, 1.0), name, "many.py")
