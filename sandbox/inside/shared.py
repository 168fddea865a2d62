"""Objects of classes that the tests and the code under test both have: they travel by their state, each once a message.

Who sends them owns a :class:`SharedObjects`; what the receiver makes of the rows is its own affair.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sandbox import plain


class SharedObjects:
    """The objects that a message sends, in the order of their numbers."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._numbers: dict[int, int] = {}

    def write(self, value: Any) -> dict[str, Any]:
        """Return the tree of an object of such a class: its number, or of an enumeration the member's name."""
        kind = type(value)
        if hasattr(kind, "__members__") and type(getattr(value, "name", None)) is str:
            return {"member": [kind.__name__, value.name]}
        if id(value) not in self._numbers:
            self._numbers[id(value)] = len(self.values)
            self.values.append(value)
        return {"shared": self._numbers[id(value)]}

    def rows(self, received: Sequence[Any] = ()) -> list[Any]:
        """Return a row for each object: its class, its state, and which of the received objects it is, or ``None``."""
        origins = {id(value): number for number, value in enumerate(received)}
        rows: list[Any] = []
        while len(rows) < len(self.values):  # a state may name others
            value = self.values[len(rows)]
            rows.append([type(value).__name__, plain.encode(state_of(value)), origins.get(id(value))])
        return rows


def state_of(value: Any) -> dict[str, Any]:
    """Return an object's attributes, those in slots too."""
    slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ()) if name[:2] != "__"]
    return {**{name: getattr(value, name) for name in slots if hasattr(value, name)}, **getattr(value, "__dict__", {})}


def set_state(value: Any, state: dict[str, Any]) -> None:
    """Set an object's attributes, past methods of its class."""
    for name, item in state.items():
        object.__setattr__(value, name, item)
