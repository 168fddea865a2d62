"""Recorded completions as columns: one numpy array for each thing that is known, for whoever computes over many."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rewardkit.types import Cause

Floats: TypeAlias = NDArray[np.float64]
Whole: TypeAlias = NDArray[np.int64]
Words: TypeAlias = NDArray[np.str_]
Bytes: TypeAlias = NDArray[np.uint8]
Mask: TypeAlias = NDArray[np.bool_]
CAUSE_TYPE = f"<U{max(map(len, Cause))}"  # numpy's type of a column of causes


@dataclass(frozen=True, slots=True)
class CompletionTable:
    """Completions in the order of recording; every array has one entry a completion, shape (n,).

    Attributes:
        truncated: 1 where the completion was cut at the token limit, 0 where not, ``nan`` where that is not
            known.
        status: By reward, ``s`` for scored, ``k`` for skipped, ``f`` for failed, and empty where it was not asked.
    """

    ids: Whole  # Their numbers in the record
    steps: Whole  # Optimizer steps done; -1 where that is not known
    prompts: Whole  # The number of the prompt in the record
    groups: Whole  # The number of the group, unique within the table
    tokens: Floats  # Lengths in tokens; `nan` where that is not known
    truncated: Floats
    plain_sums: Floats  # Sums without weights, of the rewards that weigh anything; `nan` without any such score
    rewards: Floats  # Totals: weighted sums, as the trainer computes them; `nan` for a completion without one
    advantages: Floats  # What the trainer makes of them; `nan` where that is not known
    scores: Mapping[str, Floats]  # By reward, the score; `nan` for a completion without one
    status: Mapping[str, Words]
    causes: Mapping[str, Words]  # By reward, why it failed, such as `timeout`; empty where it did not
    seconds: Mapping[str, Floats]  # By reward, how long its last attempt took
    versions: Mapping[str, Whole]  # By reward, the number of its version in this run; 0 where it was not asked
    weights: Mapping[str, Floats]  # By reward, its weight in `rewards`

    def __len__(self) -> int:
        return len(self.ids)

    def where(self, chosen: NDArray[Any]) -> CompletionTable:
        """Return the completions at some indices, or where a mask is true."""
        parts: dict[str, Any] = {}
        for part in fields(self):
            value = getattr(self, part.name)
            if isinstance(value, Mapping):
                parts[part.name] = {name: column[chosen] for name, column in value.items()}
            else:
                parts[part.name] = value[chosen]
        return CompletionTable(**parts)
