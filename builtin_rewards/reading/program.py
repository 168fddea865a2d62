"""Which of the code that a completion shows is its program, and what the prompt adds to it.

It is read in the jail, as text for :meth:`sandbox.Sandbox.call`, for source can be made to crash who reads it; so it
imports nothing but the standard library. Nothing of the completion is run here.
"""

from __future__ import annotations

import ast
import builtins
import re
import symtable
import textwrap
from typing import Any, NamedTuple


class _Names(NamedTuple):
    """The names that code defines as functions or classes, binds in any way, and looks for in its module."""

    defined: set[str]
    bound: set[str]
    used: set[str]


def assemble(blocks: list[str], entry_point: str | None, tests: str, prefix: str) -> str:
    """Gives the program that blocks of code are, in one text.

    The block that defines what is tested counts, the last where several do: the entry point, or the names that the
    tests leave to the completion. Where none does, or nothing is tested, it is the last block. With it count those that
    define what it uses and does not bind itself, or define anew what it defines; again the last of several. Blocks
    without a name, such as an output or a comment, are no code.

    Code of the prompt comes before it where the program looks for a name that only the prompt binds. Where the prompt
    ends in the entry point without a body and no block defines it, the last block is its body, at any indentation.
    """
    read = [(block, _names(block)) for block in blocks]
    read = [(block, names) for block, names in read if any(names)] or read
    asked = _names(tests)
    wanted = [entry_point.split(".")[0]] if entry_point else sorted(asked.used - asked.bound - _BUILTIN)
    taken = _needed([names for _, names in read], wanted)
    program = "\n".join(block for place, (block, _) in enumerate(read) if place in taken)
    header = next((text for text in (prefix, prefix.rstrip() + " pass") if _compiles(text)), "")
    if entry_point and not any(wanted[0] in names.bound for _, names in read):
        return _completed(header, read[-1][0], prefix, entry_point) or program
    found = _names(program)
    if (found.used - found.bound - _BUILTIN) & _names(header).bound:
        program = f"{header}\n{program}"
    return "\n".join([*_FUTURE.findall(program), program])


_BUILTIN = frozenset(dir(builtins))
_FUTURE = re.compile(r"^from __future__ import .*", re.MULTILINE)


def _names(code: str) -> _Names:
    """Gives the names of code; of code that is no Python, those of the functions and classes that it begins."""
    try:
        tables = [symtable.symtable(code, "main.py", "exec")]
    except (SyntaxError, ValueError, RecursionError):
        begun = set(re.findall(r"^(?:async +)?(?:def|class) +(\w+)", code, re.MULTILINE))
        return _Names(begun, begun, set())
    names = _Names(set(), set(), set())
    while tables:
        table = tables.pop()
        tables += table.get_children()
        for symbol in table.get_symbols():
            if table.get_type() != "module" and not symbol.is_global():
                continue
            ways = (symbol.is_namespace(), symbol.is_assigned() or symbol.is_imported(), symbol.is_referenced())
            for known, so in zip(names, ways, strict=True):
                known.update([symbol.get_name()] * so)
    return names


def _needed(read: list[_Names], wanted: list[str]) -> set[int]:
    """Gives the places of the blocks that are needed for some names, or else for the last block."""
    taken: set[int] = set()
    open_names: list[tuple[str, set[str]]] = [(name, set()) for name in wanted]
    while open_names or not taken:
        name, held = open_names.pop() if open_names else ("", set())
        places = [place for place, names in enumerate(read) if name in names.defined]
        if not places and name not in held:
            places = [place for place, names in enumerate(read) if name in names.bound]
        if not name or (not places and not open_names and not taken):
            places = [len(read) - 1]
        for place in places[-1:]:
            if place not in taken:
                taken.add(place)
                open_names += [(used, read[place].bound) for used in read[place].used - _BUILTIN]
    return taken


def _compiles(code: str) -> bool:
    try:
        compile(code, "main.py", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError):
        return False
    return True


def _completed(header: str, body: str, prefix: str, entry_point: str) -> str | None:
    """Gives the prompt with a body for its last function, or ``None`` where that has one, or this is none."""
    stub = _definition(header, entry_point)
    if stub is None or not _is_stub(stub):
        return None
    pad = " " * (stub.col_offset + 4)
    start = prefix.rstrip() + "\n"
    for text in (prefix + body, start + body, start + pad + body.lstrip(), start + textwrap.indent(body, pad)):
        made = _definition(text, entry_point) if _compiles(text) else None
        if made is not None and not _is_stub(made):
            return text
    return None


def _definition(code: str, path: str) -> Any:
    """Gives the last definition of a function, or of a method by its class's name, or ``None``."""
    node: Any = ast.parse(code)
    for name in path.split("."):
        node = next((one for one in reversed(getattr(node, "body", ())) if getattr(one, "name", "") == name), None)
    return node


def _is_stub(node: Any) -> bool:
    return all(isinstance(getattr(one, "value", one), ast.Constant | ast.Pass) for one in node.body)
