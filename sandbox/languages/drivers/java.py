"""Calls of methods in Java, by the types that they declare."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from sandbox.languages.drivers import runtime_text
from sandbox.languages.drivers.java_tuples import with_tuples
from sandbox.languages.drivers.scanning import blank, check_name, clean, declared, outer_types, split_list
from sandbox.languages.language import CannotDriveError, Program, Suite

_DRIVER = "RewardkitDriver"
_MAIN = re.compile(r"\bstatic\s+void\s+main\s*\(")
_NAME = re.compile(r"(\w+)\s*\Z")
_IMPORT = re.compile(r"^import\s[^;]+;[^\n]*\n", re.MULTILINE)


class JavaDriver:
    """The driver of Java. A completion's source is in no package, and none of its classes but ``Main`` is public."""

    def answerer(self, source: str, entry_point: str, calls: Sequence[Any] = ()) -> Program:
        """Return the completion, with the class that answers calls in the same file."""
        source = with_tuples(_in_class(clean(source)))
        owner, _, name = check_name(entry_point).rpartition(".")
        usual = (*([owner] if owner else ["Solution", "Main"]), *outer_types(source))
        present = [owner for owner in dict.fromkeys(usual) if owner in set(outer_types(source))]
        text = f"{source}\n{runtime_text('Rk.java')}"
        return Program({"Main.java": text}, arguments=("serve", name, *present), entry=_DRIVER)

    def function_name(self, suite: Suite) -> str:
        """Return the name of the method that a suite's declaration declares."""
        return declared(clean(suite.declaration), suite.entry_point, depth=1).name

    def tester(self, suite: Suite) -> Program:
        """Return the tests with a method that asks the answerer, in place of the declared one."""
        declaration = clean(suite.declaration)
        method = declared(declaration, suite.entry_point, depth=1)
        owner = outer_types(declaration[: method.start])[-1]
        names = [_name_of(parameter) for parameter in split_list(declaration[slice(*method.parameters)])]
        ask = f'{_DRIVER}.ask({owner}.class, "{method.name}", new Object[] {{{", ".join(names)}}});'
        returns_nothing = re.search(r"\bvoid\s*\Z", blank(declaration[: method.start]))
        stub = f"{declaration[: method.body]}{{ {'' if returns_nothing else 'return '}{ask} }}\n"
        tests = clean(suite.tests)
        goes_on = re.match(r"\s*\}", tests)  # they begin where the method's body ends, as MultiPL-E's do
        if not goes_on and outer_types(tests):
            tests = f"}}\n{tests}"  # the method's class ends before those of the tests
        text = stub + (tests[goes_on.end() :] if goes_on else tests)
        text = _hoist_imports(clean(suite.setup) + re.sub(r"^public(?=\s+class\b)", "", text, flags=re.MULTILINE))
        main = _main_class(text)
        text = with_tuples(text)
        return Program({"Main.java": f"{text}\n{runtime_text('Rk.java')}"}, arguments=("test", main), entry=_DRIVER)


def _name_of(parameter: str) -> str:
    match = _NAME.search(re.sub(r"(?:\[\s*\]\s*)+\Z", "", parameter))
    if match is None:
        raise CannotDriveError(f"tests do not fit: a parameter has no name: {parameter}")
    return match[1]


def _in_class(source: str) -> str:
    """Return a source whose methods stand in the class ``Solution`` where they stand in none."""
    if outer_types(source):
        return source
    imports = _IMPORT.findall(source)
    return f"{' '.join(line.strip() for line in imports)} class Solution {{ {_IMPORT.sub('', source)}}}\n"


def _hoist_imports(text: str) -> str:
    """Return a text whose imports come first, as they must."""
    imports = dict.fromkeys(_IMPORT.findall(text))
    return "".join(imports) + _IMPORT.sub("", text)


def _main_class(text: str) -> str:
    bare = blank(text)
    mains = list(_MAIN.finditer(bare))
    if not mains:
        raise CannotDriveError("tests do not fit: they have no main method")
    return outer_types(text[: mains[-1].start()])[-1]
