"""A difference of two versions of a reward as people read it: a table of both, what it does, and examples."""

from __future__ import annotations

import json

from rich.console import Console
from rich.table import Table
from rich.text import Text as Shown

from rewardkit.cli.report import duration, number
from rewardkit.cli.screen import print_table, table
from rewardkit.replay.compare import Side
from rewardkit.replay.difference import ChangedCompletion, Difference
from rewardkit.replay.single_scorer import UnitCost
from rewardkit.shown.text import counted, plain, shortened
from rewardkit.types import Outcome, Status, Text

_NONE = "-"
_NAME_CHARS = 24
_LABEL_CHARS = 18
_COSTS = {"cost_usd": "USD", "prompt_tokens": "prompt tokens", "completion_tokens": "completion tokens"}


def print_difference(found: Difference, console: Console) -> None:
    """Print the table, what the change does to the advantages, and the completions that change most."""
    if not _are_headings(found):
        for side, name in (("old", found.old), ("new", found.new)):
            console.print(Shown.assemble((f"{side}  ", "bold"), plain(name)), soft_wrap=True)
        console.print()
    print_table(_sides(found), console)
    console.print()
    for label, words in _words(found):
        console.print(Shown.assemble((f"{label:17}", "bold"), words), soft_wrap=True)
    for note in found.told_notes:
        console.print(Shown(note, style="dim"), soft_wrap=True)
    if found.examples:
        console.print(Shown("\ncompletions that change most", style="bold"), soft_wrap=True)
        for one in found.examples:
            _print_example(one, console)


def _are_headings(found: Difference) -> bool:
    """Whether the versions' names fit above the columns and differ."""
    return found.old != found.new and max(len(found.old), len(found.new)) <= _NAME_CHARS


def _sides(found: Difference) -> Table:
    numbers, old, new = found.comparison, found.comparison.old, found.comparison.new
    names = (found.old, found.new) if _are_headings(found) else ("old", "new")
    same = numbers.both == old.scored == new.scored
    shown = table("", *map(plain, names))
    for column in shown.columns[1:]:
        column.justify = "right"
    for label, first, second in [
        ("mean", number(old.mean), number(new.mean)),
        *([] if same else [("mean where both scored", number(numbers.old_mean), number(numbers.new_mean))]),
        ("std", number(old.std), number(new.std)),
        ("scored", f"{old.scored:,}", f"{new.scored:,}"),
        ("skipped", _count(old.skipped), _count(new.skipped)),
        ("failed", _failed(old), _failed(new)),
        ("groups with signal", f"{old.groups_with_signal:,}", f"{new.groups_with_signal:,}"),
        *_costs(found.old_cost, found.new_cost),
    ]:
        shown.add_row(Shown(label), first, second)
    return shown


def _costs(old: UnitCost | None, new: UnitCost | None) -> list[tuple[str, str, str]]:
    """Return what 1,000 completions take, a line for each thing; a dash where it is not known."""
    sides = [one or UnitCost(None, {}) for one in (old, new)]
    if all(one.seconds is None for one in sides):
        return []
    lines = [("time per 1,000", *(duration(one.seconds) for one in sides))]
    for name in dict.fromkeys(name for one in sides for name in one.metrics):
        lines.append((f"{_COSTS.get(name, name)} per 1,000", *(number(one.metrics.get(name)) for one in sides)))
    return lines  # type: ignore[return-value]  # there are two sides


def _words(found: Difference) -> list[tuple[str, str]]:
    one = found.comparison
    ranks = counted(one.ranked_groups, "group")
    flat = f"; {one.unranked_groups:,} flat on one side" if one.unranked_groups else ""
    correlation = "not known" if one.rank_correlation is None else f"{one.rank_correlation:.3f}"
    share = f" ({one.sign_flips / one.completions:.1%})" if one.completions else ""
    return [
        ("changed scores", f"{one.changed:,} of {one.both:,} that both versions scored"),
        ("rank correlation", f"{correlation} inside groups (Spearman; {ranks}{flat})"),
        ("sign flips", f"{one.sign_flips:,} of {one.completions:,} advantages{share}"),
        ("advantages", f"change by {number(one.advantage_change)} on average"),
        ("signal", f"{_groups(one.groups_gained)} it, {_groups(one.groups_lost, 'lose')} all of it"),
    ]


def _print_example(one: ChangedCompletion, console: Console) -> None:
    where = place_of(one.step, one.id)
    console.print(Shown.assemble("  ", where, "  ", (f"{told(one.old)} -> {told(one.new)}", "bold")), soft_wrap=True)
    lines = [("prompt", text_line(one.rollout.prompt)), ("completion", text_line(one.rollout.completion))]
    lines += [(side, outcome.reason) for side, outcome in (("old", one.old), ("new", one.new)) if outcome.reason]
    for label, words in lines:
        print_labelled(label, words, console)


def place_of(step: int | None, number: int) -> str:
    """Return where a completion stands in a run or a file."""
    return f"completion {number}" if step is None else f"step {step}, completion {number}"


def text_line(text: Text) -> str:
    """Return a prompt or completion as text; messages as JSON."""
    return text if isinstance(text, str) else json.dumps(text, ensure_ascii=False, default=repr)


def print_labelled(label: str, words: str, console: Console) -> None:
    """Print words on a line behind a label; they are cut where a terminal ends, and whole off a terminal."""
    line = " ".join(plain(words).split())
    if console.is_terminal:
        line = shortened(words, max(20, console.width - _LABEL_CHARS))
    console.print(Shown(f"      {label:11} {line}"), soft_wrap=True)


def told(outcome: Outcome) -> str:
    """Return an outcome's score, or what became of it."""
    cause = f" ({outcome.cause})" if outcome.cause is not None else ""
    return number(outcome.score) if outcome.status is Status.SCORED else f"{outcome.status}{cause}"


def _failed(side: Side) -> str:
    if not side.failed:
        return _NONE
    return f"{side.failed:,}" + (f" ({side.stand_ins:,} with a default)" if side.stand_ins else "")


def _count(count: int) -> str:
    return f"{count:,}" if count else _NONE


def _groups(count: int, verb: str = "gain") -> str:
    return f"{counted(count, 'group')} {verb}{'s' if count == 1 else ''}"
