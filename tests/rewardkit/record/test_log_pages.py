"""Pages of logs, forwards and backwards, hold what the plain reading of all logs holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from databases import STORES, place_on

from rewardkit.record.log_pages import LogPlace, Wanted, newest
from rewardkit.record.reader import RunReader
from rewardkit.record.recorder import Recorder
from rewardkit.record.values import LogEntry
from rewardkit.score_batch import ScoreBatch
from rewardkit.types import Cause, Outcome, Rollout, Status


def _batch(step: int) -> ScoreBatch:
    """Return six completions of two rewards: one prints, fails at times and skips at times."""
    rollouts = [Rollout(f"prompt {n // 2}", f"completion {n} of step {step}", {"answer": "1"}) for n in range(6)]
    loud = [
        Outcome(Status.FAILED, None, cause=Cause.TIMEOUT, error="no answer", traceback=f"File a.py, line {step}")
        if n == 1 and step % 3 == 0
        else Outcome(Status.SKIPPED, None, "does not apply")
        if n == 2
        else Outcome(Status.SCORED, 1.0, logs=f"Found {n} at step {step}\n" if n % 2 else "")
        for n in range(6)
    ]
    quiet = [Outcome(Status.SCORED, 0.5, f"because {n}" if n == 0 else None) for n in range(6)]
    return ScoreBatch(rollouts, {"loud": loud, "quiet": quiet}, {"loud": 1.0, "quiet": 1.0})


@pytest.fixture(scope="module", params=STORES)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunReader]:
    """A run of 12 steps, each with an evaluation behind it."""
    path = place_on(request.param, request, tmp_path_factory.mktemp("runs")) / "one"
    with Recorder(path) as recorder:
        for step in range(12):
            recorder.record(_batch(step), step=step)
            recorder.record(_batch(step), step=step, split="eval")
    with RunReader(path) as reader:
        yield reader


def _walked(run: RunReader, wanted: Wanted, *, backwards: bool, limit: int, budget_s: float = 10.0) -> list[LogEntry]:
    found: list[LogEntry] = []
    place: LogPlace | None = None
    for _ in range(1000):
        page = run.log_page(wanted, place, backwards=backwards, limit=limit, budget_s=budget_s)
        assert len(page.entries) <= limit
        found += [entry for _, entry in page.entries]
        place = page.end
        if page.ended:
            return found
    raise AssertionError("the pages do not end")


CASES: dict[str, tuple[Wanted, Callable[[LogEntry], bool]]] = {
    "all": (Wanted(), lambda one: True),
    "a version": (Wanted(versions=(2,)), lambda one: one.reward == "quiet"),
    "steps": (Wanted(first=3, last=5), lambda one: one.step in (3, 4, 5)),
    "a split": (Wanted(split="eval"), lambda one: one.split == "eval"),
    "failed": (Wanted(status=Status.FAILED), lambda one: one.outcome.status is Status.FAILED),
    "skipped": (Wanted(status=Status.SKIPPED), lambda one: one.outcome.status is Status.SKIPPED),
    "scored": (Wanted(status=Status.SCORED), lambda one: one.outcome.status is Status.SCORED),
    "a cause": (Wanted(cause=Cause.TIMEOUT, first=4), lambda one: bool(one.outcome.cause) and (one.step or 0) >= 4),
    "another cause": (Wanted(cause=Cause.EXCEPTION), lambda one: False),
    "a text": (Wanted(text="FOUND 3"), lambda one: "Found 3" in one.outcome.logs),
    "a text of a traceback": (Wanted(text="line 9"), lambda one: "line 9" in (one.outcome.traceback or "")),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("limit", [1, 7, 200])
def test_pages_hold_each_fitting_entry_once_in_order(run: RunReader, case: str, backwards: bool, limit: int) -> None:
    """What the plain reading yields and the filter lets through, neither twice nor left out."""
    wanted, fits = CASES[case]
    expected = [one for one in run.logs() if fits(one)]
    found = _walked(run, wanted, backwards=backwards, limit=limit)
    assert found == (expected[::-1] if backwards else expected)


@pytest.mark.parametrize("case", CASES)
def test_a_page_without_time_ends_early_and_the_next_goes_on(run: RunReader, case: str) -> None:
    """Each page advances, however short its time, and nothing is lost between them."""
    wanted, fits = CASES[case]
    found = _walked(run, wanted, backwards=True, limit=5, budget_s=0.0)
    assert found == [one for one in run.logs() if fits(one)][::-1]


def test_a_page_tells_the_step_that_it_reached(run: RunReader) -> None:
    """So that a search can say how far it came."""
    page = run.log_page(Wanted(), backwards=True, limit=1)
    assert (page.step, page.ended) == (11, False)


def test_new_entries_follow_the_place_of_the_newest(place: Any) -> None:
    """What is recorded after a place was taken is what a page from there holds."""
    with Recorder(place / "one") as recorder:
        recorder.record(_batch(0), step=0)
        recorder.flush()
        with RunReader(place / "one") as run:
            head = newest(run.last_id)
            assert run.log_page(Wanted(), head).entries == []
            recorder.record(_batch(1), step=1)
            recorder.flush()
            assert {entry.step for _, entry in run.log_page(Wanted(), head).entries} == {1}


def test_an_empty_run_has_an_empty_page(place: Any) -> None:
    """Nothing was recorded yet, and nothing is wrong."""
    with Recorder(place / "one"):
        pass
    with RunReader(place / "one") as run:
        for wanted in (Wanted(), Wanted(status=Status.FAILED), Wanted(first=3)):
            assert run.log_page(wanted, backwards=True)[0] == []
            assert run.log_page(wanted).ended
