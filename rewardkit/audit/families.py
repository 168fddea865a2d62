"""The families of probes.

``docs/how-to/audit-a-reward.md`` has each one's rule: what is tried, what counts against a reward, and where it does
not apply; its probes are then run for slow and crashed calls only.
"""

from __future__ import annotations

from enum import StrEnum


class Family(StrEnum):
    """What a probe tries."""

    EMPTY = "empty"
    ECHO = "echo"
    FORMAT = "format"
    STUFFING = "stuffing"
    MISPLACED = "misplaced"
    NEGATED = "negated"
    WORK = "work"
    NEIGHBOUR = "neighbour"
    UNFINISHED = "unfinished"
    OTHER_GOLD = "other_gold"
    LOOKALIKE = "lookalike"
    LONG = "long"
    JUDGE = "judge"
    BOMB = "bomb"
    CODE = "code"
    FORMS = "forms"


NEEDS_FRAME = frozenset(
    {
        Family.STUFFING,
        Family.MISPLACED,
        Family.NEGATED,
        Family.NEIGHBOUR,
        Family.UNFINISHED,
        Family.OTHER_GOLD,
        Family.LOOKALIKE,
    }
)
"""Families whose completions could be paid only in a frame in which the right answer is."""
