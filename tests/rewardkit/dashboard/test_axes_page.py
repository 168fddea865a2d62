"""The axes of graphs in a real browser: logarithmic, along the clock, with outliers beyond the frame."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from rewardkit.record.recorder import Recorder
from rewardkit.score_batch import ScoreBatch
from rewardkit.types import Outcome, Rollout, Status

browsing = pytest.importorskip("browsing")
expect = pytest.importorskip("playwright.sync_api").expect

expect.set_options(timeout=20_000)
pytestmark = pytest.mark.browser

STEPS, WILD, PAUSE = 40, 20, 30
TRIES, TRY_MS = 100, 200


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs, the second at half the speed: one wild score, decades of a loss, and a pause of two hours."""
    folder = tmp_path_factory.mktemp("axes")
    for name, pace_s in (("one", 60), ("slow", 120)):
        with Recorder(folder / name) as recorder:
            for step in range(STEPS):
                scores = [1e6 if step == WILD else step / STEPS + place / 100 for place in range(4)]
                outcomes = [Outcome(Status.SCORED, score, version="0" * 12) for score in scores]
                rollouts = [Rollout("q", f"{step} {place}", {}) for place in range(4)]
                recorder.record(ScoreBatch(rollouts, {"wild": outcomes}, {"wild": 1.0}), step=step)
                recorder.metrics(step + 1, {"loss": 10 ** (3 - step / 5), "kl": 0.0 if step < 3 else 10 ** (step / 10)})
        with sqlite3.connect(folder / name / "record.db") as file:
            pause = f"CASE WHEN step >= {PAUSE} THEN 7200 ELSE 0 END"
            file.execute(f"UPDATE batch SET scored = 1.7e9 + {pace_s} * step + {pause}")
        file.close()
    return folder


@pytest.fixture
def page(window: Any) -> Any:
    """The graphs of the run, drawn."""
    page = window.visit("/runs/one/graphs")
    chart(page, "wild").locator("canvas").wait_for()
    return page


def chart(page: Any, title: str) -> Any:
    return page.locator("figure.chart", has=page.get_by_role("heading", name=title, exact=True))


def test_axes_are_kept_in_the_address(page: Any, window: Any) -> None:
    """A graph opens again as it was left, and keys turn each switch."""
    page.get_by_label("y", exact=True).select_option("log")
    page.get_by_label("x", exact=True).select_option("clock")
    page.get_by_text("Outliers beyond the frame").click()
    page.wait_for_url("**y=log*")
    assert {"y=log", "x=clock", "outliers=beyond"} == set(window.query().removeprefix("?").split("&"))
    page.reload()
    expect(page.get_by_label("y", exact=True)).to_have_value("log")
    expect(chart(page, "wild").locator(".chart-beyond").first).to_contain_text("Beyond the frame")
    for key in "lwo":
        page.keyboard.press(key)
    page.wait_for_url("**/graphs")
    assert [] == browsing.faults(page)


@pytest.mark.full
def test_outliers_beyond_the_frame_are_told(page: Any) -> None:
    """How many, which way, the furthest and its step."""
    page.keyboard.press("o")
    words = chart(page, "wild").locator(".chart-beyond")
    expect(words).to_have_text("Beyond the frame: 3 of 120 values above (highest 1,000,000 at step 20)")


@pytest.mark.full
def test_a_logarithm_is_taken_of_what_has_one(page: Any) -> None:
    """Zero stands on a straight part, and the graph says from where on the scale is logarithmic."""
    page.keyboard.press("l")
    expect(chart(page, "loss").locator(".chart-beyond")).to_have_count(0)
    expect(chart(page, "kl").locator(".chart-beyond")).to_have_text("Logarithmic beyond ±1, straight between")


@pytest.mark.full
def test_along_the_clock_a_step_says_when_it_was(page: Any, window: Any) -> None:
    """Time passes where the run stood still, and another run is drawn by its own clock."""
    page.keyboard.press("w")
    page.wait_for_url("**x=clock*")
    box = chart(page, "wild").locator(".chart-box")
    box.focus()
    at = chart(page, "wild").locator("[data-at='step']")
    for _ in range(TRIES):  # a key that comes before the graph is drawn anew is lost with the old one
        page.keyboard.press("End")
        page.wait_for_timeout(TRY_MS)
        if at.inner_text() != "last":
            break
    expect(at).to_have_text("step 39, after 2 h 39 min")
    page.keyboard.press("Home")
    expect(chart(page, "wild").locator("[data-at='step']")).to_have_text("step 0, after 0 s")
    page = window.visit("/runs/one/graphs?x=clock&beside=slow")
    box = chart(page, "wild").locator(".chart-box")
    expect(chart(page, "wild").locator(".chart-legend")).to_contain_text("slow")
    box.focus()
    page.keyboard.press("End")
    expect(chart(page, "wild").locator("[data-at='step']")).to_contain_text("after 3 h 18 min")


@pytest.mark.full
def test_no_graph_stands_empty(page: Any) -> None:
    """What the run does not have is a line, not a frame without anything in it."""
    expect(page.locator(".graphs-quiet", has_text="Not recorded")).to_contain_text("completion length, truncated")
    expect(page.get_by_text("Nothing recorded")).to_have_count(0)
    for figure in page.locator("figure.chart").all():
        assert figure.locator(".chart-box").count() == 1


CLOCK = "clockOf([[0, 100], [10, 200], [20, 150], [30, 1150]])"
SCALE = "logScaleOf([{values: [-50, 900, 1]}])"
PURE: tuple[tuple[str, Any], ...] = (
    (f"{CLOCK}.fwd(5)", 50),
    (f"{CLOCK}.fwd(-5)", -50),
    (f"Math.round({CLOCK}.fwd(30))", 1050),
    (f"[0, 3, 10, 17, 30, 40].map((step) => Math.round({CLOCK}.bwd({CLOCK}.fwd(step))))", [0, 3, 10, 17, 30, 40]),
    ("clockOf([[0, 1]])", None),
    ("clockOf(undefined)", None),
    ("logScaleOf([{values: [0, null]}])", None),
    ("logScaleOf([{values: [1, 100]}]).near", None),
    ("logScaleOf([{values: [0, 0.05, 7]}]).near", 0.01),
    ("logScaleOf([{values: [-1e9, 1e-9]}]).near", 1e3),
    (f"[-50, -0.1, 0, 3].map((v) => Number({SCALE}.bwd({SCALE}.fwd(v)).toPrecision(6)))", [-50, -0.1, 0, 3]),
    ("logTicks(logScaleOf([{values: [1, 1000]}]), 1, 1000)", [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]),
    ("logTicks(logScaleOf([{values: [0.5, 0.51]}]), 0.5, 0.51).length > 2", True),
    ("yRange(0, 0, {unit: 'seconds', zero: false, logScale: null, fence: null})", [0, 1]),
    ("fenceOf([{values: [1, 2, 3, 4, 5, 6, 7, 8, 1000]}], [0, 1, 2, 3, 4, 5, 6, 7, 8], null)", {"low": 1, "high": 8}),
    ("fenceOf([{values: [1, 2, 3, 4, 5, 6, 7, 8, 1000]}], [0, 1, 2, 3, 4, 5, 6, 7, 8], [0, 7])", None),
    ("fenceOf([{values: [1, 1, 1, 1, 1, 1, 1, 1, 1000]}], [0, 1, 2, 3, 4, 5, 6, 7, 8], null)", None),
    ("fenceOf([{values: [1, 1000]}], [0, 1], null)", None),
)  # fmt: skip


def test_axes_are_functions_of_values(window: Any) -> None:
    """A table: a clock never goes back, a scale is undone by its inverse, and a fence needs values to stand on."""
    page = window.visit("/")
    for expression, expected in PURE:
        code = (
            f"import('/parts/chart-axes.js').then(({{clockOf, logScaleOf, logTicks, yRange, fenceOf}}) => {expression})"
        )
        assert (expression, expected) == (expression, page.evaluate(f"() => {code}"))
