"""What stands after phrases that announce an answer: "the answer is ...", "final answer: ...", ``#### n``, ``A: n``."""

from __future__ import annotations

import re
from typing import NamedTuple

from builtin_rewards.reading.denials import begins_denied, denied_after, objection, statement_denied
from builtin_rewards.reading.typography import lowered

MAX_MARKS = 200
"""Of more boxes, tags or phrases the last ones are compared."""
WORDS = re.compile(r"[^\W\d_]{2,}(?:[\s',-]+[^\W\d_]{2,})*+[\s',.!-]*")
"""A text of words alone: what it denies it does not answer, so that ``not enough information`` may be an answer."""

_TAIL_CHARS = 600
_LEAD_CHARS = 60


class Announced(NamedTuple):
    """What a phrase announces.

    Attributes:
        answer: Its text.
        problem: What speaks against it, such as a denial before it or a withdrawal behind it; empty if it stands.
    """

    answer: str
    problem: str


_OURS, _ASIAN = ("answer", "ans", "result"), ("\u7b54\u6848", "\u7b54\u3048")
_NOUN = re.compile(
    r"answer|ans\b|result\b|respuesta\b|r\u00e9ponse\b|risposta\b|resposta\b|antwort\b|\u043e\u0442\u0432\u0435\u0442\b|"
    + "|".join(_ASIAN)
)
"""The nouns in lower case; each is a branch that begins with a letter, for the search is quick then."""
_SHORT_MARK = re.compile(r"^[ *_]{0,4}(?:####(?= ?(?:[A-Za-z]\w{0,9} ?= ?)?[-+$\d\\.(])|A:)", re.MULTILINE)
_LEAD = re.compile(
    r"(?:\b(?:(?:the|my|our|your|final|correct|right|overall|exact|simplified|numerical|desired|required)[\s*_]{1,6})+"
    r"|(?m:^)(?P<line>[\s*_>#-]{0,12}(?:final\s+)?))\Z",
    re.IGNORECASE,
)
_ANNOUNCES = re.compile(
    r"(?:\s+(?:to|of|for|in|(?:I|we) (?:get|got|find|found|obtain))\b[^\n.:?]{0,80}?|,[^\n.:?,]{1,60},)?[*_\s]{0,4}"
    r"\b(?:is|was|are|equals|would be|will be|should be|must be|(?:comes|works)(?: out)? to(?: be)?|turns out to be)\b"
    r"(?!n't|'|\u2019)|[*_\s]{0,4}[:=]",
    re.IGNORECASE,
)
_ANNOUNCES_ON_LINE = re.compile(
    r"[*_ ]{0,4}(?:\([^()\n]{1,40}\)[*_ ]{0,4})?[:=]|\.[ \t]|[ \t](?:[-\u2013\u2014]|->|\u2192)[ \t]"
)
_ALONE_ON_LINE = re.compile(r"[*_ ]{0,4}\n")
_FOREIGN = re.compile(
    r"(?:\s+(?:correcta?|final|finale|correcte|corretta|definitiva))?[*_\s]{0,4}"
    r"(?:(?:es|est|ist|lautet|\u00e8|\u00e9)\b|[:=\u662f\u4e3a\u70ba\u306f]|[-\u2013\u2014](?=\s))",
    re.IGNORECASE,
)
_SAID_BEFORE = re.compile(
    r"(?:^|[\s(])(?P<said>[^\s\w]{0,6}[^\s]{0,40}?\d[^\s]{0,40})\s+is\s+(?:the|my|our)\s+(?:(?:final|correct|right)\s+)?$",
    re.IGNORECASE,
)
_GOES_ON = re.compile(r"\s*(?:$|[.!,;)\n])")
_FILLER = re.compile(
    r"[\s*_:]*(?:(?:therefore|thus|hence|then|simply|exactly|just|indeed|clearly|equal to|given by|now|found to be)\b"
    r"[\s,:]*)*(?:not\s(?!only\b|just\b)[^\s,;.]{1,40}[,;.]?\s(?:but(?: rather)?|rather|it['\u2019]s|it is)\s+)?",
    re.IGNORECASE,
)
_WORKED_OUT = re.compile(
    r"(?=[^a-z\n]*\d[\s$)}]*(?:[-+*^\u00d7\u00f7]|\s/\s|\\times|\\cdot|plus|minus|times|divided by))"
    r"(?:[\d\s.,+*/^()${}\u00d7\u00f7-]|\\(?:times|cdot|frac)|plus|minus|times|divided by){1,200}?"
    r"(?:,?\s(?:which|that|this))?\s(?:is|equals|makes|gives|comes to)\s(?=[-$\\(]{0,3}\d)"
)
"""Arithmetic in front of what it comes to: ``4 + 9, which is``."""
_SET_RIGHT = re.compile(
    r"(?:[-$\\(*]{0,4}\d[^\s,]{0,40}(?:,|\s(?:--?|\u2013|\u2014))\s"
    r"(?:wait,? )?(?:no|sorry|i mean|or rather|make that)[,:]?\s"
    r"(?=[-$\\(*]{0,4}\d)){1,20}",
    re.IGNORECASE,
)
"""Numbers that are set right in the same breath: ``41, no, 42``."""
_SENTENCE_END = re.compile(r"[.!?](?=[\s\"')*\u4e00-\u9fff]|$)|[\n\u3002]")
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
    """What stands after each phrase that announces an answer, as far as it goes.

    A phrase is "the answer is", "final answer:", "Answer:" or "Ans." at the beginning of a line, "the final result is",
    "42 is the answer", the same in some other languages, and ``####`` or ``A:`` at the beginning of a line.
    """
    phrases = [mark.span() for mark in _SHORT_MARK.finditer(text)] if "####" in text or "A:" in text else []
    found: list[tuple[int, int, Announced]] = []
    for noun in [*_NOUN.finditer(lowered(text))][-5 * MAX_MARKS :]:
        if noun[0] not in ("answer", *_ASIAN) and text[noun.start() - 1 : noun.start()].isalnum():
            continue
        if (phrase := _phrase(text, noun)) is not None:
            phrases.append(phrase)
        elif noun[0] in _OURS[:2] and (said := _said_before(text, noun)) is not None:
            found.append(said)
    for start, end in sorted(phrases)[-MAX_MARKS:]:
        tail, place = _tail(text, end)
        if tail.strip(" \t*_`.:$"):
            problem = _against(tail) or ("the answer is denied before it" if statement_denied(text, start) else "")
            problem = problem or objection(text, place, place + len(tail), tail, since=start)
            found.append((start, end, Announced(tail, problem)))
    return [each for _, _, each in sorted(found, key=lambda each: each[:2])[-MAX_MARKS:]]


def _against(tail: str) -> str:
    """What an announced answer says against itself: ``not 42``, ``wrong``."""
    denied = denied_after(tail, 0) or (begins_denied(tail) and not WORDS.fullmatch(tail))
    return "the answer is denied: 'not' stands before it" if denied else ""


def _phrase(text: str, noun: re.Match[str]) -> tuple[int, int] | None:
    """Where the announcement begins and ends that a noun stands in, if it does."""
    if noun[0] not in _OURS:
        after = _FOREIGN.match(text, noun.end())
        return (noun.start(), after.end()) if after else None
    line = text.rfind("\n", 0, noun.start()) + 1
    begin = max(line, noun.start() - _LEAD_CHARS)
    lead = _LEAD.search(text, begin, noun.start())
    if lead is None or (lead["line"] is not None and begin != line):
        return None
    is_final = lead[0].strip(" \t*_#>").lower().endswith("final")
    if noun[0] == "result" and not is_final:
        return None
    patterns = [_ANNOUNCES] if lead["line"] is None else [_ANNOUNCES_ON_LINE]
    for pattern in [_ANNOUNCES, _ALONE_ON_LINE] if is_final else patterns:
        if (match := pattern.match(text, noun.end())) is not None:
            return lead.start(), match.end()
    return None


def _said_before(text: str, noun: re.Match[str]) -> tuple[int, int, Announced] | None:
    """The number that is said to be the answer: "42 is the answer"."""
    begin = max(0, noun.start() - 2 * _LEAD_CHARS)
    said = _SAID_BEFORE.search(text[begin : noun.start()])
    if said is None or not _GOES_ON.match(text, noun.end()):
        return None
    start, end = begin + said.start("said"), begin + said.end("said")
    denied = "the answer is denied before it" if statement_denied(text, start) else ""
    return start, end, Announced(said["said"], denied or objection(text, start, noun.end(), said["said"]))


def _tail(text: str, end: int) -> tuple[str, int]:
    """What the phrase that ends at a place announces, and where that begins."""
    begin = _FILLER.match(text, end, end + _TAIL_CHARS)
    start = begin.end() if begin else end
    if (set_right := _SET_RIGHT.match(text, start, end + _TAIL_CHARS)) is not None:
        start = set_right.end()
    if (worked_out := _WORKED_OUT.match(text, start, end + _TAIL_CHARS)) is not None:
        start = worked_out.end()
    window = text[start : end + _TAIL_CHARS]
    for opening, closing in (("\\[", "\\]"), ("$$", "$$")):
        if window.startswith(opening) and (length := window.find(closing, 2)) > 0:
            return window[2:length], start + 2
    end_of_sentence = _SENTENCE_END.search(window)
    return _before_clause(window[: end_of_sentence.start()] if end_of_sentence else window), start


def _before_clause(sentence: str) -> str:
    """A sentence up to where it goes on to explain, outside brackets; not where it goes on to hedge."""
    clauses = (each for each in _CLAUSE.finditer(sentence) if each.start() and not _open(sentence[: each.start()]))
    clause = next(clauses, None)
    return sentence if clause is None or _HEDGE.search(sentence, clause.start()) else sentence[: clause.start()]


def _open(text: str) -> bool:
    return sum(map(text.count, "([{")) > sum(map(text.count, ")]}"))
