"""Folders that a suite graded are graded again from what was kept of them, long after the agents' own are gone."""

from __future__ import annotations

import shutil
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from small_run import command, told

from rewardkit import Rollout, Run, Runtime, SealedWorkspace, Workspace
from rewardkit.extending import OwnText
from rewardkit.jailed.sealed_store import keep_sealed
from rewardkit.replay.graded_folders import DAMAGED, NO_DIGEST, NOT_KEPT, SEVERAL_COLUMNS
from rewardkit.suites.suite_verdict import SuiteStatus, SuiteVerdict, graded_digest

REWARDS = """
from rewardkit import Score, Workspace, check_suite, group_reward, reward

TESTS = {"test_s.py": "from solution import double\\ndef test_a():\\n    assert double(123456) == 246912\\n"}


@reward(timeout_s=120, default=None)
def fixed(workspace: Workspace) -> Score:
    return check_suite(workspace, TESTS, confidence=0.1, timeout_s=30).score()


@reward
def noted(workspace: Workspace | None = None) -> Score:
    return Score(float(workspace is not None and workspace.exists("notes.txt")), "looked at")


@group_reward(timeout_s=120, default=None)
def ranked(workspace: list[Workspace]) -> list[Score]:
    return [check_suite(folder, TESTS, confidence=0.1, timeout_s=30).score() for folder in workspace]


@reward(timeout_s=120, default=None)
def compared(workspace: Workspace, original: Workspace) -> Score:
    return check_suite(workspace, TESTS, original=original, protected=("lock",), confidence=0.1, timeout_s=30).score()


@reward(timeout_s=120, default=None)
def both(first: Workspace, second: Workspace) -> Score:
    return check_suite(first, TESTS, confidence=0.1, timeout_s=30).score()
"""
SOLUTIONS = ("def double(x):\n    return 2 * x\n", "def double(x):\n    return 3 * x\n", "")


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with rewards, whose run keeps what it grades."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("REWARDKIT_SEALED", "runs/one/sealed")
    (tmp_path / "mine.py").write_text(REWARDS)
    return tmp_path


def recorded(work: Path, *names: str, **columns: Any) -> Path:
    """Record the rewards' scores of a folder for each solution, all of one group, and remove the folders."""
    folders = []
    for number, solution in enumerate(SOLUTIONS):
        folders.append(work / f"agent-{number}")
        folders[-1].mkdir()
        folders[-1].joinpath("solution.py").write_text(solution)
    rollouts = [
        Rollout("double", f"done {number}", {"workspace": OwnText(str(folder)), **columns})
        for number, folder in enumerate(folders)
    ]
    run = work / "runs" / "one"
    with Runtime([f"{work}/mine.py:{name}" for name in names], record=run, workers=1) as runtime:
        batch = runtime.score(rollouts, step=0)
    assert [1.0, 0.0, 0.0] == batch.scores[names[0]]
    for folder in folders:
        shutil.rmtree(folder)
    return run


def only(check: dict[str, Any], number: int = 0) -> tuple[str, int, int, dict[str, int]]:
    """Return what became of a version: its result, how many are the same and different, and what was not judged."""
    version = check["versions"][number]
    return version["result"], version["same"], version["different"], version["not_judged"]


def test_what_was_graded_is_graded_again(work: Path) -> None:
    """Its digest is in the record, a file of that name beside it, and nothing is left among the temporary files."""
    run = recorded(work, "fixed")
    with Run.open(run) as opened:
        reasons = [row.outcomes["fixed"].reason or "" for row in opened.completions()]
    digests = [SealedWorkspace({"solution.py": solution.encode()}).digest for solution in SOLUTIONS]
    assert digests == [graded_digest(reason) for reason in reasons]
    assert sorted(f"{digest}.zip" for digest in digests) == sorted(file.name for file in (run / "sealed").iterdir())
    assert ("same", 3, 0, {}) == only(told("verify", run, "--all", "--workers", "1"))


def test_a_score_that_the_folder_does_not_give_is_found(work: Path) -> None:
    """A reason that names another folder, as after a fault of the record."""
    run = recorded(work, "fixed")
    right, wrong, _ = (SealedWorkspace({"solution.py": text.encode()}).digest for text in SOLUTIONS)
    with zipfile.ZipFile(run / "sealed" / f"{wrong}.zip") as archive:
        assert ["0", "names"] == archive.namelist()
    import sqlite3

    with sqlite3.connect(run / "record.db") as connection:
        connection.execute("UPDATE said SET reason = replace(reason, ?, ?)", (right, wrong))
    connection.close()
    assert ("different", 2, 1, {}) == only(told("verify", run, "--all", "--workers", "1", code=1))


def test_what_cannot_be_graded_again_is_counted_by_the_reason(work: Path) -> None:
    """What was not kept, what is damaged, and what the record does not name."""
    run = recorded(work, "fixed", "noted")
    files = [run / "sealed" / f"{SealedWorkspace({'solution.py': text.encode()}).digest}.zip" for text in SOLUTIONS]
    files[0].unlink()
    files[1].write_bytes(b"PK")
    checks = told("verify", run, "--all", "--workers", "1")
    assert ("same", 1, 0, {NOT_KEPT: 1, DAMAGED: 1}) == only(checks)
    assert ("not judged", 0, 0, {NO_DIGEST: 3}) == only(checks, 1)
    _, text, _ = command("verify", run, "--all", "--workers", "1", "--reward", "fixed")
    assert f"fixed@1: 1 not judged: {NOT_KEPT}" in text


@pytest.mark.full
def test_a_group_is_graded_again_where_all_of_it_was_kept(work: Path) -> None:
    """Otherwise none of it is."""
    run = recorded(work, "ranked")
    assert ("same", 3, 0, {}) == only(told("verify", run, "--all", "--workers", "1"))
    next((run / "sealed").iterdir()).unlink()
    reasons = {NOT_KEPT: 1, "another completion of its group cannot be scored again": 2}
    assert ("not judged", 0, 0, reasons) == only(told("verify", run, "--all", "--workers", "1"))


@pytest.mark.full
def test_of_two_folders_the_one_that_the_record_lacks_was_graded(work: Path) -> None:
    """The other is the data set's, and read where it lies."""
    (work / "template").mkdir()
    run = recorded(work, "compared", original=str(work / "template"))
    assert ("same", 3, 0, {}) == only(told("verify", run, "--all", "--workers", "1"))


def test_another_reward_can_grade_what_was_kept(work: Path) -> None:
    """``rescore`` gives it the folder that the run's reward has graded."""
    run = recorded(work, "fixed")
    (work / "other.py").write_text(
        "from rewardkit import Workspace, reward\n\n\n@reward\ndef fixed(workspace: Workspace) -> float:\n"
        "    return float('2 *' in workspace.read_text('solution.py'))\n"
    )
    result = told("rescore", run, "--reward", f"{work}/other.py:fixed", "--workers", "1")
    assert (3, 1 / 3) == (result["passes"][0]["scored"], pytest.approx(result["passes"][0]["mean"]))


def test_what_has_no_room_or_no_place_is_not_kept(
    work: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The log says so, and the score stands; a bound that is no number is refused."""
    small, large = SealedWorkspace({"a": b"1"}), SealedWorkspace({"a": bytes(5_000)})
    monkeypatch.setenv("REWARDKIT_SEALED_BYTES", "5000")
    for workspace in (small, large, small):
        keep_sealed(workspace)
    assert [f"{small.digest}.zip"] == [file.name for file in Path("runs/one/sealed").iterdir()]
    assert "would hold more than 5,000 bytes" in caplog.text
    Path("file").write_text("")
    monkeypatch.setenv("REWARDKIT_SEALED", "file/inner")
    keep_sealed(small)
    assert "is not kept: [Errno 20]" in caplog.text
    monkeypatch.setenv("REWARDKIT_SEALED_BYTES", "1e9")
    with pytest.raises(Exception, match="REWARDKIT_SEALED_BYTES='1e9': expected a whole number"):
        keep_sealed(small)


@pytest.mark.parametrize("name", ["../out", "/out", "a/../../out", "a\x01/x"])
def test_no_kept_name_leads_out_of_the_folder(name: str, work: Path) -> None:
    """A crafted file is refused whole."""
    from rewardkit.replay.graded_folders import GradedFolders

    sealed = SealedWorkspace({name: b"1"})
    sealed.save(work / "sealed")
    with GradedFolders(work) as folders:
        if name == "a\x01/x":
            assert sealed.digest == Workspace(folders.path(sealed.digest)).sealed().digest
        else:
            with pytest.raises(Exception, match=DAMAGED):
                folders.path(sealed.digest)
    assert not list(work.rglob("out"))


def test_the_digest_ends_every_reason() -> None:
    """Also of one that says more than a record keeps; what stands elsewhere is no digest."""
    verdict = SuiteVerdict(SuiteStatus.FAILED, left_out={"x" * 5_000 + str(number): "" for number in range(5)})
    assert graded_digest(verdict.reason()) is None
    whole = SuiteVerdict(**{**_fields(verdict), "digest": "ab" * 32}).reason()
    assert ("ab" * 32, True) == (graded_digest(whole), len(whole) < 10_000)
    unsuitable = SuiteVerdict(SuiteStatus.UNSUITABLE, digest="cd" * 32, error="the suite has no tests").score()
    assert ("cd" * 32, None) == (graded_digest(unsuitable.reason or ""), unsuitable.value)
    assert [None, None, None] == [graded_digest(text) for text in (f"{whole} and more", f"{whole}\n", "folder abc")]


def _fields(verdict: SuiteVerdict) -> dict[str, Any]:
    return {name: getattr(verdict, name) for name in SuiteVerdict.__dataclass_fields__}


def test_where_the_record_does_not_say_which_folder_was_graded(work: Path) -> None:
    """None is guessed."""
    folder = work / "agent"
    folder.mkdir()
    (folder / "solution.py").write_text(SOLUTIONS[0])
    run = work / "runs" / "one"
    columns = {"first": OwnText(str(folder)), "second": OwnText(str(folder))}
    with Runtime([f"{work}/mine.py:both"], record=run, workers=1) as runtime:
        assert [1.0] == runtime.score([Rollout("p", "c", columns)], step=0).totals
    assert ("not judged", 0, 0, {SEVERAL_COLUMNS: 1}) == only(told("verify", run, "--all", "--workers", "1"))
