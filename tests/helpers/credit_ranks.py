"""One process, or one of two, that makes the advantages of a batch of fixed completions with TRL's trainer.

The completions are the same however many processes share them, so the advantages must be, too.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from rewardkit import Step, reward, step_reward
from trainer_adapter import RewardAdapter

GROUP, PROMPTS = 4, 4
_ANSWERS = ("ab", "a", "", "abcd", "x", "abc", "aa", "boom")


@step_reward(credit="turns", score_range=(0, 4))
def length(part: Step) -> float | None:
    """Score a turn by its letters; one without any is left out, and one text makes it fail."""
    if part.text == "boom":
        raise ValueError("boom")
    return float(len(part.text)) if part.text else None


@step_reward(credit="potential", score_range=(0, 4))
def level(part: Step) -> float:
    """Take a turn's length for a potential."""
    return float(len(part.text))


@reward
def solved(completion: list[dict[str, Any]]) -> float:
    """Score the whole."""
    return float(len(completion[-1]["content"]) % 3)


def roll_out(prompts: list[str], trainer: Any) -> dict[str, Any]:
    """Return completions of one to three turns, which the rank and the row tell."""
    first = trainer.accelerator.process_index * len(prompts)
    fields: dict[str, list[Any]] = {
        name: [] for name in ("prompt_ids", "completion_ids", "env_mask", "completion_messages")
    }
    for row in range(first, first + len(prompts)):
        answers = [_ANSWERS[(row * 3 + turn * 5) % len(_ANSWERS)] for turn in range(1 + row % 3)]
        ids, mask, messages = [], [], []
        for turn, answer in enumerate(answers):
            if turn:
                ids, mask = [*ids, 7, 7], [*mask, 0, 0]
                messages.append({"role": "user", "content": "?"})
            ids, mask = [*ids, *([9] * (len(answer) + 1))], [*mask, *([1] * (len(answer) + 1))]
            messages.append({"role": "assistant", "content": answer})
        for name, value in zip(fields, ([3, 4], ids, mask, messages), strict=True):
            fields[name].append(value)
    return {**fields, "logprobs": None}


def main(model: str, folder: str, processes: int) -> None:
    """Write the advantages of this process's rows."""
    import torch
    from datasets import Dataset
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from trl import GRPOConfig

    from trainer_adapter.credit_trainer import TurnCreditTrainer

    with RewardAdapter([length, level, solved], weights=[1.0, -0.5, 2.0], lane="inline") as adapter:
        config = GRPOConfig(
            output_dir=folder, use_cpu=True, bf16=False, report_to="none", disable_tqdm=True, save_strategy="no",
            max_steps=1, num_generations=GROUP, per_device_train_batch_size=GROUP * PROMPTS // processes,
            max_completion_length=32, seed=7, reward_weights=adapter.weights, shuffle_dataset=False,
            **({"ddp_backend": "gloo"} if processes > 1 else {}),
        )  # fmt: skip
        trainer = TurnCreditTrainer(
            model=AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32),
            reward_funcs=adapter.reward_funcs, args=config,
            train_dataset=Dataset.from_list([{"prompt": f"{number}="} for number in range(PROMPTS)]),
            processing_class=AutoTokenizer.from_pretrained(model, padding_side="left"),
            callbacks=[adapter.callback], rollout_func=roll_out, normalize="turn", returns="to_go", discount=0.5,
        )  # fmt: skip
        trainer.model.train()
        rows = len(trainer.get_train_dataloader().dataset) and GROUP * PROMPTS // processes
        rank = trainer.accelerator.process_index
        inputs = [{"prompt": f"{(rank * rows + row) // GROUP}="} for row in range(rows)]
        output = trainer._generate_and_score_completions(inputs)
        lengths = output["completion_mask"].sum(dim=1).tolist()
        kept = [advantages[:length] for advantages, length in zip(output["advantages"].tolist(), lengths, strict=True)]
        mask = output["tool_mask"].tolist()
        own = [row_mask[:length] for row_mask, length in zip(mask, lengths, strict=True)]
    Path(folder, f"advantages-{os.environ.get('RANK', '0')}.json").write_text(json.dumps([kept, own]))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
