"""The code under test, as the tester calls it: calls go out over a socket, values and numbers of objects come back.

What comes back is believed only as values. The code's exceptions become the nearest of Python's own, or a class of the
same name where they are of the code's own.
"""

from __future__ import annotations

import builtins
import io
import itertools
import os
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from sandbox import plain
from sandbox.errors import NotPlainError
from sandbox.inside import values
from sandbox.inside.remote import KNOWN, Remote, based_kind, class_kind, remote_kind
from sandbox.inside.runner import UNTOLD, describe, emit, frames, send
from sandbox.inside.shared import SharedObjects, set_state

MAX_LAST = 400
_FUNCTIONS = (types.FunctionType, types.MethodType)
_ITERATORS = (types.GeneratorType, map, filter, zip, enumerate, reversed, itertools.chain)
_JUDGES = ("unittest", "doctest", "bdb", "test")  # whose exceptions would skip a test, or end it well
_UNREADABLE = (ValueError, KeyError, RecursionError, TypeError, IndexError, AttributeError)
"""What reading a message raises that the code made up."""
_INPUT, _PRINT = builtins.input, builtins.print


class Peer:
    """The completion, as the tester sees it."""

    def __init__(self, room: int) -> None:
        self._frames = frames(room)
        self._number = 0
        self._stdin = sys.stdin
        self._remotes: dict[int, Any] = {}
        self._coroutines: dict[int, int] = {}
        self._kinds: dict[Any, Any] = {}
        self._errors: dict[tuple[str, ...], type[Exception]] = {}
        self._functions: dict[int, Any] = {}
        self._raised: list[BaseException] = []
        self._received: list[Any] = []
        self._sent = SharedObjects()
        self.shared_classes: dict[str, type] = {}
        self.classes_of_tests: Callable[[], dict[str, type]] | None = None
        self.reads_output = False  # whether the tests may look at what the code prints
        self.last = ""
        self.calls = 0
        readers = {
            "std": values.read,
            "object": self._read_object,
            "based": self._read_based,
            "named": self._read_named,
            "callback": lambda number: self._functions[number],
            "shared": lambda number: self._received[number],
            "member": lambda content: self.shared_classes[content[0]][content[1]],  # type: ignore[index]
        }
        plain.extend(self._write, readers)

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
        emit({"gone": self.last[:MAX_LAST]})
        os._exit(0)

    @staticmethod
    def fault(message: str, *, is_shared: bool = False) -> NoReturn:
        """End the tester at once: the tests want what cannot be, whatever the completion is.

        ``is_shared`` says that it can be where the tests and the completion share a process.
        """
        emit({"tests_fault": describe(TypeError(message)), "is_shared": is_shared})
        os._exit(0)

    def is_of_the_code(self, error: BaseException) -> bool:
        """Return whether an exception is one that the code under test raised."""
        return any(error is other for other in self._raised)

    # Calls.

    def call(self, function: str, arguments: tuple[object, ...], keywords: dict[str, object]) -> Any:
        """Call one of the completion's functions with copies of the arguments; raise the exception that it raised.

        Where it returns ``None``, the caller's objects get its changes. Elsewhere they do not, because a test that
        computes the right value from its own arguments would find what the completion put there.
        """
        return self._request({"function": function}, function, arguments, keywords)

    def act(self, act: str, *arguments: object, **keywords: object) -> Any:
        """Do something with an object of the completion, as :data:`~sandbox.inside.service.ACTS` has it."""
        if act == "call":
            name = type(arguments[0]).__name__
            return self._request({"act": act}, name, arguments, keywords)
        return self._request({"act": act}, "", arguments, keywords)

    def _request(
        self, message: dict[str, Any], name: str, arguments: tuple[object, ...], keywords: dict[str, object]
    ) -> Any:
        self.calls += 1
        if name:
            visible = arguments if "function" in message else arguments[1:]
            texts = [*map(short, visible), *(f"{name}={short(value)}" for name, value in keywords.items())]
            self.last = f"{name}({', '.join(texts)})"
        if self.classes_of_tests is not None:
            self._sent = SharedObjects()
            self.shared_classes = self.classes_of_tests()
        try:
            message["arguments"], message["keywords"] = plain.encode(list(arguments)), plain.encode(keywords)
            if self._sent.values:
                message["shared"] = self._sent.rows()
        except NotPlainError as fault:
            error = TypeError(f"{self.last} cannot be called in a jail: {fault}")
            if not str(fault).startswith("nested"):  # else the completion may have made the value
                self.fault(str(error), is_shared=True)
            raise error from None
        originals = self._sent.values
        if sys.stdin is not self._stdin or builtins.input is not _INPUT or builtins.print is not _PRINT:
            message |= self._lent()
        if self.shared_classes:
            message["shared_names"] = list(self.shared_classes)
        if values.sends_arrays():
            message["arrays"] = True
        if self.reads_output:
            message["reads_output"] = True
        reply = self._exchange(message)
        if reply.get("end") is True and message.get("act") == "next":
            raise StopIteration
        if "raised" in reply:
            raise self._error(reply["raised"])
        try:
            value = self._read_reply(reply, originals, arguments, keywords)
        except _UNREADABLE:
            self.lost()
        if name:
            self.last += f" gave {short(value)}"
        return value

    def _read_reply(
        self, reply: dict[str, Any], originals: list[Any], arguments: tuple[object, ...], keywords: dict[str, object]
    ) -> Any:
        if reply["value"] is not None and "shared" not in reply:
            return plain.decode(reply["value"])
        in_place = reply if reply["value"] is None else {}
        self._received = self._read_shared(reply.get("shared", []), originals if in_place else [])
        value = plain.decode(reply["value"])
        changed = plain.decode(in_place["arguments"]) if "arguments" in in_place else []
        changed_keywords = plain.decode(in_place["keywords"]) if "keywords" in in_place else {}
        _copy_into(arguments, tuple(changed) if type(changed) is list else ())
        after = tuple(map(changed_keywords.get, keywords)) if type(changed_keywords) is dict else ()
        _copy_into(tuple(keywords.values()), after)
        return value

    def _exchange(self, message: dict[str, Any]) -> dict[str, Any]:
        """Send a request and return its reply; meanwhile run functions of the tests that the code calls."""
        self._number += 1
        message["number"] = number = self._number
        self._send(message)
        while True:
            reply: dict[str, Any] = self.hear()
            if "callback" in reply:
                self._send(self._answer(reply))
                continue
            if reply.get("number") != number:
                self.lost()
            if "out" in reply or "read" in reply:
                self._take_streams(reply)
            return reply

    @staticmethod
    def _take_streams(reply: dict[str, Any]) -> None:
        """Write what the code printed where the tests now print, and pass over what it read of their input."""
        if type(reply.get("out")) is str:
            sys.stdout.write(reply["out"])
        if type(reply.get("read")) is int and isinstance(sys.stdin, io.StringIO):
            sys.stdin.seek(sys.stdin.tell() + max(0, reply["read"]))

    def _send(self, message: dict[str, Any]) -> None:
        try:
            send(message)
        except OSError:
            self.lost()

    def _answer(self, call: dict[str, Any]) -> dict[str, Any]:
        """Run a function of the tests that the code under test was given; return the message that says what it gave."""
        try:
            function = self._functions[call["callback"]]
            self._received = self._read_shared(call.get("shared", []), [])
            arguments, keywords = plain.decode(call["arguments"]), plain.decode(call["keywords"])
        except _UNREADABLE:
            self.lost()
        try:
            value = function(*arguments, **keywords)
        except StopIteration:
            return {"callback": True, "end": True}
        except Exception as error:
            return {"callback": True, "raised": describe(error)}
        if function is builtins.print:
            value = None  # a mock's is another mock
        self._sent = SharedObjects()
        try:
            return {"callback": True, "value": plain.encode(value), "shared": self._sent.rows()}
        except NotPlainError as error:
            return {"callback": True, "raised": describe(TypeError(str(error)))}

    def _lent(self) -> dict[str, Any]:
        """Return what the tests have put in the place of standard input, and of functions of Python's own."""
        message: dict[str, Any] = {}
        if sys.stdin is not self._stdin and isinstance(sys.stdin, io.StringIO):
            message["stdin"] = sys.stdin.getvalue()[sys.stdin.tell() :]
        lent = (("input", builtins.input, _INPUT), ("print", builtins.print, _PRINT))
        message["builtins"] = {name: self._function(value) for name, value, real in lent if value is not real}
        return message

    # Values.

    def _write(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if issubclass(kind, Remote):
            return {"object": value._number}
        if plain.is_known_type(value):
            return None
        if (remote := getattr(value, "__dict__", {}).get("remote")) is not None:
            return {"object": remote._number}
        if kind is types.CoroutineType and id(value) in self._coroutines:
            return {"object": self._coroutines[id(value)]}
        if isinstance(value, BaseException):  # one of the code's, perhaps
            raise NotPlainError("nested in the arguments is an exception")
        if self.shared_classes.get(kind.__name__) is kind:
            return self._sent.write(value)
        if callable(value) and (tree := values.write_reference(value)) is not None:
            return tree
        if isinstance(value, _FUNCTIONS) or type(value).__name__ in ("partial", "builtin_function_or_method"):
            return {"callback": self._function(value)}
        if isinstance(value, _ITERATORS) or type(value).__name__.endswith("_iterator"):
            return {"iterator": self._function(lambda: next(value))}
        return values.write(value, depth)

    def _function(self, function: Callable[..., Any]) -> int:
        self._functions[id(function)] = function
        return id(function)

    def _read_shared(self, rows: list[Any], originals: list[Any]) -> list[Any]:
        """Return objects of the tests' own classes with the state that the code gave them."""
        self._received = [
            originals[origin] if type(origin) is int and 0 <= origin < len(originals)
            else object.__new__(self.shared_classes[name])
            for name, _, origin in rows
        ]  # fmt: skip
        for value, (_, state, _) in zip(self._received, rows, strict=True):
            set_state(value, {name: item for name, item in plain.decode(state).items() if name[:2] != "__"})
        return self._received

    def _read_object(self, content: Any) -> Any:
        number, name, has, beneath = content
        if type(number) is not int or type(name) is not str or type(beneath) is not str:
            raise ValueError("no object")
        if number not in self._remotes:
            if beneath == "coroutine":
                remote: Any = _coroutine(self, number)
                self._coroutines[id(remote)] = number
            elif beneath == "class":
                remote = class_kind(name)(self, number, beneath)
            else:
                key = (name, tuple(has))
                self._kinds.setdefault(key, remote_kind(name, has))
                remote = self._kinds[key](self, number, beneath if beneath in KNOWN or beneath == "plain" else "")
            self._remotes[number] = remote
        return self._remotes[number]

    def _read_based(self, content: Any) -> Any:
        tree, remote_tree = content
        value, remote = plain.decode(tree), plain.decode(remote_tree)
        key = (type(remote).__name__, type(value))
        if type(value) not in (int, float, str, bytes, complex, tuple, frozenset):
            raise ValueError("no value")
        self._kinds.setdefault(key, based_kind(*key))
        made = self._kinds[key](value)
        made.__dict__["remote"] = remote
        return made

    def _read_named(self, content: Any) -> Any:
        import collections

        name, fields, items = content
        key = (name, tuple(fields))
        self._kinds.setdefault(key, collections.namedtuple(name, fields, rename=True))
        return self._kinds[key](*map(plain.decode, items))

    # Exceptions.

    def error_class(self, own: object, kinds: object) -> type[Exception]:
        """Return a class for exceptions of the code: of the names of its own, over the nearest of Python's own."""
        names = tuple(name for name in own if type(name) is str) if isinstance(own, list) else ()
        if names:
            base = self.error_class(list(names[1:]), kinds)
            key = (*names, base.__name__)
            if key not in self._errors:
                self._errors[key] = type(names[0], (base,), {"__getattr__": _attribute_of_error})
            return self._errors[key]
        for kind in kinds if isinstance(kinds, list) else ():
            if kind in ("StopIteration", "StopAsyncIteration"):  # would end a test's loop as if it were through
                break
            builtin = getattr(builtins, kind, None) if isinstance(kind, str) else None
            if isinstance(builtin, type) and issubclass(builtin, Exception):
                return builtin
        return RuntimeError

    def _error(self, raised: object) -> Exception:
        """Return the completion's exception as the nearest built-in one, and add it to ``last``."""
        report: dict[str, Any] = raised if isinstance(raised, dict) else {}
        kinds = report.get("kinds")
        name = str(report.get("type")) if kinds is not None else ""
        message = str(report.get("message")) if kinds else ""
        self.last += f" raised {name}: {short(message)}"
        kind = self._library_error(report) or self.error_class(report.get("own"), kinds)
        if kind is RuntimeError and not (isinstance(kinds, list) and "RuntimeError" in kinds):
            message = f"{name}: {message}"
            report = {}
        error = _make_error(kind, report, message)
        if type(report.get("object")) is int:
            error.__dict__["remote"] = Remote(self, report["object"], "")
        self._raised = [*self._raised[-20:], error]
        return error

    @staticmethod
    def _library_error(report: dict[str, Any]) -> type[Exception] | None:
        """Return an exception class of the standard library, where a module of the tests has loaded it."""
        module, name = report.get("module"), report.get("type")
        if type(module) is not str or type(name) is not str:
            return None
        root = module.partition(".")[0]
        if root not in sys.stdlib_module_names or root in _JUDGES:
            return None
        kind = getattr(sys.modules.get(module), name, None) if module != "builtins" else None
        return kind if isinstance(kind, type) and issubclass(kind, Exception) else None


def _make_error(kind: type[Exception], report: dict[str, Any], message: str) -> Exception:
    choices: list[list[Any]] = [[message]]
    try:
        if type(arguments := plain.decode(report["args"])) is list:
            choices.insert(0, arguments)
    except _UNREADABLE:
        pass
    for arguments in choices:
        try:
            error = kind(*arguments)
            str(error)
        except Exception:  # noqa: S112 - it takes other arguments
            continue
        return error
    error = kind.__new__(kind)
    error.args = (message,)
    return error


def _attribute_of_error(self: Any, name: str) -> Any:
    if name[:2] == "__" or "remote" not in self.__dict__:
        raise AttributeError(name)
    return getattr(self.__dict__["remote"], name)


async def _coroutine(peer: Peer, number: int) -> Any:
    return peer.act("await", Remote(peer, number, ""))


def names_of(hello: dict[str, Any], part: str) -> Iterator[str]:
    """Yield the names that the code's first message lists in one of its parts."""
    listed = hello.get(part)
    yield from (name for name in listed if isinstance(name, str)) if isinstance(listed, list) else ()


def short(value: object) -> str:
    """Return a value as a report shows it."""
    try:
        text = f"<{type(value).__name__}>" if issubclass(type(value), Remote) else repr(value)
    except Exception:  # an integer of very many digits, or a value of a class of the tests
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
