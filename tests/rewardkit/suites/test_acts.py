"""No code that would rather pass than be right is graded as right, whatever it knows of the grader."""

from __future__ import annotations

import pytest
from suite_acts import ACTS, RIGHT, SUITE

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
