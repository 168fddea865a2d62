"""What a record holds, as values: completions, versions, sums of a step, log entries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

from rewardkit.types import Outcome, Text


def without_noise(std: float, size: float, rounding: float = 1e-9) -> float:
    """Return a standard deviation, and 0 where the rounding of equal numbers is all that it is.

    Args:
        std: The standard deviation.
        size: How large the numbers are.
        rounding: What rounding leaves over, as a share of their size; of numbers below 1, of 1.
    """
    return 0.0 if std <= rounding * max(1.0, abs(size)) else std


class StepSummary(NamedTuple):
    """One reward's outcomes at one step of one split, over all ranks.

    Attributes:
        step: Optimizer steps done; ``None`` where that is not known.
        split: ``"train"`` or ``"eval"``.
        reward: The reward's name.
        version: The number of its version in this run, from 1.
        scored: Calls with a score.
        skipped: Calls that did not apply.
        failed: Failed calls, by cause.
        counted: Calls with a number that the trainer was told, a default that stands in for a failure included.
        mean: Of these numbers, as TRL's ``rewards/<name>/mean``; ``None`` where no call scored: the mean of defaults
            alone is not a score.
        std: Their standard deviation (``ddof=1``); ``None`` in the same way.
        low: The lowest score, of those that the trainer was not told too: where it left out the completion; ``None``
            in the same way.
        high: The highest.
        p50_s: Median seconds of a call; over several batches, the largest of their medians.
        p95_s: 95th percentile, in the same way.
        groups: Groups with two scores or more.
        flat_groups: Those whose scores are all the same.
    """

    step: int | None
    split: str
    reward: str
    version: int
    scored: int
    skipped: int
    failed: Mapping[str, int]
    counted: int
    mean: float | None
    std: float | None
    low: float | None
    high: float | None
    p50_s: float | None
    p95_s: float | None
    groups: int
    flat_groups: int

    @property
    def stand_ins(self) -> int:
        """How many of the numbers that the trainer was told are defaults of failed calls, at the least.

        It is exact unless the trainer left out completions.
        """
        return max(0, self.counted - self.scored)


class BatchSums(NamedTuple):
    """Sums over the completions of a batch, for the curves that are about no single reward.

    Attributes:
        batch: The batch's number in the record.
        completions: How many completions it has.
        totals: How many of them have a total.
        total: The mean total; ``None`` without any.
        squares: The sum of the squares of each total's distance from the batch's lowest one.
        above: The mean of these distances.
        low: The lowest total.
        high: The highest.
        rewards: How many have a weighted sum.
        reward: The mean weighted sum.
        lengths: How many have a length in tokens.
        tokens: The mean length.
        shortest: The shortest.
        longest: The longest.
        endings: Of how many it is known whether they were cut at the most tokens allowed.
        truncated: The share of these that were cut.
        scored: Calls with a score, of the rewards that weigh anything.
    """

    batch: int
    completions: int
    totals: int
    total: float | None
    squares: float | None
    above: float | None
    low: float | None
    high: float | None
    rewards: int
    reward: float | None
    lengths: int
    tokens: float | None
    shortest: int | None
    longest: int | None
    endings: int
    truncated: float | None
    scored: int


@dataclass(frozen=True, slots=True)
class Version:
    """A reward as it stood in a run.

    Attributes:
        reward: Its name.
        number: 1 for the first that the run had, and so on.
        digits: Its fingerprint, 12 hexadecimal digits.
        origin: ``"run"`` for one that the training used, ``"rescore"`` for one that only rescored completions.
        reference: Where it was defined: ``/folder/file.py:name`` or ``module:name``; ``None`` for what a script or a
            notebook defines.
        source: The source of its function, where it was known.
        module: The text of the file that it was defined in, where that was known.
        settings: Its kind, options and settings.
        first_step: The step at which it first scored.
        began: When it was recorded, in seconds since 1970.
        id: Its number in the record.
    """

    reward: str
    number: int
    digits: str
    origin: str
    reference: str | None
    source: str | None = field(repr=False)
    module: str | None = field(repr=False)
    settings: Mapping[str, Any]
    first_step: int | None
    began: float
    id: int

    @property
    def label(self) -> str:
        """The name that commands take, such as ``format@2``."""
        return f"{self.reward}@{self.number}"


@dataclass(frozen=True, slots=True)
class Completion:
    """One recorded completion.

    Attributes:
        id: Its number in the record, in the order of recording.
        step: Optimizer steps done when it was scored.
        epoch: Passes over the data done.
        split: ``"train"`` or ``"eval"``.
        rank: The process that scored it.
        prompt_index: The prompt's number from 0, in the order in which prompts were first seen.
        group: The number of its group in its batch.
        prompt: The prompt.
        columns: The row's columns.
        completion: What the model produced; ``None`` where the text was left out.
        tokens: Its length in tokens; ``None`` where that is not known.
        truncated: Whether it was cut at the most tokens allowed.
        outcomes: What each reward said, by name.
        versions: The number of each reward's version, by name.
        total: The plain sum of the scores of the rewards that weigh anything.
        reward: The weighted sum, as the trainer computes it.
        advantage: What the trainer made of it.
        batch: The number of its batch in the record; within one, ``group`` tells the groups apart.
    """

    id: int
    step: int | None
    epoch: float | None
    split: str
    rank: int
    prompt_index: int
    group: int
    prompt: Text = field(repr=False)
    columns: Mapping[str, Any] = field(repr=False)
    completion: Text | None
    tokens: int | None
    truncated: bool | None
    outcomes: Mapping[str, Outcome] = field(repr=False)
    versions: Mapping[str, int]
    total: float | None
    reward: float | None
    advantage: float | None
    batch: int = 0

    @property
    def scores(self) -> dict[str, float | None]:
        """The scores by reward."""
        return {name: outcome.score for name, outcome in self.outcomes.items()}


@dataclass(frozen=True, slots=True)
class RecordedPrompt:
    """A prompt with its row, once for all completions of it.

    Attributes:
        index: Its number from 0, in the order in which prompts were first seen.
        prompt: The prompt.
        columns: The row's columns.
    """

    index: int
    prompt: Text
    columns: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LogEntry:
    """What one call said beside its score.

    Attributes:
        completion: The completion's number in the record.
        step: Optimizer steps done.
        epoch: Passes over the data done.
        split: ``"train"`` or ``"eval"``.
        rank: The process that scored it.
        reward: The reward's name.
        version: The number of its version.
        outcome: All that is known of the call.
    """

    completion: int
    step: int | None
    epoch: float | None
    split: str
    rank: int
    reward: str
    version: int
    outcome: Outcome

    @property
    def call(self) -> dict[str, Any]:
        """Which call it was, by the names above: all but the outcome."""
        return {part.name: getattr(self, part.name) for part in fields(self) if part.name != "outcome"}
