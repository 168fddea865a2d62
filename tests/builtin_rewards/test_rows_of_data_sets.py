"""Golds score alike however their rows are read: as JSON Lines, by ``datasets``, from Arrow, Parquet or pandas."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from datasets import Dataset, load_dataset, load_from_disk

from builtin_rewards.code import code_tests
from builtin_rewards.matching import exact_match, multiple_choice, numeric_list, set_f1
from builtin_rewards.math import math_answer
from builtin_rewards.structured import json_fields, json_schema
from builtin_rewards.tools import tool_call
from rewardkit import Reward
from rewardkit.rows.reader import read_rows

Row = dict[str, Any]


def _of_json(path: Path, folder: Path) -> Iterator[Row]:
    yield from load_dataset("json", data_files=str(path), split="train", cache_dir=str(folder / "cache"))


def _in_format(kind: str) -> Callable[[Path, Path], Iterator[Row]]:
    def read(path: Path, folder: Path) -> Iterator[Row]:
        yield from Dataset.from_list(_lines(path)).with_format(kind)

    return read


def _saved(path: Path, folder: Path) -> Path:
    Dataset.from_list(list(_of_json(path, folder))).save_to_disk(folder / "saved")
    return folder / "saved"


def _parquet(path: Path, folder: Path) -> Path:
    Dataset.from_list(list(_of_json(path, folder))).to_parquet(folder / "rows.parquet")
    return folder / "rows.parquet"


def _lines(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def _own_rows(path: Path) -> Iterator[Row]:
    return (dict(row.values) for row in read_rows(path))


def _of_pandas(frame: pd.DataFrame) -> Iterator[Row]:
    return iter(frame.to_dict("records"))


READERS: Mapping[str, Callable[[Path, Path], Iterator[Row]]] = {
    "Dataset.from_list": lambda path, folder: iter(Dataset.from_list(_lines(path))),
    "load_dataset": _of_json,
    "load_from_disk": lambda path, folder: iter(load_from_disk(str(_saved(path, folder)))),
    "our reader of a saved folder": lambda path, folder: _own_rows(_saved(path, folder)),
    "our reader of Parquet": lambda path, folder: _own_rows(_parquet(path, folder)),
    "pandas, of JSON": lambda path, folder: _of_pandas(pd.read_json(path, lines=True)),
    "pandas, of Parquet": lambda path, folder: _of_pandas(pd.read_parquet(_parquet(path, folder))),
    "Dataset.from_pandas": lambda path, folder: iter(Dataset.from_pandas(pd.read_json(path, lines=True))),
    "numpy's format": _in_format("numpy"),
}


class Table(NamedTuple):
    """Rows of a reward with a gold, and what a model may answer to each."""

    reward: Reward[..., Any]
    rows: Sequence[Row]
    completions: Callable[[Row], Sequence[str]]


def _documents(gold: Any, random: Random) -> list[str]:
    """Return an object's JSON, and that of objects with a value that is another one, missing, or extra."""
    others = [gold]
    for name in gold:
        others.append({key: part for key, part in gold.items() if key != name})
        others.append({**gold, name: "another"})
    others.append({**gold, "unheard-of": 1})
    others.append({name: part for name, part in gold.items() if random.random() < 0.5})
    return [*map(json.dumps, others), json.dumps([gold]), "no JSON", "{}"]


def _drawn_value(kind: str, random: Random) -> Any:
    """Return a JSON value of a kind: a column of Arrow has one."""
    day = f"{random.randint(1990, 2030)}-{random.randint(1, 12):02}-{random.randint(1, 28):02}"
    hour = f"{random.randint(0, 23):02}:{random.randint(0, 59):02}:{random.randint(0, 59):02}"
    return {
        "day": day,
        "moment": f"{day}T{hour}",
        "blank moment": f"{day} {hour}",
        "zoned moment": f"{day}T{hour}Z",
        "hour": hour,
        "whole": random.randint(-(2**40), 2**40),
        "amount": random.randint(0, 999) + 0.25,
        "text": random.choice(("red mug", "Zoë", "12", "null and void")),
        "truth": random.random() < 0.5,
        "days": [day] * random.randint(1, 3),
        "numbers": [random.randint(0, 9) for _ in range(random.randint(1, 3))],
        "object": {"due": day, "sum": random.randint(1, 99)},
        "objects": [{"on": f"{day}T{hour}", "n": n} for n in range(random.randint(1, 3))],
    }[kind]


_KINDS = (
    *("day", "moment", "blank moment", "zoned moment", "hour", "whole", "amount"),
    *("text", "truth", "days", "numbers", "object", "objects"),
)


def _drawn_golds(random: Random, *, same_names: bool) -> list[Row]:
    """Return objects whose fields have one kind each; rows of other names are those that Arrow pads."""
    names = {f"field {number}": kind for number, kind in enumerate(random.sample(_KINDS, 5))}
    golds = []
    for _ in range(4):
        own = list(names) if same_names else random.sample(list(names), 3)
        golds.append({name: _drawn_value(names[name], random) for name in own})
    return golds


def _tables(seed: int) -> dict[str, Table]:
    random = Random(seed)
    golds = _drawn_golds(random, same_names=True)
    padded = _drawn_golds(random, same_names=False)
    calls = [{"name": "book", "arguments": gold} for gold in padded]
    schemas = [
        {"type": "object", "properties": {"a": {"type": "string", "minLength": 2}}, "required": ["a"]},
        {"type": "object", "properties": {"b": {"type": "integer"}, "a": {"enum": ["x"]}}},
        {"type": "object", "properties": {"day": {"const": "2026-09-04"}}, "additionalProperties": False},
    ]
    days = ["2026-09-04", "2026-12-31", "2027-01-01"]
    texts = ["2026-09-04", "x", '{"a": "xx"}', '{"a": "x", "b": 1}', '{"day": "2026-09-04"}', '{"b": "1"}', "{}"]

    def fields_of(row: Row) -> list[str]:
        return _documents(row["answer"], random)

    def calls_of(row: Row) -> list[str]:
        call = row["answer"]
        given = [json.loads(text) for text in _documents(call["arguments"], random)[:-3]]
        return [json.dumps({**call, "arguments": arguments}) for arguments in given] + ["no call"]

    return {
        "fields": Table(json_fields, [{"answer": gold} for gold in golds], fields_of),
        "fields that some rows lack": Table(json_fields, [{"answer": gold} for gold in padded], fields_of),
        "fields in any order": Table(
            json_fields(ordered=False, text="normalised", per_field=True), [{"answer": g} for g in golds], fields_of
        ),
        "a list of objects": Table(
            json_fields, [{"answer": golds}, {"answer": golds[:1]}], lambda row: [json.dumps(row["answer"]), "[]"]
        ),
        "calls": Table(tool_call, [{"answer": call} for call in calls], calls_of),
        "schemas": Table(json_schema, [{"schema": schema} for schema in schemas], lambda row: texts),
        "a day": Table(exact_match, [{"answer": day} for day in days], lambda row: days),
        "terms": Table(set_f1, [{"answer": days[:2]}, {"answer": days[2:]}], lambda row: [", ".join(days), *days]),
        "numbers": Table(numeric_list, [{"answer": [1, 2.5]}, {"answer": [3.0]}], lambda row: ["1, 2.5", "3"]),
        "a number": Table(math_answer, [{"answer": 7}, {"answer": 2.5}], lambda row: ["7", "2.5"]),
        "choices": Table(
            multiple_choice,
            [{"answer": "2026-09-04", "choices": days[:2]}, {"answer": "B", "choices": days[1:]}],
            lambda row: ["A", "B", *days],
        ),
    }


def _score(reward: Reward[..., Any], completion: str, row: Row) -> float | None:
    columns = {name: row[name] for name in reward.spec.named_columns if name in row}
    score = reward(completion=completion, **columns)
    value: float | None = score.value if hasattr(score, "value") else score
    return value


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", _tables(0))
def test_a_gold_scores_as_its_json_line_does(name: str, reader: str, draw_seed: int, tmp_path: Path) -> None:
    """The gold itself and wrong completions get the same score, whatever read the rows."""
    table = _tables(draw_seed)[name]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps({"prompt": "p", **row}) + "\n" for row in table.rows))
    lines, rows = list(_own_rows(path)), list(READERS[reader](path, tmp_path))
    assert len(lines) == len(rows)
    for line, row in zip(lines, rows, strict=True):
        for completion in table.completions(line):
            expected = _score(table.reward, completion, line)
            assert expected == _score(table.reward, completion, row), (completion, line, row)


@pytest.mark.parametrize(
    ("value", "right", "wrong"),
    [
        (
            dt.datetime(2026, 9, 4),
            ["2026-09-04", "2026-09-04T00:00:00", "2026-09-04 00:00"],
            ["2026-09-05", "20260904"],
        ),
        (dt.date(2026, 9, 4), ["2026-09-04"], ["4.9.2026", 20260904]),
        (
            dt.datetime(2026, 9, 4, 10, 30),
            ["2026-09-04T10:30:00", "2026-09-04 10:30", "2026-09-04T10:30:00Z"],
            ["2026-09-04", "2026-09-04T10:30+01:00"],
        ),
        (
            dt.datetime(2026, 9, 4, 10, tzinfo=dt.UTC),
            ["2026-09-04T10:00:00Z", "2026-09-04T12:00:00+02:00", "2026-09-04 10:00+00:00"],
            ["2026-09-04T10:00:00", "2026-09-04T10:00:00+02:00"],
        ),
        (dt.time(10, 30), ["10:30:00"], ["10:31:00"]),
        (dt.timedelta(days=1, seconds=3723, microseconds=500_000), ["P1DT1H2M3.5S"], [90123.5]),
        (Decimal("12.50"), [12.5], ["12.50", 12.51]),
        (Decimal("3"), [3, 3.0], ["3", True]),
        ("Zoë".encode(), ["Zoë"], ["Zoe"]),
        (np.float32(0.5), [0.5], [0]),
        (np.int64(5), [5], ["5"]),
        (np.bool_(True), [True], [1]),
        (np.array([1, 2]), [[1, 2]], [[2, 1]]),
        (np.array([[1.0, np.nan]]), [[[1, None]]], [[[1, 0]]]),
        (np.datetime64("2026-09-04", "ns"), ["2026-09-04"], ["2026-09-03"]),
        (np.timedelta64(90, "s"), ["P0DT0H1M30S"], [90]),
        (np.array(["2026-09-04"], "datetime64[ns]"), [["2026-09-04"]], [["2026-09-03"]]),
        (pd.Timestamp("2026-09-04 10:30"), ["2026-09-04T10:30:00"], ["2026-09-04"]),
        (pd.Series([1, 2]), [[1, 2]], [[1]]),
        ([float("nan"), pd.NaT, pd.NA, np.datetime64("NaT")], [[None] * 4], [["nan"] * 4]),
    ],
    ids=repr,
)
def test_values_of_libraries_are_compared_as_json(value: Any, right: list[Any], wrong: list[Any]) -> None:
    """Each is what JSON has in its place; a date is right in every text of its moment, and in no other."""
    for is_right, given in [*((True, given) for given in right), *((False, given) for given in wrong)]:
        for answer, arguments in (
            ({"a": 1, "b": value}, {"b": given, "a": 1}),
            ({"b": {"c": [value]}}, {"b": {"c": [given]}}),
        ):
            score = json_fields(completion=json.dumps(arguments), answer=answer)
            assert is_right == (score.value == 1.0)
            call = json.dumps({"name": "f", "arguments": arguments})
            assert is_right == (tool_call(completion=call, answer={"name": "f", "arguments": answer}).value == 1.0)


@pytest.mark.parametrize("value", [{1}, b"\xff", len, float("inf"), np.inf, Decimal("inf"), {1: 1, "1": 2}], ids=str)
def test_what_json_cannot_hold_is_no_gold(value: Any) -> None:
    """Such a row is skipped, with the reason."""
    for reward, answer in ((json_fields, {"a": value}), (tool_call, {"name": "f", "arguments": {"a": value}})):
        score = reward(completion="{}", answer=answer)
        assert score.value is None
        assert score.reason.startswith("the row's answer is not JSON that can be used: ")
    assert json_schema(completion="{}", schema={"const": value}).value is None


@pytest.mark.parametrize(
    ("answer", "given", "expected"),
    [
        ({"a": 1, "b": None}, {"a": 1}, 1.0),
        ({"a": 1, "b": None}, {"a": 1, "b": None}, 1.0),
        ({"a": 1, "b": None}, {"a": 1, "b": 2}, 0.5),
        ({"a": 1, "b": None}, {"a": 1, "b": {"c": [1, 2, 3]}}, 0.5),
        ({"a": 1, "b": None}, {"a": 1, "c": None}, 0.5),
        ({"a": 1, **dict.fromkeys("bcdefgh")}, {"a": 2, **dict.fromkeys("bcdefgh")}, 0.0),  # nulls earn nothing
        ({"a": 1, **dict.fromkeys(map(str, range(50)))}, {"a": 1, **dict.fromkeys(map(str, range(50)))}, 1.0),
        ({"a": None}, {"a": None}, 1.0),
        ({"a": None}, {}, 1.0),
        ({"a": None}, {"a": 1}, 0.0),
        ({"a": 1, "b": {"c": None}}, {"a": 1, "b": {}}, 1.0),
        ({"a": 1, "b": {"c": None}}, {"a": 1, "b": {"c": 5}}, 0.5),
        ([{"a": 1, "b": None}, {"a": None, "b": 2}], [{"a": 1}, {"b": 2}], 1.0),
        ([None, 1], [None, 1], 1.0),
        ([None, 1], [None], 0.5),
        ('{"a": 1, "b": null}', {"a": 1}, 0.5),
        ('{"a": 1, "b": null}', {"a": 1, "b": None}, 1.0),
    ],
)
def test_a_null_of_a_row_may_be_missing_and_allows_no_value(answer: Any, given: Any, expected: float) -> None:
    """Arrow pads rows with null, so null in an object asks for nothing and forbids a value; in JSON text it counts."""
    for extra in (1.0, 0.0):
        if extra or "c" not in given:
            for settings in ({}, {"ordered": False}):
                made = json_fields(extra=extra, **settings)
                assert expected == made(completion=json.dumps(given), answer=answer).value


@pytest.mark.parametrize(
    ("given", "expected"),
    [({"city": "Oslo"}, 1.0), ({"city": "Oslo", "days": None}, 1.0), ({"city": "Oslo", "days": 3}, 0.6)],
)
def test_a_null_argument_may_be_missing(given: Row, expected: float) -> None:
    """A call of a padded row is right without the arguments that other rows have."""
    row = {"id": None, "name": "weather", "arguments": {"city": "Oslo", "days": None}, "tool_calls": None}
    completion = json.dumps({"name": "weather", "arguments": given})
    assert expected == pytest.approx(tool_call(completion=completion, answer=row).value)


def test_a_padded_schema_asks_for_what_it_says() -> None:
    """Keywords that are null do not count; a constant that is null does where it stands alone."""
    padded = {"type": "object", "properties": {"a": {"type": "string", "minLength": None}, "b": None}, "required": None}
    assert 1.0 == json_schema(completion='{"a": "x", "b": 1}', schema=padded).value
    assert 0.0 == json_schema(completion='{"a": 1}', schema=padded).value
    either = {"anyOf": [{"type": "string"}, {"const": None}]}
    assert [1.0, 1.0, 0.0] == [json_schema(completion=text, schema=either).value for text in ('"x"', "null", "3")]


def test_dates_in_checks_of_code_are_text() -> None:
    """A function gets and returns the text that stood in the data."""
    day, moment = dt.datetime(2026, 9, 4), dt.datetime(2026, 9, 4, 10, 30)
    columns = {"entry_point": "f", "inputs": [[day], [[moment]]], "outputs": [{"day": day}, {"day": [moment]}]}
    for body, expected in (("{'day': day}", 1.0), ("{'day': str(day) + 'x'}", 0.0)):
        score = code_tests(completion=f"```python\ndef f(day):\n    return {body}\n```", **columns)
        assert expected == score.value
