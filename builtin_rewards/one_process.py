"""Tests that want the code in their own process: they patch what it uses, or give it what cannot travel.

Such tests are run together with the code, which could say of itself what it likes. So they are graded as suites are,
in runs of which some expect what is wrong (:func:`rewardkit.check_suite`).
"""

from __future__ import annotations

import ast
import builtins
import importlib.util
import re
import sys

from rewardkit import SealedWorkspace, check_suite
from sandbox import CheckResult, CheckStatus, Limits, is_stand_in, parse
from sandbox.errors import CheckError

_FILE = "test_row.py"
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")  # as what is patched is named
_MODULE = "solution"
_ALIAS = f"import sys\nimport {_MODULE}\nsys.modules[__name__] = {_MODULE}\n"  # a second name of the one module
_USUAL = ("typing", "operator", "functools", "itertools", "collections", "math", "unittest.mock")  # of tests' names
_OUTCOMES = {"missing": "it was not reported: the code ended the run, or replaced what reports it"}
_OTHERS = frozenset(["pytest", "numpy", "__main__"])  # modules that are not the code's


def check_in_one_process(
    code: str, tests: str, entry_point: str | None, setup: str, limits: Limits, fault: CheckError
) -> tuple[CheckResult, ...]:
    """Run tests together with the code that they test.

    Args:
        code: What is tested.
        tests: Functions for pytest, or classes of unittest.
        entry_point: The name that the tests call without an import.
        setup: What comes before the tests.
        limits: Of each run.
        fault: Why the tests cannot be run apart from the code; its words are in what is raised.

    Raises:
        CheckError: The tests are at fault, whatever the code is: no pytest is installed, they are no functions or
            classes, or have no expected values that a canary can change.
        InfrastructureError: The jail itself failed.
    """
    if importlib.util.find_spec("pytest") is None:
        raise CheckError(f"{fault}; in one process with it only pytest runs them, which is not installed") from fault
    modules = _modules(tests)
    if others := sorted(module for module in modules if not is_stand_in(module, modules[module], entry_point)):
        raise CheckError(f"{fault}; and they want {others[0]!r}, which is not there") from fault
    text = _suite(tests, entry_point, setup)
    files = {**dict.fromkeys(modules, _ALIAS), _MODULE: code}
    workspace = SealedWorkspace({f"{module}.py": source.encode() for module, source in files.items()})
    packages = ("numpy",) if "numpy" in code + text and importlib.util.find_spec("numpy") is not None else ()
    verdict = check_suite(workspace, {_FILE: text}, weak="refuse", packages=packages, limits=limits)
    if verdict.status == "unsuitable":
        raise CheckError(f"{fault}; in one process with it they prove nothing: {verdict.error}") from fault
    if verdict.status == "forged" or not verdict.results:
        return (CheckResult(CheckStatus.FAILED, verdict.reason(), "all tests"),)
    return tuple(
        CheckResult(
            CheckStatus.PASSED if result.outcome == "passed" else CheckStatus.FAILED,
            "" if result.outcome == "passed" else result.message or _OUTCOMES.get(result.outcome, result.outcome),
            result.name.removeprefix(f"{_FILE}::"),
            is_test=True,
        )
        for result in verdict.results
    )


def _modules(tests: str) -> dict[str, list[str]]:
    """Return the modules that tests import or patch and that are nobody else's, with what they import of them."""
    modules: dict[str, list[str]] = {}
    for node in ast.walk(parse(tests)):
        match node:
            case ast.Import(names=aliases):
                for alias in aliases:
                    modules.setdefault(alias.name.partition(".")[0], [])
            case ast.ImportFrom(module=str(module), names=aliases, level=0):
                modules.setdefault(module.partition(".")[0], []).extend(alias.name for alias in aliases)
            case ast.Call(func=function, args=[ast.Constant(value=str(text)), *_]) if _DOTTED.fullmatch(text):
                if "patch" in ast.unparse(function):
                    modules.setdefault(text.partition(".")[0], [])
    return {name: names for name, names in modules.items() if name not in _OTHERS | sys.stdlib_module_names}


def _suite(tests: str, entry_point: str | None, setup: str) -> str:
    """Return tests as a file of their own."""
    if entry_point:
        imported = f"from {_MODULE} import {entry_point.partition('.')[0]}\n"
    else:
        imported = "".join(_import_lines(f"{setup}\n{tests}"))
    return f"{setup}\n{imported}{tests}\n"


def _import_lines(text: str) -> list[str]:
    """Return imports of the names that tests without an entry point leave unbound: usual ones are never the code's.

    A name that the code lacks stays unbound, so that the test which uses it says so.
    """
    names = _unbound(parse(text))
    homes = {name: home for name in names for home in _USUAL if hasattr(importlib.import_module(home), name)}
    usual = (
        homes if homes.keys() < set(names) else {}
    )  # the only name is the function under test, whatever it is called
    return [
        f"from {usual[name]} import {name}\n"
        if name in usual
        else f"try:\n    from {_MODULE} import {name}\nexcept ImportError:\n    pass\n"
        for name in names
    ]


def _unbound(tree: ast.Module) -> list[str]:
    """Return the names that a text looks up and binds nowhere, in order."""
    loads: dict[str, None] = {}
    bound = {*dir(builtins), "__file__"}
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                loads[name] = None
            case ast.Name(id=name) | ast.arg(arg=name) | ast.ExceptHandler(name=str(name)):
                bound.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                bound.add(name)
            case ast.alias(name=name, asname=alias):
                bound.add(alias or name.partition(".")[0])
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                bound.add(name)
    return [name for name in loads if name not in bound]
