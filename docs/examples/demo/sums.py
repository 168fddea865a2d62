"""The demo's data: sums of two numbers after one worked example, some of them held out."""

# ruff: noqa: S311 - dice, not secrets

from __future__ import annotations

import random
from typing import NamedTuple

WORKED = (23, 14)
HELD_OUT = 60


class Split(NamedTuple):
    """Rows to train on and rows that are never trained on, with ``prompt`` and ``answer``."""

    train: list[dict[str, str]]
    held_out: list[dict[str, str]]


def split(seed: int, end: str) -> Split:
    """Return the sums of a number up to 39 and one up to 19, 569 in all, of which 60 are held out.

    The larger number comes first, so no held-out sum is one to train on with its numbers swapped. The sum of the
    worked example is in neither part.

    Args:
        seed: Decides which sums are held out.
        end: The model's end token, which ends the answer of the worked example.
    """
    pairs = [(a, b) for a in range(1, 40) for b in range(1, min(a, 19) + 1) if (a, b) != WORKED]
    random.Random(seed).shuffle(pairs)
    return Split([_row(a, b, end) for a, b in pairs[HELD_OUT:]], [_row(a, b, end) for a, b in pairs[:HELD_OUT]])


def _row(a: int, b: int, end: str) -> dict[str, str]:
    first, second = WORKED
    return {"prompt": f"{first} + {second} = {first + second}{end}\n{a} + {b} =", "answer": str(a + b)}
