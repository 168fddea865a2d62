"""``compare``: two runs on the rows that both have."""

from __future__ import annotations

from typing import Any

from rewardkit.dashboard.query import SPLITS, Query
from rewardkit.dashboard.readers import OpenRun
from rewardkit.messages import prompt_text
from rewardkit.replay.run_pairs import LEVELS, RunPart, compare_runs, part_of

EXAMPLES, MOST_EXAMPLES = 10, 200  # Rows of those that change most, unless asked otherwise and at most


def part(opened: OpenRun, query: Query) -> RunPart:
    """Return the completions of a run that are compared. Query: ``split`` and ``step``; see :func:`part_of`."""
    split, step = query.choice("split", SPLITS), query.integer("step", low=0)
    steps = None if step is None else (step, step)
    return opened.cache.get(("pairs", split, step), opened.version, lambda: part_of(opened.run, steps, split))


def compare(opened: OpenRun, other: RunPart, query: Query) -> dict[str, Any]:
    """Return how another run differs from this one on the rows that both have, and what rows can be matched by.

    Query: ``by``, ``right``, ``examples``, and ``split`` and ``step`` of both.
    """
    own = part(opened, query)
    comparison = compare_runs(
        own,
        other,
        by=query.text("by"),
        right=query.number("right"),
        examples=query.integer("examples", EXAMPLES, low=0, high=MOST_EXAMPLES),
        prompt_text=lambda index: prompt_text(opened.run.prompt(index).prompt),
    )
    return {**comparison.as_json(), "ways": [*LEVELS, *(name for name in own.columns if name in other.columns)]}
