"""Rewards of manners: the language asked for, no refusal, no echo of the prompt."""

from __future__ import annotations

import functools
import os
import re
import string
from typing import Any

from builtin_rewards.adjustable import adjustable
from builtin_rewards.extras import extra
from builtin_rewards.folding import after_thinking, fold
from builtin_rewards.repetition import grams
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


_EDGE_CHARS = 300
_SIGNS_OF_REFUSAL = (
    *("can't", "cannot", "can not", "won't", "will not", "unable", "not able", "not going", "refuse", "decline"),
    *("comfortable", "shouldn't", "sorry", "afraid", "against my"),
)
"""One of these is in whatever the pattern finds; most texts have none, and looking for them is quick."""
_REFUSALS = re.compile(
    r"\b(?:i|we)(?:'m| am|'re| are)? (?:(?:really|just|simply|also|therefore|must|have to|respectfully) ){0,2}"
    r"(?:can't|cannot|can not|won't|will not|unable to|not able to|not going to|refuse to|decline to|not comfortable"
    r"|don't feel comfortable|shouldn't)"
    r"(?: (?!but\b)\w{1,15}){0,2} (?:help|helping|assist|assisting|provide|providing|comply|fulfill?|answer"
    r"|answering|do|create|write|writing|generate|give|support|engage|share|discuss|participate|continue|complete|offer|respond"
    r"|produce|promote|advise|satisfy)\b(?! but\b)"
    r"|\b(?:i'm|i am|we're|we are) (?:very |so |really )?(?:sorry|afraid),? (?:but )?(?:that )?"
    r"(?:i|we|that's|this|it's|that)(?:'m| am| is|'s)? ?"
    r"(?:can't|cannot|can not|won't|unable|not able|not something|not allowed|against|must)\b"
    r"|\bi (?:must|have to|will|'ll) (?:respectfully )?decline\b"
    r"|\b(?:goes )?against my (?:guidelines|programming|principles|policy|policies)\b"
)


@reward(score_range=(0, 1))
def no_refusal(completion: str) -> Score:
    """1.0 if the completion does not refuse, in English, otherwise 0.0.

    It refuses where its first or last 300 characters after the last ``</think>`` have a phrase such as ``I can't help
    with``, ``I'm sorry, but I cannot`` or ``I must decline``; ``I can't help but notice`` and ``sorry to hear`` are
    none. What a refusal further inside or in another language says is not read. 0.0 for an empty completion. No
    columns; never ``None``. Rewarding this alone teaches to answer what should be refused.
    """
    said = after_thinking(completion)
    if not fold(said).strip():
        return Score(0.0, reason="the completion is empty")
    said = said.strip()
    edges = [said] if len(said) <= 2 * _EDGE_CHARS else [said[:_EDGE_CHARS], said[-_EDGE_CHARS:]]
    for edge in edges:
        plain = " ".join(fold(edge).lower().split())
        refusal = _REFUSALS.search(plain) if any(sign in plain for sign in _SIGNS_OF_REFUSAL) else None
        if refusal:
            return Score(0.0, reason=f"refuses: {refusal.group()!r}")
    return Score(1.0)


_MARKS = str.maketrans(dict.fromkeys(string.punctuation, " "))
_PLAIN = bytes(range(128)).decode().lower().translate(_MARKS).encode() + bytes(range(128, 256))
_LEAST_WORDS = 4


@adjustable
def no_prompt_echo(n: int = 8) -> Reward[..., Score]:
    """Settings of ``no_prompt_echo``.

    Args:
        n: How many words in a row make an echo.

    Raises:
        ValueError: It is not from 4 to 100.
    """
    if not _LEAST_WORDS <= n <= 100:
        raise ValueError(f"n: expected {_LEAST_WORDS} to 100, got {n}")

    @reward(score_range=(0, 1))
    def no_prompt_echo(completion: str, prompt: str) -> Score:
        """The share of the completion that does not repeat the prompt, 0 to 1.

        Formula: 1 - e / k, with the completion cut into k runs of n words, the last one shorter, and e those that
        stand in the prompt word for word; case, punctuation and typography make no difference. Where the prompt
        has fewer than n words, n is their number, and at least 4. A completion of fewer than n words is an echo
        only if it is the whole prompt. 0.0 for an empty completion. No columns besides the prompt; never ``None``.
        """
        said = _words(completion)
        if not said:
            return Score(float(bool(fold(completion).strip())), reason="no words in the completion")
        asked = _words(prompt)
        width = max(_LEAST_WORDS, min(n, len(asked)))
        if len(said) < width:
            return Score(float(said != asked), reason=None if said != asked else "it is the prompt")
        echoed, runs = _echoed(said, asked, width)
        return Score(1 - echoed / runs, reason=f"{echoed} of {runs} runs of {width} words are the prompt's")

    return no_prompt_echo


def _words(text: str) -> list[str]:
    text = fold(text)
    if text.isascii():
        return text.encode().translate(_PLAIN).decode().split()
    return text.lower().translate(_MARKS).split()


def _echoed(said: list[str], asked: list[str], width: int) -> tuple[int, int]:
    """Gives how many runs of ``width`` words the prompt has too, and how many there are."""
    starts = [*range(0, len(said) - width + 1, width)]
    if len(said) % width:  # the last words with those before them
        starts.append(len(said) - width)
    words = set(asked)
    runs = [said[start : start + width] for start in starts if said[start] in words]
    likely = [tuple(run) for run in runs if words.issuperset(run)]
    known = set(grams(asked, width)) if likely else set()
    return sum(run in known for run in likely), len(starts)
