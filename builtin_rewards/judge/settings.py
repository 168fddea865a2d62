"""The settings that judges share: their names, their types, and a table of their valid values."""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypedDict

from builtin_rewards.endpoint.backends import StandIn, is_stand_in
from builtin_rewards.endpoint.budget import Budget, Price
from builtin_rewards.endpoint.endpoint import RetryPolicy
from builtin_rewards.endpoint.errors import JudgeSetupError, is_number, near_names
from builtin_rewards.endpoint.limits import Load
from builtin_rewards.judge.cache import JudgeCache
from builtin_rewards.judge.formats import Format
from builtin_rewards.judge.prompt import Template

_NO_OPTIONS = frozenset({"model", "messages", "temperature", "max_tokens", "response_format", "n", "stream", "timeout"})
_ADVICE = {  # what is meant by a setting's name in a client library or in another kind of judge
    "api_key": "the key is read from the environment variable that key_env names",
    **dict.fromkeys(("timeout", "timeout_s"), "the deadline of a judgement is deadline_s"),
    "n": "several samples of a judgement are samples",
    **dict.fromkeys(("max_retries", "retries"), "tries are set by retry=RetryPolicy(attempts=...)"),
    **dict.fromkeys(("api_base", "endpoint", "url"), "the server's address is base_url"),
    **dict.fromkeys(
        ("prompt", "prompt_template", "system", "system_prompt", "instructions"),
        "a prompt of your own is template=Template(name=, version=, system=, user=)",
    ),
    **dict.fromkeys(("rubric", "questions"), "what is graded is criteria, or criteria_column for rubrics of the rows"),
    **dict.fromkeys(("fallbacks", "fallback"), "a chain is made by judge.fallback(other, ..., default=None)"),
    **dict.fromkeys(("max_cost", "max_usd", "cost_cap", "spending_cap"), "a cap is budget=Budget(usd=...)"),
}
# Arguments of a client library's call that are no parameters of a request: they would be sent, and may be a key.
_NO_PARAMETERS = frozenset({"api_key", "extra_headers", "extra_query"})


class AskingSettings(TypedDict, total=False):
    """How a judge's model is asked; all have defaults. See docs/reference/judge.md, Asking."""

    base_url: str | None
    key_env: str
    default_headers: Mapping[str, str] | None
    default_query: Mapping[str, str] | None
    temperature: float | None
    max_tokens: int | None
    options: Mapping[str, Any]
    deadline_s: float
    reasks: int
    format: str | None
    load: Load
    retry: RetryPolicy
    budget: Budget | None
    prices: Mapping[str, Price]
    cache: JudgeCache | None
    client: StandIn | Callable[..., StandIn] | None
    verify: bool


class JudgeSettings(AskingSettings, total=False):
    """What all judges that ask a model take; all have defaults. See docs/reference/judge.md, Showing."""

    reference: str | None
    template: str | Template | None
    columns: Mapping[str, str] | None
    shows: Literal["answer", "all"]
    split_special_tokens: bool
    prefilter: bool
    max_chars: int
    reason_chars: int | None
    images: bool
    default: float | None
    name: str


# By setting a class, a kind of number with its least and most, or a test; and what is valid, for messages.
_TABLE: Mapping[str, tuple[Any, str]] = {
    "model": (lambda value: isinstance(value, str) and value.strip(), "the model's name, as its server knows it"),
    "temperature": ((float, 0, 2), "0 to 2, or None to leave it to the server"),
    "max_tokens": ((int, 1), "a whole number, 1 or more, or None to leave it out"),
    "options": (Mapping, "a Mapping, such as {'seed': 1}"),
    "deadline_s": ((float, 1e-9), "a number of seconds greater than 0"),
    "reasks": ((int, 0, 3), "how often an unreadable reply is asked for again, a whole number from 0 to 3"),
    "format": (lambda value: value in tuple(Format), f"one of {', '.join(Format)}, or None to find out"),
    "load": (Load, "a Load, such as Load(concurrency=64)"),
    "retry": (RetryPolicy, "a RetryPolicy, such as RetryPolicy(attempts=3)"),
    "budget": (Budget, "a Budget, such as Budget(usd=5), or None"),
    "cache": (JudgeCache, "a JudgeCache, such as JudgeCache('judge.db'), or None"),
    "client": (
        lambda value: callable(value) or is_stand_in(value),
        "an object with client.chat.completions.create, such as a FakeJudge, what makes one, or None; an address is "
        "base_url",
    ),
    "default_headers": (Mapping, "headers by name, such as {'X-Team': 'evals'}, or None"),
    "default_query": (Mapping, "queries by name, such as {'api-version': '2024-10-21'}, or None"),
    "columns": (Mapping, "columns by field, such as {'source': 'article'}, or None"),
    "shows": (lambda value: value in ("answer", "all"), "one of answer, all"),
    "max_chars": ((int, 2), "a whole number of characters, at least 2"),
    "reason_chars": ((int, 20), "a whole number of characters, at least 20, or None"),
    "images": (bool, "True where the model takes images, else False"),
    **dict.fromkeys(
        ("split_special_tokens", "prefilter", "verify", "each", "check_swapped", "likelihoods", "not_applicable"),
        (bool, "True or False"),
    ),
    "together": (
        lambda value: value in ("all", "each") or (is_number(value, whole=True) and value >= 1),
        "all, each, or how many criteria a question has, a whole number of 1 or more",
    ),
    "samples": ((int, 1), "a whole number, 1 or more"),
    "order": (lambda value: value in ("both", "first"), "one of both, first"),
    "score": (lambda value: value in ("strength", "win_rate", "rank"), "one of strength, win_rate, rank"),
    "repeats": ((int, 1, 8), "a whole number from 1 to 8"),
    "most": ((int, 2, 90), "a whole number from 2 to 90"),
    "threshold": ((float, 0, 1), "a number from 0 to 1, or None"),
}


def check(settings: Mapping[str, Any]) -> None:
    """Raise JudgeSetupError for the first wrong setting, with its name, its value and the fix."""
    for name, value in settings.items():
        rule, expected = _TABLE.get(name, (object, ""))
        if not _fits(value, rule) and not (value is None and "None" in expected):
            raise JudgeSetupError(f"{name}={value!r}: expected {expected}")
    _check_options(settings.get("options") or {})


def _fits(value: Any, rule: Any) -> bool:
    if isinstance(rule, tuple):
        kind, least, most = (*rule, math.inf)[:3]
        return is_number(value, whole=kind is int) and least <= value <= most
    return isinstance(value, rule) if isinstance(rule, type) else bool(rule(value))


def check_names(names: Iterable[str], kind: type, judges: Iterable[type]) -> None:
    """Raise JudgeSetupError for a setting that a kind of judge lacks, with the judges that have it, or near names."""
    for name in names:
        if name not in JudgeSettings.__annotations__:
            owners = " and ".join(f"{judge.__name__} has" for judge in judges if name in _own_settings(judge))
            settings = [*_own_settings(kind), *JudgeSettings.__annotations__]
            hint = _ADVICE.get(name) or owners or near_names(name, settings)
            raise JudgeSetupError(f"{kind.__name__} has no setting {name!r}; {hint}")


def _own_settings(kind: type) -> list[str]:
    parameters = inspect.signature(kind).parameters.values() if "__init__" in vars(kind) else ()
    return [own.name for own in parameters if own.kind not in (own.VAR_POSITIONAL, own.VAR_KEYWORD)]


def _check_options(options: Mapping[str, Any]) -> None:
    """Raise JudgeSetupError for an option of requests that is not JSON, or not the user's to set."""
    body = options.get("extra_body") or {}
    if not isinstance(body, Mapping):
        raise JudgeSetupError(f"options: extra_body={body!r}: expected a mapping, such as {{'top_k': 1}}")
    for name, value in (*body.items(), *options.items()):
        if name in _NO_OPTIONS:
            raise JudgeSetupError(f"options: {name!r} is set by the judge; take it out")
        if name in _NO_PARAMETERS:
            raise JudgeSetupError(
                f"options: {name!r} is not a request parameter; see default_headers, default_query and key_env"
            )
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise JudgeSetupError(f"options: {name!r}: {error}; give plain values, as JSON has them") from None
