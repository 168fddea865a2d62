"""Libraries that only some rewards need, imported at their first use; the message of a missing one names the extra."""

from __future__ import annotations

import functools
import importlib
from typing import Any

# The packages that bring modules of another name.
_PACKAGES = {"jsonschema_specifications": "jsonschema", "referencing": "jsonschema", "rouge_score": "rouge-score"}


@functools.cache
def extra(module: str) -> Any:
    """Return a module of the ``rewards`` extra; an ImportError names the package that has it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = _PACKAGES.get(top := module.partition(".")[0], top)
        raise ImportError(f"this reward needs {module}: pip install {package}") from error
