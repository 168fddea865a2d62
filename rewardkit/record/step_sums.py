"""The sums of a step from those of its batches."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from rewardkit.record.values import StepSummary, without_noise


def step_summary(key: tuple[Any, ...], parts: Sequence[Any]) -> StepSummary:
    """Return the summary of a step from the sums of its batches; a quantile is the largest of the batches'.

    Where no call scored, mean, std, low and high are ``None``: they would be those of the defaults of failed calls.
    """
    causes = sum((Counter(json.loads(part["causes"])) for part in parts), Counter[str]())
    scored = sum(part["scored"] for part in parts)
    counted = [part for part in parts if part["counted"] and scored]
    sizes = [part["counted"] for part in counted]
    mean = sum(part["mean"] * size for part, size in zip(counted, sizes, strict=True)) / sum(sizes) if counted else None
    std = counted[0]["std"] if len(counted) == 1 else _pooled(counted, sizes, mean)
    step, split, reward, version = key
    return StepSummary(
        step=step,
        split=split,
        reward=reward,
        version=version,
        scored=scored,
        skipped=sum(part["skipped"] for part in parts),
        failed=dict(causes),
        counted=sum(part["counted"] for part in parts),
        mean=mean,
        std=None if std is None or mean is None else without_noise(std, mean),
        low=min((part["min"] for part in parts if scored and part["min"] is not None), default=None),
        high=max((part["max"] for part in parts if scored and part["max"] is not None), default=None),
        p50_s=max((part["p50_s"] for part in parts if part["p50_s"] is not None), default=None),
        p95_s=max((part["p95_s"] for part in parts if part["p95_s"] is not None), default=None),
        groups=sum(part["groups"] for part in parts),
        flat_groups=sum(part["flat_groups"] for part in parts),
    )


def _pooled(parts: Sequence[Any], sizes: Sequence[int], mean: float | None) -> float | None:
    """Return the standard deviation over several batches from theirs; ``None`` with fewer than two numbers."""
    if mean is None or sum(sizes) < 2:
        return None
    inside = sum((part["std"] or 0.0) ** 2 * (size - 1) for part, size in zip(parts, sizes, strict=True))
    between = sum(size * (part["mean"] - mean) ** 2 for part, size in zip(parts, sizes, strict=True))
    return math.sqrt((inside + between) / (sum(sizes) - 1))
