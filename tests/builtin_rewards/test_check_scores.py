"""Scores of checks: what the reason says of those that were late or not reached, and the time that checks have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from patience import in_time

from builtin_rewards.check_scores import CheckTime, score_of
from builtin_rewards.code import code_tests
from rewardkit import InfrastructureError, Score
from sandbox import CheckResult, CheckStatus, Limits, Sandbox, why_not_run

HANGS = {
    "python": "n = input()\nwhile n == '4': pass\nprint(n)\n",
    "javascript": "const n = require('fs').readFileSync(0, 'utf8');\nwhile (n == '4');\nconsole.log(n);\n",
}
ADVICE = "code_tests(check_timeout_s=...) gives each a limit of its own"


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(workers=1) as made:
        yield made


@pytest.mark.parametrize(
    ("limits", "check_timeout_s", "count", "together_s", "call_s"),
    [
        (None, None, 10, 10.0, 60.0),
        (Limits(timeout_s=2), None, 10, 2, 60.0),
        (Limits(timeout_s=40), None, 10, 40, 120),
        (None, 2.0, 10, 20.0, 480.0),
        (None, 2.0, 0, 2.0, 480.0),
        (None, 2.0, 100, 120.0, 480.0),
        (None, 300.0, 2, 300.0, 1200.0),
        (Limits(timeout_s=40), 2.0, 10, 40, 160),
        (Limits(timeout_s=900), 2.0, 10, 900, 3600),
    ],
)
def test_what_checks_have_together(
    limits: Limits | None, check_timeout_s: float | None, count: int, together_s: float, call_s: float
) -> None:
    """Without limits of all, it is what the checks may take, at most two minutes; a call outlasts the jail's limits."""
    time = CheckTime(limits, check_timeout_s)
    assert (together_s, call_s) == (time.together(count).timeout_s, time.call_s)


def test_other_limits_stay() -> None:
    limits = Limits(timeout_s=40, memory_bytes=1 << 28)
    assert limits == CheckTime(limits, 2.0).together(3)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"check_timeout_s": 0}, "check_timeout_s=0: expected a number above 0"),
        ({"check_timeout_s": True}, "check_timeout_s=True: expected a number above 0"),
        ({"check_timeout_s": float("inf")}, "check_timeout_s=inf: expected a number above 0"),
        ({"check_timeout_s": "2"}, "check_timeout_s='2': expected a number above 0"),
        (
            {"check_timeout_s": 2.0, "limits": Limits(timeout_s=2.0)},
            r"check_timeout_s=2: expected less than limits.timeout_s=2, .* or leave limits out",
        ),
        ({"check_timeout_s": 11.0, "limits": Limits()}, "expected less than limits.timeout_s=10"),
    ],
)
def test_limits_that_contradict_each_other_are_refused(settings: dict[str, Any], words: str) -> None:
    """The reward is not made, and the message names both and what to write."""
    with pytest.raises(ValueError, match=words):
        code_tests(**settings)


def _check(status: CheckStatus, reason: str = "", label: str = "f(1)") -> CheckResult:
    return CheckResult(status, reason, label)


PASSED, FAILED = _check(CheckStatus.PASSED), _check(CheckStatus.FAILED, "gave 1, not 2")
LATE = _check(CheckStatus.TIMEOUT, "not done within 2 s")
UNREACHED = _check(CheckStatus.NOT_REACHED, "the time of all checks was used up")
ENDED = _check(CheckStatus.ERROR, "exit code 3")


@pytest.mark.parametrize(
    ("checks", "time", "reason"),
    [
        ([PASSED, PASSED], CheckTime(None, None), "2 of 2 checks passed"),
        ([PASSED, FAILED], CheckTime(None, None), "1 of 2 checks passed; failed: f(1): gave 1, not 2"),
        ([LATE], CheckTime(None, None), "0 of 1 checks passed; timeout: f(1): not done within 2 s"),
        (
            [PASSED, LATE],
            CheckTime(None, None),
            f"1 of 2 checks passed; timeout: f(1): not done within 2 s; {ADVICE}",
        ),
        (
            [LATE, UNREACHED, UNREACHED],
            CheckTime(None, None),
            f"0 of 3 checks passed; timeout: f(1): not done within 2 s; 2 of 3 not reached; {ADVICE}",
        ),
        (
            [LATE, UNREACHED],
            None,
            "0 of 2 checks passed; timeout: f(1): not done within 2 s; 1 of 2 not reached",
        ),
        (
            [ENDED, UNREACHED],
            CheckTime(None, None),
            "0 of 2 checks passed; error: f(1): exit code 3; 1 of 2 not reached",
        ),
        ([PASSED, LATE], CheckTime(None, 2.0), "1 of 2 checks passed; timeout: f(1): not done within 2 s"),
        (
            [LATE, UNREACHED],
            CheckTime(Limits(timeout_s=3), 2.0),
            "0 of 2 checks passed; timeout: f(1): not done within 2 s; 1 of 2 not reached; all checks together have "
            "3 s, which limits=Limits(timeout_s=...) sets",
        ),
    ],
)
def test_the_reason_says_what_was_not_reached_and_what_to_set(
    checks: list[CheckResult], time: CheckTime | None, reason: str
) -> None:
    assert reason == score_of(checks, all_or_nothing=False, time=time).reason


@pytest.mark.parametrize("checks", [[], [PASSED, _check(CheckStatus.INFRASTRUCTURE, "it died")]])
def test_what_the_jail_lost_is_no_score(checks: list[CheckResult]) -> None:
    with pytest.raises(InfrastructureError, match="the jail failed"):
        score_of(checks, all_or_nothing=False, time=None)


@pytest.mark.parametrize("language", HANGS)
def test_partial_credit_does_not_depend_on_the_order_of_the_tests(sandbox: Sandbox, language: str) -> None:
    """A program that hangs on one of four inputs earns three quarters, wherever that input stands."""
    if reason := why_not_run(language):
        pytest.skip(reason)
    for order in ("1234", "4123", "1423"):
        columns = {"inputs": list(order), "outputs": list(order), "language": language}

        def scored(time_s: float, columns: dict[str, Any] = columns) -> Score:
            reward = code_tests(check_timeout_s=time_s)
            score: Score = reward(completion=HANGS[language], sandbox=sandbox, **columns)
            return score

        score = in_time(scored, lambda score: score.value == 0.75, 0.5)
        assert 0.75 == score.value, (order, score.reason)
        assert (score.reason or "").startswith("3 of 4 checks passed; timeout: stdin '4': not done within")


def test_a_right_program_of_many_tests_has_time_for_each(sandbox: Sandbox) -> None:
    """Ten tests of 0.2 s need two seconds: together they have one, or each has one."""
    columns = {"inputs": list("0123456789"), "outputs": list("0123456789")}
    program = "import time\ntime.sleep(0.2)\nprint(input())\n"
    short = code_tests(limits=Limits(timeout_s=1.0))(completion=program, sandbox=sandbox, **columns)
    assert short.value < 1.0
    assert ", what was left of 1 s for all checks; " in short.reason
    assert short.reason.endswith(f" of 10 not reached; {ADVICE}")

    def scored(time_s: float) -> Score:
        score: Score = code_tests(check_timeout_s=time_s)(completion=program, sandbox=sandbox, **columns)
        return score

    assert 1.0 == in_time(scored, lambda score: score.value == 1.0, 1.0).value


def test_tests_as_text_refuse_a_limit_of_each(sandbox: Sandbox) -> None:
    """The row is skipped, whatever the completion is, and the reason names the setting."""
    for columns in ({"tests": "assert f(1) == 1"}, {"tests": "assert f(1) == 1", "inputs": ["1"], "outputs": ["1"]}):
        score = code_tests(check_timeout_s=2.0)(completion="def f(x): return x", sandbox=sandbox, **columns)
        assert score.value is None
        assert score.reason.startswith("check_timeout_s=2 cannot limit the row's 'tests', which run as one text")
