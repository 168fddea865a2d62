"""What the demo shows: a line for each step, a table at the end, curves and figures in files."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from clock import Clock
from rich.console import Console
from rich.table import Table

from trainer_adapter import BatchTiming, RewardAdapter

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
    timings: Sequence[BatchTiming]
    seconds: float
    arguments: dict[str, Any]


class LiveLines:
    """A printer of a line for each step, which also ends the training in time.

    Attributes:
        entries: The steps so far.
        evaluation_s: Seconds to keep for the evaluation after training.
    """

    def __init__(self, console: Console, adapter: RewardAdapter, clock: Clock) -> None:
        self._console = console
        self._adapter = adapter
        self._clock = clock
        self._began = 0.0
        self._seconds = 0.0
        self.entries: list[Step] = []
        self.evaluation_s = 0.0

    def callback(self) -> Any:
        """Return the transformers callback that does all this."""
        from transformers import TrainerCallback

        lines = self

        class Live(TrainerCallback):
            def on_train_begin(self, *_: Any, **__: Any) -> None:
                lines._console.print(
                    f"[bold]{'step':>5} {'reward':>7} {'format':>7} {'correct':>8} {'failures':>9} {'seconds':>8}"
                    f" {'for rewards':>12} {'so far':>8}[/]"
                )

            def on_step_begin(self, *_: Any, **__: Any) -> None:
                lines._began = lines._clock.elapsed_s

            def on_step_end(self, *_: Any, **__: Any) -> None:
                lines._seconds = lines._clock.elapsed_s - lines._began

            def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any], **_: Any) -> None:
                if "reward" in logs:
                    lines._add(state.global_step, dict(logs))
                    if not lines._clock.has_time([step.seconds for step in lines.entries], lines.evaluation_s):
                        control.should_training_stop = True

        return Live()

    def _add(self, number: int, metrics: dict[str, Any]) -> None:
        step = Step(metrics, self._seconds, self._adapter.timings[-1])
        self.entries.append(step)
        failures = sum(step.failures(metric) for metric in CAUSES)
        self._console.print(
            f"{number:>5} {metrics['reward']:>7.3f} {metrics['rewards/format_ok/mean']:>7.2f} "
            f"{metrics['rewards/correct/mean']:>8.2f} {failures or '':>9} {step.seconds:>8.1f} "
            f"{step.timing.wall_s / step.seconds:>12.1%} {minutes(self._clock.elapsed_s):>8}",
            highlight=False,
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
    rewards, whole = [step.metrics["reward"] for step in run.steps], sum(step.seconds for step in run.steps)
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
    shown.add_row("mean reward, first 5 and last 5 steps", f"{fmean(rewards[:5]):.3f}", f"{fmean(rewards[-5:]):.3f}")
    shown.add_section()
    shown.add_row(f"[bold]calls of {FAILING!r}[/], none of which stopped training", "", f"{_calls(run)}")
    for metric, words in CAUSES.items():
        count = sum(step.failures(metric) for step in run.steps)
        if count or metric != "reward_infrastructure":
            shown.add_row(f"  {words}", "", f"{count}")
    shown.add_section()
    shown.add_row("[bold]where the time went[/]", "seconds", "of a step")
    for words, seconds in time_spent(run).items():
        shown.add_row(f"  {words}", f"{seconds:.1f}", f"{seconds / whole:.2%}")
    return shown


def time_spent(run: Run) -> dict[str, float]:
    """Return the seconds of all steps, by what they were spent on."""
    waited = sum(step.timing.wall_s for step in run.steps)
    return {
        "generating and training": sum(step.seconds for step in run.steps) - waited,
        "the rewards' own work": sum(step.timing.busy_s for step in run.steps),
        "runtime's own overhead": sum(step.timing.overhead_s for step in run.steps),
    }


def save(run: Run, folder: Path) -> None:
    """Write ``summary.json`` and ``rewards.png``."""
    folder.mkdir(parents=True, exist_ok=True)
    spent, whole = time_spent(run), sum(step.seconds for step in run.steps)
    summary = {
        "arguments": {name: str(value) if isinstance(value, Path) else value for name, value in run.arguments.items()},
        "held_out": {
            name: {**accuracy.shares, "answers": accuracy.answers}
            for name, accuracy in (("before", run.before), ("after", run.after))
        },
        "reward": [step.metrics["reward"] for step in run.steps],
        "format_ok": [step.metrics["rewards/format_ok/mean"] for step in run.steps],
        "correct": [step.metrics["rewards/correct/mean"] for step in run.steps],
        "calls_of_troublesome": _calls(run),
        "failures_of_troublesome": {
            words: sum(step.failures(metric) for step in run.steps) for metric, words in CAUSES.items()
        },
        "seconds": {"training": run.seconds, "steps": whole, **spent},
        "overhead_share": spent["runtime's own overhead"] / whole,
        "timings": [dataclasses.asdict(timing) for timing in run.timings],
    }
    (folder / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
    _draw(run, folder / "rewards.png")


def _calls(run: Run) -> int:
    return sum(step.timing.rows for step in run.steps)


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
