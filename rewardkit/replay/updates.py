"""The side of a change that trains: a process learns of changes, prepares them beside its training and applies them.

:mod:`rewardkit.record.changes` says how processes agree on the step. A change is prepared in a thread of its own: the
reward is loaded, and workers for the new set are started and load it, while the old ones go on scoring. Only where
all processes are ready is there a step at which the new set takes the place of the old.
"""

from __future__ import annotations

import contextlib
import logging
import sqlite3
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rewardkit.declare.compose import Composable
from rewardkit.errors import RecordError, RewardDefinitionError, RewardError, RewardLoadError
from rewardkit.loading.carried import FOLDER, load
from rewardkit.record import changes
from rewardkit.record.changes import BEFORE, Action, ChangeState, RewardChange
from rewardkit.record.place import RecordPlace
from rewardkit.record.places import place_of_record
from rewardkit.record.store import RecordConnection
from rewardkit.replay.reward_state import Changeable, RewardState, is_taken, untaken_reason
from rewardkit.runtime.runtime import Runtime

POLL_S = 0.25  # Seconds between two looks for a change
SAY_S = 5.0  # Seconds between two signs of life
BUSY_S = 30.0  # Seconds that a step waits for a file that others write, where it has to know what became of a change
BUSY_MS = 100  # Milliseconds that a look waits for such a file. The step that begins meanwhile waits for the look.
PATIENT_MS = 5000  # The same where a training begins or ends
_log = logging.getLogger("rewardkit")


class _Ready(NamedTuple):
    """A change as this process has prepared it."""

    change: RewardChange  # The change
    state: RewardState | None  # The rewards after it; `None` where it cannot be applied here
    runtime: Runtime | None  # What scores them, loaded; `None` where it is still to be made
    problem: str | None = None  # Why it cannot be applied here


class Updates:
    """Changes of the rewards of a training, as one of its processes takes them.

    Call :meth:`join` before the first step, :meth:`begin` at the beginning of each, before anything of it is scored,
    and :meth:`leave` at the end.

    Args:
        run: The run's folder, or its record.
        scoring: The scorer, whose rewards change.
        rank: This process's rank.
        ranks: How many processes train together; each of them has to take part.
    """

    def __init__(self, run: str | Path | RecordPlace, scoring: Changeable, *, rank: int = 0, ranks: int = 1) -> None:
        self.path = place_of_record(run)
        self._scoring = scoring
        self._rank, self._ranks = rank, ranks
        self._actions: Sequence[str] = ()
        # Protects what is known here, and is held for moments; a step that begins waits for it.
        self._lock = threading.RLock()
        # Protects the connection, and is held while the record is asked, which may take as long as the record likes.
        self._asking = threading.RLock()
        self._connection: RecordConnection | None = None
        self._process = 0
        self._step = BEFORE
        self._last_sign = 0.0
        self._voted: _Ready | None = None
        self._accepted: list[_Ready] = []
        self._trouble: str | None = None
        self._busy_since: float | None = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def joined(self) -> bool:
        """Whether this process takes part."""
        return self._thread is not None

    def join(self, *, step: int = 0, actions: Sequence[str] = (Action.REPLACE, Action.SHADOW)) -> None:
        """Take part from now on, and apply the changes accepted before the step that a training goes on from.

        Args:
            step: Optimizer steps done; what was accepted before a training that begins at 0 is dropped.
            actions: The actions that this training takes.

        Raises:
            RecordError: The record cannot be written.
            RewardError: A change that was accepted before cannot be applied again.
        """
        self.leave()
        with self._asking, self._lock:
            self._actions, self._step, self._last_sign = actions, step - 1, 0.0
            try:
                with self.path.errors():
                    accepted = self._enter(anew=step <= 0, busy_ms=PATIENT_MS)
            except RecordError:
                self._shut()
                raise
            base = self._scoring.state
            for change in accepted:
                try:
                    base = base.after(change, self._load)
                except RewardError as error:
                    raise RewardLoadError(
                        f"{self.path}: change {change.id} ({change.action} of {change.reward!r}, from step "
                        f"{change.step} on) cannot be applied again: {error}"
                    ) from error
                self._accepted.append(_Ready(change, base, None))
            self._stop = threading.Event()
            self._thread = threading.Thread(
                target=self._listen, args=(self._stop,), name="rewardkit-updates", daemon=True
            )
            self._thread.start()

    def begin(self, step: int) -> None:
        """Begin a step, and apply what takes effect with it. A second call with the same step does nothing.

        Raises:
            RecordError: Other processes may begin this step with other rewards, and the record does not say.
            RewardError: A change that was accepted before this training cannot be applied again.
        """
        with self._lock:
            if self._thread is None or step <= self._step:
                return
            self._step = step
            open_vote = self._voted is not None
        if open_vote:
            self._learn(step)
        with self._lock:
            due = [ready for ready in self._accepted if ready.change.step is not None and ready.change.step <= step]
            if due:
                del self._accepted[: len(due)]
                self._apply(due)

    def leave(self) -> None:
        """Stop taking part. A second call does nothing."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        self._stop.set()
        if thread is not threading.current_thread():
            thread.join(10.0)  # it may be loading a file that takes longer; then its vote is not cast
        if self._asking.acquire(timeout=PATIENT_MS / 1000):
            try:
                changes.leave(self._open(PATIENT_MS), self._process)
            except (sqlite3.Error, RecordError, OSError) as error:
                _log.warning("%s: the end of this training could not be noted: %s", self.path, error)
            finally:
                self._shut()
                self._asking.release()
        else:
            _log.warning("%s: the end of this training could not be noted: the record does not answer", self.path)
        with self._lock:
            unused = [*self._accepted, *([self._voted] if self._voted is not None else [])]
            self._accepted, self._voted = [], None
        for ready in unused:
            self._drop(ready.runtime)

    def _learn(self, step: int) -> None:
        """Note that a step begins, and read whether the change that this process voted on is decided.

        That waits for :data:`BUSY_S`, and for one answer of the record. A process that trains alone waits once: while
        the record is known not to answer, its changes wait, and not its steps.
        """
        if self._ranks == 1 and self._trouble is not None:
            return
        deadline = time.monotonic() + BUSY_S
        is_free = self._asking.acquire(timeout=BUSY_S)
        try:
            ready = self._voted  # another thread that asks may have the answer by now
            if ready is not None:
                self._resolve(
                    self._begin(ready, step, deadline) if is_free else self._unanswered(ready, "it does not answer")
                )
        finally:
            if is_free:
                self._asking.release()

    # The thread.

    def _listen(self, stop: threading.Event) -> None:
        """Look for changes until the end, which is what the thread does; while the record fails it looks again."""
        while not stop.is_set():
            try:
                self._turn(stop)
                self._busy_since = None
                self._tell(None)
            except (sqlite3.Error, RecordError, OSError) as error:
                if not self._note_lock(error):
                    self._tell(str(error))
                    with self._asking:
                        self._shut()
            except Exception:
                _log.exception("%s: changes of rewards are looked for no more", self.path)
                return
            stop.wait(POLL_S)

    def _turn(self, stop: threading.Event) -> None:
        """Look once: note that this process is alive, read the decision on its vote, or prepare a change and vote."""
        with self._asking:
            if stop.is_set():
                return
            connection = self._open()
            if time.monotonic() - self._last_sign > SAY_S:
                if not changes.note(connection, self._process, self._step, self._scoring.state.standings):
                    self._enter(anew=False)
                self._last_sign = time.monotonic()
            if self._voted is not None:
                self._resolve(changes.change_of(connection, self._voted.change.id))
                if self._voted is not None:
                    self._vote(self._voted)  # again, where the first was lost; else it changes nothing
            change = None if self._voted is not None else changes.next_open(connection)
        if change is None:
            return
        with self._lock:
            base, runtime = self._base(), self._last_runtime()
        ready = self._prepare(change, base, runtime)
        with self._lock:
            if stop.is_set():
                self._drop(ready.runtime)
                return
            self._voted = ready  # from here on a step that begins asks the record; one that began before is voted with
        with self._asking:
            if not stop.is_set():
                self._vote(ready)

    def _vote(self, ready: _Ready) -> None:
        self._resolve(changes.vote(self._open(), ready.change.id, self._process, self._step, ready.problem))

    def _resolve(self, change: RewardChange | None) -> None:
        """Accept or drop the change that was voted on, by its state in the record; ``None`` where it is gone."""
        with self._lock:
            ready = self._voted
            if ready is None or (change is not None and change.state is ChangeState.ASKED):
                return
            self._voted = None
            if change is not None and change.state is ChangeState.ACCEPTED:
                _log.info("%s of reward %r takes effect at step %s", change.action, change.reward, change.step)
                self._accepted.append(ready._replace(change=change))
                return
        problem = "its record is gone" if change is None else change.words
        action, reward = ready.change.action, ready.change.reward
        _log.warning("%s of reward %r is refused, nothing changes: %s", action, reward, problem)
        self._drop(ready.runtime)

    def _prepare(self, change: RewardChange, base: RewardState, runtime: Runtime | None) -> _Ready:
        """Return a change with its rewards loaded and its workers ready, or why that is not possible."""
        coming: Runtime | None = None
        try:
            if not is_taken(change.action, change.reward, self._actions, base.shadows):
                raise RewardDefinitionError(untaken_reason(change.action))
            state = base.after(change, self._load)
            self._scoring.check(state)
            if change.action is Action.WEIGHT:
                return _Ready(change, state, runtime)
            coming = self._scoring.runtime.with_rewards(state.rewards, state.weights)
            coming.wait_loaded()
            return _Ready(change, state, coming)
        except Exception as error:
            if coming is not None:
                coming.close()
            problem = str(error) if isinstance(error, RewardError) else f"{type(error).__name__}: {error}"
            return _Ready(change, None, None, problem)

    def _unanswered(self, ready: _Ready, why: str) -> RewardChange | None:
        """Return the change as it was if this process trains alone; else raise RecordError, as others may apply it."""
        if self._ranks == 1:
            self._tell(why)
            return ready.change
        raise RecordError(
            f"{self.path}: cannot be read or written ({why}), and the other processes may change reward "
            f"{ready.change.reward!r} at this step"
        )

    def _load(self, body: Mapping[str, Any], name: str) -> Composable:
        return load(body, name, self.path.home / FOLDER)

    def _note_lock(self, error: Exception) -> bool:
        """Note since when others lock the record; return whether it is so, and for less than ``BUSY_S``."""
        if not self.path.is_lock(error):
            return False
        now = time.monotonic()
        self._busy_since = self._busy_since or now
        return now - self._busy_since < BUSY_S

    def _tell(self, trouble: str | None) -> None:
        """Log the first of several troubles with the record; ``None`` notes that it answers again."""
        if trouble is not None and self._trouble is None:
            _log.error("%s: cannot be asked for changes of rewards: %s; the training goes on", self.path, trouble)
        self._trouble = trouble

    def _drop(self, runtime: Runtime | None) -> None:
        """Close a runtime in another thread, unless the training or an accepted change needs it."""
        needed = [self._scoring.runtime, *(ready.runtime for ready in self._accepted)]
        if runtime is not None and all(runtime is not other for other in needed):
            threading.Thread(target=runtime.close, name="rewardkit-close", daemon=True).start()

    # With ``_lock`` held.

    def _base(self) -> RewardState:
        """Return the rewards after all that is accepted."""
        last = self._accepted[-1].state if self._accepted else None
        return self._scoring.state if last is None else last

    def _last_runtime(self) -> Runtime | None:
        """Return what scores after all that is accepted; ``None`` where it is still to be made."""
        return self._accepted[-1].runtime if self._accepted else self._scoring.runtime

    def _apply(self, due: Sequence[_Ready]) -> None:
        """Score with the rewards of the last of these changes from now on; close the runtimes that nothing needs."""
        last, old = due[-1], self._scoring.runtime
        assert last.state is not None
        runtime = last.runtime
        if runtime is None:  # accepted before this training went on
            runtime = old.with_rewards(last.state.rewards, last.state.weights)
            runtime.start()
        self._scoring.put(runtime, last.state)
        self._last_sign = 0.0
        for unused in {id(runtime): runtime for runtime in (old, *(ready.runtime for ready in due))}.values():
            if unused is not runtime:
                self._drop(unused)
        for ready in due:
            change = ready.change
            _log.info("%s of reward %r took effect at step %s", change.action, change.reward, self._step)

    # With ``_asking`` held.

    def _enter(self, *, anew: bool, busy_ms: int = BUSY_MS) -> list[RewardChange]:
        """Register this process as a trainer; return the changes accepted before, which ``anew`` drops."""
        self._process, accepted = changes.join(
            self._open(busy_ms), rank=self._rank, ranks=self._ranks, step=self._step,
            actions=list(self._actions), rewards=self._scoring.state.standings, anew=anew,
        )  # fmt: skip
        return accepted

    def _begin(self, ready: _Ready, step: int, deadline: float) -> RewardChange | None:
        """Note that this process begins a step; return the change that it voted on. Repeated until the deadline."""
        while True:
            try:
                return changes.begin(self._open(), ready.change.id, self._process, step)
            except (sqlite3.Error, RecordError, OSError) as error:
                self._shut()
                if time.monotonic() > deadline:
                    return self._unanswered(ready, str(error))
            time.sleep(0.1)

    def _open(self, busy_ms: int = BUSY_MS) -> RecordConnection:
        """Return the connection to the record, opened anew where it was closed, with the time to wait for locks."""
        if self._connection is None:
            self._connection = self.path.connect_to_write(threads=True)
        self._connection.wait_at_most(busy_ms / 1000)
        return self._connection

    def _shut(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
        self._connection = None
