"""What the dashboard takes on a long run: page ready, commit to DOM, answers, bytes, memory, scrolling.

    python tests/benchmarks/bench_dashboard.py [--rows 20000] [--full] [--folder DIR] [--browser /usr/bin/chromium]

The run is made as ``bench_record.py`` makes its own: 1,000 completions a step with four rewards, ``--full`` 1,000
steps; here one call in 20 prints and gives a reason, and one in 500 fails. ``--folder`` keeps it, and takes one that is
there. ``rewardkit ui`` serves it in a process of its own. Times are told by the clock, and beside it in processor time:
the server's for an answer, the page's main thread for the rest. Both are of a machine that should do nothing else.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import psutil
from bench_record import REWARDS, STEP, Source
from rich.console import Console
from rich.table import Table

from rewardkit.record.reader import RunReader
from rewardkit.record.recorder import Recorder
from rewardkit.score_batch import ScoreBatch
from rewardkit.types import Cause, Outcome, Status

TOKEN = "a-token-of-the-benchmark"
RUN = "long"
ANSWERS = 40
"""Answers of each kind that are asked for, after the first."""
LOADS = 5
"""Loads of each page."""
COMMITS = 20
"""Steps that are written while the page is open."""
START_S = 30.0
WAIT_S = 60.0
SCROLL_S = 4.0
READY_MS, COMMIT_MS, ANSWER_MS, FRAME_MS = 1000, 300, 20, 50
_WATCH = """
window.ready = {};
for (const [name, selector] of Object.entries(SELECTORS)) {
  const look = () => {
    if (!(name in window.ready) && document.querySelector(selector)) window.ready[name] = performance.now();
  };
  new MutationObserver(look).observe(document, { childList: true, subtree: true });
}
"""
_STEPS = """
window.steps = {};
const look = () => {
  const found = /step ([0-9,]+)/.exec(document.querySelector(".run-state")?.textContent || "");
  const step = found && Number(found[1].replaceAll(",", ""));
  if (step !== null && !(step in window.steps)) window.steps[step] = Date.now();
};
new MutationObserver(look).observe(document.querySelector(".run-state"), {
  childList: true, characterData: true, subtree: true,
});
"""
_SCROLL = """
async (seconds) => {
  const boxes = [...document.querySelectorAll(".table-box")].filter((one) => one.scrollHeight > one.clientHeight + 10);
  const box = boxes[0] || document.scrollingElement;
  const gaps = [];
  let last = performance.now();
  const end = last + 1000 * seconds;
  let down = true;
  while (last < end) {
    const now = await new Promise(requestAnimationFrame);
    gaps.push(now - last);
    last = Math.max(last, now);
    const before = box.scrollTop;
    box.scrollTop += down ? 160 : -160;
    if (box.scrollTop === before) down = !down;
  }
  const rows = document.querySelectorAll("tbody tr").length;
  return { frames: gaps.length, longest: Math.max(...gaps.slice(1)), rows };
}
"""
PAGES = {
    "graphs": ("graphs", "canvas"),
    "logs": ("logs", ".log-entry"),
    "prompts": ("completions", "table tbody tr"),
    "all completions": ("completions?list=all", "table tbody tr"),
    "health": ("health", ".verdict"),
}
"""The pages that are opened: their addresses, and what stands in the page once it shows data."""


class Figure(NamedTuple):
    """One line of the result: what was measured, by the clock, in processor time, and what is aimed at."""

    what: str
    clock: str
    processor: str = ""
    aim: str = ""


class Served(NamedTuple):
    """A server, its address and its process."""

    host: str
    port: int
    process: psutil.Process


def said(batch: ScoreBatch, step: int) -> ScoreBatch:
    """Return a step in which some calls print, give a reason or fail."""
    column = list(batch.outcomes[REWARDS[0]])
    for place in range(step % 20, len(column), 20):
        column[place] = column[place]._replace(
            reason=f"close to {place}", logs=f"step {step}: compared {place} with the answer\n"
        )
    for place in range(step % 500, len(column), 500):
        column[place] = Outcome(
            Status.FAILED, None, cause=Cause.EXCEPTION, error=f"ValueError: cannot read {place}",
            traceback=f"Traceback (most recent call last):\n  step {step}\n", version=column[place].version,
        )  # fmt: skip
    return ScoreBatch(batch.rollouts, {**batch.outcomes, REWARDS[0]: column}, batch.weights)


class Writer:
    """Writes further steps of a run, as a training does."""

    def __init__(self, recorder: Recorder, first: int) -> None:
        self._recorder, self._source, self.step = recorder, Source(first), first

    def write(self) -> float:
        """Write the next step, and return when it was in the file, in seconds since 1970."""
        batch = said(self._source.step(self.step), self.step)
        self._recorder.record(batch, step=self.step, epoch=self.step / 20)
        self._recorder.metrics(self.step + 1, {"loss": 1 / (self.step + 1), "kl": 0.001 * self.step})
        if not self._recorder.flush(WAIT_S):
            raise SystemExit("something was not written")
        self.step += 1
        return time.time()


def made(run: Path, steps: int) -> float:
    """Write a run of so many steps, and return the seconds it took."""
    began = time.perf_counter()
    with Recorder(run) as recorder:
        writer = Writer(recorder, 0)
        for _ in range(steps):
            writer.write()
    return time.perf_counter() - began


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[Served]:
    """Serve a folder of runs by ``rewardkit ui``."""
    command = [sys.executable, "-m", "rewardkit", "ui", str(folder), "--port", "8742", "--token", TOKEN, "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        lines: list[str] = []
        until = time.monotonic() + START_S
        while time.monotonic() < until and process.stdout is not None and process.poll() is None:
            lines.append(process.stdout.readline())
            if lines[-1].startswith("}"):
                break
        url = urllib.parse.urlsplit(json.loads("".join(lines))["url"])
        yield Served(url.hostname or "127.0.0.1", url.port or 80, psutil.Process(process.pid))
    finally:
        process.terminate()
        process.wait(START_S)


class Client:
    """Asks the server over one connection, as a browser does."""

    def __init__(self, served: Served) -> None:
        self._connection = http.client.HTTPConnection(served.host, served.port, timeout=WAIT_S)
        self._cookie = ""
        self._connection.request("GET", f"/?token={TOKEN}")
        answer = self._connection.getresponse()
        answer.read()
        self._cookie = (answer.getheader("set-cookie") or "").partition(";")[0]

    def get(self, view: str, **query: Any) -> tuple[float, Any]:
        """Return the seconds of an answer, and the answer."""
        words = urllib.parse.urlencode(query)
        began = time.perf_counter()
        self._connection.request("GET", f"/api/runs/{RUN}/{view}?{words}", headers={"cookie": self._cookie})
        answer = self._connection.getresponse()
        body = answer.read()
        took = time.perf_counter() - began
        if answer.status != http.client.OK:
            raise SystemExit(f"{view} {query}: {answer.status} {body[:300]!r}")
        return took, json.loads(body)


def answers(served: Served, run: Path) -> Iterator[Figure]:
    """Yield the milliseconds of the server's answers."""
    client, draw = Client(served), random.Random(1)
    with RunReader(run) as reader:
        steps, last, prompts = reader.steps(), reader.last_id, reader.prompt_count
    mark: list[Any] = [None]

    def graphs_after() -> dict[str, Any]:
        mark[0] = mark[0] or client.get("graphs")[1]["mark"]
        return {"after": mark[0]}

    kinds: dict[str, tuple[str, Callable[[], dict[str, Any]]]] = {
        "overview": ("overview", dict),
        "graphs, all": ("graphs", dict),
        "graphs, what is new": ("graphs", graphs_after),
        "prompts": ("prompts", lambda: {"offset": draw.randrange(max(1, prompts - 50))}),
        "prompts by mean": ("prompts", lambda: {"sort": "mean", "order": "up"}),
        "prompt": ("prompt", lambda: {"prompt": draw.randrange(prompts)}),
        "completions": ("completions", lambda: {"after": draw.randrange(last)}),
        "completions of a step": ("completions", lambda: {"step": draw.choice(steps)}),
        "completions that failed": ("completions", lambda: {"reward": REWARDS[0], "status": "failed"}),
        "completion": ("completion", lambda: {"id": draw.randrange(1, last)}),
        "logs": ("logs", dict),
        "logs of a step on": ("logs", lambda: {"first": draw.choice(steps), "order": "oldest"}),
        "logs, failed": ("logs", lambda: {"status": "failed"}),
        "health": ("health", dict),
    }
    for name, (view, query) in kinds.items():
        first, _ = client.get(view, **query())
        settle(client, view, query)
        cpu = sum(served.process.cpu_times()[:2])
        times = [client.get(view, **query())[0] for _ in range(ANSWERS)]
        cpu = (sum(served.process.cpu_times()[:2]) - cpu) / ANSWERS
        p50, p95 = np.quantile(times, [0.5, 0.95]) * 1000
        clock = f"{p50:,.1f} / {p95:,.1f} (first {1000 * first:,.0f})"
        yield Figure(f"{name}: p50 / p95 ms", clock, f"{1000 * cpu:,.1f} mean", f"p95 {ANSWER_MS}")


def settle(client: Client, view: str, query: Callable[[], dict[str, Any]]) -> None:
    """Ask until the server has read what it reads once."""
    until = time.monotonic() + WAIT_S
    while time.monotonic() < until:
        _, answer = client.get(view, **query())
        if not answer.get("unread") and not answer.get("progress") and not answer.get("reading"):
            return


def pages(browser: Any, served: Served) -> Iterator[Figure]:
    """Yield the milliseconds until a page shows data, and what it took over the wire."""
    for name, (address, selector) in PAGES.items():
        times, sizes, busy = [], [], []
        for _ in range(LOADS):
            with opened(browser, served) as page:
                page.add_init_script(_WATCH.replace("SELECTORS", json.dumps({name: selector})))
                devtools = _watched(page)
                page.goto(f"http://{served.host}:{served.port}/runs/{RUN}/{address}")
                try:
                    page.wait_for_function("(name) => name in window.ready", arg=name, timeout=1000 * WAIT_S / 4)
                except Exception as late:
                    yield Figure(f"page ready, {name}: ms", f"not: {str(late).splitlines()[0][:60]}")
                    break
                busy.append(1000 * _metrics(devtools)["TaskDuration"])
                times.append(page.evaluate("(name) => window.ready[name]", name))
                sizes.append(page.evaluate(
                    "performance.getEntries().reduce((sum, one) => sum + (one.transferSize || 0), 0)"
                ))  # fmt: skip
        else:
            took = f"{statistics.median(times):,.0f} (most {max(times):,.0f})"
            yield Figure(f"page ready, {name}: ms", took, f"{statistics.median(busy):,.0f}", str(READY_MS))
            yield Figure(f"over the wire, {name}: kB", f"{statistics.median(sizes) / 1000:,.0f}")


@contextlib.contextmanager
def opened(browser: Any, served: Served) -> Iterator[Any]:
    """Give a page of a fresh browser, with the cookie that the token is changed for."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    try:
        page = context.new_page()
        context.request.get(f"http://{served.host}:{served.port}/?token={TOKEN}")
        yield page
    finally:
        context.close()


def commits(browser: Any, served: Served, run: Path) -> Iterator[Figure]:
    """Yield the milliseconds from a commit to the page's text, and to the new points of the graphs."""
    with RunReader(run) as reader:
        first = reader.steps()[-1] + 1
    with opened(browser, served) as page, Recorder(run, append=True) as recorder:
        page.goto(f"http://{served.host}:{served.port}/runs/{RUN}/graphs")
        page.wait_for_selector("canvas", timeout=1000 * WAIT_S)
        page.evaluate(_STEPS)
        writer = Writer(recorder, first)
        writer.write()
        devtools = _watched(page)
        before, written = _metrics(devtools)["TaskDuration"], {}
        for _ in range(COMMITS):
            page.wait_for_timeout(500)
            step = writer.step  # before it is written: the next one counts from then on
            written[step] = 1000 * writer.write()
        page.wait_for_timeout(1500)
        busy = 1000 * (_metrics(devtools)["TaskDuration"] - before) / COMMITS
        seen = {int(step): at for step, at in page.evaluate("window.steps").items()}
        fetched: Sequence[float] = page.evaluate(
            "performance.getEntriesByType('resource').filter((one) => one.name.includes('/graphs'))"
            ".map((one) => performance.timeOrigin + one.responseEnd)"
        )
    shown = [seen[step] - at for step, at in written.items() if step in seen]
    drawn = [min((one - at for one in fetched if one > at), default=float("nan")) for at in written.values()]
    for what, times in (("text", shown), ("graphs' new points", drawn)):
        if not times:
            yield Figure(f"commit to {what}: ms", "never")
            continue
        p50, most = np.nanmedian(times), np.nanmax(times)
        clock = f"{p50:,.0f} (most {most:,.0f}, {len(times)} of {COMMITS})"
        yield Figure(f"commit to {what}: p50 ms", clock, f"{busy:,.0f} a commit", str(COMMIT_MS))


def scrolling(browser: Any, served: Served) -> Iterator[Figure]:
    """Yield the longest frame while the table of all completions scrolls, and what the main thread did meanwhile."""
    with opened(browser, served) as page:
        page.goto(f"http://{served.host}:{served.port}/runs/{RUN}/completions?list=all")
        page.wait_for_selector("table tbody tr", timeout=1000 * WAIT_S)
        page.wait_for_timeout(500)
        devtools = _watched(page)
        before = _metrics(devtools)
        found = page.evaluate(_SCROLL, SCROLL_S)
        busy = {name: value - before.get(name, 0.0) for name, value in _metrics(devtools).items()}
    each = 1000 * busy.get("TaskDuration", float("nan")) / max(1, found["frames"])
    clock = f"{found['longest']:,.0f} ({found['frames']} frames, {found['rows']} rows)"
    yield Figure("scrolling, longest frame: ms", clock, f"{each:,.1f} a frame", str(FRAME_MS))


def _watched(page: Any) -> Any:
    """Return what tells the processor time of a page's main thread from here on."""
    devtools = page.context.new_cdp_session(page)
    devtools.send("Performance.enable", {"timeDomain": "threadTicks"})
    return devtools


def _metrics(devtools: Any) -> dict[str, float]:
    return {one["name"]: one["value"] for one in devtools.send("Performance.getMetrics")["metrics"]}


def measured(folder: Path, browser: str) -> Iterator[Figure]:
    """Yield all figures of the run in a folder."""
    from playwright.sync_api import sync_playwright  # heavy, and for a browser alone

    run = folder / RUN
    with serving(folder) as served:
        yield Figure("server's memory, started: MB", f"{served.process.memory_info().rss / 1e6:,.0f}")
        yield from answers(served, run)
        with sync_playwright() as play:
            started = play.chromium.launch(executable_path=browser, args=["--no-sandbox"])
            try:
                yield from pages(started, served)
                yield from scrolling(started, served)
                yield from commits(started, served, run)
            finally:
                started.close()
        yield Figure("server's memory, in the end: MB", f"{served.process.memory_info().rss / 1e6:,.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000, help="completions of the run")
    parser.add_argument("--full", action="store_true", help="1,000,000 of them")
    parser.add_argument("--folder", type=Path, help="where, instead of a temporary folder")
    parser.add_argument("--browser", default="/usr/bin/chromium", help="the browser's program")
    given = parser.parse_args()
    steps = max(2, (1_000_000 if given.full else given.rows) // STEP)
    console = Console(width=None if sys.stdout.isatty() else 120)
    with contextlib.ExitStack() as stack:
        folder = given.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        if not (folder / RUN / "record.db").exists():
            took = made(folder / RUN, steps)
            console.print(f"wrote {steps * STEP:,} completions in {took:,.0f} s")
        with RunReader(folder / RUN) as reader:
            count = reader.count()
        load = os.getloadavg()[0]
        cores = f"{os.cpu_count()} cores, load {load:.1f} before"
        table = Table("what", "by the clock", "processor ms", "aim", title=f"{count:,} completions, {cores}")
        for figure in measured(folder, given.browser):
            table.add_row(*figure)
            console.print(" | ".join(figure), style="dim")
    console.print(table)


if __name__ == "__main__":
    main()
