"""What a detector says of itself: summary, formula, source and limits, read from its docstring."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from typing import NamedTuple

from rewardkit.health.detectors import Detector

FAMILIES: Mapping[str, str] = {
    "signal": "Signal: is there anything to learn from?",
    "hacking": "Hacking: is it learned for the wrong reason?",
    "faults": "Faults: does the scoring work?",
    "noise": "Noise: does the reward agree with itself?",
}
"""The families of detectors, with the question that each answers."""
_PART = re.compile(r"^(Formula|Source|Limits): ", re.MULTILINE)


class About(NamedTuple):
    """What a detector says of itself.

    Attributes:
        summary: What it finds, in a sentence.
        parts: ``Formula``, ``Source`` and ``Limits``, in sentences.
    """

    summary: str
    parts: Mapping[str, str]


def about(detector: Detector) -> About:
    """Return what a detector's docstring says of it."""
    text = inspect.getdoc(detector.find) or ""
    first, _, rest = text.partition("\n\n")
    parts = {match[1]: _flowing(rest[match.end() : _end(rest, match.end())]) for match in _PART.finditer(rest)}
    return About(_flowing(first), {name: f"{text[:1].upper()}{text[1:]}" for name, text in parts.items()})


def _end(text: str, start: int) -> int:
    after = _PART.search(text, start)
    return after.start() if after else len(text)


def _flowing(text: str) -> str:
    return " ".join(text.split()).replace("``", "`")
