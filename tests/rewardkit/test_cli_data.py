"""Where the command line reads data from, and writes results to: packed files, standard input, pipes that close."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

ROOT = Path(__file__).parents[2]

REWARD = '''\
from rewardkit import reward

@reward
def correct(completion: str, answer: int) -> float:
    """1 if the completion is the answer."""
    return float(completion == str(answer))

@reward
def short(completion: str) -> float:
    """1 if the completion is short."""
    return float(len(completion) < 5)
'''
ROWS = [{"prompt": f"{n}+1=", "completion": str(n + n % 2), "answer": str(n + 1)} for n in range(6)]


def _lines(rows: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def _parquet(rows: list[dict[str, Any]]) -> bytes:
    held = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist(rows), held)
    return held.getvalue()


PACKED = {"plain": _lines(ROWS), "gzip": gzip.compress(_lines(ROWS)), "parquet": _parquet(ROWS)}


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A working folder with a reward."""
    (tmp_path / "rewards.py").write_text(REWARD)
    return tmp_path


def _run(work: Path, *arguments: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "rewardkit", *arguments]
    return subprocess.run(command, cwd=work, env=environment, timeout=120, **options)


@pytest.mark.parametrize("kind", PACKED)
def test_score_reads_packed_files_and_standard_input(work: Path, kind: str) -> None:
    """A file of any name and a pipe give the same scores."""
    (work / "rows").write_bytes(PACKED[kind])
    expected = [float(r["completion"] == r["answer"]) for r in ROWS]
    for data, given in (("rows", None), ("-", PACKED[kind])):
        arguments = ("score", "rewards.py:correct", data, "--out", "out.jsonl", "--json", "--workers", "1")
        done = _run(work, *arguments, input=given, capture_output=True)
        assert (0, 6) == (done.returncode, json.loads(done.stdout)["rows"]), done.stderr
        rows = [json.loads(line) for line in (work / "out.jsonl").read_text().splitlines()]
        assert expected == [row["total"] for row in rows]


@pytest.mark.parametrize("kind", ["gzip", "parquet"])
def test_audit_and_check_read_standard_input_once_for_all_rewards(work: Path, kind: str) -> None:
    """Two rewards are audited with the rows that came through one pipe."""
    audited = _run(
        work, "audit", "rewards.py", "--data", "-", "--rows", "1", "--json", "--max-false-accept", "10000",
        "--workers", "1", input=PACKED[kind], capture_output=True,
    )  # fmt: skip
    assert ["correct", "short"] == [one["reward"] for one in json.loads(audited.stdout)["rewards"]], audited.stderr
    checked = _run(work, "check", "rewards.py", "--data", "-", "--json", input=PACKED[kind], capture_output=True)
    assert [6, 6] == [one["rows"] for one in json.loads(checked.stdout)["rewards"]], checked.stderr


def test_what_parquet_holds_and_json_does_not_is_written_as_text(work: Path) -> None:
    """A date or bytes in a column do not end the run when its rows are written out."""
    (work / "rows.parquet").write_bytes(_parquet([{**ROWS[0], "day": date(2026, 1, 2), "raw": b"\xff"}]))
    done = _run(work, "score", "rewards.py", "rows.parquet", "--out", "out.jsonl", "--inline", capture_output=True)
    assert 0 == done.returncode, done.stderr
    assert "2026-01-02" == json.loads((work / "out.jsonl").read_text())["example"]["day"]


def test_a_mistake_in_a_row_is_told_with_its_place_and_key(work: Path) -> None:
    """A key that stands twice and a number without end are mistakes of the data."""
    for text, words in (
        (b'{"prompt": "p", "completion": "4", "answer": "4", "answer": "5"}', "key 'answer' stands there twice"),
        (b'{"prompt": "p", "completion": "4", "answer": 1e999}', "1e999 is too large for a number"),
    ):
        done = _run(work, "score", "rewards.py", "-", input=text, capture_output=True)
        assert 2 == done.returncode
        assert f"error: standard input:1: {words}" in done.stderr.decode()


COMMANDS = {
    "list": ["list"],
    "list of one": ["list", "math_answer"],
    "list as JSON": ["list", "--json"],
    "help": ["--help"],
    "version": ["--version"],
    "score": ["score", "rewards.py", "rows.jsonl", "--inline"],
    "score as JSON": ["score", "rewards.py", "rows.jsonl", "--inline", "--json"],
    "check": ["check", "rewards.py", "--data", "rows.jsonl"],
    "new": ["new", "other"],
}


def _into_closed_pipe(work: Path, *arguments: str, errors: bool = False) -> tuple[int, str]:
    """Runs a command whose output nobody reads; gives its exit code and what it wrote as errors."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = _run(work, *arguments, stdout=writing, stderr=writing if errors else subprocess.PIPE)
    finally:
        os.close(writing)
    return done.returncode, "" if errors else done.stderr.decode()


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_pipe_that_its_reader_closed_is_no_fault(work: Path, command: list[str]) -> None:
    """As under head, that has seen enough: exit code 0 and not a word."""
    (work / "rows.jsonl").write_bytes(PACKED["plain"])
    assert (0, "") == _into_closed_pipe(work, *command)


def test_a_closed_pipe_hides_no_verdict(work: Path) -> None:
    """The exit code is the command's own, and what it writes to files is whole; for closed error streams too."""
    (work / "rows.jsonl").write_bytes(_lines([{**ROWS[0], "answer": "x"}]))
    command = ("score", "rewards.py", "rows.jsonl", "--inline", "--fail-on-error", "--out", "out.jsonl")
    assert (1, "") == _into_closed_pipe(work, *command)
    assert 1 == len((work / "out.jsonl").read_text().splitlines())
    assert (2, "") == _into_closed_pipe(work, "score", "rewards.py", "absent.jsonl", errors=True)


def test_a_full_disk_is_a_fault(work: Path) -> None:
    """Only a reader that went is forgiven."""
    with open("/dev/full", "wb") as full:
        done = _run(work, "list", stdout=full, stderr=subprocess.PIPE)
    assert (3, b"error: [Errno 28] No space left on device\n") == (done.returncode, done.stderr)
