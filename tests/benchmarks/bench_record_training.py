"""What recording costs the thread that trains: milliseconds a step, and their share of a step.

    python tests/benchmarks/bench_record_training.py [--steps 30] [--step-s 5.0] [--train] [--demo MINUTES]

Batches are scored beforehand and then handed to an adapter's capture as in a training, a metrics log after each, while
the writer thread writes. Each figure is the median over steps: as the clock has it, and the processor time in it, which
other programs' load does not change. The slowest step stands beside it, and the first, at which versions are described.
``--train`` measures the same in a real TRL run of a tiny model. The share is that of the processor time in a step of
``--step-s`` seconds: 5 is the demo's on two cores. ``--demo`` runs the demo itself, and tells the shares of its own
steps' time; its record stays in ``--output``.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from rich.console import Console
from rich.table import Table

from rewardkit import Recorder, Rollout, Runtime, Score, reward
from trainer_adapter import RewardAdapter
from trainer_adapter.capture import Capture

SIZES = {"32 completions, 3 rewards (the demo)": (32, 3, 10), "1,000 of 2 kB, 4 rewards": (1000, 4, 2000)}
GROUP = 8
MEASURED = ("record", "log", "read_advantages", "attach", "begins")


class Clock:
    """Times the methods of a capture, step by step."""

    def __init__(self, capture: Capture) -> None:
        self.spent: defaultdict[int, float] = defaultdict(float)
        self.computed: defaultdict[int, float] = defaultdict(float)
        self.step = 0
        for name in MEASURED:
            setattr(capture, name, self._timed(getattr(capture, name)))

    def _timed(self, function: Callable[..., None]) -> Callable[..., None]:
        def timed(*arguments: Any) -> None:
            began = time.perf_counter(), time.thread_time()
            function(*arguments)
            self.spent[self.step] += time.perf_counter() - began[0]
            self.computed[self.step] += time.thread_time() - began[1]

        return timed


def scoring(number: int) -> Any:
    @reward(name=f"reward_{number}")
    def scored(completion: str) -> Score:
        return Score((len(completion) * (number + 3)) % 17 / 17, f"{len(completion)} characters", {"length": 3})

    return scored


class Trainer(SimpleNamespace):
    """What the capture reads of TRL's."""


def trainer(rewards: int) -> Trainer:
    return Trainer(
        args=SimpleNamespace(num_generations=GROUP, scale_rewards="group"),
        model=SimpleNamespace(training=True),
        accelerator=SimpleNamespace(process_index=0, num_processes=1),
        reward_funcs=[None] * rewards,
        state=None,
        eos_token_ids=[1],
        _tokenizer=SimpleNamespace(pad_token_id=0),
    )


def handed_over(completions: int, rewards: int, characters: int, steps: int) -> Clock:
    """Return the clock of a run that only records."""
    batches = []
    with Runtime([scoring(number) for number in range(rewards)], lane="inline") as runtime:
        for step in range(steps):
            texts = [f"{step} {row} " + "lorem ipsum dolor " * (characters // 18) for row in range(completions)]
            ids = [2] * (characters // 4 + 1)
            rollouts = [Rollout(f"prompt {row // GROUP}", text, {"answer": "4"}, ids) for row, text in enumerate(texts)]
            batches.append(runtime.score(rollouts, step=step))
        with tempfile.TemporaryDirectory() as folder:
            recorder = Recorder(folder)
            capture = Capture(recorder, runtime.rewards, {})
            one = trainer(rewards)
            clock = Clock(capture)
            for step, batch in enumerate(batches):
                clock.step = step
                capture.attach(one)
                capture.record(batch, batch.scores, step, 0.0)
                capture.read_advantages()
                capture.log(step + 1, {f"metric/{number}": 0.5 for number in range(40)})
                time.sleep(0.3)  # a step has much more to do
            recorder.close()
    return clock


def trained(steps: int) -> Clock:
    """Return the clock of a TRL run."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))
    import tiny_grpo
    from transformers import TrainerCallback

    with tempfile.TemporaryDirectory() as name:
        folder = tiny_grpo.tiny_model(Path(name))
        with RewardAdapter([scoring(0), scoring(1), scoring(2)], lane="inline", record=folder / "run") as adapter:
            assert adapter.capture is not None
            clock = Clock(adapter.capture)

            class Steps(TrainerCallback):
                trainer: Any = None

                def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
                    clock.step = state.global_step

            tiny_grpo.train(folder, adapter, [{"prompt": f"{n}="} for n in range(16)], steps=steps, callbacks=[Steps()])
    return clock


def demonstrated(minutes: float, output: Path) -> str:
    """Run the demo, and return what recording takes of the time of its steps."""
    folder = Path(__file__).parents[2] / "docs" / "examples" / "demo"
    sys.path.insert(0, str(folder))
    sys.argv = ["demo.py", "--minutes", str(minutes), "--output", str(output)]
    import demo

    clocks: list[Clock] = []
    made = Capture.__init__

    def timed(self: Capture, *arguments: Any, **keywords: Any) -> None:
        made(self, *arguments, **keywords)
        clocks.append(Clock(self))

    Capture.__init__ = timed  # type: ignore[method-assign]
    try:
        demo.main()
    finally:
        Capture.__init__ = made  # type: ignore[method-assign]
    (clock,) = clocks
    whole = sum(json.loads((output / "summary.json").read_text())["seconds"])
    spent, computed = sum(clock.spent.values()), sum(clock.computed.values())
    return (
        f"recording took {spent / whole:.3%} of the time of the demo's steps, {computed / whole:.3%} in processor "
        f"time: {1000 * spent:.0f} and {1000 * computed:.0f} ms of {whole:.0f} s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=30, help="steps of each run")
    parser.add_argument("--step-s", type=float, default=5.0, help="seconds of the step of which the share is told")
    parser.add_argument("--train", action="store_true", help="measure a real training of a tiny model too")
    parser.add_argument("--demo", type=float, metavar="MINUTES", help="measure the demo instead, so long")
    parser.add_argument("--output", type=Path, default=Path("runs/demo"), help="folder of the demo's run")
    asked = parser.parse_args()
    if asked.demo:
        print(demonstrated(asked.demo, asked.output))
        return
    runs = {name: handed_over(*size, asked.steps) for name, size in SIZES.items()}
    if asked.train:
        runs["16, 3 rewards, in TRL"] = trained(asked.steps)
    table = Table("batch", "median ms", "processor ms", "slowest ms", "first ms", f"share of {asked.step_s:g} s")
    for name, clock in runs.items():
        later, computed = (
            [1000 * seconds for step, seconds in one.items() if step > 0] for one in (clock.spent, clock.computed)
        )
        busy = statistics.median(computed)
        figures = statistics.median(later), busy, max(later), 1000 * clock.spent[0]
        share = f"{busy / 10 / asked.step_s:.3f}%"
        table.add_row(name, *(f"{figure:.1f}" for figure in figures), share)
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
