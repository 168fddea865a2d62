"""TRL's trainer with an advantage for each token: places, losses, processes, and what a model learns from it."""

from __future__ import annotations

import json
import logging
import math
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("trl")

import tiny_grpo  # noqa: E402
import tool_agent  # noqa: E402
import two_turns  # noqa: E402
from trl_loss import inputs_of, token_arrays, trainer_of  # noqa: E402

from rewardkit import ConfigError, ObjectiveError, Step, reward, step_reward  # noqa: E402
from rewardkit.credit import turn_spans  # noqa: E402
from trainer_adapter import RewardAdapter  # noqa: E402
from trainer_adapter.credit_trainer import TurnCreditTrainer, token_advantages  # noqa: E402

pytestmark = pytest.mark.filterwarnings(
    "ignore:You are using '(rollout_func|environment_factory)'", *tiny_grpo.third_party_warnings.args
)
LOSSES = ("grpo", "dr_grpo", "dapo", "bnpo", "cispo", "sapo", "luspo", "vespo")
"""TRL's losses, by ``loss_type``."""


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_grpo.tiny_model(tmp_path_factory.mktemp("model"), chat=False)


def test_a_turns_advantage_stands_at_its_tokens() -> None:
    """Also where one turn has several runs of tokens; where the counts differ, the mean of the turns counts."""
    mask = torch.tensor([[1, 1, 0, 1, 0], [1, 0, 1, 1, 0], [1, 0, 1, 0, 1], [0, 0, 0, 0, 0]])
    outcome = torch.tensor([1.0, 0.0, 2.0, 3.0])
    advantages, unplaced = token_advantages(outcome, [[0.5, -1.0], [4.0], [1.0, 3.0], [5.0]], mask)
    assert [[1.5, 1.5, 1.0, 0.0, 1.0], [4.0] * 5, [4.0] * 5, [3.0] * 5] == advantages.tolist()
    assert 1 == unplaced


@pytest.mark.parametrize("level", ["token", "sequence"])
@pytest.mark.parametrize("loss", LOSSES)
def test_trls_losses_take_an_advantage_a_token(loss: str, level: str) -> None:
    """With the same advantage at all tokens of a row the loss is TRL's own; with others it is another."""
    from trl import GRPOTrainer

    arrays = {name: torch.tensor(value) for name, value in token_arrays().items()}
    trainer = trainer_of(torch, arrays["logps"], loss, level, 0.0)
    inputs = inputs_of(torch, arrays)
    own = GRPOTrainer._compute_loss(trainer, None, inputs)
    by_token = inputs["advantages"].unsqueeze(1).repeat(1, arrays["mask"].shape[1])
    same = GRPOTrainer._compute_loss(trainer, None, {**inputs, "advantages": by_token})
    torch.testing.assert_close(own, same)
    by_token[:, 1:] *= -1
    other = GRPOTrainer._compute_loss(trainer, None, {**inputs, "advantages": by_token})
    assert math.isfinite(other)
    assert not torch.isclose(own, other)


@step_reward(credit="turns")
def guessed(part: Step) -> float:
    """Score a turn by what it guesses, and one without a guess 0."""
    calls = part.messages[0].get("tool_calls") or ()
    return sum(float(call["function"]["arguments"].get("number", 0)) for call in calls)


@reward
def short(completion: list[dict[str, Any]]) -> float:
    return 1.0 / len(completion)


def test_a_tool_agents_turns_are_the_runs_of_its_tokens(tmp_path: Path) -> None:
    """In TRL's own loop of tools; the tokens of a turn have one advantage, and turns have others."""
    from datasets import Dataset
    from trl import GRPOConfig

    model, tokenizer = tool_agent.tool_model()
    outputs: list[dict[str, Any]] = []

    class Watched(TurnCreditTrainer):
        def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
            outputs.append(super()._generate_and_score_completions(inputs))
            return outputs[-1]

    with RewardAdapter([guessed, short], lane="inline") as adapter:
        config = GRPOConfig(
            output_dir=str(tmp_path), use_cpu=True, bf16=False, report_to="none", disable_tqdm=True,
            save_strategy="no", max_steps=1, num_generations=4, per_device_train_batch_size=8,
            max_completion_length=128, seed=7, reward_weights=adapter.weights, temperature=0.7, logging_steps=1,
        )  # fmt: skip
        torch.manual_seed(0)
        trainer = Watched(
            model=model, reward_funcs=adapter.reward_funcs, args=config, processing_class=tokenizer,
            train_dataset=Dataset.from_list(tool_agent.rows()), callbacks=[adapter.callback],
            environment_factory=tool_agent.GuessingGame,
        )  # fmt: skip
        trainer.train()
        turns = adapter.turns["guessed"]
    (output,) = outputs
    assert 0 == trainer.state.log_history[0]["credit/unplaced"]
    masks = (output["completion_mask"] * output["tool_mask"]).tolist()
    spans = [turn_spans(mask) for mask in masks]
    assert [len(row.numbers) for row in turns] == list(map(len, spans))
    assert max(map(len, spans)) > 1
    differ = 0
    for row, own_spans in zip(output["advantages"].tolist(), spans, strict=True):
        values = [{*row[start:end]} for start, end in own_spans]
        assert all(len(value) == 1 for value in values)
        differ += len(set.union(*values)) > 1
    assert differ


def _advantages(tiny: Path, folder: Path, processes: int) -> list[list[Any]]:
    """Return the advantages and masks of all rows, made by so many processes."""
    folder.mkdir()
    helpers = Path(tool_agent.__file__).parent
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    shared = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "TRL_EXPERIMENTAL_SILENCE": "1",
              "PYTHONPATH": os.pathsep.join([str(helpers), str(helpers.parents[1])])}  # fmt: skip
    if processes > 1:
        shared |= {"WORLD_SIZE": str(processes), "LOCAL_WORLD_SIZE": str(processes)}
        shared |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    command = [sys.executable, str(helpers / "credit_ranks.py"), str(tiny), str(folder), str(processes)]
    started = [
        subprocess.Popen(
            command, env={**shared, **({"RANK": str(rank), "LOCAL_RANK": str(rank)} if processes > 1 else {})},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for rank in range(processes)
    ]  # fmt: skip
    try:
        said = [process.communicate(timeout=300)[0] for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()
    assert [0] * processes == [process.returncode for process in started], "\n".join(text[-3000:] for text in said)
    files = [json.loads((folder / f"advantages-{rank}.json").read_text()) for rank in range(processes)]
    return [[row for file in files for row in file[part]] for part in (0, 1)]


@pytest.mark.full
@pytest.mark.slow
def test_two_processes_give_the_advantages_of_one(tiny: Path, tmp_path: Path) -> None:
    """Groups of four on six rows a process would be split; here each has eight, and a mean is over the whole batch."""
    alone, mask = _advantages(tiny, tmp_path / "one", 1)
    shared, shared_mask = _advantages(tiny, tmp_path / "two", 2)
    assert mask == shared_mask
    assert 16 == len(alone)
    for row, other in zip(alone, shared, strict=True):
        np.testing.assert_allclose(row, other, rtol=1e-5, atol=1e-6)
    assert len({round(value, 4) for row in alone for value in row}) > 12


@pytest.mark.full
@pytest.mark.slow
def test_a_model_learns_sooner_what_each_turn_earned(tiny: Path, tmp_path: Path) -> None:
    """In at most 0.6 of the steps that it needs from whether both of its answers were right."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    def steps_of(reward: Any, most: int) -> list[float]:
        model = AutoModelForCausalLM.from_pretrained(tiny, dtype=torch.float32)
        tokenizer = AutoTokenizer.from_pretrained(tiny, padding_side="left")
        return two_turns.train(model, tokenizer, str(tmp_path), reward=reward, seed=1, steps=most, rate=3e-3)

    by_turn = steps_of(two_turns.by_turn, 120)
    assert sum(by_turn[-5:]) / 5 >= two_turns.ENOUGH
    most = math.ceil(len(by_turn) / 0.6)
    by_outcome = steps_of(two_turns.all_right, most)
    assert most == len(by_outcome)
    assert sum(by_outcome[-5:]) / 5 < two_turns.ENOUGH


def test_a_trainer_without_credit_is_refused(tiny: Path) -> None:
    with RewardAdapter([short], lane="inline") as adapter, pytest.raises(ConfigError, match="credit='turns'"):
        TurnCreditTrainer(model=str(tiny), reward_funcs=adapter.reward_funcs, args=_config(tiny))
    with pytest.raises(ObjectiveError, match="normalize='rank'"):
        TurnCreditTrainer(model=str(tiny), reward_funcs=[], normalize="rank")


def _config(folder: Path) -> Any:
    from trl import GRPOConfig

    return GRPOConfig(output_dir=str(folder / "out"), use_cpu=True, bf16=False, report_to="none")


def test_trls_own_trainer_takes_the_completions_number_and_is_told_so_once(
    tiny: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rewards = [counted, counted + 0.5 * other_counted]
    with caplog.at_level(logging.WARNING, "trainer_adapter"), RewardAdapter(rewards, lane="inline") as adapter:
        run = tiny_grpo.train(tiny, adapter, [{"prompt": "2="}] * 8, steps=2)
    messages = [record.getMessage() for record in caplog.records if "each turn's number" in record.getMessage()]
    assert 2 == len(messages)
    assert messages[0].startswith("counted + 0.5*other_counted: the turns of a composition are not known")
    assert messages[1].startswith("counted: GRPOTrainer takes one number a completion")
    assert 2 == len(run.logged("rewards/counted/mean"))


@step_reward(credit="turns")
def counted(part: Step) -> float:
    return float(len(part.text))


@step_reward(credit="turns")
def other_counted(part: Step) -> float:
    return 1.0


def test_advantages_of_tokens_pass_through_accumulation_and_evaluation(tiny: Path, tmp_path: Path) -> None:
    """Batches that are shuffled, cut into parts and used twice, and an evaluation with groups of another size."""
    from datasets import Dataset
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from trl import GRPOConfig

    rows = Dataset.from_list([{"prompt": "First:"}, {"prompt": "Start:"}] * 2)
    tokenizer = AutoTokenizer.from_pretrained(tiny, padding_side="left")
    with RewardAdapter([two_turns.by_turn, two_turns.all_right], lane="inline") as adapter:
        config = GRPOConfig(
            output_dir=str(tmp_path), use_cpu=True, bf16=False, report_to="none", disable_tqdm=True,
            save_strategy="no", logging_steps=1, max_steps=2, learning_rate=1e-3, beta=0.0, num_generations=4,
            per_device_train_batch_size=4, gradient_accumulation_steps=4, num_iterations=2, eval_strategy="steps",
            eval_steps=2, num_generations_eval=2, per_device_eval_batch_size=4, max_completion_length=64, seed=1,
            reward_weights=adapter.weights, scale_rewards="batch",
        )  # fmt: skip
        torch.manual_seed(0)
        trainer = TurnCreditTrainer(
            model=AutoModelForCausalLM.from_pretrained(tiny, dtype=torch.float32), reward_funcs=adapter.reward_funcs,
            args=config, processing_class=tokenizer, train_dataset=rows, eval_dataset=rows,
            callbacks=[adapter.callback], rollout_func=two_turns.rollouts(tokenizer, 4), normalize="batch",
        )  # fmt: skip
        trainer.train()
    logged = trainer.state.log_history
    assert [0] == [entry["credit/unplaced"] for entry in logged if "credit/unplaced" in entry]
    assert [0] == [entry["eval_credit/unplaced"] for entry in logged if "eval_credit/unplaced" in entry]
    losses = [entry["loss"] for entry in logged if "loss" in entry]
    assert all(map(math.isfinite, losses))
    assert any(losses)
    assert all(parameter.isfinite().all() for parameter in trainer.model.parameters())
