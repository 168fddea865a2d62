"""What stands after phrases that announce an answer: "the answer is ...", "final answer: ...", ``#### n``, ``A: n``."""

from __future__ import annotations

import re

MAX_MARKS = 200
"""Of more boxes, tags or phrases the last ones are compared."""

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
_NUMBER_NEXT = re.compile(r" ?[-+$\d\\.]")
_FILLER = re.compile(
    r"[\s*_:]*(?:(?:therefore|thus|hence|then|simply|exactly|just|indeed|clearly|equal to|given by|now|found to be)\b"
    r"[\s,:]*)*",
    re.IGNORECASE,
)
_DENIED_PHRASE = re.compile(
    r"(?:(?:\bnot|n['\u2019]t|\bnever)\s+(?:be\s+)?"
    r"(?:true|correct|right|the case|think|believe|say|claim|accept|agree)\b"
    r"|\b(?:false|untrue|wrong|incorrect|doubt|doubtful|unlikely|impossible|deny|whether|if|suppose|assume|assuming)\b)"
    r"(?:\s+(?:to\s+\w+|of|that|we|you|I|say|claim))*[\s\"'*_]*$",
    re.IGNORECASE,
)
_MAY_DENY = re.compile(r"n['\u2019o]t|never|alse|rue|rong|ncorrect|oubt|likely|ossible|deny|hether|[iI]f |ppose|ssum")
_WRONG_BEFORE = re.compile(r"\b(?:wrong|incorrect|false)\s+$", re.IGNORECASE)
_CORRECTED = re.compile(
    r"[\s*\"')]*(?:\?[\s*\"')]*(?:no|nope|wait|hmm|actually|not)\b"
    r"|[.!][\s*\"')]*(?:no\b[,.! ]|oops|scratch that|sorry|correction\b|wait,? no\b))",
    re.IGNORECASE,
)
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


def announced(text: str) -> list[str]:
    """What stands after each phrase that announces an answer, as far as it goes."""
    found = []
    for end in _announcements(text)[-MAX_MARKS:]:
        tail = _tail(text[end : end + 600])
        if tail[:4].casefold() != "not " and _taken_back(text, end, tail):
            tail = f"not {tail}"
        if tail.strip(" \t*_`.:$"):
            found.append(tail)
    return found


def _taken_back(text: str, end: int, tail: str) -> bool:
    """Whether the words before a phrase deny it, or a correction follows the answer right away."""
    behind = text.find(tail, end, end + 700) + len(tail)
    if behind + 3 < len(text) and _CORRECTED.match(text, behind, behind + 60):
        return True
    before = text[max(0, end - 100) : end]
    if not _MAY_DENY.search(before):
        return False
    words = max(before.rfind("nswer"), before.rfind("NSWER"))
    if words < 1:
        return False
    lead = _LEAD.search(before, 0, words - 1)
    if lead is None:
        return False
    ahead = before[: lead.start()]
    return _WRONG_BEFORE.search(ahead) is not None or _DENIED_PHRASE.search(ahead) is not None


def _announcements(text: str) -> list[int]:
    """The places after each phrase that announces an answer, in their order."""
    ends = []
    if "nswer" in text or "NSWER" in text:
        ends = [end for place in _answer_words(text)[-5 * MAX_MARKS :] if (end := _phrase_end(text, place)) is not None]
    if "####" in text or "A:" in text:
        ends += [*_short_marks(text, "####"), *_short_marks(text, "A:")]
    return sorted(ends)


def _short_marks(text: str, mark: str) -> list[int]:
    """The places after a short mark at the beginning of a line."""
    ends = []
    place = text.find(mark)
    while place >= 0:
        line = text.rfind("\n", max(0, place - 5), place) + 1
        at_start = place == 0 or line > 0 or place <= 4
        if at_start and not text[line:place].strip(" *_") and (mark == "A:" or _NUMBER_NEXT.match(text, place + 4)):
            ends.append(place + len(mark))
        place = text.find(mark, place + len(mark))
    return ends


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


def _phrase_end(text: str, place: int) -> int | None:
    """Where the announcement ends that the word "answer" at a place stands in, if it does."""
    line = text.rfind("\n", 0, place) + 1
    lead = _LEAD.search(text, max(line, place - 24), place)
    if lead is None or (lead["line"] is not None and lead.start() != line):
        return None
    patterns = [_ANNOUNCES] if lead["line"] is None else [_ANNOUNCES_ON_LINE]
    if (lead["line"] or lead[0]).strip(" \t*_#>").lower().endswith("final"):
        patterns = [_ANNOUNCES, _ALONE_ON_LINE]
    for pattern in patterns:
        if (match := pattern.match(text, place + 6)) is not None:
            return match.end()
    return None


def _tail(text: str) -> str:
    begin = _FILLER.match(text)
    text = text[begin.end() if begin else 0 :]
    for opening, closing in (("\\[", "\\]"), ("$$", "$$")):
        if text.startswith(opening) and (end := text.find(closing, 2)) > 0:
            return text[2:end]
    end_of_sentence = _SENTENCE_END.search(text)
    sentence = text[: end_of_sentence.start()] if end_of_sentence else text
    return _before_clause(sentence)


def _before_clause(sentence: str) -> str:
    """A sentence up to where it goes on to explain; not where it goes on to hedge."""
    clause = _CLAUSE.search(sentence)
    if clause is None or not clause.start() or _HEDGE.search(sentence, clause.start()):
        return sentence
    return sentence[: clause.start()]
