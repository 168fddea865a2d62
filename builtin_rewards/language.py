"""The reward for the language asked for."""

from __future__ import annotations

import re

from builtin_rewards.adjustable import adjustable, require
from builtin_rewards.reading.likely_languages import language_shares
from builtin_rewards.reading.markdown import split_fences, without_code
from builtin_rewards.reading.normalisation import fold
from builtin_rewards.reading.thoughts import after_thinking
from rewardkit import Reward, Score, reward

_CODES = (
    "ace af am an ar ary arz as az ba bcl be bg bn br bs ca crh cs cy da de dz el en eo es et eu ext fa fi fo fr fuv "
    "fy ga gcf gcr gd gl gom grc gu gug guw ha hbo he hi hr ht hu hy id ig is it ja jv ka kab kik kk km kn ko ku ky "
    "la lb lg lij ln lo lt ltg lv mg mk ml mn mr ms mt my ne nl nn no nso oc om or pa pcm pl ps pt qu ro ru rw sa sdh "
    "se si sk sl sn so sq sr st sv sw ta te tg th tk tl tr tt ug uk ur uz uzs vec vi vo wa wuu xh yo yue zh zu"
)
_LANGUAGES = frozenset(_CODES.split())
_ALIASES = {"nb": "no", "nn": "no", "iw": "he", "in": "id", "fil": "tl", "zh-hans": "zh-cn", "zh-hant": "zh-tw"}
# Varieties that the detector tells apart, by the code that covers them too.
_VARIETIES = {"zh": ("wuu", "yue"), "no": ("nn",), "ar": ("ary", "arz"), "he": ("hbo",), "el": ("grc",), "en": ("pcm",)}
# The character set made for each way of writing Chinese, and the one for the other way.
_CHINESE = {"zh-cn": ("gb2312", "big5"), "zh-tw": ("big5", "gb2312")}
_NO_LANGUAGE = "zxx"  # the code of ISO 639-2 for no linguistic content
_LEAST, _DOUBT, _SURE, _SURE_LATIN = 0.25, 0.2, 0.5, 0.6
_PIECES = 12
_PIECE_LETTERS = 40  # fewer tell the detector too little
_LINE_CHARS = 240
_NO_WORDS = re.compile(r"https?://\S+|\\[A-Za-z]+|[0-9=+*/<>^{}$\\|#%_~-]+")
# Chinese, Japanese and Korean letters: each weighs as much as three others.
_WIDE = re.compile("[\u1100-\u11ff\u3005-\u3007\u3041-\ua4cf\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]")
# South and South-East Asian letters weigh two, their vowel signs one.
_SYLLABIC = re.compile("[\u0900-\u109f\u1780-\u17ff]")
_LATIN = re.compile("[A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff]+")
_NOT_LATIN = re.compile("[^\x00-\u036f\u1e00-\u206f]+")
# The marks of fenced blocks that hold text and no code.
_PROSE = ("", "text", "txt", "plaintext", "plain", "markdown", "md", "json")


def _code(language: str) -> str | None:
    tag = language.strip().lower().replace("_", "-")
    for code in (tag, tag.partition("-")[0]):
        code = _ALIASES.get(code, code)
        if code in _LANGUAGES or code in _CHINESE:
            return code
    return None


@adjustable
def language_is(language: str = "en", *, min_letters: int = 20) -> Reward[..., Score]:
    """Return ``language_is`` with these settings.

    Args:
        language: The code of ISO 639, or ``zh-cn`` and ``zh-tw``, for rows without a column ``language``.
        min_letters: Texts with fewer letters, at least 1, are too short to tell.
    """
    default = _code(language)
    require(default, f"one of {', '.join(sorted(_LANGUAGES))}", language=language)
    require(min_letters >= 1, "at least 1", min_letters=min_letters)

    @reward(score_range=(0, 1))
    def language_is(completion: str, language: str | None = None) -> Score:
        """The share of the completion that is in the language asked for, 0 to 1.

        Formula: letters in the language / letters whose language can be told, where a Chinese, Japanese or Korean
        letter counts as three, and one of South or South-East Asia as two. It cuts the text after the thought, without
        code, addresses and LaTeX commands, mostly at line ends, into about 12 pieces of 40 letters or more, with Latin
        letters apart from others; py3langid tells how likely each language is from the first 1,000 characters. Where
        too little stands outside the code, it reads fenced blocks of text. A piece is in the language asked for if no
        other is likelier, and in another if that has a likelihood of 0.6 or more (0.5 for letters that are not Latin)
        and the one asked for less than 0.2. Lists of names, terms, formulas and gibberish are in neither and do not
        count. Characters tell ``zh-cn`` from ``zh-tw``. Source: the language consistency reward of DeepSeek-R1, arXiv
        2501.12948, which counts words. 0.0 for an empty completion. Columns: ``language``, a code, if the row has one.
        ``None`` where too few letters (20, unless set) have a language that can be told, or the row's is unknown.
        """
        code = _code(language) if language else default
        if code is None:
            return Score(None, reason=f"the row's language {language!r} is not known")
        answer = after_thinking(completion)
        if not fold(answer).strip():
            return Score(0.0, reason="the completion is empty")
        text = _NO_WORDS.sub(" ", without_code(answer))
        if _letters(text) < min_letters:
            fenced = [block.body for block in split_fences(answer)[0] if block.mark in _PROSE]
            text += _NO_WORDS.sub(" ", "\n".join(["", *fenced]))
        letters = _letters(text)
        if letters < min_letters:
            return Score(None, reason=f"{letters} letters are too few to tell the language")
        matches, misses = map(sum, zip(*(_count_letters(piece, code) for piece in _pieces(text)), strict=True))
        if (total := matches + misses) < min_letters:
            return Score(None, reason=f"the language of {letters - total} of {letters} letters cannot be told")
        share = matches / total
        return Score(share, reason=f"{share:.0%} of {total} letters are {code}", metrics={"letters": float(total)})

    return language_is


def _count_letters(piece: str, code: str) -> tuple[int, int]:
    """Return how many letters of a piece are in the language, and how many in another."""
    parts = [part for part in (_NOT_LATIN.sub(" ", piece), _LATIN.sub(" ", piece)) if _letters(part)]
    counts = {True: 0, False: 0, None: 0}
    for part in parts:
        counts[_is_in_language(part, code, alone=len(parts) == 1)] += _letters(part)
    return counts[True], counts[False]


def _is_in_language(text: str, code: str, *, alone: bool) -> bool | None:
    """Whether a text is in the language, ``None`` where unknown; Latin names stand in texts of every language."""
    shares = language_shares(text)
    language = code.partition("-")[0]
    share = sum(shares.pop(variety) for variety in (language, *_VARIETIES.get(language, ())))
    likeliest = max(shares, key=shares.__getitem__)
    threshold = _SURE_LATIN if _LATIN.search(text) else _SURE
    if share < max(_LEAST if alone else threshold, shares[likeliest]):
        return False if share < _DOUBT and shares[likeliest] >= threshold and likeliest != _NO_LANGUAGE else None
    own, other = (len(text.encode(charset, "ignore")) for charset in _CHINESE.get(code, ("utf-8", "utf-8")))
    return own >= other


def _letters(text: str) -> int:
    wide, syllabic = (0, 0) if text.isascii() else (len(_WIDE.findall(text)), len(_SYLLABIC.findall(text)))
    return sum(map(str.isalpha, text)) + 2 * wide + syllabic


def _pieces(text: str) -> list[str]:
    minimum = max(_PIECE_LETTERS, _letters(text) // _PIECES)
    width = max(_LINE_CHARS, minimum)
    pieces, size = [""], 0
    for line in text.splitlines():
        for start in range(0, len(line), width):
            if size >= minimum:
                pieces.append("")
                size = 0
            pieces[-1] += line[start : start + width] + "\n"
            size += _letters(line[start : start + width])
    remainder = pieces.pop() if size < _PIECE_LETTERS and len(pieces) > 1 else ""
    return [*pieces[:-1], pieces[-1] + remainder]
