"""What a run hands its scored batches to: a recorder, which writes them to the run's file in a thread of its own."""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import numbers
import operator
import os
import platform
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from rewardkit.declare.compose import Composable
from rewardkit.errors import RecordError
from rewardkit.record.batch_rows import DETAILS, BatchRows, CallDetails, rows_of, storable
from rewardkit.record.batch_tables import change_advantages, prompt_ids, prompt_texts, rewind
from rewardkit.record.description import Description, describe, plain
from rewardkit.record.number_blocks import block_of
from rewardkit.record.old_sums import OWN_SCORES
from rewardkit.record.own_session import OwnSession, json_text
from rewardkit.record.pictures.keeping import PictureKeeper
from rewardkit.record.place import RecordPlace
from rewardkit.record.places import place_of_record
from rewardkit.record.run_end import STOPPED, error_text
from rewardkit.record.secrets import Secrets
from rewardkit.record.sessions import is_blank, is_contested, process_start
from rewardkit.record.store import RecordConnection
from rewardkit.record.texts import Packed, Texts, alone, pack_all
from rewardkit.record.writer import SIGN_S, Job, Writer
from rewardkit.score_batch import ScoreBatch
from rewardkit.versions.own_version import own_version

PACKAGES = ("numpy", "torch", "transformers", "trl", "datasets", "accelerate", "peft")
"""Packages whose versions a record notes beside rewardkit's, where they are installed."""
RANK_S = 30.0
"""Seconds that a rank other than 0 leaves the making of the file to rank 0; its rows wait meanwhile, in memory."""
_log = logging.getLogger("rewardkit")


class _Moment(NamedTuple):
    """When a batch was scored."""

    step: int | None
    epoch: float | None
    split: str
    scored: float  # In seconds since 1970


class Recorder:
    """Records scored batches in a run's file. Several processes may record in one file; each says its rank.

    A fault of the disk does not stop the run, see :class:`~rewardkit.record.writer.Writer`, and no method raises for
    what it is handed: what cannot be recorded is logged and counted. A recorder belongs to the process that made it,
    and does nothing in a fork of it. The runtime or adapter that gets it closes it; a recorder in a ``with`` statement
    is closed by that statement alone, so that several runtimes can share it.

    Args:
        run: The run's folder, or its file, or the address of a run in a database,
            ``"postgresql://user@host/database?run=one"``.
        append: Whether the run may have a record already; without, one that has is refused.
        anew: Whether a record that is there already is moved aside, see :meth:`RecordPlace.move_aside`.
        rank: This process's rank. Only the first, 0, is refused where there is a record already.
        purpose: ``"run"``, or ``"rescore"`` where stored completions are scored again.
        about: The run's configuration and seeds, as JSON can hold them.
        env: The variables given to the rewards' workers; their values reach no record.
        picture_side: The longer side of a recorded picture in pixels, at most: larger ones are scaled. 0 keeps none.
        picture_bytes: Bytes of all pictures that this process records, at most.

    Raises:
        RecordError: There is a record already and ``append`` is false, or none can be written there.
    """

    def __init__(
        self,
        run: str | os.PathLike[str] | RecordPlace,
        *,
        append: bool = False,
        anew: bool = False,
        rank: int = 0,
        purpose: str = "run",
        about: Mapping[str, Any] | None = None,
        env: Mapping[str, str] | None = None,
        picture_side: int = 1024,
        picture_bytes: int = 1_000_000_000,
    ) -> None:
        self.path = place_of_record(run)
        self.rank = rank
        self._secrets = Secrets({**(env or {}), **self.path.secrets})
        about = {**plain(dict(about or {})), **machine(), OWN_SCORES: True, "sign_s": SIGN_S}
        self._own = OwnSession(self.path, rank, purpose, about, self._secrets.hide)
        self._waits = rank > 0  # a higher rank makes no file before rank 0 has looked
        self._held = False
        self._last_before = 0
        self._own.make_after = time.monotonic() + RANK_S if rank else 0.0
        self._described: dict[tuple[str, str], Description] = {}
        if rank == 0:
            has_record = self.path.exists() and not is_blank(self.path, _open_here())
            if has_record and anew:
                self.path.move_aside()
            elif has_record and not append:
                how = "append to it (--append; in Python Recorder(run, append=True)), or give another name"
                raise RecordError(f"{self.path}: this run has a record; {how}")
            with self.path.errors(), contextlib.closing(self._own.open(self.path.connect_to_write)) as connection:
                if not append and is_contested(connection, self._own.number, _open_here()):
                    connection.execute("DELETE FROM session WHERE id = ?", (self._own.number,))
                    raise RecordError(f"{self.path}: another recorder has begun there; close it, or give another name")
                (self._last_before,) = connection.execute("SELECT coalesce(max(id), 0) FROM batch").fetchone()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="rewardkit-record-zlib")
        self._writer = Writer(self.path.write_target(self._own.open), self.path, self._own.give_sign)
        put_picture = functools.partial(_put_picture, self._writer)
        self._pictures = PictureKeeper(picture_side, picture_bytes, put_picture)
        self.left_out = 0
        """Completions whose text was not recorded, because the disk was slower than the run."""
        self._finalizer = weakref.finalize(self, _end, self._writer, self._pool, self._pictures, self._own)
        with _made_lock:
            _MADE.add(self)

    @property
    def lost(self) -> int:
        """Completions that were handed over and never written; what is still waiting does not count."""
        return self._writer.lost

    @property
    def trouble(self) -> str | None:
        """Why nothing can be written at the moment; ``None`` while the file takes what it is given."""
        return self._writer.trouble

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
        """Hand over a scored batch; return at once, unless the disk is far behind.

        Args:
            batch: The outcomes.
            step: Optimizer steps done.
            epoch: Passes over the data done.
            split: ``"train"`` or ``"eval"``.
            rewards: The rewards by name, for the source and settings of versions that are new.
            layout: The other arguments of :func:`~rewardkit.record.batch_rows.rows_of`.
        """
        with self._counting_losses(len(batch.rollouts)):
            versions = {name: reward.version for name, reward in (rewards or {}).items()}
            rows = rows_of(batch, versions=versions, known_pictures=self._pictures.handled, **layout)
            for name, reward in (rewards or {}).items():
                if (name, versions[name]) not in self._described:
                    self._described[name, versions[name]] = describe(reward)
            count, text_bytes, number_bytes = len(rows.completions), rows.text_bytes, rows.number_bytes
            texts = None
            if self._writer.room_for(text_bytes):
                texts = self._start_packing(rows.completions)
            else:
                self.left_out += count
                text_bytes, rows = 0, rows.lean()
            self._waits = False
            moment = _Moment(_whole(step), None if epoch is None else float(epoch), split, time.time())
            job = functools.partial(self._write, rows=rows, moment=moment, texts=texts)
            self._writer.put(job, text_bytes, number_bytes, count)
            self._pictures.take(rows.pictures)

    @contextlib.contextmanager
    def _counting_losses(self, completions: int = 0) -> Iterator[None]:
        """Log and count what fails in the block, with its completions, and raise nothing: the run goes on."""
        try:
            yield
        except Exception as reason:
            _log.exception("%s: something could not be recorded", self.path)
            self._writer.drop(str(reason), completions)

    def _start_packing(self, texts: Sequence[str]) -> Callable[[], Packed]:
        """Start to compress texts in another thread; return a function that waits for the result."""
        try:
            return self._pool.submit(pack_all, texts).result
        except RuntimeError:  # the interpreter ends, and takes no more work beside it
            return functools.partial(pack_all, texts)

    def metrics(self, step: int, values: Mapping[str, object], split: str = "train") -> None:
        """Hand over a step's metrics, under the trainer's names; values that are not numbers are left out."""
        with self._counting_losses():
            number, rows = operator.index(step), []
            for name, value in values.items():
                if isinstance(value, numbers.Real) and not isinstance(value, bool):
                    with contextlib.suppress(OverflowError):  # a whole number beyond all floats
                        rows.append((split, storable(name), number, float(value)))
            self._writer.put(_with_lock(lambda connection: connection.change_all(_METRIC, rows)))

    def advantages(self, step: int | None, split: str, values: Sequence[float | None]) -> None:
        """Hand over the trainer's advantages of this process's last batch at a step; nothing if their count differs.

        Args:
            step: The step that the batch was recorded with.
            split: ``"train"`` or ``"eval"``.
            values: One a completion of the batch, in its order.
        """

        def write(connection: RecordConnection) -> None:
            """Store the advantages where the last batch at the step has as many completions."""
            query = "SELECT max(id) FROM batch WHERE session = ? AND step IS ? AND split = ?"
            (batch,) = connection.execute(query, (self._own.number, _whole(step), split)).fetchone()
            query = "SELECT id FROM completion WHERE batch = ? ORDER BY id"
            completions = connection.execute(query, (batch,)).fetchall()
            if len(completions) == len(values):
                rows = [
                    (None if value is None else float(value), row["id"])
                    for value, row in zip(values, completions, strict=True)
                ]
                connection.change_all("UPDATE completion SET advantage = ? WHERE id = ?", rows)
                change_advantages(connection, batch, [value for value, _ in rows])

        with self._counting_losses():
            self._writer.put(_with_lock(write), number_bytes=256 + 16 * len(values))

    def event(self, kind: str, body: Mapping[str, Any], step: int | None = None) -> None:
        """Hand over something that happened: a version that changed, a flag of the health checks."""
        with self._counting_losses():
            text = storable(self._secrets.hide(json_text(dict(body))))
            row = {"time": time.time(), "step": _whole(step), "kind": kind, "body": text}
            self._writer.put(_with_lock(lambda connection: connection.insert("event", row)))

    def add_about(self, about: Mapping[str, Any]) -> None:
        """Hand over facts of the run that became known after the recorder was made; settings that name keys are hidden.

        A process of a higher rank keeps it until its first batch: it makes no file before the first process has looked.
        """
        with self._counting_losses():
            self._own.about = {**self._own.about, **plain(dict(about))}
            if self._waits:
                return
            text = self._own.about_text
            statement = "UPDATE session SET about = ? WHERE id = ?"
            job = _with_lock(lambda connection: connection.execute(statement, (text, self._own.number)))
            self._writer.put(job, number_bytes=len(text))

    def rewind(self, step: int) -> None:
        """Remove the batches that a run does again from a checkpoint: all from a step on, of every process.

        What a process scores after this call stays, also where it is written first.

        Args:
            step: Optimizer steps that the checkpoint has. Evaluations at this very step were before it, and stay.
        """
        with self._counting_losses():
            number, before, last = operator.index(step), time.time(), self._last_before
            self._writer.put(_with_lock(lambda connection: rewind(connection, number, before, last)))

    def flush(self, timeout_s: float = 60.0) -> bool:
        """Wait until all that was handed over is in the file; ``False`` where something is not."""
        deadline = time.monotonic() + timeout_s
        scaled = self._pictures.wait(timeout_s)
        return self._writer.flush(max(0.0, deadline - time.monotonic())) and scaled

    def close(self, timeout_s: float = 60.0) -> bool:
        """Write the jobs handed over and end; return ``False`` if one was not written. A second call does nothing."""
        deadline = time.monotonic() + timeout_s
        self._pictures.close(timeout_s / 2)
        if self._finalizer.alive and not self._waits:
            if self.lost:
                self.event("lost", {"completions": self.lost})
            self._writer.put(_with_lock(self._own.write_end))
        self._own.is_over = True
        written = self._writer.close(max(0.0, deadline - time.monotonic()))
        self._finalizer()
        return written

    def release(self, error: BaseException | None = None) -> None:
        """Write the jobs handed over, and end, by an error where there is one, unless a ``with`` will do so later."""
        if self._held:
            self.flush()
            return
        self.stopped_by(error)
        self.close()

    def stopped_by(self, error: BaseException | None) -> None:
        """Hand over the error that ends the run; none, the end of a generator and an exit with 0 are no errors."""
        if not self._waits and self._own.number and (reason := error_text(error)):
            self.event(STOPPED, {"session": self._own.number, "error": reason})

    def __enter__(self) -> Recorder:
        self._held = True
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.stopped_by(error)
        self.close()

    def _write(
        self,
        connection: RecordConnection,
        rows: BatchRows,
        moment: _Moment,
        texts: Callable[[], Packed] | None,
    ) -> None:
        """Write one batch in the transaction that is open; ``texts`` is ``None`` where they are left out.

        The texts, which take long, are written before other writers are locked out.
        """
        step, epoch, split, scored = moment
        store = Texts(connection)
        completions = [None] * len(rows.completions) if texts is None else store.store(texts())
        details = self._store_details(store, rows.details)
        pairs = prompt_texts(connection, rows)
        count = len(completions)
        connection.execute("UPDATE session SET seen = ? WHERE id = ?", (scored, self._own.number))
        alone(connection)
        versions = [
            self.version(connection, name, self._described.get((name, digits)) or _unknown(digits), step, "run")
            for name, digits in zip(rows.rewards, rows.versions, strict=True)
        ]
        sums = [value for value in rows.plain_sums if value is not None]
        batch, ids = connection.insert_batch({
            "session": self._own.number, "step": step, "epoch": epoch, "split": split, "scored": scored,
            "versions": json.dumps(versions), "weights": json.dumps(rows.weights),
            "left_out": len(rows.completions) if texts is None else 0, "low": min(sums, default=None),
            "high": max(sums, default=None),
        }, count)  # fmt: skip
        prompts = prompt_ids(connection, pairs)
        connection.insert_all("completion", list(
            zip(
                ids, [batch] * count, [epoch] * count, prompts, rows.groups,
                completions, rows.tokens, rows.truncated, rows.plain_sums, rows.totals, rows.advantages, rows.status,
                rows.scores, rows.seconds, strict=True,
            )
        ))  # fmt: skip
        connection.insert_all("said", _detail_rows(rows.details, details, ids, versions, 0))
        summaries = [(batch, version, *summary) for version, summary in zip(versions, rows.summaries, strict=True)]
        connection.insert_all("summary", summaries)
        if count:
            connection.insert_all("numbers", [(batch, ids[0], block_of(rows, prompts))])

    def write_details(
        self,
        connection: RecordConnection,
        calls: Sequence[CallDetails],
        ids: Sequence[int],
        versions: Sequence[int],
        number: int,
    ) -> None:
        """Write the reasons, errors, logs and metrics of calls.

        Args:
            connection: Where; a transaction is open.
            calls: The details of the calls.
            ids: The completions' ids, by row.
            versions: The versions' ids, by column.
            number: The pass that they belong to; 0 for the run's own.
        """
        details = self._store_details(Texts(connection), calls)
        connection.insert_all("said", _detail_rows(calls, details, ids, versions, number))

    def _store_details(self, texts: Texts, calls: Sequence[CallDetails]) -> list[tuple[Any, ...]]:
        """Return the columns of the table ``said`` behind its key, with their texts stored and secrets hidden."""
        hide = self._secrets.hide
        ids = {
            name: iter(texts.ids([hide(text) for call in calls if (text := getattr(call, name)) is not None]))
            for name in _TEXTS
        }

        def stored(name: str, column: Sequence[str | int | None]) -> Sequence[str | int | None]:
            if name in _OPEN:
                return column
            if name in ids:
                return [None if value is None else next(ids[name]) for value in column]
            return [hide(value) if isinstance(value, str) else value for value in column]

        columns = list(zip(*(call[-len(DETAILS) :] for call in calls), strict=True)) or [()] * len(DETAILS)
        return list(zip(*(stored(name, column) for name, column in zip(DETAILS, columns, strict=True)), strict=True))

    def version(
        self, connection: RecordConnection, name: str, described: Description, step: int | None, origin: str
    ) -> int:
        """Store a reward's version where it is new, in the transaction that is open, and return its id."""
        numbers: dict[tuple[str, str], int] = connection.cache.setdefault("versions", {})
        key = (name, described.digits)
        if key not in numbers:
            query = "SELECT id FROM version WHERE reward = ? AND digits = ?"
            row = connection.execute(query, key).fetchone()
            numbers[key] = self._new_version(connection, name, described, step, origin) if row is None else row[0]
        return numbers[key]

    def _new_version(
        self, connection: RecordConnection, name: str, described: Description, step: int | None, origin: str
    ) -> int:
        """Write a version with its texts, secrets hidden, under the reward's next number; return its id."""
        texts = Texts(connection)
        (number,) = connection.execute("SELECT count(*) + 1 FROM version WHERE reward = ?", (name,)).fetchone()
        source, module = (
            None if text is None else texts.ids([self._secrets.hide(text)])[0]
            for text in (described.source, described.module)
        )
        return connection.insert("version", {
            "reward": name, "digits": described.digits, "number": number, "origin": origin,
            "reference": described.reference, "source": source, "module": module,
            "settings": self._secrets.hide(described.settings), "began": time.time(), "first_step": step,
        })  # fmt: skip


def machine() -> dict[str, Any]:
    """Return the machine's data and the packages' versions that a record notes."""
    versions = {"rewardkit": own_version()}
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
        "process_start": process_start(),
        "program": Path(sys.argv[0]).name if sys.argv else "",
    }


_TEXTS = ("traceback", "logs")  # Details that stand in the table of texts
_OPEN = ("metrics", "cause")  # Details in which no secret is looked for
_METRIC = "INSERT INTO metric VALUES (?, ?, ?, ?) ON CONFLICT (split, name, step) DO UPDATE SET value = excluded.value"


def _with_lock(job: Job) -> Job:
    """Wrap a job so that nobody else writes while it runs."""

    def run(connection: RecordConnection) -> None:
        alone(connection)
        job(connection)

    return run


def _put_picture(writer: Writer, job: Job, size: int) -> None:
    writer.put(_with_lock(job), number_bytes=size)


def _detail_rows(
    calls: Sequence[CallDetails],
    details: Sequence[tuple[Any, ...]],
    ids: Sequence[int],
    versions: Sequence[int],
    number: int,
) -> list[tuple[Any, ...]]:
    """Return rows of the table ``said``: the key of each call, and the columns behind it."""
    return [(ids[call.row], versions[call.column], number, *rest) for call, rest in zip(calls, details, strict=True)]


def _whole(step: int | None) -> int | None:
    """Return a step as Python's own whole number: SQLite would keep one of numpy's as its bytes."""
    return None if step is None else operator.index(step)


def _unknown(digits: str) -> Description:
    return Description(digits, None, None, None, "{}")


_MADE: weakref.WeakSet[Recorder] = weakref.WeakSet()  # The recorders of this process
_made_lock = threading.Lock()  # protects _MADE: threads may begin records at once


def _open_here() -> set[float]:
    """Return when the sessions of this process's recorders began, without those that are closed."""
    with _made_lock:
        return {recorder._own.began for recorder in _MADE if recorder._finalizer.alive}


def _end(writer: Writer, pool: ThreadPoolExecutor, pictures: PictureKeeper, own: OwnSession) -> None:
    """End a recorder that nobody has closed, because it is not used any more or its program ends."""
    if writer.runs_here:  # a job was the last that held the recorder
        threading.Thread(target=_end, args=(writer, pool, pictures, own), name="rewardkit-record-end").start()
        return
    pictures.close()
    for job in own.last_jobs():
        writer.put(_with_lock(job))
    writer.close()
    pool.shutdown(wait=False, cancel_futures=True)
