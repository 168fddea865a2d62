"""``rewardkit rescore``: a reward on the stored completions of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from rewardkit.cli.arguments import AsJson, LoadTimeout, Split, Steps, Timeout, Workers, option
from rewardkit.cli.exits import finish
from rewardkit.cli.progress import told_progress
from rewardkit.cli.render import Cells, causes, duration, number, screen, table
from rewardkit.cli.rewards import one_of
from rewardkit.cli.run_argument import RunPlace
from rewardkit.cli.saved import Force, ResultPage, check_result_page, write_difference
from rewardkit.errors import ConfigError
from rewardkit.loading.registry import RewardSet
from rewardkit.record.places import run_path
from rewardkit.record.values import Version
from rewardkit.replay.difference import Difference
from rewardkit.replay.recorded_run import Run
from rewardkit.replay.rescore import Rescored, ask_again, rescore, unanswered_completions
from rewardkit.replay.run_difference import Subject, of_run
from rewardkit.replay.stored import Stored, choose, steps_of, version_of, with_their_groups
from rewardkit.score_batch import costs_told
from rewardkit.serving.choice import scorer_of
from rewardkit.serving.server_link import without_token
from sandbox import LOAD_TIMEOUT_S


def rescore_command(
    run: RunPlace,
    reward: Annotated[str | None, option("The reward that scores, as file.py:name or URL#name.", "REF")] = None,
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
    to: ResultPage = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Score the stored completions of RUN with a reward; nothing is generated.

    The scores are kept in the record as a pass, beside those that the training saw. A reward that the run does not know
    becomes a further version of its name. Doing it twice gives two passes, whose difference is the reward's own noise.
    `rewardkit diff RUN OLD NEW` shows what the new version changes. --html saves that as the page of `rewardkit ui`,
    with the completions that change most, beside the version that the training used last.

    With --only-failed, what a judge that was down could not answer is asked again, by the version that failed or by
    --reward. What an earlier pass has answered is left alone.

    Examples:

    [bold]rewardkit rescore runs/one --reward new.py:format --steps 10-20
    rewardkit rescore runs/one --reward new.py:format --html change.html
    rewardkit rescore runs/one --only-failed judge[/]
    """
    if reward is None and only_failed is None:
        raise ConfigError("nothing to score with: give --reward file.py:name, or --only-failed NAME")
    if name is not None and only_failed is not None:
        raise ConfigError(f"--name {name}: not with --only-failed {only_failed}, which is the name; leave it out")
    check_result_page(to, force=force)
    if to is not None and reward is None:
        raise ConfigError("--html and --only-failed without --reward: one version alone has no difference to show")
    name_only = reward and without_token(reward)
    options = {"reward": name_only, "only_failed": only_failed, "steps": steps, "split": split, "limit": limit}
    about = {key: value for key, value in options.items() if value is not None}
    more = {"about": about, "workers": workers, "load_timeout_s": load_timeout, "scorer_of": scorer_of}
    reward_set = None if reward is None else one_of(reward, timeout)
    with Run.open(run_path(run)) as opened, told_progress("scoring") as tick:
        stored = choose(opened, steps_of(steps), split)
        old = None if to is None or reward_set is None else _used_version(opened, reward_set, only_failed or name)
        passes = _passes(opened, stored, reward_set, only_failed, name, limit, {**more, "tick": tick})
        if to is not None and old is not None:
            for rescored in passes:
                write_difference(opened, _difference(opened, old, rescored, stored, more), to, force=force)
    result = {"passes": [_as_json(rescored) for rescored in passes]}
    finish(result, lambda: _print(passes, only_failed), as_json=as_json)


def _used_version(run: Run, reward_set: RewardSet, name: str | None) -> Version:
    """Return the version beside which a page shows the new one; ConfigError, before anything is scored, without."""
    ((own_name, reward),) = reward_set.rewards.items()
    used = [version for version in run.own_versions if version.reward == (name or own_name)]
    if not used:
        reason = f"the training has not used {name or own_name!r}, so there is nothing to compare with"
        raise ConfigError(f"--html: {reason}; --name names a reward of {', '.join(run.rewards)}")
    if used[-1].digits == reward.version:
        raise ConfigError(f"--html: this is {used[-1].label}, the version that the training used; nothing changes")
    return used[-1]


def _difference(run: Run, old: Version, rescored: Rescored, stored: Stored, more: Mapping[str, Any]) -> Difference:
    """Return what a pass changes in the groups of its completions."""
    new = version_of(run, rescored.label)
    compared = with_their_groups(stored, run.pass_columns(rescored.number).ids)
    lane = {name: more[name] for name in ("workers", "load_timeout_s", "scorer_of")}
    return of_run(run, Subject(old.label, version=old), Subject(new.label, version=new), compared, **lane)


def _passes(
    run: Run,
    stored: Stored,
    reward_set: RewardSet | None,
    only_failed: str | None,
    name: str | None,
    limit: int | None,
    more: Mapping[str, Any],
) -> list[Rescored]:
    """Score with a reward, or what was left unanswered with the version that failed; return the new passes."""
    if reward_set is None:
        assert only_failed is not None
        return ask_again(run, only_failed, stored, limit=limit, **more)
    ((own_name, reward),) = reward_set.rewards.items()
    target = only_failed or name or own_name
    wanted = stored
    if only_failed is not None:
        numbers = {version.digits: version.number for version in run.versions if version.reward == target}
        wanted = unanswered_completions(run, stored, target, numbers.get(reward.version, 0))
    ids = wanted.table.ids[:limit]
    return [rescore(run, target, reward_set, stored, wanted=ids, **more)] if len(ids) or only_failed is None else []


def _as_json(rescored: Rescored) -> dict[str, Any]:
    return {
        "pass": rescored.number,
        "version": rescored.label,
        "completions": rescored.completions,
        "scored": rescored.scored,
        "skipped": rescored.skipped,
        "failed": dict(rescored.failed),
        "mean": rescored.mean,
        "recorded_mean": rescored.before,
        "seconds_per_1000": rescored.cost.seconds,
        "per_1000": dict(rescored.cost.metrics),
        "left_out": dict(rescored.left_out),
    }


def _print(passes: Sequence[Rescored], only_failed: str | None) -> None:
    """Print the table of passes, what they cost, and what could not be scored."""
    console = screen()
    if not passes:
        console.say(f"{only_failed}: nothing is unanswered")
        return
    rows: list[Cells] = [
        [
            str(rescored.number),
            console.name(rescored.label, 20),
            f"{rescored.scored:,}",
            f"{rescored.skipped:,}",
            causes(rescored.failed),
            *(number(rescored.mean), number(rescored.before), duration(rescored.cost.seconds)),
        ]
        for rescored in passes
    ]
    head = ["pass", "version", "scored", "skipped", "failed", "mean", "recorded", "time per 1,000"]
    result = table(*head, left=2, rows=rows)
    result.columns[4].no_wrap = False  # the causes of failures are words
    console.whole_table(result)
    for rescored in passes:
        if rescored.cost.metrics:
            console.say(f"{rescored.label} asks for 1,000: {costs_told(rescored.cost.metrics)}")
        for reason, count in rescored.left_out.items():
            console.say((f"left out: {count:,}: {reason}", "dim"))
