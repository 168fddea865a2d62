"""What a visitor sees at first in a real browser: nothing asked for lies out of sight, flattened or half read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rewardkit.dashboard.saved.document import write_page
from rewardkit.dashboard.saved.scope import of_step
from rewardkit.record.recorder import Recorder
from rewardkit.replay.recorded_run import Run
from rewardkit.score_batch import ScoreBatch
from rewardkit.types import Outcome, Rollout, Status

browsing = pytest.importorskip("browsing")
expect = pytest.importorskip("playwright.sync_api").expect

expect.set_options(timeout=20_000)
pytestmark = pytest.mark.browser

STEPS, COLUMNS = 20, 9
WEIGHTS = {"right": 1.0, "wordy": -0.5, "shadow": 0.0}
SVG = b'<svg xmlns="http://www.w3.org/2000/svg"></svg>'
FAR_TEXT = "words before it " * 40 + "here is the needle " + "and words behind " * 40


def step_batch(step: int) -> ScoreBatch:
    """Return two completions of one prompt; the second is right and long, and at step 7 far too long."""
    example = {**{f"column_{number}": "a value of the data" for number in range(COLUMNS)}, "image": {"bytes": SVG}}
    rollouts = [Rollout("What is it?", FAR_TEXT, example), Rollout("What is it?", "so", example)]
    scores = {"right": (0.0, 1.0), "wordy": (0.1, 1e6 if step == 7 else 0.3 + step / 100), "shadow": (0.2, 0.9)}
    outcomes = {
        name: [Outcome(Status.SCORED, value, version="0" * 12) for value in values] for name, values in scores.items()
    }
    return ScoreBatch(rollouts, outcomes, WEIGHTS)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the run ``one`` of two epochs and nine columns, and the scored file ``file``."""
    folder = tmp_path_factory.mktemp("first-look")
    with Recorder(folder / "one") as recorder:
        for step in range(STEPS):
            recorder.record(step_batch(step), step=step, epoch=step / 10)
    with Recorder(folder / "file") as recorder:
        recorder.record(step_batch(0))
    return folder


def way_of(page: Any, reward: str) -> str:
    """Return how the difference of a reward's scores is called: better, worse or even."""
    row = page.locator(".score-row").filter(has=page.get_by_role("rowheader", name=reward))
    name: str = row.locator(".difference").get_attribute("class")
    return name.rsplit("-", 1)[1]


def test_a_difference_is_better_where_the_reward_gains_by_it(window: Any) -> None:
    """More of what costs is worse, and what counts nothing is neither."""
    page = window.visit(browsing.path_of("one", "completions", "prompt=0&left=39&right=40"))
    expect(page.locator(".score-row .difference")).to_have_count(3)
    assert ["better", "worse", "even"] == [way_of(page, reward) for reward in WEIGHTS]


def test_the_text_that_was_searched_for_is_in_sight(window: Any) -> None:
    """Also where it stands far inside its text."""
    page = window.visit(browsing.path_of("one", "completions", "list=all&find=needle"))
    mark = page.locator(".match-cell mark").first
    expect(mark).to_have_text("needle")
    box, cell = mark.bounding_box(), page.locator("td.match-cell").first.bounding_box()
    assert box["x"] + box["width"] <= cell["x"] + cell["width"]


@pytest.mark.full
def test_which_prompt_got_worse_is_in_sight(window: Any) -> None:
    """The rewards stand before the columns of the data, of which there may be many."""
    page = window.visit(browsing.path_of("one", "completions"))
    expect(page.get_by_role("columnheader", name="Change")).to_be_visible()
    change, column = (page.get_by_role("columnheader", name=name).bounding_box() for name in ("Change", "column_0"))
    assert change["x"] < column["x"]
    assert change["x"] + change["width"] <= browsing.WIDE[0]


@pytest.mark.full
def test_a_picture_of_a_data_set_is_called_a_picture(window: Any) -> None:
    """And the reason why it is not there is in sight, whatever other columns there are."""
    page = window.visit(browsing.path_of("one", "completions"))
    expect(page.get_by_role("cell", name="[picture]", exact=True)).to_have_count(1)
    page = window.visit(browsing.path_of("one", "completions", "prompt=0"))
    line = page.locator(".prompt-columns .picture-missing")
    expect(line).to_contain_text("no picture that can be shown")
    box, columns = line.bounding_box(), page.locator(".prompt-columns").bounding_box()
    assert box["y"] + box["height"] <= columns["y"] + columns["height"]


@pytest.mark.full
def test_a_scored_file_has_no_epochs(window: Any) -> None:
    page = window.visit(browsing.path_of("file", "completions", "prompt=0"))
    expect(page.locator(".pane .chip.is-good")).to_have_text(["best"])
    expect(page.get_by_role("button", name="Best", exact=True)).to_have_count(1)


@pytest.mark.full
def test_large_numbers_have_room_beside_a_chart(window: Any) -> None:
    page = window.visit(browsing.path_of("one"))
    chart = page.locator("figure.chart").filter(has=page.get_by_role("heading", name="wordy", exact=True))
    chart.locator(".u-over").wait_for()
    room, width = chart.locator(".u-over").evaluate(
        """over => {
          const pen = document.createElement("canvas").getContext("2d");
          pen.font = `11px ${getComputedStyle(document.body).fontFamily}`;
          return [over.offsetLeft, pen.measureText("1,000,000").width];
        }"""
    )
    assert width < room


@pytest.mark.full
def test_outliers_flatten_no_graph_of_the_list(window: Any) -> None:
    """Where the visitor says so; the address keeps it."""
    page = window.visit("/?pick=one")
    page.get_by_text("Outliers beyond the frame").click()
    expect(page.locator(".chart-beyond").first).to_contain_text("1 of 20 values below")
    assert "outliers=beyond" in window.query()


@pytest.mark.full
def test_a_large_screen_is_used(browser: Any, served: Any) -> None:
    """The curves of the list take its whole width."""
    with browsing.window(browser, served, (3840, 2160)) as opened:
        page = opened.visit("/?pick=one")
        graphs = page.locator(".runs-compared")
        drawn = [graphs.nth(place).bounding_box()["width"] for place in range(2)]
        assert sum(drawn) > 0.98 * page.locator(".runs-compare").bounding_box()["width"]


def test_totals_that_are_still_read_are_no_last_word(window: Any) -> None:
    """The list says how many batches its figures lack."""
    whole = json.loads(window.page.request.get(f"{window.served.base}/api/runs/one/graphs").text())
    half = {**whole, "unread": 1500}
    window.page.route("**/api/runs/one/graphs**", lambda route: route.fulfill(json=half))
    page = window.visit("/?pick=one")
    expect(page.get_by_text("Reading totals: 1,500 batches to go")).to_have_count(1)


@pytest.mark.full
def test_any_step_is_a_number_away(window: Any) -> None:
    """Of a step that is not there the page says so, and the way on stays."""
    page = window.visit(browsing.path_of("one", "completions", "list=steps"))
    field = page.get_by_label("Go to step")
    expect(field).to_have_value(str(STEPS - 1))
    for step, told in ((4, "What is it?"), (999, "No completion of step 999 fits"), (2, "What is it?")):
        field.fill(str(step))
        field.press("Enter")
        expect(page.get_by_role("heading", name=f"Step {step}", exact=True)).to_be_visible()
        expect(page.locator("main")).to_contain_text(told)


@pytest.mark.full
def test_a_step_that_a_file_lacks_is_no_dead_end(browser: Any, runs: Path, tmp_path: Path) -> None:
    """The field leads to one that it has."""
    with Run.open(runs / "one") as run, (tmp_path / "saved.html").open("w", encoding="utf-8") as file:
        write_page(run, of_step(run, 3, "train"), file)
    page = browser.new_page()
    page.goto(f"{(tmp_path / 'saved.html').as_uri()}#{browsing.path_of('one', 'completions', 'step=5')}")
    expect(page.locator("main")).to_contain_text("This is not in the file")
    page.get_by_label("Go to step").fill("3")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Step 3", exact=True)).to_be_visible()
    page.close()


@pytest.mark.full
def test_a_phone_shows_the_prompt_of_a_step(browser: Any, served: Any) -> None:
    """Its text has room beside how its completions did."""
    with browsing.window(browser, served, browsing.NARROW) as opened:
        page = opened.visit(browsing.path_of("one", "completions", "step=3"))
        line, text = page.locator(".group-line").first, page.locator(".group-text").first
        assert text.bounding_box()["width"] > line.bounding_box()["width"] / 2


@pytest.mark.full
def test_no_serious_fault_of_accessibility(window: Any) -> None:
    page = window.visit(browsing.path_of("one", "completions", "list=profile"))
    expect(page.get_by_text("In between")).to_be_visible()
    assert [] == browsing.faults(page)
