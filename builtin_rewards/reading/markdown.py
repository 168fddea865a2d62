"""What a Markdown text has: fenced blocks, headings, list items, tables."""

from __future__ import annotations

import re
from collections.abc import Container
from typing import NamedTuple

from builtin_rewards.reading.normalisation import shows

_FENCES = ("```", "~~~")
_FENCE_OR_INLINE_CODE = re.compile(r"^[ \t]*+(?:`{3,}+[^`\n]*+|~{3,}.*+)$|`[^`\n]*+`", re.MULTILINE)
_OPENING = re.compile(r"\s*+(`{3,}+(?!.*`)|~{3,}+)[\s{.]*([^\s}]*)")  # a backtick behind them makes them inline code
_CODE = re.compile(r"\s*+(?:(?:from|import|def|class|async def|@|for|while|if|print)\b|@|#|[A-Za-z_][\w.]*+ *=[^=])")


class FencedBlock(NamedTuple):
    """A fenced block: its language in lower case or an empty text, its body, and whether it is closed."""

    mark: str
    body: str
    closed: bool


def split_fences(text: str) -> tuple[list[FencedBlock], list[str]]:
    """Return a text's fenced blocks, and the lines outside them, with each block's opening fence in its place.

    As in CommonMark, but indented to any depth, since blocks stand in lists; that is taken off the block's lines. A
    block that no line of its own closes ends with the first line that has the fence behind its text.
    """
    blocks: list[FencedBlock] = []
    outside: list[str] = []
    inside: list[str] = []
    fence, mark, indent, glued_end = "", "", 0, -1
    lines = text.split("\n")
    for index, line in enumerate(lines):
        margin = len(line) - len(line.lstrip(" "))
        if fence and index == glued_end:
            inside.append(line.rstrip()[: -len(fence)][min(indent, margin) :])
            blocks.append(FencedBlock(mark, "\n".join(inside), True))
            fence = ""
        elif fence and _closes(line, fence):
            blocks.append(FencedBlock(mark, "\n".join(inside), True))
            fence = ""
        elif fence:
            inside.append(line[min(indent, margin) :])
        else:
            outside.append(line)
            if opening := _OPENING.match(line):
                fence, mark, indent, inside = opening[1], opening[2].lower(), margin, []
                glued_end = _glued_end(lines, index + 1, fence)
    if fence:
        blocks.append(FencedBlock(mark, "\n".join(inside), False))
    return blocks, outside


def _closes(line: str, fence: str) -> bool:
    return line.strip().startswith(fence) and not line.strip().strip(fence[0])


def _glued_end(lines: list[str], start: int, fence: str) -> int:
    """Return the line in which a block ends behind code, as in ``return x``` ``; -1 where a line of its own ends it."""
    glued = -1
    for index in range(start, len(lines)):
        line = lines[index].strip()
        if line.startswith(fence):
            return -1 if _closes(line, fence) else glued
        if glued < 0 and line.endswith(fence):
            glued = index
    return glued


def open_mark(text: str) -> str | None:
    """Return the language of the fenced block that a text ends in without closing it, or ``None``."""
    blocks, _ = split_fences(text)
    return blocks[-1].mark if blocks and not blocks[-1].closed else None


def begins_in_block(text: str, after_open_fence: bool = False) -> bool:
    """Return whether a text begins inside a fenced block, whose opening fence stood before it, or was left out.

    Its first fence is bare then, and the next one names a language; or the number of fences is odd, and the opening one
    is known to stand before it or the text begins as code does.
    """
    fences = [opening for line in text.split("\n") if (opening := _OPENING.match(line))]
    if not fences or fences[0][2]:
        return False
    if len(fences) > 1 and fences[1][2]:
        return bool(text[: text.find(fences[0][1])].strip())
    return len(fences) % 2 == 1 and (after_open_fence or _CODE.match(text) is not None)


def without_code(text: str) -> str:
    return _FENCE_OR_INLINE_CODE.sub(" ", "\n".join(split_fences(text)[1]))


def code_blocks(text: str, marks: Container[str]) -> list[str]:
    """Return the blocks with one of some marks, else without any, but no ``>>>`` sessions; unfenced text whole."""
    blocks, _ = split_fences(text)
    if not blocks:
        return [text] if text.strip() else []
    code = [block for block in blocks if not block.body.lstrip().startswith(">>>")]
    matches = [block for block in code if block.mark in marks] or [block for block in code if not block.mark]
    return [block.body + ("\n" if block.closed and block.body else "") for block in matches]


def last_code(text: str, marks: Container[str]) -> str | None:
    """Return the last of the :func:`code_blocks`, or ``None``."""
    return next(reversed(code_blocks(text, marks)), None)


class Markdown(NamedTuple):
    """The headings of a text, with whether each has content below it, and its counts of other parts."""

    headings: dict[str, bool]
    list_items: int
    tables: int
    code_blocks: int


_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*)")
_UNDERLINE = re.compile("={2,}|-{2,}")  # makes a heading of the line above
_LIST_ITEM = re.compile(r"[ \t]*+(?:[-*+]|[0-9]{1,9}[.)])[ \t]++(.*)")


def heading_title(text: str) -> str:
    """Return a heading's text for comparing: without emphasis and closing ``#``, in one case, single spaces."""
    return " ".join(text.strip().rstrip("#").strip("*_` \t\r:").lower().split())


def read_markdown(text: str) -> Markdown:
    """Return the parts of a text; fenced blocks hold code, not headings or items."""
    blocks, lines = split_fences(text)
    headings: dict[str, bool] = {}
    open_titles: list[tuple[int, str]] = []
    items: set[str] = set()
    is_awaiting = False
    for line, next_line in zip(lines, [*lines[1:], ""], strict=True):
        if heading := _heading(line, next_line):
            open_titles = [title for title in open_titles if title[0] < heading[0]]
            if shows(heading[1]):
                headings.setdefault(heading[1], False)
                open_titles.append(heading)
            is_awaiting = bool(open_titles)
            continue
        if is_awaiting and not is_rule(line) and shows(line):
            headings.update((name, True) for _, name in open_titles)
            is_awaiting = False
        if (item := _LIST_ITEM.match(line)) and any(map(str.isalnum, item[1])):
            items.add(item[1].strip())
    tables = sum(map(_begins_table, lines, lines[1:], lines[2:]))
    return Markdown(headings, len(items), tables, sum(block.closed and shows(block.body) for block in blocks))


def _heading(line: str, next_line: str) -> tuple[int, str] | None:
    """Return a heading's level and title, for ``#`` and for a line that the next one underlines."""
    if match := _HEADING.match(line):
        return len(match[1]), heading_title(match[2])
    underline = next_line.rstrip()
    if not _UNDERLINE.fullmatch(underline) or "|" in line or not shows(line):
        return None
    is_other = _LIST_ITEM.match(line) or is_rule(line) or line.strip()[:3] in _FENCES
    return None if is_other else (1 if underline[0] == "=" else 2, heading_title(line))


def is_rule(line: str) -> bool:
    """Return whether a line only draws, with ``-``, ``=``, ``*``, ``_``, ``|`` and ``:``."""
    return not line.strip("-=*_|: \t\r")


def _begins_table(*lines: str) -> bool:
    """Return whether three lines begin a table: a head, as many cells of dashes, and a row."""
    if not all("|" in line for line in lines):
        return False
    rows = (line.strip().replace("\\|", "").removeprefix("|").removesuffix("|") for line in lines)
    head, rule, row = ([cell.strip() for cell in line.split("|")] for line in rows)
    is_ruled = len(head) == len(rule) and all(re.fullmatch(":*-+:*", cell) for cell in rule)
    return is_ruled and all(any(not is_rule(cell) and shows(cell) for cell in cells) for cells in (head, row))
