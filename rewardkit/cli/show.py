"""``rewardkit show``: a run at a glance, one of its steps, or one of its prompts through the epochs."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from rewardkit.cli.arguments import AsJson, RunPlace, option
from rewardkit.cli.exits import finish
from rewardkit.cli.output import check_new, replacing
from rewardkit.cli.report import duration, number
from rewardkit.cli.run_page import run_page
from rewardkit.cli.text import folded
from rewardkit.cli.view import (
    NONE,
    columns_of_text,
    day,
    grid,
    heading,
    one_line,
    page,
    say,
    say_all,
    size_told,
)
from rewardkit.errors import ConfigError, RecordError
from rewardkit.record.overview import RewardOverview, overviews
from rewardkit.record.places import run_path
from rewardkit.record.values import Completion, StepSummary
from rewardkit.replay.glance import CANARY, METRICS, head_of, metric_shown
from rewardkit.replay.recorded_run import Run
from rewardkit.shown.sparkline import sparkline
from rewardkit.shown.text import counted, plain, shortened
from rewardkit.types import Status

_ENDS = 3
_FLAGS = 5
_NAME_CHARS = 20
_SPARK = 20
_COLUMN_CHARS = 12
_LEAST_TEXT = 30
_ENDLESS = 1_000_000


def show_command(
    run: RunPlace,
    step: Annotated[int | None, option("Show this step.", "N", min=0)] = None,
    prompt: Annotated[int | None, option("Show all completions of this prompt through the epochs.", "N", min=0)] = None,
    split: Annotated[str, option("What is shown: train or eval.", "SPLIT")] = "train",
    to: Annotated[Path | None, option("Write the run's report to this file instead.", "FILE", "--html")] = None,
    force: Annotated[bool, option("Replace the file of --html if it is there.", None, "--force")] = False,
    as_json: AsJson = False,
) -> None:
    """Show a recorded RUN: its rewards over the steps, what failed, the worst and best completions, the versions.

    A reward's curve has its mean at each step, and `·` where no call scored; `zero variance` is the share of groups
    whose scores are all the same. --step shows one step in the same way; --prompt shows what became of one prompt, from
    its first completion to its last. Off a terminal, text is neither wrapped nor cut. --html writes a report of the run
    to one file that needs neither a server nor the network: graphs, changes, flags, failures, completions.

    Examples:

    [bold]rewardkit show one
    rewardkit show runs/one --step 12
    rewardkit show one --prompt 0 --json
    rewardkit show one --html report.html[/]
    """
    if step is not None and prompt is not None:
        raise ConfigError("--step and --prompt: give one of them")
    if split not in ("train", "eval"):
        raise ConfigError(f"--split {split}: expected train or eval")
    for name, given in (("--step", step), ("--prompt", prompt)):
        if to is not None and given is not None:
            raise ConfigError(f"--html and {name}: a report is of the whole run; give one of them")
    if force and to is None:
        raise ConfigError("--force: replaces the file of --html; name it")
    with Run.open(run_path(run)) as opened:
        if to is not None:
            _write_report(opened, to, split, force=force, as_json=as_json)
        elif prompt is not None:
            _show_prompt(opened, prompt, as_json=as_json)
        elif step is not None:
            _show_step(opened, step, split, as_json=as_json)
        else:
            _show_run(opened, split, as_json=as_json)


def _write_report(run: Run, to: Path, split: str, *, force: bool, as_json: bool) -> None:
    check_new(to, run.path.files, "--html", force=force)
    whole, left_out = run_page(run, split)
    with replacing(to.resolve()) as file:
        file.write(whole)
    size = to.stat().st_size
    told = {"run": run.name, "file": str(to), "bytes": size, "left_out": left_out}
    finish(told, lambda: typer.echo(plain(f"wrote {to}, {size_told(size)}")), as_json=as_json)


def _show_run(run: Run, split: str, *, as_json: bool) -> None:
    summaries = run.summaries(split=split)
    rewards = overviews(summaries)
    named = {*run.metric_names(split)}
    prefix = "" if split == "train" else "eval_"
    wanted = [*(f"{prefix}{one}" for one in METRICS), *sorted(one for one in named if one.startswith(CANARY))]
    metrics = {name: metric_shown(run, name, split) for name in wanted if name in named}
    last = next((one.step for one in reversed(summaries) if one.step is not None), None)
    ends = {which: run.by_id(run.ranked(last, _ENDS, best=which == "best", split=split)) for which in ("worst", "best")}
    head = head_of(run)
    versions = [
        {"reward": one.reward, "number": one.number, "first_step": one.first_step, "digits": one.digits}
        for one in run.own_versions
    ]
    flags = [one for one in run.events if one["kind"] == "flag"]

    def show() -> None:
        console = page()
        _print_head(head, console)
        if not rewards:
            say(console, f"nothing is recorded of {split}")
        else:
            _print_scores(rewards, console)
            _print_calls(rewards, console)
        _print_metrics(metrics, console)
        if rewards:
            _print_ends(ends, "" if last is None else f" of step {last}", console)
            _print_versions(versions, console)
        _print_flags(flags, run.path.label, console)

    told = {
        **head,
        "split": split,
        "rewards": [asdict(one) for one in rewards],
        "metrics": metrics,
        **{which: [_told(one) for one in those] for which, those in ends.items()},
        "versions": versions,
        "flags": flags,
    }
    finish(told, show, as_json=as_json)


def _print_head(head: Mapping[str, Any], console: Console) -> None:
    state = ("running", "green") if head["running"] else ("ended", "")
    took = NONE if head["began"] is None else f"{day(head['began'])}, {duration(head['seen'] - head['began'])}"
    say(console, (head["name"], "bold"), "  ", state, f"  {took}")
    machine, packages = head["machine"], head["packages"]
    named = [f"{name} {packages[name]}" for name in ("torch", "transformers", "trl") if name in packages]
    cores = [counted(machine["processors"], "core")] if machine.get("processors") else []
    words = [machine.get("host", ""), *cores, f"Python {head['python']}" if head["python"] else "", *named]
    say(console, (", ".join(filter(None, words)), "dim"))
    size = f"{counted(head['completions'], 'completion')} of {counted(head['prompts'], 'prompt')}"
    say(console, f"{head['steps_told']}, {size}")
    if not head["processes"]:
        why = "no process stands in it: a copy of a run that is being written lacks what its log, record.db-wal, has"
        say(console, ("warning: ", "yellow"), why)
    if head["left_out"]:
        words_left = f"{head['left_out']:,} without their text: the disk was slower than the run"
        say(console, ("warning: ", "yellow"), words_left)


def _print_scores(rewards: Sequence[RewardOverview], console: Console) -> None:
    console.print()
    shown = grid("reward", "mean", "first", "last", "std", "zero variance", left=2)
    shown.columns[1].no_wrap = True
    for one in rewards:
        share = NONE if one.flat_share is None else f"{one.flat_share:.0%}"
        numbers = [number(value) for value in (one.first, one.last, one.std)]
        shown.add_row(_name(one.reward, console), sparkline(one.means, _SPARK), *numbers, share)
    console.print(shown)


def _print_calls(rewards: Sequence[RewardOverview], console: Console) -> None:
    """Print what became of the calls, the slowest reward first."""
    console.print()
    shown = grid("calls, slowest first", "failed", "skipped", "p50", "p95", left=2)
    for one in sorted(rewards, key=lambda one: -(one.p95_s or 0.0)):
        failed = Text(", ".join(f"{cause} {count:,}" for cause, count in one.failed.items()) or NONE)
        failed.stylize("red" if one.failed else "")
        skipped = f"{one.skipped:,}" if one.skipped else NONE
        shown.add_row(_name(one.reward, console), failed, skipped, duration(one.p50_s), duration(one.p95_s))
    console.print(shown)


def _name(reward: str, console: Console) -> Text:
    return Text(folded(reward, _NAME_CHARS) if console.is_terminal else reward, style="bold")


def _print_metrics(metrics: Mapping[str, Sequence[tuple[int, float]]], console: Console) -> None:
    if not metrics:
        return
    console.print()
    shown = grid("the trainer's", "curve", "first", "last", left=2)
    shown.columns[1].no_wrap = True
    for name, series in metrics.items():
        known = [value for _, value in series if not math.isnan(value)]
        ends = [number(known[0]), number(known[-1])] if known else [NONE, NONE]
        shown.add_row(Text(name, style="bold"), sparkline([value for _, value in series], _SPARK), *ends)
    console.print(shown)


def _print_ends(ends: Mapping[str, Sequence[Completion]], of_step: str, console: Console) -> None:
    rewards = {one.reward for those in ends.values() for one in those}
    if len(rewards) == 1:
        ends = {"equally paid": ends["best"]}
    for which, those in ends.items():
        if those:
            heading(console, f"{which} completions{of_step}")
            rows = [(number(one.reward), f"prompt {one.prompt_index}", one_line(one.completion)) for one in those]
            _print_lines(rows, console)


def _print_lines(rows: Sequence[Sequence[str]], console: Console) -> None:
    for line in columns_of_text(rows):
        say(console, line)


def _print_versions(versions: Sequence[Mapping[str, Any]], console: Console) -> None:
    heading(console, "versions")
    rows = [
        (f"{one['reward']}@{one['number']}", one["digits"],
         "" if one["first_step"] is None else f"from step {one['first_step']}")
        for one in versions
    ]  # fmt: skip
    _print_lines(rows, console)


def _print_flags(flags: Sequence[Mapping[str, Any]], name: str, console: Console) -> None:
    if not flags:
        return
    last = f", the last {_FLAGS} of them" if len(flags) > _FLAGS else ""
    heading(console, f"{counted(len(flags), 'flag')}{last}")
    for one in flags[-_FLAGS:]:
        body = one["body"]
        words = body.get("words") or body.get("message") or json.dumps(body, ensure_ascii=False)
        where = "" if one["step"] is None else f"step {one['step']}  "
        whose = f"  {body['reward']}" if body.get("reward") else ""
        detector = str(body.get("detector", one["kind"]))
        say(console, (where, "dim"), (detector, "yellow"), whose, f"  {shortened(str(words), 400)}")
    say(console, (f"rewardkit diagnose {shlex.quote(name)} says more", "dim"))


def _show_step(run: Run, step: int, split: str, *, as_json: bool) -> None:
    steps = run.steps(split)
    if step not in steps:
        have = f"it has those from {steps[0]} to {steps[-1]}" if steps else "it has no steps"
        raise RecordError(f"{run.name}: no step {step} of {split}; {have}")
    summaries = [one for one in run.summaries(split=split) if one.step == step]
    logged = step + 1 if split == "train" else step  # the trainer counts a step when it is done, and evaluates then
    metrics = {
        name: value for name in run.metric_names(split) for _, value in metric_shown(run, name, split, (logged, logged))
    }
    completions = list(run.completions(step=step, split=split))

    def show() -> None:
        console = page()
        epoch = next((f", epoch {one.epoch:.2f}" for one in completions if one.epoch is not None), "")
        say(console, (f"{run.name}, step {step}", "bold"), f"{epoch}, {counted(len(completions), 'completion')}")
        _print_step(summaries, console)
        prompts = dict.fromkeys(one.prompt_index for one in completions)
        for index in prompts:
            those = [one for one in completions if one.prompt_index == index]
            heading(console, f"prompt {index}")
            say(console, (one_line(those[0].prompt), "dim"))
            _print_completions(those, console, when=False)
        others = {name: value for name, value in metrics.items() if not _names_one(name, run.rewards)}
        if others:
            heading(console, "the trainer's")
            _print_lines([(name, number(value)) for name, value in sorted(others.items())], console)

    told = {
        "name": run.name,
        "step": step,
        "split": split,
        "rewards": [one._asdict() for one in summaries],
        "metrics": metrics,
        "completions": [_told(one) for one in completions],
    }
    finish(told, show, as_json=as_json)


def _names_one(metric: str, rewards: Sequence[str]) -> bool:
    """Whether a metric is that of one reward, such as ``rewards/format/mean``; these have a table of their own."""
    return any(name in rewards for name in metric.split("/")[1:])


def _print_step(summaries: Sequence[StepSummary], console: Console) -> None:
    console.print()
    shown = grid("reward", "mean", "std", "min", "max", "skipped", "failed", "zero variance")
    for one in summaries:
        failed = Text("\n".join(f"{cause} {count:,}" for cause, count in one.failed.items()) or NONE)
        flat = f"{one.flat_groups} of {one.groups}" if one.groups else NONE
        numbers = [number(value) for value in (one.mean, one.std, one.low, one.high)]
        name = _name(f"{one.reward}@{one.version}", console)
        shown.add_row(name, *numbers, f"{one.skipped:,}" if one.skipped else NONE, failed, flat)
    console.print(shown)


def _show_prompt(run: Run, index: int, *, as_json: bool) -> None:
    prompt = run.prompt(index)
    completions = list(run.completions(prompt=index))

    def show() -> None:
        console = page()
        times = counted(len(completions), "completion")
        say(console, (f"{run.name}, prompt {index}", "bold"), f": {times}")
        say_all(console, prompt.prompt if isinstance(prompt.prompt, str) else one_line(prompt.prompt), "  ")
        for name, value in prompt.columns.items():
            say(console, (f"  {name}: ", "dim"), one_line(value if isinstance(value, str) else json.dumps(value)))
        console.print()
        _print_completions(completions, console, when=True)

    told = {
        "name": run.name,
        "index": index,
        "prompt": prompt.prompt,
        "columns": dict(prompt.columns),
        "completions": [_told(one) for one in completions],
    }
    finish(told, show, as_json=as_json)


def _print_completions(completions: Sequence[Completion], console: Console, *, when: bool) -> None:
    """Print completions in columns, the text last; on a line of its own where the terminal has no room beside them."""
    names = list(dict.fromkeys(name for one in completions for name in one.outcomes))
    chars = _COLUMN_CHARS if console.is_terminal else _ENDLESS
    times = ["step", "epoch"] if when else []
    head = [*times, *(shortened(name, chars) for name in names), "reward", "advantage", "completion"]
    rows = [
        head,
        *([*_when(one)[: len(times)], *_numbers(one, names), one_line(one.completion)] for one in completions),
    ]
    lines = columns_of_text(row[:-1] for row in rows)
    width = max(map(len, lines))
    room = min(_LEAST_TEXT, max(len(row[-1]) for row in rows))
    beside = not console.is_terminal or width + len("  ") + room <= console.width
    for place, (line, row) in enumerate(zip(lines, rows, strict=True)):
        style = "bold" if place == 0 else ""
        if beside:
            say(console, (f"{line:{width}}  {row[-1]}", style))
        else:
            say(console, (line, style or "dim"))
            say(console, (f"  {row[-1]}", style))


def _when(one: Completion) -> tuple[str, str]:
    step = NONE if one.step is None else str(one.step)
    return f"{step} {one.split}" if one.split != "train" else step, NONE if one.epoch is None else f"{one.epoch:.2f}"


def _numbers(one: Completion, names: Sequence[str]) -> list[str]:
    """Return each reward's score, or what became of it instead; then the weighted sum and the advantage."""
    found = [one.outcomes.get(name) for name in names]
    scores = [
        NONE if outcome is None else _short(outcome.score) if outcome.status is Status.SCORED
        else str(outcome.cause or outcome.status)
        for outcome in found
    ]  # fmt: skip
    return [*scores, _short(one.reward), _short(one.advantage)]


def _short(value: float | None) -> str:
    return NONE if value is None else f"{value:.3g}"


def _told(one: Completion) -> dict[str, Any]:
    """Return a completion ready for JSON."""
    return {
        **{name: getattr(one, name) for name in (
            "id", "step", "epoch", "split", "rank", "prompt_index", "group", "completion", "tokens", "truncated",
            "total", "reward", "advantage",
        )},
        "rewards": {
            name: {"score": outcome.score, "status": outcome.status, "reason": outcome.reason, "cause": outcome.cause,
                   "error": outcome.error, "version": one.versions[name]}
            for name, outcome in one.outcomes.items()
        },
    }  # fmt: skip
