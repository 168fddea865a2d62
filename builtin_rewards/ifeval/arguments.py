"""The arguments of a verifiable instruction, read with care: what is missing or odd is named, never guessed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Checker = Callable[[str], bool]
"""Whether a text that is not blank follows an instruction."""


class UnusableInstructionError(ValueError):
    """An instruction's id is unknown, or its arguments cannot be used: the row is at fault, not the completion."""


@dataclass(frozen=True, slots=True)
class Bound:
    """How many of something there must be.

    Attributes:
        limit: The number that the relation is to.
        below: ``less than`` the limit; otherwise ``at least``.
    """

    limit: int
    below: bool

    def holds(self, found: int) -> bool:
        """Whether that many are right."""
        return found < self.limit if self.below else found >= self.limit


class Arguments:
    """One instruction's arguments by name; those that are ``None`` count as absent.

    Every method raises :class:`UnusableInstructionError` where the argument is missing or of the wrong type.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = {name: value for name, value in values.items() if value is not None}

    def number(self, name: str, at_least: int = 0) -> int:
        """Gives a whole number; tables of a data set that hold it as ``3.0`` are understood."""
        value = self._get(name)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or value < at_least:
            raise self._odd(name, f"a whole number of at least {at_least}")
        return value

    def text(self, name: str) -> str:
        """Gives a text that is not blank."""
        value = self._get(name)
        if not isinstance(value, str) or not value.strip():
            raise self._odd(name, "a text that is not blank")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        """Gives a list of texts, at least one, none of them blank."""
        value = self._get(name)
        listed = isinstance(value, list | tuple) and value
        if not listed or not all(isinstance(one, str) and one.strip() for one in value):
            raise self._odd(name, "a list of texts that are not blank")
        return tuple(value)

    def bound(self, relation: str, number: str) -> Bound:
        """Gives a bound from the names of its two arguments."""
        word = self._get(relation)
        if word not in ("less than", "at least"):
            raise self._odd(relation, "'less than' or 'at least'")
        return Bound(self.number(number), below=word == "less than")

    def described(self, width: int = 80) -> str:
        """Gives the arguments on one line, cut to a width, for a reason."""
        line = ", ".join(f"{name}={repr(value)[:width]}" for name, value in sorted(self._values.items()))
        return line if len(line) <= width else line[: width - 3] + "..."

    def _get(self, name: str) -> Any:
        if name not in self._values:
            raise UnusableInstructionError(f"argument {name!r} is missing")
        return self._values[name]

    def _odd(self, name: str, wanted: str) -> UnusableInstructionError:
        return UnusableInstructionError(f"argument {name!r}: expected {wanted}, got {repr(self._values[name])[:80]}")
