"""What a server's log says of rewards that fail: the first failure at once, the sum at the end, and nothing twice."""

from __future__ import annotations

import pytest

from rewardkit.score_batch import ScoreBatch
from rewardkit.serving.contract import told_rows
from rewardkit.serving.failure_log import FailureLog
from rewardkit.types import Cause, Outcome, Rollout, Status

_OUTCOMES = {
    "s": Outcome(Status.SCORED, score=1.0),
    "k": Outcome(Status.SKIPPED, None),
    "f": Outcome(Status.FAILED, 0.0, cause=Cause.EXCEPTION, error="ValueError: column 'a' of example 3: no"),
    "t": Outcome(Status.FAILED, 0.0, cause=Cause.TIMEOUT, error="no answer in 1 s"),
}


def _logged(fates: str, size: int) -> FailureLog:
    """Return a log of calls with these fates, in requests of so many rows."""
    log = FailureLog()
    for start in range(0, len(fates), size):
        outcomes = [_OUTCOMES[fate] for fate in fates[start : start + size]]
        batch = ScoreBatch([Rollout("p", "c", {}) for _ in outcomes], {"odd": outcomes}, {"odd": 1.0})
        log.note(told_rows(batch))
    return log


@pytest.mark.parametrize("size", [1, 3, 200])
@pytest.mark.parametrize(
    ("fates", "first", "sum_text"),
    [
        ("s" * 20, None, None),
        ("sks" * 20, None, None),
        ("k" * 5, None, "of 5 calls 5 skipped"),
        ("f", "1 of the first 1 call failed: exception: ValueError: column 'a': no", "of 1 call 1 failed: exception"),
        ("f" * 50, "failed: exception: ValueError", "of 50 calls 50 failed: exception: ValueError: column 'a': no"),
        ("fffskt" * 10, "failed: exception", "of 60 calls 40 failed and 10 skipped, 30 of them with: exception"),
        ("sssft" * 9, "failed: exception", None),
    ],
)
def test_each_failing_reward_has_a_line_at_first_and_at_the_end(
    fates: str, size: int, first: str | None, sum_text: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    """However many rows a request has; the number of lines does not grow with the calls."""
    log = _logged(fates, size)
    assert [first is not None] == [bool(caplog.messages)]
    assert first is None or first in caplog.messages[0]
    assert len(caplog.messages) <= 1
    caplog.clear()
    log.flush()
    assert [sum_text is not None] == [bool(caplog.messages)]
    assert sum_text is None or f"reward 'odd', since the start: {sum_text}" in caplog.messages[0]
