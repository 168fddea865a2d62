"""How completions and outcomes are shown in the reports of failed cases and laws."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rewardkit.shown.text import beginning, shortened

_COLUMN_CHARS = 200
_TEXT_CHARS = 600
_LOG_LINES = 10
_LABEL = 14
_UNIT_CHARS = 20


def quoted(text: object, chars: int = _TEXT_CHARS) -> str:
    """Return a value's repr of about ``chars`` characters at most, with its length where it is longer."""
    if isinstance(text, str) and len(text) > chars:
        unit = _repeated_unit(text)
        if unit is not None:
            return f"{unit!r} * {len(text) // len(unit):,}"
        return f"{text[:chars]!r}… [{len(text):,} characters]"
    return beginning(repr(text), 2 * chars)


def _repeated_unit(text: str) -> str | None:
    """Return the text that this one repeats, if it is a short one."""
    for size in range(1, _UNIT_CHARS + 1):
        if len(text) % size == 0 and text == text[:size] * (len(text) // size):
            return text[:size]
    return None


def line(label: str, text: str, mark: str = " ") -> str:
    """Return a line of a report: a mark as in a diff, a label, and the text."""
    return f"{mark} {label:<{_LABEL}}{text}".rstrip()


def row_lines(prompt: object, example: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines that show a row: its prompt, where it has one, and its columns."""
    if prompt:
        yield line("prompt", quoted(prompt, _COLUMN_CHARS))
    for column, value in example.items():
        yield line("column", f"{column} = {quoted(value, _COLUMN_CHARS)}")


def log_lines(logs: Sequence[str]) -> Iterator[str]:
    """Yield the lines that show what calls printed, the last of them where there are many."""
    lines = [log_line for text in logs for log_line in text.splitlines() if log_line.strip()]
    for log_line in lines[-_LOG_LINES:]:
        yield line("logs", f"│ {shortened(log_line, _COLUMN_CHARS)}")
