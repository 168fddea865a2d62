"""What a forked child does with untrusted code: run it as a program, or call functions of it.

The code may do as it likes with this process, so nothing here is a boundary, and what it reports is values and outputs,
never verdicts. The request is read from descriptor 3, results are written as JSON lines to 4, and 5 is the socket to a
tester (``asserts``, in another process), where there is one.

A forked child pays for every page of memory that it touches first, about as much as for fifty lines of Python. So a
plain program takes a short way through here, and what only some need is imported there.
"""

from __future__ import annotations

import builtins
import errno
import gc
import io
import json
import marshal
import os
import sys
import time
import types
from collections.abc import Callable, Iterator
from typing import Any

from sandbox import plain

REQUEST, RESULTS, PEER = 3, 4, 5  # descriptors of a child

TOO_LARGE = 81  # exit code of a child whose results are larger than they may be
CUT_OFF = 85  # exit code of a child whose code closed the files by which it answers
NO_MEMORY = 80  # exit code of a child that had too little memory even to report that
UNTOLD = 84  # exit code of a tester whose completion was killed before it read its order

_MAX_WORDS = 2_000
_REFUSED = " (the jail has no network, and lets a process neither start others nor signal them)"
ANY_LENGTH = 1 << 32
_FRAME_BYTES = 4
_YOUNG_S = 0.05  # about twenty times what a fork takes: runs that take longer gain little by sharing a process
_write, _read, _exit = os.write, os.read, os._exit  # as they are before the completion can rebind them
_now = time.monotonic
_dumps, _loads = json.dumps, json.loads

PROGRAM, CALLS, SERVE = 0, 1, 2  # what a child is asked to do


def perform(kind: int, serve: Callable[[dict[str, Any]], int]) -> None:
    """Run the request's programs or calls, or serve another process (``serve``), and end this one. Never returns."""
    code = 1
    try:
        request = read_request()
        gc.enable()
        sys.set_int_max_str_digits(0)  # its time is limited, so a long number may be written out
        if kind == PROGRAM:
            code = run_programs(request)
        elif kind == CALLS:
            code = _answer_calls(request)
        else:
            code = serve(request)
    except BaseException as fault:  # the completion's affair
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
    """Compile and run a small program, so that the memory this takes is touched before the order comes."""
    request = {"source": _REHEARSAL, "files": {}, "args": [], "inputs": [""]}
    run_programs(marshal.loads(marshal.dumps(request)))  # noqa: S302 - our own
    sys.modules["builtins"] = builtins


def read_request() -> Any:
    data = os.pread(REQUEST, os.fstat(REQUEST).st_size, 0)
    os.close(REQUEST)
    return marshal.loads(data)  # noqa: S302 - the client wrote it, in this process's own version of Python


def emit(message: dict[str, Any]) -> None:
    """Write one result line."""
    _emit_text(_dumps(message, separators=(",", ":")))


def _emit_text(line: str) -> None:
    try:
        _write_all(RESULTS, line.encode() + b"\n")
    except OSError as error:
        _exit(CUT_OFF if error.errno == errno.EBADF else TOO_LARGE)


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[_write(descriptor, data) :]


def source_lines(text: str) -> list[str]:
    """Return the lines of a text of Python, counted as Python counts them: ``splitlines`` ends lines elsewhere too."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def describe(error: BaseException) -> dict[str, Any]:
    """Return an exception in plain words: its type, the built-in types it is one of, its message and line."""
    try:
        message = str(error)[:_MAX_WORDS]
    except BaseException:
        message = "(its message cannot be read)"
    if isinstance(error, PermissionError) and error.errno == errno.EPERM:
        message += _REFUSED
    if isinstance(error, ModuleNotFoundError) and error.name == "numpy":
        message += " (the jail's profile 'numpy' has it)"
    kinds = [kind.__name__ for kind in type(error).__mro__ if getattr(builtins, kind.__name__, None) is kind]
    line, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename in (_PROGRAM_NAME, TESTS_NAME):
            line = trace.tb_lineno
        trace = trace.tb_next
    if line is None and isinstance(error, SyntaxError):
        line = error.lineno
    return {"type": type(error).__name__[:200], "kinds": kinds, "message": message, "line": line}


# A program.

_PROGRAM_NAME, TESTS_NAME = "main.py", "tests.py"  # what code and tests are called in tracebacks


def _write_file(name: str, content: str | bytes, folders: set[str]) -> None:
    """Write a file by the calls of the system alone, which takes half of the time that ``open`` takes."""
    folder = os.path.dirname(name)
    if folder not in folders:
        os.makedirs(folder, exist_ok=True)
        folders.add(folder)
    data = content if isinstance(content, bytes) else content.encode("utf-8", "surrogateescape")
    file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
    try:
        _write_all(file, data)
    finally:
        os.close(file)


def run_programs(request: dict[str, Any]) -> int:
    """Run a source once for each input, each time with fresh names, and report how each run ended.

    The beginning of the first run and a last run without an error are not reported. A run that changes the standard
    streams, or ends late, is the last of its process; so the end of a process tells how a slow run ended.
    """
    folders = {""}
    for name, content in request["files"].items():
        try:
            _write_file(name, content, folders)
        except OSError as error:
            hint = " (file_bytes, of which each file takes whole pages)" if error.errno == errno.ENOSPC else ""
            message = f"file {name[:200]!r} cannot be written: {error.strerror}{hint}"
            unwritten = describe(error) | {"message": message}
            emit({"ran": 0, "out": ANY_LENGTH, "err": ANY_LENGTH, "code": 1, "raised": unwritten})
            return 1
    sys.argv = [_PROGRAM_NAME, *request["args"]]
    code: Any = None
    status = 1
    last = len(request["inputs"]) - 1
    streams = _streams() if last else None
    began = _now()
    for number, text in enumerate(request["inputs"]):
        if number:
            emit({"run": number, "out": _position(1), "err": _position(2)})
            _open_streams(text)
        raised: dict[str, Any] | None = None
        status = 0
        names = code_module("__main__").__dict__
        try:
            if code is None:
                code = compile(request["source"], _PROGRAM_NAME, "exec", dont_inherit=True)
            exec(code, names)  # noqa: S102 - this is what the jail is for
            _wind_down()
        except SystemExit as error:
            status = _exit_code(error)
            _wind_down()
        except BaseException as error:
            status, raised = 1, describe(error)
            print_traceback(error, request["source"])
        _tear_down(names)
        more = number < last and _now() - began < _YOUNG_S
        more = more and _streams() == streams  # a program may have closed one, as open(0) does
        if raised or more:
            ends = {"out": _position(1), "err": _position(2)} if more else {"out": ANY_LENGTH, "err": ANY_LENGTH}
            emit({"ran": number, **ends, "code": status, "raised": raised})
        if not more:
            break
    return status


def _streams() -> list[tuple[int, int]]:
    """Return the device and inode of each standard stream that is open."""
    files = []
    for number in (0, 1, 2):
        try:
            status = os.fstat(number)
        except OSError:
            continue
        files.append((status.st_dev, status.st_ino))
    return files


def _position(stream: int) -> int:
    return os.lseek(stream, 0, os.SEEK_CUR)


def _open_streams(text: str) -> None:
    """Make new standard streams, with a text as standard input; the first run has Python's own."""
    os.ftruncate(0, 0)
    os.pwrite(0, text.encode("utf-8", "surrogatepass"), 0)
    os.lseek(0, 0, os.SEEK_SET)
    output, errors = (io.BufferedWriter(io.FileIO(number, "w", closefd=False)) for number in (1, 2))
    sys.stdout = sys.__stdout__ = io.TextIOWrapper(output, encoding="utf-8")  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = io.TextIOWrapper(  # type: ignore[misc]
        errors, encoding="utf-8", errors="backslashreplace", write_through=True
    )
    source = io.FileIO(0, closefd=False)
    sys.stdin = sys.__stdin__ = io.TextIOWrapper(source, encoding="utf-8", errors="surrogateescape")  # type: ignore[misc]
    for stream, mode in ((sys.stdin, "r"), (sys.stdout, "w"), (sys.stderr, "w")):
        stream.mode = mode  # type: ignore[misc]  # as Python's own have it


def fresh_module(name: str) -> dict[str, Any]:
    module = types.ModuleType(name)
    module.__dict__["__builtins__"] = builtins
    sys.modules[name] = module
    return module.__dict__


def code_module(name: str) -> types.ModuleType:
    """Return a new module for untrusted code, with builtins of its own: what it replaces in them reaches only itself.

    So this process can still say what the code did, and another run of it finds the builtins as they are.
    """
    names = fresh_module(name)
    own = types.ModuleType("builtins")
    own.__dict__.update(builtins.__dict__)
    names["__builtins__"] = sys.modules["builtins"] = own
    return sys.modules[name]


def _wind_down() -> None:
    """Do what Python does at a program's end: wait for its threads, run its exit handlers."""
    threading = sys.modules.get("threading")
    if threading is not None and threading.active_count() > 1:
        threading._shutdown()  # what the interpreter itself calls
    registry = sys.modules.get("atexit")
    if registry is not None:
        registry._run_exitfuncs()  # as above


def _tear_down(names: dict[str, Any]) -> None:
    """Let go of a program's names, as Python does at its end: this writes out the files that it left open."""
    flush()
    for name in reversed(list(names)):  # what was made last may need what was made before it
        if name != "__builtins__":
            names[name] = None
    flush()


def _exit_code(error: SystemExit) -> int:
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return int(error.code) & 0xFF
    sys.stderr.write(f"{error.code}\n")
    return 1


def flush() -> None:
    for stream in (sys.stdout, sys.__stdout__, sys.stderr):
        try:
            stream.flush()  # type: ignore[union-attr]  # None is what a program has closed
        except BaseException:  # noqa: S112 - the limit on output is reached, or the program closed it
            continue


def print_traceback(error: BaseException, source: str) -> None:
    """Write a traceback as Python would, without our own frames."""
    try:
        import linecache
        import traceback

        linecache.cache[_PROGRAM_NAME] = (
            len(source),
            None,
            [f"{line}\n" for line in source_lines(source)],
            _PROGRAM_NAME,
        )
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename != _PROGRAM_NAME:
            trace = trace.tb_next
        traceback.print_exception(type(error), error, trace, limit=-20)
    except BaseException:  # the program has broken what this needs: its own standard error then stays short
        try:
            _write(2, f"{type(error).__name__}\n".encode())
        except OSError:  # it closed that, too
            return


# Calls of a function, all given at once.


def _answer_calls(request: dict[str, Any]) -> int:
    """Run the source, then call a function of it and report each call's value or exception."""
    try:
        names = load(request["source"])
        find(names, request["function"])
    except BaseException as error:
        emit({"load": describe(error)})
        flush()
        return 1
    room = request["room"]
    for number, (arguments, keywords) in enumerate(request["calls"]):
        line = _answer(names, request["function"], plain.decode(arguments), plain.decode(keywords), number)
        if len(line) > room:
            message = f"the values given back are larger than {request['room']:,} bytes"
            report = {"type": "ValueError", "kinds": ["ValueError"], "message": message, "line": None}
            line = _dumps({"call": number, "raised": report})
        else:
            room -= len(line)
        _emit_text(line)
    flush()
    return 0


def _answer(names: dict[str, Any], path: str, arguments: list[Any], keywords: dict[str, Any], number: int) -> str:
    try:
        value = plain.encode(find(names, path)(*arguments, **keywords))
    except BaseException as error:
        return _dumps({"call": number, "raised": describe(error)})
    return _dumps({"call": number, "value": value})


def load(source: str) -> dict[str, Any]:
    names = code_module("solution").__dict__
    exec(compile(source, _PROGRAM_NAME, "exec", dont_inherit=True), names)  # noqa: S102 - this is what the jail is for
    return names


def find(names: dict[str, Any], path: str) -> Callable[..., Any]:
    """Return the function of a name, or the method ``Class.method`` of a new instance; raise if it cannot be called.

    A name that only a class ``Solution`` has is its method.
    """
    first, *rest = path.split(".")
    if first not in names and not rest and hasattr(names.get("Solution"), first):
        first, rest = "Solution", [first]
    if first not in names:
        raise NameError(f"the code defines no {first!r}")
    value = names[first]
    for name in rest:
        value = getattr(value() if isinstance(value, type) else value, name)
    if not callable(value):
        raise TypeError(f"{path!r} is not a function but a {type(value).__name__}")
    return value  # type: ignore[no-any-return]


# Messages between the code under test and its tester.


def send(message: dict[str, Any]) -> None:
    body = _dumps(message, separators=(",", ":")).encode()
    _write_all(PEER, len(body).to_bytes(_FRAME_BYTES, "little") + body)


def _length(buffer: bytearray) -> int:
    return int.from_bytes(buffer[:_FRAME_BYTES], "little")


def frames(limit: int) -> Iterator[Any]:
    """Yield the other side's messages until it is gone or sends too much; raise ``OSError`` if it left some unread."""
    buffer = bytearray()
    while True:
        while len(buffer) < _FRAME_BYTES or len(buffer) < _FRAME_BYTES + _length(buffer):
            piece = _read(PEER, 1 << 16)
            buffer += piece
            if not piece or _length(buffer) > limit:
                return
        end = _FRAME_BYTES + _length(buffer)
        message = bytes(buffer[_FRAME_BYTES:end])
        del buffer[:end]
        yield _loads(message)
