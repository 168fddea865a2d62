"""Runs in an environment with Miles: its own computation of rewards calls our functions, on its own samples.

Real are its samples, and how it loads a function by its path and calls it, for one sample and for a batch. There is no
model and no cluster.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from fault_mix import FATES, REWARDS
from miles.rollout.rm_hub import async_rm, batched_async_rm
from miles.utils.types import Sample

from rewardkit import Rollout, Runtime
from rewardkit.moving import from_slime
from trainer_adapter.slime import post_process
from trainer_adapter.trainer_rewards import close_all

FILE = """
from trainer_adapter.slime import slime_group_rm, slime_rm
custom_rm = slime_rm({rewards!r})
calls = slime_rm("what_is_sent:calls")
group_rm = slime_group_rm("faulty_rewards:rank")
"""
TURNS = (
    '<tool_call>\n{"name": "add", "arguments": {"a": 2}}\n</tool_call><|im_end|>\n<|im_start|>user\n<tool_response>\n'
    "4\n</tool_response><|im_end|>\n<|im_start|>assistant\nIt is 4<|im_end|>"
)


def settings(name: str) -> SimpleNamespace:
    told = {"custom_rm_path": f"my_miles.{name}", "rm_type": None, "reward_key": None, "n_samples_per_prompt": 4}
    told |= {"advantage_estimator": "grpo", "rewards_normalization": True, "grpo_std_normalization": True}
    return SimpleNamespace(**told)


def samples(texts: list[str]) -> list[Any]:
    return [Sample(prompt="2+2=", response=text, label="4", group_index=place // 4) for place, text in enumerate(texts)]


async def right(args: Any, sample: Any) -> float:
    """Score 1 for a response that is the label, and half for its length."""
    return float(sample.response == sample.label) + 0.5 * len(sample.response)


async def moved(texts: list[str]) -> list[list[float]]:
    """Return what a function of Miles' scores on its own samples, and what it scores moved in."""
    theirs = [await right(settings("custom_rm"), sample) for sample in samples(texts)]
    with Runtime([from_slime(right)], lane="inline") as runtime:
        batch = await runtime.ascore([Rollout("2+2=", text, {"label": "4"}) for text in texts])
    return [theirs, batch.totals]


async def scored(texts: list[str]) -> dict[str, Any]:
    args, rows = settings("custom_rm"), samples(texts)
    rewards = await asyncio.gather(*(async_rm(args, sample) for sample in rows))
    for sample, reward in zip(rows, rewards, strict=True):
        sample.reward = reward
    batch = samples(texts)
    return {
        "rewards": rewards,
        "removed": [sample.remove_sample for sample in rows],
        "batch": await batched_async_rm(args, batch),
        "processed": post_process(args, rows),
        "calls": await async_rm(settings("calls"), samples([TURNS])[0]),
        "ranked": await batched_async_rm(settings("group_rm"), samples(["aaa", "a", "aa"])),
        "moved": await moved(["4", "55"]),
    }


def main(folder: str) -> None:
    Path(folder, "my_miles.py").write_text(FILE.format(rewards=REWARDS))
    sys.path.insert(0, folder)
    seen = asyncio.run(scored(list(FATES)))
    close_all()
    print(json.dumps(seen))


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
