"""What a record keeps of a reward's version: where it was defined, its source, its settings."""

from __future__ import annotations

import functools
import inspect
import io
import itertools
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, fields, is_dataclass
from types import ModuleType
from typing import Any, NamedTuple

from rewardkit.declare.bounds import finite
from rewardkit.declare.callables import code_of, without_partials
from rewardkit.declare.compose import Composable
from rewardkit.declare.decorator import Reward
from rewardkit.errors import RewardError
from rewardkit.function import described
from rewardkit.run_code import FromText
from rewardkit.transport import FILE_MODULES, importable

HIDDEN = "***"  # What stands in for a setting that is a secret by its name
_SECRET = re.compile(r"key|token|secret|passw|credential", re.IGNORECASE)


class Description(NamedTuple):
    """One version of a reward.

    Attributes:
        reference: Where a fresh process finds it, as ``/folder/file.py:name`` or ``module:name``; ``None`` for what a
            script, a notebook or a function defines.
        settings: JSON of its kind, its options and its own settings. A setting whose name says that it is a key is not
            in it.
    """

    digits: str  # Its fingerprint, 12 hexadecimal digits
    reference: str | None
    source: str | None  # The source of its function, or of each leaf's; `None` where the source is not known
    module: str | None  # The whole text of the file that the reference names; `None` without one
    settings: str


def describe(reward: Composable) -> Description:
    """Return the description of a reward as it is now, for the record."""
    rules = (_same_as(reward), _made_alike(reward))  # the object itself first: what is equal may stand anywhere
    location = next(itertools.chain.from_iterable(_references(reward, leads) for leads in rules), None)
    reference, module = (None, None) if location is None else location
    sources = dict.fromkeys(filter(None, map(_source, reward.leaves)))
    return Description(reward.version, reference, "\n\n".join(sources) or None, module, json.dumps(_settings(reward)))


def _references(reward: Composable, leads: Callable[[Any], bool]) -> Iterator[tuple[str, str | None]]:
    """Yield the references whose values ``leads`` accepts, each with its file's text, references to files first."""
    modules = [module for module in list(sys.modules.values()) if isinstance(module, ModuleType)]
    modules.sort(key=lambda module: not module.__name__.startswith(FILE_MODULES))
    for module in modules:
        if module.__name__ == "__main__":
            continue  # a fresh process that imported it would run the script
        name = next((name for name, value in vars(module).copy().items() if leads(value)), None)
        if name is None:
            continue
        file = getattr(module, "__file__", None)
        if module.__name__.startswith(FILE_MODULES):
            yield f"{file}:{name}", _text(module, reward)
        elif importable(module.__name__):
            yield f"{module.__name__}:{name}", _text(module, reward)
        elif file is not None:
            yield f"{file}:{name}", _text(module, reward)


def _same_as(reward: Composable) -> Callable[[Any], bool]:
    """Return a test of whether a value is the reward, or the reward under another name or with other options."""
    function = reward.spec.function if isinstance(reward, Reward) else None
    inner = None if isinstance(reward, Reward) else getattr(reward, "inner", None)  # a composition's own name
    objects = {id(part): part for part in (reward, function, inner) if part is not None}  # held: their ids stay theirs

    def is_same(value: Any) -> bool:
        # isinstance() would ask the value for its class, which other packages' deprecated names answer with a warning.
        kind = type(value)
        return id(value) in objects or (
            function is not None and issubclass(kind, Reward) and value.spec.function is function
        )

    return is_same


def _made_alike(reward: Composable) -> Callable[[Any], bool]:
    """Return a test of whether a value becomes the very version of a reward once it has the reward's options.

    So it is with a reward whose settings are its own: under another name it has a function that is equal, but another.
    """

    def is_alike(value: Any) -> bool:
        if not isinstance(reward, Reward) or not issubclass(type(value), Reward) or value.spec.kind != reward.spec.kind:
            return False
        own, other = (without_partials(each.spec.function) for each in (reward, value))
        if type(own) is not type(other) or _code(own) is not _code(other):
            return False
        try:
            return bool(value.with_options(**_options(reward)).version == reward.version)
        except RewardError:  # options that this reward cannot have
            return False

    return is_alike


def _code(function: Any) -> Any:
    """Return the code of a function or object, which all closures of one ``def`` share."""
    innermost = code_of(function)
    return getattr(innermost, "__code__", innermost)


def _options(reward: Reward[..., Any]) -> dict[str, Any]:
    """Return the options of a reward by name."""
    return {field.name: getattr(reward.options, field.name) for field in fields(reward.options)}


def _text(module: ModuleType, reward: Composable) -> str | None:
    """Return a module's text as the run of the reward has it."""
    loader, file = getattr(getattr(module, "__spec__", None), "loader", None), getattr(module, "__file__", None)
    if isinstance(loader, FromText):
        data: bytes | None = loader.text
    else:
        data = None if file is None else reward.leaves[0].spec.fingerprint.data(file)
    try:
        return None if data is None else io.TextIOWrapper(io.BytesIO(data), encoding="utf-8").read()
    except UnicodeDecodeError:
        return None


def _source(leaf: Reward[..., Any]) -> str | None:
    """Return the source of a reward's function or object; ``None`` where it is not known."""
    function = inspect.unwrap(without_partials(leaf.spec.function))
    source_text = described(function).source_text
    if source_text is not None:
        return source_text
    try:
        return inspect.getsource(function if inspect.isroutine(function) else type(function))
    except (OSError, TypeError):
        return None


def _settings(reward: Composable) -> dict[str, Any]:
    """Return the settings as JSON data; the range is there where it is finite, else the parts that declare none."""
    missing = list(reward.parts_without_range)
    own_range = {"score_range": finite(reward.score_range), "parts_without_range": missing}
    if not isinstance(reward, Reward):
        return {
            "composition": reward.name,
            **own_range,
            "parts": {leaf.name: _settings(leaf) for leaf in reward.leaves},
        }
    return {
        **({} if reward.server is None else {"server": reward.server}),
        "kind": str(reward.spec.kind),
        **own_range,
        "options": plain(asdict(reward.options)),
        "set": plain(dict(_preset_values(reward.spec.function))),
    }


def _preset_values(function: Any) -> Iterator[tuple[str, Any]]:
    """Yield the values that a function was made with, by name: arguments of its partials, fields of its object."""
    while isinstance(function, functools.partial):
        yield from function.keywords.items()
        function = function.func
    if is_dataclass(function) and not isinstance(function, type):
        yield from ((field.name, getattr(function, field.name)) for field in fields(function))


def plain(value: Any, name: str = "") -> Any:
    """Return a setting as JSON can hold it; a text whose name says that it is a secret is hidden."""
    if _SECRET.search(name) and isinstance(value, str) and value:
        return HIDDEN
    if isinstance(value, Mapping):
        return {str(key): plain(inner, str(key)) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(inner, name) for inner in value]
    return value if value is None or isinstance(value, bool | int | float | str) else repr(value)[:200]
