"""How nodes come to take part and cease to: they are found, asked what they are, given the rewards, and listened to.

Runs in the pool's thread. What may wait for the cluster goes to the outbox, and its answer comes back as a command.
"""

from __future__ import annotations

import concurrent.futures
import functools
import logging
import math
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from rewardkit.runtime.nodes.cluster import HostLink, NodeCluster, Outbox
from rewardkit.runtime.nodes.host import DESCRIBE_S, MAX_LOADS
from rewardkit.runtime.nodes.members import Member, Members, MemberState
from rewardkit.runtime.nodes.orders import (
    HostOrder,
    HostReady,
    NodeAnswers,
    NodeExpectation,
    NodeFacts,
    facts,
    why_no_part,
)
from rewardkit.shown.text import shortened

LOOK_S = 5.0  # Seconds between two looks at which nodes the cluster has
WAIT_S = 1.0  # Seconds that a node without answers waits before it says so
INSTALL_S = 900.0  # Seconds that a node may take to install the rewards' packages

_log = logging.getLogger("rewardkit")
_Request: TypeAlias = tuple[Any, ...]  # a method of the host, and its arguments
_Dialog: TypeAlias = Generator[_Request, Any, str]


class NodeEvents(Protocol):
    """Takes what happens to nodes, in the pool's thread."""

    def on_join(self, node: str, workers: int) -> None: ...

    def on_answers(self, node: str, answers: Sequence[NodeAnswers]) -> None: ...

    def on_loss(self, node: str, reason: str, *, blameless: bool) -> None: ...


@dataclass(slots=True, eq=False)
class Recruiting:
    """The nodes of a cluster, from their first sight to their loss.

    Attributes:
        due: When :meth:`look` is to be called next; never while the cluster is being asked.
    """

    cluster: NodeCluster  # Where nodes are
    order: HostOrder  # What a node is told
    expectation: NodeExpectation  # What it has to equal
    outbox: Outbox  # Runs what may wait
    command: Callable[[Callable[[], None]], None]  # Has something run in the pool's thread
    events: NodeEvents  # Takes what happens to nodes
    due: float = field(default=0.0, init=False)
    _members: Members = field(default_factory=Members, init=False)
    _unreachable: bool = field(default=False, init=False)

    def look(self, now: float) -> None:
        """Give up the nodes that have not begun in time; ask the cluster for its nodes where that is due."""
        for member in self._members.timeouts(now):
            self._dismiss(member, f"it did not {_TASKS[member.state]} in time")
        if now >= self.due:
            self.due = math.inf
            self.outbox.put(self._look_up)

    def ask(self, node: str, method: str, *arguments: object) -> None:
        """Call a method of a node that takes part; an error counts as the node's loss."""
        self._ask(self._members[node], None, (method, *arguments))

    def give_up(self, node: str, reason: str) -> None:
        """Stop using a node that has been silent for too long."""
        self._dismiss(self._members[node], reason)

    def close(self) -> None:
        """End all hosts."""
        for member in self._members.values():
            self._end(member)

    def _look_up(self) -> None:
        """Ask the cluster for its nodes, in the outbox."""
        try:
            self.expectation.level()  # it takes seconds, once, and not in the pool's thread
            nodes = self.cluster.nodes()
        except Exception as error:
            self.command(functools.partial(self._note_unreachable, str(error)))
        else:
            self.command(functools.partial(self._observe, nodes))

    def _note_unreachable(self, reason: str) -> None:
        self.due = time.monotonic() + LOOK_S
        if not self._unreachable:
            self._unreachable = True
            _log.warning("the cluster does not say which nodes it has; those in use go on: %s", reason)

    def _observe(self, nodes: Mapping[str, str]) -> None:
        now = time.monotonic()
        self.due, self._unreachable = now + LOOK_S, False
        for member in self._members.observe(nodes, now):
            self.outbox.put(functools.partial(self._start, member))

    def _start(self, member: Member) -> None:
        """Start a host, in the outbox."""
        try:
            link = self.cluster.host(member.node, self.order.path)
        except Exception as error:
            self.command(functools.partial(self._dismiss, member, str(error)))
        else:
            self.command(functools.partial(self._begin, member, link))

    def _begin(self, member: Member, link: HostLink) -> None:
        """Begin the dialog with a host that was started, unless its node was given up meanwhile."""
        member.link = link
        if self._members.is_current(member):
            dialog = self._dialog(member)
            self._ask(member, dialog, next(dialog))
        else:
            self._end(member)

    def _dialog(self, member: Member) -> _Dialog:
        """Yield the requests to a node's host, one after another; return why it may not take part."""
        reason = why_no_part(facts(), NodeFacts(*(yield ("hello",))))
        if reason is not None:
            return reason
        load_s = DESCRIBE_S + 2 * MAX_LOADS * self.order.load_timeout_s + bool(self.order.packages) * INSTALL_S
        member.move(MemberState.LOADING, time.monotonic() + load_s)
        ready = HostReady(*(yield ("prepare", self.order)))
        reason = self.expectation.why_other_scores(ready)
        if reason is not None:
            return reason
        member.move(MemberState.IN)
        self.events.on_join(member.node, ready.workers)
        while True:
            self.events.on_answers(member.node, (yield ("answers", WAIT_S)))

    def _ask(self, member: Member, dialog: _Dialog | None, request: _Request) -> None:
        """Call a method of a node's host, in the outbox; the dialog goes on with what it returns."""
        link = member.link
        if link is None:
            return

        def resume(future: concurrent.futures.Future[Any]) -> None:
            self.command(lambda: self._go_on(member, dialog, future))

        def task() -> None:
            try:
                link.ask(*request).add_done_callback(resume)
            except Exception as error:
                self.command(functools.partial(self._dismiss, member, str(error), blameless=True))

        self.outbox.put(task)

    def _go_on(self, member: Member, dialog: _Dialog | None, future: concurrent.futures.Future[Any]) -> None:
        """Go on with a node's dialog by its reply; an error or a wrong reply ends the node's part."""
        if not self._members.is_current(member):
            return  # late: it was given up
        error = future.exception()
        if error is not None:
            reason = shortened(without_traceback(str(error)) or type(error).__name__)
            if member.state is MemberState.IN:
                self._dismiss(member, reason)
            else:
                self._refuse(member, reason)
            return
        if dialog is None:
            return
        try:
            self._ask(member, dialog, dialog.send(future.result()))
        except StopIteration as end:
            self._refuse(member, end.value)
        except (ValueError, TypeError, AttributeError) as error:  # it must not end the driver's batch
            self._dismiss(member, shortened(f"it says what no host says: {error}"))

    def _refuse(self, member: Member, reason: str) -> None:
        _log.warning("node %s takes no part in scoring: %s", member.name, reason)
        member.move(MemberState.REFUSED)
        self._end(member)

    def _dismiss(self, member: Member, reason: str, *, blameless: bool = False) -> None:
        """Stop using a node for now; it is asked again later if it is still there."""
        if not self._members.is_current(member):
            return
        took_part = member.state is MemberState.IN
        _log.warning("node %s is %s: %s", member.name, "lost" if took_part else "not used", reason)
        member.rest(time.monotonic())
        self._end(member)
        if took_part:
            self.events.on_loss(member.node, f"its node {member.name} was lost: {reason}", blameless=blameless)

    def _end(self, member: Member) -> None:
        link, member.link = member.link, None
        if link is not None:
            self.outbox.put(link.end)


def without_traceback(message: str) -> str:
    """Return a host's error in short: of a traceback the last line, and the fix for a missing module."""
    summary, separator, trace = message.partition("\nTraceback (most recent call last):")
    if separator:
        summary = f"{summary} {trace.strip().splitlines()[-1]}"
    if "ModuleNotFoundError" in message:
        summary += "; install it on every node, or name it among the configuration's packages"
    return summary


_TASKS = {MemberState.STARTING: "answer", MemberState.LOADING: "load the rewards"}
