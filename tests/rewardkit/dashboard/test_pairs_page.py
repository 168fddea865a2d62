"""Scored files on the page: their means in the list, and what differs between them on the same rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rewardkit.record.recorder import Recorder
from rewardkit.score_batch import ScoreBatch
from rewardkit.types import Cause, Outcome, Rollout, Status

playwright = pytest.importorskip("playwright.sync_api")
browsing = pytest.importorskip("browsing")
expect = playwright.expect
pytestmark = pytest.mark.browser
HOSTILE = "<img src=x onerror=alert(1)>"
RIGHT = {"base": [1, 0, 0, 0, 1, 0, 1, 0], "tuned": [1, 1, 0, 1, 1, 0, "x", 1]}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two scored files of eight questions, of which one failed in the second, and whose prompts are hostile."""
    folder = tmp_path_factory.mktemp("pairs") / "runs"
    for name, values in RIGHT.items():
        rollouts = [
            Rollout(f"{HOSTILE} {number}", f"{name} says {number}", {"model": name}) for number in range(len(values))
        ]
        column = [
            Outcome(Status.FAILED, 0.0, cause=Cause.TIMEOUT, version="0" * 12)
            if value == "x"
            else Outcome(Status.SCORED, float(value), version="0" * 12)  # type: ignore[arg-type]  # of two types
            for value in values
        ]
        with Recorder(folder / name) as recorder:
            recorder.record(ScoreBatch(rollouts, {"right": column}, {"right": 2.0}))
    return folder


@pytest.fixture(scope="module")
def served(runs: Path) -> Iterator[object]:
    with browsing.Server(runs) as server:
        yield server


def test_two_scored_files_stand_against_each_other(window: Any) -> None:
    """The list has their means; the table the difference, its interval and the row that failed; rows lead on."""
    page = window.visit("/")
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name="tuned", exact=True)).last
    expect(row).to_contain_text("0.7143")
    pair = page.get_by_role("region", name="tuned against base", exact=True)
    reward = pair.get_by_role("row", name="Reward")
    expect(reward).to_contain_text("+0.8571")
    expect(reward.get_by_role("cell")).to_have_text(
        ["0.5714", "1.429", "+0.8571", "\u22120.1316 to 1.846", "7", "3", "0", "4", "3", "0"]
    )
    expect(pair).to_contain_text("1 row left out: failed in tuned")
    assert [] == browsing.faults(page)
    pair.get_by_text("rows whose reward changes most").click()
    expect(pair.locator("li")).to_have_count(3)
    expect(pair.locator("li").first).to_contain_text(HOSTILE)
    pair.locator("li a").nth(1).click()
    expect(page).to_have_url(re.compile("/runs/tuned/completions"))


def test_a_way_to_match_that_does_not_fit_is_said_and_left_again(window: Any) -> None:
    """Columns that differ in every row match none; the page says so, and leads back."""
    window.may_fail = True
    page = window.visit("/?by=model")
    expect(page.get_by_text("no row in common by model")).to_be_visible()
    page.get_by_role("button", name="Match rows in another way").click()
    expect(page.get_by_text("8 rows in both")).to_be_visible()
