"""``rewardkit logs``: what rewards printed, how they failed, and why they scored as they did."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from typing import Annotated, Any

from rich.text import Text

from rewardkit.cli.arguments import AsJson, option
from rewardkit.cli.exits import finish
from rewardkit.cli.render import ENDLESS, NONE, Screen, screen
from rewardkit.cli.run_argument import RunPlace
from rewardkit.errors import ConfigError, RecordError
from rewardkit.record.places import run_path
from rewardkit.record.values import LogEntry
from rewardkit.replay.recorded_run import Run
from rewardkit.types import Status

POLL_S = 0.5  # seconds between two looks at a record that is followed
_LOOK_S = 5.0  # seconds between two looks at whether somebody still writes


def logs_command(
    run: RunPlace,
    reward: Annotated[str | None, option("Only entries of this reward.", "NAME")] = None,
    step: Annotated[int | None, option("Only entries of this step.", "N", min=0)] = None,
    status: Annotated[str | None, option("Only calls with this status: scored, skipped or failed.", "STATUS")] = None,
    grep: Annotated[
        str | None, option("Only where output, error, traceback or reason match a regular expression.", "PATTERN")
    ] = None,
    follow: Annotated[bool, option("Wait for new entries until the run ends, or Ctrl-C.", None, "--follow")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the calls of a recorded RUN that printed, logged, failed or gave a reason, in the order of recording.

    Each begins with its step, the completion, the reward and its version, and what became of it; below stand reason,
    error, traceback and output. A call that has metrics alone, as a composition has of its parts, is in --json only.
    The number behind `completion` is the `id` of `rewardkit show` and `rewardkit export`, from 1.

    Examples:

    [bold]rewardkit logs one --status failed
    rewardkit logs one --reward correct --step 12 --grep "no number"
    rewardkit logs one --follow[/]
    """
    if follow and as_json:
        raise ConfigError("--follow --json: one JSON object cannot follow a run; leave one of them out")
    with Run.open(run_path(run)) as opened:
        _check(opened, step)
        logs = functools.partial(opened.logs, reward=reward, step=step, status=status, grep=grep)
        entries = logs()

        def show() -> None:
            console = screen(ENDLESS)
            count = 0
            try:
                for entry in filter(_has_text, _follow(opened, logs) if follow else entries):
                    _print(entry, console)
                    count += 1
            except KeyboardInterrupt:
                if not follow:
                    raise
                return
            if not count:
                console.say(("nothing was said", "dim"), fit="cut")

        rows = [_as_json(entry) for entry in entries] if as_json else []
        finish({"run": opened.name, "entries": rows}, show, as_json=as_json)


def _has_text(entry: LogEntry) -> bool:
    """Whether there is something to print; of a call that scored at once a record may have metrics alone."""
    outcome = entry.outcome
    texts = (outcome.reason, outcome.error, outcome.traceback, outcome.logs)
    return any(texts) or outcome.status is Status.FAILED or bool(outcome.unanswered) or outcome.attempts > 1


def _check(run: Run, step: int | None) -> None:
    """Raise RecordError where a run that has ended has nothing at a step."""
    steps = {*run.steps(), *run.steps("eval")}
    if step is not None and step not in steps and not run.running:
        have = f"it has those from {min(steps)} to {max(steps)}" if steps else "it has no steps"
        raise RecordError(f"{run.name}: nothing at step {step}; {have}")


def _follow(run: Run, logs: Callable[..., Iterator[LogEntry]]) -> Iterator[LogEntry]:
    """Yield the entries that the run has, then new ones as they come, until no process writes to the run.

    ``logs`` returns the wanted entries of completions behind the number ``after``.
    """
    after, data_version, last_look = 0, -1, 0.0
    while True:
        now = time.monotonic()
        ended = False
        if now - last_look >= _LOOK_S:
            last_look, ended = now, not run.running
        if ended or data_version != run.data_version:
            data_version, last = run.data_version, run.last_id
            after = min(after, last)  # a run that goes on from a checkpoint takes away what it does again
            for entry in logs(after=after):
                after = max(after, entry.completion)
                yield entry
            after = max(after, last)
        if ended:
            return
        time.sleep(POLL_S)


def _print(entry: LogEntry, console: Screen) -> None:
    """Print an entry: a line on the call and its outcome, then the reason, error, traceback and output."""
    outcome = entry.outcome
    where = f"completion {entry.completion}  "
    if entry.step is not None:
        where = f"step {entry.step}  {where}"
    if entry.split != "train":
        where += f"{entry.split}  "
    if entry.rank:
        where += f"rank {entry.rank}  "
    is_scored, is_failed = outcome.status is Status.SCORED, outcome.status is Status.FAILED
    status = _short(outcome.score) if is_scored else str(outcome.cause or outcome.status)
    stands_in = is_failed and outcome.score is not None
    style = "red" if is_failed else "green" if is_scored else "yellow"
    parts: list[str | tuple[str, str]] = [
        (where, "dim"),
        (f"{entry.reward}@{entry.version}", "bold"),
        "  ",
        (f"{outcome.status} {status}".replace("skipped skipped", "skipped"), style),
        f", {_short(outcome.score)} stands in" if stands_in else "",
        f", {outcome.attempts} attempts" if outcome.attempts > 1 else "",
    ]
    epoch = "" if entry.epoch is None else f"  epoch {entry.epoch:.2f}"
    if not console.is_terminal or Text.assemble(*parts, epoch).cell_len <= console.width:
        parts.append((epoch, "dim"))  # rather none than half a number
    console.say(*parts, fit="cut")
    reason = outcome.reason and f"reason: {outcome.reason}"
    for text in (reason, outcome.error, outcome.traceback, *(f"unanswered: {link}" for link in outcome.unanswered)):
        if text:
            console.block(text, "    ")
    if outcome.logs:
        console.block(outcome.logs.rstrip("\n"), "  | ")


def _short(score: float | None) -> str:
    return NONE if score is None else f"{score:.4g}"


def _as_json(entry: LogEntry) -> dict[str, Any]:
    outcome = entry.outcome
    return {
        **entry.call,
        **{name: getattr(outcome, name) for name in ("status", "score", "reason", "cause", "error", "traceback")},
        "metrics": dict(outcome.metrics),
        **{name: getattr(outcome, name) for name in ("logs", "attempts", "duration_s")},
        "unanswered": [record._asdict() for record in outcome.unanswered],
    }
