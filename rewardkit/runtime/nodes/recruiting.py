"""How nodes come to take part and cease to: they are found, asked what they are, given the rewards, and listened to.

Runs in the pool's thread. What may wait for the cluster goes to the outbox, and its answer comes back as a command.
"""

from __future__ import annotations

import concurrent.futures
import functools
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from rewardkit.runtime.nodes.cluster import HostLink, NodeCluster
from rewardkit.runtime.nodes.host import DESCRIBE_S, MAX_LOADS
from rewardkit.runtime.nodes.members import Member, Members, MemberState
from rewardkit.runtime.nodes.orders import (
    HostOrder,
    HostReady,
    NodeAnswers,
    NodeFacts,
    facts,
    why_no_part,
    why_other_scores,
)
from rewardkit.runtime.nodes.outbox import Outbox
from rewardkit.shown.text import shortened

LOOK_S = 5.0
"""Seconds between two looks at which nodes the cluster has."""
WAIT_S = 1.0
"""Seconds that a node without answers waits before it says so."""
INSTALL_S = 900.0
"""Seconds that a node may take to install the rewards' packages."""

_log = logging.getLogger("rewardkit")


class NodeEvents(Protocol):
    """What is told to the pool."""

    def joined(self, node: str, workers: int) -> None:
        """A node takes calls from now on."""

    def answered(self, node: str, answers: Sequence[NodeAnswers]) -> None:
        """A node has answers, or none and is alive."""

    def left(self, node: str, words: str, *, blameless: bool) -> None:
        """A node that took calls no longer takes any."""


@dataclass(frozen=True, slots=True)
class NodeExpectation:
    """What a node has to equal: the driver's versions of the rewards, and the level of its jails."""

    versions: Mapping[str, str]
    level: Callable[[], str | None]  # may take seconds, once


class Recruiting:
    """The nodes of a cluster, from their first sight to their loss.

    Args:
        cluster: Where nodes are.
        order: What a node is told.
        expected: What it has to equal.
        outbox: Runs what may wait.
        command: Has something run in the pool's thread.
        events: Is told.
    """

    def __init__(
        self,
        cluster: NodeCluster,
        order: HostOrder,
        expected: NodeExpectation,
        outbox: Outbox,
        command: Callable[[Callable[[], None]], None],
        events: NodeEvents,
    ) -> None:
        self._cluster = cluster
        self._order = order
        self._expected = expected
        self._level: str | None = None
        self._outbox = outbox
        self._command = command
        self._events = events
        self._members = Members()
        self._looks_at = 0.0
        self._looking = False
        self._level_known = False
        self._unreachable = False

    @property
    def due(self) -> float:
        """When :meth:`look` is to be called next."""
        return self._looks_at

    def look(self, now: float) -> None:
        """See which nodes there are, where that is due, and give those up that have not begun in time."""
        for member in self._members.late(now):
            self._dismiss(member, f"it did not {_UNDONE[member.state]} in time")
        if self._looking or now < self._looks_at:
            self._looks_at = max(self._looks_at, now + 1.0) if self._looking else self._looks_at
            return
        self._looking, self._looks_at = True, now + LOOK_S
        self._outbox.put(self._see)

    def ask(self, node: str, method: str, *arguments: Any) -> None:
        """Tell a node that takes part something; what goes wrong with it is told as the node's loss."""
        member = self._members.get(node)
        if member.link is not None:
            self._ask(member, lambda _: None, method, *arguments)

    def give_up(self, node: str, words: str) -> None:
        """Stop using nodes that have been silent for too long."""
        self._dismiss(self._members.get(node), words)

    def close(self) -> None:
        """End all hosts."""
        for link in self._members.links():
            self._outbox.put(link.end)

    def _see(self) -> None:
        """In the outbox: ask the cluster for its nodes."""
        try:
            if not self._level_known:
                self._level, self._level_known = self._expected.level(), True
            found = self._cluster.nodes()
        except Exception as reason:
            told = reason
            self._command(lambda: self._seen_none(told))
        else:
            self._command(lambda: self._seen(found))

    def _seen_none(self, reason: Exception) -> None:
        self._looking = False
        if not self._unreachable:
            self._unreachable = True
            _log.warning("the cluster does not say which nodes it has; those in use go on: %s", reason)

    def _seen(self, found: Mapping[str, str]) -> None:
        self._looking = self._unreachable = False
        for member in self._members.seen(found, time.monotonic()):
            self._outbox.put(functools.partial(self._start, member))

    def _start(self, member: Member) -> None:
        """In the outbox: start a host."""
        try:
            link = self._cluster.host(member.node, self._order.path)
        except Exception as reason:
            words = str(reason)
            self._command(lambda: self._dismiss(member, words))
            return
        self._command(lambda: self._started(member, link))

    def _started(self, member: Member, link: HostLink) -> None:
        member.link = link
        if self._members.is_current(member):
            self._ask(member, lambda theirs: self._met(member, theirs), "hello")
        else:
            self._outbox.put(link.end)

    def _met(self, member: Member, theirs: NodeFacts) -> None:
        why = why_no_part(facts(), NodeFacts(*theirs))
        if why is not None:
            self._refuse(member, why)
            return
        install_s = INSTALL_S if self._order.packages else 0.0
        self._members.load(
            member, time.monotonic() + DESCRIBE_S + 2 * MAX_LOADS * self._order.load_timeout_s + install_s
        )
        self._ask(member, lambda ready: self._ready(member, ready), "prepare", self._order)

    def _ready(self, member: Member, theirs: HostReady) -> None:
        why = why_other_scores(self._expected.versions, self._level, HostReady(*theirs))
        if why is not None:
            self._refuse(member, why)
            return
        self._members.enter(member)
        self._events.joined(member.node, theirs.workers)
        self._listen(member)

    def _listen(self, member: Member) -> None:
        self._ask(member, lambda answers: self._hear(member, answers), "answers", WAIT_S)

    def _hear(self, member: Member, answers: Sequence[NodeAnswers]) -> None:
        self._events.answered(member.node, answers)
        self._listen(member)

    def _ask(self, member: Member, then: Callable[[Any], None], method: str, *arguments: Any) -> None:
        """Call a method of a node's host in the outbox; ``then`` takes what it returns, in the pool's thread."""
        link = member.link
        assert link is not None

        def returned(future: concurrent.futures.Future[Any]) -> None:
            self._command(lambda: self._returned(member, then, method, future))

        def errand() -> None:
            try:
                link.ask(method, *arguments).add_done_callback(returned)
            except Exception as reason:
                words = str(reason)
                self._command(lambda: self._dismiss(member, words, blameless=True))

        self._outbox.put(errand)

    def _returned(
        self, member: Member, then: Callable[[Any], None], method: str, future: concurrent.futures.Future[Any]
    ) -> None:
        if not self._members.is_current(member):
            return  # late: it was given up
        fault = future.exception()
        if fault is None:
            try:
                then(future.result())
            except (ValueError, TypeError, AttributeError) as odd:  # it must not end the driver's batch
                self._dismiss(member, shortened(f"it says what no host says: {odd}"))
        elif method in ("hello", "prepare"):
            self._refuse(member, shortened(without_traceback(str(fault))))
        else:
            self._dismiss(member, shortened(without_traceback(str(fault)) or type(fault).__name__))

    def _refuse(self, member: Member, why: str) -> None:
        _log.warning("node %s takes no part in scoring: %s", member.name, why)
        self._end(self._members.refuse(member))

    def _dismiss(self, member: Member, words: str, *, blameless: bool = False) -> None:
        """Stop using a node for now; it is asked again later if it is still there."""
        if not self._members.is_current(member):
            return
        took_part = member.state is MemberState.IN
        _log.warning("node %s is %s: %s", member.name, "lost" if took_part else "not used", words)
        self._end(self._members.rest(member, time.monotonic()))
        if took_part:
            self._events.left(member.node, f"its node {member.name} was lost: {words}", blameless=blameless)

    def _end(self, link: HostLink | None) -> None:
        if link is not None:
            self._outbox.put(link.end)


def without_traceback(words: str) -> str:
    """Return what a host says of an error: of a traceback its last line, and what to do about a missing module."""
    told, is_traced, trace = words.partition("\nTraceback (most recent call last):")
    if is_traced:
        told = f"{told} {trace.strip().splitlines()[-1]}"
    if "ModuleNotFoundError" in words:
        told += "; install it on every node, or name it among the configuration's packages"
    return told


_UNDONE = {MemberState.ASKED: "answer", MemberState.LOADING: "load the rewards"}
