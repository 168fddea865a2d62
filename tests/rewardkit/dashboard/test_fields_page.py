"""Fields keep what is typed, in a real browser, on a run that grows while somebody types."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlparse

import pytest

from rewardkit.record.recorder import Recorder
from rewardkit.score_batch import ScoreBatch
from rewardkit.types import Outcome, Rollout, Status

browsing = pytest.importorskip("browsing")
expect = pytest.importorskip("playwright.sync_api").expect

expect.set_options(timeout=20_000)
pytestmark = pytest.mark.browser

EVERY_S = 0.15
SLOW_MS, QUICK_MS = 180, 0
NUMBERS = {
    "step": ("completions", "list=steps&step=0", ("from", "to"), ("min", "max")),
    "prompt": ("completions", "prompt=0", ("from", "to"), ("min", "max")),
    "logs": ("logs", "", ("Steps", "to"), ("first", "last")),
}
TEXTS = {
    "prompts": ("completions", "", "Search in the prompts", "q"),
    "all": ("completions", "list=all", "Search in the completions", "find"),
    "column": ("completions", "", "Words in the column", "val"),
    "logs": ("logs", "", "Search prints, errors and reasons", "text"),
    "graphs": ("graphs", "", "Search graphs and metrics", "q"),
}


def grow(recorder: Recorder, step: int) -> None:
    """Record a step of two prompts."""
    rollouts = [Rollout(f"prompt {prompt}", "text", {"level": "easy"}) for prompt in range(2) for _ in range(4)]
    scores = [Outcome(Status.SCORED, place / 8, version="0" * 12, reason=f"reason {place}") for place in range(8)]
    other = [Outcome(Status.SCORED, 0.5, version="1" * 12) for _ in rollouts]
    recorder.record(ScoreBatch(rollouts, {"good": scores, "other": other}, {"good": 1.0, "other": 0.2}), step=step)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a run that grows while the tests type."""
    folder = tmp_path_factory.mktemp("fields")
    stop = threading.Event()
    with Recorder(folder / "live") as recorder:
        grow(recorder, 0)
        recorder.flush()

        def train() -> None:
            step = 1
            while not stop.wait(EVERY_S):
                grow(recorder, step)
                step += 1

        thread = threading.Thread(target=train)
        thread.start()
        yield folder
        stop.set()
        thread.join()


def asked(page: Any) -> dict[str, str]:
    """Return the query of the address."""
    return {name: values[0] for name, values in parse_qs(urlparse(page.url).query).items()}


@pytest.mark.cases(2)
@pytest.mark.parametrize("delay_ms", [SLOW_MS, QUICK_MS], ids=["slow", "quick"])
@pytest.mark.parametrize("place", NUMBERS)
def test_numbers_stay_while_they_are_typed(window: Any, place: str, delay_ms: int) -> None:
    """From one field to the next with Tab, and from the last with Enter; then the address has both."""
    tab, query, labels, keys = NUMBERS[place]
    page = window.visit(browsing.path_of("live", tab, query))
    first, second = (page.get_by_label(label, exact=True) for label in labels)
    typed = ("0", "12") if place == "logs" else ("-0.125", "1.0625")
    first.click()
    page.keyboard.type(typed[0], delay=delay_ms)
    expect(first).to_have_value(typed[0])
    page.keyboard.press("Tab")
    expect(second).to_be_focused()
    page.keyboard.type(typed[1], delay=delay_ms)
    expect(first).to_have_value(typed[0])
    expect(second).to_have_value(typed[1])
    page.wait_for_timeout(4 * 1000 * EVERY_S)  # several new steps are drawn
    expect(second).to_have_value(typed[1])
    assert keys[1] not in asked(page), "nothing is told before Enter"
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(rf"{keys[1]}=" + re.escape(typed[1])))
    assert dict(zip(keys, typed, strict=True)).items() <= asked(page).items()
    expect(second).to_be_focused()
    expect(second).to_have_value(typed[1])


@pytest.mark.cases(2)
@pytest.mark.parametrize("delay_ms", [SLOW_MS, QUICK_MS], ids=["slow", "quick"])
@pytest.mark.parametrize("place", TEXTS)
def test_texts_stay_while_they_are_typed(window: Any, place: str, delay_ms: int) -> None:
    """A search begins while the typing pauses, and takes no letter away; what was typed last is what is searched."""
    tab, query, label, key = TEXTS[place]
    page = window.visit(browsing.path_of("live", tab, query))
    field = page.get_by_role("textbox" if place == "column" else "searchbox", name=label)
    field.click()
    page.keyboard.type("ea", delay=delay_ms)
    page.wait_for_timeout(300)  # longer than a pause: it is told
    page.keyboard.type("sy 0", delay=delay_ms)
    expect(field).to_have_value("easy 0")
    page.keyboard.press("Tab")
    expect(page).to_have_url(re.compile(rf"{key}=easy(\+|%20)0"))
    expect(field).to_have_value("easy 0")


def test_what_is_no_value_is_told_to_nobody(window: Any) -> None:
    """A step of 1.5 stays in its field and is marked; Escape takes it back, and Clear empties both fields."""
    page = window.visit(browsing.path_of("live", "logs", "first=1&last=9"))
    first = page.get_by_label("Steps", exact=True)
    first.fill("1.5")
    page.keyboard.press("Tab")
    expect(first).to_have_value("1.5")
    expect(first).to_have_attribute("aria-invalid", "true")
    assert {"first": "1", "last": "9"}.items() <= asked(page).items()
    first.focus()
    page.keyboard.press("Escape")
    expect(first).to_have_value("1")
    page.get_by_role("button", name="Clear filters").click()
    expect(first).to_have_value("")
    expect(page.get_by_label("to", exact=True)).to_have_value("")


@pytest.mark.full
def test_another_column_takes_the_words_along(window: Any) -> None:
    """Words that were typed a moment ago are looked for in the column that is chosen next."""
    page = window.visit(browsing.path_of("live", "completions"))
    page.get_by_label("Words in the column").click()
    page.keyboard.type("easy")
    page.get_by_label("Column", exact=True).select_option("level")
    expect(page.get_by_label("Words in the column")).to_have_value("easy")
    expect(page).to_have_url(re.compile("val=easy"))
