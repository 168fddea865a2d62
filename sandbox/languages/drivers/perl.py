"""Calls of subroutines in Perl."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from sandbox.languages.drivers import runtime_text
from sandbox.languages.drivers.scanning import check_name, clean
from sandbox.languages.language import CannotDriveError, Program, Suite

_RUNTIME = "rewardkit_driver.pl"
_PACKAGE = re.compile(r"(?:^|[;{}])[ \t]*package[ \t]+([A-Za-z_]\w*(?:::\w+)*)", re.MULTILINE | re.ASCII)


class PerlDriver:
    """The driver of Perl. The completion is a file of its own, whose text is UTF-8, so it may end in data."""

    def answerer(self, source: str, entry_point: str, calls: Sequence[Any] = ()) -> Program:
        """Return what loads the completion and then answers calls."""
        source = clean(source)
        owner, _, name = check_name(entry_point).rpartition(".")
        packages = [owner] if owner else dict.fromkeys(["main", *_PACKAGE.findall(source)])
        names = ", ".join(f"'{text}'" for text in (name, *packages))
        main = f"require './{_RUNTIME}'; RewardkitDriver::serve({names});\n"
        completion = f'use utf8;\n#line 1 "main.pl"\n{source}'
        return Program({"main.pl": main, "completion.pl": completion, _RUNTIME: runtime_text("rk.pl")})

    def function_name(self, suite: Suite) -> str:
        """Return the name by which the tests call the subroutine."""
        return suite.entry_point

    def tester(self, suite: Suite) -> Program:
        """Raise CannotDriveError: the form of Perl's suites is not known here."""
        raise CannotDriveError("tests do not fit: suites in Perl are not judged; give inputs and outputs")
