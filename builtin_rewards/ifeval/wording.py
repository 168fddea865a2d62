"""Verifiable instructions on wording: keywords, length, language, letter case and commas.

Each function says whether a text that is not blank follows the instruction, in time linear in the text.

What may not be there (forbidden words, ``less than`` n keywords or letters) is looked for in the text as it reads:
zero-width characters are left out, and full-width characters and the Cyrillic and Greek letters that look Latin
stand for the Latin ones. What must be there is looked for as written.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from builtin_rewards.ifeval.arguments import LESS
from builtin_rewards.ifeval.language import text_language
from builtin_rewards.ifeval.sentences import count_capital_words, count_sentences
from builtin_rewards.reading.typography import beyond_ascii, fold

_LOOK_ALIKES = (
    "a:\u0430\u03b1 c:\u0441 d:\u0501 e:\u0435 g:\u0261 h:\u04bb i:\u0456\u0131\u03b9 j:\u0458 "
    "k:\u043a\u03ba l:\u04cf o:\u043e\u03bf p:\u0440\u03c1 q:\u051b s:\u0455 u:\u03c5 v:\u03bd\u0475 "
    "w:\u051d x:\u0445\u03c7 y:\u0443 A:\u0410\u0391 B:\u0412\u0392 C:\u0421 E:\u0415\u0395 "
    "H:\u041d\u0397 I:\u0406\u0399 J:\u0408 K:\u041a\u039a M:\u041c\u039c N:\u039d O:\u041e\u039f "
    "P:\u0420\u03a1 S:\u0405 T:\u0422\u03a4 X:\u0425\u03a7 Y:\u04ae\u03a5 Z:\u0396"
)
_LOOK_LATIN = str.maketrans({char: entry[0] for entry in _LOOK_ALIKES.split() for char in entry[2:]})
"""Cyrillic and Greek letters, and a few Latin ones, by the Latin letter that they look like."""
_FIRST_WORD_END = re.compile(r"[.,?!'\"]")


def _as_read(text: str) -> str:
    """Gives a text as it reads, for what may not be in it."""
    return fold(text).translate(_LOOK_LATIN).lower()


def _bounded(found: int, relation: str, limit: int) -> bool:
    return found < limit if relation == LESS else found >= limit


def keywords_exist(text: str, keywords: Sequence[str]) -> bool:
    """Every keyword is in the text, also inside a word, in any case."""
    return all(keyword.lower() in text.lower() for keyword in keywords)


def keyword_frequency(text: str, keyword: str, relation: str, frequency: int) -> bool:
    """The keyword is there at least, or less than, so many times, also inside words, in any case."""
    read = _as_read if relation == LESS else str.lower
    return _bounded(read(text).count(read(keyword) or keyword), relation, frequency)


def letter_frequency(text: str, letter: str, let_relation: str, let_frequency: int) -> bool:
    """The letter is there at least, or less than, so many times, in any case."""
    return keyword_frequency(text, letter, let_relation, let_frequency)


def no_forbidden_words(text: str, forbidden_words: Sequence[str]) -> bool:
    """None of the words is in the text as a whole word, in any case."""
    words = "|".join(re.escape(_as_read(word).strip() or word) for word in forbidden_words)
    return re.search(rf"(?<!\w)(?:{words})(?!\w)", _as_read(text)) is None


def response_language(text: str, language: str) -> bool:
    """The text is in the language; a text in which no language can be told is not."""
    return text_language(text) == language


def number_sentences(text: str, relation: str, num_sentences: int) -> bool:
    """At least, or less than, so many sentences."""
    return _bounded(count_sentences(text), relation, num_sentences)


def number_words(text: str, relation: str, num_words: int) -> bool:
    """At least, or less than, so many words; a word is a run of letters, digits and underscores."""
    return _bounded(len(re.findall(r"\w+", text)), relation, num_words)


def number_paragraphs(text: str, num_paragraphs: int) -> bool:
    """Exactly so many paragraphs, divided by ``***``; none between two divisions is blank."""
    paragraphs = [bool(paragraph.strip()) for paragraph in re.split(r"\s?\*\*\*\s?", text)]
    return all(paragraphs[1:-1]) and sum(paragraphs) == num_paragraphs


def nth_paragraph_first_word(text: str, num_paragraphs: int, nth_paragraph: int, first_word: str) -> bool:
    """Exactly so many paragraphs, divided by blank lines, and the nth starts with the word, in any case."""
    paragraphs = text.split("\n\n")
    if sum(bool(paragraph.strip()) for paragraph in paragraphs) != num_paragraphs:
        return False
    found = (paragraphs[nth_paragraph - 1].split(maxsplit=1) or [""])[0].lstrip("'").lstrip('"')
    return _FIRST_WORD_END.split(found, maxsplit=1)[0].lower() == first_word.lower()


def english_capital(text: str) -> bool:
    """English, all of it in capitals. langdetect reads few of them, and can take a short text for another language."""
    return text.isupper() and text_language(text) == "en"


def english_lowercase(text: str) -> bool:
    """English, all of it in small letters."""
    return text.islower() and text_language(text) == "en"


def capital_word_frequency(text: str, capital_relation: str, capital_frequency: int) -> bool:
    """At least, or less than, so many words all in capitals."""
    return _bounded(count_capital_words(text), capital_relation, capital_frequency)


def no_comma(text: str) -> bool:
    """No comma, of any script."""
    marks = (char for char in beyond_ascii(text) if unicodedata.category(char) == "Po")
    return "," not in text and not any("COMMA" in unicodedata.name(mark) for mark in marks)
