"""The arguments and options that several commands share, with the checks of their values."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import typer

from rewardkit.errors import ConfigError


def argument(help_text: str, metavar: str) -> Any:
    """Return a command's argument with its help, for ``Annotated``."""
    return typer.Argument(help=help_text, metavar=metavar, show_default=False)


def option(help_text: str, metavar: str | None = None, *names: str, **more: Any) -> Any:
    """Return a command's option with its help, for ``Annotated``; ``more`` is as typer takes it."""
    return typer.Option(*names, help=help_text, metavar=metavar, show_envvar=False, **more)


def _checked_seconds(param: typer.CallbackParam, seconds: float | None) -> float | None:
    if seconds is not None and not 0 < seconds < math.inf:
        raise ConfigError(f"{param.opts[0]} {seconds:g}: expected a number of seconds greater than 0")
    return seconds


def _checked_share(param: typer.CallbackParam, share: float | None) -> float | None:
    if share is not None:
        check_share(param.opts[0], share)
    return share


seconds_option = functools.partial(option, metavar="S", callback=_checked_seconds)
share_option = functools.partial(option, metavar="SHARE", callback=_checked_share)
"""Return an option whose value is a share from 0 to 1, or ``None``; another value is a ``ConfigError``."""

REWARDS_HERE = "file.py, file.py:name, module or module:name, several separated by commas; or a YAML file of rewards"
REWARDS = f"{REWARDS_HERE}; or a server's address, such as http://rewards:8000."
Rewards: TypeAlias = Annotated[str, argument(REWARDS, "REWARDS")]
RewardsHere: TypeAlias = Annotated[str, argument(f"{REWARDS_HERE}.", "REWARDS")]
Data: TypeAlias = Annotated[
    Path | None, argument("JSON Lines or CSV, plain or packed with gzip, or Parquet; - for standard input.", "DATA")
]
DataOption: TypeAlias = Annotated[list[Path] | None, option("DATA, given by name.", "FILE", "--data")]
Workers: TypeAlias = Annotated[
    int | None, option("Worker processes; by default the cores at hand, of more than 4 the half, 4 to 16.", "N", min=1)
]
Timeout: TypeAlias = Annotated[
    float | None, seconds_option("Seconds for a call, instead of each reward's own timeout.")
]
LoadTimeout: TypeAlias = Annotated[float, seconds_option("Seconds for a worker to load the rewards.")]
Weights: TypeAlias = Annotated[
    str | None,
    option("Weights in the total, in the rewards' order; by default 1, and 0 for a composition's parts.", "0.8,0.2"),
]
Gold: TypeAlias = Annotated[
    str | None, option("The column with the right answer; by default it is looked for.", "COLUMN")
]
RowCount: TypeAlias = Annotated[int, option("Rows to try, chosen at random.", "N", min=1)]
Seed: TypeAlias = Annotated[int, option("Seed for choosing the rows.", "N")]
Steps: TypeAlias = Annotated[str | None, option("Completions of this step or these steps; by default of all.", "10-20")]
Split: TypeAlias = Annotated[Literal["train", "eval"], option("Completions of training, or of evaluations.")]
OnFlag: TypeAlias = Annotated[
    str | None,
    option("A URL, a command, or $NAME of a variable that has it: told once of each flag of a run.", "TARGET"),
]
AsJson: TypeAlias = Annotated[bool, option("Print the result as one JSON object.", None, "--json")]


def weight_numbers(weights: str | None) -> list[float] | None:
    """Return the numbers of ``--weights``; ConfigError for anything else."""
    try:
        return None if weights is None else [float(part) for part in weights.split(",")]
    except ValueError:
        raise ConfigError(f"--weights {weights}: expected numbers separated by commas, such as 0.8,0.2") from None


def data_path(placed: Path | None, named: Sequence[Path] | None) -> Path:
    """Return the data's path, given as an argument, with ``--data`` or as both.

    Raises:
        ConfigError: It is given in neither way, or more than once with different values.
    """
    sources = {path: f"--data {str(path)!r}" for path in named or ()}
    if placed is not None:
        sources = {placed: repr(str(placed))} | {path: text for path, text in sources.items() if path != placed}
    if len(sources) > 1:
        raise ConfigError(f"{len(sources)} different DATA: {' and '.join(sources.values())}; give one of them")
    if not sources:
        raise ConfigError("DATA is missing; name its file after the rewards, or with --data FILE")
    return next(iter(sources))


def check_share(name: str, share: float) -> None:
    """Raise ConfigError where an option's value is not a share."""
    if not 0 <= share <= 1:
        raise ConfigError(f"{name} {share:g}: expected a share from 0 to 1")
