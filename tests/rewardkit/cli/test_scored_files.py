"""Files that ``rewardkit score --out`` wrote are runs once they are added, with all that was recorded."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small_run

REWARDS = """\
from rewardkit import Score, reward


@reward
def right(completion: str, answer: str) -> Score | None:
    if completion == "skip":
        return None
    if completion == "boom":
        raise ValueError("cannot")
    return Score(float(completion == answer), "compared")


@reward
def brief(completion: str) -> float:
    return -len(completion) / 10
"""
ROWS = [("p", "4", "4"), ("p", "5", "4"), ("q", "skip", "1"), ("q", "boom", "1"), ("q", "11", "11"), ("r", "0.5", "2")]


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    Path("rewards.py").write_text(REWARDS)
    rows = [{"prompt": prompt, "completion": text, "answer": answer} for prompt, text, answer in ROWS]
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def _scored(weights: str) -> None:
    arguments = ("--inline", "--weights", weights, "--record", "own", "--out", "scored.jsonl")
    small_run.told("score", "rewards.py", "rows.jsonl", *arguments)


def _listed(name: str) -> Any:
    return next(run for run in small_run.told("runs")["runs"] if run["name"] == name)


@pytest.mark.parametrize("weights", ["1,-0.05", "10,0", "0.05,1"])
def test_an_added_file_is_the_run_that_was_recorded(work: Path, weights: str) -> None:
    """Means, outcomes with reasons and errors, totals and weights are those of the run that scoring recorded."""
    _scored(weights)
    added = small_run.told("runs", "--add", "scored.jsonl")
    assert ("scored", 6, [float(part) for part in weights.split(",")]) == (
        added["run"], added["rows"], list(added["weights"].values()),
    )  # fmt: skip
    own, run = _listed("own"), _listed("scored")
    assert [own[key] for key in ("total", "means", "completions")] == [
        run[key] for key in ("total", "means", "completions")
    ]
    first, other = (small_run.told("show", name, "--sort", "id")["completions"] for name in ("own", "scored"))
    assert first == other
    assert "ValueError: cannot" == other[3]["rewards"]["right"]["error"]
    measure = small_run.told("compare", "own", "scored")["measures"][0]
    assert (0.0, 0, 0) == (measure["difference"], measure["wins"], measure["losses"])


@pytest.mark.parametrize(("weights", "expected"), [("0.8,-0.2", [0.8, -0.2]), ("1,1", [1.0, 1.0])])
def test_rows_without_weights_tell_them_by_their_totals(work: Path, weights: str, expected: list[float]) -> None:
    """A file of an older release has none; the scores add up to the totals with one set of weights alone."""
    _scored(weights)
    rows = [json.loads(line) for line in Path("scored.jsonl").read_text().splitlines()]
    Path("old.jsonl").write_text("".join(json.dumps({**row, "weights": None}) + "\n" for row in rows))
    added = small_run.told("runs", "--add", "old.jsonl")
    np.testing.assert_allclose(list(added["weights"].values()), expected)
    assert _listed("own")["total"] == pytest.approx(_listed("old")["total"])


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        (("--add", "rows.jsonl"), "no rows of rewardkit score --out; score them with --record rows instead"),
        (("--add", "own.jsonl"), "own has a record; rename the file, or remove the run with --prune"),
        (("--add", "broken.jsonl"), "broken.jsonl:1: reward 'right': expected an outcome with status and score"),
        (("--add", "rows.jsonl", "--prune"), "--add and --prune: give one of them"),
    ],
    ids=["not scored", "there already", "no outcome", "with prune"],
)
def test_what_cannot_be_added_is_refused_in_a_line(work: Path, arguments: tuple[str, ...], refusal: str) -> None:
    """The line names the file, what is wrong and what to do; no run is left behind."""
    _scored("1,1")
    Path("own.jsonl").write_text(Path("scored.jsonl").read_text())
    row = {"prompt": "p", "completion": "c", "example": {}, "total": 1, "rewards": {"right": {"status": "perhaps"}}}
    Path("broken.jsonl").write_text(json.dumps(row) + "\n")
    code, _, error = small_run.command("runs", *arguments)
    assert (True, 1) == (code != 0, len(error.splitlines()))
    assert refusal in error
    assert ["own"] == [run["name"] for run in small_run.told("runs")["runs"]]


_NUMBERED = {
    "show": (("show", "own"), r"^-?[\d.]+ +completion (\d+) +prompt \d+ +(.+)$"),
    "show --prompt": (("show", "own", "--prompt", "3"), r"^(\d+) +-  .* {2,}(\S+)$"),
    "show --where": (("show", "own", "--where", "id>=1"), r"^(\d+) +-  .* {2,}(\S+)$"),
    "show --grep": (("show", "own", "--grep", "11"), r"^completion (\d+) .*\n +completion: (\S+)$"),
    "logs": (("logs", "own"), r"^completion (\d+)  right@1  failed()"),
    "show --json": (("show", "own", "--json"), r'"id": (\d+),(?:[^{}]*)"completion": "([^"]*)"'),
    "--out": (("score", "rewards.py", "rows.jsonl", "--out", "again.jsonl", "--inline"), ""),
}  # fmt: skip


@pytest.mark.parametrize(("arguments", "pattern"), _NUMBERED.values(), ids=_NUMBERED)
def test_a_completion_has_one_number_in_every_command(work: Path, arguments: tuple[str, ...], pattern: str) -> None:
    """Of a file that was recorded into a run of its own it is the file's line."""
    _scored("1,1")
    output = small_run.command(*arguments)[1]
    numbers = {text: number for number, (_, text, _) in enumerate(ROWS, 1)}
    if pattern:
        pairs = re.findall(pattern, output, re.MULTILINE)
    else:
        rows = map(json.loads, Path("again.jsonl").read_text().splitlines())
        pairs = [(row["line"], row["completion"]) for row in rows]
    assert pairs, output
    assert all(int(number) == numbers.get(text or "boom") for number, text in pairs), pairs
