"""A record as a table of one row a completion, for whoever analyses it elsewhere."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from rewardkit import Rollout, Run, Runtime, Score, reward
from rewardkit.errors import RecordError
from rewardkit.record.export import AFTER, BEFORE, export_columns, export_rows, reward_names


@reward
def exact(completion: str, answer: int) -> Score:
    """Pay for the answer."""
    return Score(float(completion == str(answer)), "seen")


@reward(default=None)
def fragile(completion: str) -> float | None:
    """Fail on ``bad``, skip ``none``."""
    if completion == "bad":
        raise ValueError("cannot")
    return None if completion == "none" else 1.0


@reward(name="step")
def stepped(completion: str) -> float:
    """Has the name of a column that each export has."""
    return 0.5


@pytest.fixture
def run(place: Any) -> Any:
    """A run of two steps, four completions each."""
    columns = {"answer": 4, "tags": ["a"], "mixed": 1, "empty": None, "share": 0.5, "sure": True, "prompt": "own"}
    with Runtime([exact, fragile, stepped], lane="inline", record=place / "one") as runtime:
        for step in range(2):
            texts = ("4", "bad", "none", "\ud800")
            runtime.score([Rollout("2+2=", text, columns) for text in texts], step=step, epoch=0.5 * step)
        runtime.score([Rollout([{"role": "user", "content": "3?"}], "4", {**columns, "mixed": "x"})], step=2)
    return place / "one"


def test_columns_have_trls_names_and_no_two_share_one(run: Any) -> None:
    """A score is under its reward's name, unless that is taken; then come the details, then the data's columns."""
    with Run.open(run) as reader:
        columns = export_columns(reader)
        names = [one.name for one in columns]
        rows = list(export_rows(reader, columns, reader.last_id))
    assert len(set(names)) == len(names)
    assert [*BEFORE, "exact", "fragile", "reward.step", *AFTER] == names[: 3 + 3 + len(AFTER)]
    assert ["exact.status", "exact.reason", "exact.cause", "exact.error", "exact.version"] == names[19:24]
    assert [0, 0, 0, 0, 1, 1, 1, 1, 2] == [one["step"] for one in rows]
    assert [1.0, 0.0, 0.0, 0.0] == [one["exact"] for one in rows[:4]]
    assert [1.0, None, None, 1.0] == [one["fragile"] for one in rows[:4]]
    assert ["scored", "failed", "skipped", "scored"] == [one["fragile.status"] for one in rows[:4]]
    assert [None, "exception", None, None] == [one["fragile.cause"] for one in rows[:4]]
    assert ["seen", None, 1, 0.5] == [
        rows[0]["exact.reason"], rows[0]["exact.error"], rows[0]["exact.version"], rows[0]["reward.step"],
    ]  # fmt: skip
    assert {0.5} == {one["reward.step"] for one in rows}
    assert ["\\ud800", "2+2=", '[{"role": "user", "content": "3?"}]'] == [
        rows[3]["completion"], rows[3]["prompt"], rows[8]["prompt"],
    ]  # fmt: skip


def test_columns_of_the_data_keep_their_kind_where_all_rows_agree(run: Any) -> None:
    """Lists, and columns that hold now a number and now a text, are JSON."""
    with Run.open(run) as reader:
        columns = {one.name: one for one in export_columns(reader)}
        rows = list(export_rows(reader, list(columns.values()), reader.last_id))
    kinds = {name.removeprefix("column."): one.kind for name, one in columns.items() if name.startswith("column.")}
    assert {"answer": "int", "tags": "text", "mixed": "text", "empty": "text", "share": "float", "sure": "bool",
            "prompt": "text"} == kinds  # fmt: skip
    assert [4, '["a"]', "1", None, 0.5, True, "own"] == [rows[0][f"column.{name}"] for name in kinds]
    assert '"x"' == rows[8]["column.mixed"]


def test_rewards_never_take_the_name_of_a_column() -> None:
    """Neither of a base column nor of another reward's details."""
    assert {
        "prompt": "reward.prompt",
        "a": "a",
        "a.status": "reward.a.status",
        "total": "reward.total",
    } == reward_names(["prompt", "a", "a.status", "total"])
    shown = reward_names(["step", "reward.step", "a", "a.status", "a.status.status"])
    assert len(set(shown.values())) == 5
    assert "reward.step" == shown["step"]


def test_a_run_that_grows_is_read_up_to_where_it_was(run: Any) -> None:
    """What is recorded after the columns were taken is left for the next export."""
    with Run.open(run) as reader:
        columns = export_columns(reader)
        assert [1, 2, 3] == [one["id"] for one in export_rows(reader, columns, 3)]


def test_a_run_becomes_a_frame_of_pandas(run: Any) -> None:
    """Numbers are numbers, with a gap where there is none."""
    pandas = pytest.importorskip("pandas")
    with Run.open(run) as reader:
        frame = reader.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert (9, 0.5) == (len(frame), frame["reward.step"].mean())
    assert [1.0, 1.0, 1.0] == frame.groupby("step")["exact"].max().tolist()
    assert 4 == frame["fragile"].isna().sum()
    assert "int64" == frame["column.answer"].dtype


def test_a_run_becomes_a_frame_of_polars(run: Any) -> None:
    """The same with polars."""
    polars = pytest.importorskip("polars")
    with Run.open(run) as reader:
        frame = reader.to_polars()
    assert (9, polars.Int64, 4) == (frame.height, frame["column.answer"].dtype, frame["fragile"].null_count())


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_library_that_is_missing_is_named(run: Any, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what installs it."""
    monkeypatch.setitem(sys.modules, library, None)
    with Run.open(run) as reader, pytest.raises(RecordError, match=f"needs the library {library}: pip install"):
        getattr(reader, f"to_{library}")()


def test_an_empty_run_is_an_empty_table(place: Any) -> None:
    """Its columns are those that every export has."""
    with Runtime([exact], lane="inline", record=place):
        pass
    with Run.open(place) as reader:
        assert [*BEFORE, *AFTER] == [one.name for one in export_columns(reader)]
        pytest.importorskip("pandas", reason="without it there is no frame to look at")
        frame = reader.to_pandas()
        assert ([*BEFORE, *AFTER], 0) == (list(frame), len(frame))
