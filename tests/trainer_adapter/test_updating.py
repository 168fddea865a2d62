"""Rewards change while TRL trains: at one step, in the trainer's lists as in the scoring, or not at all."""

from __future__ import annotations

import contextlib
import json
import math
import os
import socket
import subprocess
import sys
import time
from collections import defaultdict, deque
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import tiny_grpo

from rewardkit import InfrastructureError, Recorder, RewardError, Run, reward
from rewardkit.changing import Action, RewardState
from rewardkit.record import changes
from rewardkit.record.changes import ChangeState
from rewardkit.record.places import place_of_record
from trainer_adapter import RewardAdapter
from trainer_adapter.updating import AdapterUpdates, align

pytest.importorskip("trl", reason="the extra train is not installed")
pytestmark = [tiny_grpo.third_party_warnings]

ROWS = [{"prompt": f"{a} + 1 =", "answer": str(a + 1)} for a in range(1, 33)]


@reward
def brief(completion: str) -> float:
    """The first version."""
    return float(len(completion))


@reward
def other(completion: str) -> float:
    """A reward beside it."""
    return float("a" in completion)


@reward
def broken(completion: str) -> float:
    """A reward that fails."""
    raise ValueError("no")


def text(score: str, name: str = "brief", **more: Any) -> dict[str, Any]:
    """Return a carried reward of a file with this expression."""
    source = f"def {name}(completion: str) -> float:\n    return {score}\n"
    return {"kind": "file", "reference": f"/nowhere/mine.py:{name}", "text": source, **more}


class Asking:
    """A trainer's callback that asks for changes after steps, and waits for each answer as another process would."""

    def __init__(self, run: Path, wanted: dict[int, list[tuple[str, Action, dict[str, Any]]]]) -> None:
        self.answers: list[changes.RewardChange] = []
        self._run, self._wanted = run, wanted

    def callback(self) -> Any:
        """Return the callback."""
        from transformers import TrainerCallback

        asking = self

        class Callback(TrainerCallback):
            def on_step_begin(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
                asking.ask(state.global_step)

        return Callback()

    def ask(self, step: int) -> None:
        """Ask for what is wanted in a step that has begun."""
        with contextlib.closing(place_of_record(self._run).connect_to_write()) as connection:
            for one in self._wanted.get(step, ()):
                number = changes.ask(connection, *one)
                end = time.monotonic() + 60
                while (change := changes.change_of(connection, number)) is None or change.state is ChangeState.ASKED:
                    assert time.monotonic() < end, "no answer came"
                    time.sleep(0.02)
                self.answers.append(change)


def train(folder: Path, adapter: RewardAdapter, asking: Asking, *, steps: int, **arguments: Any) -> tiny_grpo.Run:
    """Train the tiny model with a callback that asks."""
    return tiny_grpo.train(folder, adapter, ROWS, steps=steps, callbacks=[asking.callback()], **arguments)


@pytest.mark.cases(1)
@pytest.mark.trainers
@pytest.mark.parametrize("method", ["GRPO", "RLOO"])
def test_a_change_takes_effect_at_the_next_step_of_a_training(tiny: Path, tmp_path: Path, method: str) -> None:
    """No step has two versions, with accumulated batches and evaluations between; TRL's means are the version's."""
    run = tmp_path / "run"
    asking = Asking(run, {2: [("brief", Action.REPLACE, text("100.0 + len(completion)"))]})
    with RewardAdapter([brief, other], weights=[1.0, 0.5], workers=1, record=run) as adapter:
        done = train(
            tiny, adapter, asking, steps=5, method=method, eval_rows=ROWS[:4], eval_steps=1, eval_strategy="steps",
            per_device_train_batch_size=8, gradient_accumulation_steps=2, steps_per_generation=1,
        )  # fmt: skip
    (answer,) = asking.answers
    assert (answer.state, answer.step) == (ChangeState.ACCEPTED, 3)
    with Run.open(run) as found:
        steps = {(one.split, one.step, one.versions["brief"]) for one in found.completions()}
        assert steps == {
            *(("train", step, 1 if step < 3 else 2) for step in range(5)),
            *(("eval", step, 1 if step < 3 else 2) for step in range(1, 6)),
        }
        assert [100 < mean for _, mean in found.series("brief")] == [False] * 3 + [True] * 2
        assert done.logged("rewards/brief/mean") == pytest.approx([mean for _, mean in found.series("brief")])
        assert done.logged("eval_rewards/brief/mean") == pytest.approx(
            [mean for _, mean in found.series("brief", "eval")]
        )
    assert done.weights_are_finite()


@pytest.mark.trainers
def test_a_broken_change_and_one_of_an_unknown_trainer_change_nothing(tiny: Path, tmp_path: Path) -> None:
    """The training goes on with its rewards; the reasons are told, and stand in the run."""
    run = tmp_path / "run"
    broken = {**text("0.0"), "text": "1 / 0"}
    asking = Asking(
        run,
        {
            1: [("brief", Action.REPLACE, broken), ("brief", Action.WEIGHT, {"weight": 2.0}),
                ("more", Action.ADD, text("1.0", "more")), ("other", Action.REMOVE, {})],
        },
    )  # fmt: skip
    with RewardAdapter([brief, other], workers=1, record=run) as adapter:
        done = train(tiny, adapter, asking, steps=3)
    words = [str(one.words) for one in asking.answers]
    assert [ChangeState.REFUSED] * 4 == [one.state for one in asking.answers]
    assert "ZeroDivisionError" in words[0]
    for word, option in zip(words[1:], ("--weight", "--add", "--remove"), strict=True):
        assert word.startswith(f"{option} changes the trainer's own lists")
        assert "adapter.attach(trainer)" in word
    assert done.logged("reward") == pytest.approx(
        [a + b for a, b in zip(done.logged("rewards/brief/mean"), done.logged("rewards/other/mean"), strict=True)]
    )
    with Run.open(run) as found:
        assert {name: number for one in found.completions() for name, number in one.versions.items()} == {
            "brief": 1, "other": 1,
        }  # fmt: skip
        assert words == [event["body"]["words"] for event in found.events if event["kind"] == "change"]


@pytest.mark.full
@pytest.mark.trainers
def test_an_attached_trainer_takes_weights_and_rewards_that_come_and_go(tiny: Path, tmp_path: Path) -> None:
    """Its lists change together at the step: what it sums up is the weighted sum of the rewards of that step."""
    run = tmp_path / "run"
    asking = Asking(
        run,
        {
            0: [("brief", Action.WEIGHT, {"weight": 2.0}), ("brief", Action.SHADOW, text("7.0", "brief"))],
            2: [("more", Action.ADD, text("float(completion.count('e'))", "more", weight=0.25))],
            4: [("brief", Action.REMOVE, {})],
        },
    )
    with RewardAdapter([brief, other], weights=[1.0, 0.5], workers=1, record=run) as adapter:
        done = train(tiny, adapter, asking, steps=6, eval_rows=ROWS[:4], eval_steps=2, attach=True)
        assert (adapter.names, adapter.weights) == (["other", "more"], [0.5, 0.25])
    assert [(one.state, one.step) for one in asking.answers] == [(ChangeState.ACCEPTED, step) for step in (1, 1, 3, 5)]
    weights = [{"brief": 1.0, "other": 0.5}] + [{"brief": 2.0, "other": 0.5}] * 2
    weights += [{"brief": 2.0, "other": 0.5, "more": 0.25}] * 2 + [{"other": 0.5, "more": 0.25}]
    entries = [entry for entry in done.trainer.state.log_history if "reward" in entry]
    for entry, expected in zip(entries, weights, strict=True):
        means = {name: entry[f"rewards/{name}/mean"] for name in expected}
        assert entry["reward"] == pytest.approx(sum(expected[name] * mean for name, mean in means.items()), rel=1e-4)
        assert {key.split("/")[1] for key in entry if key.startswith("rewards/")} == set(expected)
    assert done.trainer.reward_func_names == ["other", "more"]
    assert "brief" not in done.trainer._logs["rewards"]
    with Run.open(run) as found:
        assert list(range(6)) == found.steps()
        for one in found.completions(split="train"):
            assert one.step is not None
            expected = weights[one.step]
            assert set(one.scores) - {"brief_shadow"} == set(expected)
            assert ("brief_shadow" in one.scores) == (1 <= one.step < 5)
            total = sum(expected[name] * (one.scores[name] or 0.0) for name in expected)
            assert one.reward == pytest.approx(total)
            assert one.advantage is not None


def test_the_trainers_lists_keep_what_is_not_the_adapters() -> None:
    """Functions from elsewhere stay where they are, with their weights and processing classes."""
    torch = pytest.importorskip("torch")
    trainer = SimpleNamespace(
        reward_func_names=["a", "theirs", "b"],
        reward_funcs=["fa", "ft", "fb"],
        reward_processing_classes=[None, "tokenizer", None],
        reward_weights=torch.tensor([1.0, 3.0, 2.0]),
    )
    before = RewardState(dict.fromkeys("ab"), dict.fromkeys("ab", 1.0))  # type: ignore[arg-type]
    after = RewardState(dict.fromkeys("bcs"), {"b": 0.5, "c": 4.0, "s": 0.0}, frozenset("s"))  # type: ignore[arg-type]
    align(trainer, before, after, {"b": "fb", "c": "fc"})
    assert trainer.reward_func_names == ["theirs", "b", "c"]
    assert trainer.reward_funcs == ["ft", "fb", "fc"]
    assert trainer.reward_processing_classes == ["tokenizer", None, None]
    assert trainer.reward_weights.tolist() == [3.0, 0.5, 4.0]


def test_a_table_of_completions_has_a_score_for_each_prompt_also_of_a_new_reward() -> None:
    """TRL makes one table of the prompts and scores that it logs; columns of unequal length end the training."""
    torch = pytest.importorskip("torch")
    trainer = SimpleNamespace(
        reward_func_names=["a"], reward_funcs=["fa"], reward_processing_classes=[None],
        reward_weights=torch.tensor([1.0]),
        _logs={"prompt": deque("pq", maxlen=2), "rewards": defaultdict(lambda: deque(maxlen=2), a=deque([1.0, 2.0]))},
    )  # fmt: skip
    before = RewardState(dict.fromkeys("a"), {"a": 1.0})  # type: ignore[arg-type]
    after = RewardState(dict.fromkeys("ab"), {"a": 1.0, "b": 1.0})  # type: ignore[arg-type]
    align(trainer, before, after, {"a": "fa", "b": "fb"})
    trainer._logs["rewards"]["b"].append(3.0)
    unknown, known = trainer._logs["rewards"]["b"]
    assert (math.isnan(unknown), known) == (True, 3.0)


class Known(SimpleNamespace):
    """A trainer that can be known by a weak reference."""


class Lists:
    """What of a trainer's changes of rewards need, and its settings and state."""

    def __init__(self, adapter: RewardAdapter) -> None:
        torch = pytest.importorskip("torch")
        self.reward_func_names, self.reward_funcs = adapter.names, adapter.reward_funcs
        self.reward_processing_classes = [None] * len(adapter.names)
        self.reward_weights = torch.tensor(adapter.weights)
        self.args = SimpleNamespace(reward_weights=adapter.weights)

    def begin(self, adapter: RewardAdapter, step: int) -> None:
        """Begin to train."""
        adapter.callback.on_train_begin(self.args, SimpleNamespace(global_step=step), None)


def scored(adapter: RewardAdapter, **more: Any) -> dict[str, Any]:
    """Return what each of an adapter's functions says of one completion."""
    return {one.__name__: one(prompts=["p"], completions=["abc"], **more)[0] for one in adapter.reward_funcs}


def test_a_second_training_in_a_process_takes_the_changes_of_the_first_anew(tmp_path: Path) -> None:
    """It goes on with them from their step, or begins without them; the trainer's lists say the same."""
    run = tmp_path / "run"
    wanted = [("brief", Action.WEIGHT, {"weight": 2.0}), ("more", Action.ADD, text("4.0", "more")),
              ("other", Action.REMOVE, {})]  # fmt: skip
    with RewardAdapter([brief, other], lane="inline", record=run) as adapter:
        trainer = Lists(adapter)
        assert adapter.updates is not None
        adapter.updates.attach(trainer)
        trainer.begin(adapter, 0)
        asking = Asking(run, {0: wanted})
        asking.ask(0)
        adapter.updates.begin(1)
        assert scored(adapter) == {"brief": 3.0, "more": 4.0}
        adapter.callback.on_train_end(trainer.args, None, None)
        trainer.begin(adapter, 1)  # from a checkpoint
        assert (scored(adapter), trainer.reward_weights.tolist()) == ({"brief": 3.0, "more": 4.0}, [2.0, 1.0])
        trainer.begin(adapter, 0)
        assert (scored(adapter), trainer.reward_weights.tolist()) == ({"brief": 3.0, "other": 1.0}, [1.0, 1.0])
        assert trainer.reward_func_names == ["brief", "other"]
    with Run.open(run) as found:
        assert {one.state for one in found.changes} == {ChangeState.DROPPED}


@pytest.mark.parametrize("attached", [True, False])
def test_a_second_trainer_has_the_rewards_that_it_was_made_with(tmp_path: Path, attached: bool) -> None:
    """Its lists are of the rewards as a change has left them."""
    with RewardAdapter([brief, other], lane="inline", record=tmp_path) as adapter:
        first = Lists(adapter)
        assert adapter.updates is not None
        adapter.updates.attach(first)
        first.begin(adapter, 0)
        wanted = [("brief", Action.WEIGHT, {"weight": 2.0}), ("other", Action.REMOVE, {})]
        Asking(tmp_path, {0: wanted}).ask(0)
        adapter.updates.begin(1)
        adapter.callback.on_train_end(first.args, None, None)
        second = Lists(adapter)
        if attached:
            adapter.updates.attach(second)
        second.begin(adapter, 0)
        assert (scored(adapter), second.reward_func_names, adapter.weights) == ({"brief": 3.0}, ["brief"], [2.0])


def test_an_evaluation_before_a_training_goes_on_drops_no_change(tmp_path: Path) -> None:
    """Its step is 0, as that of a training that is begun anew; the training after it is the one that counts."""
    run = tmp_path / "run"
    with contextlib.closing(place_of_record(run).connect_to_write()) as connection:
        changes.ask(connection, "brief", Action.REPLACE, text("9.0"))
        connection.execute("UPDATE change SET state = 'accepted', step = 3")
    with RewardAdapter([brief], lane="inline", record=Recorder(run, append=True)) as adapter:
        trainer = Known(
            args=SimpleNamespace(), model=SimpleNamespace(training=False), accelerator=SimpleNamespace(),
            reward_funcs=adapter.reward_funcs, state=SimpleNamespace(global_step=0, epoch=0.0),
        )  # fmt: skip
        adapter._know(trainer)
        assert scored(adapter, trainer_state=trainer.state) == {"brief": 3.0}
        adapter.callback.on_train_begin(trainer.args, SimpleNamespace(global_step=5), None)
        assert scored(adapter) == {"brief": 9.0}


@reward(on_infrastructure="raise")
def lost(completion: str) -> float:
    """A reward whose service is gone."""
    raise InfrastructureError("the service is gone")


@reward
def huge(completion: str) -> float:
    """A score that no trainer can take."""
    return 1e300


@pytest.mark.parametrize("coming", [lost, huge, broken], ids=lambda one: one.name)
def test_a_shadow_ends_no_training(coming: Any, tmp_path: Path) -> None:
    """What nobody is told of may fail, be lost or be too large; the reward itself may not."""
    with RewardAdapter([brief], lane="inline", on_failure="raise", record=tmp_path) as adapter:
        assert adapter.updates is not None
        own = RewardState({"brief": brief}, {"brief": 1.0})
        state = replace(own.with_reward("brief_shadow", coming, 0.0), shadows=frozenset({"brief_shadow"}))
        adapter.updates.put(adapter.runtime.with_rewards(state.rewards, state.weights), state)
        assert scored(adapter) == {"brief": 3.0}
        counting = own.with_reward("other", coming, 0.0)
        adapter.updates.put(adapter.runtime.with_rewards(counting.rewards, counting.weights), counting)
        with pytest.raises(RewardError):
            scored(adapter)


def test_a_record_that_cannot_be_written_ends_no_training(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The training takes no changes, and says so once."""
    (tmp_path / "record.db").write_text("this is no database, and never was one")
    with RewardAdapter([brief], lane="inline") as adapter:
        updates = AdapterUpdates(adapter, tmp_path / "record.db")
        updates.begin_training(SimpleNamespace(), 0, lambda names: None)
        updates.begin(1)
        updates.end()
    (said,) = caplog.messages
    assert "not a record" in said
    assert said.endswith("this training takes no changes of its rewards")


@pytest.mark.full
@pytest.mark.trainers
def test_two_processes_change_at_the_same_step(tiny: Path, tmp_path: Path) -> None:
    """Neither process scores the step, or one after it, with the old version; what one refuses, both do."""
    (tmp_path / "new.py").write_text("def brief(completion: str) -> float:\n    return 100.0 + len(completion)\n")
    only = "import os\nif os.environ.get('RANK') == '1':\n    raise OSError('not on this rank')\n"
    (tmp_path / "mean.py").write_text(f"{only}def brief(completion: str) -> float:\n    return 0.0\n")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    helpers = Path(tiny_grpo.__file__).parent
    path = os.pathsep.join([str(helpers), str(helpers.parents[1])])
    shared = {
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
        "PYTHONPATH": path,
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, str(helpers / "updated_ranks.py"), str(tiny), str(tmp_path)]
    logs = [tmp_path / f"{rank}.txt" for rank in (0, 1)]
    processes = []
    try:
        for rank, log in enumerate(logs):
            env = {**os.environ, **shared, "RANK": str(rank), "LOCAL_RANK": str(rank), "CUDA_VISIBLE_DEVICES": ""}
            with log.open("w") as file:
                processes.append(subprocess.Popen(command, env=env, stdout=file, stderr=subprocess.STDOUT))
        ended = [process.wait(500) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    said = [log.read_text() for log in logs]
    assert ended == [0, 0], "\n".join(said)
    assert "answer (<ChangeState.ACCEPTED: 'accepted'>, 3)" in said[0]
    assert "rank 1: " in said[0]
    assert "OSError: not on this rank" in said[0]
    with Run.open(tmp_path / "run") as run:
        found = {(one.split, one.rank, one.step, one.versions["brief"]) for one in run.completions()}
        train_steps = {("train", rank, step, 1 if step < 3 else 2) for rank in (0, 1) for step in range(6)}
        eval_steps = {("eval", rank, step, 1 if step < 3 else 2) for rank in (0, 1) for step in (3, 6)}
        assert found == train_steps | eval_steps
        for one in run.completions(split="train"):
            score = one.scores["brief"]
            assert score is not None
            assert one.reward == pytest.approx(score if one.step is not None and one.step < 3 else 3 * score)
            assert (score >= 100) == (one.versions["brief"] == 2)


@pytest.mark.full
@pytest.mark.trainers
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
def test_the_command_changes_a_live_training_and_one_that_goes_on_keeps_it(tiny: Path, tmp_path: Path) -> None:
    """`rewardkit update` from another process: the step after has the version, and so have the steps after a resume."""
    from transformers import TrainerCallback

    from trainer_adapter.config import GRPOConfig
    from trainer_adapter.train import train

    (tmp_path / "new.py").write_text("def brief(completion: str) -> float:\n    return 100.0 + len(completion)\n")
    run, said = tmp_path / "run", []

    class Command(TrainerCallback):
        def on_step_begin(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
            if state.global_step == 1:
                command = ["update", str(run), "brief", f"{tmp_path}/new.py:brief", "--weight", "2", "--json"]
                done = subprocess.run(
                    [sys.executable, "-m", "rewardkit", *command],
                    capture_output=True,
                    text=True,
                    timeout=120,
                    check=True,
                )
                said.append(json.loads(done.stdout))

    def go(steps: int) -> None:
        config = GRPOConfig(
            base_model=str(tiny), reward_fns=[brief], train_steps=steps, save_steps=1, num_generations=4,
            effective_batch_size=8, sampling_params={"max_tokens": 8}, rank=4, use_cpu=True, workers=1, seed=0,
        )  # fmt: skip
        train(config, ROWS, run, callbacks=[Command()])

    go(3)
    (answer,) = said
    assert (answer["state"], answer["step"], answer["action"]) == ("accepted", 2, "replace")
    with Run.open(run) as found:
        assert [1, 1, 2] == [one.version for one in found.summaries("brief")]
    go(5)
    with Run.open(run) as found:
        assert [1, 1, 2, 2, 2] == [one.version for one in found.summaries("brief")]
        for one in found.completions():
            score = one.scores["brief"]
            assert score is not None
            assert one.reward == pytest.approx(score if one.versions["brief"] == 1 else 2 * score)
        assert [one.digits for one in found.versions][1] == answer["version"]
