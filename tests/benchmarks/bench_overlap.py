"""What a step of TRL's GRPOTrainer takes where completions are scored while others are generated, and where after.

    python tests/benchmarks/bench_overlap.py
    python tests/benchmarks/bench_overlap.py --rows 64 --seconds 0.5 1 --token-ms 60

A tiny model generates, and each of its tokens is made to take ``--token-ms``, as a larger model's would; completions
end at random, a share of them at the most tokens. A reward sleeps so many seconds: "workers" is a plain one on
``--workers`` workers, as one that runs code, "judge" an asynchronous one that takes all completions at once. Printed
are the seconds of a batch, from its prompts to its scores: its generation alone, its rewards alone, one after the
other, and overlapped, as a multiple of the longer of its own generation and the rewards alone. Each line is the median
of ``--batches`` batches after a first one.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[1] / "helpers")]

import tiny_grpo  # noqa: E402
from transformers import TrainerCallback  # noqa: E402

from rewardkit import reward  # noqa: E402
from trainer_adapter import RewardAdapter  # noqa: E402

KINDS = ("workers", "judge")


def reward_of(kind: str, seconds: float) -> Any:
    """Return a reward that takes so many seconds a completion."""

    def plain(completion: str) -> float:
        time.sleep(seconds)
        return len(completion) % 7 / 7

    async def judged(completion: str) -> float:
        await asyncio.sleep(seconds)
        return len(completion) % 7 / 7

    return reward(timeout_s=60)(plain) if kind == "workers" else reward(timeout_s=60, concurrency=512)(judged)


class Clock(TrainerCallback):  # type: ignore[misc]  # the base is Any where transformers is absent
    """Times each batch from its prompts to its scores, and its generation, whose tokens it slows down."""

    def __init__(self, token_s: float) -> None:
        self.trainer: Any = None
        self.batches: list[float] = []
        self.generations: list[float] = []
        self._token_s = token_s

    def on_train_begin(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        """Wrap what generates, and what generates and scores."""
        trainer = self.trainer
        trainer._generate_and_score_completions = self._timed(trainer._generate_and_score_completions, self.batches)
        trainer._generate_single_turn = self._timed(trainer._generate_single_turn, self.generations)
        model, generate = trainer.model, trainer.model.generate

        def slow(*arguments: Any, **keywords: Any) -> Any:
            hook = model.register_forward_pre_hook(lambda *_: time.sleep(self._token_s))
            try:
                return generate(*arguments, **keywords)
            finally:
                hook.remove()

        model.generate = slow

    def _timed(self, function: Any, seconds: list[float]) -> Any:
        def timed(*arguments: Any, **keywords: Any) -> Any:
            begun = time.monotonic()
            result = function(*arguments, **keywords)
            seconds.append(time.monotonic() - begun)
            return result

        return timed


def measured(folder: Path, kind: str, seconds: float, options: argparse.Namespace, waves: int | None) -> Clock:
    """Train, and return the clock with the seconds of its batches."""
    clock = Clock(options.token_ms / 1000)
    rows = [{"prompt": f"what is {number}"} for number in range(options.rows // tiny_grpo.G * (options.batches + 1))]
    with RewardAdapter([reward_of(kind, seconds)], workers=options.workers) as adapter:
        adapter.runtime.wait_loaded()
        tiny_grpo.train(
            folder, adapter, rows, steps=options.batches + 1, attach=True, waves=waves, callbacks=[clock],
            per_device_train_batch_size=options.rows, max_completion_length=options.tokens, logging_strategy="no",
            generation_kwargs={"suppress_tokens": [0, *range(options.kinds, 270)]}, output_dir=str(folder / "out"),
        )  # fmt: skip
    return clock


def median(values: Sequence[float]) -> float:
    """Return the median of all but the first."""
    return statistics.median(values[1:])


def main() -> None:
    """Measure each kind of reward, one after the other and overlapped in turns, and print a line each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=32, help="completions a batch")
    parser.add_argument("--seconds", type=float, nargs="+", default=[0.5, 1.0, 2.0, 5.0], help="of a reward")
    parser.add_argument("--tokens", type=int, default=200, help="at most so many a completion")
    parser.add_argument("--kinds", type=int, default=80, help="kinds of tokens, of which one ends a completion")
    parser.add_argument("--token-ms", type=float, default=40.0, help="what a token takes, of all completions")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--batches", type=int, default=3)
    options = parser.parse_args()
    os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"
    folder = tiny_grpo.tiny_model(Path(tempfile.mkdtemp(prefix="overlap-")), chat=False)
    print(f"{'reward':>14}{'generation':>12}{'rewards':>9}{'after':>8}{'overlapped':>12}{'of the longer':>15}")
    for kind in KINDS:
        for seconds in options.seconds:
            after = measured(folder, kind, seconds, options, None)
            beside = measured(folder, kind, seconds, options, 1)
            generation = median(after.generations)
            rewards = median([whole - part for whole, part in zip(after.batches, after.generations, strict=True)])
            overlapped = median(beside.batches)
            longer = max(median(beside.generations), rewards)
            print(f"{f'{kind} {seconds:g} s':>14}{generation:>12.1f}{rewards:>9.1f}{median(after.batches):>8.1f}"
                  f"{overlapped:>12.1f}{overlapped / longer:>15.2f}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
