"""Languages by langdetect, sentences and capital words by nltk, as in the paper's program.

langdetect draws at random; a fixed seed gives the same text the same language each time. nltk's punkt learns
abbreviations from a corpus that nltk does not ship; here they are a list.
"""

from __future__ import annotations

import functools
import re
from typing import Any

from builtin_rewards.extras import extra

_SEED = 0
_LOOKED_AT = 20_000
_ABBREVIATIONS = (
    "a.d a.m adm apr approx assn aug ave b.c bros capt cf cmdr co col corp cpl d.c dec dept dr e.g esq est etc et.al "
    "feb fig gen gov hon i.e inc jan jr jul jun lt ltd maj messrs mr mrs ms mt mtg n.j n.y nov oct op p.m p.p.s p.s "
    "ph.d prof pvt rep rev sen sep sept sgt sr st u.k u.n u.s u.s.a viz vol vs"
)
_STARTERS = (
    "a after all also although an and as at because before but by despite during each even every finally first for "
    "from he here his how however i if in instead it its later many meanwhile more most moreover my no now of on "
    "once one only or other our perhaps she since so some still such that the their then there therefore these they "
    "this those though through to under until we what when where whether while who why with yet you your"
)
"""Words that are capitalised only where a sentence starts, and often do start one."""
_RUN = re.compile(r"(?<=[!?])[.!?]+|\.{2,}(?=\s+[a-z])")
"""Marks that end no sentence more: of a run such as ``!!!`` all but the first, and dots within a sentence."""


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
        found = str(detector.detect())
    except extra("langdetect.lang_detect_exception").LangDetectException:
        return None
    return None if found == detector.UNKNOWN_LANG else found


@functools.cache
def _splitter() -> Any:
    punkt = extra("nltk.tokenize.punkt")
    learnt = punkt.PunktParameters()
    learnt.abbrev_types, learnt.sent_starters = set(_ABBREVIATIONS.split()), set(_STARTERS.split())
    return punkt.PunktSentenceTokenizer(learnt)


def count_sentences(text: str) -> int:
    """Return the number of sentences; text after the last end mark counts as one."""
    return sum(1 for _ in _splitter().span_tokenize(_RUN.sub("", text)))


def count_capital_words(text: str) -> int:
    """Return the number of words in capitals, such as ``NASA``, ``I`` and ``U.S.``.

    nltk splits contractions in two: ``I'm`` counts once and ``IT'S`` twice.
    """
    return sum(map(str.isupper, extra("nltk.tokenize.destructive").NLTKWordTokenizer().tokenize(text)))
