"""The argument that names a recorded run, and what helps where rewards or a file of rows stand in its place."""

from __future__ import annotations

import re
import shlex
from typing import Annotated, Any, TypeAlias

import typer

from rewardkit.errors import ConfigError
from rewardkit.record.places import run_path

_SUFFIXES_OF_ROWS = (".jsonl", ".json", ".csv", ".tsv", ".parquet", ".arrow", ".gz")
_REWARD = re.compile(r"[^:,\s]+\.(py|ya?ml)(:\w+)?|[A-Za-z_][\w.]*:\w+")


def names_rewards(text: str) -> bool:
    """Return whether a text names rewards, such as ``a.py:correct``, and no run that has a record."""
    return all(_REWARD.fullmatch(part.strip()) for part in text.split(",")) and not run_path(text).exists()


def names_rows(text: str) -> bool:
    """Return whether a text names a file of rows, such as ``rows.jsonl`` or ``-`` for standard input."""
    return text == "-" or text.endswith(_SUFFIXES_OF_ROWS)


def check_run(text: str, command: str, otherwise: str = "") -> None:
    """Raise ConfigError where rewards or rows stand in the place of the run that a command reads.

    The error says how a run is recorded, with the user's own argument in the command, or what may be meant otherwise.
    """
    if names_rewards(text):
        kind, scoring = "names rewards", f"{shlex.quote(text)} DATA"
    elif names_rows(text) and not run_path(text).exists():
        kind, scoring = "is a file of rows", f"REWARDS {shlex.quote(text)}"
    else:
        return
    raise ConfigError(
        f"{text}: {kind}, and `{command}` reads a recorded run, such as runs/one; "
        f"record one with `rewardkit score {scoring} --record runs/one`{otherwise}"
    )


def _checked_run(context: typer.Context, run: str | None) -> str | None:
    if run is not None:
        check_run(run, " ".join(["rewardkit", *context.command_path.split()[1:]]))
    return run


def run_argument(help_text: str, metavar: str) -> Any:
    """Return a command's argument that names a run, for ``Annotated``; rewards or rows there are a ``ConfigError``."""
    return typer.Argument(help=help_text, metavar=metavar, show_default=False, callback=_checked_run)


def run_option(help_text: str, metavar: str) -> Any:
    """Return an option that names a run, for ``Annotated``; rewards or rows there are a ``ConfigError``."""
    return typer.Option(help=help_text, metavar=metavar, show_envvar=False, callback=_checked_run)


RunPlace: TypeAlias = Annotated[
    str, run_argument("A run: its folder, such as runs/one, its name under runs/, or its address.", "RUN")
]
