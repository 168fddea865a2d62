"""One of two processes that train a tiny model with TRL, one training after another, whose rewards are exchanged."""

from __future__ import annotations

import json
import os
import re
import sys
import time
import zlib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import fault_server
import tiny_grpo
from transformers import TrainerCallback
from trl_rows import Watch, hashed, unsure

from builtin_rewards.judge import Budget, Criterion, LLMJudge
from rewardkit import RewardError, group_reward, reward
from trainer_adapter import RewardAdapter

PROMPTS = [{"prompt": f"{number}="} for number in range(16)]
CASES: Mapping[str, dict[str, Any]] = {
    "groups of 4 on 6 rows a process": {"per_device_train_batch_size": 6, "per_device_eval_batch_size": 6},
    "groups of 8 on 4 rows a process": {
        "method": "RLOO", "num_generations": 8, "per_device_train_batch_size": 4, "per_device_eval_batch_size": 4,
    },
    "whole groups": {"per_device_train_batch_size": 4, "per_device_eval_batch_size": 4},
    "scored early": {
        "per_device_train_batch_size": 6, "per_device_eval_batch_size": 6, "waves": 1, "attach": True,
    },
}  # fmt: skip
SHORT = ("groups of 4 on 6 rows a process", "groups of 8 on 4 rows a process")
"""The cases without ``--full``: split groups of both methods."""
CAP = 10
"""Requests that the judge of the last training may send, over both processes."""
PLAIN = 0.125
"""What scores where the judge may not; no grade of the judge comes to it."""
_ANSWER = re.compile(r"<completion-(\w+)>\n(.*)\n</completion-\1>", re.DOTALL)


def script(number: int, body: Mapping[str, Any], headers: Mapping[str, str]) -> Any:
    """Grade an answer by its characters, as the judge's server."""
    found = _ANSWER.search(body["messages"][-1]["content"])
    assert found is not None
    grade = sum(map(ord, found[2])) % 5 + 1
    return fault_server.ok(json.dumps({"correct": {"reason": "by its characters", "score": grade}}))


@group_reward
def standing(completions: list[str]) -> list[float]:
    """Each one's place in its group, and the group's size."""
    numbers = [zlib.crc32(completion.encode()) for completion in completions]
    return [sorted(numbers).index(number) + 100.0 * len(numbers) for number in numbers]


@reward
def by_rule(completion: str) -> float:
    """What scores where the judge may not."""
    return PLAIN


@reward
def only_here(completion: str) -> float:
    """Fail in the second process alone."""
    if os.environ.get("RANK") == "1":
        print(f"{time.time():.3f} fails", file=sys.__stdout__, flush=True)
        raise ValueError("not on this one")
    return 1.0


class Leaving(TrainerCallback):  # type: ignore[misc]  # the base is Any where transformers is absent
    """Ends the second process without a word."""

    def on_step_begin(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        """Leave, as a process does that the kernel killed."""
        if state.global_step == 1 and os.environ["RANK"] == "1":
            print(f"{time.time():.3f} leaves", flush=True)
            os._exit(9)


def rewards(url: str, budget: Budget | None = None) -> list[Any]:
    """Return a reward of each kind: of one completion, one that fails and skips, of a group, and a judge."""
    judge = LLMJudge("m", [Criterion("correct", "Is it right?")], base_url=url, prefilter=False, verify=False,
                     budget=budget)  # fmt: skip
    return [hashed, unsure, standing, judge.fallback(by_rule)]


def main(model: Path, folder: Path, url: str, *cases: str) -> None:
    """Train once for each of the cases, once to the cap, once to an error, and once until the other process is gone."""
    rank, left = int(os.environ["RANK"]), dict[str, Any]()
    for number, name in enumerate(cases):
        folder_of = folder / str(number)
        with RewardAdapter(rewards(url, Budget(requests=1000)), lane="inline", record=folder_of) as adapter:
            watch = Watch(adapter)
            left[name] = watch.seen
            _train(model, folder, adapter, eval_rows=PROMPTS[:3], callbacks=[watch], **CASES[name])
    with RewardAdapter(rewards(url, Budget(requests=CAP))[2:]) as adapter:  # none that leaves out what was judged
        watch = Watch(adapter)
        left["cap"], workers = watch.seen, adapter.runtime.workers
        _train(model, folder, adapter, callbacks=[watch], per_device_train_batch_size=6)
    raised = ""
    with RewardAdapter([only_here, standing], lane="inline", on_failure="raise") as adapter:
        try:
            _train(model, folder, adapter, per_device_train_batch_size=6)
        except RewardError as error:
            raised = f"{type(error).__name__}: {error}"
            print(f"{time.time():.3f} raised", flush=True)
    batches = {name: [asdict(one) for one in seen] for name, seen in left.items()}
    told = {"batches": batches, "raised": raised, "workers": workers}
    (folder / f"left-{rank}.json").write_text(json.dumps(told))
    with RewardAdapter([hashed], lane="inline") as adapter:
        _train(model, folder, adapter, callbacks=[Leaving()], per_device_train_batch_size=4)


def _train(model: Path, folder: Path, adapter: RewardAdapter, **options: Any) -> None:
    tiny_grpo.train(
        model, adapter, PROMPTS, steps=2, output_dir=str(folder / "out"), ddp_backend="gloo", **options
    )  # fmt: skip


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
