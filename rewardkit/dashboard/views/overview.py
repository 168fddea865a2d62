"""What every tab of a run needs: its size, rewards, versions and metrics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rewardkit.dashboard.query import SPLITS, Query
from rewardkit.dashboard.readers import Opened
from rewardkit.dashboard.sums import summaries
from rewardkit.record.overview import RewardOverview, overviews
from rewardkit.record.values import StepSummary, Version
from rewardkit.replay.recorded_run import Run
from rewardkit.types import Cause


def overview(opened: Opened, query: Query) -> dict[str, Any]:
    """Return a run at a glance."""
    run, sums = opened.run, summaries(opened)
    counted = opened.kept.get("overview", opened.version, lambda: _counted(run, sums))
    return {**counted, "state": "running" if run.running else "ended", "can_write": opened.can_write}


def _counted(run: Run, sums: Sequence[StepSummary]) -> dict[str, Any]:
    return {
        "name": run.name,
        "path": run.given,
        "completions": run.count(),
        "prompts": run.prompt_count,
        "left_out": run.left_out,
        "steps": {split: _ends(run.steps(split)) for split in SPLITS},
        "rewards": _rewards(run, sums),
        "versions": [_version(one) for one in run.versions],
        "metrics": {split: run.metric_names(split) for split in SPLITS},
        "causes": [one.value for one in Cause],
    }


def _ends(steps: list[int]) -> list[int]:
    """Return the first step, the last one and how many there are; an empty list without steps."""
    return [steps[0], steps[-1], len(steps)] if steps else []


def _rewards(run: Run, sums: Sequence[StepSummary]) -> list[dict[str, Any]]:
    """Return the rewards in the order in which they were first recorded, with their newest version of the run."""
    by_name = {one.reward: one for one in overviews(sums)}
    newest = {one.reward: one.number for one in run.own_versions}
    return [_reward(name, newest.get(name), by_name.get(name)) for name in run.rewards]


def _reward(name: str, version: int | None, one: RewardOverview | None) -> dict[str, Any]:
    """Return a reward's numbers, which are all unknown for one that scored nothing in training."""
    known = ("first", "last", "std", "low", "high", "p50_s", "p95_s", "flat_share")
    counts = {"scored": 0, "skipped": 0, "failed": {}}
    if one is not None:
        counts = {"scored": one.scored, "skipped": one.skipped, "failed": dict(one.failed)}
    return {"name": name, "version": version, **{key: getattr(one, key, None) for key in known}, **counts}


def _version(one: Version) -> dict[str, Any]:
    keys = ("id", "reward", "number", "digits", "origin", "reference", "first_step", "began")
    return {key: getattr(one, key) for key in keys}
