"""Which values C has a form for: scalars, texts, arrays of both, arrays of arrays, and LeetCode's lists and trees."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sandbox.errors import NotPlainError
from sandbox.languages.notation import Notation

_SCALARS = (bool, int, float)


def shapes_of(calls: Sequence[Sequence[Any]]) -> list[str]:
    """Return the form of each argument, the same for all calls: ``scalar``, ``text``, ``list`` or ``rows``.

    Raises:
        NotPlainError: An argument has no form in C, or has several.
    """
    if len({len(call) for call in calls}) > 1:
        raise NotPlainError("the calls have different numbers of arguments, which no function of C takes")
    merged = [_merged(map(_shape, column)) for column in zip(*calls, strict=True)]
    return [{"none": "text", "empty": "list"}.get(shape, shape) for shape in merged]


def _shape(value: Any) -> str:
    kind = type(value)
    if value is None:
        return "none"
    if kind in _SCALARS or kind is str:
        return "text" if kind is str else "scalar"
    if kind not in (list, tuple):
        raise NotPlainError(f"no type of C takes a {kind.__name__}")
    inner = _merged(map(_shape, value)) if value else "none"
    if inner == "rows":
        raise NotPlainError("no type of C takes lists so deep")
    return "empty" if not value else "rows" if inner in ("list", "empty") else "list"


def _merged(shapes: Iterable[str]) -> str:
    """Return the form that all of some values have."""
    names = set(shapes) - {"none"}
    if len(names) > 1:
        names.discard("empty")
    if len(names) > 1:
        raise NotPlainError(f"no type of C is both: {' and '.join(sorted(names))}")
    return next(iter(names), "none")


class CNotation(Notation):
    """The notation of C, where a letter is a number and a number is true where it is not 0."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(letters=True, numeric_truth=True)

    def check(self, expected: Any) -> None:
        """Raise NotPlainError where no type of C is the expected value's."""
        _shape(expected)
