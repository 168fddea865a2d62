"""An audit as people read it: a table of families, the worst examples, the lint, the verdict.

:func:`counts`, :func:`print_labelled`, :func:`print_reasons` and :func:`excerpt` show audits of other kinds as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from rewardkit.audit.probe import Family
from rewardkit.audit.result import Audit, Example, RewardAudit, passed
from rewardkit.audit.rules_of_thumb import RULES_OF_THUMB
from rewardkit.cli.screen import screen, table
from rewardkit.shown.text import counted, plain, shortened
from rewardkit.types import Outcome, Status

SHOWN_CHARS = 160
"""Characters of a completion that are shown: around the part that matters, or its end."""
_SHOWN_FORMS = 6
_SHOWN_NAMES = 10

T = TypeVar("T")


def print_audits(audits: Sequence[RewardAudit], limits: Mapping[str, Any]) -> None:
    """Print one audit after the other."""
    print_each(audits, lambda one, console: print_audit(one, limits, console))


def print_each(audits: Sequence[T], show: Callable[[T, Console], None]) -> None:
    """Print one audit after the other, a blank line between two."""
    console = screen()
    for place, one in enumerate(audits):
        if place:
            console.print()
        show(one, console)


def print_head(reward: str, rows: str, gold_column: str | None, console: Console) -> None:
    """Print an audit's first line: the reward, what was audited, and where the right answers are."""
    gold = f"gold in {gold_column!r}" if gold_column else "no gold column"
    console.print(Text.assemble((reward, "bold"), f"  {rows}, {gold}"))


def print_audit(audit: RewardAudit, limits: Mapping[str, Any], console: Console) -> None:
    """Print the table of families, the worst examples, the lint and the verdict."""
    rows = f"{audit.audited} of {counted(audit.rows, 'row')} audited ({audit.total_rows:,} in the file)"
    print_head(audit.reward, rows, audit.gold_column, console)
    families = _table(audit)
    if families.row_count:
        console.print(families)
        console.print()
    for finding in audit.findings:
        print_labelled(console, finding.name, finding.words, "bold red")
    if audit.findings:
        console.print()
    for name, examples in audit.flaws.items():
        print_flaw(name, examples, audit.unit, console)
        console.print()
    _print_forms(audit, console)
    # What was tried of these counts for slow and crashed calls only.
    left_out = {name: f"left out: {why}" for name, why in audit.left_out.items()}
    unjudged = {str(name): why for name, one in audit.families.items() if (why := one.not_applicable) is not None}
    print_reasons(console, "not judged", {**left_out, **unjudged})
    print_unaudited(audit, console)
    print_lint(audit, console)
    console.print(Text(_closing(audit, limits), style="bold"))


def _table(audit: RewardAudit) -> Table:
    """Return the table of the families that were tried: a number where something was judged, a dash where not."""
    shown = counts("family", "tried", "wrongly paid", "wrongly refused", "slow", "crashed")
    for family, one in audit.families.items():
        if not one.tried:
            continue
        forms = family is Family.FORMS
        accepted = one.accepted if one.judged and not forms else None
        refused = one.refused if one.judged and forms else None
        cells = [_count(found) for found in (accepted, refused, one.slow, one.crashed)]
        shown.add_row(Text(str(family), style="bold"), f"{one.tried:,}", *cells)
    return shown


def counts(name: str, *columns: str) -> Table:
    """Return an empty table whose first column has names and the others numbers."""
    shown = table(name, *columns)
    for column in shown.columns[1:]:
        column.justify = "right"
    return shown


def _count(found: Sequence[Example] | None) -> Text:
    if found is None:
        return Text("-", style="dim")
    return Text(f"{len(found):,}", style="red" if found else "")


def print_reasons(console: Console, label: str, why: Mapping[str, str]) -> None:
    """Print a label and why it is that of these names, those of one reason together."""
    for reason, listed in _grouped((reason, name) for name, reason in why.items()).items():
        print_labelled(console, label, f"{', '.join(listed)}: {shortened(reason, 300)}")


def print_labelled(console: Console, label: str, words: str, style: str = "bold") -> None:
    """Print a label and words beside it, with all of their lines behind the label."""
    shown = Table.grid(padding=(0, 2, 0, 0), pad_edge=False)
    shown.add_column(no_wrap=True, style=style)
    shown.add_column(overflow="fold")
    shown.add_row(label, Text(words))
    console.print(shown)


def print_flaw(
    name: str, examples: Sequence[Example], unit: str, console: Console, full: str = "a right answer"
) -> None:
    """Print a rule of thumb that is broken, what mostly causes it, and examples that are evidence of it.

    ``unit`` is what the numbers of rows count, and ``full`` what earns the full level of a row.
    """
    failed = name in ("slow", "crashed")
    rows = len({one.line for one in examples})
    title = (name if failed else f"wrongly paid, {name}", "bold red")
    console.print(Text.assemble(title, f"  {counted(len(examples), 'completion')} on {counted(rows, 'row')}"))
    named = _grouped((one.probe.name, one) for one in examples)
    told = Table.grid(padding=(0, 2, 0, 0))
    told.add_column(style="dim", no_wrap=True)
    told.add_column(overflow="fold")
    told.add_row("  rule", RULES_OF_THUMB[name].rule)
    told.add_row("  cause", RULES_OF_THUMB[name].cause)
    told.add_row("  tried" if failed else "  paid", Text(_listed([shortened(one, 50) for one in named], _SHOWN_NAMES)))
    firsts = [found[0] for found in named.values()]
    for one in [firsts[0], *firsts[-1:]][: 1 if failed or len(firsts) == 1 else 2]:
        told.add_row(f"  {unit} {one.line}", _evidence(one, full, slow=name == "slow"))
    console.print(told)


def _evidence(one: Example, level: str, *, slow: bool) -> Text:
    """Return what was tried, what it earned beside a right answer, and what the reward said."""
    gold = "" if one.gold is None else f", gold “{shortened(one.gold, 60)}”"
    frame = f", {shortened(one.probe.frame, 40)}" if one.probe.frame else ""
    full = "" if one.full is None or slow else f", {level} {one.full:.3g}"
    cost = f" in {one.outcome.duration_s:.2g} s" if slow else ""
    earned = f"“{excerpt(one.completion, one.probe.point)}” {_earned(one.outcome)}{full}{cost}"
    said = (f"\n{shortened(one.said, 200)}", "dim") if one.said else ""
    return Text.assemble(f"{shortened(one.probe.name, 60)}{frame}{gold}:\n{earned}", said)


def excerpt(text: str, point: str, chars: int = SHOWN_CHARS) -> str:
    """Return a text on one line: of a long one what is around the point, or without one its head and end."""
    text, point = " ".join(text.split()), " ".join(point.split())[:chars]
    if len(text) <= chars:
        return plain(text)
    place = text.rfind(point) if point else -1
    if place < 0:
        return plain(f"{text[: chars // 4]} … {text[-chars // 4 * 3 :]}")
    start = max(0, place - (chars - len(point)) // 2)
    end = start + chars
    return plain(f"{'… ' if start else ''}{text[start:end]}{' …' if end < len(text) else ''}")


def _listed(names: Sequence[str], most: int = _SHOWN_FORMS) -> str:
    more = f"; and {len(names) - most} more" if len(names) > most else ""
    return "; ".join(names[:most]) + more


def _earned(outcome: Outcome) -> str:
    """Return what became of a call: a score, skipped, or failed with what stands in."""
    if outcome.status is Status.SKIPPED:
        return "is skipped"
    failed = "fails and " if outcome.status is Status.FAILED else ""
    return f"{failed}earns {'nothing' if outcome.score is None else format(outcome.score, '.3g')}"


def _grouped(pairs: Iterable[tuple[str, T]]) -> dict[str, list[T]]:
    """Return what has one name together, in the order of the names."""
    found: dict[str, list[T]] = {}
    for name, one in pairs:
        found.setdefault(name, []).append(one)
    return found


def _print_forms(audit: RewardAudit, console: Console) -> None:
    """Print which honest ways of writing are refused, for a reward that reads answers."""
    verdict = audit.families[Family.FORMS]
    if verdict.not_applicable is not None or not audit.paid_forms:
        return
    best = [name for name, (paid, tried) in audit.paid_forms.items() if paid == tried][:_SHOWN_FORMS]
    if best:
        print_labelled(console, "always paid", "; ".join(shortened(name, 40) for name in best))
    refused = _grouped((one.probe.name, one) for one in verdict.refused)
    if refused:
        shown = _listed([f"{shortened(name, 40)} ({len(found)})" for name, found in refused.items()])
        print_labelled(console, "refused (rows)", shown)


def print_unaudited(audit: Audit, console: Console) -> None:
    """Print the rows that tell nothing about a reward, with the reasons."""
    reasons: dict[str, dict[int, str]] = {}  # values differ, what is wrong with them does not
    for line, why in audit.unaudited.items():
        reasons.setdefault(why.partition(", got ")[0], {})[line] = why
    for found in reasons.values():
        lines, whys = list(found), list(found.values())
        listed = ", ".join(map(str, lines[:8])) + (", …" if len(lines) > 8 else "")
        first = ", the first" if len(set(whys)) > 1 else ""
        noun = "completion" if audit.unit == "completion" else "row"
        words = f"{counted(len(lines), noun)} ({audit.unit} {listed}){first}: {shortened(whys[0], 300)}"
        print_labelled(console, "not audited", words, "yellow")


def print_lint(audit: Audit, console: Console) -> None:
    """Print the known mistakes in a reward's source."""
    for one in audit.lint:
        print_labelled(console, f"lint {one.rule}", f"{_near(one.file)}:{one.line}: {one.code}", "bold yellow")
        console.print(Padding(Text(f"{one.why}\n{one.fix}", style="dim"), (0, 0, 0, 4)))
    for name in audit.unread:
        console.print(Text(f"the source of {name!r} cannot be read: no lint", style="yellow"))


def _near(file: str) -> str:
    """Return a path as seen from the working folder, where it lies in it."""
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else file


def _closing(audit: RewardAudit, limits: Mapping[str, Any]) -> str:
    if not audit.audited and not audit.false_accepts and not audit.untried:
        return "not audited: no row says enough about this reward"
    said = [
        f"{audit.false_accepts:,} wrongly paid (at most {limits['false_accept']:,})",
        f"{audit.false_reject_share:.0%} of the honest forms refused (at most {limits['false_reject']:.0%})",
        f"{audit.failed:,} slow or crashed (at most {limits['failed']:,})",
    ]
    if not any(one.judged for one in audit.families.values()):
        tried = sum(one.tried for one in audit.families.values())
        said = [f"{tried:,} completions tried for slow and crashed calls only, none judged", said[-1]]
    if audit.untried:
        said.insert(0, f"stopped by --time-limit with {counted(audit.untried, 'completion')} not tried")
    if audit.findings:
        said.append(counted(len(audit.findings), "finding"))
    return f"{'passed' if passed(audit, limits) else 'NOT passed'}: {', '.join(said)}"
