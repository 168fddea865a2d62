"""``rewardkit verify``: whether recorded scores still hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from rich.console import Console
from rich.text import Text as Shown

from rewardkit.cli.arguments import AsJson, LoadTimeout, RunPlace, Seed, Split, Steps, Workers, option
from rewardkit.cli.diff_report import place_of, print_labelled, text_line, told
from rewardkit.cli.exits import FAILED, finish
from rewardkit.cli.screen import print_table, screen, table, told_progress
from rewardkit.cli.text import folded
from rewardkit.errors import ConfigError
from rewardkit.record.places import run_path
from rewardkit.replay.recorded_run import Run
from rewardkit.replay.stored import choose, steps_of
from rewardkit.replay.verify import SAMPLE, Differing, Holds, VersionCheck, verify
from rewardkit.shown.text import plain
from sandbox import LOAD_TIMEOUT_S

_COLOURS = {Holds.SAME: "green", Holds.NONDETERMINISTIC: "red", Holds.DIFFERENT: "red"}


def verify_command(
    run: RunPlace,
    reward: Annotated[list[str] | None, option("Only the versions of this reward; may be repeated.", "NAME")] = None,
    sample: Annotated[
        int | None, option(f"Completions of each version to score again, {SAMPLE} by default.", "N", min=1)
    ] = None,
    every: Annotated[bool, option("Score all completions again.", None, "--all")] = False,
    seed: Seed = 0,
    steps: Steps = None,
    split: Split = "train",
    workers: Workers = None,
    load_timeout: LoadTimeout = LOAD_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Score recorded completions of RUN again with the recorded versions, and show which scores do not hold.

    A version is the same; or nondeterministic: it scores the same completion differently each time; or different:
    something that it reads has changed; or not reproducible: its source is gone or has changed. A file that has changed
    is run as it was recorded, where its text is whole in the record.

    It runs the code that the record names, and asks its judges again. Exit code 1 means that a score is another one.

    Examples:

    [bold]rewardkit verify runs/one
    rewardkit verify runs/one --all --steps 10-20 --json[/]
    """
    if sample is not None and every:
        raise ConfigError(f"--sample {sample} and --all: give one of them")
    most = None if every else sample or SAMPLE
    with Run.open(run_path(run)) as opened, told_progress("scoring") as tick:
        stored = choose(opened, steps_of(steps), split)
        lane = {"workers": workers, "load_timeout_s": load_timeout}
        checks = list(verify(opened, stored, rewards=reward or (), sample=most, seed=seed, tick=tick, **lane))
    code = FAILED if any(one.different for one in checks) else 0
    result = {"versions": [_as_json(one) for one in checks]}
    finish(result, lambda: _print(checks, screen()), as_json=as_json, code=code)


def _as_json(one: VersionCheck) -> dict[str, Any]:
    return {
        "version": one.label,
        "result": str(one.result),
        "calls": one.calls,
        "same": one.same,
        "different": one.different,
        "not_judged": dict(one.not_judged),
        "why": one.why or None,
        "examples": [_example(differing) for differing in one.examples],
    }


def _example(one: Differing) -> dict[str, Any]:
    completion = one.completion
    return {
        "id": completion.id,
        "step": completion.step,
        "prompt": completion.prompt,
        "completion": completion.completion,
        "recorded": one.recorded.as_json(),
        "now": one.now.as_json(),
    }


def _print(checks: Sequence[VersionCheck], console: Console) -> None:
    shown = table("version", "calls", "same", "different", "not judged", "result")
    for column in shown.columns[1:5]:
        column.justify = "right"
    for one in checks:
        counts = (one.calls, one.same, one.different, sum(one.not_judged.values()))
        result = Shown(str(one.result), style=_COLOURS.get(one.result, "yellow"))
        label = Shown(folded(one.label, 28) if console.is_terminal else plain(one.label), style="bold")
        shown.add_row(label, *(f"{count:,}" if count else "-" for count in counts), result)
    print_table(shown, console)
    for one in checks:
        _print_words(one, console)


def _print_words(one: VersionCheck, console: Console) -> None:
    if one.why:
        console.print(Shown.assemble((one.label, "bold"), f": {one.why}"), soft_wrap=True)
    for why, count in one.not_judged.items():
        console.print(Shown.assemble((one.label, "bold"), f": {count:,} not judged: {why}"), soft_wrap=True)
    for differing in one.examples:
        where = place_of(differing.completion.step, differing.completion.id)
        words = f"  {where}  recorded {told(differing.recorded)}, now {told(differing.now)}"
        console.print(Shown.assemble((one.label, "bold"), words), soft_wrap=True)
        for label, text in (("prompt", differing.completion.prompt), ("completion", differing.completion.completion)):
            print_labelled(label, text_line(text or ""), console)
