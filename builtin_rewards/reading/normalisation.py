"""Normalisation of text: what a reader takes for the same text becomes the same string."""

from __future__ import annotations

import functools
import html
import re
import string
import unicodedata
from collections.abc import Callable

_ARTICLES = frozenset(("a", "an", "the"))
_MEANINGFUL = re.compile(  # punctuation that changes what is said
    r"(?<=\d)(?!,\d{3}(?!\d)).(?=\d)|(?<=[^\W\d_])[+#]|(?<=[^\W\d_]\+)\+|(?<=[^\W\d_]#)#"
    r"|(?<![^\W_])(?:[-+.](?=\d)|[-+](?=\.\d))|(?<=\d)%|(?<=\d\\)%"
)
_MARK = re.compile(rf"[{re.escape(string.punctuation)}]|[^\w\s\x00-\x7f]")
_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0") | {
    chr(code) for code in range(0xFE00, 0xFE10)
}
_QUOTES = str.maketrans(
    dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u02bc", "'") | dict.fromkeys("\u201c\u201d\u201e\u201f\u2033", '"')
)
FRACTIONS = {  # what fraction signs are read as, for `str.translate`
    code: " " + unicodedata.normalize("NFKC", chr(code)).replace("\u2044", "/")
    for code in (0xBC, 0xBD, 0xBE, *range(0x2150, 0x215F), 0x2189)
}
_FRACTION = re.compile(f"[{''.join(map(chr, FRACTIONS))}]")
_MINUS = "\u2212"
_SMALL = re.compile("([\u2070\u00b9\u00b2\u00b3\u2074-\u207b]+)|[\u2080-\u208b]+")  # raised and lowered digits
_BECOME_MARKS = frozenset("\u0f73\u0f75\u0f81\uff9e\uff9f")  # characters that NFKC makes combining marks of
# Combining marks in a row that are kept: the limit of Unicode's Stream-Safe Text Format, UAX #15, section 13.
_MOST_MARKS = 30
_MAYBE_MARKS = re.compile(  # a run that may hold more of them; what shows nothing may stand between
    rf"(?:[^\w\s\x00-\x7f]|[{''.join(_BECOME_MARKS | _INVISIBLE)}]){{{_MOST_MARKS + 1}}}"
)
_STROKES = re.compile("[\u0334-\u0338\u20d2\u20d3\u20e5\u20eb]")  # combining characters that strike out a letter
SHOWN_OTHERWISE = "marks of direction show the text otherwise than it is read"
_EMPHASIS = re.compile(  # Markdown's, not a multiplication
    r"(\*(?<![\w*\\)}].)\*{0,2}|_(?<![\w*\\)}].)_|_(?<= .))(?![\s*]|(?<=[ _]_)[_{])"
    r"((?:(?!\1)[^\n]){1,300})(?<=\S)\1(?!\w|(?<=\*)[*(])"
)
_FOOTNOTE = re.compile(r"\[\^\d{1,3}\]|(?:(?<=[\d.!] )|(?<=[.!]))\[\d{1,3}\](?=[\s.]*$)")
_MINUS_WORD = re.compile(r"\b(?:minus|negative)\s{1,3}(?=[$\u20ac\u00a3]?\d|\\frac|\\\$)", re.IGNORECASE)
_SURENESS = re.compile(r"\bI(?:'m|\u2019m| am) \d{1,3} ?% (?:sure|certain|confident)\b", re.IGNORECASE)
# Circled digits and the marks for "wrong" are among these blocks; they stay.
_PICTURES = re.compile(
    "(?:[\u2600-\u26d3\u26d5-\u2715\u2719-\u274b\u274d-\u2775\u2794-\u27bf\u2b50\u2b55"
    "\U0001f300-\U0001f44d\U0001f44f-\U0001f644\U0001f646-\U0001f6aa\U0001f6ac-\U0001faff][\u200d\ufe0f]*)+"
)
# Characters that are letters or symbols by category and yet show nothing.
_SHOWING_NOTHING = frozenset("\u115f\u1160\u2800\u3164\uffa0")


def fold(text: str) -> str:
    """Return the text without typography: NFKC, no invisible characters, plain quotes, hyphens and minus signs.

    A raised exponent becomes ``^2``, a lowered index ``_2`` and a fraction sign ``1/2``, so that 5 squared is not 52.
    Letters of other alphabets that look Latin stay. Only the first 30 of a run of combining marks stay; no language has
    more, and ordering them takes quadratic time.
    """
    if text.isascii():
        return text
    is_crowded = _MAYBE_MARKS.search(text) is not None
    text = _SMALL.sub(lambda run: f"{'^' if run[1] else '_'}{run[0]}", text).translate(_PLAIN)
    if is_crowded:
        marks = "".join(char for char in beyond_ascii(text) if unicodedata.combining(char) or char in _BECOME_MARKS)
        text = re.sub(f"([{marks}]{{{_MOST_MARKS}}})[{marks}]+", r"\1", text) if marks else text
    return unicodedata.normalize("NFKC", text)


def plain_quotes(text: str) -> str:
    """Return the text with straight quotation marks and apostrophes in place of typographic ones."""
    return text if text.isascii() else text.translate(_QUOTES)


def shown_otherwise(text: str) -> bool:
    """Return whether a text has marks that override its direction, so that a reader sees 24 for a written 42."""
    return not text.isascii() and ("\u202d" in text or "\u202e" in text)


def struck_out(text: str) -> bool:
    """Return whether strokes run through characters of a text; the stroke of an unequal sign does not count."""
    return not text.isascii() and _STROKES.search(unicodedata.normalize("NFC", text)) is not None


def lower_in_step(text: str) -> str:
    """Return the text in lower case, every character in its place."""
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(low if len(low := char.lower()) == 1 else char for char in text)


def beyond_ascii(text: str) -> set[str]:
    return {char for char in set(text) if char > "\x7f"}


class _Table(dict[int, str]):
    """What characters become, for ``str.translate``; each is asked for once, as long as the table has room."""

    def __init__(self, become: Callable[[str], str]) -> None:
        self._become = become

    def __missing__(self, code: int) -> str:
        text = self._become(chr(code))
        if len(self) < _MOST_IN_TABLE:
            self[code] = text
        return text


def _plain(char: str) -> str:
    if char < "\u0080":
        return char
    if ord(char) in _QUOTES:
        return _QUOTES[ord(char)]
    category = unicodedata.category(char)
    if category == "Cf" or char in _INVISIBLE:
        return ""
    return "-" if category == "Pd" or char == _MINUS else FRACTIONS.get(ord(char), char)


_MOST_IN_TABLE = 20_000
_PLAIN = _Table(_plain)


def without_markup(text: str) -> str:
    """Return the text without emphasis, footnote marks and emoji, with "minus 5" and ``1½`` as ``-5`` and ``1 1/2``."""
    if "*" in text or "_" in text:
        text = _EMPHASIS.sub(r"\2", _EMPHASIS.sub(r"\2", text))
    if "]" in text:
        text = _FOOTNOTE.sub("", text)
    if "inus " in text or "egative " in text:
        text = _MINUS_WORD.sub("-", text)
    if "% " in text:
        text = _SURENESS.sub("", text)
    text = text if text.isascii() else _PICTURES.sub(" ", text)
    return _FRACTION.sub(lambda sign: FRACTIONS[ord(sign[0])], text)


def normalise(text: str) -> str:
    """Return an answer without case, punctuation, articles and spare blanks, as SQuAD does (arXiv 1606.05250).

    Unlike there, the text is folded first, and punctuation stays that changes the meaning: between digits, except
    thousands commas, a sign or point before a number, ``%`` after one, ``+`` and ``#`` after a letter. Where nothing
    would be left, the articles stay, and then the punctuation too: ``A`` is no empty answer.
    """
    folded = fold(_TEXT_COMMAND.sub(r"\1", text) if "\\" in text else text).casefold()

    def strip(mark: re.Match[str]) -> str:
        is_symbol = mark[0] > "\x7f" and unicodedata.category(mark[0])[0] != "P"
        return mark[0] if is_symbol or _MEANINGFUL.match(folded, mark.start()) else ""

    tokens = _MARK.sub(strip, folded).split()
    return " ".join([token for token in tokens if token not in _ARTICLES] or tokens or folded.split())


def shows(text: str) -> bool:
    """Return whether a text has a visible character."""
    return any(unicodedata.category(char)[0] in "LNPS" for char in set(text) - _SHOWING_NOTHING)


def says(text: str) -> bool:
    """Return whether a text has a letter, a digit or a sign such as ``+``; ``.`` and ``&nbsp;`` do not count."""
    characters = set(html.unescape(text)) - _SHOWING_NOTHING - {*"^`|~"}
    return any(unicodedata.category(char)[0] in "LNS" for char in characters)


_NEAR_CHARS = 48
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+")
_TEXT_COMMAND = re.compile(r"\\(?:text(?:bf|it|rm|sf|tt)?|math(?:rm|bf|it|sf|tt)|mbox|emph)\s*\{([^{}]*)\}")
_NEGATED = re.compile(  # a negation among the three words before a place, in the same clause, or a sign right before it
    r"(?:\b(?:(?<!why )not?|never|neither|nor|cannot|without|isnt|arent|wasnt)\b|n't\b)[^\w.,;!?\n]*"
    r"(?:(?<![^\W_])(?!(?:but|only|rather|instead)\b)[^\s.,;!?]+[^\S\n]+){0,2}[^\w\s.,;!?]*$"
    r"|(?:[\u2260\u00ac\u2262\u2209]|!=)\s*$",
    re.IGNORECASE,
)


def uses(text: str, term: str, *, whole_words: bool, negated: bool) -> bool:
    """Return whether a folded text holds a folded term, which is not empty.

    ``whole_words``: no letter or digit is next to it, and it is no part of a longer number; scripts without blanks
    between words have no such borders. ``negated``: an occurrence just after a negation counts too.
    """
    if not all(map(text.__contains__, term.split())):
        bare = text.replace(",", "")  # a number may stand with commas between its thousands, or without
        if not all(word.replace(",", "") in bare for word in term.split()):
            return False
    return any(
        negated or not _NEGATED.search(text[max(0, match.start() - _NEAR_CHARS) : match.start()])
        for match in _occurrences(term, whole_words).finditer(text)
    )


def _spelling(word: str) -> str:
    """Return the pattern of a word; a whole number also stands with commas between its thousands, or without."""
    digits = word.replace(",", "") if _GROUPED.fullmatch(word) else word
    if not (digits.isascii() and digits.isdigit() and len(digits) > 3):
        return re.escape(word)
    head = len(digits) % 3 or 3
    return ",?".join((digits[:head], *(digits[index : index + 3] for index in range(head, len(digits), 3))))


@functools.lru_cache(maxsize=1024)
def _occurrences(term: str, whole_words: bool) -> re.Pattern[str]:
    pattern, first, last = r"\s+".join(map(_spelling, term.split())) or re.escape(term), term[0], term[-1]
    if whole_words:
        before = r"(?<!(?<!\w)[-+.])(?<!\d[.,/:^])" if first.isdigit() else ""
        before += r"(?<!\w)" if is_spaced(first) else ""
        after = (r"(?!\w)" if is_spaced(last) else "") + (r"(?!%|[.,/:^]\d)" if last.isdigit() else "")
        after += r"(?!\+\+|\+(?!\s?\w)|#)" if last.isalpha() and last.isascii() else ""  # `C` is not `C++` or `C#`
        pattern = before + pattern + after
    return re.compile(pattern)


def part_by_script(text: str) -> str:
    """Return the text with blanks around each character of the scripts that put none between words.

    These are Chinese, Japanese, Thai, Lao, Khmer, Burmese, Tibetan and like scripts; Korean has blanks. A vowel sign or
    tone mark stays with its letter.
    """
    return text if text.isascii() else text.translate(_PARTED)


def words_by_script(text: str) -> list[str]:
    """Return the words of a text in lower case, without punctuation: runs of letters, marks and digits, by script."""
    return fold(text).lower().translate(_WORDS).split()


def _part(char: str) -> str:
    if not char.isalnum() or is_spaced(char) or "\u3130" <= char < "\u3190" or "\uac00" <= char < "\ud7b0":
        return char
    return f" {char} " if char >= "\u2e80" else f" {char}"


_PARTED = _Table(_part)
_WORDS = _Table(lambda char: _part(char) if unicodedata.category(char)[0] in "LMN" else " ")


def is_spaced(char: str) -> bool:
    """Return whether a letter or digit belongs to a script with blanks between words."""
    code = ord(char)
    is_unspaced = 0x0E00 <= code < 0x10A0 or 0x1780 <= code < 0x1800 or 0x2E80 <= code < 0x30000
    return (char.isalnum() or char == "_") and not is_unspaced
