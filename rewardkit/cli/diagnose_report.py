"""A diagnosis as people read it: the flags in a table, each with completions and a next action, and what is open."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from rewardkit.cli.screen import table
from rewardkit.cli.text import folded
from rewardkit.health.examine import Diagnosis
from rewardkit.health.flag import Flag
from rewardkit.health.noise import Noise
from rewardkit.shown.text import counted, plain

_NAME_CHARS = 20
_NONE = "-"


def print_diagnosis(found: Diagnosis, place: str, console: Console) -> None:
    """Print what was looked at, the flags, the noise, and what could not be looked at."""
    _say(console, Text.assemble((plain(place), "bold"), f"  {_looked_at(found)}"))
    _say(console, Text(found.gradient))
    if found.flags:
        console.print()
        console.print(_table(found.flags))
        for flag in found.flags:
            _print_flag(flag, console, rows="rows" if found.steps is None else "completions")
    else:
        _say(console, Text(f"no flags: {len(found.looked)} detectors looked and found nothing", style="green"))
    if found.noise:
        console.print()
        console.print(_noise(found.noise))
    _print_not_looked(found, console)


def _looked_at(found: Diagnosis) -> str:
    size = counted(found.completions, "row" if found.steps is None else "completion")
    steps = "" if found.steps is None else f", steps {found.steps[0]:,} to {found.steps[1]:,}"
    return f"{size}{steps}; rewards: {plain(', '.join(found.rewards)) or 'none'}"


def _table(flags: Sequence[Flag]) -> Table:
    timed = any(flag.first_step is not None for flag in flags)
    shown = table(
        "flag", "reward", *(["steps"] if timed else []), "value", "threshold", *(["at first"] if timed else [])
    )
    for column in shown.columns[2:]:
        column.justify = "right"
    for flag in flags:
        shown.add_row(
            Text(folded(flag.detector, _NAME_CHARS), style="bold"),
            folded(flag.reward, _NAME_CHARS) if flag.reward else _NONE,
            *([flag.steps] if timed else []),
            f"{flag.value:.3g}",
            f"{flag.threshold:.3g}",
            *([_NONE if flag.baseline is None else f"{flag.baseline:.3g}"] if timed else []),
        )
    return shown


def _print_flag(flag: Flag, console: Console, rows: str) -> None:
    head = [flag.detector, *([flag.reward] if flag.reward else []), *([f"steps {flag.steps}"] if flag.steps else [])]
    console.print()
    _say(console, Text(plain(", ".join(head)), style="bold"))
    _say(console, Text(f"  {plain(flag.words)}"))
    if flag.rows:
        _say(console, Text(f"  {rows}: {', '.join(map(str, flag.rows))}"))
    _say(console, Text(f"  next: {plain(flag.action)}"))


def _noise(noise: Mapping[str, Noise]) -> Table:
    shown = table("reward scored twice", "noise", "signs right", "generations", "scorings")
    for column in shown.columns[1:]:
        column.justify = "right"
    for name, one in noise.items():
        shown.add_row(
            Text(folded(name, _NAME_CHARS), style="bold"),
            *(_NONE if math.isnan(share) else f"{share:.0%}" for share in (one.share, one.right)),
            _NONE if one.generations is None else f"{one.generations:,}",
            _NONE if one.scorings is None else f"{one.scorings:,}",
        )
    return shown


def _print_not_looked(found: Diagnosis, console: Console) -> None:
    """Print, by reason, the detectors that could not look."""
    if found.not_looked:
        console.print()
        _say(console, Text("not looked at", style="dim"))
    for words, names in found.not_looked_by_reason.items():
        _say(console, Text(f"  {words}: {', '.join(names)}", style="dim"))


def _say(console: Console, text: Text) -> None:
    console.print(text, soft_wrap=True)
