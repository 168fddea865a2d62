"""``rewardkit audit``: attacks on a reward with its author's own rows, or with a run's completions."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, TypeVar

from rewardkit.audit.audits import audit_completions, audit_rows
from rewardkit.audit.engine import AuditSettings
from rewardkit.audit.exploits import ExploitAudit
from rewardkit.audit.recorded import pool_of, rewards_of, rows_of
from rewardkit.audit.result import Audit, AuditLimits, RewardAudit
from rewardkit.audit.rows import choose_rows, row_of
from rewardkit.audit.skips import AUDIT_NAMES, check_name
from rewardkit.cli import arguments
from rewardkit.cli.arguments import option, seconds_option, share_option
from rewardkit.cli.audit_report import print_each, print_exploits, print_reward_audit
from rewardkit.cli.exits import FAILED, audit_code, finish
from rewardkit.cli.progress import told_progress
from rewardkit.cli.rewards import Leaves, load_rewards, with_timeout
from rewardkit.cli.run_argument import run_option
from rewardkit.declare.compose import Composable
from rewardkit.errors import ConfigError, RecordError
from rewardkit.loading.registry import RewardSet
from rewardkit.record.audit_notes import MOST_IDS, AuditNote, NotedExploit, note_audits
from rewardkit.record.places import run_path
from rewardkit.replay.recorded_run import Run
from rewardkit.replay.versions import VersionFinder
from rewardkit.rows import read_rows
from rewardkit.rows.files import name_of
from rewardkit.runtime.plan import check_columns
from rewardkit.scorer import Scorer
from rewardkit.serving.choice import scorer_of
from sandbox import LOAD_TIMEOUT_S

_REWARDS = f"{arguments.REWARDS} With --run, those of the run unless given."
A = TypeVar("A", bound=Audit)
_log = logging.getLogger("rewardkit")
_ONCE_EACH = {"cache_entries": 0, "max_infrastructure_rate": 1.0}  # options of a runtime here; a server keeps its own


def audit_command(  # long because typer reads the options from the signature, and the help from the docstring
    rewards: Annotated[str | None, arguments.argument(_REWARDS, "REWARDS")] = None,
    data: arguments.Data = None,
    data_option: arguments.DataOption = None,
    run: Annotated[
        str | None, run_option("A recorded run in place of DATA: its best completions, changed, are tried.", "RUN")
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
    is shown with the rule that it breaks. Ctrl-C ends it and shows what is known.

    Completions are scored in isolated workers, as in training. The reward's source is searched for known mistakes.

    Rows need a prompt and the columns that the reward reads; DATA may also be a .json file with a list of them. Where
    the right answer alone is not a right completion, give one in a column 'reference'.

    The verdict is passed (exit code 0), NOT passed (1), or not judged (4): nothing speaks against the reward, and
    nothing of its kind could be tried, as of one that reads no answer.

    With --run RUN it takes the run's own best paid completions, changes each in many ways (another answer in its
    place, its frame alone, the answer of another row behind it, shuffled, repeated, without its reasoning), and shows
    which of these are still paid and should not be. REWARDS are then those of the run, unless you name others. What it
    finds of the run's rewards is noted in the record, and diagnose and the page of ui show it as a flag.

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
        skipped={check_name(name, AUDIT_NAMES, "--skip"): "with --skip" for name in skip or ()},
        reasoning=reasoning,
    )
    limits = {"false_accept": max_false_accept, "false_reject": max_false_reject, "failed": max_failed}
    lane = {"workers": workers, "load_timeout_s": load_timeout}
    sample: dict[str, Any] = {"count": rows, "seed": seed, "gold": gold}
    ending = {"fail_on_lint": fail_on_lint, "as_json": as_json}
    if run is None:
        if rewards is None:
            raise ConfigError("REWARDS is missing; name them before DATA, as in: rewardkit audit rewards.py rows.jsonl")
        path = arguments.data_path(data, data_option)
        _end(_audit_file(path, rewards, timeout, sample, settings, lane), print_reward_audit, limits, **ending)
        return
    if data is not None or data_option:
        raise ConfigError(f"--run {run!r} stands in place of DATA; give one of them")
    _end(_audit_run(run, rewards, timeout, sample, settings, lane), print_exploits, limits, **ending)


def _end(
    audits: Sequence[A],
    show: Callable[[A, AuditLimits], None],
    limits: AuditLimits,
    *,
    fail_on_lint: bool,
    as_json: bool,
) -> None:
    """Print the audits, and end with the exit code that the limits decide."""
    code = FAILED if fail_on_lint and any(audit.lint for audit in audits) else audit_code(audits, limits)
    result = {"rewards": [audit.as_json(limits) for audit in audits]}
    finish(result, lambda: print_each(audits, lambda audit: show(audit, limits)), as_json=as_json, code=code)


def _audit_file(
    path: Path,
    references: str,
    timeout_s: float | None,
    sample: Mapping[str, Any],
    settings: AuditSettings,
    lane: Mapping[str, Any],
) -> list[RewardAudit]:
    """Audit the named rewards on the rows of a file; return the audits."""
    reward_set = load_rewards(references, timeout_s)
    lines = read_rows(path)  # once: standard input cannot be read again
    audits: list[RewardAudit] = []
    leaves = [leaf for reward in reward_set.rewards.values() for leaf in reward.leaves]
    check_columns(leaves, row_of(0, lines[0].values, None).columns, name_of(path))
    for reward in reward_set.rewards.values():
        picked = choose_rows(lines, str(path), named=_columns(reward), **sample)
        with _scorer(reward_set, reward, lane) as scorer, told_progress(f"audit of {reward.name}") as tick:
            audits.append(audit_rows(reward, picked, settings, scorer, tick))
        if audits[-1].is_interrupted:
            break
    return audits


def _audit_run(
    run_name: str,
    references: str | None,
    timeout_s: float | None,
    sample: Mapping[str, Any],
    settings: AuditSettings,
    lane: Mapping[str, Any],
) -> list[ExploitAudit]:
    """Audit the named rewards, else those of the run, on the run's completions; return the audits."""
    audits = []
    with Run.open(run_path(run_name)) as run, VersionFinder() as finder:  # the finder keeps what it had to write out
        if references is not None:
            reward_set = load_rewards(references, timeout_s)
        else:
            reward_set = with_timeout(RewardSet(rewards_of(run, finder)), timeout_s)
        pools = {name: pool_of(run, reward.name) for name, reward in reward_set.rewards.items()}
        digits = {version.reward: version.digits for version in run.own_versions}
        for name, reward in reward_set.rewards.items():
            rows = rows_of(pools[name], named=_columns(reward), where=str(run.path), **sample)
            with _scorer(reward_set, reward, lane) as scorer, told_progress(f"audit of {reward.name}") as tick:
                audit = audit_completions(reward, rows, settings, scorer, tick)
            audit.lint = [replace(mistake, file=finder.written_from(mistake.file)) for mistake in audit.lint]
            if reward.name not in digits:
                audit.differ = []
            elif timeout_s is None:
                audit.changed = digits[reward.name] != reward.version
            audits.append(audit)
            if audit.is_interrupted:
                break
        _note(run, audits)
    return audits


def _note(run: Run, audits: Sequence[ExploitAudit]) -> None:
    """Write into the record what was found of the run's rewards, which the health checks then show."""
    newest = {version.reward: version.number for version in run.own_versions}
    notes = [
        AuditNote(
            reward=audit.reward,
            version=newest[audit.reward],
            rows=audit.rows,
            exploits=tuple(
                NotedExploit(
                    name=str(mutation),
                    paid=len(counts.accepted),
                    judged=counts.judged,
                    completions=tuple(dict.fromkeys(example.line for example in counts.accepted))[:MOST_IDS],
                )
                for mutation, counts in audit.mutations.items()
                if counts.accepted
            ),
        )
        for audit in audits
        if audit.reward in newest and not audit.changed and not audit.is_interrupted
    ]
    try:
        note_audits(run.path, notes)
    except RecordError as error:
        _log.warning("the audit is not noted in the record, so that the health checks do not show it: %s", error)


def _columns(reward: Composable) -> list[str]:
    return [name for leaf in reward.leaves for name in leaf.spec.named_columns]


def _scorer(reward_set: RewardSet, reward: Composable, lane: Mapping[str, Any]) -> Scorer:
    """Return what scores a reward's plain parts."""
    return scorer_of(Leaves(reward_set, reward), defaults=_ONCE_EACH, **lane)
