"""Which of the code in a completion is its program, and what the prompt adds to it.

It runs in the jail, where :meth:`sandbox.Sandbox.call` sends it as text, because hostile source can crash its reader;
so it imports only fast modules of the standard library. It runs nothing of the completion.
"""

from __future__ import annotations

import _ast
import builtins
import re
import symtable
import textwrap
from typing import Any, NamedTuple


class _Names(NamedTuple):
    """The names that code defines as functions or classes, binds in any way, and looks up in its module."""

    defined: set[str]
    bound: set[str]
    used: set[str]


def assemble(blocks: list[str], entry_point: str | None, tests: str, prefix: str) -> str:
    """Return the program that blocks of code make up, as one text.

    The last block that defines what is tested counts: the entry point, or the names that the tests leave to the
    completion; else the last block. The last blocks that define what it uses come with it, unless it binds that itself,
    and so do later definitions of its own functions. Blocks without a name, such as an output, are no code.

    The prompt's code comes first where the program looks for a name that only the prompt binds. Where the prompt ends
    in the entry point without a body and no block defines it, the last block is its body, at any indentation.
    """
    read = [(block, _names(block)) for block in blocks]
    read = [(block, names) for block, names in read if any(names)] or read
    asked = _names(tests)
    wanted = [entry_point.split(".")[0]] if entry_point else sorted(asked.used - asked.bound - _BUILTIN)
    taken = _needed([names for _, names in read], wanted)
    program = "\n".join(block for place, (block, _) in enumerate(read) if place in taken)
    header = next((text for text in (prefix, prefix.rstrip() + "\n        pass") if _definition(text)), "")
    if entry_point and not any(wanted[0] in names.bound for _, names in read):
        return _completed(header, read[-1][0], prefix, entry_point) or program
    found, given = _names(program), _names(header).bound - _BUILTIN
    if (found.used - found.bound) & given and not (given - found.bound).intersection(wanted):
        program = f"{header}\n{program}"
    return "\n".join([*_FUTURE.findall(program), _FUTURE.sub("", program)])


_BUILTIN = frozenset(dir(builtins))
_UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
_FUTURE = re.compile(r"^from __future__ import .*", re.MULTILINE)


def _names(code: str) -> _Names:
    """Return the names in code; where it is not Python, those of the functions and classes that it begins."""
    try:
        tables = [symtable.symtable(code, "main.py", "exec")]
    except _UNREADABLE:
        begun = set(re.findall(r"^(?:async +)?(?:def|class) +(\w+)", code, re.MULTILINE))
        return _Names(begun, begun, {""})
    names = _Names(set(), set(), set())
    while tables:
        table = tables.pop()
        tables += table.get_children()
        for symbol in table.get_symbols():
            ways = (symbol.is_namespace(), symbol.is_assigned() or symbol.is_imported(), symbol.is_referenced())
            for known, so in zip(names, ways, strict=True):
                if so and (table.get_type() == "module" or symbol.is_global()):
                    known.add(symbol.get_name())
    return names


def _needed(read: list[_Names], wanted: list[str]) -> set[int]:
    """Return the places of the blocks that the wanted names need, or else that the last block needs."""
    defining, binding = ({name: place for place, names in enumerate(read) for name in names[way]} for way in (0, 1))
    taken: set[int] = set()
    asked = [binding[name] for name in wanted if name in binding] or [len(read) - 1]
    while asked:
        place = asked.pop()
        if place not in taken:
            taken.add(place)
            used, bound = read[place].used - _BUILTIN, read[place].bound
            asked += [defining[name] for name in used & bound if name in defining]
            asked += [binding[name] for name in used - bound if name in binding]
    return taken


def _completed(header: str, body: str, prefix: str, entry_point: str) -> str:
    """Return the prompt with a body for its last function; an empty text where this makes no function."""
    stub, start = _definition(header, entry_point), prefix.rstrip() + "\n"
    if not _is_stub(stub):
        return ""
    pad = " " * (stub.col_offset + 4)
    ways = (prefix + body, start + body, start + pad + body.lstrip(), start + textwrap.indent(body, pad))
    made = [(text, _definition(text, entry_point)) for text in ways]
    return next((text for text, function in made if function is not None and not _is_stub(function)), "")


def _definition(code: str, path: str = "") -> Any:
    """Return the last definition of a function, of ``Class.method``, or of the whole code; ``None`` for none."""
    try:
        node: Any = compile(code, "main.py", "exec", _ast.PyCF_ONLY_AST, dont_inherit=True)
        compile(node, "main.py", "exec", dont_inherit=True)  # which alone refuses a return outside of functions
    except _UNREADABLE:
        return None
    for name in path.split(".") if path else ():
        node = next((one for one in reversed(getattr(node, "body", ())) if getattr(one, "name", "") == name), None)
    return node


def _is_stub(node: Any) -> bool:
    """Whether a function has only a docstring, ``pass`` and imports."""
    said = [one.value if isinstance(one, _ast.Expr) else one for one in getattr(node, "body", ())]
    nothing = (_ast.Constant, _ast.Pass, _ast.Import, _ast.ImportFrom)
    return bool(said) and all(isinstance(one, nothing) for one in said)
