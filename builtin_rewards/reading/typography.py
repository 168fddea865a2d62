"""How text is made comparable: what a reader takes for the same text becomes the same string.

Owns :func:`fold`, which undoes typography, and :func:`normalise`, the answer normalisation of SQuAD with what
numbers and names need. What counts as an answer is the rewards' work.

Texts are sifted as bytes where they can be, for a regular expression, and a loop the more so, takes many times as
long on each character.
"""

from __future__ import annotations

import functools
import html
import re
import string
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import AnyStr

_ARTICLES = frozenset(("a", "an", "the"))
_PUNCTUATION = frozenset(string.punctuation)
_MARKS = string.punctuation.encode()
_ASCII = bytes(range(128))
_BLANKS = b" \t\n\v\f\r\x1c\x1d\x1e\x1f"
"""What ``str.split`` parts words of ASCII at."""
_SPACED = bytes.maketrans(_BLANKS, b" " * len(_BLANKS))
_SHAPED = bytes(ord(" ") if code in _BLANKS else ord("x") for code in range(256))
_DIGIT, _MARK, _OTHER = b"0. "
_KINDS = bytes(
    _DIGIT if chr(code) in string.digits else _MARK if chr(code) in _PUNCTUATION else _OTHER for code in range(256)
)
_APART = 0x80
_JOINED = bytes(code & 0x7F for code in range(256))
"""Punctuation that stays is set apart by the bit that ASCII does not use."""
_FEW = 8
"""So many things are looked for one after the other; more of them in one pass."""
_UNSEEN = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0") | {chr(code) for code in range(0xFE00, 0xFE10)}
_QUOTES = dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u02bc", "'") | dict.fromkeys(
    "\u201c\u201d\u201e\u201f\u2033", '"'
)
_MINUS = "\u2212"
_RAISED_CHARS = "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079\u207a\u207b"
_RAISED = re.compile(f"[{_RAISED_CHARS}]+")
_LOWERED_CHARS = "".join(map(chr, range(0x2080, 0x208C)))
_LOWERED = re.compile(f"[{_LOWERED_CHARS}]+")
_HEAD_CHARS = 64
_BECOME_MARKS = frozenset("\u0f73\u0f75\u0f81\uff9e\uff9f")
"""Characters that NFKC makes combining marks of."""
_MOST_MARKS = 30
"""Combining marks in a row that are kept: the limit of Unicode's Stream-Safe Text Format, UAX #15, section 13."""


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
    chars = beyond_ascii(text)
    if not chars.isdisjoint(_RAISED_CHARS):
        text = _RAISED.sub(lambda run: "^" + run.group(), text)
    if not chars.isdisjoint(_LOWERED_CHARS):
        text = _LOWERED.sub(lambda run: "_" + run.group(), text)
    changed = {char: plain for char in chars if (plain := _plain(char)) != char}
    if len(changed) > _FEW:
        text = text.translate({ord(char): plain for char, plain in changed.items()})
    else:  # what a character becomes is ASCII, so one change cannot undo another
        for char, plain in changed.items():
            text = text.replace(char, plain)
    marks = "".join(sorted(char for char in chars if unicodedata.combining(char) or char in _BECOME_MARKS))
    if marks and len(text) > _MOST_MARKS:
        text = _long_runs(marks).sub(lambda run: run.group()[:_MOST_MARKS], text)
    return unicodedata.normalize("NFKC", text)


def beyond_ascii(text: str) -> set[str]:
    """Gives the characters of a text that are not ASCII; bytes are sifted much faster than characters."""
    return set(text.encode("utf-8", "surrogatepass").translate(None, _ASCII).decode("utf-8", "surrogatepass"))


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
    return _kept_words(_unmarked(folded).split(), folded)


def normalise_lines(text: str) -> list[str]:
    """Gives each line of a text normalised, faster than one by one. Line feeds part lines, nothing else does."""
    folded = fold(text).casefold()
    plain = _unmarked(folded)
    pairs = zip(plain.split("\n"), folded.split("\n"), strict=True)
    return [" ".join(_kept_words(line.split(), before)) for line, before in pairs]


def _kept_words(words: list[str], folded: str) -> list[str]:
    if _ARTICLES.isdisjoint(words):
        return words or folded.split()
    return [word for word in words if word not in _ARTICLES] or words


def tally(text: str, wanted: Collection[str]) -> tuple[int, dict[str, int]]:
    """Gives how many words a text has when it is normalised, and how many there are of each that is wanted.

    Few words are counted in the text as a whole, for parting it takes longer.

    Args:
        text: Any text.
        wanted: Normalised words, each once.
    """
    folded = fold(text).casefold()
    if len(wanted) <= _FEW and _ARTICLES.isdisjoint(wanted) and _has_plain_blanks(folded):
        spaced = b" %b " % _sifted(folded, _SPACED)
        found = [_standing(spaced, word.encode("utf-8", "surrogatepass")) for word in (*wanted, *_ARTICLES)]
        total = spaced.translate(_SHAPED).count(b" x") - sum(found[len(wanted) :])
        if total and min(found) >= 0:
            return total, dict(zip(wanted, found, strict=False))
    words = _kept_words(_unmarked(folded).split(), folded)
    counts = Counter(filter(frozenset(wanted).__contains__, words))
    return len(words), {word: counts[word] for word in wanted}


def _has_plain_blanks(text: str) -> bool:
    return text.isascii() or not any(map(str.isspace, beyond_ascii(text)))


def _standing(spaced: bytes, word: bytes) -> int:
    """Gives how often a word stands between spaces; -1 where it stands twice in a row, and so cannot be counted."""
    alone = b" %b " % word
    count = spaced.count(alone)
    return count if not count or b"%b%b " % (alone, word) not in spaced else -1


def is_normally(text: str, gold: str) -> bool:
    """Whether a text normalises to ``gold``, told without normalising much more of it than ``gold`` has."""
    return may_be(text, (gold,)) and normalise(text) == gold


def may_be(text: str, golds: Collection[str]) -> bool:
    """Whether a text may normalise to one of some normalised texts, as far as its beginning tells."""
    most = 2 * max(map(len, golds), default=0) + _HEAD_CHARS
    if len(text) <= most:
        return True
    # The last word of the head may be cut.
    head = _unmarked(fold(text[:most]).casefold()).split()[:-1]
    kept = " ".join(word for word in head if word not in _ARTICLES)
    return not kept or any(gold.startswith(kept) for gold in golds)


def _unmarked(text: str) -> str:
    """Takes punctuation out of a folded text, all but what is meant."""
    return _sifted(text, None).decode("utf-8", "surrogatepass")


def _sifted(text: str, table: bytes | None) -> bytes:
    """Takes punctuation out of a folded text, all but what is meant, and changes its ASCII by a table."""
    if not text.isascii():
        return _pieced(text).encode("utf-8", "surrogatepass").translate(table)
    meant = _meant(text)
    if not meant:
        return text.encode().translate(table, _MARKS)
    sifted = bytearray(text, "ascii")
    for place in meant:
        sifted[place] |= _APART
    return bytes(sifted.translate(table, _MARKS).translate(_JOINED))


def _pieced(text: str) -> str:
    """Does for any text what :func:`_sifted` does for ASCII."""
    beyond = beyond_ascii(text)
    odd = [char for char in beyond if _is_mark(char)]
    if len(odd) > _FEW or any(map(str.isdigit, beyond)):
        return "".join(
            char
            for place, char in enumerate(text)
            if char.isalnum() or char.isspace() or not _is_mark(char) or _is_meant(text, place)
        )
    meant = _meant(text)
    starts, ends = [0, *(place + 1 for place in meant)], [*meant, len(text)]
    pairs = zip(starts, ends, strict=True)
    return "".join([_dropped(text[start:end], odd) + text[end : end + 1] for start, end in pairs])


def _dropped(text: str, odd: Iterable[str]) -> str:
    """Takes all punctuation out: that of ASCII, and other marks."""
    text = text.encode("utf-8", "surrogatepass").translate(None, _MARKS).decode("utf-8", "surrogatepass")
    for mark in odd:
        text = text.replace(mark, "")
    return text


def _meant(text: str) -> list[int]:
    """Gives the places of the punctuation that is meant, in order, in a text whose digits are all ASCII.

    It is what :func:`_is_meant` says, asked only where it may say so: before a digit, and at ``%``, ``+`` and ``#``.
    """
    kinds = text.encode("ascii", "replace").translate(_KINDS)
    marks = [mark for mark in "%+#" if mark in text]
    if not marks and b".0" not in kinds:
        return []
    meant: set[int] = set()
    for place in places(kinds, b".0"):
        if (kinds[place - 1] == _DIGIT or text[place] in "-+.") and _is_meant(text, place):
            meant.add(place)
        if text[place] == "." and place and _is_meant(text, place - 1):
            meant.add(place - 1)
    for mark in marks:
        meant.update(place for place in places(text, mark) if place not in meant and _is_meant(text, place))
    return sorted(meant)


def places(text: AnyStr, sought: AnyStr) -> Iterator[int]:
    """Gives where something stands in a text, overlapping places too."""
    place = text.find(sought)
    while place >= 0:
        yield place
        place = text.find(sought, place + 1)


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


def count_words(text: str) -> int:
    """Gives how many words ``str.split`` parts a text into; those of ASCII are counted without parting it."""
    if not text.isascii():
        return len(text.split())
    shaped = text.encode().translate(_SHAPED)
    return shaped.count(b" x") + shaped.startswith(b"x")


def shows(text: str) -> bool:
    """Whether a text has a character that a reader sees: no white space, control, zero-width or blank one."""
    if _VISIBLE_ASCII.search(text):
        return True
    return not text.isascii() and any(
        unicodedata.category(char)[0] in "LNPS" and char not in _SHOWING_NOTHING for char in text if char > "\x7f"
    )


def says(text: str) -> bool:
    """Whether a text has a letter, a digit or a sign such as ``+``; ``.`` and ``&nbsp;`` say nothing."""
    if "&" in text:
        text = html.unescape(text)
    if _SAYING_ASCII.search(text):
        return True
    return not text.isascii() and any(
        unicodedata.category(char)[0] in "LNS" and char not in _SHOWING_NOTHING for char in text if char > "\x7f"
    )
