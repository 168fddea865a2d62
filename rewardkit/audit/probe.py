"""One probe: a completion that is tried on a row, and the family of probes that it belongs to.

``docs/how-to/audit-a-reward.md`` has each family's rule: what is tried, what counts against a reward, and where it does
not apply; its probes are then run for slow and crashed calls only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar

from rewardkit.types import Message

T = TypeVar("T")


class Family(StrEnum):
    """What a probe tries."""

    EMPTY = "empty"
    ECHO = "echo"
    FORMAT = "format"
    STUFFING = "stuffing"
    MISPLACED = "misplaced"
    NEGATED = "negated"
    WORK = "work"
    NEIGHBOUR = "neighbour"
    UNFINISHED = "unfinished"
    OTHER_GOLD = "other_gold"
    LOOKALIKE = "lookalike"
    LONG = "long"
    JUDGE = "judge"
    BOMB = "bomb"
    CODE = "code"
    AMOUNT = "amount"
    FORMS = "forms"


NEEDS_FRAME = frozenset({
    Family.STUFFING, Family.MISPLACED, Family.NEGATED, Family.NEIGHBOUR, Family.UNFINISHED, Family.OTHER_GOLD,
    Family.LOOKALIKE,
})  # fmt: skip
"""Families whose completions could be paid only in a frame in which the right answer is."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A completion to try."""

    family: Family
    name: str
    text: str
    judged: bool = True  # Whether being paid counts against the reward; otherwise only slow and crashed calls do
    columns: Mapping[str, Any] | None = None  # Columns to score it under instead of the row's own; `None` for these
    frame: str = ""  # The name of the frame that it is written in; `""` for the bare form
    rule: str = ""  # The rule of thumb that a reward breaks which pays it; `""` for its family's own
    partial: bool = False  # Whether a part of it is right, so that only full pay counts against the reward
    messages: Sequence[Message] | None = None  # It as messages, where it is more than one message with the text
    point: str = ""  # The part of the text that matters; `""` for its end
    step: int = 0  # Its place on a ladder of more and more of one thing, from 1; 0 where it stands on none
    mutation: str = ""  # How a run's completion was changed to make it

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for probes of a family that are the same to a reward."""
        return self.family, self.text, "" if self.messages is None else repr(self.messages)

    @property
    def full_name(self) -> str:
        """What it is and where it is written."""
        return f"{self.name}, {self.frame}" if self.frame else self.name


def first_of_each(items: Iterable[T], key: Callable[[T], object]) -> list[T]:
    """Return the first of the items that have one key."""
    firsts: dict[object, T] = {}
    for item in items:
        firsts.setdefault(key(item), item)
    return list(firsts.values())


class Wrong(NamedTuple):
    """A wrong answer, not yet in a frame: what it is in a few words, and as in :class:`Probe`."""

    name: str
    text: str
    rule: str = ""
    partial: bool = False
