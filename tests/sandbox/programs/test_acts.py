"""Hostile completions in other languages than Python: none is judged right, none leaves anything, all end in time."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from polyglot_acts import MARK, SECRET, Act, acts, honest, judged, judges_of, successful
from polyglot_forms import FORMS

from sandbox import Sandbox, why_not_run
from sandbox.errors import SandboxUnavailableError
from sandbox.reports import CheckStatus

MOST_S = 240.0  # seconds that an end may take: a compiler has 60, and more on a machine that is busy with other tests
OUTSIDE = ("/", "/tmp", "/var/tmp", "/dev/shm", "/usr/lib", "/etc", "/root", str(Path.home()))

Jails = Callable[[str], Sandbox]


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
def secret(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A file with the right answer."""
    path = tmp_path_factory.mktemp("secret") / "expected"
    path.write_text("42\n")
    return str(path)


def left(jail: Sandbox) -> list[str]:
    """Return the processes below a jail's launchers, and the files that acts wrote outside."""
    own = 1 if jail.level == "strict" else 0  # the launcher itself, which at this level is a child of the first
    below = [psutil.Process(process).children(recursive=True) for process in jail._programs().processes]
    names = [str(process) for processes in below for process in processes[own:]]
    return names + [f"{folder}/{MARK}" for folder in OUTSIDE if os.path.lexists(f"{folder}/{MARK}")]


@pytest.mark.cases(24)
@pytest.mark.parametrize("act", acts(), ids=str)
def test_no_act_is_judged_right_or_leaves_anything(jails: Jails, secret: str, act: Act) -> None:
    """The innocent one behind it, in the same launcher, is right."""
    if reason := why_not_run(act.language):
        pytest.skip(reason)
    jail = jails(act.level)
    began = time.monotonic()
    report = judged(jail, act.language, act.judge, act.source.replace(SECRET, secret), act.timeout_s)
    assert time.monotonic() - began < MOST_S, report
    statuses = {check.status for check in report.checks}
    assert set() == statuses & {CheckStatus.PASSED, CheckStatus.INFRASTRUCTURE}, report
    assert [] == left(jail)
    innocent = judged(jail, act.language, act.judge, honest(act.language, act.judge))
    assert innocent.all_passed, innocent


@pytest.mark.cases(4)
@pytest.mark.parametrize("language", sorted(FORMS))
def test_an_act_that_succeeds_would_be_judged_right(jails: Jails, language: str) -> None:
    """The forms of acts are right where the act says that it got what it wanted: so a hole would show."""
    if reason := why_not_run(language):
        pytest.skip(reason)
    for judge in judges_of(language):
        assert judged(jails("strict"), language, judge, successful(language, judge)).all_passed, judge
