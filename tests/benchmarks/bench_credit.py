"""How many steps a model needs to learn a task of two turns: by each turn's number, and by the completion's.

    python tests/benchmarks/bench_credit.py
    python tests/benchmarks/bench_credit.py --seeds 5 --model builtin:smollm2-135m --rate 1e-5

The model is asked twice; its first answer should have a digit and its second one a question mark. Trained is TRL's
GRPOTrainer, with the same sampling, on a tiny model with random weights unless ``--model`` names another. Counted are
the steps until the mean score of the answers of five steps is 0.8. "both right" is the trajectory's reward, whether the
task was solved; "mean" is the number that the turns' numbers become where a trainer takes none of turns.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[1] / "helpers")]

import tiny_grpo  # noqa: E402
import torch  # noqa: E402
import two_turns  # noqa: E402
from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: E402

from trainer_adapter.models import load_model  # noqa: E402

REWARDS = {"by turn": two_turns.by_turn, "both right": two_turns.all_right, "mean": two_turns.by_completion}


def main() -> None:
    """Train with each reward and seed, and print the steps."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=400, help="at most so many a training")
    parser.add_argument("--model", help="a model as base_model names it; by default a tiny one with random weights")
    parser.add_argument("--rate", type=float, default=3e-3)
    options = parser.parse_args()
    os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"
    folder = Path(tempfile.mkdtemp(prefix="credit-"))
    tiny = None if options.model else tiny_grpo.tiny_model(folder, chat=False)

    def load() -> tuple[Any, Any]:
        if tiny is None:
            loaded = load_model(options.model, on_cpu=True)
            return loaded.model.float(), loaded.tokenizer
        model = AutoModelForCausalLM.from_pretrained(tiny, dtype=torch.float32)
        return model, AutoTokenizer.from_pretrained(tiny, padding_side="left")

    print(f"{'seed':>4}" + "".join(f"{name:>14}" for name in REWARDS) + f"{'by turn / both right':>24}{'s/step':>8}")
    for seed in range(1, options.seeds + 1):
        began, counts, done = time.monotonic(), [], 0
        for reward in REWARDS.values():
            model, tokenizer = load()
            curve = two_turns.train(
                model, tokenizer, str(folder), reward=reward, seed=seed, steps=options.steps, rate=options.rate
            )
            is_reached = len(curve) >= 5 and sum(curve[-5:]) / 5 >= two_turns.ENOUGH
            counts.append((len(curve), is_reached))
            done += len(curve)
        cells = "".join(f"{f'{count}' if reached else f'> {count}':>14}" for count, reached in counts)
        share = f"{'' if counts[1][1] else '< '}{counts[0][0] / counts[1][0]:.2f}" if counts[0][1] else "-"
        print(f"{seed:>4}{cells}{share:>24}{(time.monotonic() - began) / done:>8.2f}", flush=True)


if __name__ == "__main__":
    main()
