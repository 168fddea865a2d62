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
from builtin_rewards.judge.errors import JudgeSetupError, is_number

_T = TypeVar("_T")

_log = logging.getLogger("rewardkit")

_LAYOUT = Layout(
    "judge cache",
    "JudgeCache(path=...)",
    application_id=0x726B6A63,  # "rkjc"
    version=2,
    schema=("CREATE TABLE replies (key TEXT PRIMARY KEY, body TEXT NOT NULL)",),
    readable=True,
)
_BUSY_S = 0.25
"""An event loop waits for another process no longer than this."""
_LEFT_ALONE_S = 30.0
"""A cache that broke is not asked again for this long, for each try may take a while."""


class CacheStats(NamedTuple):
    """How a cache stands.

    Attributes:
        entries: Replies kept; ``None`` if the file cannot be read.
        hits: Replies that this process found.
        misses: Replies that this process did not find.
    """

    entries: int | None
    hits: int
    misses: int


class JudgeCache:
    """Replies on disk, in one SQLite file that all processes of a machine may share.

    It pickles as its settings. ``get`` and ``put`` block for a fraction of a millisecond on a local disk. They may be
    called from any thread, so ``await asyncio.to_thread(cache.get, key)`` serves where the disk is slow.

    The file is made readable by its owner alone, for completions may be private. A file of another format is refused,
    never changed. One that can only be read is read, and nothing is kept in it.

    Args:
        path: The file. It and its folder are made if there are none.
        max_bytes: The size of the file from which on no further reply is kept.

    Raises:
        JudgeSetupError: The path is a folder, or a file that is no judge cache; a bound is no bound.
    """

    def __init__(self, path: str | os.PathLike[str] = "judge.db", max_bytes: int = 1_000_000_000) -> None:
        if not is_number(max_bytes, whole=True) or max_bytes < 1:
            raise JudgeSetupError(f"JudgeCache(max_bytes={max_bytes!r}): expected a whole number of bytes, at least 1")
        self._database = Database(absolute(path, _LAYOUT.setting), _LAYOUT, busy_s=_BUSY_S)
        self._database.found()
        self.__setstate__((self._database, max_bytes))

    def __getstate__(self) -> tuple[Any, ...]:
        return self._database, self.max_bytes

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self._database, self.max_bytes = state
        self._hits = self._misses = 0
        self._left_alone_until = 0.0
        self._told: set[str] = set()
        _entry()  # made here, for the first reply that is read may be read on an event loop

    def __repr__(self) -> str:
        return f"JudgeCache({str(self.path)!r}, max_bytes={self.max_bytes})"

    @property
    def path(self) -> Path:
        """The file."""
        return self._database.path

    def get(self, key: str) -> Reply | None:
        """The reply kept under the key, with ``requests=0`` for none was sent; ``None`` if there is none."""
        rows = self._tried(lambda: self._database.rows("SELECT body FROM replies WHERE key = ?", (key,)))
        reply = _read(rows[0][0]) if rows else None
        self._hits += reply is not None
        self._misses += reply is None
        return reply

    def put(self, key: str, reply: Reply) -> bool:
        """Keep a reply, and say whether it was kept.

        Only a whole answer is: none that refuses, is empty, or ended by anything but ``"stop"``. Where there is one
        under the key already that can be read, that one stays, so that all readers see the same.
        """
        if reply.refusal is not None or reply.finish_reason != "stop" or not reply.text or self._database.is_read_only:
            return False
        return bool(self._tried(lambda: self._put(key, _written(reply))))

    def _put(self, key: str, body: str) -> bool:
        if self.path.stat().st_size > self.max_bytes:
            self._tell("the judge cache %s has its max_bytes=%d: no further reply is kept", self.path, self.max_bytes)
            return False
        with self._database.transaction() as connection:
            rows = connection.execute("SELECT body FROM replies WHERE key = ?", (key,)).fetchall()
            if rows and _read(rows[0][0]) is not None:
                return False
            connection.execute("INSERT OR REPLACE INTO replies VALUES (?, ?)", (key, body))
        return True

    def stats(self) -> CacheStats:
        """How it stands: what the file holds, and what this process found in it."""
        rows = self._tried(lambda: self._database.rows("SELECT count(*) FROM replies"))
        return CacheStats(rows[0][0] if rows else None, self._hits, self._misses)

    def close(self) -> None:
        """Close this process's connection; the next use opens another."""
        self._database.close()

    def _tried(self, use: Callable[[], _T]) -> _T | None:
        """What the use of the file gives; ``None`` if the file cannot be used, now or a moment ago."""
        if time.monotonic() < self._left_alone_until:
            return None
        try:
            return use()
        except (sqlite3.Error, OSError) as error:
            self._left_alone_until = time.monotonic() + _LEFT_ALONE_S
            self._tell(
                "the judge cache %s cannot be used (%s): judgements go on without it, it is tried again every %.0f s; "
                "if the file is broken, name another and keep this: its replies were paid for",
                self.path,
                error,
                _LEFT_ALONE_S,
            )
            return None

    def _tell(self, words: str, *values: Any) -> None:
        if words not in self._told:
            self._told.add(words)
            _log.warning(words, *values)


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
