"""The view of health: flags with evidence, the diagnosis in words, and how often it is made."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from patience import wait_for
from synthetic_runs import PLANTED, nothing, run_of
from typer.testing import CliRunner

from rewardkit.cli import diagnose
from rewardkit.cli.program import app
from rewardkit.dashboard import diagnosing
from rewardkit.dashboard.diagnosing import diagnosis_of
from rewardkit.dashboard.query import Query
from rewardkit.dashboard.readers import OpenRun, RunCache
from rewardkit.dashboard.views import health
from rewardkit.dashboard.views.health import Looking, view
from rewardkit.health import examine
from rewardkit.health.detectors import DETECTORS
from rewardkit.health.examine import diagnose_run
from rewardkit.record.recorder import Recorder
from rewardkit.replay.recorded_run import Run
from rewardkit.score_batch import ScoreBatch
from rewardkit.types import Cause, Outcome, Rollout, Status


def _batch(rng: np.random.Generator, hang: float) -> ScoreBatch:
    """Return a step of answers, of which some calls time out."""
    rollouts, outcomes = [], []
    for group in range(8):
        for _ in range(4):
            words = " ".join(f"w{n}" for n in rng.integers(0, 500, 20))
            rollouts.append(Rollout(f"{group}+1=", words, {"answer": str(group + 1)}, list(range(20))))
            if rng.random() < hang:
                outcomes.append(Outcome(Status.FAILED, None, cause=Cause.TIMEOUT, version="a" * 12))
            else:
                outcomes.append(Outcome(Status.SCORED, float(rng.random() < 0.5), version="a" * 12))
    return ScoreBatch(rollouts, {"correct": outcomes}, {"correct": 1.0})


def _record(folder: Path, hang: float) -> Path:
    rng = np.random.default_rng(0)
    with Recorder(folder / "one") as recorder:
        for step in range(30):
            recorder.record(_batch(rng, hang if step >= 20 else 0.0), step=step)
        if hang:
            flag = {"detector": "timeouts", "reward": "correct", "first_step": 20, "last_step": 29, "words": "slow"}
            recorder.event("flag", flag, 29)
    return folder / "one"


def _told(opened: OpenRun) -> dict[str, Any]:
    """Return what the view says once the detectors have looked."""
    assert wait_for(lambda: {"diagnosis", "problem"} & {name for name, told in view(opened, Query()).items() if told})
    found: dict[str, Any] = json.loads(json.dumps(view(opened, Query()), allow_nan=False))
    return found


def test_a_flag_has_evidence_formula_and_next_action(tmp_path: Path) -> None:
    """A planted fault is told in words, with completions to read, and by which rule."""
    with Run.open(_record(tmp_path, 0.5)) as run:
        told = _told(OpenRun(run, RunCache()))
    found = told["diagnosis"]
    (flag,) = [one for one in found["flags"] if one["detector"] == "timeouts"]
    assert (flag["family"], flag["reward"], flag["first_step"], flag["last_step"]) == ("faults", "correct", 20, 29)
    assert flag["action"]
    assert {one["status"] for one in flag["rows"]} == {"failed"}
    assert all(one["text"].startswith("w") and one["step"] >= 20 for one in flag["rows"])
    assert "timeouts of correct (steps 20 to 29)" in found["summary"]
    about = next(one for one in told["detectors"] if one["name"] == "timeouts")
    assert about["summary"]
    assert about["formula"]
    assert about["source"]
    assert about["limits"]
    assert told["as_of_step"] == 29
    assert [one["detector"] for one in told["live"]] == ["timeouts"]


def test_a_run_without_flags_says_what_was_and_was_not_looked_at(tmp_path: Path) -> None:
    """No flag is no silence: the detectors that looked are named, and the others with the reason."""
    with Run.open(_record(tmp_path, 0.0)) as run:
        found = _told(OpenRun(run, RunCache()))["diagnosis"]
    assert found["flags"] == []
    assert re.match(r"No flag in steps 0 to 29 \(30 steps in [^()]+\), 960 completions: ", found["summary"])
    assert {*found["not_looked"], *found["looked"]} == set(DETECTORS)
    assert all(found["not_looked"].values())
    assert "looked in 3 windows and read the texts of a sample of 768, and found nothing." in found["summary"]
    assert "no second scoring of these completions (rewardkit rescore): noise" in found["blind_spots"]


def test_every_family_has_its_question(tmp_path: Path) -> None:
    """Signal, hacking, faults and noise: what the page groups by."""
    with Run.open(_record(tmp_path, 0.0)) as run:
        told = _told(OpenRun(run, RunCache()))
    assert list(told["families"]) == ["signal", "hacking", "faults", "noise"]
    assert {one["family"] for one in told["detectors"]} == set(told["families"])
    assert told["audit"] == f"rewardkit audit rewards.py --run {tmp_path / 'one'}"


def test_a_diagnosis_is_made_once_for_a_state_of_the_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks again is told the same one."""
    made = []
    monkeypatch.setattr(health, "_diagnose", lambda path: made.append(1) or diagnosis_of(path))
    with Run.open(_record(tmp_path, 0.0)) as run:
        opened = OpenRun(run, RunCache())
        for _ in range(5):
            _told(opened)
    assert made == [1]


def test_a_run_that_grew_is_looked_at_again_only_after_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until then the page shows the last diagnosis, and as of which step it is."""
    path = _record(tmp_path, 0.0)
    with Run.open(path) as run:
        opened = OpenRun(run, RunCache())
        _told(opened)
        with Recorder(path, append=True) as recorder:
            recorder.record(_batch(np.random.default_rng(1), 0.0), step=30)
        told = _told(opened)
        assert (told["as_of_step"], told["last_step"], told["current"], told["looking"]) == (29, 30, False, False)
        monkeypatch.setattr(health, "AGAIN_S", 0.0)
        monkeypatch.setattr(health, "SHARE", 0.0)
        assert wait_for(lambda: (told := _told(opened))["as_of_step"] == 30 and told["current"])


def test_a_fault_of_a_detector_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It neither takes the page down nor is taken for a run without flags."""

    def fault(run: object, **options: object) -> None:
        raise ZeroDivisionError("none")

    monkeypatch.setattr(diagnosing, "diagnose_run", fault)
    told = diagnosis_of(str(_record(tmp_path, 0.0)))
    assert told["diagnosis"] is None
    assert told["problem"] == "the detectors failed: ZeroDivisionError: none"


def test_a_process_that_ends_without_an_answer_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed for its memory, say: the page says that nothing was found out."""
    monkeypatch.setattr(health.sys, "executable", "/bin/true")
    with Run.open(_record(tmp_path, 0.0)) as run:
        told = _told(OpenRun(run, RunCache()))
    assert (told["diagnosis"], told["problem"]) == (None, "the detectors' process ended with exit status 0")


def test_of_a_long_run_the_newest_steps_are_looked_at(tmp_path: Path) -> None:
    """A fault in them is found as when all are read; the page says which steps were looked at, and against which."""
    rng = np.random.default_rng(0)
    with Recorder(tmp_path / "one") as recorder:
        for step in range(70):
            recorder.record(_batch(rng, 0.5 if step >= 60 or step == 30 else 0.0), step=step)
    few = diagnosis_of(str(tmp_path / "one"), most=100)["diagnosis"]
    assert (few["steps"], few["coverage"]["baseline"], few["completions"]) == ([40, 69], (0, 19), 30 * 32)
    assert re.match(r"1 flag in steps 40 to 69 \(30 steps in [^()]+\), 960 completions", few["summary"])
    (flag,) = few["flags"]
    with Run.open(tmp_path / "one") as run:
        whole = [one for one in diagnose_run(run).flags if one.first_step >= 40]
    assert [(flag["detector"], flag["value"])] == [(one.detector, one.value) for one in whole]
    everything = diagnosis_of(str(tmp_path / "one"), most=100_000)["diagnosis"]
    assert (everything["steps"], everything["coverage"]["baseline"]) == ([0, 69], None)


def test_a_baseline_is_of_the_same_version(tmp_path: Path) -> None:
    """A new version of a reward is compared with its own first steps, however long the run was before."""
    rng = np.random.default_rng(0)
    with Recorder(tmp_path / "one") as recorder:
        for step in range(90):
            batch = _batch(rng, 0.0)
            if step >= 30:
                newer = [one._replace(version="b" * 12) for one in batch.outcomes["correct"]]
                batch = ScoreBatch(batch.rollouts, {"correct": newer}, batch.weights)
            recorder.record(batch, step=step)
    assert diagnosis_of(str(tmp_path / "one"), most=100)["diagnosis"]["coverage"]["baseline"] == (30, 49)


def test_an_empty_run_is_told_as_such(tmp_path: Path) -> None:
    """There is nothing to look at yet."""
    with Recorder(tmp_path / "one"):
        pass
    with Run.open(tmp_path / "one") as run:
        assert "no completions" in _told(OpenRun(run, RunCache()))["problem"]


def test_an_answer_never_waits_for_the_detectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page is told that the detectors are looking."""
    monkeypatch.setattr(Looking, "look", lambda self, path, version: None)
    with Run.open(_record(tmp_path, 0.0)) as run:
        told = view(OpenRun(run, RunCache()), Query())
    assert (told["looking"], told["diagnosis"], told["problem"]) == (True, None, None)


def test_flags_of_one_kind_are_one_in_words(tmp_path: Path) -> None:
    """A detector that comes up again and again is named once; hacking stands before what is only dull."""
    with Run.open(_record(tmp_path, 0.5)) as run:
        found = diagnose_run(run)
    words = found.summary
    assert words.count("timeouts of correct") == 1
    assert words.endswith(".")


@pytest.mark.cases(3)
@pytest.mark.parametrize("name", [*PLANTED, "healthy"])
def test_the_page_and_the_command_say_the_same(name: str, tmp_path: Path) -> None:
    """Over runs with each planted problem: the same rows, flags, sentence and blind spots, from one function."""
    plant = PLANTED[name][0] if name in PLANTED else nothing
    run_of(plant, seed=3, steps=60, words=8, groups=16, size=8).record(tmp_path / "one")
    shown = CliRunner().invoke(app, ["diagnose", str(tmp_path / "one"), "--json"])
    expected = {key: value for key, value in json.loads(shown.stdout).items() if key != "ok"}
    page = json.loads(
        json.dumps(diagnosis_of(str(tmp_path / "one"))["diagnosis"], default=lambda value: value.tolist())
    )
    for flag in page["flags"]:
        flag["rows"] = [row["completion"] for row in flag["rows"]]
        assert DETECTORS[flag["detector"]].family == flag.pop("family")
    assert expected == {key: page[key] for key in expected}


def test_of_a_long_run_the_page_and_the_command_look_at_the_same_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest of them, unless the command is asked for all; both say what was left out, and how to see it."""
    for module in (examine, diagnosing, diagnose):
        monkeypatch.setattr(module, "MOST_COMPLETIONS", 3000)
    monkeypatch.setattr(examine.diagnose_run, "__kwdefaults__", {**examine.diagnose_run.__kwdefaults__, "most": 3000})
    run_of(PLANTED["timeouts"][0], seed=3, steps=80, words=8).record(tmp_path / "one")
    shown, whole = (
        json.loads(CliRunner().invoke(app, ["diagnose", str(tmp_path / "one"), "--json", *more]).stdout)
        for more in ([], ["--all"])
    )
    page = diagnosis_of(str(tmp_path / "one"), most=3000)["diagnosis"]
    assert ([50, 79], shown["steps"], shown["blind_spots"]) == (page["steps"], page["steps"], page["blind_spots"])
    left_out = f"steps 20 to 49 were left out: rewardkit diagnose {tmp_path / 'one'} --all looks at them"
    assert left_out in page["blind_spots"]
    assert ([0, 79], []) == (whole["steps"], [line for line in whole["blind_spots"] if "left out" in line])
