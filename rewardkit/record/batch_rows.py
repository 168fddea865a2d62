"""What of a scored batch is kept, as plain values: made without a database, and tested so."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from rewardkit.advantages import group_advantages, weighted_rewards
from rewardkit.groups import content_bytes, group_numbers
from rewardkit.own_columns import is_own
from rewardkit.score_batch import ScoreBatch
from rewardkit.types import Outcome, Rollout, Status, Text

LETTERS = {Status.SCORED: "s", Status.SKIPPED: "k", Status.FAILED: "f"}
"""How a status is written: one letter a reward, in capitals where the outcome came from the cache."""


_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def _as_json(value: object) -> object:
    """Return what JSON has for a value that it does not know: numpy's numbers and arrays as numbers and lists.

    In the words for an image or another object a digest of its content stands for its address: a row is the same row
    in each epoch.
    """
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    words = repr(value)
    digest = _digest_of(value) if _ADDRESS.search(words) else None
    return words if digest is None else _ADDRESS.sub(f" of content {digest}", words)


def _digest_of(value: object) -> str | None:
    """Return a digest of the content of a value; ``None`` for one that does not pickle."""
    try:
        return hashlib.blake2b(content_bytes(value), digest_size=8).hexdigest()
    except Exception:  # pickling runs the value's own code, which may raise anything
        return None


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_as_json)


class Said(NamedTuple):
    """What an outcome said beside its number.

    Attributes:
        place: The completion's place in the batch.
        column: The reward's place in the batch's list.
        reason: Why it scored so.
        metrics: JSON of its metrics.
        cause: Why it failed.
        error: The error in words.
        traceback: The reward's frames.
        logs: What it printed and logged.
        attempts: How often it ran.
        unanswered: JSON of the rewards inside it that gave no score.
    """

    place: int
    column: int
    reason: str | None
    metrics: str | None
    cause: str | None
    error: str | None
    traceback: str | None
    logs: str | None
    attempts: int
    unanswered: str | None


class RewardSums(NamedTuple):
    """Sums over one reward's outcomes in a batch.

    Attributes:
        scored: Calls with a score.
        skipped: Calls that did not apply.
        failed: Calls that failed, with or without a default that stands in.
        counted: Calls with a number that the trainer was told, a default that stands in for a failure included.
        causes: JSON of the failed calls' number by cause.
        mean: Of these numbers; ``None`` without any.
        std: Their standard deviation (``ddof=1``); ``None`` with fewer than two.
        low: The lowest score, of those that the trainer was not told too: where it left out the completion.
        high: The highest.
        p50_s: Median seconds of the calls that ran.
        p95_s: 95th percentile of these.
        groups: Groups with two numbers or more that the trainer was told.
        flat_groups: Those of them whose scores are all the same.
    """

    scored: int
    skipped: int
    failed: int
    counted: int
    causes: str
    mean: float | None
    std: float | None
    low: float | None
    high: float | None
    p50_s: float | None
    p95_s: float | None
    groups: int
    flat_groups: int


@dataclass(frozen=True, slots=True)
class BatchRows:
    """A scored batch, ready to be written; lists have one entry a completion.

    Attributes:
        rewards: The rewards' names in order.
        versions: The digits of the version of each reward; empty where it is not known.
        weights: Each reward's weight.
        prompts: The prompts as text, see :func:`text_of`.
        columns: The rows' columns as JSON.
        completions: The completions as text.
        tokens: Lengths of the completions in tokens.
        truncated: Whether each was cut at the most tokens allowed.
        groups: The number of each completion's group in the batch, or in the trainer's of which the batch is a part.
        totals: Plain sums of the scores of the rewards that weigh anything: neither parts of a composition nor shadows.
        weighted: Weighted sums, as TRL's ``reward``.
        advantages: What the trainer makes of them.
        status: One letter a reward, see :data:`LETTERS`.
        scores: 8 bytes a reward, a little-endian float64; ``nan`` where there is no score.
        seconds: 4 bytes a reward, a little-endian float32: how long the last attempt took.
        said: What outcomes said beside their numbers.
        summaries: One a reward.
    """

    rewards: tuple[str, ...]
    versions: tuple[str, ...]
    weights: tuple[float, ...]
    prompts: Sequence[str]
    columns: Sequence[str]
    completions: Sequence[str]
    tokens: Sequence[int | None]
    truncated: Sequence[bool | None]
    groups: Sequence[int]
    totals: Sequence[float | None]
    weighted: Sequence[float | None]
    advantages: Sequence[float | None]
    status: Sequence[str]
    scores: Sequence[bytes]
    seconds: Sequence[bytes]
    said: Sequence[Said]
    summaries: Sequence[RewardSums]

    @property
    def text_bytes(self) -> int:
        """About how much memory those texts take that are left out first: completions, output and tracebacks."""
        said = sum(len(one.logs or "") + len(one.traceback or "") for one in self.said)
        return sum(map(len, self.completions)) + said

    @property
    def number_bytes(self) -> int:
        """About how much memory the rest takes."""
        words = sum(600 + len(one.reason or "") + len(one.error or "") for one in self.said)
        prompts = sum(map(len, {*self.prompts, *self.columns}))
        return len(self.completions) * (600 + 100 * len(self.rewards)) + words + prompts

    def lean(self) -> BatchRows:
        """Return the rows without the texts that are left out first."""
        said = [one._replace(logs=None, traceback=None) for one in self.said]
        return replace(self, completions=[""] * len(self.completions), said=said)


def rows_of(
    batch: ScoreBatch,
    *,
    num_generations: int | None = None,
    truncated: Sequence[bool | None] | None = None,
    handed: Mapping[str, Sequence[float | None]] | None = None,
    advantages: Sequence[float | None] | None = None,
    before: int = 0,
    versions: Mapping[str, str] | None = None,
) -> BatchRows:
    """Return what is kept of a batch.

    Args:
        batch: The outcomes.
        num_generations: Completions a group where the trainer's groups stand side by side; ``None`` for groups by
            prompt and row, whose advantages are computed for each by itself.
        truncated: Whether each completion was cut; ``None`` where that is not known.
        handed: The scores as the trainer was told them, whose weighted sums are then its rewards; without them, the
            rewards are the batch's totals.
        advantages: What the trainer makes of the scores, for whom knows it; computed unless given.
        before: Completions that stand before these in the trainer's batch, where other processes have a part of it.
        versions: The digits of rewards' versions by name, where they are not those of the outcomes: a composition has
            one of its own.
    """
    names = tuple(batch.outcomes)
    rollouts, columns = batch.rollouts, [batch.outcomes[name] for name in names]
    scores = np.array([[math.nan if one.score is None else one.score for one in column] for column in columns])
    scores = scores.reshape(len(names), len(rollouts))
    known = handed or batch.scores
    told = {name: known[name] for name in names}
    if handed is None or not names:
        reward = np.array([math.nan if total is None else total for total in batch.totals])
    else:
        reward = weighted_rewards(told, batch.weights)
    groups = _groups(rollouts, num_generations, before)
    if advantages is None:
        advantages = _known(_advantages(reward, groups))
    seconds = np.array([[one.duration_s for one in column] for column in columns], dtype="<f4")
    return BatchRows(
        rewards=names,
        versions=tuple((versions or {}).get(name) or _version(batch.outcomes[name]) for name in names),
        weights=tuple(batch.weights[name] for name in names),
        prompts=[text_of(one.prompt) for one in rollouts],
        columns=_columns(rollouts),
        completions=[text_of(one.completion) for one in rollouts],
        tokens=[None if one.completion_ids is None else len(one.completion_ids) for one in rollouts],
        truncated=list(truncated) if truncated is not None else [None] * len(rollouts),
        groups=groups,
        totals=_known(_plain_sums(scores[[batch.weights[name] != 0 for name in names]])),
        weighted=_known(reward),
        advantages=list(advantages),
        status=["".join(map(_letter, outcomes)) for outcomes in zip(*columns, strict=True)] or [""] * len(rollouts),
        scores=[row.tobytes() for row in np.ascontiguousarray(scores.T, dtype="<f8")],
        seconds=[row.tobytes() for row in np.ascontiguousarray(seconds.reshape(len(names), -1).T)],
        said=[said for number, column in enumerate(columns) for said in said_of(number, column)],
        summaries=[
            _summary(column, values, _floats(told[name]), groups)
            for name, column, values in zip(names, columns, scores, strict=True)
        ],
    )


def text_of(text: Text) -> str:
    """Return a prompt or completion as text: itself, or the messages as JSON behind the letter U+0001.

    A text that begins with that letter, or with U+0002, as a model's may, stands behind U+0002.
    """
    if isinstance(text, str):
        return "\x02" + text if text.startswith(("\x01", "\x02")) else text
    return "\x01" + _json(text)


def text_back(stored: str) -> Text:
    """Return what :func:`text_of` was given."""
    back: Text = json.loads(stored[1:]) if stored.startswith("\x01") else stored.removeprefix("\x02")
    return back


def storable(text: str) -> str:
    """Return a text as SQLite takes it: half of a pair of surrogates becomes a question mark."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _storable(text: str | None) -> str | None:
    return None if text is None else storable(text)


def _json(value: object) -> str:
    try:
        return _ENCODER.encode(value)
    except (TypeError, ValueError, RecursionError):  # keys that are not text, or a value that holds itself
        return _ENCODER.encode({"repr": repr(value)})


def _plain_sums(scores: Any) -> Any:
    """Return the sum of each column, ``nan`` where nothing in it is known."""
    return np.where(np.isnan(scores).all(axis=0), math.nan, np.nansum(scores, axis=0))


def _columns(rollouts: Sequence[Rollout]) -> list[str]:
    """Return the columns of the prompts as JSON; rollouts of one row, which share an object, are written once."""
    found: list[str] = []
    last: object = None
    for rollout in rollouts:
        if not found or rollout.example is not last:
            last = rollout.example
            text = _json({name: value for name, value in last.items() if not is_own(name, value)})
        found.append(text)
    return found


def _groups(rollouts: Sequence[Rollout], num_generations: int | None, before: int) -> list[int]:
    if num_generations is not None:
        return [place // num_generations for place in range(before, before + len(rollouts))]
    return group_numbers(rollouts)


def _advantages(reward: Any, groups: Sequence[int]) -> Any:
    labels = np.asarray(groups, np.int64)
    order = np.argsort(labels, kind="stable")
    sizes = np.bincount(labels)
    found = np.zeros(len(reward))
    for size in np.unique(sizes[sizes > 0]):  # groups of one size at once
        members = order[sizes[labels[order]] == size]
        found[members] = group_advantages(reward[members], int(size))
    return found


def _version(column: Sequence[Outcome]) -> str:
    return next((one.version for one in column), "")


def _letter(outcome: Outcome) -> str:
    letter = LETTERS[outcome.status]
    return letter.upper() if outcome.cached else letter


def said_of(number: int, column: Sequence[Outcome]) -> list[Said]:
    """Return what the outcomes of one reward said beside their numbers.

    Args:
        number: The reward's place in the batch's list.
        column: Its outcomes.
    """
    return [
        Said(
            place,
            number,
            _storable(one.reason),
            storable(_json(dict(one.metrics))) if one.metrics else None,
            None if one.cause is None else one.cause.value,
            _storable(one.error),
            one.traceback,
            one.logs or None,
            one.attempts,
            storable(_json([record._asdict() for record in one.unanswered])) if one.unanswered else None,
        )
        for place, one in enumerate(column)
        if one.reason or one.metrics or one.cause or one.logs or one.attempts > 1 or one.unanswered
    ]


def _floats(scores: Sequence[float | None]) -> Any:
    return np.array([math.nan if one is None else one for one in scores], dtype=float)


def _summary(column: Sequence[Outcome], values: Any, told: Any, groups: Sequence[int]) -> RewardSums:
    status = Counter(one.status for one in column)
    causes = Counter(one.cause.value for one in column if one.cause is not None)
    known, found = told[~np.isnan(told)], values[~np.isnan(values)]
    ran = np.array([one.duration_s for one in column if not one.cached])
    sizes, flat = _flat(told, np.asarray(groups))
    return RewardSums(
        scored=status[Status.SCORED],
        skipped=status[Status.SKIPPED],
        failed=status[Status.FAILED],
        counted=len(known),
        causes=_json(causes),
        mean=float(known.mean()) if len(known) else None,
        std=float(known.std(ddof=1)) if len(known) > 1 else None,
        low=float(found.min()) if len(found) else None,
        high=float(found.max()) if len(found) else None,
        p50_s=float(np.quantile(ran, 0.5)) if len(ran) else None,
        p95_s=float(np.quantile(ran, 0.95)) if len(ran) else None,
        groups=sizes,
        flat_groups=flat,
    )


def _flat(values: Any, groups: Any) -> tuple[int, int]:
    """Return how many groups have two scores or more, and in how many of these all are the same."""
    known = ~np.isnan(values)
    order = np.argsort(groups[known], kind="stable")
    labels, scores = groups[known][order], values[known][order]
    if not len(labels):
        return 0, 0
    starts = np.flatnonzero(np.r_[True, labels[1:] != labels[:-1]])
    sizes = np.diff(np.r_[starts, len(labels)])
    spread = np.maximum.reduceat(scores, starts) - np.minimum.reduceat(scores, starts)
    several = sizes > 1
    return int(several.sum()), int((several & np.isclose(spread, 0.0)).sum())


def _known(values: Any) -> list[float | None]:
    return [None if math.isnan(value) else value for value in np.asarray(values, dtype=float).tolist()]
