"""The nodes of a cluster as the driver knows them: which are about to join, take calls, rest or are refused.

Pure: what a node replied and what time it is go in; what is to be done comes out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from rewardkit.runtime.nodes.cluster import HostLink

HELLO_S = 120.0  # Seconds that a host may take to start and say what it is: a process is started and rewardkit imported
REST_S = 30.0  # Seconds for which a node that was lost is let be before it is asked again


class MemberState(StrEnum):
    """Where a node stands."""

    STARTING = "starting"  # a host is being started on it
    LOADING = "loading"  # its workers load the rewards
    IN = "in"  # it takes calls
    RESTING = "resting"  # it was lost, and is asked again later if it is still there
    REFUSED = "refused"  # it may not take part


@dataclass(slots=True, eq=False)
class Member:
    """One node."""

    node: str
    name: str
    until: float  # when its state ends by itself, on the driver's clock
    state: MemberState = MemberState.STARTING
    link: HostLink | None = None

    def move(self, state: MemberState, until: float = math.inf) -> None:
        """Set the state, and when it ends."""
        self.state, self.until = state, until

    def rest(self, now: float) -> None:
        """Leave the node alone for a while."""
        self.move(MemberState.RESTING, now + REST_S)


class Members(dict[str, Member]):
    """All nodes of the cluster that are or were there, by id."""

    def observe(self, nodes: Mapping[str, str], now: float) -> list[Member]:
        """Bring the members up to the nodes that are alive; return those to ask: new, or lost and rested since."""
        for member in [member for member in self.values() if member.node not in nodes and member.link is None]:
            del self[member.node]
        candidates = [
            Member(node, name, now + HELLO_S)
            for node, name in nodes.items()
            if node not in self or (self[node].state is MemberState.RESTING and now >= self[node].until)
        ]
        self.update((member.node, member) for member in candidates)
        return candidates

    def is_current(self, member: Member) -> bool:
        """Whether what a node says is still of interest: it was not given up since."""
        return self.get(member.node) is member and member.state in _ALIVE

    def timeouts(self, now: float) -> list[Member]:
        """Return the nodes that take too long to begin."""
        return [member for member in self.values() if member.state in _BEGINNING and now > member.until]


_BEGINNING = (MemberState.STARTING, MemberState.LOADING)
_ALIVE = (*_BEGINNING, MemberState.IN)
