"""What the pool needs of a cluster: its nodes, a host on each of them, and a thread that waits for it."""

from __future__ import annotations

import concurrent.futures
import logging
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

_log = logging.getLogger("rewardkit")


class HostLink(Protocol):
    """A :class:`~rewardkit.runtime.nodes.host.NodeHost` on a node, from afar."""

    def ask(self, method: str, *arguments: object) -> concurrent.futures.Future[Any]:
        """Call a method of the host, and return what it will return or raise.

        Raises:
            ClusterError: The call cannot be sent, for example because the cluster's memory is full.
        """

    def end(self) -> None:
        """End the host's process and with it its workers."""


class NodeCluster(Protocol):
    """A cluster of machines. Its methods may take seconds; one thread calls them."""

    def nodes(self) -> Mapping[str, str]:
        """Return the nodes that are alive beside the driver's own: a name for each, by id.

        Raises:
            ClusterError: The cluster does not answer.
        """

    def host(self, node: str, path: Sequence[str]) -> HostLink:
        """Start a host on a node.

        Raises:
            ClusterError: The cluster does not answer.
        """


class Outbox:
    """Runs tasks that may wait for the cluster in order, in a daemon thread. A task handles its own errors."""

    def __init__(self, name: str) -> None:
        self._tasks: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)  # a hung cluster delays no exit

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def put(self, task: Callable[[], None]) -> None:
        """Queue a task behind those before it."""
        self._tasks.put(task)

    def stop(self, timeout_s: float) -> None:
        """Run the tasks in the queue and end; wait at most ``timeout_s``, because a cluster may not answer."""
        self._tasks.put(None)
        if self._thread.is_alive():
            self._thread.join(timeout_s)

    def _run(self) -> None:
        while (task := self._tasks.get()) is not None:
            try:
                task()
            except Exception:
                _log.exception("a task for the cluster failed")
