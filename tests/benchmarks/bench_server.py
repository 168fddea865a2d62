"""What a reward server costs: ``python tests/benchmarks/bench_server.py [--requests N] [--clients socket,aiohttp]``.

It compares the server with a bare route of starlette, which reads the same bodies and answers in the same shape but
does not score, and with itself without joining, in one run: the three are asked in turn, round by round, and only
ratios are to be trusted. Beside them stands the
processor's time of a request: of the server's own process, and of its workers. Then memory over many requests.

The client is a bare socket, which costs so little that the server is what is measured, and aiohttp's, as trainers have
it, where it is installed: half of the time is then the client's.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import multiprocessing
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
from rewardkit.web.listening import config_of, listening

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
    told: dict[str, Any]
    if "rollouts" in body:
        rows = [{"total": 0.5, "fate": "scored", "outcomes": {"correct": {**OUTCOME}}} for _ in body["rollouts"]]
        told = {"totals": [row["total"] for row in rows], "rows": rows}
    else:
        column = [0.5] * len(body["query"])
        logs = dict.fromkeys(("correct", "unknown", "skipped", "failed"), column)
        told = {"rewards": column, "scores": column, "extra_logs": logs}
    return Response(orjson.dumps(told), media_type="application/json")


def _run(kind: str, ports: Any) -> None:
    """Serve in a process of its own, and tell its port."""
    with listening("127.0.0.1", 0, tries=1) as bound:
        ports.put(bound.getsockname()[1])
        if kind == "bare":
            import uvicorn

            routes = [Route(path, _bare, methods=["POST"]) for path in ("/get_reward", "/v1/score")]
            uvicorn.Server(config_of(Starlette(routes=routes), connections=512, end_s=1)).run(sockets=[bound])
            return
        with Runtime([correct], workers=2) as runtime:
            runtime.wait_loaded()
            app = RewardApp(runtime)
            spare_collections()
            made = Unjoined(app, runtime).app if kind == "unjoined" else app
            RewardServer(config_of(made, connections=512, end_s=1), made).run(sockets=[bound])


async def _client(port: int, request: bytes, count: Callable[[], bool], took: list[float]) -> None:
    """Ask over one connection while there is something to ask."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while count():
        began = time.perf_counter()
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 "), head
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        await reader.readexactly(int(length.partition(b":")[2]))
        took.append(time.perf_counter() - began)
    writer.close()


async def _aiohttp_client(session: Any, url: str, body: bytes, count: Callable[[], bool], took: list[float]) -> None:
    """Ask as a trainer does."""
    while count():
        began = time.perf_counter()
        async with session.post(url, data=body, headers={"content-type": "application/json"}) as response:
            await response.read()
            assert response.status == 200
        took.append(time.perf_counter() - began)


async def _load(
    client: str, port: int, path: str, body: bytes, connections: int, total: int
) -> tuple[float, list[float]]:
    """Return requests a second, and the seconds of each."""
    left, took = total, []  # type: ignore[var-annotated]

    def count() -> bool:
        nonlocal left
        left -= 1
        return left >= 0

    began = time.perf_counter()
    if client == "aiohttp":
        import aiohttp

        url = f"http://127.0.0.1:{port}{path}"
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=connections)) as session:
            await asyncio.gather(*(_aiohttp_client(session, url, body, count, took) for _ in range(connections)))
    else:
        head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        request = f"{head}content-length: {len(body)}\r\n\r\n".encode() + body
        await asyncio.gather(*(_client(port, request, count, took) for _ in range(connections)))
    return total / (time.perf_counter() - began), sorted(took)


def _cpu_s(process: psutil.Process) -> tuple[float, float]:
    """Return the processor's seconds of a process, and of all that it has started."""
    own = process.cpu_times()
    others = [one.cpu_times() for one in process.children(recursive=True)]
    return own.user + own.system, sum(one.user + one.system for one in others)


class Kind(NamedTuple):
    """A server that is compared."""

    port: int
    process: psutil.Process


def _compare(
    client: str, kinds: Mapping[str, Kind], path: str, body: bytes, connections: int, total: int, rounds: int
) -> None:
    rates: dict[str, list[float]] = {kind: [] for kind in kinds}
    seconds: dict[str, list[float]] = {kind: [] for kind in kinds}
    cpu: dict[str, list[tuple[float, float]]] = {kind: [] for kind in kinds}
    for number in range(rounds + 1):
        for kind, (port, process) in kinds.items():
            own, others = _cpu_s(process)
            rate, took = asyncio.run(_load(client, port, path, body, connections, total))
            if number:  # the first round warms up
                rates[kind].append(rate)
                seconds[kind] += took
                after = _cpu_s(process)
                cpu[kind].append(((after[0] - own) / total, (after[1] - others) / total))
    own_rates = rates["joined"]
    print(f"{path}, {connections} connections, client {client}:")
    for kind in kinds:
        took = sorted(seconds[kind])
        ratio = statistics.median(a / b for a, b in zip(own_rates, rates[kind], strict=True))
        p50, p99 = (1000 * took[int(len(took) * share)] for share in (0.5, 0.99))
        own, others = (1e6 * statistics.median(column) for column in zip(*cpu[kind], strict=True))
        said = f"{statistics.median(rates[kind]):8,.0f} requests/s, p50 {p50:7.1f} ms, p99 {p99:7.1f} ms"
        said += f", processor {own:6.0f} + {others:5.0f} us"
        print(f"  {kind:9} {said}  the server / this: {ratio:.2f}", flush=True)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--requests", type=int, default=100_000, help="for the memory; 0 for none")
    arguments.add_argument("--rounds", type=int, default=7)
    arguments.add_argument("--clients", default="socket,aiohttp", help="socket, aiohttp or both")
    given = arguments.parse_args()
    clients = [one for one in given.clients.split(",") if one == "socket" or importlib.util.find_spec(one)]
    context = multiprocessing.get_context("spawn")
    kinds: dict[str, Kind] = {}
    processes = []
    try:
        for kind in ("joined", "bare", "unjoined"):
            queue = context.SimpleQueue()
            process = context.Process(target=_run, args=(kind, queue))
            process.start()
            processes.append(process)
            kinds[kind] = Kind(queue.get(), psutil.Process(process.pid))
        pair = {kind: kinds[kind] for kind in ("joined", "bare")}
        for client in clients:
            _compare(client, kinds, "/get_reward", SINGLE, 64, 1_000, given.rounds)
            _compare(client, pair, "/v1/score", BATCH, 8, 150, given.rounds)
        _remembered(kinds["joined"], given.requests)
    finally:
        for process in processes:
            process.terminate()
            process.join(60)


def _remembered(kind: Kind, requests: int) -> None:
    """Print the memory of the server's process over many requests."""
    for done in range(0, requests, max(1, requests // 10)):
        asyncio.run(_load("socket", kind.port, "/get_reward", SINGLE, 64, requests // 10))
        now = kind.process.memory_full_info()
        done += requests // 10
        print(
            f"memory after {done:,} more requests: {now.rss / 2**20:.1f} MiB, {now.uss / 2**20:.1f} its own", flush=True
        )


if __name__ == "__main__":
    main()
