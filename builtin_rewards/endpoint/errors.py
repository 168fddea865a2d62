"""The errors of judges: why a judgement gave no verdict. No message holds a key."""

from __future__ import annotations

import difflib
import math
from collections.abc import Collection
from enum import StrEnum
from typing import Self

from builtin_rewards.endpoint.messages import Usage
from rewardkit import InfrastructureError, RewardDefinitionError, RewardError


class Fault(StrEnum):
    """What went wrong with a judgement; docs/reference/judge.md says which replies come to which."""

    CONNECTION = "connection"  # not reached, or broken off before the reply was whole
    DEADLINE = "deadline"  # the judgement's total deadline passed
    RATE_LIMIT = "rate_limit"  # 429 until there were no tries left
    SERVER_ERROR = "server_error"  # 408, 409 or 5xx until there were no tries left
    QUOTA = "quota"  # the account has nothing left
    REJECTED = "rejected"  # the server says no to the request, by another status
    BREAKER_OPEN = "breaker_open"  # the server failed so often that it is left alone for a while; no call was made
    BUDGET = "budget"  # the spend cap is reached; no call was made
    NOT_A_COMPLETION = "not_a_completion"  # status 200 with something that is not a chat completion
    EMPTY = "empty"  # the reply has no text
    REFUSED = "refused"  # the model refused to judge
    TRUNCATED = "truncated"  # the reply was cut off at its length limit
    CONTENT_FILTER = "content_filter"  # the provider's filter refused the question or ended the reply
    CONTEXT_LENGTH = "context_length"  # the question is longer than the model takes
    UNREADABLE = "unreadable"  # the reply holds no verdict that can be read
    WRONG_SCHEMA = "wrong_schema"  # the reply is JSON that lacks a criterion, or has a value of the wrong type
    OUT_OF_RANGE = "out_of_range"  # a grade lies outside the scale


def is_number(value: object, *, whole: bool = False) -> bool:
    """Return whether a setting is a finite number, or with ``whole`` an int; a bool is not a number."""
    if isinstance(value, int):
        return not isinstance(value, bool)
    return isinstance(value, float) and not whole and math.isfinite(value)


def near_names(name: str, names: Collection[str]) -> str:
    """Return a hint at an unknown name: the names like it, or all of them."""
    near = difflib.get_close_matches(name, names, n=2)
    return f"did you mean {' or '.join(map(repr, near))}?" if near else f"there are {', '.join(names)}"


class JudgeError(RewardError):
    """The root of the errors of judges: a message for people, which says what helps, and a fault for programs."""

    problem: str = ""  # what happened, without server and advice, where the message has more
    requests: int = 0  # HTTP requests that were sent for it, all tries together
    unmetered: int = 0  # of these, requests that may be billed and have no reply with usage
    waited_s: float = 0.0  # how long its requests waited for slots, which the deadline does not count
    free: bool = False  # the failed request cost nothing: it did not reach the server, or the server refused it
    status: int | None = None  # what the server answered last
    retry_after_s: float | None = None  # what the server asks to wait
    parameter: str | None = None  # what the server says that it refuses
    refuses_key: bool = False  # the server takes nothing from this key or account, whatever the request
    usage: Usage | None = None  # what the server says that the failed request took

    def __init__(self, message: str, fault: Fault | None = None) -> None:
        super().__init__(message, fault)
        self.message = message
        self.fault = fault

    def __str__(self) -> str:
        return self.message

    def with_message(self, message: str) -> Self:
        """Return the same error with another message."""
        error = type(self)(message, self.fault)
        error.__dict__.update({**vars(self), "message": message})
        return error


class JudgeSetupError(JudgeError, RewardDefinitionError):
    """A setting of a judge is wrong. Raised when the judge is made; the message names the setting and the fix."""


class JudgeUnavailableError(JudgeError, InfrastructureError):
    """No reply came, after all tries: the cause ``infrastructure``, which is not the completion's fault."""

    retry = False


class BudgetSpentError(JudgeUnavailableError):
    """The spend cap is reached, so the judge was not asked. Raise the cap, or give the judge a fallback."""

    def after(self, first: JudgeError) -> Self:
        """Return the error of a judge that was asked before, with how that try failed."""
        message = self.message.replace("was not asked:", "was not asked again:", 1)
        return self.with_message(f"{message}; its first try failed: {first.problem or first.message}")


OR_FALLBACK = ", or give the judge a fallback"
"""How a message ends that advises a fallback; a chain, which is one, leaves it out."""


class JudgeReplyError(JudgeError):
    """A reply came that is no verdict, or none for what this one question holds: the cause ``exception``.

    It is never taken for a low grade.
    """
