"""A task of two turns: what a model is asked twice, the reward of each answer, and training on it with TRL.

The first answer should have a digit, the second one a question mark. A model answers in a few tokens, so that a step
takes a second or two on two cores, also of a model of 135 million parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from rewardkit import Step, step_reward
from trainer_adapter import RewardAdapter

GROUP, ROWS = 4, 8
"""Completions a prompt, and a step."""
ENOUGH = 0.8
"""The mean score of the answers that training stops at."""
WANTED = ("0123456789", "?")
"""One of these characters should be in the first answer, and in the second."""
_ASKED = " Then:"  # What stands between the two answers
_PROMPTS = ("First:", "Start:")


def has_wanted(part: Step) -> float:
    """Score an answer of the two."""
    return float(any(character in part.text for character in WANTED[part.index]))


by_turn = step_reward(has_wanted, credit="turns", score_range=(0, 1), name="by_turn")
by_completion = step_reward(has_wanted, score_range=(0, 1), name="by_completion")
all_right = step_reward(has_wanted, score_range=(0, 1), reduce="min", name="all_right")


def rollouts(tokenizer: Any, tokens: int) -> Callable[[list[str], Any], dict[str, Any]]:
    """Return a ``rollout_func`` of TRL's in which the model answers twice, in so many tokens each."""
    between = tokenizer(_ASKED, add_special_tokens=False).input_ids

    def roll_out(prompts: list[str], trainer: Any) -> dict[str, Any]:
        heads = [tokenizer(prompt, add_special_tokens=False).input_ids for prompt in prompts]
        first = _answers(trainer, tokenizer, heads, tokens)
        second = _answers(
            trainer, tokenizer, [head + own + between for head, own in zip(heads, first, strict=True)], tokens
        )
        pairs = list(zip(first, second, strict=True))
        return {
            "prompt_ids": heads,
            "completion_ids": [one + between + other for one, other in pairs],
            "env_mask": [[1] * len(one) + [0] * len(between) + [1] * len(other) for one, other in pairs],
            "logprobs": None,
            "completion_messages": [
                [
                    {"role": "assistant", "content": tokenizer.decode(one)},
                    {"role": "user", "content": _ASKED},
                    {"role": "assistant", "content": tokenizer.decode(other)},
                ]
                for one, other in pairs
            ],
        }

    return roll_out


def _answers(trainer: Any, tokenizer: Any, prompts: Sequence[list[int]], tokens: int) -> list[list[int]]:
    """Return a sampled answer of so many tokens to each prompt."""
    longest = max(map(len, prompts))
    pad = tokenizer.pad_token_id
    ids = torch.tensor([[pad] * (longest - len(prompt)) + prompt for prompt in prompts])
    mask = torch.tensor([[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in prompts])
    with torch.no_grad():
        written = trainer.model.generate(
            input_ids=ids, attention_mask=mask, do_sample=True, top_k=0, max_new_tokens=tokens, min_new_tokens=tokens,
            pad_token_id=pad,
        )  # fmt: skip
    answers: list[list[int]] = written[:, longest:].tolist()
    return answers


def train(
    model: Any, tokenizer: Any, folder: str, *, reward: Any, seed: int, steps: int, rate: float, tokens: int = 4
) -> list[float]:  # fmt: skip
    """Train, and return the mean score of each step's answers, up to the first five whose mean is enough.

    Args:
        model: What is trained.
        tokenizer: Its tokenizer.
        folder: Where TRL writes.
        reward: One of the rewards here.
        seed: Of the sampling.
        steps: At most so many.
        rate: The learning rate.
        tokens: Tokens an answer.
    """
    from datasets import Dataset
    from transformers import PrinterCallback, TrainerCallback
    from trl import GRPOConfig, GRPOTrainer

    from trainer_adapter.credit_trainer import COMPLETION_MESSAGES, TurnCreditTrainer

    class Plain(GRPOTrainer):  # type: ignore[misc]  # the same
        """TRL's own trainer, whose rewards see the same messages."""

        def _calculate_rewards(self, inputs: Any, prompts: Any, completions: Any, ids: Any) -> Any:
            return super()._calculate_rewards(inputs, prompts, [row.pop(COMPLETION_MESSAGES) for row in inputs], ids)

    curve: list[float] = []

    class Watch(TrainerCallback):  # type: ignore[misc]  # the base is Any where transformers is absent
        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **rest: Any) -> None:
            metrics = [f"reward_metrics/{reward.name}/step/{index}" for index in (0, 1)]
            if logs and metrics[0] in logs:
                curve.append(sum(logs[metric] for metric in metrics) / 2)
                if len(curve) >= 5 and sum(curve[-5:]) / 5 >= ENOUGH:
                    control.should_training_stop = True

    with RewardAdapter([reward], lane="inline") as adapter:
        config = GRPOConfig(
            output_dir=folder, use_cpu=True, bf16=False, report_to="none", disable_tqdm=True, save_strategy="no",
            logging_steps=1, max_steps=steps, learning_rate=rate, lr_scheduler_type="constant", beta=0.0,
            num_generations=GROUP, per_device_train_batch_size=ROWS, max_completion_length=64, seed=seed,
            gradient_checkpointing=False, reward_weights=adapter.weights,
        )  # fmt: skip
        torch.manual_seed(seed)
        trainer = (TurnCreditTrainer if reward.credit else Plain)(
            model=model, reward_funcs=adapter.reward_funcs, args=config, processing_class=tokenizer,
            train_dataset=Dataset.from_list([{"prompt": prompt} for prompt in _PROMPTS] * 8),
            callbacks=[adapter.callback, Watch()], rollout_func=rollouts(tokenizer, tokens),
        )  # fmt: skip
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    return curve
