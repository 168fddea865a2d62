"""A saved page in a real browser, opened from a file: it is the page, and asks for nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from patience import wait_for

from rewardkit import Rollout, Runtime, Score, reward
from rewardkit.dashboard.panels import PANELS
from rewardkit.dashboard.saved.document import write_page
from rewardkit.dashboard.saved.scope import Scope, of_prompt, whole_run
from rewardkit.errors import RecordError
from rewardkit.record.conditions import conditions_of
from rewardkit.record.selection import Selection
from rewardkit.replay.recorded_run import Run

browsing = pytest.importorskip("browsing")
expect = pytest.importorskip("playwright.sync_api").expect

expect.set_options(timeout=20_000)
pytestmark = pytest.mark.browser

HOSTILE = (
    '</script><script>window.ran = 1</script><!--<img src=x onerror="window.ran=2"><svg onload=window.ran=3> \u202e'
)


@reward
def odd(completion: str) -> Score | None:
    if "fail" in completion:
        print(f"said {HOSTILE}")
        raise ValueError(f"cannot {HOSTILE}")
    return None if "skip" in completion else Score(len(completion) % 7 / 7, f"because {HOSTILE}")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of hostile texts in three steps, with failures and skips."""
    place = tmp_path_factory.mktemp("saved") / "run of <b> & é"
    with Runtime([odd], lane="inline", record=place) as runtime:
        for step in range(3):
            texts = [f"{word} {HOSTILE} {step}" for word in ("fail", "skip", "good", "better")]
            data = [{"level": str(prompt), "my col": f"a and {prompt % 2}"} for prompt in range(3)]
            runtime.score([Rollout(f"{HOSTILE} {row['level']}", text, row) for row in data for text in texts],
                          step=step, epoch=float(step))  # fmt: skip
    return place


class File:
    """A saved page in a window of its own.

    Attributes:
        page: Playwright's page.
        url: The file's address.
        requests: What the browser asked for, beside the file itself.
        errors: What its console called an error.
    """

    def __init__(self, page: Any, url: str) -> None:
        self.page, self.url = page, url
        self.requests: list[str] = []
        self.errors: list[str] = []
        page.on("request", lambda asked: self.requests.append(asked.url) if asked.url.split("#")[0] != url else None)
        page.on("console", lambda said: self.errors.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda wrong: self.errors.append(str(wrong)))

    def open(self, path: str = "") -> Any:
        """Open the file anew at a path of the page, and wait for what it shows."""
        self.page.goto("about:blank")
        self.page.goto(f"{self.url}#{path}" if path else self.url)
        self.settle()
        return self.page

    def settle(self) -> None:
        """Wait until nothing is loading."""
        self.page.locator("main").wait_for()
        self.page.wait_for_function("() => !document.querySelector('.loading, [aria-busy=true]')")


def _save(run: Path, to: Path, scope: Scope | None = None) -> Path:
    with Run.open(run) as opened, to.open("w", encoding="utf-8") as file:
        write_page(opened, scope or whole_run(), file)
    return to


@pytest.fixture(scope="module")
def saved_file(run: Path) -> Path:
    """The whole run, saved."""
    return _save(run, run.parent / "whole.html")


@pytest.fixture
def saved(browser: Any, saved_file: Path) -> Iterator[File]:
    """The file in a window; whatever it asks for, and every error, fails the test."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    page.set_default_timeout(30_000)
    file = File(page, saved_file.as_uri())
    try:
        yield file
        assert ([], []) == (file.requests, file.errors)
        assert page.evaluate("() => window.ran") is None
    finally:
        context.close()


def test_each_tab_opens_from_the_file_without_a_request(saved: File) -> None:
    """By its link, with the run's data in it; the address keeps the tab, and back leads back."""
    page = saved.open()
    expect(page.locator(".chart-box:has(.uplot)").first).to_be_visible()
    expect(page.get_by_label("About this file")).to_contain_text(
        re.compile(r"Saved \d+ \w+ \d+, \d\d:\d\d · 36 completions")
    )
    for panel in PANELS:
        tab = page.get_by_role("navigation", name="Views of the run").get_by_role("link", name=panel.title)
        tab.click()
        saved.settle()
        expect(tab).to_have_attribute("aria-current", "page")
        expect(page.locator(".problem")).to_have_count(0)
    page.reload()
    saved.settle()
    expect(page.get_by_role("link", name=PANELS[-1].title)).to_have_attribute("aria-current", "page")
    page.go_back()
    expect(page.get_by_role("link", name=PANELS[-2].title)).to_have_attribute("aria-current", "page")


@pytest.mark.full
def test_a_prompt_is_read_sorted_and_searched_without_a_server(saved: File) -> None:
    """Rows are put in order, filtered and opened by the page itself."""
    page = saved.open()
    page.keyboard.press("3")
    saved.settle()
    page.get_by_role("searchbox").fill(" 2")
    expect(page.locator("tbody tr")).to_have_count(1)
    page.locator("tbody tr").first.click()
    expect(page.get_by_role("heading", name="Prompt 2")).to_be_visible()
    expect(page.locator(".pane-right .pane-text")).to_contain_text("window.ran")
    rows = page.get_by_role("region", name="All completions of this prompt").locator("tbody tr")
    expect(rows).to_have_count(12)
    page.get_by_role("combobox", name="Filter by").select_option("odd")
    page.get_by_role("combobox", name="Status").select_option("failed")
    expect(rows).to_have_count(3)
    expect(rows.first).to_contain_text("exception")


LIST = f"/runs/{quote('run of <b> & é')}/completions?list=all"
CONDITIONS = (
    "", "step>=1 and odd=scored", "odd=exception", "odd!=failed", "level=2", "level>0", "reward=none", "level='2'",
    "reward!=none and reward>0", "odd<=0.5", "outcome=failed", "outcome!=failed", "cause=exception", "prompt!=1",
    '"my col"="a and 1"', "`my col`!='a and 1' and \"odd\"≥.5", "'my col'='a and 0' AND  step == 1e0", "odd@1<inf",
    "odd.reason!=none", "odd.error=none and epoch>=1", "odd.seconds>=0", "split=train and truncated=none",
    "odd.status=failed", "odd.version=1 and column.level>=1", "reward.odd>0.1 and completion!=none", "my col=none",
)  # fmt: skip
WRONG = (
    "level='2", "odd", "odd<", "odd~1", "odd<much", "odd<failed", "outcome=0.2", "odd=nan", "nothing=1", "odd=1 and",
    "completion=x", "split=test", "split<train", "'level'2 and odd=1",
)  # fmt: skip
ORDERS = (
    "-reward", "odd", "-level", "my col", "-my col", "completion", "-completion", "prompt_text", "odd.reason",
    "-odd.error", "epoch", "-split", "odd.status", "outcome", "-characters", "odd.seconds",
)  # fmt: skip


def _chosen(run: Path, where: str, sort: str | None = None) -> list[int]:
    """Return the completions of a run that fit conditions, as the record chooses and sorts them."""
    with Run.open(run) as opened:
        return Selection(opened, "train", conditions_of(where), sort).ids.tolist()


def _numbers(page: Any) -> list[int]:
    """Return the numbers of the completions that are listed."""
    rows = page.locator("main tbody tr[data-row]")
    return [int(row) for row in rows.evaluate_all("rows => rows.map((row) => row.dataset.row)")]


def _go(file: File, query: str) -> Any:
    """Lead the open file to the table of all completions."""
    file.page.evaluate("path => { location.hash = path; }", f"{LIST}&{query}")
    file.settle()
    return file.page


def test_all_completions_are_filtered_and_sorted_without_a_server(saved: File, run: Path) -> None:
    """By conditions and orders as the record chooses and sorts them, those in quotes too."""
    page = saved.open(LIST)
    for where in CONDITIONS:
        _go(saved, f"by=-reward&where={quote(where)}")
        chosen = _chosen(run, where, "-reward")
        assert wait_for(lambda chosen=chosen: chosen == _numbers(page)), (where, chosen, _numbers(page))
    for sort in ORDERS:
        _go(saved, f"by={quote(sort)}")
        chosen = _chosen(run, "", sort)
        assert wait_for(lambda chosen=chosen: chosen == _numbers(page)), (sort, chosen, _numbers(page))


@pytest.mark.full
def test_a_wrong_condition_is_told_as_the_server_tells_it(saved: File, run: Path) -> None:
    """In a line at the filter."""
    page = saved.open(LIST)
    for where in WRONG:
        with pytest.raises(RecordError) as refusal:
            _chosen(run, where)
        _go(saved, f"where={quote(where)}")
        said = page.get_by_role("alert").inner_text()
        assert (where, str(refusal.value).split(";")[0]) == (where, said.split(";")[0])


@pytest.mark.full
def test_all_completions_are_searched_without_a_server(saved: File) -> None:
    """In what belongs to them, as a text or as an expression."""
    rows = saved.page.locator("main tbody tr")
    for query, count in (("find=SAID", 9), ("find=^better.*2$&re=1", 3), ("find=because&in=completion", 0)):
        saved.open(f"{LIST}&{quote(query, safe='&=')}")
        expect(rows, query).to_have_count(count)


@pytest.mark.full
def test_the_logs_are_filtered_and_searched_without_a_server(saved: File) -> None:
    """A failure by its cause, its entry whole, and a text of what was printed, which the row does not show."""
    page = saved.open()
    page.keyboard.press("2")
    saved.settle()
    page.locator(".fault").first.click()
    expect(page.locator("main")).to_contain_text("cannot")
    expect(page.locator("main")).to_contain_text("Traceback")
    page.get_by_role("searchbox").fill("said </script>")
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_contain_text("9 entries")
    page.get_by_role("searchbox").fill("nobody said this")
    page.keyboard.press("Enter")
    expect(page.locator("main")).not_to_contain_text("9 entries")


def test_what_a_file_cannot_do_is_not_offered(saved: File) -> None:
    """No change of a reward, no other run; a source is read and compared."""
    page = saved.open()
    page.keyboard.press("5")
    saved.settle()
    for name in ("Try", "Apply", "Remove", "File on the server"):
        expect(page.get_by_role("button", name=name)).to_have_count(0)
    expect(page.get_by_label("Source of the reward")).not_to_be_editable()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).not_to_contain_text("All runs")


@pytest.mark.full
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", [browsing.WIDE, browsing.NARROW], ids=["wide", "narrow"])
def test_a_saved_page_is_read_by_all(browser: Any, saved_file: Path, size: tuple[int, int], theme: str) -> None:
    """axe-core finds nothing serious on any tab, and no tab is wider than a phone."""
    context = browser.new_context(viewport={"width": size[0], "height": size[1]}, color_scheme=theme)
    try:
        file = File(context.new_page(), saved_file.as_uri())
        file.open()
        for number in range(1, len(PANELS) + 1):
            file.page.keyboard.press(str(number))
            file.settle()
            assert [] == browsing.faults(file.page)
            assert file.page.evaluate("() => document.documentElement.scrollWidth") <= size[0]
    finally:
        context.close()


@pytest.mark.full
def test_a_part_of_a_run_opens_with_it(browser: Any, run: Path) -> None:
    """What it does not have, it says so, with a way back."""
    with Run.open(run) as opened:
        path = _save(run, run.parent / "part.html", of_prompt(opened, 1))
    context = browser.new_context()
    try:
        file = File(context.new_page(), path.as_uri())
        page = file.open()
        expect(page.get_by_role("heading", name="Prompt 1")).to_be_visible()
        expect(page.get_by_label("About this file")).to_contain_text("prompt 1 · 12 completions")
        page.get_by_role("button", name="Next prompt").click()
        expect(page.get_by_role("alert")).to_contain_text("This is not in the file")
        page.get_by_role("alert").get_by_role("link", name="Where this page begins").click()
        expect(page.get_by_role("heading", name="Prompt 1")).to_be_visible()
        assert ([], []) == (file.requests, file.errors)
    finally:
        context.close()
