"""What each provider says where it gives no verdict, in its public form, and the fault that it is: one table.

``docs/reference/judge.md`` has it as it stands here. ``CASES`` are bodies of answers with a status that is no success,
or of 200 with an error in them; ``FINISHES`` are finish reasons of a reply with a whole verdict.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builtin_rewards.endpoint.endpoint import TRIED_AGAIN
from builtin_rewards.endpoint.errors import Fault, JudgeError, JudgeReplyError, JudgeUnavailableError
from builtin_rewards.endpoint.foreign import Addressee, HttpAnswer, parse_completion, translate
from builtin_rewards.endpoint.provider_errors import ERROR_RULES, read_error
from builtin_rewards.judge import LLMJudge, Load, RetryPolicy
from rewardkit import Cause, Rollout, Runtime, Status

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "judge.md"
ASKED = Addressee("http://127.0.0.1:1/v1", "m", "sk-canary-0123456789abcdefghijklmnopqrstuvwxyz")
F = Fault


class Case(NamedTuple):
    """One answer of a provider.

    Attributes:
        fault: What it is.
        status: Its status.
        body: Its JSON, or a text.
        form: How the page names it.
        key: Whether it refuses the key or account, so that the breaker opens.
        wait_s: The seconds that it asks to wait.
        headers: Its headers that matter.
    """

    fault: Fault
    status: int
    body: Any
    form: str
    key: bool = False
    wait_s: float | None = None
    headers: dict[str, str] = {}  # noqa: RUF012 - of a tuple


def openai(message: str, code: Any = None, kind: str | None = "invalid_request_error", **more: Any) -> dict[str, Any]:
    """Return a body in OpenAI's layout."""
    return {"error": {"message": message, "type": kind, "param": None, "code": code, **more}}


def google(code: int, message: str, status: str, *details: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a body as Gemini's OpenAI address gives it, which is a list."""
    return [{"error": {"code": code, "message": message, "status": status, "details": list(details)}}]


def anthropic(kind: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}


def vllm(message: str, kind: str = "BadRequestError", code: int = 400) -> dict[str, Any]:
    return {"object": "error", "message": message, "type": kind, "param": None, "code": code}


def openrouter(code: int, message: str, **metadata: Any) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "metadata": metadata}, "user_id": "user_1"}


TOO_LONG = (
    "This model's maximum context length is 4096 tokens. However, you requested 9000 tokens (7976 in the messages, "
    "1024 in the completion). Please reduce the length of the messages or completion."
)
RETRY_INFO = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "37s"}
ERROR_INFO = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "domain": "googleapis.com"}
AZURE_FILTER = {
    "code": "ResponsibleAIPolicyViolation",
    "content_filter_result": {"violence": {"filtered": True, "severity": "medium"}},
}
FILTERED = (
    "The response was filtered due to the prompt triggering Azure OpenAI's content management policy. Please modify "
    "your prompt and retry."
)
CASES: dict[str, list[Case]] = {
    "OpenAI": [
        Case(F.CONTENT_FILTER, 400, openai("Invalid prompt: your prompt was flagged as potentially violating our usage "
             "policy. Please try again with a different prompt", "invalid_prompt"), "`invalid_prompt`"),
        Case(F.CONTENT_FILTER, 400, openai("Your request was rejected as a result of our safety system.",
             "content_policy_violation"), "`content_policy_violation`"),
        Case(F.CONTEXT_LENGTH, 400, openai(TOO_LONG, "context_length_exceeded", param="messages"),
             "`context_length_exceeded`"),
        Case(F.CONTEXT_LENGTH, 400, openai("Invalid 'messages[0].content': string too long. Expected a string with "
             "maximum length 1048576, but got a string with length 2000000 instead.", "string_above_max_length"),
             "`string_above_max_length`"),
        Case(F.CONTEXT_LENGTH, 429, openai("Request too large for gpt-4o in organization org-1 on tokens per min (TPM):"
             " Limit 30000, Requested 42000. The input or output tokens must be reduced in order to run successfully.",
             "rate_limit_exceeded", "tokens"), "429, \"Request too large\""),
        Case(F.RATE_LIMIT, 429, openai("Rate limit reached for gpt-4o in organization org-1 on tokens per min (TPM): "
             "Limit 30000, Used 29000, Requested 1600. Please try again in 1.2s.", "rate_limit_exceeded", "tokens"),
             "`rate_limit_exceeded`, \"try again in 1.2s\"", wait_s=1.2),
        Case(F.RATE_LIMIT, 429, openai("Rate limit reached for requests. Limit: 3 / min. Please try again in 6m0s.",
             "rate_limit_exceeded", "requests"), "\"try again in 6m0s\"", wait_s=360.0),
        Case(F.RATE_LIMIT, 429, openai("Rate limit reached. Please try again in 20ms.", "rate_limit_exceeded"),
             "`retry-after-ms`", wait_s=0.5, headers={"retry-after-ms": "500"}),
        Case(F.QUOTA, 429, openai("You exceeded your current quota, please check your plan and billing details.",
             "insufficient_quota", "insufficient_quota"), "`insufficient_quota`", key=True),
        Case(F.QUOTA, 400, openai("Billing hard limit has been reached", "billing_hard_limit_reached"),
             "`billing_hard_limit_reached`", key=True),
        Case(F.REJECTED, 401, openai("Incorrect API key provided: sk-ab***yz.", "invalid_api_key"), "`invalid_api_key`",
             key=True),
        Case(F.REJECTED, 404, openai("The model `m` does not exist or you do not have access to it.",
             "model_not_found"), "`model_not_found`"),
        Case(F.REJECTED, 404, openai("The model `omni-moderation-latest` does not exist.", "model_not_found"),
             "a model named after moderation"),
        Case(F.REJECTED, 400, openai("messages.1.content: expected text. " + "It is seven. " * 60 + "Invalid API key."
             " The prompt is too long. Content Exists Risk"), "a completion that is echoed"),
        Case(F.REJECTED, 400, openai("max_tokens is too large: 9999. This model supports at most 4096 completion "
             "tokens, whereas you provided 9999.", "invalid_value", param="max_tokens"), "`max_tokens` is too large"),
        Case(F.SERVER_ERROR, 503, openai("The engine is currently overloaded, please try again later", None,
             "server_error"), "503"),
    ],
    "Azure": [
        Case(F.CONTENT_FILTER, 400, openai(FILTERED, "content_filter", None, status=400, innererror=AZURE_FILTER),
             "`content_filter`, `ResponsibleAIPolicyViolation`"),
        Case(F.CONTENT_FILTER, 400, openai(FILTERED, None, None), "without a code"),
        Case(F.CONTEXT_LENGTH, 400, openai(TOO_LONG, "context_length_exceeded"), "`context_length_exceeded`"),
        Case(F.RATE_LIMIT, 429, {"error": {"code": "429", "message": "Requests to the ChatCompletions_Create Operation "
             "under Azure OpenAI API version 2024-10-21 have exceeded token rate limit of your current OpenAI S0 "
             "pricing tier. Please retry after 26 seconds."}}, "\"retry after 26 seconds\"", wait_s=26.0),
        Case(F.REJECTED, 401, {"error": {"code": "401", "message": "Access denied due to invalid subscription key or "
             "wrong API endpoint."}}, "\"invalid subscription key\"", key=True),
        Case(F.REJECTED, 404, {"error": {"code": "DeploymentNotFound", "message": "The API deployment for this resource"
             " does not exist."}}, "`DeploymentNotFound`"),
    ],
    "Anthropic": [
        Case(F.CONTENT_FILTER, 400, anthropic("invalid_request_error", "Output blocked by content filtering policy"),
             "\"content filtering policy\""),
        Case(F.CONTEXT_LENGTH, 400, anthropic("invalid_request_error", "prompt is too long: 202609 tokens > 200000 "
             "maximum"), "\"prompt is too long\""),
        Case(F.CONTEXT_LENGTH, 400, anthropic("invalid_request_error", "input length and `max_tokens` exceed context "
             "limit: 190000 + 20000 > 200000, decrease input length or `max_tokens` and try again"),
             "\"exceed context limit\""),
        Case(F.CONTEXT_LENGTH, 413, anthropic("request_too_large", "Request exceeds the maximum size"),
             "`request_too_large`"),
        Case(F.RATE_LIMIT, 429, anthropic("rate_limit_error", "This request would exceed your organization's rate limit"
             " of 40,000 input tokens per minute. Please reduce the prompt length or the maximum tokens requested, or "
             "try again later."), "`rate_limit_error`", wait_s=12.0, headers={"retry-after": "12"}),
        Case(F.QUOTA, 400, anthropic("invalid_request_error", "Your credit balance is too low to access the Anthropic "
             "API. Please go to Plans & Billing to upgrade or purchase credits."), "\"credit balance is too low\"",
             key=True),
        Case(F.REJECTED, 401, anthropic("authentication_error", "invalid x-api-key"), "`authentication_error`",
             key=True),
        Case(F.REJECTED, 403, anthropic("permission_error", "Your API key does not have permission to use the specified"
             " resource."), "`permission_error`", key=True),
        Case(F.SERVER_ERROR, 529, anthropic("overloaded_error", "Overloaded"), "`overloaded_error`"),
    ],
    "Gemini": [
        Case(F.CONTEXT_LENGTH, 400, google(400, "The input token count (1200000) exceeds the maximum number of tokens "
             "allowed (1048576).", "INVALID_ARGUMENT"), "\"input token count exceeds\""),
        Case(F.CONTENT_FILTER, 400, google(400, "The prompt was blocked due to safety: PROHIBITED_CONTENT",
             "INVALID_ARGUMENT"), "\"blocked due to safety\""),
        Case(F.RATE_LIMIT, 429, google(429, "You exceeded your current quota, please check your plan and billing "
             "details. * Quota exceeded for metric: generate_content_free_tier_requests, limit: 10",
             "RESOURCE_EXHAUSTED", RETRY_INFO), "`RESOURCE_EXHAUSTED`, `RetryInfo.retryDelay`", wait_s=37.0),
        Case(F.RATE_LIMIT, 429, {"error": {"message": json.dumps(google(429, "Resource has been exhausted (e.g. check "
             "quota).", "RESOURCE_EXHAUSTED")[0]), "code": 429, "status": "Too Many Requests"}}, "JSON in the message"),
        Case(F.REJECTED, 400, google(400, "API key not valid. Please pass a valid API key.", "INVALID_ARGUMENT",
             {**ERROR_INFO, "reason": "API_KEY_INVALID"}), "`API_KEY_INVALID`", key=True),
        Case(F.REJECTED, 400, google(400, "Missing or invalid Authorization header.", "INVALID_ARGUMENT"),
             "\"invalid Authorization header\"", key=True),
        Case(F.REJECTED, 403, google(403, "Your API key was reported as leaked. Please use another API key.",
             "PERMISSION_DENIED"), "\"reported as leaked\"", key=True),
        Case(F.SERVER_ERROR, 503, google(503, "The model is overloaded. Please try again later.", "UNAVAILABLE"),
             "`UNAVAILABLE`"),
    ],
    "DeepSeek": [
        Case(F.CONTENT_FILTER, 400, openai("Content Exists Risk", "invalid_request_error"), "\"Content Exists Risk\""),
        Case(F.CONTEXT_LENGTH, 400, openai(TOO_LONG, "invalid_request_error"), "\"maximum context length\""),
        Case(F.QUOTA, 402, openai("Insufficient Balance", "invalid_request_error", "unknown_error"),
             "\"Insufficient Balance\"", key=True),
        Case(F.REJECTED, 401, openai("Authentication Fails, Your api key: ****0000 is invalid", "invalid_request_error",
             "authentication_error"), "`authentication_error`", key=True),
    ],
    "DashScope": [
        Case(F.CONTENT_FILTER, 400, {"error": {"code": "data_inspection_failed", "param": None, "message": "Input data "
             "may contain inappropriate content.", "type": "data_inspection_failed"}}, "`data_inspection_failed`"),
        Case(F.CONTENT_FILTER, 400, {"code": "DataInspectionFailed", "message": "Output data may contain inappropriate "
             "content.", "request_id": "1"}, "`DataInspectionFailed`"),
        Case(F.CONTEXT_LENGTH, 400, openai("<400> InternalError.Algo.InvalidParameter: Range of input length should be "
             "[1, 30720]", "invalid_parameter_error"), "\"Range of input length\""),
        Case(F.RATE_LIMIT, 429, openai("Allocated quota exceeded, please increase your quota limit.",
             "insufficient_quota", "insufficient_quota"), "\"Allocated quota exceeded\""),
        Case(F.RATE_LIMIT, 429, openai("You have exceeded your current request limit.", "limit_requests",
             "limit_requests"), "`limit_requests`"),
        Case(F.QUOTA, 400, openai("Access denied, please make sure your account is in good standing.", "Arrearage",
             "Arrearage"), "`Arrearage`", key=True),
        Case(F.REJECTED, 401, openai("Incorrect API key provided.", "invalid_api_key"), "`invalid_api_key`", key=True),
    ],
    "Zhipu": [
        Case(F.CONTENT_FILTER, 400, {"contentFilter": [{"level": 1, "role": "user"}], "error": {"code": "1301",
             "message": "\u7cfb\u7edf\u68c0\u6d4b\u5230\u8f93\u5165\u6216\u751f\u6210\u5185\u5bb9\u53ef\u80fd\u5305"
             "\u542b\u4e0d\u5b89\u5168\u6216\u654f\u611f\u5185\u5bb9"}}, "1301"),
        Case(F.CONTEXT_LENGTH, 400, {"error": {"code": "1261", "message": "Prompt \u8d85\u957f"}}, "1261"),
        Case(F.CONTEXT_LENGTH, 400, {"error": {"code": "1210", "message": "Prompt exceeds max length"}},
             "\"Prompt exceeds max length\""),
        Case(F.RATE_LIMIT, 429, {"error": {"code": "1302", "message": "\u60a8\u7684\u8d26\u6237\u5df2\u8fbe\u5230\u901f"
             "\u7387\u9650\u5236\uff0c\u8bf7\u60a8\u63a7\u5236\u8bf7\u6c42\u9891\u7387"}}, "1302, 1305"),
        Case(F.QUOTA, 429, {"error": {"code": "1113", "message": "\u60a8\u7684\u8d26\u6237\u5df2\u6b20\u8d39"}},
             "1113", key=True),
        Case(F.REJECTED, 401, {"error": {"code": "1000", "message": "\u8eab\u4efd\u9a8c\u8bc1\u5931\u8d25"}},
             "1000 to 1004", key=True),
        Case(F.REJECTED, 400, {"error": {"code": "1211", "message": "\u6a21\u578b\u4e0d\u5b58\u5728"}}, "1211"),
        Case(F.SERVER_ERROR, 500, {"error": {"code": "1234", "message": "\u7f51\u7edc\u9519\u8bef"}}, "1234"),
    ],
    "Mistral": [
        Case(F.CONTEXT_LENGTH, 400, {"object": "error", "message": "Prompt contains 40011 tokens and 0 draft tokens, "
             "too large for model with 32768 maximum context length", "type": "invalid_request_prompt", "param": None,
             "code": "3051"}, "`invalid_request_prompt`"),
        Case(F.RATE_LIMIT, 429, {"object": "error", "message": "Service tier capacity exceeded for this model.",
             "type": "service_tier_capacity_exceeded", "param": None, "code": "3505"},
             "`service_tier_capacity_exceeded`"),
        Case(F.REJECTED, 401, {"detail": "Unauthorized"}, "401", key=True),
        Case(F.REJECTED, 422, {"object": "error", "message": {"detail": [{"type": "extra_forbidden", "loc": ["body",
             "logprobs"], "msg": "Extra inputs are not permitted"}]}, "type": "invalid_request_error"}, "422"),
    ],
    "OpenRouter": [
        Case(F.CONTENT_FILTER, 403, openrouter(403, "openai/gpt-4o requires moderation on OpenAI. Your input was "
             "flagged for \"violence\". No credits were charged.", reasons=["violence"], flagged_input="How to",
             provider_name="OpenAI"), "403 with `flagged_input`"),
        Case(F.CONTENT_FILTER, 400, openrouter(400, "Provider returned error", raw=json.dumps(openai(FILTERED,
             "content_filter")), provider_name="Azure"), "400 with `metadata.raw`"),
        Case(F.CONTEXT_LENGTH, 400, openrouter(400, "This endpoint's maximum context length is 32768 tokens. However, "
             "you requested about 40024 tokens (39000 of text input, 1024 in the output). Please reduce the length of "
             "either one, or use the \"middle-out\" transform."), "\"maximum context length\""),
        Case(F.RATE_LIMIT, 429, openrouter(429, "Provider returned error", raw="z-ai/glm-5 is temporarily rate-limited "
             "upstream. Please retry shortly.", provider_name="BaseTen"), "429"),
        Case(F.RATE_LIMIT, 200, openrouter(429, "Rate limit exceeded: free-models-per-min."), "429 behind a 200"),
        Case(F.QUOTA, 402, openrouter(402, "This request requires more credits, or fewer max_tokens. You requested up "
             "to 65535 tokens, but can only afford 5000."), "402", key=True),
        Case(F.REJECTED, 401, openrouter(401, "No auth credentials found"), "401", key=True),
        Case(F.SERVER_ERROR, 502, openrouter(502, "Provider returned error", raw="upstream connect error"), "502"),
        Case(F.SERVER_ERROR, 200, {"id": "gen-1", "choices": [{"index": 0, "finish_reason": "error", "message":
             {"role": "assistant", "content": ""}, "error": {"code": 502, "message": "Upstream error"}}]},
             "`choices[0].error`"),
    ],
    "LiteLLM": [
        Case(F.CONTENT_FILTER, 400, {"error": {"message": "litellm.BadRequestError: litellm.ContentPolicyViolationError"
             f": AzureException - {FILTERED}", "type": None, "param": None, "code": "400", "provider_specific_fields":
             {"innererror": AZURE_FILTER}}}, "`ContentPolicyViolationError`"),
        Case(F.CONTEXT_LENGTH, 400, {"error": {"message": f"litellm.ContextWindowExceededError: {TOO_LONG}", "type":
             None, "param": None, "code": "400"}}, "`ContextWindowExceededError`"),
        Case(F.REJECTED, 400, openai("No connected db.", "400", "no_db_connection"), "400, `no_db_connection`",
             key=True),
        Case(F.REJECTED, 401, openai("Authentication Error, Invalid proxy server token passed.", "401", "auth_error"),
             "`auth_error`", key=True),
    ],
    "vLLM": [
        Case(F.CONTEXT_LENGTH, 400, vllm(TOO_LONG), "\"maximum context length\""),
        Case(F.CONTEXT_LENGTH, 400, {"error": vllm("'max_tokens' or 'max_completion_tokens' is too large: 1024. This "
             "model's maximum context length is 4096 tokens and your request has 4000 input tokens (1024 > 4096 - "
             "4000).")}, "`max_tokens` beyond what is left"),
        Case(F.CONTEXT_LENGTH, 400, {"error": vllm("You passed 4097 input tokens and requested 1024 output tokens. "
             "However, the model's context length is only 4096 tokens. Please reduce the length of the input prompt.")},
             "`VLLMValidationError`"),
        Case(F.CONTEXT_LENGTH, 400, vllm("The prompt (total length 25938) is too long to fit into the model (context "
             "length 4096). Make sure that `max_model_len` is no smaller than the number of text tokens."),
             "\"too long to fit\""),
        Case(F.REJECTED, 401, {"error": "Unauthorized"}, "401", key=True),
        Case(F.REJECTED, 404, vllm("The model `m` does not exist.", "NotFoundError", 404), "404"),
    ],
    "SGLang": [
        Case(F.CONTEXT_LENGTH, 400, vllm("The input (61709 tokens) is longer than the model's context length (40960 "
             "tokens)."), "\"longer than the model's context length\""),
        Case(F.CONTEXT_LENGTH, 400, vllm("Input length (160062 tokens) exceeds the maximum allowed length (59862 tokens"
             "). Use a shorter input or enable --allow-auto-truncate."), "\"exceeds the maximum allowed length\""),
        Case(F.CONTEXT_LENGTH, 400, vllm("Requested token count exceeds the model's maximum context length of 4096 "
             "tokens. You requested a total of 5024 tokens."), "\"Requested token count exceeds\""),
        Case(F.REJECTED, 401, {"error": "Unauthorized"}, "401", key=True),
    ],
    "Ollama": [
        Case(F.CONTEXT_LENGTH, 400, openai("prompt too long; exceeded max context length by 512 tokens", None,
             "api_error"), "\"exceeded max context length\""),
        Case(F.REJECTED, 404, openai('model "m" not found, try pulling it first', None, "api_error"), "404"),
        Case(F.SERVER_ERROR, 500, openai("llama runner process has terminated", None, "api_error"), "500"),
        Case(F.SERVER_ERROR, 503, openai("server busy, please try again. maximum pending requests exceeded", None,
             "api_error"), "503"),
    ],
    "LM Studio": [
        Case(F.CONTEXT_LENGTH, 400, {"error": "The number of tokens to keep from the initial prompt is greater than the"
             " context length (n_keep: 13055>= n_ctx: 4096). Try to load the model with a larger context length, or "
             "provide a shorter input."}, "\"greater than the context length\""),
        Case(F.CONTEXT_LENGTH, 200, {"error": "Trying to keep the first 6547 tokens when context the overflows. "
             "However, the model is loaded with context length of only 4096 tokens, which is not enough."},
             "the same behind a 200"),
        Case(F.REJECTED, 404, openai("Model \"m\" not found.", "model_not_found"), "404"),
    ],
    "llama.cpp": [
        Case(F.CONTEXT_LENGTH, 400, {"error": {"code": 400, "message": "the request exceeds the available context size,"
             " try increasing it", "type": "exceed_context_size_error", "n_prompt_tokens": 14429, "n_ctx": 8192}},
             "`exceed_context_size_error`"),
        Case(F.CONTEXT_LENGTH, 500, {"error": {"code": 500, "message": "the request exceeds the available context size."
             " try increasing the context size or enable context shift", "type": "server_error"}}, "500 of older ones"),
        Case(F.CONTEXT_LENGTH, 500, {"error": {"message": "Requested tokens (2285) exceed context window of 2048",
             "type": "internal_server_error", "param": None, "code": None}}, "its Python server's 500"),
        Case(F.CONTEXT_LENGTH, 400, openai("This model's maximum context length is 512 tokens, however you requested "
             "1000 tokens (976 in your prompt; 24 for the completion).", "context_length_exceeded"),
             "its Python server's `context_length_exceeded`"),
        Case(F.REJECTED, 401, {"error": {"code": 401, "message": "Invalid API Key", "type": "authentication_error"}},
             "`authentication_error`", key=True),
        Case(F.SERVER_ERROR, 503, {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}},
             "503"),
    ],
    "others": [
        Case(F.CONTENT_FILTER, 422, {"error": {"message": "input new_sensitive (1026)", "type": "bad_request"}},
             "MiniMax: `new_sensitive`"),
        Case(F.CONTENT_FILTER, 400, 'data:{"error":{"code":"421","message":"Moderation Block","param":"The request was '
             'rejected because it was considered high risk","type":"content_filter"}}', "MiMo: an event"),
        Case(F.CONTENT_FILTER, 400, openai("input contains sensitive words: [x]", "sensitive_words_detected",
             "new_api_error"), "New API: `sensitive_words_detected`"),
        Case(F.CONTEXT_LENGTH, 422, {"error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= "
             "4096. Given: 5000 `inputs` tokens and 1024 `max_new_tokens`", "error_type": "validation"},
             "TGI: \"must be <=\""),
        Case(F.CONTEXT_LENGTH, 422, {"error": "Input validation error: `inputs` must have less than 1024 tokens. "
             "Given: 1111", "error_type": "validation"}, "\"must have less than\""),
        Case(F.CONTEXT_LENGTH, 413, openai("Request too large for model `m` in organization `o` service tier "
             "`on_demand` on tokens per minute (TPM): Limit 6000, Requested 7000, please reduce your message size and "
             "try again.", "rate_limit_exceeded", "tokens"), "Groq: \"Request too large\""),
        Case(F.CONTEXT_LENGTH, 400, openai("Invalid request: Your request exceeded model token limit: 8192"),
             "Moonshot: \"exceeded model token limit\""),
        Case(F.CONTEXT_LENGTH, 400, {"error": "This model's maximum prompt length is 131072 but the request contains "
             "150000 tokens.", "code": "Client specified an invalid argument"}, "xAI: \"maximum prompt length\""),
        Case(F.RATE_LIMIT, 429, openai("Rate limit reached for model `m`. Please try again in 1m12.5s.",
             "rate_limit_exceeded"), "Groq: \"try again in 1m12.5s\"", wait_s=72.5),
        Case(F.QUOTA, 403, openai("\u7528\u6237\u989d\u5ea6\u4e0d\u8db3", "insufficient_user_quota", "new_api_error"),
             "New API: `insufficient_user_quota`", key=True),
        Case(F.REJECTED, 500, openai("Invalid API key", None, "server_error"), "a wrong key with 500", key=True),
    ],
}  # fmt: skip
FLAT = {f"{provider}: {case.form}": case for provider, cases in CASES.items() for case in cases}

FINISHES: dict[str, tuple[Fault | None, str]] = {
    **dict.fromkeys(("stop", "STOP", "end_turn", "eos"), (None, "")),
    **dict.fromkeys(("length", "MAX_TOKENS", "model_length", "max_tokens"), (F.TRUNCATED, "raise max_tokens")),
    "model_context_window_exceeded": (F.CONTEXT_LENGTH, "max_chars"),
    **dict.fromkeys(
        ("content_filter", "SAFETY", "RECITATION", "PROHIBITED_CONTENT", "BLOCKLIST", "SPII", "sensitive"),
        (F.CONTENT_FILTER, "filter"),
    ),
    "content_filter: PROHIBITED_CONTENT": (F.CONTENT_FILTER, "filter"),
    "refusal": (F.REFUSED, "refusal"),
    **dict.fromkeys(
        ("network_error", "insufficient_system_resource", "error", "abort"), (F.SERVER_ERROR, "was broken off")
    ),
}


def error_of(case: Case) -> JudgeError:
    """Return the judge's error for a case, as openai's client would have it."""
    if case.status < 300:
        with pytest.raises(JudgeError) as caught:
            parse_completion(case.body, ASKED)
        return caught.value
    return ASKED.refusal(HttpAnswer(case.status, httpx2.Headers(case.headers), case.body))


@pytest.mark.parametrize("case", FLAT.values(), ids=FLAT)
def test_a_providers_error_is_its_fault(case: Case) -> None:
    """Its fault, whether it is the completion's or the machine's, whether of the key, and the wait it asks for."""
    error = error_of(case)
    assert (case.fault, case.key, case.wait_s) == (error.fault, error.refuses_key, error.retry_after_s), str(error)
    is_of_question = case.fault in (F.CONTENT_FILTER, F.CONTEXT_LENGTH)
    assert (JudgeReplyError if is_of_question else JudgeUnavailableError) is type(error)
    if case.fault is F.CONTEXT_LENGTH:
        assert "max_chars" in str(error)
        assert "max_tokens" in str(error)
    if case.fault is F.CONTENT_FILTER:
        assert "a fallback may judge it" in str(error)


@pytest.mark.parametrize("case", FLAT.values(), ids=FLAT)
def test_a_clients_error_is_the_same(case: Case) -> None:
    """A client that is handed over raises it, with a part of the body."""
    if case.status < 300:
        pytest.skip("an error behind 200 is no exception of a client")

    class ClientError(Exception):
        status_code = case.status
        body = case.body["error"] if isinstance(case.body, dict) and "error" in case.body else case.body
        response = httpx2.Response(case.status, headers=case.headers)

    error = translate(ClientError("words"), ASKED)
    assert (case.fault, case.key, case.wait_s) == (error.fault, error.refuses_key, error.retry_after_s)


OUTAGES = (
    "Request timed out.",
    "The request exceeded the maximum time of 600 seconds",
    "Request exceeded the time limit: 60000 ms",
    "Operation exceeded timeout 120000 ms",
    "Prompt processing exceeded the limit of 600 seconds",
    "upstream request timeout",
    "The request queue exceeds its limit of 512",
    "server busy, please try again. maximum pending requests exceeded",
    "CUDA out of memory. The request exceeds what is left of 80 GB, the allowed maximum",
    "The model is overloaded. Please try again later.",
)


@pytest.mark.parametrize("status", [408, 500, 502, 503, 504, 524, 529])
@pytest.mark.parametrize("message", OUTAGES)
def test_an_outage_is_no_fault_of_the_question(message: str, status: int) -> None:
    """What says that time, a queue or memory has come to its limit does not say that the prompt has."""
    assert F.SERVER_ERROR is ASKED.refusal(HttpAnswer(status, {}, openai(message, None, "server_error"))).fault


ECHOES: dict[str, Callable[[str], Any]] = {
    "the errors of vLLM": lambda words: vllm(
        "[{'type': 'value_error', 'loc': ('body',), 'msg': 'Value error, no tool is named', 'input': {'model': 'm', "
        f"'messages': [{{'role': 'user', 'content': {words!r}}}]}}}}]"
    ),
    "pydantic's text": lambda words: vllm(
        "1 validation error for ValidatorIterator\n0.content.str\n  Input should be a valid string "
        f"[type=string_type, input_value={words!r}, input_type=str]"
    ),
    "FastAPI's input": lambda words: {
        "detail": [{"type": "string_type", "loc": ["body", "messages"], "msg": "It is wrong", "input": words}]
    },
    "in a text": lambda words: f"502: upstream says {json.dumps({'msg': 'It is wrong', 'input': words})}",
    "behind many words": lambda words: openai(f"It is wrong: {'It is seven. ' * 60}{words}"),
    "beside its words": lambda words: openrouter(400, "It is wrong", flagged_input=words, provider_name="OpenAI"),
}
SAID = {read_error(case.body).message: name for name, case in FLAT.items()}  # by what it says one case


@pytest.mark.parametrize("status", [400, 403, 422, 500])
@pytest.mark.parametrize("echo", ECHOES)
def test_what_a_completion_says_decides_nothing(echo: str, status: int) -> None:
    """Whatever provider's refusal it quotes, an error that echoes it is as one that echoes any other words."""

    def read(words: str) -> tuple[object, ...]:
        error = ASKED.refusal(HttpAnswer(status, {}, ECHOES[echo](words)))
        return error.fault, error.refuses_key, error.retry_after_s, type(error)

    quotes = {**SAID, "Use response_format json_schema.": "a format", "Wait: retry after 3 hours.": "a wait"}
    others = [name for words, name in quotes.items() if read(words) != read("It is seven.")]
    assert [] == others


@pytest.mark.parametrize(("reason", "expected"), FINISHES.items(), ids=FINISHES)
def test_a_finish_reason_is_its_fault(reason: str, expected: tuple[Fault | None, str]) -> None:
    """Also where a whole verdict stands in the reply, which is not graded unless it ended by itself."""
    message = {"role": "assistant", "content": '{"good": {"reason": "r", "score": 5}}'}

    async def create(**_: Any) -> dict[str, Any]:
        return {"choices": [{"message": message, "finish_reason": reason}]}

    client = SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=create)))
    judge = LLMJudge("m", ["good"], client=client, retry=RetryPolicy(attempts=1))
    fault, words = expected
    if fault is None:
        assert 1.0 == judge(prompt="p", completion="c").value
        return
    with pytest.raises(JudgeError, match=words) as caught:
        judge(prompt="p", completion="c")
    assert fault is caught.value.fault
    assert (fault in TRIED_AGAIN) == isinstance(caught.value, JudgeUnavailableError)


def test_completions_that_are_refused_cost_no_run(canary: str, serve: Any, faults: Any) -> None:
    """Of sixteen, ten are filtered or too long; these fail as themselves, and the others have their scores."""
    refused = [case for case in FLAT.values() if case.fault in (F.CONTENT_FILTER, F.CONTEXT_LENGTH)]
    sent = [case for case in refused if case.status >= 400 and isinstance(case.body, dict | list)]

    def script(number: int, body: Any, headers: Any) -> Any:
        place = next((n for n in range(len(sent)) if f"bad-{n}." in body["messages"][-1]["content"]), None)
        if place is None:
            return faults.ok('{"good": {"reason": "r", "score": 5}}')
        case = sent[place]
        return faults.Action(json.dumps(case.body).encode(), status=case.status)

    judge = LLMJudge("m", ["good"], base_url=serve(script).url)
    rows = [Rollout("p", f"bad-{n}.") for n in range(len(sent))] + [Rollout("p", f"fine {n}") for n in range(6)]
    with Runtime([judge], lane="inline") as runtime:
        outcomes = list(runtime.score(rows)["judge"])
    assert {(Status.FAILED, Cause.EXCEPTION)} == {(one.status, one.cause) for one in outcomes[: len(sent)]}
    assert {Status.SCORED} == {one.status for one in outcomes[len(sent) :]}


KEYS = {name: case for name, case in FLAT.items() if case.key and case.status != 402}


@pytest.mark.parametrize("case", KEYS.values(), ids=KEYS)
def test_a_refused_key_opens_the_breaker_whatever_its_status(canary: str, serve: Any, faults: Any, case: Case) -> None:
    """Five questions are sent, and no more is asked of that server."""
    server = serve([faults.Action(json.dumps(case.body).encode(), status=case.status)])
    judge = LLMJudge("m", ["good"], base_url=server.url, verify=False, load=Load(concurrency=1))

    async def ask(number: int) -> Fault | None:
        with pytest.raises(JudgeUnavailableError) as caught:
            await judge(prompt="p", completion=f"{number}.")
        return caught.value.fault

    async def ask_nine() -> list[Fault | None]:
        return [await ask(number) for number in range(9)]

    assert [case.fault] * 5 + [F.BREAKER_OPEN] * 4 == asyncio.run(ask_nine())
    assert 5 == len(server.seen)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["error", "message", "code", "details", "metadata", "raw", "retryDelay", "detail", "loc"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(JSON, st.integers(300, 599))
def test_any_body_is_an_error_of_ours(body: Any, status: int) -> None:
    """However an error is laid out, it is read to a fault in no time."""
    error = ASKED.refusal(HttpAnswer(status, {}, body))
    assert error.fault is not None
    assert error.retry_after_s is None or error.retry_after_s > 0


WAITS: dict[str, tuple[Any, float | None]] = {
    "a number": ({"retry_after": 3}, 3.0),
    "a text": ({"retry_after": "3"}, 3.0),
    "milliseconds": ({"retry_after_ms": 1500}, 1.5),
    "with its unit": ({"retryDelay": "1.5s"}, 1.5),
    "in seconds and nanoseconds": ({"retry_delay": {"seconds": 7, "nanos": 0}}, 7.0),
    "endless": ({"retry_after": 10**400}, None),
    "true": ({"retry_after": True}, None),
    "below zero": ({"retry_after": -3}, None),
    "no number": ({"retry_after": "nan"}, None),
}


@pytest.mark.parametrize(("body", "expected"), WAITS.values(), ids=WAITS)
def test_a_wait_is_read_from_a_body(body: dict[str, Any], expected: float | None) -> None:
    """In each form; what is no number of seconds above zero asks nothing."""
    assert expected == ASKED.refusal(HttpAnswer(429, {}, {"error": {"message": "m", **body}})).retry_after_s


def test_deep_and_long_bodies_are_read_to_a_bound() -> None:
    """A thousand nests and a million parts cost nothing."""
    nested: Any = "prompt is too long"
    for _ in range(1000):
        nested = {"error": nested}
    assert 70 > len(read_error({"errors": [nested] * 3, "details": [{"message": "x" * 10**6}] * 10**6}).texts)


def table() -> list[str]:
    """Return the table of the reference: what each provider says, by what it comes to."""
    faults = [rule.fault for rule in ERROR_RULES]
    order = [*dict.fromkeys(faults), *(fault for fault in Fault if fault not in faults)]
    head = "| provider | " + " | ".join(f"`{fault}`" for fault in order if _forms(fault)) + " |"
    lines = [head, "|---" * (head.count("|") - 1) + "|"]
    for provider, cases in CASES.items():
        cells = ["; ".join(case.form for case in cases if case.fault is fault) for fault in order if _forms(fault)]
        lines.append(f"| {provider} | {' | '.join(cells)} |")
    return lines


def _forms(fault: Fault) -> list[str]:
    return [case.form for cases in CASES.values() for case in cases if case.fault is fault]


def finish_table() -> list[str]:
    """Return the table of finish reasons, by what a reply with them comes to."""
    by_fault: dict[str, list[str]] = {}
    for reason, (fault, _) in FINISHES.items():
        by_fault.setdefault("the reply is read" if fault is None else f"`{fault}`", []).append(f"`{reason}`")
    lines = [f"| {fault} | {', '.join(reasons)} |" for fault, reasons in by_fault.items()]
    return ["| comes to | `finish_reason` |", "|---|---|", *lines]


def test_the_reference_has_the_tables() -> None:
    """What the page says of providers is what these tests saw."""
    assert "\n".join(table()) in PAGE.read_text(), "\n".join(["the table is:", *table()])
    assert "\n".join(finish_table()) in PAGE.read_text(), "\n".join(["the table is:", *finish_table()])
