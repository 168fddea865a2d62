"""``rm eval`` and ``rm monitor``: any set, any reward, and what is kept in a record."""

from __future__ import annotations

import gzip
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from rewardkit import DataError, Recorder, RecordError, RewardError, Rollout, Run, Runtime, reward
from rewardkit.cli.program import app
from trainer_adapter.reward_evaluation.commands import eval_command, monitor_command

REWARDS = '''
from builtin_rewards.judge import PairwiseJudge
from rewardkit import reward
from rewardkit.testing import FakeJudge

@reward
def number(completion: str) -> float:
    """The number that a completion is."""
    return float(completion)

@reward(score_range=(0, 1))
def share(completion: str) -> float:
    """The number as a share."""
    return float(completion) / 10

def first(asked):
    return '{"reason": "So.", "verdict": "tie"}'

judge = PairwiseJudge("m", client=FakeJudge(first))
'''

rm = typer.Typer()
rm.command("eval")(eval_command)
rm.command("monitor")(monitor_command)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(rm, [str(one) for one in arguments], env={"COLUMNS": "80"})


def told(*arguments: object) -> Any:
    done = run(*arguments, "--json", "--inline")
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return json.loads(done.stdout)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with rewards, in which commands run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rw.py").write_text(REWARDS)
    return tmp_path


def pairs(path: str, *sides: tuple[object, object], **columns: object) -> str:
    rows = [{"prompt": f"q{n}", "chosen": c, "rejected": r, **columns} for n, (c, r) in enumerate(sides)]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    Path(path).write_bytes(gzip.compress(text.encode()) if path.endswith("gz") else text.encode())
    return path


def test_jsonl_csv_and_parquet_say_the_same() -> None:
    """Three wins, a tie and a loss, whatever file they are in."""
    sides = (("3", "1"), ("5", "2"), ("9", "8"), ("4", "4.0"), ("1", "2"))
    pairs("p.jsonl", *sides)
    pairs("p.jsonl.gz", *sides)
    csv = "prompt,chosen,rejected\n" + "".join(f"q{n},{c},{r}\n" for n, (c, r) in enumerate(sides))
    Path("p.csv").write_text(csv)
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    import pyarrow

    columns = {"chosen": [[c] for c, _ in sides], "rejected": [[r] for _, r in sides], "prompt": ["q"] * 5}
    parquet.write_table(pyarrow.table(columns), "p.parquet")
    for path in ("p.jsonl", "p.jsonl.gz", "p.csv", "p.parquet"):
        found = told("eval", "rw.py:number", path)
        assert (0.6, 0.2, 5) == tuple(found["overall"][k] if k == "scored" else found["overall"][k]["rate"]
                                      for k in ("accuracy", "tie_rate", "scored"))  # fmt: skip


def test_conversations_best_of_four_and_ties_are_read() -> None:
    """Messages that share a beginning, text as hh-rlhf has it, lists of rejected, lists of chosen."""
    user = {"role": "user", "content": "a number"}
    talk = [[user, {"role": "assistant", "content": said}] for said in ("2", "1")]
    Path("talk.jsonl").write_text(json.dumps({"chosen": talk[0], "rejected": talk[1]}) + "\n")
    assert 1.0 == told("eval", "rw.py:number", "talk.jsonl")["overall"]["accuracy"]["rate"]
    hh = "\n\nHuman: a number\n\nAssistant: "
    Path("hh.jsonl").write_text(json.dumps({"chosen": hh + "1", "rejected": hh + "2"}) + "\n")
    assert 0.0 == told("eval", "rw.py:number", "hh.jsonl")["overall"]["accuracy"]["rate"]
    four = told("eval", "rw.py:number", pairs("four.jsonl", (["3"], ["3.0", "1", "2"]), subset="maths"))
    assert ("best of several", 0.5) == (four["subsets"][0]["kind"], four["subsets"][0]["score"])
    ties = told("eval", "rw.py:number", pairs("ties.jsonl", (["3", "4"], ["1", "2"])))
    assert ("ties", 1.0) == (ties["overall"]["kind"], ties["overall"]["accuracy"]["rate"])


def test_failures_are_told_and_never_won_or_lost() -> None:
    """Most rows fail: the figures are of the others, the first error is told, and the exit code is 1."""
    path = pairs("p.jsonl", ("3", "1"), ("x", "1"), ("2", "y"))
    found = told("eval", "rw.py:number", path)
    assert (1, 2, 1.0) == (
        found["overall"]["scored"], found["overall"]["failed"], found["overall"]["accuracy"]["rate"],
    )  # fmt: skip
    assert not found["ok"]
    assert "ValueError" in found["first_error"]
    done = run("eval", "rw.py:number", path, "--inline")
    assert 1 == done.exit_code
    assert "2 failed, 0 skipped: neither won nor lost" in done.stdout
    assert "NOT passed: 2 of 3 rows failed" in done.stdout


def test_a_judge_of_groups_and_a_share_are_rewards_too() -> None:
    """Rows of one prompt make groups of their own; a reward from 0 to 1 is taken as a probability."""
    Path("same.jsonl").write_text((json.dumps({"prompt": "q", "chosen": "3", "rejected": "1"}) + "\n") * 3)
    judged = told("eval", "rw.py:judge", "same.jsonl")
    assert (3, 1.0, "probability") == (
        judged["overall"]["scored"], judged["overall"]["tie_rate"]["rate"], judged["scale"],
    )  # fmt: skip
    assert "probability" == told("eval", "rw.py:share", "same.jsonl")["scale"]
    assert "logit" == told("eval", "rw.py:share", "same.jsonl", "--scale", "logit")["scale"]


def test_a_terminal_of_80_columns_is_enough() -> None:
    """No line is longer, with subsets, failures and the rows that are lost by most."""
    sides = (*(("3", "1") for _ in range(20)), ("1", "9"), ("x", "1"))
    path = pairs("p.jsonl", *sides, topic="a topic with a name that is longer than it should be")
    done = run("eval", "rw.py:number", path, "--subset", "topic", "--inline", "--out", "rows.jsonl")
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "lost by most  rows 21 by 8" in done.stdout
    rows = [json.loads(line) for line in Path("rows.jsonl").read_text().splitlines()]
    assert [1.0, 0.0, None] == [row["credit"] for row in rows[-3:]]


def test_a_public_set_is_measured_in_its_own_columns(caplog: pytest.LogCaptureFixture) -> None:
    """Votes of an arena, of which ties say nothing, by a column of the set."""
    votes = [("3", "1", "model_a"), ("1", "3", "model_b"), ("1", "3", "model_a"), ("2", "4", "tie")]
    rows = [
        {"prompt": f"q{number}", "response_1": first, "response_2": second, "winner": winner, "language": "English"}
        for number, (first, second, winner) in enumerate(votes)
    ]
    Path("ppe.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    report = told("eval", "rw.py:number", "ppe.jsonl", "--subset", "language")
    assert (3, pytest.approx(2 / 3)) == (report["overall"]["scored"], report["overall"]["accuracy"]["rate"])
    assert ["English"] == [subset["name"] for subset in report["subsets"]]
    assert "ppe.jsonl: 1 of the rows prefer no completion to another, and are left out" in caplog.text


def test_no_accuracy_of_rewardbenchs_ties_is_above_a_whole() -> None:
    """A reward that does all right has 100 % and RewardBench 2's score of up to 1.01, which is named as such."""
    rows = [
        {"id": f"{part}:{prompt}", "prompt": f"q{prompt}", "chosen": chosen, "rejected": ["1", "2"], "subset": "Ties"}
        for prompt in range(9)
        for part, chosen in (("ref", ["90"]), ("tied", ["90", "89.9"]))
    ]
    Path("ties.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    shown = run("eval", "rw.py:number", "ties.jsonl", "--inline").stdout
    assert [] == [share for share in re.findall(r"([\d.]+)%", shown) if float(share) > 100]
    assert re.search(r"Ties +ties +18 +0 +100\.0% .* 1\.010", shown)
    assert "mean of subsets  1.010, each counted once; a score of ties is RewardBench 2's," in shown
    assert max(map(len, shown.splitlines())) <= 80
    four = pairs("four.jsonl", (["3"], ["3.0", "1", "2"]), subset="maths")
    assert not re.search(r"\bscore\b", run("eval", "rw.py:number", four, "--inline").stdout)


def test_limits_are_exit_codes() -> None:
    """An accuracy below what is asked for is 1, and above it 0."""
    path = pairs("p.jsonl", ("3", "1"), ("1", "3"))
    assert 1 == run("eval", "rw.py:number", path, "--min-accuracy", "0.6", "--inline").exit_code
    assert 0 == run("eval", "rw.py:number", path, "--min-accuracy", "0.5", "--inline").exit_code


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"prompt": "q", "chosen": "1"}, "'rejected' is missing"),
        ({"prompt": "q", "chosen": "1", "rejected": None}, "column 'rejected' is empty"),
        ({"prompt": "q", "chosen": "1", "rejected": "1"}, "equals 'rejected'"),
        ({"prompt": "q", "chosen": [{"content": "1"}], "rejected": "2"}, "expected messages with a role"),
        ({"chosen": "1", "rejected": "2"}, "is text without turns"),
        ({"prompt": 3, "chosen": "1", "rejected": "2"}, "column 'prompt' expected text or a list of messages, got 3"),
    ],
    ids=["missing", "one-sided", "equal", "no role", "no prompt", "type"],
)
def test_a_row_that_is_no_preference_is_named(row: dict[str, object], words: str) -> None:
    """File, row and column stand in the error, before anything is scored."""
    Path("p.jsonl").write_text(json.dumps(row) + "\n")
    done = run("eval", "rw.py:number", "p.jsonl")
    assert isinstance(done.exception, DataError)
    assert "p.jsonl:1" in str(done.exception)
    assert words in str(done.exception)


def test_other_bad_input_is_named() -> None:
    """A folder without a model, a column that is not there, a reward that leads nowhere."""
    path = pairs("p.jsonl", ("3", "1"), topic="a")
    Path("empty").mkdir()
    Path("above/trained/checkpoint-5").mkdir(parents=True)
    Path("above/trained/checkpoint-5/model.safetensors").write_bytes(b"")
    for arguments, words in (
        (("eval", "empty", path), "empty: a folder without config.json"),
        (("eval", "above", path), "above: a folder without config.json"),
        (("eval", "above/trained", path), "no model; name one of them: above/trained/checkpoint-5"),
        (("eval", "rw.py:number", path, "--subset", "kind"), "--subset kind: no such column; the rows have 'topic'"),
        (("eval", "rw.py:nobody", path), "nobody"),
        (("eval", "rw.py:number", path, "--out", "rw.py"), "--out rw.py: is rw.py itself"),
        (("eval", "rw.py:number", path, "--min-accuracy", "7"), "--min-accuracy 7"),
        (("monitor", "one", "rw.py:number", path, "--name", "a/b"), "--name 'a/b'"),
    ):
        done = run(*arguments)
        assert isinstance(done.exception, RewardError), done.output
        assert words in str(done.exception)


def test_numbers_below_zero_are_refused_before_anything_is_scored() -> None:
    """A seed and a step; the exit code is that of a mistake in the input."""
    path = pairs("p.jsonl", ("3", "1"))
    for arguments in (
        ("eval", "rw.py:number", path, "--seed", "-1"),
        ("monitor", "one", "rw.py:number", path, "--step", "-1"),
    ):
        done = run(*arguments)
        assert (2, False) == (done.exit_code, os.path.exists("runs"))
        assert "greater than or equal to 0" in done.output


def many(path: str, won: int, of: int) -> str:
    return pairs(path, *(("3", "1") if n < won else ("1", "3") for n in range(of)))


def test_a_monitor_keeps_each_measurement_and_flags_a_fall() -> None:
    """The first is the baseline; noise raises no flag, a fall does; ``show`` and the record have both."""
    first = told("monitor", "one", "rw.py:number", many("canary.jsonl", 160, 200))
    assert (None, 0, False) == (first["baseline"], first["step"], first["refresh"])
    assert ("runs/one", True) == (first["run"], first["new_record"])
    noise = told("monitor", "one", "rw.py:number", many("a.jsonl", 150, 200), "--name", "canary")
    assert (1, 0, False) == (noise["step"], noise["baseline"]["step"], noise["refresh"])
    assert not noise["new_record"]
    fallen = run("monitor", "one", "rw.py:number", many("b.jsonl", 110, 200), "--name", "canary", "--inline")
    assert 1 == fallen.exit_code
    assert "REFRESH" in fallen.stdout
    assert max(map(len, fallen.stdout.splitlines())) <= 80
    with Run.open("runs/one") as held:
        assert [(1, 0.8), (2, 0.75), (3, 0.55)] == held.metrics("canary/canary/accuracy")
        assert 3 == len(held.metrics("canary/canary/ece"))
        flags = [event["body"] for event in held.events if event["kind"] == "flag"]
    assert "refresh" in {flag["detector"] for flag in flags}
    assert "fell from 80.0% to 55.0%" in flags[0]["words"]
    shown = CliRunner().invoke(app, ["show", "one"], env={"COLUMNS": "80"}).stdout
    assert "canary/canary/accuracy" in shown
    assert "refresh" in shown
    again = told("monitor", "one", "rw.py:number", "b.jsonl", "--name", "canary", "--new-baseline")
    assert (None, False) == (again["baseline"], again["refresh"])
    assert not told("monitor", "one", "rw.py:number", "b.jsonl", "--name", "canary")["refresh"]


def test_a_monitor_takes_the_trainings_last_step_and_leaves_its_record_as_it_is() -> None:
    """The measurement is of the last step that was scored, and completions stay as they were."""

    @reward
    def one(completion: str) -> float:
        return 1.0

    with Recorder("runs/two") as recorder, Runtime([one], lane="inline") as runtime:
        for step in range(3):
            batch = runtime.score([Rollout("p", "1")], step=step)
            recorder.record(batch, step=step, rewards={"one": one})
    assert 2 == told("monitor", "two", "rw.py:number", many("canary.jsonl", 5, 5))["step"]
    with Run.open("runs/two") as held:
        assert ([0, 1, 2], 3, [(3, 1.0)]) == (held.steps(), held.count(), held.metrics("canary/canary/accuracy"))


def test_a_monitor_records_nothing_where_nothing_is_known() -> None:
    """Where rows fail, nothing is a measurement; a floor that is surely missed is a flag without a baseline."""
    failed = told("monitor", "one", "rw.py:number", pairs("bad.jsonl", ("x", "1"), ("y", "1")))
    assert (False, False) == (failed["ok"], failed["recorded"])
    assert not os.path.exists("runs/one")
    low = told("monitor", "one", "rw.py:number", many("low.jsonl", 10, 40), "--min-accuracy", "0.6")
    assert "surely below 60.0%" in low["flags"][0]["words"]
    Path("runs/bad").mkdir()
    Path("runs/bad/record.db").write_text("no record")
    done = run("monitor", "bad", "rw.py:number", "low.jsonl", "--inline")
    assert isinstance(done.exception, RecordError)
