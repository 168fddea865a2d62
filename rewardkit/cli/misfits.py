"""The rows that do not suit a reward, as ``check`` prints them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

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
