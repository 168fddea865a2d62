"""Small changes of literals: another digit, another letter, the other truth value, of the same length and kind.

A change is a change of text, so that layout and comments stay. A reader who does not know the right value cannot tell
the changed literal from the one that was written: numbers keep their number of digits, texts their letters' kinds.
"""

from __future__ import annotations

import ast
import io
import math
import re
import tokenize
from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple

from rewardkit.suites.literal_values import Imports, NotLiteral, Tolerance, are_apart, literal_value
from rewardkit.suites.source_text import Edit, SourceText
from sandbox import parse_expression

_STRING = re.compile(r"(?P<prefix>[A-Za-z]*)(?P<quote>'''|\"\"\"|'|\")(?P<body>.*)(?P=quote)", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:N\{[^}]*\}|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-7]{1,3}|\r\n|.)", re.DOTALL)
_MANTISSA = re.compile(r"[\d_.]+")
_BASES = {"0x": "0123456789abcdef", "0o": "01234567", "0b": "01"}
_CLASSES = ("0123456789", "aeiou", "bcdfghjklmnpqrstvwxyz", "AEIOU", "BCDFGHJKLMNPQRSTVWXYZ")
_MARKS = (".,;:!?", "+-*/", "()[]{}<>", "_-=~", "@#$%&|^")
_TRIES = 40
_TELLING = 3  # characters from which a value that stands in a file twice tells one by the other
_SLOTS = 3  # places that are changed at once: who sees the changed value must guess among more


class TextSlot(NamedTuple):
    """A part of a text, and what may stand in its place; ``is_mark`` for a sign that is neither letter nor digit."""

    start: int
    end: int
    choices: tuple[str, ...]
    is_mark: bool = False


def number_slots(text: str) -> Iterator[TextSlot]:
    """Yield the digits of a number, but those of its exponent."""
    if digits := _BASES.get(text[:2].lower()):
        places = [at for at in range(2, len(text)) if text[at] != "_"]
    else:
        digits, mantissa = "0123456789", _MANTISSA.match(text)
        places = [at for at in range(mantissa.end() if mantissa else 0) if text[at].isdecimal()]
    is_whole = text.replace("_", "").isalnum() and "e" not in text.lower().removeprefix("0x") and text[-1] not in "jJ"
    for at in places:
        leads = at == places[0] and len(places) > 1 and is_whole
        yield TextSlot(
            at, at + 1, tuple(digit for digit in digits if digit != text[at].lower() and (digit, leads) != ("0", True))
        )


def character_choices(character: str) -> tuple[tuple[str, ...], bool]:
    """Return the characters of a character's class, and whether it is a sign."""
    for letters in _CLASSES:
        if character in letters:
            return tuple(letter for letter in letters if letter != character), False
    for marks in _MARKS:
        if character in marks:
            return tuple(mark for mark in marks if mark != character), True
    if character.isalpha():
        near = [chr(ord(character) + step) for step in (-3, -2, -1, 1, 2, 3) if ord(character) + step < 0x10FFFF]
        return tuple(other for other in near if _is_alike(other, character)), False
    return (), True


def _is_alike(other: str, character: str) -> bool:
    return (
        other.isalpha()
        and other.casefold() != character.casefold()
        and (other.islower(), other.isupper()) == (character.islower(), character.isupper())
        and len(other.encode(errors="replace")) == len(character.encode())
    )


def _string_slots(text: str, start: int) -> Iterator[TextSlot]:
    """Yield the characters of one string token that stand for themselves."""
    match = _STRING.fullmatch(text)
    if match is None or "f" in match["prefix"].lower():
        return
    at, end = match.start("body"), match.end("body")
    escape = None if "r" in match["prefix"].lower() else _ESCAPE
    for slot in character_slots(text, at, end, escape):
        yield slot._replace(start=start + slot.start, end=start + slot.end)


def character_slots(text: str, at: int, end: int, escape: re.Pattern[str] | None) -> Iterator[TextSlot]:
    """Yield the characters of a span that stand for themselves; those of escapes do not."""
    while at < end:
        escaped = escape.match(text, at, end) if escape else None
        if escaped:
            at = escaped.end()
            continue
        choices, is_mark = character_choices(text[at])
        if choices:
            yield TextSlot(at, at + 1, choices, is_mark)
        at += 1


def _token_slots(text: str) -> Iterator[TextSlot]:
    """Yield the slots of all tokens of a literal of text, which may be several strings side by side."""
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    for token in tokenize.generate_tokens(io.StringIO(f"({text}\n)", newline="").readline):
        if token.type == tokenize.STRING:
            row, column = token.start
            start = starts[row - 1] + column - (row == 1)
            yield from _string_slots(token.string, start)


def constant_slots(text: str, value: object) -> Iterator[TextSlot]:
    """Yield what may be changed in the text of a constant; nothing for ``None`` and ``...``."""
    if isinstance(value, bool):
        yield TextSlot(0, len(text), (str(not value),))
    elif isinstance(value, int | float | complex):
        yield from number_slots(text)
    elif isinstance(value, str | bytes):
        yield from _token_slots(text)


def _count_of_word(text: str, word: str) -> int:
    """Return how often a word stands in a text, not as a part of a longer one."""
    return len(re.findall(rf"(?<!\w){re.escape(word)}(?!\w)", text))


class LiteralChange:
    """A literal expression of a file that can be changed so that nothing equals the old and the new value.

    Args:
        source: The file.
        node: The expression.
        imports: What names of the file stand for.
        tolerance: How far numbers may differ in the comparison.
    """

    def __init__(self, source: SourceText, node: ast.expr, imports: Imports, tolerance: Tolerance | None) -> None:
        self._imports = imports
        self._tolerance = tolerance
        self._start, end = source.span(node)
        self._text = source.text[self._start : end]
        self._value = literal_value(node, imports)
        core = self._text.strip("'\"")
        self._is_told_elsewhere = len(core) >= _TELLING and _count_of_word(source.text, core) > 1
        slots = []
        for leaf in ast.walk(node):
            if isinstance(leaf, ast.Constant):
                start, end = source.span(leaf)
                offset = start - self._start
                slots += [
                    TextSlot(offset + slot.start, offset + slot.end, slot.choices, slot.is_mark)
                    for slot in constant_slots(source.text[start:end], leaf.value)
                ]
        self._slots = [slot for slot in slots if not slot.is_mark] or slots

    @property
    def original(self) -> object:
        """The value as written."""
        return self._value

    @property
    def choices(self) -> int:
        """How many values of the same look there are, at least, among which who sees the changed one must guess.

        1 where the value stands elsewhere in the file too, as in a message or a comment, so that it can be found.
        """
        if self._is_told_elsewhere:
            return 1
        sizes = sorted(len(slot.choices) + 1 for slot in self._slots)[:_SLOTS]
        return max(1, math.prod(sizes) - 1)

    def _edit(self, picks: Sequence[tuple[TextSlot, str]]) -> Edit | None:
        """Return the change, or ``None`` for one that may leave the value equal or impossible."""
        start, end = picks[0][0].start, picks[-1][0].end
        text = list(self._text)
        for slot, choice in picks:
            text[slot.start : slot.end] = [choice] + [""] * (slot.end - slot.start - 1)
        changed = "".join(text[start:end])
        try:
            whole = f"({self._text[:start]}{changed}{self._text[end:]}\n)"
            new = literal_value(parse_expression(whole), self._imports)
            if not are_apart(self._value, new, self._tolerance):
                return None
        except (NotLiteral, SyntaxError, ValueError, TypeError, ArithmeticError):
            return None
        return Edit(self._start + start, self._start + end, changed)

    def _all(self) -> Iterator[Edit]:
        """Yield the changes of one place."""
        for slot in self._slots:
            for choice in slot.choices:
                if edit := self._edit([(slot, choice)]):
                    yield edit

    def is_possible(self) -> bool:
        """Return whether there is any change."""
        return next(self._all(), None) is not None

    def draw(self, random: Random) -> Edit:
        """Return a change, drawn anew: up to :data:`_SLOTS` places, each with any of its class, its own included."""
        for _ in range(_TRIES):
            slots = sorted(random.sample(self._slots, min(_SLOTS, len(self._slots))))
            own = [self._text[slot.start : slot.end] for slot in slots]
            picks = [(slot, random.choice((*slot.choices, text))) for slot, text in zip(slots, own, strict=True)]
            if edit := self._edit(picks):
                return edit
        return random.choice(list(self._all()))
