"""Calls of methods in Ruby."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sandbox.languages.drivers import runtime_text
from sandbox.languages.drivers.scanning import check_name, clean
from sandbox.languages.language import CannotDriveError, Program, Suite

_RUNTIME = "rewardkit_driver.rb"
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
        """Return the name by which the tests call the method."""
        return suite.entry_point

    def tester(self, suite: Suite) -> Program:
        """Raise CannotDriveError: the form of Ruby's suites is not known here."""
        raise CannotDriveError("tests do not fit: suites in Ruby are not judged; give inputs and outputs")


def _without_end(source: str) -> str:
    """Return a source without what follows ``__END__``, which is data."""
    return source.split("\n__END__\n")[0]
