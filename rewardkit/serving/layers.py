"""How deep a body may be nested, and what becomes of a completion that is nested deeper."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

DEPTH = 32  # Layers of lists and objects in a body
ROW_DEPTH = DEPTH - 2  # Of one row, which stands in a list of the body


def is_deep(value: object, depth: int = DEPTH) -> bool:
    """Return whether lists and objects are nested deeper than ``depth`` layers."""
    layer: list[Any] = [value]
    for _ in range(depth + 1):
        layer = [container for container in layer if type(container) is dict or type(container) is list]
        if not layer:
            return False
        layer = [inner for outer in layer for inner in (outer.values() if type(outer) is dict else outer)]
    return True


def within(value: object, depth: int) -> object:
    """Return a value of which everything below ``depth`` layers is its JSON text, or a note where it has none."""
    if not isinstance(value, dict | list | tuple):
        return value
    if depth == 0:
        try:
            return json.dumps(value, ensure_ascii=False)
        except (TypeError, ValueError, RecursionError):
            return "nested too deep to be written"
    if isinstance(value, Mapping):
        return {key: within(inner, depth - 1) for key, inner in value.items()}
    return [within(inner, depth - 1) for inner in value]
