"""Why a trouble is missed, or a sound training flagged: what the table says of those that are."""

from __future__ import annotations

from collections.abc import Mapping

MISSES: Mapping[str, str] = {
    "padding": "length and score go together by 0.46 to 0.72, never surely 0.2 above the first steps, and when the"
    " completions have grown threefold the judge's cap has ended the tie.",
    "only the format": "in runs of 100 steps the line of the answers is uncertain, and then nothing is flagged.",
    "too hard": "small groups are of one score by chance, and the share of them is too near to that.",
}
"""The reason by the kind's name."""
