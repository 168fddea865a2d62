"""The renderer: the screen, lines, labels, tables and figures with their units, on a terminal and off one.

A command makes a result, and :func:`rewardkit.cli.exits.finish` prints it as JSON or has it laid out with what is
here. 80 columns are enough for each.
"""

from __future__ import annotations

import datetime
import math
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Literal, TypeAlias, TypeVar

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.measure import Measurement
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from rewardkit.shown.text import plain, shortened, with_break_marks
from rewardkit.types import Outcome, Status
from rewardkit.types import Text as Completion

PIPED_WIDTH = 100  # columns where the output goes to a file or a pipe and $COLUMNS is not set
ENDLESS = 1_000_000  # columns for what a record holds off a terminal, so that nothing of it is wrapped or cut
WIDEST = 10_000  # columns of a table that is not shown on a terminal, at most
NONE = "-"  # what stands for a figure that is not known
SHOWN_CHARS = 160  # characters of a completion that are shown: around the part that matters, or its end
_REASON_CHARS = 300
_UNITS = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6))

K = TypeVar("K")
T = TypeVar("T")
Part: TypeAlias = str | Text | tuple[str, str]  # A piece of a line: a text, or a text with its style
Cells: TypeAlias = Sequence[str | Text]  # A row of a table
Fit: TypeAlias = Literal["whole", "wrap", "cut"]
"""What becomes of a line that is too long: it is left to the terminal, broken between words, or cut."""


class Screen(Console):
    """A console that writes out control characters in whatever it is given to show; its own colours stay."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """As the console's own: all that is shown passes through here."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=plain(segment.text))

    def say(self, *parts: Part, fit: Fit = "whole") -> None:
        """Print the parts; ``fit`` says what becomes of them where they are wider than the screen."""
        text = Text.assemble(*parts)
        if fit == "cut":
            self.print(text, no_wrap=True, overflow="ellipsis")
        else:
            self.print(text, soft_wrap=fit == "whole")

    def indented(self, text: str | Text, style: str = "") -> None:
        """Print a text two columns in, broken between words; ``style`` is that of a plain one."""
        styled = text if isinstance(text, Text) else Text(text, style=style)
        self.print(Padding(styled, (0, 0, 0, 2), expand=False))

    def heading(self, text: str) -> None:
        """Print a heading behind a blank line."""
        self.print()
        self.print(Text(text, style="bold"))

    def block(self, text: str, indent: str = "") -> None:
        """Print a text with all of its lines, none of them cut."""
        for line in plain(text).splitlines() or [""]:
            self.say(f"{indent}{line}")

    def whole_table(self, rows: Table) -> None:
        """Print a table; off a terminal it is as wide as what is in it, so that nothing is wrapped."""
        self.print(rows, width=None if self.is_terminal else WIDEST)

    def fitted_table(self, make: Callable[[Collection[str]], Table], *groups: Sequence[str]) -> None:
        """Print a table; leave out groups of columns, named, one after the other while it is wider than the screen.

        ``make`` returns the table without the columns of these names; a column may be as narrow as its ``min_width``.
        """
        omitted: list[str] = []
        rows = make(omitted)
        for group in groups:
            if self._least_width(rows) <= self.width:
                break
            omitted += group
            rows = make(omitted)
        self.print(rows)

    def _least_width(self, rows: Table) -> int:
        """Return the width of a table whose columns are as narrow as they may be."""
        width = Measurement.get(self, self.options.update(max_width=WIDEST), rows).maximum
        for column in rows.columns:
            if column.min_width is not None:
                lines = [line for cell in (column.header, *column.cells) for line in str(cell).splitlines()]
                width -= max(0, max(map(cell_len, lines)) - column.min_width)
        return width

    def name(self, name: str, chars: int) -> Text:
        """Return a name for a table's first column: on several lines on a terminal, as it is elsewhere."""
        return Text(fold(name, chars) if self.is_terminal else plain(name), style="bold")


STATE_STYLES = {"running": "green", "finished": "", "stopped": "red", "killed": "red", "unreadable": "red"}
"""Styles of the states of runs."""


def screen(piped_width: int | None = None) -> Screen:
    """Return the console for results, on stdout.

    Off a terminal it is ``piped_width`` columns wide; unless given, as wide as ``$COLUMNS``, else :data:`PIPED_WIDTH`.
    """
    console = Screen(highlight=False)
    if console.is_terminal or (piped_width is None and os.environ.get("COLUMNS", "").isdigit()):
        return console
    return Screen(highlight=False, width=piped_width or PIPED_WIDTH)


def print_pairs(console: Console, rows: Iterable[tuple[str, str | Text]], style: str = "dim") -> None:
    """Print labels and texts beside them, all of a text's lines behind the labels."""
    grid = Table.grid(padding=(0, 2, 0, 0), pad_edge=False)
    grid.add_column(no_wrap=True, style=style)
    grid.add_column(overflow="fold")
    for row in rows:
        grid.add_row(*row)
    console.print(grid)


def print_labelled(console: Console, label: str, text: str, style: str = "bold") -> None:
    """Print a label and a text beside it, with all of its lines behind the label."""
    print_pairs(console, [(label, Text(text))], style)


def print_reasons(console: Console, label: str, reasons: Mapping[str, str]) -> None:
    """Print a label and why it applies to these names, the names of one reason together."""
    for reason, names in group_by_key((reason, name) for name, reason in reasons.items()).items():
        print_labelled(console, label, f"{', '.join(names)}: {shortened(reason, _REASON_CHARS)}")


def table(*columns: str, left: int | None = None, rows: Iterable[Cells] = ()) -> Table:
    """Return a table, ruled only under its head; the columns from ``left`` on are of numbers, which are not broken."""
    result = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold", show_edge=False)
    for index, column in enumerate(columns):
        is_number = left is not None and index >= left
        result.add_column(column, overflow="fold", justify="right" if is_number else "left", no_wrap=is_number)
    for row in rows:
        result.add_row(*row)
    return result


def counts(name: str, *columns: str) -> Table:
    """Return an empty table whose first column has names and the others numbers."""
    return table(name, *columns, left=1)


def align(rows: Iterable[Sequence[str]], gap: str = "  ") -> list[str]:
    """Return rows as lines, each cell but the last as wide as the widest of its column."""
    cells = [list(map(str, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*(row[:-1] for row in cells), strict=True)] if cells else []
    padded = ([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]] for row in cells)
    return [gap.join(row).rstrip() for row in padded]


def group_by_key(pairs: Iterable[tuple[K, T]]) -> dict[K, list[T]]:
    """Return the values of each key as a list, in the order in which the keys first come."""
    groups: dict[K, list[T]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


# figures


def number(value: float | None) -> str:
    """Return a number with four decimals, fewer for large ones, or in powers of ten; a dash for ``None`` or nan."""
    if value is None or math.isnan(value):
        return NONE
    size = abs(value)
    if not size:
        return "0.0000"  # of either sign
    if not 1e-4 <= size < 1e7:
        return f"{value:.2e}"
    decimals = 4 if size < 10 else 2 if size < 1000 else 0
    return f"{value:.{decimals}f}"


def duration(seconds: float | None) -> str:
    """Return a duration in the unit that suits it, with three digits; whole minutes and hours alone."""
    if seconds is None:
        return NONE
    if seconds >= 120:
        minutes, rest = divmod(round(seconds), 60)
        hours, minutes = divmod(minutes, 60)
        if hours:
            return f"{hours} h {minutes:02} min" if minutes else f"{hours} h"
        return f"{minutes} min {rest:02} s" if rest else f"{minutes} min"
    unit, size = next(((unit, size) for unit, size in _UNITS if seconds >= size), _UNITS[-1])
    return f"{seconds / size:.3g} {unit}"


def count_or_none(count: int) -> str:
    return f"{count:,}" if count else NONE


def causes(failed: Mapping[str, int], separator: str = "\n") -> Text:
    """Return how many calls failed by each cause, in red; a dash where none did."""
    text = separator.join(f"{cause} {count:,}" for cause, count in failed.items())
    return Text(text, style="red") if text else Text(NONE)


def score_text(outcome: Outcome) -> str:
    """Return an outcome's score, or what became of the call."""
    cause = f" ({outcome.cause})" if outcome.cause is not None else ""
    return number(outcome.score) if outcome.status is Status.SCORED else f"{outcome.status}{cause}"


def day(seconds: float) -> str:
    """Return a time since 1970 as this machine's clock has it."""
    return datetime.datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M")


def byte_size(size: int) -> str:
    """Return bytes in the unit that suits them."""
    value, units = float(size), ["B", "kB", "MB", "GB", "TB"]
    while value >= 1000 and len(units) > 1:
        value /= 1000
        units.pop(0)
    return f"{value:.0f} {units[0]}" if units[0] == "B" or value >= 100 else f"{value:.1f} {units[0]}"


# texts


def fold(name: str, chars: int) -> str:
    """Return a name on lines of at most ``chars`` characters, broken behind underscores where it has them."""
    lines = [""]
    for part in re.findall(r"[^_]+_*|_+", plain(name)):
        if lines[-1] and len(lines[-1]) + len(part) > chars:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)


def excerpt(text: str, point: str, chars: int = SHOWN_CHARS) -> str:
    """Return a text on one line, breaks of lines as ``⏎``: of a long one what is around the point, or head and end."""
    return shortened(with_break_marks(text), chars, around=with_break_marks(point))


def one_line(text: Completion | None) -> str:
    """Return a completion on one line, the role before each message, breaks of lines as ``⏎``."""
    if text is None:
        return "(text left out)"
    if not isinstance(text, str):
        contents = ((turn, turn.get("content") or turn.get("tool_calls") or "") for turn in text)
        text = " ".join(f"{turn.get('role', '?')}: {content}" for turn, content in contents)
    return plain(with_break_marks(text).replace("\t", " ")) or "(empty)"
