"""Lists in free text: the numbers or items that a completion lists, and why a list does not count.

Closed answer tags and boxes after the thoughts decide alone, where any has content. A list that is denied, struck out
or withdrawn does not count, and several that differ are a stuffed answer.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from typing import TypeVar

from builtin_rewards.reading.boxes_and_tags import boxes, tags
from builtin_rewards.reading.negation import clause_denies, denied_before, denies, objection, supposed_before
from builtin_rewards.reading.normalisation import SHOWN_OTHERWISE, fold, normalise, shown_otherwise, struck_out
from builtin_rewards.reading.thoughts import after_thinking

_T = TypeVar("_T", float, str)
_Lists = Callable[[str], tuple[list[_T], str]]

SEVERAL = "several different lists"
DENIED = "the list is denied"
TOO_LONG = "too long a text to be read as a list"

_NUMBER = re.compile(
    r"(?<![\w.])(?P<negated>not\s+)?(?P<number>[-+]?(?:\d+(?:\.\d+)?|\.\d+)(?:e[-+]?\d{1,4})?)"
    r"(?:[ \t]{0,2}/[ \t]{0,2}(?P<below>\d+))?",
    re.IGNORECASE,
)
_THOUSANDS = re.compile(r"(?<![\w.,])\d{1,3}(?:,\d{3})+(?![\w,])")  # only outside brackets, where a comma parts items
_MARKER = re.compile(r"[ \t]*(?:\(?(?:(?P<number>\d{1,4})|(?P<letter>[A-Za-z]))[.)]|[-*+\u2022])[ \t]+")
# The longest number and text (without thoughts) that are read, and how much of an item is searched for a denial.
_LONGEST_NUMBER, _LONGEST_TEXT, _DENIAL_CHARS = 400, 100_000, 160
_MOST_LISTS = 200  # how many boxes, tags or bracketed lists are compared, from the end

_SQUARE = re.compile(r"\[(?>[^\[\]]++|\[[^\[\]]*+\])*+\]")
_CURLY = re.compile(r"\{(?>[^{}]++|\{[^{}]*+\})*+\}")
_FRACTION = re.compile(r"\\[dt]?frac\{([-+]?\d{1,40})\}\{(\d{1,40})\}")
_BEFORE_FRACTION = re.compile(r"(?<=\d)(?=\\[dt]?frac)")  # `2\frac12` is a mixed number
# A whole number and a fraction: `12 3/5`.
_MIXED = re.compile(r"(?<![\w./])(?<!\d[ \t])(\d{1,40})[ \t]{1,2}(\d{1,40})/(\d{1,40})(?![\w/]|\.\d)")
_LATEX = re.compile(r"\\(?:text|textbf|textit|mathrm|mathbf|rm|bf)\b|\\[{}\[\](),;! ]|[{}$]")
_JOINING = re.compile(r"(?<!\w)(?:and|or)(?!\w)|[&\n]")  # what stands between items, besides commas
# The bold head of a list item, before a colon or a dash.
_BOLD_HEAD = re.compile(r"(?:\*\*|__)([^*_]{1,200})(?::(?:\*\*|__)|(?:\*\*|__)[ \t]{0,3}(?::|[-\u2013\u2014][ \t])).*")
_BLANK = " \t\r*_`$\"'.:-"
_TABLE_HEAD = re.compile(r"^.*\n(?=.*\|)(?=.*--)[ \t:|-]+$", re.MULTILINE)  # with the rule below it
# The label of a line: the text before its first colon, except in a time or a URL.
_LABEL = re.compile(r"^(?>[^:\n]|(?<=\d):(?=\d)|:(?=//))*+:", re.MULTILINE)
_OPENING = re.compile(r"\A[\s*_]{0,4}(?:sure|certainly|of course|okay|ok)(?: thing)?[!.,][ \t]{1,4}", re.IGNORECASE)
# The words before a list in a sentence: `The fruits are`.
_LEAD = re.compile(r"[^,;:\n|&]{1,80}?\s(?:is|are|was|were|includes?)\s{1,3}(?!not\b)", re.IGNORECASE)
_BOTH = re.compile(r"\A\s*both\s+(?=[^\n]*?\sand\s)", re.IGNORECASE)
_COMMAS = ",;\u3001\u060c\u061b"  # of all scripts, and semicolons
_PARTING = f" &:/|{_COMMAS}"
_STAND_INS = {ord(mark): chr(0x10600 + index) for index, mark in enumerate(_PARTING)}
# Letters of Linear A replace separators and blanks in items that are kept whole.
_RESTORED = {ord(stand_in): chr(mark) for mark, stand_in in _STAND_INS.items()}
_SENTENCE_BEFORE = re.compile(r"[^.!?\n]+(?=:[\s$*(\\]*$)")
# A word behind the last number, such as its unit, before a denial.
_UNIT = re.compile(r"\\?(?!(?:is|was|are|were|and|or|but)\b)\s?\\?[A-Za-z\u00b0/]{1,12}\b")


def numbers_listed(text: str) -> tuple[list[float], str]:
    """Return the numbers that a text lists, in order, and why the list does not count, or ``""``.

    The list is the last one in square brackets, else in braces, that holds a number; else every number but list
    markers. ``1/2`` is one half; ``1,000`` outside brackets is a thousand. ``not 42``, and a number beyond a float, are
    NaN, which equals nothing. Lists of the same numbers in another order do not differ.
    """
    return _find_list(text, _number_lists, _same_numbers)


def items_listed(
    text: str, literals: Collection[str] = (), wholes: Sequence[str] = (), marks: str = ""
) -> tuple[list[str], str]:
    """Return the items that a text lists, each once and normalised, and why the list does not count, or ``""``.

    The list is the last one in square brackets, else the lines with list markers, else all lines, each without a label
    before a colon; ``set_f1`` tells what parts items, and ``marks`` are further separators, of ``|`` and ``/``.
    Normalised ``literals`` such as ``never say never`` are no denials. Of the items sought, ``wholes``, one with a
    separator in it (``Washington, D.C.``) is one item.
    """
    pattern = _whole_items(tuple(wholes))

    def lists(content: str) -> tuple[list[str], str]:
        content = content.translate(dict.fromkeys(_RESTORED, "\ufffd"))
        content = pattern.sub(lambda match: match[0].translate(_STAND_INS), content) if pattern else content
        return _item_lists(content, literals, marks)

    return _find_list(text, lists, frozenset)


def _find_list(text: str, lists: _Lists[_T], key: Callable[[list[_T]], Hashable]) -> tuple[list[_T], str]:
    """Return the last list in boxes and answer tags, without these the text's, and why it does not count."""
    text = after_thinking(text)
    if len(text) > _LONGEST_TEXT or shown_otherwise(text):
        return [], SHOWN_OTHERWISE if len(text) <= _LONGEST_TEXT else TOO_LONG
    text = fold(text)
    marks = [mark for mark in (*boxes(text), *(tag for tag in tags(text) if not boxes(tag.content))) if mark.closed]
    if not marks:
        return lists(text)
    marks = sorted(marks, key=lambda mark: mark.start)[-_MOST_LISTS:]
    readings = {content: lists(content) for content in {mark.content for mark in marks}}
    items, fault = _last_standing([(readings[m.content][0], _is_denied(text, m.start, m.end)) for m in marks], key)
    return items, readings[marks[-1].content][1] or fault


def _last_standing(lists: list[tuple[list[_T], bool]], key: Callable[[list[_T]], Hashable]) -> tuple[list[_T], str]:
    """Return the last list that is not denied, and why it does not count: a list that differs, or a denial."""
    standing = [items for items, is_denied in lists if not is_denied]
    last = standing[-1] if standing else lists[-1][0]
    if key(last) in {key(items) for items, is_denied in lists if is_denied}:
        return last, DENIED
    return last, SEVERAL if len(set(map(key, standing))) > 1 else ""


def _last_of(
    text: str, brackets: re.Pattern[str], parse: Callable[[str], list[_T]], key: Callable[[list[_T]], Hashable]
) -> tuple[list[_T], str] | None:
    """Return the last list in outermost brackets, and why it does not count; ``None`` without one."""
    matches = [*brackets.finditer(text)][-_MOST_LISTS:]
    lists = [(items, _is_denied(text, *match.span())) for match in matches if (items := parse(match[0][1:-1]))]
    return _last_standing(lists, key) if lists else None


def _is_denied(text: str, start: int, end: int) -> bool:
    """Return whether a list is denied, withdrawn, struck out or part of a longer word."""
    unit = _UNIT.match(text, end)
    return bool(
        clause_denies(text, start)
        or supposed_before(text, start)
        or _is_mislabelled(text, start)
        or objection(text, start, end)
        or (unit and objection(text, start, unit.end()))
        or struck_out(text[start:end])
        or (text[start - 1 : start].isalpha() and text[end : end + 1].isalpha())
    )


def _is_mislabelled(text: str, start: int) -> bool:
    """Return whether the label before a list and its colon calls it wrong: ``Wrong answer:``."""
    label = _SENTENCE_BEFORE.search(text[max(0, start - _DENIAL_CHARS) : start])
    return denied_before(text, start) or (label is not None and objection(label[0], 0, 0) != "")


def _number_lists(text: str) -> tuple[list[float], str]:
    text = _MIXED.sub(_improper, _FRACTION.sub(r"\1/\2", _BEFORE_FRACTION.sub(" ", text)))
    for brackets in (_SQUARE, _CURLY):
        if (bracketed := _last_of(text, brackets, _numbers, _same_numbers)) is not None:
            return bracketed
    lines = dict(enumerate(text.split("\n")))
    text = "\n".join({**lines, **_behind_markers([*lines.values()])}.values())
    text = _THOUSANDS.sub(lambda number: number[0].replace(",", ""), text)
    matches = list(_NUMBER.finditer(text))
    is_denied = matches and _is_denied(text, matches[0].start(), matches[-1].end())
    return _numbers(text), DENIED if is_denied else ""


def _improper(mixed: re.Match[str]) -> str:
    units, top, bottom = map(int, mixed.groups())
    return f"{units * bottom + top}/{bottom}" if top < bottom else mixed[0]


def _same_numbers(numbers: list[float]) -> tuple[str, ...]:
    return tuple(sorted(map(repr, numbers)))


def _numbers(text: str) -> list[float]:
    return list(map(_value, _NUMBER.finditer(text)))


def _value(match: re.Match[str]) -> float:
    if match["negated"] or len(match[0]) > _LONGEST_NUMBER:
        return math.nan
    divisor = float(match["below"] or 1)
    value = float(match["number"]) / divisor if divisor else math.nan
    return value if math.isfinite(value) else math.nan


def _behind_markers(lines: Sequence[str], *, items: bool = False) -> dict[int, str]:
    """Return the text behind list markers by line: dashes, counters from 1 or ``a``; any two numbers before items."""
    markers = {index: marker for index, line in enumerate(lines) if (marker := _MARKER.match(line))}
    numbers = [int(marker["number"]) for marker in markers.values() if marker["number"]]
    letters = [ord(marker["letter"].lower()) - 96 for marker in markers.values() if marker["letter"]]
    kinds: set[str | None] = {None}
    if _counts_up(numbers) or (items and len(numbers) > 1):
        kinds.add("number")
    if _counts_up(letters) and {*letters} != {1}:
        kinds.add("letter")
    return {index: marker.string[marker.end() :] for index, marker in markers.items() if marker.lastgroup in kinds}


def _counts_up(counters: Sequence[int]) -> bool:
    return all(b in (1, a + 1) for a, b in itertools.pairwise([0, *counters]))


def matched_numbers(numbers: Sequence[float], gold: Sequence[float], rel: float, absolute: float) -> int:
    """Return how many numbers of two lists pair off within the tolerance, each used once."""
    left, right = sorted(filter(math.isfinite, numbers)), sorted(filter(math.isfinite, gold))
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
def _whole_items(items: tuple[str, ...]) -> re.Pattern[str] | None:
    """Return the pattern of the items with a separator in them, the longest first."""
    texts = (text for text in {fold(item).strip() for item in items} if not {*_PARTING}.isdisjoint(text))
    listing = "|".join(map(re.escape, sorted(texts, key=len, reverse=True)))
    return re.compile(rf"(?<!\w)(?:{listing})(?!\w)", re.IGNORECASE) if listing else None


def _item_lists(text: str, literals: Collection[str], marks: str = "") -> tuple[list[str], str]:
    listing = _last_of(text, _SQUARE, lambda content: _items(re.split(f"[{_COMMAS}\n]", content)), frozenset)
    if listing is not None:
        return listing
    parts = [part for part in _parts(text, marks) if part.strip(_BLANK)]
    edges = [part[:_DENIAL_CHARS] for part in (*parts[:1], *parts[-1:]) if plain_item(part) not in literals]
    is_denied = _is_mislabelled(text, text.find(":") + 1) or any(map(denies, edges)) or struck_out(text)
    return _items(parts), DENIED if is_denied else ""


def _parts(text: str, marks: str = "") -> list[str]:
    """Return the items of a text without brackets; ``marks`` part them too."""
    if lines := _behind_markers(text.splitlines(), items=True):
        return [part for line in lines.values() for part in _BOLD_HEAD.sub(r"\1", line).split(";")]
    text = _OPENING.sub("", _LABEL.sub("", _TABLE_HEAD.sub("", text) if "|" in marks else text))
    for mark in marks:
        text = text.replace(mark, ",")
    lead = _LEAD.match(text)
    text = text[lead.end() :] if lead and not denies(lead[0]) else text
    return re.split(f"[{_COMMAS}]", _JOINING.sub(",", _BOTH.sub("", text)))


def _items(parts: Iterable[str]) -> list[str]:
    return [item for item in dict.fromkeys(map(plain_item, dict.fromkeys(parts))) if item]


def plain_item(part: str) -> str:
    """Return an item normalised, without LaTeX's commands and braces, with its separators restored."""
    return normalise(_LATEX.sub(" ", part.translate(_RESTORED)).strip(" \t\r\"'"))
