"""Calls of functions in Go, by the types that they declare."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from sandbox.languages.drivers import runtime_text
from sandbox.languages.drivers.row_types import signatures_of
from sandbox.languages.drivers.scanning import blank, check_name, clean, closing, split_list
from sandbox.languages.language import CannotDriveError, Program, Suite

_PACKAGES = (
    "bufio",
    "bytes",
    "encoding/json",
    "fmt",
    "math",
    "math/big",
    "os",
    "reflect",
    "strconv",
    "strings",
    "unsafe",
)
_IMPORTS = "import (" + "; ".join(f'rk{path.rpartition("/")[2]} "{path}"' for path in _PACKAGES) + ")"
_PACKAGE = re.compile(r"^[ \t]*package[ \t]+\w+[ \t]*;?", re.MULTILINE)
_IMPORT = re.compile(
    r"""^[ \t]*import[ \t]*(?:\((?P<several>[^)]*)\)|(?P<one>(?:[\w.]+[ \t]+)?"[^"\n]*"))[^\n]*$""", re.MULTILINE
)
_SPEC = re.compile(r'(?:(?P<name>[\w.]+)[ \t]+)?"(?P<path>[^"\n]*)"')
_TEST = re.compile(r"^func[ \t]+(Test\w*)[ \t]*\(", re.MULTILINE)
_USUAL = (  # what a prompt uses without importing it, as goimports would find
    *("bytes", "container/heap", "container/list", "crypto/md5", "encoding/hex", "errors", "fmt", "math", "math/big"),
    *("math/bits", "math/rand", "os", "reflect", "regexp", "slices", "sort", "strconv", "strings", "time", "unicode"),
    "unicode/utf8",
)


class GoDriver:
    """The driver of Go."""

    def answerer(self, source: str, entry_point: str, calls: Sequence[Any] = ()) -> Program:
        """Return the completion, its ``main`` under another name, and a ``main`` that answers calls."""
        owner, _, name = check_name(entry_point).rpartition(".")
        source = re.sub(r"^(func[ \t]+)main\b", r"\1rkCompletionMain", clean(source), flags=re.MULTILINE)
        package = _PACKAGE.search(blank(source))
        rest = source[package.end() :] if package else source
        owner = owner or _owner_of_method(rest, name)
        call = f"new({owner}).{name}" if owner else _by_types(rest, name, calls)
        body = _without_imports(rest)
        text = f"package main; {_IMPORTS}; {_used(_imports_of(rest), body)}{body}\n{runtime_text('rk.go')}"
        return Program({"main.go": f"{text}\nfunc main() {{ rkServe({call}) }}\n"})

    def function_name(self, suite: Suite) -> str:
        """Return the name of the function that a suite's declaration declares."""
        return _declared(clean(suite.declaration), suite.entry_point)[1]

    def tester(self, suite: Suite) -> Program:
        """Return the tests with a function that asks the answerer, in place of the declared one."""
        declaration = clean(suite.declaration)
        start, _ = _declared(declaration, suite.entry_point)
        parts = [clean(suite.setup), declaration[:start], _stub(declaration[start:]), clean(suite.tests)]
        specs = [spec for part in parts for spec in _imports_of(part)]
        body = "\n".join(_without_imports(_PACKAGE.sub("", part)) for part in parts)
        body = re.sub(r"\*\s*testing\.T\b", "*rkT", body)
        tests = ", ".join(dict.fromkeys(_TEST.findall(blank(body))))
        main = f"func main() {{ rkOpen(4, 3); rkTest({tests}) }}" if tests else _own_main(body)
        head = f"package main; {_IMPORTS}; {_used(specs, body)}"
        return Program({"main.go": f"{head}\n{body}\n{runtime_text('rk.go')}{runtime_text('rk_ask.go')}\n{main}\n"})


def _owner_of_method(source: str, name: str) -> str:
    """Return the type whose method has a name that no function has; ``""`` without one."""
    bare = blank(source)
    if re.search(rf"^func[ \t]+{re.escape(name)}\b", bare, re.MULTILINE):
        return ""
    method = re.search(
        rf"^func[ \t]*\([ \t]*(?:\w+[ \t]+)?\*?(\w+)[ \t]*\)[ \t]*{re.escape(name)}\b", bare, re.MULTILINE
    )
    return method[1] if method else ""


def _by_types(source: str, name: str, calls: Sequence[Any]) -> str:
    """Return a function, or where its types are open one of the row's types that calls it."""
    if not re.search(rf"^[ \t]*func[ \t]+{re.escape(name)}[ \t]*\[", blank(source), re.MULTILINE):
        return name
    signatures = signatures_of(calls)
    if len(signatures) != 1:
        return name
    names = ", ".join(f"a{index}" for index in range(len(signatures[0])))
    parameters = ", ".join(f"a{index} {kind.text(_TYPE_TEXTS)}" for index, kind in enumerate(signatures[0]))
    return f"func({parameters}) any {{ return {name}({names}) }}"


_TYPE_TEXTS = {
    "bool": "bool",
    "int": "int",
    "long": "int",
    "float": "float64",
    "str": "string",
    "any": "int",
    "none": "*int",
    "optional": "*{0}",
    "list": "[]{0}",
    "set": "map[{0}]bool",
    "dict": "map[{0}]{1}",
}


def _declared(declaration: str, entry_point: str) -> tuple[int, str]:
    """Return start and name of the last function of the entry point's name, or else of the last function."""
    functions = list(re.finditer(r"^func[ \t]+(\w+)[ \t]*\(", blank(declaration), re.MULTILINE))
    named = [function for function in functions if function[1] == entry_point]
    if not functions:
        raise CannotDriveError(f"tests do not fit: the declaration does not declare {entry_point}")
    function = (named or functions)[-1]
    return function.start(), function[1]


def _stub(declaration: str) -> str:
    """Return a function with the head of a declared one, whose body asks the answerer."""
    bare = blank(declaration)
    opening = bare.index("(")
    end = closing(bare, opening)
    body = bare.find("{", end) if end else -1
    while body > 0 and re.search(r"\b(?:interface|struct)[ \t]*\Z", bare[:body]):  # the brace of a type
        body = bare.find("{", closing(bare, body) or len(bare))
    if body < 0:
        raise CannotDriveError("tests do not fit: the declaration has no function's body")
    names = _names_of(declaration[opening + 1 : end])
    kinds = _result_types(declaration[end + 1 : body])
    variables = "".join(f"var rk{index} {kind}; " for index, kind in enumerate(kinds))
    results = ", ".join(f"rk{index}" for index in range(len(kinds)))
    pointers = "".join(f", &rk{index}" for index in range(len(kinds)))
    ask = f"rkAsk([]any{{{', '.join(names)}}}{pointers})"
    return f"{declaration[:body]}{{ {variables}{ask}; return {results} }}\n"


def _names_of(parameters: str) -> list[str]:
    return [part.split()[0] for part in split_list(parameters)]


def _result_types(text: str) -> list[str]:
    text = text.strip()
    if not text.startswith("("):
        return [text] if text else []
    parts = split_list(text[1 : text.rindex(")")])
    named = re.compile(r"[A-Za-z_]\w*\s+(?=[\w*\[(])")
    if not all(named.match(part) for part in parts[-1:]) or parts[-1].startswith(("map[", "func(", "chan ")):
        return parts
    kinds: list[str] = []
    for part in reversed(parts):  # of ``a, b int`` both are integers
        _, _, kind = part.strip().partition(" ")
        kinds.insert(0, kind.strip() or kinds[0])
    return kinds


def _imports_of(text: str) -> list[tuple[str, str]]:
    """Return name and path of what a text imports; the name is empty where the import gives none."""
    specs = []
    for match in _IMPORT.finditer(text):
        specs += [(spec["name"] or "", spec["path"]) for spec in _SPEC.finditer(match["several"] or match["one"])]
    return specs


def _without_imports(text: str) -> str:
    return _IMPORT.sub(lambda match: "\n" * match[0].count("\n"), text)


def _used(specs: list[tuple[str, str]], body: str) -> str:
    """Return imports of what a body uses, and of usual packages that it lacks.

    Go refuses other imports, and public sets' prompts have those of their tests.
    """
    imports = {(name or path.rpartition("/")[2]): f'import {name} "{path}"; ' for name, path in specs}
    every = {path.rpartition("/")[2]: f'import "{path}"; ' for path in _USUAL} | imports
    bare = blank(body)
    used = [name for name in every if name in "._" or re.search(rf"\b{re.escape(name)}\.", bare)]
    return "".join(every[name] for name in used if "testify" not in every[name])


def _own_main(body: str) -> str:
    if not re.search(r"^func[ \t]+main[ \t]*\(", body, re.MULTILINE):
        raise CannotDriveError("tests do not fit: they have neither a test function nor a main")
    return "func init() { rkOpen(4, 3) }"
