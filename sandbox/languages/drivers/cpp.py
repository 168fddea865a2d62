"""Calls of functions in C++, by the types that they declare."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from sandbox.languages.drivers import runtime_text
from sandbox.languages.drivers.row_types import signatures_of
from sandbox.languages.drivers.scanning import (
    Definition,
    blank,
    check_name,
    clean,
    declared,
    definitions,
    is_method_of,
    split_list,
    without_closing_brace,
)
from sandbox.languages.language import CannotDriveError, Program, Suite

_ANSWERER = "rk.hpp"
_ASKER = "rk_ask.hpp"
_INCLUDE_ANSWERER = f'#include "{_ANSWERER}"\n'
_INCLUDE_ASKER = f'#include "{_ASKER}"\n'
_TYPES = frozenset({"int", "long", "char", "bool", "double", "float", "short", "unsigned", "string"})
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+([A-Za-z_]\w*)", re.MULTILINE)
_PARAMETER = re.compile(r"([A-Za-z_]\w*)\s*\Z")
_STARTS_TO_CALL = "static auto& rewardkit_asker = ::rewardkit_driver::Asker::only();\n"


_HEAD = '#define main rewardkit_completion_main\n#line 1 "main.cpp"\n'
_NODES = {
    "ListNode": "struct ListNode { int val; ListNode *next; ListNode(int x = 0, ListNode *next = nullptr) : val(x),"
    " next(next) {} };\n",
    "TreeNode": "struct TreeNode { int val; TreeNode *left, *right; TreeNode(int x = 0, TreeNode *left = nullptr,"
    " TreeNode *right = nullptr) : val(x), left(left), right(right) {} };\n",
}
_OF_LIBRARY = re.compile(
    r"(?<![:\w])(?:(?:vector|(?:unordered_)?(?:multi)?(?:map|set)|pair|queue|stack|deque|priority_queue)\s*<|string\s*[&>\w])"
)


class CppDriver:
    """The driver of C++."""

    def answerer(self, source: str, entry_point: str, calls: Sequence[Any] = ()) -> Program:
        """Return the completion, its ``main`` under another name, before a ``main`` that answers calls."""
        source = clean(source)
        parts = check_name(entry_point).split(".")
        if len(parts) == 1 and is_method_of(source, "Solution", entry_point):
            parts.insert(0, "Solution")
        serve = f"serve(&::{'::'.join(parts)})"
        signatures = includes = ""
        if _leaves_types_open(source, parts):
            if calls:
                serve, includes = _serve_by_types(parts, calls)
            else:
                serve, signatures = _serve_overloads(source, parts)
        macros = "".join(f"#undef {name}\n" for name in sorted({"main", *_MACRO.findall(source)}))
        main = f"int main() {{ return ::rewardkit_driver::{serve}; }}\n"
        text = f"{_prelude(source)}{_HEAD}{source}\n{signatures}{macros}{includes}{_INCLUDE_ANSWERER}{main}"
        return Program({"main.cpp": text, _ANSWERER: runtime_text(_ANSWERER)})

    def function_name(self, suite: Suite) -> str:
        """Return the name of the function that a suite's declaration declares."""
        return declared(clean(suite.declaration), suite.entry_point).name

    def tester(self, suite: Suite) -> Program:
        """Return the tests with a function that asks the answerer, in place of the declared one."""
        declaration = clean(suite.declaration)
        function = declared(declaration, suite.entry_point)
        stub = f"{_header(declaration, function)} {{\n{_body(declaration, function)}}}\n"
        start = _start_of_line(declaration, function)
        text = f"{clean(suite.setup)}{declaration[:start]}\n{_INCLUDE_ASKER}{_STARTS_TO_CALL}{stub}"
        tests = without_closing_brace(clean(suite.tests))
        files = {name: runtime_text(name) for name in (_ANSWERER, _ASKER)}
        return Program({"main.cpp": text + tests, **files})


def _prelude(source: str) -> str:
    """Return what LeetCode puts before a function: the library where it includes nothing, and structs that it uses."""
    bare = blank(source)
    has_library = re.search(r"^[ \t]*#[ \t]*include\b", bare, re.MULTILINE) or not _OF_LIBRARY.search(bare)
    library = "" if has_library else "#include <bits/stdc++.h>\nusing namespace std;\n"
    structs = (
        text
        for name, text in _NODES.items()
        if re.search(rf"\b{name}\b", bare) and not re.search(rf"\b(?:struct|class)\s+{name}\s*\{{", bare)
    )
    return library + "".join(structs)


def _leaves_types_open(source: str, parts: list[str]) -> bool:
    """Return whether a function is a template or overloaded, so that its name alone says no types."""
    functions = [function for function in definitions(source, len(parts) - 1) if function.name == parts[-1]]
    if len(functions) > 1:
        return True
    bare = blank(source)
    return any(_is_open(source, bare, function) for function in functions)


def _is_open(source: str, bare: str, function: Definition) -> bool:
    """Return whether a definition leaves types open."""
    return bool(
        re.search(r"\btemplate\b", bare[_start_of_line(source, function) : function.start])
        or re.search(r"\bauto\b", bare[slice(*function.parameters)])
    )


def _serve_overloads(source: str, parts: list[str]) -> tuple[str, str]:
    """Return the call that serves a function by each of its own definitions, and names for their parameters' types."""
    bare = blank(source)
    own = [
        [_type_of(parameter) for parameter in split_list(source[slice(*function.parameters)])]
        for function in definitions(source, len(parts) - 1)
        if function.name == parts[-1] and not _is_open(source, bare, function)
    ]
    names = [f"rewardkit_signature_{index}" for index in range(len(own))]
    lines = (
        f"using {name} = ::rewardkit_driver::Parameters<{', '.join(types)}>;\n"
        for name, types in zip(names, own, strict=True)
    )
    declared_first = "namespace rewardkit_driver { template <class... A> struct Parameters; }\n"
    return f"serve_overloads<{', '.join(names)}>({_lambda(parts)})", declared_first + "".join(lines)


def _type_of(parameter: str) -> str:
    """Return a parameter's type, without its name and its own value."""
    text = re.sub(r"\s+", " ", blank(parameter)).split("=")[0].strip()
    match = _PARAMETER.search(text)
    has_name = match and match[1] not in _TYPES and re.search(r"[\w>&*]\s*\Z", text[: match.start()])
    return text[: match.start()].strip() if match and has_name else text


def _lambda(parts: list[str]) -> str:
    owner, name = "::".join(parts[:-1]), parts[-1]
    function = f"{owner}{{}}.{name}" if owner else f"::{name}"
    return f"[](auto&&... values) -> decltype({function}(values...)) {{ return {function}(values...); }}"


def _serve_by_types(parts: list[str], calls: Sequence[Any]) -> tuple[str, str]:
    """Return the call that serves a function by the types of a row's arguments, and the headers of these types."""
    signatures = [", ".join(f"{kind.text(_TYPE_TEXTS)}&" for kind in signature) for signature in signatures_of(calls)]
    types = ", ".join(f"::rewardkit_driver::Parameters<{signature}>" for signature in signatures)
    headers = [name for name in ("map", "set", "optional") if f"std::{name}<" in types]
    return f"serve_each<{types}>({_lambda(parts)})", "".join(f"#include <{name}>\n" for name in headers)


_TYPE_TEXTS = {
    "bool": "bool",
    "int": "int",
    "long": "long long",
    "float": "double",
    "str": "std::string",
    "any": "int",
    "none": "std::optional<int>",
    "optional": "std::optional<{0}>",
    "list": "std::vector<{0}>",
    "set": "std::set<{0}>",
    "dict": "std::map<{0}, {1}>",
}


def _start_of_line(declaration: str, function: Definition) -> int:
    """Return where the function's own text starts: its result type, and a template's head."""
    before = blank(declaration[: function.start])
    matches = list(re.finditer(r"[;}]|^[ \t]*#[^\n]*\n", before, re.MULTILINE))
    return matches[-1].end() if matches else 0


def _header(declaration: str, function: Definition) -> str:
    return declaration[_start_of_line(declaration, function) : function.body].strip()


def _body(declaration: str, function: Definition) -> str:
    names = [_name_of(parameter) for parameter in split_list(declaration[slice(*function.parameters)])]
    header = blank(_header(declaration, function))
    if re.match(r"\s*template\b", header):
        raise CannotDriveError("tests do not fit: the function is a template")
    call = f"::rewardkit_driver::ask({', '.join(names)})"
    returns_nothing = re.match(r"(?:\w+\s+)*void\s+\w+\s*\(", header)
    return f"    {call};\n" if returns_nothing else f"    return {call};\n"


def _name_of(parameter: str) -> str:
    text = blank(parameter).split("=")[0]
    match = _PARAMETER.search(text)
    if "*" in text or "[" in text:
        raise CannotDriveError(f"tests do not fit: a pointer does not travel: {parameter}")
    if parameter.strip() == "void":
        return ""
    if match is None or match[1] in _TYPES or not text[: match.start()].strip():
        raise CannotDriveError(f"tests do not fit: a parameter has no name: {parameter}")
    return match[1]
