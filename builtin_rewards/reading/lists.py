"""Lists in free text: which numbers and which items a completion names as its list, and what speaks against it.

The rule: what a turn says after its thoughts counts. In it closed ``<answer>...</answer>`` and ``\\boxed{...}`` decide
alone, where there are any that hold something; else the whole text. In what decides the list is the one in brackets,
else the text itself. A list that is denied (``not``, ``anything but``, an unequal sign, ``is wrong``), struck out or
taken back (``Wait, that is wrong``) does not stand. Two boxes, or two bracketed lists, that stand and differ are a
stuffed answer. A text of over 100,000 characters is not read, so that everything takes a bounded time.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from typing import TypeVar

from builtin_rewards.reading.denials import (
    clause_denies,
    denied_after,
    denied_before,
    denies,
    supposed_before,
    withdrawn_after,
)
from builtin_rewards.reading.marks import boxes, tags
from builtin_rewards.reading.turn import after_thinking
from builtin_rewards.reading.typography import SHOWN_OTHERWISE, fold, normalise, shown_otherwise, struck_out

_T = TypeVar("_T", float, str)
_Lists = Callable[[str], tuple[list[_T], str]]
_Span = tuple[int, int]

SEVERAL = "several different lists"
DENIED = "the list is denied"
TOO_LONG = "too long a text to be read as a list"

_NUMBER = re.compile(
    r"(?<![\w.])(?P<negated>not\s+)?(?P<number>[-+]?(?:\d+(?:\.\d+)?|\.\d+)(?:e[-+]?\d{1,4})?)"
    r"(?:[ \t]{0,2}/[ \t]{0,2}(?P<below>\d+))?",
    re.IGNORECASE,
)
_THOUSANDS = re.compile(r"(?<![\w.,])\d{1,3}(?:,\d{3})+(?![\w,])")
_MARKER = re.compile(r"[ \t]*(?:(\d{1,4})[.)]|[-*+\u2022])[ \t]+")
_LONGEST_NUMBER = 400
"""Characters of a number that is read; no float that is finite needs more before its point."""
_DENIAL_CHARS = 160
"""Characters, the first ones, in which an item is searched for a denial."""
_LONGEST_TEXT = 100_000
"""Characters of the longest text, without its thoughts, that is read."""
_MOST_LISTS = 200
"""Of more boxes, tags or bracketed lists the last ones are compared."""

_BRACKETS = {"[]": re.compile(r"[\[\]]"), "{}": re.compile(r"[{}]")}
_FRACTION = re.compile(r"\\[dt]?frac\{([-+]?\d{1,40})\}\{(\d{1,40})\}")
_BEFORE_FRACTION = re.compile(r"(?<=\d)(?=\\[dt]?frac)")
_MIXED = re.compile(r"(?<![\w./])(?<!\d[ \t])(\d{1,40})[ \t]{1,2}(\d{1,40})/(\d{1,40})(?![\w/]|\.\d)")
"""A whole number and a fraction: ``12 3/5``."""
_LATEX = re.compile(r"\\(?:text|textbf|textit|mathrm|mathbf|rm|bf)\b|\\[{}\[\](),;! ]|[{}$]")
_JOINING = re.compile(r"(?<!\w)(?:and|or)(?!\w)|[&\n]")
"""What stands between items, besides commas."""
_LETTERED = re.compile(r"[ \t]*\(?([A-Za-z])[.)][ \t]+")
_BOLD_HEAD = re.compile(r"(?:\*\*|__)([^*_]{1,200})(?::(?:\*\*|__)|(?:\*\*|__)[ \t]{0,3}(?::|[-\u2013\u2014][ \t]))")
"""What a list item is about, where something is said of it behind a colon or a dash."""
_BLANK = " \t\r*_`$\"'.:-"
_RULE_CHARS = " \t:|-"
"""What the line under the head of a Markdown table consists of."""
_OPENING = re.compile(r"[\s*_]{0,4}(?:sure|certainly|of course|okay|ok)(?: thing)?[!.,][ \t]{1,4}", re.IGNORECASE)
_LEAD = re.compile(r"[^,;:\n|&]{1,80}?\s(?:is|are|was|were|includes?)\s{1,3}(?!not\b)", re.IGNORECASE)
"""The words before a list in a sentence: ``The fruits are``."""
_PARTING = " ,;&:/|"
_SET_ASIDE = {ord(mark): chr(0x10600 + place) for place, mark in enumerate(_PARTING)}
_RESTORED = {ord(stand_in): chr(mark) for mark, stand_in in _SET_ASIDE.items()}
"""Letters of Linear A stand in for what parts items, and for blanks, in items that are kept whole."""
_UNIT = re.compile(r"\\?(?!(?:is|was|are|were|and|or|but)\b)\s?\\?[A-Za-z\u00b0/]{1,12}\b")
"""A word behind the last number; what denies it may stand behind that."""


def numbers_listed(text: str) -> tuple[list[float], str]:
    """Gives the numbers that a text lists, in order, and what speaks against the list, ``""`` for nothing.

    The list is that of the module's rule: the last one in square brackets, else in braces, that holds a number; or,
    without one, every number. Markers that count lines (``1.``, ``2.``) are no numbers of the list. ``1/2`` is one
    half; ``1,000`` outside brackets is a thousand. ``not 42`` lists something else than 42, and so does a number past
    all bounds: both count as NaN, which equals nothing. Lists of the same numbers in another order do not differ.
    """
    return _listed(text, _number_lists, _same_numbers)


def items_listed(
    text: str, known: Collection[str] = (), whole: Sequence[str] = (), marks: str = ""
) -> tuple[list[str], str]:
    """Gives the items that a text lists, each once and normalised, and what speaks against the list.

    The list is that of the module's rule: the last one in square brackets, else the lines with list markers, else
    all lines, each without what stands before a colon that is no part of a time or a URL. Commas, semicolons, line
    ends and, outside brackets, the words ``and`` and ``or`` part the items. Outside brackets a denial in the first or
    the last item denies the list. List markers are dashes, numbers and letters that count a, b, c; of ``- **red**:
    warm`` the item is what is bold. An opening word (``Sure!``) and the words of a sentence before its list (``The
    colours are``) are no items, nor is the head of a table.

    Args:
        text: The completion.
        known: Normalised items that are no denials whatever words they hold, such as ``never say never``.
        whole: The items sought as they are written; one that holds what parts items (``Washington, D.C.``) is
            one item where it stands so in the text.
        marks: What parts items besides, of ``|`` and ``/``.
    """
    kept = _kept_whole(tuple(whole))

    def lists(inside: str) -> tuple[list[str], str]:
        return _item_lists(_whole_items(inside, kept), known, marks)

    return _listed(text, lists, frozenset)


def _listed(text: str, lists: _Lists[_T], key: Callable[[list[_T]], Hashable]) -> tuple[list[_T], str]:
    """Gives what the boxes and answer tags list, all that stand alike; without any, what the whole text lists."""
    text = after_thinking(text)
    if len(text) > _LONGEST_TEXT:
        return [], TOO_LONG
    if shown_otherwise(text):
        return [], SHOWN_OTHERWISE
    text = fold(text)
    marks = [mark for mark in boxes(text) if mark.closed]
    marks += [tag for tag in tags(text) if tag.closed and not boxes(tag.content)]
    if not marks:
        return lists(text)
    marks = sorted(marks, key=lambda mark: mark.start)[-_MOST_LISTS:]
    reads = {inside: lists(inside) for inside in dict.fromkeys(mark.content for mark in marks)}
    faults = [reads[mark.content][1] for mark in marks]
    found = [(reads[mark.content][0], _is_denied(text, mark.start, mark.end)) for mark in marks]
    standing, fault = _standing(found, key)
    return standing, faults[-1] or fault


def _standing(found: list[tuple[list[_T], bool]], key: Callable[[list[_T]], Hashable]) -> tuple[list[_T], str]:
    """Gives the last list that is not denied, and what speaks against it: a list that differs, or its own denial."""
    kept = [each for each, denied in found if not denied]
    last = kept[-1] if kept else found[-1][0]
    denied = {key(each) for each, denied in found if denied}
    if key(last) in denied:
        return last, DENIED
    return last, SEVERAL if len(set(map(key, kept))) > 1 else ""


def _bracketed(text: str, brackets: str) -> list[_Span]:
    """Gives the insides of the outermost pairs of brackets."""
    opened: list[int] = []
    found: list[_Span] = []
    for match in _BRACKETS[brackets].finditer(text):
        if match[0] == brackets[0]:
            opened.append(match.end())
        elif opened:
            start = opened.pop()
            while found and found[-1][0] > start:
                found.pop()
            found.append((start, match.start()))
    return found


def _last_of(
    text: str, brackets: str, read: Callable[[str], list[_T]], key: Callable[[list[_T]], Hashable]
) -> tuple[list[_T], str] | None:
    """Gives the last bracketed list that is not empty and stands, and what speaks against it."""
    lists = [(read(text[start:end]), start, end) for start, end in _bracketed(text, brackets)[-_MOST_LISTS:]]
    filled = [(found, _is_denied(text, start - 1, end + 1)) for found, start, end in lists if found]
    return _standing(filled, key) if filled else None


def _is_denied(text: str, start: int, end: int) -> bool:
    """Whether words or signs around a list deny it or take it back, or it is struck out or part of a longer word."""
    return bool(
        clause_denies(text, start)
        or supposed_before(text, start)
        or denied_after(text, end)
        or ((unit := _UNIT.match(text, end)) is not None and denied_after(text, unit.end()))
        or withdrawn_after(text, end)
        or struck_out(text[start:end])
        or (text[start - 1 : start].isalpha() and text[end : end + 1].isalpha())
    )


def _number_lists(text: str) -> tuple[list[float], str]:
    text = _MIXED.sub(_improper, _FRACTION.sub(r"\1/\2", _BEFORE_FRACTION.sub(" ", text)))
    for brackets in _BRACKETS:
        bracketed = _last_of(text, brackets, _numbers, _same_numbers)
        if bracketed is not None:
            return bracketed
    text = _THOUSANDS.sub(lambda number: number.group().replace(",", ""), _without_markers(text))
    found = list(_NUMBER.finditer(text))
    denied = found and _is_denied(text, found[0].start(), found[-1].end())
    return list(map(_value, found)), DENIED if denied else ""


def _improper(mixed: re.Match[str]) -> str:
    """Gives a mixed number as one fraction; what is no mixed number stays."""
    whole, above, below = map(int, mixed.groups())
    return f"{whole * below + above}/{below}" if above < below else mixed[0]


def _same_numbers(numbers: list[float]) -> tuple[str, ...]:
    return tuple(sorted(map(repr, numbers)))


def _numbers(text: str) -> list[float]:
    return list(map(_value, _NUMBER.finditer(text)))


def _value(match: re.Match[str]) -> float:
    """Gives a number's value; NaN for one that is denied, or past all bounds."""
    if match["negated"] or len(match[0]) > _LONGEST_NUMBER:
        return math.nan
    value = float(match["number"])
    if match["below"]:
        below = float(match["below"])
        value = value / below if below else math.nan
    return value if math.isfinite(value) else math.nan


def _without_markers(text: str) -> str:
    """Takes list markers off the lines; numbers are markers where they count 1, 2, 3 line by line."""
    lines = text.split("\n")
    markers = {place: marker for place, line in enumerate(lines) if (marker := _MARKER.match(line))}
    if not markers:
        return text
    counted = [marker[1] for marker in markers.values() if marker[1]]
    counts = len(counted) > 1 and counted == [str(place) for place in range(1, len(counted) + 1)]
    for place, marker in markers.items():
        if counts or not marker[1]:
            lines[place] = lines[place][marker.end() :]
    return "\n".join(lines)


def matched_numbers(found: Sequence[float], gold: Sequence[float], rel: float, absolute: float) -> int:
    """Gives how many numbers of two lists pair off, each used once, within the tolerance."""
    left, right = sorted(filter(math.isfinite, found)), sorted(filter(math.isfinite, gold))
    i = j = pairs = 0
    while i < len(left) and j < len(right):
        if math.isclose(left[i], right[j], rel_tol=rel, abs_tol=absolute):
            i, j, pairs = i + 1, j + 1, pairs + 1
        elif left[i] < right[j]:
            i += 1
        else:
            j += 1
    return pairs


@functools.lru_cache(maxsize=256)
def _kept_whole(written: tuple[str, ...]) -> re.Pattern[str] | None:
    """Gives the pattern of the items that may hold what parts items, the longest first."""
    held = {fold(item).strip() for item in written}
    parted = sorted((item for item in held if any(map(_PARTING.__contains__, item))), key=len, reverse=True)
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, parted))})(?!\w)", re.IGNORECASE) if parted else None


def _whole_items(text: str, kept: re.Pattern[str] | None) -> str:
    """Sets aside what would part the items that are kept whole; :func:`plain_item` undoes it."""
    text = text.translate(dict.fromkeys(_RESTORED, "\ufffd"))
    return text if kept is None else kept.sub(lambda found: found[0].translate(_SET_ASIDE), text)


def _item_lists(text: str, known: Collection[str], marks: str = "") -> tuple[list[str], str]:
    bracketed = _last_of(text, "[]", lambda inside: _items(_at_commas(inside.replace("\n", ","))), frozenset)
    if bracketed is not None:
        return bracketed
    parts = [part for part in _parts(text, marks) if part.strip(_BLANK)]
    ends = [part for part in (*parts[:1], *parts[-1:]) if plain_item(part) not in known]
    labelled = ":" in text and denied_before(text, text.find(":") + 1)
    denied = labelled or any(denies(part[:_DENIAL_CHARS]) for part in ends) or struck_out(text)
    return _items(parts), DENIED if denied else ""


def _at_commas(text: str) -> list[str]:
    return text.replace(";", ",").split(",")


def _parts(text: str, marks: str = "") -> list[str]:
    """Gives the items of a text without brackets; ``marks`` part them too."""
    lines = text.splitlines()
    marked = [line[match.end() :] for line in lines if (match := _MARKER.match(line))] or _lettered(lines)
    if marked:
        return [part for line in marked for part in _head(line).split(";")]
    if "|" in marks and "--" in text:
        lines = _without_heads(lines)
    said = "\n".join(map(_unlabelled, lines))
    opening = _OPENING.match(said)
    said = said[opening.end() :] if opening else said
    for mark in marks:
        said = said.replace(mark, ",")
    lead = _LEAD.match(said)
    if lead and not denies(lead[0]):
        said = said[lead.end() :]
    return _at_commas(_JOINING.sub(",", said))


def _lettered(lines: Sequence[str]) -> list[str]:
    """Gives what stands behind letters that count the lines a, b, c."""
    found = [(match[1].lower(), line[match.end() :]) for line in lines if (match := _LETTERED.match(line))]
    counts = len(found) > 1 and [letter for letter, _ in found] == list("abcdefghijklmnopqrstuvwxyz"[: len(found)])
    return [said for _, said in found] if counts else []


def _head(line: str) -> str:
    """Gives what a list item is about, where that is bold and something is said of it."""
    head = _BOLD_HEAD.match(line) if line[:2] in ("**", "__") else None
    return head[1] if head else line


def _without_heads(lines: Sequence[str]) -> list[str]:
    """Takes the heads of Markdown tables off, and the lines under them."""
    rules = {place for place, line in enumerate(lines) if "|" in line and not line.strip(_RULE_CHARS) and "--" in line}
    return [line for place, line in enumerate(lines) if place not in rules and place + 1 not in rules]


def _unlabelled(line: str) -> str:
    """Gives a line without what stands before its first colon, unless that is part of a time or a URL."""
    place = line.find(":")
    while place >= 0:
        ahead, after = line[place - 1 : place], line[place + 1 : place + 3]
        if not (ahead.isdigit() and after[:1].isdigit()) and after != "//":
            return line[place + 1 :]
        place = line.find(":", place + 1)
    return line


def _items(parts: Iterable[str]) -> list[str]:
    """Gives the parts normalised, each once and none empty."""
    return [item for item in dict.fromkeys(map(plain_item, dict.fromkeys(parts))) if item]


def plain_item(part: str) -> str:
    """Gives an item normalised, without LaTeX's commands and braces."""
    return normalise(_LATEX.sub(" ", part.translate(_RESTORED)).strip(" \t\r\"'"))
