"""``rewardkit audit``: attacks on a reward with its author's own rows."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from rewardkit.audit import rows as rows_of_audits
from rewardkit.audit.assessment import Assessment
from rewardkit.audit.exploits import ExploitAssessment, ExploitAudit, PaidCompletion, rows_of, try_mutants
from rewardkit.audit.lint import has_source, left_out, lint, skippable
from rewardkit.audit.recorded import pool_of, rewards_of
from rewardkit.audit.result import Limited, RewardAudit, passed
from rewardkit.audit.result import as_json as rows_as_json
from rewardkit.audit.run import AuditSettings
from rewardkit.audit.run import run as try_attacks
from rewardkit.cli import arguments
from rewardkit.cli.arguments import option, seconds_option, share_option
from rewardkit.cli.audit_report import print_audits
from rewardkit.cli.exits import FAILED, finish
from rewardkit.cli.exploits_report import print_exploits
from rewardkit.cli.rewards import Leaves, chosen, with_timeout
from rewardkit.cli.screen import told_progress
from rewardkit.declare.compose import Composable
from rewardkit.errors import ConfigError
from rewardkit.loading.registry import RewardSet
from rewardkit.record.places import run_path
from rewardkit.replay.recorded_run import Run
from rewardkit.replay.versions import VersionFinder
from rewardkit.rows import read_rows
from rewardkit.serving.choice import scorer_of
from sandbox import LOAD_TIMEOUT_S

_REWARDS = f"{arguments.REWARDS} With --run, those of the run unless given."
_ONCE_EACH = {"cache_entries": 0, "max_infrastructure_rate": 1.0}
"""Options of a runtime here; a server keeps its own."""


def audit_command(
    rewards: Annotated[str | None, arguments.argument(_REWARDS, "REWARDS")] = None,
    data: arguments.Data = None,
    data_option: arguments.DataOption = None,
    run: Annotated[
        str | None, option("A recorded run in place of DATA: its best completions, changed, are tried.", "RUN")
    ] = None,
    rows: arguments.RowCount = 20,
    seed: arguments.Seed = 0,
    gold: arguments.Gold = None,
    accept_share: Annotated[float, share_option("A completion is paid above this share of the way to full.")] = 0.5,
    slow_share: Annotated[float, share_option("A call is slow above this share of the reward's timeout.")] = 0.5,
    max_false_accept: Annotated[int, option("Exit with 1 if more completions are wrongly paid.", "N", min=0)] = 0,
    max_false_reject: Annotated[float, share_option("Exit with 1 if more honest forms are refused.")] = 1.0,
    max_failed: Annotated[int, option("Exit with 1 if more calls are slow or crash.", "N", min=0)] = 0,
    skip: Annotated[
        list[str] | None, option("Leave out a family or a rule of thumb, by its name; may be repeated.", "NAME")
    ] = None,
    fail_on_lint: Annotated[
        bool, option("Exit with 1 if the source has a known mistake.", None, "--fail-on-lint")
    ] = False,
    reasoning: Annotated[
        bool, option("With --run: what is paid without its reasoning counts as wrongly paid.", None, "--reasoning")
    ] = False,
    workers: arguments.Workers = None,
    timeout: arguments.Timeout = None,
    load_timeout: arguments.LoadTimeout = LOAD_TIMEOUT_S,
    time_limit: Annotated[
        float, seconds_option("Stop after so many seconds for each reward; the audit then does not pass.")
    ] = 1800,
    as_json: arguments.AsJson = False,
) -> None:
    """Attack REWARDS with the rows of DATA, and show what they wrongly pay for and wrongly refuse.

    For each row it writes the right answer in many honest forms, and learns which of them the reward pays. In these
    it tries some 300 wrong completions: silence, the prompt, several answers at once, answers denied or taken back,
    numbers and objects nearly right, sums not worked out, other rows' answers, texts that hang or crash. What is paid
    is shown with the rule that it breaks.

    Completions are scored in isolated workers, as in training. The reward's source is searched for known mistakes.

    Rows need a prompt and the columns that the reward reads; DATA may also be a .json file with a list of them. Where
    the right answer alone is not a right completion, give one in a column 'reference'.

    With --run RUN it takes the run's own best paid completions, changes each in some ten ways (another answer in its
    place, its frame alone, the answer of another row behind it, shuffled, repeated, without its reasoning), and shows
    which of these are still paid and should not be. REWARDS are then those of the run, unless you name others.

    Examples:

    [bold]rewardkit audit my_rewards.py:correct rows.jsonl
    rewardkit audit my_rewards.py rows.jsonl --rows 50 --gold target --json
    rewardkit audit --run runs/one
    rewardkit audit my_rewards.py:correct --run runs/one[/]
    """
    settings = AuditSettings(
        accept_share=accept_share,
        slow_share=slow_share,
        time_limit_s=time_limit,
        skipped={skippable(name, "--skip"): "with --skip" for name in skip or ()},
        reasoning=reasoning,
    )
    limits = {"false_accept": max_false_accept, "false_reject": max_false_reject, "failed": max_failed}
    lane = {"workers": workers, "load_timeout_s": load_timeout}
    if run is not None:
        if data is not None or data_option:
            raise ConfigError(f"--run {run!r} stands in place of DATA; give one of them")
        with Run.open(run_path(run)) as opened, VersionFinder() as finder:
            found = chosen(rewards, timeout) if rewards is not None else _of_run(opened, finder, timeout)
            sample = {"count": rows, "seed": seed, "gold": gold}
            pools = {name: pool_of(opened, one.name) for name, one in found.rewards.items()}
            where = str(opened.path)
            digits = {one.reward: one.digits for one in opened.own_versions}
            tried = []
            for name, one in found.rewards.items():
                audit = _exploited(found, one, pools[name], where, sample, settings, lane, finder)
                known = one.name in digits
                changed = known and timeout is None and digits[one.name] != one.version
                tried.append(replace(audit, differ=audit.differ if known else [], changed=changed))
        _finish(tried, limits, lambda: print_exploits(tried, limits), as_json=as_json, lint=fail_on_lint)
        return
    if rewards is None:
        raise ConfigError("REWARDS is missing; name them before DATA, as in: rewardkit audit rewards.py rows.jsonl")
    path = arguments.data_path(data, data_option)
    found = chosen(rewards, timeout)
    lines = read_rows(path)  # once: standard input cannot be read again
    choose = functools.partial(rows_of_audits.chosen, lines, str(path), count=rows, seed=seed, gold=gold)
    audits = [_audited(found, reward, choose, settings, lane) for reward in found.rewards.values()]
    _finish(audits, limits, lambda: print_audits(audits, limits), as_json=as_json, lint=fail_on_lint)


def _of_run(run: Run, finder: VersionFinder, timeout_s: float | None) -> RewardSet:
    """Return the rewards of a run; the finder keeps what it had to write out."""
    return with_timeout(RewardSet(rewards_of(run, finder)), timeout_s)


def _finish(
    audits: Sequence[RewardAudit | ExploitAudit],
    limits: Limited,
    show: Callable[[], None],
    *,
    as_json: bool,
    lint: bool,
) -> None:
    """End with what the limits decide; ``lint``: whether a known mistake counts."""
    sound = all(passed(one, limits) for one in audits) and not (lint and any(one.lint for one in audits))
    ready = [one.as_json(limits) if isinstance(one, ExploitAudit) else rows_as_json(one, limits) for one in audits]
    finish({"rewards": ready}, show, as_json=as_json, code=0 if sound else FAILED)


def _exploited(
    found: RewardSet,
    reward: Composable,
    pool: Sequence[PaidCompletion],
    where: str,
    sample: Mapping[str, Any],
    settings: AuditSettings,
    lane: Mapping[str, Any],
    finder: VersionFinder,
) -> ExploitAudit:
    leaves = reward.leaves
    named = [p.name for leaf in leaves for p in leaf.spec.parameters if p.column]
    rows = rows_of(pool, named=named, where=where, **sample)
    own = left_out(leaves[0]) if len(leaves) == 1 else {}
    settings = replace(settings, skipped={**own, **settings.skipped})
    tokens = {one.id: one.tokens for one in pool if one.tokens is not None}
    scorer = scorer_of(Leaves(found, reward), defaults=_ONCE_EACH, **lane)
    with scorer, told_progress(f"audit of {reward.name}") as tick:
        trials = try_mutants(reward, rows, settings, scorer, tick, seed=sample["seed"], tokens=tokens)
    mistakes = [replace(one, file=finder.written_from(one.file)) for leaf in leaves for one in lint(leaf)]
    unread = [leaf.name for leaf in leaves if not has_source(leaf)]
    recorded = {one.id: one.score for one in pool}
    return ExploitAssessment(reward, rows, trials, settings, recorded).exploits(mistakes, unread)


def _audited(
    found: RewardSet,
    reward: Composable,
    choose: Callable[..., rows_of_audits.ChosenRows],
    settings: AuditSettings,
    lane: Mapping[str, Any],
) -> RewardAudit:
    leaves = reward.leaves
    named = [p.name for leaf in leaves for p in leaf.spec.parameters if p.column]
    rows = choose(named=named)
    own = left_out(leaves[0]) if len(leaves) == 1 else {}
    settings = replace(settings, skipped={**own, **settings.skipped})
    scorer = scorer_of(Leaves(found, reward), defaults=_ONCE_EACH, **lane)
    with scorer, told_progress(f"audit of {reward.name}") as tick:
        trials = try_attacks(reward, rows, settings, scorer, tick)
    mistakes = [one for leaf in leaves for one in lint(leaf)]
    unread = [leaf.name for leaf in leaves if not has_source(leaf)]
    return Assessment(reward, rows, trials, settings).audit(mistakes, unread)
