"""``rewardkit diagnose``: why a reward is flat, gamed, broken or noisy, in a recorded run or on rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from rich.table import Table
from rich.text import Text

from rewardkit.cli.arguments import AsJson, LoadTimeout, OnFlag, Steps, Timeout, Workers, argument, option
from rewardkit.cli.exits import finish
from rewardkit.cli.progress import collect
from rewardkit.cli.render import NONE, Cells, Screen, fold, screen, table
from rewardkit.cli.rewards import load_rewards
from rewardkit.cli.run_argument import check_run
from rewardkit.errors import ConfigError
from rewardkit.health.alerts import Alert, Told, alert_of, tell
from rewardkit.health.examine import MOST_COMPLETIONS, Diagnosis, diagnose_rows, diagnose_run
from rewardkit.health.flag import Flag
from rewardkit.health.noise import Noise
from rewardkit.health.score_ranges import declared_ranges
from rewardkit.health.scored_rows import are_scored, batch_of
from rewardkit.health.watch import WINDOW_STEPS
from rewardkit.record.places import run_path
from rewardkit.record.reader import RunReader
from rewardkit.replay.stored import steps_of
from rewardkit.rows.files import name_of, unit_of
from rewardkit.rows.reader import numbered_rollouts
from rewardkit.rows.tables import is_saved
from rewardkit.score_batch import ScoreBatch
from rewardkit.serving.choice import scorer_of
from rewardkit.shown.text import counted, plain, shortened
from sandbox import LOAD_TIMEOUT_S

_NAME_CHARS = 20
_QUOTE_CHARS = 200
_ROWS = (".jsonl", ".json", ".csv", ".tsv", ".parquet", ".arrow", ".gz")


def diagnose_command(
    target: Annotated[
        str, argument("A run: its folder, such as runs/one, or its name under runs/; or rollouts.", "RUN|DATA")
    ],
    rewards: Annotated[str | None, option("The rewards that score DATA, as in other commands.", "REWARDS")] = None,
    steps: Steps = None,
    every: Annotated[int, option("The steps of a run that are looked at together.", "N", min=1)] = WINDOW_STEPS,
    whole: Annotated[bool, option("Look at all of a long run; by default at its newest steps.", None, "--all")] = False,
    on_flag: OnFlag = None,
    workers: Workers = None,
    timeout: Timeout = None,
    load_timeout: LoadTimeout = LOAD_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Say why a reward is flat, gamed, broken or noisy, with the completions that show it and what to do next.

    RUN is a recorded run. Each window of its steps is held against fixed thresholds and against the run's own first
    steps, anew at each version of a reward. DATA is a file of rollouts, several of each prompt, which REWARDS score in
    isolated workers, or rows that rewardkit score --out wrote; what needs no steps is looked at, before a GPU is spent.

    Of a run of more than some 100,000 completions the newest are looked at, and compared with its first steps, as on
    the page of rewardkit ui; --all looks at all of them, and --steps at those that you name.

    A flag is a reason to read the completions that it names, and no proof. What cannot be seen is listed with the
    reason. The exit code is 0 whatever is found.

    Examples:

    [bold]rewardkit diagnose runs/one
    rewardkit diagnose runs/one --steps 100-200 --json
    rewardkit diagnose runs/one --on-flag '$SLACK_HOOK'
    rewardkit diagnose rollouts.jsonl --rewards my_rewards.py[/]
    """
    path, alert, alerts, unit = Path(target), alert_of(on_flag), None, "completion"
    if path.suffix in _ROWS or target == "-" or is_saved(path):
        if alert is not None:
            raise ConfigError("--on-flag: goes with a recorded run, whose record says which flags were told before")
        unit = unit_of(path)
        diagnosis = _diagnose_file(path, rewards, steps, timeout, {"workers": workers, "load_timeout_s": load_timeout})
    elif rewards is not None:
        reason = "a run's completions are scored; --rewards goes with a file of rollouts"
        raise ConfigError(f"--rewards {rewards}: {reason}")
    else:
        check_run(target, "rewardkit diagnose", f"; or score rows: `rewardkit diagnose DATA --rewards {target}`")
        with RunReader(run_path(target)) as run:
            diagnosis = diagnose_run(
                run, steps=_span(steps, run), every=every, most=None if whole else MOST_COMPLETIONS
            )
            alerts = None if alert is None else tell(alert, run, diagnosis.flags)

    def show() -> None:
        print_diagnosis(diagnosis, target, screen(), f"{unit}s")
        if alert is not None and alerts is not None:
            _print_alerts(alert, alerts, screen())

    row = diagnosis.as_row() | ({} if alerts is None else {"alerts": alerts._asdict()})
    finish(row, show, as_json=as_json)


def _print_alerts(alert: Alert, alerts: Told, console: Screen) -> None:
    console.say(f"told {alert.label} of {counted(alerts.sent, 'flag')}; {alerts.before} were told before")
    if alerts.reason is not None:
        console.say((f"{alert.label}: {alerts.reason}", "yellow"))


def _diagnose_file(
    path: Path, rewards: str | None, steps: str | None, timeout_s: float | None, lane: Mapping[str, Any]
) -> Diagnosis:
    """Return the diagnosis of rollouts, by the scores in the file or by those of rewards that score them now."""
    if steps is not None:
        raise ConfigError(f"--steps {steps}: rows have no steps; --steps goes with a recorded run")
    reward_set = None if rewards is None else load_rewards(rewards, timeout_s)
    numbered = numbered_rollouts(path)
    lines, rollouts = [line for line, _ in numbered], [rollout for _, rollout in numbered]
    if reward_set is None:
        if not are_scored(rollouts):
            raise ConfigError(f"{path}: who scores these rows? Name the rewards: --rewards my_rewards.py")
        labels = [f"{name_of(path)}:{line}" for line in lines]
        return _with_lines(diagnose_rows(batch_of(rollouts, labels)), lines)
    with scorer_of(reward_set, max_infrastructure_rate=1.0, **lane) as scorer:
        outcomes = collect("scoring", scorer.stream(rollouts), scorer.rewards, len(rollouts))
        batch = ScoreBatch(rollouts, outcomes, scorer.weights)
        return _with_lines(diagnose_rows(batch, **declared_ranges(reward_set.rewards)._asdict()), lines)


def _with_lines(diagnosis: Diagnosis, lines: Sequence[int]) -> Diagnosis:
    """Return a diagnosis of rows whose flags name these by their numbers in the file."""
    flags = [replace(flag, rows=tuple(lines[row] for row in flag.rows)) for flag in diagnosis.flags]
    return replace(diagnosis, flags=flags)


def _span(text: str | None, run: RunReader) -> tuple[int, int] | None:
    """Return the first and last step of ``--steps``, ``None`` for all; raise ConfigError where the run lacks them."""
    span, steps = steps_of(text), run.steps()
    if span is not None and not any(span[0] <= step <= span[1] for step in steps):
        has = f"it has {steps[0]} to {steps[-1]}" if steps else "it has none"
        raise ConfigError(f"--steps {text}: {run.path} lacks these steps; {has}")
    return span


def print_diagnosis(diagnosis: Diagnosis, target: str, console: Screen, rows: str = "completions") -> None:
    """Print a diagnosis: its extent, the flags or what was looked at in vain, the noise, and what cannot be seen.

    ``rows`` is what the numbers of a flag count.
    """
    console.say((plain(target), "bold"), f"  {_looked_at(diagnosis)}")
    for name, counts in diagnosis.coverage.calls.items():
        console.say(f"calls of {plain(name)}: {counts}", fit="wrap")
    console.say(diagnosis.gradient, fit="wrap")
    for line in diagnosis.fallback_lines:
        console.say((plain(line), "yellow"), fit="wrap")
    if diagnosis.flags:
        console.print()
        console.print(_flags(diagnosis.flags))
        for flag in diagnosis.flags:
            _print_flag(flag, console, rows=rows)
        if diagnosis.coverage.flat_groups:
            console.say("no flag, but ", plain(diagnosis.coverage.flat_groups), fit="wrap")
    else:
        style = "yellow" if diagnosis.coverage.news else "green"
        console.say((plain(diagnosis.summary), style), fit="wrap")
    if diagnosis.noise:
        console.print()
        console.print(_noise(diagnosis.noise))
    if diagnosis.blind_spots:
        console.print()
        console.say(("cannot be seen", "dim"))
    for line in diagnosis.blind_spots:
        console.indented(plain(line), "dim")


def _looked_at(diagnosis: Diagnosis) -> str:
    return f"{diagnosis.coverage.extent}; rewards: {plain(', '.join(diagnosis.rewards)) or 'none'}"


def _flags(flags: Sequence[Flag]) -> Table:
    """Return the table of flags; steps and baselines only where a flag has steps."""
    has_steps = any(flag.first_step is not None for flag in flags)
    head = ["flag", "reward", "steps", "value", "threshold", "at first"]
    if not has_steps:
        head = ["flag", "reward", "value", "threshold"]
    rows: list[Cells] = [
        [
            Text(fold(flag.detector, _NAME_CHARS), style="bold"),
            fold(flag.reward, _NAME_CHARS) if flag.reward else NONE,
            *([flag.steps] if has_steps else []),
            f"{flag.value:.3g}",
            f"{flag.threshold:.3g}",
            *([NONE if flag.baseline is None else f"{flag.baseline:.3g}"] if has_steps else []),
        ]
        for flag in flags
    ]
    return table(*head, left=2, rows=rows)


def _print_flag(flag: Flag, console: Screen, rows: str) -> None:
    steps = f"steps {flag.steps}" if flag.steps else ""
    console.heading(plain(", ".join(filter(None, (flag.detector, flag.reward, steps)))))
    console.indented(f"{plain(flag.words)}{f': {_quoted(flag.quote)}' if flag.quote else ''}")
    if flag.rows:
        console.indented(f"{rows}: {', '.join(map(str, flag.rows))}")
    console.indented(f"next: {plain(flag.action)}")


def _quoted(text: str) -> str:
    return f'"{shortened(text, _QUOTE_CHARS)}"'


def _noise(noise: Mapping[str, Noise]) -> Table:
    """Return the table of rewards that were scored twice; a share that is not known is a dash."""
    rows: list[Cells] = [
        [
            Text(fold(name, _NAME_CHARS), style="bold"),
            *(NONE if math.isnan(share) else f"{share:.0%}" for share in (own.share, own.right)),
            *(NONE if count is None else f"{count:,}" for count in (own.generations, own.scorings)),
        ]
        for name, own in noise.items()
    ]
    return table("reward scored twice", "noise", "signs right", "generations", "scorings", left=1, rows=rows)
