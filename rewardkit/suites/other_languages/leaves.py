"""Changes of the literals of other languages, as :mod:`rewardkit.suites.literal_changes` makes those of Python."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from random import Random

from rewardkit.suites.literal_changes import TextSlot, character_slots, number_slots
from rewardkit.suites.source_text import Edit
from rewardkit.suites.text_changes import ValuelessChange

_ESCAPE = re.compile(r"\\(?:x[0-9a-fA-F]{2}|u\{[^}]*\}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-7]{1,3}|\r\n|.)", re.DOTALL)
_EXACT_DIGITS = 15  # of which a double keeps every one
_SIZES = tuple(
    sorted(limit for bits in (8, 16, 32, 64) for limit in ((1 << bits - 1) - 1, 1 << bits - 1, (1 << bits) - 1))
)
"""The largest numbers of the types that a value may be of, and the least ones' without their sign: a changed value fits
whatever the one that is written does."""
_TRIES = 40
_MOST_SLOTS = 3  # places that are changed at once


def text_slots(text: str, quotes: int = 1, *, is_raw: bool = False) -> Iterator[TextSlot]:
    """Return the characters between a text's quotes that stand for themselves."""
    return character_slots(text, quotes, len(text) - quotes, None if is_raw else _ESCAPE)


def digit_slots(text: str) -> Iterator[TextSlot]:
    """Yield the digits of a number that a double keeps."""
    seen = 0
    for slot in number_slots(text):
        seen += seen > 0 or text[slot.start] not in "0."
        if slot.start == 0 and text[1:2].isdigit():  # 02.5 is no number
            slot = slot._replace(choices=tuple(choice for choice in slot.choices if choice != "0"))
        if seen <= _EXACT_DIGITS:
            yield slot


def truth_slots(text: str) -> Iterator[TextSlot]:
    """Yield the one place of ``true`` or ``false``."""
    yield TextSlot(0, len(text), ("false" if text == "true" else "true",))


class LeafChange(ValuelessChange):
    """A change of one literal, whose value nobody looks for in what the test says.

    Args:
        start: Where it begins in the file.
        text: Its text.
        slots: What may be changed in it.
        is_number: Whether it must stay within the types that it fits.
    """

    __slots__ = ("_is_number", "_slots", "_start", "_text")

    def __init__(self, start: int, text: str, slots: Sequence[TextSlot], *, is_number: bool = False) -> None:
        self._start = start
        self._text = text
        self._slots = [slot for slot in slots if not slot.is_mark] or list(slots)
        self._is_number = is_number

    def is_possible(self) -> bool:
        """Return whether there is any change."""
        return next(self._all(), None) is not None

    def _edit(self, picks: Sequence[tuple[TextSlot, str]]) -> Edit | None:
        text = self._text
        for slot, choice in reversed(picks):
            text = text[: slot.start] + choice + text[slot.end :]
        if text == self._text or (self._is_number and not _fits(self._text, text)):
            return None
        return Edit(self._start, self._start + len(self._text), text)

    def _all(self) -> Iterator[Edit]:
        for slot in self._slots:
            for choice in slot.choices:
                if edit := self._edit([(slot, choice)]):
                    yield edit

    def draw(self, random: Random) -> Edit:
        """Return a change, drawn anew."""
        for _ in range(_TRIES):
            slots = sorted(random.sample(self._slots, min(_MOST_SLOTS, len(self._slots))))
            picks = [(slot, random.choice((*slot.choices, self._text[slot.start : slot.end]))) for slot in slots]
            if edit := self._edit(picks):
                return edit
        return random.choice(list(self._all()))


def _fits(old: str, new: str) -> bool:
    """Return whether a number's type is certain to hold another one; fractions fit wherever one does."""
    try:
        before, after = (int(text.rstrip("n").replace("_", ""), 0) for text in (old, new))
    except ValueError:
        return True
    return after <= next((size for size in _SIZES if before <= size), before)
