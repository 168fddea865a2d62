"""``rewardkit diff RUN``: what it foretells is what happens after the change."""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path

import numpy as np
import pytest
from small_run import COMPLETIONS, GROUP, REVERSED, command, drawn, forget, recorded, told

from rewardkit import Recorder, Rollout, Runtime, reward
from rewardkit.advantages import gdpo_advantages, group_advantages, leave_one_out_advantages
from rewardkit.record.reader import RunReader


@reward
def quadratic(completion: str) -> float:
    """Pay for length, and more for more of it."""
    return float(len(completion) ** 2) / 100


COUNTED = "\n\n@reward\ndef counted(completion: str) -> float:\n    return float(len(completion))\n"


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a changed reward."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    Path("new.py").write_text(REVERSED + COUNTED)
    return tmp_path


def _advantages(run: Path) -> np.ndarray:
    """Return the recorded advantages, one row a group."""
    with RunReader(run) as reader:
        return np.array([one.advantage for one in reader.completions()], dtype=float).reshape(-1, GROUP)


def _flips(before: np.ndarray, after: np.ndarray) -> int:
    signs = [np.where(np.abs(one) < 1e-9, 0, np.sign(one)) for one in (before, after)]
    return int((signs[0] * signs[1] == -1).sum())


@pytest.mark.parametrize("weight", [1.0, 0.3])
def test_the_sign_flips_foretold_are_those_after_the_change(work: Path, weight: float) -> None:
    """A run is recorded, its reward's change is looked at, and the same run is recorded with the changed reward."""
    run = recorded(work, {"steady": weight, "longest": 0.5})
    found = told("diff", run, "steady@1", "new.py:steady", "--workers", "1")
    (work / "after.py").write_text((work / "mine.py").read_text() + REVERSED)
    before, after = _advantages(run), _advantages(recorded(work, {"steady": weight, "longest": 0.5}, "two", "after.py"))
    assert 0 < _flips(before, after) == found["sign_flips"]
    signal = [np.abs(one).max(axis=1) > 1e-9 for one in (before, after)]
    assert int((~signal[0] & signal[1]).sum()) == found["groups_gained"]
    assert int((signal[0] & ~signal[1]).sum()) == found["groups_lost"]
    assert float(np.abs(after - before).mean()) == pytest.approx(found["advantage_change"])
    assert (weight, {"longest": 0.5}, "group") == (found["weight"], found["beside"], found["formula"])
    assert (
        f"sign flips       {_flips(before, after)} of {COMPLETIONS} advantages"
        in command("diff", run, "steady", "new.py:steady", "--workers", "1")[1]
    )


def test_a_rescored_version_is_compared_without_being_scored_again(work: Path) -> None:
    """The numbers are those of the reference, also where the file is gone; the reasons are those of the pass."""
    run = recorded(work, {"steady": 1.0, "longest": 0.5})
    now = told("diff", run, "steady@1", "new.py:steady", "--workers", "1")
    told("rescore", run, "--reward", "new.py:steady", "--workers", "1")
    Path("new.py").unlink()
    then = told("diff", run, "steady@1", "steady@2")
    differing = ("old_version", "new_version", "old_cost", "new_cost", "examples")
    alike = [{key: one[key] for key in one if key not in differing} for one in (now, then)]
    assert alike[0] == alike[1]
    for one, other in zip(now["examples"], then["examples"], strict=True):
        assert (one["id"], one["step"], one["completion"]) == (other["id"], other["step"], other["completion"])
        assert ["has it", "turned round"] in (
            [other["old"]["reason"], other["new"]["reason"]],
            ["has it", "turned round"],
        )
        assert other["new"]["reason"] == one["new"]["reason"] == "turned round"


def test_two_versions_of_a_run_are_compared_on_all_that_either_scored(work: Path) -> None:
    """Each is scored where only the other did: the one of the file as it is, the other of its text in the record."""
    run = recorded(work, {"steady": 1.0})
    Path("mine.py").write_text(REVERSED)
    forget()
    with Runtime(["mine.py:steady"], lane="inline", record=Recorder(run, append=True)) as runtime:
        for step in (4, 5):
            runtime.score(drawn(step), step=step)
    found = told("diff", run, "steady@1", "steady@2", "--workers", "1")
    assert (COMPLETIONS + 24, {}) == (found["completions"], found["left_out"])
    texts = [str(one.completion) for step in range(6) for one in drawn(step)]
    assert sum("yes" in one for one in texts) == found["old"]["scored"] - sum("no" in one for one in texts)
    assert sum(one != "skip" for one in texts) == found["new"]["scored"]
    assert sum(one == "fail" for one in texts) == found["old"]["failed"]
    found = told("verify", run, "--all", "--workers", "1")
    assert {"steady@1": "same", "steady@2": "same"} == {one["version"]: one["result"] for one in found["versions"]}
    Path("mine.py").unlink()
    with sqlite3.connect(run / "record.db") as connection:
        connection.execute("UPDATE version SET module = NULL WHERE number = 1")
    connection.close()
    found = told("diff", run, "steady@1", "steady@2", "--workers", "1")
    ((why, count),) = found["left_out"].items()
    assert (COMPLETIONS, 24) == (found["completions"], count)
    assert why.startswith("steady@1 has not scored them and cannot be had: ")


def test_steps_and_a_limit_choose_completions(work: Path) -> None:
    """A step's; and the groups of the first so many."""
    run = recorded(work, {"steady": 1.0})
    found = told("diff", run, "steady", "new.py:steady", "--steps", "1-2", "--workers", "1")
    assert (COMPLETIONS // 2, 6) == (found["completions"], found["groups"])
    assert {1, 2} >= {one["step"] for one in found["examples"]}
    found = told("diff", run, "steady", "new.py:steady", "--limit", "5", "--workers", "1")
    assert (2 * GROUP, 2) == (found["completions"], found["groups"])


def test_a_weight_can_be_tried(work: Path) -> None:
    """With weight 0 nothing changes, whatever the scores."""
    run = recorded(work, {"steady": 1.0, "longest": 0.5})
    found = told("diff", run, "steady", "new.py:steady", "--weight", "0", "--workers", "1")
    assert (True, 0, 0.0) == (found["weightless"], found["sign_flips"], found["advantage_change"])
    assert found["changed"] > 0


def test_a_reward_that_the_run_has_not_joins_the_total(work: Path) -> None:
    """Two references of an unknown name stand beside all of the run's rewards, with weight 1."""
    run = recorded(work, {"longest": 0.5})
    found = told("diff", run, "new.py:steady", "new.py:steady", "--workers", "1")
    assert (1.0, {"longest": 0.5}, 0) == (found["weight"], found["beside"], found["sign_flips"])


def test_a_part_of_a_composition_is_told_apart(work: Path) -> None:
    """The composition keeps its recorded scores, which is said, for it is what counts."""
    run = recorded(work, {"steady": 0.0, "longest": 0.0, "both": 1.0})
    found = told("diff", run, "steady", "new.py:steady", "--workers", "1")
    assert found["weightless"]
    assert ["both has steady as a part, and keeps its scores here: compare both itself"] == found["notes"]


def test_a_group_reward_and_a_composition_score_as_they_did(work: Path) -> None:
    """The same version scored now is the recorded one: groups are whole, and schedules have their step."""
    run = recorded(work, {"both": 1.0, "longest": 1.0})
    for name in ("both", "longest"):
        found = told("diff", run, name, f"mine.py:{name}", "--workers", "1")
        assert (COMPLETIONS, 0, 0) == (found["completions"], found["changed"], found["sign_flips"]), name


def test_a_completion_without_its_text_is_counted(work: Path) -> None:
    """It cannot be scored again, and never counts as 0."""
    run = recorded(work, {"steady": 1.0})
    with sqlite3.connect(run / "record.db") as connection:
        connection.execute("UPDATE completion SET completion = NULL WHERE id IN (2, 3)")
    connection.close()
    found = told("diff", run, "steady", "new.py:steady", "--workers", "1")
    assert {"its text was left out of the record": 2} == found["left_out"]
    assert COMPLETIONS - 2 == found["completions"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["runs/none", "steady", "new.py:steady"], "runs/none/record.db: there is no record"),
        (["new.py", "steady", "new.py:steady"], "no run is among them"),
        (["runs/one", "steady@3", "new.py:steady"], "one: no version steady@3; it has steady@1"),
        (["runs/one", "stedy@1", "new.py:steady"], "one: no reward 'stedy'; it has steady, longest"),
        (["runs/one", "steady", "longest"], "steady@1 and longest@1 are versions of two rewards; name two versions of"),
        (["runs/one", "steady", "absent.py:f"], "absent.py: no such file"),
        (["runs/one", "steady", "stedy"], "stedy: no reward of the run, which has steady, longest; 'stedy': no module"),
        (["runs/one", "steady"], "expected RUN OLD NEW, such as runs/one format@1 new.py:format"),
        (
            ["runs/one", "steady", "new.py:steady", "--steps", "2-9"],
            "one: no steps 2-9 in it; of the split train",
        ),
        (["runs/one", "steady", "new.py:steady", "--steps", "9"], "one: no step 9 in it; of the split train it has"),
        (["runs/one", "steady", "new.py:steady", "--steps", "3-1"], "--steps 3-1: the first step is after the last"),
        (["runs/one", "steady", "new.py:steady", "--steps", "all"], "--steps all: expected a step or two, such as 7"),
        (["runs/one", "steady", "new.py:steady", "--split", "eval"], "it has no completions of the split eval"),
        (["runs/one", "steady", "needs.py:gold"], "needs column 'gold', which a row of the run 'one' lacks"),
        (["runs/one", "steady", "needs.py:ids"], "needs.py:ids: 'ids' reads completion_ids, which a record does not"),
    ],
)
def test_a_mistake_is_one_line(work: Path, arguments: list[str], words: str) -> None:
    """Exit code 2, and what it has instead."""
    recorded(work, {"steady": 1.0, "longest": 1.0})
    Path("needs.py").write_text(
        "from rewardkit import reward\n\n@reward\ndef gold(completion: str, gold: str) -> float:\n    return 1.0\n\n"
        "@reward\ndef ids(completion_ids: list[int]) -> float:\n    return 1.0\n"
    )
    code, out, err = command("diff", *arguments, "--workers", "1")
    assert (2, "") == (code, out)
    assert words in err
    assert 1 == len([line for line in err.splitlines() if line.startswith("error:")])


def test_versions_that_have_nothing_in_common_say_why(work: Path) -> None:
    """A pass of a version that is gone, on other completions than those of the other version."""
    run = recorded(work, {"steady": 1.0})
    told("rescore", run, "--reward", "new.py:steady", "--steps", "0-1", "--workers", "1")
    Path("new.py").unlink()
    with sqlite3.connect(run / "record.db") as connection:
        connection.execute("UPDATE version SET module = NULL")
    connection.close()
    assert COMPLETIONS // 2 == told("diff", run, "steady@1", "steady@2")["completions"]
    code, _, err = command("diff", run, "steady@1", "steady@2", "--steps", "2-3")
    assert 2 == code
    assert "one: nothing to compare: steady@2 has not scored them and cannot be had: " in err
    assert "new.py: no such file" in err


def _made(formula: str, one: np.ndarray, two: np.ndarray) -> np.ndarray:
    if formula == "leave_one_out":
        return leave_one_out_advantages(one + two, 4)
    if formula == "gdpo":
        return gdpo_advantages([one, two], [1.0, 1.0], 4)
    return group_advantages(one + two, 4, scale=formula)


@pytest.mark.parametrize("formula", ["group", "batch", "none", "leave_one_out", "gdpo"])
def test_advantages_are_made_as_the_run_made_them(work: Path, formula: str) -> None:
    """The formula is read from the recorded advantages, whatever wrote them."""
    chance = np.random.default_rng(0)
    with Recorder(work / "runs" / "one") as recorder, Runtime(["new.py:steady", quadratic], lane="inline") as runtime:
        for step in range(3):
            rollouts = [Rollout(f"p{n // 4}", "yes" * int(chance.integers(0, 9)), {"answer": "yes"}) for n in range(16)]
            batch = runtime.score(rollouts, step=step)
            recorder.record(batch, step=step, rewards=runtime.rewards, num_generations=4)
            one, two = (np.array(batch.scores[name], dtype=float) for name in ("steady", "quadratic"))
            made = _made(formula, one, two)
            recorder.advantages(step, "train", made.tolist())
    found = told("diff", "runs/one", "steady", "new.py:steady", "--workers", "1")
    assert (formula, 0, 0.0, []) == tuple(found[key] for key in ("formula", "sign_flips", "advantage_change", "notes"))


def test_a_group_may_lie_over_two_ranks(work: Path) -> None:
    """Each rank records its half of every group, and the trainer's advantages are those of whole groups."""
    chance = np.random.default_rng(0)
    prompts = [f"p{n // 2}" for n in range(8)]
    with Runtime([quadratic], lane="inline") as runtime:
        ranks = [Recorder(work / "runs" / "one", rank=rank) for rank in (0, 1)]
        for step in range(2):
            halves = [[Rollout(one, "a" * int(chance.integers(0, 9)), {}) for one in prompts] for _ in ranks]
            batches = [runtime.score(half, step=step) for half in halves]
            scores = np.stack([np.array(batch.scores["quadratic"], dtype=float).reshape(4, 2) for batch in batches], 1)
            made = group_advantages(scores.reshape(-1), 4, scale="batch").reshape(4, 2, 2)
            for rank, recorder in enumerate(ranks):
                recorder.record(batches[rank], step=step, rewards=runtime.rewards, num_generations=2)
                recorder.advantages(step, "train", made[:, rank].reshape(-1).tolist())
        for recorder in ranks:
            recorder.close()
    found = told("diff", "runs/one", "quadratic", "new.py:counted", "--workers", "1")
    assert ("batch", [], 32, 8) == tuple(found[key] for key in ("formula", "notes", "completions", "groups"))


def test_advantages_of_no_known_formula_are_said_to_be_so(work: Path) -> None:
    """GRPO's own stands in."""
    with Recorder(work / "runs" / "one") as recorder, Runtime([quadratic], lane="inline") as runtime:
        batch = runtime.score([Rollout("p", "yes" * n) for n in range(4)], step=0)
        recorder.record(batch, step=0, rewards=runtime.rewards)
        recorder.advantages(0, "train", [7.0, 7.0, 7.0, 7.0])
    found = told("diff", "runs/one", "new.py:counted", "new.py:counted", "--workers", "1")
    assert "group" == found["formula"]
    assert ["the recorded advantages follow none of TRL's formulas; GRPO's is used"] == found["notes"]
