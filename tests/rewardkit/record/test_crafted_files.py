"""A record that somebody crafted: it is refused in one line, in little memory and time, and runs nothing."""

from __future__ import annotations

import contextlib
import sqlite3
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from recorded import batch

from rewardkit.errors import RecordError
from rewardkit.record import texts
from rewardkit.record.reader import RunReader
from rewardkit.record.recorder import Recorder
from rewardkit.record.soundness import unsound
from rewardkit.record.sqlite_file import FILE
from rewardkit.replay.recorded_run import Run
from rewardkit.score_batch import ScoreBatch

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)"


@pytest.fixture
def crafted(tmp_path: Path) -> Callable[..., Path]:
    """Return a recorded run after some statements were run on its file."""

    def made(*statements: str | tuple[str, tuple[object, ...]]) -> Path:
        with contextlib.closing(Recorder(tmp_path / "run")) as recorder:
            recorder.record(batch(4, "a"), step=0)
        with contextlib.closing(sqlite3.connect(tmp_path / "run" / FILE, isolation_level=None)) as file:
            for one in statements:
                words, values = (one, ()) if isinstance(one, str) else one
                file.execute(words, values)
        return tmp_path / "run"

    return made


@pytest.mark.parametrize(
    "statements",
    [
        ("CREATE VIEW any AS SELECT 1",),
        ("CREATE TRIGGER one AFTER INSERT ON vote BEGIN SELECT 1; END",),
        ("CREATE TABLE more (a, b AS (zeroblob(900000000)))",),
        ("CREATE VIRTUAL TABLE more USING fts5(a)",),
        (
            "PRAGMA legacy_alter_table = ON",
            "ALTER TABLE session RENAME TO hidden",
            f"CREATE VIEW session AS {ENDLESS} SELECT x AS id, 0 AS rank, '{{}}' AS about FROM n",
        ),
    ],
)
def test_a_file_that_computes_is_no_record(crafted: Callable[..., Path], statements: tuple[str, ...]) -> None:
    """Views in the place of tables, triggers, computed columns and virtual tables are somebody else's program."""
    run = crafted(*statements)
    with pytest.raises(RecordError, match="views, triggers or computed columns") as told:
        RunReader(run)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("version", [0, -1, -(2**31)])
def test_a_version_that_never_was_is_no_record(crafted: Callable[..., Path], version: int) -> None:
    """It is not brought up to this one, for nobody knows what it holds."""
    with pytest.raises(RecordError, match=f"a record of version {version}, which no release has written"):
        RunReader(crafted(f"PRAGMA user_version = {version}"))


def test_a_text_that_unpacks_to_more_than_any_has_is_damaged(
    crafted: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few kilobytes can claim to be gigabytes; a text of the largest size is read."""
    monkeypatch.setattr(texts, "LARGEST_TEXT", 1_000_000)
    assert texts.unpacked(texts.packed("a" * 1_000_000)) == "a" * 1_000_000
    bomb = zlib.compress(b"a" * 1_000_001)
    with RunReader(crafted(("UPDATE text SET body = ?", (bomb,)))) as run:
        for ask in (lambda: run.texts([1]), lambda: run.by_id([1]), lambda: next(run.prompts())):
            with pytest.raises(RecordError, match="a text of more than 1,000,000 bytes"):
                ask()


def test_a_text_that_is_cut_short_is_damaged(crafted: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one so long that it is read piece by piece."""
    monkeypatch.setattr(texts, "LARGEST_TEXT", 10_000)
    long = zlib.compress(b"".join(str(one).encode() for one in range(2_000)))
    with (
        RunReader(crafted(("UPDATE text SET body = ?", (long[:-10],)))) as run,
        pytest.raises(RecordError, match="damaged: error: cut short"),
    ):
        run.texts([1])


def test_a_question_ends_when_its_time_is_over(crafted: Callable[..., Path]) -> None:
    """Whatever stands in the file; the next question has its own time."""
    with RunReader(crafted()) as run:
        run.within(-1.0)
        with pytest.raises(RecordError, match="takes too long"):
            run._rows(f"{ENDLESS} SELECT max(x) FROM n")
        run.within(60.0)
        assert 4 == run.count()


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("session.about", "17"),
        ("session.rank", b"\xff"),
        ("batch.step", "no number"),
        ("batch.versions", "{}"),
        ("version.settings", "[" * 100_000),
        ("completion.status", "1"),
        ("completion.total", "much"),
        ("summary.causes", "[]"),
    ],
)
def test_what_no_recorder_writes_is_found(crafted: Callable[..., Path], place: str, value: object) -> None:
    """A value of another type or another kind of JSON is named by its column."""
    table, column = place.split(".")
    run = crafted((f"UPDATE {table} SET {column} = ?", (value,)))
    with contextlib.closing(sqlite3.connect(run / FILE)) as file:
        assert place == unsound(file)


def test_a_record_as_it_is_written_is_sound(crafted: Callable[..., Path]) -> None:
    """Nothing is found in what a recorder wrote."""
    with RunReader(crafted()) as run:
        assert run.unsound() is None


@pytest.mark.parametrize(
    ("statement", "ask"),
    [
        ("UPDATE session SET about = '17'", lambda run: run.sessions),
        ("UPDATE version SET settings = '[]'", lambda run: run.versions),
        ("INSERT INTO event VALUES (1, 0, 0, 'flag', '[1]')", lambda run: run.events),
        ("INSERT INTO change VALUES (1, 0, 'a', 'no such', '{}', 'asked', 0, '')", lambda run: run.changes),
        ("UPDATE version SET settings = '" + "[" * 100_000 + "'", lambda run: run.versions),
    ],
)
def test_the_wrong_kind_of_json_is_told_in_one_line(
    crafted: Callable[..., Path], statement: str, ask: Callable[[Run], object]
) -> None:
    """Also one that is nested deeper than Python goes."""
    with Run.open(crafted(statement)) as run, pytest.raises(RecordError, match="damaged: ") as told:
        ask(run)
    assert "\n" not in str(told.value)
    assert len(str(told.value)) < 400


def test_a_sum_beyond_all_numbers_is_infinite() -> None:
    """Each score is finite, and their sum ends no training."""
    scored = batch(1, "a", 1e308)
    outcomes = dict.fromkeys(("one", "two", "three"), scored.outcomes["exact"])
    assert [float("inf")] == ScoreBatch(scored.rollouts, outcomes, dict.fromkeys(outcomes, 1.0)).totals
