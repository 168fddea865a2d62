"""How functions of completions in other languages are called: what each language's runtime says, and who writes it.

The files besides the modules are texts for the jail: each is put beside a completion, or beside a data set's tests.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path


@cache
def runtime_text(name: str) -> str:
    """Return the text of a file of this directory."""
    return Path(__file__).with_name(name).read_text()
