"""Calls of functions in PHP."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from sandbox.languages.drivers import runtime_text
from sandbox.languages.drivers.scanning import blank, check_name, clean, closing, split_list, without_closing_brace
from sandbox.languages.language import CannotDriveError, Program, Suite

_RUNTIME = "rewardkit_driver.php"
_TAG = re.compile(r"<\?php\b|<\?(?!=)|\?>\s*\Z")
_FUNCTION = re.compile(r"\bfunction\s+&?\s*(\w+)\s*\(")
_PARAMETER = re.compile(r"(&?\s*(?:\.\.\.)?\s*)(\$\w+)")


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
        """Return the name of the function that a suite's declaration declares."""
        return _declared(clean(suite.declaration), suite.entry_point)[1]

    def tester(self, suite: Suite) -> Program:
        """Return the tests with a function that asks the answerer, in place of the declared one."""
        declaration = clean(suite.declaration)
        start, _, bracket = _declared(declaration, suite.entry_point)
        parts = (suite.setup, declaration[:start], _stub(declaration, start, bracket), suite.tests)
        setup, helpers, stub, tests = (_TAG.sub("", clean(part)) for part in parts)
        files = {"tests.php": f"<?php\n{setup}{helpers}\n{stub}{without_closing_brace(tests)}"}
        main = f"<?php require __DIR__ . '/{_RUNTIME}'; \\RewardkitDriver\\test(__DIR__ . '/tests.php');\n"
        return Program({"main.php": main, **files, _RUNTIME: runtime_text("rk.php")})


def _declared(declaration: str, entry_point: str) -> tuple[int, str, int]:
    """Return start, name and bracket of the last function of the entry point's name, or else of the last function."""
    functions = list(_FUNCTION.finditer(blank(declaration)))
    if not functions:
        raise CannotDriveError(f"tests do not fit: the declaration does not declare {entry_point}")
    function = ([match for match in functions if match[1] == entry_point] or functions)[-1]
    return function.start(), function[1], function.end() - 1


def _stub(declaration: str, start: int, bracket: int) -> str:
    """Return the declared function with a body that asks, and gives back what is changed by reference."""
    bare = blank(declaration)
    end = closing(bare, bracket)
    body = bare.find("{", end)
    if body < 0:
        raise CannotDriveError("tests do not fit: the declaration has no function's body")
    parameters = [_PARAMETER.search(parameter) for parameter in split_list(declaration[bracket + 1 : end])]
    names = [match for match in parameters if match]
    back = "".join(
        f" if (array_key_exists({index}, $rewardkit[1])) {match[2]} = $rewardkit[1][{index}];"
        for index, match in enumerate(names)
        if "&" in match[1]
    )
    values = ", ".join(match[1].replace("&", "").strip() + match[2] for match in names)
    result = "" if re.search(r":\s*void\b", bare[end:body]) else " return $rewardkit[0];"
    return f"{declaration[start:body]}{{ $rewardkit = \\RewardkitDriver\\ask([{values}]);{back}{result} }}\n"
