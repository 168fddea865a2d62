"""Why a trouble is missed, or a sound training flagged: what the table says of those that are."""

from __future__ import annotations

from collections.abc import Mapping

MISSES: Mapping[str, str] = {
    "padding": "the judge's cap on length and what else it pays for keep the correlation below that of `length_reward`,"
    " and a growth that did not yet reach three times is no `length_drift`.",
    "only the format": "in runs of 100 steps the line of the answers is uncertain, and then nothing is flagged.",
    "too hard": "small groups are of one score by chance, and the share of them is too near to that.",
}
"""The reason by the kind's name."""
