"""What the demo shows: a line for each step, a table at the end, curves and figures in files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from rich.table import Table

from trainer_adapter import BatchTiming

FAILING = "troublesome"
CAUSES = {"reward_errors": "raised or crashed", "reward_timeouts": "timed out", "reward_infrastructure": "lost"}
"""The metrics that the adapter logs for each reward, each the share of a batch."""


class Accuracy(NamedTuple):
    """The number of answers, of well-formed ones, and of correct ones among these."""

    well_formed: int
    correct: int
    answers: int

    @property
    def shares(self) -> dict[str, float]:
        """The shares of correct and of well-formed answers, and of correct ones among the well-formed, 0 to 1."""
        return {
            "correct": self.correct / self.answers,
            "format": self.well_formed / self.answers,
            "correct_of_well_formed": self.correct / max(1, self.well_formed),
        }


class Step(NamedTuple):
    """One training step.

    Attributes:
        metrics: What TRL logged.
        seconds: Wall-clock seconds.
        timing: How long the trainer waited for rewards.
    """

    metrics: dict[str, Any]
    seconds: float
    timing: BatchTiming

    def failures(self, metric: str) -> int:
        """Return how many calls of the failing reward a metric counts."""
        return round(self.metrics.get(f"{metric}/{FAILING}", 0.0) * self.timing.rows)


class Run(NamedTuple):
    """Everything that is reported."""

    before: Accuracy
    after: Accuracy
    steps: Sequence[Step]
    seconds: float
    arguments: dict[str, Any]

    @property
    def calls(self) -> int:
        """How often the failing reward was called."""
        return sum(step.timing.rows for step in self.steps)

    @property
    def failures(self) -> dict[str, int]:
        """How often the failing reward failed, by how."""
        return {words: sum(step.failures(metric) for step in self.steps) for metric, words in CAUSES.items()}


HEADER = " step  reward  format  correct  failures  seconds  for rewards   so far"


def line(number: int, step: Step, elapsed_s: float) -> str:
    """Return a step's line under :data:`HEADER`."""
    metrics = step.metrics
    failures = sum(step.failures(metric) for metric in CAUSES)
    return (
        f"{number:>5} {metrics['reward']:>7.3f} {metrics['rewards/format_ok/mean']:>7.2f} "
        f"{metrics['rewards/correct/mean']:>8.2f} {failures or '':>9} {step.seconds:>8.1f} "
        f"{step.timing.wall_s / step.seconds:>12.1%} {minutes(elapsed_s):>8}"
    )


def describe(accuracy: Accuracy) -> str:
    """Return an accuracy in words."""
    shares = accuracy.shares
    return (
        f"{shares['correct']:.0%} of {accuracy.answers} answers to held-out sums are correct, "
        f"{shares['format']:.0%} well-formed"
    )


def minutes(seconds: float) -> str:
    """Return a time as minutes and seconds: ``5:07``."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def table(run: Run) -> Table:
    """Return the closing table."""
    rewards = [step.metrics["reward"] for step in run.steps]
    shown = Table(title=f"{len(run.steps)} steps of GRPO in {run.seconds:.0f} s", title_justify="left", min_width=72)
    shown.add_column("")
    shown.add_column("before", justify="right")
    shown.add_column("after", justify="right")
    before, after = run.before.shares, run.after.shares
    shown.add_row(f"[bold]{run.after.answers} answers to held-out sums[/]")
    shown.add_row("  correct", f"{before['correct']:.1%}", f"[bold]{after['correct']:.1%}[/]")
    shown.add_row("  well-formed", f"{before['format']:.1%}", f"{after['format']:.1%}")
    parts = [f"{shares['correct_of_well_formed']:.1%}" for shares in (before, after)]
    shown.add_row("  correct, of the well-formed", *parts)
    shown.add_section()
    many = min(5, max(1, len(rewards) // 2))  # no step is in both means
    means = [f"{fmean(some):.3f}" for some in (rewards[:many], rewards[-many:])]
    shown.add_row(f"mean reward, first {many} and last {many} steps", *means)
    shown.add_section()
    shown.add_row(f"[bold]calls of {FAILING!r}[/], none of which stopped training", "", f"{run.calls}")
    for words, count in run.failures.items():
        shown.add_row(f"  {words}", "", f"{count}")
    shown.add_section()
    shown.add_row("waiting for rewards, of the steps' time", "", f"{_waiting(run):.1%}")
    return shown


def commands(folder: Path) -> str:
    """Return the commands that look at a run's record."""
    return f"""Every completion, with what each reward said of it, is recorded. Look at it:
  rewardkit show {folder}
  rewardkit show {folder} --prompt 0
  rewardkit logs {folder} --reward {FAILING} --status failed
  rewardkit diagnose {folder}"""


def _waiting(run: Run) -> float:
    return sum(step.timing.wall_s for step in run.steps) / sum(step.seconds for step in run.steps)


def save(run: Run, folder: Path) -> None:
    """Write ``summary.json`` and ``rewards.png``."""
    folder.mkdir(parents=True, exist_ok=True)
    summary = {
        "arguments": {name: str(value) if isinstance(value, Path) else value for name, value in run.arguments.items()},
        "held_out": {name: getattr(run, name).shares for name in ("before", "after")},
        "answers": run.after.answers,
        "reward": [step.metrics["reward"] for step in run.steps],
        "format_ok": [step.metrics["rewards/format_ok/mean"] for step in run.steps],
        "correct": [step.metrics["rewards/correct/mean"] for step in run.steps],
        "calls_of_troublesome": run.calls,
        "failures_of_troublesome": run.failures,
        "seconds": [step.seconds for step in run.steps],
        "waiting_for_rewards": _waiting(run),
    }
    (folder / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
    _draw(run, folder / "rewards.png")


def _draw(run: Run, path: Path) -> None:
    """Draw the rewards of the single steps, their means over five steps, and each step's time."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    curves = {
        "reward": ("reward", "#1f2937", 2.6),
        "well-formed": ("rewards/format_ok/mean", "#0d9488", 1.8),
        "correct": ("rewards/correct/mean", "#d97706", 1.8),
    }
    numbers = list(range(1, len(run.steps) + 1))
    figure, (upper, lower) = pyplot.subplots(
        2, 1, figsize=(9, 6.4), dpi=150, sharex=True, height_ratios=[3, 1], layout="constrained"
    )
    for label, (metric, colour, width) in curves.items():
        values = [step.metrics[metric] for step in run.steps]
        upper.plot(numbers, values, ".", color=colour, alpha=0.28, markersize=5)
        upper.plot(numbers, _smoothed(values), color=colour, linewidth=width, label=label)
    upper.set(ylim=(-0.03, 1.24), yticks=[0, 0.2, 0.4, 0.6, 0.8, 1], ylabel="mean of a step's completions")
    upper.yaxis.set_major_formatter(PercentFormatter(1.0))
    upper.legend(loc="upper right", frameon=False, ncols=3, title="mean over five steps; points: single steps")
    upper.set_title(
        f"SmolLM2-135M learns one-digit sums with GRPO\n"
        f"held-out sums: {run.before.shares['correct']:.0%} correct before, {run.after.shares['correct']:.0%} after "
        f"{len(numbers)} steps",
        loc="left",
        fontsize=12,
    )
    waited = [step.timing.wall_s for step in run.steps]
    others = [step.seconds - wait for step, wait in zip(run.steps, waited, strict=True)]
    lower.bar(numbers, others, width=0.85, color="#94a3b8", label="generating and training")
    lower.bar(numbers, waited, width=0.85, bottom=others, color="#be123c", label="waiting for rewards")
    lower.set(xlabel="step", ylabel="seconds a step", ylim=(0, 1.45 * max(s.seconds for s in run.steps)))
    lower.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    lower.legend(loc="upper right", frameon=False, ncols=2)
    for axes in (upper, lower):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", alpha=0.25)
    figure.savefig(path)
    pyplot.close(figure)


def _smoothed(values: Sequence[float], window: int = 5) -> list[float]:
    return [fmean(values[max(0, end - window) : end]) for end in range(1, len(values) + 1)]
