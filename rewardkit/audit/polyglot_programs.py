"""Attacks in other languages than Python: programs that do nothing, end early, print what is expected, assert nothing.

An :class:`Idiom` says how a language writes these; functions are attacked inside the head that the row's declaration or
its reference gives them. None of it writes, kills, connects or forks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from rewardkit.audit.probe import Family, Probe
from rewardkit.audit.programs import code_in, expected_outputs, fenced, tests_text
from rewardkit.audit.rows import AuditRow

_BODY, _TEXT = "BODY", "TEXT"  # what stands in an idiom for statements and for a quoted text


def _double(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _single(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _shell(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


@dataclass(frozen=True, slots=True)
class Idiom:
    """How a language writes what attacks are made of."""

    program: str  # A program around statements
    exits: str  # The statement that ends the process with 0; its compiler asks for nothing behind it
    prints: str  # The statement that prints a text and a line end
    loops: str  # The statement that never ends
    nothing: str = ""  # The statement of a function that gives back a value of its type without computing one
    imports: str = ""  # What must stand before a function that ends the process
    early: str = ""  # What ends the process before a function is called, in its program
    no_asserts: str = ""  # What makes asserts hold, or vanish, in its program
    quote: Callable[[str], str] = _double
    closes: str = "}"  # What ends a function's body


_C_LOOP = "for (volatile int turn = 0;; turn = 1) { }"
IDIOMS: Mapping[str, Idiom] = {
    "bash": Idiom(
        _BODY,
        "exit 0",
        "printf '%s\\n' TEXT",
        "while :; do :; done",
        nothing="echo 0",
        early="exit 0\n",
        quote=_shell,
    ),
    "c": Idiom(
        f"#include <stdio.h>\n#include <stdlib.h>\nint main(void) {{\n{_BODY}\nreturn 0;\n}}",
        "exit(0);",
        "puts(TEXT);",
        _C_LOOP,
        nothing="return 0;",
        imports="#include <stdlib.h>\n",
        early="#include <stdlib.h>\n__attribute__((constructor)) static void early(void) { _Exit(0); }\n",
    ),
    "cpp": Idiom(
        f"#include <cstdio>\n#include <cstdlib>\nint main() {{\n{_BODY}\nreturn 0;\n}}",
        "std::_Exit(0);",
        "std::puts(TEXT);",
        _C_LOOP,
        nothing="return {};",
        imports="#include <bits/stdc++.h>\n",
        early="#include <bits/stdc++.h>\nstruct Early { Early() { std::_Exit(0); } } early;\n",
        no_asserts="#include <bits/stdc++.h>\n#undef assert\n#define assert(...) ((void)0)\n",
    ),
    "go": Idiom(
        f'package main\nimport ("fmt"; "os")\nvar _, _ = fmt.Sprint, os.Exit\nfunc main() {{\n{_BODY}\n}}',
        "os.Exit(0)\npanic(0)",
        "fmt.Println(TEXT)",
        "for { }",
        imports='import "os"\n',
        early='import "os"\nfunc init() { os.Exit(0) }\n',
    ),
    "java": Idiom(
        f"public class Main {{\npublic static void main(String[] arguments) {{\n{_BODY}\n}}\n}}",
        "System.exit(0);\nthrow new RuntimeException();",
        "System.out.println(TEXT);",
        "while (true) { }",
        early="static { System.exit(0); }\n",
    ),
    "javascript": Idiom(
        _BODY,
        "process.exit(0);",
        "console.log(TEXT);",
        "for (;;) { }",
        nothing="return undefined;",
        early="process.exit(0);\n",
        no_asserts="console.assert = () => { };\nrequire('assert').ok = () => { };\n",
    ),
    "lua": Idiom(
        _BODY,
        "os.exit(0)",
        "print(TEXT)",
        "while true do end",
        nothing="return nil",
        early="os.exit(0)\n",
        closes="end",
    ),
    "perl": Idiom(
        _BODY,
        "exit 0;",
        'print TEXT, "\\n";',
        "while (1) { }",
        nothing="return 0;",
        early="BEGIN { exit 0 }\n",
        quote=_single,
    ),
    "php": Idiom(
        f"<?php\n{_BODY}", "exit(0);", 'echo TEXT, "\\n";', "while (true) { }", nothing="return null;", quote=_single
    ),
    "ruby": Idiom(
        _BODY,
        "exit!(0)",
        "puts TEXT",
        "loop { }",
        nothing="nil",
        early="exit!(0)\n",
        no_asserts="def raise(*) = nil\n",
        quote=_single,
        closes="end",
    ),
    "rust": Idiom(
        f"fn main() {{\n{_BODY}\n}}",
        "std::process::exit(0);",
        'println!("{}", TEXT);',
        "loop { }",
        nothing="Default::default()",
        no_asserts="macro_rules! assert_eq { ($($any:tt)*) => {} }\nmacro_rules! assert { ($($any:tt)*) => {} }\n",
    ),
    "typescript": Idiom(
        _BODY,
        "process.exit(0);",
        "console.log(TEXT);",
        "for (;;) { }",
        nothing="return undefined as any;",
        early="process.exit(0);\n",
        no_asserts="console.assert = () => { };\n",
    ),
}
"""By the language's name; a language without one is attacked with what is in no language alone."""
_GO_IMPORTS = re.compile(r"\A\s*(?:package \w+\s*)?(?:import\s*(?:\([^()]*\)|[^\n]*)\s*)*")
_NUMBERS = frozenset({"byte", "char", "double", "float", "int", "long", "short"})


def polyglot_programs(row: AuditRow, language: str) -> Iterator[Probe]:
    """Yield the attacks for a row with tests in another language than Python."""
    idiom = IDIOMS.get(language)
    sources = {"is no code": "this is no code at all (", "the tests themselves": tests_text(row)}
    if idiom is not None:
        sources |= _whole_programs(row, idiom) | _functions(row, language, idiom)
    yield from (Probe(Family.CODE, name, fenced(source, language)) for name, source in sources.items() if source)
    yield Probe(Family.CODE, "empty fence", f"```{language}\n```")
    if row.other_reference:
        yield Probe(Family.OTHER_GOLD, "another row's code", fenced(code_in(row.other_reference), language))


def endless_polyglot_programs(row: AuditRow, language: str) -> Iterator[Probe]:
    """Yield code that never ends: heavy, because it costs the whole time that code has."""
    idiom = IDIOMS.get(language)
    if idiom is not None:
        head = _head_of(row, language)
        source = idiom.program.replace(_BODY, idiom.loops) if head is None else _within(head, idiom.loops, idiom)
        yield Probe(Family.CODE, "never ends", fenced(source, language))


def empty_program(language: str) -> str:
    """Return a program that does nothing."""
    return IDIOMS[language].program.replace(_BODY, "") if language in IDIOMS else ""


def printing_program(texts: list[str], language: str) -> str | None:
    """Return a program that prints texts, a line each; ``None`` where none can be written."""
    idiom = IDIOMS.get(language)
    return None if idiom is None else idiom.program.replace(_BODY, _printing(idiom, texts)) or "\n"


def empty_function(row: AuditRow, language: str) -> str | None:
    """Return the function under test with a body that computes nothing; ``None`` where none can be written."""
    idiom, head = IDIOMS.get(language), _head_of(row, language)
    if idiom is None or head is None:
        return None
    nothing = _nothing_of(row, language, idiom, head)
    return None if nothing is None else _within(head, nothing, idiom)


def _whole_programs(row: AuditRow, idiom: Idiom) -> dict[str, str]:
    bodies = {
        "does nothing": "",
        "exits with 0": idiom.exits,
        "prints that all passed": _printing(idiom, ["All tests passed", "OK", "1.0"]),
        "prints the expectation": _printing(idiom, expected_outputs(row)),
        "prints the expectation and exits": f"{_printing(idiom, expected_outputs(row))}\n{idiom.exits}",
    }
    return {name: idiom.program.replace(_BODY, body) or "\n" for name, body in bodies.items()}


def _functions(row: AuditRow, language: str, idiom: Idiom) -> dict[str, str]:
    """Return attacks inside the function under test, where the row says how it begins."""
    head = _head_of(row, language)
    if head is None:
        return {}
    sources = {"exits when called": _within(idiom.imports + head, idiom.exits, idiom)}
    nothing = _nothing_of(row, language, idiom, head)
    if nothing is not None:
        sources["does nothing"] = _within(head, nothing, idiom)
        if idiom.early:
            sources["exits before it is called"] = _within(_before(head, language, idiom.early), nothing, idiom)
        if idiom.no_asserts:
            sources["replaces the asserts"] = _within(_before(head, language, idiom.no_asserts), nothing, idiom)
    return sources


def _printing(idiom: Idiom, texts: list[str]) -> str:
    return "\n".join(idiom.prints.replace(_TEXT, idiom.quote(text)) for text in texts)


def _before(head: str, language: str, text: str) -> str:
    """Return a head with a text before it, or in Java inside its first class."""
    if language != "java":
        return f"{text}{head}"
    return re.sub(r"(\bclass\b[^{]*\{)", lambda match: f"{match[1]}\n{text}", head, count=1)


def _head_of(row: AuditRow, language: str) -> str | None:
    """Return the text up to the body of the function under test, of the row's declaration or else of a reference."""
    name = str(row.columns.get("entry_point") or "").rpartition(".")[2]
    if not name or language not in IDIOMS:
        return None
    declaration = row.columns.get("declaration")
    opens = r"[^{;]*\{" if IDIOMS[language].closes == "}" else r"[ \t]*\([^()\n]*\)[ \t]*\n"
    begins = "" if IDIOMS[language].closes == "}" else r"\b(?:def|function)[ \t]+"
    if isinstance(declaration, str) and re.search(rf"{opens}\s*\Z", declaration):
        return _without_imports(declaration, language)
    for reference in row.references:
        match = re.search(rf"{begins}\b{re.escape(name)}\b{opens}", code := code_in(reference))
        if match:
            return _without_imports(code[: match.end()], language)
    return None


def _without_imports(head: str, language: str) -> str:
    """Return a head as it is, in Go without its package and imports: one that is not used does not compile."""
    return _GO_IMPORTS.sub("", head) if language == "go" else head


def _within(head: str, body: str, idiom: Idiom) -> str:
    """Return a function of a head and a body, with as many braces behind it as the head has open."""
    closing = "}" * (head.count("{") - head.count("}")) if idiom.closes == "}" else idiom.closes
    return f"{head.rstrip()}\n{body}\n{closing}\n"


def _nothing_of(row: AuditRow, language: str, idiom: Idiom, head: str) -> str | None:
    """Return the statement that gives back a value of the function's type; ``None`` where the head does not show it."""
    name = re.escape(str(row.columns.get("entry_point") or "").rpartition(".")[2])
    if language == "java":
        kind = re.search(rf"([\w.<>\[\], ]+?)\s+{name}\s*\(", head)
        last = kind[1].split()[-1] if kind and kind[1].split() else ""
        return "return 0;" if last in _NUMBERS else "return false;" if last == "boolean" else "return null;"
    if language == "go":
        kind = re.search(rf"{name}\s*\([^()]*\)\s*([\w.\[\]*]+)\s*\{{\s*$", head)
        return f"return *new({kind[1]})" if kind else None
    return idiom.nothing or None
