"""Audits as people read them: a table of what was tried, the worst examples, the lint, the verdict."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from rewardkit.audit.exploits import Conclusion, ExploitAudit
from rewardkit.audit.honest import BARE
from rewardkit.audit.mutants import Expected
from rewardkit.audit.probe import Family
from rewardkit.audit.result import Audit, AuditLimits, AuditVerdict, Example, RewardAudit
from rewardkit.audit.rules_of_thumb import RULES_OF_THUMB, cause_of
from rewardkit.cli.exits import NOT_JUDGED
from rewardkit.cli.render import NONE, counts, excerpt, group_by_key, print_labelled, print_pairs, print_reasons, screen
from rewardkit.shown.text import counted, shortened
from rewardkit.types import Outcome, Status

_FEW_ROWS = 5
_SHOWN_FORMS = 6
_SHOWN_NAMES = 10
_SHOWN_LINES = 8
_SHOWN_ERRORS = 5
_VALUES = re.compile(r"'[^']+'|\"[^\"]+\"|\d+")  # what differs in errors of one kind
_STYLES = {Conclusion.EXPLOITABLE: "bold red", Conclusion.HOLDS: "green", Conclusion.CANNOT_TELL: "yellow", None: "dim"}
_SHOULD = {Expected.LOSES: "lose", Expected.GAINS_NOTHING: "not gain", Expected.TOLD: "either"}

A = TypeVar("A", bound=Audit)


def print_each(audits: Sequence[A], show: Callable[[A], None]) -> None:
    """Print one audit after the other, a blank line between two."""
    for index, audit in enumerate(audits):
        if index:
            screen().print()
        show(audit)


def print_reward_audit(audit: RewardAudit, limits: AuditLimits) -> None:
    """Print an audit on rows: the table of families, the worst examples, the lint and the verdict."""
    console = screen()
    rows = f"{audit.audited} of {counted(audit.rows, 'row')} audited ({audit.total_rows:,} in the file)"
    _print_evidence(audit, rows, _families(audit), "a right answer", console)
    _print_forms(audit, console)
    _print_rules(audit, console)
    # What was tried of these counts for slow and crashed calls only.
    left_out = {name: f"left out: {reason}" for name, reason in audit.left_out.items()}
    unjudged = {str(name): reason for name, family in audit.families.items() if (reason := family.not_applicable)}
    print_reasons(console, "not judged", {**left_out, **unjudged})
    _print_unaudited(audit, console)
    _print_lint(audit, console)
    refused = f"{audit.false_reject_share:.0%} of the honest forms refused (at most {limits['false_reject']:.0%})"
    are_judged = audit.families[Family.FORMS].judged > 0  # else the share says nothing
    console.print(Text(_verdict(audit, limits, "completions", [refused] if are_judged else []), style="bold"))


def print_exploits(audit: ExploitAudit, limits: AuditLimits) -> None:
    """Print an audit of a run: the table of mutations, what is still paid, the lint, the conclusion and the verdict."""
    console = screen()
    rows = f"{audit.audited} of {counted(audit.rows, 'completion')} audited (of the newest {audit.total_rows:,})"
    _print_evidence(audit, rows, _mutations(audit), "the original", console)
    unjudged = {str(name): reason for name, mutation in audit.mutations.items() if (reason := mutation.not_applicable)}
    print_reasons(console, "not judged", unjudged)
    if audit.changed:
        print_labelled(console, "changed", "it is not the version that the run had, and audited as it is now", "yellow")
    if audit.differ:
        differ = f"{counted(len(audit.differ), 'completion')} of {audit.rows} now earn another score than was recorded"
        print_labelled(console, "differs", differ, "yellow")
    _print_unaudited(audit, console)
    _print_lint(audit, console)
    console.print(Text(f"{audit.conclusion}; {_verdict(audit, limits, 'changed completions')}", style="bold"))


def _print_evidence(audit: Audit, rows: str, tried: Table, full: str, console: Console) -> None:
    """Print the reward and the audit's extent, the table, the findings, and the flaws with their examples."""
    gold = f"gold in {audit.gold_column!r}" if audit.gold_column else "no gold column"
    console.print(Text.assemble((audit.reward, "bold"), f"  {rows}, {gold}"))
    if tried.row_count:
        console.print(tried)
        console.print()
    if audit.total_rows < _FEW_ROWS:
        rows = counted(audit.total_rows, "row" if audit.unit == "line" else audit.unit)
        print_labelled(console, "few rows", f"{rows} show little of what differs; give {_FEW_ROWS} or more", "yellow")
    for finding in audit.findings:
        print_labelled(console, finding.name, finding.words, "bold red")
    if audit.findings:
        console.print()
    if audit.unpaid_references:
        references = counted(audit.unpaid_references, "reference")
        reason = f"the reward pays all {references} of the data no more than an empty answer"
        print_labelled(console, "references", reason, "bold red" if audit.refuses_references else "yellow")
    elif audit.refused_references:
        _print_refused(audit, console)
    for pair in audit.equal_golds[:_SHOWN_LINES]:
        golds = f"“{shortened(pair.gold, 40)}” ({audit.unit} {pair.line}) and “{shortened(pair.other_gold, 40)}”"
        same = f"{golds} ({audit.unit} {pair.other_line}) are paid in each other's place: one answer, and no fault"
        print_labelled(console, "equal golds", same, "dim")
    if audit.paths.untried:
        untried = _listed([shortened(spot, 60) for spot in audit.paths.untried], _SHOWN_FORMS)
        scope = f"{audit.paths.tried:,} of {audit.paths.total:,} changes of JSON answers were tried"
        print_labelled(console, "paths", f"{scope}; more --rows try more; not tried: {untried}", "yellow")
    for name, examples in audit.flaws.items():
        _print_flaw(name, examples, audit, full, console)
        console.print()


def _print_refused(audit: Audit, console: Console) -> None:
    """Print the rows whose references earn what silence does, where others are paid, with what the reward said."""
    lines = list(audit.refused_references.items())
    more = f"\nand {len(lines) - _SHOWN_LINES} more, which --json lists" if len(lines) > _SHOWN_LINES else ""
    rows = "\n".join(f"{audit.unit} {line} {shortened(reason, 200)}" for line, reason in lines[:_SHOWN_LINES])
    head = f"{counted(len(lines), 'reference')} of the data earn what an empty answer does"
    print_labelled(console, "references", f"{head}\n{rows}{more}", "yellow")


def _families(audit: RewardAudit) -> Table:
    """Return the table of the families that were tried: a number where something was judged, a dash where not."""
    families = counts("family", "tried", "wrongly paid", "wrongly refused", "slow", "crashed")
    for name, family in audit.families.items():
        if family.tried:
            is_honest = name is Family.FORMS
            accepted = family.accepted if family.judged and not is_honest else None
            refused = family.refused if family.judged and is_honest else None
            cells = [_count(examples) for examples in (accepted, refused, family.slow, family.crashed)]
            families.add_row(Text(str(name), style="bold"), f"{family.tried:,}", *cells)
    return families


def _count(examples: Sequence[Example] | None) -> Text:
    """Return how many examples there are, in red where there are any; a dash where nothing was judged."""
    if examples is None:
        return Text(NONE, style="dim")
    return Text(f"{len(examples):,}", style="red" if examples else "")


def _mutations(audit: ExploitAudit) -> Table:
    """Return the table of the mutations that were tried; skips and failures have a column only where there are some."""
    tried = {name: mutation for name, mutation in audit.mutations.items() if mutation.tried}
    extras = [name for name in ("skipped", "failed") if any(getattr(mutation, name) for mutation in tried.values())]
    mutations = counts("mutation", "should", "tried", "judged", "kept", "wrongly", *extras, "")
    for column in (mutations.columns[1], mutations.columns[-1]):
        column.justify = "left"
    mutations.columns[0].no_wrap = True
    for name, row in tried.items():
        figures = (row.tried, row.judged, row.kept, len(row.accepted), *(getattr(row, name) for name in extras))
        cells = [f"{figure:,}" for figure in figures]
        conclusion = Text(str(row.conclusion or NONE), style=_STYLES[row.conclusion])
        mutations.add_row(Text(str(name), style="bold"), _SHOULD[row.expected], *cells, conclusion)
    return mutations


def _print_flaw(name: str, examples: Sequence[Example], audit: Audit, full: str, console: Console) -> None:
    """Print a broken rule of thumb with its usual cause and one or two examples, of crashes one of each error.

    ``full`` names the completion with which each is compared.
    """
    failed = name in ("slow", "crashed")
    rows = len({example.line for example in examples})
    title = (name if failed else f"wrongly paid, {name}", "bold red")
    console.print(Text.assemble(title, f"  {counted(len(examples), 'completion')} on {counted(rows, 'row')}"))
    by_name = group_by_key((example.probe.name, example) for example in examples)
    firsts = [group[0] for group in by_name.values()]
    evidence = [firsts[0], *firsts[-1:]][: 1 if failed or len(firsts) == 1 else 2]
    number = "id" if audit.unit == "completion" else audit.unit
    pairs = [(f"  {number} {example.line}", _evidence(example, full, slow=name == "slow")) for example in evidence]
    if name == "crashed":
        pairs = _crashes(examples, audit, number, full)
    names = _listed([shortened(probe, 50) for probe in by_name], _SHOWN_NAMES)
    print_pairs(
        console,
        [
            ("  rule", RULES_OF_THUMB[name].rule),
            ("  cause", cause_of(name, [example.probe for example in examples])),
            ("  tried" if failed else "  paid", Text(names)),
            *pairs,
        ],
    )


def _crashes(examples: Sequence[Example], audit: Audit, number: str, full: str) -> list[tuple[str, Text]]:
    """Return an example of each error, the most frequent first; errors of a row whatever is tried stand apart."""
    row_errors = _row_errors(examples)
    kinds: dict[tuple[str, bool], list[Example]] = {}
    for example in examples:
        is_of_row = example.line in audit.unaudited and row_errors[example.line] == example.outcome.error
        kinds.setdefault((_VALUES.sub("#", example.outcome.error or ""), is_of_row), []).append(example)
    ordered = sorted(kinds.items(), key=lambda kind: -len(kind[1]))
    pairs = []
    for (_, is_of_row), crashes in ordered[:_SHOWN_ERRORS]:
        first, lines = crashes[0], len({example.line for example in crashes})
        extent = f"{counted(len(crashes), 'completion')} on {counted(lines, 'row')}"
        text = Text(f"{extent}, the first: ").append_text(_evidence(first, full, slow=False))
        if is_of_row:
            gold = "without a gold" if first.gold is None else f"with the gold “{shortened(first.gold, 60)}”"
            error = (f"\n{shortened(first.comment or '', 200)}", "dim")
            text = Text.assemble(f"{extent}: whatever is tried fails alike, so the fault is the row's, {gold}", error)
        pairs.append((f"  {number} {first.line}", text))
    if len(ordered) > _SHOWN_ERRORS:
        pairs.append(("", Text(f"and {len(ordered) - _SHOWN_ERRORS} other errors", style="dim")))
    return pairs


def _row_errors(examples: Sequence[Example]) -> dict[int, str | None]:
    """Return by line the error of most calls that crashed there; ``None`` where no error has most of them."""
    by_line = group_by_key((example.line, example.outcome.error or "") for example in examples)
    common = {line: (Counter(errors).most_common(1)[0], len(errors)) for line, errors in by_line.items()}
    return {
        line: error if count > 1 and count * 2 > crashes else None for line, ((error, count), crashes) in common.items()
    }


def _evidence(example: Example, level: str, *, slow: bool) -> Text:
    """Return an example as text: the completion, its score beside a right answer's, and the reward's comment."""
    probe = example.probe
    gold = "" if example.gold is None else f", gold “{shortened(example.gold, 60)}”"
    frame = f", {shortened(probe.frame, 40)}" if probe.frame else ""
    full = "" if example.full is None or slow else f", {level} {example.full:.3g}"
    cost = f" in {example.outcome.duration_s:.2g} s" if slow else ""
    payer = f" by {shortened(example.payer, 60)}" if example.payer else ""
    earned = f"“{excerpt(example.completion, probe.point)}” {_describe_outcome(example.outcome)}{payer}{full}{cost}"
    comment = (f"\n{shortened(example.comment, 200)}", "dim") if example.comment else ""
    return Text.assemble(f"{shortened(probe.name, 60)}{frame}{gold}:\n{earned}", comment)


def _listed(names: Sequence[str], most: int = _SHOWN_FORMS) -> str:
    return "; ".join(names[:most]) + (f"; and {len(names) - most} more" if len(names) > most else "")


def _describe_outcome(outcome: Outcome) -> str:
    """Return the outcome of a call in words: its score, that it is skipped, or failed with the default in place."""
    if outcome.status is Status.SKIPPED:
        return "is skipped"
    failed = "fails and " if outcome.status is Status.FAILED else ""
    return f"{failed}earns {'nothing' if outcome.score is None else format(outcome.score, '.3g')}"


def _print_forms(audit: RewardAudit, console: Console) -> None:
    """Print which honest ways of writing are refused, for a reward that reads answers."""
    forms = audit.families[Family.FORMS]
    if forms.not_applicable is not None or not audit.paid_forms:
        return
    always = [name for name, (paid, tried) in audit.paid_forms.items() if paid == tried][:_SHOWN_FORMS]
    if always:
        print_labelled(console, "always paid", "; ".join(shortened(name, 40) for name in always))
    if audit.frames:
        print_labelled(console, "attacked", _attacked_frames(audit))
    refused = group_by_key((example.probe.name, example) for example in forms.refused)
    if refused:
        names = _listed([f"{shortened(name, 40)} ({len(examples)})" for name, examples in refused.items()])
        print_labelled(console, "refused (rows)", names)


def _print_rules(audit: RewardAudit, console: Console) -> None:
    """Print by which rules more or less than ``--accept-share`` was paid: by an addend alone, or by degrees."""
    for name, count in audit.payers.items():
        reason = f"it wrongly pays {counted(count, 'completion')} by itself, and a trainer pays its weight of that"
        print_labelled(console, f"addend {shortened(name, 60)}", reason, "bold red")
    if audit.graded_rows:
        rows = counted(audit.graded_rows, "row")
        reason = f"on {rows} answers near the gold earn several shares: only full pay counts"
        print_labelled(console, "degrees", f"{reason}, whatever --accept-share says")


def _attacked_frames(audit: RewardAudit) -> str:
    """Return in which frames wrong answers were tried, with the rows of those that were not attacked on all."""
    most = max(audit.frames.values())
    extents = {name: "" if rows == most else f" ({counted(rows, 'row')})" for name, rows in audit.frames.items()}
    others = [f"{shortened(name, 40)}{extent}" for name, extent in extents.items() if name != BARE.name]
    bare = ["bare"] if BARE.name in audit.frames else []
    ways = " and ".join([*bare, *([f"in: {'; '.join(others)}"] if others else [])])
    return f"wrong answers were tried {ways}; other ways of writing were not attacked"


def _print_unaudited(audit: Audit, console: Console) -> None:
    """Print the rows that were not audited, with the reasons."""
    noun = "completion" if audit.unit == "completion" else "row"
    # Values differ, what is wrong with them does not.
    by_kind = group_by_key((why.partition(", got ")[0], (line, why)) for line, why in audit.unaudited.items())
    for pairs in by_kind.values():
        lines, reasons = [line for line, _ in pairs], [reason for _, reason in pairs]
        listed = ", ".join(map(str, lines[:_SHOWN_LINES])) + (", …" if len(lines) > _SHOWN_LINES else "")
        first = ", the first" if len(set(reasons)) > 1 else ""
        rows = f"{counted(len(lines), noun)} ({audit.unit} {listed}){first}: {shortened(reasons[0], 300)}"
        print_labelled(console, "not audited", rows, "yellow")


def _print_lint(audit: Audit, console: Console) -> None:
    for mistake in audit.lint:
        where = f"{_relative(mistake.file)}:{mistake.line}: {mistake.code}"
        print_labelled(console, f"lint {mistake.rule}", where, "bold yellow")
        console.print(Padding(Text(f"{mistake.why}\n{mistake.fix}", style="dim"), (0, 0, 0, 4)))
    for name in audit.unread:
        console.print(Text(f"the source of {name!r} cannot be read: no lint", style="yellow"))


def _relative(file: str) -> str:
    """Return a path as seen from the working folder, where it lies in it."""
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else file


def _verdict(audit: Audit, limits: AuditLimits, noun: str, refused: Sequence[str] = ()) -> str:
    """Return whether an audit passed, with its figures and their limits, or why nothing was judged."""
    verdict, tried = audit.verdict(limits), sum(counts.tried for counts in audit.counts)
    failed = f"{audit.failed:,} slow or crashed (at most {limits['failed']:,})"
    figures = [f"{audit.false_accepts:,} wrongly paid (at most {limits['false_accept']:,})", *refused, failed]
    if audit.why_unjudged is not None:
        judged = sum(counts.judged for counts in audit.counts)
        extent = f"{tried:,} {noun} tried for slow and crashed calls, {judged:,} of them judged"
        figures = [audit.why_unjudged, extent, figures[0], failed]
        if verdict is AuditVerdict.NOT_JUDGED:
            figures.append(f"exit code {NOT_JUDGED}, which a script lets through with || [ $? -eq {NOT_JUDGED} ]")
    if audit.untried:
        stopped = "broken off" if audit.is_interrupted else "stopped by --time-limit"
        figures.insert(0, f"{stopped} with {counted(audit.untried, 'completion')} not tried")
    if audit.refuses_references:
        figures.insert(0, f"all {counted(audit.unpaid_references, 'reference')} of the data refused")
    if audit.findings:
        figures.append(counted(len(audit.findings), "finding"))
    return f"{verdict}{_extent(audit)}: {('; ' if audit.why_unjudged else ', ').join(figures)}"


def _extent(audit: Audit) -> str:
    """Return on how many rows a verdict rests, where some tell nothing and others do; empty otherwise."""
    if not audit.unaudited or not audit.audited:
        return ""
    return f" on {audit.audited:,} of {counted(audit.rows, 'completion' if audit.unit == 'completion' else 'row')}"
