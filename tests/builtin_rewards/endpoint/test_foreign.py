"""The border to servers and clients: their errors are ours, any completion is read, no key passes."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from email.utils import formatdate
from types import SimpleNamespace
from typing import Any

import httpx2
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builtin_rewards.endpoint.errors import Fault, JudgeError, JudgeUnavailableError
from builtin_rewards.endpoint.foreign import Addressee, parse_completion, retry_after_s, scrub, translate
from builtin_rewards.endpoint.messages import Token, Usage

KEY = "sk-canary-0123456789abcdefghijklmnopqrstuvwxyz"
ASKED = Addressee("http://127.0.0.1:1/v1", "m", KEY)
REQUEST = httpx2.Request("POST", "http://127.0.0.1:1/v1/chat/completions", headers={"Authorization": f"Bearer {KEY}"})


class _StatusError(Exception):
    """What a client raises for an answer whose status is no success, as openai's does."""

    def __init__(self, status: int, body: Any = None) -> None:
        super().__init__("words")
        self.status_code, self.body, self.response = status, body, httpx2.Response(status, request=REQUEST)


def _validation_error() -> Exception:
    try:
        pydantic.TypeAdapter(int).validate_python("x")
    except pydantic.ValidationError as error:
        return error
    raise AssertionError


def _json_error() -> Exception:
    try:
        json.loads("{")
    except json.JSONDecodeError as error:
        return error
    raise AssertionError


FOREIGN = {
    "connection": (httpx2.ConnectError("refused", request=REQUEST), Fault.CONNECTION),
    "timeout": (httpx2.ReadTimeout("late", request=REQUEST), Fault.CONNECTION),
    "illegal header": (httpx2.LocalProtocolError(f"Illegal b'Bearer {KEY}'"), Fault.CONNECTION),
    "pydantic": (_validation_error(), Fault.NOT_A_COMPLETION),
    "json": (_json_error(), Fault.NOT_A_COMPLETION),
    "closed loop": (RuntimeError("Event loop is closed"), Fault.CONNECTION),
    "socket": (ConnectionResetError("reset"), Fault.CONNECTION),
    "bare timeout": (TimeoutError(), Fault.CONNECTION),
    "wrong option": (TypeError("create() got an unexpected keyword argument 'temprature'"), Fault.REJECTED),
    "surrogate": (UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed"), Fault.REJECTED),
    "unknown": (Exception(f"told with {KEY}"), Fault.REJECTED),
    "402": (_StatusError(402), Fault.QUOTA),
    "quota by type": (_StatusError(429, {"type": "insufficient_quota"}), Fault.QUOTA),
}


@pytest.mark.parametrize(("raised", "fault"), FOREIGN.values(), ids=FOREIGN)
def test_a_foreign_error_becomes_ours(raised: Exception, fault: Fault) -> None:
    """What the library raises is told with server, model and fault, counts as one request, and holds no key."""
    _is_translated(raised, fault)


def _is_translated(raised: Exception, fault: Fault) -> None:
    error = translate(raised, ASKED)

    assert (fault, 1) == (error.fault, error.requests)
    assert str(error).startswith("http://127.0.0.1:1/v1, model 'm': ")
    assert KEY not in str(error)
    assert JudgeUnavailableError is type(error)


def _caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


OPENAIS: dict[str, tuple[Callable[[Any], Exception], Fault]] = {
    "connection": (lambda openai: openai.APIConnectionError(request=REQUEST), Fault.CONNECTION),
    "timeout": (lambda openai: openai.APITimeoutError(REQUEST), Fault.CONNECTION),
    "illegal header": (
        lambda openai: _caused(
            openai.APIConnectionError(request=REQUEST), httpx2.LocalProtocolError(f"Illegal b'Bearer {KEY}'")
        ),
        Fault.CONNECTION,
    ),
    "validation": (
        lambda openai: openai.APIResponseValidationError(httpx2.Response(200, request=REQUEST), None),
        Fault.NOT_A_COMPLETION,
    ),
    "402": (
        lambda openai: openai.APIStatusError("words", response=httpx2.Response(402, request=REQUEST), body=None),
        Fault.QUOTA,
    ),
    "429": (
        lambda openai: openai.RateLimitError("words", response=httpx2.Response(429, request=REQUEST), body=None),
        Fault.RATE_LIMIT,
    ),
    "500": (
        lambda openai: openai.InternalServerError("words", response=httpx2.Response(500, request=REQUEST), body=None),
        Fault.SERVER_ERROR,
    ),
}


@pytest.mark.parametrize(("raised", "fault"), OPENAIS.values(), ids=OPENAIS)
def test_an_error_of_openais_client_becomes_ours(raised: Callable[[Any], Exception], fault: Fault) -> None:
    """A client that is handed over raises its own."""
    _is_translated(raised(pytest.importorskip("openai", reason="openai is needed for its own client alone")), fault)


BODIES = {
    "OpenAI": {"message": "wrong model"},
    "nested": {"error": {"message": "wrong model"}},
    "FastAPI": {"detail": "wrong model"},
    "bare": {"error": "wrong model"},
    "page": "<html><title>wrong</title> <p>model</p></html>",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_servers_words_are_found(body: Any) -> None:
    """However a server lays out its error, its words are in ours."""
    assert "HTTP 400: wrong model; " in str(translate(_StatusError(400, body), ASKED))


def test_long_words_are_cut() -> None:
    """A page of a megabyte does not become a message of one."""
    assert len(str(translate(_StatusError(500, "word " * 200_000), ASKED))) < 600


NOW = 1_700_000_000.0
HEADERS = {
    "seconds": ({"retry-after": "2"}, 2.0),
    "fraction": ({"retry-after": "0.25"}, 0.25),
    "date": ({"retry-after": formatdate(NOW + 30, usegmt=True)}, 30.0),
    "past date": ({"retry-after": formatdate(NOW - 30, usegmt=True)}, None),
    "with its unit": ({"retry-after": "37s"}, 37.0),
    "milliseconds first": ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
    "zero": ({"retry-after": "0"}, None),
    "negative": ({"retry-after": "-3"}, None),
    "nonsense": ({"retry-after": "soon"}, None),
    "not a number": ({"retry-after": "nan"}, None),
    "endless": ({"retry-after": "inf"}, float("inf")),
    "a time of Unix": ({"retry-after": f"{NOW + 30:.0f}"}, 30.0),
    "OpenAI's limits": (
        {
            "x-ratelimit-remaining-requests": "0",
            "x-ratelimit-reset-requests": "1m2.5s",
            "x-ratelimit-remaining-tokens": "7",
            "x-ratelimit-reset-tokens": "9m",
        },
        62.5,
    ),
    "two spent limits": (
        {
            "x-ratelimit-remaining-requests": "0",
            "x-ratelimit-reset-requests": "20ms",
            "x-ratelimit-remaining-tokens": "0",
            "x-ratelimit-reset-tokens": "3",
        },
        3.0,
    ),
    "Anthropic's limits": (
        {"anthropic-ratelimit-tokens-remaining": "0", "anthropic-ratelimit-tokens-reset": "2023-11-14T22:13:50Z"},
        30.0,
    ),
    "OpenRouter's limits": ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": f"{(NOW + 5) * 1000:.0f}"}, 5.0),
    "a limit that is reset": ({"ratelimit-remaining": "0", "ratelimit-reset": "0"}, None),
    "a limit without a reset": ({"ratelimit-remaining": "0"}, None),
    "nothing spent": ({"ratelimit-remaining": "5", "ratelimit-reset": "30"}, None),
    "retry-after before limits": ({"retry-after": "2", "ratelimit-remaining": "0", "ratelimit-reset": "30"}, 2.0),
    "none": ({}, None),
}


@pytest.mark.parametrize(("headers", "expected"), HEADERS.values(), ids=HEADERS)
def test_retry_after_is_read(headers: dict[str, str], expected: float | None) -> None:
    """Retry-After in seconds, milliseconds or as a date; what cannot be read asks nothing."""
    assert expected == retry_after_s(headers, NOW)


@pytest.mark.parametrize("before", [{}, {"ratelimit-remaining": "0"}], ids=["alone", "a limit"])
@given(text=st.text(max_size=40))
def test_retry_after_never_raises(before: dict[str, str], text: str) -> None:
    """Whatever a server writes there, it is a positive wait or none."""
    seconds = retry_after_s({**before, "ratelimit-reset" if before else "retry-after": text}, NOW)

    assert seconds is None or seconds > 0


ECHOES = {
    "whole": KEY,
    "bearer": f"Bearer {KEY}",
    "stars": "sk-canar*************wxyz",
    "dots": "sk-canar...wxyz",
    "end": "****wxyz",
    "ellipsis": "sk-ca\u2026wxyz",
    "head": KEY[:20],
    "tail": KEY[-12:],
    "another key": "sk-proj-AAAABBBBCCCC",
    "percent": f"key%3D{KEY}",
}


@pytest.mark.parametrize("echo", ECHOES.values(), ids=ECHOES)
def test_an_echoed_key_is_scrubbed(echo: str) -> None:
    """A key is taken out whole, in part and masked, and the words around it stay."""
    clean = scrub(f"Incorrect API key provided: '{echo}'. You can find yours.", KEY)

    assert "[key]" in clean
    assert clean.startswith("Incorrect API key provided: '")
    assert clean.endswith("'. You can find yours.")
    for part in ("canar", "wxyz", "AAAA"):
        assert part not in clean


@given(st.text(alphabet="abc-_ .*'", max_size=60), st.text(alphabet="abcdef0123456789", min_size=8, max_size=40))
def test_no_text_keeps_a_key(words: str, key: str) -> None:
    """Wherever a key stands in a text, it is not there afterwards."""
    assert key not in scrub(f"{words}{key}{words}", key)


@given(st.text(alphabet="abcdefghij .,-", max_size=60))
def test_words_without_a_key_stay(words: str) -> None:
    """Scrubbing leaves other words alone, also those that hold a placeholder for a key."""
    assert words == scrub(words, "0123456789ABCDEF")
    assert words == scrub(words, "ab")


def _completion(message: Any, **choice: Any) -> dict[str, Any]:
    return {"model": "served", "choices": [{"message": message, "finish_reason": "stop", **choice}]}


def test_all_of_a_completion_is_read() -> None:
    """Text, model, refusal, finish, tokens with likelihoods and usage with what was cached."""
    top = [{"token": "4", "logprob": -0.1}, {"token": "5", "logprob": -2.5}]
    reply = parse_completion(
        {
            **_completion(
                {"content": "4", "refusal": "no"},
                finish_reason="length",
                logprobs={"content": [{"token": "4", "logprob": -0.1, "top_logprobs": top}]},
            ),
            "usage": {"prompt_tokens": 9, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 8}},
        },
        ASKED,
    )

    assert ("4", "served", "length", "no") == (reply.text, reply.model, reply.finish_reason, reply.refusal)
    assert (Token("4", -0.1, (("4", -0.1), ("5", -2.5))),) == reply.tokens
    assert Usage(9, 1, 8) == reply.usage


CONTENTS = {
    "text": ("a", "a"),
    "none": (None, ""),
    "blocks": ([{"type": "text", "text": "a"}, SimpleNamespace(text="b"), "c"], "abc"),
    "other blocks": ([{"type": "image_url"}, 7, None], ""),
    "number": (4, ""),
}


@pytest.mark.parametrize(("content", "expected"), CONTENTS.values(), ids=CONTENTS)
def test_a_content_of_any_shape_is_read(content: Any, expected: str) -> None:
    """A content that is no text is an empty text, for the verdict to refuse; blocks are joined."""
    assert expected == parse_completion(_completion({"content": content}), ASKED).text


USAGES = {
    "none": None,
    "empty": {},
    "null": {"prompt_tokens": None, "completion_tokens": 1},
    "words": {"prompt_tokens": "9", "completion_tokens": "1"},
    "negative": {"prompt_tokens": -1, "completion_tokens": 1},
    "more than any text has": {"prompt_tokens": 10**30, "completion_tokens": 1},
    "a list": [1],
}


@pytest.mark.parametrize("usage", USAGES.values(), ids=USAGES)
def test_a_usage_that_says_nothing_is_none(usage: Any) -> None:
    """Tokens are numbers that the server gave, or unknown; never a guess."""
    assert parse_completion({**_completion({"content": "a"}), "usage": usage}, ASKED).usage is None


WRITTEN = {
    "the key": (f"bad key: {KEY}", "bad key: [key]"),
    "a part of it": (f'{{"reason": "{KEY[:12]}"}}', '{"reason": "[key]"}'),
    "a word like one": ("the bearer of sk-examples12 has s**bold** words", None),
}


@pytest.mark.parametrize(("written", "read_as"), WRITTEN.values(), ids=WRITTEN)
@pytest.mark.parametrize("field", ["content", "refusal"])
def test_a_key_that_a_model_quotes_is_taken_out(field: str, written: str, read_as: str | None) -> None:
    """All else stays as it was written, and the likelihoods stay with a text of their own only."""
    logprobs = {"content": [{"token": "a", "logprob": -1.0}]}
    reply = parse_completion(
        _completion({"content": "a", field: written}, logprobs=logprobs), Addressee("there", "m", KEY)
    )
    assert (read_as or written) == (reply.text if field == "content" else reply.refusal)
    assert (reply.tokens is None) == (field == "content" and read_as is not None)


LOGPROBS = {
    "none": None,
    "no content": {"content": None},
    "empty": {"content": []},
    "a gap": {"content": [{"token": "a", "logprob": -1.0}, {"token": "b", "logprob": None}]},
    "nan": {"content": [{"token": "a", "logprob": float("nan")}]},
    "words": {"content": "ab"},
}


@pytest.mark.parametrize("logprobs", LOGPROBS.values(), ids=LOGPROBS)
def test_likelihoods_with_a_gap_are_none(logprobs: Any) -> None:
    """Tokens are given all or not at all."""
    assert parse_completion(_completion({"content": "ab"}, logprobs=logprobs), ASKED).tokens is None


def test_a_403_of_content_that_is_sent_with_status_200_is_no_refused_key() -> None:
    """A router's own 403 is read as a server's; one about the key is of the key."""
    told = []
    for words in ("your input was flagged", "this key may not use the model"):
        with pytest.raises(JudgeError) as caught:
            parse_completion({"error": {"message": words, "code": 403}}, ASKED)
        told.append((caught.value.status, caught.value.refuses_key, "the key may not use" in str(caught.value)))
    assert [(403, False, False), (403, True, True)] == told


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["choices", "message", "content", "usage", "logprobs", "error", "code", "token", "logprob"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_any_json_is_a_reply_or_an_error_of_ours(answer: Any) -> None:
    """No JSON that a server may send raises anything but ours."""
    text = "none"
    with suppress(JudgeError):
        text = parse_completion(answer, ASKED).text

    assert isinstance(text, str)


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_reasoning_beside_the_text_is_noticed(name: str) -> None:
    """A model that only reasoned has said nothing, and its judge can say why."""
    assert (True, "") == (lambda reply: (reply.reasoned, reply.text))(
        parse_completion(_completion({name: "Hm."}), ASKED)
    )
    assert not parse_completion(_completion({"content": "4", name: ""}), ASKED).reasoned


def test_a_refused_parameter_is_named() -> None:
    """As the server names it, where it does."""
    error = translate(_StatusError(400, {"message": "no", "param": "temperature"}), ASKED)
    assert "temperature" == error.parameter
    assert translate(_StatusError(400, {"error": {"param": ["x"]}}), ASKED).parameter is None
