"""What a gated text finds in the jail in place of Python's builtins: safe attributes, imports and functions.

The client sends this module into the jail as compiled code, so it imports the standard library only.
Nothing here is a boundary: the jail is. It keeps a text to what :mod:`sandbox.restricted` allows, so that a text which
goes further fails with a message that says so.
"""

from __future__ import annotations

import abc
import builtins
import functools
import importlib
import string
import sys
from collections import UserString, deque
from collections.abc import Callable, Mapping, Sequence
from types import (
    BuiltinMethodType,
    CodeType,
    FunctionType,
    GenericAlias,
    MethodType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any

from sandbox.inside.text_rules import (
    FILE_NAME,
    INITIALISERS,
    INNER_NAMES,
    MODULES,
    NAMING,
    OPERATORS,
    SAFE_BUILTINS,
    TEXT_MODULE,
    TUPLE_NAMES,
    public_names,
)

PRINTED_CHARS = 16_000  # characters kept of what a text prints
_IMPORTED_BY_C = frozenset({"_pylong", "_strptime", "json.decoder", "time", "warnings"})
"""Modules that Python's own C code imports when one of its functions is first called, in the caller's name."""
_MAX_MESSAGE_CHARS = 2_000
_MAX_FRAMES = 8


_stand_ins: dict[str, Callable[[], dict[str, object]]] = {}  # by module, from :mod:`sandbox.inside.stand_ins`


@functools.cache
def safe_module(name: str) -> ModuleType:
    """Return a module that holds the public names of another, and nothing that leads further."""
    module = ModuleType(f"{name} (restricted)")  # not its own name: an import would look up what is left out by it
    original = importlib.import_module(name)
    ours = _stand_ins.get(name, dict)()
    for public in public_names(name):
        setattr(module, public, ours[public] if public in ours else getattr(original, public))
    if name == "collections":
        module.__dict__["abc"] = safe_module("collections.abc")
    return module


def safe_import(
    name: str, globals: object = None, locals: object = None, fromlist: object = (), level: int = 0
) -> ModuleType:
    """Stand in for ``__import__``; C code reads ``sys.modules``, so an empty module does for its own imports."""
    if name in _IMPORTED_BY_C and not level:
        importlib.import_module(name)
        return ModuleType(name)
    if level or name not in MODULES:
        raise ImportError(f"the module {name!r} is not available here")
    return safe_module(name if fromlist else name.partition(".")[0])


_NONE = object()


def safe_getattr(of: object, name: str, default: object = _NONE, /) -> Any:
    """Return an attribute that does not lead into the interpreter; ``format`` of a str by :class:`_Formatter`."""
    if type(name) is not str:
        raise TypeError("an attribute's name must be a str")
    if name in INNER_NAMES or (name.startswith("_") and not _is_open(of, name)):
        raise AttributeError(f"the attribute {name!r} is not available here")
    value = getattr(of, name) if default is _NONE else getattr(of, name, default)
    if name in WATCHED:
        return WATCHED[name](of, name, value)
    if not isinstance(of, _FORWARDING):
        return value
    if isinstance(value, property) and not _is_of_text(value.fget):
        raise AttributeError(f"the property {name!r} is available of objects, not of their class")
    return _of_its_class(of, name, value) if type(value) is FunctionType else value


_FORWARDING = (type, GenericAlias, MethodType, super)
"""Kinds of objects that hand out what a class has as it stands there, not bound to an object of the class."""


def _is_of_text(value: object) -> bool:
    return type(value) is FunctionType and value.__code__.co_filename == FILE_NAME


def _of_its_class(of: Any, name: str, function: Callable[..., object]) -> Callable[..., object]:
    """Return a method that was read off a class, for objects of that class alone.

    Called with a class in place of an object, ``collections.Counter.copy`` and its like are ``type``.
    """
    while isinstance(of, _FORWARDING[1:]):
        of = getattr(of, {GenericAlias: "__origin__", MethodType: "__func__"}.get(type(of), "__self_class__"))
    owner = next((base for base in getattr(of, "__mro__", ()) if vars(base).get(name) is function), None)
    if owner is None or owner.__module__ == TEXT_MODULE or _is_of_text(function):
        return function

    @functools.wraps(function)
    def method(self: object, /, *values: object, **fields: object) -> object:
        if owner not in type(self).__mro__:
            raise TypeError(f"{name}() is of a {owner.__name__}, not of a {type(self).__name__}")
        return function(self, *values, **fields)

    return method


def safe_pattern(kind: Any) -> Any:
    """Return a class whose objects' attributes a pattern may read, as it does without asking a guard."""
    if not isinstance(kind, type) or any(issubclass(kind, base) or issubclass(base, kind) for base in _FORWARDING):
        raise TypeError("a pattern reads no attributes of objects of every kind; name the class")
    return kind


def _is_open(of: object, name: str) -> bool:
    """Return whether a text may read this attribute, whose name begins with an underscore.

    An operator's method of an object does what the operator does. A class would hand out a function, to be called with
    an object of another class; that is for ``__init__`` of the text's own classes and Python's exceptions alone.
    """
    is_super = type(of) is super
    kind: Any = of if isinstance(of, type) else of.__self_class__ if is_super else type(of)  # type: ignore[attr-defined]
    if name in OPERATORS:
        return not isinstance(of, type | GenericAlias | MethodType)
    if name in INITIALISERS:
        method = getattr(of, name, None)
        ours = _is_of_text(getattr(method, "__func__", method))
        plain = issubclass(kind, BaseException) and type(method) is WrapperDescriptorType
        return ours or plain or (is_super and kind.__module__ == TEXT_MODULE)
    if name in NAMING or name in TUPLE_NAMES:
        return name in NAMING or issubclass(kind, tuple)
    owner = next((base for base in kind.__mro__ if name in vars(base)), kind if type(of) is kind else None)
    return owner is not None and owner.__module__ == TEXT_MODULE and not name.endswith("_")


def _watched_format(of: object, name: str, value: object) -> object:
    """Return ``format`` or ``format_map``; the method of a str, in whatever way it was reached, as ours."""
    own = getattr(value, "__self__", None) if type(value) in (BuiltinMethodType, MethodType) else None
    if own is not None and isinstance(own, str) and type(value) is BuiltinMethodType:
        return functools.partial(_FORMATS[name], own)
    if value is getattr(str, name):
        return _FORMATS[name]
    python_method = getattr(UserString, name)
    if own is not None and getattr(value, "__func__", None) is python_method:
        return functools.partial(_FORMATS[name], str(own))
    return _FORMATS[name] if value is python_method else value


def _watched_obj(of: object, name: str, value: object) -> object:
    """Refuse the object that lacks an attribute: it may be one that no text is to see."""
    while isinstance(of, _FORWARDING[1:]):  # they pass on the attributes of what they hold
        of = getattr(of, {GenericAlias: "__origin__", MethodType: "__func__"}.get(type(of), "__self__"))
    if isinstance(of, AttributeError) or (isinstance(of, type) and issubclass(of, AttributeError)):
        raise AttributeError(f"the attribute {name!r} of an AttributeError is not available here")
    return value


def _watched_mro(of: object, name: str, value: object) -> object:
    """Refuse the bases of a class, which may be of modules that a text may not import."""
    if type(value) is BuiltinMethodType or value is getattr(type, name):
        raise AttributeError(f"the attribute {name!r} is not available here")
    return value


def _watched_register(of: object, name: str, value: object) -> object:
    """Refuse to make objects of other classes pass for those of an abstract class: patterns read their attributes."""
    if getattr(value, "__func__", value) is abc.ABCMeta.register:
        raise AttributeError(f"the attribute {name!r} of an abstract class is not available here")
    return value


WATCHED: dict[str, Callable[[object, str, object], object]] = {
    "format": _watched_format,
    "format_map": _watched_format,
    "mro": _watched_mro,
    "obj": _watched_obj,
    "register": _watched_register,
}
"""Attributes whose value decides, because other things have attributes of the same name."""


def safe_hasattr(of: object, name: str, /) -> bool:
    try:
        safe_getattr(of, name)
    except AttributeError:
        return False
    return True


def safe_setattr(of: object, name: str, value: object, /) -> None:
    """Set an attribute of an object that a text may change, as an assignment of the text may."""
    if type(name) is not str:
        raise TypeError("an attribute's name must be a str")
    if name in INNER_NAMES or (name.startswith("_") and name.endswith("_")):
        raise AttributeError(f"the attribute {name!r} is not available here")
    setattr(safe_write(of), name, value)


class _Formatter(string.Formatter):
    """Formats as ``str.format`` does, looking attributes up as the text itself may."""

    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        import _string  # type: ignore[import-not-found]  # what string.Formatter itself uses

        first, rest = _string.formatter_field_name_split(field_name)
        value = self.get_value(first, args, kwargs)
        for is_attribute, key in rest:
            value = safe_getattr(value, key) if is_attribute else value[key]
        return value, first


_FORMATS: dict[str, Callable[..., str]] = {
    "format": lambda text, /, *values, **fields: _Formatter().vformat(_as_text(text), values, fields),
    "format_map": lambda text, fields, /: _Formatter().vformat(_as_text(text), (), fields),
}


def _as_text(text: object) -> str:
    """Return a str or ``UserString``, of whatever derived class, as a plain str; raise ``TypeError`` for others."""
    if isinstance(text, UserString):
        text = text.data
    if not isinstance(text, str):
        raise TypeError(f"expected a str, not a {type(text).__name__}")
    return str.__str__(text)


def safe_write(of: object) -> Any:
    """Return an object whose attributes are about to be changed, if a text may change them."""
    if isinstance(of, dict | list | deque | bytearray) or type(of).__module__ == TEXT_MODULE:
        return of
    if isinstance(of, type) and of.__module__ == TEXT_MODULE:
        return of
    if _is_of_text(of):
        return of
    if (type(of).__module__, type(of).__name__) == ("decimal", "Context"):  # it takes settings alone
        return of
    raise TypeError(f"a {type(of).__name__} cannot be changed here")


def safe_change(of: object, name: str) -> Any:
    """Return an object of which one attribute is about to be changed in place, which reads it without a guard."""
    if isinstance(of, _FORWARDING) and safe_getattr(of, name) is not getattr(of, name):
        raise TypeError(f"{name!r} of a class cannot be changed in place here")
    return safe_write(of)


def safe_type(of: object, /) -> type:
    """Return an object's type. Make no class and return no metaclass, as ``type`` would."""
    if isinstance(of, type):
        raise TypeError("the type of a class is not available here")
    return type(of)


def _without_traceback(method: Callable[..., object]) -> Callable[..., object]:
    """Stand around ``__exit__`` of a text, which is not to see frames."""
    return lambda self, kind, error, trace: method(self, kind, error, None)


def _without_inner(method: Callable[..., object]) -> Callable[..., object]:
    """Stand around ``__getattr__`` of a text, which is not to answer for what Python itself looks up."""

    def look_up(self: object, name: str) -> object:
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return method(self, name)

    return look_up


METHOD_GUARDS = {"__exit__": _without_traceback, "__getattr__": _without_inner}
"""What stands around methods of the text's classes; the gate writes it there as a decorator, ``_guard__exit__``."""


class Printed:
    """Stands in for ``print``: writes up to :data:`PRINTED_CHARS` characters and counts the rest."""

    def __init__(self) -> None:
        self._room = PRINTED_CHARS
        self.dropped = 0

    def write(self, *values: object, sep: str | None = " ", end: str | None = "\n", flush: bool = False) -> None:
        text = (" " if sep is None else sep).join(map(str, values)) + ("\n" if end is None else end)
        head = text[: self._room]
        self._room -= len(head)
        self.dropped += len(text) - len(head)
        if head:
            sys.stdout.write(head.encode("utf-8", "backslashreplace").decode())
            sys.stdout.flush()  # what is printed before a deadline is known after it


def answer(
    code: CodeType,
    function: str,
    arguments: dict[str, Any],
    added: Mapping[str, Any],
    stand_ins: Mapping[str, Callable[[], dict[str, object]]],
) -> dict[str, Any]:
    """Run a gated and compiled text, call its ``function`` with keyword arguments and return the outcome. Never raises.

    ``stand_ins`` is the table of :mod:`sandbox.inside.stand_ins`, empty for a text that imports none of its modules.
    ``added`` are further names for the text; ``_leave`` among them turns what the function returns into a dictionary of
    plain values. The outcome is what ``_leave`` returns, or ``{"raised": {type, message, frames}}``; both with
    ``dropped``, the number of printed characters that were not kept.
    """
    _stand_ins.update(stand_ins)
    printed = Printed()
    names = _names(printed)
    names.update((name, value) for name, value in added.items() if not name.startswith("_"))
    try:
        exec(code, names)  # noqa: S102 - gated, and in the jail
        outcome: dict[str, Any] = added["_leave"](names[function](**arguments))
    except BaseException as error:
        outcome = {"raised": _describe(error)}
    outcome["dropped"] = printed.dropped
    return outcome


def _names(printed: Printed) -> dict[str, Any]:
    safe: dict[str, Any] = {name: getattr(builtins, name) for name in SAFE_BUILTINS}
    safe["__import__"], safe["type"] = safe_import, safe_type
    safe["print"] = lambda *values, **options: printed.write(*values, **options)  # a copy of which is itself
    safe["getattr"], safe["hasattr"], safe["setattr"] = safe_getattr, safe_hasattr, safe_setattr
    safe["super"] = super  # the gate lets no text have it but at once for an attribute
    guards: dict[str, object] = {"_getattr_": safe_getattr, "_write_": safe_write, "_type_": safe_type}
    guards.update(_pattern_=safe_pattern, _change_=safe_change)
    guards.update((f"_guard{method}", guard) for method, guard in METHOD_GUARDS.items())
    return {"__builtins__": safe, "__name__": TEXT_MODULE, **guards}


def _describe(error: BaseException) -> dict[str, Any]:
    try:
        message = str(error)[:_MAX_MESSAGE_CHARS]
    except BaseException:
        message = "(its message cannot be read)"
    frames = []
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == FILE_NAME:
            frames.append((trace.tb_lineno, trace.tb_frame.f_code.co_name))
        trace = trace.tb_next
    return {"type": type(error).__name__, "message": message, "frames": frames[-_MAX_FRAMES:]}
