"""Libraries that only some rewards need, imported at their first use; the message of a missing one names the extra."""

from __future__ import annotations

import functools
import importlib
from typing import Any


@functools.cache
def extra(module: str) -> Any:
    """Return a module of the ``rewards`` extra; an ImportError names the extra."""
    try:
        return importlib.import_module(module)
    except ImportError as missing:
        raise ImportError(f"this reward needs {module}: pip install {module}") from missing
