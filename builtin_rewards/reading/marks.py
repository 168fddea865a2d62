"""Where answers are marked in a text: ``\\boxed{...}`` and ``<answer>...</answer>``, each parsed here alone.

Which of the marks counts is left to those who read them.
"""

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


_BOX_OR_BRACE = re.compile(
    r"\\(?:boxed|fbox)(?:\s{0,8}\{|\s+(?P<bare>[^\s{}$\\]+))|(?P<escaped>\\[{}\\])|(?P<brace>[{}])"
)
_BLANK = re.compile(
    r"(?:\\(?:[hv]?phantom|rule|hspace)\s*\{[^{}]*\}|\\(?:square|Box|[lc]?dots|q?quad)\b|[\s_?.,~]|\\[_ ,;:!])*+"
)
_MOST_NESTED = 20
"""A box in a box is looked into so often."""
_ANSWER = "(?:final[_ -]?)?answer"


def boxes(text: str, nested: int = _MOST_NESTED) -> list[Mark]:
    """Gives the outermost boxes of a text that hold something, in order: ``\\boxed{5}``, ``\\fbox{5}``, ``\\boxed 5``.

    Braces pair, but for escaped ones. A box that never closes is the last mark, and not closed. Blanks, dots, question
    marks, underscores and phantoms are nothing: ``\\boxed{}`` and ``\\boxed{?}`` tell how to write an answer. Of a box
    in a box the inner one is read, as often as ``nested`` says.
    """
    places = [place for name in ("\\boxed", "\\fbox") if (place := text.find(name)) >= 0]
    if not places:
        return []
    found: list[Mark] = []
    opened: list[bool] = []
    outer: tuple[int, int] | None = None
    for match in _BOX_OR_BRACE.finditer(text, min(places)):
        if match["escaped"]:
            continue
        if match["bare"] is not None:
            if outer is None:
                found.append(Mark(match.start(), match.end(), match["bare"].rstrip(".,;:)")))
        elif match["brace"] != "}":
            is_outer = match["brace"] is None and outer is None
            opened.append(is_outer)
            outer = match.span() if is_outer else outer
        elif opened and opened.pop() and outer is not None:
            found.append(Mark(outer[0], match.end(), _inmost(text[outer[1] : match.start()], nested)))
            outer = None
    filled = [box for box in found if not _BLANK.fullmatch(box.content)]
    return filled if outer is None else [*filled, Mark(outer[0], len(text), text[outer[1] :], closed=False)]


def _inmost(content: str, nested: int) -> str:
    """What is in a box in a box."""
    inner = content.strip()
    if not nested or not inner.startswith(("\\boxed{", "\\fbox{")):
        return content
    found = boxes(inner, nested - 1)
    return found[0].content if len(found) == 1 and found[0].closed and found[0].end == len(inner) else content


def tags(text: str, name: str = _ANSWER) -> list[Mark]:
    """Gives the tags of a name that hold more than blanks, in order, in any case: ``<answer>5</answer>``.

    ``<final_answer>`` is one too. Of tags opened twice the last one counts; one that never closes is the last mark, and
    not closed. A closing tag without an opening one is none.

    Args:
        text: Where to look.
        name: The tag's name, or a pattern of names.
    """
    if "<" not in text:
        return []
    found: list[Mark] = []
    opened: tuple[int, int] | None = None
    for tag in re.finditer(rf"<\s{{0,3}}(/?)\s{{0,3}}(?:{name})\s{{0,3}}>", text, re.IGNORECASE):
        if not tag[1]:
            opened = tag.span()
        elif opened is not None:
            found.append(Mark(opened[0], tag.end(), text[opened[1] : tag.start()]))
            opened = None
    if opened is not None:
        found.append(Mark(opened[0], len(text), text[opened[1] :], closed=False))
    return [mark for mark in found if mark.content.strip()]
