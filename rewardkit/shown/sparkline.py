"""A curve in one line of text: ``▁▂▅█``."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

_LEVELS = "▁▂▃▄▅▆▇█"
_GAP = "·"


def sparkline(values: Sequence[float | None], width: int = 20) -> str:
    """Return numbers as bars, the lowest and highest of them as the lowest and highest bar.

    Where there are more numbers than ``width``, each place has the mean of its share. Where all are the same, the bars
    are of middle height; what is not a number or ``None`` is a gap, ``·``.
    """
    cells = _in_places(values, width)
    numbers = [value for value in cells if value is not None]
    if not numbers:
        return _GAP * len(cells)
    low, high = min(numbers), max(numbers)
    return "".join(_GAP if value is None else _bar(value, low, high) for value in cells)


def _in_places(values: Sequence[float | None], width: int) -> list[float | None]:
    """Return the mean of each of at most ``width`` parts, ``None`` where a part has no number."""
    count = min(width, len(values))
    edges = [round(index * len(values) / count) for index in range(count + 1)] if count else []
    return [_mean(values[start:end]) for start, end in itertools.pairwise(edges)]


def _mean(values: Sequence[float | None]) -> float | None:
    numbers = [value for value in values if value is not None and math.isfinite(value)]
    return math.fsum(number / len(numbers) for number in numbers) if numbers else None


def _bar(value: float, low: float, high: float) -> str:
    if high / 2 == low / 2:  # the least of all numbers has no half
        return _LEVELS[len(_LEVELS) // 2 - 1]
    share = value / 2 / (high / 2 - low / 2) - low / 2 / (high / 2 - low / 2)
    return _LEVELS[min(len(_LEVELS) - 1, max(0, int(share * len(_LEVELS))))]
