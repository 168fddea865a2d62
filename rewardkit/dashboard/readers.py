"""Open runs: each thread has its own, and values that are computed once, such as the sums of steps, are shared."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from rewardkit.dashboard.jobs import Jobs
from rewardkit.errors import RecordError
from rewardkit.record.place import RunsPlace, Stamp
from rewardkit.record.values import StepSummary
from rewardkit.replay.recorded_run import Run

T = TypeVar("T")
MOST_OPEN = 16  # Runs that a thread holds open
PAGES_BYTES = 6_000_000
"""Bytes of a run's file that a thread keeps in memory; the system keeps more of them, for all threads."""
MOST_VALUES = 64  # Values that the cache of a run has, at most
CACHE_S = 600.0  # Seconds after which the cache of a run that nobody asked for is emptied
DIAGNOSIS = ("health", "looking")  # The key of a run's diagnosis


class NotThere(RecordError):
    """What was asked for is not in the run."""


class Missing(RecordError):
    """There is no such run: it was not recorded yet, or was deleted."""


class Unreadable(RecordError):
    """The run's file is there and cannot be read: it is empty, damaged, another user's, or of a newer release."""


class RunCache:
    """Values that were computed of a run, for all threads. Those least recently asked for make room."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()

    def get(self, key: Hashable, version: Hashable, compute: Callable[[], T]) -> T:
        """Return a value; compute it again where the version (:attr:`OpenRun.version`) has changed.

        While ``compute`` runs, others who ask for the same wait. It must not ask for a cached value.
        """
        with self._lock:
            entry = self._entries.setdefault(key, _Entry())
            self._entries.move_to_end(key)  # so that it is dropped last
            while len(self._entries) > MOST_VALUES:
                self._entries.popitem(last=False)
        with entry.lock:
            if entry.version != (version,):  # in a tuple, because None is a version as well
                entry.value = compute()
                entry.version = (version,)
            value: T = entry.value
            return value

    def empty(self) -> None:
        """Drop all values but the diagnosis, which is small and shown in the list of runs."""
        with self._lock:
            for key in [entry for entry in self._entries if entry != DIAGNOSIS]:
                del self._entries[key]


@dataclass(slots=True)
class _Entry:
    """A cached value; its lock is held while it is computed."""

    lock: AbstractContextManager[bool] = field(default_factory=threading.RLock)
    version: tuple[Hashable] | None = None
    value: Any = None


class OpenRun(NamedTuple):
    """A run as a view gets it; ``jobs`` are its trials and changes under way, ``None`` where the server allows none."""

    run: Run  # The run, open in this thread
    cache: RunCache  # What is computed once for all threads
    jobs: Jobs | None = None

    @property
    def can_write(self) -> bool:
        """Whether the server lets rewards be changed."""
        return self.jobs is not None

    @property
    def version(self) -> Stamp:
        """A value that changes when something is written to the run; the same in all threads."""
        return self.run.stamp


class _FileCache(NamedTuple):
    """The cache of a run, and the identity of the file that it is of."""

    identity: Stamp
    cache: RunCache


class RunCaches:
    """The caches of the runs by their names, each as long as its file is the same one and somebody asks for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._caches: dict[str, _FileCache] = {}
        self._last_uses: dict[str, float] = {}

    def of(self, name: str, identity: Stamp) -> RunCache:
        """Return the cache of a run whose file has this identity."""
        with self._lock:
            entry = self._caches.get(name)
            if entry is None or entry.identity != identity:
                entry = self._caches[name] = _FileCache(identity, RunCache())
            self._last_uses[name] = time.monotonic()
        self.expire()
        return entry.cache

    def expire(self) -> None:
        """Empty the caches of the runs that nobody asked for in a while."""
        with self._lock:
            until = time.monotonic() - CACHE_S
            for name in [run for run, time_s in self._last_uses.items() if time_s < until]:
                del self._last_uses[name]
                if name in self._caches:
                    self._caches[name].cache.empty()

    def get(self, name: str) -> RunCache | None:
        """Return the cache of a run; ``None`` where no thread has opened it."""
        with self._lock:
            return self._caches[name].cache if name in self._caches else None

    def drop(self, name: str) -> None:
        """Forget a run: its number in the file system may be given to another file from now on."""
        with self._lock:
            self._caches.pop(name, None)


class _OpenFile(NamedTuple):
    """A run that a thread has open, and the identity of its file."""

    identity: Stamp
    run: Run


class Readers:
    """The runs that one thread has open, and closes; a question to a run ends with an error after ``wait_s``."""

    def __init__(
        self, folder: RunsPlace, shared: RunCaches, *, jobs: Jobs | None = None, wait_s: float = 120.0
    ) -> None:
        self._folder, self._shared, self._jobs, self._wait_s = folder, shared, jobs, wait_s
        self._open: OrderedDict[str, _OpenFile] = OrderedDict()

    def get(self, name: str) -> OpenRun:
        """Return a run, opened anew where its file was replaced. Raises Missing or Unreadable."""
        run = self._open_run(name) or self._open_anew(name)
        run.within(self._wait_s)
        return OpenRun(run, self._shared.of(name, self._open[name].identity), self._jobs)

    def drop(self, name: str) -> None:
        """Close a run, so that it is opened anew when it is next asked for."""
        file = self._open.pop(name, None)
        if file is not None:
            self._shared.drop(name)
            file.run.close()

    def close(self) -> None:
        for name in list(self._open):
            self.drop(name)

    def _open_run(self, name: str) -> Run | None:
        """Return the open run of a name; close it and return ``None`` where its file was replaced."""
        file = self._open.get(name)
        if file is None or file.identity != self._folder.identity(name):
            self.drop(name)
            return None
        self._open.move_to_end(name)  # so that it is closed last
        return file.run

    def _open_anew(self, name: str) -> Run:
        """Open a run, and close those used longest ago where too many are open; Missing or Unreadable if it fails."""
        try:
            path = self._folder.run(name)
        except RecordError as error:
            raise Missing(str(error)) from None
        try:
            before = self._folder.identity(name)
            run = Run.open(path)
        except (RecordError, OSError) as error:
            if isinstance(error, FileNotFoundError) or not self._folder.has(name):
                raise Missing(f"{path}: there is no record; it was deleted, or is not begun yet") from None
            raise Unreadable(str(error)) from error
        run.remember(PAGES_BYTES)
        self._open[name] = _OpenFile(before, run)
        while len(self._open) > MOST_OPEN:
            self.drop(next(iter(self._open)))
        return run


def summaries(opened: OpenRun, split: str = "train") -> Sequence[StepSummary]:
    """Return each step's sums of a split, as :meth:`~rewardkit.record.reader.RunReader.summaries` gives them."""
    sums = opened.cache.get(("sums", split), 0, lambda: StepSums(split))
    return sums.newest(opened.run, opened.version)


class StepSums:
    """The sums of one split, for all threads; only going on from a checkpoint takes batches away."""

    def __init__(self, split: str) -> None:
        self._split = split
        self._lock = threading.Lock()
        self._version: Stamp | None = None
        self._batches: tuple[int, int] = (0, 0)
        self._rows: tuple[StepSummary, ...] = ()

    def newest(self, run: Run, version: Stamp) -> Sequence[StepSummary]:
        """Return all sums; only the steps to which batches came are read again."""
        with self._lock:
            if version != self._version:
                self._rows = self._read(run)
                self._version = version
            return self._rows

    def _read(self, run: Run) -> tuple[StepSummary, ...]:
        """Read the sums of new steps; those of all steps where batches were taken away, or have no step."""
        count, last = self._batches
        total, new = run.batches(self._split, after=last)
        self._batches = (total, new[-1][0] if new else last)
        steps = [step for _, step in new if step is not None]
        if count + len(new) != total or len(steps) < len(new):
            return tuple(run.summaries(split=self._split))
        if not steps:
            return self._rows
        first = min(steps)
        before = (row for row in self._rows if row.step is None or row.step < first)
        return (*before, *run.summaries(split=self._split, since=first))
