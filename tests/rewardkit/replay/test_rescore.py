"""``rewardkit rescore``: stored completions are scored again, and the run's own scores stay."""

from __future__ import annotations

import sqlite3
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from small_run import COMPLETIONS, REVERSED, command, drawn, recorded, told

from rewardkit import Recorder, Runtime, Status
from rewardkit.loading.registry import resolve_set
from rewardkit.record.reader import RunReader
from rewardkit.replay.rescore import rescore, unanswered_completions
from rewardkit.replay.stored import choose


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a changed reward."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    Path("new.py").write_text(REVERSED)
    return tmp_path


def test_a_changed_reward_becomes_a_further_version(work: Path) -> None:
    """Its scores are a pass beside the run's, of the steps that were asked for."""
    run = recorded(work, {"steady": 1.0, "longest": 0.5})
    with RunReader(run) as reader:
        before = list(reader.completions())
    (one,) = told("rescore", run, "--reward", "new.py:steady", "--steps", "1-2", "--workers", "1")["passes"]
    assert ("steady@2", COMPLETIONS // 2, {}) == (one["version"], one["completions"], one["left_out"])
    with RunReader(run) as reader:
        assert before == list(reader.completions())
        (kept,) = reader.passes
        assert (COMPLETIONS // 2, {"reward": "new.py:steady", "steps": "1-2", "split": "train"}) == (
            kept.completions,
            kept.about,
        )
        said = reader.rescored(kept.id, [completion.id for completion in before])
        for completion in before:
            if completion.step not in (1, 2):
                assert completion.id not in said
            elif completion.completion == "skip":
                assert Status.SKIPPED is said[completion.id].status
            else:
                score = float("yes" not in str(completion.completion))
                assert (score, "turned round") == (said[completion.id].score, said[completion.id].reason)
        own = [x.outcomes["steady"] for x in before if x.step in (1, 2)]
        scores = [outcome.score for outcome in own if outcome.status is Status.SCORED and outcome.score is not None]
        assert sum(scores) / len(scores) == pytest.approx(one["recorded_mean"])
        assert [None, "rescore"] == [reader.versions[-1].first_step, reader.versions[-1].origin]


def test_scoring_twice_gives_two_passes(work: Path) -> None:
    """Of one version; a nondeterministic reward has other scores in each."""
    run = recorded(work, {"coin": 1.0})
    for number in (1, 2):
        (one,) = told("rescore", run, "--reward", "mine.py:coin", "--workers", "1")["passes"]
        assert (number, "coin@1") == (one["pass"], one["version"])
    with RunReader(run) as reader:
        first, second = (reader.pass_columns(one.id).scores for one in reader.passes)
        assert COMPLETIONS == len(first) == int((first != second).sum())


@pytest.mark.parametrize("name", ["steady", "longest", "both"])
def test_the_same_version_says_the_same_again(work: Path, name: str) -> None:
    """Steps, groups and schedules are those of the run: of a reward, a group reward and a composition."""
    run = recorded(work, {name: 1.0})
    with RunReader(run) as reader:
        found = resolve_set([f"mine.py:{name}"])
        rescore(reader, name, found, choose(reader), lane="inline")
        before = {one.id: one.outcomes[name] for one in reader.completions()}
        after = reader.rescored(1, list(before))
        assert [(1, f"{name}@1", "run")] == [(one.number, one.label, one.origin) for one in reader.versions]
        assert {k: (v.status, v.score, v.reason) for k, v in before.items()} == {
            k: (v.status, v.score, v.reason) for k, v in after.items()
        }
        statuses = Counter(one.status for one in after.values())
        assert name == "longest" or statuses[Status.FAILED]


def test_a_part_of_a_group_is_scored_with_the_whole(work: Path) -> None:
    """One completion that is wanted has the score that it has in its group, and only it is kept."""
    run = recorded(work, {"longest": 1.0})
    with RunReader(run) as reader:
        before = {one.id: one.outcomes["longest"].score for one in reader.completions()}
        wanted = np.array([3, 6, 7])
        rescore(reader, "longest", resolve_set(["mine.py:longest"]), choose(reader), wanted=wanted, lane="inline")
        numbers = reader.pass_columns(1)
        assert wanted.tolist() == numbers.ids.tolist()
        assert [before[one] for one in (3, 6, 7)] == numbers.scores.tolist()


def test_a_judge_that_was_down_is_asked_again(work: Path) -> None:
    """Only what it failed on, by the version that failed; and then nothing is left."""
    run = recorded(work, {"judge": 1.0, "longest": 0.5})
    with RunReader(run) as reader:
        failed = [one.id for one in reader.completions(reward="judge", status="failed")]
    assert 0 < len(failed) < COMPLETIONS
    (one,) = told("rescore", run, "--only-failed", "judge", "--workers", "1")["passes"]
    assert ({"infrastructure": len(failed)}, 0, None) == (one["failed"], one["scored"], one["mean"])
    Path("up").touch()
    (one,) = told("rescore", run, "--only-failed", "judge", "--limit", "2", "--workers", "1")["passes"]
    assert ({}, 2) == (one["failed"], one["scored"])
    assert {"requests": 1000.0, "cost_usd": 2.0} == one["per_1000"]
    (one,) = told("rescore", run, "--only-failed", "judge", "--workers", "1")["passes"]
    assert ({}, len(failed) - 2, "judge@1") == (one["failed"], one["scored"], one["version"])
    assert {"passes": [], "ok": True} == told("rescore", run, "--only-failed", "judge")
    assert (0, "judge: nothing is unanswered\n") == command("rescore", run, "--only-failed", "judge")[:2]
    with RunReader(run) as reader:
        assert sorted(failed[:2]) == reader.pass_columns(2).ids.tolist()
        assert sorted(failed[2:]) == reader.pass_columns(3).ids.tolist()
        assert [1, 2, 3] == [one.id for one in reader.passes]


def test_another_judge_answers_in_its_place(work: Path) -> None:
    """With --reward it is another version of that name, which is asked all that failed."""
    run = recorded(work, {"judge": 1.0})
    Path("other.py").write_text(
        "from rewardkit import reward\n\n@reward\ndef small(completion: str) -> float:\n    return 0.5\n"
    )
    told("rescore", run, "--only-failed", "judge", "--reward", "other.py:small", "--workers", "1")
    again = told("rescore", run, "--only-failed", "judge", "--reward", "other.py:small", "--workers", "1")
    assert [] == again["passes"]
    with RunReader(run) as reader:
        stored = choose(reader)
        (one,) = reader.passes
        assert ("judge", 2, len(unanswered_completions(reader, stored, "judge"))) == (
            one.reward,
            one.version,
            one.completions,
        )


def test_a_judge_that_is_gone_is_named(work: Path) -> None:
    """With what helps."""
    run = recorded(work, {"judge": 1.0})
    Path("mine.py").unlink()
    with sqlite3.connect(run / "record.db") as connection:
        connection.execute("UPDATE version SET module = NULL")
    connection.close()
    code, _, err = command("rescore", run, "--only-failed", "judge")
    assert 2 == code
    assert "error: judge@1 cannot be asked again: " in err
    assert "mine.py: no such file; name one with --reward" in err


def test_texts_that_were_left_out_are_counted(work: Path) -> None:
    """The others are scored; of a group that is scored together, none is."""
    run = recorded(work, {"steady": 1.0, "longest": 1.0})
    with sqlite3.connect(run / "record.db") as connection:
        connection.execute("UPDATE completion SET completion = NULL WHERE id = 2")
    connection.close()
    why = "its text was left out of the record"
    with RunReader(run) as reader:
        found = rescore(reader, "steady", resolve_set(["mine.py:steady"]), choose(reader), lane="inline")
        assert (COMPLETIONS - 1, {why: 1}) == (found.completions, found.left_out)
        found = rescore(reader, "longest", resolve_set(["mine.py:longest"]), choose(reader), lane="inline")
        assert (COMPLETIONS - 4, {why: 4}) == (found.completions, found.left_out)
    with sqlite3.connect(run / "record.db") as connection:
        connection.execute("UPDATE completion SET completion = NULL")
    connection.close()
    code, _, err = command("rescore", run, "--reward", "mine.py:steady", "--workers", "1")
    assert (2, True) == (code, f"one: no completions to score with 'steady': {COMPLETIONS}: {why}" in err)


def test_a_reward_that_cannot_score_leaves_no_pass(work: Path) -> None:
    """A column that the run lacks, and a reward that does not load in a worker, are told before anything is kept."""
    run = recorded(work, {"steady": 1.0})
    Path("needs.py").write_text(
        "from rewardkit import reward\n\n@reward\ndef gold(completion: str, gold: str) -> float:\n    return 1.0\n"
    )
    code, _, err = command("rescore", run, "--reward", "needs.py:gold", "--workers", "1")
    assert (2, True) == (code, "needs column 'gold', which a row of the run 'one' lacks" in err)
    for arguments, words in (
        (["--reward", "absent.py:f"], "absent.py: no such file"),
        (["--reward", "mine.py"], "'mine.py' holds 5 rewards; name one: mine.py:steady"),
        ([], "nothing to score with: give --reward file.py:name, or --only-failed NAME"),
        (["--only-failed", "jugde"], "one: no reward 'jugde'; it has steady"),
        (["--only-failed", "steady", "--name", "other"], "--name other: not with --only-failed steady"),
        (
            ["--reward", "new.py:steady", "--steps", "9"],
            "one: no step 9 in it; of the split train it has steps 0 to 3",
        ),
    ):
        code, _, err = command("rescore", run, *arguments, "--workers", "1")
        assert (2, True) == (code, words in err), err
    with RunReader(run) as reader:
        assert ([], 1) == (reader.passes, len(reader.versions))


def test_a_run_that_is_being_recorded_can_be_rescored(work: Path) -> None:
    """The training records on, and its batches stay what they are."""
    run = recorded(work, {"steady": 1.0})
    recorder = Recorder(run, append=True)
    with Runtime(["mine.py:steady"], lane="inline", record=recorder) as runtime:
        for step in (10, 11):
            runtime.score(drawn(step), step=step)
            assert recorder.flush()
            told("rescore", run, "--reward", "new.py:steady", "--workers", "1")
    with RunReader(run) as reader:
        assert [0, 1, 2, 3, 10, 11] == reader.steps()
        assert [("run", 2), ("rescore", 2)] == sorted(Counter(one["purpose"] for one in reader.sessions).items())[::-1]
        assert [True, True] == [one.ended is not None for one in reader.passes]
        assert COMPLETIONS + 24 == reader.passes[-1].completions
