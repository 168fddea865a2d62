"""A Python that takes its time to start: what jails are started with, so that their start outlasts any deadline."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

_PYTHON = sys.executable
DEADLINE_S = 0.3
"""A first deadline: its longest multiple in ``in_time`` is still less than a jail may take to start."""


def slow_python(folder: Path, deadline_s: float) -> str:
    """Make one that starts after a deadline of so many seconds, and give its path."""
    script = folder / f"python-{deadline_s:g}"
    script.write_text(f'#!/bin/sh\nsleep {1.3 * deadline_s}\nexec {_PYTHON} "$@"\n')
    script.chmod(0o700)
    return str(script)


class SlowStart:
    """Arrives in a worker as ``None``, and makes its jails start with such a Python."""

    def __init__(self, python: str) -> None:
        self._python = python

    def __reduce__(self) -> tuple[Any, ...]:
        return setattr, (sys, "executable", self._python)
