"""Changes that a running training is asked for, and how its processes agree on the step at which each takes effect.

Nobody waits for another process. Each process of a training has a row that says the last step it has begun. A change
is asked for by anyone who may write the file. Each process prepares it beside its training and then votes, with its
step, in one transaction. The transaction of the last vote decides: where all are ready, the change takes effect at the
step after the last one that any process has begun; where one is not, the change is refused and nothing is changed.

No process can be past that step. A process that has voted and does not know the outcome yet notes each step in a
transaction before it begins it, and reads the outcome in the same one. So either it noted the step before the last
vote, which then counted it, or it reads the decision before it begins. A process that has not voted need not look: its
vote is missing, so there is no decision. One change is voted on at a time, in the order of asking.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from rewardkit.record.outcomes import object_of
from rewardkit.record.sessions import running_since
from rewardkit.record.store import RecordConnection, RecordRow, transaction

SILENT_S = 120.0
"""A process that has not been heard of for so long is gone, also where it runs; it says a word every few seconds."""
BEFORE = -1  # The step of a process that has not begun any


class Action(StrEnum):
    """What a change does."""

    REPLACE = "replace"
    """Another function takes the place of a reward's; its name stays."""
    SHADOW = "shadow"
    """A function is scored beside a reward, with the weight 0 and unseen by the trainer."""
    WEIGHT = "weight"
    """A reward gets another weight."""
    ADD = "add"
    """A further reward."""
    REMOVE = "remove"
    """A reward is taken away."""


class ChangeState(StrEnum):
    """How far a change is."""

    ASKED = "asked"  # The training has not answered
    ACCEPTED = "accepted"  # All processes apply it at the same step
    REFUSED = "refused"  # It changes nothing
    DROPPED = "dropped"  # It was accepted, and the training was then started anew, with its own rewards


@dataclass(frozen=True, slots=True)
class RewardChange:
    """A change that a training was asked for."""

    id: int  # Its number in the record
    asked: float  # When, in seconds since 1970
    reward: str  # The reward's name
    action: Action  # What it does
    body: Mapping[str, Any] = field(repr=False)  # What it takes: the reward's code and place, its weight
    state: ChangeState  # How far it is
    step: int | None  # The step from which on it holds, once it is accepted
    words: str | None  # Why it was refused or dropped


class Standing(NamedTuple):
    """How a reward stands in a training."""

    digits: str  # Its version
    weight: float  # Its weight
    shadow: bool = False  # Whether it is scored beside another one and the trainer does not see it


@dataclass(frozen=True, slots=True)
class Trainer:
    """A process that trains and takes changes."""

    id: int  # Its number in the record
    rank: int  # Its rank
    ranks: int  # How many there are
    host: str  # Its machine
    pid: int  # Its process id there
    born: str  # When it started, see `born`: a later process of the same id differs in it
    seen: float  # When it was last heard of
    ended: float | None  # When it ended; `None` while it trains, and where it was killed
    step: int  # The last step that it has begun; -1 before the first
    actions: Sequence[str]  # The actions that it can take
    rewards: Mapping[str, Standing]  # Its rewards by name

    @property
    def gone(self) -> str | None:
        """Why this process cannot answer any more; ``None`` while it may."""
        if self.ended is not None:
            return f"ended at {_clock(self.ended)}"
        if self.host == platform.node() and self.born != (born(self.pid) or ""):
            return f"is gone: its process {self.pid} was last heard of at {_clock(self.seen)}"
        if time.time() - self.seen > SILENT_S:
            return f"is gone: process {self.pid} of {self.host} was last heard of at {_clock(self.seen)}"
        return None


def born(pid: int) -> str | None:
    """Return when a process of this machine started, in ticks as text; ``None`` where no such process runs."""
    ticks = running_since(pid)
    return None if ticks is None else str(ticks)


def ask(connection: RecordConnection, reward: str, action: Action, body: Mapping[str, Any]) -> int:
    """Ask for a change; return its number."""
    row = {
        "asked": time.time(), "reward": reward, "action": action.value, "body": json.dumps(body),
        "state": ChangeState.ASKED.value,
    }  # fmt: skip
    return connection.insert("change", row)


def change_of(connection: RecordConnection, number: int) -> RewardChange | None:
    """Return a change by its number."""
    row = connection.execute("SELECT * FROM change WHERE id = ?", (number,)).fetchone()
    return None if row is None else _change(row)


def changes_of(connection: RecordConnection) -> list[RewardChange]:
    """Return all changes, oldest first."""
    return [_change(row) for row in connection.execute("SELECT * FROM change ORDER BY id")]


def trainers_of(connection: RecordConnection) -> list[Trainer]:
    """Return the last process of each rank, by rank; only those with as many ranks as the newest process has."""
    rows = connection.execute("SELECT * FROM process WHERE id IN (SELECT max(id) FROM process GROUP BY rank)")
    trainers = sorted(map(_trainer, rows), key=lambda trainer: trainer.rank)
    newest = max(trainers, key=lambda trainer: trainer.id, default=None)
    return [trainer for trainer in trainers if newest is not None and trainer.ranks == newest.ranks]


def join(
    connection: RecordConnection,
    *,
    rank: int,
    ranks: int,
    step: int,
    actions: Sequence[str],
    rewards: Mapping[str, Standing],
    anew: bool,
) -> tuple[int, list[RewardChange]]:
    """Register this process as a trainer; return its number and the changes accepted before, oldest first.

    Processes that are gone, or have this rank or another number of ranks, are noted as ended. ``step`` is the last one
    that it has begun. With ``anew`` the training starts over, and changes accepted before are dropped.
    """
    now = time.time()
    with transaction(connection):
        for trainer in map(_trainer, connection.execute("SELECT * FROM process WHERE ended IS NULL").fetchall()):
            if trainer.rank == rank or trainer.ranks != ranks or trainer.gone:
                connection.execute("UPDATE process SET ended = ? WHERE id = ?", (trainer.seen, trainer.id))
        if anew:
            reason = "the training was started anew"
            states = (ChangeState.DROPPED.value, reason, ChangeState.ACCEPTED.value)
            connection.execute("UPDATE change SET state = ?, words = ? WHERE state = ?", states)
        number = connection.insert("process", {
            "rank": rank, "ranks": ranks, "host": platform.node(), "pid": os.getpid(),
            "born": born(os.getpid()) or "", "began": now, "seen": now, "step": step,
            "actions": json.dumps(list(actions)), "rewards": json.dumps(dict(rewards)),
        })  # fmt: skip
        accepted = [change for change in changes_of(connection) if change.state is ChangeState.ACCEPTED]
    return number, accepted


def leave(connection: RecordConnection, process: int) -> None:
    """Note that this process has ended; where no other trains, refuse the changes that are not decided."""
    now = time.time()
    with transaction(connection):
        connection.execute("UPDATE process SET ended = ?, seen = ? WHERE id = ?", (now, now, process))
        if connection.execute("SELECT 1 FROM process WHERE ended IS NULL").fetchone() is None:
            open_changes = connection.execute("SELECT id FROM change WHERE state = 'asked' ORDER BY id").fetchall()
            for (number,) in open_changes:
                _refuse(connection, number, "the training ended before it was applied")


def note(connection: RecordConnection, process: int, step: int, rewards: Mapping[str, Standing]) -> bool:
    """Note that this process trains, its step and rewards; return ``False`` where the record has not registered it."""
    row = (time.time(), step, json.dumps(dict(rewards)), process)
    statement = "UPDATE process SET seen = ?, step = ?, rewards = ? WHERE id = ? AND ended IS NULL"
    with transaction(connection):
        return connection.execute(statement, row).rowcount == 1


def next_open(connection: RecordConnection) -> RewardChange | None:
    """Return the change to vote on: the oldest that is not decided."""
    row = connection.execute("SELECT * FROM change WHERE state = 'asked' ORDER BY id LIMIT 1").fetchone()
    return None if row is None else _change(row)


def vote(
    connection: RecordConnection, change: int, process: int, step: int, problem: str | None
) -> RewardChange | None:
    """Vote on a change, decide it where no vote is missing, and return it; ``None`` where the change is missing.

    ``step`` is the last one that this process has begun; ``problem`` says why it cannot be applied here.
    """
    with transaction(connection):
        connection.execute("UPDATE process SET step = ?, seen = ? WHERE id = ?", (step, time.time(), process))
        connection.execute(
            "INSERT INTO vote VALUES (?, ?, ?) ON CONFLICT (change, process) DO UPDATE SET words = excluded.words",
            (change, process, problem),
        )
        _decide(connection, change)
        return change_of(connection, change)


def begin(connection: RecordConnection, change: int, process: int, step: int) -> RewardChange | None:
    """Note that this process begins a step; return the change that it voted on, ``None`` where that is missing."""
    with transaction(connection):
        connection.execute("UPDATE process SET step = ?, seen = ? WHERE id = ?", (step, time.time(), process))
        return change_of(connection, change)


def _decide(connection: RecordConnection, change: int) -> None:
    """Refuse an open change that a process voted against; accept one that all processes voted for."""
    row = connection.execute("SELECT state FROM change WHERE id = ?", (change,)).fetchone()
    if row is None or row["state"] != ChangeState.ASKED:
        return
    rows = connection.execute(
        "SELECT process.*, vote.process AS voted, vote.words AS said FROM process LEFT JOIN vote"
        " ON vote.process = process.id AND vote.change = ? WHERE process.ended IS NULL ORDER BY rank",
        (change,),
    ).fetchall()
    present = [row for row in rows if not _trainer(row).gone]
    against = [row for row in present if row["voted"] is not None and row["said"] is not None]
    ranks = present[0]["ranks"] if present else 0
    if against:
        rank, problem = against[0]["rank"], against[0]["said"]
        _refuse(connection, change, problem if ranks == 1 else f"rank {rank}: {problem}")
    elif ranks and {row["rank"] for row in present} == set(range(ranks)) and all(row["voted"] for row in present):
        step = max(row["step"] for row in present) + 1
        connection.execute("UPDATE change SET state = 'accepted', step = ? WHERE id = ?", (step, change))
        _record_decision(connection, change)


def _refuse(connection: RecordConnection, change: int, reason: str) -> None:
    connection.execute("UPDATE change SET state = 'refused', words = ? WHERE id = ?", (reason, change))
    _record_decision(connection, change)


def _record_decision(connection: RecordConnection, change: int) -> None:
    """Record a decision as an event."""
    decided = change_of(connection, change)
    assert decided is not None
    details = ("digits", "weight", "reference")
    body = {
        "change": decided.id,
        "reward": decided.reward,
        "action": decided.action,
        "state": decided.state,
        "words": decided.words,
    }
    body |= {name: decided.body[name] for name in details if decided.body.get(name) is not None}
    row = {"time": time.time(), "step": decided.step, "kind": "change", "body": json.dumps(body)}
    connection.insert("event", row)


def _change(row: RecordRow) -> RewardChange:
    return RewardChange(
        row["id"], row["asked"], row["reward"], Action(row["action"]), object_of(row["body"]),
        ChangeState(row["state"]), row["step"], row["words"],
    )  # fmt: skip


def _trainer(row: RecordRow) -> Trainer:
    rewards = {name: Standing(*standing) for name, standing in json.loads(row["rewards"]).items()}
    return Trainer(
        row["id"], row["rank"], row["ranks"], row["host"], row["pid"], row["born"], row["seen"], row["ended"],
        row["step"], json.loads(row["actions"]), rewards,
    )  # fmt: skip


def _clock(moment: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(moment))
