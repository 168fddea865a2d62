"""The rows that do not suit a reward, as ``check`` prints them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rewardkit.cli.render import Screen, group_by_key
from rewardkit.shown.text import plain

_SHOWN = 10
_SHOWN_LINES = 8


class Misfit(NamedTuple):
    """A row, by its line, that does not suit a reward, and why; no column where scoring its right answer failed."""

    line: int
    column: str | None
    error: str


def is_complete(misfits: Sequence[Misfit]) -> bool:
    """Whether their line names every row and every error."""
    return len(misfits) <= _SHOWN_LINES and len({misfit.error for misfit in misfits}) == 1


def describe_misfits(misfits: Sequence[Misfit], unit: str) -> str:
    """Return a line on the misfits of a column: their rows and the first error; ``unit`` names what numbers rows."""
    first = misfits[0]
    if len(misfits) == 1:
        return f"{unit} {first.line}: {first.error}"
    more = ", …" if len(misfits) > _SHOWN_LINES else ""
    lines = ", ".join(str(misfit.line) for misfit in misfits[:_SHOWN_LINES]) + more
    note = "" if all(misfit.error == first.error for misfit in misfits) else ", the first"
    return f"{len(misfits):,} rows ({unit} {lines}){note}: {first.error}"


def print_misfits(console: Screen, reward: str, misfits: Sequence[Misfit], unit: str) -> None:
    """Print what fails: the misfits of each column together, and the calls that failed by their error."""
    by_column = group_by_key(((m.column, m.error if m.column is None else ""), m) for m in misfits)
    kinds = list(by_column.values())
    for of_kind in kinds[:_SHOWN]:
        console.say((f"{reward}: ", "bold"), plain(describe_misfits(of_kind, unit)), fit="wrap")
    if len(kinds) > _SHOWN or not all(map(is_complete, kinds)):
        console.say((f"{reward}: --json lists all {len(misfits):,}", "dim"), fit="wrap")
