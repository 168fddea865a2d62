"""Runs in an environment with ms-swift: its own computation of rewards calls our classes, and what it got is printed.

Real are its samples, what they hand to reward functions, and the tensor of rewards. There is no model and no trainer.
"""

from __future__ import annotations

import json
import logging
import sys
from types import SimpleNamespace
from typing import Any

import torch
from fault_mix import FATES, REWARDS
from swift.rl_core.data import GRPOSample
from swift.rl_core.grpo_algorithm import score_completions

from trainer_adapter.swift import swift_async_orm, swift_orm
from trainer_adapter.trainer_rewards import close_all

PROMPT = [
    {"role": "user", "content": "1+1="},
    {"role": "assistant", "content": "2"},
    {"role": "user", "content": "2+2="},
]
CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 2}}\n</tool_call>'


def sample(turns: list[dict[str, Any]], group: str = "p", **fields: Any) -> GRPOSample:
    """Return a sample as a rollout leaves it; the prompt has a turn of the assistant."""
    return GRPOSample(messages=[*PROMPT, *turns], extra={"answer": "4"}, prompt_id=group, **fields)


def scored(samples: list[GRPOSample], *classes: type[Any]) -> list[list[float]]:
    """Return the rewards of samples, a list for each class."""
    made = [cls(args=SimpleNamespace(num_generations=2)) for cls in classes]
    rewards = score_completions(samples, made, [None] * len(made), False, torch.device("cpu"))
    return [[float(value) for value in column] for column in rewards.T]


def main(folder: str) -> None:
    logging.disable(logging.WARNING)
    answers = [sample([{"role": "assistant", "content": text}], response_token_ids=[1, 2]) for text in FATES]
    turns = [
        {"role": "assistant", "content": CALL},
        {"role": "tool", "content": "4"},
        {"role": "assistant", "content": "It is 4"},
    ]
    by_ids, by_infos = {"response_token_ids": [[1], [2]]}, {"rollout_infos": {"num_turns": 2}}
    agents = [sample(turns, **fields) for fields in (by_ids, by_infos)]
    counts, calls = swift_orm("what_is_sent:turns"), swift_orm("what_is_sent:calls")
    ranked = [sample([{"role": "assistant", "content": text}], group=text[0]) for text in ("aa", "b", "a", "bb")]
    seen = {
        "fates": scored(answers, swift_orm(REWARDS, default=-5), swift_async_orm(REWARDS, default=-5)),
        "asked": scored(answers[:1], swift_orm("faulty_rewards:asked")),
        "turns": scored(agents, counts, calls, swift_orm("faulty_rewards:asked")),
        "one turn": scored(answers[:1], counts),
        "ranked": scored(ranked, swift_orm("faulty_rewards:rank", group_size=2)),
        "images": scored([sample(turns, images=["a.png"])], swift_orm("what_is_sent:column_images")),
    }
    close_all()
    print(json.dumps(seen))


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
