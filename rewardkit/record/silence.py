"""A connection to a server whose every wait has an end, also where the server freezes or the network loses messages.

*Covered*: a server that is stopped, a way to it that takes words and brings none back, an answer that was lost.
*Not covered*: a server that works on a statement; that may take as long as it likes, up to :data:`LONGEST_S`.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Generator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import psycopg

SILENT_S = 20.0
"""Seconds without a word of the server after which it is asked, by another connection, whether it works on it."""
CONNECT_S = 10  # Seconds to wait for a server that is connected to, unless the address has a `connect_timeout`
LONGEST_S = 3600.0  # Seconds that one answer may take, whatever the server says
_IDLE = ("idle", "idle in transaction", "idle in transaction (aborted)")
_WORKS_ON = "SELECT state, wait_event FROM pg_stat_activity WHERE pid = %s"


def connect(settings: Mapping[str, Any]) -> psycopg.Connection[Any]:
    """Return a connection that commits each statement at once, and closes where the server is silent for too long."""
    session = _watched_type().connect(autocommit=True, **settings)
    row = session.execute("SELECT pg_backend_pid()").fetchone()  # a pooler in between tells a number of its own
    session.goes_on = functools.partial(_works, settings, 0 if row is None else row[0])
    return session


def _works(settings: Mapping[str, Any], process: int) -> bool:
    """Return whether the server's process works on its statement; ``True`` also where the server refuses to tell."""
    import psycopg

    try:
        with _watched_type().connect(autocommit=True, **{**settings, "connect_timeout": CONNECT_S}) as other:
            other.silent_s = CONNECT_S
            row = other.execute(_WORKS_ON, (process,)).fetchone()
    except psycopg.Error as error:
        return error.sqlstate is not None  # it lives, and tells no more, for example where connections are too many
    if row is None:
        return False
    state, wait_event = row
    return state not in _IDLE and wait_event != "ClientRead"


@functools.cache
def _watched_type() -> Any:
    """Return the class of connections that are closed after too long a silence; psycopg is imported for it."""
    import psycopg

    class WatchedConnection(psycopg.Connection[Any]):  # type: ignore[misc]  # types of psycopg are not asked
        """A connection that is closed where nothing is heard for too long."""

        silent_s: float | None = None  # None for SILENT_S
        goes_on: Callable[[], bool] | None = None
        """Tells whether the server still works on a statement; ``None`` where it need not."""

        def wait(self, gen: Generator[Any, Any, Any], *arguments: Any, **options: Any) -> Any:
            """Wait for an answer."""
            return super().wait(self._watch(gen), *arguments, **options)

        def _watch(self, gen: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
            """Run ``gen``; where the server is silent for too long, close the connection and raise OperationalError."""
            start = last_sign = time.monotonic()
            try:
                wait = next(gen)
                while True:
                    ready = yield wait
                    now = time.monotonic()
                    if ready:
                        last_sign = now
                    elif now - last_sign > (SILENT_S if self.silent_s is None else self.silent_s):
                        if self.goes_on is None or now - start > LONGEST_S or not self.goes_on():
                            self.close()
                            raise psycopg.OperationalError(f"the server has said nothing for {now - last_sign:.0f} s")
                        last_sign = time.monotonic()
                    wait = gen.send(ready)
            except StopIteration as end:
                return end.value

    return WatchedConnection
