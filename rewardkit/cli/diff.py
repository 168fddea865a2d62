"""``rewardkit diff``: what a changed reward would do to the advantages."""

from __future__ import annotations

import dataclasses
import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from rich.table import Table

from rewardkit.cli.arguments import AsJson, LoadTimeout, Split, Steps, Timeout, Workers, argument, option
from rewardkit.cli.exits import finish
from rewardkit.cli.progress import told_progress
from rewardkit.cli.render import Screen, count_or_none, duration, number, score_text, screen, table
from rewardkit.cli.rewards import Leaves, one_of
from rewardkit.cli.run_argument import names_rewards, names_rows
from rewardkit.cli.saved import Force, ResultPage, check_result_page, write_difference
from rewardkit.errors import ConfigError
from rewardkit.record.places import run_path
from rewardkit.replay.compare import Side
from rewardkit.replay.difference import SHOWN, ChangedCompletion, Difference, of_data
from rewardkit.replay.failures import FailureKind
from rewardkit.replay.recorded_run import Run
from rewardkit.replay.run_difference import of_run, subject_of
from rewardkit.replay.single_scorer import UnitCost
from rewardkit.replay.stored import choose, steps_of
from rewardkit.rows.files import name_of
from rewardkit.rows.reader import read_rollouts
from rewardkit.runtime.plan import check_columns
from rewardkit.serving.choice import scorer_of
from rewardkit.shown.text import counted, plain, shortened
from rewardkit.types import Text
from sandbox import LOAD_TIMEOUT_S

_NAME_CHARS = 24
_LABEL_CHARS = 18
_SHOWN_FAILURES = 5
_COSTS = {"cost_usd": "USD", "prompt_tokens": "prompt tokens", "completion_tokens": "completion tokens"}


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
    to: ResultPage = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Show what changes where reward NEW takes the place of OLD on the same completions.

    It tells the means, how alike both rank the completions of a group, how many advantages change sign, how many groups
    gain or lose all signal, what 1,000 completions take, and the completions that change most with both reasons.

    A version is one in the run, such as format@2, or a reference, such as new.py:format, which is scored now and not
    stored. The other rewards of the run make up the total with it. The exit code is 0 whatever it finds.

    --html saves the page of `rewardkit ui` with the result and the completions that change most in it, as one file.

    Examples:

    [bold]rewardkit diff runs/one format@1 new.py:format --steps 10-20
    rewardkit diff runs/one format@1 format@2 --html change.html
    rewardkit diff old.py:format new.py:format --data rollouts.jsonl[/]
    """
    lane = {"workers": workers, "load_timeout_s": load_timeout, "scorer_of": scorer_of}
    check_result_page(to, force=force)
    if to is not None and data is not None:
        raise ConfigError("--html and --data: a page is of a run; record one with `rewardkit score --record`")
    if data is not None:
        result = _compare_on_file(_version_pair(places), data, limit, timeout, {**lane, "examples": examples})
    else:
        more = {**lane, "examples": examples, "weight": weight, "limit": limit}
        result = _compare_on_run(places, steps, split, timeout, more)
    if to is not None:
        with Run.open(run_path(places[0])) as opened:
            write_difference(opened, result, to, force=force)
    finish(result.as_json(), lambda: print_difference(result, screen(), of_file=data is not None), as_json=as_json)


def _version_pair(places: Sequence[str]) -> tuple[str, str]:
    """Return OLD and NEW; ConfigError for any other number of versions."""
    if len(places) != 2:
        word = "version" if len(places) == 1 else "versions"
        raise ConfigError(f"{len(places)} {word} with --data: expected OLD and NEW, as file.py:name")
    return places[0], places[1]


def _compare_on_file(
    places: tuple[str, str], data: Path, limit: int | None, timeout_s: float | None, more: Mapping[str, Any]
) -> Difference:
    old, new = (one_of(reference, timeout_s) for reference in places)
    rollouts = read_rollouts(data, limit=limit)
    check_columns([*Leaves(old).leaves, *Leaves(new).leaves], rollouts[0].example, name_of(data))
    with told_progress("scoring") as tick:
        difference = of_data(old, new, rollouts, tick=tick, **more)
    return dataclasses.replace(difference, old=places[0], new=places[1])


def _compare_on_run(
    places: Sequence[str], steps: str | None, split: str, timeout_s: float | None, more: Mapping[str, Any]
) -> Difference:
    """Return the difference of two versions on a run's completions; ConfigError unless places are RUN, OLD and NEW."""
    rows = [text for text in places if names_rows(text) and not run_path(text).exists()]
    versions = [text for text in places if text not in rows]
    if rows or (len(versions) == 2 and all(map(names_rewards, versions))) or names_rewards(places[0]):
        file = shlex.quote(rows[0]) if rows else "FILE"
        pair = " ".join(map(shlex.quote, versions)) if len(versions) == 2 else "OLD NEW"
        raise ConfigError(
            f"{' '.join(places)}: no run is among them; rewards are compared on the rows of a file with "
            f"`rewardkit diff {pair} --data {file}`"
        )
    if len(places) != 3:
        raise ConfigError(
            f"{' '.join(places)}: expected RUN OLD NEW, such as runs/one format@1 new.py:format; or --data FILE with "
            "OLD and NEW"
        )
    with Run.open(run_path(places[0])) as run:
        old, new = (subject_of(run, version, lambda reference: one_of(reference, timeout_s)) for version in places[1:])
        stored = choose(run, steps_of(steps), split)
        with told_progress("scoring") as tick:
            return of_run(run, old, new, stored, tick=tick, **more)


def print_difference(difference: Difference, console: Screen, *, of_file: bool = False) -> None:
    """Print the table of both versions, what it does to the advantages, and the completions that change most.

    Completions are those of a file's rows or of a record; each names its own numbers.
    """
    if not _are_headings(difference):
        for side, name in (("old", difference.old), ("new", difference.new)):
            console.say((f"{side}  ", "bold"), plain(name))
        console.print()
    console.whole_table(_sides(difference))
    console.print()
    for label, figure in _figures(difference):
        console.say((f"{label:17}", "bold"), figure)
    for note in difference.told_notes:
        console.say((note, "dim"))
    if difference.failures:
        _print_failures(difference.failures, console, of_file=of_file)
    if difference.examples:
        console.heading("completions that change most")
        for example in difference.examples:
            _print_example(example, console, of_file=of_file)


def _are_headings(difference: Difference) -> bool:
    """Whether the versions' names fit above the columns and differ."""
    return difference.old != difference.new and max(len(difference.old), len(difference.new)) <= _NAME_CHARS


def _sides(difference: Difference) -> Table:
    """Return the table of both versions; the means of what both scored stand in it only where these are not all."""
    numbers, old, new = difference.comparison, difference.comparison.old, difference.comparison.new
    names = (difference.old, difference.new) if _are_headings(difference) else ("old", "new")
    is_same = numbers.both == old.scored == new.scored
    rows = [
        ("mean", number(old.mean), number(new.mean)),
        *([] if is_same else [("mean where both scored", number(numbers.old_mean), number(numbers.new_mean))]),
        ("std", number(old.std), number(new.std)),
        ("scored", f"{old.scored:,}", f"{new.scored:,}"),
        ("skipped", count_or_none(old.skipped), count_or_none(new.skipped)),
        ("failed", _failed(old), _failed(new)),
        ("groups with signal", f"{old.groups_with_signal:,}", f"{new.groups_with_signal:,}"),
        *_costs(difference.old_cost or UnitCost(None, {}), difference.new_cost or UnitCost(None, {})),
    ]
    return table("", *map(plain, names), left=1, rows=rows)


def _costs(old: UnitCost, new: UnitCost) -> list[tuple[str, str, str]]:
    """Return rows of what 1,000 completions take, of time and of each metric; a dash stands for an unknown amount."""
    if old.seconds is None and new.seconds is None:
        return []
    lines = [("time per 1,000", duration(old.seconds), duration(new.seconds))]
    for name in {**old.metrics, **new.metrics}:
        amounts = number(old.metrics.get(name)), number(new.metrics.get(name))
        lines.append((f"{_COSTS.get(name, name)} per 1,000", *amounts))
    return lines


def _figures(difference: Difference) -> list[tuple[str, str]]:
    """Return what the change does to ranks and advantages, each with a label."""
    numbers = difference.comparison
    ranks = counted(numbers.ranked_groups, "group")
    flat = f"; {numbers.unranked_groups:,} flat on one side" if numbers.unranked_groups else ""
    correlation = "not known" if numbers.rank_correlation is None else f"{numbers.rank_correlation:.3f}"
    share = f" ({numbers.sign_flips / numbers.completions:.1%})" if numbers.completions else ""
    return [
        ("changed scores", f"{numbers.changed:,} of {numbers.both:,} that both versions scored"),
        ("rank correlation", f"{correlation} inside groups (Spearman; {ranks}{flat})"),
        ("sign flips", f"{numbers.sign_flips:,} of {numbers.completions:,} advantages{share}"),
        ("advantages", f"change by {number(numbers.advantage_change)} on average"),
        ("signal", f"{_groups(numbers.groups_gained)} it, {_groups(numbers.groups_lost, 'lose')} all of it"),
    ]


def _print_failures(failures: Sequence[FailureKind], console: Screen, *, of_file: bool) -> None:
    """Print the most frequent kinds of failures of the calls of now, each with its first completion and its error."""
    part = f", {_SHOWN_FAILURES} of {len(failures)} kinds" if len(failures) > _SHOWN_FAILURES else ""
    console.heading(f"failures (most frequent first{part})")
    for kind in failures[:_SHOWN_FAILURES]:
        more = "" if kind.calls == 1 else f" and {kind.calls - 1:,} more"
        name = completion_name(kind.step, kind.id, of_file=of_file)
        console.say("  ", (kind.side, "bold"), "  ", (kind.cause, "red"), f"  {name}{more}", fit="cut")
        if kind.error:
            print_beside("error", kind.error, console)


def _print_example(example: ChangedCompletion, console: Screen, *, of_file: bool) -> None:
    """Print a completion whose score changes: both scores, prompt, completion and the versions' reasons."""
    scores = f"{score_text(example.old)} -> {score_text(example.new)}"
    console.say("  ", completion_name(example.step, example.id, of_file=of_file), "  ", (scores, "bold"))
    texts = {"prompt": text_line(example.rollout.prompt), "completion": text_line(example.rollout.completion)}
    reasons = {side: outcome.reason for side, outcome in (("old", example.old), ("new", example.new))}
    for label, text in {**texts, **reasons}.items():
        if text or label in texts:
            print_beside(label, text or "", console)


def completion_name(step: int | None, number: int, *, of_file: bool = False) -> str:
    """Return where a completion stands in a run, by its number from 1, or in a file, by its row from 0."""
    if of_file:
        return f"row {number} (from 0)"
    return f"completion {number}" if step is None else f"step {step}, completion {number}"


def text_line(text: Text) -> str:
    """Return a prompt or completion as text; messages as JSON."""
    return text if isinstance(text, str) else json.dumps(text, ensure_ascii=False, default=repr)


def print_beside(label: str, text: str, console: Screen) -> None:
    """Print a text on one line behind a label; it is cut where a terminal ends, and whole off a terminal."""
    line = " ".join(plain(text).split())
    if console.is_terminal:
        line = shortened(text, max(20, console.width - _LABEL_CHARS))
    console.say(f"      {label:11} {line}")


def _failed(side: Side) -> str:
    """Return how many calls failed, and for how many of them a default counts."""
    defaults = f" ({side.stand_ins:,} with a default)" if side.failed and side.stand_ins else ""
    return f"{count_or_none(side.failed)}{defaults}"


def _groups(count: int, verb: str = "gain") -> str:
    return f"{counted(count, 'group')} {verb}{'s' if count == 1 else ''}"
