"""The 25 kinds of verifiable instructions of IFEval (Zhou et al., arXiv 2311.07911).

For each id: whether a text that is not blank follows it, in time linear in the text. What is forbidden (words, ``less
than`` n keywords or letters) is searched in the text as a reader sees it: without zero-width characters, with
full-width, Cyrillic and Greek look-alikes as Latin letters. What is required is searched as written.

As in the paper's program, langdetect tells languages, here with a fixed seed, and nltk splits sentences and words; its
punkt learns abbreviations from a corpus that nltk does not ship, so here they are a list.
"""

from __future__ import annotations

import functools
import json
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from builtin_rewards.extras import extra
from builtin_rewards.reading.normalisation import beyond_ascii, fold

LESS, LEAST = "less than", "at least"
_LOOK_ALIKES = (
    "a:\u0430\u03b1 c:\u0441 d:\u0501 e:\u0435 g:\u0261 h:\u04bb i:\u0456\u0131\u03b9 j:\u0458 "
    "k:\u043a\u03ba l:\u04cf o:\u043e\u03bf p:\u0440\u03c1 q:\u051b s:\u0455 u:\u03c5 v:\u03bd\u0475 "
    "w:\u051d x:\u0445\u03c7 y:\u0443 A:\u0410\u0391 B:\u0412\u0392 C:\u0421 E:\u0415\u0395 "
    "H:\u041d\u0397 I:\u0406\u0399 J:\u0408 K:\u041a\u039a M:\u041c\u039c N:\u039d O:\u041e\u039f "
    "P:\u0420\u03a1 S:\u0405 T:\u0422\u03a4 X:\u0425\u03a7 Y:\u04ae\u03a5 Z:\u0396"
)
# Cyrillic and Greek letters, and a few Latin ones, by the Latin letter that they look like.
_LOOK_LATIN = str.maketrans({char: entry[0] for entry in _LOOK_ALIKES.split() for char in entry[2:]})
_HIGHLIGHTS = (re.compile(r"\*([^\n*]*)\*"), re.compile(r"\*\*([^\n*]*)\*\*"))
_POSTSCRIPTS = {"P.S.": r"p\.\s?s\.", "P.P.S": r"p\.\s?p\.\s?s"}
_OPTIONS = ("my answer is yes.", "my answer is no.", "my answer is maybe.")
_FENCES = ("```json", "```Json", "```JSON", "```")  # removed in this order, as the paper's program does
_SEED = 0  # langdetect draws at random
_LOOKED_AT = 20_000  # characters; more do not change the language
_ABBREVIATIONS = (
    "a.d a.m adm apr approx assn aug ave b.c bros capt cf cmdr co col corp cpl d.c dec dept dr e.g esq est etc et.al "
    "feb fig gen gov hon i.e inc jan jr jul jun lt ltd maj messrs mr mrs ms mt mtg n.j n.y nov oct op p.m p.p.s p.s "
    "ph.d prof pvt rep rev sen sep sept sgt sr st u.k u.n u.s u.s.a viz vol vs"
)
_STARTERS = (  # words that are capitalised only where a sentence starts, and often do start one
    "a after all also although an and as at because before but by despite during each even every finally first for "
    "from he here his how however i if in instead it its later many meanwhile more most moreover my no now of on "
    "once one only or other our perhaps she since so some still such that the their then there therefore these they "
    "this those though through to under until we what when where whether while who why with yet you your"
)
# Marks that end no further sentence: the rest of `!!!`, and dots within a sentence.
_RUN = re.compile(r"(?<=[!?])[.!?]+|\.{2,}(?=\s+[a-z])")


@functools.cache
def _detectors() -> Any:
    factory = extra("langdetect.detector_factory")
    factory.init_factory()
    return factory._factory


def known_languages() -> frozenset[str]:
    """Return the codes that :func:`text_language` can return, such as ``en`` and ``zh-cn``."""
    return frozenset(_detectors().get_lang_list())


def text_language(text: str) -> str | None:
    """Return the code of a text's language; ``None`` where none can be told."""
    detector = _detectors().create()
    detector.seed = _SEED
    detector.append(text[:_LOOKED_AT])
    try:
        language = str(detector.detect())
    except extra("langdetect.lang_detect_exception").LangDetectException:
        return None
    return None if language == detector.UNKNOWN_LANG else language


@functools.cache
def _splitter() -> Any:
    punkt = extra("nltk.tokenize.punkt")
    parameters = punkt.PunktParameters()
    parameters.abbrev_types, parameters.sent_starters = set(_ABBREVIATIONS.split()), set(_STARTERS.split())
    return punkt.PunktSentenceTokenizer(parameters)


def count_sentences(text: str) -> int:
    """Return the number of sentences; text after the last end mark counts as one."""
    return sum(1 for _ in _splitter().span_tokenize(_RUN.sub("", text)))


def count_capital_words(text: str) -> int:
    """Return the number of words in capitals (``NASA``, ``I``, ``U.S.``); nltk splits ``IT'S`` in two."""
    return sum(map(str.isupper, extra("nltk.tokenize.destructive").NLTKWordTokenizer().tokenize(text)))


def _as_read(text: str) -> str:
    return fold(text).translate(_LOOK_LATIN).lower()


def _bounded(count: int, relation: str, limit: int) -> bool:
    return count < limit if relation == LESS else count >= limit


def _is_used(text: str, keyword: str, relation: str, frequency: int) -> bool:
    """Return whether a keyword occurs at least, or less than, so many times, also inside words, in any case."""
    normalise = _as_read if relation == LESS else str.lower
    return _bounded(normalise(text).count(normalise(keyword) or keyword), relation, frequency)


def _passages_between(text: str, opening: str, closing: str) -> Iterator[str]:
    """Yield what stands on one line between an opening and the next closing, stripped; nothing for a blank one."""
    padding = opening + " \t"  # single characters: a further opening, as in ``[[``, is no content either
    for line in text.split("\n"):
        *parts, _ = line.split(closing)
        yield from filter(None, (part.partition(opening)[2].strip(padding) for part in parts))


def _paragraphs(text: str, num_paragraphs: int, nth_paragraph: int, first_word: str) -> bool:
    """Return whether there are so many paragraphs, divided by blank lines, and the nth starts with the word."""
    paragraphs = text.split("\n\n")
    tokens = paragraphs[nth_paragraph - 1].split(maxsplit=1) if len(paragraphs) >= nth_paragraph else []
    word = re.split(r"[.,?!'\"]", tokens[0].lstrip("'").lstrip('"'), maxsplit=1)[0].lower() if tokens else ""
    return sum(bool(paragraph.strip()) for paragraph in paragraphs) == num_paragraphs and word == first_word.lower()


def _is_divided(text: str, mark: str, count: int) -> bool:
    """Return whether marks divide a text into so many parts, with no blank part between two marks."""
    parts = [part.strip() for part in re.split(mark, text)]
    return all(parts[1:-1]) and sum(map(bool, parts)) == count


def _is_json(text: str) -> bool:
    content = text.strip()
    for fence in _FENCES:
        content = content.removeprefix(fence)
    try:
        # Numbers stay text: turning long ones into integers is quadratic, and refused.
        json.loads(content.removesuffix("```").strip(), parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return False
    return True


def _has_comma(text: str) -> bool:
    marks = (char for char in beyond_ascii(text) if unicodedata.category(char) == "Po")
    return "," in text or any("COMMA" in unicodedata.name(mark) for mark in marks)


KINDS: Mapping[str, Callable[..., bool]] = {
    # English in capitals; langdetect reads few of them, and can take a short text for another language.
    "change_case:english_capital": lambda text: text.isupper() and text_language(text) == "en",
    "change_case:english_lowercase": lambda text: text.islower() and text_language(text) == "en",
    "change_case:capital_word_frequency": lambda text, capital_relation, capital_frequency: _bounded(
        count_capital_words(text), capital_relation, capital_frequency
    ),
    # The request word for word at the start, in any case.
    "combination:repeat_prompt": lambda text, prompt_to_repeat: (
        text.strip().lower().startswith(prompt_to_repeat.lower())
    ),
    # Two different responses, divided by ``******``.
    "combination:two_responses": lambda text: (
        _is_divided(text, r"\*{6}", 2) and len({part.strip() for part in text.split("******")} - {""}) == 2
    ),
    # Placeholders such as ``[address]``; blank ones do not count.
    "detectable_content:number_placeholders": lambda text, num_placeholders: (
        sum(1 for _ in _passages_between(text, "[", "]")) >= num_placeholders
    ),
    # In any case and with spaces between the letters of ``P.S.``.
    "detectable_content:postscript": lambda text, postscript_marker: bool(
        re.search(_POSTSCRIPTS.get(postscript_marker) or re.escape(postscript_marker.lower()), text.lower())
    ),
    # One of the three, and no other of them.
    "detectable_format:constrained_response": lambda text: sum(option in text.lower() for option in _OPTIONS) == 1,
    # All of the text, or a fenced block that is all of it.
    "detectable_format:json_format": _is_json,
    # A mark and a number, such as ``Section 1``.
    "detectable_format:multiple_sections": lambda text, section_spliter, num_sections: (
        len(re.findall(re.escape(section_spliter) + r"\s?\d+", text)) >= num_sections
    ),
    # Exactly so many lines that start with ``*`` (not ``**``) or ``-``.
    "detectable_format:number_bullet_lists": lambda text, num_bullets: (
        sum(re.match(r"-|\*(?!\*)", line.lstrip()) is not None for line in text.split("\n")) == num_bullets
    ),
    # Passages of one line marked ``*so*`` or ``**so**``; blank ones do not count.
    "detectable_format:number_highlighted_sections": lambda text, num_highlights: (
        sum(bool(passage.strip()) for mark in _HIGHLIGHTS for passage in mark.findall(text)) >= num_highlights
    ),
    # In double angular brackets, such as ``<<poem of joy>>``, on one line and not blank.
    "detectable_format:title": lambda text: any(_passages_between(text, "<<", ">>")),
    # Also inside a word, in any case.
    "keywords:existence": lambda text, keywords: all(keyword.lower() in text.lower() for keyword in keywords),
    # As whole words, in any case.
    "keywords:forbidden_words": lambda text, forbidden_words: (
        not re.search(
            rf"(?<!\w)(?:{'|'.join(re.escape(_as_read(word).strip() or word) for word in forbidden_words)})(?!\w)",
            _as_read(text),
        )
    ),
    "keywords:frequency": _is_used,
    "keywords:letter_frequency": lambda text, letter, let_relation, let_frequency: _is_used(
        text, letter, let_relation, let_frequency
    ),
    # A text in which no language can be told is in none.
    "language:response_language": lambda text, language: text_language(text) == language,
    "length_constraints:nth_paragraph_first_word": _paragraphs,
    "length_constraints:number_paragraphs": lambda text, num_paragraphs: _is_divided(
        text, r"\s?\*\*\*\s?", num_paragraphs
    ),
    "length_constraints:number_sentences": lambda text, relation, num_sentences: _bounded(
        count_sentences(text), relation, num_sentences
    ),
    # A word is a run of letters, digits and underscores.
    "length_constraints:number_words": lambda text, relation, num_words: _bounded(
        len(re.findall(r"\w+", text)), relation, num_words
    ),
    # Of any script.
    "punctuation:no_comma": lambda text: not _has_comma(text),
    # In any case; quotation marks after it do not count.
    "startend:end_checker": lambda text, end_phrase: text.strip().strip('"').lower().endswith(end_phrase.lower()),
    "startend:quotation": lambda text: re.fullmatch(r'\s*".*"\s*', text, re.DOTALL) is not None,
}
