"""Trains with RewardAdapter and GRPO for two steps on whatever TRL is found first, and prints what was seen.

It stands alone, for it runs in environments with older packages than the project's own.
"""

from __future__ import annotations

import inspect
import json
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

warnings.simplefilter("ignore")

STEPS, ROWS, GENERATIONS = 2, 8, 4


def main(settings: dict[str, Any]) -> dict[str, Any]:
    """Train, and return versions, scores as TRL was told them, what it logged and what is recorded."""
    import torch
    import transformers
    import trl
    from datasets import Dataset
    from tiny_grpo import tiny_model

    from rewardkit import Run, reward
    from trainer_adapter import RewardAdapter

    torch.set_num_threads(1)

    @reward(timeout_s=5)
    def chars(completion: str, answer: int) -> float:
        return len(completion) / answer

    @reward(default=None)
    def sometimes(completion: str, answer: int) -> float:
        if answer == 20:
            raise ValueError("no twenty")
        return 1.0

    folder = Path(tempfile.mkdtemp(dir=settings.get("folder")))
    adapter = RewardAdapter([chars, sometimes], weights=[1.0, 0.5], workers=1, record=str(folder / "run"))
    wanted = {
        "output_dir": str(folder / "out"),
        "per_device_train_batch_size": ROWS,
        "num_generations": GENERATIONS,
        "max_completion_length": 8,
        "max_steps": STEPS,
        "logging_steps": 1,
        "report_to": [],
        "save_strategy": "no",
        "reward_weights": adapter.weights,
        "use_cpu": True,
        "disable_tqdm": True,
        "bf16": False,
        "learning_rate": 1e-4,
    }
    known = inspect.signature(trl.GRPOConfig).parameters
    logs: list[dict[str, Any]] = []

    class Logs(transformers.TrainerCallback):  # type: ignore[misc] # of whatever version
        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **keywords: Any) -> None:
            seen.append(dict(logs or {}))

    seen = logs
    rows = [{"prompt": f"what is {n} and two", "answer": str(n)} for n in (10, 20, 30, 40)]
    trainer = trl.GRPOTrainer(
        str(tiny_model(folder / "model", chat=False)),
        reward_funcs=adapter.reward_funcs,
        args=trl.GRPOConfig(**{name: value for name, value in wanted.items() if name in known}),
        train_dataset=Dataset.from_list(rows),
        callbacks=[adapter.callback, Logs()],
    )
    adapter.attach(trainer)
    trainer.train()
    adapter.close()
    run = Run.open(folder / "run")
    own = [float(one) for one in trainer._logs["advantages"]] if hasattr(trainer, "_logs") else []
    recorded = [one.advantage for one in run.completions()][-len(own) :]
    return {
        "trl": trl.__version__,
        "transformers": transformers.__version__,
        "steps": trainer.state.global_step,
        "scored": [one.rows for one in adapter.timings],
        "means": [one["rewards/chars/mean"] for one in logs if "rewards/chars/mean" in one],
        "logged": sorted({name for one in logs for name in one if name.startswith("reward")}),
        "recorded": len(list(run.completions())),
        "failed": sum(one.outcomes["sometimes"].cause is not None for one in run.completions()),
        "advantages": sum(one.advantage is not None for one in run.completions()),
        "apart": max((abs(one - other) for one, other in zip(own, recorded, strict=True)), default=None),
        "metrics": run.metric_names(),
    }


if __name__ == "__main__":
    told = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
    print(json.dumps(main(told)))
