"""How text is made comparable: what a reader takes for the same text becomes the same string.

Owns :func:`fold`, which undoes typography, and :func:`normalise`, the answer normalisation of SQuAD with what
numbers and names need. What counts as an answer is the rewards' work.
"""

from __future__ import annotations

import functools
import html
import re
import string
import unicodedata

_ARTICLES = frozenset(("a", "an", "the"))
_PUNCTUATION = frozenset(string.punctuation)
_MAYBE_MARK = re.compile(r"[^\w\s]|_")
_UNSEEN = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0") | {chr(code) for code in range(0xFE00, 0xFE10)}
_QUOTES = dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u02bc", "'") | dict.fromkeys(
    "\u201c\u201d\u201e\u201f\u2033", '"'
)
_MINUS = "\u2212"
_RAISED = re.compile("[\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079\u207a\u207b]+")
_LOWERED = re.compile("[\u2080-\u208b]+")
_BECOME_MARKS = frozenset("\u0f73\u0f75\u0f81\uff9e\uff9f")
"""Characters that NFKC makes combining marks of."""
_MOST_MARKS = 30
"""Combining marks in a row that are kept: the limit of Unicode's Stream-Safe Text Format, UAX #15, section 13."""
_STROKES = re.compile("[\u0334-\u0338\u20d2\u20d3\u20e5\u20eb]")
SHOWN_OTHERWISE = "marks of direction show the text otherwise than it is read"
_SAYING_ASCII = re.compile(r"[A-Za-z0-9$+<=>]")
_VISIBLE_ASCII = re.compile(r"[!-~]")
_SHOWING_NOTHING = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Characters that are letters or symbols by category and yet show nothing."""


def fold(text: str) -> str:
    """Gives the text without typography: NFKC, nothing unseen, plain quotes, hyphens and minus signs.

    Full-width letters and digits become ordinary ones; zero-width characters, direction marks and soft hyphens
    go. A raised exponent becomes ``^2``, a lowered index ``_2``, a fraction sign ``1/2``, so that neither 5 squared
    nor 5 with the index 2 is 52. Letters of other alphabets that look Latin stay what they are. Of a run of combining
    marks the first 30 stay; no language has more, and putting them in order takes quadratic time.
    """
    if text.isascii():
        return text
    text = _LOWERED.sub(r"_\g<0>", _RAISED.sub(r"^\g<0>", text))
    for char in beyond_ascii(text):  # what one becomes is ASCII, so their order makes no difference
        text = text.replace(char, _plain(char))
    marks = "".join(char for char in beyond_ascii(text) if unicodedata.combining(char) or char in _BECOME_MARKS)
    if marks and len(text) > _MOST_MARKS:
        text = re.sub(f"([{marks}]{{{_MOST_MARKS}}})[{marks}]+", r"\1", text)
    return unicodedata.normalize("NFKC", text)


def shown_otherwise(text: str) -> bool:
    """Whether marks that override the direction are in a text: a reader sees 24 where 42 is written."""
    return not text.isascii() and ("\u202d" in text or "\u202e" in text)


def struck_out(text: str) -> bool:
    """Whether strokes run through characters of a text; the one that makes an unequal sign is none of them."""
    return not text.isascii() and _STROKES.search(unicodedata.normalize("NFC", text)) is not None


def lowered(text: str) -> str:
    """Gives the text in lower case, every character in its place."""
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(low if len(low := char.lower()) == 1 else char for char in text)


def beyond_ascii(text: str) -> set[str]:
    """Gives the characters of a text that are not ASCII."""
    return {char for char in set(text) if char > "\x7f"}


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
    words = _MAYBE_MARK.sub(lambda mark: "" if _is_dropped(folded, mark.start()) else mark[0], folded).split()
    return [word for word in words if word not in _ARTICLES] or words or folded.split()


def _is_dropped(text: str, place: int) -> bool:
    return _is_mark(text[place]) and not _is_meant(text, place)


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


def shows(text: str) -> bool:
    """Whether a text has a character that a reader sees: no white space, control, zero-width or blank one."""
    return _has(text, _VISIBLE_ASCII, "LNPS")


def says(text: str) -> bool:
    """Whether a text has a letter, a digit or a sign such as ``+``; ``.`` and ``&nbsp;`` say nothing."""
    return _has(html.unescape(text) if "&" in text else text, _SAYING_ASCII, "LNS")


def _has(text: str, in_ascii: re.Pattern[str], kinds: str) -> bool:
    return in_ascii.search(text) is not None or any(
        unicodedata.category(char)[0] in kinds for char in beyond_ascii(text) - _SHOWING_NOTHING
    )
