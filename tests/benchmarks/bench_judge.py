"""What a judge costs beside the server it asks: wall time beside the ideal, and microseconds of its own.

    python tests/benchmarks/bench_judge.py [--judgements 2000] [--in-flight 128] [--latency 1.0] [--chain 1]

The server runs in a process of its own, answers after the latency, and lets one completion in five meet faults: a
first request, or with ``--chain 3`` by its number the first one, two or three, each after the latency too. So the
requests that the retry policy makes are known beforehand.

Three times stand beside the wall time. The plain one is latency x ceil(requests / in flight). The one by arithmetic
adds what tries in a row cost a batch that ends: judgements begun in their order, as many as the judge begins at once,
each one's tries and mean waits one after another, no processor taking any time. The third is measured in turn with the
judge: as many bare requests of the same bytes by asyncio's streams on connections kept open, as many in flight, with
no client library, tries or waits.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import functools
import heapq
import json
import math
import pstats
import re
import statistics
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rich.console import Console
from rich.table import Table

from builtin_rewards.judge import Criterion, JudgeCache, LLMJudge, Load, RetryPolicy
from rewardkit import Outcome, Rollout, Runtime
from rewardkit.testing import FakeJudge

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))
import fault_server

ATTEMPTS = 4
VERDICT = '{"correct": {"reason": "It is what the question asks for.", "score": %d}}'
_NUMBER = re.compile(r"It is (\d)\. #(\d+)")
_tried: Counter[int] = Counter()


def faulty_requests(number: int, every: int, chain: int) -> int:
    """Return how many requests of a completion meet a fault: none for most, from one up to ``chain`` for the others."""
    return 0 if not every or number % every != every - 1 else 1 + number // every % chain


def question_of(body: Mapping[str, Any]) -> tuple[int, int]:
    """Return the grade that a request's completion is to get, and its number."""
    found = _NUMBER.search(body["messages"][-1]["content"])
    assert found is not None
    return int(found[1]), int(found[2])


def script(
    number: int, body: Mapping[str, Any], headers: Mapping[str, str], *, latency_s: float, every: int, chain: int = 1
) -> Any:
    """What the server does; it runs in the server's process."""
    grade, place = question_of(body)
    _tried[place] += 1
    if _tried[place] > faulty_requests(place, every, chain):
        return fault_server.ok(VERDICT % grade, delay_s=latency_s)
    kinds = [
        fault_server.status(500),
        fault_server.status(503),
        fault_server.reset(),
        fault_server.html(),
        fault_server.empty_choices(),
    ]
    kinds += [fault_server.truncated_json(), fault_server.null_choices()]
    return fault_server.replace(kinds[place // max(1, every) % len(kinds)], delay_s=latency_s)


def completion(number: int) -> str:
    """Return a completion of about the length of a short answer, whose grade is known."""
    return f"It is {number % 5 + 1}. #{number} " + "It follows from what was given above. " * 20


def judge(url: str, in_flight: int, **settings: Any) -> LLMJudge:
    """Return a judge with the policy's usual waits."""
    criteria = [Criterion("correct", "Is it right?")]
    load, retry = Load(concurrency=in_flight), RetryPolicy(attempts=ATTEMPTS)
    return LLMJudge("m", criteria, base_url=url, load=load, retry=retry, deadline_s=120.0, **settings)


def judged(url: str, arguments: argparse.Namespace) -> tuple[float, list[Outcome]]:
    """Return the seconds that a batch takes in a worker that has its client already."""
    made = judge(url, arguments.in_flight)
    with Runtime([made], max_infrastructure_rate=1.0) as runtime:
        warm = [Rollout("p", completion(10**6 + 5 * number)) for number in range(arguments.in_flight)]
        runtime.score(warm)
        rollouts = [Rollout("What is it?", completion(number)) for number in range(arguments.judgements)]
        began = time.perf_counter()
        outcomes = list(runtime.score(rollouts)["judge"])
        return time.perf_counter() - began, outcomes


async def _bare(url: str, bodies: list[bytes], in_flight: int) -> float:
    """Sends bodies over as many connections, one after another on each, and gives the seconds."""
    parts = urlsplit(url)
    waiting = iter(bodies)

    async def lane() -> None:
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        for body in waiting:
            writer.write(
                f"POST {parts.path}/chat/completions HTTP/1.1\r\nHost: {parts.netloc}\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
                + body
            )
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            await reader.readexactly(int(head.partition("content-length:")[2].split()[0]))
        writer.close()

    began = time.perf_counter()
    await asyncio.gather(*(lane() for _ in range(in_flight)))
    return time.perf_counter() - began


def bodies_of(count: int) -> list[bytes]:
    """Return the bodies that the judge would send, so many of them."""
    fake = FakeJudge(VERDICT % 4)
    made = LLMJudge("m", [Criterion("correct", "Is it right?")], client=fake)
    for number in range(16):
        made(prompt="What is it?", completion=completion(number))
    samples = [{"model": one.model, "messages": one.messages, **one.options} for one in fake.asked]
    return [json.dumps(samples[number % len(samples)]).encode() for number in range(count)]


def arithmetic(faulty: Sequence[int], in_flight: int, begun: int, latency_s: float) -> float:
    """Return the seconds after which the last request ends where nothing but latency and waits takes time.

    Args:
        faulty: How many requests of each judgement meet a fault.
        in_flight: Requests in flight at once.
        begun: Judgements begun at once.
        latency_s: Seconds of a request.
    """
    policy = RetryPolicy(attempts=ATTEMPTS)
    now, free, room, coming = 0.0, in_flight, begun, deque(range(len(faulty)))
    waiting: deque[tuple[int, int]] = deque()  # judgements and their tries so far
    events: list[tuple[float, bool, int, int]] = []  # the end of a request, or of a wait for the next try
    while events or coming:
        for _ in range(min(room, len(coming))):
            waiting.append((coming.popleft(), 0))
            room -= 1
        for _ in range(min(free, len(waiting))):
            heapq.heappush(events, (now + latency_s, True, *waiting.popleft()))
            free -= 1
        now, is_answer, number, tries = heapq.heappop(events)
        if not is_answer:
            waiting.append((number, tries))
            continue
        free += 1
        if tries < faulty[number]:
            heapq.heappush(events, (now + policy.wait_s(tries + 1, None, 0.5), False, number, tries + 1))
        else:
            room += 1
    return now


def under_faults(arguments: argparse.Namespace) -> list[tuple[str, str]]:
    """Return figures of judging under faults, and checks every outcome on the way."""
    count, in_flight, latency_s = arguments.judgements, arguments.in_flight, arguments.latency
    faulty = [faulty_requests(number, arguments.every, arguments.chain) for number in range(count)]
    due = {number: 1 + times for number, times in enumerate(faulty)}
    requests, begun = sum(due.values()), judge("http://127.0.0.1:1/v1", in_flight, verify=False).options.concurrency
    assert begun is not None
    walls, bares = [], []
    for _ in range(arguments.rounds):
        serve = functools.partial(script, latency_s=latency_s, every=arguments.every, chain=arguments.chain)
        with fault_server.FaultServer(serve, process=True) as server:
            wall_s, outcomes = judged(server.url, arguments)
            sent = Counter(question_of(one.body)[1] for one in server.seen)
        assert [number % 5 / 4 for number in range(count)] == [outcome.score for outcome in outcomes], [
            outcome.error for outcome in outcomes if outcome.score is None
        ][:3]
        assert due.items() <= sent.items(), {n: (sent[n], outcomes[n]) for n in due if due[n] != sent[n]}
        walls.append(wall_s)
        with fault_server.FaultServer(functools.partial(script, latency_s=latency_s, every=0), process=True) as server:
            asyncio.run(_bare(server.url, bodies_of(in_flight), in_flight))
            bares.append(asyncio.run(_bare(server.url, bodies_of(requests), in_flight)))
    wall_s, bare_s = statistics.median(walls), statistics.median(bares)
    rounds_s = latency_s * math.ceil(requests / in_flight)
    arithmetic_s = arithmetic(faulty, in_flight, begun, latency_s)
    return [
        ("judgements, requests", f"{count}, {requests}"),
        ("wall time", f"{wall_s:.2f} s"),
        ("latency x rounds", f"{rounds_s:.2f} s"),
        ("by arithmetic, with tries in a row", f"{arithmetic_s:.2f} s"),
        ("by bare requests", f"{bare_s:.2f} s"),
        ("wall / latency x rounds (aim: 1.15)", f"{wall_s / rounds_s:.3f}"),
        ("wall / by arithmetic", f"{wall_s / arithmetic_s:.3f}"),
    ]


def _each_us(act: Callable[[int], Any], count: int) -> float:
    """Return microseconds of one of so many calls in a row on one event loop."""

    async def all_of_them() -> float:
        await act(-1)
        began = time.perf_counter()
        for number in range(count):
            await act(number)
        return time.perf_counter() - began

    return 1e6 * asyncio.run(all_of_them()) / count


def overheads(count: int = 1000) -> list[tuple[str, str]]:
    """Return what a judgement takes without a server, and one whose reply is kept."""
    criteria = [Criterion("correct", "Is it right?")]
    made = LLMJudge("m", criteria, client=FakeJudge(VERDICT % 4))
    own = _each_us(lambda n: made(prompt="p", completion=completion(n)), count)
    with tempfile.TemporaryDirectory() as folder:
        kept = JudgeCache(Path(folder, "judge.db"))
        cached = LLMJudge("m", criteria, client=FakeJudge(VERDICT % 4), cache=kept)
        first = _each_us(lambda n: cached(prompt="p", completion=completion(n)), count)
        again = _each_us(lambda n: cached(prompt="p", completion=completion(n)), count)
        kept.close()
    figures = {"own overhead of a judgement": own, "the same, and kept": first, "a cache hit": again}
    return [(what, f"{each:.0f} us") for what, each in figures.items()]


def profile(arguments: argparse.Namespace) -> None:
    """Print where the client's processor time goes, in this process and with no faults."""

    async def batch(made: LLMJudge) -> None:
        await asyncio.gather(*(made(prompt="p", completion=completion(n)) for n in range(arguments.judgements)))

    serve = functools.partial(script, latency_s=arguments.latency, every=0)
    with fault_server.FaultServer(serve, process=True) as server:
        made = judge(server.url, arguments.in_flight)
        profiler = cProfile.Profile()
        profiler.runcall(asyncio.run, batch(made))
    pstats.Stats(profiler).sort_stats("tottime").print_stats(35)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--judgements", type=int, default=2000)
    parser.add_argument("--in-flight", type=int, default=128)
    parser.add_argument("--latency", type=float, default=1.0)
    parser.add_argument("--every", type=int, default=5, help="one completion of so many meets faults; 0: none")
    parser.add_argument(
        "--chain", type=int, default=1, choices=range(1, ATTEMPTS), help="most faults of one completion"
    )
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--profile", action="store_true", help="show where the processor time goes, and no more")
    arguments = parser.parse_args()
    if arguments.profile:
        profile(arguments)
        return
    table = Table("what", "figure", title="judges")
    for what, figure in [*under_faults(arguments), *overheads()]:
        table.add_row(what, figure)
    Console().print(table)


if __name__ == "__main__":
    main()
