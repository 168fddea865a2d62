"""What the pool needs of a cluster: the nodes that are there, and a host on each of them."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Mapping, Sequence
from typing import Any, Protocol


class HostLink(Protocol):
    """A :class:`~rewardkit.runtime.nodes.host.NodeHost` on a node, from afar."""

    def ask(self, method: str, *arguments: Any) -> concurrent.futures.Future[Any]:
        """Call a method of the host, and return what it will return or raise.

        Raises:
            ClusterError: The call cannot be sent, for example because the cluster's memory is full.
        """

    def end(self) -> None:
        """End the host's process and with it its workers."""


class NodeCluster(Protocol):
    """A cluster of machines. Its methods may take seconds; one thread calls them."""

    def nodes(self) -> Mapping[str, str]:
        """Return the nodes that are alive beside the driver's own: words that name each, by id.

        Raises:
            ClusterError: The cluster does not answer.
        """

    def host(self, node: str, path: Sequence[str]) -> HostLink:
        """Start a host on a node.

        Raises:
            ClusterError: The cluster does not answer.
        """
