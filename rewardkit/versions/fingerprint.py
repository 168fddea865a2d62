"""Fingerprints of functions: 12 hexadecimal digits that change when what a reward does may have changed.

Values are taken when a fingerprint is made, because they may change later (:mod:`rewardkit.versions.meanings`).
Source is read when the digits are first asked for, because that takes milliseconds
(:mod:`rewardkit.versions.sources`). Nothing is imported or run.
"""

from __future__ import annotations

import copy
import hashlib
import inspect
import threading

from rewardkit.function import described
from rewardkit.run_code import Sources
from rewardkit.transport import loader_of
from rewardkit.versions.meanings import Normaliser, file_of, innermost

_taking = threading.Lock()  # held while a run takes the files of a fingerprint: two threads may make runtimes of it


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

    __slots__ = ("_digits", "_normaliser", "_packages", "_parts", "_root", "_sources", "_used", "_words")

    def __init__(self, function: object, *beside: object) -> None:
        self._digits: str | None = None
        self._sources: Sources | None = None  # what the files are, from a run's start on
        self._packages: tuple[str, ...] = ()  # digests of local packages that the workers have besides
        self._used: dict[str, bytes | None] | None = None  # the files that the digits were read from
        self._normaliser = Normaliser()
        self._root: object = function
        self._parts = function, *beside
        text = described(inspect.unwrap(function) if callable(function) else function).source_text
        own = self._normaliser.meaning(function) if text is None else (getattr(function, "__name__", ""), text)
        self._words: object = (own, *map(self._normaliser.meaning, beside))

    @property
    def digits(self) -> str:
        """12 hexadecimal digits."""
        if not self._packages:
            return self.source
        return hashlib.sha256(repr((self.source, *self._packages)).encode()).hexdigest()[:12]

    @property
    def source(self) -> str:
        """The digits without packages; computed once."""
        if self._digits is None:
            from rewardkit.versions.sources import SourceReader  # it brings the parser along, and few processes ask

            loader = loader_of(innermost(self._root))
            sources = Sources(self._sources, {} if loader is None else {loader.path: loader.text})
            text = repr((self._words, SourceReader(self._normaliser.copy(), self._root, sources).read()))
            self._used = sources.texts
            self._digits = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
        return self._digits

    def data(self, file: str) -> bytes | None:
        """Return a file's bytes as the run has them that this is the fingerprint of; else as they are now."""
        return (self._sources or Sources()).data(file)

    def at_start(self, sources: Sources, packages: tuple[str, ...] = ()) -> Fingerprint:
        """Return the fingerprint at the start of a run, whose files are what ``sources`` has from now on.

        It is this one as long as nothing has changed since its digits were read, or since another run took the files.
        What a notebook defines counts by what it is now, and so do ``packages``: digests of local packages that the
        run's workers have besides.
        """
        fingerprint = self._read_from(sources)
        if packages != fingerprint._packages:
            fingerprint = copy.copy(fingerprint)
            fingerprint._packages = packages
        return fingerprint

    def _read_from(self, sources: Sources) -> Fingerprint:
        """Return the fingerprint that reads its source from these files: this one where they have not changed."""
        if not self._parts:
            return self
        if file_of(innermost(self._root)) is None:
            now = Fingerprint(*self._parts)
            now._sources = sources
            return self if self.source == now.source else now
        with _taking:
            if self._used is None and self._sources is None:
                self._sources = sources
                return self
        files = self._sources.texts if self._used is None and self._sources is not None else self._used or {}
        files = files.copy()  # a runtime that another thread makes may be reading more of them
        if all(sources.data(file) == data for file, data in files.items()):
            return self
        again = copy.copy(self)
        again._sources, again._digits, again._used = sources, None, None
        return again


def recorded(digits: str) -> Fingerprint:
    """Return a fingerprint whose digits are known: those of a reward that came from another process."""
    fingerprint = Fingerprint(None)
    fingerprint._digits, fingerprint._parts = digits, ()
    return fingerprint
