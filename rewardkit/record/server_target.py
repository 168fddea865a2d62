"""The database that a writer writes to: connected again after a loss, without writing anything twice."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from rewardkit.errors import RecordError
from rewardkit.record.address import RunAddress
from rewardkit.record.postgres_connection import ServerConnection, ServerError

LOCKED_S = 1.0  # Seconds that the server itself waits for another writer, before the thread looks whether it is to end


class ServerTarget:
    """The record's schema as its writer sees it: see :class:`~rewardkit.record.writer.WriteTarget`.

    Where the server goes away while a transaction ends, it is unknown whether it was kept. The server is asked for that
    by the transaction's number when it is back, before anything is written again. ``connect`` connects, in the thread
    that writes, and makes the tables anew where they are gone.
    """

    def __init__(self, connect: Callable[[], ServerConnection], run: RunAddress) -> None:
        self._connect, self._run = connect, run
        self._connection: ServerConnection | None = None
        self._ending: str | None = None

    def was_committed(self) -> bool:
        """Return whether the last, unconfirmed transaction was kept; RecordError while the server cannot tell."""
        if self._ending is None:
            return False
        status = self._ready().transaction_status(self._ending)
        if status == "in progress":
            raise ServerError("the server still ends a transaction of a connection that was lost", "55P03")
        self._ending = None
        return status == "committed"

    def begin(self) -> ServerConnection:
        self._ending = None
        connection = self._ready()
        connection.begin()
        return connection

    def commit(self) -> None:
        if self._connection is not None:
            self._ending = self._connection.number
            self._connection.commit()
            self._ending = None

    def undo(self, error: Exception) -> None:
        """Roll back a failed transaction; close the connection where that fails or the tables are gone."""
        connection = self._connection
        if connection is None:
            return
        connection.cache.clear()
        is_usable = not connection.is_lost and (not isinstance(error, ServerError) or error.is_lock)
        with contextlib.suppress(RecordError):
            if connection.in_transaction:
                connection.rollback()
                self._ending = None  # the server lives, and has not kept it
        if not is_usable:
            self._connection = None
            connection.close()

    def in_place(self) -> bool:
        """Return ``True``: the next write notices tables that were taken away."""
        return True

    def may_pass(self, error: Exception) -> bool:
        return error.may_pass if isinstance(error, ServerError) else isinstance(error, RecordError | OSError)

    def is_lock(self, error: Exception) -> bool:
        return isinstance(error, ServerError) and error.is_lock

    def explain(self, error: Exception) -> str:
        return self._run.redact(str(error)).removeprefix(f"{self._run}: ")

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _ready(self) -> ServerConnection:
        if self._connection is None:
            connection = self._connect()
            connection.wait_at_most(LOCKED_S)
            self._connection = connection
        return self._connection
