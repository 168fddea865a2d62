"""``rewardkit diff``: what a changed reward would do to the advantages."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from rewardkit.cli.arguments import AsJson, LoadTimeout, Split, Steps, Timeout, Workers, argument, option
from rewardkit.cli.diff_report import print_difference
from rewardkit.cli.exits import finish
from rewardkit.cli.rewards import one_of
from rewardkit.cli.screen import screen, told_progress
from rewardkit.errors import ConfigError
from rewardkit.record.places import run_path
from rewardkit.replay.difference import SHOWN, Difference, of_data
from rewardkit.replay.recorded_run import Run
from rewardkit.replay.run_difference import given, of_run
from rewardkit.replay.stored import choose, steps_of
from rewardkit.rows.reader import read_rollouts
from rewardkit.serving.choice import scorer_of
from sandbox import LOAD_TIMEOUT_S


def diff_command(
    places: Annotated[
        list[str],
        argument("The run, and two versions such as format@1 and new.py:format; with --data no run.", "[RUN] OLD NEW"),
    ],
    data: Annotated[Path | None, option("Compare on the rollouts in this file instead of a run's.", "FILE")] = None,
    steps: Steps = None,
    split: Split = "train",
    weight: Annotated[
        float | None, option("The reward's weight in the total; by default that in the run, else 1.", "W")
    ] = None,
    examples: Annotated[int, option("Show so many of the completions that change most.", "N", min=0)] = SHOWN,
    limit: Annotated[int | None, option("Compare on the first N completions.", "N", min=1)] = None,
    workers: Workers = None,
    timeout: Timeout = None,
    load_timeout: LoadTimeout = LOAD_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Show what changes where reward NEW takes the place of OLD on the same completions.

    It tells the means, how alike both rank the completions of a group, how many advantages change sign, how many groups
    gain or lose all signal, what 1,000 completions take, and the completions that change most with both reasons.

    A version is one in the run, such as format@2, or a reference, such as new.py:format, which is scored now and not
    stored. The other rewards of the run make up the total with it. The exit code is 0 whatever it finds.

    Examples:

    [bold]rewardkit diff runs/one format@1 new.py:format --steps 10-20
    rewardkit diff old.py:format new.py:format --data rollouts.jsonl[/]
    """
    lane = {"workers": workers, "load_timeout_s": load_timeout, "scorer_of": scorer_of}
    if data is not None:
        found = _of_data(_two(places), data, limit, timeout, {**lane, "shown": examples})
    else:
        found = _of_run(places, steps, split, timeout, {**lane, "shown": examples, "weight": weight, "limit": limit})
    finish(found.as_json(), lambda: print_difference(found, screen()), as_json=as_json)


def _two(places: Sequence[str]) -> tuple[str, str]:
    if len(places) != 2:
        word = "version" if len(places) == 1 else "versions"
        raise ConfigError(f"{len(places)} {word} with --data: expected OLD and NEW, as file.py:name")
    return places[0], places[1]


def _of_data(
    places: tuple[str, str], data: Path, limit: int | None, timeout_s: float | None, more: Mapping[str, Any]
) -> Difference:
    old, new = (one_of(reference, timeout_s) for reference in places)
    rollouts = read_rollouts(data, limit=limit)
    with told_progress("scoring") as tick:
        found = of_data(old, new, rollouts, tick=tick, **more)
    return dataclasses.replace(found, old=places[0], new=places[1])


def _of_run(
    places: Sequence[str], steps: str | None, split: str, timeout_s: float | None, more: Mapping[str, Any]
) -> Difference:
    if len(places) != 3:
        raise ConfigError(
            f"{' '.join(places)}: expected RUN OLD NEW, such as runs/one format@1 new.py:format; or --data FILE with "
            "OLD and NEW"
        )
    with Run.open(run_path(places[0])) as run:
        old, new = (given(run, words, lambda words: one_of(words, timeout_s)) for words in places[1:])
        stored = choose(run, steps_of(steps), split)
        with told_progress("scoring") as tick:
            return of_run(run, old, new, stored, tick=tick, **more)
