"""The border to servers and clients: their answers become a Reply or an error of ours, without any key."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

from builtin_rewards.endpoint.errors import OR_FALLBACK, Fault, JudgeError, JudgeReplyError, JudgeUnavailableError
from builtin_rewards.endpoint.messages import Reply, Token, Usage
from builtin_rewards.endpoint.provider_errors import (
    ERROR_RULES,
    FINISH_REASONS,
    HELP_OF_LENGTH,
    ErrorRule,
    read_error,
    wait_of,
)
from rewardkit.extending import shortened

# The fault of what a transport or client raises, by its class or the nearest base class. A closed event loop raises
# ``RuntimeError``. Anything else is not tried again: most likely the client does not know an option.
_FOREIGN = {
    **dict.fromkeys(("APIConnectionError", "TransportError", "OSError", "RuntimeError"), Fault.CONNECTION),
    **dict.fromkeys(("ValidationError", "JSONDecodeError", "DecodingError", "APIError"), Fault.NOT_A_COMPLETION),
}
# Transport errors that are raised before a request is out.
_NOT_SENT = ("ConnectError", "ConnectTimeout", "LocalProtocolError", "ProxyError", "ConnectionRefusedError")
_OUT_OF_PATIENCE = frozenset({504, 524})  # a gateway gave up on the server behind it, which may go on, and bill it

_HELP = {
    Fault.CONNECTION: "check that the server runs, that base_url is right, and raise deadline_s if it is slow",
    Fault.RATE_LIMIT: "allow fewer requests at once or a minute",
    Fault.SERVER_ERROR: f"the fault is the server's: read its log{OR_FALLBACK}",
    Fault.QUOTA: f"raise the account's limit{OR_FALLBACK}",
    Fault.REJECTED: "the request is at fault; read the server's words and the options",
    Fault.NOT_A_COMPLETION: "check base_url, which mostly ends with /v1",
    Fault.UNREADABLE: "no reply is so long; set max_tokens of a judge, and check base_url",
}
_HELP_BY_STATUS = {
    **dict.fromkeys(range(300, 400), "set base_url to where the API is"),
    400: "the request is at fault; read the server's words and the options, and try format='text'",
    404: "check base_url, which mostly ends with /v1, and the model's name",
}
_HELP_OF_ITS_OWN_ERROR = "the server or one behind it failed, and says so with status 200; read its words"
_HELP_NO_CHOICES = f"the server answers, and the model gave nothing: read the server's log{OR_FALLBACK}"

# By a finish reason a reply that did not end by itself, nor by its limit, and what helps.
_BROKEN_OFF = {"error": (Fault.SERVER_ERROR, ""), "context_length": (Fault.CONTEXT_LENGTH, HELP_OF_LENGTH)}
# Faults of what one question holds, and of nobody's machine.
_OF_ONE_QUESTION = frozenset({Fault.UNREADABLE, Fault.CONTENT_FILTER, Fault.CONTEXT_LENGTH})

_MASK = r"[*.\u2022]{2,}|\u2026"
# A word that may be part of a key, with the middle or the start of it masked.
_WORD = re.compile(rf"[\w\-+/=~]+(?:(?:{_MASK})[\w\-+/=~]*)?|(?:{_MASK})[\w\-+/=~]+")
_FORMAT_WORDS = re.compile(
    r"response[ _-]?format|json[ _-]?(schema|object|mode|output)|schema|guided|grammar|structured[ _-]?output",
    re.IGNORECASE,
)
MOST_BYTES = 16 * 2**20  # of an answer, unpacked, that are read
_EVENTS = re.compile(r"\s*(?:data|event|id|retry):")  # what a stream of server-sent events begins with
_MAX_WORDS = 300
_MOST_TOKENS = 10**9  # a higher count is not believed
_EARLIEST_UNIX_S = 10**9  # of a reset; a lower number is a wait
SHORTEST_KEY = 8  # shorter ones are placeholders, such as ``EMPTY``, that also stand in ordinary words


class HttpAnswer(NamedTuple):
    """What a server answered: status, headers in a mapping that ignores case, and JSON or else the text."""

    status: int
    headers: Mapping[str, str]
    content: Any


@dataclass(frozen=True, slots=True)
class Addressee:
    """Who is asked: the address and model that messages name, and the key, which they must not hold."""

    server: str
    model: str
    key: str | None = field(default=None, repr=False)

    def error(self, fault: Fault, problem: str, status: int | None = None, advice: str = "") -> JudgeError:
        """Return our error for one request that was sent."""
        kind = JudgeReplyError if fault in _OF_ONE_QUESTION else JudgeUnavailableError
        advice = advice or _HELP_BY_STATUS.get(status or 0) or _HELP[fault]
        error = kind(scrub(f"{self.server}, model {self.model!r}: {problem}; {advice}", self.key), fault)
        error.problem = scrub(problem, self.key)
        error.status, error.requests = status, 1
        return error

    def refusal(self, answer: HttpAnswer, *, behind_200: bool = False) -> JudgeError:
        """Return our error for a status that is no success, also if it stands in the body of a status 200."""
        status, body = answer.status, read_error(answer.content)
        message = _shorten(body.message or str(answer.content or "")) or "no words"
        problem = f"HTTP {status}: {message}"
        if behind_200:
            problem = f"HTTP 200 with error{'' if status == 200 else f' {status}'}: {message}"
        elif 300 <= status < 400:
            target = re.sub(r"//[^/@]*@", "//", answer.headers.get("location", "")).partition("?")[0]
            problem = f"HTTP {status}: it points to {_shorten(target)}, not followed"
        rule = body.rule(status)
        if status == 500 and rule.fault is Fault.SERVER_ERROR and any(map(names_format, body.own_words)):
            rule = ErrorRule(Fault.REJECTED)  # llama_cpp.server's of a format that it does not know
        error = self.error(rule.fault, problem, status, rule.advice)
        error.refuses_key = rule.refuses_key
        error.retry_after_s = retry_after_s(answer.headers, time.time()) or body.wait_s
        error.free = status >= 400 and status not in _OUT_OF_PATIENCE and not behind_200
        error.parameter = None if body.parameter is None else scrub(body.parameter, self.key)
        return error


def scrub(text: str, key: str | None) -> str:
    """Return a text without a key: the whole of it, longer parts, and masked forms such as ``sk-ab***yz``."""
    text = re.sub(r"(?i:\b(bearer\s+)[^\s'\"]+)|\bsk-[\w-]{8,}", lambda match: f"{match[1] or ''}[key]", text)
    return _mask_key(text, key, masked=True)


def _mask_key(text: str, key: str | None, *, masked: bool = False) -> str:
    """Return a text without a key and its longer parts, and without its masked forms if asked."""
    if key is None or len(key) < SHORTEST_KEY:
        return text

    def hides(word: str) -> bool:
        start, *ends = re.split(_MASK, word)
        of_key = (start and key.startswith(start)) or (ends and len(ends[-1]) > 1 and key.endswith(ends[-1]))
        return (len(start) >= SHORTEST_KEY and start in key) or bool(masked and ends and of_key)

    return _WORD.sub(lambda match: "[key]" if hides(match[0]) else match[0], text.replace(key, "[key]"))


def names_format(message: str) -> bool:
    return _FORMAT_WORDS.search(message) is not None


def translate(raised: Exception, addressee: Addressee) -> JudgeError:
    """Return our error for one of the transport's, or of a client handed over; one with a status goes by it."""
    status = getattr(raised, "status_code", None)
    if isinstance(status, int) and status >= 300:
        headers = getattr(getattr(raised, "response", None), "headers", {})
        return addressee.refusal(HttpAnswer(status, headers, getattr(raised, "body", None) or str(raised)))
    cause = raised.__cause__ or raised
    message = _shorten(str(cause)) or _shorten(str(raised)) or "no words"
    kinds = (*type(cause).__mro__, *type(raised).__mro__)
    faults = (_FOREIGN[kind.__name__] for kind in kinds if kind.__name__ in _FOREIGN)
    error = addressee.error(next(faults, Fault.REJECTED), f"{type(cause).__name__}: {message}")
    error.free = error.fault is Fault.REJECTED or type(cause).__name__ in _NOT_SENT
    return error


def retry_after_s(headers: Mapping[str, str], now: float) -> float | None:
    """Return the seconds that a server asks to wait, if any; a date (RFC 9110, 10.2.3) counts from ``now``.

    Without a ``retry-after`` it is until the last limit of which nothing remains is reset.
    """
    if (wait_s := wait_of("retry-after-ms", headers.get("retry-after-ms"))) is not None:
        return wait_s
    resets = ["retry-after"] if "retry-after" in headers else _spent_limits(headers)
    waits = (_until(headers.get(name, ""), now) for name in resets)
    return max((wait_s for wait_s in waits if wait_s is not None), default=None)


def _spent_limits(headers: Mapping[str, str]) -> Iterator[str]:
    """Yield the header that tells the reset of each limit of which nothing remains.

    Such as ``x-ratelimit-reset-tokens`` of OpenAI and ``anthropic-ratelimit-tokens-reset``.
    """
    for name, value in headers.items():
        if "ratelimit" in name.lower() and str(value).strip() == "0":
            yield re.sub("remaining", "reset", name, flags=re.IGNORECASE)


def _until(reset: str, now: float) -> float | None:
    """Return the seconds until a time that lies ahead: a duration, a date, or seconds or ms of Unix time."""
    seconds = wait_of("reset", reset)
    if seconds is not None and seconds > _EARLIEST_UNIX_S:
        seconds = seconds / (1000 if seconds > 1000 * _EARLIEST_UNIX_S else 1) - now
    for read in (parsedate_to_datetime, datetime.fromisoformat) if seconds is None else ():
        with suppress(ValueError, TypeError, OverflowError):
            seconds = read(reset).timestamp() - now
            break
    return seconds if seconds is not None and seconds > 0 else None


def _shorten(text: str) -> str:
    return shortened(text.rstrip(" .\n"), _MAX_WORDS)


def parse_completion(completion: object, addressee: Addressee) -> Reply:
    """Return the first choice of a chat completion as a Reply, or raise an error if there is no completion."""
    choices, usage = _get(completion, "choices"), _usage(_get(completion, "usage"))
    choice = choices[0] if isinstance(choices, list | tuple) and choices else None
    message, reason = _get(choice, "message"), _get(choice, "finish_reason")
    finish = reason if reason is None else _finish_reason(str(reason))
    failure = _get(completion, "error") or _get(choice, "error")
    if message is None or failure or finish in _BROKEN_OFF:
        error = _not_a_completion(completion, failure, addressee, finish or "")
        error.usage = usage
        raise error
    refusal = _get(message, "refusal") or ("the model gave no words" if finish == "refusal" else None)
    text, tokens = _text(_get(message, "content")), _tokens(_get(_get(choice, "logprobs"), "content"))
    has_key = any(_mask_key(quote, addressee.key) != quote for quote in (text, str(tokens)))
    return Reply(
        text=_mask_key(text, addressee.key),
        model=_mask_key(str(_get(completion, "model") or addressee.model), addressee.key),
        finish_reason=None if finish is None else _mask_key(finish, addressee.key),
        refusal=_mask_key(str(refusal), addressee.key) if refusal else None,
        usage=usage,
        tokens=None if has_key else tokens,
        reasoned=bool(_get(message, "reasoning_content") or _get(message, "reasoning")),
    )


def _finish_reason(reason: str) -> str:
    """Return a finish reason by OpenAI's name, also of one such as ``content_filter: SAFETY``."""
    return FINISH_REASONS.get(reason.partition(":")[0].strip().lower(), reason)


def _not_a_completion(completion: object, failure: object, addressee: Addressee, finish: str) -> JudgeError:
    """Return our error for an answer with status 200 that has no choice with a message, or an error beside one."""
    body = read_error(failure or completion)
    code = next((int(code) for code in body.codes if re.fullmatch("[45][0-9][0-9]", code)), None)
    rule = body.rule(code or 200) if failure or isinstance(completion, Mapping) else None
    if rule is not None and (code is not None or rule in ERROR_RULES):
        return addressee.refusal(HttpAnswer(code or 200, {}, failure or completion), behind_200=True)
    if finish in _BROKEN_OFF:
        fault, advice = _BROKEN_OFF[finish]
        return addressee.error(fault, f"HTTP 200 with a reply that was broken off ({finish})", 200, advice)
    problem, advice, choices = "HTTP 200 with no choices", "", _get(completion, "choices")
    if isinstance(completion, str):
        problem = f"HTTP 200 with no JSON: {_shorten(body.message)!r}"
        if _EVENTS.match(completion):
            problem = "HTTP 200 with a stream of events, which was not asked for"
            advice = "the server must answer a request without stream=true with one JSON object"
    elif failure:
        problem, advice = f"HTTP 200 with error: {_shorten(body.message)}", _HELP_OF_ITS_OWN_ERROR
    elif choices:
        problem, advice = "the reply's choice has no message", _HELP_NO_CHOICES
    elif isinstance(completion, Mapping) and "choices" in completion:
        advice = _HELP_NO_CHOICES
    return addressee.error(Fault.NOT_A_COMPLETION, problem, 200, advice)


def _get(value: object, name: str) -> Any:
    """Return a part of a mapping or of a client's object."""
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def _text(content: object) -> str:
    if isinstance(content, list | tuple):
        return "".join(_text(block if isinstance(block, str) else _get(block, "text")) for block in content)
    return content if isinstance(content, str) else ""


def _usage(usage: object) -> Usage | None:
    """Return the tokens that were counted, if all are valid counts; never a guess."""
    cached = _get(_get(usage, "prompt_tokens_details"), "cached_tokens") or 0
    counts = (_get(usage, "prompt_tokens"), _get(usage, "completion_tokens"), cached)
    return Usage(*counts) if all(type(count) is int and 0 <= count <= _MOST_TOKENS for count in counts) else None


def _tokens(content: Any) -> tuple[Token, ...] | None:
    """Return all tokens with their likelihood, or none: a gap would shift the tokens after it."""
    likely = _likelihoods(content)
    if not likely or len(likely) < len(content):
        return None
    tops = [tuple(_likelihoods(_get(entry, "top_logprobs"))) for entry in content]
    return tuple(Token(text, logprob, top) for (text, logprob), top in zip(likely, tops, strict=True))


def _likelihoods(entries: object) -> list[tuple[str, float]]:
    """Return tokens with their log-probabilities, up to the first token without one."""
    likely: list[tuple[str, float]] = []
    for entry in entries if isinstance(entries, list | tuple) else ():
        text, logprob = _get(entry, "token"), _get(entry, "logprob")
        if not isinstance(text, str) or not isinstance(logprob, int | float) or math.isnan(logprob):
            break
        likely.append((text, float(logprob)))
    return likely
