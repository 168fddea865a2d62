"""Lists of guesses in a text: many candidates for an answer one after another, without a frame around the one meant."""

from __future__ import annotations

import re
from collections.abc import Mapping

MOST_CHARS = 20_000  # Characters of a text that are searched, from its end
LEAST = 6  # Different candidates of a list
LEAST_WITH_OR = 4  # Of one whose candidates are linked by "or", "maybe" and the like
_DATA_SHARE = 0.5  # Share of the text from which a list in brackets is no data but all that is said

_CANDIDATE = r"(?:(?<![\w.])[-\u2212]?+\d{1,30}+(?>\.\d{1,30}+)?+%?+|(?<![\w'])[A-H](?![\w'.]*\w))"
_HEDGE = r"or|maybe|perhaps|possibly|either|could|might|guess|oder|ou|\u6216\u8005?"
_WORDS = rf"(?:{_HEDGE}|and|also|then|else|it|its|be|is|the|my|answer:?)"
_LINK = rf"(?:[\s,;/|.?*\u2022\u3001\uff0c]|-(?=\s)|\b(?i:{_WORDS})\b|'s\b)"
_LIST = re.compile(rf"{_CANDIDATE}(?>(?>{_LINK}){{1,40}}+{_CANDIDATE}){{3,}}+")
_EACH = re.compile(_CANDIDATE)
_HAS_HEDGE = re.compile(rf"\b(?:{_HEDGE})\b", re.IGNORECASE)
_CHAIN = re.compile(r"[\w'.-]{1,20}(?: [\w'.-]{1,20}){0,2}(?:,? or [\w'.-]{1,20}(?: [\w'.-]{1,20}){0,2}?){3,}")
_FENCED = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_FRAME = re.compile(r"\\boxed\s*\{|<answer>|####|\banswer\s*(?:is|:)", re.IGNORECASE)


def has_guesses(text: str, prompt: str = "", columns: Mapping[str, object] | None = None) -> bool:
    """Return whether a text lists guesses behind its last framed answer.

    Six different numbers or letters of choices in a row, or four that "or", "maybe" and the like link, or four words
    linked by "or". Not in fences of code, nor in brackets, and not where the prompt or a column has such a list too.
    """
    tail = _FENCED.sub(" ", text[-MOST_CHARS:])
    frames = [match.end() for match in _FRAME.finditer(tail)]
    tail = tail[frames[-1] :] if frames else tail
    if not _lists_many(tail):
        return False
    parts = [prompt, *(value for value in (columns or {}).values() if isinstance(value, str))]
    return not any(_lists_some(part[:MOST_CHARS]) for part in parts)


def _lists_many(text: str) -> bool:
    for match in _LIST.finditer(text):
        least = LEAST_WITH_OR if _HAS_HEDGE.search(match[0]) else LEAST
        if len(set(_EACH.findall(match[0]))) >= least and not _is_data(text, match):
            return True
    return any(len(set(match[0].casefold().split(" or "))) >= LEAST_WITH_OR for match in _CHAIN.finditer(text))


def _lists_some(text: str) -> bool:
    """Return whether a text has a list of four candidates, also in brackets."""
    return any(len(set(_EACH.findall(match[0]))) >= LEAST_WITH_OR for match in _LIST.finditer(text)) or bool(
        _CHAIN.search(text)
    )


def _is_data(text: str, match: re.Match[str]) -> bool:
    """Return whether a list stands in brackets, as data does, and is not most of the text."""
    before, after = text[: match.start()].rstrip()[-1:], text[match.end() :].lstrip()[:1]
    in_brackets = before in ("[", "{", "(") and before != "" and after in ("]", "}", ")")
    return in_brackets and len(match[0]) < _DATA_SHARE * len(text.strip())
