"""How commands over a record print: tables for a terminal, and off one text that is neither wrapped nor cut."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from rewardkit.cli.screen import PlainConsole, table
from rewardkit.shown.text import plain
from rewardkit.types import Text as Said

_ENDLESS = 1_000_000
NONE = "-"


def page() -> Console:
    """Return the console for what a record holds, on stdout: as wide as the terminal, or without an end."""
    console = PlainConsole(highlight=False)
    return console if console.is_terminal else PlainConsole(highlight=False, width=_ENDLESS)


def grid(*columns: str, left: int = 1) -> Table:
    """Return an empty table whose first columns are of text, and the others of numbers, which are never broken."""
    shown = table(*columns)
    for place, column in enumerate(shown.columns):
        column.justify = "left" if place < left else "right"
        column.no_wrap = place >= left
    return shown


def say(console: Console, *parts: str | tuple[str, str]) -> None:
    """Print one line: on a terminal cut where it ends, elsewhere whole."""
    console.print(Text.assemble(*parts), no_wrap=True, overflow="ellipsis", crop=console.is_terminal)


def say_all(console: Console, text: str, indent: str = "") -> None:
    """Print a text with all of its lines, none of them cut."""
    for line in plain(text).splitlines() or [""]:
        console.print(Text(f"{indent}{line}"), soft_wrap=True)


def heading(console: Console, words: str) -> None:
    """Print a heading behind a blank line."""
    console.print()
    console.print(Text(words, style="bold"))


def one_line(text: Said | None) -> str:
    """Return a completion on one line, the role before each message, breaks of lines as ``⏎``."""
    if text is None:
        return "(text left out)"
    if not isinstance(text, str):
        text = " ".join(f"{one.get('role', '?')}: {one.get('content') or one.get('tool_calls') or ''}" for one in text)
    return plain(text.replace("\r\n", "\n").replace("\n", "⏎").replace("\t", " ")) or "(empty)"


def columns_of_text(rows: Iterable[Sequence[str]], gaps: str = "  ") -> list[str]:
    """Return rows as lines, each cell but the last as wide as the widest of its column."""
    those = [list(map(str, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*(row[:-1] for row in those), strict=True)] if those else []
    return [
        gaps.join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]).rstrip()
        for row in those
    ]


def day(seconds: float) -> str:
    """Return a time since 1970 as this machine's clock has it."""
    return datetime.datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M")


def size_told(size: int) -> str:
    """Return bytes in the unit that suits them."""
    value, units = float(size), ["B", "kB", "MB", "GB", "TB"]
    while value >= 1000 and len(units) > 1:
        value /= 1000
        units.pop(0)
    return f"{value:.0f} {units[0]}" if units[0] == "B" or value >= 100 else f"{value:.1f} {units[0]}"
