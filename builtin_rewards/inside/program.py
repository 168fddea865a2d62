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
    and so do later definitions of its own functions. Blocks without a name, such as an output, are no code. The
    prompt's code comes first where only the prompt binds a name of the program. Where it ends in the entry point
    without a body and no block defines it, the last block is its body, at any indentation. Names of :mod:`typing` that
    the program uses and does not bind are imported, for the signatures that contests hand out use them so.
    """
    named_blocks = [(block, _names(block)) for block in blocks]
    named_blocks = [(block, names) for block, names in named_blocks if any(names)] or named_blocks
    targets = _targets([names for _, names in named_blocks], entry_point, tests)
    selection = _select_blocks([names for _, names in named_blocks], targets)
    program = "\n".join(block for index, (block, _) in enumerate(named_blocks) if index in selection)
    header = next((text for text in (prefix, prefix.rstrip() + "\n        pass") if _definition(text)), "")
    if entry_point and not any(targets[0] in names.bound for _, names in named_blocks):
        return _complete_stub(header, named_blocks[-1][0], prefix, entry_point) or program
    names, header_names = _names(program), _names(header).bound - _BUILTIN
    missing = names.used - names.bound
    if missing & header_names and not (header_names - names.bound).intersection(targets):
        program = f"{header}\n{program}"
        missing -= header_names
    hints = [f"from typing import {', '.join(sorted(missing & TYPING))}"] if missing & TYPING else []
    return "\n".join([*_FUTURE.findall(program), *hints, _FUTURE.sub("", program)])


def _targets(block_names: list[_Names], entry_point: str | None, tests: str) -> list[str]:
    """Return the names that are tested: the entry point's, or the class it is a method of, or those the tests lack."""
    if not entry_point:
        of_tests = _names(tests)
        targets = of_tests.used - of_tests.bound - _BUILTIN
        if not any(targets & names.bound for names in block_names):  # the tests import what they test
            mentions = set(re.findall(r"\w+", tests)) - of_tests.defined
            targets |= {name for name in mentions if any(name in names.defined for names in block_names)}
        return sorted(targets)
    first = entry_point.split(".")[0]
    if not any(first in names.bound for names in block_names) and any(_CLASS in names.defined for names in block_names):
        return [_CLASS]
    return [first]


def is_python(code: str, foreign: list[str]) -> bool:
    """Return whether a text compiles as Python and binds all the names of other languages that it uses."""
    names = _names(code)
    return _definition(code) is not None and not (names.used - names.bound).intersection(foreign)


_BUILTIN = frozenset(dir(builtins))
_CLASS = "Solution"  # what contests name the class whose method is the entry point
TYPING = frozenset({
    "Any", "Callable", "Deque", "DefaultDict", "Dict", "FrozenSet", "Generator", "Iterable", "Iterator", "List",
    "Literal", "Mapping", "NamedTuple", "Optional", "Sequence", "Set", "Tuple", "Type", "TypeVar", "Union",
})  # fmt: skip
"""Names of :mod:`typing` that signatures use without an import where a contest's judge has them."""
_UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)  # what the compiler raises for hostile source
_FUTURE = re.compile(r"^from __future__ import .*", re.MULTILINE)  # must stay in front of all other code


def _names(code: str) -> _Names:
    """Return the names in code; where it is not Python, those of the functions and classes that it begins."""
    try:
        tables = [symtable.symtable(code, "main.py", "exec")]
    except _UNREADABLE:
        definitions = set(re.findall(r"^(?:async +)?(?:def|class) +(\w+)", code, re.MULTILINE))
        return _Names(definitions, definitions, {""})
    names = _Names(set(), set(), set())
    while tables:
        table = tables.pop()
        tables += table.get_children()
        for symbol in table.get_symbols():
            roles = (symbol.is_namespace(), symbol.is_assigned() or symbol.is_imported(), symbol.is_referenced())
            for name_set, is_member in zip(names, roles, strict=True):
                if is_member and (table.get_type() == "module" or symbol.is_global()):
                    name_set.add(symbol.get_name())
    return names


def _select_blocks(block_names: list[_Names], targets: list[str]) -> set[int]:
    """Return the places of the blocks that the wanted names need, or else that the last block needs."""
    defining = {name: index for index, names in enumerate(block_names) for name in names.defined}
    binding = {name: index for index, names in enumerate(block_names) for name in names.bound}
    selection: set[int] = set()
    pending = [binding[name] for name in targets if name in binding] or [len(block_names) - 1]
    while pending:
        index = pending.pop()
        if index not in selection:
            selection.add(index)
            used, bound = block_names[index].used - _BUILTIN, block_names[index].bound
            pending += [defining[name] for name in used & bound if name in defining]
            pending += [binding[name] for name in used - bound if name in binding]
    return selection


def _complete_stub(header: str, body: str, prefix: str, entry_point: str) -> str:
    """Return the prompt with a body for its last function; an empty text where this makes no function."""
    stub, start = _definition(header, entry_point), prefix.rstrip() + "\n"
    if not _is_stub(stub):
        return ""
    pad = " " * (stub.col_offset + 4)
    variants = (prefix + body, start + body, start + pad + body.lstrip(), start + textwrap.indent(body, pad))
    programs = [(text, _definition(text, entry_point)) for text in variants]
    return next((text for text, function in programs if function is not None and not _is_stub(function)), "")


def _definition(code: str, path: str = "") -> Any:
    """Return the last definition of a function, of ``Class.method``, or of the whole code; ``None`` for none."""
    try:
        node: Any = compile(code, "main.py", "exec", _ast.PyCF_ONLY_AST, dont_inherit=True)
        compile(node, "main.py", "exec", dont_inherit=True)  # which alone refuses a return outside of functions
    except _UNREADABLE:
        return None
    for name in path.split(".") if path else ():
        body = reversed(getattr(node, "body", ()))
        node = next((child for child in body if getattr(child, "name", "") == name), None)
    return node


def _is_stub(node: object) -> bool:
    """Return whether a function has only a docstring, ``pass`` and imports."""
    body = [line.value if isinstance(line, _ast.Expr) else line for line in getattr(node, "body", ())]
    return bool(body) and all(
        isinstance(line, _ast.Constant | _ast.Pass | _ast.Import | _ast.ImportFrom) for line in body
    )
