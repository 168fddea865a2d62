"""A cluster that Ray reaches; the only module that knows Ray.

Ray is used where it runs already, and never started here. A host is an actor that takes none of the cluster's CPUs, so
that scoring never waits behind a training's reservation. It belongs to this process, and ends with it.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import logging
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rewardkit.errors import ClusterError
from rewardkit.runtime.nodes.host import NodeHost

_log = logging.getLogger("rewardkit")
CONNECT_S = 5.0  # Seconds that an address has to take a connection
# Ray ends a process that has not reached the head for so long, 60 s by default. It reads the variable when it is
# imported, and counts milliseconds in 32 bits.
_PATIENCE, _PATIENT_S = "RAY_gcs_rpc_server_reconnect_timeout_s", str(10 * 86400)
_VERSION_LINES = 6  # lines in which Ray says that versions differ: the cluster's and this process's
CONCURRENT = 8  # Methods of a host that run at once: it waits in one for answers while it takes calls in others


def connect(address: str | None, *, with_own: bool = False) -> RayCluster:
    """Return the cluster that this process is connected to, or the one at an address.

    Args:
        address: ``host:port`` of the cluster's head, ``"auto"`` for the one that runs on this machine, or ``None``
            where this process has called ``ray.init`` itself.
        with_own: Whether this process's own node counts too.

    Raises:
        ClusterError: Ray is not installed, there is no cluster, or it is of another version.
    """
    with _patience():
        ray = _import_ray()
        connected = ray.is_initialized()
        if not connected:
            if address is None:
                raise ClusterError(
                    "lane='ray' needs a cluster, and Ray is never started silently: call ray.init() first, or give "
                    "ray_address='auto' for the cluster of this machine, or ray_address='HOST:6379'"
                )
            initialise(ray, address)
    if ray.util.client.ray.is_connected():
        raise ClusterError(
            "lane='ray' does not work through Ray Client (ray://): run the training on a node of the cluster, for "
            "example with ray job submit, and give ray_address='auto'"
        )
    if connected and address is not None:
        warn_of_another(ray, address)
    return RayCluster(ray, with_own=with_own)


@contextlib.contextmanager
def _patience() -> Iterator[None]:
    """Set the variable by which Ray, if first imported in the block, survives the loss of its cluster; restore it."""
    before = os.environ.get(_PATIENCE)
    os.environ.setdefault(_PATIENCE, _PATIENT_S)
    try:
        yield
    finally:
        if before is None:
            del os.environ[_PATIENCE]


def _import_ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise ClusterError("lane='ray' needs Ray, which is not installed: pip install 'ray>=2.41'") from error
    if not hasattr(ray, "is_initialized"):
        where = ", ".join(ray.__path__)
        raise ClusterError(f"lane='ray' needs Ray: pip install 'ray>=2.41'. What is imported is a folder: {where}")
    return ray


def warn_of_another(ray: Any, address: str) -> None:
    """Log that an address is not used where this process is already connected to a cluster at another port."""
    head = str(ray.get_runtime_context().gcs_address)
    if address != "auto" and address.rpartition(":")[2] != head.rpartition(":")[2]:
        _log.warning("ray_address=%r is not used: this process is connected to the cluster at %s", address, head)


def initialise(ray: Any, address: str) -> None:
    """Connect this process to the cluster at an address; raise :class:`ClusterError` where no cluster answers."""
    if address.startswith("ray://"):
        raise ClusterError(f"ray_address={address!r}: Ray Client is not used; expected 'auto' or the head's HOST:PORT")
    host, _, port = address.rpartition(":")
    if address not in ("auto", "local") and not (host and port.isdigit()):
        raise ClusterError(f"ray_address={address!r}: expected 'auto' or the head's HOST:PORT, such as '10.0.0.1:6379'")
    if address == "local":
        raise ClusterError(
            "ray_address='local' would start Ray here, and Ray is never started silently: run 'ray start --head'"
        )
    if address != "auto":
        _check_listens(address, host, int(port))
    try:
        ray.init(address=address, log_to_driver=False, logging_level="ERROR")
    except ConnectionError as error:
        where = "this machine is part of no cluster; give the head's HOST:PORT, or begin one with 'ray start --head'"
        raise ClusterError(f"ray_address={address!r}: {where if address == 'auto' else error}") from error
    except Exception as error:
        raise ClusterError(f"ray_address={address!r}: {_first_lines(error, _VERSION_LINES)}") from error


def _check_listens(address: str, host: str, port: int) -> None:
    """Raise ClusterError where nothing that could be Ray listens at an address; Ray itself would wait for minutes."""
    try:
        with socket.create_connection((host, port), timeout=CONNECT_S) as connection:
            if os.environ.get("RAY_USE_TLS", "0") == "1":
                return
            connection.sendall(_HELLO_HTTP2)
            reply = connection.recv(9)
    except OSError as error:
        raise ClusterError(f"ray_address={address!r}: no cluster there: {error}") from error
    if reply[3:4] != _SETTINGS:
        raise ClusterError(
            f"ray_address={address!r}: no cluster there: what listens is not Ray; expected the head's port"
        )


_HELLO_HTTP2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
"""What an HTTP/2 client says first, and empty settings (RFC 9113, 3.4); Ray's head speaks gRPC, which is HTTP/2."""
_SETTINGS = b"\4"  # the type of a server's first frame


class RayCluster:
    """The nodes of a Ray cluster, this process's own aside: that is node 0.

    Args:
        ray: The module, connected.
        with_own: Whether this process's own node counts too.
    """

    def __init__(self, ray: Any, *, with_own: bool = False) -> None:
        self._ray = ray
        self._own = None if with_own else ray.get_runtime_context().get_node_id()

    def nodes(self) -> Mapping[str, str]:
        """Return the nodes that are alive and have CPUs, by id."""
        if not self._ray.is_initialized():
            raise ClusterError("this process has left its cluster: ray.shutdown() was called")
        try:
            nodes = self._ray.nodes()
        except Exception as error:
            raise ClusterError(_first_lines(error)) from error
        return {
            node["NodeID"]: f"{node['NodeManagerHostname']} ({node['NodeID'][:8]})"
            for node in nodes
            if node["Alive"] and node["NodeID"] != self._own and node["Resources"].get("CPU")
        }

    def host(self, node: str, path: Sequence[str]) -> RayHost:
        """Start a host on a node."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        try:
            actor = self._ray.remote(NodeHost).options(
                num_cpus=0,
                max_concurrency=CONCURRENT,
                max_restarts=0,
                max_task_retries=0,
                scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False),
            )
            return RayHost(self._ray, actor.remote(list(path)))
        except Exception as error:
            raise ClusterError(_first_lines(error)) from error


@dataclass(frozen=True, slots=True)
class RayHost:
    """A host in an actor."""

    ray: Any  # the module
    actor: object

    def ask(self, method: str, *arguments: object) -> concurrent.futures.Future[Any]:
        """Call a method of the actor."""
        try:
            inner: concurrent.futures.Future[Any] = getattr(self.actor, method).remote(*arguments).future()
        except self.ray.exceptions.ObjectStoreFullError as error:
            raise ClusterError(f"the cluster's object store is full: {_first_lines(error)}") from error
        except Exception as error:
            raise ClusterError(_first_lines(error)) from error
        outer: concurrent.futures.Future[Any] = concurrent.futures.Future()

        def pass_on(done: concurrent.futures.Future[Any]) -> None:
            error = done.exception()
            if error is None:
                outer.set_result(done.result())
            else:
                outer.set_exception(ClusterError(_reason(error)))

        inner.add_done_callback(pass_on)
        return outer

    def end(self) -> None:
        """Kill the actor; its workers end with it."""
        with contextlib.suppress(Exception):  # it is gone already, or the whole cluster is
            self.ray.kill(self.actor)


def _first_lines(error: BaseException, count: int = 3) -> str:
    """Return the first lines of what Ray says, which goes on with advice of its own."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(lines[:count]) or type(error).__name__


def _reason(error: BaseException) -> str:
    """Return the message of an error on a node: the host's own, or Ray's on its process."""
    cause = getattr(error, "cause", None)
    if isinstance(cause, BaseException):
        return str(cause) or type(cause).__name__
    text = str(error)
    if "failed to be imported" in text or "failed to import" in text:
        return f"rewardkit cannot be imported there: {text.strip().splitlines()[-1].strip()}"
    return _first_lines(error)
