"""What a detector says: a detection, which becomes a flag of its window."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

SHOWN_ROWS = 8  # Completions that a flag names as evidence, at most
MOST_SPANS = 3  # Times that a flag names with their steps, at most


@dataclass(frozen=True, slots=True)
class Flag:
    """Something about a reward or a run that a person should look at. It stops nothing.

    Attributes:
        detector: The detector's name; ``health/<detector>`` is its metric.
        reward: The reward's name; ``None`` where it is about the weighted sum, or about no single reward.
        first_step: The first training step at which it held; ``None`` for completions without steps.
        last_step: The last one.
        value: The number that the detector measured.
        threshold: The number that the value was compared with.
        baseline: The same number in the run's own baseline; ``None`` where the detector needed none.
        words: The finding, in a sentence.
        action: The next thing to do, in a sentence.
        rows: Ids of completions that show it, at most 8.
        spans: The first and last step of each time that it held, oldest first; of a flag that comes and goes several.
        quote: What completions say, or the error of failed calls, where the finding is about it; ``words`` and
            ``action`` have none of it.
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
    spans: tuple[tuple[int, int], ...] = ()
    quote: str = ""

    def __post_init__(self) -> None:
        if not self.spans and self.first_step is not None and self.last_step is not None:
            object.__setattr__(self, "spans", ((self.first_step, self.last_step),))

    @property
    def steps(self) -> str:
        """The steps in words: ``40-49``, ``0-9, 30-39``, of many the first, the last and the count; empty without."""
        spans = [str(first) if first == last else f"{first}-{last}" for first, last in self.spans]
        if len(spans) > MOST_SPANS:
            return f"{spans[0]} to {spans[-1]}, {len(spans)} times"
        return ", ".join(spans)

    def again(self, flag: Flag) -> Flag:
        """Return this flag, which another window has raised again: with its steps, and with that window's numbers."""
        spans = list(self.spans)
        for first, last in flag.spans:
            if first <= spans[-1][1] + 1:
                spans[-1] = spans[-1][0], max(last, spans[-1][1])
            else:
                spans.append((first, last))
        return replace(flag, first_step=self.first_step, rows=self.rows or flag.rows, spans=tuple(spans))

    def as_row(self) -> dict[str, Any]:
        """Return the flag as a dictionary ready for JSON."""
        lists = {"rows": list(self.rows), "spans": [list(span) for span in self.spans]}
        return {name: getattr(self, name) for name in self.__slots__} | lists


def stretch_text(stretch: tuple[int, int]) -> str:
    """Return the first and last step in words: ``steps 20 to 29``, ``step 4``."""
    first, last = stretch
    return f"steps {first:,} to {last:,}" if first != last else f"step {first:,}"


OnFlag: TypeAlias = Callable[[Flag], None]


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
    quote: str = ""  # What completions say, where it is about such a text; the sentences have none of it
