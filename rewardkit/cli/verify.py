"""``rewardkit verify``: whether recorded scores still hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from rich.text import Text

from rewardkit.cli.arguments import AsJson, LoadTimeout, Seed, Split, Steps, Workers, option
from rewardkit.cli.diff import completion_name, print_beside, text_line
from rewardkit.cli.exits import FAILED, finish
from rewardkit.cli.progress import told_progress
from rewardkit.cli.render import Cells, Screen, count_or_none, score_text, screen, table
from rewardkit.cli.run_argument import RunPlace
from rewardkit.errors import ConfigError
from rewardkit.record.places import run_path
from rewardkit.replay.recorded_run import Run
from rewardkit.replay.stored import choose, steps_of
from rewardkit.replay.verify import SAMPLE, Differing, Holds, VersionCheck, verify
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
    code = FAILED if any(check.different for check in checks) else 0
    result = {"versions": [_as_json(check) for check in checks]}
    finish(result, lambda: _print(checks, screen()), as_json=as_json, code=code)


def _as_json(check: VersionCheck) -> dict[str, Any]:
    return {
        "version": check.label,
        "result": str(check.result),
        "calls": check.calls,
        "same": check.same,
        "different": check.different,
        "not_judged": dict(check.not_judged),
        "why": check.why or None,
        "examples": [_example(differing) for differing in check.examples],
    }


def _example(differing: Differing) -> dict[str, Any]:
    completion = differing.completion
    return {
        "id": completion.id,
        "step": completion.step,
        "prompt": completion.prompt,
        "completion": completion.completion,
        "recorded": differing.recorded.as_json(),
        "now": differing.now.as_json(),
    }


def _print(checks: Sequence[VersionCheck], console: Screen) -> None:
    rows: list[Cells] = [
        [
            console.name(check.label, 28),
            *map(count_or_none, (check.calls, check.same, check.different, sum(check.not_judged.values()))),
            Text(str(check.result), style=_COLOURS.get(check.result, "yellow")),
        ]
        for check in checks
    ]
    versions = table("version", "calls", "same", "different", "not judged", "result", left=1, rows=rows)
    versions.columns[-1].justify = "left"
    console.whole_table(versions)
    for check in checks:
        _print_reasons(check, console)


def _print_reasons(check: VersionCheck, console: Screen) -> None:
    label = (check.label, "bold")
    if check.why:
        console.say(label, f": {check.why}")
    for reason, count in check.not_judged.items():
        console.say(label, f": {count:,} not judged: {reason}")
    for example in check.examples:
        name = completion_name(example.completion.step, example.completion.id)
        console.say(label, f"  {name}  recorded {score_text(example.recorded)}, now {score_text(example.now)}")
        print_beside("prompt", text_line(example.completion.prompt or ""), console)
        print_beside("completion", text_line(example.completion.completion or ""), console)
