"""What a forked child does with untrusted code: run it as a program, call a function of it, or judge it.

This runs in the process that the code may do with as it likes, so nothing here is a boundary and nothing
it reports is believed further than it harms its own completion: values and outputs, never verdicts.
:func:`judge` is the exception: it runs trusted test text in a child of its own, and sees of the completion
only the plain values that come back over a socket.

What is to be done is read from descriptor 3, results are written as JSON lines to 4, and the other end of
a call, where there is one, is 5.

A forked child pays for every page of memory that it touches first, about as much as for fifty lines of
Python; so the way of a plain program through here is short, and what only some need is imported there.
"""

from __future__ import annotations

import builtins
import gc
import io
import json
import marshal
import os
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from sandbox import plain
from sandbox.errors import NotPlainError

REQUEST, RESULTS, PEER = 3, 4, 5
"""Descriptors of a child."""

TOO_LARGE = 81
"""Exit code of a child whose results are larger than they may be."""
NO_MEMORY = 80
"""Exit code of a child that had not even the memory to say that it has none."""

_MAX_WORDS, _MAX_LAST, _MAX_TEXT = 2_000, 400, 300
_ANY_LENGTH = 1 << 32
_FRAME_BYTES = 4
_write, _read, _exit = os.write, os.read, os._exit  # as they are before the completion can rebind them
_dumps, _loads = json.dumps, json.loads

PROGRAM, CALLS, SERVE, JUDGE = 0, 1, 2, 3
"""What a child is asked to do."""


def perform(kind: int) -> None:
    """Do what the request says. Never returns."""
    code = 1
    try:
        request = _read_request()
        gc.enable()
        if kind == PROGRAM:
            code = _run_programs(request)
        elif kind == CALLS:
            code = _answer_calls(request)
        elif kind == SERVE:
            code = _serve(request)
        else:
            code = judge(request)
    except BaseException as fault:
        if kind == JUDGE:  # ours, and trusted; elsewhere it is the completion's affair
            _emit({"fault": _describe(fault)["message"]})
        code = NO_MEMORY if isinstance(fault, MemoryError) else 1
    finally:
        _exit(code)


_REHEARSAL = """
def rehearse(numbers, target=2):
    seen = {}
    for place, number in enumerate(numbers):
        if target - number in seen:
            return [seen[target - number], place]
        seen[number] = place
assert rehearse([1]) is None
"""


def rehearse() -> None:
    """Compile and run a little of our own, so that the memory this takes is touched before the order comes."""
    request = marshal.loads(marshal.dumps({"source": _REHEARSAL}))  # noqa: S302 - our own
    exec(compile(request["source"], _PROGRAM_NAME, "exec", dont_inherit=True), _fresh_module("__main__"))  # noqa: S102
    _wind_down()
    _flush()


def _read_request() -> Any:
    size = os.fstat(REQUEST).st_size
    data = os.pread(REQUEST, size, 0)
    os.close(REQUEST)
    return marshal.loads(data)  # noqa: S302 - the client wrote it, in this process's own version of Python


def _emit(message: Any) -> None:
    """Write one result line."""
    line = _dumps(message, separators=(",", ":")).encode() + b"\n"
    try:
        while line:
            line = line[_write(RESULTS, line) :]
    except OSError:
        _exit(TOO_LARGE)


def _describe(error: BaseException) -> dict[str, Any]:
    """Gives an exception in plain words: its type, the built-in types it is one of, its message and line."""
    try:
        message = str(error)[:_MAX_WORDS]
    except BaseException:
        message = "(its message cannot be read)"
    kinds = [kind.__name__ for kind in type(error).__mro__ if getattr(builtins, kind.__name__, None) is kind]
    line, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename in (_PROGRAM_NAME, _TESTS_NAME):
            line = trace.tb_lineno
        trace = trace.tb_next
    if line is None and isinstance(error, SyntaxError):
        line = error.lineno
    return {"type": type(error).__name__[:200], "kinds": kinds, "message": message, "line": line}


# A program.

_PROGRAM_NAME, _TESTS_NAME = "main.py", "tests.py"


def _run_programs(request: Any) -> int:
    """Run a source once for each input, each time with fresh names, and say what each run came to.

    Nothing is said of the first run's beginning, nor of a last run that ended as a program should.
    """
    for name, content in request["files"].items():
        _write_file(name, content)
    sys.argv = [_PROGRAM_NAME, *request["args"]]
    code: Any = None
    status = 1
    last = len(request["inputs"]) - 1
    for number, text in enumerate(request["inputs"]):
        if number:
            _emit({"run": number, "out": os.lseek(1, 0, os.SEEK_CUR), "err": os.lseek(2, 0, os.SEEK_CUR)})
            _open_streams(text)
        raised: dict[str, Any] | None = None
        status = 0
        try:
            if code is None:
                code = compile(request["source"], _PROGRAM_NAME, "exec", dont_inherit=True)
            exec(code, _fresh_module("__main__"))  # noqa: S102 - this is what the jail is for
            _wind_down()
        except SystemExit as wish:
            status = _exit_code(wish)
            _wind_down()
        except BaseException as error:
            status, raised = 1, _describe(error)
            _print_traceback(error, request["source"])
        _flush()
        if raised or number < last:
            ends = {"ran": number, "out": os.lseek(1, 0, os.SEEK_CUR), "err": os.lseek(2, 0, os.SEEK_CUR)}
            _emit({**ends, "code": status, "raised": raised})
    return status


def _write_file(name: str, content: str) -> None:
    folder = os.path.dirname(name)
    if folder:
        os.makedirs(folder, exist_ok=True)
    with open(name, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
        file.write(content)


def _open_streams(text: str) -> None:
    """Make new standard streams, of which the program reads the given text; the first run has Python's own."""
    os.ftruncate(0, 0)
    os.pwrite(0, text.encode("utf-8", "surrogatepass"), 0)
    os.lseek(0, 0, os.SEEK_SET)
    _open_outputs()
    sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False), encoding="utf-8", errors="surrogateescape")


def _open_outputs() -> None:
    plain_stream = io.BufferedWriter(io.FileIO(1, "w", closefd=False))
    sys.stdout = sys.__stdout__ = io.TextIOWrapper(plain_stream, encoding="utf-8")  # type: ignore[misc]
    errors = io.BufferedWriter(io.FileIO(2, "w", closefd=False))
    sys.stderr = io.TextIOWrapper(errors, encoding="utf-8", errors="backslashreplace", write_through=True)


def _fresh_module(name: str) -> dict[str, Any]:
    module = types.ModuleType(name)
    module.__dict__["__builtins__"] = builtins
    sys.modules[name] = module
    return module.__dict__


def _wind_down() -> None:
    """Do what Python does at a program's end: wait for its threads, run its exit handlers."""
    threading = sys.modules.get("threading")
    if threading is not None and threading.active_count() > 1:
        threading._shutdown()  # what the interpreter itself calls
    registry = sys.modules.get("atexit")
    if registry is not None:
        registry._run_exitfuncs()  # as above


def _exit_code(wish: SystemExit) -> int:
    if wish.code is None:
        return 0
    if isinstance(wish.code, int):
        return int(wish.code) & 0xFF
    sys.stderr.write(f"{wish.code}\n")
    return 1


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BaseException:  # noqa: S112 - the limit on output is reached, or the program closed it
            continue


def _print_traceback(error: BaseException, source: Any) -> None:
    """Write what Python would, without our own frames."""
    try:
        import linecache
        import traceback

        linecache.cache[_PROGRAM_NAME] = (len(source), None, source.splitlines(keepends=True), _PROGRAM_NAME)
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename != _PROGRAM_NAME:
            trace = trace.tb_next
        traceback.print_exception(type(error), error, trace, limit=-20)
    except BaseException:  # the program has broken what this needs: its own standard error then stays short
        _write(2, f"{type(error).__name__}\n".encode())


# Calls of a function, all given at once.


def _answer_calls(request: Any) -> int:
    """Run the source, then call a function of it and say what each call gave."""
    try:
        names = _load(request["source"])
        function = _find(names, request["function"])
    except BaseException as error:
        _emit({"load": _describe(error)})
        _flush()
        return 1
    room = request["room"]
    for number, (arguments, keywords) in enumerate(request["calls"]):
        line = _answer(function, plain.decode(arguments), plain.decode(keywords), number)
        if len(line) > room:
            line = _dumps({"call": number, "raised": _too_large(request["room"])})
        else:
            room -= len(line)
        _emit_text(line)
    _flush()
    return 0


def _too_large(room: int) -> dict[str, Any]:
    words = f"the values given back are larger than {room:,} bytes"
    return {"type": "ValueError", "kinds": ["ValueError"], "message": words, "line": None}


def _emit_text(line: str) -> None:
    data = line.encode() + b"\n"
    try:
        while data:
            data = data[_write(RESULTS, data) :]
    except OSError:
        _exit(TOO_LARGE)


def _answer(function: Callable[..., Any], arguments: Any, keywords: Any, number: int) -> str:
    try:
        value = plain.encode(function(*arguments, **keywords))
    except BaseException as error:
        return _dumps({"call": number, "raised": _describe(error)})
    return _dumps({"call": number, "value": value})


def _load(source: Any) -> dict[str, Any]:
    names = _fresh_module("solution")
    exec(compile(source, _PROGRAM_NAME, "exec", dont_inherit=True), names)  # noqa: S102 - this is what the jail is for
    return names


def _find(names: dict[str, Any], path: str) -> Callable[..., Any]:
    """Gives the function of that name; ``Class.method`` is the method of an instance made without arguments."""
    first, *rest = path.split(".")
    if first not in names:
        raise NameError(f"the code defines no {first!r}")
    found = names[first]
    for name in rest:
        found = getattr(found() if isinstance(found, type) else found, name)
    if not callable(found):
        raise TypeError(f"{path!r} is not a function but a {type(found).__name__}")
    return found  # type: ignore[no-any-return]


# Calls that a judge makes one by one.


def _serve(request: Any) -> int:
    """Run the source, then answer a judge's calls until it is gone."""
    names: dict[str, Any] = {}
    failed: dict[str, Any] | None = None
    try:
        names = _load(request["source"])
    except BaseException as error:
        failed = _describe(error)
        _print_traceback(error, request["source"])
        _flush()
    _send({"loaded": failed is None, "raised": failed, "names": sorted(_defined(names))})
    for asked in _frames(_ANY_LENGTH):
        _send(_reply(names, asked))
        _flush()
    return 0 if failed is None else 1


def _defined(names: dict[str, Any]) -> Iterator[str]:
    return (name for name in list(names) if type(name) is str and not name.startswith("__"))


def _reply(names: dict[str, Any], asked: Any) -> dict[str, Any]:
    reply: dict[str, Any] = {"number": asked["number"]}
    try:
        function = _find(names, asked["function"])
        arguments, keywords = plain.decode(asked["arguments"]), plain.decode(asked["keywords"])
        reply["value"] = plain.encode(function(*arguments, **keywords))
        for name, held in (("arguments", arguments), ("keywords", keywords)):
            after = plain.encode(held)
            if _dumps(after) != _dumps(asked[name]):  # as text, for True is not 1
                reply[name] = after
    except BaseException as error:
        return {"number": asked["number"], "raised": _describe(error)}
    return reply


def _send(message: Any) -> None:
    body = _dumps(message, separators=(",", ":")).encode()
    data = len(body).to_bytes(_FRAME_BYTES, "little") + body
    while data:
        data = data[_write(PEER, data) :]


def _length(buffer: bytes) -> int:
    return int.from_bytes(buffer[:_FRAME_BYTES], "little")


def _frames(limit: int) -> Iterator[Any]:
    """Gives the other side's messages until it is gone, or says more than it may."""
    buffer = b""
    while True:
        while len(buffer) < _FRAME_BYTES or len(buffer) < _FRAME_BYTES + int.from_bytes(
            buffer[:_FRAME_BYTES], "little"
        ):
            try:
                piece = _read(PEER, 1 << 16)
            except OSError:
                return
            buffer += piece
            if not piece or _length(buffer) > limit:
                return
        end = _FRAME_BYTES + _length(buffer)
        message, buffer = buffer[_FRAME_BYTES:end], buffer[end:]
        yield _loads(message)


# The judge.


class _Peer:
    """The completion, as the judge sees it: calls go out, plain values come back."""

    def __init__(self, room: int) -> None:
        self._frames = _frames(room)
        self._number = 0
        self.last = ""
        self.calls = 0

    def hear(self) -> Any:
        """Gives the next message."""
        try:
            message = next(self._frames, None)
        except (ValueError, RecursionError, MemoryError):
            message = None
        if not isinstance(message, dict):
            self.lost()
        return message

    def lost(self) -> NoReturn:
        """End the judge at once: the completion is gone, and tests that catch everything must not go on without it."""
        _emit({"gone": self.last[:_MAX_LAST]})
        _exit(0)

    def call(self, function: str, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Call one of its functions; changes to arguments are made to the caller's objects."""
        self.calls += 1
        self._number += 1
        shown = ", ".join([*map(_short, arguments), *(f"{name}={_short(value)}" for name, value in keywords.items())])
        self.last = f"{function}({shown})"
        try:
            asked = {"arguments": plain.encode(list(arguments)), "keywords": plain.encode(keywords)}
        except NotPlainError as odd:
            if not str(odd).startswith("nested"):  # that alone can be of the completion's making
                _emit({"tests_fault": _describe(TypeError(f"{self.last} cannot be called in a jail: {odd}"))})
                _exit(0)
            raise TypeError(f"{self.last} cannot be called in a jail: {odd}") from None
        try:
            _send({"number": self._number, "function": function, **asked})
        except OSError:
            self.lost()
        reply = self.hear()
        if reply.get("number") != self._number:
            self.lost()
        if "raised" in reply:
            raise self._error(reply["raised"])
        try:
            value = plain.decode(reply["value"])
            changed = plain.decode(reply["arguments"]) if "arguments" in reply else []
            named = plain.decode(reply["keywords"]) if "keywords" in reply else {}
        except (ValueError, KeyError, RecursionError):
            self.lost()
        _become(arguments, tuple(changed) if type(changed) is list else ())
        _become(tuple(keywords.values()), tuple(map(named.get, keywords)) if type(named) is dict else ())
        self.last += f" gave {_short(value)}"
        return value

    def _error(self, raised: Any) -> Exception:
        """Gives the completion's exception as the nearest built-in one."""
        kinds = raised.get("kinds") if isinstance(raised, dict) else None
        name, message = (
            str(raised.get("type")) if kinds is not None else "",
            str(raised.get("message")) if kinds else "",
        )
        self.last += f" raised {name}: {_short(message)}"
        for kind in kinds if isinstance(kinds, list) else ():
            if kind in ("StopIteration", "StopAsyncIteration"):  # it would end the loop of a test, as if all were seen
                break
            found = getattr(builtins, kind, None) if isinstance(kind, str) else None
            if isinstance(found, type) and issubclass(found, Exception):
                try:
                    return found(message)
                except TypeError:
                    continue
        return RuntimeError(f"{name}: {message}")


def _short(value: Any) -> str:
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an integer of very many digits
        text = f"a very long {type(value).__name__}"
    return text if len(text) <= 80 else text[:77] + "..."


def _become(ours: Any, theirs: Any) -> None:
    """Give a changed argument its new content."""
    if type(ours) is not type(theirs):
        return
    if isinstance(ours, tuple):
        for mine, other in zip(ours, theirs, strict=False):
            _become(mine, other)
    elif isinstance(ours, list | bytearray):
        ours[:] = theirs
    elif isinstance(ours, dict | set):
        ours.clear()
        ours.update(theirs)


class _Check:
    """One ``assert`` of the tests: ``with`` it, the assertion is run and what came of it noted.

    Attributes:
        again: Whether it may be run more than once, so that what it came to is not certain before the tests' end.
    """

    def __init__(self, number: int, text: str, again: bool, peer: _Peer) -> None:
        self.number, self.text, self.again = number, text, again
        self._peer = peer
        self.passed: bool | None = None

    def __enter__(self) -> None:
        self._peer.last = ""

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        if error is not None and not isinstance(error, Exception):
            return False
        if error is None:
            if self.passed is None:
                self.passed = True
                _emit({"check": self.number, "passed": True})
            return True
        if self.passed is not False:
            self.passed = False
            said = str(error)[:200] if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"[:200]
            _emit({"check": self.number, "passed": False, "why": said, "last": self._peer.last[:_MAX_LAST]})
        return True


def judge(request: Any) -> int:
    """Run test text whose ``candidate`` is the completion in the other process; each assert is a check.

    What it reports, a line each: ``tests_fault`` where the tests cannot be run, whatever the completion;
    ``plan`` (the text of each check, and whether it may be run again), ``check`` for each time that one is
    first passed and first failed, and last how it ended: ``load`` or ``missing`` (no function to call),
    ``gone`` (the completion's process), ``stopped`` (the tests, by an exception), or ``done``.
    """
    for name in ("random", "numpy.random"):  # the completion has the zygote's state and must not foresee what is drawn
        if name in sys.modules:
            sys.modules[name].seed()
    peer = _Peer(request["room"])
    names = _fresh_module("tests")
    entry = request["entry_point"]
    try:
        exec(compile(request["setup"], "setup.py", "exec", dont_inherit=True), names)  # noqa: S102 - this is what the jail is for
        tree: Any = compile(request["tests"], _TESTS_NAME, "exec", 0x400, dont_inherit=True)  # to a syntax tree
        checks = _instrument(tree, request["tests"], peer)
        code = compile(tree, _TESTS_NAME, "exec", dont_inherit=True)
    except BaseException as error:
        _emit({"tests_fault": _describe(error)})
        return 0
    _emit({"plan": [[check.text, check.again] for check in checks]})
    hello = peer.hear()
    if hello.get("loaded") is not True:
        _emit({"load": hello.get("raised")})
        return 0
    found = hello.get("names")
    defined = {name for name in found if isinstance(name, str)} if isinstance(found, list) else set()
    if entry is None:
        names.update((name, _proxy(peer, name)) for name in _unbound(tree, names) if name in defined)
    elif entry.split(".")[0] in defined:
        names["candidate"] = names[entry.split(".")[-1]] = _proxy(peer, entry)
    else:
        _emit({"missing": entry})
        return 0
    names["__check__"] = checks
    try:
        exec(code, names)  # noqa: S102 - this is what the jail is for
        check = names.get("check")
        if isinstance(check, types.FunctionType) and entry is not None and check.__code__ is not _PROXY:
            check(names["candidate"])
    except BaseException as error:
        _emit({"stopped": _describe(error), "last": peer.last[:_MAX_LAST]})
    else:
        _emit({"done": True, "calls": peer.calls})
    return 0


def _proxy(peer: _Peer, name: str) -> Callable[..., Any]:
    def candidate(*arguments: Any, **keywords: Any) -> Any:
        return peer.call(name, arguments, keywords)

    candidate.__name__ = candidate.__qualname__ = name.split(".")[-1]
    return candidate


_PROXY = _proxy(_Peer(0), "candidate").__code__


def _instrument(tree: Any, source: str, peer: _Peer) -> list[_Check]:
    """Wrap every assert of a syntax tree that can fail into its check.

    Asserts inside ``try`` and ``with`` are checked together with it, which may handle what they raise.
    """
    import _ast

    lines = source.splitlines()
    checks: list[_Check] = []

    def wrapped(statement: Any, again: bool) -> Any:
        number = len(checks)
        text = " ".join(line.strip() for line in lines[statement.lineno - 1 : statement.end_lineno])
        checks.append(_Check(number, text[:_MAX_TEXT], again, peer))
        at = {name: getattr(statement, name) for name in ("lineno", "col_offset", "end_lineno", "end_col_offset")}
        load = _ast.Load()
        list_of_checks = _ast.Name("__check__", load, **at)
        this = _ast.Subscript(list_of_checks, _ast.Constant(number, **at), load, **at)
        return _ast.With([_ast.withitem(this)], [statement], None, **at)

    def can_fail(node: Any) -> bool:
        if isinstance(node, _ast.Assert):
            return not isinstance(node.test, _ast.Constant) or not node.test.value
        return any(can_fail(child) for child in _children(node))

    def visit(node: Any, again: bool) -> None:
        loops = _ast.For | _ast.While | _ast.AsyncFor | _ast.FunctionDef | _ast.AsyncFunctionDef
        if isinstance(node, loops) and not (node in tree.body and getattr(node, "name", "") == "check"):
            again = True
        for field in node._fields:
            body: Any = getattr(node, field, None)
            for place, item in enumerate(body if isinstance(body, list) else ()):
                if isinstance(item, _ast.Assert):
                    if not isinstance(item.test, _ast.Constant):
                        body[place] = wrapped(item, again)
                elif isinstance(item, _ast.With | _ast.TryStar) or (isinstance(item, _ast.Try) and item.handlers):
                    if can_fail(item):
                        body[place] = wrapped(item, again)
                elif isinstance(item, _ast.AST):
                    visit(item, again)

    visit(tree, False)
    return checks


def _children(node: Any) -> Iterator[Any]:
    import _ast

    for field in node._fields:
        value = getattr(node, field, None)
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, _ast.AST):
                yield item


def _unbound(tree: Any, names: dict[str, Any]) -> list[str]:
    """Gives the names that the tests use and nobody binds: those must be the completion's."""
    import _ast

    used: dict[str, None] = {}
    bound = set(names) | set(dir(builtins))

    def visit(node: Any) -> None:
        if isinstance(node, _ast.Name):
            if isinstance(node.ctx, _ast.Load):
                used[node.id] = None
            else:
                bound.add(node.id)
        elif isinstance(node, _ast.FunctionDef | _ast.ClassDef | _ast.AsyncFunctionDef):
            bound.add(node.name)
        elif isinstance(node, _ast.arg):
            bound.add(node.arg)
        elif isinstance(node, _ast.alias):
            bound.add((node.asname or node.name).split(".")[0])
        elif isinstance(node, _ast.ExceptHandler) and node.name:
            bound.add(node.name)
        for child in _children(node):
            visit(child)

    visit(tree)
    return [name for name in used if name not in bound]
