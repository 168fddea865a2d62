"""Why a trouble is missed, or a sound training flagged: what the table says of those that are."""

from __future__ import annotations

from collections.abc import Mapping

MISSES: Mapping[str, str] = {
    "padding": "growth that is paid is left to `length_reward`, and where the judge pays for other things too, length"
    " and score go together by about 0.5, hardly more than at first.",
    "only the format": "in runs of 100 steps the line of the answers is uncertain, and then nothing is flagged.",
    "too hard": "small groups are of one score by chance, and the share of them is too near to that.",
}
"""The reason by the kind's name."""
