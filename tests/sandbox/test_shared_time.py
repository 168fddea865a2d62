"""The time that runs share, as values: what the next run has, and when nothing is run any more."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from sandbox import ExecutionResult, ExecutionStatus, Limits
from sandbox.evaluation import unrun
from sandbox.jail.levels import Level
from sandbox.shared_time import SharedTime, time_of_checks

OK, LATE, LOST = ExecutionStatus.OK, ExecutionStatus.TIMEOUT, ExecutionStatus.INFRASTRUCTURE


def _result(status: ExecutionStatus, duration_s: float) -> ExecutionResult:
    return dataclasses.replace(unrun(status, "", Level.NONE), duration_s=duration_s)


@pytest.mark.parametrize(
    ("together_s", "runs", "next_s", "ends"),
    [
        (10.0, [], 2.0, False),
        (10.0, [(OK, 1.5)], 2.0, False),
        (10.0, [(LATE, 2.0)] * 3, 2.0, False),
        (10.0, [(LATE, 2.7)] * 4, 2.0, False),  # a run costs the others no more than its own seconds
        (10.0, [(LATE, 2.0)] * 5, 0.001, True),
        (3.0, [(LATE, 2.0)], 1.0, False),
        (3.0, [(LATE, 2.0), (LATE, 1.0)], 0.001, True),
        (3.0, [(LATE, 2.0), (OK, 1.0)], 0.001, False),  # the next one shows that no time is left
        (2.0, [(LATE, 2.0)], 0.001, True),
        (10.0, [(OK, -0.5)], 2.0, False),
        (10.0, [(LOST, 0.0)], 2.0, True),
    ],
)
def test_what_runs_leave_to_the_next(
    together_s: float, runs: list[tuple[ExecutionStatus, float]], next_s: float, ends: bool
) -> None:
    """Each run has two seconds, or what is left of the time of all of them."""
    shared = SharedTime(Limits(timeout_s=together_s, memory_bytes=1 << 20), 2.0)
    result = _result(OK, 0.0)
    for status, duration_s in runs:
        result = _result(status, duration_s)
        shared.charge(result)
    assert (Limits(timeout_s=next_s, memory_bytes=1 << 20), ends) == (shared.next_limits(), shared.ends_with(result))


def test_the_start_of_a_runtime_costs_nothing() -> None:
    shared = SharedTime(Limits(timeout_s=2.0), 1.5)
    shared.charge(_result(OK, 1.0), start_s=0.75)
    shared.charge(_result(OK, 0.5), start_s=0.75)
    shared.charge(_result(OK, 1.5), start_s=0.75)
    assert 1.0 == shared.next_limits().timeout_s


@pytest.mark.parametrize(
    ("limits", "check_timeout_s", "together_s"),
    [(None, None, 10.0), (Limits(timeout_s=3), None, 3), (None, 0.5, 2.0), (Limits(timeout_s=3), 0.5, 3)],
)
def test_what_all_checks_have_together(limits: Limits | None, check_timeout_s: float | None, together_s: float) -> None:
    assert together_s == time_of_checks(limits, Limits(), check_timeout_s, 4).timeout_s


@pytest.mark.parametrize("value", [0, -1, True, float("nan"), float("inf"), "2", 2_000_000])
def test_a_limit_that_makes_no_sense_is_refused(value: Any) -> None:
    """The message names the setting and its value."""
    with pytest.raises(ValueError, match=r"check_timeout_s=.*: expected a number above 0"):
        time_of_checks(None, Limits(), value, 4)


def test_a_check_has_no_more_than_all_of_them() -> None:
    with pytest.raises(ValueError, match=r"check_timeout_s=3: expected at most limits\.timeout_s=2"):
        time_of_checks(Limits(timeout_s=2), Limits(), 3, 4)
