"""A tiny model that calls a tool, the environment whose tool it is, and TRL's trainer over both.

The model has random weights and is shown some hundred times what a call looks like, so that most of its completions
have one; training then has calls to reward.
"""

from __future__ import annotations

import copy
import functools
from pathlib import Path
from typing import Any

TASKS = ("small", "large")
CALL = '<tool_call>\n{{"name": "guess", "arguments": {{"number": {number}}}}}\n</tool_call>'
_NUMBERS = (0, 2, 5, 7, 9)
_SHOWN_STEPS = 100
"""Steps of showing, some seconds."""


class GuessingGame:
    """An environment of TRL's: its tool is told a number, and it scores how near that is to the one it thinks of."""

    def __init__(self) -> None:
        self.workspace: str | None = None
        self.guesses: list[int] = []
        self.asked = 0

    def reset(self, task: str, **row: object) -> None:
        self.wanted = 2 if task == "small" else 7
        self.guesses = []

    def guess(self, number: int) -> str:
        """
        Guess the number.

        Args:
            number: The guess, 0 to 9.

        Returns:
            Whether it is right.
        """
        self.guesses.append(int(number))
        return "right" if int(number) == self.wanted else "wrong"

    def get_reward(self) -> float | None:
        self.asked += 1
        return 1 - abs(self.guesses[-1] - self.wanted) / 9 if self.guesses else None


def rows(count: int = 8) -> list[dict[str, Any]]:
    """Return tasks in turn."""
    said = {task: [{"role": "user", "content": f"guess {task}"}] for task in TASKS}
    return [{"prompt": said[TASKS[row % 2]], "task": TASKS[row % 2]} for row in range(count)]


@functools.cache
def tool_model(*, taught: bool = True) -> tuple[Any, Any]:
    """Return a small Qwen2 that calls the tool, or does not where nobody taught it, and its tokenizer.

    The template is Qwen3's.
    """
    import torch
    import trl
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

    torch.set_num_threads(1)
    torch.manual_seed(0)
    template = (Path(trl.__file__).parent / "chat_templates" / "qwen3.jinja").read_text()
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=800,
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([*map(str, _shown(template))] * 20, trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<|endoftext|>", eos_token="<|im_end|>", padding_side="left"
    )
    fast.chat_template = template
    config = Qwen2Config(
        vocab_size=len(fast),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=1024,
        pad_token_id=fast.pad_token_id,
        eos_token_id=fast.eos_token_id,
    )
    model = Qwen2ForCausalLM(config)
    if taught:
        _show(model, fast)
    return model, fast


def _shown(template: str) -> list[tuple[str, str]]:
    """Return prompts as the trainer renders them, and what the model is to say after each: a call of every number."""
    from transformers.utils import get_json_schema
    from transformers.utils.chat_template_utils import render_jinja_template

    tools = [get_json_schema(GuessingGame().guess)]
    asked = [[{"role": "user", "content": f"guess {TASKS[number % 2]}"}] for number in _NUMBERS]
    prompts, _ = render_jinja_template(asked, tools=tools, chat_template=template, add_generation_prompt=True)
    again = "<|im_start|>user\n<tool_response>\nwrong\n</tool_response><|im_end|>\n<|im_start|>assistant\n"
    thought = "<think>\n\n</think>\n\n"
    said = [f"{thought}{CALL.format(number=number)}<|im_end|>\n{again}{thought}so<|im_end|>" for number in _NUMBERS]
    return list(zip(prompts, said, strict=True))


def _show(model: Any, tokenizer: Any) -> None:
    """Train the model on what is shown."""
    import torch

    shown = []
    for prompt, said in _shown(tokenizer.chat_template):
        head, whole = tokenizer(prompt).input_ids, tokenizer(prompt + said).input_ids
        shown.append((whole, [-100] * len(head) + whole[len(head) :]))
    most = max(len(whole) for whole, _ in shown)
    pad = tokenizer.pad_token_id
    ids = torch.tensor([whole + [pad] * (most - len(whole)) for whole, _ in shown])
    labels = torch.tensor([own + [-100] * (most - len(own)) for _, own in shown])
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for _ in range(_SHOWN_STEPS):
        loss = model(input_ids=ids, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()


def train(folder: Path, adapter: Any, *, steps: int, attach: bool, **arguments: Any) -> Any:
    """Train the model with the game's environment; return the trainer, whose files go into the folder."""
    import torch
    from datasets import Dataset
    from transformers import PrinterCallback
    from trl import GRPOConfig, GRPOTrainer

    shown, tokenizer = tool_model()
    torch.manual_seed(0)
    config = GRPOConfig(
        output_dir=str(folder),
        use_cpu=True,
        bf16=False,
        report_to="none",
        disable_tqdm=True,
        save_strategy="no",
        logging_steps=1,
        max_steps=steps,
        learning_rate=3e-4,
        beta=0.0,
        temperature=0.7,
        num_generations=4,
        per_device_train_batch_size=8,
        max_completion_length=128,
        seed=7,
        reward_weights=adapter.weights,
        **arguments,
    )
    trainer = GRPOTrainer(
        model=copy.deepcopy(shown),
        reward_funcs=adapter.reward_funcs,
        args=config,
        train_dataset=Dataset.from_list(rows()),
        processing_class=tokenizer,
        callbacks=[adapter.callback],
        environment_factory=GuessingGame,
    )
    trainer.remove_callback(PrinterCallback)
    if attach:
        adapter.attach(trainer)
    trainer.train()
    return trainer
