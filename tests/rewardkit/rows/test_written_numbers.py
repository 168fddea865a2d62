"""A number of a data set reaches a parameter of text as it is written, from each format that keeps that."""

from __future__ import annotations

import json
import pickle
from decimal import Decimal
from pathlib import Path

import pytest

from rewardkit import Rollout, Runtime, reward
from rewardkit.rows import decode_row, encode, read_rows
from rewardkit.rows.strict_json import WrittenNumber
from rewardkit.runtime.settings import RuntimeLane

WRITTEN = ("4.10", "1e3", "0.50", "-2.000", "4.1", "7")


@reward
def says(completion: str, answer: str) -> float:
    """1.0 where the text is that of the column."""
    return float(completion == answer)


@reward
def adds(completion: str, answer: float) -> float:
    """1.0 where the number is a float like any other."""
    return float(type(answer) is float and answer == float(completion))


def _write(folder: Path, suffix: str) -> Path:
    """Write a file of each format with the numbers as answers."""
    path = folder / f"rows{suffix}"
    rows = [f'{{"prompt": "a", "answer": {text}, "more": [{{"n": {text}}}]}}' for text in WRITTEN]
    if suffix == ".jsonl":
        path.write_text("\n".join(rows))
    elif suffix == ".json":
        path.write_text(f"[{', '.join(rows)}]")
    else:
        path.write_text("prompt,answer\n" + "".join(f"a,{text}\n" for text in WRITTEN))
    return path


@pytest.mark.parametrize("suffix", [".jsonl", ".json", ".csv"])
def test_a_number_is_the_text_that_is_written(tmp_path: Path, suffix: str) -> None:
    """For a parameter that is a str; one that is a float has the number."""
    rows = read_rows(_write(tmp_path, suffix))
    rollouts = [Rollout(str(n), text, row.values) for n, (text, row) in enumerate(zip(WRITTEN, rows, strict=True))]
    with Runtime([says, adds], lane=RuntimeLane.INLINE) as runtime:
        scores = runtime.score(rollouts)
    assert [[1.0] * len(WRITTEN)] * 2 == [[outcome.score for outcome in scores[name]] for name in ("says", "adds")]


def test_decimals_of_parquet_keep_their_places(tmp_path: Path) -> None:
    """Parquet has them as decimals; floats of it have no text."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    decimals = pyarrow.array([Decimal("4.10"), Decimal("0.50")], pyarrow.decimal128(9, 2))
    parquet.write_table(pyarrow.table({"prompt": ["a", "b"], "answer": decimals}), tmp_path / "rows.parquet")
    assert ["4.10", "0.50"] == [str(row.values["answer"]) for row in read_rows(tmp_path / "rows.parquet")]


@pytest.mark.parametrize("text", WRITTEN)
def test_a_number_survives_pickle_and_json(text: str) -> None:
    """As workers and records get it; a float that Python writes the same way is a plain one."""
    value = decode_row(f'{{"a": [{text}]}}')
    assert (text, f'{{"a": [{text}]}}') == (str(value["a"][0]), encode(value))
    back = pickle.loads(pickle.dumps(value))
    assert (value, text) == (back, str(back["a"][0]))
    assert json.loads(text) == value["a"][0]
    assert isinstance(value["a"][0], WrittenNumber) is (text not in ("4.1", "7"))
