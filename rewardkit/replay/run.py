"""A recorded run, as its users open it: the record, and what can be done with it."""

from __future__ import annotations

import os

from rewardkit.record.reader import RecordReader


class Run(RecordReader):
    """A recorded run, read lazily: ``Run.open("runs/one")``. Reading does not disturb a process that is writing.

    A run belongs to the thread that opened it.
    """

    @classmethod
    def open(cls, run: str | os.PathLike[str]) -> Run:
        """Return the run of a folder or file.

        Raises:
            RecordError: It is missing, empty, not a record, or of a newer release.
        """
        return cls(run)
