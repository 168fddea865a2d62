"""Whether a text uses a term: as a word or number of its own, and not just after a negation."""

from __future__ import annotations

from builtin_rewards.reading.typography import fold

_NEGATIONS = frozenset(("not", "no", "never", "neither", "nor", "cannot", "without", "isnt", "arent", "wasnt"))
_TURNS = frozenset(("but", "only", "rather", "instead"))
_SIGNS = ("\u2260", "\u00ac", "\u2262", "\u2209", "!=")
_CLAUSE_ENDS = ".,;!?\n"
_NEAR_WORDS = 3
_NEAR_CHARS = 48
_JOINERS = ".,/:^"


def prepared(text: str, *, ignore_case: bool) -> str:
    """Gives the text as terms are looked up in it: folded, blanks as they are."""
    folded = fold(text)
    return folded.casefold() if ignore_case else folded


def uses(text: str, term: str, *, words: bool, negated: bool) -> bool:
    """Whether a prepared text holds a prepared term.

    Args:
        text: Where to look.
        term: What to look for; not empty.
        words: Whether it must stand as a word of its own (see :func:`_stands_alone`).
        negated: Whether an occurrence just after a negation counts too.
    """
    if " " in term:
        if not all(map(text.__contains__, term.split())):
            return False
        text = " ".join(text.split())
    place = text.find(term)
    while place >= 0:
        if (not words or _stands_alone(text, place, place + len(term))) and (negated or not _is_negated(text, place)):
            return True
        place = text.find(term, place + 1)
    return False


def _stands_alone(text: str, start: int, end: int) -> bool:
    """Whether no letter or digit adjoins the term, and a number is not a part of a longer one.

    Scripts that are written without blanks between words have no such borders.
    """
    first, last = text[start], text[end - 1]
    before, after = text[start - 1 : start], text[end : end + 1]
    if (_is_spaced(first) and _is_wordy(before)) or (_is_spaced(last) and _is_wordy(after)):
        return False
    if first.isdigit() and before:
        ahead = text[start - 2 : start - 1] if start > 1 else ""
        if before in _JOINERS and (ahead.isdigit() or (before == "." and not ahead.isalnum())):
            return False
        if before in "-+" and not ahead.isalnum():
            return False
    if last.isdigit() and after:
        return after != "%" and not (after in _JOINERS and text[end + 1 : end + 2].isdigit())
    return True


def _is_wordy(char: str) -> bool:
    return char.isalnum() or char == "_"


def _is_spaced(char: str) -> bool:
    """Whether a letter or digit is of a script that sets its words apart by blanks."""
    if not _is_wordy(char):
        return False
    code = ord(char)
    return code < 0x0E00 or 0x10A0 <= code < 0x1780 or 0x1800 <= code < 0x2E80 or code >= 0x30000


def _is_negated(text: str, place: int) -> bool:
    """Whether one of the three words before, in the same clause, or a sign right before negates what follows."""
    clause = text[max(0, place - _NEAR_CHARS) : place]
    if clause.rstrip().endswith(_SIGNS):
        return True
    cut = max(clause.rfind(end) for end in _CLAUSE_ENDS)
    for word in reversed(clause[cut + 1 :].casefold().split()[-_NEAR_WORDS:]):
        bare = word.strip("*_`\"'([{$:")
        if bare in _TURNS:
            return False
        if bare in _NEGATIONS or bare.endswith("n't"):
            return True
    return False
