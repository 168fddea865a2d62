"""One of several processes that train a tiny model with TRL; the first asks for changes while all of them train."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import tiny_grpo
from transformers import TrainerCallback

from rewardkit import Run, UpdateRefusedError, reward
from trainer_adapter import RewardAdapter

ROWS = [{"prompt": f"{a} + 1 =", "answer": str(a + 1)} for a in range(1, 33)]
STEPS = 6


@reward
def brief(completion: str) -> float:
    """The first version."""
    return float(len(completion))


class Asking(TrainerCallback):
    """Asks, in the first process, for a change that holds, one that breaks and one of the lists."""

    def __init__(self, run: Path, folder: Path) -> None:
        self._run, self._folder = run, folder

    def on_step_begin(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        """Ask at step 2, and let one process be slower than the other."""
        time.sleep(0.2 * int(os.environ["RANK"]))
        if state.global_step == 2 and int(os.environ["RANK"]) == 0:
            with Run.open(self._run) as run:
                config = run.get_config()
                config.reward_fns.functions["brief"] = f"{self._folder}/new.py:brief"
                config.reward_weights["brief"] = 3.0
                print("answer", *((one.state, one.step) for one in run.update_config(config, workers=1)), flush=True)
                config = run.get_config()
                config.reward_fns.functions["brief"] = f"{self._folder}/mean.py:brief"
                try:
                    run.update_config(config, workers=1)
                except UpdateRefusedError as refused:
                    print("refused", refused, flush=True)


def main(model: str, folder: str) -> None:
    """Train, attached and recorded in the folder ``run``."""
    run = Path(folder) / "run"
    while os.environ["RANK"] != "0" and not (run / "record.db").exists():
        time.sleep(0.05)  # the first process makes the record; the test ends this one if that never comes
    with RewardAdapter([brief], workers=1, record=run) as adapter:
        tiny_grpo.train(
            Path(model), adapter, ROWS, steps=STEPS, attach=True, callbacks=[Asking(run, Path(folder))],
            per_device_train_batch_size=4, gradient_accumulation_steps=2, steps_per_generation=1, eval_rows=ROWS[:4],
            eval_steps=3, per_device_eval_batch_size=4, output_dir=str(Path(folder) / "out"), ddp_backend="gloo",
        )  # fmt: skip


if __name__ == "__main__":
    main(*sys.argv[1:])
