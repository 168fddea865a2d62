"""Changing a reward in a real browser: nothing without the write token, a trial, and a change followed to its step."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rewardkit import Recorder, Rollout, Runtime, Score, reward
from rewardkit.changing import LiveRuntime

browsing = pytest.importorskip("browsing")
expect = pytest.importorskip("playwright.sync_api").expect

expect.set_options(timeout=30_000)
pytestmark = pytest.mark.browser

ATTACK = "<img src=x onerror='window.hit = 1'>"
ROWS = [Rollout("2+2=", completion, {"answer": "4"}) for completion in ("4", "5", f"4 {ATTACK}", "44")]
SOURCE = f"""\
from rewardkit import Score


def brief(completion: str, answer: str) -> Score:
    if completion.startswith(answer):
        return Score(-1.0, "begins with it, {ATTACK}")
    return Score(2.0, "another one")
"""


@reward
def brief(completion: str) -> Score:
    """The first version: the completion's length."""
    return Score(float(len(completion)), f"its length {ATTACK}")


@reward
def other(completion: str) -> float:
    """A reward beside it."""
    return 0.5


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveRuntime]:
    """A run that goes on, one step at a time."""
    runs = tmp_path_factory.mktemp("changing")
    with LiveRuntime(Runtime([brief, other], lane="inline", record=runs / "over")) as ended:
        ended.score(ROWS, step=0)
    with LiveRuntime(Runtime([brief, other], workers=1, record=runs / "live")) as live:
        live.score(ROWS, step=0)
        yield live


@pytest.fixture(scope="module")
def folder(training: LiveRuntime) -> Path:
    """The folder of the runs."""
    assert training.runtime.recorder is not None
    return training.runtime.recorder.path.home.parent


@pytest.fixture(scope="module")
def writing(folder: Path) -> Iterator[Any]:
    """A server that lets rewards be changed."""
    with browsing.Server(folder, write=True) as served:
        yield served


@pytest.fixture
def opened(browser: Any, writing: Any) -> Iterator[Any]:
    """A window on the run that goes on, without the write token."""
    with browsing.window(browser, writing) as found:
        found.may_fail = True
        found.visit(browsing.path_of("live", "change"))
        found.page.locator(".editor-text").wait_for()
        yield found


def unlock(window: Any) -> Any:
    """Enter the write token, and return the page."""
    page = window.page
    page.get_by_label("Write token").fill(window.served.write_token)
    page.get_by_role("button", name="Unlock").click()
    expect(page.get_by_role("button", name="Try", exact=True)).to_be_enabled()
    return page


def write(page: Any, text: str) -> None:
    """Put a text into the editor."""
    page.locator(".editor-text").fill(text)


def test_nothing_happens_without_the_write_token(opened: Any, folder: Path) -> None:
    """Buttons do nothing, a wrong token is told, and the server refuses before it writes a file."""
    page = opened.page
    for name in ("Try", "Apply", "Run as shadow", "Set weight", "Remove"):
        expect(page.get_by_role("button", name=name, exact=True)).to_be_disabled()
    page.get_by_label("Write token").fill("a wrong one")
    page.get_by_role("button", name="Unlock").click()
    expect(page.get_by_role("alert")).to_contain_text("wrong write token")
    body = {"reward": "brief", "source": SOURCE}
    for action in ("try", "ask", "cancel"):
        where = f"{opened.served.base}/api/runs/live/change/{action}"
        answer = page.request.post(where, data=body, headers={"origin": opened.served.base})
        assert answer.status == 403
    assert not (folder / "live" / "rewards").exists()


def test_a_reward_is_tried_and_run_as_a_shadow_and_applied(opened: Any, training: LiveRuntime) -> None:
    """A syntax error names its line; a trial shows what changes; the answer of the training is followed."""
    page = unlock(opened)
    write(page, SOURCE.replace("answer):", "answer:"))
    page.get_by_role("button", name="Try", exact=True).click()
    expect(page.locator(".change-words")).to_contain_text("line 5: ")
    expect(page.locator(".editor-lines .is-wrong")).to_have_text("5\n")
    write(page, SOURCE)
    page.locator(".editor-text").press("Control+Enter")
    expect(page.locator(".figures")).to_contain_text("Sign flips")
    expect(page.locator(".example").first).to_contain_text(ATTACK)
    expect(page.locator(".asked li")).to_have_count(0)

    page.get_by_role("button", name="Run as shadow").click()
    expect(page.get_by_role("dialog")).to_contain_text("scored beside brief as brief_shadow, with weight 0")
    expect(page.get_by_role("dialog")).to_contain_text("from step 1 at the earliest")
    page.get_by_role("dialog").get_by_role("button", name="Run as shadow").click()
    expect(page.locator(".asked li").first).to_contain_text("takes effect at step 1")
    assert training.score(ROWS, step=1).scores["brief_shadow"] == [-1.0, 2.0, -1.0, -1.0]
    expect(page.locator(".asked li").first).to_contain_text("in effect from step 1 on")
    expect(page.locator(".versions")).to_contain_text("brief_shadow@1")

    page.get_by_role("button", name="Apply").click()
    page.get_by_role("dialog").get_by_role("button", name="Apply").click()
    expect(page.locator(".asked li").first).to_contain_text("takes effect at step 2")
    assert list(training.score(ROWS, step=2).scores) == ["brief", "other"]
    expect(page.locator(".versions li").filter(has_text="brief@2")).to_contain_text("now")

    page.get_by_role("button", name="Set weight").click()
    page.get_by_label("Weight in the total").fill("0.25")
    page.get_by_role("dialog").get_by_role("button", name="Set weight").click()
    expect(page.locator(".asked li").first).to_contain_text("Set weight 0.25")
    expect(page.locator(".asked li").first).to_contain_text("takes effect at step 3")
    assert training.score(ROWS, step=3).totals[0] == 0.25
    expect(page.get_by_text("weight 0.25", exact=True)).to_be_visible()

    write(page, SOURCE)
    page.get_by_role("button", name="Add as new").click()
    dialog = page.get_by_role("dialog")
    page.keyboard.type("brief")
    expect(dialog).to_contain_text("The run has a reward of this name")
    expect(dialog.get_by_role("button", name="Add")).to_be_disabled()
    page.keyboard.type("_too")
    dialog.get_by_label("Weight in the total").fill("0.5")
    dialog.get_by_role("button", name="Add").click()
    expect(page.locator(".asked li").first).to_contain_text("takes effect at step 4")
    assert list(training.score(ROWS, step=4).scores) == ["brief", "other", "brief_too"]
    assert page.evaluate("() => window.hit") is None


@pytest.mark.full
def test_what_goes_wrong_is_told_on_the_page(opened: Any) -> None:
    """An import that fails, a file that is not there, and a trial that is cancelled."""
    page = unlock(opened)
    write(page, "import nothing_of_this_name\n" + SOURCE)
    page.get_by_role("button", name="Try", exact=True).click()
    expect(page.locator(".trial-failure")).to_contain_text("No module named 'nothing_of_this_name' (line 1)")
    write(page, "import time\ntime.sleep(600)\n" + SOURCE)
    page.get_by_role("button", name="Try", exact=True).click()
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator(".trial")).to_contain_text("cancelled; nothing was applied")
    page.get_by_role("button", name="File on the server").click()
    page.get_by_label("File and function").fill("gone.py:brief")
    page.get_by_role("button", name="Try", exact=True).click()
    expect(page.locator(".change-words")).to_contain_text("gone.py: no such file on the server's machine")


@pytest.mark.full
def test_the_editor_indents_and_keeps_what_was_written(opened: Any) -> None:
    """Tab and Enter indent, Escape leaves, and a reload of the address has the text and the view again."""
    page = opened.page
    write(page, "def brief(completion):")
    area = page.locator(".editor-text")
    area.press("End")
    area.press("Enter")
    page.keyboard.type("if completion:")
    area.press("Enter")
    page.keyboard.type("return 1.0")
    area.press("Enter")
    area.press("Shift+Tab")
    page.keyboard.type("return 0.0")
    written = "def brief(completion):\n    if completion:\n        return 1.0\n    return 0.0"
    assert written == area.input_value()
    expect(page.locator(".editor-lines")).to_have_text("1\n2\n3\n4\n")
    area.press("Escape")
    page.keyboard.press("d")
    expect(page.locator(".diff mark, .diff-added").first).to_be_visible()
    page.reload()
    expect(page.locator(".diff")).to_contain_text("if completion:")
    page.get_by_role("button", name="Source").click()
    assert written == area.input_value()
    page.get_by_role("button", name="Back to brief@").click()
    assert written != area.input_value()


@pytest.mark.full
def test_a_run_that_has_ended_can_be_tried_on(browser: Any, writing: Any) -> None:
    """It is said in one line, and only Try is possible; on a phone nothing scrolls sideways."""
    with browsing.window(browser, writing, browsing.NARROW, "dark") as found:
        found.visit(browsing.path_of("over", "change"))
        page = unlock(found)
        expect(page.get_by_text("Nothing can be applied here: the training ended at")).to_be_visible()
        expect(page.get_by_role("button", name="Apply")).to_be_disabled()
        write(page, SOURCE)
        page.get_by_role("button", name="Try", exact=True).click()
        expect(page.locator(".figures")).to_contain_text("of 4 that both scored")
        assert page.evaluate("() => document.documentElement.scrollWidth") <= 390


@pytest.mark.full
def test_a_server_that_only_reads_says_how_to_write(browser: Any, folder: Path) -> None:
    """Sources and changes are shown all the same."""
    with browsing.Server(folder) as served, browsing.window(browser, served) as found:
        page = found.visit(browsing.path_of("over", "change"))
        expect(page.locator(".change-note")).to_contain_text("start it with rewardkit ui --write")
        expect(page.get_by_role("button", name="Try", exact=True)).to_be_disabled()
        expect(page.locator(".editor-text")).to_have_value(re.compile("def brief"))


@pytest.mark.full
def test_where_nothing_can_be_tried_a_version_is_compared_with_the_one_before_it(browser: Any, tmp_path: Path) -> None:
    """One click shows what changed; a version beside itself offers the one before it."""

    @reward(name="brief")
    def later(completion: str) -> float:
        return 7.25

    for version, step in ((brief, 0), (later, 1)):
        recorder = Recorder(tmp_path / "two", append=step > 0)
        with Runtime([version], lane="inline", record=recorder) as runtime:
            runtime.score(ROWS, step=step)
    with browsing.Server(tmp_path) as served, browsing.window(browser, served) as found:
        page = found.visit(browsing.path_of("two", "change"))
        expect(page.locator(".change-standing")).not_to_contain_text("Trying still works")
        page.get_by_role("button", name="Differences").click()
        expect(page.locator(".diff-title")).to_have_text("brief@1 → brief@2")
        expect(page.locator(".change-source")).to_contain_text("return 7.25")
        page.get_by_label("Compare with").select_option("brief@2")
        page.get_by_role("button", name="Compare with brief@1").click()
        expect(page.locator(".diff-title")).to_have_text("brief@1 → brief@2")


@pytest.mark.full
@pytest.mark.parametrize("theme", ["light", pytest.param("dark", marks=pytest.mark.full)])
def test_the_tab_has_no_serious_fault_of_accessibility(browser: Any, writing: Any, theme: str) -> None:
    """Neither its source, nor its differences, nor the field for a file."""
    pytest.importorskip("axe_playwright_python")
    with browsing.window(browser, writing, theme=theme) as found:
        for mode in ("source", "differences", "file"):
            page = found.visit(browsing.path_of("over", "change", f"mode={mode}"))
            page.locator(".versions").wait_for()
            assert [] == browsing.faults(page), mode
