"""Logs and health as a visitor sees them, in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rewardkit.record.recorder import Recorder
from rewardkit.score_batch import ScoreBatch
from rewardkit.types import Cause, Outcome, Rollout, Status

browsing = pytest.importorskip("browsing")
expect = pytest.importorskip("playwright.sync_api").expect

expect.set_options(timeout=20_000)
pytestmark = pytest.mark.browser

STEPS, SIZE = 30, 32
HOSTILE = "<script>window.hit = 1</script><img src=x onerror='window.hit = 1'> \u202eback \x1b[31mred"


def _batch(step: int) -> ScoreBatch:
    """Return a step's completions: ``loud`` prints, fails at step 20 with two causes, and skips some."""
    rollouts = [
        Rollout(f"prompt {n // 4}", f"{HOSTILE} {n}" if n == 3 else f"word {n} {step}", {}) for n in range(SIZE)
    ]
    loud = [Outcome(Status.SCORED, n % 2, logs=f"said {n} at step {step}\n", duration_s=0.01) for n in range(SIZE)]
    loud[3] = Outcome(Status.SCORED, 0.5, logs=f"{HOSTILE}\n")
    loud[5] = Outcome(Status.SKIPPED, None, "does not apply")
    if step == 20:
        for n in range(8, 24):
            loud[n] = (
                Outcome(Status.FAILED, None, cause=Cause.TIMEOUT, error="no answer within 5 s", attempts=2)
                if n % 2
                else Outcome(Status.FAILED, None, cause=Cause.EXCEPTION, error="KeyError: 'x'", traceback="File a.py")
            )
    flat = [Outcome(Status.SCORED, 1.0) for _ in range(SIZE)]
    return ScoreBatch(rollouts, {"loud": loud, "flat": flat}, {"loud": 1.0, "flat": 1.0})


@pytest.fixture(scope="module")
def recorder(runs: Path) -> Iterator[Recorder]:
    """What records the run ``going``, which has not ended."""
    with Recorder(runs / "going") as recorder:
        recorder.record(_batch(0), step=0)
        recorder.flush()
        yield recorder


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run that failed at one step, and one that said nothing."""
    folder = tmp_path_factory.mktemp("dashboard") / "runs"
    with Recorder(folder / "one") as one:
        for step in range(STEPS):
            one.record(_batch(step), step=step, epoch=step / 10)
    with Recorder(folder / "silent") as silent:
        rollouts = [Rollout("p", "c", {})]
        silent.record(ScoreBatch(rollouts, {"flat": [Outcome(Status.SCORED, 1.0)]}, {"flat": 1.0}), step=0)
    return folder


def _rows(page: Any) -> Any:
    return page.locator(".log-entry")


def test_why_a_step_failed_is_seen_at_one_look(window: Any) -> None:
    """With a step chosen, failures stand by reward and cause, each with an error; a click shows them."""
    page = window.visit(browsing.path_of("one", "logs", "first=20&last=20"))
    why = page.get_by_role("region", name="Why calls failed")
    expect(why).to_contain_text("16 failures of step 20")
    expect(why).to_contain_text("8 \u00d7 timeout")
    expect(why).to_contain_text("no answer within 5 s")
    expect(why).to_contain_text("8 \u00d7 exception")
    why.get_by_role("button", name="exception").click()
    expect(page.locator(".log-detail")).to_contain_text("File a.py")
    expect(_rows(page)).to_have_count(8)
    assert "cause=exception" in window.query()


@pytest.mark.full
def test_a_link_reopens_the_same_entry(window: Any) -> None:
    """The address holds filters and the open entry."""
    page = window.visit(browsing.path_of("one", "logs", "status=failed"))
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.locator(".log-detail")).to_contain_text("Completion")
    told = page.locator(".log-entry.is-open .log-row").get_attribute("data-key")
    page.reload()
    expect(page.locator(".log-entry.is-open .log-row")).to_have_attribute("data-key", told)
    page.get_by_role("link", name="Compare this completion").click()
    page.wait_for_url("**/runs/one/completions?prompt=*")


@pytest.mark.full
def test_what_a_reward_printed_is_found(window: Any) -> None:
    """Search is plain text, whatever the case, and marks what it found."""
    page = window.visit(browsing.path_of("one", "logs"))
    page.get_by_role("searchbox").fill("SAID 7 AT STEP 1")
    expect(_rows(page)).to_have_count(11)
    expect(page.locator(".log-words mark").first).to_have_text("said 7 at step 1")
    page.get_by_role("searchbox").fill("never said")
    expect(page.get_by_text("No entry fits these filters")).to_be_visible()
    page.locator(".empty").get_by_role("button", name="Clear filters").click()
    expect(_rows(page).first).to_be_visible()


@pytest.mark.full
def test_the_list_draws_only_what_is_in_sight_down_to_the_first_entry(window: Any) -> None:
    """Scrolling loads page after page; rows out of sight are not in the document."""
    page = window.visit(browsing.path_of("one", "logs"))
    expect(_rows(page).first).to_be_visible()
    for _ in range(60):
        page.evaluate("() => { const list = document.querySelector('.log-list'); list.scrollTop = list.scrollHeight; }")
        page.wait_for_timeout(60)
        assert _rows(page).count() < 80
        if page.get_by_text("This is the first entry.").count():
            break
    expect(page.get_by_text("This is the first entry.")).to_be_visible()
    expect(page.locator(".log-state")).to_contain_text(f"{STEPS * SIZE} entries")


@pytest.mark.full
def test_hostile_output_is_text(window: Any) -> None:
    """Nothing that a completion or a print holds is executed or hidden."""
    page = window.visit(browsing.path_of("one", "logs", "text=window.hit"))
    _rows(page).first.get_by_role("button").click()
    detail = page.locator(".log-detail")
    expect(detail).to_contain_text("<script>window.hit = 1</script>")
    expect(detail).to_contain_text("\u27e6U+202E RLO\u27e7back")
    assert page.evaluate("() => window.hit") is None
    assert page.locator("main script, main img").count() == 0


@pytest.mark.full
def test_new_entries_come_while_at_the_end_and_wait_while_elsewhere(window: Any, recorder: Recorder) -> None:
    """At the end the list follows the run; scrolled away, a mark counts what is new and leads to it."""
    page = window.visit(browsing.path_of("going", "logs"))
    expect(page.locator(".log-state")).to_contain_text(f"{SIZE} entries")
    recorder.record(_batch(1), step=1)
    recorder.flush()
    expect(_rows(page).first.locator(".log-step")).to_contain_text("1")
    expect(page.locator(".log-state")).to_contain_text(f"{2 * SIZE} entries")
    page.evaluate("() => { document.querySelector('.log-list').scrollTop = 300; }")
    recorder.record(_batch(2), step=2)
    recorder.flush()
    expect(page.locator(".log-pill")).to_contain_text(f"{SIZE} new")
    page.keyboard.press("f")
    expect(page.locator(".log-pill")).to_have_count(0)
    expect(_rows(page).first.locator(".log-step")).to_contain_text("2")


@pytest.mark.full
def test_nothing_moves_under_a_mouse_that_is_down(window: Any, recorder: Recorder) -> None:
    """An entry that came between press and release would take the click away; it stands there afterwards."""
    page = window.visit(browsing.path_of("going", "logs"))
    expect(page.locator(".log-state")).to_contain_text("entries")
    before = page.locator(".log-state").inner_text()
    box = page.locator(".log-entry .log-row").first.bounding_box()
    page.mouse.move(box["x"] + 40, box["y"] + 8)
    page.mouse.down()
    recorder.record(_batch(3), step=3)
    recorder.flush()
    expect(page.locator(".log-pill")).to_contain_text(f"{SIZE} new")
    assert before.splitlines()[0] in page.locator(".log-state").inner_text()
    page.mouse.up()
    expect(page.locator(".log-detail")).to_have_count(1)
    page.keyboard.press("f")
    expect(_rows(page).first.locator(".log-step")).to_contain_text("3")


@pytest.mark.full
def test_a_run_that_said_nothing_says_so(window: Any) -> None:
    """Empty is told with what would stand there."""
    page = window.visit(browsing.path_of("silent", "logs"))
    expect(page.get_by_text("No reward said anything")).to_be_visible()
    expect(page.get_by_text("No call failed")).to_be_visible()


@pytest.mark.full
def test_health_tells_of_calls_that_failed_and_leads_to_them(window: Any) -> None:
    """A few failures may be below the bounds of the detectors: they are told all the same, by reward and cause."""
    page = window.visit(browsing.path_of("one", "health"))
    faults = page.locator("#family-faults")
    expect(faults).to_contain_text(re.compile(r"\d+ calls failed in training: .*\d+ timeout"))
    faults.get_by_role("link", name="Read why in the logs").click()
    page.wait_for_url("**/runs/one/logs?status=failed")
    expect(_rows(page).first).to_contain_text("failed")


@pytest.mark.full
def test_health_tells_the_flags_with_evidence_and_a_way_on(window: Any) -> None:
    """The verdict in words, a flag with its rule, and completions that lead to the Completions tab."""
    page = window.visit(browsing.path_of("one", "health"))
    expect(page.locator(".verdict-words")).to_contain_text("constant of flat")
    expect(page.locator("#family-hacking")).to_contain_text("rewardkit audit")
    expect(page.get_by_label("Report")).to_contain_text(re.compile(r"rewardkit show \S+/one --html report.html"))
    signal = page.locator("#family-signal")
    signal.get_by_role("button", name="constant").first.click()
    expect(signal).to_contain_text("Formula")
    expect(signal).to_contain_text("Threshold")
    assert "flag=constant" in window.query()
    signal.locator(".evidence-row").first.click()
    page.wait_for_url("**/runs/one/completions?prompt=*")


@pytest.mark.full
@pytest.mark.parametrize(
    ("tab", "theme"),
    [
        ("logs", "light"),
        ("health", "dark"),
        pytest.param("logs", "dark", marks=pytest.mark.full),
        pytest.param("health", "light", marks=pytest.mark.full),
    ],
)
def test_both_tabs_are_accessible_and_fit_a_phone(browser: Any, served: Any, tab: str, theme: str) -> None:
    """No serious fault of accessibility, and nothing to scroll sideways at 390 pixels."""
    with browsing.window(browser, served, browsing.NARROW, theme) as window:
        page = window.visit(browsing.path_of("one", tab))
        page.locator(".log-entry button, .flag-head").first.click()
        page.locator(".log-detail .block, .flag-body").first.wait_for()
        assert browsing.faults(page) == []
        assert page.evaluate("() => document.documentElement.scrollWidth") <= 390
