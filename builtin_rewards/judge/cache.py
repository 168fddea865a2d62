"""Replies kept on disk, so that no question is paid for twice: shared between processes, runs and judges.

Owns the key and what is kept of a reply. When it is asked, and that nothing but a good reply is offered to it, is the
judge's business. A cache that breaks in use breaks no judgement: it says so once and answers as an empty one.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sqlite3
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from builtin_rewards.judge.database import Database, Layout, absolute
from builtin_rewards.judge.endpoint.values import Reply, Request, Token, Usage
from builtin_rewards.judge.errors import JudgeSetupError

_T = TypeVar("_T")

_log = logging.getLogger("rewardkit")

_LAYOUT = Layout(
    "judge cache",
    "JudgeCache(path=...)",
    application_id=0x726B6A63,  # "rkjc"
    version=1,
    schema=(
        "CREATE TABLE replies (key TEXT PRIMARY KEY, body TEXT NOT NULL, bytes INTEGER NOT NULL, used REAL NOT NULL)",
        "CREATE INDEX by_use ON replies (used)",
        "CREATE TABLE total (entries INTEGER NOT NULL, bytes INTEGER NOT NULL)",
        "INSERT INTO total VALUES (0, 0)",
        "CREATE TRIGGER put AFTER INSERT ON replies BEGIN "
        "UPDATE total SET entries = entries + 1, bytes = bytes + new.bytes; END",
        "CREATE TRIGGER dropped AFTER DELETE ON replies BEGIN "
        "UPDATE total SET entries = entries - 1, bytes = bytes - old.bytes; END",
    ),
    readable=True,
)
_ROW_BYTES = 200
"""What SQLite takes for one entry beside its body: the key twice, the numbers, the index."""
_BATCH = 32
"""Entries evicted at once, so that not every put evicts and none takes long."""
_TOUCH_S = 600.0
"""Reading an entry writes when it was used only if that is this long ago."""
_BUSY_S = 0.25
"""An event loop waits for another process no longer than this."""
_LEFT_ALONE_S = 30.0
"""A cache that broke is not asked again for this long, for each try may take a while."""


class CacheStats(NamedTuple):
    """How a cache stands.

    Attributes:
        entries: Replies kept; ``None`` if the file cannot be read.
        bytes: What they take of ``max_bytes``; ``None`` if the file cannot be read.
        hits: Replies that this process found.
        misses: Replies that this process did not find.
    """

    entries: int | None
    bytes: int | None
    hits: int
    misses: int


class JudgeCache:
    """Replies on disk, in one SQLite file that all processes of a machine may share.

    It pickles as its settings. ``get`` and ``put`` block for a fraction of a millisecond on a local disk, for tens of
    milliseconds where a reply has log-probabilities of hundreds of tokens. They may be called from any thread, so
    ``await asyncio.to_thread(cache.get, key)`` serves there and where the disk is slow.

    The file is made readable by its owner alone, for completions may be private. A file of another format is refused,
    never changed. One that can only be read is read, and nothing is kept in it.

    Args:
        path: The file. It and its folder are made if there are none.
        max_bytes: The bound on what replies take. Beyond it the least recently used are dropped; when an entry was
            used is known to ten minutes.
        clock: Seconds since the epoch; for tests.

    Raises:
        JudgeSetupError: The path is a folder, not writable, or a file that is no judge cache; a bound is no bound.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] = "judge.db",
        max_bytes: int = 1_000_000_000,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if isinstance(max_bytes, bool) or not isinstance(max_bytes, int) or max_bytes < 1:
            raise JudgeSetupError(f"JudgeCache(max_bytes={max_bytes!r}): expected a whole number of bytes, at least 1")
        self.max_bytes = max_bytes
        self._clock = clock
        self._database = Database(absolute(path, _LAYOUT.setting), _LAYOUT, busy_s=_BUSY_S)
        self._database.found()
        self._begin()

    def _begin(self) -> None:
        self._hits = self._misses = 0
        self._left_alone_until = 0.0
        self._told = False
        _entry()  # made here, for the first reply that is read may be read on an event loop

    def __getstate__(self) -> tuple[Any, ...]:
        return self._database, self.max_bytes, self._clock

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self._database, self.max_bytes, self._clock = state
        self._begin()

    def __repr__(self) -> str:
        return f"JudgeCache({str(self.path)!r}, max_bytes={self.max_bytes})"

    @property
    def path(self) -> Path:
        """The file."""
        return self._database.path

    def get(self, key: str) -> Reply | None:
        """The reply kept under the key, with ``requests=0`` for none was sent; ``None`` if there is none."""
        reply = self._tried(lambda: self._get(key))
        if reply is None:
            self._misses += 1
        else:
            self._hits += 1
        return reply

    def _get(self, key: str) -> Reply | None:
        rows = self._database.rows("SELECT body, used FROM replies WHERE key = ?", (key,))
        if not rows:
            return None
        ((body, used),) = rows
        reply = _read(body)
        now = self._clock()
        if self._database.is_read_only:
            return reply
        if reply is None:
            self._database.rows("DELETE FROM replies WHERE key = ?", (key,))
        elif abs(now - used) > _TOUCH_S:
            self._database.rows("UPDATE replies SET used = ? WHERE key = ?", (now, key))
        return reply

    def put(self, key: str, reply: Reply) -> bool:
        """Keep a reply, and say whether it was kept.

        Only a whole answer is: none that refuses, is empty, or ended by anything but ``"stop"``; none that alone is
        beyond ``max_bytes``. Where there is one under the key already, that one stays, so that all readers see the
        same.
        """
        if reply.refusal is not None or reply.finish_reason != "stop" or not reply.text:
            return False
        if self._database.is_read_only:
            return False
        body = _written(reply)
        size = len(body) + _ROW_BYTES
        return size <= self.max_bytes and bool(self._tried(lambda: self._put(key, body, size)))

    def _put(self, key: str, body: str, size: int) -> bool:
        with self._database.transaction() as connection:
            values = (key, body, size, self._clock())
            kept = connection.execute("INSERT OR IGNORE INTO replies VALUES (?, ?, ?, ?)", values).rowcount
            dropped = kept
            while dropped and connection.execute("SELECT bytes FROM total").fetchone()[0] > self.max_bytes:
                dropped = connection.execute(
                    "DELETE FROM replies WHERE key IN (SELECT key FROM replies WHERE key <> ? ORDER BY used LIMIT ?)",
                    (key, _BATCH),
                ).rowcount
        return bool(kept)

    def stats(self) -> CacheStats:
        """How it stands: what the file holds, and what this process found in it."""
        rows = self._tried(lambda: self._database.rows("SELECT entries, bytes FROM total"))
        entries, size = rows[0] if rows else (None, None)
        return CacheStats(entries, size, self._hits, self._misses)

    def close(self) -> None:
        """Close this process's connection; the next use opens another."""
        self._database.close()

    def _tried(self, use: Callable[[], _T]) -> _T | None:
        """What the use of the file gives; ``None`` if the file cannot be used, now or a moment ago."""
        if time.monotonic() < self._left_alone_until:
            return None
        try:
            return use()
        except sqlite3.Error as error:
            self._left_alone_until = time.monotonic() + _LEFT_ALONE_S
            if not self._told:
                self._told = True
                _log.warning(
                    "the judge cache %s cannot be used (%s): judgements go on without it, it is tried again every "
                    "%.0f s; if the file is broken, name another and keep this: its replies were paid for",
                    self.path,
                    error,
                    _LEFT_ALONE_S,
                )
            return None


def question_key(base_url: str | None, request: Request, prompt_version: str) -> str:
    """What tells one question from all others: 64 hexadecimal digits.

    The SHA-256 of canonical JSON over everything a reply may depend on: the server, the model, the messages, all
    options with the whole schema, which of several samples it is, and the version of the prompt.

    Raises:
        JudgeSetupError: A message or an option is no JSON.
    """
    parts = {
        "base_url": base_url,
        "model": request.model,
        "messages": [dict(message) for message in request.messages],
        "options": dict(request.options),
        "index": request.index,
        "prompt_version": prompt_version,
    }
    try:
        text = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    except (TypeError, ValueError) as error:
        raise JudgeSetupError(f"a request to be cached holds what JSON cannot ({error}); use plain values") from error
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _written(reply: Reply) -> str:
    parts = (reply.text, reply.model, reply.usage, reply.tokens)
    return json.dumps(parts, separators=(",", ":"), ensure_ascii=True)


def _read(body: Any) -> Reply | None:
    """The reply of an entry; ``None`` if it is none."""
    from pydantic import ValidationError

    try:
        text, model, usage, tokens = _entry().validate_python(json.loads(body))
    except (TypeError, ValueError, ValidationError):
        return None
    return Reply(text, model, usage=usage, tokens=tokens, requests=0)


@cache
def _entry() -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(tuple[str, str, Usage | None, tuple[Token, ...] | None])
