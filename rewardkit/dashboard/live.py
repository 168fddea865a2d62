"""What changes in the runs that somebody looks at: one thread asks their records, and tells all who wait."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from rewardkit.dashboard.readers import Missing, OpenRun, Readers
from rewardkit.dashboard.workers import BusyError
from rewardkit.errors import RecordError

POLL_S = 0.15  # Seconds between two looks at a record
HEARTBEAT_S = 10.0  # Seconds after which a stream says that it is still there
MOST_STREAMS = 64  # Streams at a time
MOST_OF_BROWSER = 4
"""Streams of one browser at a time: it opens six connections to a server, and its windows ask for more than states."""
FIRST_S = 10.0  # Seconds to wait for the first look at a run
MOST_WATCHED = 256  # Runs that are watched at a time
LOOK_S = 5.0  # Seconds for one look at a run, so that a damaged one does not hold up the others
_AGAIN_S = 2.0  # Seconds after which a run is looked at though nothing was written: its process may have died
_FORGET_S = 30.0  # Seconds for which a run is watched after somebody last asked


@dataclass(slots=True, eq=False)
class WatchedRun:
    """A run that is watched ``until`` a monotonic time. The thread writes it, the event loop reads it."""

    state: dict[str, Any] | None = None  # The last state; `None` before the first look
    until: float = field(default_factory=lambda: time.monotonic() + _FORGET_S)
    listeners: set[asyncio.Event] = field(default_factory=set)  # Events that are set when the state changes
    version: object = None  # What the state was computed of
    checked_s: float = 0.0  # When it was last looked at, by the monotonic clock


class Live:
    """Watches runs, each as long as somebody asks for it; ``readers`` makes the readers of the thread."""

    def __init__(self, readers: Callable[[], Readers]) -> None:
        self._readers = readers
        self._lock = threading.Lock()  # guards the runs that are watched and their listeners
        self._watched: dict[str, WatchedRun] = {}
        self._woken, self._end = threading.Event(), threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._watch, name="rewardkit-live", daemon=True)
        self._thread.start()
        self._streams: Counter[str] = Counter()
        self._numbers = itertools.count(time.time_ns() // 1_000_000)  # after a restart, others than before

    def full(self, browser: str = "") -> bool:
        """Whether there are so many streams, of all browsers or of this one, that no further one may begin."""
        return self._streams.total() >= MOST_STREAMS or self._streams[browser] >= MOST_OF_BROWSER

    @property
    def watched(self) -> set[str]:
        """The names of the runs that are watched."""
        with self._lock:
            return set(self._watched)

    @property
    def running(self) -> bool:
        """Whether the thread has not ended."""
        return self._thread.is_alive()

    async def state(self, name: str) -> dict[str, Any]:
        """Return a run's state. Raises BusyError without an answer in seconds, or if too many are watched."""
        with self._listening(name) as (run, change):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(FIRST_S):
                    while run.state is None and not self._end.is_set():
                        await change.wait()
                        change.clear()
            if run.state is None:
                raise BusyError(f"{name}: no answer of its record yet; try again in a moment")
            return dict(run.state)

    async def states(self, name: str, browser: str = "") -> AsyncGenerator[dict[str, Any] | None]:
        """Yield the state, each new one (to a slow reader the last), ``None`` after a pause; nothing if it is full."""
        if self.full(browser):  # by several that asked at the same moment
            return
        self._streams[browser] += 1
        try:
            with self._listening(name) as (run, change):
                while not self._end.is_set():
                    if run.state is not None:
                        yield dict(run.state)
                    while not change.is_set() and not self._end.is_set():
                        with contextlib.suppress(TimeoutError):
                            await asyncio.wait_for(change.wait(), HEARTBEAT_S)  # proxies close a silent stream
                            break
                        yield None  # the heartbeat
                    change.clear()
        finally:
            self._streams[browser] -= 1
            self._streams += Counter()  # forgets those without a stream

    def end(self) -> None:
        """End all streams, and ask the thread to end."""
        self._end.set()
        self._woken.set()
        with self._lock:
            current = list(self._watched.values())
        for run in current:
            self._notify(run)

    def close(self, wait_s: float = 1.0) -> None:
        """End the thread and all streams. A second call does nothing."""
        self.end()
        self._thread.join(wait_s)

    @contextlib.contextmanager
    def _listening(self, name: str) -> Iterator[tuple[WatchedRun, asyncio.Event]]:
        """Watch a run within the block; BusyError where too many are watched."""
        self._loop = asyncio.get_running_loop()
        change = asyncio.Event()
        with self._lock:
            if name not in self._watched and len(self._watched) >= MOST_WATCHED:
                raise BusyError(f"{MOST_WATCHED} runs are watched already; close some pages")
            run = self._watched.setdefault(name, WatchedRun())
            run.listeners.add(change)
        self._woken.set()
        try:
            yield run, change
        finally:
            with self._lock:
                run.listeners.discard(change)
                run.until = time.monotonic() + _FORGET_S

    def _watch(self) -> None:
        """Look at the watched runs again and again until the end: what the thread does."""
        readers = self._readers()
        try:
            while not self._end.is_set():
                for name, run in self._current(readers).items():
                    if not self._end.is_set() and _look(readers, name, run, self._numbers):
                        self._notify(run)
                self._woken.wait(POLL_S if self._watched else None)
                self._woken.clear()
        finally:
            readers.close()

    def _current(self, readers: Readers) -> dict[str, WatchedRun]:
        """Return the watched runs, after forgetting and closing those that nobody asks for any longer."""
        with self._lock:
            now = time.monotonic()
            old = [name for name, run in self._watched.items() if not run.listeners and run.until < now]
            for name in old:
                del self._watched[name]
            current = dict(self._watched)
        for name in old:
            readers.drop(name)
        return current

    def _notify(self, run: WatchedRun) -> None:
        with self._lock:
            listeners = list(run.listeners)
        if self._loop is not None and listeners:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(_set_all, listeners)


def _set_all(listeners: Sequence[asyncio.Event]) -> None:
    for listener in listeners:
        listener.set()


def _look(readers: Readers, name: str, watched: WatchedRun, numbers: Iterator[int]) -> bool:
    """Read a run's state into ``watched``, an error as a state, too; return whether it has changed."""
    now = time.monotonic()
    try:
        opened = readers.get(name)
        version: object = (id(opened.run), opened.run.data_version)
        if version == watched.version and now - watched.checked_s < _AGAIN_S:
            return False
        state = _state_of_run(opened)
    except Exception as error:  # whatever stands in a damaged record, the other runs are watched on
        readers.drop(name)
        kind = "missing" if isinstance(error, Missing) else "unreadable"
        problem = str(error) if isinstance(error, RecordError) else f"{name}: damaged: {type(error).__name__}: {error}"
        version = state = {"state": kind, "state_reason": None, "problem": problem, "last_id": None, "last_step": None}
    changed = (
        version != watched.version or watched.state is None or any(watched.state[key] != state[key] for key in state)
    )
    watched.version, watched.checked_s = version, now
    if changed:
        watched.state = {"data_version": next(numbers), **state}
    return changed


def _state_of_run(opened: OpenRun) -> dict[str, Any]:
    """Return what the page learns of a run whenever it changes."""
    run = opened.run
    last_id = run.last_id  # before the steps: a completion recorded in between comes with the next look and its step
    steps = run.steps()
    return {
        **run.end.as_json(),
        "problem": None,
        "last_id": last_id,
        "last_step": steps[-1] if steps else None,
    }
