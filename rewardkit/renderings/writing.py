"""The writing of an answer, and the seam of values: what each of them can be asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from random import Random
from typing import ClassVar, NamedTuple, Protocol, Self


class Writing(NamedTuple):
    """An answer as it is written, and what is done to the gold to write it so."""

    name: str
    text: str

    @property
    def is_formula(self) -> bool:
        """Whether it needs a box or dollar signs around it: it has commands, powers or indices of LaTeX."""
        return any(sign in self.text for sign in "\\^_{}")


class Value(Protocol):
    """What an answer means, with its kind's name; two values are equal where they mean the same."""

    kind: ClassVar[str]

    @classmethod
    def draw(cls, random: Random) -> Self:
        """Return a value drawn at random."""
        ...

    @classmethod
    def read(cls, text: str) -> Self | None:
        """Return the value that a gold's text is, ``None`` where it is no value of this kind or cannot be read."""
        ...

    @property
    def text(self) -> str:
        """The value as a gold is usually written."""
        ...

    def renderings(self) -> Iterator[Writing]:
        """Yield other writings of this value."""
        ...

    def perturbations(self) -> Iterator[Writing]:
        """Yield writings of other values near this one."""
        ...


def other_texts(text: str, writings: Iterable[Writing]) -> list[Writing]:
    """Return the writings that are not a text, each text once."""
    by_text = {writing.text: writing for writing in writings if writing.text != text}
    return list(by_text.values())
