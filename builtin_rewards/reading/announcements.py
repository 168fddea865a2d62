"""What stands after phrases that announce an answer: "the answer is ...", "final answer: ...", ``#### n``, ``A: n``."""

from __future__ import annotations

import re
from typing import NamedTuple

from builtin_rewards.reading.denials import objection, statement_denied

MAX_MARKS = 200
"""Of more boxes, tags or phrases the last ones are compared."""

_TAIL_CHARS = 600


class Announced(NamedTuple):
    """What a phrase announces.

    Attributes:
        answer: Its text.
        problem: What speaks against it, such as a denial before it or a withdrawal behind it; empty if it stands.
    """

    answer: str
    problem: str


_LEAD = re.compile(
    r"(?:\b(?:the|my|our|your|final|correct|right)[\s*_]+|^[\s*_>#-]{0,12}(?P<line>(?:final\s+)?))$", re.IGNORECASE
)
_ANNOUNCES = re.compile(
    r"(?:\s+(?:to|of|for)\b[^\n.:?]{1,80}?)?[*_\s]{0,4}"
    r"\b(?:is|was|are|equals|would be|will be|should be|must be)\b(?!n't|'|\u2019)|[*_\s]{0,4}[:=]",
    re.IGNORECASE,
)
_ANNOUNCES_ON_LINE = re.compile(r"[*_ ]{0,4}:")
_ALONE_ON_LINE = re.compile(r"[*_ ]{0,4}\n")
_NUMBER_NEXT = re.compile(r" ?(?:[A-Za-z]\w{0,9} ?= ?)?[-+$\d\\.(]")
_FILLER = re.compile(
    r"[\s*_:]*(?:(?:therefore|thus|hence|then|simply|exactly|just|indeed|clearly|equal to|given by|now|found to be)\b"
    r"[\s,:]*)*",
    re.IGNORECASE,
)
_WORKED_OUT = re.compile(
    r"(?=[^a-z\n]*\d[\s$)}]*(?:[-+*^\u00d7\u00f7]|\s/\s|\\times|\\cdot|plus|minus|times|divided by))"
    r"(?:[\d\s.,+*/^()${}\u00d7\u00f7-]|\\(?:times|cdot|frac)|plus|minus|times|divided by){1,200}?"
    r"(?:,?\s(?:which|that|this))?\s(?:is|equals|makes|gives|comes to)\s(?=[-$\\(]{0,3}\d)"
)
"""Arithmetic in front of what it comes to: ``4 + 9, which is``."""
_SENTENCE_END = re.compile(r"[.!?](?=[\s\"')*]|$)|\n")
_CLAUSE = re.compile(
    r",?\s+(?:because|since|as|so|which|where|when|if|after|that|who|according)\b"
    r"|[,;]\s+(?![-$\\\d(\[]|or\b|and\b|nor\b|not\b)|,?\s+(?:and |but )?not\s+(?=[-$\\(]{0,3}\d)"
    r"|\s+\((?=(?:since|because|as|i\.?\s?e|that is|which|given|note|so|where|using|rounded|assuming|by|from)\b)",
    re.IGNORECASE,
)
_HEDGE = re.compile(
    r"\b(?:or|maybe|perhaps|possibly|alternatively|could|might|may|otherwise|unless|else|either|unsure|alternative)\b",
    re.IGNORECASE,
)


def announced(text: str) -> list[Announced]:
    """What stands after each phrase that announces an answer, as far as it goes."""
    found = []
    for start, end in _announcements(text)[-MAX_MARKS:]:
        tail, place = _tail(text, end)
        if tail.strip(" \t*_`.:$"):
            problem = "the answer is denied before it" if statement_denied(text, start) else ""
            found.append(Announced(tail, problem or objection(text, place, place + len(tail), tail)))
    return found


def _announcements(text: str) -> list[tuple[int, int]]:
    """Where each phrase that announces an answer begins and ends, in their order."""
    phrases = []
    if "nswer" in text or "NSWER" in text:
        words = _answer_words(text)[-5 * MAX_MARKS :]
        phrases = [phrase for place in words if (phrase := _phrase(text, place)) is not None]
    if "####" in text or "A:" in text:
        phrases += [*_short_marks(text, "####"), *_short_marks(text, "A:")]
    return sorted(phrases)


def _short_marks(text: str, mark: str) -> list[tuple[int, int]]:
    """Where the short marks at the beginnings of lines begin and end."""
    spans = []
    place = text.find(mark)
    while place >= 0:
        line = text.rfind("\n", max(0, place - 5), place) + 1
        at_start = place == 0 or line > 0 or place <= 4
        if at_start and not text[line:place].strip(" *_") and (mark == "A:" or _NUMBER_NEXT.match(text, place + 4)):
            spans.append((place, place + len(mark)))
        place = text.find(mark, place + len(mark))
    return spans


def _answer_words(text: str) -> list[int]:
    """Where the word "answer" stands. A search for plain text is many times as quick as one without regard to case."""
    places = []
    for ending in ("nswer", "NSWER"):
        place = text.find(ending)
        while place >= 0:
            if place and text[place - 1] in "aA":
                places.append(place - 1)
            place = text.find(ending, place + 5)
    return places


def _phrase(text: str, place: int) -> tuple[int, int] | None:
    """Where the announcement begins and ends that the word "answer" at a place stands in, if it does."""
    line = text.rfind("\n", 0, place) + 1
    lead = _LEAD.search(text, max(line, place - 24), place)
    if lead is None or (lead["line"] is not None and lead.start() != line):
        return None
    patterns = [_ANNOUNCES] if lead["line"] is None else [_ANNOUNCES_ON_LINE]
    if (lead["line"] or lead[0]).strip(" \t*_#>").lower().endswith("final"):
        patterns = [_ANNOUNCES, _ALONE_ON_LINE]
    for pattern in patterns:
        if (match := pattern.match(text, place + 6)) is not None:
            return lead.start(), match.end()
    return None


def _tail(text: str, end: int) -> tuple[str, int]:
    """What the phrase that ends at a place announces, and where that begins."""
    begin = _FILLER.match(text, end, end + _TAIL_CHARS)
    start = begin.end() if begin else end
    if (worked_out := _WORKED_OUT.match(text, start, end + _TAIL_CHARS)) is not None:
        start = worked_out.end()
    window = text[start : end + _TAIL_CHARS]
    for opening, closing in (("\\[", "\\]"), ("$$", "$$")):
        if window.startswith(opening) and (length := window.find(closing, 2)) > 0:
            return window[2:length], start + 2
    end_of_sentence = _SENTENCE_END.search(window)
    return _before_clause(window[: end_of_sentence.start()] if end_of_sentence else window), start


def _before_clause(sentence: str) -> str:
    """A sentence up to where it goes on to explain; not where it goes on to hedge."""
    clause = _CLAUSE.search(sentence)
    if clause is None or not clause.start() or _HEDGE.search(sentence, clause.start()):
        return sentence
    return sentence[: clause.start()]
