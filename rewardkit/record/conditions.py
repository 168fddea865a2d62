"""The language in which completions are chosen: ``judge<0.2 and level=hard``, on the command line and on the page."""

from __future__ import annotations

import difflib
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rewardkit.errors import RecordError
from rewardkit.record.table import Floats
from rewardkit.shown.text import shortened

Mask: TypeAlias = NDArray[np.bool_]
NONE = "none"  # The value of a condition on what has no value
_QUOTES = "\"'`"
_SIGN = re.compile(r"[<>=!~]+|[≤≥≠]")
_AND = re.compile(r"\s+and(?:\s+|$)", re.IGNORECASE)
_OTHER_SIGNS = {"==": "=", "≤": "<=", "≥": ">=", "≠": "!="}
_COMPARE: Mapping[str, Callable[..., bool | Mask]] = {
    "<=": operator.le, ">=": operator.ge, "!=": operator.ne, "=": operator.eq, "<": operator.lt, ">": operator.gt,
}  # fmt: skip
_TRUTH = {"true": "1", "false": "0"}
_MOST_NEAR, _MOST_LISTED = 6, 24


class Condition(NamedTuple):
    """A condition on completions: a name, a sign and a value."""

    name: str  # What is compared
    sign: str  # `=`, `!=`, `<`, `<=`, `>` or `>=`
    value: str  # With what

    @property
    def text(self) -> str:
        """The condition as it is written."""
        value = _quoted(self.value) if _needs_quotes(self.value) else self.value
        return f"{quoted_name(self.name)}{self.sign}{value}"

    @property
    def is_absence(self) -> bool:
        """Whether it asks which completions have no value, or have one."""
        return self.value == NONE

    @property
    def negates(self) -> bool:
        """Whether it asks what is not so."""
        return self.sign == "!="

    def check_equality(self, reason: str) -> None:
        """Raise RecordError for a sign other than ``=`` and ``!=``; ``reason`` says what they are needed for."""
        if self.sign not in ("=", "!="):
            raise RecordError(f"condition {self.text}: {reason} is = or != another")

    def number(self, alternatives: str = "") -> float:
        """Return its value as a number; RecordError for another, which names what else it may be."""
        try:
            number = float(_TRUTH.get(self.value.lower(), self.value))
        except ValueError:
            raise RecordError(f"condition {self.text}: expected a number{alternatives}") from None
        if np.isnan(number):
            reason = f"nothing compares with NaN; {quoted_name(self.name)}={NONE} is what has no value"
            raise RecordError(f"condition {self.text}: {reason}")
        return number

    def mask(self, values: Floats, alternatives: str = "") -> Mask:
        """Return where numbers fit it; a missing one, ``nan``, fits no value. ``alternatives`` as of :meth:`number`."""
        has_value = ~np.isnan(values)
        if self.is_absence:
            self.check_equality("that there is no value")
            return has_value if self.negates else ~has_value
        return np.asarray(has_value & _COMPARE[self.sign](values, self.number(alternatives)))

    def fits(self, text: str) -> bool:
        """Return whether a value of the data fits it: by size where both are numbers, else by its letters."""
        wanted, own = as_number(self.value), as_number(text)
        if wanted is not None and own is not None:
            return bool(_COMPARE[self.sign](own, wanted))
        return bool(_COMPARE[self.sign](text, self.value))


def conditions_of(text: str) -> list[Condition]:
    """Return the conditions of a text such as ``judge<0.2 and "my column"="a and b"``; none of a blank one.

    ``and`` joins conditions. Quotes (``"``, ``'`` or a backtick) hold a name or a value that has ``and``, a sign, or
    spaces at its ends; without them the spaces around a name and a value do not count.

    Raises:
        RecordError: A condition has no name, no sign or another sign, or a quote does not end.
    """
    conditions = []
    rest = text.strip()
    while rest:
        condition, rest = _first_condition(rest)
        conditions.append(condition)
    return conditions


def all_conditions(texts: Iterable[str]) -> list[Condition]:
    """Return the conditions of several texts, all of which must hold; RecordError as :func:`conditions_of`."""
    return [condition for text in texts for condition in conditions_of(text)]


def _first_condition(text: str) -> tuple[Condition, str]:
    """Return the first condition of a text, and what follows its ``and``."""
    name, after = _part(text, _SIGN, text)
    sign = _SIGN.match(after)
    if sign is None or not name:
        raise _refusal(text, "expected a name, a sign and a value, such as judge<0.2; a value that has `and` is quoted")
    symbol = _OTHER_SIGNS.get(sign[0], sign[0])
    if symbol not in _COMPARE:
        signs = ", ".join(_COMPARE)
        raise _refusal(text, f"no sign {sign[0]!r}; there are {signs}; a value that begins with one is quoted")
    value, rest = _part(after[sign.end() :].lstrip(), _AND, text)
    joint = _AND.match(rest)
    if rest and joint is None:
        raise _refusal(text, f"expected `and` before {shortened(rest.strip(), 30)!r}")
    following = "" if joint is None else rest[joint.end() :].strip()
    if joint is not None and not following:
        raise _refusal(text, "expected a condition behind `and`")
    return Condition(name, symbol, value), following


def _part(text: str, end: re.Pattern[str], whole: str) -> tuple[str, str]:
    """Return the name or value that a text begins with, up to its closing quote or to ``end``, and what follows it."""
    if text[:1] and text[0] in _QUOTES:
        close = text.find(text[0], 1)
        if close < 0:
            raise _refusal(whole, f"the quote {text[0]} does not end")
        rest = text[close + 1 :]
        if not rest.strip() or end.match(rest.lstrip() if end is _SIGN else rest):
            return text[1:close], rest.lstrip() if end is _SIGN else rest.rstrip()
    match = end.search(text)
    if match is None:
        return text.strip(), ""
    return text[: match.start()].strip(), text[match.start() :]


def _refusal(text: str, reason: str) -> RecordError:
    return RecordError(f"condition {shortened(text, 60)!r}: {reason}")


def _needs_quotes(text: str) -> bool:
    return text != text.strip() or not text or bool(_AND.search(text) or text[0] in _QUOTES or _SIGN.match(text))


def quoted_name(name: str) -> str:
    """Return a name as a condition has it, in quotes where it needs them."""
    return _quoted(name) if _needs_quotes(name) or _SIGN.search(name) else name


def _quoted(text: str) -> str:
    mark = next((quote for quote in _QUOTES if quote not in text), _QUOTES[0])
    return f"{mark}{text}{mark}"


def as_number(text: str) -> float | int | None:
    """Return a text as a number, a whole one exactly; ``None`` for another text and for NaN."""
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        return None if np.isnan(number) else number
    return None


def unknown_name(name: str, names: Iterable[str], kind: str = "is called") -> RecordError:
    """Return the error for a name that nothing has; it names those that are near, or the first ones."""
    choices: Sequence[str] = list(dict.fromkeys(names))
    folded: dict[str, str] = {choice.casefold(): choice for choice in choices}
    near = [folded[key] for key in difflib.get_close_matches(name.casefold(), folded, _MOST_NEAR, 0.6)]
    near += [choice for key, choice in folded.items() if name.casefold() in key and choice not in near]
    if near:
        return RecordError(f"nothing {kind} {name!r}; near: {', '.join(map(quoted_name, near[:_MOST_NEAR]))}")
    more = f", and {len(choices) - _MOST_LISTED:,} more" if len(choices) > _MOST_LISTED else ""
    listed = ", ".join(quoted_name(choice) for choice in choices[:_MOST_LISTED])
    return RecordError(f"nothing {kind} {name!r}; there are {listed}{more}")
