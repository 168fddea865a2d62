"""``rewardkit profile`` and ``rewardkit show --group-by``: what they print, write and refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from rewardkit.cli.program import app
from rewardkit.record.recorder import Recorder
from rewardkit.rows import read_rows
from rewardkit.score_batch import ScoreBatch
from rewardkit.types import Cause, Outcome, Rollout, Status

RIGHT = [0, 1, 2, 4, 0]
"""How many of four completions of each prompt are right; of the last one every call fails."""
FAILED = Outcome(Status.FAILED, 0.0, cause=Cause.TIMEOUT, error="late", version="1" * 12)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with a run of five prompts, one of no completions, and one without texts."""
    folder = tmp_path_factory.mktemp("profile")
    rollouts, outcomes = [], []
    for number, right in enumerate(RIGHT):
        row = {"level": "hard" if right < 2 else "easy", "answer": str(number), "text": "\x1b[31m<b>\nc"}
        for place in range(4):
            rollouts.append(Rollout(f"prompt {number}", f"text {place}", row))
            score = Outcome(Status.SCORED, float(place < right), version="1" * 12)
            outcomes.append(FAILED if number == 4 else score)
    batch = ScoreBatch(rollouts, {"good": outcomes}, {"good": 1.0})
    with Recorder(folder / "one") as one:
        one.record(batch, step=3, num_generations=4)
    with Recorder(folder / "moving") as moving:
        for step in range(4):
            moving.record(
                ScoreBatch(
                    rollouts[:4],
                    {"good": [Outcome(Status.SCORED, float(k < step), version="1" * 12) for k in range(4)]},
                    {"good": 2.0},
                ),
                step=step,
            )
    with Recorder(folder / "empty") as empty:
        empty.metrics(1, {"loss": 1.0})
    return folder


def run(*arguments: object) -> Any:
    """Run the command line."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=True)


def test_a_profile_says_how_many_prompts_are_always_never_and_sometimes_right(folder: Path) -> None:
    """With the rule, the interval of each, and failures by themselves."""
    result = run("profile", folder / "one")
    assert 0 == result.exit_code
    assert "5 prompts of train" in result.output
    assert "right: reward above 0.5, half of the weights above 0" in result.output
    for line in ("never right  ", "always right  ", "no pass rate: all skipped or failed  "):
        assert line in result.output
    assert "0.25  0.05 to 0.70   1 of 4" in result.output


def test_a_profile_as_json_has_every_prompt(folder: Path) -> None:
    """Also the one without a pass rate."""
    result = json.loads(run("profile", folder / "one", "--json").stdout)
    kinds = [result[name] for name in ("never_right", "in_between", "always_right", "unknown")]
    assert (5, [1, 2, 1, 1], None) == (result["prompts"], kinds, result["chosen"])
    assert [0.0, 0.25, 0.5, 1.0, None] == [row["rate"] for row in result["profile"]]
    assert (0, 4) == (result["profile"][4]["counted"], result["profile"][4]["failed"])


@pytest.mark.parametrize(
    ("choice", "answers"),
    [
        (["--keep", "0.1..0.9"], ["1", "2"]),
        (["--keep", "0..0"], ["0"]),
        (["--keep", "0..1"], ["0", "1", "2", "3"]),
        (["--drop", "1..1"], ["0", "1", "2", "4"]),
        (["--keep", "0.25..0.5", "--where", "level=easy"], ["2"]),
        (["--keep", "1..1", "--reward", "good", "--pass-at", "0"], ["0", "1", "2", "3"]),
    ],
)
def test_the_chosen_prompts_are_written_as_a_data_set(
    folder: Path, tmp_path: Path, choice: list[str], answers: list[str]
) -> None:
    """One without a pass rate is in no range: it is not kept, and not dropped."""
    out = tmp_path / "keep.jsonl"
    result = run("profile", folder / "one", *choice, "--out", out)
    assert 0 == result.exit_code, result.output
    rows = [row.values for row in read_rows(out)]
    assert answers == [row["answer"] for row in rows]
    assert {"prompt": f"prompt {answers[0]}", "answer": answers[0], "text": "\x1b[31m<b>\nc"}.items() <= rows[0].items()
    assert "\x1b" not in result.output


def test_which_prompt_got_worse_is_one_command(folder: Path, tmp_path: Path) -> None:
    """Also in a run of one epoch: of the first and the last groups; with --json the order is the same."""
    rights = {"same": [2, 2], "worse": [4, 1], "met once": [0]}
    with Recorder(tmp_path / "run") as recorder:
        for step in range(2):
            groups = {prompt: own[step] for prompt, own in rights.items() if step < len(own)}
            rollouts = [Rollout(prompt, f"text {k}", {}) for prompt in groups for k in range(4)]
            scores = [float(k < right) for right in groups.values() for k in range(4)]
            outcomes = [Outcome(Status.SCORED, score, version="1" * 12) for score in scores]
            batch = ScoreBatch(rollouts, {"good": outcomes}, {"good": 1.0})
            recorder.record(batch, step=step, epoch=step / 2, num_generations=4)
    result = run("profile", tmp_path / "run", "--sort", "change")
    _, table = result.output.split("right at first", 1)
    assert [["1", "-0.75"], ["0", "+0.00"], ["2", "-"]] == [line.split()[:2] for line in table.splitlines()[1:]]
    assert "4 of 4" in result.output
    assert "1 of 4" in result.output
    rows = json.loads(run("profile", tmp_path / "run", "--sort", "change", "--json", "--limit", "2").stdout)["profile"]
    assert [(1, -0.75, 1.0, 0.25), (0, 0.0, 0.5, 0.5)] == [
        (row["prompt"], row["change"], row["mean_before"], row["mean_after"]) for row in rows
    ]
    once = run("profile", folder / "one", "--sort", "change")
    assert "no prompt was met in two groups, so none has a change" in once.output


def test_a_scored_file_has_questions(tmp_path: Path) -> None:
    """Its rows tell the completions of one apart, and are one row of the data set; --by row says otherwise."""
    rollouts = [Rollout(f"q{number}", "text", {"answer": "4", "sample": k}) for number in range(3) for k in range(8)]
    outcomes = [
        Outcome(Status.SCORED, float(k < 4 * number), version="1" * 12) for number in range(3) for k in range(8)
    ]
    with Recorder(tmp_path / "scored") as recorder:
        for start in (0, 12):  # a question lies in two batches
            part = slice(start, start + 12)
            recorder.record(ScoreBatch(rollouts[part], {"good": outcomes[part]}, {"good": 1.0}))
    out = tmp_path / "keep.jsonl"
    result = run("profile", tmp_path / "scored", "--keep", "0.1..0.9", "--out", out)
    assert 0 == result.exit_code, result.output
    assert "without sample, which tell completions of one text apart" in result.output
    assert [{"prompt": "q1", "answer": "4"}] == [row.values for row in read_rows(out)]
    profile = json.loads(run("profile", tmp_path / "scored", "--json").stdout)["profile"]
    assert [(8, 0), (8, 4), (8, 8)] == [(row["counted"], row["passed"]) for row in profile]
    assert 24 == json.loads(run("profile", tmp_path / "scored", "--by", "row", "--json").stdout)["prompts"]


def test_a_file_is_replaced_with_force_alone(folder: Path, tmp_path: Path) -> None:
    """And it stays as it was where nothing is written."""
    out = tmp_path / "keep.jsonl"
    out.write_text("mine\n")
    refused = run("profile", folder / "one", "--keep", "0.1..0.9", "--out", out)
    assert (2, "mine\n") == (refused.exit_code, out.read_text())
    nothing = run("profile", folder / "one", "--keep", "0.9..0.95", "--out", out, "--force")
    assert (2, "mine\n") == (nothing.exit_code, out.read_text())
    assert 0 == run("profile", folder / "one", "--keep", "0.1..0.9", "--out", out, "--force").exit_code
    assert (2, ["keep.jsonl"]) == (len(read_rows(out)), [path.name for path in tmp_path.iterdir()])


REFUSED = {
    "a range that goes down": (["--keep", "0.9..0.1"], "the first rate is above the second; write 0.1..0.9"),
    "no range": (["--keep", "abc"], "expected two rates with .. between them"),
    "half a range": (["--drop", "..0.5"], "--drop ..0.5: expected two rates"),
    "rates above 1": (["--keep", "1.5..2"], "expected rates from 0 to 1"),
    "two choices": (["--keep", "0..1", "--drop", "1..1"], "give one of them"),
    "a file without a choice": (["--out", "keep.jsonl"], "which prompts? Name their pass rates"),
    "a file of another kind": (["--keep", "0..1", "--out", "keep.csv"], "a name that ends with .jsonl"),
    "force without a file": (["--force"], "--force: replaces the file of --out"),
    "no reward of this name": (["--reward", "goood"], "no reward 'goood'; near it: good"),
    "no number": (["--pass-at", "nan"], "--pass-at nan: expected a number"),
    "nothing in the range": (["--keep", "0.9..0.95", "--out", "keep.jsonl"], "no prompt has a pass rate from 0.9"),
}  # fmt: skip


@pytest.mark.parametrize(("arguments", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_a_mistake_is_said_in_a_line(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    """With the exit code of a mistake, and nothing written."""
    monkeypatch.chdir(tmp_path)
    result = run("profile", folder / "one", *arguments)
    assert 2 == result.exit_code
    assert message in result.output
    assert 1 == len(result.output.strip().splitlines())
    assert [] == list(tmp_path.iterdir())


def test_an_empty_run_has_no_profile_and_no_groups(folder: Path) -> None:
    """It is said, and is no error; a file of it is."""
    for arguments in (["profile", folder / "empty"], ["show", folder / "empty", "--group-by", "level"]):
        result = run(*arguments)
        assert 0 == result.exit_code, result.output
        assert "nothing is recorded of train" in result.output
    assert 2 == run("profile", folder / "empty", "--keep", "0..1", "--out", folder / "none.jsonl").exit_code


def test_groups_are_shown_with_means_and_intervals(folder: Path) -> None:
    """In words and as JSON, with what failed beside them."""
    result = run("show", folder / "one", "--group-by", "level")
    assert "one: reward by level, 20 completions of train" in result.output
    rows = json.loads(run("show", folder / "one", "--group-by", "level", "--json").stdout)
    assert {"hard": (3, 8, 4, 0.125), "easy": (2, 8, 0, 0.75)} == {
        row["label"]: (row["prompts"], row["scored"], row["failed"], row["mean"]) for row in rows["groups"]
    }
    assert [3] == rows["steps"]


def test_a_hostile_value_steers_no_terminal(folder: Path) -> None:
    """A group's name stands on one line, with control characters written out."""
    result = run("show", folder / "one", "--group-by", "text")
    assert "\\x1b[31m<b>⏎c" in result.output
    assert "\x1b" not in result.output


def test_a_spread_says_what_moved(folder: Path) -> None:
    """In shares by stretch of steps, in words and as JSON; of a run in which nothing moves, and of no values."""
    result = run("show", folder / "moving", "--spread", "good", "--limit", "2")
    assert 0 == result.exit_code, result.output
    assert "moving: spread of good, 16 values of train" in result.output
    assert "from the first steps to the last 50.0% moved, 0.5 on average over all: 50.0% from 0 to 1" in result.output
    rows = json.loads(run("show", folder / "moving", "--spread", "reward", "--json").stdout)
    assert ([[4, 0], [3, 1], [2, 2], [1, 3]], 0.75, 1.5) == (rows["counts"], rows["moved"], rows["distance"])
    assert "nothing is recorded of train" in run("show", folder / "empty", "--spread", "reward").output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--spread", "goood"], "no reward 'goood'; near it: good"),
        (["--spread", "good", "--group-by", "level"], "give one of them"),
        (["--spread", "good", "--sort", "reward"], "--spread and --sort: choose completions with --where"),
        (["--group-by", "levle"], "no column 'levle' in the data; near it: level"),
        (["--group-by", "level", "--grep", "x"], "--group-by and --grep"),
        (["--group-by", "level", "--step", "3"], "lists completions of the run"),
        (["--reward", "good"], "goes with --group-by"),
    ],
)
def test_groups_of_what_is_not_there_are_refused(folder: Path, arguments: list[str], message: str) -> None:
    """In a line with what to write instead."""
    result = run("show", folder / "one", *arguments)
    assert (2, True) == (result.exit_code, message in result.output)


@pytest.mark.parametrize("column", ["id", "task_id", "level"])
def test_prompts_are_named_by_the_ids_of_the_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, column: str) -> None:
    """As other commands name rows; without a column of ids the number in the run stands alone."""
    monkeypatch.chdir(tmp_path)
    source = "from rewardkit import reward\n\n@reward\ndef four(completion: str) -> float:\n"
    Path("four.py").write_text(f"{source}    return float(completion == '4')\n")
    rows = [{"prompt": f"{n}?", "completion": str(n + k), column: f"T/{n}"} for n in range(3) for k in range(2)]
    Path("rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    runner = CliRunner()
    assert 0 == runner.invoke(app, ["score", "four.py", "rows.jsonl", "--record", "one", "--inline"]).exit_code
    profile, show = (runner.invoke(app, [command, "one"]).output for command in ("profile", "show"))
    listed = runner.invoke(app, ["show", "one", "--grep", "3"]).output
    has_ids = column != "level"
    head = next(line.split() for line in profile.splitlines() if line.startswith("prompt "))
    assert has_ids == (head[1] == column)
    assert has_ids == ("T/2" in profile)
    assert has_ids == (f"prompt 0 ({column} 'T/0')" in show)
    assert has_ids == (f"prompt 2 ({column} 'T/2')" in listed)
