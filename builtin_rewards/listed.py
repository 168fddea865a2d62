"""Lists in free text: which numbers and which items a completion names as its list."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

from builtin_rewards.folding import after_thinking, fold, normalise

_NUMBER = re.compile(
    r"(?<![\w.])(?P<negated>not\s+)?(?<![\w.])(?P<number>[-+]?(?:\d+(?:\.\d+)?|\.\d+)(?:e[-+]?\d{1,4})?)"
    r"(?:[ \t]{0,2}/[ \t]{0,2}(?P<below>\d+))?",
    re.IGNORECASE,
)
_THOUSANDS = re.compile(r"(?<![\w.,])\d{1,3}(?:,\d{3})+(?![\w,])")
_MARKER = re.compile(r"^[ \t]*(?:(\d{1,4})[.)]|[-*+\u2022])[ \t]+", re.MULTILINE)
_LONGEST_NUMBER = 400
"""Characters of a number that is read; no float that is finite needs more before its point."""


def numbers_listed(text: str) -> list[float]:
    """Gives the numbers that a text lists, in order.

    The rule: what follows the last ``</think>`` counts; in it the last bracketed list (``[...]``, else ``{...}``)
    that holds a number, or, without one, every number. Markers that count lines (``1.``, ``2.``) are no numbers of
    the list. ``1/2`` is one half; ``1,000`` outside brackets is a thousand. ``not 42`` lists something else than
    42, and so does a number past all bounds: both count as NaN, which equals nothing.
    """
    text = fold(after_thinking(text))
    for brackets in ("[]", "{}"):
        inside = _last_bracketed(text, brackets)
        if inside is not None and (found := _numbers(inside)):
            return found
    return _numbers(_THOUSANDS.sub(lambda number: number.group().replace(",", ""), _without_markers(text)))


def _numbers(text: str) -> list[float]:
    return [_value(match) for match in _NUMBER.finditer(text)]


def _value(match: re.Match[str]) -> float:
    if len(match[0]) > _LONGEST_NUMBER:
        return math.nan
    value = float(match["number"])
    if match["below"]:
        below = float(match["below"])
        value = value / below if below else math.nan
    return value if math.isfinite(value) and not match["negated"] else math.nan


def _last_bracketed(text: str, brackets: str) -> str | None:
    """Gives what the last closing bracket closes, outermost."""
    opening, closing = brackets[0], brackets[1]
    last = text.rfind(closing)
    if last < 0:
        return None
    start = text.rfind(opening, 0, last)
    if start < 0 or text.find(closing, start) == last:
        return text[start + 1 : last] if start >= 0 else None
    places = [match.start() for match in re.finditer(f"[{re.escape(brackets)}]", text)]
    depth, end = 0, -1
    for place in reversed(places):
        if text[place] == closing:
            end = place if end < 0 else end
            depth += 1
        elif end >= 0:
            depth -= 1
            if not depth:
                return text[place + 1 : end]
    return None


def _without_markers(text: str) -> str:
    """Takes list markers off the lines; numbers are markers where they count 1, 2, 3 line by line."""
    counted = [marker[1] for marker in _MARKER.finditer(text) if marker[1]]
    counts = len(counted) > 1 and counted == [str(place) for place in range(1, len(counted) + 1)]
    return _MARKER.sub(lambda marker: "" if counts or not marker[1] else marker[0], text)


def matched_numbers(found: Sequence[float], gold: Sequence[float], rel: float, absolute: float) -> int:
    """Gives how many numbers of two lists pair off, each used once, within the tolerance."""
    left, right = sorted(filter(math.isfinite, found)), sorted(filter(math.isfinite, gold))
    i = j = pairs = 0
    while i < len(left) and j < len(right):
        if math.isclose(left[i], right[j], rel_tol=rel, abs_tol=absolute):
            i, j, pairs = i + 1, j + 1, pairs + 1
        elif left[i] < right[j]:
            i += 1
        else:
            j += 1
    return pairs


def items_listed(text: str) -> set[str]:
    """Gives the items that a text lists, each normalised (see :func:`~builtin_rewards.folding.normalise`).

    The rule: what follows the last ``</think>`` counts; in it the last list in square brackets, else the lines
    with list markers, else all lines, each without what stands before a colon. Commas, semicolons, line ends and,
    outside brackets, the words ``and`` and ``or`` part the items.
    """
    text = fold(after_thinking(text))
    inside = _last_bracketed(text, "[]")
    if inside is not None:
        return _items(re.split(r"[,;\n]", inside))
    lines = text.splitlines()
    marked = [line[match.end() :] for line in lines if (match := _MARKER.match(line))]
    if marked:
        return _items(part for line in marked for part in line.split(";"))
    said = [line.partition(":")[2] if ":" in line else line for line in lines]
    return _items(part for line in said for part in re.split(r"[,;]|\band\b|\bor\b|&", line))


def _items(parts: Iterable[str]) -> set[str]:
    return {item for part in parts if (item := normalise(part.strip(" \t\"'")))}
