"""What every tab of a run needs: its size, rewards, versions and metrics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rewardkit.dashboard.as_json import attributes
from rewardkit.dashboard.query import SPLITS, Query
from rewardkit.dashboard.readers import OpenRun, summaries
from rewardkit.record.overview import RewardOverview, overviews
from rewardkit.record.values import StepSummary, Version
from rewardkit.replay.recorded_run import Run
from rewardkit.types import Cause


def overview(opened: OpenRun, query: Query) -> dict[str, Any]:
    run, sums = opened.run, summaries(opened)
    numbers = opened.cache.get("overview", opened.version, lambda: _numbers(run, sums))
    return {**numbers, "state": "running" if run.running else "ended", "can_write": opened.can_write}


def _numbers(run: Run, sums: Sequence[StepSummary]) -> dict[str, Any]:
    return {
        "name": run.name,
        "path": run.path.label,
        "completions": run.count(),
        "prompts": run.prompt_count,
        "left_out": run.left_out,
        "steps": {split: _range(run.steps(split)) for split in SPLITS},
        "rewards": _rewards(run, sums),
        "versions": [_version(version) for version in run.versions],
        "metrics": {split: run.metric_names(split) for split in SPLITS},
        "causes": [cause.value for cause in Cause],
    }


def _range(steps: list[int]) -> list[int]:
    """Return the first step, the last one and how many there are; an empty list without steps."""
    return [steps[0], steps[-1], len(steps)] if steps else []


def _rewards(run: Run, sums: Sequence[StepSummary]) -> list[dict[str, Any]]:
    """Return the rewards in the order in which they were first recorded, with their newest version of the run."""
    by_name = {row.reward: row for row in overviews(sums)}
    newest = {version.reward: version.number for version in run.own_versions}
    return [_reward(name, newest.get(name), by_name.get(name)) for name in run.rewards]


def _reward(name: str, version: int | None, row: RewardOverview | None) -> dict[str, Any]:
    """Return a reward's numbers, which are all unknown for one that scored nothing in training."""
    names = ("first", "last", "std", "low", "high", "p50_s", "p95_s", "flat_share")
    counts = {"scored": 0, "skipped": 0, "failed": {}}
    if row is not None:
        counts = {"scored": row.scored, "skipped": row.skipped, "failed": dict(row.failed)}
    return {"name": name, "version": version, **{key: getattr(row, key, None) for key in names}, **counts}


def _version(version: Version) -> dict[str, Any]:
    return attributes(version, "id", "reward", "number", "digits", "origin", "reference", "first_step", "began")
