"""The marks of an answer in a text, ``\\boxed{...}`` and ``<answer>...</answer>``, each parsed here alone."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mark:
    """A box or a tag with content, from ``start`` up to ``end`` in the text."""

    start: int
    end: int
    content: str  # Its text as it stands; where a box is in a box, that of the inner one
    closed: bool = True  # Whether it ends; otherwise the content goes to the end of the text


_MOST_NESTED = 12  # `re` has no recursion, so each level is written out
_INSIDE = r"(?>[^{}\\]++|\\[\s\S])*+"
for _ in range(_MOST_NESTED):
    _INSIDE = rf"(?>[^{{}}\\]++|\\[\s\S]|\{{{_INSIDE}\}})*+"
_BOX = re.compile(  # not after an escaped backslash
    rf"\\(?<!(?<!\\)\\\\)(?:boxed|fbox)(?:\s{{0,8}}\{{(?:(?P<content>{_INSIDE})\}}|(?P<open>[\s\S]*))"
    r"|\s+(?P<bare>[^\s{}$\\]+))"
)
_MENTION = re.compile(r"[`\"']?,? (?:and|or|to|und|et|y|e) [`\"']?", re.IGNORECASE)  # `the tags <answer> and </answer>`
_BLANK = re.compile(  # what stands in a box that only shows where an answer goes
    r"(?>\\(?:[hv]?phantom|rule|hspace)\s*\{[^{}]*\}|\\(?:square|Box|[lc]?dots|q?quad)\b|[\s_?.,~]|\\[_ ,;:!])*+"
)


def boxes(text: str) -> list[Mark]:
    """Return the outermost boxes with content, in order: ``\\boxed{5}``, ``\\fbox{5}``, ``\\boxed 5``.

    Unescaped braces pair, up to twelve deep. A box that never closes is the last mark, and not closed. Blanks, dots,
    question marks, underscores and phantoms are no content: ``\\boxed{?}`` only shows how to write an answer.
    """
    marks: list[Mark] = []
    for box in _BOX.finditer(text):
        content = box["open"] or (box["bare"] or "").rstrip(".,;:)")
        inner: re.Match[str] | None = box
        while inner is not None and inner["content"] is not None:
            content = inner["content"]
            inner = _BOX.fullmatch(content.strip())
        marks.append(Mark(box.start(), box.end(), content, closed=box["open"] is None))
    return [mark for mark in marks if not mark.closed or not _BLANK.fullmatch(mark.content)]


def tags(text: str, name: str = "(?:final[_ -]?)?answer") -> list[Mark]:
    """Return the tags with content, in order, in any case, each from its last opening; ``name`` may be a pattern."""
    marks: list[Mark] = []
    opening: re.Match[str] | None = None
    for tag in re.finditer(rf"<\s{{0,3}}(/?)\s{{0,3}}(?:{name})\s{{0,3}}>", text, re.IGNORECASE):
        if opening is not None and tag[1]:
            marks.append(Mark(opening.start(), tag.end(), text[opening.end() : tag.start()]))
        opening = None if tag[1] else tag
    if opening is not None:
        marks.append(Mark(opening.start(), len(text), text[opening.end() :], closed=False))
    return [mark for mark in marks if mark.content.strip() and not _MENTION.fullmatch(mark.content)]
