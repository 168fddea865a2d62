"""Runs in the trainers' environment: OpenRLHF's own code asks our function and our server, and what it got is printed.

Real are the executor, by file and by HTTP, and what turns its responses into the trainer's batches. Not there: vllm,
whose place an engine takes that writes what it is told.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

VLLM = {"vllm": "SamplingParams", "vllm.inputs": "TokensPrompt", "vllm.utils": "random_uuid"}
for name, member in VLLM.items():
    module = ModuleType(name)
    module.__path__, module.__spec__, module.__version__ = [], ModuleSpec(name, None), "0.29.0"  # type: ignore
    setattr(module, member, object)
    sys.modules[name] = module

from fault_mix import REWARDS, completions  # noqa: E402
from openrlhf.trainer.ppo_utils.experience import Experience  # noqa: E402
from openrlhf.trainer.ppo_utils.samples_generator import SamplesGenerator  # noqa: E402
from openrlhf.utils.agent import SingleTurnAgentExecutor  # noqa: E402

QUESTION = "<|im_start|>user\n2+2=<|im_end|>\n<|im_start|>assistant\n"
END = "<|im_end|>"
FILE = "from trainer_adapter.openrlhf import openrlhf_reward\nreward_func = openrlhf_reward({rewards!r}, {options})\n"


class Tokenizer:
    """A character is a token."""

    def __call__(self, text: str, add_special_tokens: bool, return_tensors: str) -> dict[str, Any]:
        import torch

        return {"input_ids": torch.tensor([[ord(one) for one in text]])}

    def decode(self, ids: Any, skip_special_tokens: bool) -> str:
        return "".join(map(chr, ids))


class Engine:
    """Writes one text, with the end token that vllm leaves there."""

    def __init__(self, text: str) -> None:
        self.text = text

    async def generate(self, ids: Any, params: Any, multi_modal_data: Any = None) -> Any:
        tokens = [ord(one) for one in self.text + END]
        return SimpleNamespace(outputs=[SimpleNamespace(token_ids=tokens, finish_reason="stop", logprobs=None)])


async def rolled_out(url: str, texts: list[str], questions: list[str] | None = None, length: int = 4096) -> Any:
    """Return what the executor and the trainer's batch have of each text."""
    executor, params = SingleTurnAgentExecutor(url), SimpleNamespace(max_tokens=32, logprobs=None)
    questions = questions or [QUESTION] * len(texts)
    asked = [
        executor.execute(question, "4", params, length, Tokenizer(), Engine(text))
        for question, text in zip(questions, texts, strict=True)
    ]
    outputs = await asyncio.gather(*asked)
    made = [SamplesGenerator._process_response_into_experience(None, one, max_len=4096) for one in outputs]
    batch = Experience.concat_experiences(made, 0)
    infos = {name: values.flatten().tolist() for name, values in batch.info.items()}
    return {
        "rows": [
            [text, one["reward"], one["scores"], one["extra_logs"]] for text, one in zip(texts, outputs, strict=True)
        ],
        "rewards": batch.rewards.tolist(),
        "info": infos,
    }


def main(count: int, costly: int, folder: str, url: str, group_url: str) -> None:
    logging.disable(logging.INFO)
    files = {}
    for name, rewards, options in (
        ("sums", REWARDS, "workers=2"),
        ("ranked", "faulty_rewards:rank,faulty_rewards:asked", "group_size=4"),
    ):
        files[name] = str(Path(folder) / f"my_{name}.py")
        Path(files[name]).write_text(FILE.format(rewards=rewards, options=options))
    texts = completions(count, costly)
    ranked = ["a" * (row % 4 + 1) for row in range(32)]
    questions = [QUESTION.replace("2+2", f"2+{row // 4}") for row in range(32)]
    seen = {
        "file": asyncio.run(rolled_out(files["sums"], texts)),
        "http": asyncio.run(rolled_out(url, texts)),
        "ranked": asyncio.run(rolled_out(files["ranked"], ranked, questions)),
        "http ranked": asyncio.run(rolled_out(group_url, ranked, questions)),
        "cut": asyncio.run(rolled_out(files["sums"], ["4", "5"], length=len(QUESTION) + 22)),
    }
    print(json.dumps(seen))


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
