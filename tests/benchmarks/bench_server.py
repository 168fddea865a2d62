"""What a reward server costs: ``python tests/benchmarks/bench_server.py [--requests N] [--clients socket,aiohttp]``.

It compares the server with a bare route of starlette, which reads the same bodies and answers in the same shape but
does not score, and with itself without joining, in one run. All are asked in turn, round by round, and only ratios are
to be trusted. Beside them stands the processor's time of a request: of the server's own process, and of its workers.
Then memory over many requests. The servers run on both stacks: h11 on asyncio's loop, and httptools on uvloop.

The client is bare sockets, which cost so little that the server is what is measured, and aiohttp's, as trainers have
it, where it is installed: half of the time is then the client's.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import multiprocessing
import select
import socket
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import orjson
import psutil
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rewardkit import Rollout, Runtime, reward
from rewardkit.serving.app import RewardApp
from rewardkit.serving.server import RewardServer, spare_collections
from rewardkit.web.listening import Stack, config_of, listening

TEXT = "so the answer is 4 " * 100
ROW = {"prompt": "2+2=", "completion": TEXT, "example": {"answer": "4"}}
SINGLE = json.dumps({"query": ["2+2=" + TEXT], "prompts": ["2+2="], "labels": ["4"]}).encode()
OUTCOME = {
    "status": "scored", "score": 0.5, "cause": None, "reason": None, "duration_s": 2.25e-05, "version": "0123456789ab"
}  # fmt: skip
"""What the bare route answers of each rollout."""
BATCH = json.dumps({"rollouts": [ROW] * 64}).encode()


@reward
def correct(completion: str, answer: str) -> float:
    return float(answer in completion)


class Unjoined:
    """The server's application, each request a batch of its own."""

    def __init__(self, app: RewardApp, runtime: Runtime) -> None:
        async def score(rollouts: Sequence[Rollout], **options: Any) -> Any:
            return await runtime.ascore(rollouts)

        app._joining.score = score  # type: ignore[method-assign, assignment]
        self.app = app


async def _bare(request: Request) -> Response:
    body = orjson.loads(await request.body())
    reply: dict[str, Any]
    if "rollouts" in body:
        rows = [{"total": 0.5, "fate": "scored", "outcomes": {"correct": {**OUTCOME}}} for _ in body["rollouts"]]
        reply = {"totals": [row["total"] for row in rows], "rows": rows}
    else:
        column = [0.5] * len(body["query"])
        logs = dict.fromkeys(("correct", "unknown", "skipped", "failed"), column)
        reply = {"rewards": column, "scores": column, "extra_logs": logs}
    return Response(orjson.dumps(reply), media_type="application/json")


def _run_bare(stack: Stack, listener: socket.socket) -> None:
    """Serve the bare route by uvicorn's own protocol of a stack."""
    import uvicorn

    routes = [Route(path, _bare, methods=["POST"]) for path in ("/get_reward", "/v1/score")]
    http, loop = ("h11", "asyncio") if stack is Stack.PYTHON else ("httptools", "uvloop")
    config = uvicorn.Config(
        Starlette(routes=routes), http=http, loop=loop, log_config=None, access_log=False, server_header=False,
        lifespan="off", ws="none", proxy_headers=False, timeout_keep_alive=30,
    )  # fmt: skip
    uvicorn.Server(config).run(sockets=[listener])


def _run(kind: str, stack: Stack, ports: Any) -> None:
    """Serve in a process of its own, and report its port."""
    with listening("127.0.0.1", 0, tries=1) as listener:
        ports.put(listener.getsockname()[1])
        if kind == "bare":
            _run_bare(stack, listener)
            return
        with Runtime([correct], workers=2) as runtime:
            runtime.wait_loaded()
            app = RewardApp(runtime)
            spare_collections()
            served = Unjoined(app, runtime).app if kind == "unjoined" else app
            RewardServer(config_of(served, connections=512, end_s=1, stack=stack), served).run(sockets=[listener])


class _Client:
    """A connection that asks the same again and again, by bare reads and writes."""

    def __init__(self, port: int, request: bytes) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self._request = request
        self._received = bytearray()
        self._missing = 0  # Bytes of the answer that have not come
        self.began = 0.0

    def ask(self) -> None:
        self._received.clear()
        self._missing = 0
        self.began = time.perf_counter()
        self.socket.sendall(self._request)

    def is_answered(self) -> bool:
        """Read what has come, and return whether the answer is complete."""
        data = self.socket.recv(1 << 18)
        assert data, "the server hung up"
        if self._missing:
            self._missing -= len(data)
            return not self._missing
        self._received += data
        head, separator, body = self._received.partition(b"\r\n\r\n")
        if not separator:
            return False
        assert head.startswith(b"HTTP/1.1 200 "), head
        length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
        self._missing = int(length) - len(body)
        return not self._missing


def _load_sockets(port: int, request: bytes, connections: int, total: int) -> list[float]:
    """Ask over connections in one thread, and return the seconds of each request."""
    took: list[float] = []
    clients = {}
    with select.epoll() as poll:
        for _ in range(connections):
            client = _Client(port, request)
            clients[client.socket.fileno()] = client
            poll.register(client.socket, select.EPOLLIN)
            client.ask()
        asked = connections
        while len(took) < total:
            for descriptor, _ in poll.poll():
                client = clients[descriptor]
                if client.is_answered():
                    took.append(time.perf_counter() - client.began)
                    asked += 1
                    if asked <= total:
                        client.ask()
        for client in clients.values():
            client.socket.close()
    return took


async def _aiohttp_client(session: Any, url: str, body: bytes, count: Callable[[], bool], took: list[float]) -> None:
    """Ask as a trainer does."""
    while count():
        began = time.perf_counter()
        async with session.post(url, data=body, headers={"content-type": "application/json"}) as response:
            await response.read()
            assert response.status == 200
        took.append(time.perf_counter() - began)


async def _load_aiohttp(port: int, path: str, body: bytes, connections: int, total: int) -> list[float]:
    """Ask as trainers do, and return the seconds of each request."""
    import aiohttp

    left, took = total, []  # type: ignore[var-annotated]

    def count() -> bool:
        nonlocal left
        left -= 1
        return left >= 0

    url = f"http://127.0.0.1:{port}{path}"
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=connections)) as session:
        await asyncio.gather(*(_aiohttp_client(session, url, body, count, took) for _ in range(connections)))
    return took


def _load(client: str, port: int, path: str, body: bytes, connections: int, total: int) -> tuple[float, list[float]]:
    """Return requests a second, and the seconds of each."""
    began = time.perf_counter()
    if client == "aiohttp":
        took = asyncio.run(_load_aiohttp(port, path, body, connections, total))
    else:
        head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        request = f"{head}content-length: {len(body)}\r\n\r\n".encode() + body
        took = _load_sockets(port, request, connections, total)
    return total / (time.perf_counter() - began), sorted(took)


def _cpu_s(process: psutil.Process) -> tuple[float, float]:
    """Return the processor's seconds of a process, and of all that it has started."""
    own = process.cpu_times()
    others = [one.cpu_times() for one in process.children(recursive=True)]
    return own.user + own.system, sum(one.user + one.system for one in others)


class Server(NamedTuple):
    """A server that is compared."""

    port: int
    process: psutil.Process


def _compare(
    client: str, servers: Mapping[str, Server], path: str, body: bytes, connections: int, total: int, rounds: int
) -> None:
    rates: dict[str, list[float]] = {name: [] for name in servers}
    seconds: dict[str, list[float]] = {name: [] for name in servers}
    cpu: dict[str, list[tuple[float, float]]] = {name: [] for name in servers}
    for number in range(rounds + 1):
        for name, (port, process) in servers.items():
            own, others = _cpu_s(process)
            rate, took = _load(client, port, path, body, connections, total)
            if number:  # the first round warms up
                rates[name].append(rate)
                seconds[name] += took
                after = _cpu_s(process)
                cpu[name].append(((after[0] - own) / total, (after[1] - others) / total))
    print(f"{path}, {connections} connections, client {client}:")
    for name in servers:
        bare_rates = rates[f"bare, {name.partition(', ')[2]}"]
        took = sorted(seconds[name])
        ratio = statistics.median(a / b for a, b in zip(rates[name], bare_rates, strict=True))
        p50, p99 = (1000 * took[int(len(took) * share)] for share in (0.5, 0.99))
        own, others = (1e6 * statistics.median(column) for column in zip(*cpu[name], strict=True))
        line = f"{statistics.median(rates[name]):8,.0f} requests/s, p50 {p50:7.1f} ms, p99 {p99:7.1f} ms"
        line += f", processor {own:6.0f} + {others:5.0f} us"
        print(f"  {name:17} {line}  this / bare: {ratio:.2f}", flush=True)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--requests", type=int, default=100_000, help="for the memory; 0 for none")
    arguments.add_argument("--rounds", type=int, default=7)
    arguments.add_argument("--clients", default="socket,aiohttp", help="socket, aiohttp or both")
    arguments.add_argument("--kinds", default="joined,bare,unjoined", help="servers to compare; bare is always there")
    given = arguments.parse_args()
    clients = [name for name in given.clients.split(",") if name == "socket" or importlib.util.find_spec(name)]
    context = multiprocessing.get_context("spawn")
    servers: dict[str, Server] = {}
    processes = []
    try:
        for stack in Stack:
            for kind in dict.fromkeys([*given.kinds.split(","), "bare"]):
                queue = context.SimpleQueue()
                process = context.Process(target=_run, args=(kind, stack, queue))
                process.start()
                processes.append(process)
                servers[f"{kind}, {stack}"] = Server(queue.get(), psutil.Process(process.pid))
        batched = {name: server for name, server in servers.items() if not name.startswith("unjoined")}
        for client in clients:
            _compare(client, servers, "/get_reward", SINGLE, 64, 1_000, given.rounds)
            _compare(client, batched, "/v1/score", BATCH, 8, 150, given.rounds)
        for stack in Stack:
            _remembered(servers[f"joined, {stack}"], given.requests)
    finally:
        for process in processes:
            process.terminate()
            process.join(60)


def _remembered(server: Server, requests: int) -> None:
    """Print the memory of the server's process over many requests."""
    for done in range(0, requests, max(1, requests // 10)):
        _load("socket", server.port, "/get_reward", SINGLE, 64, requests // 10)
        now = server.process.memory_full_info()
        done += requests // 10
        print(
            f"memory after {done:,} more requests: {now.rss / 2**20:.1f} MiB, {now.uss / 2**20:.1f} its own", flush=True
        )


if __name__ == "__main__":
    main()
