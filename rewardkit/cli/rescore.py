"""``rewardkit rescore``: a reward on the stored completions of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from rich.text import Text as Shown

from rewardkit.cli.arguments import AsJson, LoadTimeout, RunPlace, Split, Steps, Timeout, Workers, option
from rewardkit.cli.exits import finish
from rewardkit.cli.report import duration, number
from rewardkit.cli.rewards import one_of
from rewardkit.cli.screen import print_table, screen, table, told_progress
from rewardkit.cli.text import folded
from rewardkit.errors import ConfigError
from rewardkit.loading.registry import RewardSet
from rewardkit.record.places import run_path
from rewardkit.replay.recorded_run import Run
from rewardkit.replay.rescore import Rescored, ask_again, rescore, unanswered
from rewardkit.replay.stored import Stored, choose, steps_of
from rewardkit.score_batch import costs_told
from rewardkit.serving.choice import scorer_of
from rewardkit.serving.server_link import without_token
from rewardkit.shown.text import plain
from sandbox import LOAD_TIMEOUT_S


def rescore_command(
    run: RunPlace,
    reward: Annotated[
        str | None, option("The reward that scores, as file.py:name or http://host:8000#name.", "REF")
    ] = None,
    only_failed: Annotated[
        str | None, option("Score only what this reward failed on for infrastructure, such as a judge.", "NAME")
    ] = None,
    name: Annotated[
        str | None, option("The run's reward that this is a new version of; by default the one of its name.", "NAME")
    ] = None,
    steps: Steps = None,
    split: Split = "train",
    limit: Annotated[int | None, option("Score only the first N of these completions.", "N", min=1)] = None,
    workers: Workers = None,
    timeout: Timeout = None,
    load_timeout: LoadTimeout = LOAD_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Score the stored completions of RUN with a reward; nothing is generated.

    The scores are kept in the record as a pass, beside those that the training saw. A reward that the run does not know
    becomes a further version of its name. Doing it twice gives two passes, whose difference is the reward's own noise.

    With --only-failed, what a judge that was down could not answer is asked again, by the version that failed or by
    --reward. What an earlier pass has answered is left alone.

    Examples:

    [bold]rewardkit rescore runs/one --reward new.py:format --steps 10-20
    rewardkit rescore runs/one --only-failed judge[/]
    """
    if reward is None and only_failed is None:
        raise ConfigError("nothing to score with: give --reward file.py:name, or --only-failed NAME")
    if name is not None and only_failed is not None:
        raise ConfigError(f"--name {name}: not with --only-failed {only_failed}, which is the name; leave it out")
    asked = {
        "reward": reward and without_token(reward),
        "only_failed": only_failed,
        "steps": steps,
        "split": split,
        "limit": limit,
    }
    about = {key: value for key, value in asked.items() if value is not None}
    more = {"about": about, "workers": workers, "load_timeout_s": load_timeout, "scorer_of": scorer_of}
    found = None if reward is None else one_of(reward, timeout)
    with Run.open(run_path(run)) as opened, told_progress("scoring") as tick:
        stored = choose(opened, steps_of(steps), split)
        passes = _passes(opened, stored, found, only_failed, name, limit, {**more, "tick": tick})
    told = {"passes": [_as_json(one) for one in passes]}
    finish(told, lambda: _print(passes, only_failed), as_json=as_json)


def _passes(
    run: Run,
    stored: Stored,
    found: RewardSet | None,
    only_failed: str | None,
    name: str | None,
    limit: int | None,
    more: Mapping[str, Any],
) -> list[Rescored]:
    if found is None:
        assert only_failed is not None
        return ask_again(run, only_failed, stored, limit=limit, **more)
    ((own, reward),) = found.rewards.items()
    named = only_failed or name or own
    wanted = stored
    if only_failed is not None:
        known = {one.digits: one.number for one in run.versions if one.reward == named}
        wanted = unanswered(run, stored, named, known.get(reward.version, 0))
    ids = wanted.table.ids[:limit]
    return [rescore(run, named, found, stored, wanted=ids, **more)] if len(ids) or only_failed is None else []


def _as_json(one: Rescored) -> dict[str, Any]:
    return {
        "pass": one.number,
        "version": one.label,
        "completions": one.completions,
        "scored": one.scored,
        "skipped": one.skipped,
        "failed": dict(one.failed),
        "mean": one.mean,
        "recorded_mean": one.before,
        "seconds_per_1000": one.cost.seconds,
        "per_1000": dict(one.cost.metrics),
        "left_out": dict(one.left_out),
    }


def _print(passes: Sequence[Rescored], only_failed: str | None) -> None:
    console = screen()
    if not passes:
        console.print(f"{only_failed}: nothing is unanswered", soft_wrap=True)
        return
    shown = table("pass", "version", "scored", "skipped", "failed", "mean", "recorded", "time per 1,000")
    for column in shown.columns[2:]:
        column.justify = "right"
    for one in passes:
        failed = "\n".join(f"{cause} {count:,}" for cause, count in one.failed.items()) or "-"
        took = duration(one.cost.seconds)
        label = Shown(folded(one.label, 20) if console.is_terminal else plain(one.label), style="bold")
        numbers = (number(one.mean), number(one.before), took)
        shown.add_row(str(one.number), label, f"{one.scored:,}", f"{one.skipped:,}", failed, *numbers)
    print_table(shown, console)
    for one in passes:
        if one.cost.metrics:
            console.print(Shown(f"{one.label} asks for 1,000: {costs_told(one.cost.metrics)}"), soft_wrap=True)
        for why, count in one.left_out.items():
            console.print(Shown(f"left out: {count:,}: {why}", style="dim"), soft_wrap=True)
