"""Calls of functions in Lua."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sandbox.languages.drivers import runtime_text
from sandbox.languages.drivers.scanning import check_name, clean
from sandbox.languages.language import CannotDriveError, Program, Suite

_RUNTIME = "rewardkit_driver.lua"


class LuaDriver:
    """The driver of Lua. The completion is a file of its own, so it may return a module."""

    def answerer(self, source: str, entry_point: str, calls: Sequence[Any] = ()) -> Program:
        """Return what loads the completion and then answers calls."""
        owner, _, name = check_name(entry_point).rpartition(".")
        source = clean(source)
        main = f"loadfile('{_RUNTIME}')({repr(owner) if owner else 'nil'}, '{name}')\n"
        completion = f"--{source}" if source.startswith("#") else source
        return Program({"main.lua": main, "completion.lua": completion, _RUNTIME: runtime_text("rk.lua")})

    def function_name(self, suite: Suite) -> str:
        """Return the name by which the tests call the function."""
        return suite.entry_point

    def tester(self, suite: Suite) -> Program:
        """Raise CannotDriveError: the form of Lua's suites is not known here."""
        raise CannotDriveError("tests do not fit: suites in Lua are not judged; give inputs and outputs")
