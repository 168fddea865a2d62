"""A cluster without Ray: hosts in threads of this process, each with real workers, that can be killed and frozen."""

from __future__ import annotations

import concurrent.futures
import threading
from collections.abc import Callable, Sequence
from typing import Any

from rewardkit import ClusterError
from rewardkit.runtime.nodes.host import NodeHost
from rewardkit.runtime.nodes.orders import HostReady, NodeFacts


class ThreadHost:
    """A host of which each method runs in a thread of its own."""

    def __init__(self, path: Sequence[str]) -> None:
        self.host = NodeHost(path)
        self.frozen = False
        self.dead = threading.Event()
        self.refusals: dict[str, Exception] = {}
        self.told: dict[str, Callable[[Any], Any]] = {}
        self.asked: list[str] = []
        self._waiting: list[concurrent.futures.Future[Any]] = []

    def ask(self, method: str, *arguments: Any) -> concurrent.futures.Future[Any]:
        self.asked.append(method)
        if method in self.refusals:
            raise self.refusals[method]
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        self._waiting.append(future)
        if self.dead.is_set():
            self._fail(future)
        else:
            threading.Thread(target=self._run, args=(future, method, arguments), daemon=True).start()
        return future

    def _run(self, future: concurrent.futures.Future[Any], method: str, arguments: Any) -> None:
        try:
            result, fault = self.told.get(method, _same)(getattr(self.host, method)(*arguments)), None
        except Exception as reason:
            result, fault = None, reason
        if self.frozen or self.dead.is_set():
            return
        try:
            future.set_result(result) if fault is None else future.set_exception(ClusterError(str(fault)))
        except concurrent.futures.InvalidStateError:
            return  # killed meanwhile

    def kill(self) -> None:
        self.dead.set()
        for future in self._waiting:
            if not future.done():
                self._fail(future)
        self.host.close()

    def _fail(self, future: concurrent.futures.Future[Any]) -> None:
        future.set_exception(ClusterError("the actor died"))

    def end(self) -> None:
        self.kill()


class ThreadCluster:
    """Nodes by name; each host is made on demand."""

    def __init__(self, *names: str) -> None:
        self.names = list(names)
        self.hosts: dict[str, ThreadHost] = {}
        self.on_host: Callable[[str, ThreadHost], None] = lambda name, host: None
        self.fault: Exception | None = None

    def nodes(self) -> dict[str, str]:
        if self.fault is not None:
            raise self.fault
        return {name: f"machine-{name}" for name in self.names}

    def host(self, node: str, path: Sequence[str]) -> ThreadHost:
        made = self.hosts[node] = ThreadHost(path)
        self.on_host(node, made)
        return made


def other_python(theirs: NodeFacts) -> NodeFacts:
    return theirs._replace(python="3.1")


def other_version(theirs: HostReady) -> HostReady:
    return theirs._replace(versions=dict.fromkeys(theirs.versions, "0" * 12))


def _same(result: Any) -> Any:
    return result
