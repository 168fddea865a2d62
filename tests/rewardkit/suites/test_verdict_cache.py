"""Equal folders are graded once, and what the machine made fail is graded again."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from rewardkit import InfrastructureError, Rollout, Runtime, Score, SealedWorkspace, Status, check_suite, reward
from rewardkit.suites import verdict_cache
from rewardkit.suites.suite_jail import GradedRun, SuiteJail
from rewardkit.suites.suite_verdict import SuiteResult, SuiteStatus, SuiteVerdict
from rewardkit.suites.verdict_cache import graded_once

TESTS = {"test_s.py": "from solution import double\ndef test_a():\n    assert double(123456) == 246912\n"}
RIGHT, WRONG = "def double(x):\n    return 2 * x\n", "def double(x):\n    return 3 * x\n"
PASSED = SuiteVerdict(
    SuiteStatus.PASSED,
    (SuiteResult("test_s.py::test_a", "passed", 0.1),),
    {"f": ("test_s.py::test_a",)},
    {"odd\udcff": "a link"},
    ("test_s.py::test_a",),
    2,
    0.5,
    "0" * 64,
    0.25,
)


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    verdict_cache._shared_folder.cache_clear()
    yield
    verdict_cache._shared_folder.cache_clear()


class Gradings:
    """Counts gradings, each of which gives the next of some verdicts."""

    def __init__(self, *verdicts: SuiteVerdict | Exception) -> None:
        self.verdicts = list(verdicts)
        self.count = 0

    def __call__(self) -> SuiteVerdict:
        self.count += 1
        verdict = self.verdicts[min(self.count, len(self.verdicts)) - 1]
        if isinstance(verdict, Exception):
            raise verdict
        return verdict


def _verdict(status: SuiteStatus, error: str = "") -> SuiteVerdict:
    return SuiteVerdict(status, PASSED.results, error=error)


def test_what_was_graded_is_not_graded_again() -> None:
    """The verdict is the same in all, and says that it was kept; other parts are another grading."""
    grade = Gradings(PASSED)
    first, again = graded_once(("a", 1), grade), graded_once(("a", 1), grade)
    assert (PASSED, SuiteVerdict(**{**_fields(PASSED), "cached": True}), 1) == (first, again, grade.count)
    assert "as an equal folder before; folder 000" in again.reason()
    assert not graded_once(("a", 2), grade).cached


def _fields(verdict: SuiteVerdict) -> dict[str, Any]:
    return {name: getattr(verdict, name) for name in SuiteVerdict.__dataclass_fields__}


@pytest.mark.parametrize("status", list(SuiteStatus))
def test_a_verdict_of_any_kind_is_kept(status: SuiteStatus) -> None:
    """A failure too: equal code fails equally."""
    grade = Gradings(_verdict(status))
    assert [False, True] == [graded_once((status,), grade).cached for _ in range(2)]


def test_what_did_not_come_to_its_end_is_graded_again() -> None:
    """A jail that failed, and a run that was cut off, of which a slow machine may be the cause."""
    cut_off = _verdict(SuiteStatus.FAILED, "not done within 60 s")
    grade = Gradings(InfrastructureError("no jail"), cut_off, PASSED)
    with pytest.raises(InfrastructureError, match="no jail"):
        graded_once(("a",), grade)
    assert [cut_off, PASSED] == [graded_once(("a",), grade) for _ in range(2)]
    assert graded_once(("a",), grade).cached


def test_two_that_grade_the_same_at_once_grade_it_once() -> None:
    """The second waits for the first; one whose folder is another does not."""
    begun, may_end = threading.Event(), threading.Event()

    def slow() -> SuiteVerdict:
        begun.set()
        assert may_end.wait(60)
        return PASSED

    second, verdicts = Gradings(PASSED), []
    threads = [threading.Thread(target=lambda: verdicts.append(graded_once(("a",), slow)))]
    threads[0].start()
    assert begun.wait(60)
    threads.append(threading.Thread(target=lambda: verdicts.append(graded_once(("a",), second))))
    threads[1].start()
    assert not graded_once(("b",), Gradings(PASSED)).cached
    may_end.set()
    for thread in threads:
        thread.join(60)
    assert (0, [False, True]) == (second.count, sorted(verdict.cached for verdict in verdicts))


def test_who_ends_while_it_grades_holds_up_nobody() -> None:
    """Nothing of it is kept."""
    folder = verdict_cache._folder()
    assert folder is not None
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        with verdict_cache._locked(folder / verdict_cache._key(("a",))):
            os.write(writer, b"1")
            signal.pause()
        os._exit(1)
    assert b"1" == os.read(reader, 1)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(reader)
    os.close(writer)
    grade = Gradings(PASSED)
    assert (False, 1) == (graded_once(("a",), grade).cached, grade.count)


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"results": [{}], "status": "passed"}', "\0" * 9])
def test_a_damaged_verdict_is_graded_again(content: str) -> None:
    """And then kept whole."""
    grade = Gradings(PASSED)
    graded_once(("a",), grade)
    folder = verdict_cache._folder()
    assert folder is not None
    (path,) = folder.iterdir()
    path.write_text(content)
    assert [False, True] == [graded_once(("a",), grade).cached for _ in range(2)]


def test_so_many_are_kept_and_the_oldest_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that were used last stay."""
    monkeypatch.setattr(verdict_cache, "MOST_VERDICTS", 8)
    monkeypatch.setattr(verdict_cache, "_SWEEP_EVERY", 1)
    folder = verdict_cache._folder()
    assert folder is not None
    for number in range(20):
        graded_once((number,), Gradings(PASSED))
        assert len(list(folder.iterdir())) <= 8
    assert graded_once((19,), Gradings(PASSED)).cached


def test_without_a_folder_all_is_graded(tmp_path: Path) -> None:
    """As where the disk is full, or another has its name."""
    folder = verdict_cache._folder()
    assert folder is not None
    folder.rmdir()
    grade = Gradings(PASSED)
    assert [False, False] == [graded_once(("a",), grade).cached for _ in range(2)]
    folder.write_text("")
    verdict_cache._shared_folder.cache_clear()
    folder.rename(tmp_path / "aside")
    (tmp_path / "elsewhere").mkdir()
    folder.symlink_to(tmp_path / "elsewhere")
    assert [False, False] == [graded_once(("a",), grade).cached for _ in range(2)]
    assert [] == list((tmp_path / "elsewhere").iterdir())


def test_a_variable_turns_it_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another value is refused."""
    monkeypatch.setenv("REWARDKIT_VERDICTS", "off")
    grade = Gradings(PASSED)
    assert [False, False] == [graded_once(("a",), grade).cached for _ in range(2)]
    monkeypatch.setenv("REWARDKIT_VERDICTS", "no")
    with pytest.raises(InfrastructureError, match="REWARDKIT_VERDICTS='no': expected 'keep' or 'off'"):
        graded_once(("a",), grade)


@pytest.fixture
def fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jails in which the test fails, without a jail."""

    def run(jail: SuiteJail, tests: Mapping[str, bytes], names: Sequence[str]) -> GradedRun:
        name = "test_s.py::test_a"
        return GradedRun((name,), {name: SuiteResult(name, "failed")})

    monkeypatch.setattr(SuiteJail, "run", run)


@pytest.mark.usefixtures("fails")
@pytest.mark.parametrize(
    "options",
    [
        {"expected": ["test_s.py::test_a"]},
        {"expected": {"other": ["test_s.py::test_a"]}},
        {"packages": ["tenacity"]},
        {"confidence": 0.5},
        {"weak": "refuse"},
        {"arguments": ["-p", "no:nose"]},
        {"timeout_s": 7.0},
        {"random": Random(1)},
        {"tests": {**TESTS, "data.txt": "1"}},
        {"files": {"solution.py": b"", "other.py": b""}},
        {"level": "standard"},
    ],
    ids=lambda options: next(iter(options)),
)
def test_whatever_decides_a_verdict_makes_it_another(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Folder, tests, names, packages, settings and level; a given source of randomness is always drawn from."""
    files, tests = {"solution.py": b""}, TESTS
    assert [False, True] == [check_suite(SealedWorkspace(files), tests).cached for _ in range(2)]
    files, tests = options.pop("files", files), options.pop("tests", tests)
    if level := options.pop("level", None):
        monkeypatch.setenv("REWARDKIT_SANDBOX_LEVEL", level)
    is_drawn = "random" in options
    assert [False, not is_drawn] == [check_suite(SealedWorkspace(files), tests, **options).cached for _ in range(2)]


@reward(timeout_s=120, default=None)
def graded(completion: str) -> Score:
    """Grade the completion as a folder."""
    return check_suite(SealedWorkspace({"solution.py": completion.encode()}), TESTS, timeout_s=30).score()


def test_the_workers_of_a_runtime_share_verdicts() -> None:
    """Of six folders two differ, and two are graded; the next runtime grades anew."""
    for _ in range(2):
        with Runtime([graded], workers=2) as runtime:
            batch = runtime.score([Rollout("p", text) for text in [WRONG, WRONG, RIGHT, WRONG, RIGHT, WRONG]])
        outcomes = batch.outcomes["graded"]
        assert {Status.SCORED} == {outcome.status for outcome in outcomes}
        assert [0.0, 0.0, 1.0, 0.0, 1.0, 0.0] == [outcome.score for outcome in outcomes]
        assert 2 == sum("as an equal folder before" not in str(outcome.reason) for outcome in outcomes)
