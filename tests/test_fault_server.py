"""The tests' own server: it ends among clients that come and go, and keeps its port."""

from __future__ import annotations

import gc
import socket
import threading

import fault_server
import pytest

ROUNDS = 3


def _come_and_go(port: int, over: threading.Event) -> None:
    """Ask and leave at once, again and again, also where nobody listens."""
    while not over.wait(0.001):  # a flood without a pause would leave the server's thread no time
        try:
            with socket.create_connection(("127.0.0.1", port), 60) as client:
                client.sendall(b"POST /v1 HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}")
        except OSError:
            continue


def test_a_server_that_ends_while_clients_come_leaves_nothing_open() -> None:
    """No socket is left to warn in whatever test the garbage collector runs next, and no thread fails."""
    for _ in range(ROUNDS):
        over = threading.Event()
        with fault_server.FaultServer([fault_server.reset(0)]) as server:
            clients = [threading.Thread(target=_come_and_go, args=(server.port, over)) for _ in range(3)]
            for client in clients:
                client.start()
            server.wait_for(3)
        over.set()
        for client in clients:
            client.join()
        gc.collect()  # what was left open warns here, and warnings are errors


def test_a_port_is_kept_from_the_first_start_to_the_end() -> None:
    """It refuses while its server is stopped, nobody else gets it, and the server is found there again."""
    with fault_server.FaultServer([fault_server.ok()]) as server:
        for _ in range(3):
            socket.create_connection(("127.0.0.1", server.port), 60).close()
            with socket.socket() as other, pytest.raises(OSError, match="in use"):
                other.bind(("127.0.0.1", server.port))
            server.stop()
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", server.port), 60)
            with socket.socket() as other, pytest.raises(OSError, match="in use"):
                other.bind(("127.0.0.1", server.port))
            server.start()
