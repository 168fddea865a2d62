"""Fingerprints of functions: 12 hexadecimal digits that change when what a reward does may have changed.

Values are taken when a fingerprint is made, because they may change later (:mod:`rewardkit.versions.meanings`).
Source is read when the digits are first asked for, because that takes milliseconds
(:mod:`rewardkit.versions.sources`). Nothing is imported or run.
"""

from __future__ import annotations

import hashlib
import inspect

from rewardkit.function import described
from rewardkit.versions.meanings import Normaliser


class Fingerprint:
    """The fingerprint of a function, of an object that is called like one, or of other values.

    It covers the function's source, and the functions, classes, constants and modules of the user's own that the
    source uses, at any depth. Plain values, containers, dataclasses, patterns, functions, the user's own objects and
    rewards that it closes over or holds count by what they are, other values by their type. Equal source and settings
    have equal digits in every process, folder and version of Python; comments, layout and docstrings do not count.
    Where there is no source, as at the prompt, the compiled code counts.

    Args:
        function: The function.
        beside: Further values that belong to it, such as its options.
    """

    __slots__ = ("_digits", "_normaliser", "_root", "_words")

    def __init__(self, function: object, *beside: object) -> None:
        self._digits: str | None = None
        self._normaliser = Normaliser()
        self._root: object = function
        text = described(inspect.unwrap(function) if callable(function) else function).source_text
        own = self._normaliser.meaning(function) if text is None else (getattr(function, "__name__", ""), text)
        self._words: object = (own, *map(self._normaliser.meaning, beside))

    @property
    def digits(self) -> str:
        """12 hexadecimal digits; computed once."""
        if self._digits is None:
            from rewardkit.versions.sources import SourceReader  # it brings the parser along, and few processes ask

            text = repr((self._words, SourceReader(self._normaliser.copy(), self._root).read()))
            self._digits = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
        return self._digits


def recorded(digits: str) -> Fingerprint:
    """Return a fingerprint whose digits are known: those of a reward that came from another process."""
    fingerprint = Fingerprint(None)
    fingerprint._digits = digits
    return fingerprint
