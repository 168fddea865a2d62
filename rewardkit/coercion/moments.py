"""Dates and times that a library read from the text of a data set, as text in ISO 8601."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time

_MOMENT = re.compile(
    r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}(?::?\d{2})?)?)?", re.ASCII
)


class IsoText(str):
    """The text of a date or a time that a library read from a text whose form is not known any more."""

    __slots__ = ()

    def means(self, text: str) -> bool:
        """Return whether another text in ISO 8601 names the same moment: midnight is the date alone.

        Where this one has no zone, it may be of UTC: Arrow drops the ``Z`` of a text. One with a zone needs a zone.
        """
        if self == text:
            return True
        own, moment = _moment(self), _moment(text)
        if own is None or moment is None:
            return False
        if own.tzinfo is None and moment.tzinfo is not None:
            own = own.replace(tzinfo=UTC)
        return own == moment


def _moment(text: str) -> datetime | None:
    """Return the moment that a text names in the forms that Arrow reads; ``None`` for other texts."""
    if not _MOMENT.fullmatch(text):
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:  # such as a month 13
        return None


def is_moment(value: object) -> bool:
    """Return whether a value is a date or a time, Python's, numpy's or of pandas."""
    return isinstance(value, date | time) or is_numpy(value, "datetime64")


def is_numpy(value: object, name: str) -> bool:
    """Return whether a value is of a class of numpy of this name; numpy is not imported for it."""
    kind = type(value)
    return kind.__module__ == "numpy" and kind.__name__ == name


def iso_text(value: object) -> IsoText:
    """Return a date or a time as text in ISO 8601: midnight without a zone as its date, UTC as ``Z``.

    Raises ValueError for a moment of numpy beyond the years 1 to 9999.
    """
    if is_numpy(value, "datetime64"):
        value = value.astype("datetime64[us]").item()  # type: ignore[attr-defined]
    if not isinstance(value, date | time):
        raise ValueError("a date beyond the years 1 to 9999")
    if isinstance(value, datetime) and value.tzinfo is None and not getattr(value, "nanosecond", 0):
        return IsoText(value.date().isoformat() if value.time() == time() else value.isoformat())
    text = value.isoformat()
    return IsoText(f"{text.removesuffix('+00:00')}Z" if text.endswith("+00:00") else text)
