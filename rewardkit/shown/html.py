"""Small tables for notebooks. Everything in them is escaped, and their size has an end."""

from __future__ import annotations

import html
from collections.abc import Sequence

from rewardkit.shown.text import plain, shortened

ROWS = 20  # Rows of a table that are shown
COLUMNS = 16  # Columns that are shown
_CELL_CHARS = 80
_TITLE_CHARS = 1_000


def number_cell(value: float | None) -> str:
    """Return a number for a cell; a dash without a number."""
    return "-" if value is None else f"{value:.4g}"


def table_html(title: str, head: Sequence[str], rows: Sequence[Sequence[str]], count: int | None = None) -> str:
    """Return a table with its title, the names in its head, and the first :data:`ROWS` of its rows.

    A long text is cut, and whole, up to a limit, where the mouse rests on it. ``count`` is how many rows there are,
    where ``rows`` has only the first.
    """
    wide = len(head) > COLUMNS
    names = [*head[: COLUMNS - 1], f"and {len(head) - COLUMNS + 1} more"] if wide else list(head)
    lines = [f"<tr>{''.join(f'<th>{_escaped(shortened(name, _CELL_CHARS))}</th>' for name in names)}</tr>"]
    for row in rows[:ROWS]:
        cells = [*row[: COLUMNS - 1], "…"] if wide else row
        lines.append(f"<tr>{''.join(map(_cell, cells))}</tr>")
    more = (len(rows) if count is None else count) - min(len(rows), ROWS)
    foot = f"<p>and {more:,} more</p>" if more > 0 else ""
    return f"<div><p>{_escaped(shortened(title, 4 * _CELL_CHARS))}</p><table>{''.join(lines)}</table>{foot}</div>"


def _cell(text: str) -> str:
    short = shortened(text, _CELL_CHARS)
    title = plain(text[:_TITLE_CHARS])
    attribute = f' title="{_escaped(title)}"' if short != title else ""
    return f'<td style="text-align:left"{attribute}>{_escaped(short)}</td>'


def _escaped(text: str) -> str:
    return html.escape(text, quote=True)
