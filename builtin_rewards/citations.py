"""The reward for citing the row's sources by number. Nothing is fetched."""

from __future__ import annotations

import contextlib
import re
from typing import Any

from builtin_rewards.adjustable import adjustable, require
from builtin_rewards.reading.json_values import read_json
from builtin_rewards.reading.markdown import without_code
from builtin_rewards.reading.normalisation import shows
from builtin_rewards.reading.thoughts import after_thinking
from rewardkit import Reward, Score, reward

_MAX_LISTED = 5
_SHOWN_CHARS = 80
_MOST_SOURCES = 10_000  # citations are bits of one integer
_MARKER = re.compile(
    r"[\[\u3010\uff3b][ ]?"
    r"([0-9]++(?>[ ]?[,;\uff0c\u3001\u2013-][ ]?[0-9]++)*+|\^[0-9]++(?>[ ]?[,;\uff0c\u3001][ ]?\^[0-9]++)*+)[ ]?"
    r"(?:(?::[0-9]++)?\u2020[^\[\]\u3010\u3011\uff3b\uff3d\n]*+)?[\]\u3011\uff3d]"
)
_DEFINITION = re.compile(rf"^[ \t]*+{_MARKER.pattern}:", re.MULTILINE)
_INDEX = re.compile(  # an index in code: `rows[1] = 5`, `x[1] + 2`; a letter after a number is a unit: `5 g[1]`
    r"(?<!\w)(?<![0-9]\s)[a-z](?:(?>\[[0-9]++\]){2,}+|\[[0-9]++\](?=[ ]?[-+*/%]|[()\]}]|\.\w))"
    r"|(?<=\w)(?>\[[0-9]++\])++(?=[ ]?[-+*/%!<>=]?=|[ ][<>][ ])"
)
_PARTS = re.compile("[,;\uff0c\u3001]")
_RANGE = re.compile(r"[ ]?[\u2013-][ ]?")
_MAX_DIGITS = 9  # the conversion of a longer number takes quadratic time


@adjustable
def citation(*, minimum: int = 1, all_sources: bool = False, all_or_nothing: bool = False) -> Reward[..., Score]:
    """Return ``citation`` with these settings.

    Args:
        minimum: How many different sources must be cited at least; 1 or more.
        all_sources: Whether every source must be cited; then ``minimum`` is their number.
        all_or_nothing: Score 1.0 or 0.0, with no partial credit.
    """
    require(minimum >= 1, "1 or more", minimum=minimum)

    @reward(score_range=(0, 1))
    def citation(completion: str, sources: Any) -> Score:
        """Whether the completion cites its sources by number, and no source that does not exist, 0 to 1.

        Formula: v / (v + d) * min(v / m, 1), with v the different numbers cited that are sources, d those that are
        not, and m the minimum. 0.0 where nothing is cited, or where the text is only markers. A marker is ``[1]``,
        ``[1, 2]``, ``[1-3]``, the footnote ``[^1]``, ``【1】`` or ``【1†source】``; sources are numbered from 1 to
        10,000. Thoughts, code, and indexes such as ``rows[1] = 5`` or ``x[1] + 2`` are not read (``5 g[1]`` is). The
        lines ``[1]: ...`` and ``[^1]: ...`` define a source and do not cite it, but their numbers must exist.

        Column ``sources``: a list, also as JSON text, or the number of sources. ``None`` for a row without sources.
        Whether a source says what it is cited for is not checked, so citing every source is paid: pair it with a
        reward for the content.
        """
        count = _source_count(sources)
        if not count:
            return Score(None, reason="the row has no sources")
        text = _INDEX.sub(" ", without_code(after_thinking(completion)))
        citations, strays = _count_citations(text, count)
        metrics = {"cited": float(citations), "dangling": float(len(strays))}
        examples = ", ".join(sorted(strays)[:_MAX_LISTED]) + ("..." if len(strays) > _MAX_LISTED else "")
        if not citations:
            return Score(
                0.0, reason=f"it cites {f'unknown sources: {examples}' if examples else 'nothing'}", metrics=metrics
            )
        if not shows(_MARKER.sub("", text).strip(" \n.,;:")):
            return Score(0.0, reason="the text is only markers", metrics=metrics)
        target = count if all_sources else min(minimum, count)
        score = citations / (citations + len(strays)) * min(citations / target, 1.0)
        reason = f"{citations} of {count} sources cited, {target} asked for"
        reason += f"; unknown: {examples}" if examples else ""
        return Score(float(score == 1.0) if all_or_nothing else score, reason=reason, metrics=metrics)

    return citation


def _source_count(sources: object) -> int:
    if isinstance(sources, str):
        with contextlib.suppress(ValueError):
            sources = read_json(sources)
    if isinstance(sources, list | tuple | dict):
        sources = len(sources)
    return min(max(sources, 0), _MOST_SOURCES) if isinstance(sources, int) and not isinstance(sources, bool) else 0


def _count_citations(text: str, count: int) -> tuple[int, set[str]]:
    """Return how many sources are cited, and the unknown ones that are cited or defined, as they are written."""
    mask, strays = 0, set()
    definitions = {(marker, False) for marker in _DEFINITION.findall(text)}
    for marker, is_citation in definitions | {(marker, True) for marker in _MARKER.findall(_DEFINITION.sub(" ", text))}:
        for part in _PARTS.split(marker):
            bounds = [int(number[:_MAX_DIGITS]) for number in _RANGE.split(part.strip(" ^"))]
            if len(bounds) > 2 or not 0 < bounds[0] <= bounds[-1] <= count:
                strays.add(part.strip()[:_SHOWN_CHARS])
            elif is_citation:
                mask |= (1 << bounds[-1]) - (1 << bounds[0] - 1)
    return mask.bit_count(), strays
