"""Which reward a command line means, and its scores over a preference set."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path

from builtin_rewards.reward_model import Calibrated, PreferenceRow, RewardModelReward, checkpoints_of
from rewardkit import Composable, ConfigError, Outcome, Reward
from rewardkit.commands import Leaves, RewardSet, one_of, told_progress
from rewardkit.serving import scorer_of
from trainer_adapter.reward_evaluation.preference_report import PreferenceReport, evaluate_preferences
from trainer_adapter.reward_evaluation.scored_row import ScoredRow, scored_row

_WEIGHTS = ("config.json", "adapter_config.json")  # What a reward model's folder has one of


def reward_of(model: str, timeout_s: float | None = None) -> RewardSet:
    """Return the one reward that a command names, or a reward model's folder; raise for a folder without weights."""
    folder = Path(model)
    if not folder.is_dir():
        return one_of(model, timeout_s)
    if not any((folder / name).is_file() for name in _WEIGHTS) and not checkpoints_of(folder):
        raise ConfigError(
            f"{model}: a folder without {' or '.join(_WEIGHTS)}, so no reward model; name one that training wrote, or "
            "a reward as file.py:name"
        )
    reward: Reward[..., object] = RewardModelReward(model)
    if timeout_s is not None:
        reward = reward.with_options(timeout_s=timeout_s)
    return RewardSet({reward.name: reward})


def scale_of(reward: Composable) -> str:
    """Return on which scale a reward's scores are: ``"probability"`` where they are from 0 to 1, else ``"logit"``."""
    if isinstance(reward, Calibrated):
        return reward.calibration.output
    is_share = isinstance(reward, Reward) and reward.options.score_range == (0.0, 1.0)
    return "probability" if is_share else "logit"


def score_rows(
    reward_set: RewardSet,
    rows: Sequence[PreferenceRow],
    *,
    subset_column: str | None = None,
    workers: int | None = None,
    inline: bool = False,
    tick: Callable[[int, int, int], None] = lambda done, total, failed: None,
) -> list[ScoredRow]:
    """Score all completions of all rows by a set's one reward, and return the rows with their scores, in order.

    ``tick`` is called with the numbers of calls that are done, of all calls, and of failed ones.
    """
    (reward,) = reward_set.rewards.values()
    rollouts = [rollout for row in rows for rollout in row.rollouts]
    leaves = Leaves(reward_set)
    columns: dict[str, list[Outcome | None]] = {leaf.name: [None] * len(rollouts) for leaf in leaves.leaves}
    lane, failed = "inline" if inline else "worker", 0
    with scorer_of(leaves, workers=workers, lane=lane, max_infrastructure_rate=1.0) as scorer:
        for done, finished in enumerate(scorer.stream(rollouts), 1):
            columns[finished.reward][finished.row] = finished.outcome
            failed += finished.outcome.cause is not None
            tick(done, len(columns) * len(rollouts), failed)
    outcomes = (_combine(reward, columns, index) for index in range(len(rollouts)))  # each row takes its own, in order
    return [
        scored_row(row, list(itertools.islice(outcomes, len(row.chosen) + len(row.rejected))), subset_column)
        for row in rows
    ]


def _combine(reward: Composable, columns: dict[str, list[Outcome | None]], row: int) -> Outcome:
    outcomes = {leaf: columns[leaf.name][row] for leaf in reward.leaves}
    return reward.combine({leaf: outcome for leaf, outcome in outcomes.items() if outcome is not None})


def subset_of(rows: Sequence[PreferenceRow], column: str | None) -> str | None:
    """Return the column of subsets: the named one, which the rows must have, or ``subset`` if there is one."""
    columns = rows[0].columns
    if column is not None and column not in columns:
        raise ConfigError(
            f"--subset {column}: no such column; the rows have {', '.join(map(repr, columns)) or 'no others'}"
        )
    return column if column is not None else "subset" if "subset" in columns else None


def evaluate(
    reward_set: RewardSet,
    rows: Sequence[PreferenceRow],
    *,
    subset_column: str | None = None,
    scale: str | None = None,
    bins: int,
    seed: int,
    workers: int | None,
    inline: bool,
) -> tuple[list[ScoredRow], PreferenceReport]:
    """Score rows by a set's one reward, with progress on stderr, and return them with the figures over them."""
    ((name, reward),) = reward_set.rewards.items()
    with told_progress(f"scoring with {name}") as tick:
        scored = score_rows(reward_set, rows, subset_column=subset_column, workers=workers, inline=inline, tick=tick)
    scale = scale or scale_of(reward)
    return scored, evaluate_preferences(scored, name, reward.version, scale=scale, bins=bins, seed=seed)
