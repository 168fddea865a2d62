"""Which call goes to which node next, what goes out again, and which node is given up.

Pure: what was sent, what came back and what time it is go in, decisions come out. Nothing here knows a process, a
network or a clock; :mod:`~rewardkit.runtime.nodes.pool` does as it is told here.

Nodes pull: each holds about two chunks, one that it runs and one that waits, and gets the next as it answers. A chunk
is cut by measured time, and smaller towards the end of a batch, so that all nodes finish at about the same time.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sandbox.workers import Call

HOME = ""
"""The name of node 0, the driver's own pool. It is always there."""
CHUNK_S = 0.2
"""Seconds of a node's work in one chunk."""
LEAST_CHUNK_S = 0.01
"""Seconds of a node's work below which a chunk is not cut for the sake of an even end."""
MOST_CALLS = 2048
"""Calls in one chunk."""
MOST_BYTES = 8 << 20
"""Bytes of segments in one chunk that holds more than one call."""
SEND_COST_S = 1e-4
"""Seconds of node 0's work below which a call stays there. Sending a call of 2 kB away and hearing of it costs the
driver some 33 µs, so that what is shorter than three times that gains nothing by leaving."""
CALL_COST_S = 2e-5
"""Seconds that a worker spends on a call beside running it, about."""
GIVE_UP_S = 10.0
"""Seconds of silence after which a node is given up; one that works or waits is heard from every second or two."""
AWAY_S = 2.0
"""Seconds between two looks from which on the driver itself stood still, and the silence was its own."""
MAX_LOST = 3
"""Times that a call's node may be lost before the call is given up as infrastructure."""
_NEWEST = 0.3  # weight of the newest measurement of a target's pace


Ticket = int | Call
"""What a call out at a node is known by: a number there, and the call itself at home."""


class Send(NamedTuple):
    """Calls of one job and target that go to a node; elsewhere than at home their tickets count up from the first."""

    node: str
    job: int
    calls: list[Call]
    first: int = 0


@dataclass(slots=True)
class _Node:
    workers: int
    heard_at: float
    out: dict[int, dict[Ticket, Call]] = field(default_factory=dict)  # what is not answered, by job
    counts: Counter[int] = field(default_factory=Counter)  # of what is out, by target

    @property
    def load(self) -> float:
        return sum(map(len, self.out.values())) / self.workers


class Schedule:
    """The calls that wait, the nodes and what each has been sent.

    Args:
        home_workers: Worker processes of node 0.
        home_only: Targets whose calls stay on node 0; their number in flight is that pool's to limit.
    """

    def __init__(self, home_workers: int, home_only: Iterable[int] = ()) -> None:
        self._home_only = frozenset(home_only)
        self._nodes = {HOME: _Node(home_workers, math.inf)}
        self._waiting: dict[tuple[int, int], deque[Call]] = {}
        self._ring: deque[tuple[int, int]] = deque()
        self._lost: dict[Call, int] = {}
        self._paces: dict[int, float] = {}
        self._tickets = 0
        self._looked_at: float | None = None

    @property
    def nodes(self) -> list[str]:
        """The names of the nodes beside node 0."""
        return [name for name in list(self._nodes) if name != HOME]  # a copy, for any thread may ask

    def add(self, job: int, calls: Sequence[Call]) -> None:
        """Queue calls of a job."""
        for target, some in itertools.groupby(calls, key=_target_of):
            self._queue(job, target).extend(some)

    def join(self, node: str, workers: int, now: float) -> None:
        """Use a node with so many workers from now on."""
        self._nodes[node] = _Node(workers, now)

    def sends(self, bytes_of: Callable[[int, Call], int]) -> list[Send]:
        """Return what is to be sent now; it counts as sent.

        Args:
            bytes_of: Says how many bytes travel with a call of a job; not asked for what stays at home.
        """
        sent = self._send_home_only()
        progress = True
        while progress and self._ring:
            progress = False
            for name, node in sorted(self._nodes.items(), key=lambda item: item[1].load):
                found = self._next(name, node, bytes_of)
                if found is not None:
                    sent.append(found)
                    progress = True
        return sent

    def answered(self, node: str, job: int, answers: Sequence[tuple[Ticket, float]], now: float) -> list[Call | None]:
        """Take a node's answers to calls of a job, each a ticket and the seconds that the call ran.

        Return the call of each; ``None`` for a late answer, of a call that was given up or sent again since.
        """
        self.heard(node, now)
        held = self._nodes.get(node)
        out: dict[Ticket, Call] = {} if held is None else held.out.get(job, {})
        awaited = [out.pop(ticket, None) for ticket, _ in answers]
        if held is None:
            return awaited
        spent: dict[int, list[float]] = {}
        for call, (_, duration_s) in zip(awaited, answers, strict=True):
            if call is not None:
                spent.setdefault(call.target, []).append(duration_s)
        for target, each in spent.items():
            held.counts[target] -= len(each)
            pace, before = sum(each) / len(each) + CALL_COST_S, self._paces.get(target)
            self._paces[target] = pace if before is None else before + _NEWEST * (pace - before)
        return awaited

    def heard(self, node: str, now: float) -> None:
        """Note that a node said something."""
        if node != HOME and node in self._nodes:
            self._nodes[node].heard_at = now

    def silent(self, now: float) -> list[str]:
        """Return the nodes that have been silent for too long; none if the driver itself stood still."""
        before, self._looked_at = self._looked_at, now
        away_s = 0.0 if before is None else now - before
        if away_s > AWAY_S:
            for node in self._nodes.values():
                node.heard_at += away_s
        return [name for name, node in self._nodes.items() if now - node.heard_at > GIVE_UP_S]

    def lose(self, node: str, *, blameless: bool = False) -> list[tuple[int, Call]]:
        """Stop using a node; return the calls, with their jobs, that are given up with it.

        The others go out again, first and in their order.

        Args:
            node: Its name.
            blameless: Whether the loss does not count against the calls, because the cluster refused them.
        """
        held = self._nodes.pop(node, None)
        given_up: list[tuple[int, Call]] = []
        for job, out in (held.out if held is not None else {}).items():
            again: dict[int, list[Call]] = {}
            for call in out.values():
                self._lost[call] = self._lost.get(call, 0) + (not blameless)
                if self._lost[call] >= MAX_LOST:
                    given_up.append((job, call))
                    del self._lost[call]
                else:
                    again.setdefault(call.target, []).append(call)
            for target, calls in again.items():
                self._queue(job, target).extendleft(reversed(calls))
        return given_up

    def forget(self, job: int) -> list[str]:
        """Drop a job's calls, and return the nodes that still have some of them."""
        self._ring = deque(entry for entry in self._ring if entry[0] != job)
        for entry in [entry for entry in self._waiting if entry[0] == job]:
            del self._waiting[entry]
        holders = []
        for name, node in self._nodes.items():
            out = node.out.pop(job, None)
            if out:
                node.counts.subtract(map(_target_of, out.values()))
                holders.append(name)
        if not self._ring and not any(node.out for node in self._nodes.values()):
            self._lost.clear()
        return holders

    def _queue(self, job: int, target: int) -> deque[Call]:
        entry = job, target
        if entry not in self._waiting:
            self._waiting[entry] = deque()
            self._ring.append(entry)
        return self._waiting[entry]

    def _send_home_only(self) -> list[Send]:
        sent = []
        for entry in [entry for entry in self._ring if entry[1] in self._home_only]:
            sent.append(self._take(HOME, self._nodes[HOME], entry, len(self._waiting[entry]), None))
        return sent

    def _next(self, name: str, node: _Node, bytes_of: Callable[[int, Call], int]) -> Send | None:
        """Return the node's next chunk, of the job and target whose turn it is; ``None`` where it gets no work now."""
        for _ in range(len(self._ring)):
            entry = self._ring[0]
            self._ring.rotate(-1)
            if (name == HOME or not self._stays(entry[1])) and self._has_room(node, len(self._waiting[entry])):
                count = self._size(node, entry)
                return self._take(name, node, entry, count, None if name == HOME else bytes_of)
        return None

    def _stays(self, target: int) -> bool:
        """Whether sending a call away takes longer than running it at home."""
        pace = self._paces.get(target)
        return pace is not None and pace / self._nodes[HOME].workers < SEND_COST_S

    def _has_room(self, node: _Node, pending: int) -> bool:
        """Whether a node holds less than a chunk, or a call for each worker and, where many wait, one more."""
        count = sum(n for target, n in node.counts.items() if target not in self._home_only)
        many = pending >= 2 * self._workers()
        if count < node.workers * (2 if many else 1):
            return True
        known = sum(n * self._paces[target] for target, n in node.counts.items() if target in self._paces)
        unknown = any(n for target, n in node.counts.items() if target not in self._paces)
        return not unknown and known / node.workers < CHUNK_S

    def _size(self, node: _Node, entry: tuple[int, int]) -> int:
        """Return how many calls the next chunk has: for so long, and at most half of the node's share of the rest."""
        pace = self._paces.get(entry[1])
        if pace is None:
            return node.workers
        least, most = (math.ceil(seconds * node.workers / pace) for seconds in (LEAST_CHUNK_S, CHUNK_S))
        share = math.ceil(len(self._waiting[entry]) * node.workers / (2 * self._workers()))
        return max(1, min(MOST_CALLS, most, max(share, least)))

    def _workers(self) -> int:
        return sum(node.workers for node in self._nodes.values())

    def _take(
        self,
        name: str,
        node: _Node,
        entry: tuple[int, int],
        count: int,
        bytes_of: Callable[[int, Call], int] | None,
    ) -> Send:
        (job, target), queue = entry, self._waiting[entry]
        calls = [queue.popleft() for _ in range(min(count, len(queue)))]
        if bytes_of is not None:
            fit = _fitting(calls, functools.partial(bytes_of, job))
            queue.extendleft(reversed(calls[fit:]))
            del calls[fit:]
        first = self._tickets + 1
        out = node.out.setdefault(job, {})
        if name == HOME:
            out.update(zip(calls, calls, strict=True))
        else:
            self._tickets += len(calls)
            out.update(zip(range(first, first + len(calls)), calls, strict=True))
        node.counts[target] += len(calls)
        if not queue:
            del self._waiting[entry]
            self._ring.remove(entry)
        return Send(name, job, calls, first)


def _fitting(calls: Sequence[Call], bytes_of: Callable[[Call], int]) -> int:
    """Return how many of the first calls fit in a chunk by their bytes; one always does."""
    held_bytes = 0
    for count, call in enumerate(calls):
        held_bytes += bytes_of(call)
        if count and held_bytes > MOST_BYTES:
            return count
    return len(calls)


_target_of = operator.attrgetter("target")
