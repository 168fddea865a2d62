"""The session of a recorder in its record: how it begins, its signs of life, and how it ends."""

from __future__ import annotations

import builtins
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rewardkit.record.batch_rows import storable
from rewardkit.record.place import ConnectionT, RecordPlace
from rewardkit.record.run_end import STOPPED, error_text
from rewardkit.record.store import RecordConnection, transaction
from rewardkit.record.writer import AwaitedError, Job


@dataclass(slots=True)
class OwnSession:
    """The session of a recorder. It does not hold the recorder, which ends when nobody else does."""

    path: RecordPlace
    rank: int  # The process's rank
    purpose: str  # What it records for, ``"run"`` or ``"rescore"``
    about: Mapping[str, Any]  # The run's configuration and seeds
    hide: Callable[[str], str]  # Takes secrets out of a text
    make_after: float = 0.0  # Until when it makes no record, by the monotonic clock: another process is to do so
    began: float = field(default_factory=time.time)
    number: int = 0  # Its number in the record; 0 before it has one
    is_over: bool = False  # Whether its end was handed over

    @property
    def about_text(self) -> str:
        """What is recorded of the run's configuration."""
        return storable(self.hide(json_text(self.about)))

    def open(self, connect: Callable[[], ConnectionT]) -> ConnectionT:
        """Return a connection to the record that has this session; AwaitedError before rank 0 has made it."""
        if time.monotonic() < self.make_after and not self.path.exists():
            raise AwaitedError(f"{self.path}: rank 0 has not made it yet")
        connection = connect()
        self.make_after = 0.0
        try:
            query = connection.execute("SELECT 1 FROM session WHERE id = ? AND began = ?", (self.number, self.began))
            if query.fetchone() is None:
                row = {
                    "rank": self.rank, "purpose": self.purpose, "began": self.began, "seen": time.time(),
                    "about": self.about_text,
                }  # fmt: skip
                with transaction(connection):
                    self.number = connection.insert("session", row)
        except BaseException:
            connection.close()
            raise
        return connection

    def give_sign(self, connection: RecordConnection) -> None:
        """Note that a recorder is there that has had nothing to write for a while."""
        if not self.is_over:
            connection.execute("UPDATE session SET seen = ? WHERE id = ?", (time.time(), self.number))

    def write_end(self, connection: RecordConnection) -> None:
        """Note that nothing more is recorded."""
        now = time.time()
        connection.execute("UPDATE session SET ended = ?, seen = ? WHERE id = ?", (now, now, self.number))

    def last_jobs(self) -> Iterator[Job]:
        """Yield what is left to write for a recorder that nobody has closed: the error that ended the program, the end.

        The interpreter keeps the error that it printed last; in a session that goes on after errors it says nothing.
        """
        if self.is_over or not self.number:
            return
        is_interactive = hasattr(sys, "ps1") or hasattr(builtins, "__IPYTHON__")
        if not is_interactive and (reason := error_text(getattr(sys, "last_value", None))):
            body = json.dumps({"session": self.number, "error": self.hide(reason)})
            row = {"time": time.time(), "step": None, "kind": STOPPED, "body": body}
            yield lambda connection: connection.insert("event", row)
        yield self.write_end


def json_text(value: object) -> str:
    """Return any value as JSON; what JSON has not as Python writes it."""
    try:
        return json.dumps(value, default=repr)
    except (TypeError, ValueError, RecursionError):  # keys that are not text, or a value that holds itself
        return json.dumps({"repr": repr(value)})
