"""Answers that a phrase states: "the answer is ...", "final answer: ...", ``#### n``, ``A: n``."""

from __future__ import annotations

import re
from typing import NamedTuple

from builtin_rewards.reading.expressions import FUNCTION
from builtin_rewards.reading.labels import read_label
from builtin_rewards.reading.latex import clean
from builtin_rewards.reading.negation import begins_denied, denied_after, objection
from builtin_rewards.reading.normalisation import lower_in_step
from builtin_rewards.reading.numbers import read_quantity

MAX_MARKS = 200  # how many boxes, tags or phrases are compared, from the end
# A text of words alone, in which a denial may be the answer: `not enough information`.
WORDS = re.compile(r"[^\W\d_]{2,}(?>[\s',-]+[^\W\d_]{2,})*+[\s',.!-]*")

_TAIL_CHARS = 600
_LEAD_CHARS = 60


class StatedAnswer(NamedTuple):
    """An answer that a phrase states, and its problem, such as a denial before it; empty if it stands."""

    answer: str
    problem: str


_ENGLISH, _ASIAN = ("answer", "ans", "result"), ("答案", "答え")
_NOUN = re.compile(  # the nouns in lower case
    r"answer|ans\b|result\b|respuesta\b|réponse\b|risposta\b|resposta\b|antwort\b|ответ\b|" + "|".join(_ASIAN)
)
_SHORT_MARK = re.compile(
    r"^[ *_]{0,4}(?:####(?= ?(?:[A-Za-z]\w{0,9} ?= ?)?(?:[-+$\d\\.(\[\]|\u221a\u2205\u211d]"
    r"|[A-Za-z](?=\s?[-+*/^=<>(\d])(?![^\n]*[A-Za-z]{3})))|A:)",
    re.MULTILINE,
)
_LEAD = re.compile(  # what may stand before the noun: a line's start, or `the final`
    r"(?i)(?:(?m:^)(?P<line>[\s*_>#-]{0,12}(?:final\s+)?)|\b(?:(?:the|my|our|your|final|correct|right|overall|exact|simplified"
    r"|numerical|desired|required)[\s*_]{1,6})+)\Z"
)
_IS = (
    r"(?:\s+(?:to|of|for|in|(?:I|we) (?:get|got|find|found|obtain))\b[^\n.:?]{0,80}?|,[^\n.:?,]{1,60},)?[*_\s]{0,4}"
    r"\b(?:is|was|are|equals|would be|will be|should be|must be|(?:comes|works)(?: out)? to(?: be)?|turns out to be)\b"
    r"(?!n't|'|\u2019)|[*_\s]{0,4}[:=]"
)
_ANNOUNCES, _ANNOUNCES_ON_LINE, _FOREIGN = (
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        _IS,
        rf"{_IS}|[*_ ]{{0,4}}(?:\([^()\n]{{1,40}}\)[*_ ]{{0,4}}[:=]|\n)|\.[ \t]|[ \t](?:[-\u2013\u2014]|->|→)[ \t]",
        r"(?:\s+(?:correcta?|final|finale|correcte|corretta|definitiva))?[*_\s]{0,4}"
        r"(?:(?:es|est|ist|lautet|è|é)\b|[:=是为為は]|[-\u2013\u2014](?=\s))",
    )
)
_STATED_BEFORE = re.compile(  # `42 is the answer`
    r"(?i)(?:^|[\s(])(\S{0,40}?\d\S{0,40})\s+is\s+(?:the|my|our)\s+(?:(?:final|correct|right)\s+)?answer(?=\s*(?:$|[.!,;)\n]))"
)
_LEADS_TO = [  # text that may stand between a phrase and its answer, in order
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        # words: "therefore", "not 41, but"
        r"[\s*_:]*(?:(?:therefore|thus|hence|then|simply|exactly|just|clearly|equal to|given by|now|found to be)\b"
        r"[\s,:]*)*(?:not\s(?!only\b|just\b)[^\s,;.]{1,40}[,;.]?\s(?:but(?: rather)?|rather|it['\u2019]s|it is)\s+)?",
        # numbers that are set right in the same breath: "41, no, 42"
        r"(?:[-$\\(*]{0,4}\d[^\s,]{0,40}(?:,|\s(?:--?|\u2013|\u2014))\s"
        r"(?:wait,? )?(?:no|sorry|i mean|or rather|make that)[,:]?\s(?=[-$\\(*]{0,4}\d)){1,20}",
        # arithmetic in front of what it comes to: "4 + 9, which is"
        r"(?=[^a-z\n]*\d[\s$)}]*(?:[-+*^\xd7\xf7]|\s/\s|\\times|\\cdot|plus|minus|times|divided by))"
        r"(?:[\d\s.,+*/^()${}\xd7\xf7-]|\\(?:times|cdot|frac)|plus|minus|times|divided by){1,200}?"
        r"(?:,?\s(?:which|that|this))?\s(?:is|equals|makes|gives|comes to)\s(?=[-$\\(]{0,3}\d)",
    )
]
_SENTENCE_END = re.compile(r"(?<!\bRs)(?<!\bsq)(?<!\bcu)[.!?](?=[\s\"')*\u4e00-\u9fff]|$)|[\n\u3002]")
_CLAUSE = re.compile(  # what ends the answer within its sentence
    r"(?i),?\s+(?:because|since|as|so|which|where|when|if|after|that|who|according)\b"
    r"|[,;]\s+(?![-$\\\d(\[]|or\b|and\b|nor\b|not\b)|,?\s+(?:and |but )?not\s+(?=[-$\\(]{0,3}\d)"
    r"|\s+\((?=(?:since|because|as|i\.?\s?e|that is|which|given|note|so|where|using|rounded|assuming|by|from)\b)"
)
_HEDGE = re.compile(  # words that leave the answer open
    r"(?i)\b(?:or|maybe|perhaps|possibly|alternatively|could|might|may|otherwise|unless|else|either|unsure|alternative)\b"
)
_OPEN_FORMULA = re.compile(r"\$(?![\d\s])[^$]*\Z")
_NAMED = re.compile(r"[\s,$(*_:]*[A-Za-z]\s?=")  # a name that gets a value
DENIED = "the answer is denied: 'not' stands before it"
_CONFIRMS = re.compile(  # `correct` as the whole predicate states no new answer
    r"(?i)\W*(?:(?:it|that|this)(?:'s|\u2019s| is| was) )?(?:(?:indeed|also|thus|clearly|definitely|now|very|quite) )*"
    r"(?:correct|right|reasonable|plausible|sensible|valid|verified|confirmed|consistent|exact)\W*"
)
# A line up to its explanation, but not the first item of a list.
_LINE = re.compile(r"(?!1[.)]\s)[^\n]*?(?=[.!?]?[\s*_`]*(?:\n|$)|[.!?]\s|,?\s(?:because|since|as)\b)")
_FEW_WORDS = re.compile(r"(?:[\s'\u2019().-]{0,3}[^\W\d_]+){1,3}[\s().]{0,3}")
_NO_SENTENCE = re.compile(  # the words in a formula that do not make it a sentence
    r"\\(?:text|mbox|mathrm|begin|end)\s*\{[^{}]*\}|\\[A-Za-z]+"
    rf"|\b(?:{FUNCTION}|pi|or|and|inf|infty|frac|oo|d[a-z])\b"
)
_WORD = re.compile(r"[^\W\d_\u00b2\u00b3\u00b9\u2070-\u209c]{2,}")


def stated_answers(text: str) -> list[StatedAnswer]:
    """Return the answer behind each phrase that states one.

    A phrase is "the answer is", "final answer:", "Answer:" or "Ans." at the start of a line, "the final result is",
    "42 is the answer", the same in some other languages, and ``####`` or ``A:`` at the start of a line. A line
    "Answer", or a phrase at the end of its line, states the next line, if that is a number, a label, a formula or at
    most three words. After a number or another answer, "the answer is correct" states nothing.
    """
    phrases = [mark.span() for mark in _SHORT_MARK.finditer(text)] if "####" in text or "A:" in text else []
    statements: list[tuple[int, StatedAnswer]] = []
    for noun in [*_NOUN.finditer(lower_in_step(text))][-5 * MAX_MARKS :]:
        if noun[0] not in ("answer", *_ASIAN) and text[noun.start() - 1 : noun.start()].isalnum():
            continue
        if (phrase := _phrase(text, noun)) is not None:
            phrases.append(phrase)
        elif matches := [*_STATED_BEFORE.finditer(text, max(0, noun.start() - 2 * _LEAD_CHARS), noun.end() + 2)]:
            start, answer = matches[-1].start(1), matches[-1][1]
            problem = objection(text, start, matches[-1].end(), answer, since=start)
            statements.append((start, StatedAnswer(answer, problem)))
    phrases = sorted(phrases)[-MAX_MARKS:]
    for (start, end), until in zip(phrases, [*(start for start, _ in phrases[1:]), len(text)], strict=False):
        tail, tail_start = _tail(text, end, min(until, end + _TAIL_CHARS))
        if tail.strip(" \t*_`.:$") and ("\n" not in text[end - 1 : tail_start] or _answers(text, tail_start)):
            is_denied = denied_after(tail, 0) and tail.strip(" *_.").casefold() != "false"
            is_denied = is_denied or (begins_denied(tail) and not WORDS.fullmatch(tail))
            problem = objection(text, tail_start, tail_start + len(tail), tail, since=start)
            lead = text[max(0, start - _TAIL_CHARS) : start]
            confirms = (statements or (tail != "right" and re.search(r"\d", lead))) and _CONFIRMS.fullmatch(tail)
            if is_denied or problem or not confirms:
                statements.append((start, StatedAnswer(tail, DENIED if is_denied else problem)))
    return [statement for _, statement in sorted(statements, key=lambda entry: entry[0])[-MAX_MARKS:]]


def _answers(text: str, start: int) -> bool:
    """Return whether the line at a place, below a heading or a colon, is an answer and not prose."""
    line = _LINE.match(text, start)
    answer = clean(line[0]) if line and len(line[0]) <= _TAIL_CHARS else ""
    if read_quantity(answer) or read_label(answer) or (answer and wordless(answer)) or _FEW_WORDS.fullmatch(answer):
        return True
    return text[start - 2 : start] in ("\\[", "$$")


def wordless(text: str) -> bool:
    """Return whether a text has only the words of a formula."""
    return _WORD.search(_NO_SENTENCE.sub(" ", text)) is None


def _phrase(text: str, noun: re.Match[str]) -> tuple[int, int] | None:
    """Return where the phrase around a noun begins and ends, if it is one."""
    if noun[0] not in _ENGLISH:
        after = _FOREIGN.match(text, noun.end())
        return (noun.start(), after.end()) if after else None
    line = text.rfind("\n", 0, noun.start()) + 1
    begin = max(line, noun.start() - _LEAD_CHARS)
    lead = _LEAD.search(text, begin, noun.start())
    if lead is None or (lead["line"] is not None and begin != line):
        return None
    if noun[0] == "result" and not lead[0].strip(" \t*_#>").lower().endswith("final"):
        return None
    match = (_ANNOUNCES if lead["line"] is None else _ANNOUNCES_ON_LINE).match(text, noun.end())
    return (lead.start(), match.end()) if match else None


def _tail(text: str, end: int, until: int) -> tuple[str, int]:
    """Return the answer behind the phrase that ends at a place, up to the next phrase, and where it begins."""
    start = end
    for leads_to in _LEADS_TO:
        if (match := leads_to.match(text, start, until)) is not None:
            start = match.end()
    window = text[start:until]
    for opening, closing in (("\\[", "\\]"), ("$$", "$$")):
        if window.startswith(opening) and (length := window.find(closing, 2)) > 0:
            return window[2:length], start + 2
    end_of_sentence = _SENTENCE_END.search(window)
    sentence = window[: end_of_sentence.start()] if end_of_sentence else window
    clauses = (match for match in _CLAUSE.finditer(sentence) if match.start() and _is_closed(sentence, match.start()))
    clause = next(clauses, None)  # it goes on to explain, or to hedge
    if clause is None or _HEDGE.search(sentence, clause.start()):
        return sentence, start
    return sentence[: clause.start()], start


def _is_closed(sentence: str, end: int) -> bool:
    """Return whether an answer may end at a place: not in brackets, in a formula or between ``x = 1`` and ``y = 2``."""
    text = sentence[:end]
    is_in_formula = text.count("$") % 2 == 1 and _OPEN_FORMULA.search(text)
    is_between = _NAMED.match(text) and _NAMED.match(sentence, end)
    has_brackets_open = sum(map(text.count, "([{")) > sum(map(text.count, ")]}"))
    return not (has_brackets_open or is_in_formula or is_between)
