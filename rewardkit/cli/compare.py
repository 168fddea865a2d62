"""``rewardkit compare``: two recorded runs on the same rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from rich.table import Table

from rewardkit.cli.arguments import AsJson, Steps, option
from rewardkit.cli.exits import finish
from rewardkit.cli.render import NONE, Cells, Screen, number, screen, table
from rewardkit.cli.run_argument import run_argument
from rewardkit.messages import prompt_text
from rewardkit.record.places import run_path
from rewardkit.record.reader import RunReader
from rewardkit.replay.pairing import PairedDifference
from rewardkit.replay.run_pairs import EXAMPLES, RunComparison, compare_runs, part_of
from rewardkit.replay.stored import steps_of
from rewardkit.shown.text import counted, plain

_NAME_CHARS = 20


def compare_command(
    first: Annotated[
        str, run_argument("The run to compare with: its folder, its name under runs/, or its address.", "A")
    ],
    other: Annotated[str, run_argument("The run that is compared.", "B")],
    by: Annotated[
        str | None,
        option("What tells rows apart: completion, row, prompt, or a column of the data such as id.", "WHAT"),
    ] = None,
    reward: Annotated[
        list[str] | None, option("Compare this reward, or `reward` for the total; may be repeated.", "NAME")
    ] = None,
    right: Annotated[
        float | None, option("A row is right from this value on; by default halfway from lowest to highest.", "SCORE")
    ] = None,
    steps: Steps = None,
    split: Annotated[
        Literal["train", "eval"] | None, option("Completions of training, or of evaluations; see below.")
    ] = None,
    examples: Annotated[int, option("Show so many of the rows that change most.", "N", min=0)] = EXAMPLES,
    as_json: AsJson = False,
) -> None:
    """Compare run B with run A on the rows that both have: by how much the total and each reward differ.

    The difference is the mean of B's value less A's over these rows, with a 95 % interval clustered by prompt. Wins are
    rows that are better in B; gained are rows that are wrong in A and right in B. A row that failed or was skipped on
    one side is left out and counted. A row with several completions counts with their mean.

    Of a scored file all rows count, of a training its last evaluation, and without one all its completions. Rows are
    matched by prompt and columns; where the completions are the same ones, too; else by an id column, or by the prompt.

    Examples:

    [bold]rewardkit compare base tuned
    rewardkit compare runs/base runs/tuned --by id --reward correct
    rewardkit compare one two --split eval --steps 100[/]
    """
    with RunReader(run_path(first)) as run, RunReader(run_path(other)) as opposite:
        parts = [part_of(opened, steps_of(steps), split) for opened in (run, opposite)]
        comparison = compare_runs(
            *parts,
            by=by,
            rewards=reward or (),
            right=right,
            examples=examples,
            prompt_text=lambda index: prompt_text(run.prompt(index).prompt),
        )
    finish(comparison.as_json(), lambda: _print(comparison, screen()), as_json=as_json)


def _print(comparison: RunComparison, console: Screen) -> None:
    """Print the rows that were matched, the table of measures, what was left out, and the rows that change most."""
    for label, name, what in (
        ("A", comparison.first, comparison.first_what),
        ("B", comparison.other, comparison.other_what),
    ):
        console.say((f"{label}  ", "bold"), f"{plain(name)}: {what}")
    console.say(_matched(comparison), fit="wrap")
    console.print()
    console.whole_table(_measures(comparison.measures))
    for measure in comparison.measures:
        _print_left_out(measure, console)
    for note in comparison.notes:
        console.say((f"note: {note}", "dim"), fit="wrap")
    if comparison.examples:
        console.heading(f"rows that change most, by {comparison.measures[0].name}")
        for row in comparison.examples:
            values = f"{number(row.first)} -> {number(row.other)}"
            ids = f"completion {row.first_id} of A, {row.other_id} of B"
            console.say("  ", (values, "bold"), f"  {ids}  {plain(row.prompt)}", fit="cut")


def _matched(comparison: RunComparison) -> str:
    """Return how rows were matched, how many only one has, and how many have several completions."""
    texts = [f"{counted(comparison.rows, 'row')} in both, matched by {plain(comparison.by)}"]
    alone = {"A": comparison.first_alone, "B": comparison.other_alone}
    texts += [f"{count:,} only in {label}" for label, count in alone.items() if count]
    if any(comparison.repeated):
        texts.append(
            f"{comparison.repeated[0]:,} of A and {comparison.repeated[1]:,} of B have several completions, whose mean"
            " counts"
        )
    return "; ".join(texts)


def _measures(measures: Sequence[PairedDifference]) -> Table:
    """Return the table of what the runs differ by, a line a measure."""
    head = ["", "A", "B", "B - A", "95 % interval", "rows", "wins", "losses", "ties", "gained", "lost"]
    rows: list[Cells] = [
        [
            plain(measure.name),
            *map(number, (measure.first, measure.other, measure.difference)),
            interval_text(measure),
            *(f"{count:,}" for count in (
                measure.pairs, measure.wins, measure.losses, measure.ties, measure.gained, measure.lost,
            )),
        ]
        for measure in measures
    ]  # fmt: skip
    return table(*head, left=1, rows=rows)


def interval_text(measure: PairedDifference) -> str:
    """Return the ends of a difference's interval; a dash where nothing is known of the spread."""
    return NONE if measure.low is None else f"{number(measure.low)} to {number(measure.high)}"


def _print_left_out(measure: PairedDifference, console: Screen) -> None:
    """Print from where on rows are right, and what did not count in a measure."""
    texts = [] if measure.right is None else [f"right from {measure.right:.4g}"]
    texts += [f"{counted(count, 'row')} left out: {plain(reason)}" for reason, count in measure.left_out.items()]
    texts += [
        f"{_reasons(reasons)} of {label} not counted"
        for label, reasons in zip("AB", measure.uncounted, strict=True)
        if reasons
    ]
    if measure.pairs and measure.low is None:
        texts.append("a single question: no interval")
    console.say((f"{plain(measure.name)}: {'; '.join(texts)}", "dim"), fit="wrap")


def _reasons(counts: Mapping[str, int]) -> str:
    total = sum(counts.values())
    return f"{counted(total, 'completion')} ({', '.join(f'{count:,} {reason}' for reason, count in counts.items())})"
