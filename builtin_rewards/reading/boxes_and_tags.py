"""Where answers are marked in a text: ``\\boxed{...}`` and ``<answer>...</answer>``, each parsed here alone."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mark:
    """A box or a tag that holds something.

    Attributes:
        start: Where it begins in the text.
        end: The place behind it.
        content: What it holds, as it stands; of a box in a box, what the inner one holds.
        closed: Whether it ends; of one that does not, the content goes to the end of the text.
    """

    start: int
    end: int
    content: str
    closed: bool = True


_MOST_NESTED = 12
_INSIDE = r"(?:[^{}\\]++|\\[\s\S])*+"
for _ in range(_MOST_NESTED):
    _INSIDE = rf"(?:[^{{}}\\]++|\\[\s\S]|\{{{_INSIDE}\}})*+"
_BOX = re.compile(
    rf"\\(?<!(?<!\\)\\\\)(?:boxed|fbox)(?:\s{{0,8}}\{{(?:(?P<content>{_INSIDE})\}}|(?P<open>[\s\S]*))"
    r"|\s+(?P<bare>[^\s{}$\\]+))"
)
_BLANK = re.compile(
    r"(?:\\(?:[hv]?phantom|rule|hspace)\s*\{[^{}]*\}|\\(?:square|Box|[lc]?dots|q?quad)\b|[\s_?.,~]|\\[_ ,;:!])*+"
)


def boxes(text: str) -> list[Mark]:
    """Return the outermost boxes of a text that hold something, in order: ``\\boxed{5}``, ``\\fbox{5}``, ``\\boxed 5``.

    Braces pair, but for escaped ones, up to twelve deep. A box that never closes is the last mark, and not closed.
    Blanks, dots, question marks, underscores and phantoms are nothing: ``\\boxed{}`` and ``\\boxed{?}`` tell how to
    write an answer. Of a box in a box the inner one is read.
    """
    found: list[Mark] = []
    for box in _BOX.finditer(text):
        content = box["open"] or (box["bare"] or "").rstrip(".,;:)")
        inner: re.Match[str] | None = box
        while inner is not None and inner["content"] is not None:
            content = inner["content"]
            inner = _BOX.fullmatch(content.strip())
        found.append(Mark(box.start(), box.end(), content, closed=box["open"] is None))
    return [mark for mark in found if not mark.closed or not _BLANK.fullmatch(mark.content)]


def tags(text: str, name: str = "(?:final[_ -]?)?answer") -> list[Mark]:
    """Return the tags of a name that hold more than blanks, in order, in any case: ``<answer>5</answer>``.

    ``<final_answer>`` is one too. Of tags opened twice the last one counts; one that never closes is the last mark, and
    not closed. A closing tag without an opening one is none. ``name`` may be a pattern of names.
    """
    found: list[Mark] = []
    opened: re.Match[str] | None = None
    for tag in re.finditer(rf"<\s{{0,3}}(/?)\s{{0,3}}(?:{name})\s{{0,3}}>", text, re.IGNORECASE):
        if opened is not None and tag[1]:
            found.append(Mark(opened.start(), tag.end(), text[opened.end() : tag.start()]))
        opened = None if tag[1] else tag
    if opened is not None:
        found.append(Mark(opened.start(), len(text), text[opened.end() :], closed=False))
    return [mark for mark in found if mark.content.strip()]
