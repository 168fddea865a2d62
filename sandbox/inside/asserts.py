"""The tester: it runs test text in a child of its own, and calls the code in another.

The test text is trusted; of the completion the tester sees only the values that come back over a socket. Reports go to
the verdict file, which the completion's process does not have.
"""

from __future__ import annotations

import gc
import os
import sys
import types
from typing import Any

from sandbox.inside import cases, doctests, pytest_stand_in, unittests, values
from sandbox.inside.dialog import interact
from sandbox.inside.peer import MAX_LAST, Peer, names_of
from sandbox.inside.runner import NO_MEMORY, TESTS_NAME, describe, emit, fresh_module, read_request
from sandbox.inside.test_text import (
    SOLUTION,
    PlannedCheck,
    can_fail,
    instrument,
    is_stand_in,
    redirect_imports,
    syntax_tree,
    unbound_names,
    wrap_verdicts,
)
from sandbox.inside.usual_names import usual_names

_OF_TESTS = ("tests", "__main__", "helpers")


def perform() -> None:
    """Run the request's tests and end the process. Never returns."""
    code = 1
    try:
        request = read_request()
        gc.enable()
        code = interact(request) if "interactor" in request else run(request)
    except BaseException as fault:  # reported as the tests' fault, if nothing of the completion's was read yet
        code = NO_MEMORY if isinstance(fault, MemoryError) else 1
        emit({"fault": describe(fault)["message"] or type(fault).__name__})
    finally:
        os._exit(code)


def run(request: dict[str, Any]) -> int:
    """Run test text whose ``candidate`` is the completion in the other process.

    It reports, a line each: ``tests_fault`` where the tests cannot be run, whatever the completion is; ``plan`` (the
    text of each assert, and whether it may be run again); ``check`` when an assert first passes, and when it first
    fails; ``cases`` (the names of the tests that it has collected) and ``case`` for each of them; and last how it
    ended: ``load`` or ``missing`` (no function to call), ``gone`` (the completion's process), ``stopped`` (the tests,
    by an exception), or ``done``.
    """
    for name in ("random", "numpy.random"):  # the completion has the zygote's state and must not foresee what is drawn
        if name in sys.modules:
            sys.modules[name].seed()
    peer = Peer(request["room"])
    tests = Tests(peer, request)
    try:
        tests.prepare()
    except BaseException as error:
        emit({"tests_fault": describe(error)})
        return 0
    emit({"plan": [[plan.text, plan.again] for plan in tests.plan]})
    try:
        return tests.run()
    except BaseException as error:  # the tester now reads what the completion sends, and that broke it
        report = describe(error.with_traceback(None))  # which frees the memory in its frames: the report needs some
        emit({"stopped": report, "last": peer.last[:MAX_LAST]})
        return NO_MEMORY if isinstance(error, MemoryError) else 1


class Check:
    """The context in which an ``assert`` runs; one that may run again is certain only at the end."""

    def __init__(self, number: int, plan: PlannedCheck, tests: Tests) -> None:
        self._number = number
        self._plan = plan
        self._tests = tests
        self.passed: bool | None = None

    def __enter__(self) -> None:
        if not self._tests.in_case:
            self._tests.peer.last = ""
            self._tests.ran.add(self._plan.owner)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if error is not None and not isinstance(error, Exception):
            return False
        if self._tests.in_case:
            if error is not None and self._plan.swallowed:
                self._tests.swallowed = self._tests.swallowed or _why(error) or "an assert that its try swallows"
            return False
        if error is not None and self._tests.is_fault(error):
            self._tests.peer.fault(str(error))
        self.report(error is None, "" if error is None else _why(error))
        return True

    def report(self, passed: bool, why: str) -> None:
        if self.passed is None and passed:
            self.passed = True
            emit({"check": self._number, "passed": True})
        elif not passed and self.passed is not False:
            self.passed = False
            last = self._tests.peer.last[:MAX_LAST]
            emit({"check": self._number, "passed": False, "why": why[:200], "last": last})


class Tests:
    """Test text, from its tree to its end."""

    def __init__(self, peer: Peer, request: dict[str, Any]) -> None:
        self.peer = peer
        self.plan: list[PlannedCheck] = []
        self.in_case = False
        self.swallowed = ""
        self.ran: set[str] = set()  # functions and classes of the text whose asserts ran before any test was collected
        self._reported: set[str] = set()
        self._text: str = request["tests"]
        self._setup: str = request["setup"]
        self._helpers: str = request["helpers"]
        self._entry: str | None = request["entry_point"]
        self._names: dict[str, Any] = {}
        self._helper_names: dict[str, Any] = {}
        self._is_session = False
        self._lacking: list[str] = []
        self._code: types.CodeType | None = None

    # Before the completion is heard.

    def prepare(self) -> None:
        """Read the text and run the setup; what is raised here is the tests' fault, whatever the completion is."""
        self._names = names = fresh_module("tests")
        sys.modules["__main__"], sys.modules["pytest"] = sys.modules["tests"], pytest_stand_in
        whole = f"{self._setup}\n{self._text}"
        if "unittest" in whole:
            unittests.prepare(self._begin_case, self.report_case)
        if "mock" in whole:
            unittests.watch_patches(self.peer.fault)
        exec(compile(self._setup, "setup.py", "exec", dont_inherit=True), names)  # noqa: S102 - this is what the jail is for
        names |= {"__name__": "__main__", "__file__": TESTS_NAME}
        tree = self._tree()
        if "import" in self._text:
            redirect_imports(tree, self._entry)
        whole_tree = doctests.with_sessions(tree, self._text) if ">>> " in self._text else tree
        self._lacking = unbound_names(whole_tree, {**names, SOLUTION: None})
        if self._entry is not None:
            self._take_helpers(whole_tree, self._entry)
        else:
            usual = usual_names(whole_tree, self._lacking, with_entry=False)
            names.update(usual)
            self._lacking = [name for name in self._lacking if name not in usual]
        is_judging = self._is_session or can_fail(tree, names)
        self.plan = instrument(tree, self._text)
        if not is_judging and self._entry is None:
            self.plan += wrap_verdicts(tree, self._text, len(self.plan), set(self._lacking) | {SOLUTION})
        if "numpy" in whole and "numpy" in sys.modules:
            values.send_arrays()
        self._code = compile(tree, TESTS_NAME, "exec", dont_inherit=True)
        if not is_judging and (self._entry is not None or not self.plan):
            raise ValueError(
                "the tests cannot fail: nothing in them asserts or raises; they print, collect or swallow their verdict"
            )
        self.peer.reads_output = any(word in whole for word in ("stdout", "print", "capsys", ">>> "))
        if "class " in whole or "class " in self._helpers:
            self.peer.classes_of_tests = self._own_classes

    def _tree(self) -> Any:
        """Return the text's tree; of a text that is a session, or whose sessions alone test, that of nothing."""
        try:
            return syntax_tree(self._text)
        except SyntaxError:
            if not doctests.sessions(self._text):
                raise
        self._is_session = True
        return syntax_tree("")

    def _take_helpers(self, tree: Any, entry: str) -> None:
        """Give the tests the names that they use and do not bind, as the helpers define them; else raise ``NameError``.

        This is decided before the completion is heard: it can neither put the tests at fault nor replace a helper.
        """
        own = ("candidate", entry.split(".")[0], entry.split(".")[-1])
        missing = [name for name in self._lacking if name not in own]
        if not missing:
            return
        try:
            code = compile(self._helpers, "helpers.py", "exec", dont_inherit=True)
        except (SyntaxError, ValueError):  # a prompt in words
            code = compile("", "helpers.py", "exec")
        self._helper_names = helper_names = fresh_module("helpers")
        exec(code, helper_names)  # noqa: S102 - this is what the jail is for
        self._names.update((name, helper_names[name]) for name in missing if name in helper_names)
        undefined = [name for name in missing if name not in helper_names]
        usual = usual_names(tree, undefined, with_entry=True)
        self._names.update(usual)
        undefined = [name for name in undefined if name not in usual]
        if undefined and "*" not in undefined:
            raise NameError(f"the tests use {', '.join(undefined)}, which nothing on their side defines")

    def _own_classes(self) -> dict[str, type]:
        """Return the classes that the tests' side defines: their objects travel by their state."""
        bound = [*self._names.values(), *self._helper_names.values()]
        kinds = [value for value in bound if isinstance(value, type) and value.__module__ in _OF_TESTS]
        kinds = [kind for kind in kinds if not issubclass(kind, BaseException) and not hasattr(kind, "assertEqual")]
        return {kind.__name__: kind for kind in kinds}

    # With the completion.

    def run(self) -> int:
        hello = self.peer.hear()
        if hello.get("loaded") is not True:
            emit({"load": hello.get("raised")})
            return 0
        solution = Solution(self.peer, hello)
        if not self._bind(solution):
            emit({"missing": self._entry})
            return 0
        checks = [Check(number, plan, self) for number, plan in enumerate(self.plan)]
        self._names["__check__"] = checks

        def note(number: int, value: object) -> object:
            checks[number].report(bool(value), "")
            return value

        self._names["__verdict__"] = note
        try:
            self._run_text()
            self._run_cases()
        except pytest_stand_in.FaultError as error:
            self.peer.fault(str(error))
        except BaseException as error:
            if self.is_fault(error):
                self.peer.fault(f"{type(error).__name__}: {error}", is_shared=self._is_of_the_code(error))
            emit({"stopped": describe(error), "last": self.peer.last[:MAX_LAST]})
        else:
            if not self.peer.calls:
                self.peer.fault("the tests ended without a call of the code")
            emit({"done": True, "calls": self.peer.calls})
        return 0

    def _bind(self, solution: Solution) -> bool:
        """Bind the names of the code under test; return whether it has the entry point."""
        self._names[SOLUTION] = solution
        if self._entry is None:
            self._names.update((name, solution.get(name)) for name in self._lacking if name != "*")
            return True
        first, last = self._entry.split(".")[0], self._entry.split(".")[-1]
        if first not in solution.defined and ("." in self._entry or "Solution" not in solution.defined):
            return False
        if first in self._lacking and first != last:
            self._names[first] = solution.get(first)
        is_class = self._entry in solution.classes
        self._names["candidate"] = self._names[last] = (
            solution.get(last) if is_class else solution.function(self._entry)
        )
        return True

    def is_fault(self, error: BaseException) -> bool:
        """Return whether an exception that ends tests is their own: before any call, or for what is not installed."""
        if isinstance(error, MemoryError) or self.peer.is_of_the_code(error):
            return False
        return not self.peer.calls or isinstance(error, ModuleNotFoundError)

    def _is_of_the_code(self, error: BaseException) -> bool:
        """Return whether tests lack a module that stands for the code, as where they patch ``solution.size``."""
        return isinstance(error, ModuleNotFoundError) and is_stand_in(error.name or "", [], self._entry)

    def _run_text(self) -> None:
        if self._is_session:
            doctests.run(self._text, self._names, self._begin_case, self.report_case)
            return
        assert self._code is not None
        try:
            exec(self._code, self._names)  # noqa: S102 - this is what the jail is for
        except SystemExit as end:
            if end.code not in (None, 0, False):
                raise
        check = self._names.get("check")
        is_own = isinstance(check, types.FunctionType) and check.__code__ is not PROXY
        if is_own and self._entry is not None and "check" not in self.ran:
            check(self._names["candidate"])  # type: ignore[misc]

    # Tests that are collected.

    def _run_cases(self) -> None:
        classes = [value for value in list(self._names.values()) if unittests.is_test_class(value)]
        named = {label: kind for kind in dict.fromkeys(classes) for label in unittests.labels(kind)}
        collected = [case for case in cases.collect(self._names) if case.label.partition("[")[0] not in self.ran]
        labels = [label for label in named if label not in self._reported]
        if labels or collected:
            emit({"cases": [*labels, *(case.label for case in collected)]})
        for kind in dict.fromkeys(named[label] for label in labels):
            if why := unittests.run_class(kind):
                for label in unittests.labels(kind):
                    if label not in self._reported:
                        self.report_case(label, False, why)
        if collected and callable(begin := self._names.get("setup_module")):
            begin(*([None] if cases.parameter_names(begin) else []))
        for case in collected:
            self._run_case(case)
        if "doctest" in self._text or ">>> " in self._text:
            self._run_docstrings()

    def _run_case(self, case: cases.Collected) -> None:
        self._begin_case()
        try:
            case.run()
        except pytest_stand_in.Skipped:
            self.report_case(case.label, None, "")
        except (Exception, SystemExit) as error:
            if self.is_fault(error):
                fault = f"{case.label}: {type(error).__name__}: {error}"
                self.peer.fault(fault, is_shared=self._is_of_the_code(error))
            self.report_case(case.label, False, _why(error))
        else:
            self.report_case(case.label, True, "")

    def _begin_case(self) -> None:
        self.in_case = True
        self.swallowed = ""
        self.peer.last = ""

    def report_case(self, label: str, passed: bool | None, why: str) -> None:
        """Report a test that has ended, and leave it; one that was skipped (``None``) counts neither way."""
        self.in_case = False
        self._reported.add(label)
        if passed is None:
            return
        if not passed or self.swallowed:
            last = self.peer.last[:MAX_LAST]
            emit({"case": label, "passed": False, "why": (why or self.swallowed)[:200], "last": last})
        else:
            emit({"case": label, "passed": True})

    def _run_docstrings(self) -> None:
        """Run the sessions in docstrings of the text, where it asks for that or has nothing else to be run."""
        asks = "testmod" in self._text or "doctest" in self._text
        docs = [self._names.get("__doc__")] if asks or not self.plan else []
        docs += [value.__doc__ for value in self._names.values() if asks and cases.is_of_the_text(value)]
        for text in docs:
            if isinstance(text, str) and doctests.sessions(text):
                doctests.run(text, self._names, self._begin_case, self.report_case)


class Solution:
    """The code under test, as a module that tests import from."""

    def __init__(self, peer: Peer, hello: dict[str, Any]) -> None:
        self._peer = peer
        self.defined = set(names_of(hello, "names"))
        self.classes = set(names_of(hello, "classes"))
        self._values = set(names_of(hello, "values"))
        errors = hello.get("errors")
        self._errors: dict[str, Any] = errors if isinstance(errors, dict) else {}

    def __getattr__(self, name: str) -> Any:
        if name[:2] == "__":
            raise AttributeError(name)
        return self.get(name)

    def get(self, name: str) -> Any:
        """Return a function, class or value of the code; for a name that it lacks, what raises once it is used."""
        if isinstance(report := self._errors.get(name), dict):
            return self._peer.error_class(report.get("own"), report.get("kinds"))
        if name in self.classes or name in self._values:
            return self._peer.act("name", name)
        return self.function(name) if name in self.defined else LackingName(self._peer, name)

    def function(self, path: str) -> Any:
        return _proxy(self._peer, path)


class LackingName:
    """A name that the code under test lacks: every use raises, as Python does for the name."""

    def __init__(self, peer: Peer, name: str) -> None:
        def use(*_: object, **__: object) -> Any:
            peer.calls += 1
            peer.last = name
            raise NameError(f"name {name!r} is not defined")

        vars(self)["use"] = use

    def __call__(self, *arguments: object, **keywords: object) -> Any:
        return self.use()

    def __getattr__(self, name: str) -> Any:
        if name[:2] == "__":
            raise AttributeError(name)
        return vars(self)["use"]()

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __getitem__ = __contains__ = __call__
    __iter__ = __len__ = __bool__ = __add__ = __sub__ = __mul__ = __hash__ = __str__ = __call__


def _proxy(peer: Peer, path: str) -> Any:
    def candidate(*arguments: object, **keywords: object) -> Any:
        return peer.call(path, arguments, keywords)

    candidate.__name__ = candidate.__qualname__ = path.split(".")[-1]
    return candidate


PROXY = next(constant for constant in _proxy.__code__.co_consts if isinstance(constant, types.CodeType))


def _why(error: BaseException) -> str:
    return str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"
