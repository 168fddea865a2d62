"""Signs by which source shows that it is of a language other than Python."""

from __future__ import annotations

import re

_LINE = r"^[ \t]*+"  # the beginning of a line, at any indentation
# By language, patterns and a text that each needs, which is looked for first because that is quick.
_SIGNS = {
    "php": {"<?php": r"<\?php\b"},
    "cpp": {
        "#include": _LINE + r"#include[ \t]*<(?:bits/stdc\+\+\.h|[a-z]+|c[a-z]+)>",
        "# include": _LINE + r"# include[ \t]*<(?:bits/stdc\+\+\.h|[a-z]+|c[a-z]+)>",
        "namespace": r"\busing namespace std;",
        "std::": r"\bstd::\w",
    },
    "c": {"include": _LINE + r"#[ ]?include[ \t]*[<\"]", "main": r"^(?:int|void)[ \t]+main[ \t]*\("},
    "java": {
        "public": _LINE + r"public[ \t]+(?:(?:static|final|abstract)[ \t]+){0,3}\w",
        "import java": r"^import java[.x]",
        "System.out": r"\bSystem\.out\.print",
    },
    "csharp": {"using System": r"^using System\b", "Console.": r"\bConsole\.(?:Write|Read)"},
    "typescript": {
        "const": _LINE + r"const[ \t]+\w+[ \t]*:",
        "let": _LINE + r"let[ \t]+\w+[ \t]*:",
        "interface": _LINE + r"(?:export[ \t]+)?interface[ \t]+\w+[ \t]*\{",
        "function": _LINE + r"(?:export[ \t]+)?function[ \t]+\w+\([^()\n]{0,200}:[ \t]*(?:number|string|boolean)\b",
    },
    "rust": {
        "fn ": _LINE + r"(?:pub[ \t]+)?fn[ \t]+\w+",
        "println!": r"\bprintln!",
        "use std": r"^use std::",
        "let mut": r"\blet mut\b",
    },
    "swift": {"Foundation": r"^import Foundation\b", "readLine()!": r"\breadLine\(\)!(?!!)"},
    "kotlin": {"fun ": _LINE + r"fun[ \t]+\w+[ \t]*\(", "readLine()!!": r"\breadLine\(\)!!"},
    "javascript": {
        "console.": r"\bconsole\.(?:log|error|info|warn)\b",
        "const": _LINE + r"const[ \t]+[\w${\[]",
        "let": _LINE + r"let[ \t]+[\w${\[]",
        "var": _LINE + r"var[ \t]+[\w${\[]",
        "require": r"\brequire\([ \t]*['\"]",
        "=>": r"=>[ \t]*[{(]",
        "function": _LINE + r"(?:async[ \t]+)?function\b",
        "process.stdout": r"\bprocess\.stdout\b",
    },
    "go": {
        "package": r"^package[ \t]+\w+[ \t]*$",
        "func": r"^func[ \t]+[\w(]",
        "fmt.": r"\bfmt\.(?:Print|Scan|Fprint)",
    },
    "scala": {"object": _LINE + r"object[ \t]+\w+[ \t]*(?:extends\b|\{)"},
    "haskell": {"main ::": r"^main[ \t]*::[ \t]*IO\b", "where": r"^module[ \t]+[\w.]+[^\n]{0,200}\bwhere\b"},
    "perl": {"use strict": r"^use strict\b", "my ": _LINE + r"my[ \t]+[$@%(]"},
    "ruby": {"puts": _LINE + r"puts\b", "gets": r"\bgets\.\w", "do |": r"\bdo \|\w", "end": _LINE + r"end[ \t]*$"},
    "bash": {"#!": r"\A#![^\n]{0,80}\b(?:ba|z|da)?sh\b", "echo": _LINE + r"echo[ \t]"},
    "lua": {"local": _LINE + r"local[ \t]+\w+[ \t]*=", "io.": r"\bio\.(?:read|write)\("},
    "pascal": {"program": _LINE + r"program[ \t]+\w+[ \t]*;", "writeln": r"\bwriteln\b"},
    "sql": {"select": _LINE + r"select\b[^;]{1,400}?\bfrom\b", "SELECT": _LINE + r"SELECT\b[^;]{1,400}?\bFROM\b"},
    "r": {"<-": r"<-[ \t]*function\b"},
}
_PATTERNS = [
    (language, needed, re.compile(pattern, re.MULTILINE))
    for language, signs in _SIGNS.items()
    for needed, pattern in signs.items()
]
FOREIGN_NAMES = frozenset({"Console", "System", "console", "document", "fmt", "process", "puts", "require", "std"})
"""Names of other languages that source can use and still read as Python, such as ``console`` of ``console.log(42)``."""


def signs_of(source: str) -> str | None:
    """Return the other language of which source has a sign, or ``None``.

    A sign is a suspicion: a text in Python may hold source of another language. It is Python all the same where it
    reads as Python and binds all the :data:`FOREIGN_NAMES` that it uses.
    """
    return next((name for name, needed, sign in _PATTERNS if needed in source and sign.search(source)), None)
