"""How many sentences and words in capitals a text has, close to what nltk's punkt and word tokenizer find.

Punkt learns its abbreviations from a corpus; here they are a list. The rules are those of Kiss and Strunk,
"Unsupervised Multilingual Sentence Boundary Detection" (2006), as nltk applies them. All is linear in the text.
"""

from __future__ import annotations

import re

_PUNCTUATION = "?!)\";}]*:@'({[\u2018\u2019\u201c\u201d\u00ab\u00bb"
"""What ends a word inside a chunk of text without white space, besides white space itself."""
_CLOSING = "\"')]}\u2018\u2019\u201c\u201d\u00ab\u00bb"
"""What belongs to the sentence before it, where white space follows."""

_IN_CHUNK = re.compile(f"[.?!](?=[{re.escape(_PUNCTUATION)}])")
_WORD_END = re.compile(f"[{re.escape(_PUNCTUATION)}]")
_NUMBER = re.compile(r"-?[.,]?\d[\d,.-]*")


def _words(line: str) -> frozenset[str]:
    return frozenset(line.split())


_ABBREVIATIONS = _words(
    "a.d a.m adm apr approx assn aug ave b.c bros capt cf cmdr co col corp cpl d.c dec dept dr e.g esq est etc et.al "
    "feb fig gen gov hon i.e inc jan jr jul jun lt ltd maj messrs mr mrs ms mt mtg n.j n.y nov oct op p.m p.p.s p.s "
    "ph.d prof pvt rep rev sen sep sept sgt sr st u.k u.n u.s u.s.a viz vol vs"
)
_STARTERS = _words(
    "a after all also although an and as at because before but by despite during each even every finally first for "
    "from he here his how however i if in instead it its later many meanwhile more most moreover my no now of on "
    "once one only or other our perhaps she since so some still such that the their then there therefore these they "
    "this those though through to under until we what when where whether while who why with yet you your"
)
"""Words that are capitalised only where a sentence starts, and often do start one."""

_BREAKS_WORD = re.compile(
    r"[\s\u00ab\u00bb\u2012-\u2015\u2018\u2019\u201c\u201d\u201e`\";@#$%&?!*\[\](){}<>]+|\.{2,}|--|[:,](?!\d)|''"
)
_CLITIC = re.compile(r"(?:'(?:[sSmMdD]|ll|LL|re|RE|ve|VE)|n't|N'T)\Z")
_TWO_WORDS = frozenset({"CANNOT", "GIMME", "GONNA", "GOTTA", "LEMME", "WANNA"})


def count_sentences(text: str) -> int:
    """Gives the number of sentences; a rest of text without an end counts as one."""
    chunks = text.split()
    count, is_open = 0, False
    for chunk, following in zip(chunks, [*chunks[1:], ""], strict=False):
        is_open = True
        if "." in chunk or "!" in chunk or "?" in chunk:
            end = _sentence_end(chunk, following)
            if end:
                count += 1
                is_open = bool(_after_closing(chunk[end:]))
    return count + is_open


def _after_closing(rest: str) -> str:
    """Gives what a sentence's last chunk holds for the next one.

    Quotes and brackets closed there are its own, and so are the last marks of a run such as ``!!!``, of which punkt
    makes another sentence at a text's end.
    """
    if not rest.strip(".?!"):
        return ""
    left = rest.lstrip(_CLOSING)
    return rest if left and not left.startswith("--") else left


def _sentence_end(chunk: str, following: str) -> int:
    """Gives the place in a chunk where a sentence ends, 0 for none; the last place counts where there are several."""
    if chunk[-1] in ".?!" and following:
        end = len(chunk)
    else:
        end = max((mark.end() for mark in _IN_CHUNK.finditer(chunk)), default=0)
    if not end:
        return 0
    head = chunk[:end]
    if "?" in head or "!" in head:
        return end
    *words, last = _WORD_END.split(head)
    ends = _period_ends(last, chunk[end : end + 1] or following) or any(_period_ends(word, "*") for word in words)
    return end if ends else 0


def _period_ends(word: str, following: str) -> bool:
    """Whether the period at a word's end is the end of a sentence, by the word and what follows it."""
    if not word.endswith("."):
        return False
    name = word[:-1].lstrip("-#&,`").lower()
    if _NUMBER.fullmatch(name):
        return not (following[:1].islower() or following[:1] in ";:,.!?")
    if len(name) == 1 and name.isalpha():
        return not (following[:1].isalpha() or following[:1] in ";:,.!?") or _starts_sentence(following)
    if name.endswith(".") or name in _ABBREVIATIONS or name.rpartition("-")[2] in _ABBREVIATIONS:
        return _starts_sentence(following)
    return True


def _starts_sentence(chunk: str) -> bool:
    """Whether a chunk's first word is capitalised and one that often starts a sentence."""
    return chunk[:1].isupper() and _WORD_END.split(chunk[:32].lower(), maxsplit=1)[0].rstrip(".,") in _STARTERS


def count_capital_words(text: str) -> int:
    """Gives the number of words whose letters are all capitals, such as ``NASA``, ``I`` and ``U.S.``.

    Contractions are two words, as nltk has it: ``I'm`` counts once and ``IT'S`` twice.
    """
    return sum(_capitals(word) for word in _BREAKS_WORD.split(text) if word)


def _capitals(word: str) -> int:
    clitic = _CLITIC.search(word.rstrip(".")) if "'" in word else None
    if clitic is None:
        return (1 + (word.rstrip(".") in _TWO_WORDS)) if word.isupper() else 0
    return word[: clitic.start()].isupper() + clitic.group().isupper()
