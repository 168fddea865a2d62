"""Rewards or rows in the place of a recorded run: each command says how a run is made of them."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rewardkit.cli.program import app

READERS = {  # commands that read a run, where {} is
    "show": "show {}",
    "logs": "logs {}",
    "export": "export {} --to x.csv",
    "profile": "profile {}",
    "verify": "verify {}",
    "rescore": "rescore {} --reward a.py:correct",
    "update": "update {} correct a.py:correct",
    "compare": "compare {} one",
    "compare, second": "compare one {}",
    "audit": "audit a.py:correct --run {}",
    "rm monitor": "rm monitor {} model canary.jsonl",
    "rm over-optimisation": "rm over-optimisation {} reward gold",
}
REWARDS = ["a.py:correct", "a.py", "rewards.math:correct", "rewards.yaml", "a.py:correct,b.py:short"]
ROWS = ["rows.jsonl", "data/rows.csv", "rows.jsonl.gz", "rows.parquet"]


def _error(arguments: list[str]) -> str:
    result = CliRunner().invoke(app, arguments)
    assert 2 == result.exit_code, result.output
    return " ".join(result.stderr.split())


@pytest.fixture(autouse=True)
def _in_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("argument", [*REWARDS, *ROWS])
@pytest.mark.parametrize("command", READERS.values(), ids=READERS)
def test_what_is_no_run_is_named_with_what_makes_one(command: str, argument: str) -> None:
    """The command that records a run has the user's own argument in it."""
    scoring = f"{argument} DATA" if argument in REWARDS else f"REWARDS {argument}"
    error = _error(shlex.split(command.format(argument)))
    assert f"rewardkit score {scoring} --record runs/one" in error
    assert f"{argument}: {'names rewards' if argument in REWARDS else 'is a file of rows'}, and `rewardkit " in error


@pytest.mark.parametrize("argument", REWARDS)
def test_rewards_without_rows_are_given_their_option(argument: str) -> None:
    """``diagnose`` reads a run or rows, which rewards score."""
    assert f"rewardkit diagnose DATA --rewards {argument}" in _error(["diagnose", argument])


@pytest.mark.parametrize(
    ("places", "fitting"),
    [
        ("old.py:a new.py:a rows.jsonl", "rewardkit diff old.py:a new.py:a --data rows.jsonl"),
        ("rows.jsonl old.py:a new.py:a", "rewardkit diff old.py:a new.py:a --data rows.jsonl"),
        ("old.py:a rows.csv new.py:a", "rewardkit diff old.py:a new.py:a --data rows.csv"),
        ("old.py:a new.py:a", "rewardkit diff old.py:a new.py:a --data FILE"),
        ("old.py:a new.py:a third.py:a", "rewardkit diff OLD NEW --data FILE"),
    ],
)
def test_two_rewards_are_compared_on_a_file(places: str, fitting: str) -> None:
    """The error has the command that was meant."""
    assert f"`{fitting}`" in _error(["diff", *places.split()])


@pytest.mark.parametrize("run", ["one", "runs/one", "./one", "missing-run", "a-b_c.1"])
def test_a_run_that_is_not_there_is_no_reward(run: str) -> None:
    assert "there is no record" in _error(["show", run])


@pytest.mark.parametrize("name", ["one.py", "rows.jsonl", "a:b"])
def test_a_run_may_have_any_name(name: str) -> None:
    """What has a record is a run, whatever its name looks like."""
    Path("r.py").write_text("from rewardkit import reward\n@reward\ndef own(completion): return 1.0\n")
    Path("d.jsonl").write_text('{"prompt": "?", "completion": "a"}\n')
    scoring = ["score", "r.py", "d.jsonl", "--inline", "--record", f"runs/{name}"]
    assert 0 == CliRunner().invoke(app, scoring).exit_code
    assert 0 == CliRunner().invoke(app, ["show", name]).exit_code
