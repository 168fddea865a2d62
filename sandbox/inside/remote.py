"""Objects of the code under test, as the tests see them: their methods run in the other process, by their number.

A comparison with a plain value is never theirs: an object that says it equals everything equals no plain value, and is
neither smaller nor larger than one. What they hold that is plain, such as the list beneath a class derived from it, is
compared here. Two objects of the code compare as its class says, which the tests trust as they trust its other methods.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Generator, Iterator
from typing import Any, NoReturn, Protocol

from sandbox import plain

_FIELDS = ("_peer", "_number", "_beneath", "_made")


class Actor(Protocol):
    """What acts on objects of the code under test."""

    def act(self, act: str, *arguments: object, **keywords: object) -> Any:
        """Do something with objects of the code, by the name of what is done."""

    @staticmethod
    def fault(message: str) -> NoReturn:
        """End the tests, which are at fault."""


class Remote:
    """An object of the code under test."""

    __slots__ = _FIELDS

    _peer: Actor
    _number: int
    _beneath: str  # "class", "plain" where a plain value lies beneath, a type of Python's own, or an empty text
    _made: bool  # whether the tests made it, by a call of its class

    def __init__(self, peer: Actor, number: int, beneath: str) -> None:
        for name, value in zip(_FIELDS, (peer, number, beneath, False), strict=True):
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        if name[:2] == "__":
            raise AttributeError(name)
        return self._peer.act("get", self, name)

    def __setattr__(self, name: str, value: object) -> None:
        self._peer.act("set", self, name, value)

    def __delattr__(self, name: str) -> None:
        self._peer.act("delete", self, name)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return KNOWN.get(self._beneath, type(self))

    def __eq__(self, other: object) -> bool:
        if other is self:
            return True
        if issubclass(type(other), Remote):
            return bool(self._peer.act("eq", self, other))
        return bool(self._beneath == "plain" and self._peer.act("plain", self) == other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return self._peer.act("hash", self)  # type: ignore[no-any-return]

    def __bool__(self) -> bool:
        return self._peer.act("bool", self) is True

    def __str__(self) -> str:
        return str.__str__(self._peer.act("str", self))

    def __repr__(self) -> str:
        return str.__str__(self._peer.act("repr", self))

    def __format__(self, form: str) -> str:
        return str.__str__(self._peer.act("format", self, form))

    def __reduce_ex__(self, protocol: object) -> Any:
        raise TypeError("an object of the code under test cannot be copied or pickled")


class RemoteClass(Remote):
    """A class of the code under test: a call makes an object there."""

    __slots__ = ()

    @property
    def __name__(self) -> str:
        return str(self._peer.act("get", self, "__name__"))

    def __call__(self, *arguments: object, **keywords: object) -> Any:
        made = self._peer.act("call", self, *arguments, **keywords)
        if issubclass(type(made), Remote):
            object.__setattr__(made, "_made", True)
        return made

    def __instancecheck__(self, value: object) -> bool:
        is_remote = issubclass(type(value), Remote)
        return is_remote and self._peer.act("isinstance", value, self) is True

    def __subclasscheck__(self, kind: object) -> bool:
        is_remote = issubclass(type(kind), Remote)
        return is_remote and self._peer.act("issubclass", kind, self) is True

    def __iter__(self) -> Iterator[Any]:  # the members of an enumeration
        return iter(self._peer.act("iter", self))

    def __getitem__(self, key: object) -> Any:
        return self._peer.act("getitem", self, key)

    def __len__(self) -> int:
        return self._peer.act("len", self)  # type: ignore[no-any-return]

    def __bool__(self) -> bool:
        return True

    def __mro_entries__(self, bases: object) -> tuple[type, ...]:
        self._peer.fault("the tests derive a class from one of the code under test, which is in another process")


def _call(self: Remote, *arguments: object, **keywords: object) -> Any:
    return self._peer.act("call", self, *arguments, **keywords)


def _order(name: str) -> Callable[[Remote, object], Any]:
    def compare(self: Remote, other: object) -> Any:
        if issubclass(type(other), Remote):
            return self._peer.act(name, self, other)
        if self._beneath == "plain":
            return getattr(self._peer.act("plain", self), f"__{name}__")(other)
        return NotImplemented

    return compare


def _operation(name: str) -> Callable[..., Any]:
    return lambda self, *others: self._peer.act(name, self, *others)


def _arithmetic(name: str, *, is_reflected: bool = False) -> Callable[[Remote, object], Any]:
    """Return an operation of two objects; with a plain value it is only for objects that the tests made.

    Otherwise what a function gave could say of itself that its difference from the right number is 0.
    """

    def operate(self: Remote, other: object) -> Any:
        if not self._made and not issubclass(type(other), Remote):
            return NotImplemented
        result = self._peer.act(name, other, self) if is_reflected else self._peer.act(name, self, other)
        if self._made and issubclass(type(result), Remote):
            object.__setattr__(result, "_made", True)
        return result

    return operate


def _contains(self: Remote, item: object) -> bool:
    if self._made:
        return self._peer.act("contains", self, item) is True
    return any(item is other or item == other for other in iter(self._peer.act("iter", self)))


def _exit(self: Remote, kind: type[BaseException] | None, error: object, trace: object) -> bool:
    """Leave a context there, with the nearest of Python's own exceptions if there was one."""
    bases = [base for base in kind.__mro__ if plain.is_known_type(base)] if kind is not None else []
    return self._peer.act("exit", self, *bases[:1], *([str(error)] if bases else [])) is True


def _await(self: Remote) -> Generator[Any, None, Any]:
    return self._peer.act("await", self)
    yield


METHODS: dict[str, Callable[..., Any]] = {
    "__call__": _call,
    "__contains__": _contains,
    "__await__": _await,
    "__exit__": _exit,
    **{f"__{name}__": _order(name) for name in ("lt", "le", "gt", "ge")},
    **{f"__{name}__": _operation(name) for name in (
        "iter", "next", "reversed", "len", "getitem", "setitem", "delitem", "neg", "pos", "abs", "invert", "int",
        "float", "index", "round", "enter",
    )},
    **{f"__{name}__": _arithmetic(name) for name in (
        "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "xor", "lshift", "rshift",
    )},
    "__and__": _arithmetic("and_"), "__or__": _arithmetic("or_"),
    **{f"__r{name}__": _arithmetic(name, is_reflected=True) for name in (
        "add", "sub", "mul", "truediv", "floordiv", "mod", "pow",
    )},
}  # fmt: skip
"""Methods that Python calls by itself: an object at the tester has those of them that its class has at the code."""
KNOWN: dict[str, type] = {
    "generator": types.GeneratorType, "function": types.FunctionType, "method": types.MethodType,
    "builtin": types.BuiltinFunctionType, "async_generator": types.AsyncGeneratorType, "map": map, "filter": filter,
    "zip": zip, "enumerate": enumerate, "reversed": reversed, "keys": type({}.keys()), "values": type({}.values()),
    "items": type({}.items()),
}  # fmt: skip
"""Types of Python's own, by the name under which the code's side tells the tester of an object of one."""


def remote_kind(name: str, has: list[str]) -> type[Remote]:
    """Return a class of remote objects that has some of :data:`METHODS`."""
    return type(name, (Remote,), {"__slots__": (), **{method: METHODS[method] for method in has if method in METHODS}})


def class_kind(name: str) -> type[RemoteClass]:
    """Return a class of remote classes by their name."""
    return type(name, (RemoteClass,), {"__slots__": ()})


def based_kind(name: str, base: type) -> type:
    """Return a class of plain values that come with an object of the code, which has their further attributes."""

    def get(self: Any, name: str) -> Any:
        if name[:2] == "__" or "remote" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self.__dict__["remote"], name)

    return type(name, (base,), {"__getattr__": get})
