"""Completions as lines of a terminal and as JSON, for the commands that list them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rewardkit.cli.render import ENDLESS, NONE, Screen, align, one_line
from rewardkit.record.values import Completion
from rewardkit.runtime.row_names import row_name
from rewardkit.shown.text import shortened
from rewardkit.types import Outcome, Status

_COLUMN_CHARS = 12
_LEAST_TEXT = 30


def print_completions(completions: Sequence[Completion], console: Screen, *, when: bool) -> None:
    """Print completions in columns, their number in the run first and the text last.

    The text has a line of its own where the terminal has no room beside the columns.
    """
    names = list(dict.fromkeys(name for row in completions for name in row.outcomes))
    chars = _COLUMN_CHARS if console.is_terminal else ENDLESS
    times = ["step", "epoch"] if when else []
    rows = [["id", *times, *(shortened(name, chars) for name in names), "reward", "advantage", "completion"]]
    rows += [
        [str(row.id), *moment_of(row)[: len(times)], *_scores(row, names), one_line(row.completion)]
        for row in completions
    ]
    lines = align(row[:-1] for row in rows)
    width = max(map(len, lines))
    room = min(_LEAST_TEXT, max(len(row[-1]) for row in rows))
    beside = not console.is_terminal or width + len("  ") + room <= console.width
    for index, (line, row) in enumerate(zip(lines, rows, strict=True)):
        style = "" if index else "bold"
        if beside:
            console.say((f"{line:{width}}  {row[-1]}", style), fit="cut")
        else:
            console.say((line, style or "dim"), fit="cut")
            console.say((f"  {row[-1]}", style), fit="cut")


def completion_name(row: Completion) -> str:
    """Return what names a completion in every command: its number in the run, from 1 in the order of recording."""
    return f"completion {row.id}"


def prompt_name(row: Completion) -> str:
    """Return what names a completion's prompt: its number in the run, and the id that its row has in the data."""
    return row_name(f"prompt {row.prompt_index}", row.columns)


def moment_of(row: Completion) -> tuple[str, str]:
    """Return a completion's step, with its split if that is not train, and its epoch."""
    step = NONE if row.step is None else str(row.step)
    return f"{step} {row.split}" if row.split != "train" else step, NONE if row.epoch is None else f"{row.epoch:.2f}"


def _scores(row: Completion, names: Sequence[str]) -> list[str]:
    """Return each reward's score, or the call's cause or status; then the weighted sum and the advantage."""
    scores = [score_text(row.outcomes.get(name)) for name in names]
    return [*scores, short_number(row.reward), short_number(row.advantage)]


def score_text(outcome: Outcome | None) -> str:
    if outcome is None:
        return NONE
    return short_number(outcome.score) if outcome.status is Status.SCORED else str(outcome.cause or outcome.status)


def short_number(value: float | None) -> str:
    return NONE if value is None else f"{value:.3g}"


def completion_json(row: Completion) -> dict[str, Any]:
    """Return a completion ready for JSON."""
    return {
        **{name: getattr(row, name) for name in (
            "id", "step", "epoch", "split", "rank", "prompt_index", "group", "completion", "tokens", "truncated",
            "total", "reward", "plain_sum", "advantage",
        )},
        "rewards": {
            name: {"score": outcome.score, "status": outcome.status, "reason": outcome.reason, "cause": outcome.cause,
                   "error": outcome.error, "version": row.versions[name]}
            for name, outcome in row.outcomes.items()
        },
    }  # fmt: skip
