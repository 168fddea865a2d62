"""Hostile completions in other languages than Python: none is judged right, none leaves anything, all end in time."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import psutil
import pytest
from judging_process import HELPERS, JudgingProcess, Verdict, verdict_of
from other_user import readable_copy
from polyglot_acts import MARK, SECRET, TIMEOUT_S, Act, acts, honest, judged, judges_of, successful
from polyglot_forms import FORMS

from sandbox import Sandbox, why_not_run
from sandbox.errors import SandboxUnavailableError
from sandbox.reports import CheckStatus

MOST_S = 240.0  # seconds that an end may take: a compiler has 60, and more on a machine that is busy with other tests
OUTSIDE = ("/", "/tmp", "/var/tmp", "/dev/shm", "/usr/lib", "/etc", "/root", str(Path.home()))
ACTS = acts()
IN_FULL = ("go", "rust")  # whose first compilation as another user takes minutes

Jails = Callable[[str], Sandbox]
Judge = Callable[[str, str, str, str, float], Verdict]


@pytest.fixture(scope="module")
def jails() -> Iterator[Jails]:
    """A jail for each level, with one launcher for each language."""
    made: dict[str, Sandbox] = {}

    def jail(level: str) -> Sandbox:
        if level not in made:
            try:
                made[level] = Sandbox(workers=1, level=level).start()
            except SandboxUnavailableError as reason:
                pytest.skip(f"no jail here: {reason}")
        return made[level]

    yield jail
    for sandbox in made.values():
        sandbox.close()


@pytest.fixture(scope="module")
def plain_user(root: Path) -> Iterator[JudgingProcess]:
    """A process of another user than root, with jails of its own."""
    with readable_copy(root, HELPERS) as folder:
        process = JudgingProcess(folder)
        yield process
        process.close()


@pytest.fixture(scope="module")
def secret() -> Iterator[str]:
    """A file with the right answer, which every user of the machine may read."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        path = Path(folder, "expected")
        path.write_text("42\n")
        path.chmod(0o644)
        yield str(path)


def left(level: str, launchers: Sequence[int]) -> list[str]:
    """Return the processes below a jail's launchers, and the files that acts wrote outside."""
    own = 1 if level == "strict" else 0  # the launcher itself, which at this level is a child of the first
    below = [psutil.Process(process).children(recursive=True) for process in launchers]
    names = [str(process) for processes in below for process in processes[own:]]
    return names + [f"{folder}/{MARK}" for folder in OUTSIDE if os.path.lexists(f"{folder}/{MARK}")]


def examine(judge: Judge, act: Act, secret: str) -> None:
    """Have an act judged, and an innocent one behind it, in the same launcher."""
    began = time.monotonic()
    verdict = judge(act.level, act.language, act.judge, act.source.replace(SECRET, secret), act.timeout_s)
    if verdict.skipped:
        pytest.skip(verdict.skipped)
    assert time.monotonic() - began < MOST_S, verdict
    assert set() == {*verdict.statuses} & {CheckStatus.PASSED, CheckStatus.INFRASTRUCTURE}, verdict
    assert [] == left(act.level, verdict.processes)
    innocent = judge(act.level, act.language, act.judge, honest(act.language, act.judge), TIMEOUT_S)
    assert innocent.all_passed, innocent


@pytest.mark.cases(24)
@pytest.mark.parametrize("act", ACTS, ids=str)
def test_no_act_is_judged_right_or_leaves_anything(jails: Jails, secret: str, act: Act) -> None:
    """The innocent one behind it, in the same launcher, is right."""
    examine(lambda level, *asked: verdict_of(jails(level), *asked), act, secret)


@pytest.mark.cases(6)
@pytest.mark.parametrize(
    "act",
    [pytest.param(act, marks=[pytest.mark.full] * (act.language in IN_FULL)) for act in ACTS],
    ids=str,
)
def test_no_act_of_a_plain_user_is_judged_right_or_leaves_anything(
    plain_user: JudgingProcess, secret: str, act: Act
) -> None:
    """Whose jail is made by namespaces of users, and whose compilers keep what they make in a folder of its own."""
    examine(plain_user.judged, act, secret)


@pytest.mark.cases(4)
@pytest.mark.parametrize("language", sorted(FORMS))
def test_an_act_that_succeeds_would_be_judged_right(jails: Jails, language: str) -> None:
    """The forms of acts are right where the act says that it got what it wanted: so a hole would show."""
    if reason := why_not_run(language):
        pytest.skip(reason)
    for judge in judges_of(language):
        assert judged(jails("strict"), language, judge, successful(language, judge)).all_passed, judge
