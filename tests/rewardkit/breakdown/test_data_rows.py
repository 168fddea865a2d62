"""The prompts of a run as a data set: what was read in is read back, by rewardkit's reader and by datasets."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from rewardkit.breakdown.data_rows import data_form, data_rows
from rewardkit.cli.output import write_rows
from rewardkit.record.reader import RunReader
from rewardkit.record.recorder import Recorder
from rewardkit.rows import read_rows
from rewardkit.score_batch import ScoreBatch
from rewardkit.types import Outcome, Rollout, Status

TALK = [{"role": "system", "content": "be short"}, {"role": "user", "content": "2+2=\n☃"}]
COLUMNS = {
    "answer": "4",
    "level": 3,
    "share": 0.1,
    "tests": [{"input": "1 2", "output": "3\n"}],
    "tags": ["a", "b"],
    "flag": True,
    "empty": "",
    "nothing": None,
    "unicode": "שלום\x00\x1b[31m<script>",
    "status": "a column may have this name",
}


def record(place: Any, rows: list[tuple[Any, dict[str, Any]]]) -> None:
    """Record one completion of each row."""
    rollouts = [Rollout(prompt, "text", row) for prompt, row in rows]
    scores = [Outcome(Status.SCORED, 1.0, version="1" * 12) for _ in rows]
    with Recorder(place) as recorder:
        recorder.record(ScoreBatch(rollouts, {"good": scores}, {"good": 1.0}), step=0)


def written(place: Any, folder: Path, prompts: list[int] | None = None) -> tuple[Path, Any]:
    """Write prompts of a run, all unless given, and return the file with its form."""
    path = folder / "keep.jsonl"
    with RunReader(place) as reader:
        form = data_form(reader, range(reader.prompt_count) if prompts is None else prompts)
        write_rows(path, data_rows(reader, form))
    return path, form


@pytest.mark.parametrize("prompt", ["2+2=\r\n\ttab", TALK, TALK[1:]], ids=["text", "messages", "one message"])
def test_rows_are_read_back_as_they_were_recorded(place: Any, tmp_path: Path, prompt: Any) -> None:
    """By rewardkit's own reader, as a trainer takes them, with columns of every type in their order."""
    rows = [(prompt, COLUMNS), (prompt, COLUMNS | {"answer": "5"})]
    record(place, rows)
    path, form = written(place, tmp_path)
    expected = [{"prompt": prompt, **row} for _, row in rows]
    assert expected == [row.values for row in read_rows(path)]
    assert ["prompt", *COLUMNS] == list(read_rows(path)[0].values)
    assert (0, 0, 0) == (form.texts_as_messages, form.filled, form.empty)


@pytest.mark.trainers
@pytest.mark.parametrize("prompt", ["2+2=", TALK], ids=["text", "messages"])
def test_rows_are_a_data_set_of_a_trainer(tmp_path: Path, prompt: Any) -> None:
    """The datasets library reads the file, and TRL sees of which form the prompts are."""
    datasets = pytest.importorskip("datasets")
    data_utils = pytest.importorskip("trl.data_utils")
    record(tmp_path / "one", [(prompt, COLUMNS), (prompt, COLUMNS | {"answer": "5", "nothing": None})])
    path, _ = written(tmp_path / "one", tmp_path)
    rows = datasets.load_dataset("json", data_files=str(path), split="train", cache_dir=str(tmp_path / "cache"))
    assert [{"prompt": prompt, **COLUMNS}, {"prompt": prompt, **COLUMNS, "answer": "5"}] == rows.to_list()
    assert isinstance(prompt, list) == data_utils.is_conversational(rows[0])


def test_rows_have_the_same_columns(place: Any, tmp_path: Path) -> None:
    """Where only others have a column, a row has null in it, and it is said how many do."""
    record(place, [("a", {"answer": "1"}), ("b", {"hint": "x"}), ("c", {"answer": "3", "hint": "y"})])
    path, form = written(place, tmp_path)
    assert 2 == form.filled
    assert [
        {"prompt": "a", "answer": "1", "hint": None},
        {"prompt": "b", "answer": None, "hint": "x"},
        {"prompt": "c", "answer": "3", "hint": "y"},
    ] == [row.values for row in read_rows(path)]
    only, form = written(place, tmp_path, [0])
    assert ([{"prompt": "a", "answer": "1"}], 0) == ([row.values for row in read_rows(only)], form.filled)


def test_prompts_are_of_one_form(place: Any, tmp_path: Path) -> None:
    """Text stands as a user's message where other prompts are messages: no reader takes both in one file."""
    record(place, [("2+2=", {}), (TALK, {}), ("", {})])
    path, form = written(place, tmp_path)
    assert (1, 1) == (form.texts_as_messages, form.empty)
    assert [[{"role": "user", "content": "2+2="}], TALK] == [row.values["prompt"] for row in read_rows(path)]


def test_rows_of_one_text_are_one_row_where_columns_are_of_a_completion(place: Any, tmp_path: Path) -> None:
    """As in a scored file; a text with two answers keeps both."""
    rows = [(text, {"answer": "4", "sample": k}) for text in "abcd" for k in range(3)]
    record(place, [*rows, ("d", {"answer": "5", "sample": 0})])
    with RunReader(place) as reader:
        form = data_form(reader, [0, 3, 9], reader.questions)
        lines = list(data_rows(reader, form))
    assert ["sample"] == form.own
    assert [("a", "4"), ("b", "4"), ("d", "4"), ("d", "5")] == [(row["prompt"], row["answer"]) for row in lines]
    assert ["prompt", "answer"] == list(lines[0])


def test_references_to_pictures_are_counted(place: Any, tmp_path: Path) -> None:
    """The record has no original of a picture; a path stays a path."""
    reference = "picture:" + "0f" * 16
    talk = [{"role": "user", "content": [{"type": "image", "image": reference}, {"type": "text", "text": "what?"}]}]
    record(place, [(talk, {}), (TALK, {"image": reference}), (TALK, {"image": "pictures/1.png"})])
    path, form = written(place, tmp_path)
    assert 2 == form.pictures
    assert [None, reference, "pictures/1.png"] == [row.values["image"] for row in read_rows(path)]


def test_what_json_cannot_say_is_written_so_that_it_can_be_read(place: Any, tmp_path: Path) -> None:
    """Numbers that are not finite become null, halves of surrogate pairs U+FFFD, also inside of lists and objects."""
    record(place, [("half \ud800", {"score": math.nan, "list": [math.inf, {"\udfff": "\udc00"}], "fine": 1.5})])
    path, _ = written(place, tmp_path)
    (row,) = read_rows(path)
    assert "half \ufffd" == row.values["prompt"].replace("?", "\ufffd")
    assert (None, 1.5) == (row.values["score"], row.values["fine"])
    assert row.values["list"][0] is None
