"""The nodes of a cluster as the driver knows them: who is asked to join, who took part, who was refused and why.

Pure: what a node said and what time it is go in; what is to be done comes out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from rewardkit.runtime.nodes.cluster import HostLink

HELLO_S = 120.0
"""Seconds that a host may take to start and say what it is: a process is started and rewardkit imported."""
REST_S = 30.0
"""Seconds for which a node that was lost is let be before it is asked again."""


class MemberState(StrEnum):
    """Where a node stands."""

    ASKED = "asked"
    """A host is being started on it."""
    LOADING = "loading"
    """Its workers load the rewards."""
    IN = "in"
    """It takes calls."""
    RESTING = "resting"
    """It was lost, and is asked again later if it is still there."""
    REFUSED = "refused"
    """It may not take part."""


@dataclass(slots=True, eq=False)
class Member:
    """One node."""

    node: str
    name: str
    until: float  # when its state ends by itself, on the driver's clock
    state: MemberState = MemberState.ASKED
    link: HostLink | None = None


class Members:
    """All nodes that were seen."""

    def __init__(self) -> None:
        self._members: dict[str, Member] = {}

    def seen(self, nodes: Mapping[str, str], now: float) -> list[Member]:
        """Take the nodes that are there, and return those to ask: new ones, and lost ones that have rested."""
        for node in [node for node, one in self._members.items() if node not in nodes and one.link is None]:
            del self._members[node]
        asked = []
        for node, name in nodes.items():
            before = self._members.get(node)
            if before is None or (before.state is MemberState.RESTING and now >= before.until):
                self._members[node] = Member(node, name, now + HELLO_S)
                asked.append(self._members[node])
        return asked

    def is_current(self, member: Member) -> bool:
        """Whether what a node says is still of interest: it was not given up since."""
        return self._members.get(member.node) is member and member.state in _ALIVE

    def load(self, member: Member, until: float) -> None:
        """Note that a node's workers load."""
        member.state, member.until = MemberState.LOADING, until

    def enter(self, member: Member) -> None:
        """Note that a node takes calls."""
        member.state, member.until = MemberState.IN, math.inf

    def refuse(self, member: Member) -> HostLink | None:
        """Never use a node again, and return the host to end."""
        member.state, member.until = MemberState.REFUSED, math.inf
        return self._unlinked(member)

    def rest(self, member: Member, now: float) -> HostLink | None:
        """Leave a node alone for a while, and return the host to end."""
        member.state, member.until = MemberState.RESTING, now + REST_S
        return self._unlinked(member)

    def late(self, now: float) -> list[Member]:
        """Return the nodes that have taken too long to begin."""
        return [one for one in self._members.values() if one.state in _BEGINNING and now > one.until]

    def get(self, node: str) -> Member:
        """Return a node."""
        return self._members[node]

    def links(self) -> list[HostLink]:
        """Return all hosts."""
        return [one.link for one in self._members.values() if one.link is not None]

    def _unlinked(self, member: Member) -> HostLink | None:
        link, member.link = member.link, None
        return link


_BEGINNING = (MemberState.ASKED, MemberState.LOADING)
_ALIVE = (*_BEGINNING, MemberState.IN)
