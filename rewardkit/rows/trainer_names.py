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


_OTHER_NAMES = {
    "prompt": ("question", "problem", "instruction", "query", "input", "task", "description", "text", "messages"),
    "completion": ("response", "output", "generation", "generated_text", "prediction", "model_output"),
}
"""What public data sets call these two columns."""


def rename_hint(name: str, columns: Iterable[str]) -> str:
    """Return which column of a data set should be renamed to a missing one, as an error or warning goes on.

    Args:
        name: The missing column, ``prompt`` or ``completion``.
        columns: The columns that the data set has.

    Returns:
        Text that begins with a semicolon; ``""`` where no column has a name that public data sets use for it.
    """
    by_lower = {column.lower(): column for column in columns}
    other = next((by_lower[other] for other in _OTHER_NAMES.get(name, ()) if other in by_lower), None)
    return f"; rename {other!r} to {name!r} if that is it" if other else ""


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
        hint = rename_hint("prompt", names)
        warnings.append(f"column 'prompt' is missing: TRL and trainers like it generate from it{hint}")
    return warnings
