"""Where the command line reads data from, and writes results to: packed files, standard input, pipes that close."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

from rewardkit.cli.program import app

ROOT = Path(__file__).parents[3]

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
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a reward."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "rewards.py").write_text(REWARD)
    (tmp_path / "rows.jsonl").write_bytes(PACKED["plain"])
    return tmp_path


def _run(*arguments: str, given: bytes = b"") -> tuple[int, str, str]:
    """Run a command that reads from a pipe."""
    reading, writing = os.pipe()
    with open(writing, "wb") as file:
        file.write(given)
    out, err = io.StringIO(), io.StringIO()
    with open(reading) as pipe:
        return _ended(arguments, stdin=pipe, stdout=out, stderr=err), out.getvalue(), err.getvalue()


def _ended(arguments: Sequence[str], **streams: Any) -> int:
    """Run a command with standard streams of its own, and return its exit code."""
    with pytest.MonkeyPatch.context() as changed:
        for name, stream in streams.items():
            changed.setattr(sys, name, stream)
        with pytest.raises(SystemExit) as ended:
            app(list(arguments), prog_name="rewardkit")
        sys.stdout.flush()
        sys.stderr.flush()
    return int(ended.value.code or 0)


def _start(work: Path, *arguments: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    """Run a command in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "rewardkit", *arguments]
    return subprocess.run(command, cwd=work, env=environment, timeout=120, **options)


@pytest.mark.parametrize("kind", PACKED)
def test_score_reads_packed_files_and_standard_input(work: Path, kind: str) -> None:
    """A file of any name and a pipe give the same scores."""
    (work / "rows").write_bytes(PACKED[kind])
    expected = [float(r["completion"] == r["answer"]) for r in ROWS]
    for data, given in (("rows", b""), ("-", PACKED[kind])):
        arguments = ("score", "rewards.py:correct", data, "--out", "out.jsonl", "--json", "--inline")
        code, out, err = _run(*arguments, given=given)
        assert (0, 6) == (code, json.loads(out)["rows"]), err
        rows = [json.loads(line) for line in (work / "out.jsonl").read_text().splitlines()]
        assert expected == [row["total"] for row in rows]


def test_a_process_of_its_own_reads_standard_input(work: Path) -> None:
    """As every command does in a shell."""
    done = _start(work, "check", "rewards.py", "-", "--rows", "0", "--json", input=PACKED["gzip"], capture_output=True)
    assert [6, 6] == [one["rows"] for one in json.loads(done.stdout)["rewards"]], done.stderr


@pytest.mark.parametrize("kind", ["gzip", "parquet"])
def test_audit_and_check_read_standard_input_once_for_all_rewards(work: Path, kind: str) -> None:
    """Two rewards are audited with the rows that came through one pipe."""
    options = ("rewards.py", "--data", "-", "--json")
    _, out, err = _run("audit", *options, "--rows", "1", "--time-limit", "0.01", "--workers", "1", given=PACKED[kind])
    assert ["correct", "short"] == [one["reward"] for one in json.loads(out)["rewards"]], err
    _, out, err = _run("check", *options, "--rows", "0", given=PACKED[kind])
    assert [6, 6] == [one["rows"] for one in json.loads(out)["rewards"]], err


def test_what_parquet_holds_and_json_does_not_is_written_as_text(work: Path) -> None:
    """A date or bytes in a column do not end the run when its rows are written out."""
    (work / "rows.parquet").write_bytes(_parquet([{**ROWS[0], "day": date(2026, 1, 2), "raw": b"\xff"}]))
    code, _, err = _run("score", "rewards.py", "rows.parquet", "--out", "out.jsonl", "--inline")
    assert 0 == code, err
    assert "2026-01-02" == json.loads((work / "out.jsonl").read_text())["example"]["day"]


def test_a_mistake_in_a_row_is_told_with_its_place_and_key(work: Path) -> None:
    """A key that stands twice and a number without end are mistakes of the data."""
    for text, words in (
        (b'{"prompt": "p", "completion": "4", "answer": "4", "answer": "5"}', "key 'answer' stands there twice"),
        (b'{"prompt": "p", "completion": "4", "answer": 1e999}', "1e999 is too large for a number"),
    ):
        code, _, err = _run("score", "rewards.py", "-", given=text)
        assert 2 == code
        assert f"error: standard input:1: {words}" in err


COMMANDS = {
    "list": ["list"],
    "list of one": ["list", "math_answer"],
    "list as JSON": ["list", "--json"],
    "help": ["--help"],
    "version": ["--version"],
    "score": ["score", "rewards.py", "rows.jsonl", "--inline"],
    "score as JSON": ["score", "rewards.py", "rows.jsonl", "--inline", "--json"],
    "check": ["check", "rewards.py", "--data", "rows.jsonl", "--rows", "0"],
    "new": ["new", "other"],
}


def _into_closed_pipe(*arguments: str, errors: bool = False) -> tuple[int, str]:
    """Run a command whose output nobody reads; return its exit code and what it wrote as errors."""
    reading, writing = os.pipe()
    os.close(reading)
    told = io.StringIO()
    with open(writing, "w") as nobody:
        code = _ended(arguments, stdout=nobody, stderr=nobody if errors else told)
    return code, told.getvalue()


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_pipe_that_its_reader_closed_is_no_fault(work: Path, command: list[str]) -> None:
    """As under head, that has seen enough: exit code 0 and not a word."""
    assert (0, "") == _into_closed_pipe(*command)


def test_the_end_of_a_process_whose_reader_went_is_quiet(work: Path) -> None:
    """What is still held when the interpreter ends is dropped as well."""
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "wb") as nobody:
        done = _start(work, "score", "rewards.py", "rows.jsonl", "--inline", stdout=nobody, stderr=subprocess.PIPE)
    assert (0, b"") == (done.returncode, done.stderr)


def test_a_closed_pipe_hides_no_verdict(work: Path) -> None:
    """The exit code is the command's own, and what it writes to files is whole; for closed error streams too."""
    (work / "rows.jsonl").write_bytes(_lines([{**ROWS[0], "answer": "x"}]))
    command = ("score", "rewards.py", "rows.jsonl", "--inline", "--fail-on-error", "--out", "out.jsonl")
    assert (1, "") == _into_closed_pipe(*command)
    assert 1 == len((work / "out.jsonl").read_text().splitlines())
    assert (2, "") == _into_closed_pipe("score", "rewards.py", "absent.jsonl", errors=True)


def test_a_full_disk_is_a_fault(work: Path) -> None:
    """Only a reader that went is forgiven."""
    with open("/dev/full", "wb") as full:
        done = _start(work, "list", stdout=full, stderr=subprocess.PIPE)
    assert (3, b"error: [Errno 28] No space left on device\n") == (done.returncode, done.stderr)
