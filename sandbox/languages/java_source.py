"""The main class of a Java program: javac wants a public class in a file of its name, and a run needs the class's name.

Completions name their class as they like, and many are in a package. :func:`with_main_class` makes all of them programs
of the file ``Main.java`` and the class ``Main``, and keeps their lines where they are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MAIN = "Main"
_OPAQUE = re.compile(
    r"//[^\n]*"
    r"|/\*.*?(?:\*/|\Z)"
    r'|"""(?:\\.|[^\\])*?(?:"""|\Z)'
    r'|"(?:\\.|[^"\\\n])*"?'
    r"|'(?:\\.|[^'\\\n])*'?",
    re.DOTALL,
)  # comments, texts and characters: what they hold is no code
_PARTS = re.compile(
    r"(?P<brace>[{}])"
    r"|(?P<public>\bpublic\b)(?=[\w\s@]*?\b(?:class|interface|enum|record)\s)"
    r"|\b(?P<kind>class|interface|enum|record)\s+(?P<name>\w+)"
    r"|(?P<modifiers>(?:\b(?:public|private|protected|static|final|synchronized|strictfp)\s+)*)"
    r"\bvoid\s+main\s*\((?P<parameters>[^)]*)\)"
)
_PACKAGE = re.compile(r"^\s*(package\s[^;{]*;)")


@dataclass(slots=True)
class _Type:
    """A class, interface, enum or record that stands outside of all others."""

    kind: str
    name: str
    public_at: int | None
    body_at: int = -1  # behind its opening brace
    main_call: str | None = None  # how its main method is called from another class

    @property
    def is_main(self) -> bool:
        return self.name == MAIN


def with_main_class(source: str) -> str:
    """Return a program whose main class is ``Main``, in no package, and alone public if it is."""
    code = _OPAQUE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), source)
    types = _types_of(code)
    for outer in types:
        if outer.public_at is not None and not outer.is_main:
            source = _blank(source, outer.public_at, outer.public_at + len("public"))
    if package := _PACKAGE.match(code):
        source = _blank(source, package.start(1), package.end(1))
    return _forward(source, types)


def _forward(source: str, types: list[_Type]) -> str:
    """Give ``Main`` a main method that calls the program's, where the program's stands in a class of another name."""
    with_main = [outer for outer in types if outer.main_call]
    if not with_main or any(outer.is_main for outer in with_main):
        return source
    program = next((outer for outer in with_main if outer.public_at is not None), with_main[0])
    method = f"public static void main(String[] args) throws Throwable {{ {program.main_call}; }}"
    main = next((outer for outer in types if outer.is_main), None)
    if main is None:
        return f"{source}\nclass {MAIN} {{ {method} }}\n"
    return f"{source[: main.body_at]} {method}{source[main.body_at :]}"


def _types_of(code: str) -> list[_Type]:
    """Return the outer types of source whose comments and texts are blank."""
    types: list[_Type] = []
    depth, public_at = 0, None
    for part in _PARTS.finditer(code):
        if part["brace"]:
            if part["brace"] == "{" and depth == 0 and types and types[-1].body_at < 0:
                types[-1].body_at = part.end()
            depth = depth + 1 if part["brace"] == "{" else max(0, depth - 1)
        elif depth == 0 and part["public"]:
            public_at = part.start()
        elif depth == 0 and part["kind"]:
            types.append(_Type(part["kind"], part["name"], public_at))
            public_at = None
        elif depth == 1 and types and part["parameters"] is not None and types[-1].main_call is None:
            types[-1].main_call = _main_call(types[-1].name, part["modifiers"], part["parameters"])
    return types


def _main_call(name: str, modifiers: str, parameters: str) -> str:
    owner = name if "static" in modifiers else f"new {name}()"
    return f"{owner}.main({'args' if parameters.strip() else ''})"


def _blank(source: str, start: int, end: int) -> str:
    return source[:start] + re.sub(r"[^\n]", " ", source[start:end]) + source[end:]
