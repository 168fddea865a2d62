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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from rewardkit.declare.compose import Composable
from rewardkit.declare.spec import Kind
from rewardkit.errors import RecordError, RewardDefinitionError, RewardError, RewardLoadError
from rewardkit.record import changes
from rewardkit.record.changes import BEFORE, Action, ChangeState, RewardChange, Standing
from rewardkit.record.place import RecordPlace
from rewardkit.record.places import place_of_record
from rewardkit.record.store import RecordConnection
from rewardkit.replay.carried import FOLDER, loaded
from rewardkit.runtime.runtime import Runtime

POLL_S = 0.25
"""Seconds between two looks for a change."""
SAY_S = 5.0
"""Seconds between two signs of life."""
BUSY_S = 30.0
"""Seconds that a step waits for a file that others write, where it has to know what became of a change."""
BUSY_MS = 100
"""Milliseconds that a look waits for such a file. The step that begins meanwhile waits for the look."""
PATIENT_MS = 5000
"""The same where a training begins or ends."""
_log = logging.getLogger("rewardkit")

Load = Callable[[Mapping[str, Any], str], Composable]


def shadow_of(name: str) -> str:
    """Return the name under which another version of a reward is scored beside it."""
    return f"{name}_shadow"


@dataclass(frozen=True, slots=True)
class RewardState:
    """The rewards of a training between two changes.

    Attributes:
        rewards: The rewards by name.
        weights: Their weights by name.
        shadows: Names of those that the trainer does not see.
    """

    rewards: Mapping[str, Composable]
    weights: Mapping[str, float]
    shadows: frozenset[str] = frozenset()

    @property
    def told(self) -> dict[str, Standing]:
        """How each reward stands, for the record."""
        return {
            name: Standing(one.version, self.weights[name], name in self.shadows) for name, one in self.rewards.items()
        }

    def after(self, change: RewardChange, load: Load) -> RewardState:
        """Return the rewards after a change.

        Args:
            change: The change.
            load: Makes a reward of a change's body, under a name.

        Raises:
            RewardError: It does not fit these rewards, or its reward cannot be loaded.
        """
        name, weight = change.reward, change.body.get("weight")
        refuse(change.action, name, self.rewards, self.shadows)
        match change.action:
            case Action.REPLACE:
                kept = self.weights[name] if weight is None else weight
                return self.without(shadow_of(name)).having(name, load(change.body, name), kept)
            case Action.SHADOW:
                shadow = shadow_of(name)
                return replace(self.having(shadow, load(change.body, shadow), 0.0), shadows=self.shadows | {shadow})
            case Action.ADD:
                return self.having(name, load(change.body, name), 1.0 if weight is None else weight)
            case Action.WEIGHT:
                return replace(self, weights={**self.weights, name: change.body["weight"]})
            case Action.REMOVE:
                return self.without(shadow_of(name)).without(name)

    def having(self, name: str, reward: Composable, weight: float) -> RewardState:
        """Return the same with a reward under a name, in the place of the one that has it."""
        return replace(self, rewards={**self.rewards, name: reward}, weights={**self.weights, name: float(weight)})

    def without(self, name: str) -> RewardState:
        """Return the same without a reward."""
        return RewardState(
            {key: one for key, one in self.rewards.items() if key != name},
            {key: one for key, one in self.weights.items() if key != name},
            self.shadows - {name},
        )


def refuse(action: Action, name: str, names: Mapping[str, Any], shadows: frozenset[str]) -> None:
    """Raise where a change does not fit the rewards that there are.

    Args:
        action: What the change does.
        name: The reward that it names.
        names: The rewards.
        shadows: Those of them that the trainer does not see.

    Raises:
        RewardDefinitionError: It does not.
    """
    known = ", ".join(names)
    if action is Action.ADD:
        if name in names:
            raise RewardDefinitionError(f"there is a reward {name!r} already; give the new one another name")
        return
    if name not in names:
        raise RewardDefinitionError(f"no reward {name!r}; the training has {known}; add a new one with --add")
    if action is Action.SHADOW and (name in shadows or (shadow_of(name) in names and shadow_of(name) not in shadows)):
        raise RewardDefinitionError(f"{name!r} cannot have a shadow: it is one, or {shadow_of(name)!r} is a reward")
    if action is Action.WEIGHT and name in shadows:
        raise RewardDefinitionError(f"{name!r} is a shadow, which the trainer does not see; it has no weight")
    if action is Action.REMOVE and set(names) - shadows == {name}:
        raise RewardDefinitionError(f"{name!r} is the only reward; a training needs one")


def group_rewards_of(rewards: Mapping[str, Composable]) -> list[str]:
    """Return the names of the rewards that score whole groups, or have a part that does."""
    return [name for name, one in rewards.items() if any(leaf.spec.kind is Kind.GROUP for leaf in one.leaves)]


class Changeable(Protocol):
    """What scores, and takes other rewards between two steps."""

    @property
    def runtime(self) -> Runtime:
        """What scores now."""

    @property
    def state(self) -> RewardState:
        """The rewards that it scores with now."""

    def check(self, state: RewardState) -> None:
        """Raise a :class:`~rewardkit.RewardError` for rewards with which the training would be wrong."""

    def put(self, runtime: Runtime, state: RewardState) -> None:
        """Score with this runtime and these rewards from now on; the old runtime is closed by the caller."""


class _Ready(NamedTuple):
    """A change as this process has prepared it.

    Attributes:
        change: The change.
        state: The rewards after it; ``None`` where it cannot be applied here.
        runtime: What scores them, loaded; ``None`` where it is still to be made.
        words: Why it cannot be applied here.
    """

    change: RewardChange
    state: RewardState | None
    runtime: Runtime | None
    words: str | None = None


class Updates:
    """Changes of the rewards of a training, as one of its processes takes them.

    Call :meth:`join` before the first step, :meth:`begin` at the beginning of each, before anything of it is scored,
    and :meth:`leave` at the end.

    Args:
        run: The run's folder, or its record.
        scoring: What scores.
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
        self._said = 0.0
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
        """Take part from now on, and apply what was accepted before the step that a training goes on from.

        Args:
            step: Optimizer steps done; what was accepted before a training that begins at 0 is dropped.
            actions: What can be changed here.

        Raises:
            RecordError: The record cannot be written.
            RewardError: A change that was accepted before cannot be applied again.
        """
        self.leave()
        with self._asking, self._lock:
            self._actions, self._step, self._said = actions, step - 1, 0.0
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
                except RewardError as reason:
                    raise RewardLoadError(
                        f"{self.path}: change {change.id} ({change.action} of {change.reward!r}, from step "
                        f"{change.step} on) cannot be applied again: {reason}"
                    ) from reason
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
            due = [one for one in self._accepted if one.change.step is not None and one.change.step <= step]
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
                changes.leave(self._opened(PATIENT_MS), self._process)
            except (sqlite3.Error, RecordError, OSError) as reason:
                _log.warning("%s: the end of this training could not be noted: %s", self.path, reason)
            finally:
                self._shut()
                self._asking.release()
        else:
            _log.warning("%s: the end of this training could not be noted: the record does not answer", self.path)
        with self._lock:
            unused = [*self._accepted, *([self._voted] if self._voted is not None else [])]
            self._accepted, self._voted = [], None
        for one in unused:
            self._drop(one.runtime)

    def _learn(self, step: int) -> None:
        """Note that a step begins, and learn what became of the change that this process has voted on.

        That waits for :data:`BUSY_S`, and for one answer of the record. A process that trains alone waits once: while
        the record is known not to answer, its changes wait, and not its steps.
        """
        if self._ranks == 1 and self._trouble is not None:
            return
        end = time.monotonic() + BUSY_S
        asking = self._asking.acquire(timeout=BUSY_S)
        try:
            ready = self._voted  # what is heard is heard by whoever asks, so it may be known by now
            if ready is not None:
                self._hear(self._noted(ready, step, end) if asking else self._unheard(ready, "it does not answer"))
        finally:
            if asking:
                self._asking.release()

    # The thread.

    def _listen(self, stop: threading.Event) -> None:
        while not stop.is_set():
            try:
                self._turn(stop)
                self._busy_since = None
                self._tell(None)
            except (sqlite3.Error, RecordError, OSError) as reason:
                if not self._briefly_busy(reason):
                    self._tell(str(reason))
                    with self._asking:
                        self._shut()
            except Exception:
                _log.exception("%s: changes of rewards are looked for no more", self.path)
                return
            stop.wait(POLL_S)

    def _turn(self, stop: threading.Event) -> None:
        """Look once: say that this process is there, learn what was decided, or prepare what is asked and vote."""
        with self._asking:
            if stop.is_set():
                return
            connection = self._opened()
            if time.monotonic() - self._said > SAY_S:
                if not changes.note(connection, self._process, self._step, self._scoring.state.told):
                    self._enter(anew=False)
                self._said = time.monotonic()
            if self._voted is not None:
                self._hear(changes.change_of(connection, self._voted.change.id))
                if self._voted is not None:
                    self._vote(self._voted)  # again, where the first was lost; else it changes nothing
            asked = None if self._voted is not None else changes.next_asked(connection)
        if asked is None:
            return
        with self._lock:
            base = self._base(), self._last_runtime()
        ready = self._prepared(asked, *base)
        with self._lock:
            if stop.is_set():
                self._drop(ready.runtime)
                return
            self._voted = ready  # from here on a step that begins asks the record; one that began before is voted with
        with self._asking:
            if not stop.is_set():
                self._vote(ready)

    def _vote(self, ready: _Ready) -> None:
        self._hear(changes.vote(self._opened(), ready.change.id, self._process, self._step, ready.words))

    def _hear(self, change: RewardChange | None) -> None:
        """Take in how far the change is that this process has voted on; the record was asked for it just now."""
        with self._lock:
            ready = self._voted
            if ready is None or (change is not None and change.state is ChangeState.ASKED):
                return
            self._voted = None
            if change is not None and change.state is ChangeState.ACCEPTED:
                _log.info("%s of reward %r takes effect at step %s", change.action, change.reward, change.step)
                self._accepted.append(ready._replace(change=change))
                return
        words = "its record is gone" if change is None else change.words
        _log.warning("%s of reward %r is refused, nothing changes: %s", ready.change.action, ready.change.reward, words)
        self._drop(ready.runtime)

    def _prepared(self, change: RewardChange, base: RewardState, runtime: Runtime | None) -> _Ready:
        """Return a change with its rewards loaded and its workers ready, or why that is not possible."""
        made: Runtime | None = None
        try:
            if not takes(change.action, change.reward, self._actions, base.shadows):
                raise RewardDefinitionError(unattached(change.action))
            state = base.after(change, self._load)
            self._scoring.check(state)
            if change.action is Action.WEIGHT:
                return _Ready(change, state, runtime)
            made = self._scoring.runtime.with_rewards(state.rewards, state.weights)
            made.wait_loaded()
            return _Ready(change, state, made)
        except Exception as reason:
            if made is not None:
                made.close()
            words = str(reason) if isinstance(reason, RewardError) else f"{type(reason).__name__}: {reason}"
            return _Ready(change, None, None, words)

    # With the lock held.

    def _base(self) -> RewardState:
        """Return the rewards after all that is accepted."""
        last = self._accepted[-1].state if self._accepted else None
        return self._scoring.state if last is None else last

    def _last_runtime(self) -> Runtime | None:
        """Return what scores after all that is accepted; ``None`` where it is still to be made."""
        return self._accepted[-1].runtime if self._accepted else self._scoring.runtime

    def _enter(self, *, anew: bool, busy_ms: int = BUSY_MS) -> list[RewardChange]:
        """Enter this process among those that train; return the changes accepted before."""
        self._process, accepted = changes.join(
            self._opened(busy_ms), rank=self._rank, ranks=self._ranks, step=self._step,
            actions=list(self._actions), rewards=self._scoring.state.told, anew=anew,
        )  # fmt: skip
        return accepted

    def _noted(self, ready: _Ready, step: int, end: float) -> RewardChange | None:
        """Return the change that was voted on as it is now that this process begins a step."""
        while True:
            try:
                return changes.begin(self._opened(), ready.change.id, self._process, step)
            except (sqlite3.Error, RecordError, OSError) as reason:
                self._shut()
                if time.monotonic() > end:
                    return self._unheard(ready, str(reason))
            time.sleep(0.1)

    def _unheard(self, ready: _Ready, why: str) -> RewardChange | None:
        """Return the change as it was where no other process can have applied it; else stop."""
        if self._ranks == 1:
            self._tell(why)
            return ready.change
        raise RecordError(
            f"{self.path}: cannot be read or written ({why}), and the other processes may change reward "
            f"{ready.change.reward!r} at this step"
        )

    def _apply(self, due: Sequence[_Ready]) -> None:
        """Put the rewards after the last of some changes in the place of those now."""
        last, old = due[-1], self._scoring.runtime
        assert last.state is not None
        runtime = last.runtime
        if runtime is None:  # accepted before this training went on
            runtime = old.with_rewards(last.state.rewards, last.state.weights)
            runtime.start()
        self._scoring.put(runtime, last.state)
        self._said = 0.0
        for one in {id(one): one for one in (old, *(ready.runtime for ready in due))}.values():
            if one is not runtime:
                self._drop(one)
        for ready in due:
            change = ready.change
            _log.info("%s of reward %r took effect at step %s", change.action, change.reward, self._step)

    def _load(self, body: Mapping[str, Any], name: str) -> Composable:
        return loaded(body, name, self.path.home / FOLDER)

    def _opened(self, busy_ms: int = BUSY_MS) -> RecordConnection:
        if self._connection is None:
            self._connection = self.path.connect_to_write(threads=True)
        self._connection.wait_at_most(busy_ms / 1000)
        return self._connection

    def _shut(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
        self._connection = None

    def _briefly_busy(self, reason: Exception) -> bool:
        """Whether others write to the file, as they do at each step, and have not done so for long."""
        if not self.path.is_lock(reason):
            return False
        now = time.monotonic()
        self._busy_since = self._busy_since or now
        return now - self._busy_since < BUSY_S

    def _tell(self, trouble: str | None) -> None:
        """Log when the record cannot be asked, and when it can again."""
        if trouble is not None and self._trouble is None:
            _log.error("%s: cannot be asked for changes of rewards: %s; the training goes on", self.path, trouble)
        self._trouble = trouble

    def _drop(self, runtime: Runtime | None) -> None:
        """Close a runtime that nothing needs any more; the training does not wait for it."""
        needed = [self._scoring.runtime, *(one.runtime for one in self._accepted)]
        if runtime is not None and not any(runtime is one for one in needed):
            threading.Thread(target=runtime.close, name="rewardkit-close", daemon=True).start()


def takes(action: Action, name: str, actions: Sequence[str], shadows: frozenset[str]) -> bool:
    """Return whether a training takes an action; a shadow, which the trainer does not see, can always be removed."""
    return action in actions or (action is Action.REMOVE and name in shadows)


def unattached(action: Action | str, how: str | None = None) -> str:
    """Return why a training does not take an action, and what helps; ``how`` is what the asking person called it."""
    options = {Action.WEIGHT: "--weight", Action.ADD: "--add", Action.REMOVE: "--remove"}
    how = how or options.get(Action(action), action)
    return (
        f"{how} changes the trainer's own lists, which this training does not hand out: train with `rewardkit train`, "
        "or call adapter.attach(trainer) before trainer.train()"
    )


class LiveRuntime:
    """A runtime in a loop of one's own, whose rewards and weights change as ``rewardkit update`` asks.

    ::

        with LiveRuntime(Runtime([exact], record="runs/one")) as runtime:
            for step in range(100):
                batch = runtime.score(rollouts, step=step)

    Args:
        runtime: A runtime that records.
        rank: This process's rank.
        ranks: How many processes score together; all of them change at the same step.

    Raises:
        RecordError: The runtime does not record.
    """

    def __init__(self, runtime: Runtime, *, rank: int = 0, ranks: int = 1) -> None:
        if runtime.recorder is None:
            raise RecordError("a runtime whose rewards change needs a record: Runtime(..., record='runs/one')")
        self.runtime = runtime
        self.state = RewardState(dict(runtime.rewards), dict(runtime.weights))
        self._updates = Updates(runtime.recorder.path, self, rank=rank, ranks=ranks)

    def check(self, state: RewardState) -> None:
        """Refuse nothing: a loop of one's own takes all rewards that a runtime does."""

    def put(self, runtime: Runtime, state: RewardState) -> None:
        """Score with other rewards from now on."""
        if runtime is not self.runtime:
            runtime.take_over(self.runtime)
        runtime.weights, runtime.spared = dict(state.weights), state.shadows
        self.runtime, self.state = runtime, state

    def start(self, step: int = 0) -> LiveRuntime:
        """Start the workers, and take changes from now on.

        Args:
            step: Steps done, where a loop goes on that was begun before.
        """
        self.runtime.start()
        self._updates.join(step=step, actions=list(Action))
        return self

    def score(self, rollouts: Any, *, step: int, epoch: float | None = None) -> Any:
        """Score as :meth:`Runtime.score` does; a step that is greater than the one before may change the rewards."""
        self._updates.begin(step)
        return self.runtime.score(rollouts, step=step, epoch=epoch)

    def close(self) -> None:
        """Take no more changes and end the workers. A second call does nothing."""
        self._updates.leave()
        self.runtime.close()

    def __enter__(self) -> LiveRuntime:
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.close()
