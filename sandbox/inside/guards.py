"""What a gated text finds in the jail in place of Python's builtins: safe attributes, imports and functions.

The client sends this module into the jail as compiled code, so it imports the standard library only.
Nothing here is a boundary: the jail is. It keeps a text to what :mod:`sandbox.restricted` allows, so that a text which
goes further fails with a message that says so.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import string
import sys
from collections import UserString, deque
from collections.abc import Callable, Mapping, Sequence
from types import BuiltinMethodType, CodeType, FunctionType, GenericAlias, MethodType, ModuleType
from typing import Any

FILE_NAME = "<text>"  # what the text's frames are called
TEXT_MODULE = "text"  # the module that classes of the text say they are of
PRINTED_CHARS = 16_000  # characters kept of what a text prints

MODULES = frozenset(
    {
        "ast", "collections", "collections.abc", "datetime", "decimal", "difflib", "fractions", "functools",
        "itertools", "json", "math", "re", "statistics", "string", "unicodedata",
    }
)  # fmt: skip
"""Modules that a text may import; of ``ast`` only ``literal_eval``."""

SAFE_BUILTINS = frozenset(
    {
        "__build_class__", "abs", "all", "any", "ascii", "bin", "bool", "bytearray", "bytes", "callable", "chr",
        "classmethod", "complex", "dict", "divmod", "enumerate", "filter", "float", "format", "frozenset", "hash",
        "hex", "id", "int", "isinstance", "issubclass", "iter", "len", "list", "map", "max", "min", "next", "object",
        "oct", "ord", "pow", "property", "range", "repr", "reversed", "round", "set", "slice", "sorted",
        "staticmethod", "str", "sum", "tuple", "zip", "Ellipsis", "NotImplemented",
    }
    | {
        name
        for name, value in vars(builtins).items()
        if isinstance(value, type) and issubclass(value, BaseException) and not name.endswith("ExceptionGroup")
    }
)  # fmt: skip
"""Builtins that a text has as they are."""

GUARDED_BUILTINS = frozenset({"__import__", "getattr", "hasattr", "print", "type"})  # a text has ours

INNER_NAMES = frozenset(
    {
        "tb_frame", "tb_next", "f_back", "f_builtins", "f_code", "f_generator", "f_globals", "f_locals", "f_trace",
        "co_code", "gi_frame", "gi_code", "gi_yieldfrom", "cr_await", "cr_frame", "cr_code", "cr_origin",
        "ag_await", "ag_frame", "ag_code",
    }
)  # fmt: skip
"""Attributes that lead from an object to the interpreter's insides, without an underscore to tell them by."""

_HIDDEN = {"string": {"Formatter"}}
_IMPORTED_BY_C = frozenset({"_pylong", "_strptime", "json.decoder", "time", "warnings"})
"""Modules that Python's own C code imports when one of its functions is first called, in the caller's name."""
_MAX_MESSAGE_CHARS = 2_000
_MAX_FRAMES = 8


def public_names(module: str) -> frozenset[str]:
    """Return the names that a text may take from a module: the public ones that are not modules themselves."""
    if module == "ast":
        return frozenset({"literal_eval"})
    loaded = importlib.import_module(module)
    listed = getattr(loaded, "__all__", None) or [name for name in vars(loaded) if not name.startswith("_")]
    names = {name for name in listed if not isinstance(getattr(loaded, name), ModuleType)}
    return frozenset(names - _HIDDEN.get(module, set()))


@functools.cache
def safe_module(name: str) -> ModuleType:
    """Return a module that holds the public names of another, and nothing that leads further."""
    module = ModuleType(f"{name} (restricted)")  # not its own name: an import would look up what is left out by it
    original = importlib.import_module(name)
    for public in public_names(name):
        setattr(module, public, getattr(original, public))
    if name == "collections":
        module.__dict__["abc"] = safe_module("collections.abc")
    if name == "functools":
        vars(module).update(update_wrapper=_update_wrapper, wraps=_wraps, total_ordering=_total_ordering)
    return module


def _update_wrapper(wrapper: object, wrapped: object) -> object:
    """Stand in for ``functools.update_wrapper``; write names and docstring, only to the text's objects.

    It writes no ``__module__``, by which another class could pass for one of the text's.
    """
    if type(wrapper) is FunctionType:
        if wrapper.__code__.co_filename != FILE_NAME:
            raise TypeError("a function that is not of this text cannot be changed here")
    elif type(wrapper) is not functools.partial:
        safe_write(wrapper)
    for name in ("__name__", "__qualname__", "__doc__"):
        value = getattr(wrapped, name, None)
        if type(value) is str:
            setattr(wrapper, name, value)
    return wrapper


def _wraps(wrapped: object) -> Callable[[object], object]:
    """Stand in for ``functools.wraps``, as :func:`_update_wrapper` does."""
    return lambda wrapper: _update_wrapper(wrapper, wrapped)


def _total_ordering(of: object) -> Any:
    """Stand in for ``functools.total_ordering``, which writes methods to any class."""
    return functools.total_ordering(safe_write(of))


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
    if name.startswith("_") or name in INNER_NAMES:
        raise AttributeError(f"the attribute {name!r} is not available here")
    value = getattr(of, name) if default is _NONE else getattr(of, name, default)
    return _WATCHED[name](of, name, value) if name in _WATCHED else value


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
    while isinstance(of, GenericAlias | MethodType):  # both pass on the attributes of what they hold
        of = of.__origin__ if isinstance(of, GenericAlias) else of.__func__
    if isinstance(of, AttributeError) or (isinstance(of, type) and issubclass(of, AttributeError)):
        raise AttributeError(f"the attribute {name!r} of an AttributeError is not available here")
    return value


def _watched_mro(of: object, name: str, value: object) -> object:
    """Refuse the bases of a class, which may be of modules that a text may not import."""
    if type(value) is BuiltinMethodType or value is getattr(type, name):
        raise AttributeError(f"the attribute {name!r} is not available here")
    return value


_WATCHED: dict[str, Callable[[object, str, object], object]] = {
    "format": _watched_format,
    "format_map": _watched_format,
    "mro": _watched_mro,
    "obj": _watched_obj,
}
"""Attributes whose value decides, because other things have attributes of the same name."""


def safe_hasattr(of: object, name: str, /) -> bool:
    try:
        safe_getattr(of, name)
    except AttributeError:
        return False
    return True


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
    """Return an object whose items or attributes are about to be changed, if a text may change them."""
    if isinstance(of, dict | list | deque | bytearray) or type(of).__module__ == TEXT_MODULE:
        return of
    if isinstance(of, type) and of.__module__ == TEXT_MODULE:
        return of
    raise TypeError(f"a {type(of).__name__} cannot be changed here")


def safe_type(of: object, /) -> type:
    """Return an object's type. Make no class and return no metaclass, as ``type`` would."""
    if isinstance(of, type):
        raise TypeError("the type of a class is not available here")
    return type(of)


class Printed:
    """Stands in for ``print``: writes up to :data:`PRINTED_CHARS` characters and counts the rest."""

    def __init__(self) -> None:
        self._room = PRINTED_CHARS
        self.dropped = 0

    def __call__(self, *values: object, sep: str | None = " ", end: str | None = "\n", flush: bool = False) -> None:
        text = (" " if sep is None else sep).join(map(str, values)) + ("\n" if end is None else end)
        head = text[: self._room]
        self._room -= len(head)
        self.dropped += len(text) - len(head)
        if head:
            sys.stdout.write(head.encode("utf-8", "backslashreplace").decode())
            sys.stdout.flush()  # what is printed before a deadline is known after it


def answer(code: CodeType, function: str, arguments: dict[str, Any], added: Mapping[str, Any]) -> dict[str, Any]:
    """Run a gated and compiled text, call its ``function`` with keyword arguments and return the outcome. Never raises.

    ``added`` are further names for the text; ``_leave`` among them turns what the function returns into a dictionary of
    plain values. The outcome is what ``_leave`` returns, or ``{"raised": {type, message, frames}}``; both with
    ``dropped``, the number of printed characters that were not kept.
    """
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
    safe["__import__"], safe["print"], safe["type"] = safe_import, printed, safe_type
    safe["getattr"], safe["hasattr"] = safe_getattr, safe_hasattr
    guards: dict[str, Any] = {"_getattr_": safe_getattr, "_write_": safe_write, "__metaclass__": type}
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
