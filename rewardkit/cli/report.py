"""A summary as people read it: a table of rewards, and below it what failed."""

from __future__ import annotations

import functools
import math
import textwrap
from collections.abc import Collection

from rich.console import Console
from rich.table import Table
from rich.text import Text

from rewardkit.cli.screen import fitting, table
from rewardkit.cli.summary import Cost, Link, RewardSummary, Spread, Summary
from rewardkit.cli.text import last_lines
from rewardkit.shown.text import plain, shortened

SHOWN_FAILURES = 5
"""Kinds of failure that are shown."""
_COSTS = {
    "requests": "requests",
    "prompt_tokens": "prompt tokens",
    "completion_tokens": "completion tokens",
    "cost_usd": "USD",
}
_NAME_CHARS = 28
_TIMES = ("p50", "p95")
_SPREADS = ("std", "min", "max")
_LOG_LINES = 3
_NONE = "-"


def print_report(summary: Summary, console: Console) -> None:
    """Print the table, the failures and a line of totals."""
    console.print(fitting(console, functools.partial(_rewards, summary), _TIMES, _SPREADS))
    if summary.failures:
        _print_failures(summary, console)
    if summary.links or summary.costs:
        _print_beside(summary, console)
    for name, reward in summary.rewards.items():
        if summary.rows > 1 and reward.skipped == summary.rows:
            words = "every row was skipped: it does not apply, or lacks a return"
            console.print(Text.assemble((f"{name}: ", "bold"), ("warning: ", "yellow"), words))
    console.print(Text(_closing(summary), style="dim"))


def _rewards(summary: Summary, left_out: Collection[str]) -> Table:
    weighted = any(reward.weight != 1 for reward in summary.rewards.values())
    names = ["reward", *(["weight"] if weighted else []), "mean", *_SPREADS, "skipped", "failed", *_TIMES]
    shown = table(*(name for name in names if name not in left_out))
    for column in shown.columns:
        column.justify = "right"
        column.no_wrap = True
        column.overflow = "ellipsis"
    shown.columns[0].justify = "left"
    shown.columns[0].min_width = min(10, max(len(name) for name in summary.rewards))
    shown.columns[0].no_wrap = False  # the one column that gives way where the terminal is narrow
    for name, reward in summary.rewards.items():
        cells: dict[str, str | Text] = {
            "reward": Text(shortened(name, _NAME_CHARS), style="bold", no_wrap=True, overflow="ellipsis"),
            "weight": f"{reward.weight:.3g}",
            **_spread(reward.scores),
            "skipped": f"{reward.skipped:,}" if reward.skipped else _NONE,
            "failed": _failed(reward),
            "p50": duration(reward.p50_s),
            "p95": duration(reward.p95_s),
        }
        shown.add_row(*(cells[str(column.header)] for column in shown.columns))
    shown.add_section()
    totals: dict[str, str | Text] = {"reward": Text("total", style="bold"), **_spread(summary.totals)}
    shown.add_row(*(totals.get(str(column.header), "") for column in shown.columns))
    return shown


def _print_failures(summary: Summary, console: Console) -> None:
    kinds = len(summary.failures)
    more = f", {SHOWN_FAILURES} of {kinds} kinds" if kinds > SHOWN_FAILURES else ""
    _line(console, Text.assemble(("failures", "bold"), f" (most frequent first{more}; rows count from 0)"))
    room = max(20, console.width - 8)
    for one in summary.failures[:SHOWN_FAILURES]:
        more = "" if one.calls == 1 else f" and {one.calls - 1:,} more"
        name = shortened(one.reward, _NAME_CHARS)
        _line(console, Text.assemble("  ", (name, "bold"), "  ", (one.cause, "red"), f"  row {one.row}{more}"))
        for line in textwrap.wrap(plain(one.error), room, max_lines=2, placeholder=" …"):
            _line(console, Text(f"      {line}"))
        for line in last_lines(one.logs, _LOG_LINES, room - 2):
            _line(console, Text(f"      │ {line}", style="dim"))
    console.print()


def _print_beside(summary: Summary, console: Console) -> None:
    _line(console, Text.assemble(("links and costs", "bold"), " (of the calls that did not fail)"))
    room = max(20, console.width - 8)
    for name in dict.fromkeys([*summary.links, *summary.costs]):
        took = ", ".join(_cost(words, cost) for words, cost in summary.costs.get(name, {}).items())
        _line(console, Text.assemble("  ", (shortened(name, _NAME_CHARS), "bold"), f"  {took}"))
        for link, found in summary.links.get(name, {}).items():
            _line(console, Text(f"      {shortened(_link(link, found), room)}"))
    console.print()


def _cost(metric: str, cost: Cost) -> str:
    known = number(cost.sum) if metric == "cost_usd" else f"{cost.sum:,.0f}"
    words = _COSTS[metric].removesuffix("s") if known == "1" else _COSTS[metric]
    return f"{'' if cost.complete else 'at least '}{known} {words}"


def _link(name: str, link: Link) -> str:
    """Return a link's share of the scores, and how often it did not answer, with the most frequent reason."""
    why = f", unanswered {link.unanswered:,}" if link.unanswered else ""
    return f"{shortened(name, _NAME_CHARS)} {link.share:.1%}{why}{f': {link.error}' if link.error else ''}"


def _line(console: Console, text: Text) -> None:
    console.print(text, no_wrap=True, overflow="ellipsis")


def _closing(summary: Summary) -> str:
    each_s = f"{summary.rows / summary.seconds:,.0f}" if summary.seconds > 0 else ""
    rate = each_s and f", {each_s} {'row' if each_s == '1' else 'rows'}/s"
    words = f"{summary.rows:,} {'row' if summary.rows == 1 else 'rows'} in {duration(summary.seconds)}{rate}"
    without = summary.rows - summary.totals.count
    if without:
        words += f"; {without:,} without a total"
    if any(reward.scores.count > reward.scored for reward in summary.rewards.values()):
        words += "\na failed call counts with its reward's default"
    return words


def _failed(reward: RewardSummary) -> Text:
    """Return the failures, one cause a line."""
    if not reward.failed:
        return Text(_NONE)
    return Text("\n".join(f"{cause} {count:,}" for cause, count in reward.failed.items()), style="red")


def _spread(spread: Spread) -> dict[str, str]:
    return {name: number(getattr(spread, name)) for name in ("mean", *_SPREADS)}


def number(value: float | None) -> str:
    """Return a number with four decimals, fewer for large ones, in powers of ten where these would not do.

    One that is not known, ``None`` or ``nan``, is a dash.
    """
    if value is None or math.isnan(value):
        return _NONE
    size = abs(value)
    if not size:
        return "0.0000"  # of either sign
    if not 1e-4 <= size < 1e7:
        return f"{value:.2e}"
    return f"{value:.{4 if size < 10 else 2 if size < 1000 else 0}f}"


_UNITS = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6))


def duration(seconds: float | None) -> str:
    """Return a duration in the unit that suits it, with three digits."""
    if seconds is None:
        return _NONE
    if seconds >= 120:
        minutes, rest = divmod(round(seconds), 60)
        hours, minutes = divmod(minutes, 60)
        return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"
    unit, size = next((pair for pair in _UNITS if seconds >= pair[1]), _UNITS[-1])
    return f"{seconds / size:.3g} {unit}"
