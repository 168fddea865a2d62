"""The commands over a record: runs, show, logs, export, and ``score --record``."""

from __future__ import annotations

import contextlib
import csv
import json
import math
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from patience import LONG_S, wait_for
from typer.testing import CliRunner

from rewardkit import Rollout, Run, Runtime, Score, reward
from rewardkit.cli.program import app
from rewardkit.record.recorder import Recorder
from rewardkit.record.selection import Selection
from rewardkit.record.text_search import TextSearch
from rewardkit.score_batch import ScoreBatch
from rewardkit.types import Outcome, Status

ROOT = Path(__file__).parents[3]
HOSTILE = "<script>\x1b[31mred\x1b[0m\r\u202e\nnext " + "long " * 100
COLOURS = re.compile(r"\x1b\[[0-9;]*m")

REWARDS = '''\
from rewardkit import reward

@reward(default=None)
def correct(completion: str, answer: str) -> float:
    """1 if the completion is the answer."""
    print("judging", completion)
    if completion == "boom":
        raise ValueError("cannot read it")
    return float(completion == answer)

@reward
def short(completion: str) -> float | None:
    """Shorter is better."""
    return 1 / len(completion) if completion else None

both = (0.8 * correct + 0.2 * short).named("both")
'''


@reward(default=None)
def correct(completion: str, answer: str) -> Score:
    """Pay for the answer."""
    print("judging", completion)
    if completion == "boom":
        raise ValueError("cannot read it")
    return Score(float(completion == answer), "equal" if completion == answer else "other")


@reward(name="format")
def old_format(completion: str) -> float:
    """Pay for a digit."""
    return float(completion.isdigit())


@reward(name="format")
def new_format(completion: str) -> float | None:
    """Pay for one digit alone."""
    return float(completion in "0123456789") if completion else None


def _record(path: Path, steps: int = 6) -> None:
    with Recorder(path) as recorder:
        for step in range(steps):
            used = [correct, old_format if step < 3 else new_format]
            texts = ["4", "boom", "", HOSTILE] if step % 2 else ["4", "5", "4", "44"]
            rollouts = [Rollout(f"2+{n + 2}=", text, {"answer": str(4 + n)}) for n in range(2) for text in texts]
            with Runtime(used, lane="inline") as runtime:
                batch = runtime.score(rollouts, step=step)
            named = {one.name: one for one in used}
            recorder.record(batch, step=step, epoch=step / 4, rewards=named, num_generations=4)
            recorder.metrics(step + 1, {"reward": float(step), "kl": 0.5, "loss": float("nan"), "other": 1.0})


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a run of six steps, rewards and rows."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in ("COLUMNS", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    _record(Path("runs/one"))
    Path("mine.py").write_text(REWARDS)
    rows = [{"prompt": f"2+{n % 3}=", "completion": text, "answer": str(2 + n % 3)}
            for n, text in enumerate(("2", "boom", "", "5", "3", "4"))]  # fmt: skip
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def _run(*arguments: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, list(arguments), prog_name="rewardkit")
    return done.exit_code, done.stdout, done.stderr


def _json(*arguments: str) -> Any:
    code, out, err = _run(*arguments, "--json")
    assert 0 == code, err
    return json.loads(out)


# score --record


def test_score_records_what_it_scores(work: Path) -> None:
    """Each row is one completion with each reward's outcome; compositions count as rewards, and groups are prompts."""
    code, out, err = _run("score", "mine.py", "rows.jsonl", "--inline", "--record", "two")
    assert 0 == code, err
    assert "recorded in runs/two; rewardkit show runs/two shows it" in out
    with Run.open("runs/two") as run:
        found = sorted(run.completions(), key=lambda one: (one.prompt, one.id))
        assert ["correct", "short", "both"] == run.rewards
        assert [["2", "5"], ["boom", "3"], ["", "4"]] == [
            [one.completion for one in found if one.prompt_index == index] for index in range(3)
        ]
        assert {(None, "train")} == {(one.step, one.split) for one in found}
        assert [(0, [0, 0]), (1, [1, 1]), (2, [2, 2])] == [
            (index, [one.group for one in found if one.prompt_index == index]) for index in range(3)
        ]
        (boom,) = run.completions(reward="correct", status="failed")
        said = boom.outcomes["correct"]
        assert ("ValueError: cannot read it", "judging boom\n") == (said.error, said.logs)
        assert "score" == run.sessions[0]["about"]["command"]
    assert "runs/two" == _json("score", "mine.py", "rows.jsonl", "--inline", "--record", "two", "--append")["record"]
    with Run.open("runs/two") as run:
        assert (12, 3) == (run.count(), len(run.versions))


def test_a_run_with_a_record_is_added_to_only_where_that_is_said(work: Path) -> None:
    """Before anything is scored; and --append alone means nothing."""
    code, out, err = _run("score", "mine.py", "rows.jsonl", "--inline", "--record", "runs/one")
    assert (2, "") == (code, out)
    assert "runs/one/record.db: this run has a record; append to it (--append; in Python Recorder(" in err
    assert "--append: says how --record is meant" in _run("score", "mine.py", "rows.jsonl", "--append")[2]
    code, _, err = _run("score", "mine.py", "rows.jsonl", "--inline", "--record", "..")
    assert (2, True) == (code, "run '..': not a run's name" in err)


def test_a_run_is_not_left_empty_by_an_error(work: Path) -> None:
    """Where nothing could be scored, the same command may be given again."""
    Path("wrong.jsonl").write_text('{"prompt": "1", "completion": 3}\n')
    Path("unloadable.py").write_text("from mine import *\nraise SystemExit\n")
    assert 2 == _run("score", "mine.py", "wrong.jsonl", "--inline", "--record", "new")[0]
    assert 2 == _run("score", "mine.py", "rows.jsonl", "--record", "new", "--weights", "1")[0]
    assert not Path("runs/new").exists()


def test_many_rows_are_recorded_with_whole_groups(work: Path) -> None:
    """Chunks end between groups, wherever their rows stand in the file."""
    rows = [{"prompt": f"{n % 700}", "completion": "4", "answer": str(n // 700)} for n in range(2100)]
    rows = [{**row, "answer": "4"} for row in rows]
    Path("many.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert 0 == _run("score", "mine.py:correct", "many.jsonl", "--inline", "--record", "many")[0]
    with Run.open("runs/many") as run:
        (sums,) = run.summaries("correct")
        assert (2100, 700, 700) == (sums.scored, sums.groups, sums.flat_groups)


SLOW = """
import pathlib, time, uuid
from rewardkit import reward

@reward(timeout_s=600)
def slow(completion: str) -> float:
    if completion == "slow":
        pathlib.Path("asleep").touch()
        time.sleep(600)
    pathlib.Path(f"done-{uuid.uuid4()}").touch()
    return 1.0
"""


def test_groups_that_were_finished_are_recorded_where_scoring_is_cut_short(work: Path) -> None:
    """Ctrl-C does not lose what judges were paid for; a group of which a row is missing is left out."""
    Path("slow.py").write_text(SLOW)
    texts = [("a", "quick"), ("a", "quick"), ("b", "quick"), ("b", "slow")]
    Path("texts.jsonl").write_text("".join(json.dumps({"prompt": p, "completion": c}) + "\n" for p, c in texts))
    command = ["score", "slow.py", "texts.jsonl", "--record", "cut", "--workers", "2", "--out", "out.jsonl"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.Popen(
        [sys.executable, "-m", "rewardkit", *command], env=environment, stderr=subprocess.PIPE, text=True
    )
    assert wait_for(lambda: Path("asleep").exists() and 3 == len(list(work.glob("done-*"))))
    time.sleep(2.0)  # until what the workers found has arrived
    done.send_signal(signal.SIGINT)
    _, err = done.communicate(timeout=LONG_S)
    assert 130 == done.returncode, err
    with Run.open("runs/cut") as run:
        assert ["a", "a"] == [one.prompt for one in run.completions()]
        assert not run.running


def test_values_given_to_the_workers_reach_no_record(work: Path) -> None:
    """A key in a configuration's ``env`` is written as its name wherever a reward says it."""
    Path("leak.py").write_text(
        "import os\nfrom rewardkit import Score, reward\n\n@reward\ndef leak(completion: str) -> Score:\n"
        "    print(os.environ['MY_JUDGE'])\n    return Score(1.0, os.environ['MY_JUDGE'])\n"
    )
    Path("rewards.yaml").write_text(
        "functions:\n  leak: leak.py:leak\nruntime:\n  env:\n    MY_JUDGE: sk-hidden-value\n"
    )
    code, _, err = _run("score", "rewards.yaml", "rows.jsonl", "--record", "leaky")
    assert 0 == code, err
    assert "<MY_JUDGE>" in _run("logs", "leaky")[1]
    assert not any(b"sk-hidden-value" in one.read_bytes() for one in Path("runs/leaky").iterdir())
    with Run.open("runs/leaky") as run:
        assert "sk-hidden-value" not in str([*run.sessions, *run.versions, *run.logs()])


def test_a_disk_that_takes_nothing_is_told(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 3, for that is no mistake in the input."""
    monkeypatch.setattr(Recorder, "flush", lambda self: False)
    code, _, err = _run("score", "mine.py", "rows.jsonl", "--inline", "--record", "new")
    assert (3, True) == (code, "cannot be written; the scores are not recorded" in err)


# runs


def test_runs_are_listed_with_what_they_hold(work: Path) -> None:
    """Newest first, with one that cannot be read as such."""
    Path("runs/broken").mkdir()
    Path("runs/broken/record.db").write_text("no record")
    _record(Path("runs/two"), 1)
    lines = _run("runs")[1].splitlines()
    assert ["run", "began", "steps", "completions", "reward", "size", "state", "rewards"] == lines[0].split()
    cells = [re.split(r" {2,}", line.strip()) for line in lines[2:]]
    assert [["two", "1", "8"], ["one", "6", "48"], ["broken", "-", "-"]] == [
        [name, *numbers[:2]] for name, _, *numbers in cells
    ]
    assert "unreadable" in lines[-1]
    assert "not an SQLite file" in lines[-1]
    told = _json("runs")
    assert {"one": 6, "two": 1, "broken": None} == {one["name"]: one["steps"] for one in told["runs"]}
    assert {"one": False, "two": False, "broken": None} == {one["name"]: one["running"] for one in told["runs"]}


def test_no_runs_are_no_fault(work: Path) -> None:
    """A folder without runs says how one is made; one that is not there is named."""
    shutil.rmtree("runs")
    assert (0, "no runs in runs/; a record is made by: rewardkit score REWARDS DATA --record runs/one\n") == (
        _run("runs")[:2]
    )
    assert (2, True) == (_run("runs", "nowhere")[0], "nowhere: No such file" in _run("runs", "nowhere")[2])


def test_pruning_needs_to_be_told_what(work: Path) -> None:
    """Names or an age; a name that leads elsewhere, or to nothing, is refused before anything is removed."""
    for arguments, words in (
        (["--prune"], "--prune: say which runs, by --name NAME or --older-than DAYS"),
        (["--name", "one"], "say what --prune removes; give --prune, too"),
        (["--prune", "--yes", "--name", "one", "--name", "absent"], "--name absent: no run in runs/; it has one"),
        (["--prune", "--yes", "--name", "../runs/one"], "not a run's name"),
        (["--prune", "--yes", "--name", ".."], "not a run's name"),
        (["--prune", "--name", "one", "--json"], "asks nothing; say --yes"),
    ):
        code, _, err = _run("runs", *arguments)
        assert (2, True) == (code, words in " ".join(err.split())), err
    assert Path("runs/one/record.db").exists()


def test_pruning_asks(work: Path) -> None:
    """What it asks has the names; without a yes nothing is removed."""
    (work / "runs" / "one" / "checkpoint").touch()
    for answer, words in (("n\n", "nothing removed"), ("y\n", "removed one")):
        done = CliRunner().invoke(app, ["runs", "--prune", "--name", "one"], input=answer)
        assert (0, True) == (done.exit_code, words in done.stdout)
        assert "remove 1 run from runs/" in done.stderr
    assert ["checkpoint"] == [one.name for one in Path("runs/one").iterdir()]


def test_old_runs_are_pruned_by_their_last_sign(work: Path) -> None:
    """Others stay."""
    _record(Path("runs/old"), 1)
    connection = sqlite3.connect("runs/old/record.db")
    connection.execute("UPDATE session SET seen = seen - 40 * 86400")
    connection.commit()
    connection.close()
    told = _json("runs", "--prune", "--older-than", "30", "--yes")
    assert [("old", False)] == [(one["name"], one["folder_left"]) for one in told["removed"]]
    assert ["one"] == [one.name for one in Path("runs").iterdir()]
    assert [] == _json("runs", "--prune", "--older-than", "30", "--yes")["removed"]


def test_a_run_that_is_being_written_is_not_pruned(work: Path) -> None:
    """Neither by name nor by age."""
    with Recorder("runs/live"):
        code, _, err = _run("runs", "--prune", "--name", "live", "--yes")
        assert (2, True) == (code, "runs/live: still being written; end the run first" in err)
        assert ["one"] == [one["name"] for one in _json("runs", "--prune", "--older-than", "0", "--yes")["removed"]]
        assert "running" in _run("runs")[1]
    assert Path("runs/live/record.db").exists()


# show


def test_show_has_the_rewards_and_what_became_of_the_calls(work: Path) -> None:
    """Curves with ends, failures by cause, the trainer's metrics, worst and best completions, and versions."""
    code, out, err = _run("show", "one")
    assert (0, "") == (code, err)
    assert "6 steps (0 to 5), 48 completions of 2 prompts" in out
    assert re.search(r"correct +\S{6} +0\.3750 +0\.\d+", out)
    assert re.search(r"correct +exception 6 +-", out)
    assert re.search(r"format +- +4 ", out)
    assert re.search(r"reward +▁▂▄▅▆█|reward +▁\S{4}█ +0\.0000 +5\.0000", out)
    assert re.search(r"kl +▄{6} +0\.5000 +0\.5000", out)
    assert "other" not in out.partition("the trainer's")[2].partition("worst")[0]
    assert "worst completions of step 5" in out
    (command,) = re.findall(r"^rewardkit (logs .*) lists the reasons of scores$", out, re.MULTILINE)
    assert "reason: " in _run(*command.split())[1]
    assert re.search(r"format@2 +[0-9a-f]{12} +from step 3", out)


def test_show_is_the_same_as_data(work: Path) -> None:
    """Nothing is in the table that --json does not have."""
    told = _json("show", "runs/one")
    assert ("one", 6, 48, 2, False) == tuple(
        told[key] for key in ("name", "steps", "completions", "prompts", "running")
    )
    assert {"correct": {"exception": 6}, "format": {}} == {one["reward"]: one["failed"] for one in told["rewards"]}
    assert [["correct", 1, 0], ["format", 1, 0], ["format", 2, 3]] == [
        [one["reward"], one["number"], one["first_step"]] for one in told["versions"]
    ]
    assert (3, 3) == (len(told["worst"]), len(told["best"]))
    first = _json("show", "one", "--step", "0")["completions"][0]
    assert (0, 2.0, "4", "scored") == (*(first[key] for key in ("step", "reward", "completion")),
                                       first["rewards"]["correct"]["status"])  # fmt: skip


@pytest.mark.parametrize("arguments", [[], ["--prompt", "0"], ["--step", "3"]])
def test_show_reads_well_on_a_terminal(work: Path, arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines fit its width, each completion on one, and no completion steers it."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("FORCE_COLOR", "1")
    shown = COLOURS.sub("", _run("show", "one", *arguments)[1])
    assert max(map(len, shown.splitlines())) <= 80
    assert "\x1b" not in shown
    assert "<script>\\x1b[31mred" in shown
    assert "…" in shown


def test_runs_leaves_columns_out_on_a_narrow_terminal(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names are not broken into letters on 60 columns."""
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("FORCE_COLOR", "1")
    shown = COLOURS.sub("", _run("runs")[1]).splitlines()
    assert ["run", "began", "steps", "reward", "state", "rewards"] == shown[0].split()
    assert shown[2].startswith("one ")
    assert max(map(len, shown)) <= 60


@pytest.mark.parametrize("columns", [60, 80, 100, 120])
@pytest.mark.parametrize("name", ["two", "a-long-name-with-lr-1e-6-and-beta-0.04"])
def test_an_error_that_ended_a_run_pushes_no_column_off_a_terminal(
    work: Path, monkeypatch: pytest.MonkeyPatch, name: str, columns: int
) -> None:
    """Its name, its error and its rewards are whole, on several lines where they are long."""
    _record(Path("runs") / name, 1)
    with contextlib.suppress(ValueError), Recorder(Path("runs") / name, append=True):
        raise ValueError("out of memory: tried to allocate 2.50 GiB")
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("FORCE_COLOR", "1")
    lines = COLOURS.sub("", _run("runs")[1]).splitlines()
    assert max(map(len, lines)) <= columns
    cells = dict.fromkeys(("run", "state", "rewards"), "")
    starts = {column: lines[0].index(column) for column in cells}
    for line in lines[2 : next(index for index, line in enumerate(lines) if line.startswith("one "))]:
        for column, start in starts.items():
            cells[column] += line[start:].split("  ")[0].strip()
    state = "stopped by ValueError: out of memory: t…"
    assert {"run": name, "state": state.replace(" ", ""), "rewards": "correct,format"} == {
        column: cell.replace(" ", "") for column, cell in cells.items()
    }


@pytest.mark.parametrize("arguments", [[], ["--prompt", "0"], ["--step", "3"]])
def test_off_a_terminal_no_text_is_cut_or_wrapped(work: Path, arguments: list[str]) -> None:
    """A completion is whole and on one line, with its control characters written out."""
    out = _run("show", "one", *arguments)[1]
    whole = "<script>\\x1b[31mred\\x1b[0m\\r\\u202e⏎next " + "long " * 100
    assert [True] == sorted({whole.rstrip() in line for line in out.splitlines() if "<script>" in line})
    assert "\x1b" not in out
    assert "\r" not in out


def test_short_completions_stand_beside_their_scores(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several rewards leave room for them on a terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("FORCE_COLOR", "1")
    rewards = [old_format.with_options(name=name) for name in ("format_ok", "correct", "troublesome")]
    with Runtime(rewards, lane="inline", record="runs/short") as runtime:
        runtime.score([Rollout("2+2=", "13 nails")] * 2, step=0, epoch=0.0)
    shown = COLOURS.sub("", _run("show", "short", "--prompt", "0")[1])
    assert 2 == len(re.findall(r"^[12] +0 +0\.00 .* 13 nails$", shown, re.MULTILINE))


def test_a_step_has_the_trainers_metrics_that_are_not_a_rewards(work: Path) -> None:
    """A reward's own numbers stand in the table above; --json has all of them."""
    metrics = {"grad_norm": 2.0, "rewards/format_ok/mean": 1.0, "reward_time/format_ok/p95": 0.1}
    with (
        Recorder("runs/metrics") as recorder,
        Runtime([old_format.with_options(name="format_ok")], lane="inline") as runtime,
    ):
        recorder.record(runtime.score([Rollout("2+2=", "4")]), step=0, rewards=runtime.rewards)
        recorder.metrics(1, metrics)
    out = _run("show", "metrics", "--step", "0")[1]
    assert re.search(r"^grad_norm +2\.0000$", out, re.MULTILINE)
    assert "format_ok/" not in out
    assert metrics == _json("show", "metrics", "--step", "0")["metrics"]


def test_a_step_of_an_evaluation_has_the_metrics_of_that_evaluation(work: Path) -> None:
    """Evaluated after 5 steps and logged at 5; a training step that began at 5 is logged at 6."""
    with Recorder("runs/both") as recorder, Runtime([old_format], lane="inline") as runtime:
        for split in ("train", "eval"):
            recorder.record(runtime.score([Rollout("2+2=", "4")]), step=5, split=split, rewards=runtime.rewards)
        for step, value in ((5, 0.25), (6, 0.75)):
            recorder.metrics(step, {"loss": value})
            recorder.metrics(step, {"eval_loss": value}, "eval")
    assert {"loss": 0.75} == _json("show", "both", "--step", "5")["metrics"]
    assert {"eval_loss": 0.25} == _json("show", "both", "--step", "5", "--split", "eval")["metrics"]


def test_a_metric_that_is_not_known_is_a_dash(work: Path) -> None:
    """And the first and the last of a curve are those that are known."""
    with Recorder("runs/gaps") as recorder, Runtime([old_format], lane="inline") as runtime:
        for step, value in enumerate((math.nan, 1.0, 2.0, math.nan)):
            for split, prefix in (("train", ""), ("eval", "eval_")):
                recorder.record(runtime.score([Rollout("2+2=", "4")]), step=step, split=split, rewards=runtime.rewards)
                recorder.metrics(step + 1, {f"{prefix}kl": value, f"{prefix}loss": math.nan}, split)
    for split, prefix in (("train", ""), ("eval", "eval_")):
        lines = [line.split() for line in _run("show", "gaps", "--split", split)[1].splitlines()]
        assert [f"{prefix}kl", "1.0000", "2.0000"] == next([one[0], *one[-2:]] for one in lines if f"{prefix}kl" in one)
        assert [f"{prefix}loss", "····", "-", "-"] == next(one for one in lines if f"{prefix}loss" in one)
    assert re.search(r"^loss +-$", _run("show", "gaps", "--step", "0")[1], re.MULTILINE)


def test_show_of_a_prompt_has_its_completions_through_the_epochs(work: Path) -> None:
    """With each reward's score."""
    out = _run("show", "one", "--prompt", "1")[1]
    assert ["one, prompt 1: 24 completions", "  2+3=", "  answer: 5"] == out.splitlines()[:3]
    lines = [line.split() for line in out.splitlines()[4:]]
    told = _json("show", "one", "--prompt", "1")
    assert ["id", *(str(row["id"]) for row in told["completions"])] == [line[0] for line in lines]
    assert ["step", "epoch", "correct", "format", "reward", "advantage", "completion"] == lines[0][1:]
    assert [["0", "0.00", "0", "1", "1", "-0.5", "4"], ["0", "0.00", "1", "1", "2", "1.5", "5"]] == [
        line[1:] for line in lines[1:3]
    ]
    assert ["5", "1.25", "exception", "0", "-"] == lines[-3][1:6]
    assert ["5", "1.25", "0", "skipped", "0"] == lines[-2][1:6]
    assert 4 + 1 + 24 == len(out.splitlines())
    assert ("2+3=", {"answer": "5"}, 24) == (told["prompt"], told["columns"], len(told["completions"]))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--step", "6"], "one: no step 6 of train; it has those from 0 to 5"),
        (["--step", "0", "--split", "eval"], "one: no step 0 of eval; it has no steps"),
        (["--prompt", "2"], "one: no prompt 2; it has those from 0 to 1"),
        (["--step", "0", "--prompt", "0"], "--step and --prompt: give one of them"),
        (["--split", "test"], "--split test: expected train or eval"),
    ],
)
def test_what_a_run_lacks_is_named(work: Path, arguments: list[str], words: str) -> None:
    """With what it has."""
    code, out, err = _run("show", "one", *arguments)
    assert (2, "", f"error: {words}\n") == (code, out, err)


def test_flags_of_the_health_checks_are_shown(work: Path) -> None:
    """The last of them, with where to read more."""
    with Recorder("runs/one", append=True) as recorder:
        recorder.event("flag", {"detector": "length drift", "words": "completions grow \x1b[31m"}, step=4)
    out = _run("show", "one")[1]
    assert "1 flag\nstep 4  length drift  completions grow \\x1b[31m\n" in out
    assert "length drift" == _json("show", "one")["flags"][0]["body"]["detector"]
    with Recorder("runs/one", append=True) as recorder:
        for step in range(5, 11):
            recorder.event("flag", {"detector": "ceiling", "words": "all is paid"}, step=step)
    out = _run("show", "one")[1]
    assert "7 flags, the last 5 of them\nstep 6  ceiling" in out


# logs


def test_logs_say_what_a_call_said(work: Path) -> None:
    """Where it was, what became of it, its reason, error with the reward's own frames, and output."""
    out = _run("logs", "one", "--status", "failed", "--step", "1")[1]
    assert 2 == len(re.findall(r"^step 1  completion \d+  correct@1  failed exception  epoch 0.25$", out, re.MULTILINE))
    assert "    ValueError: cannot read it\n" in out
    assert '        raise ValueError("cannot read it")\n' in out
    assert "  | judging boom\n" in out
    assert "reason: equal" in _run("logs", "one", "--grep", "^equal")[1]


def test_logs_on_a_narrow_terminal_leave_the_epoch_out(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is there whole or not at all: half a number would be another one."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    for columns, epochs in (("80", 2), ("58", 0)):
        monkeypatch.setenv("COLUMNS", columns)
        out = COLOURS.sub("", _run("logs", "one", "--status", "failed", "--step", "1")[1])
        assert (2, epochs) == (out.count("failed exception"), out.count("epoch 0.25"))
        assert "epo…" not in out


def test_logs_of_hostile_output_are_whole_and_harmless(work: Path) -> None:
    """Each line of it behind a mark, so that none passes for one of ours."""
    out = _run("logs", "one", "--grep", "script")[1]
    assert "\x1b" not in out
    assert "  | judging <script>\\x1b[31mred\\x1b[0m" in out
    assert f"  | next {'long ' * 100}\n".rstrip() in out
    assert {True} == {line.startswith(("step", "    ", "  |")) for line in out.splitlines()}


def test_logs_are_data_too(work: Path) -> None:
    """An object an entry."""
    told = _json("logs", "one", "--reward", "correct", "--step", "0")
    assert 8 == len(told["entries"])
    assert {"scored"} == {one["status"] for one in told["entries"]}
    assert {("correct", 1, 0)} == {(one["reward"], one["version"], one["step"]) for one in told["entries"]}
    assert "nothing was said\n" == _run("logs", "one", "--reward", "format")[1]


def test_logs_print_no_call_that_has_metrics_alone(work: Path) -> None:
    """The scores of a composition's parts are data of its calls; a call that failed is printed."""
    both = (0.5 * old_format + 0.5 * reward(lambda completion: float(9 / int(completion)), name="ratio")).named("both")
    with Runtime([both], lane="inline", record="runs/quiet") as runtime:
        runtime.score([Rollout("p", text) for text in ("4", "5", "0")], step=0)
    code, out, _ = _run("logs", "quiet")
    assert (0, 1) == (code, out.count("both@1"))
    assert "step 0  completion 3  both@1  failed" in out
    entries = _json("logs", "quiet")["entries"]
    assert [1, 2, 3] == [entry["completion"] for entry in entries]
    assert all(entry["metrics"] for entry in entries[:2])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--reward", "formt"], "one: no reward 'formt'; it has correct, format"),
        (["--status", "bad"], "status 'bad': expected scored, skipped, failed"),
        (["--grep", "("], "grep='(': not a regular expression"),
        (["--step", "9"], "one: nothing at step 9; it has those from 0 to 5"),
        (["--follow", "--json"], "--follow --json: one JSON object cannot follow"),
    ],
)
def test_logs_name_what_is_wrong(work: Path, arguments: list[str], words: str) -> None:
    """In one line."""
    code, _, err = _run("logs", "one", *arguments)
    assert (2, 1) == (code, err.count("\n"))
    assert err.startswith(f"error: {words}")


def _following(work: Path, *arguments: str) -> subprocess.Popen[str]:
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "rewardkit", "logs", *arguments, "--follow"]
    return subprocess.Popen(command, cwd=work, env=environment, **pipes)


def _say(recorder: Recorder, step: int) -> None:
    with Runtime([correct], lane="inline") as runtime:
        recorder.record(runtime.score([Rollout("1+1=", "2", {"answer": "2"})]), step=step)


def test_followed_logs_come_as_they_are_recorded_and_end_with_the_run(work: Path) -> None:
    """No entry is missing or stands twice."""
    with Recorder("runs/live") as recorder:
        _say(recorder, 0)
        recorder.flush()
        done = _following(work, "live")
        assert done.stdout is not None
        assert "step 0" in done.stdout.readline()
        _say(recorder, 1)
    out, err = done.communicate(timeout=LONG_S)
    assert (0, "") == (done.returncode, err)
    assert ["step 1"] == re.findall(r"^step \d", out, re.M)


def test_followed_logs_end_with_ctrl_c(work: Path) -> None:
    """With exit code 0: that is how one stops looking."""
    with Recorder("runs/live") as recorder:
        _say(recorder, 0)
        recorder.flush()
        done = _following(work, "live")
        assert done.stdout is not None
        assert "step 0" in done.stdout.readline()
        time.sleep(0.2)
        done.send_signal(signal.SIGINT)
        _, err = done.communicate(timeout=LONG_S)
        assert (0, "") == (done.returncode, err)


# export


def test_a_run_is_exported_to_three_forms_of_file(work: Path) -> None:
    """The same rows and columns in each, numbers as numbers."""
    for end in ("jsonl", "csv", "parquet"):
        told = _json("export", "one", "--to", f"run.{end}")
        assert (f"run.{end}", 48) == (told["file"], told["rows"])
    lines = [json.loads(line) for line in Path("run.jsonl").read_text().splitlines()]
    with open("run.csv", newline="") as file:
        cells = list(csv.DictReader(file))
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table("run.parquet")
    assert lines == table.to_pylist()
    assert ["step", "prompt", "completion", "correct", "format", "advantage", "reward", "total"] == list(lines[0])[:8]
    assert [{key: "" if value is None else str(value) for key, value in line.items()} for line in lines] == cells
    with Run.open("runs/one") as run:
        for line, one in zip(lines, run.completions(), strict=True):
            assert (line["completion"], line["correct"], line["advantage"]) == (
                one.completion, one.outcomes["correct"].score, one.advantage,
            )  # fmt: skip
            assert line["correct.status"] == one.outcomes["correct"].status
            assert line["format.version"] == one.versions["format"]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_exported_files_are_read_by_data_frames(work: Path, library: str) -> None:
    """All three, to the same mean."""
    frames = pytest.importorskip(library)
    for end in ("jsonl", "csv", "parquet"):
        assert 0 == _run("export", "one", "--to", f"run.{end}")[0]
    lines = {"lines": True} if library == "pandas" else {}
    read = {
        "jsonl": (frames.read_json if library == "pandas" else frames.read_ndjson)("run.jsonl", **lines),
        "csv": frames.read_csv("run.csv"),
        "parquet": frames.read_parquet("run.parquet"),
    }
    means = {end: round(frame["correct"].mean(), 9) for end, frame in read.items()}
    assert 1 == len(set(means.values())), means
    assert {48} == {len(frame) for frame in read.values()}


def test_a_run_without_steps_has_no_logs_of_a_step(work: Path) -> None:
    """Rows that were scored at no step are no empty answer to a question about one."""

    @reward
    def always(completion: str) -> float:
        return 1.0

    with Runtime([always], lane="inline", record="runs/rows") as runtime:
        runtime.score([Rollout("p", "c", {})])
    code, _, said = _run("logs", "rows", "--step", "3")
    assert (2, "error: rows: nothing at step 3; it has no steps\n") == (code, said)


def test_a_copy_without_its_log_says_what_it_may_lack(work: Path) -> None:
    """The file of a run that is being written may hold nothing yet: that is not shown as an empty run alone."""
    with Recorder("runs/live") as recorder:
        recorder.flush()
        Path("runs/copy").mkdir()
        shutil.copy("runs/live/record.db", "runs/copy/record.db")
    with contextlib.closing(sqlite3.connect("runs/copy/record.db")) as copy:
        copy.execute("DELETE FROM session")
        copy.commit()
    assert "a copy of a run that is being written lacks" in _run("show", "copy")[1]


def test_json_lines_have_no_number_that_json_lacks(work: Path) -> None:
    """A column of the data that is not finite is null, so that strict readers take the file."""

    @reward
    def always(completion: str) -> float:
        return 1.0

    rows = [Rollout("p", "c", {"x": math.nan, "y": math.inf}), Rollout("q", "c", {"x": 1.0, "y": 2.0})]
    with Runtime([always], lane="inline", record="runs/odd") as runtime:
        runtime.score(rows)
    assert 0 == _run("export", "odd", "--to", "odd.jsonl")[0]
    told = [json.loads(line, parse_constant=pytest.fail) for line in Path("odd.jsonl").read_text().splitlines()]
    assert [(None, None), (1.0, 2.0)] == [(one["column.x"], one["column.y"]) for one in told]


def test_exported_files_are_read_by_datasets(work: Path) -> None:
    """From Parquet and from JSON Lines."""
    datasets = pytest.importorskip("datasets")
    for end, kind in (("jsonl", "json"), ("parquet", "parquet"), ("csv", "csv")):
        assert 0 == _run("export", "one", "--to", f"run.{end}")[0]
        rows = datasets.load_dataset(kind, data_files=f"run.{end}", split="train", cache_dir=str(work / "cache"))
        assert (48, 0) == (len(rows), rows[0]["step"])


def test_an_export_replaces_a_file_only_where_that_is_said(work: Path) -> None:
    """And leaves it as it was where something goes wrong."""
    Path("run.csv").write_text("mine")
    assert "--to run.csv: is there already; --force replaces it" in _run("export", "one", "--to", "run.csv")[2]
    assert "mine" == Path("run.csv").read_text()
    assert 0 == _run("export", "one", "--to", "run.csv", "--force")[0]
    for name, words in (
        ("run.xlsx", "--to run.xlsx: expected a name that ends with .parquet, .csv, .jsonl"),
        ("nowhere/run.csv", "--to nowhere/run.csv: cannot write to nowhere"),
    ):
        code, _, err = _run("export", "one", "--to", name)
        assert (2, True) == (code, words in err)


def test_an_export_that_is_cut_short_leaves_nothing(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the file nor a part of it."""

    def failing(*arguments: object) -> Any:
        yield {"step": 1}
        raise OSError("disk full")

    monkeypatch.setattr("rewardkit.cli.export.export_rows", failing)
    assert 3 == _run("export", "one", "--to", "run.jsonl")[0]
    assert ["mine.py", "rows.jsonl", "runs"] == sorted(one.name for one in work.iterdir())


def test_a_missing_library_is_named(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parquet needs one; the other forms do not."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    code, _, err = _run("export", "one", "--to", "run.parquet")
    assert (2, True) == (code, "written by the library pyarrow: pip install pyarrow" in err)
    assert 0 == _run("export", "one", "--to", "run.csv")[0]


# bad input


def _broken(kind: str) -> None:
    """Make ``runs/bad`` of some kind."""
    shutil.copytree("runs/one", "runs/bad")
    file = Path("runs/bad/record.db")
    if kind == "missing":
        shutil.rmtree("runs/bad")
    elif kind == "without a record":
        file.unlink()
    elif kind == "empty":
        file.write_bytes(b"")
    elif kind == "no record":
        file.write_text("something else, and long enough to be read as a head of a file " * 10)
    elif kind == "another database":
        file.unlink()
        connection = sqlite3.connect(file)
        connection.execute("CREATE TABLE mine (x)")
        connection.commit()
        connection.close()
    elif kind == "newer":
        connection = sqlite3.connect(file)
        connection.execute("PRAGMA user_version = 999")
        connection.close()
    elif kind == "a folder":
        file.unlink()
        file.mkdir()
    elif kind == "cut short":
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    elif kind == "half a page":
        file.write_bytes(file.read_bytes()[:700])


BROKEN = {
    "missing": "there is no record; `rewardkit runs` lists those that there are",
    "without a record": "there is no record",
    "empty": "not a record: the file is empty",
    "no record": "not a record: the file is not an SQLite file",
    "another database": "an SQLite file, but not a record of rewardkit",
    "newer": "a record of version 999, written by a newer release",
    "a folder": "",
    "cut short": "damaged",
    "half a page": "",
}


@pytest.mark.parametrize("kind", BROKEN)
@pytest.mark.parametrize(
    "command", [["show"], ["logs"], ["export", "--to", "out.csv"], ["logs", "--follow"]], ids=" ".join
)
def test_a_run_that_cannot_be_read_is_named_in_one_line(work: Path, kind: str, command: list[str]) -> None:
    """What is wrong with it, and nothing is written."""
    _broken(kind)
    code, out, err = _run(*command, "bad")
    assert (2, "") == (code, out)
    assert re.fullmatch(r"error: runs/bad/record\.db: .+\n", err), err
    assert BROKEN[kind] in err
    assert not Path("out.csv").exists()


@pytest.mark.parametrize("seed", range(8))
def test_a_damaged_run_is_never_a_fault_of_ours(work: Path, seed: int) -> None:
    """Whatever bytes are changed, a command shows what can be read, or says in a line that the record is damaged."""
    chance = random.Random(seed)
    file = Path("runs/one/record.db")
    data = bytearray(file.read_bytes())
    for _ in range(20):
        data[chance.randrange(100, len(data))] = chance.randrange(256)
    file.write_bytes(data)
    for command in (["show"], ["show", "--prompt", "0"], ["logs"], ["export", "--to", "out.csv", "--force"]):
        code, _, err = _run(*command, "one")
        assert code in (0, 2), err
        assert err.count("\n") <= 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everybody's files")
def test_another_users_run_is_named(work: Path) -> None:
    """One that this user may not read."""
    Path("runs/one/record.db").chmod(0)
    code, _, err = _run("show", "one")
    assert (2, True) == (code, "another user's; this one may not read it" in err)


def test_another_users_run_is_named_even_to_root(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same where the tests run as a user who may read all."""
    monkeypatch.setattr("rewardkit.record.sqlite_file.os.access", lambda path, mode, **options: False)
    code, _, err = _run("show", "one")
    reason = "another user's; this one may not read it; ask its owner for read permission"
    assert (2, f"error: runs/one/record.db: {reason}\n") == (code, err)


WITH_RUN = ["show RUN", "logs RUN", "export RUN --to out.csv", "diagnose RUN", "verify RUN", "audit --run RUN"]
WITH_RUN += ["rescore RUN --only-failed correct", "diff RUN correct@1 correct@1", "runs --prune --yes --name RUN"]


@pytest.mark.parametrize("command", WITH_RUN)
def test_a_name_leads_out_of_the_runs_folder_for_no_command(work: Path, command: str) -> None:
    """Neither by dots nor by a link."""
    shutil.move("runs/one", "secret")
    Path("runs/away").symlink_to(work / "secret")
    for name, words in (("..", "not a run's name"), ("away", "a link that leads out of runs/")):
        code, out, err = _run(*(name if word == "RUN" else word for word in command.split()))
        assert (2, "") == (code, out)
        assert words in " ".join(err.split())
    assert 0 == _run("show", "./secret")[0]


def test_completions_of_a_whole_run_are_listed_by_conditions(work: Path) -> None:
    """By text, number and status, in an order; with a step, a prompt or a report it is a mistake."""
    listed = _json("show", "one", "--where", "correct=1", "--where", "step>3", "--sort=-step", "--limit", "3")
    assert [5, 4, 4] == [row["step"] for row in listed["completions"]]
    assert {1.0} == {row["rewards"]["correct"]["score"] for row in listed["completions"]}
    assert listed["fitting"] >= 3
    text = listed["completions"][0]["completion"]
    assert text in {row["completion"] for row in _json("show", "one", "--grep", re.escape(text))["completions"]}
    code, out, _ = _run("show", "one", "--where", "correct=1", "--limit", "2")
    assert (0, f"one: 2 of {_json('show', 'one', '--where', 'correct=1')['fitting']} completions") == (
        code, out.splitlines()[0],
    )  # fmt: skip
    for arguments, message in (
        (["--grep", "x", "--step", "1"], "--grep: lists completions of the run"),
        (["--where", "absent=1"], "nothing is called 'absent'"),
        (["--sort", "absent"], "nothing is called 'absent'"),
        (["--where", "correct=<1"], "no sign '=<'"),
        (["--grep", "("], "not a regular expression"),
    ):
        code, _, err = _run("show", "one", *arguments)
        assert (2, True) == (code, message in " ".join(err.split())), err


@pytest.mark.parametrize("sort", ["completion", "-completion", "prompt_text", "epoch", "-split"])
def test_completions_are_listed_by_texts_epoch_and_split(work: Path, sort: str) -> None:
    """From the first letter on, or from the last; an export has the same order."""
    keys = {
        "completion": lambda row: row["completion"], "prompt_text": lambda row: row["prompt"],
        "epoch": lambda row: row["epoch"], "split": lambda row: row["split"],
    }  # fmt: skip
    _json("export", "one", "--to", "all.jsonl")
    rows = [json.loads(line) for line in Path("all.jsonl").read_text(encoding="utf-8").splitlines()]
    expected = sorted(rows, key=lambda row: row["id"])
    expected.sort(key=keys[sort.removeprefix("-")], reverse=sort.startswith("-"))
    listed = _json("show", "one", "--sort", sort, "--split", "all", "--limit", "1000")["completions"]
    assert [row["id"] for row in expected] == [row["id"] for row in listed]


def test_both_splits_are_a_list_alone(work: Path) -> None:
    """Without one the words say what goes with it."""
    code, _, err = _run("show", "one", "--split", "all")
    message = "--split all: expected train or eval; all goes with a list, by --sort, --where, --grep or --limit"
    assert (2, True) == (code, message in " ".join(err.split()))


def test_ctrl_c_ends_a_search_with_what_is_known(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The finds so far are printed, and how far it came; 130 is the exit code."""
    page = TextSearch.page

    def interrupted(search: TextSearch, selection: Selection, start: int, limit: int, *rest: Any) -> Any:
        if start:
            raise KeyboardInterrupt
        return page(search, selection, start, min(limit, 2), *rest)

    monkeypatch.setattr(TextSearch, "page", interrupted)
    code, out, _ = _run("show", "one", "--grep", ".")
    assert 130 == code
    *finds, last = out.splitlines()
    assert 2 == sum(line.startswith("completion ") for line in finds)
    assert "one: 2 with a match of '.' in 2 of " in last
    assert last.endswith("; stopped, there may be more")
    code, out, _ = _run("show", "one", "--grep", ".", "--json")
    told = json.loads(out)
    assert (130, False, True, 2, 2) == (code, told["ok"], told["stopped"], told["searched"], len(told["completions"]))
    assert {"field": "completion", "name": None, "before": ""}.items() <= told["completions"][0]["match"].items()


@pytest.mark.parametrize("command", ["show", "logs", "export"])
def test_an_expression_that_explodes_is_told_in_a_line(
    work: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """It names the expression and the text, whichever command searches; an export leaves no file."""
    monkeypatch.setattr("rewardkit.record.search_pattern.BOUND_S", 0.05)
    with Recorder("runs/exploding") as recorder:
        text = "word " * 30_000 + "!"
        outcome = Outcome(Status.SCORED, 1.0, text, version="0" * 12)
        recorder.record(ScoreBatch([Rollout("p", text, {})], {"r": [outcome]}, {"r": 1.0}), step=0)
    more = ["--to", "out.csv"] if command == "export" else []
    code, _, err = _run(command, "exploding", "--grep", r"(\w+\s?)*$", *more)
    assert 2 == code
    assert "takes too long on" in " ".join(err.split())
    assert not Path("out.csv").exists()


def test_an_export_is_of_the_completions_that_show_lists(work: Path) -> None:
    """By conditions, an order and a text."""
    chosen = ["--where", "correct=1 and step>3", "--sort=-step", "--grep", "."]
    listed = [row["id"] for row in _json("show", "one", *chosen, "--limit", "1000")["completions"]]
    assert len(listed) == _json("export", "one", "--to", "some.jsonl", *chosen)["rows"]
    lines = Path("some.jsonl").read_text(encoding="utf-8").splitlines()
    assert listed == [json.loads(line)["id"] for line in lines]
