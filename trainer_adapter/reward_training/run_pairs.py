"""Pairs for a reward model from a run's record: completions of one group that a trusted reward tells clearly apart."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import combinations
from typing import Any

from rewardkit import DataError, RecordError, Run, Status
from trainer_adapter.reward_training.reading import has_text


def pairs_from_run(
    run: Run | str | os.PathLike[str],
    reward: str,
    *,
    min_gap: float,
    pairs_per_group: int | None = None,
    split: str = "train",
) -> list[dict[str, Any]]:
    """Return pairs of a run's completions, as rows that training takes, in the order of the record.

    Of each group, every two completions that the reward scored with a gap of ``min_gap`` or more make a pair. A
    completion that failed, was skipped, has no text or whose text the record left out is in none: no score stands in
    for it. A text that spells a list stands in a message.

    Args:
        run: The run, its folder or its record.
        reward: The trusted reward, by its name in the record.
        min_gap: The least gap between the scores of a pair, greater than 0.
        pairs_per_group: The most pairs of a group, the widest gaps first; ``None`` for all.
        split: ``"train"`` or ``"eval"``.

    Returns:
        Rows with ``prompt``, ``chosen``, ``rejected``, ``gap`` (of the scores), ``step`` and ``group``.

    Raises:
        RecordError: The record cannot be read, or has no such reward.
        DataError: ``min_gap`` is not above 0, or no two completions are that far apart.
    """
    if not min_gap > 0:
        raise DataError(f"min_gap={min_gap!r}: expected a number above 0; scores that are equal prefer nothing")
    opened = run if isinstance(run, Run) else Run.open(run)
    try:
        if reward not in opened.rewards:
            raise RecordError(
                f"{opened.name}: no reward {reward!r} in it; it has {', '.join(map(repr, opened.rewards))}"
            )
        groups: dict[tuple[Any, ...], list[Any]] = {}
        for row in opened.completions(split=split):
            outcome = row.outcomes.get(reward)
            scored = outcome is not None and outcome.status is Status.SCORED and outcome.score is not None
            if scored and row.completion is not None and has_text(row.completion):
                groups.setdefault((row.rank, row.batch, row.group, row.prompt_index), []).append(row)
        pairs = [pair for rows in groups.values() for pair in _pairs(rows, reward, min_gap, pairs_per_group)]
    finally:
        if opened is not run:
            opened.close()
    if not pairs:
        raise DataError(
            f"{opened.name}: no two completions of a group are min_gap={min_gap:g} apart by reward {reward!r} "
            f"({len(groups):,} groups looked at); lower min_gap, or record more steps"
        )
    return pairs


def _pairs(rows: Sequence[Any], reward: str, min_gap: float, limit: int | None) -> list[dict[str, Any]]:
    """Return the pairs of a group with a gap of ``min_gap`` or more, the widest first, ``limit`` at most."""
    pairs = []
    for two in combinations(rows, 2):
        better, worse = sorted(two, key=lambda row: -row.outcomes[reward].score)
        gap = better.outcomes[reward].score - worse.outcomes[reward].score
        if gap >= min_gap and better.completion != worse.completion:
            pairs.append(
                {
                    "prompt": _as_row("user", better.prompt),
                    "chosen": _as_row("assistant", better.completion),
                    "rejected": _as_row("assistant", worse.completion),
                    "gap": gap,
                    "step": better.step,
                    "group": better.group,
                }
            )
    pairs.sort(key=lambda pair: -pair["gap"])
    return pairs[:limit]


def _as_row(role: str, text: object) -> object:
    """Return a prompt or a completion for a row, in which a text that spells a list stands for that list."""
    return [{"role": role, "content": text}] if isinstance(text, str) and text.startswith("[") else text
