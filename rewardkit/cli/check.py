"""``rewardkit check``: before training, whether every row suits every reward, and what a call costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rewardkit.cli.exits import FAILED

if TYPE_CHECKING:
    from rewardkit.audit.honest import Honest
    from rewardkit.audit.rows import AuditRow
    from rewardkit.data import Row
    from rewardkit.decorator import Reward
    from rewardkit.types import Outcome, Rollout

_SHOWN = 10
_SHOWN_LINES = 8
_GROUP = 8
"""Completions of a prompt, as TRL's ``num_generations`` has it."""


@dataclass(frozen=True, slots=True)
class Misfit:
    """A row, by its line, that does not suit a reward, and why; no column where scoring its reference failed."""

    line: int
    column: str | None
    error: str


@dataclass(slots=True)
class Checked:
    """What was found of one reward.

    Attributes:
        reward: Its name.
        rows: Rows coerced.
        misfits: Rows and columns that fail.
        scores: By line, what the reference earns; ``None`` for a skip.
        p50_s: Median seconds of a call; ``None`` where none was made.
        max_s: Seconds of the slowest.
        timeout_s: Its deadline.
        per_1000: What 1,000 completions take, by the metrics of the calls: ``requests``, tokens, ``cost_usd``.
        group: Of how many completions the groups were; ``None`` where the reward scores single ones.
        warnings: What is no failure of a row and makes the reward useless all the same, or surprising.
    """

    reward: str
    rows: int
    timeout_s: float
    misfits: list[Misfit] = field(default_factory=list)
    scores: dict[int, float | None] = field(default_factory=dict)
    p50_s: float | None = None
    max_s: float | None = None
    warnings: list[str] = field(default_factory=list)
    per_1000: dict[str, float] = field(default_factory=dict)
    group: int | None = None


def check_command(
    rewards: Annotated[
        str,
        typer.Argument(
            help="file.py, file.py:name or module:name, several separated by commas; or a reward configuration, YAML.",
            metavar="REWARDS",
            show_default=False,
        ),
    ],
    data: Annotated[
        Path,
        typer.Option(
            help="JSON Lines or Parquet: prompt, and the columns of your data set; - for standard input.",
            metavar="FILE",
            show_default=False,
        ),
    ],
    rows: Annotated[int, typer.Option(min=0, help="Score the references of the first N rows.", metavar="N")] = 16,
    num_generations: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="Completions of a prompt, for rewards of groups; by default as many as a row's completions, else 8.",
            metavar="N",
        ),
    ] = None,
    gold: Annotated[
        str | None,
        typer.Option(help="The column with the right answer; by default it is looked for.", metavar="COLUMN"),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Worker processes; by default the cores at hand, at most 4.", metavar="N")
    ] = None,
    load_timeout: Annotated[
        float | None,
        typer.Option(help="Seconds that a worker may take to load the rewards; by default 60.", metavar="S"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: a list of objects, one a reward.")] = False,
) -> None:
    """Check that every row of your data suits every one of REWARDS, before you train.

    Every column that a reward reads is coerced in every row. Then the right answers of the first rows are scored,
    if the data has them, and the time of a call is shown beside the reward's timeout. Exit code 1 if a row fails;
    a warning, such as that a reward skipped every right answer, does not change it.

    Example: [bold]rewardkit check my_rewards.py --data rows.jsonl[/]
    """
    from rewardkit.cli.rewards import chosen, load_seconds
    from rewardkit.data import read_rows

    load_timeout_s = load_seconds(load_timeout)
    found = chosen(rewards)
    leaves = list(dict.fromkeys(leaf for reward in found.rewards.values() for leaf in reward.leaves))
    lines = read_rows(data)
    checked = {leaf.name: coerced(leaf, lines) for leaf in leaves}
    for leaf in leaves:
        checked[leaf.name].group = _group_size(leaf, lines, num_generations)
    _score(leaves, lines[:rows], gold, data, checked, workers, load_timeout_s)
    if as_json:
        import json

        typer.echo(json.dumps([_ready(one) for one in checked.values()], indent=2))
    else:
        from rewardkit.audit.rows import unit_of

        _print(list(checked.values()), unit_of(data))
    if any(one.misfits for one in checked.values()):
        raise typer.Exit(FAILED)


def coerced(reward: Reward[..., Any], lines: Sequence[Row]) -> Checked:
    """Coerces every column that a reward reads in every row, and gives those that fail."""
    from rewardkit.coercion.rule import ColumnValueError
    from rewardkit.runtime.names import meaning_of

    checked = Checked(reward.name, len(lines), reward.options.timeout_s)
    own = [p for p in reward.spec.parameters if p.column]
    inner = [p for one in reward.inner for p in one.spec.parameters if p.column]
    for name in (p.name for p in own if p.name not in reward.spec.hints):
        kinds = sorted({type(row.values[name]).__name__ for row in lines if name in row.values})
        if kinds:
            said = f"column {name!r} has no annotation, so it is passed on as it is in the data ({', '.join(kinds)})"
            checked.warnings.append(f"{said}; annotate the parameter")
    for row in lines:
        for parameter in own:
            if parameter.required and parameter.name not in row.values:
                meaning = meaning_of(parameter.name, reward.spec.kind)
                words = f"column {parameter.name!r} is missing{'' if meaning is None else f'; {meaning}'}"
                checked.misfits.append(Misfit(row.line, parameter.name, words))
        for parameter in [*own, *inner]:
            if parameter.name not in row.values:
                continue
            assert parameter.coercer is not None
            try:
                parameter.coercer(row.values[parameter.name])
            except ColumnValueError as wrong:
                checked.misfits.append(Misfit(row.line, parameter.name, wrong.describe(parameter.name, None)))
    checked.misfits = list(dict.fromkeys(checked.misfits))  # rewards inside another may read the same column
    return checked


def _score(
    leaves: Sequence[Reward[..., Any]],
    lines: Sequence[Row],
    gold: str | None,
    path: Path,
    checked: Mapping[str, Checked],
    workers: int | None,
    load_timeout_s: float,
) -> None:
    """Score the rows' references with each reward that they suit; in groups those of fewer rows, which cost as much."""
    from rewardkit.runtime.runtime import Runtime

    for leaf in leaves:
        bad = {one.line for one in checked[leaf.name].misfits}
        rows = [(row, form) for row, form in _references(leaf, lines, gold, path) if row.line not in bad]
        if not rows:
            if leaf.spec.is_async and lines:
                said = "no right answer was found to score, so what 1,000 completions take is not known"
                checked[leaf.name].warnings.append(f"{said}; --gold names its column")
            continue
        size = checked[leaf.name].group or 1
        texts = [form.text for _, form in rows]
        rows = rows[: -(-len(rows) // size)]
        rollouts = [one for row, form in rows for one in _group(leaf, row, form, texts, size)]
        runtime = Runtime(
            {leaf.name: leaf}, workers=workers, load_timeout_s=load_timeout_s, max_infrastructure_rate=1.0
        )
        with runtime:
            outcomes = runtime.score(rollouts)[leaf.name]
        _take(checked[leaf.name], [row.line for row, _ in rows], outcomes)


def _references(
    leaf: Reward[..., Any], lines: Sequence[Row], gold: str | None, path: Path
) -> list[tuple[AuditRow, Honest]]:
    """Return rows with the completion that should be right: a reference, else the gold itself; none without either."""
    from rewardkit.audit.honest import framed
    from rewardkit.audit.rows import gold_column, row_of

    if not lines:
        return []
    column = gold_column(lines[0].values, gold, [p.name for p in leaf.spec.parameters if p.column], str(path))
    found = []
    for line in lines:
        row = row_of(line.line, line.values, column)
        forms = [form for form in framed(row) if form.counted]
        if forms:
            found.append((row, forms[0]))
    return found


def _group_size(leaf: Reward[..., Any], lines: Sequence[Row], given: int | None) -> int | None:
    """Return of how many completions a reward's groups are made; ``None`` where it scores single ones."""
    from rewardkit.spec import Kind

    if leaf.spec.kind is not Kind.GROUP:
        return None
    own = lines[0].values.get("completions") if lines else None
    return given or (len(own) if isinstance(own, list | tuple) and len(own) > 1 else _GROUP)


def _group(leaf: Reward[..., Any], row: AuditRow, form: Honest, texts: Sequence[str], size: int) -> list[Rollout]:
    """Return a row's reference, and beside it in a group the other rows', or these with a number where they are few."""
    from dataclasses import replace
    from itertools import count, islice

    from rewardkit.audit.run import form_probe, rollout_of

    probe = form_probe(form)
    first = rollout_of([leaf], row, probe)
    numbered = (f"{form.text} ({number})" for number in count(2))
    others = [*dict.fromkeys(text for text in texts if text != form.text), *islice(numbered, size)]
    return [first, *(rollout_of([leaf], row, replace(probe, text=text, said=None)) for text in others[: size - 1])]


def _take(checked: Checked, lines: Sequence[int], outcomes: Sequence[Outcome]) -> None:
    import statistics

    from rewardkit.runtime.batch import per_1000

    for line, outcome in zip(lines, outcomes[:: checked.group or 1], strict=True):
        if outcome.cause is not None:
            checked.misfits.append(Misfit(line, None, f"scoring its reference: {outcome.cause}: {outcome.error}"))
        else:
            checked.scores[line] = outcome.score
    reasons = [outcome.reason for outcome in outcomes if outcome.cause is None and outcome.score is None]
    if reasons and len(reasons) == len(outcomes):
        checked.warnings.append(_all_skipped(reasons))
    checked.per_1000 = per_1000(outcomes)
    checked.p50_s = statistics.median(outcome.duration_s for outcome in outcomes)
    checked.max_s = max(outcome.duration_s for outcome in outcomes)


def _all_skipped(reasons: Sequence[str | None]) -> str:
    """Says that a reward applied to none of the rows, with the reason that it gave most often."""
    from collections import Counter

    given = Counter(reason for reason in reasons if reason)
    why = f", mostly because: {given.most_common(1)[0][0]}" if given else ""
    what = "the right answer that was scored was" if len(reasons) == 1 else f"all {len(reasons):,} right answers were"
    return f"{what} skipped: the reward does not seem to apply to this data{why}"


def _ready(checked: Checked) -> dict[str, Any]:
    told = asdict(checked)
    told["scores"] = {str(line): score for line, score in checked.scores.items()}
    return {**told, "ok": not checked.misfits}


def _print(checked: Sequence[Checked], unit: str) -> None:
    from rich.text import Text

    from rewardkit.cli.report import duration, number
    from rewardkit.cli.screen import screen, table
    from rewardkit.cli.text import shortened
    from rewardkit.runtime.batch import costs_told
    from rewardkit.shown import plain

    console = screen()
    shown = table("reward", "rows", "failing", "answers", "mean\nscore", "skipped", "call\np50", "slowest", "timeout")
    for column in shown.columns[1:]:
        column.justify = "right"
        column.no_wrap = True
    for one in checked:
        known = [score for score in one.scores.values() if score is not None]
        failing = len({misfit.line for misfit in one.misfits})
        shown.add_row(
            Text(shortened(one.reward, 60), style="bold"),  # folds where the terminal is narrow
            f"{one.rows:,}",
            Text(f"{failing:,}", style="red") if failing else Text("-"),
            f"{len(one.scores):,}" if one.scores else "-",
            number(sum(known) / len(known) if known else None),
            f"{len(one.scores) - len(known):,}" if len(known) < len(one.scores) else "-",
            *(duration(seconds).replace(" min ", " min\n") for seconds in (one.p50_s, one.max_s, one.timeout_s)),
        )
    console.print(shown)
    for one in checked:
        for said in one.warnings:
            console.print(Text.assemble((f"{one.reward}: ", "bold"), ("warning: ", "yellow"), plain(said)))
        if one.per_1000:
            groups = "" if one.group is None else f" in groups of {one.group}"
            took = f"1,000 completions{groups} take {costs_told(one.per_1000)}"
            console.print(Text.assemble((f"{one.reward}: ", "bold"), took))
        gathered = _gathered(one.misfits)
        for misfits in gathered[:_SHOWN]:
            console.print(Text.assemble((f"{one.reward}: ", "bold"), plain(_told(misfits, unit))))
        if len(gathered) > _SHOWN or len(gathered) < len(one.misfits):
            console.print(Text(f"{one.reward}: --json lists all {len(one.misfits):,}", style="dim"))


def _gathered(misfits: Sequence[Misfit]) -> list[list[Misfit]]:
    """Return the misfits of each column together; where a reference was not scored, those of one error."""
    found: dict[tuple[str | None, str], list[Misfit]] = {}
    for one in misfits:
        found.setdefault((one.column, "" if one.column is not None else one.error), []).append(one)
    return list(found.values())


def _told(misfits: Sequence[Misfit], unit: str) -> str:
    """Says in one line what is wrong with a column: its rows and the first error."""
    first = misfits[0]
    if len(misfits) == 1:
        return f"{unit} {first.line}: {first.error}"
    lines = ", ".join(str(one.line) for one in misfits[:_SHOWN_LINES]) + (", …" if len(misfits) > _SHOWN_LINES else "")
    others = "" if all(one.error == first.error for one in misfits) else ", the first"
    return f"{len(misfits):,} rows ({unit} {lines}){others}: {first.error}"
