"""``rewardkit show RUN --spread NAME``: how the values of a reward lie over the steps, and what moved."""

from __future__ import annotations

from collections.abc import Sequence

from rewardkit.breakdown.histogram import Bin, Histogram, SpreadShift, StepSlice, histogram, shift
from rewardkit.breakdown.run_scores import measure
from rewardkit.cli.exits import finish
from rewardkit.cli.group_by import read_scores
from rewardkit.cli.render import ENDLESS, NONE, Cells, Screen, count_or_none, number, screen, table
from rewardkit.replay.recorded_run import Run
from rewardkit.shown.text import counted

_SLICES = 6  # Stretches of steps that stand side by side


def show_spread(run: Run, name: str, split: str, where: Sequence[str], slices: int | None, *, as_json: bool) -> None:
    """Print the histogram of a reward's values, or of the total, for each of a few stretches of steps."""
    scores = read_scores(run, split, where)
    measured = measure(scores, run.rewards, name)
    spread = histogram(scores, measured, slices or _SLICES)
    change = shift(spread, 0, len(spread.slices) - 1) if spread.slices else SpreadShift(None, None, [])

    def show() -> None:
        console = screen(ENDLESS)
        size = counted(int(spread.counts.sum()), "value")
        console.say((run.name, "bold"), f": spread of {measured.name}, {size} of {split}", fit="wrap")
        if not spread.bins:
            console.say(f"nothing is recorded of {split} that fits and has a value", fit="wrap")
            return
        _print_spread(spread, console)
        if len(spread.slices) > 1:
            console.print()
            console.say(_moves(spread, change), fit="wrap")

    result = {
        "name": run.name,
        "split": split,
        "measure": measured.name,
        "bins": [part._asdict() for part in spread.bins],
        "slices": [part._asdict() for part in spread.slices],
        "counts": spread.counts.tolist(),
        "moved": change.moved,
        "distance": change.distance,
        "flows": [flow._asdict() for flow in change.flows],
    }
    finish(result, show, as_json=as_json)


def _print_spread(spread: Histogram, console: Screen) -> None:
    """Print a row for each bin from the highest down, then the values, the mean, and what has no value."""
    console.print()
    columns = list(zip(spread.slices, spread.counts.tolist(), strict=True))
    rows: list[Cells] = [
        [
            _bin_label(spread.bins[index]),
            *(f"{counts[index] / part.values:.1%}" if part.values else NONE for part, counts in columns),
        ]
        for index in reversed(range(len(spread.bins)))
    ]
    rows += [
        ["mean", *(number(part.mean) for part, _ in columns)],
        ["values", *(count_or_none(part.values) for part, _ in columns)],
        ["skipped", *(count_or_none(part.skipped) for part, _ in columns)],
        ["failed", *(count_or_none(part.failed) for part, _ in columns)],
    ]
    console.print(table("value", *(_slice_label(part) for part, _ in columns), left=1, rows=rows))


def _bin_label(part: Bin) -> str:
    if part.low is None or part.high is None:
        return f"below {part.high:g}" if part.low is None else f"{part.low:g} and more"
    return f"{part.low:g}" if part.low == part.high else f"{part.low:g} to <{part.high:g}"


def _slice_label(part: StepSlice) -> str:
    if part.first is None:
        return "no step"
    return f"step {part.first:,}" if part.first == part.last else f"{part.first:,} to {part.last:,}"


def _moves(spread: Histogram, change: SpreadShift) -> str:
    """Return in words what moved from the first stretch of steps to the last."""
    if change.moved is None or change.distance is None:
        return "the first or the last steps have no values, so nothing is known of what moved"
    if not change.flows:
        return "nothing moved from the first steps to the last"
    moves = "; ".join(
        f"{flow.share:.1%} from {_bin_label(spread.bins[flow.start])} to {_bin_label(spread.bins[flow.end])}"
        for flow in change.flows
    )
    return (
        f"from the first steps to the last {change.moved:.1%} moved, {change.distance:.3g} on average over all: {moves}"
    )
