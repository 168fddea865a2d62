"""The folder that is shown: one of runs, or a single run's."""

from __future__ import annotations

import os
from pathlib import Path

from rewardkit.record.database import FILE
from rewardkit.record.places import named_run, runs_in


class Folder:
    """Where the runs lie. It need not be there: the runs are seen as they begin.

    Args:
        path: A folder of runs, or a run's own.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def there(self) -> bool:
        """Whether there is such a folder."""
        return os.path.isdir(self.path)  # False, and no error, where this user may not look

    def names(self) -> list[str]:
        """Return the names of the runs.

        Raises:
            RecordError: The folder cannot be read.
        """
        if not self.there:
            return []
        own = self._own()
        return [*([own] if own else []), *(name for name in runs_in(self.path) if name != own)]

    def file(self, name: str) -> Path:
        """Return the record's file of a run, which need not be there.

        Raises:
            RecordError: It is no run's name, or leads out of the folder.
        """
        return (self.path if name == self._own() else named_run(name, self.path)) / FILE

    def _own(self) -> str | None:
        """Return the name of the run whose folder this is."""
        return (self.path.resolve().name or "run") if os.path.isfile(self.path / FILE) else None
