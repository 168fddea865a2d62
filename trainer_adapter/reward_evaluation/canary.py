"""A reward on a canary set over time: each measurement in a run's record, with a flag where it has surely fallen.

Owns what is compared with what, and when that is more than noise. A measurement is an event ``canary`` and the metrics
``canary/<name>/accuracy`` and ``canary/<name>/ece`` of the training's split, so that all views of a record have them; a
flag is an event as those of the health checks are. A step is the record's.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from rewardkit import ConfigError, Recorder, RecordError, Run
from rewardkit.changing import RecordPlace, has_record
from rewardkit.commands import print_labelled
from rewardkit.health import Flag
from rewardkit.statistics import Z_95, Interval
from trainer_adapter.reward_evaluation.preference_report import PreferenceReport

EVENT = "canary"
DETECTOR = "refresh"
_Z_99 = 2.576
"""The standard normal quantile of a 99 % interval: of a hundred looks at a reward that stays, one may raise a flag."""
_NAME = re.compile(r"[\w.-]{1,60}")
_ACTION = (
    "refresh the reward model on completions of the policy as it is now, or stop here; rewardkit rm eval says where"
)


@dataclass(frozen=True, slots=True)
class CanaryMeasurement:
    """One measurement on a canary set, beside the baseline."""

    name: str  # The canary set's name
    step: int  # The step that it is of
    reward: str  # The reward's name
    version: str  # Its version
    accuracy: Interval  # The accuracy on the set
    ece: Interval  # The calibration error, of pairs
    failed: int  # Rows that failed, and `skipped` ones that did not apply; neither counts
    skipped: int
    baseline: Mapping[str, Any] | None = None  # What it is compared with; `None` if it is the baseline itself
    flags: tuple[Flag, ...] = ()  # What has surely fallen

    def as_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        values = {name: value for name, value in asdict(self).items() if name != "flags"}
        intervals = {"accuracy": self.accuracy._asdict(), "ece": self.ece._asdict()}
        return {**values, **intervals, "refresh": bool(self.flags), "flags": [flag.as_row() for flag in self.flags]}

    def print(self, console: Console) -> None:
        """Print the measurement, what it is compared with, and what is flagged."""
        figures = f"accuracy {_render(self.accuracy)}, ECE {_render(self.ece)}"
        print_labelled(console, f"{self.name}, step {self.step}", f"{self.reward}: {figures}")
        if self.failed or self.skipped:
            reason = f"{self.failed:,} failed, {self.skipped:,} skipped: they count as nothing"
            print_labelled(console, "left out", reason, "bold yellow")
        if self.baseline is None:
            print_labelled(console, "baseline", "this measurement; later ones are compared with it")
        else:
            accuracy, ece = (_render(_interval(self.baseline, name)) for name in ("accuracy", "ece"))
            print_labelled(console, f"baseline, step {self.baseline.get('step')}", f"accuracy {accuracy}, ECE {ece}")
        for flag in self.flags:
            print_labelled(console, "REFRESH", f"{flag.words}; {flag.action}", "bold red")
        if self.baseline is not None and not self.flags:
            print_labelled(console, "no flag", "the difference is within noise, or for the better")


class Canary:
    """The measurements of one canary set in a run's record; the first one begins a record that ``is_new``.

    The default step is the training's last, or one more than the last measurement's where nothing was trained.
    """

    def __init__(self, run: RecordPlace, name: str, step: int | None = None) -> None:
        self._run, self._name = run, name
        self._measurements, next_step = _measurements(run, name)
        self.is_new = not has_record(run)
        self.step = step if step is not None else next_step

    def keep(
        self, report: PreferenceReport, *, new_baseline: bool = False, min_accuracy: float | None = None
    ) -> CanaryMeasurement:
        """Record a report as this step's measurement, with its flags, and return it; raise ``RecordError`` if lost."""
        whole = report.overall
        baselines = [event for event in self._measurements if event.get("is_baseline")]
        baseline = baselines[-1] if baselines and not new_baseline else None
        measured = CanaryMeasurement(
            self._name, self.step, report.reward, report.version, whole.accuracy, report.ece, whole.failed,
            whole.skipped, baseline,
        )  # fmt: skip
        flags = (*_falls(measured, baseline), *_too_low(measured, min_accuracy))
        measured = replace(measured, flags=flags)
        self._write(measured)
        return measured

    def _write(self, measured: CanaryMeasurement) -> None:
        """Append a measurement and its flags to the run's record; raise ``RecordError`` where that fails."""
        values = {"accuracy": measured.accuracy.rate, "ece": measured.ece.rate}
        recorder = Recorder(
            self._run, append=True, purpose=EVENT, about={"command": "rm monitor", "canary": self._name}
        )
        metrics = {f"canary/{self._name}/{name}": value for name, value in values.items() if value is not None}
        body = {name: value for name, value in measured.as_json().items() if name not in ("flags", "baseline")}
        recorder.metrics(measured.step + 1, metrics)  # as the trainer does: the number of steps done by then
        recorder.event(EVENT, {**body, "is_baseline": measured.baseline is None}, measured.step)
        for flag in measured.flags:
            recorder.event("flag", flag.as_row(), measured.step)
        if not recorder.close():
            raise RecordError(f"{self._run.label}: the measurement could not be written: {recorder.trouble}")


def canary_name(source: Path | str) -> str:
    """Return the name of a canary set: the text itself, or a file's name without its endings; refuse others."""
    name = source.name.partition(".")[0] if isinstance(source, Path) else source
    if not _NAME.fullmatch(name):
        raise ConfigError(f"--name {name!r}: expected 1 to 60 letters, digits, '_', '.' and '-', such as canary")
    return name


def _measurements(run: RecordPlace, name: str) -> tuple[list[Mapping[str, Any]], int]:
    """Return the measurements of a set that a record has, and the step of the next one."""
    try:
        opened = Run.open(run)
    except RecordError:
        if has_record(run):
            raise
        return [], 0  # the first measurement begins the record
    with opened:
        bodies = [event["body"] for event in opened.events if event["kind"] == EVENT]
        steps = opened.steps()
    own = [body for body in bodies if body.get("name") == name]
    own_steps = [body["step"] for body in own if isinstance(body.get("step"), int)]
    return own, steps[-1] if steps else max(own_steps, default=-1) + 1


def _falls(measured: CanaryMeasurement, baseline: Mapping[str, Any] | None) -> list[Flag]:
    """Return a flag for an accuracy that is lower, and one for an ECE that is higher, by more than noise."""
    if baseline is None:
        return []
    flags = []
    now, then = measured.accuracy, _interval(baseline, "accuracy")
    if now.rate is not None and then.rate is not None and _difference_high(now, then) < 0:
        message = f"accuracy on {measured.name} fell from {then.rate:.1%} to {now.rate:.1%}, more than noise"
        flags.append(_flag(measured, now.rate, then.rate, message, baseline))
    now, then = measured.ece, _interval(baseline, "ece")
    if now.rate is not None and then.rate is not None and _difference_low(now, then) > 0:
        message = f"calibration error on {measured.name} rose from {then.rate:.3f} to {now.rate:.3f}, more than noise"
        flags.append(_flag(measured, now.rate, then.rate, message, baseline))
    return flags


def _difference_high(now: Interval, then: Interval) -> float:
    """Return the upper end of the 99 % interval of ``now - then``, from the two 95 % intervals.

    Newcombe's square-and-add: the difference plus the root of the squared distances of each rate to the end that
    matters, here widened from 95 to 99 %. It takes the two sets as independent, so it is too wide for one set that is
    measured twice, and never too narrow. Source: Newcombe, Statistics in Medicine 17 (1998), 873-890, method 10.
    """
    rate, before = now.rate or 0.0, then.rate or 0.0
    return rate - before + _Z_99 / Z_95 * math.hypot(now.high - rate, before - then.low)


def _difference_low(now: Interval, then: Interval) -> float:
    """Return the lower end of that interval."""
    return -_difference_high(_negated(now), _negated(then))


def _negated(interval: Interval) -> Interval:
    rate, low, high, count = interval
    return Interval(None if rate is None else -rate, -high, -low, count)


def _too_low(measured: CanaryMeasurement, threshold: float | None) -> list[Flag]:
    """Return a flag for an accuracy that is surely below a threshold."""
    if threshold is None or measured.accuracy.rate is None or measured.accuracy.high >= threshold:
        return []
    message = f"accuracy on {measured.name} is {measured.accuracy.rate:.1%}, surely below {threshold:.1%}"
    return [_flag(measured, measured.accuracy.rate, threshold, message, None)]


def _flag(
    measured: CanaryMeasurement, value: float, threshold: float, message: str, baseline: Mapping[str, Any] | None
) -> Flag:
    return Flag(
        detector=DETECTOR,
        reward=measured.reward,
        first_step=measured.step if baseline is None else baseline.get("step"),
        last_step=measured.step,
        value=value,
        threshold=threshold,
        baseline=None if baseline is None else threshold,
        words=message,
        action=_ACTION,
    )


def _interval(event: Mapping[str, Any], name: str) -> Interval:
    """Return an interval as a record holds it."""
    values = event.get(name) or {}
    try:
        rate = None if values.get("rate") is None else float(values["rate"])
        return Interval(rate, float(values["low"]), float(values["high"]), int(values["of"]))
    except (KeyError, TypeError, ValueError, AttributeError):
        return Interval(None, -math.inf, math.inf, 0)  # another release may have written it otherwise


def _render(interval: Interval) -> str:
    rate, low, high, _ = interval
    return "unknown" if rate is None else f"{rate:.3f} [{low:.3f}, {high:.3f}]"
