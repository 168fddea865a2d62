"""What of a scored batch is kept, as plain values: made without a database, and tested so."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import operator
import pprint
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from rewardkit.advantages import group_advantages
from rewardkit.coercion.plain_json import json_default
from rewardkit.errors import DataError
from rewardkit.groups import content_bytes, group_numbers
from rewardkit.messages import completion_text
from rewardkit.own_columns import is_own
from rewardkit.record.pictures.sources import PictureFinder, PictureSource, is_image, may_have_pictures
from rewardkit.record.table import Floats, Whole
from rewardkit.rows.strict_json import encode
from rewardkit.score_batch import ScoreBatch, weighted_total
from rewardkit.types import Outcome, Rollout, Status, Text

LETTERS = {Status.SCORED: "s", Status.SKIPPED: "k", Status.FAILED: "f"}
"""How a status is written: one letter a reward, in capitals where the outcome came from the cache."""


_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def _as_json(value: object) -> object:
    """Return a value that JSON does not know as one that it does: numbers and lists of numpy, dates in ISO 8601.

    Any other object becomes its ``repr``, with a digest of its content in place of its address: so a row reads the same
    in each epoch.
    """
    if not isinstance(value, bytes | bytearray):  # which are mostly a picture's
        with contextlib.suppress(TypeError, ValueError):
            return json_default(value)
    text = repr(value)
    digest = _digest_of(value) if _ADDRESS.search(text) else None
    return text if digest is None else _ADDRESS.sub(f" of content {digest}", text)


def _digest_of(value: object) -> str | None:
    """Return a digest of the content of a value; ``None`` for one that does not pickle."""
    try:
        return hashlib.blake2b(content_bytes(value), digest_size=8).hexdigest()
    except Exception:  # pickling runs the value's own code, which may raise anything
        return None


class _PictureError(Exception):
    """Raised where a value may be a picture."""


def _unless_picture(value: object) -> object:
    if isinstance(value, bytes | bytearray) or is_image(value):
        raise _PictureError
    return _as_json(value)


_FORM: Mapping[str, Any] = {"ensure_ascii": False, "separators": (",", ":")}
_NO_JSON = (TypeError, ValueError, RecursionError)  # of keys that are not text, or a value that holds itself
_MOST_LEVELS = 100  # that are written of a value which is nested too deep for Python's repr
_ENCODER = json.JSONEncoder(**_FORM, default=_as_json)
_PICTURELESS = json.JSONEncoder(**_FORM, default=_unless_picture)


class CallDetails(NamedTuple):
    """What an outcome said beside its number: behind its place, columns of the table ``said`` in their order."""

    row: int  # The completion's index in the batch
    column: int  # The reward's index in the batch's list
    reason: str | None  # Why it scored so
    metrics: str | None  # JSON of its metrics
    cause: str | None  # Why it failed
    error: str | None  # The error in words
    traceback: str | None  # The reward's frames
    logs: str | None  # What it printed and logged
    attempts: int  # How often it ran
    unanswered: str | None  # JSON of the rewards inside it that gave no score


DETAILS = CallDetails._fields[2:]  # Fields of an outcome and columns of ``said``


class RewardSums(NamedTuple):
    """Sums over one reward's outcomes in a batch."""

    scored: int  # Calls with a score
    skipped: int  # Calls that did not apply
    failed: int  # Calls that failed, with or without a default that stands in
    counted: int  # Calls with a score that the trainer was told; no default that stands in for a failure is one
    causes: str  # JSON of the failed calls' number by cause
    mean: float | None  # Of these scores; `None` without any
    std: float | None  # Their standard deviation (`ddof=1`); `None` with fewer than two
    low: float | None  # The lowest score; those of completions that the trainer left out count, too
    high: float | None  # The highest
    p50_s: float | None  # Median seconds of the calls that ran
    p95_s: float | None  # 95th percentile of these
    groups: int  # Groups with two numbers or more that the trainer was told, defaults included
    flat_groups: int  # Those of them whose scores are all the same


@dataclass(frozen=True, slots=True)
class BatchRows:
    """A scored batch, ready to be written; lists have one entry a completion.

    Attributes:
        groups: The number of each completion's group in the batch, or in the trainer's of which the batch is a part.
        plain_sums: Sums without weights, of rewards that weigh anything: neither parts of a composition nor shadows.
    """

    rewards: tuple[str, ...]  # The rewards' names in order
    versions: tuple[str, ...]  # The digits of the version of each reward; empty where it is not known
    weights: tuple[float, ...]  # Each reward's weight
    prompts: Sequence[str]  # The prompts as text, see `text_of`
    columns: Sequence[str]  # The rows' columns as JSON
    completions: Sequence[str]  # The completions as text
    characters: Sequence[int]  # Lengths of the completions in characters, of conversations that of the last message
    tokens: Sequence[int | None]  # Lengths of the completions in tokens
    truncated: Sequence[bool | None]  # Whether each was cut at the token limit
    groups: Sequence[int]
    plain_sums: Sequence[float | None]
    totals: Sequence[float | None]  # Weighted sums, as the trainer computes them: TRL's `reward`
    advantages: Sequence[float | None]  # What the trainer makes of them
    status: Sequence[str]  # One letter a reward, see `LETTERS`
    scores: Sequence[bytes]  # 8 bytes a reward, a little-endian float64; `nan` where there is no score
    seconds: Sequence[bytes]  # 4 bytes a reward, a little-endian float32: how long the last attempt took
    details: Sequence[CallDetails]  # What outcomes said beside their numbers
    summaries: Sequence[RewardSums]  # One a reward
    pictures: Sequence[PictureSource] = ()  # Those that the record does not have yet

    @property
    def text_bytes(self) -> int:
        """An estimate of the bytes of those texts that are left out first: completions, output and tracebacks."""
        beside = sum(len(call.logs or "") + len(call.traceback or "") for call in self.details)
        return sum(map(len, self.completions)) + beside

    @property
    def number_bytes(self) -> int:
        """An estimate of the bytes that all but those texts take."""
        reasons = sum(600 + len(call.reason or "") + len(call.error or "") for call in self.details)
        prompts = sum(map(len, {*self.prompts, *self.columns}))
        return len(self.completions) * (600 + 100 * len(self.rewards)) + reasons + prompts

    def lean(self) -> BatchRows:
        """Return the rows without the texts that are left out first."""
        calls = [call._replace(logs=None, traceback=None) for call in self.details]
        return replace(self, completions=[""] * len(self.completions), details=calls)


def rows_of(
    batch: ScoreBatch,
    *,
    num_generations: int | None = None,
    truncated: Sequence[bool | None] | None = None,
    handed: Mapping[str, Sequence[float | None]] | None = None,
    unseen: Collection[str] = (),
    advantages: Sequence[float | None] | None = None,
    before: int = 0,
    versions: Mapping[str, str] | None = None,
    known_pictures: AbstractSet[str] = frozenset(),
) -> BatchRows:
    """Return the rows that a record keeps of a batch.

    ``num_generations`` is ``None`` for groups by prompt and row, whose advantages are computed for each by itself.
    ``handed`` has the scores that the trainer received, whose weighted sums, without those of the rewards ``unseen`` by
    the trainer, are then the totals in place of the batch's. ``advantages`` are computed unless the trainer's are
    given. ``before`` counts the completions that stand before these in the trainer's batch, where other processes have
    a part of it. ``versions`` has digits where they are not those of the outcomes: a composition has one of its own.
    ``known_pictures`` has the keys of pictures that need not be read again.
    """
    names, finder = tuple(batch.outcomes), PictureFinder(known_pictures)
    rollouts, columns = batch.rollouts, [batch.outcomes[name] for name in names]
    scores = np.array(
        [[math.nan if outcome.score is None else outcome.score for outcome in column] for column in columns]
    )
    scores = scores.reshape(len(names), len(rollouts))
    handed_scores = {name: (handed or batch.scores)[name] for name in names}
    totals = batch.totals if handed is None else _totals(handed_scores, batch.weights, unseen, len(rollouts))
    prompts = _prompts(rollouts, finder)
    row_columns, light = _columns(rollouts, finder)
    groups = _groups(light, num_generations, before, list(zip(prompts, row_columns, strict=True)))
    if advantages is None:
        advantages = _as_list(_advantages(_floats(totals), groups))
    seconds = np.array([[outcome.duration_s for outcome in column] for column in columns], dtype="<f4")
    seconds = seconds.reshape(len(names), len(rollouts))
    return BatchRows(
        rewards=names,
        versions=tuple((versions or {}).get(name) or _version(batch.outcomes[name]) for name in names),
        weights=tuple(batch.weights[name] for name in names),
        prompts=prompts,
        columns=row_columns,
        completions=[text_of(rollout.completion, finder) for rollout in rollouts],
        characters=[len(completion_text(rollout.completion)) for rollout in rollouts],
        tokens=[None if rollout.completion_ids is None else len(rollout.completion_ids) for rollout in rollouts],
        truncated=list(truncated) if truncated is not None else [None] * len(rollouts),
        groups=groups,
        plain_sums=_as_list(_plain_sums(scores[np.array([batch.weights[name] != 0 for name in names], bool)])),
        totals=totals,
        advantages=list(advantages),
        status=["".join(map(_letter, outcomes)) for outcomes in zip(*columns, strict=True)] or [""] * len(rollouts),
        scores=[row.tobytes() for row in np.ascontiguousarray(scores.T, dtype="<f8")],
        seconds=[row.tobytes() for row in np.ascontiguousarray(seconds.T)],
        details=[call for number, column in enumerate(columns) for call in details_of(number, column)],
        summaries=[
            _summary(column, values, _floats(handed_scores[name]), groups)
            for name, column, values in zip(names, columns, scores, strict=True)
        ],
        pictures=tuple(finder.sources.values()),
    )


def text_of(text: Text, finder: PictureFinder | None = None, *, has_paths: bool = False) -> str:
    """Return a prompt or completion as text: itself, or the messages as JSON behind the letter U+0001.

    A text that begins with that letter, or with U+0002, as a model's may, stands behind U+0002. With a ``finder``
    references stand in place of the messages' pictures.
    """
    if isinstance(text, str):
        return "\x02" + text if text.startswith(("\x01", "\x02")) else text
    own = finder or PictureFinder()
    try:
        return "\x01" + _strict_json(text, lambda: own.in_messages(text, has_paths=has_paths), has_paths=has_paths)
    except _NO_JSON:
        return "\x01" + _json([_as_text(message) for message in text])


def text_back(stored: str) -> Text:
    """Return what :func:`text_of` was given."""
    back: Text = json.loads(stored[1:]) if stored.startswith("\x01") else stored.removeprefix("\x02")
    return back


def storable(text: str) -> str:
    """Return a text as SQLite takes it: half of a pair of surrogates becomes a question mark."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _json(value: object, with_references: Callable[[], object] | None = None, *, has_paths: bool = False) -> str:
    """Return a value as JSON; where it may have pictures, that which ``with_references`` returns instead."""
    try:
        return _strict_json(value, with_references, has_paths=has_paths)
    except _NO_JSON:
        return _ENCODER.encode({"repr": _repr(value)})


def _strict_json(value: object, with_references: Callable[[], object] | None, *, has_paths: bool) -> str:
    """Return a value as :func:`_json` does; raise one of ``_NO_JSON`` where it has none."""
    if with_references is None:
        return encode(value, _ENCODER.encode)
    try:
        text = encode(value, _PICTURELESS.encode)
    except _PictureError:
        text = None
    if text is not None and not may_have_pictures(text, has_paths=has_paths):
        return text
    return encode(with_references(), _ENCODER.encode)


def _as_text(message: object) -> object:
    """Return a message; one that has no JSON with its role, and all of it as text."""
    try:
        encode(message, _ENCODER.encode)
    except _NO_JSON:
        role = message.get("role") if isinstance(message, Mapping) else None
        return {"role": role if isinstance(role, str) else "assistant", "content": _repr(message)}
    return message


def _repr(value: object) -> str:
    """Return a value as Python writes it, of one that is nested too deep the first 100 levels."""
    try:
        return repr(value)
    except RecursionError:
        return pprint.pformat(value, depth=_MOST_LEVELS, width=10**6)


def _totals(
    scores: Mapping[str, Sequence[float | None]], weights: Mapping[str, float], unseen: Collection[str], count: int
) -> list[float | None]:
    """Return the sums that the trainer makes of ``count`` completions' scores, of which it does not see all."""
    columns = {name: column for name, column in scores.items() if name not in unseen}
    if not columns:
        return [None] * count
    in_order = [weights[name] for name in columns]
    return [weighted_total(row, in_order) for row in zip(*columns.values(), strict=True)]


def _plain_sums(scores: Floats) -> Floats:
    """Return the sum of each column, ``nan`` where nothing in it is known."""
    return np.where(np.isnan(scores).all(axis=0), math.nan, np.nansum(scores, axis=0))


def _prompts(rollouts: Sequence[Rollout], finder: PictureFinder) -> list[str]:
    """Return the prompts as text; rollouts of one prompt, which share an object, are written once."""
    texts: list[str] = []
    last: object = None
    for rollout in rollouts:
        if not texts or rollout.prompt is not last:
            last = rollout.prompt
            text = text_of(rollout.prompt, finder, has_paths=True)
        texts.append(text)
    return texts


def _columns(rollouts: Sequence[Rollout], finder: PictureFinder) -> tuple[list[str], list[Rollout]]:
    """Return the columns of the prompts as JSON, and the rollouts with references in place of pictures.

    Rollouts of one row, which share an object, are written once. References are compared in no time, pictures byte by
    byte.
    """
    texts: list[str] = []
    light: list[Rollout] = []
    last: object = None
    for rollout in rollouts:
        if not texts or rollout.example is not last:
            last = rollout.example
            columns = {name: value for name, value in last.items() if not is_own(name, value)}
            row = _RowColumns(columns, finder)
            text = _json(columns, row.replaced, has_paths=True)
        texts.append(text)
        light.append(rollout if row.references is None else replace(rollout, example=row.references))
    return texts, light


class _RowColumns:
    """A row's columns, and what stands in their place once it was asked for."""

    def __init__(self, columns: Mapping[str, object], finder: PictureFinder) -> None:
        self._columns, self._finder = columns, finder
        self.references: Mapping[str, object] | None = None

    def replaced(self) -> object:
        self.references = self._finder.in_columns(self._columns)
        return self.references


def _groups(
    rollouts: Sequence[Rollout], num_generations: int | None, before: int, texts: Sequence[tuple[str, str]]
) -> list[int]:
    """Return the group of each completion, by its place in the trainer's batch or by its prompt and row.

    Rows that cannot be compared by their bytes, such as those with a damaged picture, are compared by their texts.
    """
    if num_generations is not None:
        return [index // num_generations for index in range(before, before + len(rollouts))]
    try:
        return group_numbers(rollouts)
    except DataError:
        numbers = {pair: number for number, pair in enumerate(dict.fromkeys(texts))}
        return [numbers[pair] for pair in texts]


def _advantages(reward: Floats, groups: Sequence[int]) -> Floats:
    """Return GRPO's advantages of rewards, in groups that may differ in size."""
    labels = np.asarray(groups, np.int64)
    order = np.argsort(labels, kind="stable")
    sizes = np.bincount(labels)
    advantages = np.zeros(len(reward))
    for size in np.unique(sizes[sizes > 0]):  # groups of one size at once
        members = order[sizes[labels[order]] == size]
        advantages[members] = group_advantages(reward[members], int(size))
    return advantages


def _version(column: Sequence[Outcome]) -> str:
    return next((outcome.version for outcome in column), "")


def _letter(outcome: Outcome) -> str:
    letter = LETTERS[outcome.status]
    return letter.upper() if outcome.cached else letter


def details_of(number: int, column: Sequence[Outcome]) -> list[CallDetails]:
    """Return the details of a reward's outcomes that have any; ``number`` is the reward's index in the batch."""
    rows = []
    for index, values in enumerate(map(_details, column)):
        reason, *rest = values
        if rest != _SILENT_REST:
            written = [value if value is None else write(value) for write, value in zip(_WRITE, values, strict=True)]
            rows.append(CallDetails._make((index, number, *written)))
        elif reason:  # alone, as most have it
            rows.append(CallDetails._make((index, number, storable(reason), *_WRITTEN_SILENCE)))
    return rows


_WRITERS: Mapping[str, Callable[[Any], Any]] = {
    "metrics": lambda metrics: storable(_json(dict(metrics))) if metrics else None,
    "cause": str,
    "traceback": str,  # a text that is stored packed may hold halves of surrogate pairs
    "logs": lambda text: text or None,
    "attempts": int,
    "unanswered": lambda records: storable(_json([record._asdict() for record in records])) if records else None,
}
_WRITE = [_WRITERS.get(name, storable) for name in DETAILS]
_details = operator.attrgetter(*DETAILS)
_, *_SILENT_REST = _details(Outcome(Status.SCORED, None))  # What an outcome has beside its reason if it says nothing
_WRITTEN_SILENCE = [
    value if value is None else write(value) for write, value in zip(_WRITE[1:], _SILENT_REST, strict=True)
]


def _floats(scores: Sequence[float | None]) -> Floats:
    return np.array([math.nan if score is None else score for score in scores], dtype=float)


def _summary(column: Sequence[Outcome], values: Floats, handed_scores: Floats, groups: Sequence[int]) -> RewardSums:
    """Return the sums of a reward's outcomes; ``handed_scores`` are the scores that the trainer was told."""
    status = Counter(outcome.status for outcome in column)
    causes = Counter(outcome.cause.value for outcome in column if outcome.cause is not None)
    own = np.array([outcome.status is Status.SCORED for outcome in column], bool)
    counted, own_scores = handed_scores[own & ~np.isnan(handed_scores)], values[own & ~np.isnan(values)]
    ran = np.array([outcome.duration_s for outcome in column if not outcome.cached])
    sizes, flat = _flat(handed_scores, np.asarray(groups))
    return RewardSums(
        scored=status[Status.SCORED],
        skipped=status[Status.SKIPPED],
        failed=status[Status.FAILED],
        counted=len(counted),
        causes=_json(causes),
        mean=float(counted.mean()) if len(counted) else None,
        std=_deviation(counted) if len(counted) > 1 else None,
        low=float(own_scores.min()) if len(own_scores) else None,
        high=float(own_scores.max()) if len(own_scores) else None,
        p50_s=float(np.quantile(ran, 0.5)) if len(ran) else None,
        p95_s=float(np.quantile(ran, 0.95)) if len(ran) else None,
        groups=sizes,
        flat_groups=flat,
    )


def _deviation(scores: Floats) -> float:
    """Return the standard deviation (``ddof=1``) of two scores or more, also where their squares are no floats."""
    unit = 1.0 if float(np.abs(scores).max()) < 1e150 else 2.0**520
    return float((scores / unit).std(ddof=1) * unit)


def _flat(values: Floats, groups: Whole) -> tuple[int, int]:
    """Return how many groups have two scores or more, and in how many of these all are the same."""
    has_score = ~np.isnan(values)
    order = np.argsort(groups[has_score], kind="stable")
    labels, scores = groups[has_score][order], values[has_score][order]
    if not len(labels):
        return 0, 0
    starts = np.flatnonzero(np.r_[True, labels[1:] != labels[:-1]])
    sizes = np.diff(np.r_[starts, len(labels)])
    spread = np.maximum.reduceat(scores, starts) - np.minimum.reduceat(scores, starts)
    several = sizes > 1
    return int(several.sum()), int((several & np.isclose(spread, 0.0)).sum())


def _as_list(values: Floats) -> list[float | None]:
    return [None if math.isnan(value) else value for value in np.asarray(values, dtype=float).tolist()]
