"""Calls of methods in Ruby."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from sandbox.languages.drivers import runtime_text
from sandbox.languages.drivers.scanning import check_name, clean
from sandbox.languages.language import CannotDriveError, Program, Suite

_RUNTIME = "rewardkit_driver.rb"
_METHOD = re.compile(r"^[ \t]*def[ \t]+(\w+[?!]?)", re.MULTILINE)
_WITHOUT_END = re.compile(r"\A\s*end\b")  # which closes the method that a prompt left open
_LOAD = f"require 'json'; require 'set'; require_relative '{_RUNTIME}'"


class RubyDriver:
    """The driver of Ruby."""

    def answerer(self, source: str, entry_point: str, calls: Sequence[Any] = ()) -> Program:
        """Return the completion and behind it what answers calls."""
        owner, _, name = check_name(entry_point).rpartition(".")
        owner_text = f"'{owner}'" if owner else "nil"
        serve = f"RewardkitDriver.serve(RewardkitDriver.find(self, {owner_text}, :{name}))"
        text = f"{_without_end(clean(source))}\n{_LOAD}; {serve}\n"
        return Program({"main.rb": text, _RUNTIME: runtime_text("rk.rb")})

    def function_name(self, suite: Suite) -> str:
        """Return the name of the method that a suite's declaration declares."""
        return _declared(clean(suite.declaration), suite.entry_point)[1]

    def tester(self, suite: Suite) -> Program:
        """Return the tests with a method that asks the answerer, in place of the declared one."""
        declaration = clean(suite.declaration)
        start, name = _declared(declaration, suite.entry_point)
        stub = f"def {name}(*values) = RewardkitDriver.ask(values)\n"
        text = f"{clean(suite.setup)}{declaration[:start]}\n{stub}{_WITHOUT_END.sub('', clean(suite.tests))}"
        main = f"{_LOAD}; require_relative 'rewardkit_tests.rb'; RewardkitDriver.test {{ load './tests.rb' }}\n"
        files = {_RUNTIME: runtime_text("rk.rb"), "rewardkit_tests.rb": runtime_text("rk_tests.rb")}
        return Program({"main.rb": main, "tests.rb": text, **files})


def _declared(declaration: str, entry_point: str) -> tuple[int, str]:
    """Return start and name of the last method of the entry point's name, or else of the last method."""
    methods = list(_METHOD.finditer(declaration))
    if not methods or "." in entry_point:
        raise CannotDriveError(f"tests do not fit: the declaration does not declare {entry_point}")
    method = ([match for match in methods if match[1] == entry_point] or methods)[-1]
    return method.start(), method[1]


def _without_end(source: str) -> str:
    """Return a source without what follows ``__END__``, which is data."""
    return source.split("\n__END__\n")[0]
