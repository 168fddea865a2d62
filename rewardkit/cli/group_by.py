"""``rewardkit show RUN --group-by COLUMN``: the mean reward of each group of the data, with its curve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from rich.text import Text

from rewardkit.breakdown.data_column import MOST_GROUPS, DataColumn, Grouping
from rewardkit.breakdown.grouped import GroupCurves, GroupMean, completions_by_prompt, group_curves, group_means
from rewardkit.breakdown.run_scores import RunScores, Scores, measure
from rewardkit.cli.exits import finish
from rewardkit.cli.progress import told_progress
from rewardkit.cli.render import ENDLESS, NONE, Cells, Screen, count_or_none, number, one_line, screen, table
from rewardkit.record.conditions import all_conditions
from rewardkit.record.selection import Selection
from rewardkit.replay.recorded_run import Run
from rewardkit.shown.sparkline import sparkline
from rewardkit.shown.text import counted

_NAME_CHARS = 32
_SPARK = 16
_LEAST_PROMPTS = 5  # of fewer, but more than one, no interval is shown


class GroupSearch(NamedTuple):
    """What is grouped, and how."""

    column: str
    split: str
    reward: str | None  # Whose scores are meant; `None` for the total
    where: Sequence[str]  # Conditions that the completions fit
    most: int | None  # Groups that are told apart, at most


def read_scores(run: Run, split: str, where: Sequence[str]) -> Scores:
    """Return a run's completions that fit all conditions, with progress."""
    selection = None if not where else Selection(run, split, all_conditions(where))
    run_scores = RunScores()
    with told_progress("reading scores") as tick:
        run_scores.read(run, tick=tick)
    scores = run_scores.of(split)
    return scores if selection is None else scores.where(np.isin(scores.ids, selection.ids))


def show_groups(run: Run, search: GroupSearch, *, as_json: bool) -> None:
    """Print the groups of a run's completions by a column of the data."""
    scores = read_scores(run, search.split, search.where)
    measured = measure(scores, run.rewards, search.reward)
    column = DataColumn(search.column)
    with told_progress("reading prompts") as tick:
        _, prompts = column.read(run, tick=tick)
    completions = completions_by_prompt(scores, measured, prompts)
    grouping = column.grouping(completions, search.most or MOST_GROUPS)
    means, curves = group_means(scores, measured, grouping), group_curves(scores, measured, grouping)

    def show() -> None:
        console = screen(ENDLESS)
        size = counted(int(measured.has_call.sum()), "completion")
        console.say(
            (run.name, "bold"), f": {measured.name} by {one_line(search.column)}, {size} of {search.split}", fit="wrap"
        )
        if means:
            _print_groups(means, curves, grouping, console)
        else:
            console.say(f"nothing is recorded of {search.split} that fits", fit="wrap")

    result = {
        "name": run.name,
        "split": search.split,
        "column": search.column,
        "measure": measured.name,
        "values": grouping.values,
        "rest": grouping.rest,
        "groups": [row._asdict() for row in means],
        "steps": curves.steps,
        "curves": curves.means,
    }
    finish(result, show, as_json=as_json)


def _print_groups(means: Sequence[GroupMean], curves: GroupCurves, grouping: Grouping, console: Screen) -> None:
    console.print()
    rows: list[Cells] = [
        [
            console.name(one_line(row.label), _NAME_CHARS),
            f"{row.prompts:,}",
            f"{row.scored:,}",
            count_or_none(row.skipped),
            count_or_none(row.failed),
            number(row.mean),
            _interval(row),
            sparkline(line, _SPARK) if any(value is not None for value in line) else NONE,
        ]
        for row, line in zip(means, curves.means, strict=True)
    ]
    head = [one_line(grouping.column), "prompts", "scored", "skipped", "failed", "mean", "95 % interval", "by step"]
    console.print(table(*head, left=1, rows=rows))
    if any(row.skipped or row.failed for row in means):
        console.print(Text("a mean is over the scored completions", style="dim"))


def _interval(row: GroupMean) -> str:
    """Return a mean's interval; of a few prompts it would be wider than what a reward can give."""
    if row.low is None or row.high is None:
        return NONE
    return "too few prompts" if 1 < row.prompts < _LEAST_PROMPTS else f"{number(row.low)} to {number(row.high)}"
