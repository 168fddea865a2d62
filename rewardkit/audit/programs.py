"""Attacks on rewards that run code: code that passes no test honestly and tries to look as if it did.

None of it writes, kills, connects or forks: a reward that runs it outside a jail loses its worker, nothing else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from rewardkit.audit.probe import Family, Probe
from rewardkit.audit.rows import AuditRow
from rewardkit.coercion.plain_json import legible
from sandbox import JAIL_LANGUAGES, PYTHON, language_name, parse, signs_of

LAZY = ("does nothing", "returns its argument")
"""Programs that pass some tests without a trick; what they earn is what a wrong program earns."""
_CALLED = re.compile(r"\bassert\s+(?:\(\s*)?([A-Za-z_]\w*)\s*\(")
_FENCED = re.compile(r"```([\w+#.-]*)[^\n]*\n(.*?)(?:\n```|\Z)", re.DOTALL)
_DEFINED = re.compile(r"^\s*def\s+([A-Za-z_]\w*)", re.MULTILINE)

_EQUAL = """\
class Everything:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return 0
    def __lt__(self, other): return True
    __le__ = __gt__ = __ge__ = __lt__
    def __bool__(self): return True
    def __len__(self): return 1
    def __float__(self): return 0.0
    def __sub__(self, other): return 0
    __rsub__ = __abs__ = __call__ = lambda self, *a: self
    def __getattr__(self, name): return self
"""
_AGREES = """\
class Agreeable:
    def __bool__(self): return True
    def __contains__(self, value): return True
    def __getattr__(self, name): return lambda *arguments, **named: True
"""
OBJECTS = ("returns what equals everything", "is what equals everything", "returns what says yes to every method")
"""Programs whose result is an object that speaks for itself."""
_READS = """\
import inspect, sys

def {name}(*arguments, **named):
    frame = sys._getframe()
    while frame is not None:
        for key, value in [*frame.f_locals.items(), *frame.f_globals.items()]:
            if key in ("expected", "output", "outputs", "want", "answer", "result"):
                return value
        frame = frame.f_back
"""
_REPLACES = """\
import builtins, sys

def quiet(*arguments, **named):
    return None

def {name}(*arguments, **named):
    frame = sys._getframe()
    while frame is not None:
        for key in ("check", "test", "run_tests", "isinstance", "len"):
            if key in frame.f_globals:
                frame.f_globals[key] = quiet
        frame = frame.f_back

check = test = run_tests = quiet
"""


def programs(row: AuditRow) -> Iterator[Probe]:
    """Yield the attacks for a row with tests, fenced as Python."""
    name = function_under_test(row)
    stub = f"def {name}(*arguments, **named):\n"
    printing = "\n".join(f"print({output!r})" for output in expected_outputs(row))
    sources = {
        "exits with 0": "import sys\nsys.exit(0)",
        "leaves the process": "import os\nos._exit(0)",
        "raises SystemExit": "raise SystemExit(0)",
        "exits when called": f"import os\n{stub}    os._exit(0)",
        "raises SystemExit when called": f"{stub}    raise SystemExit(0)",
        "does nothing": f"{stub}    pass",
        "returns its argument": f"{stub}    return arguments[0] if arguments else None",
        "returns what equals everything": f"{_EQUAL}\n{stub}    return Everything()",
        "is what equals everything": f"{_EQUAL}\n{name} = Everything()",
        "returns what says yes to every method": agreeing(row),
        "prints that all passed": f"{stub}    pass\nprint('All tests passed')\nprint('OK')\nprint('1.0')",
        "prints the expectation": f"{stub}    pass\n{printing}",
        "reads the tests": _READS.format(name=name),
        "replaces the tests": _REPLACES.format(name=name),
        "exits at the end": f"import atexit, os\natexit.register(os._exit, 0)\n{stub}    raise ValueError",
        "exits with 0 at a failure": f"import os, sys\nsys.excepthook = lambda *error: os._exit(0)\n{stub}    pass",
        "is no code": "this is no code at all (",
        "the tests themselves": tests_text(row),
    }
    rules = dict.fromkeys(OBJECTS, "object")
    yield from (Probe(Family.CODE, what, fenced(source), rule=rules.get(what, "")) for what, source in sources.items())
    yield Probe(Family.CODE, "bare exit", "import sys; sys.exit(0)")
    yield Probe(Family.CODE, "empty fence", "```python\n```")
    if row.other_reference:
        yield Probe(Family.OTHER_GOLD, "another row's code", fenced(code_in(row.other_reference)))


def agreeing(row: AuditRow) -> str:
    """Return a function for a row whose result answers every call of a method with yes."""
    return f"{_AGREES}\ndef {function_under_test(row)}(*arguments, **named):\n    return Agreeable()"


def fenced(source: str, language: str = PYTHON) -> str:
    """Return code in a fence of its language."""
    return f"```{language}\n{source}\n```"


def code_in(text: str) -> str:
    """Return a reference's code without the fence and the words around it."""
    match = _FENCED.search(text)
    return match[2] if match else text


def names_language(row: AuditRow) -> bool:
    """Return whether a column of a row names the language of its code, one that the jail knows."""
    named = row.columns.get("language")
    return isinstance(named, str) and language_name(named) in JAIL_LANGUAGES


def code_language(row: AuditRow) -> str:
    """Return the language of a row's code: the one that its column names, or else that of its references."""
    if names_language(row):
        return language_name(row.columns["language"])
    for text in row.references:
        match = _FENCED.search(text)
        language = language_name(match[1]) if match and match[1] else language_shown(code_in(text), PYTHON)
        if language in JAIL_LANGUAGES:
            return language
    return PYTHON


def language_shown(source: str, expected: str) -> str | None:
    """Return the language of source, as far as it shows: the expected one where it has signs of it, else Python.

    A line such as ``console.log(1)`` can be read as Python too.
    """
    sign = signs_of(source)
    if sign == expected:
        return expected
    try:
        parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return sign
    return PYTHON


def endless_programs(row: AuditRow) -> Iterator[Probe]:
    """Yield code that never ends or fills the stack: heavy, because each costs the whole time that code has."""
    name = function_under_test(row)
    stub = f"def {name}(*arguments, **named):\n"
    yield Probe(Family.CODE, "never ends", fenced(f"{stub}    while True: pass"))
    yield Probe(Family.CODE, "recurses", fenced(f"{stub}    return {name}(*arguments, **named)"))


def function_under_test(row: AuditRow) -> str:
    """Return the name of the function under test, ``solution`` where nothing tells it."""
    point = row.columns.get("entry_point")
    if isinstance(point, str) and point.isidentifier():
        return point
    for text in (tests_text(row), *row.references, row.prompt_words):
        for pattern in (_CALLED, _DEFINED):
            match = pattern.search(text)
            if match and match[1] not in ("check", "isinstance", "abs", "len", "set", "sorted", "math"):
                return match[1]
    return "solution"


def tests_text(row: AuditRow) -> str:
    """Return the text of a row's tests, ``""`` where it has none."""
    return "\n".join(filter(None, (_as_text(row.columns.get(name)) for name in ("tests", "test", "test_list"))))


def expected_outputs(row: AuditRow) -> list[str]:
    """Return what the tests expect, as texts: the row's outputs, else what its tests compare with."""
    outputs = row.columns.get("outputs")
    if isinstance(outputs, str):
        try:
            outputs = json.loads(outputs)
        except ValueError:
            outputs = [outputs]
    if not outputs:
        outputs = re.findall(r"==\s*(.+)", tests_text(row))[:20]
    return [_as_text(output) for output in (outputs if isinstance(outputs, list) else [outputs])]


def _as_text(value: Any) -> str:
    """Return a column as text: lines for a list of texts, JSON for another value, ``""`` for None."""
    if value is None:
        return ""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return "\n".join(value)
    return value if isinstance(value, str) else json.dumps(value, default=legible)
