"""What real TRL runs in tests share: a tiny random model, training it, and what the run saw and logged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import rewardkit
from trainer_adapter import RewardAdapter

Scores = list[float | None]

G = 4
"""Completions a prompt."""
ROWS = 16
"""Completions a step: four prompts."""

third_party_warnings = pytest.mark.filterwarnings(
    "ignore:.*gradient_checkpointing:FutureWarning",  # trl 1.16 asks models by transformers' older name
)


@dataclass
class Relay:
    """Stands between TRL and a reward function, and keeps what went to and fro."""

    function: Any
    calls: list[tuple[dict[str, Any], Scores]] = field(default_factory=list)

    @property
    def __name__(self) -> str:
        name: str = self.function.__name__
        return name

    def __call__(self, /, **call: Any) -> Scores:
        before = repr((call["prompts"], call["completions"]))
        scores: Scores = self.function(**call)
        assert before == repr((call["prompts"], call["completions"])), "a reward changed what TRL holds"
        self.calls.append((call, scores))
        return scores


def tiny_model(folder: Path, *, chat: bool = True) -> Path:
    """Puts a Qwen2 of two layers with random weights, and a byte-level tokenizer, into a folder.

    Args:
        folder: Where to.
        chat: Whether it has a chat template.
    """
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

    torch.set_num_threads(1)
    torch.manual_seed(0)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        special_tokens=["<pad>", "<eos>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(["what is two and two"] * 50, trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        eos_token="<eos>",
        padding_side="left",
        model_input_names=["input_ids", "attention_mask"],  # the default has a third, which older trainers pass on
    )
    if chat:
        fast.chat_template = (
            "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}"
            "{% if add_generation_prompt %}assistant: {% endif %}"
        )
    fast.save_pretrained(folder)
    config = Qwen2Config(
        vocab_size=len(fast),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
        pad_token_id=fast.pad_token_id,
        eos_token_id=fast.eos_token_id,
    )
    Qwen2ForCausalLM(config).save_pretrained(folder)
    return folder


@dataclass
class Run:
    """A finished training run."""

    trainer: Any
    relays: dict[str, Relay]

    def logged(self, metric: str) -> list[float]:
        """Return a metric's values, in the order of logging."""
        return [entry[metric] for entry in self.trainer.state.log_history if metric in entry]

    def weights_are_finite(self) -> bool:
        """Tells whether training has left a model."""
        return all(parameter.isfinite().all() for parameter in self.trainer.model.parameters())


def train(
    folder: Path,
    adapter: RewardAdapter,
    rows: list[dict[str, Any]],
    *,
    steps: int,
    method: str = "GRPO",
    eval_rows: list[dict[str, Any]] | None = None,
    callbacks: Sequence[Any] = (),
    resume: bool = False,
    attach: bool = False,
    waves: int | None = None,
    **arguments: Any,
) -> Run:
    """Trains the tiny model on these rows, in their order, four prompts a step; ``arguments`` are TRL's.

    With ``waves`` completions are scored while others are generated.
    """
    import torch
    import trl
    from datasets import Dataset
    from transformers import AutoModelForCausalLM, AutoTokenizer, PrinterCallback

    torch.manual_seed(0)
    relays = [Relay(function) for function in adapter.reward_funcs]
    if eval_rows is not None:
        arguments = {"eval_strategy": "steps", "eval_steps": steps, **arguments}
    settings = {
        "output_dir": str(folder / "runs"),
        "use_cpu": True,
        "bf16": False,
        "activation_checkpointing": False,
        "report_to": "none",
        "disable_tqdm": True,
        "save_strategy": "no",
        "logging_steps": 1,
        "max_steps": steps,
        "learning_rate": 1e-3,
        "beta": 0.0,
        "num_generations": G,
        "per_device_train_batch_size": ROWS,
        "per_device_eval_batch_size": ROWS,
        "max_completion_length": 8,
        "shuffle_dataset": False,
        "seed": 7,
        "reward_weights": adapter.weights,
    }
    own = {} if waves is None else {"rollout_func": rewardkit.overlap(adapter, waves=waves)}
    config = getattr(trl, f"{method}Config")(**{**settings, **arguments})
    trainer = getattr(trl, f"{method}Trainer")(
        model=AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32),
        reward_funcs=list(relays),
        args=config,
        train_dataset=Dataset.from_list(rows),
        eval_dataset=None if eval_rows is None else Dataset.from_list(eval_rows),
        processing_class=AutoTokenizer.from_pretrained(folder, padding_side="left"),
        callbacks=[adapter.callback, *callbacks],
        **own,
    )
    trainer.remove_callback(PrinterCallback)
    for callback in callbacks:
        callback.trainer = trainer
    if attach:
        adapter.attach(trainer)
    trainer.train(resume_from_checkpoint=resume)
    return Run(trainer, {relay.__name__: relay for relay in relays})
