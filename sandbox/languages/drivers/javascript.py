"""Calls of functions in JavaScript and TypeScript."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sandbox.languages.drivers import runtime_text
from sandbox.languages.drivers.scanning import blank, check_name, clean
from sandbox.languages.language import CannotDriveError, Program, Suite

_RUNTIME = "rk.js"
_MODULE = re.compile(
    r"^[ \t]*(?:import\b[ \t]*(?![ \t(.])|export\b[ \t]+(?:default|const|let|var|function|async|class|\{|\*))", re.M
)
_UNCALLED = re.compile(r"^(?:const|let|var|function)[ \t]+(test\w*)\b", re.MULTILINE)
_HEAD = re.compile(
    r"^[ \t]*(?:export[ \t]+)?(?:(?:async[ \t]+)?function\b[ \t]*\*?|(?:const|let|var)\b)[ \t]*([A-Za-z_$][\w$]*)", re.M
)


@dataclass(frozen=True, slots=True)
class JavaScriptDriver:
    """The driver of JavaScript, and with another ``suffix`` of TypeScript."""

    suffix: str = "js"

    def answerer(self, source: str, entry_point: str, calls: Sequence[Any] = ()) -> Program:
        """Return the completion and behind it, in its own scope, what answers calls."""
        source = clean(source)
        owner, _, name = check_name(entry_point).rpartition(".")
        owner = owner or "Solution"
        places = f"{_if_defined(name)}, {{exported}}, {_if_defined(owner)}, {name!r}"
        files = {_RUNTIME: runtime_text(_RUNTIME)}
        if not _MODULE.search(source):
            serve = f"require('./{_RUNTIME}').serve({places.format(exported='module.exports')});\n"
            return Program({f"main.{self.suffix}": f"{source}\n;{serve}", **files})
        serve = f"rewardkitDriver.serve({places.format(exported='undefined')});\n"
        module = f"{source}\n;import rewardkitDriver from './{_RUNTIME}';{serve}"
        path = f"completion.m{self.suffix}"
        return Program({f"main.{self.suffix}": f"import('./{path}');\n", path: module, **files})

    def function_name(self, suite: Suite) -> str:
        """Return the name of the function that a suite's declaration declares, or else the entry point."""
        return _declared(clean(suite.declaration), suite.entry_point)[0]

    def tester(self, suite: Suite) -> Program:
        """Return the tests with a function that asks the answerer, in place of the declared one."""
        if "." in check_name(suite.entry_point):
            raise CannotDriveError("tests do not fit: the function is a method")
        declaration = clean(suite.declaration)
        name, start = _declared(declaration, suite.entry_point)
        helpers = declaration[:start]
        stub = f"const {name} = (...values) => require('./{_RUNTIME}').ask(...values);\n"
        tests = _without_function_end(clean(suite.tests), declaration)
        text = f"{clean(suite.setup)}{helpers}\n{stub}{tests}{_calls_of_uncalled(tests)}"
        path = f"tests.{self.suffix}"
        main = f"require('./{_RUNTIME}').test('./{path}');\n"
        return Program({f"main.{self.suffix}": main, path: text, _RUNTIME: runtime_text(_RUNTIME)})


def _if_defined(name: str) -> str:
    return f"(typeof {name} === 'undefined' ? undefined : {name})"


def _declared(declaration: str, entry_point: str) -> tuple[str, int]:
    """Return name and start of the last declaration of the entry point, or else of the function that is left open."""
    bare = blank(declaration)
    matches = list(_HEAD.finditer(bare))
    named = [match for match in matches if match[1] == entry_point]
    still_open = [match for match in matches if bare[match.end() :].count("{") > bare[match.end() :].count("}")]
    for match in (named or still_open)[-1:]:
        return match[1], match.start()
    return entry_point, len(declaration)


def _without_function_end(tests: str, declaration: str) -> str:
    """Return tests without a brace that only closes the declared function."""
    return re.sub(r"\A\s*\}\s*;?", "", tests) if declaration.strip() else tests


def _calls_of_uncalled(tests: str) -> str:
    """Return calls of test functions that HumanEvalPack defines and never calls."""
    names = [match[1] for match in _UNCALLED.finditer(blank(tests))]
    return "".join(f";{name}();\n" for name in names if len(re.findall(rf"\b{name}\b", tests)) == 1)
