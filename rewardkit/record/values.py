"""What a record holds, as values: completions, versions, sums of a step, log entries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

from rewardkit.types import Outcome, Text, Unanswered


def without_noise(std: float, size: float, rounding: float = 1e-9) -> float:
    """Return a standard deviation, or 0 where it is no larger than what rounding leaves of equal numbers.

    ``size`` is the size of the numbers; ``rounding`` is the largest such remainder, as a share of it, or of 1 where it
    is less.
    """
    return 0.0 if std <= rounding * max(1.0, abs(size)) else std


class Progress(NamedTuple):
    """How far a reading came that takes several answers."""

    what: str  # The noun for what is read, for people
    done: int  # How many of them were read
    of: int  # How many there are

    @property
    def unfinished(self) -> bool:
        """Whether the next answer knows more."""
        return self.done < self.of


class RewardCalls(NamedTuple):
    """What became of the calls of one reward."""

    scored: int  # Calls with a score
    skipped: int  # Calls that did not apply
    failed: Mapping[str, int]  # Failed calls, by cause

    def __add__(self, other: RewardCalls) -> RewardCalls:  # type: ignore[override]
        """Return what became of both."""
        failed = Counter(self.failed) + Counter(other.failed)
        return RewardCalls(self.scored + other.scored, self.skipped + other.skipped, dict(failed))

    @property
    def all_failed(self) -> bool:
        """Whether none scored or was skipped: whatever stands in for them is no score."""
        return bool(self.failed) and not self.scored and not self.skipped

    @property
    def failures(self) -> str:
        """The failed calls in words, such as ``3 of 8 failed (timeout)``; an empty text without any."""
        count = sum(self.failed.values())
        if not count:
            return ""
        calls = count + self.scored + self.skipped
        share = f"all {calls:,}" if count == calls else f"{count:,} of {calls:,}"
        return f"{share} failed ({', '.join(sorted(self.failed))})"


NO_CALLS = RewardCalls(0, 0, {})


def gap_reason(calls: Mapping[str, RewardCalls]) -> str:
    """Return why the mean total of a step is not known, from the calls of the rewards that count; empty where it is.

    It is not known where all calls of one failed, or where none of all rewards scored and some failed: what stands in
    for them is no score, and a sum without them would pass for a low one.
    """
    silent = {name: own for name, own in calls.items() if own.all_failed}
    if not silent and not any(own.scored for own in calls.values()):
        silent = {name: own for name, own in calls.items() if own.failed}
    return "; ".join(f"{name}: {own.failures}" for name, own in silent.items())


class MeasuredCall(NamedTuple):
    """A recorded call that has metrics."""

    completion: int  # The number of its completion in the record
    metrics: Mapping[str, float]
    unanswered: tuple[Unanswered, ...]  # The links of a chain that gave no score
    cached: bool  # Whether the cache answered it


class StepSummary(NamedTuple):
    """One reward's outcomes at one step of one split, over all ranks.

    Attributes:
        mean: The mean of these scores; ``None`` without any. TRL's ``rewards/<name>/mean`` has the defaults of failed
            calls in it, too, which are not scores.
        low: The lowest score, also of completions that the trainer left out; ``None`` where no call scored.
    """

    step: int | None  # Optimizer steps done; `None` where that is not known
    split: str  # `"train"` or `"eval"`
    reward: str  # The reward's name
    version: int  # The number of its version in this run, from 1
    scored: int  # Calls with a score
    skipped: int  # Calls that did not apply
    failed: Mapping[str, int]  # Failed calls, by cause
    counted: int  # Calls with a score that the trainer was told; no default that stands in for a failure is one
    mean: float | None
    std: float | None  # Their standard deviation (`ddof=1`); `None` with fewer than two
    low: float | None
    high: float | None  # The highest
    p50_s: float | None  # Median seconds of a call; over several batches, the largest of their medians
    p95_s: float | None  # 95th percentile, in the same way
    groups: int  # Groups with two scores or more
    flat_groups: int  # Those whose scores are all the same

    @property
    def calls(self) -> RewardCalls:
        """What became of the calls."""
        return RewardCalls(self.scored, self.skipped, self.failed)


class FileMeans(NamedTuple):
    """The means of what was scored at no step, such as a file of completions."""

    total: float | None  # The mean total, the weighted sum; `None` where it is not known
    rewards: Mapping[str, float | None]  # Each reward's mean score; `None` without a score


class FailedKind(NamedTuple):
    """The failed calls of one reward that have one cause."""

    reward: str
    cause: str
    calls: int  # How many there are
    first: int  # The number of the first completion with one
    last: int  # The number of the last


class PromptEpoch(NamedTuple):
    """The completions of one prompt in one epoch."""

    prompt_index: int
    epoch: int | None  # Without its fraction
    completions: int  # How many there are
    mean: float | None  # The mean of their totals; `None` where none has one
    best: float | None  # The greatest of them


class PromptSums(NamedTuple):
    """Sums over the completions of one prompt in one epoch, of their totals or of one reward's scores."""

    prompt_index: int
    epoch: int | None  # Without its fraction
    completions: int  # How many there are
    scored: int  # How many of them have a total or score
    best: float | None  # The greatest; `None` where none has one
    sum: float | None


class BatchSums(NamedTuple):
    """Sums over the completions of a batch, for the curves that are about no single reward."""

    batch: int  # The batch's number in the record
    completions: int  # How many completions it has
    totals: int  # How many of them have a total, the weighted sum
    total: float | None  # The mean total; `None` without any
    squares: float | None  # The sum of the squares of each total's distance from the batch's lowest one
    above: float | None  # The mean of these distances
    low: float | None  # The lowest total
    high: float | None  # The highest
    plain_sums: int  # How many have a plain sum
    plain_sum: float | None  # The mean plain sum
    lengths: int  # How many have a length in tokens
    tokens: float | None  # The mean length
    shortest: int | None  # The shortest
    longest: int | None  # The longest
    endings: int  # Of how many it is known whether they were cut at the token limit
    truncated: float | None  # The share of these that were cut
    weighed: frozenset[str]  # The rewards that weigh anything in it


@dataclass(frozen=True, slots=True)
class Version:
    """A reward as it stood in a run.

    Attributes:
        reference: Where it was defined: ``/folder/file.py:name`` or ``module:name``; ``None`` for what a script or a
            notebook defines.
    """

    reward: str  # Its name
    number: int  # 1 for the first that the run had, and so on
    digits: str  # Its fingerprint, 12 hexadecimal digits
    origin: str  # `"run"` for one that the training used, `"rescore"` for one that only rescored completions
    reference: str | None
    source: str | None = field(repr=False)  # The source of its function, where it was known
    module: str | None = field(repr=False)  # The text of the file that it was defined in, where that was known
    settings: Mapping[str, Any]  # Its kind, options and settings
    first_step: int | None  # The step at which it first scored
    began: float  # When it was recorded, in seconds since 1970
    id: int  # Its number in the record

    @property
    def label(self) -> str:
        """The name that commands take, such as ``format@2``."""
        return f"{self.reward}@{self.number}"


@dataclass(frozen=True, slots=True)
class Completion:
    """One recorded completion."""

    id: int  # Its number in the record, in the order of recording
    step: int | None  # Optimizer steps done when it was scored
    epoch: float | None  # Passes over the data done
    split: str  # `"train"` or `"eval"`
    rank: int  # The process that scored it
    prompt_index: int  # The prompt's number from 0, in the order in which prompts were first seen
    group: int  # The number of its group in its batch
    prompt: Text = field(repr=False)  # The prompt
    columns: Mapping[str, Any] = field(repr=False)  # The row's columns
    completion: Text | None  # What the model produced; `None` where the text was left out
    tokens: int | None  # Its length in tokens; `None` where that is not known
    truncated: bool | None  # Whether it was cut at the token limit
    outcomes: Mapping[str, Outcome] = field(repr=False)  # What each reward said, by name
    versions: Mapping[str, int]  # The number of each reward's version, by name
    plain_sum: float | None  # The sum of the scores without weights, of the rewards that weigh anything
    total: float | None  # The weighted sum, as the trainer computes it
    advantage: float | None  # What the trainer made of it
    batch: int = 0  # The number of its batch in the record; within one, `group` tells the groups apart

    @property
    def reward(self) -> float | None:
        """The total, under the name that TRL gives it."""
        return self.total

    @property
    def scores(self) -> dict[str, float | None]:
        """The scores by reward."""
        return {name: outcome.score for name, outcome in self.outcomes.items()}


@dataclass(frozen=True, slots=True)
class RecordedPrompt:
    """A prompt with its row, once for all completions of it."""

    index: int  # Its number from 0, in the order in which prompts were first seen
    prompt: Text  # The prompt
    columns: Mapping[str, Any]  # The row's columns


@dataclass(frozen=True, slots=True)
class LogEntry:
    """What one call said beside its score."""

    completion: int  # The completion's number in the record
    step: int | None  # Optimizer steps done
    epoch: float | None  # Passes over the data done
    split: str  # `"train"` or `"eval"`
    rank: int  # The process that scored it
    reward: str  # The reward's name
    version: int  # The number of its version
    outcome: Outcome  # All that is known of the call

    @property
    def call(self) -> dict[str, Any]:
        """Which call it was, by the names above: all but the outcome."""
        return {part.name: getattr(self, part.name) for part in fields(self) if part.name != "outcome"}
