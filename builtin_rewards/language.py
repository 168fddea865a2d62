"""The reward for the language asked for."""

from __future__ import annotations

import functools
import os
import re
from typing import Any

from builtin_rewards.adjustable import adjustable
from builtin_rewards.extras import extra
from builtin_rewards.reading.typography import fold
from rewardkit import Reward, Score, reward

_LANGUAGES = frozenset(
    re.findall(
        "[a-z-]+",
        "af ar bg bn ca cs cy da de el en es et fa fi fr gu he hi hr hu id it ja kn ko lt lv mk ml mr ne nl no pa pl "
        "pt ro ru sk sl so sq sv sw ta te th tl tr uk ur vi zh zh-cn zh-tw",
    )
)
_ALIASES = {"nb": "no", "nn": "no", "iw": "he", "in": "id", "fil": "tl", "zh-hans": "zh-cn", "zh-hant": "zh-tw"}
_SEED = 0
_PIECES = 12
_PIECE_CHARS = 1_000
_PIECE_LETTERS = 40
_LINE_CHARS = 240


@functools.cache
def _detectors() -> Any:
    """Gives langdetect's factory with a seed of its own: the library's shared one belongs to no one."""
    module = extra("langdetect.detector_factory")
    factory = module.DetectorFactory()
    factory.set_seed(_SEED)
    factory.load_profile(os.path.join(os.path.dirname(module.__file__), "profiles"))
    return factory


def _shares(text: str) -> dict[str, float]:
    """Gives the languages of a piece of text and how sure langdetect is of each."""
    detector = _detectors().create()
    detector.append(text)
    try:
        return {found.lang: found.prob for found in detector.get_probabilities()}
    except extra("langdetect.lang_detect_exception").LangDetectException:
        return {}  # no letter that it knows


def _code(language: str) -> str | None:
    """Gives langdetect's code for a language tag such as ``en``, ``EN-us`` or ``zh``; ``None`` for an unknown one."""
    tag = language.strip().lower().replace("_", "-")
    for known in (tag, tag.partition("-")[0]):
        known = _ALIASES.get(known, known)
        if known in _LANGUAGES:
            return known
    return None


def _is_spoken(code: str, shares: dict[str, float]) -> float:
    """Gives how sure it is that the language is spoken; ``zh`` is either way of writing Chinese."""
    return min(1.0, sum(share for found, share in shares.items() if found == code or found.startswith(code + "-")))


@adjustable
def language_is(language: str = "en", *, min_letters: int = 20) -> Reward[..., Score]:
    """Settings of ``language_is``.

    Args:
        language: The language's code, as ISO 639-1 has it; ``zh-cn`` and ``zh-tw`` besides ``zh``. Rows with a column
            ``language`` have their own.
        min_letters: Texts with fewer letters are too short to tell.

    Raises:
        ValueError: langdetect does not know the language, or the number is not positive.
    """
    usual = _code(language)
    if usual is None:
        raise ValueError(f"language: expected one of {', '.join(sorted(_LANGUAGES))}, got {language!r}")
    if min_letters < 1:
        raise ValueError(f"min_letters: expected at least 1, got {min_letters}")

    @reward(score_range=(0, 1))
    def language_is(completion: str, language: str | None = None) -> Score:
        """The share of the completion that is in the language asked for, 0 to 1.

        Formula: letters in the language / letters. The text without fenced code is cut, mostly at line ends, into
        about 12 pieces at most, of 40 characters or more; langdetect, with a fixed seed, says of the first 1,000
        characters of each how likely the language is, and a likelihood of a half or more counts as the language.
        Source: the language consistency reward of DeepSeek-R1, arXiv 2501.12948, which counts words. 0.0 for an
        empty completion. Close relatives (Danish and Norwegian) are easily mistaken. Columns: ``language``, a code,
        if the row has one.
        ``None`` where the text has too few letters to tell (20, unless set), or the row's language is unknown.
        """
        code = _code(language) if language else usual
        if code is None:
            return Score(None, reason=f"the row's language {language!r} is not known")
        if not fold(completion).strip():
            return Score(0.0, reason="the completion is empty")
        pieces = _pieces(fold("".join(completion.split("```")[::2])))
        letters = sum(count for _, count in pieces)
        if letters < min_letters:
            return Score(None, reason=f"{letters} letters are too few to tell the language")
        spoken = sum(count for piece, count in pieces if _is_spoken(code, _shares(piece)) >= 0.5)
        share = spoken / letters
        return Score(share, reason=f"{share:.0%} of {letters} letters are {code}", metrics={"letters": letters})

    return language_is


def _pieces(text: str) -> list[tuple[str, int]]:
    """Gives pieces of whole lines and how many letters each has; a long line is cut."""
    least = max(_PIECE_LETTERS, -(-len(text) // _PIECES))
    pieces: list[tuple[str, int]] = []
    lines: list[str] = []
    size = 0
    widest = max(_LINE_CHARS, least)
    for line in text.splitlines():
        for start in range(0, len(line), widest):
            lines.append(line[start : start + widest])
            size += len(lines[-1])
            if size >= least:
                pieces.append(_piece(lines))
                lines, size = [], 0
    rest = _piece(lines)
    if pieces and rest[1] < _PIECE_LETTERS:
        last, count = pieces.pop()
        rest = (last + " " + rest[0], count + rest[1])
    return [piece for piece in [*pieces, rest] if piece[1]]


def _piece(lines: list[str]) -> tuple[str, int]:
    joined = " ".join(lines)
    return joined[:_PIECE_CHARS], sum(map(str.isalpha, joined))
