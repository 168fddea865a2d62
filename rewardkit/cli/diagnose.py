"""``rewardkit diagnose``: why a reward is flat, gamed, broken or noisy, in a recorded run or on rows."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from rewardkit.cli.arguments import AsJson, LoadTimeout, Steps, Timeout, Workers, argument, option
from rewardkit.cli.diagnose_report import print_diagnosis
from rewardkit.cli.exits import finish
from rewardkit.cli.rewards import chosen
from rewardkit.cli.screen import collected, screen
from rewardkit.errors import ConfigError
from rewardkit.health.examine import Diagnosis, diagnose_rows, diagnose_run
from rewardkit.health.scored_rows import are_scored, batch_of
from rewardkit.health.watch import WINDOW_STEPS
from rewardkit.record.places import run_path
from rewardkit.record.reader import RunReader
from rewardkit.replay.stored import steps_of
from rewardkit.rows.reader import read_rollouts
from rewardkit.score_batch import ScoreBatch
from rewardkit.serving.choice import scorer_of
from sandbox import LOAD_TIMEOUT_S

_ROWS = (".jsonl", ".json", ".csv", ".tsv", ".parquet", ".gz")


def diagnose_command(
    place: Annotated[
        str,
        argument("A run: its folder, such as runs/one, or its name under runs/; or rollouts.", "RUN|DATA"),
    ],
    rewards: Annotated[
        str | None,
        option("The rewards that score DATA, as in other commands.", "REWARDS"),
    ] = None,
    steps: Steps = None,
    every: Annotated[int, option("The steps of a run that are looked at together.", "N", min=1)] = WINDOW_STEPS,
    workers: Workers = None,
    timeout: Timeout = None,
    load_timeout: LoadTimeout = LOAD_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Say why a reward is flat, gamed, broken or noisy, with the completions that show it and what to do next.

    RUN is a recorded run. Each window of its steps is held against fixed thresholds and against the run's own first
    steps, anew at each version of a reward. DATA is a file of rollouts, several of each prompt, which REWARDS score in
    isolated workers, or rows that rewardkit score --out wrote; what needs no steps is looked at, before a GPU is spent.

    A flag is a reason to read the completions that it names, and no proof. What could not be looked at is listed with
    the reason. The exit code is 0 whatever is found.

    Examples:

    [bold]rewardkit diagnose runs/one
    rewardkit diagnose runs/one --steps 100-200 --json
    rewardkit diagnose rollouts.jsonl --rewards my_rewards.py[/]
    """
    path = Path(place)
    if path.suffix in _ROWS or place == "-":
        found = _of_rows(path, rewards, steps, workers=workers, timeout_s=timeout, load_timeout_s=load_timeout)
    elif rewards is not None:
        raise ConfigError(
            f"--rewards {rewards}: a run's completions are scored; --rewards goes with a file of rollouts"
        )
    else:
        with RunReader(run_path(place)) as run:
            found = _naming(place, diagnose_run(run, steps=_between(steps, run), every=every))
    finish(found.as_row(), lambda: print_diagnosis(found, place, screen()), as_json=as_json)


def _naming(run: str, found: Diagnosis) -> Diagnosis:
    """Return a diagnosis whose next actions name the run, so that their commands can be copied."""
    named = f" {shlex.quote(run)} "
    return replace(found, flags=[replace(flag, action=flag.action.replace(" RUN ", named)) for flag in found.flags])


def _of_rows(
    path: Path,
    rewards: str | None,
    steps: str | None,
    *,
    workers: int | None,
    timeout_s: float | None,
    load_timeout_s: float,
) -> Diagnosis:
    if steps is not None:
        raise ConfigError(f"--steps {steps}: rows have no steps; --steps goes with a recorded run")
    given = None if rewards is None else chosen(rewards, timeout_s)
    rollouts = read_rollouts(path)
    if given is None:
        if not are_scored(rollouts):
            raise ConfigError(f"{path}: who scores these rows? Name the rewards: --rewards my_rewards.py")
        return diagnose_rows(batch_of(rollouts, str(path)))
    with scorer_of(given, workers=workers, load_timeout_s=load_timeout_s, max_infrastructure_rate=1.0) as scorer:
        outcomes = collected("scoring", scorer.stream(rollouts), scorer.rewards, len(rollouts))
        return diagnose_rows(ScoreBatch(rollouts, outcomes, scorer.weights))


def _between(words: str | None, run: RunReader) -> tuple[int, int] | None:
    """Return the first and last step that are asked for; ``None`` for all.

    Raises:
        ConfigError: The words name no steps, or the run has none of these steps.
    """
    asked, there = steps_of(words), run.steps()
    if asked is not None and not any(asked[0] <= one <= asked[1] for one in there):
        has = f"it has {there[0]} to {there[-1]}" if there else "it has none"
        raise ConfigError(f"--steps {words}: {run.path} lacks these steps; {has}")
    return asked
