"""What is said of an address at which no cluster is; without Ray, which is asked only afterwards."""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from rewardkit import ClusterError
from rewardkit.runtime.nodes import ray_cluster


def _refused(**options: object) -> None:
    raise RuntimeError(
        "Version mismatch: The cluster was started with:\n    Ray: 2.41.0\n    Python: 3.11.4\n"
        "This process on node 10.0.0.2 was started with:\n    Ray: 2.60.0\n    Python: 3.11.7\n"
    )


RAY = SimpleNamespace(init=_refused)


@pytest.fixture
def listener(monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    monkeypatch.setattr(ray_cluster, "CONNECT_S", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as made:
        yield made


def _address(listener: socket.socket) -> str:
    return f"127.0.0.1:{listener.getsockname()[1]}"


def _answer(listener: socket.socket, answer: bytes) -> None:
    def serve() -> None:
        asked, _ = listener.accept()
        with asked:
            asked.recv(100)
            asked.sendall(answer)

    threading.Thread(target=serve, daemon=True).start()


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("ray://head:10001", "Ray Client is not used"),
        ("local", "Ray is never started silently"),
        ("nonsense", "expected 'auto' or the head's HOST:PORT"),
        ("head:port", "expected 'auto' or the head's HOST:PORT"),
    ],
)
def test_what_is_no_address_is_named(address: str, words: str) -> None:
    with pytest.raises(ClusterError, match=words):
        ray_cluster.initialise(RAY, address)


def test_nothing_listens() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(ClusterError, match="no cluster there: "):
            ray_cluster.initialise(RAY, _address(unused))


def test_without_a_cluster_auto_is_told_in_our_words() -> None:
    """Ray's own advice names a flag of its command."""

    def refused(**options: object) -> None:
        raise ConnectionError("Please specify the one to connect to by setting `--address` flag")

    with pytest.raises(ClusterError, match=r"is part of no cluster; give the head's HOST:PORT, or begin one with"):
        ray_cluster.initialise(SimpleNamespace(init=refused), "auto")


def test_what_says_nothing_is_no_cluster(listener: socket.socket) -> None:
    with pytest.raises(ClusterError, match="no cluster there: timed out"):
        ray_cluster.initialise(RAY, _address(listener))


def test_what_speaks_otherwise_is_no_cluster(listener: socket.socket) -> None:
    _answer(listener, b"HTTP/1.1 400 Bad Request")
    with pytest.raises(ClusterError, match="what listens is not Ray"):
        ray_cluster.initialise(RAY, _address(listener))


def test_another_version_of_ray_is_told_in_rays_words(listener: socket.socket) -> None:
    _answer(listener, b"\0\0\0\4\0\0\0\0\0")
    with pytest.raises(ClusterError, match=r"The cluster was started with: Ray: 2\.41\.0 .* Ray: 2\.60\.0"):
        ray_cluster.initialise(RAY, _address(listener))


def test_a_training_is_to_outlive_its_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray ends a process a minute after its cluster's head has died, unless told otherwise as it is imported."""
    name = "RAY_gcs_rpc_server_reconnect_timeout_s"
    (tmp_path / "ray.py").write_text(f"import os\nSAID = os.environ.get({name!r})\nis_initialized = lambda: False\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for given, said in ((None, "864000"), ("5", "5")):
        monkeypatch.delitem(sys.modules, "ray", raising=False)
        monkeypatch.delenv(name, raising=False) if given is None else monkeypatch.setenv(name, given)
        with pytest.raises(ClusterError, match="never started silently"):
            ray_cluster.connect(None)
        assert (said, given) == (sys.modules["ray"].SAID, os.environ.get(name))
    monkeypatch.delitem(sys.modules, "ray")


def test_a_folder_that_is_named_ray_is_no_ray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python takes a folder on its path for a package."""
    (tmp_path / "ray").mkdir()
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(__path__=[str(tmp_path / "ray")]))
    with pytest.raises(ClusterError, match="What is imported is a folder: "):
        ray_cluster.connect("auto")


def test_an_address_beside_the_cluster_that_is_used_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """A process is connected to one cluster; another one's address is not taken silently."""
    context = SimpleNamespace(gcs_address="10.0.0.1:6379")
    ray = SimpleNamespace(get_runtime_context=lambda: context)
    for address in ("auto", "head:6379"):
        ray_cluster.warn_of_another(ray, address)
    assert "" == caplog.text
    ray_cluster.warn_of_another(ray, "10.0.0.2:6380")
    assert "this process is connected to the cluster at 10.0.0.1:6379" in caplog.text


def test_a_full_object_store_is_named() -> None:
    """Ray says so as a call is sent; the words are in the warning, and its advice is not."""

    class ObjectStoreFullError(Exception):
        """Ray's."""

    def remote(*arguments: object) -> None:
        raise ObjectStoreFullError("Failed to put object of 9 bytes.\nThe local object store is full\n\nTip: ...\nmore")

    ray = SimpleNamespace(exceptions=SimpleNamespace(ObjectStoreFullError=ObjectStoreFullError))
    host = ray_cluster.RayHost(ray, SimpleNamespace(take=SimpleNamespace(remote=remote)))
    with pytest.raises(ClusterError, match="the cluster's object store is full: Failed to put object of 9 bytes"):
        host.ask("take", 1)
