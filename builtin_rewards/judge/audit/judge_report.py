"""An audit as people read it."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console
from rich.table import Table
from rich.text import Text

from builtin_rewards.judge.audit.measures import JudgeAudit
from rewardkit.commands import counts, excerpt, print_labelled, print_reasons, shortened
from rewardkit.statistics import Interval

_EXCERPT_CHARS = 100


def print_audit(audit: JudgeAudit, limits: Mapping[str, float], console: Console) -> None:
    """Print the table of families, the other measures, the worst examples and the verdict; 80 columns are enough."""
    data, models = audit.record.data, ", ".join(audit.record.subject.models)
    rows = f"{audit.rows} of {audit.total_rows:,} rows, {data.form}; {audit.calls:,} verdicts"
    console.print(Text.assemble((audit.record.subject.judge.name, "bold"), f" ({models})  {rows}"))
    if audit.untried:
        text = f"{audit.untried:,} verdicts were not asked for; below is what the others say"
        print_labelled(console, "broken off", text, "bold yellow")
    if audit.rate("bare", "right_accepted") == 0:
        text = "a judge that refuses everything is talked into nothing, so nothing below says much"
        if audit.rate("bare", "wrong_accepted"):
            text = "but wrong ones are: it judges the wrong way round"
        print_labelled(console, "no right answer is accepted as it is", text, "bold red")
    scale = f"a score of {audit.record.accept:g} or more, on a scale from 0 to 1"
    legend = (
        f"Accepted is {'an answer that wins, not a draw' if audit.record.subject.compares else scale}. Tried are wrong "
        "answers refused as they are; benign drift is that of right answers with a harmless addition of the same shape."
    )
    console.print(Text(f"{legend}\n", "dim"))
    console.print(_table(audit))
    console.print()
    for name, figures in audit.measures.items():
        text = "; ".join(f"{figure} {_figure_text(value)}" for figure, value in figures.items())
        print_labelled(console, name.replace("_", " "), text.replace("_", " "))
    print_reasons(console, "not possible", audit.not_possible)
    if audit.first_error is not None:
        text = f"{audit.failed:,} of {audit.calls:,} calls failed; the first: {shortened(audit.first_error, 300)}"
        console.print(Text(text, style="red"))
    for family, result in audit.families.items():
        for example in result.examples[:1]:
            before = "" if example["before"] is None else f"{example['before']:.2g} before, "
            attack = f"{audit.unit} {example['line']}, {shortened(example['name'], 40)}"
            text = f"{attack}: {before}{example['score']:.2g} with it\n“{excerpt(example['text'], '', _EXCERPT_CHARS)}”"
            print_labelled(console, f"{family} accepted", text, "red")
    broken = audit.breaches(limits)
    console.print()
    console.print(Text(f"NOT passed: {'; '.join(broken)}" if broken else "passed", style="bold"))


def _table(audit: JudgeAudit) -> Table:
    table = counts("family", "tried", "accepted", "95%", "failed", "benign drift")
    for family, result in audit.families.items():
        share, drift = result.accepted, result.benign_drift
        hits, interval = (_hits(share), _between(share)) if share.of else ("-", "-")
        move = "-" if drift.rate is None else f"{drift.rate:+.2f} [{drift.low:+.2f}, {drift.high:+.2f}]"
        accepted = Text(hits, "red" if share.rate else "")
        table.add_row(Text(family, "bold"), f"{share.of:,}", accepted, interval, f"{result.failed:,}", move)
    return table


def _figure_text(value: Interval | float) -> str:
    if not isinstance(value, Interval):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2g}"
    return "- (none)" if value.rate is None else f"{_hits(value)} of {value.of} = {value.rate:.0%} [{_between(value)}]"


def _hits(share: Interval) -> str:
    """Return the count of which an interval is the share; not always whole, for a drawn comparison is half a hit."""
    return f"{round((share.rate or 0.0) * share.of, 6):g}"


def _between(share: Interval) -> str:
    return f"{100 * share.low:.0f}-{share.high:.0%}"
