"""A run's head in a few words: its size, when and where it ran, and with which packages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rewardkit.record.reader import RunReader
from rewardkit.record.run_end import RunState
from rewardkit.record.values import without_noise
from rewardkit.shown.text import counted

METRICS = ("reward", "reward_std", "frac_reward_zero_std", "kl", "loss", "completions/mean_length")
"""The trainer's metrics that are shown of a run, where there are any."""
CANARY = "canary/"  # What metrics of a canary set begin with; they are shown beside the trainer's


_FLOAT32 = 1e-6


def metric_points(
    run: RunReader, name: str, split: str = "train", steps: tuple[int, int] | None = None
) -> list[tuple[int, float]]:
    """Return one of the trainer's metrics as it is shown: a standard deviation that is rounding alone is 0.

    Trainers compute rewards in float32, in which equal ones have a standard deviation of up to a millionth of them. The
    steps are the trainer's, both included.
    """
    points = run.metrics(name, split, steps)
    ends = {"reward_std": "reward", "/std": "/mean"}
    end = next((suffix for suffix in ends if name.endswith(suffix)), None)
    if end is None:
        return points
    means = dict(run.metrics(name.removesuffix(end) + ends[end], split, steps))
    return [(step, without_noise(value, means.get(step, 0.0), _FLOAT32)) for step, value in points]


def head_of(run: RunReader) -> dict[str, Any]:
    """Return the head of a run's pages, which is shown above everything else."""
    sessions, end = run.sessions, run.end
    first: Mapping[str, Any] = sessions[0]["about"] if sessions else {}
    return {
        "name": run.name,
        "path": str(run.path),
        "running": end.state is RunState.RUNNING,
        **end.as_json(),
        "began": min((session["began"] for session in sessions), default=None),
        "seen": max((session["seen"] for session in sessions), default=None),
        "processes": len(sessions),
        "machine": first.get("machine", {}),
        "python": first.get("python"),
        "packages": first.get("packages", {}),
        "steps": len(run.steps()),
        "steps_told": steps_text(run),
        "completions": run.count(),
        "prompts": run.prompt_count,
        "left_out": run.left_out,
    }


def steps_text(run: RunReader) -> str:
    """Return a text on the steps of a run, such as ``30 steps (0 to 29)``."""
    steps = run.steps()
    if not steps:
        return "no steps"
    count = counted(len(steps), "step")
    return f"{count} ({steps[0]} to {steps[-1]})" if len(steps) > 1 else f"{count} ({steps[0]})"
