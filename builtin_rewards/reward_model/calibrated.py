"""A reward whose scores are calibrated: :class:`Calibrated`, which is fitted on labelled completions or on pairs."""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from builtin_rewards.judge.own_labels import truth
from builtin_rewards.reward_model.calibration import Calibration
from builtin_rewards.reward_model.preferences import PreferenceRow, preferences_of, read_preferences
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
from rewardkit.testing import rollouts_from_rows

Rows: TypeAlias = str | Path | Iterable[Mapping[str, Any] | Rollout]
_LEAST_EXAMPLES = 10
"""Fewer labels or pairs than this fit noise."""


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

    def __init__(self, reward: Any, calibration: Calibration | str | Path, *, name: str | None = None) -> None:
        found = resolve(reward)
        made = calibration if isinstance(calibration, Calibration) else _read(calibration)
        object.__setattr__(self, "reward", found)
        object.__setattr__(self, "calibration", made)
        object.__setattr__(self, "label", found.name if name is None else name)

    @property
    def name(self) -> str:
        return self.label

    def named(self, name: str) -> Calibrated:
        """Return the same under another name."""
        return Calibrated(self.reward, self.calibration, name=name)

    def map_leaves(self, change: Any) -> Calibrated:
        return Calibrated(self.reward.map_leaves(change), self.calibration, name=self.label)

    def value(self, values: Mapping[Reward[..., Any], float | None], step: int | None) -> float | None:
        inner = self.reward
        raw = inner.value(values, step) if isinstance(inner, Composite) else values[inner]  # type: ignore[index]
        return None if raw is None else self.calibration(raw)

    def combine(self, outcomes: Mapping[Reward[..., Any], Outcome], step: int | None = None) -> Outcome:
        inner = self.reward
        outcome = inner.combine(outcomes, step)
        if outcome.status is not Status.SCORED or outcome.score is None:
            return outcome
        raw = outcome.score
        return outcome._replace(score=self.calibration(raw), metrics={**outcome.metrics, "raw": raw})

    def __call__(self, *arguments: Any, **columns: Any) -> Any:
        """Score, as the reward does when it is called; a composition is scored by a runtime.

        Raises:
            TypeError: The reward is a composition, or an argument is wrong.
        """
        if not callable(self.reward):
            raise TypeError(f"{self.name!r} is made of a composition; score it with Runtime([...])")
        said = self.reward(*arguments, **columns)
        return self._awaited(said) if inspect.isawaitable(said) else self._mapped(said)

    async def _awaited(self, said: Awaitable[Any]) -> Any:
        return self._mapped(await said)

    def _mapped(self, said: Any) -> Any:
        """Return what a call returned, with calibrated scores."""
        if isinstance(said, list | tuple):
            return [self._mapped(one) for one in said]
        if isinstance(said, Score):
            if said.value is None:
                return said
            metrics = {**said.metrics, "raw": float(said.value)}
            return replace(said, value=self.calibration(float(said.value)), metrics=metrics)
        return said if said is None or isinstance(said, BaseException) else self.calibration(float(said))

    @classmethod
    def fit(
        cls,
        reward: Any,
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
        found = resolve(reward)
        rows = rows if isinstance(rows, str | Path) else list(rows)
        pairs = _pairs(rows)
        rollouts = _labelled(rows) if pairs is None else [one for pair in pairs for one in pair.rollouts]
        if not rollouts:
            raise DataError("Calibrated.fit: there are no rows to fit on")
        labels = [truth(one.example, label, f"row {at}") for at, one in enumerate(rollouts)] if pairs is None else []
        with Runtime([found], lane=lane, workers=workers, max_infrastructure_rate=1.0) as runtime:
            (outcomes,) = runtime.score(rollouts).outcomes.values()
        scores = [one.score if one.status is Status.SCORED else None for one in outcomes]
        if pairs is None:
            known = [(score, good) for score, good in zip(scores, labels, strict=True) if score is not None]
            _check_enough(len(known), len(rollouts), "rows", outcomes)
            made = Calibration.fit([score for score, _ in known], [good for _, good in known], method, output=output)
        else:
            both = [(c, r) for c, r in zip(scores[::2], scores[1::2], strict=True) if c is not None and r is not None]
            _check_enough(len(both), len(pairs), "pairs", outcomes)
            made = Calibration.fit_pairs([c for c, _ in both], [r for _, r in both], method, output=output)
        return cls(found, made, name=name)

    def save(self, path: str | Path) -> None:
        """Write the calibration to a JSON file, with the name and version of the reward that it is for."""
        held = {**self.calibration.as_json(), "reward": self.reward.name, "version": self.reward.version}
        Path(path).write_text(json.dumps(held, indent=2) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, reward: Any, path: str | Path, *, name: str | None = None) -> Calibrated:
        """Return a reward with the calibration in a file that :meth:`save` wrote for this very reward.

        Raises:
            ConfigError: The file holds no calibration, or that of another reward or of another version of it.
        """
        found = resolve(reward)
        held = _object(path)
        meant = held.get("version")
        if meant is not None and meant != found.version:
            raise ConfigError(
                f"{path}: fitted for {held.get('reward')!r} version {meant}, and {found.name!r} is version "
                f"{found.version}; fit it again, or take the map as it is: Calibrated(reward, Calibration.load(path))"
            )
        return cls(found, _read(path), name=name)


def _object(path: str | Path) -> Mapping[str, Any]:
    try:
        held = decode(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return held if isinstance(held, Mapping) else {}


def _read(path: Any) -> Calibration:
    if not isinstance(path, str | Path):
        raise RewardDefinitionError(f"Calibrated: {path!r}: expected a Calibration, or the file of one")
    return Calibration.load(path)


def _pairs(rows: Rows) -> list[PreferenceRow] | None:
    """Return the pairs; ``None`` where rows are labelled completions."""
    if isinstance(rows, str | Path):
        return _one_to_one(read_preferences(rows)) if "chosen" in read_rows(rows, limit=1)[0].values else None
    plain = [row for row in rows if not isinstance(row, Rollout)]
    return _one_to_one(preferences_of(plain)) if plain and "chosen" in plain[0] else None


def _one_to_one(found: list[PreferenceRow]) -> list[PreferenceRow]:
    for one in found:
        if len(one.chosen) != 1 or len(one.rejected) != 1:
            raise DataError(
                f"{one.where}: {len(one.chosen)} chosen and {len(one.rejected)} rejected; expected one each"
            )
    return found


def _labelled(rows: Rows) -> list[Rollout]:
    """Return rollouts with their labels."""
    if isinstance(rows, str | Path):
        return rollouts_from_rows(rows)
    each = [[row] if isinstance(row, Rollout) else rollouts_from_rows([row]) for row in rows]
    return [rollout for rollouts in each for rollout in rollouts]


def _check_enough(known: int, given: int, what: str, outcomes: Sequence[Outcome]) -> None:
    if known < _LEAST_EXAMPLES:
        error = next((one.error for one in outcomes if one.error), None)
        why = f"; the first failure: {error}" if error else ""
        raise DataError(
            f"Calibrated.fit: {known} of {given} {what} have scores; expected {_LEAST_EXAMPLES} or more{why}"
        )
