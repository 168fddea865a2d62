"""One probe: a completion that is tried on a row, and what it is evidence of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rewardkit.audit.families import Family


@dataclass(frozen=True, slots=True)
class Probe:
    """A completion to try.

    Attributes:
        family: The family it belongs to.
        name: What it is, in a few words.
        text: The completion.
        judged: Whether being paid counts against the reward; otherwise only slow and crashed calls do.
        columns: Columns to score it under instead of the row's own; ``None`` for these.
    """

    family: Family
    name: str
    text: str
    judged: bool = True
    columns: Mapping[str, Any] | None = None
