"""Replies kept on disk, so that no question is paid for twice; a cache that breaks answers as an empty one."""

from __future__ import annotations

import functools
import hashlib
import json
import logging
import os
import sqlite3
import time
from dataclasses import asdict
from typing import Any

from builtin_rewards.endpoint.database import Database
from builtin_rewards.endpoint.errors import JudgeSetupError, is_number
from builtin_rewards.endpoint.messages import Reply, Request, Token, Usage

_log = logging.getLogger("rewardkit")
_warn_once = functools.cache(_log.warning)

_FULL = "SELECT 1 FROM pragma_page_count, pragma_page_size WHERE page_count * page_size > ?"
_BROKEN = (
    "the judge cache %s cannot be used (%s): judgements go on without it, it is tried again in %.0f s; "
    "if the file is broken, name another and keep this: its replies were paid for"
)
_LEFT_ALONE_S = 30.0  # a cache that broke is not asked again for this long, because each try may take a while


class JudgeCache(Database):
    """Replies on disk, in one SQLite file that all processes of a machine may share; JudgeSetupError for a wrong one.

    ``get`` and ``put`` block for a fraction of a millisecond on a local disk, and may be called from any thread. Only
    the owner can read the file, because completions may be private. A read-only file is read and never written.

    Args:
        path: The file. :meth:`set_up` or the first use makes it and its folder.
        max_bytes: The size at which the file takes no more replies.
    """

    setting = "JudgeCache(path=...)"
    application_id = 0x726B6A63  # "rkjc"
    version = 2
    schema = ("CREATE TABLE replies (key TEXT PRIMARY KEY, body TEXT NOT NULL)",)
    busy_s = 0.25  # an event loop waits for another process no longer than this
    readable = True

    def __init__(self, path: str | os.PathLike[str] = "judge.db", max_bytes: int = 1_000_000_000) -> None:
        if path is None or not is_number(max_bytes, whole=True) or max_bytes < 1:
            expected = "expected a path, and a whole number of bytes, at least 1"
            raise JudgeSetupError(f"JudgeCache(path={path!r}, max_bytes={max_bytes!r}): {expected}")
        super().__init__(path)
        self.max_bytes = max_bytes
        self._retry_at_s = 0.0

    def get(self, key: str) -> Reply | None:
        """Return the reply kept under a key, with ``requests=0``; ``None`` if no reply is kept."""
        rows = self._rows("SELECT body FROM replies WHERE key = ?", key)
        try:
            return _parse_reply(rows[0][0]) if rows else None
        except (TypeError, ValueError):  # the entry is broken
            return None

    def put(self, key: str, reply: Reply) -> None:
        """Keep a reply that is not empty, no refusal, and ended by ``"stop"``. The first reply under a key stays."""
        if reply.refusal is not None or reply.finish_reason != "stop" or not reply.text:
            return
        if self._rows(_FULL, self.max_bytes):
            _warn_once("the judge cache %s has its max_bytes=%d: nothing more is kept", self.path, self.max_bytes)
        elif not self.is_read_only:
            body = json.dumps((reply.text, reply.model, reply.usage, reply.tokens), separators=(",", ":"))
            self._rows("INSERT OR IGNORE INTO replies VALUES (?, ?)", key, body)

    def _rows(self, statement: str, *values: object) -> list[Any]:
        """Return the rows of a statement; none if the file cannot be used, now or a moment ago."""
        if time.monotonic() < self._retry_at_s:
            return []
        try:
            return self.rows(statement, values)
        except sqlite3.Error as error:
            self.close()
            self._retry_at_s = time.monotonic() + _LEFT_ALONE_S
            _log.warning(_BROKEN, self.path, error, _LEFT_ALONE_S)
            return []


def question_key(base_url: str | None, request: Request, prompt_version: str) -> str:
    """Return the SHA-256 of all that a reply may depend on; raise JudgeSetupError where some of it is not JSON."""
    parts = {"base_url": base_url, "prompt_version": prompt_version, **asdict(request)}
    try:
        text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise JudgeSetupError(f"a request to be cached holds what JSON cannot ({error}); use plain values") from error
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _parse_reply(body: str) -> Reply:
    text, model, usage, tokens = json.loads(body)
    if tokens is not None:
        tokens = tuple(Token(token, logprob, tuple(map(tuple, top))) for token, logprob, top in tokens)
    return Reply(text, model, usage=None if usage is None else Usage(*usage), tokens=tokens, requests=0)
