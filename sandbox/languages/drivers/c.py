"""Calls of functions in C, by the conventions of the types that they declare."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sandbox.languages.c_values import shapes_of
from sandbox.languages.drivers import runtime_text
from sandbox.languages.drivers.scanning import blank, check_name, clean, definitions, split_list
from sandbox.languages.language import CannotCallError, CannotDriveError, Program, Stage, Suite

_RUNTIMES = ("rk_c.hpp", "rk.hpp")
_NAME = "rewardkit_function"
_HEAD = '#define main rewardkit_completion_main\n#line 1 "main.c"\n'
_HEADERS = "".join(
    f"#include <{name}.h>\n" for name in ("stdbool", "stdint", "stdio", "stdlib", "string", "limits", "math", "ctype")
)
_NODES = {
    "ListNode": "struct ListNode { int val; struct ListNode *next; };\n",
    "TreeNode": "struct TreeNode { int val; struct TreeNode *left; struct TreeNode *right; };\n",
}
_WORD = re.compile(r"char|short|int|long|(?:un)?signed|float|double|bool|_Bool|s?size_t|u?int(?:8|16|32|64)_t|void")
_ALIAS = re.compile(
    r"^[ \t]*(?:typedef[ \t]+([\w \t]*[\w*])[ \t]+(\w+)[ \t]*;"
    r"|#[ \t]*define[ \t]+(?P<name>\w+)[ \t]+(?P<type>[\w ]+)$)",
    re.MULTILINE,
)
_QUALIFIERS = re.compile(r"\b(?:const|restrict|__restrict|volatile|register|static|inline|extern)\b")
_LENGTHS = frozenset({"int", "long", "size_t", "unsigned int", "unsigned", "unsigned long", "long long"})


@dataclass(frozen=True, slots=True)
class _Type:
    """A type of C: what it is made of, and how many stars stand behind it."""

    base: str
    stars: int = 0

    @property
    def is_length(self) -> bool:
        return self.stars == 0 and self.base in _LENGTHS

    @property
    def is_node(self) -> bool:
        return self.base.removeprefix("struct ") in _NODES

    def __str__(self) -> str:
        return f"{self.base} {'*' * self.stars}".strip()

    @property
    def cpp(self) -> str:
        """The base as C++ writes it."""
        base = self.base.removeprefix("struct ").replace("_Bool", "bool")
        return f"std::{base}" if base == "size_t" else base


class CDriver:
    """The driver of C: a program of two files, the completion in C and a caller in C++, which has the reader of JSON.

    Args:
        compile: The stage that compiles such a program.
    """

    def __init__(self, compile: Stage) -> None:
        self._compile = compile

    def answerer(self, source: str, entry_point: str, calls: Sequence[Any] = ()) -> Program:
        """Return the completion, with its function under another name, and what calls it.

        Raises:
            NotPlainError: No type of C takes the arguments.
            CannotCallError: The function's own types follow no convention.
        """
        if "." in check_name(entry_point):
            raise CannotDriveError(f"a function in C is no method: {entry_point}")
        source = clean(source)
        shapes = shapes_of(calls)
        result, parameters = _prototype(source, entry_point)
        layout = _Layout(result, parameters, shapes)
        typed = ", ".join(f"{kind} p{index}" for index, kind in enumerate(parameters)) or "void"
        passed = ", ".join(f"p{index}" for index in range(len(parameters)))
        call = (
            f"{'' if str(result) == 'void' else 'return '}{'(void *)' if result.stars else ''}{entry_point}({passed})"
        )
        completion = f"{_prelude(source)}{_HEAD}{source}\n{result} {_NAME}({typed}) {{ {call}; }}\n"
        files = {name: runtime_text(name) for name in _RUNTIMES}
        return Program({"main.cpp": layout.caller(), "completion.c": completion, **files}, compile=self._compile)

    def function_name(self, suite: Suite) -> str:
        """Return the name by which the tests call the function."""
        return suite.entry_point

    def tester(self, suite: Suite) -> Program:
        """Raise CannotDriveError: suites in C are not judged."""
        raise CannotDriveError("tests do not fit: suites in C are not judged; give inputs and outputs")


def _prelude(source: str) -> str:
    """Return what LeetCode puts before a function: headers where it includes none, and structs that it only uses."""
    bare = blank(source)
    headers = "" if re.search(r"^[ \t]*#[ \t]*include\b", bare, re.MULTILINE) else _HEADERS
    structs = (
        text
        for name, text in _NODES.items()
        if re.search(rf"\b{name}\b", bare) and not re.search(rf"\bstruct\s+{name}\s*\{{", bare)
    )
    return headers + "".join(structs)


def _prototype(source: str, entry_point: str) -> tuple[_Type, list[_Type]]:
    """Return the types of a function's result and parameters; raise CannotCallError where it is not defined."""
    functions = [function for function in definitions(source) if function.name == entry_point]
    if not functions:
        raise CannotCallError(f"no function {entry_point} is defined")
    function = functions[-1]
    bare = blank(source)
    aliases = {match[2] or match["name"]: match[1] or match["type"] for match in _ALIAS.finditer(bare)}
    parameters = [_type(text, aliases, named=True) for text in split_list(bare[slice(*function.parameters)])]
    if parameters == [_Type("void")]:
        parameters = []
    return _type(function.result(source), aliases), parameters


def _type(text: str, aliases: dict[str, str], *, named: bool = False) -> _Type:
    """Return the type that a declaration writes, of a parameter with its name; raise CannotCallError for others."""
    bare = _QUALIFIERS.sub(" ", text)
    stars = bare.count("*") + len(re.findall(r"\[[^\]]*\]", bare))
    tokens = re.sub(r"\[[^\]]*\]|\*", " ", bare).split()
    if named and len(tokens) > 1 and not _WORD.fullmatch(tokens[-1]) and tokens[-2:-1] != ["struct"]:
        tokens.pop()
    for _ in range(4):  # aliases of aliases
        if len(tokens) == 1 and tokens[0] in aliases:
            alias = _QUALIFIERS.sub(" ", aliases[tokens[0]])
            stars += alias.count("*")
            tokens = alias.replace("*", " ").split()
    if tokens[:1] == ["struct"] and len(tokens) == 2 and tokens[1] in _NODES:
        return _Type(" ".join(tokens), stars)
    is_pointer_to_void = tokens == ["void"] and stars
    if not tokens or not all(map(_WORD.fullmatch, tokens)) or is_pointer_to_void or "(" in bare or bare.count("[") > 1:
        raise CannotCallError(f"no convention of C says how a call has this type: {' '.join(text.split())[:80]}")
    return _Type(" ".join(tokens), stars)


class _Layout:
    """Which parameter has which argument, or the length of one, and where the lengths of the result stand.

    An array has its length in the parameter behind or before it, unless the function has as many parameters as the row
    has arguments.

    Raises:
        CannotCallError: The function takes other arguments than the row has.
    """

    def __init__(self, result: _Type, parameters: list[_Type], shapes: list[str]) -> None:
        self._result = result
        lengths = _lengths_of_result(result)
        self._inner = parameters[: len(parameters) - lengths]
        self._lengths = parameters[len(parameters) - lengths :]
        if lengths and not all(kind.stars for kind in self._lengths):
            raise CannotCallError(
                "the function gives an array without its length: it has no int *returnSize at its end"
            )
        self._shapes = shapes
        self._parts = [*self._passed(is_bare=len(self._inner) == len(shapes))]

    def _passed(self, *, is_bare: bool) -> Iterator[tuple[str, str, str]]:
        """Yield for each argument what holds it, what is passed of it, and how it is written after the call."""
        left = iter(self._inner)
        for index, shape in enumerate(self._shapes):
            kind = next(left, None)
            if kind is None:
                raise CannotCallError("the function has too few parameters for the row's arguments")
            is_first = not is_bare and shape in ("list", "rows") and kind.is_length  # its length stands before it
            kind = next(left, kind) if is_first else kind
            name = f"a{index}"
            holder, written = _holder(kind, shape)
            if holder.startswith("Scalar"):
                yield holder, f"{name}.value", ""
                continue
            passed = [f"{name}.data"]
            lengths = (
                [] if is_bare else {"Array": ["size"], "Rows": ["size", "sizes"]}.get(holder.partition("<")[0], [])
            )
            for length in lengths[is_first:]:
                kind = next(left, _Type("void"))
                if not (kind.is_length if length == "size" else kind.stars == 1):
                    raise CannotCallError(f"the length of argument {index} is no parameter beside it")
                passed.append(f"{name}.{length}")
            yield holder, ", ".join([f"{name}.size"] * is_first + passed), written.format(name)
        if next(left, None) is not None:
            raise CannotCallError("the function has more parameters than the row has arguments")

    def caller(self) -> str:
        """Return the text of the main file."""
        holder = "".join(f"        {part[0]} a{index}(arguments[{index}]);\n" for index, part in enumerate(self._parts))
        passed = [part[1] for part in self._parts]
        lengths = [
            f"        {kind.cpp} {'*' * (kind.stars - 1)}length{index}{{}};\n"
            for index, kind in enumerate(self._lengths)
        ]
        call = f"{_NAME}({', '.join([*passed, *(f'&length{index}' for index in range(len(lengths)))])})"
        types = ", ".join(f"{kind.cpp} {'*' * kind.stars}" for kind in [*self._inner, *self._lengths])
        return (
            '#include "rk_c.hpp"\n'
            f'extern "C" {self._result.cpp} {"*" * self._result.stars}{_NAME}({types});\n'
            "int main() {\n    using namespace rewardkit_driver;\n    return serve_lines([](const Value& request) {\n"
            f"        const auto& arguments = rewardkit_driver::arguments(request, {len(self._parts)});\n"
            f"{holder}{''.join(lengths)}"
            f'        std::string line = "{{\\"v\\":";\n        {self._written(call)}\n'
            '        return line + "}";\n    });\n}\n'
        )

    def _written(self, call: str) -> str:
        """Return the call and what writes its result: without one, the first argument that it may have changed."""
        result = self._result
        if str(result) == "void":
            return f"{call}; " + next((part[2] for part in self._parts if part[2]), 'line += "null";')
        if len(self._lengths) == 2:
            return f"auto result = {call}; put_rows(line, result, length0, length1);"
        if self._lengths:
            return f"auto result = {call}; put_array(line, result, length0);"
        return f"put(line, {call});"


def _lengths_of_result(result: _Type) -> int:
    """Return how many parameters hold the lengths of a result."""
    is_text = result.base == "char"
    return 0 if result.is_node and result.stars == 1 else max(0, result.stars - is_text)


def _holder(kind: _Type, shape: str) -> tuple[str, str]:
    """Return the type that holds an argument of a shape for a parameter, and how it is written behind the call."""
    form = (shape, kind.stars, "node" if kind.is_node else "char" if kind.base == "char" else "")
    holder, written = _HOLDERS.get(form, ("", ""))
    if not holder or kind.base == "void":
        raise CannotCallError(f"the function takes {kind} where the row has a {shape}")
    return holder.format(kind.cpp), written


_PUT, _PUT_ARRAY = "put(line, {0}.data);", "put_array(line, {0}.data, {0}.size);"
_PUT_ROWS = "put_rows(line, {0}.data, {0}.size, {0}.sizes);"
_HOLDERS = {
    ("scalar", 0, ""): ("Scalar<{0}>", ""),
    ("scalar", 0, "char"): ("Scalar<{0}>", ""),
    ("text", 0, "char"): ("Scalar<{0}>", ""),
    ("text", 1, "char"): ("Text", _PUT),
    ("text", 1, "node"): ("Nodes<{0}>", _PUT),  # the row has nothing but null
    ("list", 1, "node"): ("Nodes<{0}>", _PUT),
    ("list", 1, ""): ("Array<{0}>", _PUT_ARRAY),
    ("list", 1, "char"): ("Array<{0}>", _PUT_ARRAY),
    ("list", 2, "char"): ("Array<{0}*>", _PUT_ARRAY),
    ("list", 2, ""): ("Rows<{0}>", _PUT_ROWS),  # an empty one
    ("list", 2, "node"): ("Array<{0}*>", _PUT_ARRAY),
    ("rows", 2, "node"): ("Array<{0}*>", _PUT_ARRAY),
    ("rows", 2, ""): ("Rows<{0}>", _PUT_ROWS),
    ("rows", 2, "char"): ("Rows<{0}>", _PUT_ROWS),
}
"""What holds an argument of a shape, by the stars of a parameter and what they stand behind."""
