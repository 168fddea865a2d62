"""What users hand to a judge for a client, as the type checker takes it; `mypy tests/typing` must find nothing."""

from __future__ import annotations

import functools

from openai import AsyncAzureOpenAI, AsyncOpenAI

from builtin_rewards.judge import LLMJudge, PairwiseJudge
from rewardkit.testing import FakeJudge


def own_client() -> AsyncOpenAI:
    return AsyncOpenAI(default_headers={"X-Team": "evals"})


def judges() -> list[object]:
    azure = functools.partial(AsyncAzureOpenAI, azure_endpoint="https://x.invalid", api_version="2024-10-21")
    return [
        LLMJudge("m", ["good"], client=FakeJudge.verdict(good=5)),
        LLMJudge("m", ["good"], client=AsyncAzureOpenAI(azure_endpoint="https://x.invalid", api_version="2024-10-21")),
        LLMJudge("m", ["good"], client=azure),
        LLMJudge("m", ["good"], client=AsyncOpenAI),
        PairwiseJudge("m", client=own_client),
        LLMJudge("m", ["good"], default_headers={"X-Team": "evals"}, default_query={"api-version": "2024-10-21"}),
    ]
