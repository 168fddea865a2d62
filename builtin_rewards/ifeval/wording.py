"""Verifiable instructions on wording: keywords, length, language, letter case and commas.

Each function reads its arguments and gives a checker, which says whether a text that is not blank follows the
instruction. All checkers take time linear in the text.

What may not be there (forbidden words, ``less than`` n keywords or letters) is looked for in the text as it reads:
zero-width characters are left out, and full-width characters and the Cyrillic and Greek letters that look Latin
stand for the Latin ones. What must be there is looked for as written.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from builtin_rewards.ifeval.arguments import Arguments, Checker, UnusableInstructionError
from builtin_rewards.ifeval.language import known_languages, text_language
from builtin_rewards.ifeval.sentences import count_capital_words, count_sentences
from builtin_rewards.reading.typography import fold

_LOOK_ALIKES = (
    "a:\u0430\u03b1 c:\u0441 d:\u0501 e:\u0435 g:\u0261 h:\u04bb i:\u0456\u0131\u03b9 j:\u0458 "
    "k:\u043a\u03ba l:\u04cf o:\u043e\u03bf p:\u0440\u03c1 q:\u051b s:\u0455 u:\u03c5 v:\u03bd\u0475 "
    "w:\u051d x:\u0445\u03c7 y:\u0443 A:\u0410\u0391 B:\u0412\u0392 C:\u0421 E:\u0415\u0395 "
    "H:\u041d\u0397 I:\u0406\u0399 J:\u0408 K:\u041a\u039a M:\u041c\u039c N:\u039d O:\u041e\u039f "
    "P:\u0420\u03a1 S:\u0405 T:\u0422\u03a4 X:\u0425\u03a7 Y:\u04ae\u03a5 Z:\u0396"
)
_LOOK_LATIN = str.maketrans({char: entry[0] for entry in _LOOK_ALIKES.split() for char in entry[2:]})
"""Cyrillic and Greek letters, and a few Latin ones, by the Latin letter that they look like."""
_COMMA = re.compile(
    "[,\u055d\u060c\u07f8\u1363\u1802\u1808\u2e32\u2e34\u2e41\u3001\ufe10\ufe11\ufe50\ufe51\uff0c\uff64]"
)
_WORD = re.compile(r"\w+")
_PARAGRAPH_MARK = re.compile(r"\s?\*\*\*\s?")
_FIRST_WORD_END = re.compile(r"[.,?!'\"]")


def _as_read(text: str) -> str:
    """Gives a text as it reads, for what may not be in it."""
    return fold(text).translate(_LOOK_LATIN).lower()


def keywords_exist(arguments: Arguments) -> Checker:
    """Every keyword is in the text, also inside a word, in any case."""
    keywords = [keyword.lower() for keyword in arguments.texts("keywords")]
    return lambda text: all(keyword in text.lower() for keyword in keywords)


def keyword_frequency(arguments: Arguments) -> Checker:
    """The keyword is there at least, or less than, so many times, also inside words, in any case."""
    return _counted(arguments, arguments.text("keyword").strip(), "relation", "frequency")


def letter_frequency(arguments: Arguments) -> Checker:
    """The letter is there at least, or less than, so many times, in any case."""
    letter = arguments.text("letter").strip()
    if len(letter) != 1:
        raise UnusableInstructionError(f"argument 'letter': expected one character, got {letter[:80]!r}")
    return _counted(arguments, letter, "let_relation", "let_frequency")


def _counted(arguments: Arguments, wanted: str, relation: str, number: str) -> Checker:
    bound = arguments.bound(relation, number)
    normal: Callable[[str], str] = _as_read if bound.below else str.lower
    counted = normal(wanted) or wanted
    return lambda text: bound.holds(normal(text).count(counted))


def forbidden_words(arguments: Arguments) -> Checker:
    """None of the words is in the text as a whole word, in any case."""
    words = "|".join(re.escape(_as_read(word).strip() or word) for word in arguments.texts("forbidden_words"))
    pattern = re.compile(rf"(?<!\w)(?:{words})(?!\w)")
    return lambda text: pattern.search(_as_read(text)) is None


def response_language(arguments: Arguments) -> Checker:
    """The text is in the language; a text in which no language can be told is not."""
    language = arguments.text("language")
    if language not in known_languages():
        raise UnusableInstructionError(f"argument 'language': {language[:80]!r} is no language that can be told")
    return lambda text: text_language(text) == language


def number_sentences(arguments: Arguments) -> Checker:
    """At least, or less than, so many sentences."""
    bound = arguments.bound("relation", "num_sentences")
    return lambda text: bound.holds(count_sentences(text))


def number_words(arguments: Arguments) -> Checker:
    """At least, or less than, so many words; a word is a run of letters, digits and underscores."""
    bound = arguments.bound("relation", "num_words")
    return lambda text: bound.holds(len(_WORD.findall(text)))


def number_paragraphs(arguments: Arguments) -> Checker:
    """Exactly so many paragraphs, divided by ``***``; none between two divisions is blank."""
    wanted = arguments.number("num_paragraphs", at_least=1)

    def check(text: str) -> bool:
        paragraphs = [bool(paragraph.strip()) for paragraph in _PARAGRAPH_MARK.split(text)]
        return all(paragraphs[1:-1]) and sum(paragraphs) == wanted

    return check


def nth_paragraph_first_word(arguments: Arguments) -> Checker:
    """Exactly so many paragraphs, divided by blank lines, and the nth starts with the word, in any case."""
    wanted = arguments.number("num_paragraphs", at_least=1)
    nth = arguments.number("nth_paragraph", at_least=1)
    first_word = arguments.text("first_word").strip().lower()
    if nth > wanted:
        raise UnusableInstructionError(f"argument 'nth_paragraph': {nth} of {wanted} paragraphs")

    def check(text: str) -> bool:
        paragraphs = text.split("\n\n")
        if sum(bool(paragraph.strip()) for paragraph in paragraphs) != wanted:
            return False
        words = paragraphs[nth - 1].split(maxsplit=1)
        if not words:
            return False
        found = words[0].lstrip("'").lstrip('"')
        return _FIRST_WORD_END.split(found, maxsplit=1)[0].lower() == first_word

    return check


def english_capital(arguments: Arguments) -> Checker:
    """English, all of it in capitals.

    langdetect reads little of words in capitals, so that a short text can be taken for another language, as in the
    paper's own program.
    """
    return lambda text: text.isupper() and text_language(text) == "en"


def english_lowercase(arguments: Arguments) -> Checker:
    """English, all of it in small letters."""
    return lambda text: text.islower() and text_language(text) == "en"


def capital_word_frequency(arguments: Arguments) -> Checker:
    """At least, or less than, so many words all in capitals."""
    bound = arguments.bound("capital_relation", "capital_frequency")
    return lambda text: bound.holds(count_capital_words(text))


def no_comma(arguments: Arguments) -> Checker:
    """No comma, of any script."""
    return lambda text: _COMMA.search(text) is None
