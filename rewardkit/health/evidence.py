"""What detectors look at: recorded completions with their texts on demand, and what of them is worked out once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from rewardkit.health.measures import by_group
from rewardkit.record.audit_notes import AuditNote
from rewardkit.record.table import CompletionTable, Floats

SAMPLED = 256  # Completions of a window whose texts are read, in whole groups
CLIPPED = "completions/clipped_ratio"
"""The trainer's metric that stands in where the record does not say which completions were cut off."""

T = TypeVar("T")


class PromptRow(NamedTuple):
    """A prompt as text, and the columns of its row.

    Attributes:
        last: The last message of a user, where the prompt is a conversation.
    """

    prompt: str
    columns: Mapping[str, Any]
    last: str = ""

    @property
    def question(self) -> str:
        """What is asked: the last message, or the whole prompt."""
        return self.last or self.prompt


TextsOf: TypeAlias = Callable[[Sequence[int]], Sequence[str | None]]
"""The texts of completions, by their ids; ``None`` where a text was left out."""
PromptsOf: TypeAlias = Callable[[Sequence[int]], Sequence[PromptRow | None]]
"""Prompts and columns of completions, by their ids; ``None`` where they are not known."""
Ranges: TypeAlias = Mapping[str, tuple[float, float]]
"""By reward, the lowest and highest score that it or its parts declare; others are left out."""
Undeclared: TypeAlias = Mapping[str, Sequence[str]]
"""By reward whose range is not known, the rewards in it that declare none; nothing where only a clip would give one."""

ErrorsOf: TypeAlias = Callable[[Sequence[int], str], Sequence[str | None]]
"""The error messages of a reward's calls on completions, by their ids; ``None`` where a call has none."""


def nothing(ids: Sequence[int]) -> list[None]:
    """Return that nothing is known of these completions."""
    return [None] * len(ids)


def no_errors(ids: Sequence[int], reward: str) -> list[None]:
    """Return that no error message is known."""
    return [None] * len(ids)


class Sampled(NamedTuple):
    """Some completions of a window that have texts: whole groups, spread evenly over it."""

    table: CompletionTable  # The completions
    texts: list[str]  # Their texts
    drawn: CompletionTable  # The same, with the completions that were drawn and have no text


@dataclass(frozen=True)
class Evidence:
    """A window of completions, under one version of each reward.

    Attributes:
        series: By reward, its mean score at each step since its version began, oldest first, up to this window's end.
        lengths_by_step: The mean length at each of these steps; ``nan`` where it is not known.
        metrics: The trainer's metrics in the window's steps, by the trainer's names.
        audits: By reward, what an audit of the run's completions found.
        ranges: By reward, its ``score_range``; without those that declare none.
        undeclared: By reward without one, which rewards in it declare none.
        again: By reward, the scores of a second scoring of the same completions; ``nan`` without one.
    """

    table: CompletionTable  # The completions
    texts: TextsOf = nothing  # Where their texts come from
    prompts: PromptsOf = nothing  # Where their prompts and columns come from
    series: Mapping[str, Floats] = field(default_factory=dict)
    lengths_by_step: Floats = field(default_factory=lambda: np.empty(0))
    metrics: Mapping[str, Sequence[float]] = field(default_factory=dict)
    again: Mapping[str, Floats] = field(default_factory=dict)
    audits: Mapping[str, AuditNote] = field(default_factory=dict)
    ranges: Ranges = field(default_factory=dict)
    undeclared: Undeclared = field(default_factory=dict)
    before: Evidence | None = None  # The window before, for what changes between the two; `None` without one
    errors: ErrorsOf = no_errors  # Where the messages of failed calls come from
    recorded: bool = True  # Whether a run's record has the completions, so that commands can look into it
    _cache: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def cached(self, name: str, compute: Callable[[], T]) -> T:
        """Return the result of ``compute``, which runs once for each name."""
        if name not in self._cache:
            self._cache[name] = compute()
        value: T = self._cache[name]
        return value

    def errors_of(self, reward: str) -> str:
        """Return the command that shows a reward's errors; ``RUN`` stands for the run."""
        if not self.recorded:
            return "rewardkit score shows them"
        return f"rewardkit logs RUN --reward {reward} --status failed"

    @property
    def timed(self) -> bool:
        return bool(len(self.table)) and bool((self.table.steps >= 0).any())

    @property
    def span(self) -> tuple[int | None, int | None]:
        return (int(self.table.steps.min()), int(self.table.steps.max())) if self.timed else (None, None)

    @property
    def weights(self) -> dict[str, float]:
        """By reward, its largest weight in the window, by size."""
        return self.cached("weights", self._weights)

    def _weights(self) -> dict[str, float]:
        largest = {}
        for name, column in self.table.weights.items():
            weights = column[~np.isnan(column)]
            largest[name] = float(weights[np.abs(weights).argmax()]) if len(weights) else 0.0
        return largest

    @property
    def paid(self) -> list[str]:
        """The rewards with a weight other than 0."""
        return [name for name, weight in self.weights.items() if weight]

    def sampled(self) -> Sampled:
        """Return completions with their texts, at most 256, in whole groups."""
        return self.cached("sampled", self._sampled)

    def _sampled(self) -> Sampled:
        """Return whole groups, about SAMPLED completions, spread evenly over the window; only those with texts."""
        numbers, sizes = np.unique(self.table.groups, return_counts=True)
        count = max(1, int(SAMPLED / max(float(sizes.mean()), 1.0))) if len(numbers) else 0
        groups = numbers[np.linspace(0, len(numbers) - 1, min(count, len(numbers))).astype(int)]
        table = self.table.where(np.isin(self.table.groups, groups))  # whole groups: detectors compare inside them
        texts = self.texts(table.ids.tolist())
        has_text = np.array([text is not None for text in texts], dtype=bool)
        return Sampled(table.where(has_text), [text for text in texts if text is not None], table)

    def prompts_of_sample(self) -> dict[int, PromptRow | None]:
        """Return the row of each prompt of the sampled completions; ``None`` where it is not recorded."""
        table = self.sampled().table
        id_of = dict(zip(table.prompts.tolist(), table.ids.tolist(), strict=True))
        return dict(zip(id_of, self.prompts(list(id_of.values())), strict=True))

    def share_of_best(self, reference: Evidence | None = None) -> Floats:
        """Return how good each completion is: 0 where every reward is at its lowest, 1 where at its highest.

        It is where the weighted sum lies between the sums of the lowest and highest scores seen here and in
        ``reference``, with the completion's own weights, so that a schedule of weights moves nothing. ``nan`` without a
        score, or where nothing varies.
        """
        windows = [self] if reference is None else [self, reference]
        return self._share_of({name: extremes(windows, name) for name in self.table.scores})

    def share_of_declared(self) -> Floats:
        """Return the same between the ends of the declared ranges; ``nan`` where a reward declares none."""
        return self._share_of({name: self.ranges.get(name, (np.nan, np.nan)) for name in self.table.scores})

    def _share_of(self, ranges: Ranges) -> Floats:
        """Return where each weighted sum lies between the sums of the ranges' ends; ``nan`` where these are equal."""
        low, high, total = (np.zeros(len(self.table)) for _ in range(3))
        has_score = np.zeros(len(self.table), dtype=bool)
        for name, scores in self.table.scores.items():
            bottom, top = ranges[name]
            weight = np.nan_to_num(self.table.weights[name])
            counts = ~np.isnan(scores) & (weight != 0)
            has_score |= counts
            total += np.where(counts, weight * np.nan_to_num(scores), 0.0)
            low += np.where(counts, np.minimum(weight * bottom, weight * top), 0.0)
            high += np.where(counts, np.maximum(weight * bottom, weight * top), 0.0)
        room = high - low
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(has_score & (room > 1e-12), (total - low) / room, np.nan)  # no room: nothing varies


def extremes(windows: Sequence[Evidence], reward: str) -> tuple[float, float]:
    """Return the lowest and highest score of a reward, 0 and 0 without any."""
    parts = [window.table.scores[reward] for window in windows if reward in window.table.scores]
    scores = np.concatenate([part[~np.isnan(part)] for part in parts]) if parts else np.empty(0)
    return (float(scores.min()), float(scores.max())) if len(scores) else (0.0, 0.0)


def lengths(evidence: Evidence) -> Floats:
    """Return lengths in tokens, else in characters (of a sample above 2,000 completions), else ``nan``."""
    return evidence.cached("lengths", lambda: _lengths(evidence))


def _lengths(evidence: Evidence) -> Floats:
    """Return the lengths as :func:`lengths` does, worked out anew."""
    table = evidence.table
    if not len(table) or not np.isnan(table.tokens).all():
        return table.tokens
    if len(table) <= 2000:
        texts = evidence.texts(table.ids.tolist())
        return np.array([np.nan if text is None else len(text) for text in texts], dtype=float)
    sample = evidence.sampled()
    lengths = np.full(len(table), np.nan)
    lengths[np.isin(table.ids, sample.table.ids)] = [len(text) for text in sample.texts]
    return lengths


def by_step(values: Any, table: CompletionTable) -> Floats:
    """Return the mean of the known values of each step, in order."""
    return by_group(values, table.steps).means


def join_tables(tables: Sequence[CompletionTable]) -> CompletionTable:
    """Join tables to one; groups stay apart, and a reward that a table lacks has no scores there."""
    parts: dict[str, Any] = {}
    offsets = np.cumsum([0, *(int(table.groups.max()) + 1 if len(table) else 0 for table in tables[:-1])])
    for column_field in fields(CompletionTable):
        columns = [getattr(table, column_field.name) for table in tables]
        if column_field.name == "groups":
            parts["groups"] = np.concatenate([groups + offset for groups, offset in zip(columns, offsets, strict=True)])
        elif isinstance(columns[0], Mapping):
            sizes = list(map(len, tables))
            parts[column_field.name] = _join_by_reward(columns, sizes, _EMPTY[column_field.name])
        else:
            parts[column_field.name] = np.concatenate(columns)
    return CompletionTable(**parts)


def _join_by_reward(parts: Sequence[Mapping[str, Any]], sizes: Sequence[int], empty: object) -> dict[str, Any]:
    """Return each reward's column, joined of tables' columns by reward; ``empty`` stands in for what a table lacks."""
    joined = {}
    for name in dict.fromkeys(name for part in parts for name in part):
        columns = [
            part[name] if name in part else np.full(size, empty) for part, size in zip(parts, sizes, strict=True)
        ]
        joined[name] = np.concatenate(columns)
    return joined


_EMPTY: dict[str, Any] = {
    "scores": np.nan, "status": "", "causes": "", "seconds": np.nan, "versions": 0, "weights": 0.0,
}  # fmt: skip
"""What stands in a table's column for a reward that the table lacks."""
