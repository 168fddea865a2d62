"""The errors of judges: what became of a judgement that gave no verdict.

    JudgeError
    ├── JudgeSetupError           the judge's settings make no sense; raised when it is made
    ├── JudgeUnavailableError     no reply could be had: not the completion's fault
    │   └── BudgetSpentError      the spend cap is reached: no call was made
    └── JudgeReplyError           a reply came, and it is no verdict

Inside a runtime the second is a failure with cause ``infrastructure``, the third one with cause ``exception``. No
message holds a key.
"""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Self

from builtin_rewards.judge.endpoint.values import Usage
from rewardkit import InfrastructureError, RewardDefinitionError, RewardError


class Fault(StrEnum):
    """What went wrong with a judgement."""

    CONNECTION = "connection"
    """The server could not be reached, or the connection broke before the reply was whole."""
    DEADLINE = "deadline"
    """The judgement's total deadline passed."""
    RATE_LIMIT = "rate_limit"
    """The server said 429 until there were no tries left."""
    SERVER_ERROR = "server_error"
    """The server said 408, 409 or 5xx until there were no tries left."""
    QUOTA = "quota"
    """The account has nothing left (``insufficient_quota``); not tried again."""
    REJECTED = "rejected"
    """The server rejected the request: 400, 401, 403, 404, 413, 422; not tried again."""
    BREAKER_OPEN = "breaker_open"
    """The endpoint failed so often that it is left alone for a while; no call was made."""
    BUDGET = "budget"
    """The spend cap is reached; no call was made."""
    NOT_A_COMPLETION = "not_a_completion"
    """The server answered 200 with something that is no chat completion: HTML, broken JSON, no choices."""
    EMPTY = "empty"
    """The model said nothing."""
    REFUSED = "refused"
    """The model refused to judge."""
    TRUNCATED = "truncated"
    """The reply was cut off at its length limit."""
    CONTENT_FILTER = "content_filter"
    """The provider's filter ended the reply."""
    UNREADABLE = "unreadable"
    """The reply holds no verdict that can be read."""
    WRONG_SCHEMA = "wrong_schema"
    """The reply is JSON that lacks a criterion, or has a value of the wrong type."""
    OUT_OF_RANGE = "out_of_range"
    """A grade lies outside the scale."""


def is_number(value: object, *, whole: bool = False) -> bool:
    """Whether a setting is a finite number, where asked a whole one; a truth value is none."""
    if isinstance(value, int):
        return not isinstance(value, bool)
    return isinstance(value, float) and not whole and math.isfinite(value)


class JudgeError(RewardError):
    """The root of the errors of judges.

    Args:
        words: What happened, to whom, and what helps.
        fault: What went wrong, for programs.

    Attributes:
        requests: HTTP requests that were sent for it, all tries together.
        reached: Whether a request may have reached the server, and may be billed.
        status: The HTTP status that the server answered last; ``None`` where it answered none.
        retry_after_s: Seconds that the server asks to wait before it is asked again; ``None`` where it says nothing.
        should_retry: What the server itself says of another try (``x-should-retry``); ``None`` where it says nothing.
        parameter: The parameter that the server says it refuses; ``None`` where it names none.
        of_content: Whether a 403 is about what this one request holds, and not about the key.
        worked_on: Whether the server had taken the request on before it failed (an error behind HTTP 200).
        usage: Tokens that the server says the failed request took; ``None`` where it does not say.
    """

    requests: int = 0
    reached: bool = True
    status: int | None = None
    retry_after_s: float | None = None
    should_retry: bool | None = None
    parameter: str | None = None
    of_content: bool = False
    worked_on: bool = False
    usage: Usage | None = None

    def __init__(self, words: str, fault: Fault | None = None) -> None:
        super().__init__(words, fault)
        self.words = words
        self.fault = fault

    def __str__(self) -> str:
        return self.words

    def retold(self, words: str) -> Self:
        """Gives the same error in other words."""
        told = type(self)(words, self.fault)
        told.__dict__.update({**vars(self), "words": words})
        return told


class JudgeSetupError(JudgeError, RewardDefinitionError):
    """A judge's settings make no sense. Raised when the judge is made; the message names the setting and the fix."""


class JudgeUnavailableError(JudgeError, InfrastructureError):
    """No reply could be had, after all tries that the judge's policy allows. Not the completion's fault."""

    retry = False


class BudgetSpentError(JudgeUnavailableError):
    """The spend cap is reached, so the judge was not asked. Raise the cap, or give the judge a fallback."""


class JudgeReplyError(JudgeError):
    """A reply came and it is no verdict: unreadable, refused, truncated. Never taken for a low grade."""
