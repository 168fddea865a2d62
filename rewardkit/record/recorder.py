"""What a run hands its scored batches to: a recorder, which writes them to the run's file in a thread of its own."""

from __future__ import annotations

import json
import os
import platform
import sqlite3
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path
from typing import Any

from rewardkit.compose import Composable
from rewardkit.errors import RecordError
from rewardkit.record.database import create, file_of, writing
from rewardkit.record.rows import BatchRows, rows_of
from rewardkit.record.writer import TEXTS_FROM, Texts, Writer, digest_of
from rewardkit.score_batch import ScoreBatch

PACKAGES = ("rewardkit", "numpy", "torch", "transformers", "trl", "datasets", "accelerate", "peft")
"""Packages whose versions a record notes, where they are installed."""


class Recorder:
    """Records scored batches in a run's file. Several processes may record in one file; each says its rank.

    Args:
        run: The run's folder, or its file.
        append: Whether the run may have a record already; without, one that has is refused.
        rank: This process's rank.
        about: What the run is: its configuration and seeds, as JSON can hold them. No keys or other secrets.

    Raises:
        RecordError: There is a record already and ``append`` is false, or none can be written there.
    """

    def __init__(
        self,
        run: str | os.PathLike[str],
        *,
        append: bool = False,
        rank: int = 0,
        about: Mapping[str, Any] | None = None,
    ) -> None:
        self.path = file_of(run)
        exists = self.path.exists()
        if exists and not append and rank == 0:
            raise RecordError(f"{self.path}: this run has a record; append to it (--append), or give another name")
        connection = writing(self.path) if exists else create(self.path)
        try:
            now = time.time()
            cursor = connection.execute(
                "INSERT INTO session (rank, began, seen, about) VALUES (?, ?, ?, ?)",
                (rank, now, now, json.dumps({**dict(about or {}), **machine()}, default=repr)),
            )
            self._session = cursor.lastrowid
        finally:
            connection.close()
        self._versions: dict[tuple[str, str], int] = {}
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="rewardkit-record-zlib")
        self._writer = Writer(lambda: writing(self.path), str(self.path))
        self.left_out = 0
        """Texts that were not recorded, for the disk was slower than the run."""

    def record(
        self,
        batch: ScoreBatch,
        *,
        step: int | None = None,
        epoch: float | None = None,
        split: str = "train",
        rewards: Mapping[str, Composable] | None = None,
        **layout: Any,
    ) -> None:
        """Hand over a scored batch; returns at once, unless the disk is far behind.

        Args:
            batch: The outcomes.
            step: Optimizer steps done.
            epoch: Passes over the data done.
            split: ``"train"`` or ``"eval"``.
            rewards: The rewards by name, for the source and settings of versions that are new.
            layout: The other arguments of :func:`~rewardkit.record.rows.rows_of`.
        """
        rows = rows_of(batch, **layout)
        described = {name: _described(one) for name, one in (rewards or {}).items()}
        lean = self._writer.waiting >= TEXTS_FROM
        if lean:
            self.left_out += len(rows.completions)
        where = step, epoch, split, time.time()
        self._writer.put(lambda connection: self._write(connection, rows, where, described, lean=lean))

    def metrics(self, step: int, values: Mapping[str, float], split: str = "train") -> None:
        """Hand over a step's metrics, under the trainer's names."""
        rows = [(split, name, step, value) for name, value in values.items() if isinstance(value, int | float)]
        self._writer.put(lambda connection: _insert(connection, "metric", rows, replace=True))

    def event(self, kind: str, body: Mapping[str, Any], step: int | None = None) -> None:
        """Hand over something that happened: a version that changed, an update refused, a flag of the health checks."""
        row = (None, time.time(), step, kind, json.dumps(dict(body), default=repr))
        self._writer.put(lambda connection: _insert(connection, "event", [row]))

    def flush(self, timeout_s: float = 60.0) -> bool:
        """Wait until all that was handed over is on the disk; ``False`` where it is not."""
        return self._writer.flush(timeout_s)

    def close(self) -> bool:
        """Write what was handed over and end; ``False`` where something was not written. A second call does nothing."""
        end = time.time()
        self._writer.put(
            lambda connection: _execute(
                connection, "UPDATE session SET ended = ?, seen = ? WHERE id = ?", (end, end, self._session)
            )
        )
        written = self._writer.close()
        self._pool.shutdown()
        return written

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _write(
        self,
        connection: sqlite3.Connection,
        rows: BatchRows,
        where: tuple[int | None, float | None, str, float],
        described: Mapping[str, tuple[str | None, str]],
        *,
        lean: bool,
    ) -> None:
        """Write one batch in the transaction that is open."""
        texts = Texts(connection, self._pool)
        step, epoch, split, scored = where
        versions = [
            self._version(connection, texts, name, digits, described.get(name), step)
            for name, digits in zip(rows.rewards, rows.versions, strict=True)
        ]
        batch = connection.execute(
            "INSERT INTO batch (session, step, epoch, split, scored, versions, weights, left_out)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (self._session, step, epoch, split, scored, json.dumps(versions), json.dumps(rows.weights),
             len(rows.completions) if lean else 0),
        ).lastrowid  # fmt: skip
        completions = [None] * len(rows.completions) if lean else texts.ids(rows.completions)
        (last,) = connection.execute("SELECT coalesce(max(id), 0) FROM completion").fetchone()
        ids = range(last + 1, last + 1 + len(completions))
        connection.executemany(
            "INSERT INTO completion VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            zip(
                ids, [batch] * len(ids), [epoch] * len(ids), self._prompts(connection, texts, rows), rows.groups,
                completions, rows.tokens, rows.truncated, rows.totals, rows.weighted, rows.advantages, rows.status,
                rows.scores, rows.seconds, strict=True,
            ),
        )  # fmt: skip
        traces = texts.ids([said.traceback for said in rows.said if said.traceback is not None])
        logs = texts.ids([said.logs for said in rows.said if said.logs is not None])
        trace, log = iter(traces), iter(logs)
        connection.executemany(
            "INSERT INTO said VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (
                    ids[said.place], versions[said.column], said.reason, said.metrics, said.cause, said.error,
                    None if said.traceback is None else next(trace), None if said.logs is None else next(log),
                    said.attempts, said.unanswered,
                )
                for said in rows.said
            ],
        )  # fmt: skip
        summaries = [(batch, version, *one) for version, one in zip(versions, rows.summaries, strict=True)]
        _insert(connection, "summary", summaries)
        _execute(connection, "UPDATE session SET seen = ? WHERE id = ?", (scored, self._session))

    def _prompts(self, connection: sqlite3.Connection, texts: Texts, rows: BatchRows) -> list[int]:
        """Return the ids of the completions' prompts, which are stored where they are new."""
        keys = [digest_of(f"{prompt}\x00{columns}") for prompt, columns in zip(rows.prompts, rows.columns, strict=True)]
        found: dict[int, int] = {}
        for key, prompt, columns in zip(keys, rows.prompts, rows.columns, strict=True):
            if key in found:
                continue
            known = connection.execute("SELECT id FROM prompt WHERE digest = ?", (key,)).fetchone()
            if known is None:
                parts = texts.ids([prompt, columns])
                known = (
                    connection.execute(
                        "INSERT INTO prompt (digest, prompt, columns) VALUES (?, ?, ?)", (key, *parts)
                    ).lastrowid,
                )
            found[key] = known[0]
        return [found[key] for key in keys]

    def _version(
        self,
        connection: sqlite3.Connection,
        texts: Texts,
        name: str,
        digits: str,
        described: tuple[str | None, str] | None,
        step: int | None,
    ) -> int:
        """Return the id of a reward's version, which is stored where it is new."""
        known = connection.execute("SELECT id FROM version WHERE reward = ? AND digits = ?", (name, digits)).fetchone()
        if known is not None:
            return int(known[0])
        source, settings = described or (None, "{}")
        (number,) = connection.execute("SELECT count(*) + 1 FROM version WHERE reward = ?", (name,)).fetchone()
        row = (name, digits, number, None if source is None else texts.ids([source])[0], settings, time.time(), step)
        columns = "reward, digits, number, source, settings, began, first_step"
        made = connection.execute(f"INSERT INTO version ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?)", row)  # noqa: S608
        return int(made.lastrowid or 0)


def machine() -> dict[str, Any]:
    """Return what a record notes of the machine and the versions of packages."""
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return {
        "python": platform.python_version(),
        "packages": versions,
        "machine": {"system": platform.platform(), "processors": os.cpu_count(), "host": platform.node()},
        "process": os.getpid(),
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]] if sys.argv else [],
    }


def _described(reward: Composable) -> tuple[str | None, str]:
    """Return a reward's source, where it is known, and its settings as JSON."""
    import inspect

    settings = {"form": repr(reward)}
    function = getattr(getattr(reward, "spec", None), "function", None)
    try:
        return inspect.getsource(inspect.unwrap(function)) if function is not None else None, json.dumps(settings)
    except (OSError, TypeError):
        return None, json.dumps(settings)


def _insert(
    connection: sqlite3.Connection, table: str, rows: Sequence[Sequence[Any]], *, replace: bool = False
) -> None:
    if rows:
        marks = ", ".join("?" * len(rows[0]))
        words = "INSERT OR REPLACE" if replace else "INSERT"
        connection.executemany(f"{words} INTO {table} VALUES ({marks})", rows)


def _execute(connection: sqlite3.Connection, words: str, values: Sequence[Any]) -> None:
    connection.execute(words, values)
