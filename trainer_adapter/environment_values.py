"""What trainers' environments have scored: read from TRL's objects and from verifiers' traces."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping
from typing import Any

from rewardkit import DataError
from rewardkit.extending import ENVIRONMENT_COLUMN


def with_environments(keywords: Mapping[str, Any], rewards: Iterable[Any]) -> Mapping[str, Any]:
    """Return TRL's keywords of a batch, with the environments' own rewards as a column if one of ours reads it.

    Args:
        keywords: All but prompts, completions and token ids; ``environments`` has one object a completion.
        rewards: A runtime's rewards.

    Raises:
        DataError: An environment's ``reward`` is no number.
    """
    environments = keywords.get("environments")
    if environments is None or ENVIRONMENT_COLUMN in keywords:
        return keywords
    leaves = (leaf for one in rewards for leaf in getattr(one, "leaves", ()))
    if not any(ENVIRONMENT_COLUMN in (leaf.spec.wanted_columns or ()) for leaf in leaves):
        return keywords
    return {**keywords, ENVIRONMENT_COLUMN: [environment_value(one) for one in environments]}


def environment_value(environment: Any) -> float | None:
    """Return the number in an environment's attribute ``reward``; ``None`` where it has none.

    Raises:
        DataError: It is no number.
    """
    value = getattr(environment, "reward", None)
    if value is None or callable(value):
        return None
    if not isinstance(value, numbers.Real) and not hasattr(value, "__float__"):
        raise DataError(
            f"the environment {type(environment).__name__} has reward={value!r:.80}: expected a number or None"
        )
    return float(value)


def trace_value(trace: Any) -> float | None:
    """Return the sum of what a trace of verifiers' has as rewards so far, weighted; ``None`` where it has none."""
    found = [one for one in trace.rewards.values() if one is not None]
    return sum(float(one.score) * float(one.weight) for one in found) if found else None
