"""How a text is cut into sentences, words and tokens, for all kinds of instructions.

nltk's punkt splits sentences. It learns abbreviations from a corpus that nltk does not ship, so here they are a list.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable
from typing import Any

from builtin_rewards.extras import extra

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
def _splitter() -> Any:
    punkt = extra("nltk.tokenize.punkt")
    parameters = punkt.PunktParameters()
    parameters.abbrev_types, parameters.sent_starters = set(_ABBREVIATIONS.split()), set(_STARTERS.split())
    return punkt.PunktSentenceTokenizer(parameters)


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text, which end where punkt ends them; text after the last end mark is one."""
    text = _RUN.sub("", text)
    return [text[start:end] for start, end in _splitter().span_tokenize(text)]


def split_tokens(text: str) -> list[str]:
    """Return words and marks as nltk's word tokenizer divides them: ``IT'S`` in two, ``U.S.`` in one."""
    return [str(token) for token in extra("nltk.tokenize.destructive").NLTKWordTokenizer().tokenize(text)]


def split_words(text: str) -> list[str]:
    """Return the words between blanks, in lower case and without punctuation; ``don't`` is ``dont``."""
    bare = "".join(char for char in text.lower() if not is_mark(char))
    return bare.split()


@functools.lru_cache(maxsize=4096)
def is_mark(char: str) -> bool:
    """Return whether a character is punctuation, or one of the ASCII signs that stand for it, such as ``+``."""
    return unicodedata.category(char)[0] == "P" or char in "$+<=>^`|~"


def first_letters(tokens: Iterable[str]) -> str:
    return "".join(token[0] for token in tokens)
