"""What a gated text may name, for the gate outside and the guards in the jail: modules, builtins, attributes.

The client sends this module into the jail as compiled code, so it imports the standard library only.
"""

from __future__ import annotations

import builtins
import importlib
from types import ModuleType

FILE_NAME = "<text>"  # what the text's frames are called
TEXT_MODULE = "text"  # the module that classes of the text say they are of

MODULES = frozenset(
    {
        "abc", "ast", "bisect", "collections", "collections.abc", "contextlib", "copy", "dataclasses", "datetime",
        "decimal", "difflib", "enum", "fractions", "functools", "heapq", "itertools", "json", "math", "operator", "re",
        "statistics", "string", "textwrap", "typing", "unicodedata",
    }
)  # fmt: skip
"""Modules that a text may import; see :func:`public_names`."""

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

GUARDED_BUILTINS = frozenset({"__import__", "getattr", "hasattr", "print", "setattr", "type"})  # a text has ours

_ONE_WAY = (
    "abs bool bytes call ceil complex contains delitem enter eq exit float floor format ge getitem gt hash index int "
    "invert iter le len lt missing ne neg next pos repr reversed round setitem str trunc"
)
_BOTH_WAYS = "add and divmod floordiv lshift matmul mod mul or pow rshift sub truediv xor"
OPERATORS = frozenset(
    [f"__{name}__" for name in _ONE_WAY.split()]
    + [f"__{side}{name}__" for name in _BOTH_WAYS.split() for side in ("", "i", "r")]
)
"""Methods that a class of a text may define, and whoever has such an object may name: what operators call anyway."""

INITIALISERS = frozenset({"__init__", "__post_init__"})
NAMING = frozenset({"__name__", "__qualname__", "__doc__"})
TUPLE_NAMES = frozenset({"_asdict", "_fields", "_field_defaults", "_make", "_replace"})  # of named tuples

INNER_NAMES = frozenset(
    {
        "tb_frame", "tb_next", "f_back", "f_builtins", "f_code", "f_generator", "f_globals", "f_locals", "f_trace",
        "co_code", "gi_frame", "gi_code", "gi_yieldfrom", "cr_await", "cr_frame", "cr_code", "cr_origin",
        "ag_await", "ag_frame", "ag_code",
    }
)  # fmt: skip
"""Attributes that lead from an object to the interpreter's insides, without an underscore to tell them by."""

_ONLY = {
    "abc": "ABC abstractmethod",
    "ast": "literal_eval",
    "contextlib": "contextmanager nullcontext suppress",
    "copy": "copy deepcopy",
    "dataclasses": "asdict astuple dataclass field fields is_dataclass replace",
    "enum": "Enum Flag IntEnum IntFlag StrEnum auto unique",
    "functools": "cache cached_property cmp_to_key lru_cache partial reduce total_ordering update_wrapper wraps",
}
"""Names of modules of which a text may take these alone.

Not among them: what evaluates annotations (``functools.singledispatch``, ``typing.get_type_hints``), makes a class with
names that are data (``dataclasses.make_dataclass``), or hands out a metaclass, a frame or a traceback.
"""
_HIDDEN = {
    "string": {"Formatter"},
    "typing": {
        "ForwardRef", "evaluate_forward_ref", "get_args", "get_origin", "get_overloads", "get_protocol_members",
        "get_type_hints", "is_protocol", "is_typeddict",
    },
}  # fmt: skip


def public_names(module: str) -> frozenset[str]:
    """Return the names that a text may take from a module: the public ones that are not modules themselves."""
    if module in _ONLY:
        return frozenset(_ONLY[module].split())
    loaded = importlib.import_module(module)
    listed = getattr(loaded, "__all__", None) or [name for name in vars(loaded) if not name.startswith("_")]
    names = {name for name in listed if not isinstance(getattr(loaded, name), ModuleType)}
    return frozenset(names - _HIDDEN.get(module, set()))
