"""Columns that suit rewards and that a trainer refuses, and what to tell of them before a training does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rewardkit.own_columns import ENVIRONMENTS_COLUMN

KEYWORDS = frozenset({"trainer_state", "log_extra", "log_metric", ENVIRONMENTS_COLUMN})
"""Keywords in which TRL passes objects of its own to rewards."""

_OF_CALLS = ("prompts", "completions", "completion", "completion_ids")

TRAINER_NAMES: Mapping[str, tuple[str, ...]] = dict.fromkeys((*sorted(KEYWORDS), *_OF_CALLS), ("TRL",))
"""The trainers that refuse a data set with a column of this name: they pass something of the name to rewards
themselves, so they would drop or overwrite the column, or the call would fail. What builds on TRL refuses it too."""


def trainer_warnings(columns: Iterable[str]) -> list[str]:
    """Return a sentence for each of these columns that a trainer refuses, and for a missing prompt."""
    names = list(columns)
    warnings = [
        f"column {name!r}: {' and '.join(TRAINER_NAMES[name])} refuses a data set with it, because it passes rewards "
        "something of this name itself; rename it before you train"
        for name in names
        if name in TRAINER_NAMES
    ]
    if "prompt" not in names:
        warnings.append("column 'prompt' is missing: TRL and trainers like it generate from it")
    return warnings
