"""No code that would rather pass than be right is graded as right, whatever it knows of the grader."""

from __future__ import annotations

import public_tricks
import pytest
from suite_acts import ACTS, RIGHT, SUITE

from rewardkit.jailed.jail import close_shared
from rewardkit.jailed.sealed import SealedWorkspace
from rewardkit.suites.grading import check_suite
from rewardkit.suites.suite_verdict import SuiteVerdict


def graded(source: str) -> SuiteVerdict:
    """Return a verdict that a coin's luck changes once in a million times."""
    workspace = SealedWorkspace({"solution.py": source.encode()})
    return check_suite(workspace, {"test_s.py": SUITE}, timeout_s=20.0, confidence=1e-6)


@pytest.mark.cases(6)
@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
def test_no_act_passes(act: str) -> None:
    """Its score is 0.0, in each group too."""
    verdict = graded(act)
    assert (False, 0.0) == (verdict.passed, verdict.score().value), verdict.reason()


def test_right_code_passes_the_same_suite() -> None:
    """Each of its tests is guarded."""
    verdict = graded(RIGHT)
    assert (True, ()) == (verdict.passed, verdict.weak), verdict.reason()
    assert verdict.bound <= 1e-6


@pytest.mark.cases(8)
@pytest.mark.parametrize("level", ["strict", "standard"])
@pytest.mark.parametrize("trick", public_tricks.TRICKS)
def test_no_trick_of_public_reports_passes(monkeypatch: pytest.MonkeyPatch, trick: str, level: str) -> None:
    """Nor do its files stand in the way of right code, where it is the agent's own."""
    monkeypatch.setenv("REWARDKIT_SANDBOX_LEVEL", level)
    close_shared()
    files = {"solution.py": public_tricks.LIES, **public_tricks.TRICKS[trick]}
    sealed = SealedWorkspace({name: text.encode() if isinstance(text, str) else text for name, text in files.items()})
    verdict = check_suite(sealed, public_tricks.SUITE, timeout_s=20.0, confidence=1e-6)
    assert (False, 0.0) == (verdict.passed, verdict.score().value), verdict.reason()
    right = SealedWorkspace({**sealed.files, "solution.py": public_tricks.RIGHT.encode()})
    graded = check_suite(right, public_tricks.SUITE, timeout_s=20.0)
    assert graded.passed, graded.reason()
    close_shared()
