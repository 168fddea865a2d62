"""Lists in free text: which numbers and which items a completion names as its list, and what speaks against it.

The rule: what follows the last ``</think>`` counts. In it ``<answer>...</answer>`` and ``\\boxed{...}`` decide alone,
where there are any that hold something; else the whole text. In what decides the list is the one in brackets, else
the text itself. Two boxes, or two bracketed lists, that differ are a stuffed answer. A list is denied by a word such
as ``not``, ``never`` or ``anything but``, or a sign such as an unequal sign, before it in its sentence, by ``is wrong``
or ``is not`` right behind it, and by characters that are struck out. A text of over 100,000
characters is not read, so that everything takes a bounded time.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from typing import NamedTuple, TypeVar

from builtin_rewards.reading.turn import after_thinking
from builtin_rewards.reading.typography import beyond_ascii, fold, normalise_lines

_T = TypeVar("_T", float, str)
_Lists = Callable[[str], tuple[list[_T], str]]
_Span = tuple[int, int]

SEVERAL = "several different lists"
DENIED = "the list is denied"
TOO_LONG = "too long a text to be read as a list"

_NUMERAL = (
    r"(?<![\w.])(?P<number>[-+]?(?:\d+(?:\.\d+)?|\.\d+)(?:e[-+]?\d{1,4})?)"
    r"(?:[ \t]{0,2}/[ \t]{0,2}(?P<below>\d+))?"
)
_PLAIN_NUMBER = re.compile(_NUMERAL, re.IGNORECASE)
_NUMBER = re.compile(r"(?<![\w.])(?P<negated>not\s+)?" + _NUMERAL, re.IGNORECASE)
_KINDS = bytes(code if chr(code) in " ," else ord("0") if chr(code) in "0123456789" else 32 for code in range(256))
_RARE = 100
"""So many digits are looked for one by one; of more, numbers are found in one pass."""
_THOUSANDS = re.compile(r"(?<![\w.,])\d{1,3}(?:,\d{3})+(?![\w,])")
_MARKER = re.compile(r"[ \t]*(?:(\d{1,4})[.)]|[-*+\u2022])[ \t]+")
_LONGEST_NUMBER = 400
"""Characters of a number that is read; no float that is finite needs more before its point."""
_LONGEST_TEXT = 100_000
"""Characters of the longest text, without its thoughts, that is read."""

_TAGS = re.compile(r"<(/?)answer>", re.IGNORECASE)
_BRACES = re.compile(r"\\(?:boxed|fbox)\s{0,8}\{|\\[{}]|[{}]")
_BRACKETS = {"[]": re.compile(r"[\[\]]"), "{}": re.compile(r"[{}]")}
_FRACTION = re.compile(r"\\[dt]?frac\{([-+]?\d{1,40})\}\{(\d{1,40})\}")
_LATEX_MARKS = "\\{}$"
_LATEX = re.compile(r"\\(?:text|textbf|textit|mathrm|mathbf|rm|bf)\b|\\[{}\[\](),;! ]|[{}$]")

_NO = (
    r"(?:\bnot\b|n't\b|\bcannot\b|\bnever\b|\bneither\b|\bnor\b|\banything\s{1,3}(?:but|except)\b"
    r"|\b(?:everything|all|any)\s{1,3}(?:but|except)\b|\bother\s{1,3}than\b"
    r"|\bwrong\b|\bwrongly\b|\bincorrect(?:ly)?\b|\bfalse(?:ly)?\b"
    r"|\\neq?(?![a-z])|\\neg(?![a-z])|\\lnot(?![a-z])|!=|=/=|[\u2260\u00ac\u2262\u2209])"
)
_BEFORE = re.compile(_NO)
_HANGING = re.compile(_NO + r"[\s*_`$(\"':]{1,20}$")
_HINTS = (
    "not",
    "n't",
    "nor",
    "never",
    "neither",
    "neg",
    "\\ne",
    "wrong",
    "incorrect",
    "false",
    "but",
    "except",
    "other",
    "=",
    "\u2260",
    "\u00ac",
    "\u2262",
    "\u2209",
)
"""Texts of which every denial holds one."""
_HANGING_CHARS = 60
"""Characters before a list in which a denial at the end of the sentence before is looked for."""
_BEHIND = re.compile(
    r"[\s*_`$)}\]\"',]{0,8}(?:</answer>\s{0,4})?(?:which |that |this |it )?"
    r"(?:(?:is|are|was|were|would be|must be|seems?)(?: [a-z]{1,12}){0,2}? (?:not|never|wrong|incorrect|false)\b"
    r"|(?:is|are|was|were|would|ca|could|does|do)n't\b|cannot be\b|\(?(?:wrong|incorrect|false)\b"
    r"|\?\s{0,3}(?:no|nope|wrong)\b|(?:and |but )?(?:then )?(?:i )?(?:rejected|discarded|dismissed|ruled)\b)",
    re.IGNORECASE,
)
_ITEM_DENIES = re.compile(
    r"\b(?:not|never|neither|cannot|(?:is|are|was|were|do|does|would|could|ca)nt"
    r"|(?:anything|everything|all|any) (?:but|except)|other than"
    r"|(?:is|are|was|were) (?:wrong|incorrect|false))\b|[\u2260\u00ac\u2262\u2209]"
)
_SIGN_FIRST = re.compile(r"[\s*_`$(]{0,9}(?:\\neq?(?![a-z])|\\neg(?![a-z])|\\lnot(?![a-z])|!=|=/=)")
_JOINING = {"and": re.compile(r"and(?<!\wand)(?!\w)"), "or": re.compile(r"or(?<!\wor)(?!\w)")}
"""The words between items. A pattern that begins with letters is found many times as fast as one that does not."""
_LETTERED = re.compile(r"[ \t]*\(?([A-Za-z])[.)][ \t]+")
_BOLD_HEAD = re.compile(r"(?:\*\*|__)([^*_]{1,200})(?::(?:\*\*|__)|(?:\*\*|__)[ \t]{0,3}(?::|[-\u2013\u2014][ \t]))")
"""What a list item is about, where something is said of it behind a colon or a dash."""
_RULE_CHARS = " \t:|-"
"""What the line under the head of a Markdown table consists of."""
_OPENING = re.compile(r"[\s*_]{0,4}(?:sure|certainly|of course|okay|ok)(?: thing)?[!.,][ \t]{1,4}", re.IGNORECASE)
_LEAD = re.compile(r"[^,;:\n|&]{1,80}?\s(?:is|are|was|were|includes?)\s{1,3}(?!not\b)", re.IGNORECASE)
"""The words before a list in a sentence: ``The fruits are``."""
_SET_ASIDE = {mark: chr(0xE000 + place) for place, mark in enumerate((*",;&:/|", " and ", " or "))}
_NOT_ASIDE = {ord(stand_in): "\ufffd" for stand_in in _SET_ASIDE.values()}
"""Private characters that stand in for what parts items, in items that are kept whole."""
_SENTENCE_ENDS = (". ", "! ", "? ", "\n", ">")
_SENTENCE_CHARS = 300
"""Characters before a list in which its sentence is looked for."""
_STRUCK = re.compile("[\u0334-\u0338\u20d2\u20d3\u20e5\u20eb]")


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
    """Gives what the text's boxes and answer tags list, all alike, or the whole text where there are none."""
    text = after_thinking(text)
    if len(text) > _LONGEST_TEXT:
        return [], TOO_LONG
    text = fold(text)
    frames = _frames(text)
    if not frames:
        return lists(text)
    insides = list(dict.fromkeys(text[start:end] for start, end in frames))
    start, end = frames[-1]
    found, fault = lists(text[start:end])
    if not fault and any(key(lists(inside)[0]) != key(found) for inside in insides):
        fault = SEVERAL
    return found, fault or (DENIED if _is_denied(text, start, end, in_frame=True) else "")


def _frames(text: str) -> list[_Span]:
    """Gives the insides of boxes, and of answer tags without a box in them, that are not blank, in order."""
    boxes = _boxes(text) if "\\boxed" in text or "\\fbox" in text else []
    tagged = "</" in text
    if not boxes and not tagged:
        return []
    tags: list[_Span] = []
    if tagged:
        opened, place = -1, 0
        for tag in _TAGS.finditer(text):
            if not tag[1]:
                opened = tag.end()
            elif opened >= 0:
                while place < len(boxes) and boxes[place][0] < opened:
                    place += 1
                if place == len(boxes) or boxes[place][0] > tag.start():
                    tags.append((opened, tag.start()))
                opened = -1
    return sorted(span for span in boxes + tags if text[span[0] : span[1]].strip())


def _boxes(text: str) -> list[_Span]:
    """Gives the insides of the outermost boxes that are closed."""
    opened: list[int] = []
    found: list[_Span] = []
    for match in _BRACES.finditer(text):
        if match[0].startswith(("\\boxed", "\\fbox")):
            opened.append(match.end())
        elif match[0] == "{":
            opened.append(-1)
        elif match[0] == "}" and opened and (start := opened.pop()) >= 0:
            _add_outer(found, (start, match.start()))
    return found


def _add_outer(found: list[_Span], span: _Span) -> None:
    """Adds a span in place of those inside it."""
    while found and found[-1][0] > span[0]:
        found.pop()
    found.append(span)


def _bracketed(text: str, brackets: str) -> list[_Span]:
    """Gives the insides of the outermost pairs of brackets."""
    first, last = text.find(brackets[0]), text.rfind(brackets[1])
    if not 0 <= first < last:
        return []
    opened: list[int] = []
    found: list[_Span] = []
    for match in _BRACKETS[brackets].finditer(text, first, last + 1):
        if match[0] == brackets[0]:
            opened.append(match.end())
        elif opened:
            _add_outer(found, (opened.pop(), match.start()))
    return found


def _last_of(
    text: str, brackets: str, read: Callable[[str], list[_T]], key: Callable[[list[_T]], Hashable]
) -> tuple[list[_T], str] | None:
    """Gives the last bracketed list that is not empty, and what speaks against it."""
    last: tuple[list[_T], str] | None = None
    seen: set[str] = set()
    for start, end in reversed(_bracketed(text, brackets)):
        inside = text[start:end]
        if inside in seen:
            continue
        seen.add(inside)
        found = read(inside)
        if found and last is not None and key(found) != key(last[0]):
            return last[0], SEVERAL
        if found and last is None:
            last = found, DENIED if _is_denied(text, start - 1, end + 1) else ""
    return last


def _is_denied(text: str, start: int, end: int, *, in_frame: bool = False) -> bool:
    """Whether words or signs around a list deny it, or it is struck out or part of a longer word."""
    before = text[max(0, start - _SENTENCE_CHARS) : start].lower()
    if in_frame:
        before = before[: max(before.rfind("\\"), before.rfind("<"), 0)]
        end += len("}")
        if text.startswith("answer>", end + 1):
            end += len("/answer>")
    sentence, last = before[max(map(before.rfind, _SENTENCE_ENDS)) + 1 :], before[-_HANGING_CHARS:]
    return bool(
        (sentence and any(map(sentence.__contains__, _HINTS)) and _BEFORE.search(sentence))
        or (any(map(last.__contains__, _HINTS)) and _HANGING.search(last))
        or _BEHIND.match(text, end)
        or (not text.isascii() and _STRUCK.search(text, start, end))
        or (before[-1:].isalpha() and text[end : end + 1].isalpha())
    )


def _number_lists(text: str) -> tuple[list[float], str]:
    if "frac{" in text:
        text = _FRACTION.sub(r"\1/\2", text)
    for brackets in _BRACKETS:
        bracketed = _last_of(text, brackets, _numbers, _same_numbers)
        if bracketed is not None:
            return bracketed
    text = _without_markers(text)
    kinds = _kinds(text)
    if kinds is None or b"0,000" in kinds:
        text = _THOUSANDS.sub(lambda number: number.group().replace(",", ""), text)
        kinds = _kinds(text)
    found = _numbers_in(text, kinds)
    if not found:
        return [], ""
    denied = _is_denied(text, found[0].start, found[-1].end)
    return [number.value for number in found], DENIED if denied else ""


class _Found(NamedTuple):
    """A number in a text, the word ``not`` before it included; then, and past all bounds, its value is NaN."""

    start: int
    end: int
    value: float


def _kinds(text: str) -> bytes | None:
    """Gives the text with digits as 0, and all but digits and commas as blanks; ``None`` for digits beyond ASCII."""
    if not text.isascii() and any(map(str.isdecimal, beyond_ascii(text))):
        return None
    return text.encode("ascii", "replace").translate(_KINDS)


def _numbers_in(text: str, kinds: bytes | None) -> list[_Found]:
    """Gives a text's numbers, as :data:`_NUMBER` finds them; told from the digits where they are few."""
    if kinds is None or kinds.count(b"0") > _RARE:
        return [_Found(*match.span(), _value(match, bool(match["negated"]))) for match in _NUMBER.finditer(text)]
    found: list[_Found] = []
    done, digit = 0, kinds.find(b"0")
    while digit >= 0:
        match = _number_at(text, done, digit)
        if match is None:
            after = _after_digits(kinds, digit)
        else:
            start, after = match.span()
            before = text[done:start]
            stripped = before.rstrip()
            negated = len(stripped) < len(before) and _ends_in_not(text, stripped, done)
            found.append(_Found(done + len(stripped) - 3 if negated else start, after, _value(match, negated)))
        done = after
        digit = kinds.find(b"0", done)
    return found


def _number_at(text: str, done: int, digit: int) -> re.Match[str] | None:
    """Gives the number whose first digit stands there, if there is one; a sign and a point may stand before it."""
    for start in range(max(done, digit - 2), digit):
        if text[start] in "+-." and (match := _PLAIN_NUMBER.match(text, start)):
            return match
    return _PLAIN_NUMBER.match(text, digit)


def _after_digits(kinds: bytes, digit: int) -> int:
    ends = [end for mark in (b" ", b",") if (end := kinds.find(mark, digit)) >= 0]
    return min(ends, default=len(kinds))


def _ends_in_not(text: str, before: str, start: int) -> bool:
    """Whether the part of a text that begins at ``start`` ends in the word ``not``."""
    if before[-3:].lower() != "not":
        return False
    place = start + len(before) - 3
    ahead = text[place - 1 : place]
    return not (ahead.isalnum() or ahead in tuple("_."))


def _same_numbers(numbers: list[float]) -> tuple[str, ...]:
    return tuple(sorted(map(repr, numbers)))


def _numbers(text: str) -> list[float]:
    return [_value(match, bool(match["negated"])) for match in _NUMBER.finditer(text)]


def _value(match: re.Match[str], negated: bool) -> float:
    if negated or len(match[0]) > _LONGEST_NUMBER:
        return math.nan
    value = float(match["number"])
    if match["below"]:
        below = float(match["below"])
        value = value / below if below else math.nan
    return value if math.isfinite(value) else math.nan


def _without_markers(text: str) -> str:
    """Takes list markers off the lines; numbers are markers where they count 1, 2, 3 line by line."""
    lines = text.split("\n")
    markers = {place: marker for place, line in enumerate(lines) if (marker := _marker(line))}
    if not markers:
        return text
    counted = [marker[1] for marker in markers.values() if marker[1]]
    counts = len(counted) > 1 and counted == [str(place) for place in range(1, len(counted) + 1)]
    for place, marker in markers.items():
        if counts or not marker[1]:
            lines[place] = lines[place][marker.end() :]
    return "\n".join(lines)


def _marker(line: str) -> re.Match[str] | None:
    first = line.lstrip(" \t")[:1]
    return _MARKER.match(line) if first.isdecimal() or (first and first in "-*+\u2022") else None


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
    """Gives the pattern of the items that hold what parts items, the longest first."""
    held = {fold(item).strip() for item in written}
    parted = sorted((item for item in held if len(item) > 2 and _splits(item)), key=len, reverse=True)
    if not parted:
        return None
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, parted))})(?!\w)", re.IGNORECASE)


def _splits(item: str) -> bool:
    return any(map(item.lower().__contains__, _SET_ASIDE))


def _whole_items(text: str, kept: re.Pattern[str] | None) -> str:
    """Sets aside what would part the items that are kept whole; :func:`_restored` undoes it."""
    if not text.isascii():
        text = text.translate(_NOT_ASIDE)
    return text if kept is None else kept.sub(lambda found: _aside(found[0]), text)


def _aside(item: str) -> str:
    item = item.lower()
    for mark, stand_in in _SET_ASIDE.items():
        item = item.replace(mark, stand_in)
    return item


def _restored(text: str) -> str:
    for mark, stand_in in _SET_ASIDE.items():
        text = text.replace(stand_in, mark)
    return text


def _item_lists(text: str, known: Collection[str], marks: str = "") -> tuple[list[str], str]:
    bracketed = _last_of(text, "[]", lambda inside: _items(_at_commas(inside.replace("\n", ","))), frozenset)
    if bracketed is not None:
        return bracketed
    found = _items(_parts(text, marks))
    ends = [item for item in (*found[:1], *found[-1:]) if item not in known]
    denied = (
        any(map(_ITEM_DENIES.search, ends)) or _SIGN_FIRST.match(text) or (not text.isascii() and _STRUCK.search(text))
    )
    return found, DENIED if denied else ""


def _at_commas(text: str) -> list[str]:
    return text.replace(";", ",").split(",")


def _parts(text: str, marks: str = "") -> list[str]:
    """Gives the items of a text without brackets; ``marks`` part them too."""
    lines = text.splitlines()
    marked = [line[match.end() :] for line in lines if (match := _marker(line))] or _lettered(lines)
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
    if lead and not _BEFORE.search(lead[0].lower()):
        said = said[lead.end() :]
    for word, pattern in _JOINING.items():
        said = said.replace(f" {word} ", " , ")
        said = pattern.sub(",", said) if word in said else said
    return _at_commas(said.replace("&", ",").replace("\n", ","))


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
    """Gives the parts normalised, each once and none empty. No part holds a line feed."""
    whole = "\n".join(dict.fromkeys(parts))
    if not whole.isascii():
        whole = "\n".join(_restored(part) for part in whole.split("\n"))
    if any(map(whole.__contains__, _LATEX_MARKS)):
        whole = "\n".join(_LATEX.sub(" ", part) for part in whole.split("\n"))
    plain = dict.fromkeys(part.strip(" \t\r\"'") for part in whole.split("\n"))
    return [item for item in dict.fromkeys(normalise_lines("\n".join(plain))) if item]
