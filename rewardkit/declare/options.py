"""What an author may ask of the runtime for one reward: deadline, retries, stand-in score, and so on."""

from __future__ import annotations

import math
import sys
import warnings
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, TypedDict

from rewardkit.errors import RewardDefinitionError
from rewardkit.types import Cause

WORST: Literal["worst"] = "worst"
"""The ``default`` of a reward that declares no other: a failed call counts as the worst score it can give."""

DEFAULT_ASYNC_CONCURRENCY = 128
"""Calls of one ``async def`` reward in flight at once, unless ``concurrency`` says otherwise."""


class RewardDefinitionWarning(UserWarning):
    """A reward is declared in a way that a model can use against its author, or that gives other scores than meant."""


class OnInfrastructure(StrEnum):
    """What stands in for a call that failed through no fault of the completion, after its retries."""

    SKIP = "skip"
    """No score: the rollout leaves the baseline."""
    DEFAULT = "default"
    """The reward's ``default``, as for any other failure."""
    RAISE = "raise"
    """The whole batch stops with :class:`~rewardkit.errors.InfrastructureError`."""


class Options(TypedDict, total=False):
    """The options of :class:`RewardOptions` as keyword arguments, without the name."""

    timeout_s: float
    retries: int
    default: float | Literal["worst"] | None
    score_range: tuple[float, float] | None
    cache: bool
    on_infrastructure: str | OnInfrastructure
    concurrency: int | None


class NamedOptions(Options, total=False):
    """The same with the name."""

    name: str | None


@dataclass(frozen=True, slots=True)
class RewardOptions:
    """The options of one reward.

    Attributes:
        name: Shown in tables, logs and metrics (``rewards/<name>/mean``); without ``/``.
        timeout_s: Wall-clock seconds that one attempt may take, greater than 0.
        retries: Further attempts after an exception, a timeout or a crash, at least 0. A value that is not a score, or
            a column that does not coerce, is not tried again: it would fail again.
        default: The score that stands in for a failed call; ``None`` leaves the rollout out of the baseline.
            ``"worst"`` is the worst score that the reward can give: the low end of ``score_range``; without one 0.0, or
            the lowest score of the rollout's group where that is less.
        score_range: Lowest and highest score allowed, both included; outside is ``bad_return``.
            ``None`` allows every finite number.
        cache: Whether equal inputs give equal scores, so that one call may serve many.
        on_infrastructure: What stands in for a call lost through no fault of the completion.
        concurrency: Calls in flight at once. ``None`` means 1 for a plain function and
            :data:`DEFAULT_ASYNC_CONCURRENCY` for an ``async def``; more than 1 gives a plain function that many
            threads in a worker process of its own.
    """

    name: str
    timeout_s: float = 10.0
    retries: int = 0
    default: float | Literal["worst"] | None = WORST
    score_range: tuple[float, float] | None = None
    cache: bool = False
    on_infrastructure: OnInfrastructure = OnInfrastructure.SKIP
    concurrency: int | None = None

    def __post_init__(self) -> None:
        """Check every option and raise :class:`RewardDefinitionError` naming the first that is wrong."""
        if not isinstance(self.name, str) or not self.name.strip() or "/" in self.name or not self.name.isprintable():
            raise self._wrong("name", "a non-empty, printable string without '/'")
        if not _is_number(self.timeout_s) or not 0 < self.timeout_s < math.inf:
            raise self._wrong("timeout_s", "a number of seconds greater than 0")
        if not _is_count(self.retries, lowest=0):
            raise self._wrong("retries", "a whole number, 0 or more")
        if self.concurrency is not None and not _is_count(self.concurrency, lowest=1):
            raise self._wrong("concurrency", "a whole number, 1 or more, or None")
        if not isinstance(self.cache, bool):
            raise self._wrong("cache", "True or False")
        self._check_range()
        self._check_default()
        try:
            object.__setattr__(self, "on_infrastructure", OnInfrastructure(self.on_infrastructure))
        except ValueError:
            raise self._wrong("on_infrastructure", "'skip', 'default' or 'raise'") from None

    def worst(self, sign: int) -> float | None:
        """Return the end of the range that earns least under a weight of this sign; ``None`` where there is no end."""
        if self.score_range is None:
            return None
        low, high = self.score_range
        end = high if sign < 0 else low
        return end if math.isfinite(end) else None

    def stand_in(self, cause: Cause, sign: int = 1) -> float | None:
        """Return the score that stands in for a failed call, before its group is looked at; ``None`` for no score.

        Args:
            cause: Why it failed.
            sign: The sign of the reward's weight, -1 or 1, which says which end of the range is the worst; 0 where one
                use of the reward pays for high scores and another for low ones.
        """
        if cause.is_loss and self.on_infrastructure is not OnInfrastructure.DEFAULT:
            return None
        if self.default != WORST:
            return self.default
        return (self.worst(sign) or 0.0) if sign else None

    def _check_range(self) -> None:
        """Make the range a pair of floats; raise RewardDefinitionError where it cannot be one."""
        if self.score_range is None:
            return
        pair = self.score_range
        if not (isinstance(pair, tuple | list) and len(pair) == 2 and all(_is_number(end) for end in pair)):
            raise self._wrong("score_range", "a pair of numbers (lowest, highest)")
        if not pair[0] <= pair[1]:
            raise self._wrong("score_range", "the lowest score first")
        object.__setattr__(self, "score_range", (float(pair[0]), float(pair[1])))

    def _check_default(self) -> None:
        if self.default is None or self.default == WORST:
            return
        if not _is_number(self.default) or not math.isfinite(self.default):
            raise self._wrong("default", "a finite number, 'worst', or None to leave the rollout out")
        object.__setattr__(self, "default", float(self.default))

    def warn(self) -> None:
        """Warn the author, with :class:`RewardDefinitionWarning`, of options by which a failure pays."""
        if reason := self.why_failing_pays:
            warnings.warn(f"reward {self.name!r}: {reason}", RewardDefinitionWarning, stacklevel=author_depth())

    @property
    def why_failing_pays(self) -> str | None:
        """Why a failure earns more than a wrong answer; ``None`` where it does not, as far as the range tells."""
        worst = self.worst(1)
        if worst is None or isinstance(self.default, str | None) or self.default <= worst:
            return None
        return (
            f"default={self.default:g} is more than {worst:g}, the worst score of its score_range: a model that makes "
            "it fail earns more than by a wrong answer; leave default out"
        )

    def _wrong(self, option: str, expected: str) -> RewardDefinitionError:
        value = getattr(self, option)
        return RewardDefinitionError(f"reward {self.name!r}: option {option}={value!r}: expected {expected}")


def author_depth() -> int:
    """Return how many frames above the caller the author's own code is."""
    frame, depth = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(("rewardkit.", "dataclasses")):
        frame, depth = frame.f_back, depth + 1
    return depth


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value


def _is_count(value: object, lowest: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= lowest
