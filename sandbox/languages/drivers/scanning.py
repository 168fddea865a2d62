"""Where a function is declared in a text of a language with braces, found without compiling it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from sandbox.languages.language import CannotDriveError

# What it begins, it takes to the end of the line or text, closed or not: so its work grows with the text alone.
_BRACES = re.compile(
    r"""/\*.*?(?:\*/|\Z) | //[^\n]* | R"(?P<raw>[^()\s\\]{0,16})\(.*?(?:\)(?P=raw)"|\Z) | "(?>(?:[^"\\\n]|\\.)*)"?
    | `(?>(?:[^`\\]|\\.)*)`? | '(?:[^'\\\n]|\\.){1,12}' """,
    re.DOTALL | re.VERBOSE,
)
_OPENING = {")": "(", "]": "[", "}": "{"}
NAME = re.compile(r"[A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*)?", re.ASCII)


def clean(source: str) -> str:
    """Return a source without byte order mark and carriage returns, and with a line's end at its end."""
    return source.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n") + "\n"


def check_name(entry_point: str) -> str:
    """Return an entry point; raise CannotDriveError where it is no ``name`` or ``Class.name``."""
    if not NAME.fullmatch(entry_point):
        raise CannotDriveError(f"the entry point is not the name of a function: {entry_point[:60]!r}")
    return entry_point


def blank(text: str) -> str:
    """Return a text of the same length with spaces for comments and what is quoted."""
    return _BRACES.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


@dataclass(frozen=True, slots=True)
class Definition:
    """A function that a text defines: the positions of its parts."""

    name: str
    start: int  # of its name
    parameters: tuple[int, int]  # within its brackets
    body: int  # of its opening brace
    is_open: bool  # its body does not end in the text

    def result(self, text: str) -> str:
        """Return what stands before its name: qualifiers and the type of its result."""
        before = blank(text)[: self.start]
        return re.split(r"[;{}]|^[ \t]*#[^\n]*$", before, flags=re.MULTILINE)[-1].strip()


_HEADER = re.compile(r"(?<![\w$.])([A-Za-z_$][\w$]*)\s*\(")
_AFTER = re.compile(r"\s*(?>(?:(?:const|noexcept|override|throws\s[\w.,\s]++|->[^{;]++)\s*)*)\{")
_NOT_NAMES = frozenset({"if", "for", "while", "switch", "catch", "return", "sizeof", "decltype", "function"})


def definitions(text: str, depth: int = 0) -> Iterator[Definition]:
    """Yield the functions that a text defines inside so many braces, in their order."""
    bare = blank(text)
    depths = _depths(bare)
    for match in _HEADER.finditer(bare):
        if match[1] in _NOT_NAMES or depths[match.start(1)] != depth:
            continue
        end = closing(bare, match.end() - 1)
        after = _AFTER.match(bare, end + 1) if end else None
        if after:
            body = after.end() - 1
            yield Definition(match[1], match.start(1), (match.end(), end), body, not closing(bare, body))


def is_method_of(source: str, owner: str, name: str) -> bool:
    """Return whether a source has a class of a name, and names a function in braces alone."""
    bare = blank(source)
    if not re.search(rf"\b(?:class|struct)\s+{owner}\b", bare):
        return False
    depths = _depths(bare)
    return all(depths[match.start()] for match in re.finditer(rf"\b{re.escape(name)}\s*\(", bare))


def declared(text: str, entry_point: str, depth: int = 0) -> Definition:
    """Return the last definition of a function in a declaration, or else that whose body it leaves open.

    Raises:
        CannotDriveError: The declaration has no such function.
    """
    functions = list(definitions(text, depth))
    named = [function for function in functions if function.name == entry_point]
    still_open = [function for function in functions if function.is_open]
    if not named and not still_open:
        raise CannotDriveError(f"tests do not fit: the declaration does not declare {entry_point}")
    return (named or still_open)[-1]


def closing(bare: str, start: int) -> int:
    """Return where the bracket at a position of a blanked text is closed; 0 where it is not."""
    opened: list[str] = []
    for match in re.compile(r"[()\[\]{}]").finditer(bare, start):
        if match[0] in "([{":
            opened.append(match[0])
        elif not opened or opened.pop() != _OPENING[match[0]]:
            return 0
        if not opened:
            return match.start()
    return 0


def split_list(text: str) -> list[str]:
    """Return the parts between the commas that stand in no brackets, ``<>`` among them."""
    parts, level, start = [], 0, 0
    bare = blank(text).replace("->", "  ")
    for index, letter in enumerate(bare):
        level += (letter in "([{<") - (letter in ")]}>")
        if letter == "," and level == 0:
            parts.append(text[start:index])
            start = index + 1
    return [part.strip() for part in (*parts, text[start:]) if part.strip()]


def without_closing_brace(tests: str) -> str:
    """Return tests without the brace that closes the function which a prompt left open, as MultiPL-E has them."""
    return re.sub(r"\A\s*\}", "", tests)


def _depths(bare: str) -> list[int]:
    depths, depth = [], 0
    for letter in bare:
        depth -= letter == "}"
        depths.append(depth)
        depth += letter == "{"
    return depths


def outer_types(text: str) -> list[str]:
    """Return the names of the classes that a text declares in no braces."""
    bare = blank(text)
    depths = _depths(bare)
    return [match[1] for match in _TYPE.finditer(bare) if not depths[match.start()]]


_TYPE = re.compile(r"\b(?:class|interface|enum|record|struct)\s+(\w+)")
