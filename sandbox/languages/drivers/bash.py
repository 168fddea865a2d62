"""Calls of functions in Bash, whose arguments are words and whose value is what they print."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from sandbox.errors import NotPlainError
from sandbox.languages.drivers import runtime_text
from sandbox.languages.drivers.scanning import check_name, clean
from sandbox.languages.language import CannotDriveError, Program, Suite
from sandbox.languages.shell_values import as_word

_RUNTIME = "rewardkit_driver.sh"


class BashDriver:
    """The driver of Bash. Its programs have the arguments of the calls in a file of words, since Bash reads no JSON."""

    def answerer(self, source: str, entry_point: str, calls: Sequence[Any] = ()) -> Program:
        """Return what loads the completion and then makes the calls.

        Raises:
            NotPlainError: An argument cannot be written as a word.
        """
        if "." in check_name(entry_point):
            raise CannotDriveError(f"a function in Bash is no method: {entry_point}")
        name = shlex.quote(entry_point)
        main = f". ./{_RUNTIME}\n. ./completion.sh\ndeclare -F {name} >/dev/null || exit 1\n. ./calls.sh\nexit 0\n"
        lines = [f"rewardkit_answer {name} {_arguments(number, call)}\n" for number, call in enumerate(calls)]
        completion = {"completion.sh": clean(source), "calls.sh": "".join(lines)}
        return Program({"main.sh": main, _RUNTIME: runtime_text("rk.sh"), **completion})

    def function_name(self, suite: Suite) -> str:
        """Return the name by which the tests call the function."""
        return suite.entry_point

    def tester(self, suite: Suite) -> Program:
        """Raise CannotDriveError: suites in Bash run their own function."""
        raise CannotDriveError("tests do not fit: suites in Bash are not judged; give inputs and outputs")


def _arguments(number: int, call: Sequence[Any]) -> str:
    try:
        return " ".join(shlex.quote(as_word(argument)) for argument in call)
    except NotPlainError as error:
        raise NotPlainError(f"call {number}: {error}") from None
