"""A reward whose scores are calibrated: :class:`Calibrated`, which is fitted on labelled completions or on pairs."""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from builtin_rewards.judge.own_labels import labelled_rollouts, truth
from builtin_rewards.reward_model.calibration import Calibration
from builtin_rewards.reward_model.preferences import PreferenceRow, preferences_of, read_preferences
from builtin_rewards.reward_model.public_sets import is_preference
from rewardkit import (
    Composable,
    Composite,
    ConfigError,
    DataError,
    Outcome,
    Reward,
    RewardDefinitionError,
    Rollout,
    Runtime,
    Score,
    Status,
)
from rewardkit.extending import decode, read_rows, resolve

_RewardLike: TypeAlias = Composable | Callable[..., Any] | str
Rows: TypeAlias = str | Path | Iterable[Mapping[str, Any] | Rollout]
_LEAST_EXAMPLES = 10  # fewer labels or pairs than this fit noise


@dataclass(frozen=True, eq=False, init=False)
class Calibrated(Composite):
    """A reward whose scores pass through a calibration; else it is a reward as any other.

    A completion that the reward skips is skipped, and one that fails is failed, with the default that stands in as it
    is: neither passes through the calibration. The outcome's metrics have the score before, as ``raw``.

    Args:
        reward: Any reward, also of groups, or a composition, or a reference to one.
        calibration: A :class:`Calibration`, or the file that holds one.
        name: Its name; by default that of the reward.

    Raises:
        RewardDefinitionError: ``reward`` is not a reward.
        ConfigError: The file holds no calibration.

    Example:
        >>> from rewardkit import reward
        >>> @reward
        ... def length(completion: str) -> float:
        ...     return float(len(completion))
        >>> calibrated = Calibrated(length, Calibration("platt", slope=0.5, intercept=-2.0))
        >>> calibrated(completion="four")
        0.5
    """

    reward: Composable
    calibration: Calibration
    label: str

    def __init__(self, reward: _RewardLike, calibration: Calibration | str | Path, *, name: str | None = None) -> None:
        target = resolve(reward)
        if isinstance(calibration, str | Path):
            calibration = Calibration.load(calibration)
        if not isinstance(calibration, Calibration):
            raise RewardDefinitionError(f"Calibrated: {calibration!r}: expected a Calibration, or the file of one")
        object.__setattr__(self, "reward", target)
        object.__setattr__(self, "calibration", calibration)
        object.__setattr__(self, "label", target.name if name is None else name)

    @property
    def name(self) -> str:
        return self.label

    def named(self, name: str) -> Calibrated:
        """Return the same under another name."""
        return Calibrated(self.reward, self.calibration, name=name)

    def map_leaves(self, change: Any) -> Calibrated:
        return Calibrated(self.reward.map_leaves(change), self.calibration, name=self.label)

    def value(self, values: Mapping[Reward[..., Any], float], step: int | None) -> float:
        inner = self.reward
        raw = inner.value(values, step) if isinstance(inner, Composite) else values[inner]  # type: ignore[index]
        return self.calibration(raw)

    def bounds(self, parts: Mapping[Composable, tuple[float, float]]) -> tuple[float, float]:
        low, high = sorted(map(self.calibration, parts[self.reward]))
        return low, high

    def combine(self, outcomes: Mapping[Reward[..., Any], Outcome], step: int | None = None) -> Outcome:
        outcome = self.reward.combine(outcomes, step)
        if outcome.status is not Status.SCORED or outcome.score is None:
            return outcome
        raw = outcome.score
        return outcome._replace(score=self.calibration(raw), metrics={**outcome.metrics, "raw": raw})

    def __call__(self, *arguments: object, **columns: object) -> Any:
        """Score, as the reward does when it is called; a composition is scored by a runtime.

        Raises:
            TypeError: The reward is a composition, or an argument is wrong.
        """
        if not callable(self.reward):
            raise TypeError(f"{self.name!r} is made of a composition; score it with Runtime([...])")
        result = self.reward(*arguments, **columns)
        return self._map_awaited(result) if inspect.isawaitable(result) else self._map_result(result)

    async def _map_awaited(self, result: Awaitable[Any]) -> Any:
        return self._map_result(await result)

    def _map_result(self, result: Any) -> Any:
        """Return what a call returned, with calibrated scores; skips and errors as they are."""
        if isinstance(result, list | tuple):
            return [self._map_result(part) for part in result]
        if isinstance(result, Score):
            if result.value is None:
                return result
            metrics = {**result.metrics, "raw": float(result.value)}
            return replace(result, value=self.calibration(float(result.value)), metrics=metrics)
        if result is None or isinstance(result, BaseException):
            return result
        return self.calibration(float(result))

    @classmethod
    def fit(
        cls,
        reward: _RewardLike,
        rows: Rows,
        *,
        method: str = "temperature",
        output: str = "probability",
        label: str = "label",
        name: str | None = None,
        lane: str = "worker",
        workers: int | None = None,
    ) -> Calibrated:
        """Score labelled completions or pairs, and return the reward with the calibration that fits them.

        Rows are rollouts with a label in their example; or rows, or a file of them, with ``prompt``, ``completion``
        and the label's column (true or false, 1 or 0, yes or no); or with ``prompt``, ``chosen`` and ``rejected``.
        What failed or was skipped is left out, of a pair both.

        Args:
            reward: The reward.
            rows: The labelled rows or pairs.
            method: ``"temperature"``, ``"platt"`` or ``"isotonic"``.
            output: ``"probability"`` or ``"logit"``.
            label: The column with the label.
            name: The name of what is returned; by default that of the reward.
            lane: Where the reward runs, as for :class:`~rewardkit.Runtime`.
            workers: Worker processes, as there.

        Raises:
            DataError: A row lacks a column or a label, fewer than 10 rows have scores, or no calibration fits.
            ImportError: The method is isotonic and scikit-learn is not installed.
        """
        target = resolve(reward)
        rows = rows if isinstance(rows, str | Path) else list(rows)
        pairs = _pairs(rows)
        rollouts = labelled_rollouts(rows) if pairs is None else [row for pair in pairs for row in pair.rollouts]
        if not rollouts:
            raise DataError("Calibrated.fit: there are no rows to fit on")
        labels = [] if pairs else [truth(row.example, label, f"row {index}") for index, row in enumerate(rollouts)]
        with Runtime([target], lane=lane, workers=workers, max_infrastructure_rate=1.0) as runtime:
            (outcomes,) = runtime.score(rollouts).outcomes.values()
        scores = [outcome.score if outcome.status is Status.SCORED else None for outcome in outcomes]
        if pairs is None:
            examples = [(score, is_good) for score, is_good in zip(scores, labels, strict=True) if score is not None]
            _check_enough(len(examples), len(rollouts), "rows", outcomes)
            values, truths = zip(*examples, strict=True)
            calibration = Calibration.fit(values, truths, method, output=output)
        else:
            sides = zip(scores[::2], scores[1::2], strict=True)
            duels = [(chosen, rejected) for chosen, rejected in sides if chosen is not None and rejected is not None]
            _check_enough(len(duels), len(pairs), "pairs", outcomes)
            winners, losers = zip(*duels, strict=True)
            calibration = Calibration.fit_pairs(winners, losers, method, output=output)
        return cls(target, calibration, name=name)

    def save(self, path: str | Path) -> None:
        """Write the calibration to a JSON file, with the name and version of the reward that it is for."""
        content = {**self.calibration.as_json(), "reward": self.reward.name, "version": self.reward.version}
        Path(path).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, reward: _RewardLike, path: str | Path, *, name: str | None = None) -> Calibrated:
        """Return a reward with the calibration in a file that :meth:`save` wrote for this very reward.

        Raises:
            ConfigError: The file holds no calibration, or that of another reward or of another version of it.
        """
        target, calibration = resolve(reward), Calibration.load(path)  # an object of JSON, or it raises
        content = decode(Path(path).read_text(encoding="utf-8"))
        version = content.get("version")
        if version is not None and version != target.version:
            raise ConfigError(
                f"{path}: fitted for {content.get('reward')!r} version {version}, and {target.name!r} is version "
                f"{target.version}; fit it again, or take the map as it is: Calibrated(reward, Calibration.load(path))"
            )
        return cls(target, calibration, name=name)


def _pairs(rows: Rows) -> list[PreferenceRow] | None:
    """Return the pairs, or ``None`` where rows are labelled completions; raise DataError for uneven sides."""
    if isinstance(rows, str | Path):
        (first,) = read_rows(rows, limit=1, for_trainer=False)
        return _check_one_to_one(read_preferences(rows)) if is_preference(first.values) else None
    mappings = [row for row in rows if not isinstance(row, Rollout)]
    return _check_one_to_one(preferences_of(mappings)) if mappings and is_preference(mappings[0]) else None


def _check_one_to_one(rows: list[PreferenceRow]) -> list[PreferenceRow]:
    for row in rows:
        if len(row.chosen) != 1 or len(row.rejected) != 1:
            raise DataError(
                f"{row.where}: {len(row.chosen)} chosen and {len(row.rejected)} rejected; expected one each"
            )
    return rows


def _check_enough(count: int, total: int, noun: str, outcomes: Sequence[Outcome]) -> None:
    if count < _LEAST_EXAMPLES:
        error = next((outcome.error for outcome in outcomes if outcome.error), None)
        detail = f"; the first failure: {error}" if error else ""
        raise DataError(
            f"Calibrated.fit: {count} of {total} {noun} have scores; expected {_LEAST_EXAMPLES} or more{detail}"
        )
