"""Commands read rows with values that JSON lacks: dates, decimals, bytes and durations of Arrow, and padded objects."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset

from rewardkit.cli.program import app

REWARDS = '''\
from builtin_rewards.matching import exact_match
from builtin_rewards.structured import json_fields, json_valid
from builtin_rewards.tools import tool_call
from rewardkit import reward

invoice = (0.3 * json_valid + 0.7 * json_fields).named("invoice")

@reward
def rows(completion: str, **columns: str) -> float:
    """1 where every column can be had as text."""
    return float(all(isinstance(text, str) for text in columns.values()))
'''


def _gold(number: int) -> dict[str, Any]:
    moment = datetime(2026, 1, 1 + number, 10, 30)
    return {
        "day": datetime(2026, 1, 1 + number), "at": moment, "sum": Decimal("12.50"),
        "zoned": moment.replace(tzinfo=UTC),
        "number": number, "note": b"paid", "only": number if number % 2 else None, "days": [date(2026, 1, 2)],
    }  # fmt: skip


def _json_of(number: int) -> str:
    day = f"2026-01-{1 + number:02}"
    only = {"only": number} if number % 2 else {}
    times = {"day": day, "at": f"{day}T10:30:00", "zoned": f"{day}T10:30:00Z"}
    return json.dumps({**times, "sum": 12.5, "number": number, "note": "paid", "days": ["2026-01-02"], **only})


def _rows(kind: str) -> list[dict[str, Any]]:
    answers: dict[str, Callable[[int], Any]] = {
        "invoice": _gold,
        "tool_call": lambda number: {"name": "book", "arguments": _gold(number)},
        "exact_match": lambda number: _gold(number)["day"],
    }
    completions: dict[str, Callable[[int], str]] = {
        "invoice": _json_of,
        "tool_call": lambda number: f'{{"name": "book", "arguments": {_json_of(number)}}}',
        "exact_match": lambda number: f"2026-01-{1 + number:02}",
    }
    others = {"when": datetime(2026, 1, 1), "cost": Decimal("1.5"), "raw": b"\xff\xfe", "took": timedelta(seconds=3)}
    return [
        {"id": str(number), "prompt": f"Read {number}", "answer": answers[kind](number),
         "completion": completions[kind](number), **others}
        for number in range(8)
    ]  # fmt: skip


def _totals(path: str) -> set[float]:
    return {json.loads(line)["total"] for line in Path(path).read_text().splitlines()}


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with rewards."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rewards.py").write_text(REWARDS)
    return tmp_path


@pytest.mark.parametrize("kind", ["invoice", "tool_call", "exact_match"])
def test_commands_read_rows_that_libraries_wrote(kind: str, work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each right completion is paid in full, in no command a value is a fault, and what is written can be read."""
    data = Dataset.from_list(_rows(kind))
    data.save_to_disk(work / "saved")
    data.to_parquet(work / "rows.parquet")
    name = f"rewards.py:{kind}"

    def run(*arguments: str) -> str:
        capsys.readouterr()
        code = app([*arguments], standalone_mode=False)
        output = capsys.readouterr()
        assert code in (0, 1, None), output
        return output.out

    for rows in ("saved", "rows.parquet"):
        check = json.loads(run("check", name, rows, "--out", "flaws.jsonl", "--json", "--workers", "1"))
        assert {1.0} == {score for reward in check["rewards"] for score in reward["scores"].values()}
        flaws = [flaw for item in check["rewards"][0]["examinations"] for flaw in item["flaws"].values()]
        assert not any(flaw["fails"] for flaw in flaws)
    run("score", name, "saved", "--record", "runs/one", "--out", "scored.jsonl")
    assert {1.0} == _totals("scored.jsonl")
    run("score", "rewards.py:rows", "saved", "--workers", "1")
    run("show", "runs/one", "--prompt", "1")
    run("export", "runs/one", "--out", "export.jsonl")
    run("diagnose", "runs/one")
    again = [json.loads(line) for line in Path("scored.jsonl").read_text().splitlines()]
    Path("again.jsonl").write_text(
        "".join(json.dumps({**row, "answer": row["example"]["answer"]}) + "\n" for row in again)
    )
    run("score", name, "again.jsonl", "--out", "rescored.jsonl", "--workers", "1")
    assert {1.0} == _totals("rescored.jsonl")


def test_an_audit_reads_rows_that_libraries_wrote(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A gold with dates, and a null that Arrow filled in, is audited as its JSON."""
    Dataset.from_list(_rows("invoice")).save_to_disk(work / "saved")
    app(["audit", "rewards.py:json_fields", "saved", "--json", "--workers", "1"], standalone_mode=False)
    result = json.loads(capsys.readouterr().out)["rewards"][0]
    assert (0, 8) == (result["false_accepts"], result["audited_rows"])
