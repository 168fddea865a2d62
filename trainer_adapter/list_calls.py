"""Calls with lists of completions and keywords, as Atropos and Tunix make them: lists to rollouts, rows to numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rewardkit import Rollout
from trainer_adapter.trainer_rewards import TrainerRewards, check_lists


def list_rollouts(
    core: TrainerRewards, completions: Sequence[Any], keywords: Mapping[str, Any], prompts: Sequence[Any] | None = None
) -> list[Rollout]:
    """Return the rollouts of a call. A keyword with a value for each completion is a column, and text is one for all.

    Objects that a trainer passes besides, such as its configuration, are left out.
    """
    rows = len(completions)
    if prompts is not None:
        check_lists(core.asks.trainer, rows, "completions", prompts=prompts)
    columns = {name: values for name, value in keywords.items() if (values := _column(value, rows)) is not None}
    return [
        core.rollout(
            "" if prompts is None else prompts[row],
            _completion(completions[row]),
            {name: values[row] for name, values in columns.items()},
        )
        for row in range(rows)
    ]


def _column(value: Any, rows: int) -> Sequence[Any] | None:
    """Return a value for each completion; ``None`` for an object that is no data."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple) and len(value) == rows:
        return value
    return [value] * rows if isinstance(value, str | int | float | bool | dict) else None


def _completion(completion: Any) -> Any:
    """Return text or messages; one message, or a choice with its ``message``, is a list of one."""
    if isinstance(completion, Mapping):
        message = completion.get("message")
        return [message if isinstance(message, Mapping) else completion]
    return completion
