"""TRL's loop over tool agents: sync and async tools, lists and dicts, several environments, both lanes, evaluation."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import tool_agent
from tiny_grpo import third_party_warnings

from rewardkit import Recorder, Run, Score, Status, Step, reward, step_reward
from trainer_adapter import RewardAdapter
from trainer_adapter.environments import environment_reward

pytestmark = [
    pytest.mark.trainers,
    third_party_warnings,
    pytest.mark.filterwarnings("ignore:.*activation_checkpointing.*:FutureWarning"),
    pytest.mark.filterwarnings("ignore:.*gradient_checkpointing.*:FutureWarning"),
    pytest.mark.filterwarnings("ignore:You are using 'environment_factory':UserWarning"),
]


class _Counter:
    """An environment that counts its calls; what it holds belongs to the loop on which its async tools ran."""

    def __init__(self) -> None:
        self.workspace: str | None = None
        self.calls: list[str] = []
        self.lock: asyncio.Lock | None = None

    def reset(self, **row: object) -> None:
        self.calls, self.lock = [], None

    async def search(self, q: str) -> list[dict[str, str]]:
        """
        Search.

        Args:
            q: what.
        """
        if self.lock is None:
            self.lock = asyncio.Lock()
            self.loop = asyncio.get_running_loop()
        await asyncio.sleep(0.001 * (len(q) % 3))
        async with self.lock:
            self.calls.append(q)
        return [{"search": q}]

    def note(self, q: str) -> str:
        """
        Note.

        Args:
            q: what.
        """
        self.calls.append(q)
        return json.dumps([{"note": q}])

    def table(self, q: str) -> dict[str, str]:
        """
        Table.

        Args:
            q: what.
        """
        self.calls.append(q)
        return {"table": q}


class Awaited(_Counter):
    """Gives its reward on the loop of its tools."""

    async def get_reward(self) -> float | None:
        if self.lock is None:
            return float(len(self.calls))
        assert asyncio.get_running_loop() is self.loop
        async with self.lock:
            return float(len(self.calls))


class Plain(_Counter):
    """Gives its reward at once."""

    def get_reward(self) -> float:
        return float(len(self.calls))


@step_reward(each="tool_call", reduce="min")
def own_result(part: Step) -> Score:
    """Whether each call has its own tool's answer to its own question."""
    wanted = {str(part.name): (part.arguments or {}).get("q")}
    result = (part.result or "").replace("'", '"')
    return Score(float(result in (json.dumps(wanted), json.dumps([wanted]))), f"{wanted} -> {part.result!r}")


@reward
def calls_made(messages: list[dict[str, Any]]) -> float:
    """How many calls the completion makes."""
    return float(sum(len(message.get("tool_calls") or ()) for message in messages))


def _calls(draw: random.Random) -> str:
    calls = [
        {"name": draw.choice(["search", "note", "table"]), "arguments": {"q": f"k{draw.randrange(1000)}"}}
        for _ in range(draw.randint(1, 4))
    ]
    return "\n".join(f"<tool_call>\n{json.dumps(call)}\n</tool_call>" for call in calls)


def _trained(folder: Path, adapter: RewardAdapter, steps: int, seed: int, *, resume: bool = False) -> Any:
    """Train to so many steps, from the last checkpoint or anew, and evaluate and save at the end."""
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    draw = random.Random(seed)
    model, tokenizer = tool_agent.tool_model()

    class Scripted(GRPOTrainer):  # type: ignore[misc, valid-type]
        def _generate_single_turn(self, prompt_ids: Any, *_: Any, **__: Any) -> Any:
            texts = [self._tokenizer.decode(ids) for ids in prompt_ids]
            said = ["done" if len(re.findall("tool_response", text)) > 4 else _calls(draw) for text in texts]
            eos = self._tokenizer.eos_token_id
            return [[*self._tokenizer(text)["input_ids"], eos] for text in said], None

    rows = Dataset.from_list([
        {"prompt": [{"role": "user", "content": f"go {row}"}], "environment": ("awaited", "plain")[row % 2]}
        for row in range(4)
    ])  # fmt: skip
    arguments = GRPOConfig(
        output_dir=str(folder / "out"), max_steps=steps, num_generations=2, per_device_train_batch_size=4,
        per_device_eval_batch_size=4, eval_strategy="steps", eval_steps=steps, max_completion_length=4000, use_cpu=True,
        bf16=False, report_to="none", save_strategy="steps", save_steps=steps, disable_tqdm=True,
        reward_weights=adapter.weights,
    )  # fmt: skip
    trainer = Scripted(
        model, adapter.reward_funcs, args=arguments, train_dataset=rows, eval_dataset=rows, processing_class=tokenizer,
        environment_factory={"awaited": Awaited, "plain": Plain}, callbacks=[adapter.callback],
    )  # fmt: skip
    adapter.attach(trainer)
    trainer.train(resume_from_checkpoint=resume)
    return trainer


@pytest.mark.cases(1)
@pytest.mark.parametrize("lane", ["inline", "worker"])
def test_each_call_has_its_own_answer_and_each_environment_its_own_reward(lane: str, tmp_path: Path) -> None:
    """In training and in evaluation; two kinds of environments, one of them async, with tools side by side."""
    run = tmp_path / "run"
    with RewardAdapter([own_result, environment_reward, calls_made], lane=lane, workers=1, record=run) as adapter:
        _trained(tmp_path, adapter, steps=3, seed=7)
    completions = _checked(run)
    assert 20 <= len(completions)


@pytest.mark.cases(1)
@pytest.mark.parametrize("lane", ["inline", "worker"])
def test_a_training_that_goes_on_from_a_checkpoint_has_no_answer_of_an_earlier_one(lane: str, tmp_path: Path) -> None:
    """In another process's place: new environments, a new adapter, the same record, and no step twice."""
    run, rewards = tmp_path / "run", [own_result, environment_reward, calls_made]
    for steps, seed in ((2, 7), (4, 8)):
        recorder = Recorder(run, append=steps > 2)
        with RewardAdapter(rewards, lane=lane, workers=1, record=recorder) as adapter:
            trainer = _trained(tmp_path, adapter, steps=steps, seed=seed, resume=steps > 2)
    assert 4 == trainer.state.global_step
    completions = _checked(run)
    counts = Counter(row.step for row in completions if row.split == "train")
    assert {0, 1, 2, 3} == counts.keys()
    assert {4} == set(counts.values())
    assert {"train", "eval"} == {row.split for row in completions}


def _checked(run: Path) -> list[Any]:
    """Return all completions of a record; each call has its own answer, and each environment its own reward."""
    with Run.open(run) as recorded:
        completions = [*recorded.completions(), *recorded.completions(split="eval")]
    assert {Status.SCORED} == {outcome.status for row in completions for outcome in row.outcomes.values()}
    for row in completions:
        assert 1.0 == row.outcomes["own_result"].score, row.outcomes["own_result"].reason
        assert row.outcomes["calls_made"].score == row.outcomes["environment"].score
    return completions
