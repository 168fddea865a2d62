"""``rewardkit diff``: what a changed reward would do to the advantages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from rewardkit.cli.arguments import AsJson, LoadTimeout, Timeout, Workers, argument, option
from rewardkit.cli.diff_report import print_difference
from rewardkit.cli.exits import finish
from rewardkit.cli.rewards import chosen
from rewardkit.cli.screen import screen, told_progress
from rewardkit.data import read_rollouts
from rewardkit.errors import ConfigError
from rewardkit.registry import RewardSet
from rewardkit.replay.difference import SHOWN, Difference, of_data
from sandbox import LOAD_TIMEOUT_S


def diff_command(
    places: Annotated[
        list[str], argument("The run, and the two versions; with --data the two versions alone.", "[RUN] OLD NEW")
    ],
    data: Annotated[Path | None, option("Compare on the rollouts in this file, and not on a run's.", "FILE")] = None,
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

    The exit code is 0 whatever it finds.

    Examples:

    [bold]rewardkit diff old.py:brief new.py:brief --data rollouts.jsonl[/]
    """
    lane = {"workers": workers, "load_timeout_s": load_timeout}
    old, new = _two(places)
    assert data is not None
    found = _of_data(old, new, data, limit, timeout, examples, lane)
    finish(found.as_json(), lambda: print_difference(found, screen()), as_json=as_json)


def _two(places: Sequence[str]) -> tuple[str, str]:
    if len(places) != 2:
        word = "version" if len(places) == 1 else "versions"
        raise ConfigError(f"{len(places)} {word} with --data: expected OLD and NEW, as file.py:name")
    return places[0], places[1]


def _of_data(
    old: str, new: str, data: Path, limit: int | None, timeout_s: float | None, shown: int, lane: Mapping[str, Any]
) -> Difference:
    from dataclasses import replace

    first, second = (one_of(reference, timeout_s) for reference in (old, new))
    rollouts = read_rollouts(data, limit=limit)
    with told_progress("scoring") as tick:
        return replace(of_data(first, second, rollouts, tick=tick, shown=shown, **lane), old=old, new=new)


def one_of(reference: str, timeout_s: float | None) -> RewardSet:
    """Return the one reward that a reference names, in a set of its own.

    Raises:
        RewardError: It names several, or leads nowhere.
    """
    found = chosen(reference, timeout_s)
    if len(found.rewards) != 1:
        first = next(iter(found.rewards))
        raise ConfigError(f"{reference!r} holds {len(found.rewards)} rewards; name one: {reference}:{first}")
    return found
