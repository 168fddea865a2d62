"""The graphs of a run in a real browser: pointing, zooming, keys, files, and a run that grows."""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import small_run

from rewardkit.record.recorder import Recorder
from rewardkit.score_batch import ScoreBatch
from rewardkit.types import Cause, Outcome, Rollout, Status

browsing = pytest.importorskip("browsing")
expect = pytest.importorskip("playwright.sync_api").expect

expect.set_options(timeout=20_000)
pytestmark = pytest.mark.browser

HOSTILE = "=<img src=x onerror=window.hit=1>"
STEPS, GAP, CHANGED, FLAGGED = 30, 12, 20, 25


def step(number: int, version: int = 1) -> ScoreBatch:
    """Return the completions of a step; at one of them every call of one reward fails, and 0 stands in."""
    rollouts = [Rollout(f"{number}+{place // 4}=", f"it is {place}", {}) for place in range(8)]
    good = [Outcome(Status.SCORED, (place + number) % 4 / 4, version=f"{version:012}") for place in range(8)]
    if number == GAP:
        good = [Outcome(Status.FAILED, 0.0, cause=Cause.TIMEOUT, error="late", version="1".zfill(12))] * 8
    other = [Outcome(Status.SCORED, 1 - math.exp(-number / 10), version="f" * 12)] * 8
    return ScoreBatch(rollouts, {"good": good, HOSTILE: other}, {"good": 1.0, HOSTILE: 0.5})


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with a run of thirty steps, a longer one, and one of completions without steps."""
    folder = tmp_path_factory.mktemp("graphs")
    with Recorder(folder / "one") as one:
        for number in range(STEPS):
            one.record(step(number, 1 if number < CHANGED else 2), step=number)
            one.metrics(number + 1, {"loss": 1 / (number + 1), "entropy": 1.0, HOSTILE: 0.5, "rare/thing": 2.0})
        flag = {"detector": "ceiling", "reward": None, "words": "most have the best score"}
        one.event("flag", flag, FLAGGED)
    with Recorder(folder / "longer") as longer:
        for number in range(STEPS + 5):
            longer.record(step(number), step=number)
    with Recorder(folder / "loose") as loose:
        loose.record(step(0))
    return folder


@pytest.fixture
def page(window: Any) -> Iterator[Any]:
    """Give the graphs of the run, drawn."""
    page = window.visit("/runs/one/graphs")
    expect(plot(page, "total_reward")).to_be_visible()
    yield page
    assert page.evaluate("() => window.hit") is None, "a name was taken for markup"


def chart(page: Any, title: str) -> Any:
    """Return the graph with a title."""
    heading = page.get_by_role("heading", name=title, exact=True)
    return page.locator("figure.chart").filter(has=heading)


def plot(page: Any, title: str) -> Any:
    """Return the plot of a graph."""
    return chart(page, title).locator(".chart-box:has(.uplot)")


def drag(page: Any, title: str, start: float, end: float) -> None:
    """Draw the mouse over a share of a plot."""
    box = plot(page, title).locator(".u-over").bounding_box()
    page.mouse.move(box["x"] + start * box["width"], box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + end * box["width"], box["y"] + 44, steps=4)
    page.mouse.up()


def test_pointing_at_one_graph_reads_all_of_them(page: Any) -> None:
    """The step under the mouse is told with each line's value; a step without a score says why."""
    box = plot(page, "good").locator(".u-over").bounding_box()
    page.mouse.move(box["x"] + box["width"] * GAP / (STEPS - 1), box["y"] + 30)
    expect(chart(page, "good")).to_contain_text(f"step {GAP}: all 8 failed (timeout)")
    expect(chart(page, "good").get_by_role("button", name="mean")).to_contain_text("\u2013")
    expect(chart(page, "total_reward")).to_contain_text(f"step {GAP}")
    page.mouse.move(box["x"] + box["width"] * CHANGED / (STEPS - 1), box["y"] + 30)
    expect(chart(page, "good").locator(".chart-mark")).to_have_text(f"step {CHANGED}: good@2 scores from here on")
    expect(chart(page, "total_reward").locator(".chart-mark")).to_be_hidden()


@pytest.mark.full
def test_a_mark_leads_to_what_changed(page: Any) -> None:
    """By keys too: the marks stand in words above the graphs, a new version's with a link to its differences."""
    page.get_by_text("What happened").focus()
    page.keyboard.press("Enter")
    page.get_by_role("link", name="good@2 scores from here on").press("Enter")
    page.wait_for_url("**/change?*")
    expect(page.get_by_label("Compare with")).to_have_value("good@1")
    expect(page.get_by_role("button", name="Differences")).to_have_attribute("aria-pressed", "true")


@pytest.mark.full
def test_a_zoom_holds_for_all_graphs_and_is_in_the_address(page: Any, window: Any) -> None:
    """A part that was drawn with the mouse is shown by every graph, also when the link is opened again."""
    drag(page, "total_reward", 0.25, 0.75)
    page.wait_for_url(re.compile("from=7&to=22"))
    button = page.get_by_role("button", name="Steps 7 to 22: show all")
    expect(button).to_be_visible()
    plot(page, "good").focus()
    page.keyboard.press("Home")
    expect(plot(page, "good")).to_have_attribute("aria-valuenow", "7")
    window.visit(f"/runs/one/graphs{window.query()}")
    page.get_by_role("button", name="Steps 7 to 22: show all").click()
    assert window.query() == ""


@pytest.mark.full
def test_a_click_and_enter_lead_to_the_completions_of_a_step(page: Any) -> None:
    """The step is in the address of the completions; a double click is no choice."""
    over = plot(page, "good").locator(".u-over")
    box = over.bounding_box()
    middle = {"x": box["width"] * CHANGED / (STEPS - 1), "y": 50}
    over.click(position=middle)
    page.wait_for_url(re.compile(rf"/runs/one/completions\?(.*&)?step={CHANGED}\b"))
    page.go_back()
    plot(page, "good").focus()
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    expect(plot(page, "good")).to_have_attribute("aria-valuetext", re.compile(f"^step {STEPS - 2}, mean 0.375"))
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(rf"/runs/one/completions\?(.*&)?step={STEPS - 2}\b"))


@pytest.mark.full
def test_a_graph_can_be_read_without_eyes(page: Any) -> None:
    """Its name tells the last values and the trend, and a table has them all."""
    expect(plot(page, "good")).to_have_attribute(
        "aria-label", re.compile(r"mean: 0\.375 at step 29, (steady|rising|falling)")
    )
    expect(chart(page, "good").get_by_role("row")).to_have_count(STEPS + 1)
    gap = chart(page, "good").get_by_role("row").nth(GAP + 1)
    assert [str(GAP), "\u2013", "\u2013", "\u2013", "all 8 failed (timeout)"] == gap.locator("th, td").all_inner_texts()


@pytest.mark.full
def test_a_graph_is_saved_as_csv_and_png(page: Any) -> None:
    """Numbers stay as they are, a name is no formula, a gap is an empty cell, and a picture has a ground."""
    graph = chart(page, "failed")
    with page.expect_download() as download:
        graph.get_by_role("button", name="Save failed as CSV").click()
    lines = Path(download.value.path()).read_text(encoding="utf-8").splitlines()
    assert lines[0] == f"step,good,'{HOSTILE}"
    assert lines[1 + GAP] == f"{GAP},1,0"
    with page.expect_download() as download:
        chart(page, "good").get_by_role("button", name="Save good as CSV").click()
    rows = Path(download.value.path()).read_text(encoding="utf-8").splitlines()
    assert rows[0] == "step,mean,mean low,mean high,lowest,highest"
    assert rows[1 + GAP] == f"{GAP},,,,,"
    with page.expect_download() as download:
        chart(page, "good").get_by_role("button", name="Save good as PNG").click()
    picture = base64.b64encode(Path(download.value.path()).read_bytes()).decode()
    corner = page.evaluate(
        """async (picture) => {
          const bytes = Uint8Array.from(atob(picture), (one) => one.charCodeAt(0));
          const image = await createImageBitmap(new Blob([bytes]));
          const canvas = document.createElement("canvas");
          const brush = canvas.getContext("2d");
          brush.drawImage(image, 0, 0);
          return [...brush.getImageData(0, 0, 1, 1).data];
        }""",
        picture,
    )
    assert corner == [255, 255, 255, 255]


@pytest.mark.full
def test_the_whole_choice_is_in_the_address(page: Any, window: Any) -> None:
    """Pinned metrics, smoothing, the y range, folded groups and the enlarged graph come back with the link."""
    expect(chart(page, "loss")).to_be_attached()
    page.get_by_role("searchbox").fill("rare")
    page.get_by_role("button", name="rare/thing", exact=True).click()
    expect(chart(page, "rare/thing")).to_be_visible()
    page.get_by_role("searchbox").fill("")
    page.get_by_role("slider", name="Smoothing").fill("0.8")
    page.get_by_role("switch", name="From zero").check(force=True)
    page.get_by_role("button", name="Failures and time").click()
    page.get_by_role("button", name="Enlarge total_reward", exact=True).click()
    expect(page.get_by_role("dialog")).to_be_visible()
    window.visit(f"/runs/one/graphs{window.query()}")
    expect(page.get_by_role("dialog")).to_contain_text("total_reward")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(chart(page, "rare/thing")).to_be_attached()
    expect(page.get_by_role("slider", name="Smoothing")).to_have_value("0.8")
    expect(page.get_by_role("switch", name="From zero")).to_be_checked()
    expect(chart(page, "failed")).to_have_count(0)


@pytest.mark.full
def test_graphs_take_the_theme_at_once(page: Any) -> None:
    """A dark page has dark graphs without a reload."""
    picture = "(box) => box.querySelector('canvas').toDataURL()"
    light = plot(page, "good").evaluate(picture)
    page.evaluate(
        "() => { document.documentElement.dataset.theme = 'dark'; document.dispatchEvent(new Event('theme')); }"
    )
    page.wait_for_function(
        "([box, light]) => box.querySelector('canvas').toDataURL() !== light",
        arg=[plot(page, "good").element_handle(), light],
    )


@pytest.mark.full
def test_graphs_grow_with_the_run(page: Any, runs: Path) -> None:
    """A step and a new version are shown when they are recorded, in the same graphs; a new metric gets a graph."""
    box = plot(page, "good")
    expect(box).to_have_attribute("aria-valuemax", str(STEPS - 1))
    box.evaluate("(box) => { box.dataset.same = 'yes'; }")
    with Recorder(runs / "one", append=True) as one:
        one.record(step(STEPS, 3), step=STEPS)
        one.metrics(STEPS + 1, {"kl": 0.25})
        assert one.flush()
        expect(box).to_have_attribute("aria-valuemax", str(STEPS))
    expect(box).to_have_attribute("data-same", "yes")
    expect(chart(page, "kl").get_by_role("row")).to_have_count(STEPS + 2)
    kl = chart(page, "kl").get_by_role("row")
    assert kl.nth(1).locator("th, td").all_inner_texts() == ["0", "\u2013"]
    assert kl.nth(STEPS + 1).locator("th, td").all_inner_texts() == [str(STEPS), "0.25"]
    expect(page.get_by_role("list", name="Marks")).to_contain_text("resumed")
    box.focus()
    page.keyboard.press("End")
    expect(box).to_have_attribute("aria-valuetext", re.compile(f"^step {STEPS}, .*good@3 scores from here on"))


@pytest.mark.full
def test_another_run_stands_beside_with_its_own_steps(page: Any, window: Any) -> None:
    """Where only the other run has a step, this one's value is unknown; the choice is in the address."""
    page.get_by_role("combobox", name="Beside").select_option("longer")
    box = plot(page, "good")
    expect(box).to_have_attribute("aria-valuemax", str(STEPS + 4))
    box.focus()
    page.keyboard.press("End")
    expect(chart(page, "good").get_by_role("button", name="mean")).to_contain_text("\u2013")
    expect(chart(page, "good").get_by_role("button", name="longer")).to_contain_text("0.375")
    assert "?beside=longer" == window.query()


@pytest.mark.full
def test_what_never_happened_takes_no_graph(page: Any) -> None:
    """Shares that are none at every step stand in a line, and a search shows their graphs."""
    expect(page.locator(".graphs-quiet").first).to_have_text(re.compile(r"^None in \d+ steps: skipped"))
    expect(chart(page, "skipped")).to_have_count(0)
    page.get_by_role("searchbox").fill("skipped")
    expect(chart(page, "skipped")).to_contain_text(re.compile(r"None in \d+ steps"))


@pytest.mark.full
def test_a_server_that_is_away_moves_nothing(page: Any, window: Any) -> None:
    """What was drawn stays where it is: the bar below says that the server is away."""
    window.may_fail = True
    top = plot(page, "good").bounding_box()
    window.served.stop()
    try:
        expect(page.locator(".away")).to_be_visible()
        expect(page.locator(".problem")).to_have_count(0)
        assert top == plot(page, "good").bounding_box()
    finally:
        window.served.start()


@pytest.mark.full
def test_many_long_names_keep_their_ends(browser: Any, tmp_path: Path) -> None:
    """Legends of twelve lines leave room for the graph, and what tells the names apart is seen."""
    small_run.crowded(tmp_path)
    small_run.forget()
    with browsing.Server(tmp_path / "runs") as served, browsing.window(browser, served) as opened:
        page = opened.visit("/runs/many/graphs")
        legend = chart(page, "time p50").locator(".chart-legend")
        legend.scroll_into_view_if_needed()
        expect(legend.locator(".chart-name").last).to_contain_text("sentence_11")
        assert legend.bounding_box()["height"] < 80
        assert page.locator(".chart-title").last.evaluate("one => one.scrollWidth <= one.clientWidth")


@pytest.mark.full
def test_a_run_without_steps_says_so(window: Any) -> None:
    """There is nothing to draw; the page says where the completions are."""
    page = window.visit("/runs/loose/graphs")
    expect(page.get_by_text("No training steps")).to_be_visible()
