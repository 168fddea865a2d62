"""Libraries that only some rewards need: imported at their first use, with a message that says how to get them."""

from __future__ import annotations

import functools
import importlib
from typing import Any


@functools.cache
def extra(module: str) -> Any:
    """Return a module of the ``rewards`` extra; the ImportError of one that is missing says how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError as missing:
        raise ImportError(f"this reward needs {module}: pip install {module}") from missing
