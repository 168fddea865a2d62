"""Calls of functions in PHP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sandbox.languages.drivers import runtime_text
from sandbox.languages.drivers.scanning import check_name, clean
from sandbox.languages.language import CannotDriveError, Program, Suite

_RUNTIME = "rewardkit_driver.php"


class PhpDriver:
    """The driver of PHP. A completion's source begins with PHP's tag."""

    def answerer(self, source: str, entry_point: str, calls: Sequence[Any] = ()) -> Program:
        """Return the completion and behind it what answers calls."""
        owner, _, name = check_name(entry_point).rpartition(".")
        source = clean(source)
        tag = "<?php " if source.rfind("?>") > source.rfind("<?") else ""
        serve = f"require __DIR__ . '/{_RUNTIME}'; \\RewardkitDriver\\serve('{owner}', '{name}');\n"
        return Program({"main.php": f"{source}\n{tag}{serve}", _RUNTIME: runtime_text("rk.php")})

    def function_name(self, suite: Suite) -> str:
        """Return the name by which the tests call the function."""
        return suite.entry_point

    def tester(self, suite: Suite) -> Program:
        """Raise CannotDriveError: the form of PHP's suites is not known here."""
        raise CannotDriveError("tests do not fit: suites in PHP are not judged; give inputs and outputs")
