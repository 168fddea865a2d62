"""The parameters of a request, checked: an error names the parameter, its value and what is expected."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import overload

from rewardkit.errors import RecordError
from rewardkit.shown.text import shortened

MOST_CHARS = 2_000  # Characters of a parameter
SPLITS = ("train", "eval")
MOST_WHOLE = 2**53  # The largest whole number that JavaScript can tell from its neighbours


class Query:
    """A request's parameters by name, the last of one that was given twice. An empty one counts as absent."""

    def __init__(self, parameters: Mapping[str, str] | None = None) -> None:
        self._parameters = {name: value for name, value in (parameters or {}).items() if value}

    @overload
    def text(self, name: str) -> str | None: ...
    @overload
    def text(self, name: str, default: str) -> str: ...
    def text(self, name: str, default: str | None = None) -> str | None:
        """Return a text. Raises RecordError where it is longer than :data:`MOST_CHARS`."""
        value = self._parameters.get(name)
        if value is not None and len(value) > MOST_CHARS:
            raise RecordError(f"{name}={shortened(value, 40)}: expected at most {MOST_CHARS:,} characters")
        return default if value is None else value

    @overload
    def integer(self, name: str, default: None = None, *, low: int = ..., high: int = ...) -> int | None: ...
    @overload
    def integer(self, name: str, default: int, *, low: int = ..., high: int = ...) -> int: ...
    def integer(
        self, name: str, default: int | None = None, *, low: int = -MOST_WHOLE, high: int = MOST_WHOLE
    ) -> int | None:
        """Return a whole number. Raises RecordError where the value is another, or not between ``low`` and ``high``."""
        text = self.text(name)
        if text is None:
            return default
        try:
            value = int(text)
        except ValueError:
            value = None
        if value is None or not low <= value <= high:
            raise RecordError(f"{name}={shortened(text, 40)}: expected a whole number{_between(low, high)}")
        return value

    @overload
    def number(self, name: str) -> float | None: ...
    @overload
    def number(self, name: str, default: float) -> float: ...
    def number(self, name: str, default: float | None = None) -> float | None:
        """Return a number. Raises RecordError where the value is not a number, or not finite."""
        text = self.text(name)
        if text is None:
            return default
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise RecordError(f"{name}={shortened(text, 40)}: expected a number")
        return value

    @overload
    def choice(self, name: str, options: Sequence[str]) -> str | None: ...
    @overload
    def choice(self, name: str, options: Sequence[str], default: str) -> str: ...
    def choice(self, name: str, options: Sequence[str], default: str | None = None) -> str | None:
        """Return one of several words. Raises RecordError where the value is not one of them."""
        value = self.text(name)
        if value is None:
            return default
        if value not in options:
            raise RecordError(f"{name}={shortened(value, 40)}: expected {', '.join(options)}")
        return value


def _between(low: int, high: int) -> str:
    if high == MOST_WHOLE:
        return "" if low == -MOST_WHOLE else f" of {low} or more"
    return f" from {low} to {high}"
