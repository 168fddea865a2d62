"""What a detector says: a detection, which becomes a flag of its window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

SHOWN_ROWS = 8  # Completions that a flag names as evidence, at most


@dataclass(frozen=True, slots=True)
class Flag:
    """Something about a reward or a run that a person should look at. It stops nothing.

    Attributes:
        detector: The detector's name; ``health/<detector>`` is its metric.
        reward: The reward's name; ``None`` where it is about the weighted sum, or about no single reward.
        first_step: The first training step that was looked at; ``None`` for completions without steps.
        last_step: The last one.
        value: The number that the detector measured.
        threshold: The number that the value was compared with.
        baseline: The same number in the run's own baseline; ``None`` where the detector needed none.
        words: The finding, in a sentence.
        action: The next thing to do, in a sentence.
        rows: Ids of completions that show it, at most 8.
    """

    detector: str
    reward: str | None
    first_step: int | None
    last_step: int | None
    value: float
    threshold: float
    baseline: float | None
    words: str
    action: str
    rows: tuple[int, ...] = ()

    @property
    def steps(self) -> str:
        """The steps in words: ``40-49``; empty for completions without steps."""
        if self.first_step is None:
            return ""
        return str(self.first_step) if self.first_step == self.last_step else f"{self.first_step}-{self.last_step}"

    def as_row(self) -> dict[str, Any]:
        """Return the flag as a dictionary ready for JSON."""
        return {name: getattr(self, name) for name in self.__slots__} | {"rows": list(self.rows)}


class Detection(NamedTuple):
    """What a detector found in a window.

    Attributes:
        rows: A mask or the indices of the completions that show it, the best examples first; all unless given.
    """

    value: float  # The number that it measured
    threshold: float  # What the number was compared with
    message: str  # What it found, in a sentence
    action: str  # What to do next, in a sentence
    baseline: float | None = None  # The same number in the baseline; `None` where it needed none
    rows: Any = slice(None)
    reward: str | None = None  # The reward that it is about, of a detector that does not look at each reward by itself
