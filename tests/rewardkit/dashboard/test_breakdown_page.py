"""Groups, histograms and pass rates in a real browser: chosen by keys, kept in the address, harmless and readable."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rewardkit.record.recorder import Recorder
from rewardkit.rows import read_rows
from rewardkit.score_batch import ScoreBatch
from rewardkit.types import Cause, Outcome, Rollout, Status

browsing = pytest.importorskip("browsing")
expect = pytest.importorskip("playwright.sync_api").expect

expect.set_options(timeout=20_000)
pytestmark = pytest.mark.browser

HOSTILE = "<img src=x onerror=window.hit=1>"
FAILED = Outcome(Status.FAILED, 0.0, cause=Cause.TIMEOUT, error="late", version="1" * 12)


def step(number: int) -> ScoreBatch:
    """Return the completions of a step: four of each of six prompts; of the last one every call fails."""
    rows = [({"level": ["easy", "hard"][place % 2], HOSTILE: [HOSTILE, "\u202eb"][place % 2]}) for place in range(6)]
    rollouts = [Rollout(f"{HOSTILE} {place}", f"text {k}", row) for place, row in enumerate(rows) for k in range(4)]
    scores = [float(k < place - 1 + number // 4) for place in range(6) for k in range(4)]
    outcomes = [Outcome(Status.SCORED, score, version="1" * 12) for score in scores]
    return ScoreBatch(rollouts, {"good": [*outcomes[:20], *[FAILED] * 4]}, {"good": 2.0})


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with a run of eight steps, one without columns, a scored file, and one without completions."""
    folder = tmp_path_factory.mktemp("breakdown")
    with Recorder(folder / "one") as one:
        for number in range(8):
            one.record(step(number), step=number, num_generations=4)
    with Recorder(folder / "bare") as bare:
        bare.record(ScoreBatch([Rollout("2+2=", "4", {})], {"good": [FAILED]}, {"good": 1.0}), step=0)
    with Recorder(folder / "scored") as scored:
        scored.record(step(0))
    with Recorder(folder / "empty") as empty:
        empty.metrics(1, {"loss": 1.0})
    return folder


@pytest.fixture
def page(window: Any) -> Iterator[Any]:
    """Give the graphs of the run."""
    page = window.visit("/runs/one/graphs")
    yield page
    assert page.evaluate("() => window.hit") is None, "a name was taken for markup"


def test_groups_are_chosen_by_a_column_and_lead_to_its_prompts(page: Any, window: Any) -> None:
    """Three steps: the column, the group, its prompts; the choice is in the address."""
    page.get_by_label("Group by").select_option("level")
    section = page.get_by_role("region", name="By level")
    table = section.get_by_role("region", name="Groups by level")
    expect(table.get_by_role("row").nth(1)).to_contain_text("easy")
    expect(table.get_by_role("row").nth(2).get_by_role("cell").nth(6)).to_have_text("32")  # failed
    expect(section.locator("figure.chart")).to_contain_text("reward by level")
    section.get_by_label("Of").select_option("good")
    expect(section.locator("figure.chart")).to_contain_text("good by level")
    assert "?by=level&byof=good" == window.query()
    table.get_by_role("link", name="hard").click()
    page.wait_for_url("**/completions?col=level&val=hard")
    expect(page.get_by_role("region", name="Prompts").get_by_role("row")).to_have_count(4)


def test_a_column_with_a_hostile_name_and_values_is_text(page: Any) -> None:
    """Markup and marks that turn the direction of writing are written out."""
    page.get_by_label("Group by").select_option(HOSTILE)
    table = page.get_by_role("region", name=f"Groups by {HOSTILE}")
    expect(table).to_contain_text(HOSTILE)
    expect(table).to_contain_text("\u27e6U+202E RLO\u27e7b")


@pytest.mark.full
def test_a_histogram_says_what_moved(page: Any, window: Any) -> None:
    """Between the first and the last steps, or two that are chosen."""
    page.get_by_label("Spread of").select_option("good")
    section = page.get_by_role("region", name="Spread of good")
    expect(section.get_by_role("img")).to_have_attribute("aria-label", re.compile("steps 0 to 7: mean 0.3 at first"))
    expect(section.get_by_role("status")).to_contain_text(
        "20% lie elsewhere, 0.2 on average over all. The largest moves: 20% from 0 to 1."
    )
    expect(section).to_contain_text("step 0: 4 failed, which have no value")
    section.get_by_role("combobox", name="To").select_option("1")
    expect(section.get_by_role("status")).to_have_text("Nothing moved: both spread alike.")
    assert "?spread=%3Dgood&after=1" == window.query()
    section.get_by_role("button", name="Close").click()
    expect(section).to_have_count(0)


@pytest.mark.full
def test_pass_rates_are_filtered_sorted_and_taken_along(page: Any, window: Any) -> None:
    """By kind and by range; the command that writes the list follows the choice, and a row opens its prompt."""
    page = window.visit("/runs/one/completions")
    page.get_by_role("link", name="Pass rates").click()
    expect(page.get_by_text("Right: reward above 1, half of the weights above 0.")).to_be_visible()
    kinds = page.get_by_role("group", name="Prompts that are")
    expect(kinds).to_have_text(
        re.compile(r"All\s*6\s*Never right\s*1\s*In between\s*3\s*Always right\s*1\s*No pass rate\s*1")
    )
    rows = page.get_by_role("region", name="Pass rates").locator("tbody tr")
    expect(rows).to_have_count(6)
    kinds.get_by_role("button", name="No pass rate").click()
    expect(rows).to_have_count(1)
    expect(rows.first).to_contain_text("16")  # failed calls of its last four groups
    kinds.get_by_role("button", name=re.compile("^All")).click()
    page.get_by_role("textbox", name="Rates").fill("0.2..0.6")
    page.get_by_role("textbox", name="Rates").press("Enter")
    expect(rows).to_have_count(2)
    page.get_by_label("Right by").select_option("good")
    expect(page.locator("code")).to_have_text("rewardkit profile one --reward=good --keep=0.2..0.6 --out=keep.jsonl")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download").click()
    assert ["prompt 1", "prompt 2"] == [
        row.values["prompt"].replace(HOSTILE, "prompt") for row in read_rows(download.value.path(), for_trainer=True)
    ]
    page.get_by_role("button", name="Pass rate", exact=True).click()
    expect(rows.first).to_contain_text(f"{HOSTILE} 2")
    page.get_by_role("button", name="Change", exact=True).click()
    page.wait_for_url("**/completions?*rsort=change*")
    expect(rows.first.get_by_title("4 groups at either end")).to_be_visible()
    page.get_by_role("button", name="Pass rate", exact=True).click()
    expect(rows.first).to_contain_text(f"{HOSTILE} 1")
    page.get_by_role("button", name="Pass rate", exact=True).click()
    expect(rows.first).to_contain_text(f"{HOSTILE} 2")
    rows.first.press("Enter")
    page.wait_for_url("**/completions?*prompt=2*")


@pytest.mark.full
def test_a_wrong_range_is_said(page: Any, window: Any) -> None:
    """In words, with what to write."""
    window.may_fail = True
    page = window.visit("/runs/one/completions?list=profile&keep=0.9..0.1")
    expect(page.get_by_role("alert")).to_contain_text("the first rate is above the second; write 0.1..0.9")


@pytest.mark.full
def test_a_scored_file_has_groups_and_a_histogram_without_steps(window: Any) -> None:
    """There is no curve, and nothing that could have moved."""
    page = window.visit("/runs/scored/graphs")
    page.get_by_label("Group by").select_option("level")
    expect(page.get_by_role("region", name="Groups by level").get_by_role("row")).to_have_count(3)
    page.get_by_label("Spread of").select_option("good")
    expect(page.get_by_role("region", name="Spread of good").get_by_role("status")).to_contain_text("the same steps")


@pytest.mark.full
def test_what_is_not_there_is_said(window: Any) -> None:
    """No columns, no values, no completions."""
    page = window.visit("/runs/bare/graphs?spread=total")
    expect(page.get_by_text("No values")).to_be_visible()
    expect(page.get_by_label("Group by")).to_have_count(0)
    page = window.visit("/runs/bare/completions?list=profile")
    expect(page.get_by_role("group", name="Prompts that are")).to_contain_text("No pass rate")
    page = window.visit("/runs/empty/completions?list=profile")
    expect(page.get_by_text("No completions yet")).to_be_visible()


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    ("size", "theme"), [(browsing.WIDE, "light"), (browsing.WIDE, "dark"), (browsing.NARROW, "light")]
)
def test_no_serious_fault_of_accessibility(browser: Any, served: Any, size: tuple[int, int], theme: str) -> None:
    """axe-core finds none, and nothing is to be scrolled sideways."""
    pytest.importorskip("axe_playwright_python")
    with browsing.window(browser, served, size, theme) as opened:
        for path in ("graphs?by=level&spread=total", "completions?list=profile"):
            page = opened.visit(f"/runs/one/{path}")
            expect(page.locator("table").first).to_be_attached()
            assert [] == browsing.faults(page), path
            assert page.evaluate("() => document.scrollingElement.scrollWidth <= innerWidth"), path
