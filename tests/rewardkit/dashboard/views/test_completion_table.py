"""The table of completions: conditions, orders and searches over a whole run, page by page, and as a file."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rewardkit.dashboard.query import Query
from rewardkit.dashboard.readers import OpenRun, RunCache
from rewardkit.dashboard.table_export import export_part
from rewardkit.dashboard.views import completion_table as views
from rewardkit.errors import RecordError
from rewardkit.record.recorder import Recorder
from rewardkit.replay.recorded_run import Run
from rewardkit.score_batch import ScoreBatch
from rewardkit.types import Cause, Outcome, Rollout, Status

TEXTS = ("=1+1", "-5", 'say "it", then\nend \ud800', "fine", "fine or 363")


def batch(step: int, texts: Sequence[str] = TEXTS) -> ScoreBatch:
    """A batch of one prompt; of the two rewards the second fails, skips and scores in turns."""
    version = "a" * 12 if step < 2 else "b" * 12
    rollouts = [Rollout(f"prompt {step}", text, {"level": "easy" if step % 2 else "hard", "n": step}) for text in texts]
    first = [
        Outcome(Status.SCORED, step + place / 10, version=version, reason=f"place {place}")
        for place in range(len(texts))
    ]
    others = (
        Outcome(Status.FAILED, 9.0, cause=Cause.TIMEOUT, error="too slow", version="1" * 12),
        Outcome(Status.SKIPPED, None, version="1" * 12),
        Outcome(Status.SCORED, 0.5, version="1" * 12, logs="printed this"),
    )
    second = [others[place % 3] for place in range(len(texts))]
    return ScoreBatch(rollouts, {"near": first, "judge": second}, {"near": 1.0, "judge": 0.0})


@pytest.fixture
def opened(tmp_path: Path) -> Any:
    """A run of four steps with five completions each; ids count from 1."""
    with Recorder(tmp_path / "one") as recorder:
        for step in range(4):
            recorder.record(batch(step), step=step)
    with Run.open(tmp_path / "one") as run:
        yield OpenRun(run, RunCache())


def asked(**given: object) -> dict[str, str]:
    return {name.rstrip("_"): str(value) for name, value in given.items()}


def told(opened: OpenRun, **given: object) -> dict[str, Any]:
    return views.table(opened, Query(asked(**given)))


def ids(answer: dict[str, Any]) -> list[int]:
    return [row["id"] for row in answer["rows"]]


def test_the_table_has_all_completions_in_the_order_of_recording(opened: OpenRun) -> None:
    """With their numbers, scores, statuses, causes, reasons and versions."""
    answer = told(opened)
    assert list(range(1, 21)) == ids(answer)
    assert [20, 20, 20, 0, None] == [answer[name] for name in ("total", "matched", "until", "newer", "reading")]
    assert [{"name": "near", "versions": [1, 2]}, {"name": "judge", "versions": [1]}] == answer["rewards"]
    assert ["level", "n"] == answer["data"]
    row = answer["rows"][15]
    assert ["=1+1", 3, 3.0, 4] == [row[name] for name in ("text", "step", "total", "characters")]
    assert ["scored", 3.0, 2, "place 0"] == [
        row["scores"]["near"][name] for name in ("status", "score", "version", "reason")
    ]
    assert ["failed", "timeout", "too slow"] == [row["scores"]["judge"][name] for name in ("status", "cause", "error")]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"where": "near>=3.3"}, [19, 20]),
        ({"where": "near@1<0.1 and level=hard"}, [1]),
        ({"where": "judge=timeout and step=2"}, [11, 14]),
        ({"where": "judge=scored", "sort": "-near"}, [18, 13, 8, 3]),
        ({"sort": "-near", "limit": 3}, [20, 19, 18]),
        ({"sort": "-near", "from": 3, "limit": 2}, [17, 16]),
        ({"sort": "level", "where": "near=none"}, []),
        ({"sort": "-n", "limit": 2}, [16, 17]),
        ({"sort": "characters", "limit": 3}, [2, 7, 12]),
        ({"until": 3}, [1, 2, 3]),
        ({"split": "eval"}, []),
        ({"find": "OR 363"}, [5, 10, 15, 20]),
        ({"find": "or 363", "sort": "-id"}, [20, 15, 10, 5]),
        ({"grep": r"^place [12]$", "where": "step=0"}, [2, 3]),
        ({"grep": r"^place [12]$", "in": "completion"}, []),
        ({"find": "printed", "in": "output", "where": "step=1"}, [8]),
    ],
    ids=str,
)
def test_completions_are_chosen_sorted_and_searched(
    opened: OpenRun, given: dict[str, object], expected: list[int]
) -> None:
    """Over the whole run, in the language of the command line."""
    assert expected == ids(views.table(opened, Query({name: str(value) for name, value in given.items()})))


def test_a_search_is_asked_slice_by_slice(opened: OpenRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each answer says where the next one goes on; a match says where it stands."""
    monkeypatch.setattr(views, "SEARCH_S", 0.0)
    first = told(opened, find="or 363", limit=1)
    assert ([5], 5, 20) == (ids(first), first["end"], first["matched"])
    match = first["rows"][0]["match"]
    assert {"field": "completion", "name": None, "before": "fine ", "match": "or 363", "after": ""} == match
    assert [10] == ids(told(opened, find="or 363", limit=1, from_=first["end"]))
    reason = told(opened, find="place 4", limit=1)["rows"][0]["match"]
    assert ("reason", "near") == (reason["field"], reason["name"])


def test_pages_stay_while_the_run_grows(opened: OpenRun, tmp_path: Path) -> None:
    """Up to the completion that was the last one; the answer says how many are newer."""
    first = told(opened, sort="-id", limit=2)
    with Recorder(tmp_path / "one", append=True) as recorder:
        recorder.record(batch(4), step=4)
    stays = told(opened, sort="-id", limit=2, from_=2, until=first["until"])
    assert ([20, 19], [18, 17], 20, 5) == (ids(first), ids(stays), stays["matched"], stays["newer"])
    assert [25, 24] == ids(told(opened, sort="-id", limit=2))


def test_what_is_not_read_yet_is_told(opened: OpenRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next answer knows more."""
    monkeypatch.setattr(views, "READ_S", -1.0)
    monkeypatch.setattr("rewardkit.record.run_numbers._FIRST_BATCHES", 1)
    answer = told(opened)
    assert {"what": "completions", "done": 5, "of": 20} == answer["reading"]
    assert [] == answer["rows"]
    for _ in range(3):
        answer = told(opened)
    assert 20 == answer["matched"]


def test_columns_of_the_data_are_shown_where_they_are_asked_for(opened: OpenRun) -> None:
    """As text; one that a row has not is left out."""
    rows = told(opened, columns=json.dumps(["n", "absent"]), where="step=3")["rows"]
    assert {"n": "3"} == rows[0]["data"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"where": "nea<1"}, "nothing is called 'nea'; near: near"),
        ({"where": "near=<1"}, "no sign '=<'"),
        ({"where": "near=nan"}, "nothing compares with NaN"),
        ({"sort": "absent"}, "nothing is called 'absent'"),
        ({"grep": "("}, "not a regular expression"),
        ({"find": "x", "in": "elsewhere"}, "in=elsewhere: expected completion, prompt, data"),
        ({"columns": "level"}, "columns: expected a JSON list of names"),
        ({"split": "test"}, "split=test: expected train, eval, all"),
        ({"limit": 501}, "limit=501: expected a whole number from 1 to 500"),
    ],
    ids=str,
)
def test_a_wrong_request_is_answered_in_a_line(opened: OpenRun, given: dict[str, object], message: str) -> None:
    """With what is expected, or near."""
    with pytest.raises(RecordError) as refusal:
        views.table(opened, Query({name: str(value) for name, value in given.items()}))
    assert message in str(refusal.value)
    assert "\n" not in str(refusal.value)


def exported(opened: OpenRun, kind: str, **given: object) -> bytes:
    """Return a whole file."""
    body, start, until = b"", 0, 0
    while True:
        query = Query(asked(**given) | ({"until": str(until)} if until else {}))
        part = export_part(opened, query, kind, start)
        body, start, until = body + part.body, part.end, part.until
        if part.is_last:
            return body


COLUMNS = ["id", "completion", "near", "near.reason", "near.version", "judge", "judge.status", "column.level", "reward"]


def test_a_csv_has_what_is_shown_with_whole_texts(opened: OpenRun) -> None:
    """Commas, quotes and line ends come back; a text that would be a formula has a mark before it, a number has not."""
    body = exported(opened, "csv", cols=json.dumps(COLUMNS), where="step=2", sort="-near").decode()
    header, *rows = csv.reader(io.StringIO(body))
    assert COLUMNS == header
    assert ["15", "fine or 363", "2.4", "place 4", "2", "", "skipped", "hard", "2.4"] == rows[0]
    assert ["fine or 363", "fine", 'say "it", then\nend \\ud800', "-5", "'=1+1"] == [row[1] for row in rows]


def test_json_lines_have_the_same_as_values(opened: OpenRun) -> None:
    """Texts as they are."""
    body = exported(opened, "jsonl", cols=json.dumps(["id", "completion", "judge", "truncated"]), grep="^.1|-5")
    rows = [json.loads(line) for line in body.decode().splitlines()]
    assert [2, 7, 12, 17] == [row["id"] for row in rows if row["completion"] == "-5"]
    assert {"id": 1, "completion": "=1+1", "judge": None, "truncated": None} == rows[0]


def test_a_file_is_of_what_there_was_at_its_beginning(opened: OpenRun, tmp_path: Path) -> None:
    """What a run adds meanwhile is not in it, in any order."""
    query = asked(cols='["id"]', sort="-id")
    first = export_part(opened, Query(query), "csv", 0)
    with Recorder(tmp_path / "one", append=True) as recorder:
        recorder.record(batch(4), step=4)
    again = export_part(opened, Query(query | {"until": str(first.until)}), "csv", 0)
    assert first == again


@pytest.mark.parametrize("cols", ["", "[]", "{}", '["absent"]', "[1]", '["judge.absent"]'])
def test_columns_that_there_are_not_are_refused(opened: OpenRun, cols: str) -> None:
    """In a line."""
    with pytest.raises(RecordError, match=r"^cols: "):
        export_part(opened, Query(asked(cols=cols)), "csv", 0)
