"""The tab on completions in a real browser: the prompts, the comparison, a step, and texts that are hostile."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from rewardkit.record.recorder import Recorder
from rewardkit.score_batch import ScoreBatch
from rewardkit.types import Cause, Outcome, Rollout, Status, Text

browsing = pytest.importorskip("browsing")
expect = pytest.importorskip("playwright.sync_api").expect

expect.set_options(timeout=20_000)
pytestmark = pytest.mark.browser

LONG = "A" * 1_000_000
HOSTILE: tuple[Text, ...] = (
    "<script>window.hit = 1</script>",
    "<img src=x onerror='window.hit = 2'>",
    '[x](javascript:window.hit=3) <a href="javascript:window.hit=3">a</a>',
    '<iframe srcdoc="<script>parent.hit = 4</script>"></iframe>',
    "\x1b[31mred\x1b[0m \x00 \u202eevil\u202c \ud800 end",
    r"$\href{javascript:window.hit=5}{x}$ $$\frac{1}{3}$$ \(\htmlData{a=b}{c}\) $<img src=x onerror=window.hit=6>$",
    LONG,
    [
        {"role": "assistant", "content": "<think><b>hm</b></think>I ask <script>window.hit = 7</script>",
         "tool_calls": [{"function": {"name": "<i>add</i>", "arguments": '{"a": "<script>window.hit = 8</script>"}'}}]},
        {"role": "tool", "name": "add", "content": "<svg onload='window.hit = 9'>"},
    ],
)  # fmt: skip
MARKUP = "main script, main img, main iframe, main svg[onload], main a[href^='javascript'], main b[onclick], main i"


def outcome(score: float | None, version: str = "0", **more: Any) -> Outcome:
    status = more.pop("status", Status.SCORED)
    return Outcome(status, score, version=version * 12, **more)


def epochs(recorder: Recorder) -> None:
    """Record three epochs of two prompts, four completions each; in the third the reward has another version."""
    for step in range(3):
        rollouts, near, polite = [], [], []
        for prompt in range(2):
            row = {"answer": str(40 + prompt), "level": "hard" if prompt else "easy"}
            for place in range(4):
                text = f"The answer of epoch {step} is number {place}, I think."
                rollouts.append(Rollout(f"How much is {prompt} and 40?", text, row, [1] * (5 + place)))
                near.append(outcome(step + place / 10, "1" if step == 2 else "0", reason=f"reason {place}"))
                polite.append(
                    outcome(None, "2", status=Status.SKIPPED)
                    if place % 2
                    else outcome(None, "2", status=Status.FAILED, cause=Cause.TIMEOUT, error="took 2 s", attempts=3)
                )
        scored = ScoreBatch(rollouts, {"near": near, "polite": polite}, {"near": 1.0, "polite": 1.0})
        recorder.record(scored, step=step, epoch=float(step), truncated=[False] * 7 + [True])


def hostile(recorder: Recorder, completions: Sequence[Text]) -> None:
    """Record hostile texts wherever a text can stand."""
    rollouts = [
        Rollout("<script>window.hit = 10</script>", one, {"<img src=x onerror=window.hit=11>": "<b onclick=x>"})
        for one in completions
    ]
    said = [outcome(1.0, reason="<img src=x onerror='window.hit = 12'>", metrics={"<i>m</i>": 1.0}) for _ in rollouts]
    failed = [
        outcome(None, "1", status=Status.FAILED, cause=Cause.EXCEPTION, error="<script>window.hit = 13</script>",
                traceback="<svg onload='window.hit = 14'>", logs="<script>window.hit = 15</script>")
        for _ in rollouts
    ]  # fmt: skip
    recorder.record(ScoreBatch(rollouts, {"<i>r</i>": said, "bad": failed}, {"<i>r</i>": 1.0, "bad": 1.0}), step=0)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the runs ``epochs``, ``hostile`` and ``lacking``, whose first text was left out."""
    folder = tmp_path_factory.mktemp("completions")
    for name in ("epochs", "lacking"):
        with Recorder(folder / name) as one:
            epochs(one)
    with Recorder(folder / "hostile") as one:
        hostile(one, HOSTILE)
    with contextlib.closing(sqlite3.connect(folder / "lacking" / "record.db")) as file, file:
        file.execute("UPDATE completion SET completion = NULL WHERE id = 1")
        file.execute("UPDATE batch SET left_out = 1 WHERE id = 1")
    return folder


@pytest.fixture
def phone(browser: Any, served: Any) -> Iterator[Any]:
    """A narrow, dark window."""
    with browsing.window(browser, served, browsing.NARROW, "dark") as opened:
        yield opened


def tab(run: str, query: str = "") -> str:
    path: str = browsing.path_of(run, "completions", query)
    return path


def pane(page: Any, side: str) -> Any:
    return page.locator(f".pane-{side}")


def test_prompts_are_sorted_searched_and_opened(window: Any) -> None:
    """The address holds it all, so that it opens again as it was."""
    page = window.visit(tab("epochs"))
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("How much is 0 and 40?")
    expect(page.get_by_role("columnheader", name="Characters")).to_be_visible()
    page.get_by_role("button", name="level").click()
    page.get_by_role("button", name="level").click()
    expect(rows.first).to_contain_text("hard")
    page.get_by_role("button", name="Text").click()
    page.get_by_label("Scores of").select_option("near")
    expect(page.get_by_role("columnheader", name="Mean near")).to_be_visible()
    page.get_by_role("searchbox").fill("is 1")
    expect(rows).to_have_count(1)
    page.reload()
    expect(page.get_by_label("Scores of")).to_have_value("near")
    expect(page.get_by_role("searchbox")).to_have_value("is 1")
    expect(rows).to_have_count(1)
    page.get_by_role("searchbox").fill("")
    expect(rows).to_have_count(2)
    page.get_by_label("Words in the column").fill("40")
    expect(rows).to_have_count(1)
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Prompt 0")).to_be_visible()
    page.keyboard.press("u")
    expect(page.get_by_label("Words in the column")).to_have_value("40")


@pytest.mark.full
def test_the_best_of_the_latest_epoch_is_compared_with_the_best_of_the_first(window: Any) -> None:
    """Both texts with their differences, each reward's score with its version, and what failed or was skipped."""
    page = window.visit(tab("epochs", "prompt=0"))
    expect(pane(page, "right")).to_contain_text("epoch 2 is number 3")
    expect(pane(page, "left")).to_contain_text("epoch 0 is number 3")
    expect(pane(page, "left").locator("del")).to_have_text("0")
    expect(pane(page, "right").locator("ins")).to_have_text("2")
    scores = page.locator(".scores")
    expect(scores.locator("tr", has_text="near")).to_contain_text("reason 3")
    expect(scores.locator("tr", has_text="near")).to_contain_text("v2")
    expect(scores.locator("tr", has_text="near").locator(".difference")).to_have_text("+2")
    expect(scores.locator("tr", has_text="polite").locator(".status-skipped")).to_have_count(2)
    page.keyboard.press("ArrowLeft")
    expect(scores.locator("tr", has_text="polite").locator(".status-failed")).to_contain_text("timeout")
    expect(page.get_by_role("columnheader", name="near_v1")).to_be_visible()
    expect(page.get_by_role("columnheader", name="near_v2")).to_be_visible()


@pytest.mark.full
def test_keys_lead_through_epochs_and_completions(window: Any) -> None:
    """Arrows within the epoch, brackets through the epochs, with shift on the right; d, m and x."""
    page = window.visit(tab("epochs", "prompt=0"))
    left, right = pane(page, "left"), pane(page, "right")
    expect(left).to_contain_text("4 of 4")
    page.keyboard.press("ArrowLeft")
    expect(left).to_contain_text("epoch 0 is number 2")
    page.keyboard.press("]")
    expect(left).to_contain_text("epoch 1 is number 3")
    page.keyboard.press("Shift+ArrowLeft")
    expect(right).to_contain_text("epoch 2 is number 2")
    page.keyboard.press("{")
    expect(right).to_contain_text("epoch 1 is number 3")
    expect(page.get_by_text("The two texts are the same")).to_be_visible()
    page.keyboard.press("[")
    expect(left).to_contain_text("epoch 0 is number 3")
    page.keyboard.press("x")
    expect(right).to_contain_text("epoch 0 is number 3")
    page.keyboard.press("d")
    expect(page.locator(".pane del")).to_have_count(0)
    page.keyboard.press("m")
    expect(left.locator(".message")).to_have_count(1)
    assert "diff=0" in window.query()
    assert "mode=conversation" in window.query()
    slider = left.get_by_role("slider")
    slider.focus()
    page.keyboard.press("ArrowRight")
    expect(left).to_contain_text("epoch 2 is number 3")


@pytest.mark.full
def test_any_two_are_compared_and_a_link_opens_them_again(window: Any) -> None:
    """View leads to the right pane, with shift to the left; sort and filter are in the address too."""
    page = window.visit(tab("epochs", "prompt=1"))
    table = page.get_by_role("region", name="All completions of this prompt").last
    table.get_by_role("button", name="near_v2").click()
    expect(table.locator("tbody tr").first).to_contain_text("epoch 2 is number 3")
    table.get_by_role("button", name="near_v2").click()
    expect(table.locator("tbody tr").first).to_contain_text("epoch 2 is number 0")
    table.locator("tbody tr", has_text="epoch 1 is number 1").get_by_role("button", name="on the right").click()
    expect(pane(page, "right")).to_contain_text("epoch 1 is number 1")
    row = table.locator("tbody tr", has_text="epoch 2 is number 0")
    row.get_by_role("button", name="on the right").click(modifiers=["Shift"])
    expect(pane(page, "left")).to_contain_text("epoch 2 is number 0")
    page.get_by_label("Filter by").select_option("polite")
    page.get_by_label("Status").select_option("failed")
    expect(table.locator("tbody tr")).to_have_count(6)
    page.reload()
    expect(pane(page, "left")).to_contain_text("epoch 2 is number 0")
    expect(pane(page, "right")).to_contain_text("epoch 1 is number 1")
    expect(table.locator("tbody tr")).to_have_count(6)
    expect(table.locator("th[aria-sort=ascending]")).to_contain_text("near_v2")


@pytest.mark.full
def test_a_completion_of_another_prompt_says_so(window: Any) -> None:
    """Any two are compared; the one that is not of the prompt names its own, and leads there."""
    page = window.visit(tab("epochs", "prompt=0&right=5"))
    pane(page, "right").get_by_role("link", name="of prompt 1").click()
    expect(page.get_by_role("heading", name="Prompt 1")).to_be_visible()
    expect(pane(page, "right")).to_contain_text("1 of 4")


@pytest.mark.full
def test_a_step_and_a_number_lead_to_completions(window: Any) -> None:
    """A step's completions stand by prompt, the best paid first; from one of them the way back leads to the step."""
    page = window.visit(tab("epochs", "step=1"))
    expect(page.get_by_role("heading", name="Step 1")).to_be_visible()
    expect(page.locator(".group-head")).to_have_count(2)
    first = page.locator("tbody").first.locator(".row-opens")
    expect(first.first).to_contain_text("number 3")
    page.keyboard.press("]")
    expect(page.get_by_role("heading", name="Step 2")).to_be_visible()
    first.nth(1).click()
    expect(pane(page, "right")).to_contain_text("epoch 2 is number 1")  # of number 2 no reward is known
    page.get_by_role("button", name="Step 2").click()
    expect(page.locator(".group-head")).to_have_count(2)
    window.visit(tab("epochs", "id=5"))
    expect(page.get_by_role("heading", name="Prompt 1")).to_be_visible()
    expect(pane(page, "right")).to_contain_text("epoch 0 is number 0")
    window.visit(tab("epochs", "list=all&where=polite%3Dfailed"))
    expect(page.locator("tbody tr")).to_have_count(12)


def test_hostile_completions_are_text(window: Any) -> None:
    """Nothing of them becomes markup or runs, in any way of showing them."""
    page = window.page
    for number, text in enumerate(HOSTILE, 1):
        window.visit(tab("hostile", f"prompt=0&left={number}&right={number}&mode=text"))
        expect(page.locator(".pane-facts").first).to_contain_text(f"number {number}")
        for mode in ("Text", "Conversation", "Markdown", "Mathematics"):
            expect(page.get_by_role("button", name=mode)).to_have_attribute("aria-pressed", "true")
            page.evaluate("() => document.querySelectorAll('details').forEach((one) => { one.open = true; })")
            expect(page.locator(".said-more .text").first).to_contain_text("<script>window.hit = 13</script>")
            if isinstance(text, str) and number <= 4 and mode != "Markdown":
                expect(pane(page, "left").locator(".text")).to_contain_text(text)
            assert 0 == page.locator(MARKUP).count()
            page.keyboard.press("m")
    assert page.evaluate("() => window.hit") is None


@pytest.mark.full
def test_what_hides_in_a_text_is_written_out(window: Any) -> None:
    """Escape sequences, a NUL, bidi controls and half a surrogate pair are seen."""
    page = window.visit(tab("hostile", "prompt=0&left=5&right=6"))
    text = pane(page, "left").locator(".text")
    for seen in ("\u27e6U+001B ESC\u27e7[31mred", "\u27e6U+0000 NUL\u27e7", "\u27e6U+202E RLO\u27e7evil"):
        expect(text).to_contain_text(seen)
    assert not set("\x1b\x00\u202e") & set(text.inner_text())


@pytest.mark.full
def test_mathematics_is_rendered_without_trust(window: Any) -> None:
    """What is a formula becomes MathML; what asks for more than that stays the text that it is."""
    page = window.visit(tab("hostile", "prompt=0&left=6&right=6&mode=math"))
    left = pane(page, "left")
    expect(left.locator("math mfrac")).to_have_count(1)
    expect(left).to_contain_text(r"\href{javascript:window.hit=5}{x}")
    assert 0 == left.locator("a").count()


@pytest.mark.full
def test_a_long_text_comes_in_two_parts(window: Any) -> None:
    """The first 200,000 characters, and all of it with a button."""
    page = window.visit(tab("hostile", "prompt=0&left=7&right=1"))
    left = pane(page, "left")
    expect(left).to_contain_text("The first 200,000 of 1,000,000 characters")
    left.get_by_role("button", name="Show the rest").click()
    expect(left.get_by_role("button", name="Show the rest")).to_have_count(0)
    size = "() => document.querySelector('.pane-left .text').textContent.length"
    assert len(LONG) == page.evaluate(size)


@pytest.mark.full
def test_a_text_that_was_left_out_says_so(window: Any) -> None:
    """Its scores are shown all the same."""
    page = window.visit(tab("lacking", "prompt=0&left=1&right=4"))
    expect(pane(page, "left")).to_contain_text("left out of the record")
    expect(page.locator(".scores tr", has_text="near")).to_contain_text("reason 0")
    expect(page.locator("tbody").last).to_contain_text("text left out")


@pytest.mark.full
def test_texts_are_compared_in_a_bounded_way(window: Any) -> None:
    """By words, by lines where they are long, and not at all where nothing is shared or the time is over."""
    page = window.visit(tab("epochs"))
    compare = """async ([left, right, time]) => {
        const { compared } = await import("/lib/diff.js");
        const found = compared(left, right, time);
        const text = (side) => found[side].map(([, one]) => one).join("");
        return [found.way, text("left") === left, text("right") === right];
    }"""
    lines = [f"line {number} of many\n" for number in range(20_000)]
    cases: list[tuple[str, str, str, int]] = [
        ("same", "one two", "one two", 1000),
        ("words", "one two three", "one 2 three", 1000),
        ("apart", "one two three", "four five", 1000),
        ("lines", "".join(lines), "".join([*lines[:50], "another\n", *lines[51:]]), 20_000),
        ("none", "".join(lines), "".join(reversed(lines)), 1),
    ]
    for way, left, right, time_ms in cases:
        assert [way, True, True] == page.evaluate(compare, [left, right, time_ms])


@pytest.mark.full
def test_a_phone_shows_the_two_below_each_other(phone: Any) -> None:
    """No page scrolls sideways."""
    wide = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
    for query in ("", "prompt=0", "step=1", "list=all"):
        page = phone.visit(tab("epochs", query))
        page.locator("tbody tr").first.wait_for()
        assert 0 == page.evaluate(wide), query
    page = phone.visit(tab("epochs", "prompt=0"))
    left, right = (pane(page, side).bounding_box() for side in ("left", "right"))
    assert left["x"] == right["x"]
    assert left["y"] + left["height"] <= right["y"]


@pytest.mark.full
def test_no_serious_fault_of_accessibility(window: Any, phone: Any, full: bool) -> None:
    """In the table, the comparison, the step and the list, light and wide, and in the full form dark and narrow."""
    for opened in (window, phone) if full else (window,):
        for query in ("", "prompt=0", "prompt=0&mode=conversation", "step=1", "list=all"):
            page = opened.visit(tab("epochs", query))
            page.locator("tbody tr").first.wait_for()
            assert [] == browsing.faults(page), query
