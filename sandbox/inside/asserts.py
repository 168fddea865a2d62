"""The tester: it runs assert-style test text in a child of its own, and calls the code in another.

The test text is trusted; of the completion the tester sees only the plain values that come back over a socket.
Reports go to the verdict file, which the completion's process does not have.
"""

from __future__ import annotations

import builtins
import gc
import os
import sys
import types
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

from sandbox import plain
from sandbox.errors import NotPlainError
from sandbox.inside.dialog import interact
from sandbox.inside.runner import (
    NO_MEMORY,
    TESTS_NAME,
    UNTOLD,
    describe,
    emit,
    frames,
    fresh_module,
    read_request,
    send,
    source_lines,
)

if TYPE_CHECKING:
    from ast import AST, Module, stmt

_MAX_LAST, _MAX_TEXT = 400, 300


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


class _Peer:
    """The completion, as the tester sees it: calls go out, plain values come back."""

    def __init__(self, room: int) -> None:
        self._frames = frames(room)
        self._number = 0
        self.last = ""
        self.calls = 0

    def hear(self) -> Any:
        try:
            message = next(self._frames, None)
        except (OSError, ValueError, RecursionError, MemoryError) as fault:
            if not self._number and isinstance(fault, ConnectionResetError):  # nobody else has sent it anything
                os._exit(UNTOLD)
            message = None
        if not isinstance(message, dict):
            self.lost()
        return message

    def lost(self) -> NoReturn:
        """End the tester at once, since the completion is gone: tests that catch everything must not go on."""
        emit({"gone": self.last[:_MAX_LAST]})
        os._exit(0)

    def call(self, function: str, arguments: tuple[object, ...], keywords: dict[str, object]) -> Any:
        """Call one of the completion's functions with copies of the arguments; raise the exception that it raised.

        Where it returns ``None``, the caller's objects get its changes. Elsewhere they do not, because a test that
        computes the right value from its own arguments would find what the completion put there.
        """
        self.calls += 1
        self._number += 1
        texts = [*map(_short, arguments), *(f"{name}={_short(value)}" for name, value in keywords.items())]
        self.last = f"{function}({', '.join(texts)})"
        try:
            call = {"arguments": plain.encode(list(arguments)), "keywords": plain.encode(keywords)}
        except NotPlainError as fault:
            error = TypeError(f"{self.last} cannot be called in a jail: {fault}")
            theirs = any(isinstance(value, BaseException) for value in (*arguments, *keywords.values()))
            if not theirs and not str(fault).startswith("nested"):  # else the completion may have made the value
                emit({"tests_fault": describe(error)})
                os._exit(0)
            raise error from None
        try:
            send({"number": self._number, "function": function, **call})
        except OSError:
            self.lost()
        reply = self.hear()
        if reply.get("number") != self._number:
            self.lost()
        if "raised" in reply:
            raise self._error(reply["raised"])
        try:
            value = plain.decode(reply["value"])
            in_place = reply if value is None else {}
            changed = plain.decode(in_place["arguments"]) if "arguments" in in_place else []
            changed_keywords = plain.decode(in_place["keywords"]) if "keywords" in in_place else {}
        except (ValueError, KeyError, RecursionError):
            self.lost()
        _copy_into(arguments, tuple(changed) if type(changed) is list else ())
        after = tuple(map(changed_keywords.get, keywords)) if type(changed_keywords) is dict else ()
        _copy_into(tuple(keywords.values()), after)
        self.last += f" gave {_short(value)}"
        return value

    def _error(self, raised: object) -> Exception:
        """Return the completion's exception as the nearest built-in one, and add it to ``last``."""
        report: dict[str, Any] = raised if isinstance(raised, dict) else {}
        kinds = report.get("kinds")
        name = str(report.get("type")) if kinds is not None else ""
        message = str(report.get("message")) if kinds else ""
        self.last += f" raised {name}: {_short(message)}"
        for kind in kinds if isinstance(kinds, list) else ():
            if kind in ("StopIteration", "StopAsyncIteration"):  # would end a test's loop as if it were through
                break
            builtin = getattr(builtins, kind, None) if isinstance(kind, str) else None
            if isinstance(builtin, type) and issubclass(builtin, Exception):
                try:
                    return builtin(message)
                except TypeError:
                    continue
        return RuntimeError(f"{name}: {message}")


def _short(value: object) -> str:
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an integer of very many digits
        text = f"a very long {type(value).__name__}"
    return text if len(text) <= 80 else text[:77] + "..."


def _copy_into(ours: Any, theirs: Any) -> None:
    if type(ours) is not type(theirs):
        return
    if isinstance(ours, tuple):
        for mine, other in zip(ours, theirs, strict=False):
            _copy_into(mine, other)
    elif isinstance(ours, list | bytearray):
        ours[:] = theirs
    elif isinstance(ours, dict | set):
        ours.clear()
        ours.update(theirs)


class _Check:
    """The context in which an ``assert`` runs; one that may run ``again`` is certain only at the end."""

    def __init__(self, number: int, text: str, again: bool, peer: _Peer) -> None:
        self.number, self.text, self.again = number, text, again
        self._peer = peer
        self.passed: bool | None = None

    def __enter__(self) -> None:
        self._peer.last = ""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if error is not None and not isinstance(error, Exception):
            return False
        if error is None:
            if self.passed is None:
                self.passed = True
                emit({"check": self.number, "passed": True})
            return True
        if self.passed is not False:
            self.passed = False
            why = str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"
            emit({"check": self.number, "passed": False, "why": why[:200], "last": self._peer.last[:_MAX_LAST]})
        return True


def run(request: dict[str, Any]) -> int:
    """Run test text whose ``candidate`` is the completion in the other process; each assert is a check.

    It reports, a line each: ``tests_fault`` where the tests cannot be run, whatever the completion is; ``plan`` (the
    text of each check, and whether it may be run again); ``check`` when a check first passes, and when it first fails;
    and last how it ended: ``load`` or ``missing`` (no function to call), ``gone`` (the completion's process),
    ``stopped`` (the tests, by an exception), or ``done``.
    """
    for name in ("random", "numpy.random"):  # the completion has the zygote's state and must not foresee what is drawn
        if name in sys.modules:
            sys.modules[name].seed()
    peer = _Peer(request["room"])
    names = fresh_module("tests")
    try:
        exec(compile(request["setup"], "setup.py", "exec", dont_inherit=True), names)  # noqa: S102 - this is what the jail is for
        tree: Any = compile(request["tests"], TESTS_NAME, "exec", 0x400, dont_inherit=True)  # to a syntax tree
        if request["entry_point"] is not None:
            _take_helpers(tree, names, request["entry_point"], request["helpers"])
        checks = _instrument(tree, request["tests"], peer)
        code = compile(tree, TESTS_NAME, "exec", dont_inherit=True)
    except BaseException as error:
        emit({"tests_fault": describe(error)})
        return 0
    emit({"plan": [[check.text, check.again] for check in checks]})
    try:
        return _run(peer, names, tree, code, checks, request["entry_point"])
    except BaseException as error:  # the tester now reads what the completion sends, and that broke it
        report = describe(error.with_traceback(None))  # which frees the memory in its frames: the report needs some
        emit({"stopped": report, "last": peer.last[:_MAX_LAST]})
        return NO_MEMORY if isinstance(error, MemoryError) else 1


def _take_helpers(tree: Module, names: dict[str, Any], entry: str, helpers: str) -> None:
    """Give the tests the names that they use and do not bind, as the helpers define them; else raise ``NameError``.

    This is decided before the completion is heard: it can neither put the tests at fault nor replace a helper.
    """
    missing = [name for name in _unbound(tree, names) if name not in ("candidate", entry.split(".")[-1])]
    if not missing:
        return
    try:
        code = compile(helpers, "helpers.py", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):  # a prompt in words
        code = compile("", "helpers.py", "exec")
    helper_names = fresh_module("helpers")
    exec(code, helper_names)  # noqa: S102 - this is what the jail is for
    names.update((name, helper_names[name]) for name in missing if name in helper_names)
    undefined = [name for name in missing if name not in helper_names]
    if undefined and "*" not in undefined:
        raise NameError(f"the tests use {', '.join(undefined)}, which nothing on their side defines")


def _run(
    peer: _Peer, names: dict[str, Any], tree: Module, code: types.CodeType, checks: list[_Check], entry: str | None
) -> int:
    hello = peer.hear()
    if hello.get("loaded") is not True:
        emit({"load": hello.get("raised")})
        return 0
    listed = hello.get("names")
    defined = {name for name in listed if isinstance(name, str)} if isinstance(listed, list) else set()
    if entry is None:
        names.update((name, _proxy(peer, name)) for name in _unbound(tree, names) if name in defined)
    elif entry.split(".")[0] in defined or ("." not in entry and "Solution" in defined):
        names["candidate"] = names[entry.split(".")[-1]] = _proxy(peer, entry)
    else:
        emit({"missing": entry})
        return 0
    names["__check__"] = checks
    try:
        exec(code, names)  # noqa: S102 - this is what the jail is for
        check = names.get("check")
        if isinstance(check, types.FunctionType) and entry is not None and check.__code__ is not _PROXY:
            check(names["candidate"])
    except BaseException as error:
        emit({"stopped": describe(error), "last": peer.last[:_MAX_LAST]})
    else:
        emit({"done": True, "calls": peer.calls})
    return 0


def _proxy(peer: _Peer, name: str) -> Callable[..., Any]:
    def candidate(*arguments: object, **keywords: object) -> Any:
        return peer.call(name, arguments, keywords)

    candidate.__name__ = candidate.__qualname__ = name.split(".")[-1]
    return candidate


_PROXY = _proxy(_Peer(0), "candidate").__code__


def _instrument(tree: Module, source: str, peer: _Peer) -> list[_Check]:
    """Wrap, in the tree, each assert that can fail, or the ``try`` or ``with`` around it, and return the checks."""
    import _ast

    lines = source_lines(source)
    checks: list[_Check] = []

    def wrap(statement: stmt, again: bool) -> stmt:
        number = len(checks)
        text = " ".join(line.strip() for line in lines[statement.lineno - 1 : statement.end_lineno])
        checks.append(_Check(number, text[:_MAX_TEXT], again, peer))
        at = {name: getattr(statement, name) for name in ("lineno", "col_offset", "end_lineno", "end_col_offset")}
        load = _ast.Load()
        check = _ast.Subscript(_ast.Name("__check__", load, **at), _ast.Constant(number, **at), load, **at)
        return _ast.With([_ast.withitem(check)], [statement], None, **at)

    def can_fail(node: AST) -> bool:
        asserts = (part for part in _walk(node) if isinstance(part, _ast.Assert))
        return any(not isinstance(part.test, _ast.Constant) or not part.test.value for part in asserts)

    def visit(node: AST, again: bool) -> None:
        loops = _ast.For | _ast.While | _ast.AsyncFor | _ast.FunctionDef | _ast.AsyncFunctionDef
        if isinstance(node, loops) and not (node in tree.body and getattr(node, "name", "") == "check"):
            again = True
        for field in node._fields:
            body: Any = getattr(node, field, None)
            for index, item in enumerate(body if isinstance(body, list) else ()):
                if isinstance(item, _ast.Assert):
                    if not isinstance(item.test, _ast.Constant):
                        body[index] = wrap(item, again)
                elif isinstance(item, _ast.With | _ast.TryStar) or (isinstance(item, _ast.Try) and item.handlers):
                    if can_fail(item):
                        body[index] = wrap(item, again)
                elif isinstance(item, _ast.AST):
                    visit(item, again)

    visit(tree, False)
    return checks


_BINDERS = {  # of nodes that bind a name: the field that has it
    "FunctionDef": "name", "AsyncFunctionDef": "name", "ClassDef": "name", "ExceptHandler": "name",
    "MatchAs": "name", "MatchStar": "name", "MatchMapping": "rest", "arg": "arg",
}  # fmt: skip


def _walk(node: AST) -> Iterator[AST]:
    """Yield a node and all below it, in the order of the text; :mod:`ast` is too large for a child to load."""
    import _ast

    yield node
    for field in node._fields:
        value = getattr(node, field, None)
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, _ast.AST):
                yield from _walk(item)


def bound_names(tree: AST) -> Iterator[str]:
    """Yield each name as often as a syntax tree binds it."""
    import _ast

    for node in _walk(tree):
        if isinstance(node, _ast.Name):
            if not isinstance(node.ctx, _ast.Load):
                yield node.id
        elif isinstance(node, _ast.alias):
            if node.name != "*":
                yield (node.asname or node.name).split(".")[0]
        elif name := getattr(node, _BINDERS.get(type(node).__name__, ""), None):
            yield name


def _unbound(tree: Module, names: dict[str, Any]) -> list[str]:
    """Return the names that the tests use and do not bind, with ``*`` if an import may have bound others."""
    import _ast

    used: dict[str, None] = {}
    for node in _walk(tree):
        if isinstance(node, _ast.Name) and isinstance(node.ctx, _ast.Load):
            used[node.id] = None
        elif isinstance(node, _ast.alias) and node.name == "*":
            used["*"] = None
    bound = {*names, *dir(builtins), *bound_names(tree)}
    return [name for name in used if name not in bound]
