"""Agents that mend packages in TRL's loop, graded by the packages' own suites: record, page and advantages.

The agents' edits are scripted: a model of this size cannot write them. All else is TRL's own, from the tool calls to
the update of the weights.
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

pytest.importorskip("trl", reason="the extra train is not installed")

import tool_agent
from repair_tasks import BY_NAME, LOST, TASKS, RepairDesk, edit
from small_run import told
from tiny_grpo import third_party_warnings

from rewardkit import Cause, Run, Score, Status, Workspace, check_suite, reward
from rewardkit.advantages import group_advantages
from rewardkit.suites.suite_verdict import graded_digest
from trainer_adapter import RewardAdapter
from trainer_adapter.environments import environment_reward

pytestmark = [
    pytest.mark.trainers,
    third_party_warnings,
    pytest.mark.filterwarnings("ignore:.*activation_checkpointing.*:FutureWarning"),
    pytest.mark.filterwarnings("ignore:.*gradient_checkpointing.*:FutureWarning"),
    pytest.mark.filterwarnings("ignore:You are using 'environment_factory':UserWarning"),
]
GROUP = 4
ACTS = ("mends", "breaks", "leaves", "forges")
LOSING = ("clamp", "luhn")
"""Tasks of which the grading of one agent, who else would leave the folder, is lost."""


@reward(timeout_s=300, default=None)
def fixed(workspace: Workspace, task: str) -> Score:
    """Whether the package passes its suite; the worker is killed in the middle where the agent left a certain file."""
    if workspace.exists(LOST):
        os.kill(os.getpid(), signal.SIGKILL)
    return check_suite(workspace, BY_NAME[task].suite, confidence=0.05, timeout_s=30).score()


class GradedDesk(RepairDesk):
    """An environment that grades itself, as one that depends on a server does."""

    def get_reward(self) -> Score:
        assert self.workspace is not None
        name = Path(self.workspace).name.split("-")[0]
        return check_suite(self.workspace, BY_NAME[name].suite, confidence=0.05, timeout_s=30).score()


class Trained(NamedTuple):
    """What a training came to: TRL's advantages by step, and the folder of the runs."""

    advantages: list[list[float]]
    runs: Path


def act_of(task: str, number: int) -> str:
    return "loses" if task in LOSING and ACTS[number] == "leaves" else ACTS[number]


def train(folder: Path, adapter: RewardAdapter, tasks: list[str], environment: type[RepairDesk]) -> list[list[float]]:
    """Train on some tasks, two a step, and return the advantages that TRL made."""
    from datasets import Dataset
    from transformers import PrinterCallback
    from trl import GRPOConfig, GRPOTrainer

    model, tokenizer = tool_agent.tool_model(taught=False)
    advantages: list[list[float]] = []

    class Scripted(GRPOTrainer):  # type: ignore[misc, valid-type]
        def _generate_single_turn(self, prompt_ids: Any, *_: Any, **__: Any) -> Any:
            texts = [self._tokenizer.decode(ids) for ids in prompt_ids]
            eos = self._tokenizer.eos_token_id
            replies = [_reply(text, place % GROUP) for place, text in enumerate(texts)]
            return [[*self._tokenizer(reply)["input_ids"], eos] for reply in replies], None

        def _generate_and_score_completions(self, inputs: Any) -> Any:
            batch = super()._generate_and_score_completions(inputs)
            advantages.append(batch["advantages"].tolist())
            return batch

    rows = [{"prompt": [{"role": "user", "content": f"mend {name}"}], "task": name} for name in tasks]
    arguments = GRPOConfig(
        output_dir=str(folder / "out"), max_steps=len(tasks) // 2, num_generations=GROUP, shuffle_dataset=False,
        per_device_train_batch_size=2 * GROUP, max_completion_length=2000, use_cpu=True, bf16=False, report_to="none",
        save_strategy="no", disable_tqdm=True, beta=0.0, reward_weights=adapter.weights,
    )  # fmt: skip
    trainer = Scripted(
        model, adapter.reward_funcs, args=arguments, train_dataset=Dataset.from_list(rows), processing_class=tokenizer,
        environment_factory=environment, callbacks=[adapter.callback],
    )  # fmt: skip
    trainer.remove_callback(PrinterCallback)
    adapter.attach(trainer)
    trainer.train()
    return advantages


def _reply(text: str, number: int) -> str:
    task = next(name for name in BY_NAME if f"mend {name}" in text)
    arguments = edit(BY_NAME[task], act_of(task, number))
    if arguments is None or "<tool_response>" in text:
        return "done"
    return f"<tool_call>\n{json.dumps({'name': 'write', 'arguments': arguments})}\n</tool_call>"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, full: bool) -> Trained:
    """Ten tasks, or two of them, with four agents each; the folders that they left are gone."""
    folder = tmp_path_factory.mktemp("repairs")
    tasks = [task.name for task in TASKS] if full else ["slug", "clamp"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RepairDesk, "root", str(folder))
        patch.setenv("REWARDKIT_SEALED", str(folder / "runs" / "mend" / "sealed"))
        with RewardAdapter([fixed], workers=2, record=folder / "runs" / "mend") as adapter:
            advantages = train(folder, adapter, tasks, RepairDesk)
    return Trained(advantages, folder / "runs")


def _rows(runs: Path) -> list[tuple[str, str, Any]]:
    """Return the completions of a run with their tasks and the acts that stand behind them."""
    with Run.open(runs / "mend") as recorded:
        rows = sorted(recorded.completions(), key=lambda row: row.id)
    return [(row.columns["task"], act_of(row.columns["task"], place % GROUP), row) for place, row in enumerate(rows)]


def test_each_act_is_scored_for_what_it_is(trained: Trained) -> None:
    """A mended package passes, a forged pass is named, and a lost grading is unknown and not 0."""
    rows = _rows(trained.runs)
    for task, act, row in rows:
        outcome = row.outcomes["fixed"]
        if act == "loses":
            assert (Status.FAILED, None, Cause.INFRASTRUCTURE) == (outcome.status, outcome.score, outcome.cause), task
            continue
        assert (Status.SCORED, float(act == "mends")) == (outcome.status, outcome.score), (task, act, outcome)
        assert graded_digest(outcome.reason) is not None
        assert ("forged: " in outcome.reason) == (act == "forges")
        assert ("tool_calls" in row.completion[0]) == (act != "leaves")
    assert any(act == "loses" for _, act, _ in rows)


def test_a_lost_grading_leaves_its_group_as_it_is(trained: Trained) -> None:
    """TRL's advantages are those of the known scores, the lost one has none, and the record has the same."""
    rows = _rows(trained.runs)
    theirs = [value for step in trained.advantages for value in step]
    assert len(rows) == len(theirs)
    scores = [row.outcomes["fixed"].score for _, _, row in rows]
    expected = np.concatenate([group_advantages(scores[at : at + GROUP], GROUP) for at in range(0, len(rows), GROUP)])
    assert theirs == pytest.approx(expected.tolist(), abs=1e-4)
    assert theirs == pytest.approx([row.advantage for _, _, row in rows], abs=1e-4)
    assert {0.0} == {theirs[place] for place, (_, act, _) in enumerate(rows) if act == "loses"}
    assert all(theirs[place] > 1 for place, (_, act, _) in enumerate(rows) if act == "mends")


def test_the_page_shows_what_was_lost(trained: Trained) -> None:
    """A completion without a score, with the cause and an advantage of 0; the others with the folder's digest."""
    served = pytest.importorskip("served")
    with served.serving(trained.runs) as dashboard:
        dashboard.enter()
        for _, act, row in _rows(trained.runs):
            completion = dashboard.told(f"/runs/mend/completion?id={row.id}")
            (outcome,) = completion["scores"]
            if act == "loses":
                assert ("failed", None, "infrastructure") == (outcome["status"], outcome["score"], outcome["cause"])
                assert "SIGKILL from outside" in outcome["error"]
            else:
                assert graded_digest(outcome["reason"]) == graded_digest(row.outcomes["fixed"].reason)
            assert row.advantage == completion["advantage"]


def test_equal_folders_are_graded_once(trained: Trained) -> None:
    """The tests of one name with the same content are one key: nobody else's folder equals these."""
    reasons = [row.outcomes["fixed"].reason or "" for _, _, row in _rows(trained.runs)]
    digests = [graded_digest(reason) for reason in reasons if reason and "as an equal folder before" not in reason]
    assert len(digests) == len(set(digests))


@pytest.mark.full
def test_what_was_graded_holds(trained: Trained) -> None:
    """``verify`` grades each folder again from what was kept; the lost ones are counted, and not judged."""
    (check,) = told("verify", trained.runs / "mend", "--all", "--workers", "2")["versions"]
    lost = sum(act == "loses" for _, act, _ in _rows(trained.runs))
    count = len(_rows(trained.runs))
    assert ("same", count - lost, 0) == (check["result"], check["same"], check["different"])
    assert {"failed by infrastructure in the run": lost} == check["not_judged"]


@pytest.mark.full
def test_an_environment_that_grades_itself_does_so_in_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its score comes with its reason; where the jail is lost, nothing stands in."""
    monkeypatch.setattr(RepairDesk, "root", str(tmp_path))
    with RewardAdapter([environment_reward], workers=1, record=tmp_path / "runs" / "mend") as adapter:
        train(tmp_path, adapter, ["slug", "mean"], GradedDesk)
    for task, act, row in _rows(tmp_path / "runs"):
        outcome = row.outcomes["environment"]
        assert (Status.SCORED, float(act == "mends")) == (outcome.status, outcome.score), (task, act, outcome)
        assert graded_digest(outcome.reason) is not None
