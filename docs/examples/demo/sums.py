"""The demo's data: one-digit sums after one worked example, some of them held out."""

from __future__ import annotations

import random
from itertools import combinations_with_replacement
from typing import NamedTuple

WORKED = (2, 3)
HELD_OUT_PAIRS = 12


class Split(NamedTuple):
    """Rows to train on and rows that are never trained on, with ``prompt`` and ``answer``."""

    train: list[dict[str, str]]
    held_out: list[dict[str, str]]


def split(seed: int, end: str) -> Split:
    """Return the sums of two digits from 1 to 9, split by unordered pair.

    Where 3 + 8 is held out, so is 8 + 3: the model cannot have learned one from the other. The sum of the worked
    example is in neither part.

    Args:
        seed: Decides which pairs are held out.
        end: The model's end token, which ends the answer of the worked example.
    """
    pairs = [pair for pair in combinations_with_replacement(range(1, 10), 2) if pair != WORKED]
    random.Random(seed).shuffle(pairs)
    return Split(_rows(pairs[HELD_OUT_PAIRS:], end), _rows(pairs[:HELD_OUT_PAIRS], end))


def _rows(pairs: list[tuple[int, int]], end: str) -> list[dict[str, str]]:
    first, second = WORKED
    worked = f"{first} + {second} = {first + second}{end}\n"
    sums = sorted({order for a, b in pairs for order in ((a, b), (b, a))})
    return [{"prompt": f"{worked}{a} + {b} =", "answer": str(a + b)} for a, b in sums]
