"""What providers say where they give no reply: one table from their codes and sentences to faults.

A status alone says too little: a 400 may be of a wrong key, of a completion that the provider's filter refuses, of a
prompt that is too long, or of a setting. The forms are public; ``tests/builtin_rewards/endpoint/`` has one or
more of each provider, and ``docs/reference/judge.md`` the table that is made of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from builtin_rewards.endpoint.errors import Fault

_HELP_OF_KEY = "check the key in the environment variable that key_env names"
_HELP_OF_CONTENT = "the provider's filter refuses what this question holds; a fallback may judge it"
HELP_OF_LENGTH = (
    "the question is longer than the model takes: lower max_chars, by which its texts are cut, or max_tokens, "
    "or serve the model with a longer context"
)

_CODE_KEYS = frozenset({"code", "type", "status", "reason", "error_code"})
_TEXT_KEYS = ("message", "error", "detail", "raw", "msg", "error_msg", "status_msg")
_NESTS = ("errors", "details", "metadata", "innererror", "provider_specific_fields", "base_resp")
_WAIT_KEYS = frozenset({"retrydelay", "retry_delay", "retry_after", "retry_after_seconds", "retry_after_ms"})
_GENERIC = frozenset({"provider returned error", "error"})  # what a router says in place of its provider's words
_MOST_PARTS, _MOST_DEPTH, _MOST_CHARS = 60, 8, 6000  # of an error's body, and of a text in it, that are read
_PROVIDERS_CHARS = 600  # of a text that are the provider's own words; what follows may echo a completion
_ECHO = re.compile(r"['\"]input['\"]\s*:|\binput_value=")  # where pydantic, of vLLM and others, quotes what it was sent


@dataclass(frozen=True, slots=True)
class ErrorRule:
    """Errors of one fault: the codes, and sentences of messages, with which providers say it."""

    fault: Fault
    codes: frozenset[str] = frozenset()
    sentences: re.Pattern[str] = re.compile(r"(?!)")
    advice: str = ""
    refuses_key: bool = False  # the server takes nothing from this key or account, whatever the request
    except_status: int | None = None  # with which the sentences mean something else


def _rule(
    fault: Fault,
    codes: str,
    sentences: str,
    advice: str = "",
    *,
    refuses_key: bool = False,
    except_status: int | None = None,
) -> ErrorRule:
    pattern = re.compile(sentences, re.IGNORECASE)
    return ErrorRule(fault, frozenset(codes.split()), pattern, advice, refuses_key, except_status)


_CONTENT = _rule(
    Fault.CONTENT_FILTER,
    "content_filter content_policy_violation responsibleaipolicyviolation data_inspection_failed moderation_blocked "
    "datainspectionfailed sensitive_words_detected invalid_prompt content_moderation prohibited_content 1301",
    r"content[ _](management|filter\w*|safety|moderation|usage)[ _]polic|contentpolicyviolation|"
    r"content exists risk|inappropriate content|"
    r"(flagged|blocked|rejected|refused|filtered)\b.{0,60}\b(moderation|polic(y|ies)|safety|harm\w*|risk|violence)|"
    r"\bmoderation\b|flagged (as|for|by)|usage polic|(unsafe|sensitive|prohibited|harmful) (content|words|information)|"
    r"new_sensitive|\u654f\u611f\u5185\u5bb9|\u654f\u611f\u8bcd",
    _HELP_OF_CONTENT,
    except_status=404,  # whose words name a model
)
_TOO_LARGE = _rule(
    Fault.CONTEXT_LENGTH,
    "context_length_exceeded exceed_context_size_error context_exceeded string_above_max_length request_too_large "
    "tokens_limit_reached context_window_exceeded 1261",
    r"request (body )?too large|(input or output )?tokens must be reduced|reduce your message size",
    HELP_OF_LENGTH,
)
_TOO_LONG = _rule(
    Fault.CONTEXT_LENGTH,
    "",
    r"context[ _-]?(length|window|size|limit)(?!_fallback)|\bn_ctx\b|max_model_len|too large for model|"
    r"range of input length|\binputs\b[^.]{0,20}\bmust have (less|fewer) than \d+ tokens|"
    r"\b(prompt|input|sequence)s?\b[^.]{0,60}\b(too long|too large|too many tokens)|too many (input |prompt )?tokens|"
    r"\b(prompt|input|tokens?)\b[^.]{0,90}\b(exceeds?|exceeded|longer than|larger than|must be <=)"
    r"(?![^.]{0,60}\b(time\w*|(milli)?seconds?|ms|minutes?)\b)[^.]{0,60}\b(limit|maximum|length|tokens?|allowed|\d{3,})|"
    r"\brequest\b[^.]{0,90}\b(exceeds?|exceeded|longer than|larger than)\b[^.]{0,60}\b(tokens?|length|characters)\b|"
    r"maximum (input|prompt|sequence) length|"
    r"prompt \u8d85\u957f|when context the overflows",
    HELP_OF_LENGTH,
    except_status=429,
)
_RATE = _rule(
    Fault.RATE_LIMIT,
    "rate_limit_exceeded rate_limit_error ratelimitexceeded resource_exhausted too_many_requests limit_requests "
    "throttling limit_burst_rate service_tier_capacity_exceeded 1302 1303 1304 1305 1308 1310 1312 1313",
    r"rate.?limit|too many requests|throttl|allocated quota|(requests?|tokens) per (second|min|hour|day)",
)
_QUOTA = _rule(
    Fault.QUOTA,
    "insufficient_quota billing_hard_limit_reached billing_not_active insufficient_balance arrearage "
    "insufficient_user_quota exceeded_current_quota_error 1113 1309",
    r"balance is too low|insufficient (account )?(balance|quota|credits?|funds)|\u4f59\u989d\u4e0d\u8db3|\u6b20\u8d39|"
    r"in good standing|billing (hard )?limit|(out of|more|no) credits|spend(ing)? limit",
    refuses_key=True,
)
_KEY = _rule(
    Fault.REJECTED,
    "invalid_api_key incorrect_api_key api_key_invalid invalidapikey authentication_error auth_error unauthorized "
    "unauthenticated account_deactivated token_not_found_in_db no_db_connection 1000 1001 1002 1003 1004 1110 1111 "
    "1112 1121",
    r"(invalid|incorrect|wrong|missing|expired|malformed|illegal|not a valid|no)\b[^.]{0,30}"
    r"\b(api[ _-]?keys?|authori[sz]ation header|auth credentials|credentials|subscription key|bearer)\b|"
    r"\bapi[ _-]?key\b[^.]{0,40}\b(not valid|invalid|incorrect|not found|expired|missing|leaked|revoked|disabled)|"
    r"\bauthentication\b[^.]{0,20}\b(fail\w*|error)|unauthori[sz]ed|no connected db|\u8eab\u4efd\u9a8c\u8bc1",
    _HELP_OF_KEY,
    refuses_key=True,
)
ERROR_RULES = (_CONTENT, _TOO_LARGE, _TOO_LONG, _RATE, _QUOTA, _KEY)  # the first that matches counts
_FORBIDDEN = ErrorRule(Fault.REJECTED, advice="the key may not use this model, or not from here", refuses_key=True)
_BY_STATUS: Mapping[int, ErrorRule] = {  # where no rule matches; from 500 on a server's error, else rejected
    401: _KEY,
    402: _QUOTA,
    403: _FORBIDDEN,
    408: ErrorRule(Fault.SERVER_ERROR),
    409: ErrorRule(Fault.SERVER_ERROR),
    413: _TOO_LARGE,
    429: _RATE,
}
# Of a 403, which is of the key unless its words are of the content.
_FORBIDDEN_CONTENT = re.compile(r"moderat|flagged|safety|content (policy|filter|was|is|block|violat)", re.IGNORECASE)

# What finish reasons say, by the name in lower case: the text is whole, cut off by its limit or by the model's context,
# filtered, refused, or broken off by a failure of the server. Others stay as they are.
FINISH_REASONS: Mapping[str, str] = {
    **dict.fromkeys(("stop", "eos", "eos_token", "end_turn", "stop_sequence"), "stop"),
    **dict.fromkeys(("length", "max_tokens", "model_length", "max_output_tokens"), "length"),
    "model_context_window_exceeded": "context_length",
    **dict.fromkeys(("content_filter", "safety", "recitation", "sensitive", "prohibited_content"), "content_filter"),
    **dict.fromkeys(("blocklist", "spii", "content_filtered", "guardrail_intervened"), "content_filter"),
    "refusal": "refusal",
    **dict.fromkeys(("error", "abort", "network_error", "insufficient_system_resource", "engine_error"), "error"),
}

_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(
    r"(\d+(?:\.\d+)?)\s*(ms|milliseconds?|hours?|h|minutes?|min|m|seconds?|secs?|s)(?![a-z])", re.IGNORECASE
)
_WAIT = re.compile(rf"\b(?:again|retry|wait|reset)\b\D{{0,30}}?((?:{_DURATION.pattern}\s*)+)", re.IGNORECASE)


@dataclass(slots=True)
class ProviderError:
    """An error's body as it was read: codes in lower case, texts, the parameter that it names, the wait it asks for."""

    codes: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    parameter: str | None = None
    wait_s: float | None = None

    @property
    def message(self) -> str:
        """The words that say most, perhaps empty."""
        useful = (text for text in self.texts if text.strip(" .").lower() not in _GENERIC)
        return next(useful, next(iter(self.texts), ""))

    @property
    def own_words(self) -> list[str]:
        """The texts as far as they are the provider's own, so that no completion that they echo decides anything."""
        return [_ECHO.split(text[:_PROVIDERS_CHARS], maxsplit=1)[0] for text in self.texts]

    def rule(self, status: int) -> ErrorRule:
        """Return the first rule of the table that it fulfils, else what its status says."""
        texts = self.own_words
        for rule in ERROR_RULES:
            if not rule.codes.isdisjoint(self.codes):
                return rule
            if status != rule.except_status and any(map(rule.sentences.search, texts)):
                return rule
        if status == 403 and any(map(_FORBIDDEN_CONTENT.search, (*texts, *self.codes))):
            return _CONTENT
        return _BY_STATUS.get(status) or ErrorRule(Fault.SERVER_ERROR if status >= 500 else Fault.REJECTED)


def read_error(body: object) -> ProviderError:
    """Return what an error's body says, in any layout that providers use: nested, a list, JSON within a text."""
    error = ProviderError()
    _read(body, error, 0)
    if error.wait_s is None:
        waits = (match for text in error.own_words if (match := _WAIT.search(text)))
        error.wait_s = next((_duration_s(match[1]) for match in waits), None)
    return error


def _read(part: object, error: ProviderError, depth: int) -> None:
    if depth > _MOST_DEPTH or len(error.codes) + len(error.texts) > _MOST_PARTS:
        return
    if isinstance(part, str):
        text = part.strip().removeprefix("data:").strip()
        if text[:1] in ("{", "["):
            with suppress(ValueError, RecursionError):
                _read(json.loads(text[:100_000]), error, depth + 1)
                return
        if text := " ".join(re.sub(r"<[^>]*>", " ", text[:_MOST_CHARS]).split()):
            error.texts.append(text)
    elif isinstance(part, list | tuple):
        for entry in part[:8]:
            _read(entry, error, depth + 1)
    elif isinstance(part, Mapping):
        _read_mapping(part, error, depth)


def _read_mapping(part: Mapping[Any, Any], error: ProviderError, depth: int) -> None:
    for name, value in part.items():
        if name in _CODE_KEYS and isinstance(value, str | int):
            error.codes.append(str(value).lower())
        elif name == "param" and isinstance(value, str):
            error.parameter = error.parameter or value
        elif str(name).lower() in _WAIT_KEYS:
            error.wait_s = wait_of(str(name).lower(), value)
    if isinstance(part.get("loc"), list):  # FastAPI's
        error.texts.append(f"{'.'.join(map(str, part['loc']))}: {part.get('msg', '')}")
        return
    for name in _TEXT_KEYS:
        _read(part.get(name), error, depth + 1)
    for name in _NESTS:
        if isinstance(part.get(name), Mapping | list):
            _read(part[name], error, depth + 1)


def wait_of(name: str, value: object) -> float | None:
    """Return the seconds of a field or header such as ``retryDelay: "37s"``, if it has any."""
    if isinstance(value, Mapping):
        value = value.get("seconds")
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        with suppress(ValueError, OverflowError):
            seconds = float(value) * (0.001 if name.endswith("ms") else 1.0)
            return seconds if seconds > 0 else None
    return _duration_s(value) if isinstance(value, str) else None


def _duration_s(text: str) -> float | None:
    """Return the seconds of a duration such as ``1.2s``, ``6m0s`` or ``2 minutes``; ``None`` for none above 0."""
    parts = ((float(number), unit.lower()) for number, unit in _DURATION.findall(text))
    seconds = sum(number * _UNITS_S["ms" if unit.startswith(("ms", "mil")) else unit[0]] for number, unit in parts)
    return seconds if seconds > 0 else None
