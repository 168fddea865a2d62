"""The code under test, as it serves its tester: its functions by name, and objects of its own behind numbers.

Plain values and those of :mod:`sandbox.inside.values` leave the process; an object of a class of the code stays here,
and the tester acts on it by its number. Objects of classes that both sides have travel by their state. A function of
the tests that is an argument stays with the tester, and is called there. Nothing here is a boundary, for the code may
do as it likes with this process: what it sends is believed only as values.
"""

from __future__ import annotations

import builtins
import contextlib
import errno
import io
import operator
import os
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

from sandbox import plain
from sandbox.inside import values
from sandbox.inside.remote import KNOWN, METHODS
from sandbox.inside.runner import ANY_LENGTH, CUT_OFF, describe, find, flush, frames, load, print_traceback, send
from sandbox.inside.shared import SharedObjects, set_state

_OWN_COPIES = (list, dict, set, bytearray)
_FIXED = (int, float, str, bytes, complex, tuple, frozenset)


def serve(request: dict[str, Any]) -> int:
    """Run the source, then answer a tester's calls until it is gone."""
    names: dict[str, Any] = {}
    load_error: dict[str, Any] | None = None
    try:
        names = load(request["source"])
    except BaseException as error:
        load_error = describe(error)
        print_traceback(error, request["source"])
    flush()
    try:
        Service(names, request["room"]).run(load_error)
    except OSError as error:  # the tester is gone
        if error.errno == errno.EBADF:
            return CUT_OFF
    return 0 if load_error is None else 1


class Callback:
    """A function of the tests, as the code under test calls it."""

    def __init__(self, number: int, service: Service) -> None:
        self.number = number
        self._service = service

    def __call__(self, *arguments: object, **keywords: object) -> Any:
        return self._service.call_back(self.number, arguments, keywords)


class Service:
    """The objects that a tester knows, and the answers to what it asks."""

    def __init__(self, names: dict[str, Any], room: int) -> None:
        self._names = names
        own = names.get("__builtins__")  # the code may have put anything there
        self._builtins = own if type(own) is types.ModuleType else builtins
        self._room = room
        self._frames: Iterator[Any] = frames(ANY_LENGTH)
        self._objects: list[Any] = []
        self._numbers: dict[int, int] = {}
        self._stand_ins: dict[str, type] = {}
        self._shared_names: frozenset[str] = frozenset()
        self._received: list[Any] = []
        self._sent = SharedObjects()

    def run(self, load_error: dict[str, Any] | None) -> None:
        public = {name: value for name, value in list(self._names.items()) if type(name) is str and name[:2] != "__"}
        classes = [name for name, value in public.items() if isinstance(value, type)]
        others = [name for name, value in public.items() if not callable(value)]
        hello = {"loaded": load_error is None, "raised": load_error, "names": [*public]}
        errors = {name: _lineage(public[name]) for name in classes if issubclass(public[name], BaseException)}
        send({**hello, "classes": classes, "values": others, "errors": errors})
        readers = {
            "std": values.read,
            "reference": values.read_reference,
            "object": lambda number: self._objects[number],
            "callback": lambda number: Callback(number, self),
            "iterator": self._read_iterator,
            "shared": lambda number: self._received[number],
            "member": lambda content: self._names[content[0]][content[1]],
        }
        plain.extend(self._write, readers)
        for call in self._frames:
            send(self._reply(call))

    def call_back(self, number: int, arguments: tuple[object, ...], keywords: dict[str, object]) -> Any:
        """Call a function of the tests, and meanwhile answer what it asks of the code under test."""
        self._sent = SharedObjects()
        call = {"arguments": plain.encode(list(arguments)), "keywords": plain.encode(keywords)}
        send({"callback": number, **call, "shared": self._sent.rows(self._received)})
        for message in self._frames:
            if "callback" not in message:
                send(self._reply(message))
            elif "raised" in message:
                raise _exception(message["raised"])
            elif message.get("end"):
                raise StopIteration
            else:
                self._received = self._read_shared(message.get("shared", []))
                return plain.decode(message["value"])
        os._exit(1)

    def _read_iterator(self, number: int) -> Iterator[Any]:
        while True:
            try:
                item = self.call_back(number, (), {})
            except StopIteration:
                return
            yield item

    # Answers.

    def _reply(self, call: dict[str, Any]) -> dict[str, Any]:
        outer = self._received
        reply: dict[str, Any] = {"number": call["number"]}
        restore = self._lend(call) if "stdin" in call or "builtins" in call else None
        start = _position() if "reads_output" in call else None
        try:
            if "shared_names" in call:
                self._shared_names = frozenset(call["shared_names"])
            if "arrays" in call:
                values.send_arrays()
            self._received = self._read_shared(call["shared"]) if "shared" in call else []
            arguments, keywords = plain.decode(call["arguments"]), plain.decode(call["keywords"])
            reply.update(self._perform(call, arguments, keywords))
        except BaseException as error:
            reply = {"number": call["number"], "raised": self._describe(error)}
        if "stdin" in call:
            reply["read"] = sys.stdin.tell() if isinstance(sys.stdin, io.StringIO) else 0
        if restore is not None:
            restore()
        self._received = outer
        flush()
        if start is not None and (size := (_position() or 0) - start) > 0:
            reply["out"] = os.pread(1, min(size, self._room // 8), start).decode("utf-8", "replace")
        return reply

    def _lend(self, call: dict[str, Any]) -> Callable[[], object]:
        """Give the code what the tests put in the place of input and functions of Python's; return what ends that."""
        before: list[tuple[Any, str, Any]] = [(sys, "stdin", sys.stdin)] if "stdin" in call else []
        if before:
            sys.stdin = io.StringIO(call["stdin"])
        for name, number in call.get("builtins", {}).items():
            before.append((self._builtins, name, getattr(self._builtins, name, getattr(builtins, name))))
            setattr(self._builtins, name, Callback(number, self))

        def restore() -> None:
            for target, name, value in before:
                setattr(target, name, value)

        return restore

    def _perform(self, call: dict[str, Any], arguments: list[Any], keywords: dict[str, Any]) -> dict[str, Any]:
        if "function" in call:
            value = find(self._names, call["function"])(*arguments, **keywords)
        elif call["act"] == "next":
            try:
                value = next(arguments[0])
            except StopIteration:
                return {"end": True}
        else:
            value = ACTS[call["act"]](self, *arguments, **keywords)
        self._sent = SharedObjects()
        is_new = call.get("act") == "call" and isinstance(arguments[0], type) and type(value) is arguments[0]
        reply: dict[str, Any] = {"value": self._handle(value) if is_new and _is_own(value) else plain.encode(value)}
        in_place = (("arguments", arguments), ("keywords", keywords)) if reply["value"] is None else ()
        for name, content in in_place:
            after = plain.encode(content)
            if self._sent.values or str(after) != str(call[name]):  # as text, because True is not 1
                reply[name] = after
        if self._sent.values:
            reply["shared"] = self._sent.rows(self._received)
        return reply

    def _describe(self, error: BaseException) -> dict[str, Any]:
        report = {**describe(error), **_lineage(type(error)), "module": type(error).__module__}
        with contextlib.suppress(Exception):
            report["args"] = plain.encode(list(error.args))
            if report["own"]:
                report["object"] = self._number(error)
        return report

    # Values on their way out.

    def _write(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind is Callback:
            return {"callback": value.number}
        if plain.is_known_type(value) or kind.__module__ == "numpy":
            return values.write(value, depth)
        if kind.__name__ in self._shared_names and not isinstance(value, type):
            return self._sent.write(value)
        if isinstance(value, tuple) and type(getattr(kind, "_fields", None)) is tuple:
            return {"named": [kind.__name__, list(kind._fields), [plain.encode(item, depth + 1) for item in value]]}
        if isinstance(value, _FIXED) and not hasattr(kind, "tolist"):
            return {"based": [plain.encode_base(value, depth), self._handle(value)]}
        if id(value) in self._numbers:
            return self._handle(value)
        if (tree := values.write(value, depth)) is not None or isinstance(value, _OWN_COPIES):
            return tree
        return self._handle(value)

    def _number(self, value: Any) -> int:
        if id(value) not in self._numbers:
            self._numbers[id(value)] = len(self._objects)
            self._objects.append(value)
        return self._numbers[id(value)]

    def _handle(self, value: Any) -> dict[str, Any]:
        """Return the tree of an object that stays here: its number, its class, what it can do, and what is beneath."""
        kind = type(value)
        if isinstance(value, type):
            return {"object": [self._number(value), value.__name__, ["__call__"], "class"]}
        has = [name for name in METHODS if getattr(kind, name, None) not in (None, getattr(object, name, None))]
        beneath = "plain" if isinstance(value, _OWN_COPIES + _FIXED) else _KNOWN.get(kind, "")
        return {"object": [self._number(value), kind.__name__, has, beneath]}

    def _read_shared(self, rows: list[Any]) -> list[Any]:
        """Return the objects of classes that both sides have, as instances of the code's own classes."""
        self._received = [object.__new__(self._class(name)) for name, _, _ in rows]
        for value, (_, state, _) in zip(self._received, rows, strict=True):
            set_state(value, plain.decode(state))
        return self._received

    def _class(self, name: str) -> type:
        if isinstance(self._names.get(name), type):
            return self._names[name]  # type: ignore[no-any-return]
        return self._stand_ins.setdefault(name, type(name, (), {}))


def _position() -> int | None:
    """Return how much the code has written to its standard output; ``None`` where it has closed that."""
    try:
        return os.lseek(1, 0, os.SEEK_CUR)
    except OSError:
        return None


def _is_own(value: Any) -> bool:
    package = values.package_of(type(value))
    return package != "numpy" and package not in sys.stdlib_module_names


def _lineage(kind: type) -> dict[str, list[str]]:
    """Return the names of an exception's class and of its bases: those of the code's own, and Python's own."""
    names = [(base.__name__, getattr(builtins, base.__name__, None) is base) for base in kind.__mro__[:40]]
    return {
        "own": [name for name, is_built_in in names if not is_built_in],
        "kinds": [name for name, is_built_in in names if is_built_in],
    }


def _exception(report: dict[str, Any]) -> BaseException:
    """Return an exception of the tests as the nearest of Python's own."""
    for name in report["kinds"]:
        kind = getattr(builtins, name, None)
        if isinstance(kind, type) and issubclass(kind, Exception):
            with contextlib.suppress(TypeError):
                return kind(report["message"])
    return RuntimeError(report["message"])


def _await(service: Service, value: Any) -> Any:
    import asyncio

    async def main() -> Any:
        return await value

    return asyncio.run(main())


def _exit(service: Service, value: Any, *reason: Any) -> bool:
    """Leave a context, with an exception of a class and a message if there was one."""
    error = (reason[0], reason[0](*reason[1:]), None) if reason else (None, None, None)
    return bool(type(value).__exit__(value, *error))


def _plain(service: Service, value: Any) -> Any:
    return plain.decode(plain.encode_base(value))


def _act(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda service, *arguments, **keywords: function(*arguments, **keywords)


ACTS: dict[str, Callable[..., Any]] = {
    "name": lambda service, name: service._names[name],
    "await": _await,
    "plain": _plain,
    "call": lambda service, function, *arguments, **keywords: function(*arguments, **keywords),
    "enter": lambda service, value: type(value).__enter__(value),
    "exit": _exit,
    "get": _act(getattr), "set": _act(setattr), "delete": _act(delattr), "iter": _act(iter), "reversed": _act(reversed),
    "bool": _act(bool), "str": _act(str), "repr": _act(repr), "hash": _act(hash), "format": _act(format),
    "len": _act(len), "int": _act(int), "float": _act(float), "index": _act(operator.index), "round": _act(round),
    "isinstance": _act(isinstance), "issubclass": _act(issubclass),
    **{name: _act(getattr(operator, name)) for name in (
        "contains", "getitem", "setitem", "delitem", "eq", "ne", "lt", "le", "gt", "ge", "add", "sub", "mul", "truediv",
        "floordiv", "mod", "pow", "matmul", "and_", "or_", "xor", "lshift", "rshift", "neg", "pos", "abs", "invert",
    )},
}  # fmt: skip
"""What a tester does with objects, by name."""
_KNOWN = {kind: name for name, kind in KNOWN.items()} | {types.CoroutineType: "coroutine"}
"""Types of Python's own that are told to the tester, which has them too."""
