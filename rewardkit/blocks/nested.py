"""How a value that is nested deeper than pickle goes travels: as its parts, one after another.

A model writes such values: the arguments of a tool call are JSON as deep as it likes.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from rewardkit.errors import DataError

_MOST_PARTS = 1_000_000  # what holds itself has no end
_BUILDERS: dict[type, Callable[[list[object]], object]] = {list: list, tuple: tuple}


def dumps(value: object) -> bytes:
    """Return the pickled bytes of a value of lists, tuples and dicts, however deep it is nested.

    Raises DataError as :func:`parts`, and what pickle raises of a part.
    """
    try:
        return pickle.dumps(value, 5)
    except RecursionError:
        return pickle.dumps(_Nested(value), 5)


def copied(value: object) -> Any:
    """Return a copy of a value and of all in it, however deep it is nested; raise as :func:`parts`."""
    try:
        return copy.deepcopy(value)
    except RecursionError:
        return _joined((kind, copy.deepcopy(part) if kind is None else part) for kind, part in parts(value))


class _Nested:
    """A value that is pickled as its parts, and loaded as itself."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __reduce__(self) -> tuple[Callable[[list[tuple[type | None, object]]], object], tuple[object]]:
        return _joined, (list(parts(self.value)),)


def parts(value: object) -> Iterator[tuple[type | None, object]]:
    """Yield the parts of a value, those of a container before it: its type with its size or keys, or None and a leaf.

    Raises DataError where there are more than 1,000,000.
    """
    left: list[tuple[object, bool]] = [(value, False)]
    for _ in range(_MOST_PARTS):
        if not left:
            return
        part, is_done = left.pop()
        kind = type(part)
        if not isinstance(part, dict | list | tuple) or kind not in (dict, list, tuple):
            yield None, part
        elif is_done:
            yield kind, list(part) if isinstance(part, dict) else len(part)
        else:
            children: Iterable[object] = part.values() if isinstance(part, dict) else part
            left.append((part, True))
            left += [(child, False) for child in reversed(list(children))]
    raise DataError(f"it has more than {_MOST_PARTS:,} nested parts, or holds itself")


def _joined(parts: Iterable[tuple[type | None, object]]) -> object:
    """Return the value that has these parts."""
    made: list[object] = []
    for kind, detail in parts:
        if kind is None:
            made.append(detail)
            continue
        size = len(detail) if isinstance(detail, list) else int(str(detail))
        children = made[len(made) - size :]
        del made[len(made) - size :]
        made.append(dict(zip(detail, children, strict=True)) if isinstance(detail, list) else _BUILDERS[kind](children))
    return made[0]
