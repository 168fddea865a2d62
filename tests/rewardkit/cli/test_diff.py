"""``rewardkit diff``: what it tells of two versions on a file's rollouts."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from rewardkit import Rollout, Runtime
from rewardkit.cli.program import app

REWARDS = """\
from rewardkit import Score, group_reward, reward


@reward
def brief(completion: str) -> Score:
    return Score(-float(len(completion)), f"{len(completion)} characters")


@reward
def picky(completion: str) -> Score | None:
    if completion == "none":
        return None
    if completion == "bad":
        raise ValueError("cannot")
    return Score(float(len(completion)), "longer is better", {"requests": 2, "cost_usd": 0.001})


@group_reward
def longest(completions: list[str]) -> list[float]:
    return [float(len(one) == max(map(len, completions))) for one in completions]


brief_and_longest = brief + longest
"""
COMPLETIONS = ["a", "abc", "none", "bad"]


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with rewards and two prompts' completions."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    Path("mine.py").write_text(REWARDS)
    rows = [{"prompt": prompt, "completion": one} for prompt in ("p", "q") for one in COMPLETIONS]
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def _run(*arguments: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["diff", *arguments], prog_name="rewardkit")
    return done.exit_code, done.stdout, done.stderr


def _told(*arguments: str) -> dict[str, Any]:
    code, out, err = _run(*arguments, "--json")
    assert 0 == code, err
    found: dict[str, Any] = json.loads(out)
    return found


def test_two_versions_are_compared_on_a_file(work: Path) -> None:
    """Skips and failures are counted, never taken for 0; costs are those of 1,000 completions."""
    told = _told("mine.py:brief", "mine.py:picky", "--data", "rows.jsonl")
    assert (8, 0, 0) == tuple(told["old"][key] for key in ("scored", "skipped", "failed"))
    assert (4, 2, 2, 2) == tuple(told["new"][key] for key in ("scored", "skipped", "failed", "stand_ins"))
    assert (-2.75, 2.0) == (told["old"]["mean"], told["new"]["mean"])
    assert (4, 4, -2.0, 2.0) == tuple(told[key] for key in ("both", "changed", "old_mean", "new_mean"))
    assert (-1.0, 2) == (told["rank_correlation"], told["ranked_groups"])
    # without the skipped one, -1, -3, (-4), -3 become 1, 3, -, 0: above the mean turns below and below above
    assert 4 == told["sign_flips"]
    assert {"requests": 1000.0, "cost_usd": 0.5} == {k: v for k, v in told["new_cost"].items() if k != "seconds"}
    assert "requests" not in told["old_cost"]
    assert ["3 characters", "longer is better"] == [told["examples"][0][side]["reason"] for side in ("old", "new")]


def test_it_is_told_in_words(work: Path) -> None:
    """``sign flips`` stands on a line of its own, and off a terminal a long completion is whole."""
    long = " ".join(f"word{number}" for number in range(200))
    Path("rows.jsonl").write_text("".join(json.dumps({"prompt": "p", "completion": one}) + "\n" for one in ["a", long]))
    code, out, _ = _run("mine.py:brief", "mine.py:longest", "--data", "rows.jsonl")
    assert 0 == code
    assert "sign flips       2 of 2 advantages (100.0%)\n" in out
    assert "rank correlation -1.000 inside groups (Spearman; 1 group)\n" in out
    assert f"      completion  {long}\n" in out
    assert f"      old         {len(long)} characters\n" in out


def test_long_references_stand_above_the_table(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is wrapped off a terminal, and the table fits 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    folder = work / "a-folder-with-a-name" / "that-makes-for-a-reference" / "of-more-than-eighty-columns"
    folder.mkdir(parents=True)
    (folder / "mine.py").write_text(REWARDS)
    code, out, _ = _run(f"{folder}/mine.py:brief", "mine.py:picky", "--data", "rows.jsonl")
    assert (0, f"old  {folder}/mine.py:brief\nnew  mine.py:picky\n\n") == (code, out[: out.index(" " * 9)])
    table = out[out.index(" " * 9) : out.index("changed scores")]
    assert max(map(len, table.splitlines())) <= 80


def test_failures_have_their_cause_and_the_first_completion(work: Path) -> None:
    """On a file and on a run, of a side that is scored now, in words and as data; numbers in errors make no kind."""
    with Path("mine.py").open("a") as file:
        file.write("\n\n@reward\ndef fails(completion: str) -> float:\n    raise ValueError(f'at {len(completion)}')\n")
    failures = [{"cause": "exception", "calls": 8, "id": 0, "step": None, "error": "ValueError: at 1"}]
    told = _told("mine.py:brief", "mine.py:fails", "--data", "rows.jsonl")
    assert [{"side": "new", **failures[0]}] == told["failures"]
    told = _told("mine.py:picky", "mine.py:fails", "--data", "rows.jsonl")
    assert [("new", 8), ("old", 2)] == [(kind["side"], kind["calls"]) for kind in told["failures"]]
    rollouts = [Rollout(prompt, text, {}) for prompt in "pq" for text in COMPLETIONS]
    with Runtime(["mine.py:brief"], lane="inline", record="runs/one") as runtime:
        runtime.score(rollouts, step=3)
    told = _told("runs/one", "brief@1", "mine.py:fails")
    assert [{"side": "new", **failures[0], "id": 1, "step": 3}] == told["failures"]
    code, out, _ = _run("runs/one", "brief@1", "mine.py:fails")
    assert 0 == code
    assert "failures (most frequent first)" in out
    assert "  new  exception  step 3, completion 1 and 7 more\n      error       ValueError: at 1\n" in out
    assert [] == _told("mine.py:brief", "mine.py:brief", "--data", "rows.jsonl")["failures"]


def test_groups_and_compositions_are_compared(work: Path) -> None:
    """A group reward has its groups whole, and a composition counts as one reward."""
    told = _told("mine.py:brief", "mine.py:brief_and_longest", "--data", "rows.jsonl")
    assert (8, 2) == (told["both"], told["changed"])
    assert {("p", "none"), ("q", "none")} == {(one["prompt"], one["completion"]) for one in told["examples"]}


def test_a_version_beside_itself_changes_nothing(work: Path) -> None:
    """No change, no flip, a correlation of 1, no example."""
    told = _told("mine.py:brief", "mine.py:brief", "--data", "rows.jsonl")
    assert (0, 0, 0.0, []) == tuple(told[key] for key in ("changed", "sign_flips", "advantage_change", "examples"))
    assert 1.0 == pytest.approx(told["rank_correlation"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["mine.py", "mine.py:brief", "--data", "rows.jsonl"], "'mine.py' holds 4 rewards; name one: mine.py:brief"),
        (["mine.py:brief", "--data", "rows.jsonl"], "1 version with --data: expected OLD and NEW"),
        (["mine.py:brief", "mine.py:brieff", "--data", "rows.jsonl"], "no 'brieff' in it; did you mean 'brief'?"),
        (["mine.py:brief", "mine.py:picky", "--data", "absent.jsonl"], "absent.jsonl: No such file or directory"),
    ],
    ids=["several rewards", "one version", "no such reward", "no such file"],
)
def test_a_mistake_is_one_line(work: Path, arguments: list[str], words: str) -> None:
    """Exit code 2, the thing and the fix."""
    code, out, err = _run(*arguments)
    assert (2, "") == (code, out)
    assert words in err
    assert 1 == len([line for line in err.splitlines() if line.startswith("error:")])
