"""A summary as people read it: a table of rewards, and below it what failed."""

from __future__ import annotations

import functools
import textwrap
from collections.abc import Collection

from rich.table import Table
from rich.text import Text

from rewardkit.cli.render import Screen, causes, count_or_none, duration, number, table
from rewardkit.cli.summary import Cost, Link, Spread, Summary
from rewardkit.shown.text import counted, plain, shortened

SHOWN_FAILURES = 5  # kinds of failure that are shown
_COSTS = {
    "requests": "requests", "prompt_tokens": "prompt tokens", "completion_tokens": "completion tokens",
    "cost_usd": "USD",
}  # fmt: skip
_NAME_CHARS = 28
_TIMES = ("p50", "p95")
_SPREADS = ("std", "min", "max")
_LOG_LINES = 3


def print_report(summary: Summary, console: Screen) -> None:
    """Print the table, the failures and a line of totals."""
    console.fitted_table(functools.partial(_rewards, summary), _TIMES, _SPREADS)
    if summary.failures:
        _print_failures(summary, console)
    if summary.links or summary.costs:
        _print_beside(summary, console)
    for name, reward in summary.rewards.items():
        if summary.rows > 1 and reward.skipped == summary.rows:
            warning = "every row was skipped: it does not apply, or lacks a return"
            console.say((f"{name}: ", "bold"), ("warning: ", "yellow"), warning, fit="wrap")
    console.say((_closing(summary), "dim"), fit="wrap")


def _rewards(summary: Summary, left_out: Collection[str]) -> Table:
    weighted = any(reward.weight != 1 for reward in summary.rewards.values())
    names = ["reward", *(["weight"] if weighted else []), "mean", *_SPREADS, "skipped", "failed", *_TIMES]
    rewards = table(*(name for name in names if name not in left_out), left=1)
    for column in rewards.columns:
        column.overflow = "ellipsis"
    rewards.columns[0].min_width = min(10, max(len(name) for name in summary.rewards))  # it alone gives way
    for name, reward in summary.rewards.items():
        cells: dict[str, str | Text] = {
            "reward": Text(shortened(name, _NAME_CHARS), style="bold", no_wrap=True, overflow="ellipsis"),
            "weight": f"{reward.weight:.3g}",
            **_spread(reward.scores),
            "skipped": count_or_none(reward.skipped),
            "failed": causes(reward.failed),
            "p50": duration(reward.p50_s),
            "p95": duration(reward.p95_s),
        }
        rewards.add_row(*(cells[str(column.header)] for column in rewards.columns))
    rewards.add_section()
    totals: dict[str, str | Text] = {"reward": Text("total", style="bold"), **_spread(summary.totals)}
    rewards.add_row(*(totals.get(str(column.header), "") for column in rewards.columns))
    return rewards


def _print_failures(summary: Summary, console: Screen) -> None:
    kinds = len(summary.failures)
    more = f", {SHOWN_FAILURES} of {kinds} kinds" if kinds > SHOWN_FAILURES else ""
    console.say(("failures", "bold"), f" (most frequent first{more}; rows count from 0)", fit="cut")
    room = max(20, console.width - 8)
    for failure in summary.failures[:SHOWN_FAILURES]:
        more = "" if failure.calls == 1 else f" and {failure.calls - 1:,} more"
        name = shortened(failure.reward, _NAME_CHARS)
        console.say("  ", (name, "bold"), "  ", (failure.cause, "red"), f"  row {failure.row}{more}", fit="cut")
        for line in textwrap.wrap(plain(failure.error), room, max_lines=2, placeholder=" …"):
            console.say(f"      {line}", fit="cut")
        logs = [line for line in failure.logs.splitlines() if line.strip()]
        for line in logs[-_LOG_LINES:]:
            console.say((f"      │ {shortened(line, room - 2)}", "dim"), fit="cut")
    console.print()


def _print_beside(summary: Summary, console: Screen) -> None:
    console.say(("links and costs", "bold"), " (of the calls that did not fail)", fit="cut")
    room = max(20, console.width - 8)
    for name in dict.fromkeys([*summary.links, *summary.costs]):
        costs = ", ".join(_cost(metric, cost) for metric, cost in summary.costs.get(name, {}).items())
        console.say("  ", (shortened(name, _NAME_CHARS), "bold"), f"  {costs}", fit="cut")
        for link_name, link in summary.links.get(name, {}).items():
            console.say(f"      {shortened(_link(link_name, link), room)}", fit="cut")
    console.print()


def _cost(metric: str, cost: Cost) -> str:
    amount = number(cost.sum) if metric == "cost_usd" else f"{cost.sum:,.0f}"
    unit = _COSTS[metric].removesuffix("s") if amount == "1" else _COSTS[metric]
    return f"{'' if cost.complete else 'at least '}{amount} {unit}"


def _link(name: str, link: Link) -> str:
    """Return a link's share of the scores, and how often it did not answer, with the most frequent reason."""
    unanswered = f", unanswered {link.unanswered:,}" if link.unanswered else ""
    reason = f": {link.error}" if link.error else ""
    return f"{shortened(name, _NAME_CHARS)} {link.share:.1%}{unanswered}{reason}"


def _closing(summary: Summary) -> str:
    each_s = f"{summary.rows / summary.seconds:,.0f}" if summary.seconds > 0 else ""
    rate = each_s and f", {each_s} {'row' if each_s == '1' else 'rows'}/s"
    text = f"{counted(summary.rows, 'row')} in {duration(summary.seconds)}{rate}"
    without = summary.rows - summary.totals.count
    if without:
        text += f"; {without:,} without a total"
    if any(reward.scores.count > reward.scored for reward in summary.rewards.values()):
        text += "\na failed call counts with its reward's default"
    return text


def _spread(spread: Spread) -> dict[str, str]:
    return {name: number(getattr(spread, name)) for name in ("mean", *_SPREADS)}
