"""Completions of a run are chosen by conditions, sorted by any column, and searched for a text."""

from __future__ import annotations

import contextlib
import math
import random
from collections.abc import Iterator
from typing import Any

import pytest
from databases import STORES, place_on
from recorded import batch

from rewardkit.errors import RecordError
from rewardkit.record.conditions import conditions_of
from rewardkit.record.reader import RunReader
from rewardkit.record.recorder import Recorder
from rewardkit.record.search_pattern import SearchPattern
from rewardkit.record.selection import RunTable, Selection
from rewardkit.record.text_search import FIELDS, TextSearch
from rewardkit.score_batch import ScoreBatch
from rewardkit.types import Cause, Outcome, Rollout, Status

SKIPPED = Outcome(Status.SKIPPED, None, version="1" * 12)
CALLS = (
    ("x = 1 or 363", 1.0, Outcome(Status.SCORED, 0.1, version="1" * 12, reason="polite")),
    ("x = 2", 0.0, Outcome(Status.FAILED, 0.0, cause=Cause.TIMEOUT, error="took 5 s", version="1" * 12)),
    ("x = 3", 0.5, Outcome(Status.SCORED, 0.9, version="1" * 12, logs="looked at 3")),
    ("x = 4", -1.0, SKIPPED),
)


@contextlib.contextmanager
def two_steps(place: Any) -> Iterator[RunReader]:
    """Record a run of two steps with four completions each, and open it; ids count from 1."""
    with Recorder(place / "one") as recorder:
        for step, level in enumerate(("easy", "hard")):
            rollouts = [
                Rollout(f"prompt {step}", text, {"level": level, "n": step + 9, "my col.": "a and b"}, [0] * 3)
                for text, _, _ in CALLS
            ]
            outcomes = {
                "correct": [Outcome(Status.SCORED, score, version="0" * 12) for _, score, _ in CALLS],
                "judge": [call for _, _, call in CALLS],
            }
            recorder.record(ScoreBatch(rollouts, outcomes, {"correct": 1.0, "judge": -10.0}), step=step, epoch=step / 2)
    with RunReader(place / "one") as opened:
        yield opened


@pytest.fixture(scope="module", params=STORES)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunReader]:
    """Give a run on each store, which no test changes."""
    with two_steps(place_on(request.param, request, tmp_path_factory.mktemp("selection"))) as opened:
        yield opened


@pytest.mark.parametrize(
    ("conditions", "ids"),
    [
        ("", [1, 2, 3, 4, 5, 6, 7, 8]),
        ("judge<0.2", [1, 5]),
        ("judge >= 0.1 and step=1", [5, 7]),
        ("judge=timeout", [2, 6]),
        ("judge.cause=timeout and judge.status=failed", [2, 6]),
        ("judge=failed", [2, 6]),
        ("judge=skipped and level=hard", [8]),
        ("judge!=scored", [2, 4, 6, 8]),
        ("judge=none", [2, 4, 6, 8]),
        ("judge!=none", [1, 3, 5, 7]),
        ("outcome=failed", [2, 6]),
        ("outcome!=failed and step=0", [1, 3, 4]),
        ("cause=timeout", [2, 6]),
        ("outcome=none", []),
        ("reward<-5", [3, 7]),
        ("total<-5", [3, 7]),
        ("plain_sum==1.1", [1, 5]),
        ("n>9", [5, 6, 7, 8]),
        ("n=10.0 and correct>0", [5, 7]),
        ("level=Hard", []),
        ("column.level=hard", [5, 6, 7, 8]),
        ("reward.judge<0.2", [1, 5]),
        ("level=none", []),
        ("my col.='a and b' and id<3", [1, 2]),
        ("prompt=0 and tokens<=3 and id>2", [3, 4]),
        ("characters=12", [1, 5]),
        ("truncated=true", []),
        ("truncated=none and id<2", [1]),
        ("judge.version=1", [1, 2, 3, 4, 5, 6, 7, 8]),
        ("judge@1<0.2", [1, 5]),
        ("judge@2<0.2", []),
        ("judge.seconds>=0 and id<3", [1, 2]),
        ("reward<inf and id<3", [1, 2]),
        ("epoch>=0.5", [5, 6, 7, 8]),
        ("split=train and id<3", [1, 2]),
        ("split!=train", []),
        ("judge.reason!=none", [1, 5]),
        ("judge.error!=none and step=0", [2]),
        ("judge.reason=none and correct.reason=none and judge.error=none and id<5", [3, 4]),
        ("completion=none", []),
    ],
)
def test_conditions_choose(run: RunReader, conditions: str, ids: list[int]) -> None:
    """On numbers, a reward's own score, its statuses and causes, and columns of the data; a default is no score."""
    assert ids == Selection(run, "train", conditions_of(conditions)).ids.tolist()


@pytest.mark.parametrize(
    ("sort", "ids"),
    [
        (None, [1, 2, 3, 4]),
        ("correct", [4, 2, 3, 1]),
        ("-correct", [1, 3, 2, 4]),
        ("judge", [1, 3, 2, 4]),
        ("-judge", [3, 1, 2, 4]),
        ("reward", [3, 4, 1, 2]),
        ("-plain_sum", [3, 1, 2, 4]),
        ("characters", [2, 3, 4, 1]),
        ("-id", [4, 3, 2, 1]),
        ("judge.status", [1, 3, 4, 2]),
        ("outcome", [1, 3, 4, 2]),
        ("level", [1, 2, 3, 4]),
        ("judge@1", [1, 3, 2, 4]),
        ("completion", [1, 2, 3, 4]),
        ("-completion", [4, 3, 2, 1]),
        ("judge.reason", [1, 2, 3, 4]),
        ("-judge.error", [2, 1, 3, 4]),
        ("prompt_text", [1, 2, 3, 4]),
    ],
)
def test_any_number_sorts(run: RunReader, sort: str | None, ids: list[int]) -> None:
    """From the lowest, or with a minus from the highest; what has no value stands last in the order of recording."""
    assert ids == Selection(run, "train", conditions_of("step=0"), sort).ids.tolist()


@pytest.mark.parametrize("condition", ["reward.reward<2", "reward<2", "reward.step=4", "reward.step.status=scored"])
def test_a_reward_may_be_named_as_a_number(place: Any, condition: str) -> None:
    """Behind ``reward.`` it is the reward in any case."""
    columns = {"reward": [1.0, 3.0], "step": [4.0, 5.0]}
    outcomes = {
        name: [Outcome(Status.SCORED if name == "reward" or score < 5 else Status.SKIPPED, score) for score in scores]
        for name, scores in columns.items()
    }
    with Recorder(place / "two") as recorder:
        rollouts = [Rollout("p", text) for text in "ab"]
        recorder.record(ScoreBatch(rollouts, outcomes, {"reward": 1.0, "step": 1.0}), step=0)
    with RunReader(place / "two") as run:
        assert [1] == Selection(run, "train", conditions_of(condition)).ids.tolist()


def test_columns_of_the_data_sort(run: RunReader) -> None:
    """Numbers by their size, and what has none of them last."""
    assert [5, 6, 7, 8, 1, 2, 3, 4] == Selection(run, "train", [], "-n").ids.tolist()
    assert [5, 6, 7, 8, 1, 2, 3, 4] == Selection(run, "train", [], "-level").ids.tolist()


def test_pages_are_parts_of_the_whole_order(run: RunReader) -> None:
    """Whatever part is asked for first."""
    for sort in ("correct", "-judge", "level", None):
        whole = Selection(run, "train", [], sort).ids.tolist()
        for start in range(9):
            pages = Selection(run, "train", [], sort)
            assert whole[start : start + 2] == pages.page(start, 2).tolist()


@pytest.mark.parametrize(
    ("grep", "places"),
    [
        ("or 363", {1: ("completion", None)}),
        (r"x = [34]", {3: ("completion", None), 4: ("completion", None)}),
        ("polite", {1: ("reason", "judge")}),
        ("took 5", {2: ("error", "judge")}),
        ("looked", {3: ("output", "judge")}),
        ("^easy$", dict.fromkeys((1, 2, 3, 4), ("data", "level"))),
        ("^prompt 0", dict.fromkeys((1, 2, 3, 4), ("prompt", None))),
        ("absent", {}),
    ],
)
def test_a_text_is_looked_for_everywhere(run: RunReader, grep: str, places: dict[int, tuple[str, str | None]]) -> None:
    """In completion, prompt, columns, reason, error and output; a match says where it stands."""
    search = TextSearch(run, SearchPattern(grep))
    matches = search.page(Selection(run, "train", conditions_of("step=0")), 0, 10, 1.0).matches
    assert places == {number: (match.field, match.name) for number, match in matches.items()}
    for field in FIELDS:
        only = TextSearch(run, SearchPattern(grep), [field]).matches([1, 2, 3, 4])
        assert all(match.field == field for match in only.values())


def test_a_search_goes_on_where_it_ended(run: RunReader) -> None:
    """After so many matches, or when its time is over; each page looks at some."""
    selection = Selection(run, "train", [], "-id")
    search = TextSearch(run, SearchPattern("x = [13]"))
    ids, start, ends = [], 0, []
    while start < len(selection):
        page = search.page(selection, start, 1, 0.0)
        ids += list(page.matches)
        start = page.end
        ends.append(start)
    assert [7, 5, 3, 1] == ids
    assert [2, 4, 6, 8] == ends


@pytest.mark.parametrize(
    ("condition", "sort", "message"),
    [
        ("absent<1", None, "nothing is called 'absent'; there are correct, judge, reward"),
        ("judg<1", None, "nothing is called 'judg'; near: judge"),
        ("leve=hard", None, "nothing is called 'leve'; near: level"),
        ("judge<much", None, "expected a number, or of a reward one of scored, skipped, failed"),
        ("reward=failed", None, "condition reward=failed: expected a number"),
        ("judge<failed", None, "is = or != another"),
        ("judge<none", None, "is = or != another"),
        ("outcome=0.2", None, "condition outcome=0.2: expected scored, skipped, failed, exception"),
        ("judge=nan", None, "nothing compares with NaN; judge=none is what has no value"),
        ("completion=x", None, "a text is searched for, with --grep or on the page; completion=none is what"),
        ("judge.reason<z", None, "condition judge.reason<z: a text is searched for"),
        ("split=test", None, "condition split=test: expected train or eval"),
        ("split<train", None, "is = or != another"),
        ("step=0", "absent", "nothing is called 'absent'; there are correct, judge, reward"),
        ("step=0", "-judg", "nothing is called 'judg'; near: judge"),
    ],
)
def test_what_is_not_there_is_named(run: RunReader, condition: str, sort: str | None, message: str) -> None:
    """With what there is."""
    with pytest.raises(RecordError) as refusal:
        Selection(run, "train", conditions_of(condition), sort)
    assert message in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_selection_stays_while_the_run_grows(place: Any) -> None:
    """Up to the completion that was the last one; without that bound it has what is new."""
    with two_steps(place) as run:
        table = RunTable()
        table.update(run)
        last = table.numbers.last_id
        with contextlib.closing(Recorder(place / "one", append=True)) as recorder:
            recorder.record(batch(4), step=2)
            recorder.record(batch(4), step=2, split="eval")
        table.update(run)
        assert list(range(1, 9)) == Selection(run, "train", [], table=table, until=last).ids.tolist()
        assert list(range(1, 13)) == Selection(run, "train", [], table=table).ids.tolist()
        assert list(range(13, 17)) == Selection(run, "eval", [], table=table).ids.tolist()
        assert list(range(1, 17)) == Selection(run, None, [], table=table).ids.tolist()


def test_selections_are_those_of_the_completions_one_by_one(place: Any) -> None:
    """On a run with versions, failures and scores that are equal, missing or extreme."""
    draw = random.Random(7)
    with Recorder(place / "one") as recorder:
        for step in range(12):
            version = "a" * 12 if step < 6 else "b" * 12
            outcomes = [
                draw.choice([
                    Outcome(Status.SCORED, draw.choice([0.0, 0.5, 1.0, -2.0, 1e300]), version=version),
                    Outcome(Status.SKIPPED, None, version=version),
                    Outcome(Status.FAILED, draw.choice([None, 0.5]), cause=draw.choice(list(Cause)), version=version),
                ])
                for _ in range(9)
            ]  # fmt: skip
            rollouts = [Rollout(f"p{draw.randrange(4)}", "x" * draw.randrange(5), {"n": step % 3}) for _ in outcomes]
            recorder.record(ScoreBatch(rollouts, {"judge": outcomes}, {"judge": 0.05}), step=step)
    with RunReader(place / "one") as run:
        rows = list(run.completions())
        for _ in range(60):
            low, version, step = draw.choice([-3, 0.0, 0.5, 2]), draw.choice([1, 2]), draw.randrange(12)
            text = f"judge@{version}>={low} and step<={step} and n!=1"
            down = draw.random() < 0.5
            fitting = [
                row
                for row in rows
                if row.outcomes["judge"].status is Status.SCORED
                and row.outcomes["judge"].score >= low  # type: ignore[operator]
                and row.versions["judge"] == version
                and row.step <= step  # type: ignore[operator]
                and row.columns["n"] != 1
            ]
            keys = {row.id: math.inf if row.total is None else -row.total if down else row.total for row in fitting}
            expected = [row.id for row in sorted(fitting, key=lambda row: keys[row.id])]
            assert (
                expected == Selection(run, "train", conditions_of(text), "-reward" if down else "reward").ids.tolist()
            )
