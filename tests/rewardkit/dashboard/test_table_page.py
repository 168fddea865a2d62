"""The table of all completions in a real browser: filters, orders, columns, searches, copies and files."""

from __future__ import annotations

import csv
import io
import json
import re
import threading
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlparse

import pytest

from rewardkit.record.recorder import Recorder
from rewardkit.score_batch import ScoreBatch
from rewardkit.types import Cause, Outcome, Rollout, Status

browsing = pytest.importorskip("browsing")
expect = pytest.importorskip("playwright.sync_api").expect

expect.set_options(timeout=20_000)
pytestmark = pytest.mark.browser

LONG = "A long answer. " * 100
SECOND_PAGE = "51\N{EN DASH}100 of 135"
MARKUP = "main script, main img, main iframe, main b[onclick]"


def batch(step: int, count: int = 40) -> ScoreBatch:
    """A batch of two prompts, whose second reward fails now and then; one text is long, one is hostile."""
    texts = [f"{LONG}number {place} of step {step}" for place in range(count)]
    texts[1] = "<script>window.hit = 1</script>"
    rows = ({"level": "easy", "my col=": "a and b"}, {"level": "hard", "my col=": "c"})
    rollouts = [Rollout(f"prompt {place % 2}", text, rows[place % 2]) for place, text in enumerate(texts)]
    version = "a" * 12 if step < 2 else "b" * 12
    good = [
        Outcome(Status.SCORED, step + place / 100, version=version, reason=f"reason {place}") for place in range(count)
    ]
    failed = Outcome(Status.FAILED, 0.0, cause=Cause.TIMEOUT, error="took 2 s", version="1" * 12)
    judge = [failed if place % 10 == 0 else Outcome(Status.SCORED, 0.5, version="1" * 12) for place in range(count)]
    return ScoreBatch(rollouts, {"good": good, "judge": judge}, {"good": 1.0, "judge": 0.1})


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run of four steps with 40 completions each, and one that the tests let grow."""
    folder = tmp_path_factory.mktemp("table")
    for name in ("one", "live"):
        with Recorder(folder / name) as recorder:
            for step in range(4):
                recorder.record(batch(step), step=step)
    return folder


def table(run: str = "one", query: str = "") -> str:
    return browsing.path_of(run, "completions", f"list=all&{query}")


def asked(page: Any) -> dict[str, str]:
    """Return the query of the address."""
    return {name: values[0] for name, values in parse_qs(urlparse(page.url).query).items()}


def numbers(page: Any) -> list[int]:
    """Return the numbers of the completions that are shown."""
    return [
        int(row)
        for row in page.locator("tbody tr[data-row]").evaluate_all("rows => rows.map((row) => row.dataset.row)")
    ]


def test_a_link_brings_the_same_view(window: Any) -> None:
    """Filter, order, columns and page lie in the address, in the language of the command line."""
    page = window.visit(table())
    page.get_by_label("Filter", exact=True).fill("good>=0.1 and judge!=failed")
    page.keyboard.press("Enter")
    expect(page.locator(".table-state")).to_contain_text("135 completions that fit")
    page.get_by_role("button", name="good", exact=True).click()
    expect(page.locator("tbody tr[data-row]").first).to_have_attribute("data-row", "160")
    page.get_by_text("Columns", exact=True).click()
    page.get_by_label("Epoch", exact=True).check()
    page.get_by_label("my col=", exact=True).check()
    page.get_by_label("Tokens", exact=True).uncheck()
    page.keyboard.press("Escape")
    expect(page.get_by_role("columnheader", name="my col=")).to_be_visible()
    page.get_by_role("button", name="Further rows").click()
    expect(page.locator(".pager")).to_contain_text(SECOND_PAGE)
    assert {"where": "good>=0.1 and judge!=failed", "by": "-good", "at": "50", "until": "160"}.items() <= asked(
        page
    ).items()
    before, heads = numbers(page), page.locator("thead th").all_inner_texts()
    page.reload()
    window.settle()
    expect(page.locator(".pager")).to_contain_text(SECOND_PAGE)
    assert (before, heads) == (numbers(page), page.locator("thead th").all_inner_texts())
    page.locator("tbody tr").first.click()
    expect(page.get_by_role("heading", name=re.compile("Prompt"))).to_be_visible()
    page.go_back()
    expect(page.locator(".pager")).to_contain_text(SECOND_PAGE)


@pytest.mark.full
def test_every_column_sorts_the_whole_run(window: Any) -> None:
    """Also texts, epoch and split: a click on the head sorts from the first letter on, and a second one turns it."""
    columns = "id,epoch,split,prompt_text,completion,good.reason,judge.error,column.level"
    page = window.visit(table("one", f"cols={columns}"))
    heads = page.locator("thead th")
    assert len(columns.split(",")) == heads.locator("button").count()
    page.get_by_role("button", name="Completion", exact=True).click()
    expect(page.locator("th[aria-sort=ascending]")).to_have_text(re.compile("Completion"))
    expect(page.locator("tbody tr[data-row]").first).to_have_attribute("data-row", "2")  # the one with a script
    page.get_by_role("button", name="Completion", exact=True).click()
    expect(page.locator("th[aria-sort=descending]")).to_have_text(re.compile("Completion"))
    expect(page.locator("tbody tr[data-row]").first).to_have_attribute("data-row", "1")
    assert "-completion" == asked(page)["by"]
    page.get_by_role("button", name="good reason").click()
    expect(page.locator("tbody tr[data-row]").first).to_have_attribute("data-row", "1")
    page.get_by_role("button", name="Further rows").click()
    expect(page.locator(".pager")).to_contain_text("51\N{EN DASH}100 of 160")


@pytest.mark.full
def test_a_filter_is_written_by_its_fields(window: Any) -> None:
    """Column, sign and value become a condition, in quotes where it needs them; a second one is joined."""
    page = window.visit(table())
    page.get_by_text("Add a filter").click()
    page.get_by_label("Column", exact=True).select_option("my col=")
    page.get_by_label("Value").fill("a and b")
    page.keyboard.press("Enter")
    expect(page.locator(".table-state")).to_contain_text("80 completions that fit")
    page.get_by_label("Column", exact=True).select_option("judge")
    page.get_by_label("Value").fill("timeout")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator(".table-state")).to_contain_text("16 completions that fit")
    assert '"my col="="a and b" and judge=timeout' == asked(page)["where"]
    page.get_by_role("button", name="Clear").click()
    expect(page.locator(".table-state")).to_contain_text("160 completions")


def test_a_wrong_filter_is_told_in_a_line_and_stays_in_its_field(window: Any) -> None:
    """With what is near; the fields stay."""
    window.may_fail = True
    page = window.visit(table())
    field = page.get_by_label("Filter", exact=True)
    for text, message in (("goo<1", "nothing is called 'goo'; near: good"), ("good=<1", "no sign '=<'")):
        field.fill(text)
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text(message)
        expect(field).to_have_value(text)
    page.get_by_role("switch", name="Regular expression").check(force=True)
    page.get_by_role("button", name="Clear").click()
    page.get_by_label("Search in the completions").fill("(")
    expect(page.get_by_role("alert")).to_contain_text("not a regular expression")


@pytest.mark.full
def test_a_search_shows_where_the_text_stands(window: Any) -> None:
    """In any text, as a text or as an expression; a hostile one does nothing."""
    page = window.visit(table())
    page.get_by_label("Search in the completions").fill("REASON 7")
    expect(page.locator("tbody mark").first).to_have_text("reason 7")
    expect(page.locator(".table-state")).to_contain_text("4 with a match in 160 of 160")
    expect(page.locator(".match-cell .chip").first).to_have_text("reason good")
    page.get_by_role("switch", name="Regular expression").check(force=True)
    page.get_by_label("Search in the completions").fill("<script>.*hit")
    expect(page.locator("tbody mark").first).to_have_text("<script>window.hit")
    assert 0 == page.locator(MARKUP).count()
    assert page.evaluate("() => window.hit") is None
    assert {"find": "<script>.*hit", "re": "1"}.items() <= asked(page).items()
    page.get_by_label("Where to search").select_option("prompt")
    expect(page.get_by_text("No text has a match")).to_be_visible()


@pytest.mark.full
def test_a_search_is_stopped_and_goes_on(window: Any) -> None:
    """A page of finds ends it; one that takes long says how far it is until it is stopped."""
    page = window.visit(table("one", "find=number"))
    expect(page.locator(".table-state")).to_contain_text("50 with a match in 52 of 160")
    page.get_by_role("button", name="Search for more").click()
    expect(page.locator(".table-state")).to_contain_text("100 with a match in")

    def slowly(route: Any) -> None:
        """Answer as if one completion were looked at, and had no match."""
        data = route.fetch().json()
        start = int(parse_qs(urlparse(route.request.url).query)["from"][0])
        route.fulfill(json={**data, "rows": [], "end": start + 1})

    page.route(re.compile(r"/table\?.*find=of"), slowly)
    page.get_by_label("Search in the completions").fill("of step")
    expect(page.locator(".table-state")).to_contain_text(re.compile("0 with a match in [0-9]+ of 160"))
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".table-state")).to_contain_text("stopped")
    seen = page.locator(".table-state").inner_text()
    page.wait_for_timeout(300)
    assert seen == page.locator(".table-state").inner_text()
    page.unroute_all(behavior="ignoreErrors")
    page.get_by_role("button", name="Search on").click()
    expect(page.locator(".table-state")).to_contain_text("50 with a match in")


def test_rows_stay_while_a_run_grows(window: Any, runs: Path) -> None:
    """Further pages are of what there was; a button says how many are newer, and what is typed stays."""
    stop = threading.Event()

    def train() -> None:
        with Recorder(runs / "live", append=True) as recorder:
            step = 4
            while not stop.wait(0.15):
                recorder.record(batch(step, 4), step=step)
                step += 1

    thread = threading.Thread(target=train)
    thread.start()
    try:
        page = window.visit(table("live", "by=-id"))
        page.get_by_role("button", name="Further rows").click()
        expect(page.locator(".pager")).to_contain_text(SECOND_PAGE[:9])
        before = numbers(page)
        field = page.get_by_label("Filter", exact=True)
        field.click()
        page.keyboard.type("good>0.5 and level=easy", delay=60)
        expect(page.get_by_role("button", name=re.compile("newer: show them"))).to_be_visible()
        assert before == numbers(page)
        expect(field).to_have_value("good>0.5 and level=easy")
        page.keyboard.press("Enter")
        expect(page.locator(".table-state")).to_contain_text("that fit")
        expect(field).to_have_value("good>0.5 and level=easy")
    finally:
        stop.set()
        thread.join()


@pytest.mark.full
def test_a_text_is_copied_whole(window: Any) -> None:
    """The completion, a reason, and the command for the terminal; by mouse and by keyboard."""
    page = window.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    window.visit(table("one", "where=id%3D3"))
    clipboard = "() => navigator.clipboard.readText()"
    page.locator("tbody tr").first.hover()
    page.get_by_role("button", name="Copy the completion of completion 3").click()
    expect(page.locator(".copy-says").first).to_have_text("Copied")
    assert f"{LONG}number 2 of step 0" == page.evaluate(clipboard)
    page.get_by_text("Columns", exact=True).click()
    page.get_by_label("good: reason").check()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Copy the reason of completion 3").click()
    expect(page.locator(".cell-copies .copy-says").last).to_have_text("Copied")
    assert "reason 2" == page.evaluate(clipboard)
    page.get_by_role("button", name="Copy as command").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert "rewardkit show one --where 'id=3'" == page.evaluate(clipboard)
    page.keyboard.press("Escape")
    page.locator("tbody tr").first.focus()
    page.keyboard.press("c")
    size = len(LONG) + len("number 2 of step 0")
    page.wait_for_function(f"async () => (await navigator.clipboard.readText()).length === {size}")


@pytest.mark.full
def test_each_text_of_the_comparison_is_copied(window: Any) -> None:
    """The prompt, either completion as it was recorded, and what a reward said."""
    page = window.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    window.visit(browsing.path_of("one", "completions", "prompt=1&left=2&right=4"))
    for label, text in (
        ("Copy the prompt", "prompt 1"),
        ("Copy the left completion", "<script>window.hit = 1</script>"),
        ("Copy the right completion", f"{LONG}number 3 of step 0"),
        ("Copy the reason", "reason 1"),
    ):
        page.get_by_role("button", name=label).first.click()
        page.wait_for_function("async (text) => (await navigator.clipboard.readText()) === text", arg=text)


@pytest.mark.cases(1)
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_what_is_shown_is_a_file(window: Any, kind: str) -> None:
    """All rows that are chosen, not those of the page, with the columns that are shown and whole texts."""
    page = window.visit(table("one", "where=good<2.5&by=-good&cols=id,completion,good,column.my%20col%253D"))
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV" if kind == "csv" else "JSON Lines").click()
    assert f"one.{kind}" == download.value.suggested_filename
    text = Path(download.value.path()).read_text(encoding="utf-8")
    lines = [json.loads(line) for line in text.splitlines()] if kind == "jsonl" else []
    rows = lines or list(csv.DictReader(io.StringIO(text)))
    assert 120 == len(rows)
    assert ["id", "completion", "good", "column.my col="] == list(rows[0])
    assert ["120", f"{LONG}number 39 of step 2", "2.39", "c"] == [str(value) for value in rows[0].values()]


@pytest.mark.full
def test_the_keyboard_alone_does(window: Any) -> None:
    """Fields, order, rows and columns are reached, and a row opens."""
    page = window.visit(table())
    page.keyboard.press("f")
    expect(page.get_by_label("Filter", exact=True)).to_be_focused()
    page.keyboard.type("judge=failed")
    page.keyboard.press("Enter")
    expect(page.locator(".table-state")).to_contain_text("16 completions that fit")
    page.get_by_text("Columns", exact=True).focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.get_by_label("Number", exact=True)).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator(".choose-columns")).not_to_have_attribute("open", "")
    page.get_by_role("button", name="Reward", exact=True).press("Enter")
    expect(page).to_have_url(re.compile("by=-reward"))
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("prompt="))


@pytest.mark.cases(1)
@pytest.mark.parametrize("query", ["", "find=reason&cols=completion,good,good.reason", "where=x%3D1"])
def test_no_serious_fault_of_accessibility(browser: Any, served: Any, query: str, full: bool) -> None:
    """With rows, with finds, with a wrong filter; in the full form dark and narrow too."""
    for size, theme in ((browsing.WIDE, "light"), (browsing.NARROW, "dark"))[: 2 if full else 1]:
        with browsing.window(browser, served, size, theme) as window:
            window.may_fail = True
            page = window.visit(table("one", query))
            page.get_by_text("Columns", exact=True).click()
            assert [] == browsing.faults(page)
            wide = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
            page.keyboard.press("Escape")
            assert 0 == page.evaluate(wide)
