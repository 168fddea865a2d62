"""A curve in one line of text: ``▁▂▅█``."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

_LEVELS = "▁▂▃▄▅▆▇█"
_GAP = "·"


def sparkline(values: Sequence[float | None], width: int = 20) -> str:
    """Return numbers as bars, the lowest and highest of them as the lowest and highest bar.

    Where there are more numbers than places, each place has the mean of its share. Where all are the same, the bars
    are of middle height; what is not a number is a gap, ``·``.

    Args:
        values: The numbers in order; ``None`` where one is not known.
        width: The most places.
    """
    places = _in_places(values, width)
    known = [one for one in places if one is not None]
    if not known:
        return _GAP * len(places)
    low, high = min(known), max(known)
    return "".join(_GAP if one is None else _bar(one, low, high) for one in places)


def _in_places(values: Sequence[float | None], width: int) -> list[float | None]:
    count = min(width, len(values))
    edges = [round(place * len(values) / count) for place in range(count + 1)] if count else []
    return [_mean(values[start:end]) for start, end in itertools.pairwise(edges)]


def _mean(values: Sequence[float | None]) -> float | None:
    known = [one for one in values if one is not None and math.isfinite(one)]
    return math.fsum(one / len(known) for one in known) if known else None


def _bar(value: float, low: float, high: float) -> str:
    if high / 2 == low / 2:  # the least of all numbers has no half
        return _LEVELS[len(_LEVELS) // 2 - 1]
    share = value / 2 / (high / 2 - low / 2) - low / 2 / (high / 2 - low / 2)
    return _LEVELS[min(len(_LEVELS) - 1, max(0, int(share * len(_LEVELS))))]
