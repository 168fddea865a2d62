"""Which call goes to which node next, what goes out again, and which node is given up.

Pure: what was sent, what came back and what time it is go in, decisions come out. Nothing here knows a process, a
network or a clock; :mod:`~rewardkit.runtime.nodes.pool` does as it is told here.

Nodes pull: each holds about two chunks, one that it runs and one that waits, and gets the next as it answers. A chunk
is cut by measured time, and smaller towards the end of a batch, so that all nodes finish at about the same time.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sandbox.workers import Call

HOME = ""  # The name of node 0, the driver's own pool. It is always there.
CHUNK_S = 0.2  # Seconds of a node's work in one chunk
LEAST_CHUNK_S = 0.01  # Seconds of a node's work below which a chunk is not cut for the sake of an even end
MOST_CALLS = 2048  # Calls in one chunk
MOST_BYTES = 8 << 20  # Bytes of segments in one chunk that holds more than one call
SEND_COST_S = 1e-4
"""Seconds of node 0's work below which a call stays there. Sending a call of 2 kB away and hearing of it costs the
driver some 33 µs, so that what is shorter than three times that gains nothing by leaving."""
CALL_COST_S = 2e-5  # Seconds that a worker spends on a call beside running it, about
GIVE_UP_S = 10.0
"""Seconds of silence after which a node is given up; one that works or waits is heard from every second or two."""
AWAY_S = 2.0  # Seconds between two looks from which on the driver itself stood still, and the silence was its own
MAX_LOST = 3  # Times that a call's node may be lost before the call is given up as infrastructure
_NEWEST = 0.3  # weight of the newest measurement of a target's pace


Ticket = int | Call  # What a call out at a node is known by: a number there, and the call itself at home


class Send(NamedTuple):
    """Calls of one job and target that go to a node; elsewhere than at home their tickets count up from the first."""

    node: str
    job: int
    calls: list[Call]
    first: int = 0


class _QueueKey(NamedTuple):
    job: int
    target: int


@dataclass(slots=True)
class _Node:
    workers: int
    alive_at: float
    out: dict[int, dict[Ticket, Call]] = field(default_factory=dict)  # calls without an answer, by job
    counts: Counter[int] = field(default_factory=Counter)  # of these calls, by target

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
        self._waiting: dict[_QueueKey, deque[Call]] = {}
        self._ring: deque[_QueueKey] = deque()  # the keys of these, in turns
        self._losses: Counter[Call] = Counter()
        self._paces: dict[int, float] = {}  # seconds of a worker for a call, by target
        self._tickets = 0
        self._looked_at: float | None = None

    @property
    def nodes(self) -> list[str]:
        """The names of the nodes beside node 0."""
        return [name for name in list(self._nodes) if name != HOME]  # a copy, for any thread may ask

    def add(self, job: int, calls: Sequence[Call]) -> None:
        """Queue calls of a job."""
        for target, group in itertools.groupby(calls, key=_target_of):
            self._queue(job, target).extend(group)

    def join(self, node: str, workers: int, now: float) -> None:
        """Use a node with so many workers from now on."""
        self._nodes[node] = _Node(workers, now)

    def sends(self, bytes_of: Callable[[int, Call], int]) -> list[Send]:
        """Return the calls to send now, and note them as sent.

        Args:
            bytes_of: Says how many bytes travel with a call of a job; not asked for what stays at home.
        """
        home = self._nodes[HOME]
        sends = [
            self._take(HOME, home, key, len(self._waiting[key]), bytes_of)
            for key in list(self._ring)
            if key.target in self._home_only
        ]
        progress = True
        while progress and self._ring:
            progress = False
            for name, node in sorted(self._nodes.items(), key=lambda item: item[1].load):
                send = self._next(name, node, bytes_of)
                if send is not None:
                    sends.append(send)
                    progress = True
        return sends

    def take_answers(
        self, node: str, job: int, answers: Sequence[tuple[Ticket, float]], now: float
    ) -> list[Call | None]:
        """Take a node's answers to calls of a job, each a ticket and the seconds that the call ran.

        Return the call of each; ``None`` for a late answer, of a call that was given up or sent again since.
        """
        if node not in self._nodes:
            return [None] * len(answers)
        self.mark_alive(node, now)
        sender = self._nodes[node]
        out = sender.out.get(job, {})
        calls = [out.pop(ticket, None) for ticket, _ in answers]
        times_by_target: dict[int, list[float]] = {}
        for call, (_, duration_s) in zip(calls, answers, strict=True):
            if call is not None:
                times_by_target.setdefault(call.target, []).append(duration_s)
        for target, times in times_by_target.items():
            sender.counts[target] -= len(times)
            pace = sum(times) / len(times) + CALL_COST_S
            before = self._paces.get(target, pace)
            self._paces[target] = before + _NEWEST * (pace - before)
        return calls

    def mark_alive(self, node: str, now: float) -> None:
        """Note that a node said something."""
        if node != HOME and node in self._nodes:
            self._nodes[node].alive_at = now

    def silent_nodes(self, now: float) -> list[str]:
        """Return the nodes that have been silent for too long; none if the driver itself stood still."""
        away_s = 0.0 if self._looked_at is None else now - self._looked_at
        self._looked_at = now
        if away_s > AWAY_S:
            for node in self._nodes.values():
                node.alive_at += away_s
        return [name for name, node in self._nodes.items() if now - node.alive_at > GIVE_UP_S]

    def lose(self, node: str, *, blameless: bool = False) -> list[tuple[int, Call]]:
        """Stop using a node; return the calls, with their jobs, that are given up with it.

        The others go out again, first and in their order.

        Args:
            node: Its name.
            blameless: Whether the loss does not count against the calls, because the cluster refused them.
        """
        out_by_job = self._nodes.pop(node).out if node in self._nodes else {}
        lost_calls: list[tuple[int, Call]] = []
        for job, out in out_by_job.items():
            for call in reversed(out.values()):  # each goes before those that came after it
                self._losses[call] += not blameless
                if self._losses[call] >= MAX_LOST:
                    lost_calls.append((job, call))
                    del self._losses[call]
                else:
                    self._queue(job, call.target).appendleft(call)
        return lost_calls

    def forget(self, job: int) -> list[str]:
        """Drop a job's calls, and return the nodes that still have some of them."""
        self._ring = deque(key for key in self._ring if key.job != job)
        self._waiting = {key: self._waiting[key] for key in self._ring}
        holders = []
        for name, node in self._nodes.items():
            out = node.out.pop(job, None)
            if out:
                node.counts.subtract(map(_target_of, out.values()))
                holders.append(name)
        if not self._ring and not any(node.out for node in self._nodes.values()):
            self._losses.clear()
        return holders

    def _queue(self, job: int, target: int) -> deque[Call]:
        key = _QueueKey(job, target)
        if key not in self._waiting:
            self._waiting[key] = deque()
            self._ring.append(key)
        return self._waiting[key]

    def _next(self, name: str, node: _Node, bytes_of: Callable[[int, Call], int]) -> Send | None:
        """Return the node's next chunk, of the job and target whose turn it is; ``None`` where it gets no work now."""
        for _ in range(len(self._ring)):
            key = self._ring[0]
            self._ring.rotate(-1)
            may_go = name == HOME or not self._stays(key.target)
            if may_go and self._has_room(node, len(self._waiting[key])):
                return self._take(name, node, key, self._size(node, key), bytes_of)
        return None

    def _stays(self, target: int) -> bool:
        """Whether sending a call away takes longer than running it at home."""
        return self._paces.get(target, math.inf) / self._nodes[HOME].workers < SEND_COST_S

    def _has_room(self, node: _Node, pending: int) -> bool:
        """Return whether a node gets calls now: it has too few for its workers, or less than a chunk's seconds of work.

        A worker is to have one call, and where many are pending another that waits.
        """
        counts = {target: count for target, count in node.counts.items() if count and target not in self._home_only}
        calls_per_worker = 2 if pending >= 2 * self._workers() else 1
        if sum(counts.values()) < node.workers * calls_per_worker:
            return True
        # a target that was never measured may run for long
        busy_s = sum(count * self._paces.get(target, math.inf) for target, count in counts.items())
        return busy_s / node.workers < CHUNK_S

    def _size(self, node: _Node, key: _QueueKey) -> int:
        """Return the size of the next chunk: calls for a set time, at most half of the node's share of the rest."""
        pace = self._paces.get(key.target)
        if pace is None:
            return node.workers
        least, most = (math.ceil(seconds * node.workers / pace) for seconds in (LEAST_CHUNK_S, CHUNK_S))
        share = math.ceil(len(self._waiting[key]) * node.workers / (2 * self._workers()))
        return max(1, min(MOST_CALLS, most, max(share, least)))

    def _workers(self) -> int:
        return sum(node.workers for node in self._nodes.values())

    def _take(self, name: str, node: _Node, key: _QueueKey, count: int, bytes_of: Callable[[int, Call], int]) -> Send:
        """Take ``count`` calls from a queue, or as many as fit in a message, and note them as sent to the node."""
        queue = self._waiting[key]
        calls: list[Call] = []
        size_bytes = 0
        while queue and len(calls) < count:
            size_bytes += 0 if name == HOME else bytes_of(key.job, queue[0])
            if calls and size_bytes > MOST_BYTES:
                break
            calls.append(queue.popleft())
        first = self._tickets + 1
        tickets: Iterable[Ticket] = calls if name == HOME else range(first, first + len(calls))
        self._tickets += 0 if name == HOME else len(calls)
        node.out.setdefault(key.job, {}).update(zip(tickets, calls, strict=True))
        node.counts[key.target] += len(calls)
        if not queue:
            del self._waiting[key]
            self._ring.remove(key)
        return Send(name, key.job, calls, first)


_target_of = operator.attrgetter("target")
