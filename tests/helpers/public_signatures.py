"""The signatures of all public callables, as lines, and what a change of them must say in the CHANGELOG.

``tests/helpers/public_signatures.txt`` has those of the last release; ``python tests/helpers/public_signatures.py``
writes it when a release is made.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator, Mapping
from enum import EnumType
from pathlib import Path
from typing import Any

MODULES = (
    *("rewardkit", "rewardkit.advantages", "rewardkit.changing", "rewardkit.commands", "rewardkit.credit"),
    *("rewardkit.extending", "rewardkit.health", "rewardkit.moving", "rewardkit.rows", "rewardkit.serving"),
    *("rewardkit.statistics", "rewardkit.testing", "sandbox", "trainer_adapter"),
)
RELEASED = Path(__file__).with_suffix(".txt")

Signatures = Mapping[str, Mapping[str, str]]  # By the callable's path, its parameters with kind, type and default


def signatures() -> dict[str, dict[str, str]]:
    """Return the parameters of every public function, class and method, by path such as ``rewardkit.Runtime.score``."""
    return {path: _parameters(value) for module in MODULES for path, value in _callables(module)}


def _callables(module: str) -> Iterator[tuple[str, Any]]:
    loaded = importlib.import_module(module)
    for name in loaded.__all__:
        value = getattr(loaded, name)
        if callable(value) and not isinstance(value, EnumType):
            yield f"{module}.{name}", value
        if inspect.isclass(value):
            for attribute, method in vars(value).items():
                if not attribute.startswith("_") and callable(inspect.unwrap(getattr(method, "__func__", method))):
                    yield f"{module}.{name}.{attribute}", getattr(value, attribute)


def _parameters(value: Any) -> dict[str, str]:
    try:
        parameters = inspect.signature(value).parameters
    except (TypeError, ValueError):
        return {}  # an exception, an enumeration or an alias, which is called as its base is
    hidden = ("_", "self", "cls")
    return {name: _described(parameter) for name, parameter in parameters.items() if not name.startswith(hidden)}


def _described(parameter: inspect.Parameter) -> str:
    """Return kind, annotation and default of a parameter; a default that is no plain value by its type alone."""
    default = parameter.default
    is_plain = isinstance(default, str | int | float | bool | tuple | None)
    kind = parameter.kind.name.lower().removeprefix("var_")
    written = parameter.annotation if isinstance(parameter.annotation, str) else ""  # another prints as libraries do
    shown = "" if default is parameter.empty else f"= {default!r}" if is_plain else f"= a {type(default).__name__}"
    return " ".join(part for part in (kind, " ".join(written.split()), shown) if part)


def to_text(all_signatures: Signatures) -> str:
    """Return signatures as text, a callable a block."""
    return "".join(
        f"{path}\n" + "".join(f"    {name}: {described}\n" for name, described in parameters.items())
        for path, parameters in sorted(all_signatures.items())
    )


def from_text(text: str) -> dict[str, dict[str, str]]:
    """Return what :func:`to_text` wrote."""
    read: dict[str, dict[str, str]] = {}
    for line in text.splitlines():
        if not line.startswith(" "):
            parameters = read.setdefault(line, {})
        else:
            name, _, described = line.strip().partition(": ")
            parameters[name] = described
    return read


def changes(before: Signatures, after: Signatures) -> list[tuple[str, str]]:
    """Return what differs: pairs of a callable's path and a parameter, ``""`` where it came or went as a whole."""
    pairs = [(path, "") for path in sorted(before.keys() ^ after.keys())]
    for path in sorted(before.keys() & after.keys()):
        names = sorted({*before[path], *after[path]})
        pairs += [(path, name) for name in names if before[path].get(name) != after[path].get(name)]
        if not pairs or pairs[-1][0] != path:
            shared = [[name for name in side[path] if name in before[path]] for side in (before, after)]
            pairs += [(path, "")] if shared[0] != shared[1] else []  # another order, for calls by position
    return pairs


def untold(differences: list[tuple[str, str]], changelog: str) -> list[str]:
    """Return the differences of which no line under "Unreleased" names the callable and the parameter."""
    lines = changelog.partition("## [Unreleased]")[2].partition("\n## [")[0].splitlines()
    words = [set(re.findall(r"\w+", line)) for line in lines if line.startswith("- ")]
    return [
        f"{path}{f': {name}' if name else ''}"
        for path, name in differences
        if not any({path.rpartition(".")[2], *([name] if name else [])} <= own for own in words)
    ]


if __name__ == "__main__":
    RELEASED.write_text(to_text(signatures()), encoding="utf-8")
