"""One probe: a completion that is tried on a row, and what it is evidence of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from rewardkit.audit.families import Family
from rewardkit.types import Message


@dataclass(frozen=True, slots=True)
class Probe:
    """A completion to try.

    Attributes:
        family: The family it belongs to.
        name: What it is, in a few words.
        text: The completion.
        judged: Whether being paid counts against the reward; otherwise only slow and crashed calls do.
        columns: Columns to score it under instead of the row's own; ``None`` for these.
        frame: The name of the frame that it is written in; ``""`` for the bare form.
        thumb: The rule of thumb that a reward breaks which pays it; ``""`` for its family's own.
        partial: Whether a part of it is right, so that only full pay counts against the reward.
        said: The completion as messages, where it is more than one message with the text.
        point: The part of the text that matters; ``""`` for its end.
    """

    family: Family
    name: str
    text: str
    judged: bool = True
    columns: Mapping[str, Any] | None = None
    frame: str = ""
    thumb: str = ""
    partial: bool = False
    said: Sequence[Message] | None = None
    point: str = ""

    @property
    def full_name(self) -> str:
        """What it is and where it is written."""
        return f"{self.name}, {self.frame}" if self.frame else self.name


class Wrong(NamedTuple):
    """A wrong answer, not yet in a frame.

    Attributes:
        name: What it is, in a few words.
        text: The answer.
        thumb: The rule of thumb that a reward breaks which pays it; ``""`` for its family's own.
        partial: Whether a part of it is right.
    """

    name: str
    text: str
    thumb: str = ""
    partial: bool = False
