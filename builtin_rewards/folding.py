"""How text is made comparable: what a reader takes for the same text becomes the same string.

Owns :func:`fold`, which undoes typography, and :func:`normalise`, the answer normalisation of SQuAD with what
numbers and names need. What counts as an answer is the rewards' work.
"""

from __future__ import annotations

import functools
import re
import string
import unicodedata

_ARTICLES = frozenset(("a", "an", "the"))
_PUNCTUATION = frozenset(string.punctuation)
_DROP = str.maketrans("", "", string.punctuation)
_UNSEEN = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0") | {chr(code) for code in range(0xFE00, 0xFE10)}
_QUOTES = dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u02bc", "'") | dict.fromkeys(
    "\u201c\u201d\u201e\u201f\u2033", '"'
)
_MINUS = "\u2212"
_RAISED = re.compile("[\u2070\u00b9\u00b2\u00b3\u2074-\u2079\u207a\u207b]+")
_MAYBE_MEANT = re.compile(r"[!-/:-@\[-`{-~](?:(?=[0-9.])|(?<=[%+#]))")
_HEAD_CHARS = 256
_BECOME_MARKS = frozenset("\u0f73\u0f75\u0f81\uff9e\uff9f")
"""Characters that NFKC makes combining marks of."""
_MOST_MARKS = 30
"""Combining marks in a row that are kept: the limit of Unicode's Stream-Safe Text Format, UAX #15, section 13."""


def fold(text: str) -> str:
    """Gives the text without typography: NFKC, nothing unseen, plain quotes, hyphens and minus signs.

    Full-width letters and digits become ordinary ones; zero-width characters, direction marks and soft hyphens
    go. A raised exponent becomes ``^2``, a fraction sign ``1/2``, so that 5 squared is not 52. Letters of other
    alphabets that look Latin stay what they are. Of a run of combining marks the first 30 stay; no language has
    more, and putting them in order takes quadratic time.
    """
    if text.isascii():
        return text
    text = _RAISED.sub(lambda run: "^" + run.group(), text)
    chars = set(text)
    text = text.translate({ord(char): _plain(char) for char in chars})
    marks = "".join(sorted(char for char in chars if unicodedata.combining(char) or char in _BECOME_MARKS))
    if marks and len(text) > _MOST_MARKS:
        text = _long_runs(marks).sub(lambda run: run.group()[:_MOST_MARKS], text)
    return unicodedata.normalize("NFKC", text)


@functools.lru_cache(maxsize=256)
def _long_runs(marks: str) -> re.Pattern[str]:
    """Gives the pattern of more marks in a row than are kept."""
    return re.compile(f"[{marks}]{{{_MOST_MARKS + 1},}}")


@functools.lru_cache(maxsize=8192)
def _plain(char: str) -> str:
    """Gives what one character is read as; NFKC comes after."""
    if char < "\u0080":
        return char
    if char in _QUOTES:
        return _QUOTES[char]
    category = unicodedata.category(char)
    if category == "Cf" or char in _UNSEEN:
        return ""
    if category == "Pd" or char == _MINUS:
        return "-"
    if unicodedata.decomposition(char).startswith("<fraction>"):
        return " " + unicodedata.normalize("NFKC", char).replace("\u2044", "/")
    return char


def normalise(text: str) -> str:
    """Gives an answer without case, punctuation, articles and spare blanks, as SQuAD does (arXiv 1606.05250).

    Beyond SQuAD, the text is folded first (see :func:`fold`), and punctuation stays where it changes what is
    said: between digits (``3.5``, ``1/2``, ``10:30``), a sign or point before a number, ``%`` after one, ``+`` and
    ``#`` after a letter (``C++``). Thousands commas go, and so does ``$``, the mark of LaTeX. Where nothing would be
    left, the articles stay, and then the punctuation too: the answer ``A`` is not the empty answer.
    """
    return " ".join(normal_words(text))


def normal_words(text: str) -> list[str]:
    """Gives the words of :func:`normalise`."""
    folded = fold(text).casefold()
    words = _unmarked(folded).split()
    return [word for word in words if word not in _ARTICLES] or words or folded.split()


def is_normally(text: str, gold: str) -> bool:
    """Whether a text normalises to ``gold``, told without normalising much more of it than ``gold`` has."""
    most = 2 * len(gold) + _HEAD_CHARS
    if len(text) > most:
        # The last word of the head may be cut.
        head = _unmarked(fold(text[:most]).casefold()).split()[:-1]
        kept = " ".join(word for word in head if word not in _ARTICLES)
        if kept and not gold.startswith(kept):
            return False
    return normalise(text) == gold


def _unmarked(text: str) -> str:
    """Takes punctuation out of a folded text, all but what is meant."""
    if not text.isascii():
        return "".join(
            char
            for place, char in enumerate(text)
            if char.isalnum() or char.isspace() or not _is_mark(char) or _is_meant(text, place)
        )
    meant = [match.start() for match in _MAYBE_MEANT.finditer(text) if _is_meant(text, match.start())]
    if not meant:
        return text.translate(_DROP)
    ends = [*meant, len(text)]
    starts = [0, *(place + 1 for place in meant)]
    pieces = [text[start:end].translate(_DROP) for start, end in zip(starts, ends, strict=True)]
    return "".join(piece + text[end : end + 1] for piece, end in zip(pieces, ends, strict=True))


def _is_mark(char: str) -> bool:
    return char in _PUNCTUATION if char < "\u0080" else unicodedata.category(char).startswith("P")


def _is_meant(text: str, place: int) -> bool:
    """Whether the punctuation there changes what the text says."""
    char, before, after = text[place], text[place - 1 : place], text[place + 1 : place + 2]
    if before.isdigit() and after.isdigit():
        group = text[place + 1 : place + 5]
        return not (char == "," and group[:3].isdigit() and len(group) >= 3 and not group[3:].isdigit())
    if char in "+#" and (before.isalpha() or (before == char and text[place - 2 : place - 1].isalpha())):
        return True
    if char in "-+." and not before.isalnum():
        return after.isdigit() or (char != "." and after == "." and text[place + 2 : place + 3].isdigit())
    return char == "%" and before.isdigit()


def after_thinking(text: str) -> str:
    """Gives what follows the last ``</think>``, the whole text where there is none."""
    place = text.rfind("</think>")
    return text if place < 0 else text[place + len("</think>") :]
