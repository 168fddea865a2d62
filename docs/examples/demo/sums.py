"""The demo's data: one-digit sums, put as a chat with one worked example, some held out."""

# ruff: noqa: S311 - dice, not secrets

from __future__ import annotations

import random
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

WORKED = (2, 3)
HELD_OUT_PAIRS = 8


class Split(NamedTuple):
    """Rows to train on and rows that are never trained on, with ``prompt`` and ``answer``."""

    train: list[dict[str, Any]]
    held_out: list[dict[str, Any]]


def split(seed: int) -> Split:
    """Return the sums of two digits from 1 to 9, split by unordered pair.

    Where 3 + 8 is held out, so is 8 + 3: the model cannot have learnt the one from the other. The sum of
    the worked example is in neither part.
    """
    pairs = [pair for pair in combinations_with_replacement(range(1, 10), 2) if pair != WORKED]
    random.Random(seed).shuffle(pairs)
    return Split(_rows(pairs[HELD_OUT_PAIRS:]), _rows(pairs[:HELD_OUT_PAIRS]))


def _rows(pairs: list[tuple[int, int]]) -> list[dict[str, Any]]:
    sums = sorted({order for a, b in pairs for order in ((a, b), (b, a))})
    return [{"prompt": _chat(a, b), "answer": str(a + b)} for a, b in sums]


def _chat(a: int, b: int) -> list[dict[str, str]]:
    first, second = WORKED
    return [
        {"role": "system", "content": "Reply with the number inside <answer> tags."},
        {"role": "user", "content": f"{first} + {second} ="},
        {"role": "assistant", "content": f"<answer>{first + second}</answer>"},
        {"role": "user", "content": f"{a} + {b} ="},
    ]
