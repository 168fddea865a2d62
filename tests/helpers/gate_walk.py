"""Walks over all that a gated text can get hold of, by what the gate lets a text do.

Each object is read, called, subscripted, iterated, entered, derived from and written to, with the guards in between
and with spies for arguments: objects of a text's own class, which keep whatever they are handed. What no text may have
is a finding, with the way that led to it. Calls leave traces, so this runs in a process of its own:
``python gate_walk.py PLANT`` prints the findings, a line each, and how many objects it visited.
"""

from __future__ import annotations

import builtins
import contextlib
import dataclasses
import enum
import functools
import importlib
import itertools
import marshal
import operator
import signal
import string
import sys
import time
import types
import typing
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator

from sandbox.inside import guards, stand_ins, text_rules
from sandbox.restricted import check_source

FORBIDDEN: dict[int, str] = {
    id(value): name
    for name, value in {
        **{name: getattr(builtins, name) for name in (
            "type", "eval", "exec", "compile", "__import__", "open", "input", "globals", "locals", "vars", "dir",
            "getattr", "setattr", "delattr", "breakpoint", "super",
        )},
        "get_type_hints": typing.get_type_hints, "attrgetter": operator.attrgetter,
        "methodcaller": operator.methodcaller, "Formatter": string.Formatter, "format": str.format,
        "format_map": str.format_map, "make_dataclass": dataclasses.make_dataclass, "new_class": types.new_class,
        "singledispatch": functools.singledispatch, "modules": sys.modules,
    }.items()
}  # fmt: skip
INNER = (types.FrameType, types.CodeType, types.TracebackType, types.CellType, super)
"""Kinds of objects that no text may have."""

NAMES = (
    *text_rules.INNER_NAMES, *text_rules.TUPLE_NAMES, *text_rules.OPERATORS, *text_rules.NAMING,
    *text_rules.INITIALISERS, *guards.WATCHED,
    "__class__", "__dict__", "__globals__", "__code__", "__closure__", "__self__", "__func__", "__wrapped__", "__mro__",
    "__bases__", "__subclasses__", "__traceback__", "__context__", "__annotations__", "__builtins__", "__module__",
    "__reduce_ex__", "__getattribute__", "__setattr__", "__new__", "_abc_impl", "_member_map_", "_create_",
)  # fmt: skip
MAX_DEPTH = 4
MAX_OF_A_KIND = 1
CALL_S = 0.2


class _Exit(contextlib.nullcontext[typing.Any]):
    """Hands all that ``__exit__`` gets to what it was created with, as ``contextlib.ExitStack`` does."""

    def __exit__(self, *details: object) -> None:
        self.enter_result(*details)


PLANTS: dict[str, object] = {
    "": None,
    "singledispatchmethod": functools.singledispatchmethod,
    "traceback": _Exit,
    "Enum": enum.Enum,
    "attrgetter": operator.attrgetter("__class__.__class__"),
    "frame": sys._getframe,
    "evaluation": lambda value: eval(str(value)),
    "import": lambda value: __import__("this"),
}

_WRITTEN_OUT = ["bool", "exit", "float", "format", "hash", "index", "int", "iter", "len", "next", "repr", "str"]
_METHODS = sorted(text_rules.OPERATORS - {f"__{name}__" for name in _WRITTEN_OUT})
_SPY = """
class {name}({base}):
    def __init__(self, *values, **fields):
        keep(values, fields)
        {init}
    def __getattr__(self, name):
        return self
    def __exit__(self, kind, error, trace):
        keep(kind, error, trace)
        return True
    def __bool__(self): return flip()
    def __len__(self): return 1
    def __index__(self): return 1
    def __int__(self): return 1
    def __float__(self): return 1.0
    def __hash__(self): return 1
    def __iter__(self): return iter([self])
    def __next__(self): return self
    def __str__(self): return "planted(1)"
    def __repr__(self): return "planted(1)"
    def __format__(self, spec): return "planted(1)"
    def throw(self, *values, **fields):
        keep(values, fields)
        raise StopIteration
""" + "".join(
    f"    def {name}(self, *values, **fields):\n        keep(values, fields)\n        return self\n"
    for name in _METHODS
)
_WITH = """
def enter(thing):
    with thing as value:
        keep(value)
        raise ValueError("left")
"""


class Walk:
    """A walk from a text's names, one of them planted; ``findings`` is what it met that no text may have."""

    def __init__(self, plant: str) -> None:
        self.findings: dict[str, str] = {}
        self._handed: list[object] = []
        self._alive: dict[int, object] = {}  # what was visited, so that no number of theirs is another's
        self._queue: deque[tuple[str, object, int]] = deque()
        self._kinds: Counter[tuple[type, object]] = Counter()
        self._flips = 0
        self._deadline: float | None = None
        self._path = self._step = ""
        sys.addaudithook(self._audit)
        signal.signal(signal.SIGVTALRM, self._end_long_call)
        signal.setitimer(signal.ITIMER_VIRTUAL, CALL_S / 4, CALL_S / 4)
        guards._stand_ins.update(stand_ins.STAND_INS)
        for module in ("_pydecimal", "_strptime", "locale"):  # C code imports them when it first needs them
            importlib.import_module(module)
        self._real_modules = set(map(id, sys.modules.values()))
        self._is_planted = bool(plant)
        self._names = {"planted": PLANTS[plant], **guards._names(guards.Printed())}
        self._names.update(keep=self._keep, flip=self._flip)
        self._own = {id(value) for value in (self._names, self._names["__builtins__"])}
        self._enter = self._run(_WITH)["enter"]
        self._spy = self._run(_SPY.format(name="Spy", base="", init="pass"))["Spy"]()
        fields = {
            "Plain": "class Plain:\n    x: int = 1\n",
            "function": "def function(*values, **fields):\n    keep(values, fields)\n    return spy\n",
        }
        self._names["spy"] = self._spy
        self._arguments = [self._run(text)[name] for name, text in fields.items()]

    def _end_long_call(self, *signalled: object) -> None:
        if self._deadline is not None and time.process_time() > self._deadline:
            raise _TooLong

    def _audit(self, event: str, arguments: tuple[object, ...]) -> None:
        """Note what a text's act has the interpreter do: run what spies say, open, import."""
        if self._deadline is not None and event in ("exec", "open", "import", "os.system", "subprocess.Popen"):
            code = arguments[0]
            if str(code).startswith("encodings."):  # bytes.decode looks for a codec of that name, there alone
                return
            if event != "exec" or (isinstance(code, types.CodeType) and "planted" in code.co_names):
                self.findings.setdefault(f"{event} {code}", self._path + self._step)

    def _run(self, text: str) -> dict[str, typing.Any]:
        names = dict(self._names)
        exec(marshal.loads(_gated(text)), names)
        return names

    def _keep(self, *values: object) -> None:
        for value in values:
            parts = value if type(value) is tuple else value.values() if type(value) is dict else [value]
            self._handed.extend(parts)

    def _flip(self) -> bool:
        self._flips += 1
        return self._flips % 3 == 0

    def visit_all(self) -> int:
        """Walk until there is nothing new, or a plant is found; return how many objects were visited."""
        for name, value in {**self._names, **self._names["__builtins__"]}.items():
            if name not in ("__builtins__", "super"):
                self._reach(name, value, 0)
        for name in sorted(text_rules.MODULES):
            self._reach(name, guards.safe_module(name), 0)
        while self._queue and not (self._is_planted and self.findings):
            path, value, depth = self._queue.popleft()
            self._path = path
            for step, result in self._steps(value):
                self._reach(path + step, result, depth + 1)
                while self._handed:
                    self._reach(f"{path}{step} hands out", self._handed.pop(), depth + 1)
        return len(self._alive)

    def _reach(self, path: str, value: object, depth: int) -> None:
        fault = self._fault(value)
        if fault is not None:
            self.findings.setdefault(fault, path)
        if fault is not None or depth >= MAX_DEPTH or id(value) in self._alive:
            return
        if isinstance(value, str | int | float | bytes | None):
            return
        kind = (type(value), getattr(value, "__code__", getattr(value, "__qualname__", "")) if callable(value) else "")
        self._kinds[kind] += 1
        if depth == 0 or isinstance(value, type) or self._kinds[kind] <= MAX_OF_A_KIND:
            self._alive[id(value)] = value
            self._queue.append((path, value, depth))

    def _fault(self, value: object) -> str | None:
        if id(value) in FORBIDDEN:
            return FORBIDDEN[id(value)]
        if isinstance(value, type) and (issubclass(value, type) or value in INNER):
            return f"metaclass or inner class {value.__name__}"
        if type(value) in INNER or id(value) in self._own:
            return f"inner {type(value).__name__}"
        if type(value) is types.ModuleType and id(value) in self._real_modules:
            return f"module {value.__name__}"
        if type(value) is types.BuiltinMethodType and isinstance(value.__self__, str) and "format" in value.__name__:
            return "format of a str"
        if isinstance(value, type) and "__x__" in vars(value):
            return "class with names that were data"
        if isinstance(value, dict) and dict.__contains__(value, "__builtins__"):
            return "globals"
        return None

    def _steps(self, value: typing.Any) -> Iterator[tuple[str, object]]:
        """Yield what a text can make of an object, each with how."""
        for name in sorted({*_directory(value), *NAMES}):
            yield from self._tried(f".{name}", guards.safe_getattr, value, name)
        yield from self._tried(" type", guards.safe_type, value)
        for key in (0, "a", int, self._spy):
            yield from self._tried(f"[{key!r:.9}]", operator.getitem, value, key)
        yield from self._tried(" items", lambda: list(itertools.islice(value, 3)))
        if hasattr(type(value), "__enter__"):
            yield from self._tried(" entered", self._enter, value)
        if callable(value):
            for arguments in self._argument_lists():
                step = ", ".join(f"{argument!r:.9}" for argument in arguments)
                yield from self._tried(f"({step})", value, *arguments)
        if isinstance(value, type) and value.__module__ != text_rules.TEXT_MODULE:
            yield from self._derived(value)

    def _argument_lists(self) -> Iterable[tuple[object, ...]]:
        plain, function = self._arguments
        spy = self._spy
        return [(), (spy,), (plain,), (function,), ("a",), (1,), ([1],), (plain(),), (spy, spy), (plain, function),
                ("a", [("__x__", spy)]), (plain(), "x"), ("a", spy, spy)]  # fmt: skip

    def _derived(self, base: type) -> Iterator[tuple[str, object]]:
        """Yield objects of classes derived from a class, with spies for all of their public attributes."""
        self._names["Base"] = base
        plain = "class Derived(Base):\n    pass\n"
        for text in (plain, _SPY.format(name="Derived", base="Base", init="super().__init__(*values, **fields)")):
            for names in self._results(self._run, text):
                for name in _directory(names["Derived"]):
                    if not name.startswith("_") and name not in guards.WATCHED:
                        yield from self._tried(f" derived, {name} changed in place", _change, names["Derived"], name)
                for arguments in [(), (self._arguments[1],), (self._spy,)]:
                    for instance in self._results(names["Derived"], *arguments):
                        yield " derived", instance
                        yield from self._spied(names["Derived"], instance)

    def _spied(self, kind: type, instance: object) -> Iterator[tuple[str, object]]:
        for name in _directory(instance):
            if not name.startswith("_"):
                self._results(guards.safe_setattr, instance, name, self._spy)
        self._names["instance"] = instance
        for names in self._results(self._run, "class Holder:\n    part = instance\n"):
            for part in self._results(guards.safe_getattr, names["Holder"](), "part"):
                yield " derived, of an object", part
                for argument in (self._spy, kind, self._arguments[0]):
                    yield from self._tried(" derived, of an object, called", part, argument)

    def _results(self, act: Callable[..., typing.Any], *arguments: object) -> list[typing.Any]:
        return [result for _, result in self._tried("", act, *arguments) if not isinstance(result, Exception)]

    def _tried(self, step: str, act: Callable[..., object], *arguments: object) -> Iterator[tuple[str, object]]:
        self._deadline, self._step = time.process_time() + CALL_S, step
        try:
            result = act(*arguments)
        except BaseException as error:
            self._kinds[type(error), ""] += 1
            result = error if self._kinds[type(error), ""] <= MAX_OF_A_KIND else _TooLong()
        self._deadline = None
        if not isinstance(result, BaseException) or isinstance(result, Exception):
            yield step, result


def _change(of: object, name: str) -> object:
    """What ``of.name += spy`` hands to the spy."""
    return getattr(guards.safe_change(of, name), name)


@functools.cache
def _gated(text: str) -> bytes:
    return check_source(text).code


def _directory(value: object) -> list[str]:
    try:
        return [name for name in dir(value) if isinstance(name, str)]
    except Exception:
        return []


class _TooLong(BaseException):
    """A call that does not end, or an error that others of its kind stand for."""


def main(plant: str) -> None:
    """Print the findings, a line each, and last how many objects were visited."""
    report, sys.stdout = sys.stdout, None  # the print of a text has nowhere to write
    walk = Walk(plant)
    visited = walk.visit_all()
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    for name, path in walk.findings.items():
        print(f"{name}: {path}", file=report)
    print(visited, file=report)


if __name__ == "__main__":
    main(sys.argv[1])
