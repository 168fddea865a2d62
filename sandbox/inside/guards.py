"""What a gated text finds in the jail in place of Python's builtins: safe attributes, imports and functions.

The client sends this module into the jail as compiled code, so it imports the standard library only.
Nothing here is a boundary: the jail is. It keeps a text to what :mod:`sandbox.restricted` says that a text may do,
so that it fails with words and not by surprise.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import string
import sys
from collections import UserString, deque
from collections.abc import Callable, Mapping
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

GUARDED_BUILTINS = frozenset({"__import__", "getattr", "hasattr", "print", "type"})
"""Builtins that a text has in a form of our own."""

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
    found = importlib.import_module(module)
    listed = getattr(found, "__all__", None) or [name for name in vars(found) if not name.startswith("_")]
    names = {name for name in listed if not isinstance(getattr(found, name), ModuleType)}
    return frozenset(names - _HIDDEN.get(module, set()))


@functools.cache
def safe_module(name: str) -> ModuleType:
    """Return a module that holds the public names of another, and nothing that leads further."""
    module = ModuleType(f"{name} (restricted)")  # not its own name: an import would look up what is left out by it
    found = importlib.import_module(name)
    for public in public_names(name):
        setattr(module, public, getattr(found, public))
    if name == "collections":
        module.__dict__["abc"] = safe_module("collections.abc")
    if name == "functools":
        vars(module).update(update_wrapper=_update_wrapper, wraps=_wraps, total_ordering=_total_ordering)
    return module


def _update_wrapper(wrapper: Any, wrapped: Any) -> Any:
    """Stand in for ``functools.update_wrapper``, which writes what it finds to any object.

    This one writes to what is the text's own, and only what a name and a docstring are: with ``__module__``, another
    class could be made to pass for one of the text's.
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


def _wraps(wrapped: Any) -> Callable[[Any], Any]:
    """Stand in for ``functools.wraps``, as :func:`_update_wrapper` does."""
    return lambda wrapper: _update_wrapper(wrapper, wrapped)


def _total_ordering(of: Any) -> Any:
    """Stand in for ``functools.total_ordering``, which writes methods to any class."""
    return functools.total_ordering(safe_write(of))


def safe_import(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> ModuleType:
    """Stand in for ``__import__``.

    What C code imports on its own account it takes from ``sys.modules``; a text that came here gets nothing by it.
    """
    if name in _IMPORTED_BY_C and not level:
        importlib.import_module(name)
        return ModuleType(name)
    if level or name not in MODULES:
        raise ImportError(f"the module {name!r} is not available here")
    return safe_module(name if fromlist else name.partition(".")[0])


_NONE = object()


def safe_getattr(of: Any, name: str, default: Any = _NONE, /) -> Any:
    """Return an attribute that is no secret of Python's; ``format`` of a text by :class:`_Formatter`."""
    if type(name) is not str:
        raise TypeError("an attribute's name must be a str")
    if name.startswith("_") or name in INNER_NAMES:
        raise AttributeError(f"the attribute {name!r} is not available here")
    found = getattr(of, name) if default is _NONE else getattr(of, name, default)
    return _WATCHED[name](of, name, found) if name in _WATCHED else found


def _watched_format(of: Any, name: str, found: Any) -> Any:
    """Return ``format`` or ``format_map``; that of a text, by whatever way it was found, as ours."""
    own = getattr(found, "__self__", None) if type(found) in (BuiltinMethodType, MethodType) else None
    if own is not None and isinstance(own, str) and type(found) is BuiltinMethodType:
        return functools.partial(_FORMATS[name], own)
    if found is getattr(str, name):
        return _FORMATS[name]
    written = getattr(UserString, name)
    if own is not None and getattr(found, "__func__", None) is written:
        return functools.partial(_FORMATS[name], str(own))
    return _FORMATS[name] if found is written else found


def _watched_obj(of: Any, name: str, found: Any) -> Any:
    """Refuse the object in which an attribute was not found: it may be one that no text is to see."""
    while isinstance(of, GenericAlias | MethodType):  # both pass on the attributes of what they hold
        of = of.__origin__ if isinstance(of, GenericAlias) else of.__func__
    if isinstance(of, AttributeError) or (isinstance(of, type) and issubclass(of, AttributeError)):
        raise AttributeError(f"the attribute {name!r} of an AttributeError is not available here")
    return found


def _watched_mro(of: Any, name: str, found: Any) -> Any:
    """Refuse the bases of a class, which may be of modules that a text may not import."""
    if type(found) is BuiltinMethodType or found is getattr(type, name):
        raise AttributeError(f"the attribute {name!r} is not available here")
    return found


_WATCHED: dict[str, Callable[[Any, str, Any], Any]] = {
    "format": _watched_format,
    "format_map": _watched_format,
    "mro": _watched_mro,
    "obj": _watched_obj,
}
"""Attributes that are checked after they were found, because other things have attributes of the same name."""


def safe_hasattr(of: Any, name: str, /) -> bool:
    """Stand in for ``hasattr``."""
    try:
        safe_getattr(of, name)
    except AttributeError:
        return False
    return True


class _Formatter(string.Formatter):
    """Formats as ``str.format`` does, looking attributes up as the text itself may."""

    def get_field(self, field_name: str, args: Any, kwargs: Any) -> Any:
        import _string  # type: ignore[import-not-found]  # what string.Formatter itself uses

        first, rest = _string.formatter_field_name_split(field_name)
        found = self.get_value(first, args, kwargs)
        for is_attribute, key in rest:
            found = safe_getattr(found, key) if is_attribute else found[key]
        return found, first


_FORMATS: dict[str, Callable[..., str]] = {
    "format": lambda text, /, *values, **named: _Formatter().vformat(_as_text(text), values, named),
    "format_map": lambda text, named, /: _Formatter().vformat(_as_text(text), (), named),
}


def _as_text(text: Any) -> str:
    """Return the text itself of one, however its class was derived.

    Raises:
        TypeError: The value is not a text.
    """
    if isinstance(text, UserString):
        text = text.data
    if not isinstance(text, str):
        raise TypeError(f"expected a str, not a {type(text).__name__}")
    return str.__str__(text)


def safe_write(of: Any) -> Any:
    """Return an object whose items or attributes are about to be changed, if a text may do so."""
    if isinstance(of, dict | list | deque | bytearray) or type(of).__module__ == TEXT_MODULE:
        return of
    if isinstance(of, type) and of.__module__ == TEXT_MODULE:
        return of
    raise TypeError(f"a {type(of).__name__} cannot be changed here")


def safe_type(of: Any, /) -> type:
    """Return an object's type. Make no class and return no metaclass, as ``type`` would."""
    if isinstance(of, type):
        raise TypeError("the type of a class is not available here")
    return type(of)


class Printed:
    """Stands in for ``print``: writes up to :data:`PRINTED_CHARS` characters and counts the rest."""

    def __init__(self) -> None:
        self._room = PRINTED_CHARS
        self.dropped = 0

    def __call__(self, *values: Any, sep: str | None = " ", end: str | None = "\n", flush: bool = False) -> None:
        text = (" " if sep is None else sep).join(map(str, values)) + ("\n" if end is None else end)
        kept = text[: self._room]
        self._room -= len(kept)
        self.dropped += len(text) - len(kept)
        if kept:
            sys.stdout.write(kept.encode("utf-8", "backslashreplace").decode())
            sys.stdout.flush()  # what is printed before a deadline is known after it


def answer(code: CodeType, function: str, arguments: dict[str, Any], added: Mapping[str, Any]) -> dict[str, Any]:
    """Run a text, call a function of it and return what came of it. Never raises.

    Args:
        code: The text, gated and compiled.
        function: The name of its function.
        arguments: Keyword arguments.
        added: Further names for the text; ``_leave`` among them turns what the function returns into a dictionary of
            plain values.

    Returns:
        What ``_leave`` returns, or ``{"raised": {type, message, frames}}``; both with ``dropped``, the number of
        printed characters that were not kept.
    """
    printed = Printed()
    names = _names(printed)
    names.update((name, value) for name, value in added.items() if not name.startswith("_"))
    try:
        exec(code, names)  # noqa: S102 - gated, and in the jail
        told: dict[str, Any] = added["_leave"](names[function](**arguments))
    except BaseException as error:
        told = {"raised": _described(error)}
    told["dropped"] = printed.dropped
    return told


def _names(printed: Printed) -> dict[str, Any]:
    """Return the globals of a text."""
    safe: dict[str, Any] = {name: getattr(builtins, name) for name in SAFE_BUILTINS}
    safe["__import__"], safe["print"], safe["type"] = safe_import, printed, safe_type
    safe["getattr"], safe["hasattr"] = safe_getattr, safe_hasattr
    guards: dict[str, Any] = {"_getattr_": safe_getattr, "_write_": safe_write, "__metaclass__": type}
    return {"__builtins__": safe, "__name__": TEXT_MODULE, **guards}


def _described(error: BaseException) -> dict[str, Any]:
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
