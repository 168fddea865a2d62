"""The numbers of several server processes: each writes its own into a file, and whoever is asked adds them up."""

from __future__ import annotations

import json
import os
from pathlib import Path

from rewardkit.serving.metrics import Counts

_ENDING = ".json"


class SharedCounts:
    """The numbers of this process, the ``number``-th, beside those of the others, in a folder that all of them have."""

    def __init__(self, folder: str, number: int) -> None:
        self._path = Path(folder, f"{number}{_ENDING}")
        self._written = ""

    def publish(self, counts: Counts) -> None:
        """Let the others see the numbers of this process."""
        text = json.dumps(counts.as_json())
        if text != self._written:
            _write(self._path, text)
            self._written = text

    def with_others(self, own: Counts) -> Counts:
        """Return the sum of this process's numbers and those that the others have published."""
        total = Counts()
        total.add_json(own.as_json())
        for path in self._path.parent.glob(f"*{_ENDING}"):
            if path != self._path:
                total.add_json(json.loads(path.read_text()))
        return total


def bury(folder: str, number: int) -> None:
    """Let the counters of a process that has ended stand, without the rows that were inside."""
    path = Path(folder, f"{number}{_ENDING}")
    if path.exists():
        _write(path, json.dumps({**json.loads(path.read_text()), "rows": [0, 0]}))


def _write(path: Path, text: str) -> None:
    """Write a file so that nobody reads a half of it."""
    beside = path.with_suffix(".new")
    beside.write_text(text)
    os.replace(beside, path)
