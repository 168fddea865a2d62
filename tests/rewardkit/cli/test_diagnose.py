"""``rewardkit diagnose`` as its users see it."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from rewardkit.cli.diagnose import print_diagnosis
from rewardkit.cli.program import app
from rewardkit.cli.render import screen
from rewardkit.health import diagnose_rows, noise_of
from rewardkit.record.recorder import Recorder
from rewardkit.score_batch import ScoreBatch
from rewardkit.types import Cause, Outcome, Rollout, Status

REWARDS = '''\
from rewardkit import reward


@reward
def correct(completion: str, answer: str) -> float:
    """1 if the completion is the answer."""
    return float(completion == answer)
'''


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a reward, rows of 14 prompts, of which 4 are sometimes solved, and a recorded run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("COLUMNS", "80")
    Path("my_rewards.py").write_text(REWARDS)
    rows = [
        {"prompt": f"{p}+1=", "completion": str(p + 1) if p < 4 and k % 2 else f"no {p}.{k}", "answer": str(p + 1)}
        for p in range(14)
        for k in range(4)
    ]
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    _record(Path("runs/half"), 0.5)
    _record(Path("runs/same"), 0.5, score=0.5)
    Recorder("runs/empty").close()
    return tmp_path


FAILING = '''\
from rewardkit import reward


@reward(score_range=(0, 1))
def correct(completion: str, answer: str) -> float | None:
    """1 if the completion is the number; not applicable to an empty one."""
    return float(float(completion) == float(answer)) if completion else None
'''


def test_the_head_counts_the_calls_that_fail_and_rows_that_always_fail_are_named(work: Path) -> None:
    """By reward and cause; two rows whose golds are no numbers are flagged with their error, in quotes."""
    Path("failing.py").write_text(FAILING)
    rows = [
        {"prompt": f"{p}+1=", "completion": "" if k == 3 else str(p + k), "answer": "" if p in (4, 9) else str(p)}
        for p in range(50)
        for k in range(8)
    ]
    Path("calls.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = CliRunner().invoke(app, ["diagnose", "calls.jsonl", "--rewards", "failing.py"])
    assert 0 == result.exit_code
    assert "calls of correct: 336 scored, 50 skipped, 14 failed (3.5%: 14 exception)" in result.stdout
    words = " ".join(result.stdout.split())
    assert "every call of 2 of 50 prompts fails: \"ValueError: could not convert string to float: ''\"" in words
    assert "lines: 33, 73" in words
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_a_summary_without_a_flag_says_how_many_calls_failed() -> None:
    """Two that fail here and there are no flag, and nothing is said to be fine."""
    outcomes = [Outcome(Status.SCORED, score=float(n % 2)) for n in range(64)]
    for row in (5, 40):
        outcomes[row] = Outcome(Status.FAILED, None, cause=Cause.EXCEPTION, error="ValueError: x")
    rollouts = [Rollout(f"{n // 8}", f"answer {n}", {}) for n in range(64)]
    diagnosis = diagnose_rows(ScoreBatch(rollouts, {"correct": outcomes}, {"correct": 1.0}))
    assert diagnosis.summary.endswith("looked and read all texts; 2 of 64 calls of correct failed.")
    counts = {"scored": 62, "skipped": 0, "failed": {"exception": 2}}
    assert {"correct": counts} == diagnosis.as_row()["coverage"]["calls"]


def test_counts_of_calls_name_their_reward_and_a_flag_its_calls() -> None:
    """Of a reward that fails often, one that fails once and one that skips most: each with its own numbers."""
    scored = Outcome(Status.SCORED, score=1.0)
    failed = Outcome(Status.FAILED, None, cause=Cause.EXCEPTION, error="ValueError: x")
    skipped = Outcome(Status.SKIPPED, None)
    varied = [Outcome(Status.SCORED, score=float(n % 2)) for n in range(128)]
    outcomes = {
        "broken": [failed if n % 4 else varied[n] for n in range(128)],
        "once": [failed, *varied[1:]],
        "rare": [scored if n < 8 else skipped for n in range(128)],
    }
    rollouts = [Rollout(f"{n // 8}", f"answer {n}", {}) for n in range(128)]
    diagnosis = diagnose_rows(ScoreBatch(rollouts, outcomes, dict.fromkeys(outcomes, 1.0)))
    (flag,) = [flag for flag in diagnosis.flags if flag.detector == "failures"]
    assert flag.words.startswith("75% of the calls fail: 96 of 128 (96 exception)")
    counts = "96 of 128 calls of broken failed; 1 of 128 calls of once failed; 120 of 128 calls of rare were skipped"
    assert counts == diagnosis.coverage.unscored


def _record(run: Path, share: float, score: float | None = None) -> None:
    rng = np.random.default_rng(0)
    with Recorder(run) as recorder:
        for step in range(12):
            rollouts = [Rollout(f"{n // 4}", f"answer {n} {step}", {}) for n in range(32)]
            values = [float(rng.random() < share) if score is None else score for _ in rollouts]
            recorder.record(_batch(values, rollouts), step=step)


def _batch(values: list[float], rollouts: list[Rollout] | None = None) -> ScoreBatch:
    outcomes = [Outcome(Status.SCORED, value, version="a" * 12) for value in values]
    rollouts = [Rollout("2+2=", "4", {})] * len(values) if rollouts is None else rollouts
    return ScoreBatch(rollouts, {"correct": outcomes}, {"correct": 1.0})


def _run(*arguments: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["diagnose", *arguments], prog_name="rewardkit")
    return done.exit_code, done.stdout, done.stderr or str(done.exception or "")


def test_rows_tell_how_many_groups_give_no_gradient(work: Path) -> None:
    """In a sentence, before anything is trained; the exit code is 0 for a finding as well."""
    code, out, _ = _run("rows.jsonl", "--rewards", "my_rewards.py", "--workers", "1")
    assert 0 == code
    assert "on these rows 71% of groups give no gradient (10 of 14)" in out
    assert "zero_variance" in out
    assert "lines: 17, 18, 19, 20" in out
    assert "no earlier steps to compare with: std_collapse" in out


def test_the_how_to_shows_what_is_printed(work: Path, root: Path) -> None:
    """The page has this very example; its numbers of rows are those that the command prints."""
    output = CliRunner().invoke(app, ["diagnose", "rows.jsonl", "--rewards", "my_rewards.py"]).output
    page = (root / "docs/how-to/why-is-my-reward-flat.md").read_text()
    printed = [line for line in output.splitlines() if re.match(r"  (lines|rows): ", line)]
    assert printed == re.findall(r"^  (?:lines|rows): [0-9, ]+$", page, re.MULTILINE)[: len(printed)]


def test_rows_that_were_scored_before_need_no_rewards(work: Path) -> None:
    """What `rewardkit score --out` wrote is diagnosed as the rows themselves are."""
    scored = CliRunner().invoke(app, ["score", "my_rewards.py", "rows.jsonl", "--inline", "--out", "scored.jsonl"])
    assert 0 == scored.exit_code
    again = json.loads(_run("scored.jsonl", "--json")[1])
    fresh = json.loads(_run("rows.jsonl", "--rewards", "my_rewards.py", "--workers", "1", "--json")[1])
    assert fresh == again
    lines = Path("scored.jsonl").read_text().replace('"status": "scored"', '"status": "won"', 1)
    Path("odd.jsonl").write_text(lines)
    assert "odd.jsonl:1: reward 'correct': expected an outcome" in _run("odd.jsonl")[2]


def test_a_folder_that_datasets_saved_is_rows_and_no_run(work: Path) -> None:
    """So is an Arrow file, as in every other command."""
    pytest.importorskip("datasets").Dataset.from_json("rows.jsonl").save_to_disk("saved")
    expected = json.loads(_run("rows.jsonl", "--rewards", "my_rewards.py", "--workers", "1", "--json")[1])
    for path in ("saved", next(Path("saved").glob("*.arrow"))):
        assert expected == json.loads(_run(str(path), "--rewards", "my_rewards.py", "--workers", "1", "--json")[1])


def test_a_run_without_flags_says_so(work: Path) -> None:
    """And says what it looked at, and what it could not look at."""
    code, out, _ = _run("runs/half")
    assert 0 == code
    out = " ".join(out.split())
    assert re.search(r"steps 0 to 11 \(12 steps in [^()]+\), 384 completions; rewards: correct", out)
    assert re.search(r"No flag in steps 0 to 11 \(12 steps in [^()]+\), 384 completions: ", out)
    assert re.search(
        r"\d+ detectors looked in 2 windows and read the texts of a sample of 3\d\d, and found nothing\.", out
    )
    assert "cannot be seen" in out
    assert "whether completions were truncated is not recorded: clipped" in out


def test_a_flag_is_shown_with_rows_and_next_action(work: Path) -> None:
    """The table fits 80 columns."""
    code, out, _ = _run("runs/same")
    assert 0 == code
    assert "all 320 scores are 0.5" in out or "scores are 0.5" in out
    assert "completions: 1, 2, 3" in out
    assert "next: Score some completions" in out
    table = out[out.index("flag ") : out.index("constant, correct, steps")]
    assert max(map(len, table.splitlines())) <= 80


def test_the_next_action_names_the_run_and_for_rows_no_run(work: Path) -> None:
    """So that the command can be copied; rows, such as those of a file with tabs, have no record to look into."""
    Path("failing.py").write_text(
        "from rewardkit import reward\n\n@reward\ndef failing(completion: str) -> float:\n    raise ValueError\n"
    )
    Path("words.tsv").write_text("prompt\tcompletion\n" + "".join(f"{n // 2}=\tfour\n" for n in range(80)))
    out = " ".join(_run("words.tsv", "--rewards", "failing.py", "--workers", "1")[1].split())
    assert "next: See the errors: rewardkit score shows them." in out
    scored = ["score", "failing.py", "words.tsv", "--inline", "--record", "runs/failing"]
    assert 0 == CliRunner().invoke(app, scored).exit_code
    assert "rewardkit logs runs/failing --reward failing --status failed" in " ".join(_run("runs/failing")[1].split())


def test_json_has_flags_as_data(work: Path) -> None:
    """The same in one object."""
    told = json.loads(_run("runs/same", "--json")[1])
    assert (True, [0, 11], 384, 1.0) == (told["ok"], told["steps"], told["completions"], told["no_gradient"])
    (flag,) = told["flags"]
    assert ("constant", "correct", 0.5, [1, 2, 3]) == (
        flag["detector"],
        flag["reward"],
        flag["value"],
        flag["rows"][:3],
    )
    assert "zero_variance" in told["looked"]
    assert "noise" in told["not_looked"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["runs/absent"], "there is no record"),
        (["runs/empty"], "the run has no completions"),
        (["absent.jsonl", "--rewards", "my_rewards.py"], "absent.jsonl"),
        (["rows.jsonl"], "rows.jsonl: who scores these rows? Name the rewards: --rewards my_rewards.py"),
        (["rows.jsonl", "--rewards", "my_rewards.py", "--steps", "1-2"], "rows have no steps"),
        (["runs/half", "--rewards", "my_rewards.py"], "--rewards goes with a file of rollouts"),
        (["runs/half", "--steps", "x"], "--steps x: expected a step or two, such as 7 or 10-20"),
        (["runs/half", "--steps", "9-2"], "the first step is after the last"),
        (["runs/half", "--steps", "90-99"], "lacks these steps; it has 0 to 11"),
        (["my_rewards.py"], "my_rewards.py"),
    ],
    ids=[
        "no run",
        "empty run",
        "no data",
        "no rewards",
        "steps of rows",
        "rewards of a run",
        "no steps",
        "backwards",
        "beyond",
        "code",
    ],
)
def test_bad_input_is_named_in_one_line(work: Path, arguments: list[str], words: str) -> None:
    """The thing, the value, the fix."""
    code, out, err = _run(*arguments)
    assert (True, "") == (code != 0, out)
    assert words in err
    assert 1 == len(err.strip().splitlines())


def test_noise_of_what_never_varies_is_not_known(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two scorings that are one constant tell no share: a dash stands there and no number."""
    told = {"correct": noise_of([0.5] * 8, [0.5] * 8, [0] * 4 + [1] * 4)}
    print_diagnosis(replace(diagnose_rows(_batch([0.5] * 8)), noise=told), "rows.jsonl", screen())
    assert ["correct", "-", "-", "-", "-"] == capsys.readouterr().out.partition("reward scored twice")[2].split()[6:11]
