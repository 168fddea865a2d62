"""What detectors look at: recorded completions with their texts on demand, and what of them is worked out once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from rewardkit.health.measures import grouped
from rewardkit.record.table import CompletionTable, Floats

SAMPLED = 256
"""Completions of a window whose texts are read, in whole groups."""
CLIPPED = "completions/clipped_ratio"
"""The trainer's metric that stands in where the record does not say which completions were cut off."""

T = TypeVar("T")


class PromptRow(NamedTuple):
    """A prompt as text, and the columns of its row."""

    prompt: str
    columns: Mapping[str, Any]


TextsOf: TypeAlias = Callable[[Sequence[int]], list[str | None]]
"""The texts of completions, by their ids; ``None`` where a text was left out."""
AskedOf: TypeAlias = Callable[[Sequence[int]], list[PromptRow | None]]
"""Prompts and columns of completions, by their ids; ``None`` where they are not known."""


def no_texts(ids: Sequence[int]) -> list[str | None]:
    """Return no texts."""
    return [None] * len(ids)


def no_prompts(ids: Sequence[int]) -> list[PromptRow | None]:
    """Return no prompts."""
    return [None] * len(ids)


class Sampled(NamedTuple):
    """Some completions of a window that have texts: whole groups, spread evenly over it.

    Attributes:
        table: The completions.
        texts: Their texts.
    """

    table: CompletionTable
    texts: list[str]


@dataclass(frozen=True)
class Evidence:
    """A window of completions, under one version of each reward.

    Attributes:
        table: The completions.
        texts: Where their texts come from.
        asked: Where their prompts and columns come from.
        series: By reward, its mean score at each step since its version began, oldest first, up to this window's end.
        metrics: The trainer's metrics in the window's steps, by the trainer's names.
        again: By reward, the scores of a second scoring of the same completions; ``nan`` without one.
        recorded: Whether a run's record has the completions, so that commands can look into it.
    """

    table: CompletionTable
    texts: TextsOf = no_texts
    asked: AskedOf = no_prompts
    series: Mapping[str, Floats] = field(default_factory=dict)
    metrics: Mapping[str, Sequence[float]] = field(default_factory=dict)
    again: Mapping[str, Floats] = field(default_factory=dict)
    recorded: bool = True
    _kept: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def kept(self, name: str, work: Callable[[], T]) -> T:
        """Return what ``work`` returns, which runs once for each name."""
        if name not in self._kept:
            self._kept[name] = work()
        found: T = self._kept[name]
        return found

    def errors_of(self, reward: str) -> str:
        """Return where a reward's errors are to be seen, as a command; ``RUN`` stands for the run."""
        if not self.recorded:
            return "rewardkit score shows them"
        return f"rewardkit logs RUN --reward {reward} --status failed"

    @property
    def timed(self) -> bool:
        """Whether the completions have steps."""
        return bool(len(self.table)) and bool((self.table.steps >= 0).any())

    @property
    def span(self) -> tuple[int | None, int | None]:
        """The first and last step."""
        return (int(self.table.steps.min()), int(self.table.steps.max())) if self.timed else (None, None)

    @property
    def weights(self) -> dict[str, float]:
        """By reward, its largest weight in the window, by size."""
        return self.kept("weights", self._weights)

    def _weights(self) -> dict[str, float]:
        found = {}
        for name, column in self.table.weights.items():
            told = column[~np.isnan(column)]
            found[name] = float(told[np.abs(told).argmax()]) if len(told) else 0.0
        return found

    @property
    def paid(self) -> list[str]:
        """The rewards with a weight other than 0."""
        return [name for name, weight in self.weights.items() if weight]

    def sampled(self) -> Sampled:
        """Return completions with their texts, at most 256, in whole groups."""
        return self.kept("sampled", self._sampled)

    def _sampled(self) -> Sampled:
        numbers, sizes = np.unique(self.table.groups, return_counts=True)
        wanted = max(1, int(SAMPLED / max(float(sizes.mean()), 1.0))) if len(numbers) else 0
        chosen = numbers[np.linspace(0, len(numbers) - 1, min(wanted, len(numbers))).astype(int)]
        table = self.table.where(np.isin(self.table.groups, chosen))
        texts = self.texts(table.ids.tolist())
        there = np.array([text is not None for text in texts], dtype=bool)
        return Sampled(table.where(there), [text for text in texts if text is not None])

    def share_of_best(self, others: Evidence | None = None) -> Floats:
        """Return how good each completion is: 0 where every reward is at its lowest, 1 where at its highest.

        The weighted sum, between the sums of the lowest and highest scores that were seen, under the completion's own
        weights; so a weight that follows a schedule moves nothing. ``nan`` without a score, or where nothing varies.

        Args:
            others: Further completions whose scores count as seen.
        """
        seen = [self] if others is None else [self, others]
        low, high, total = (np.zeros(len(self.table)) for _ in range(3))
        any_known = np.zeros(len(self.table), dtype=bool)
        for name, scores in self.table.scores.items():
            bottom, top = extremes(seen, name)
            weight = np.nan_to_num(self.table.weights[name])
            there = ~np.isnan(scores) & (weight != 0)
            any_known |= there
            total += np.where(there, weight * np.nan_to_num(scores), 0.0)
            low += np.where(there, np.minimum(weight * bottom, weight * top), 0.0)
            high += np.where(there, np.maximum(weight * bottom, weight * top), 0.0)
        room = high - low
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(any_known & (room > 1e-12), (total - low) / room, np.nan)


def extremes(seen: Sequence[Evidence], reward: str) -> tuple[float, float]:
    """Return the lowest and highest score of a reward, 0 and 0 without any."""
    parts = [one.table.scores[reward] for one in seen if reward in one.table.scores]
    known = np.concatenate([part[~np.isnan(part)] for part in parts]) if parts else np.empty(0)
    return (float(known.min()), float(known.max())) if len(known) else (0.0, 0.0)


def lengths(evidence: Evidence) -> Floats:
    """Return lengths in tokens, or in characters of the texts where tokens are not known; ``nan`` where neither is.

    Characters are read of a sample in a window of more than 2,000 completions.
    """
    return evidence.kept("lengths", lambda: _lengths(evidence))


def _lengths(evidence: Evidence) -> Floats:
    table = evidence.table
    if not len(table) or not np.isnan(table.tokens).all():
        return table.tokens
    if len(table) <= 2000:
        return np.array(
            [np.nan if one is None else len(one) for one in evidence.texts(table.ids.tolist())], dtype=float
        )
    sample = evidence.sampled()
    found = np.full(len(table), np.nan)
    found[np.isin(table.ids, sample.table.ids)] = [len(text) for text in sample.texts]
    return found


def by_step(values: Any, table: CompletionTable) -> Floats:
    """Return the mean of the known values of each step, in order."""
    return grouped(values, table.steps).means


def joined(tables: Sequence[CompletionTable]) -> CompletionTable:
    """Return several tables as one; groups stay apart, and a reward that a table lacks has no scores there."""
    parts: dict[str, Any] = {}
    offsets = np.cumsum([0, *(int(one.groups.max()) + 1 if len(one) else 0 for one in tables[:-1])])
    for one in fields(CompletionTable):
        columns = [getattr(table, one.name) for table in tables]
        if one.name == "groups":
            parts["groups"] = np.concatenate([c + o for c, o in zip(columns, offsets, strict=True)])
        elif isinstance(columns[0], Mapping):
            names = dict.fromkeys(name for column in columns for name in column)
            empty = _EMPTY[one.name]
            parts[one.name] = {
                name: np.concatenate(
                    [
                        column[name] if name in column else np.full(len(table), empty)
                        for column, table in zip(columns, tables, strict=True)
                    ]
                )
                for name in names
            }
        else:
            parts[one.name] = np.concatenate(columns)
    return CompletionTable(**parts)


_EMPTY: dict[str, Any] = {
    "scores": np.nan,
    "status": "",
    "causes": "",
    "seconds": np.nan,
    "versions": 0,
    "weights": 0.0,
}
