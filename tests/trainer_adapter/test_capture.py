"""What is recorded of a TRL run is what TRL saw, computed and logged."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cloudpickle
import numpy as np
import pytest
from tiny_grpo import G, third_party_warnings, train

from rewardkit import (
    ConfigError,
    Recorder,
    RecordError,
    RewardDefinitionError,
    RewardFunctionsConfig,
    RewardFunctionsRuntimeConfig,
    Rollout,
    Runtime,
    reward,
)
from rewardkit.health import Alert
from rewardkit.record.reader import RunReader
from trainer_adapter import RewardAdapter

pytest.importorskip("trl", reason="the extra train is not installed")
import trl_rows
from trl_rows import PROMPTS, Watch, hashed, rare, read, same, unsure

from trainer_adapter.capture import AdvantageRule, Capture

HOOK = "".join(("https://hooks.example.com/S3c", "retPart"))  # a record has the source of rewards
HELPERS = Path(__file__).parents[1] / "helpers"
WEIGHTS = {"hashed": 0.7, "unsure": 0.3, "rare": 1.0}

# Without a training --------------------------------------------------------------------------------------------------


class Trl(SimpleNamespace):
    """A trainer, as far as the adapter reads it."""

    def log(self, name: str, value: float) -> None:
        """Takes a metric."""


def trainer(names: list[str], *, rank: int = 0, processes: int = 1, **args: Any) -> Any:
    """Return a trainer in training, with groups of two."""
    given = {"num_generations": 2, "num_generations_eval": None, "scale_rewards": "group", **args}
    found = Trl(
        args=SimpleNamespace(**given),
        model=SimpleNamespace(training=True),
        accelerator=SimpleNamespace(process_index=rank, num_processes=processes),
        reward_funcs=names,
        state=SimpleNamespace(global_step=0, epoch=0.0),
        eos_token_ids=[1],
        _tokenizer=SimpleNamespace(pad_token_id=0),
        _logs={"rewards": {name: [] for name in names}, "advantages": []},
        callback_handler=SimpleNamespace(callbacks=[]),
    )
    found.add_callback = found.callback_handler.callbacks.append
    return found


def ask(adapter: RewardAdapter, completions: list[str], step: int = 0, **keywords: Any) -> None:
    """Calls every reward function on completions of one prompt, as TRL does."""
    state = SimpleNamespace(global_step=step, epoch=step / 10)
    ids = [[2, 1] if completion != "cut" else [2, 2] for completion in completions]
    for function in adapter.reward_funcs:
        function(
            prompts=["?"] * len(completions),
            completions=completions,
            completion_ids=ids,
            trainer_state=state,
            **keywords,
        )


@reward
def length(completion: str) -> float:
    """The number of characters."""
    return float(len(completion))


@reward
def constant(completion: str) -> float:
    """The same for everything."""
    return 1.0


def test_a_flag_of_the_health_checks_goes_to_the_log_and_to_the_caller(tmp_path: Path) -> None:
    """Groups without any gradient are flagged once, and the metric stays up in what the trainer logs."""
    flags: list[Any] = []
    logged: dict[str, float] = {}
    health = {"health_every": 3, "on_flag": flags.append}
    with RewardAdapter([constant], record=tmp_path, lane="inline", **health) as adapter:
        for step in range(1000):
            for prompt in range(12):
                completions = [f"{prompt} {step}", f"{prompt} {step} more"]
                ask(adapter, completions, step, log_metric=logged.__setitem__)
            if flags and "health/zero_variance" in logged:
                break
            time.sleep(0.05)
    assert [flag.detector for flag in flags].count("zero_variance") == 1
    assert logged["health/zero_variance"] == 1.0
    with RunReader(tmp_path) as run:
        assert {"flag", "alert"} == {event["kind"] for event in run.events}


def test_health_checks_can_be_turned_off(tmp_path: Path) -> None:
    """No thread looks at the record, and a wrong interval is refused."""
    with RewardAdapter([constant], record=tmp_path, lane="inline", health_every=0) as adapter:
        ask(adapter, ["a", "b"])
        assert "rewardkit-health" not in {thread.name for thread in threading.enumerate()}
    with pytest.raises(RewardDefinitionError, match="health_every=-1"):
        RewardAdapter([constant], health_every=-1)


@pytest.mark.parametrize("target", [HOOK, Alert(HOOK)], ids=["address", "alert"])
def test_a_webhook_stays_in_its_process(target: Any, tmp_path: Path) -> None:
    """It does not travel with the adapter, stands in no record where a reward prints it, and is checked at once."""

    @reward
    def prints(completion: str) -> float:
        print("".join(["https://hooks.example.com/S3c", "retPart"]))
        return 1.0

    with RewardAdapter([prints], record=tmp_path, lane="inline", on_flag=target) as adapter:
        ask(adapter, ["a", "b"])
        assert HOOK[-10:].encode() not in cloudpickle.dumps(adapter)
    assert all(HOOK[-10:].encode() not in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    with RunReader(tmp_path) as run:
        assert {"<on_flag 1>\n"} == {outcome.logs for row in run.completions() for outcome in row.outcomes.values()}
    with pytest.raises(ConfigError, match="on_flag: expected") as refused:
        RewardAdapter([constant], on_flag=HOOK.removeprefix("https://"))
    assert "S3cret" not in str(refused.value)


def test_each_batch_is_recorded_once(tmp_path: Path) -> None:
    """However many functions TRL calls; with its step, split, tokens and what was cut."""
    one = trainer(["length", "rare"])
    with RewardAdapter([length, rare], weights=[1, 0], lane="inline", record=tmp_path) as adapter:
        adapter.attach(one)
        ask(adapter, ["a", "cut"])
        one.model.training = False
        one.args.num_generations_eval = 1
        ask(adapter, ["b"], step=3)
    with RunReader(tmp_path) as run:
        first, second, third = run.completions()
    assert [("train", 0, 0.0, 2, False), ("train", 0, 0.0, 2, True), ("eval", 3, 0.3, 2, False)] == [
        (row.split, row.step, row.epoch, row.tokens, row.truncated) for row in (first, second, third)
    ]
    expected = 1 / (math.sqrt(2) + 1e-4)
    assert [-expected, expected, 0.0] == pytest.approx([row.advantage for row in (first, second, third)])


def test_without_a_trainer_no_advantage_is_guessed(tmp_path: Path) -> None:
    """Nor a group's size, nor what was cut; the scores are recorded all the same."""
    with RewardAdapter([length], lane="inline", record=tmp_path) as adapter:
        ask(adapter, ["a", "bb"])
    assert [(1.0, None, None), (2.0, None, None)] == [
        (row.total, row.advantage, row.truncated) for row in read(tmp_path)
    ]


def test_the_trainer_is_known_from_its_first_call(tmp_path: Path) -> None:
    """TRL hands a method of its own; where it is another's, nothing is taken from there."""
    one = trainer(["length"])
    with RewardAdapter([length], lane="inline", record=tmp_path) as adapter:
        ask(adapter, ["a", "bb"], log_metric={}.setdefault)
        ask(adapter, ["a", "bb"], step=1, log_metric=one.log)
    assert [True, True, False, False] == [row.advantage is None for row in read(tmp_path)]


RULES: dict[str, tuple[AdvantageRule, int, int, list[bool]]] = {
    "whole groups": (AdvantageRule("grpo", 2, processes=2), 4, 0, [True] * 4),
    "a group that began before": (AdvantageRule("grpo", 4, processes=2), 6, 6, [False] * 2 + [True] * 4),
    "a group that goes on elsewhere": (AdvantageRule("grpo", 4, processes=2), 6, 0, [True] * 4 + [False] * 2),
    "less than a group": (AdvantageRule("grpo", 8, processes=4), 2, 4, [False] * 2),
    "scaled by the batch": (AdvantageRule("grpo", 2, "batch", processes=2), 4, 0, [False] * 4),
    "scaled by the batch, alone": (AdvantageRule("grpo", 2, "batch"), 4, 0, [True] * 4),
    "summed after scaling": (AdvantageRule("grpo", 2, "group", "normalize_then_sum", processes=2), 4, 0, [False] * 4),
    "left one out": (AdvantageRule("rloo", 2, processes=2), 4, 4, [True] * 4),
    "left one out and normalized": (AdvantageRule("rloo", 2, normalize=True, processes=2), 4, 4, [False] * 4),
    "another trainer": (AdvantageRule(None, 2), 4, 0, [False] * 4),
}


@pytest.mark.parametrize(("rule", "rows", "before", "known"), RULES.values(), ids=list(RULES))
def test_what_other_processes_decide_as_well_is_not_computed(
    rule: AdvantageRule, rows: int, before: int, known: list[bool]
) -> None:
    """An advantage is known where the process has all the scores that go into it."""
    told = {"length": [float(row) for row in range(rows)]}
    assert known == [one is not None for one in rule.advantages(told, {"length": 1.0}, before)]


def test_advantages_that_cannot_be_computed_are_the_trainers(tmp_path: Path) -> None:
    """Those of the rows with the very scores that this process gave, and of no others."""
    one = trainer(["length", "other"])  # which sums up a function from elsewhere as well
    with RewardAdapter([length], lane="inline", record=tmp_path) as adapter:
        adapter.attach(one)
        for step, logged in enumerate(([1.0, 2.0], [1.0, 3.0], [2.0])):
            ask(adapter, ["a", "bb"], step=step)
            one._logs = {"rewards": {"length": logged}, "advantages": [-0.5, 0.25][: len(logged)]}
            adapter.callback.on_step_end(None, None, None)
    assert [-0.5, 0.25, None, None, None, None] == [row.advantage for row in read(tmp_path)]


def test_a_shadow_stands_in_the_record_and_in_no_advantage(tmp_path: Path) -> None:
    """A reward that the trainer does not see is recorded beside the others, whose advantages are as without it."""
    one = trainer(["length"])
    with Runtime([length, rare], weights=[1, 0], lane="inline") as runtime, Recorder(tmp_path) as recorder:
        capture = Capture(recorder, runtime.rewards, {})
        capture.attach(one)
        capture.take(runtime.rewards, frozenset({"rare"}))
        batch = runtime.score([Rollout("?", completion) for completion in ("a", "cut")])
        capture.record(batch, batch.scores, 0, 0.0)
    expected = 1 / (math.sqrt(2) + 1e-4)
    rows = read(tmp_path)
    assert [-expected, expected] == pytest.approx([row.advantage for row in rows])
    assert [{"length", "rare"}] * 2 == [set(row.scores) for row in rows]


def test_scores_are_recorded_where_advantages_cannot_be_computed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A fault there costs the advantages alone, and is logged."""

    def fails(*_: Any) -> None:
        raise ValueError("no")

    monkeypatch.setattr(AdvantageRule, "advantages", fails)
    one = trainer(["length"])
    with RewardAdapter([length], lane="inline", record=tmp_path) as adapter:
        adapter.attach(one)
        ask(adapter, ["a", "bb"])
    assert [(1.0, None), (2.0, None)] == [(row.total, row.advantage) for row in read(tmp_path)]
    assert "it is recorded without them" in caplog.text


def test_a_process_takes_its_own_rows(tmp_path: Path) -> None:
    """Of the advantages of all processes, in their order; a group's number is that of the whole batch."""
    one = trainer(["length"], rank=1, processes=2, num_generations=3)
    recorder = Recorder(tmp_path, rank=1)
    with RewardAdapter([length], lane="inline", record=recorder) as adapter:
        adapter.attach(one)
        ask(adapter, ["a", "bb"])
        one._logs = {"rewards": {"length": [9.0, 9.0, 1.0, 2.0]}, "advantages": [1.0, 2.0, 3.0, 4.0]}
        adapter.callback.on_step_end(None, None, None)
    assert [(3.0, 0, 1), (4.0, 1, 1)] == [(row.advantage, row.group, row.rank) for row in read(tmp_path)]


def test_what_cannot_be_recorded_does_not_end_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is logged, and the scores reach TRL."""

    def fails(*_: Any, **__: Any) -> None:
        raise ValueError("no")

    with RewardAdapter([length], lane="inline", record=tmp_path) as adapter:
        assert adapter.capture is not None
        monkeypatch.setattr(adapter.capture.recorder, "record", fails)
        ask(adapter, ["a"])
    assert "could not be recorded; training goes on" in caplog.text


def test_settings_are_recorded_and_keys_are_not(tmp_path: Path) -> None:
    """The trainer's configuration with its seed, the weights; no key, and no value of the workers' environment."""
    one = trainer(["length"], seed=7, hub_token="hf-very-secret", output_dir="runs/also-a-secret")
    config = RewardFunctionsConfig({"length": length}, RewardFunctionsRuntimeConfig(env={"PLACE": "also-a-secret"}))
    with RewardAdapter(config, weights=[0.5], lane="inline", record=tmp_path) as adapter:
        adapter.attach(one)
    with RunReader(tmp_path) as run:
        (about,) = [session["about"] for session in run.sessions]
    assert {"length": 0.5} == about["rewards"]
    assert ("Trl", 7, 2) == (
        about["trainer"],
        about["training"]["seed"],
        about["training"]["num_generations"],
    )
    assert "secret" not in json.dumps(about)


def test_a_run_with_a_record_is_refused_before_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the first process; the others make no file before it has looked."""
    monkeypatch.setenv("RANK", "1")
    with RewardAdapter([length], lane="inline", record=tmp_path) as adapter:
        adapter.attach(trainer(["length"]))
        assert adapter.capture is not None
        assert adapter.capture.recorder.flush()
        assert not list(tmp_path.iterdir())
    monkeypatch.setenv("RANK", "0")
    with Recorder(tmp_path, append=True) as recorder:
        recorder.metrics(0, {"loss": 1.0})
    with pytest.raises(RecordError, match="has a record"):
        RewardAdapter([length], lane="inline", record=tmp_path)


def test_only_a_trainer_can_be_attached(tmp_path: Path) -> None:
    """Its callback is added once."""
    one = trainer(["length"])
    with RewardAdapter([length], lane="inline") as adapter:
        assert adapter is adapter.attach(one) is adapter.attach(one)
        assert [adapter.callback] == one.callback_handler.callbacks
        with pytest.raises(ConfigError, match="expected a GRPOTrainer or RLOOTrainer"):
            adapter.attach(one.args)


# Trainings -----------------------------------------------------------------------------------------------------------

EVERY: dict[str, dict[str, Any]] = {
    "accumulated": {"per_device_train_batch_size": 8, "gradient_accumulation_steps": 2},
    "several batches a step": {
        "per_device_train_batch_size": 8, "gradient_accumulation_steps": 2, "steps_per_generation": 1,
        "per_device_eval_batch_size": 8,  # TRL keeps no more rows than a step's batch has
    },
    "several steps a batch": {"per_device_train_batch_size": 8, "steps_per_generation": 2},
    "scaled by the batch": {"scale_rewards": "batch"},
    "not scaled": {"scale_rewards": False},
    "each reward normalized": {"multi_objective_aggregation": "normalize_then_sum"},
    "evaluated in groups of their own": {"num_generations_eval": 2},
    "RLOO": {"method": "RLOO"},
    "RLOO with all it has": {
        "method": "RLOO", "beta": 0.05, "normalize_advantages": True, "reward_clip_range": (0.1, 1.2),
    },
    "RLOO normalized": {"method": "RLOO", "normalize_advantages": True},
}  # fmt: skip
SHORT = ("accumulated", "RLOO with all it has")
"""Those that run without ``--full`` too."""
DIVIDES = {"not scaled": "nothing", "each reward normalized": "each", "scaled by the batch": "nothing"}


def _divides(name: str) -> str:
    return DIVIDES.get(name, "nothing" if name.startswith("RLOO") else "reward")


def check_log(folder: Path, history: list[dict[str, Any]]) -> None:
    """Asserts that a record has every number that the trainer logged, and no others."""
    expected: dict[tuple[str, str, int], float] = {}
    for entry in history:
        split = "eval" if any(name.startswith("eval_") for name in entry) else "train"
        for name, value in entry.items():
            if name != "step" and value is not None and not math.isnan(value):
                expected[split, name, entry["step"]] = value
    with RunReader(folder) as run:
        found = {
            (split, name, step): value
            for split in ("train", "eval")
            for name in run.metric_names(split)
            for step, value in run.metrics(name, split)
        }
    assert expected == found


def check_sums(folder: Path, history: list[dict[str, Any]], *, spreads: bool = True) -> None:
    """Asserts that the means and spreads of what is recorded are those that TRL logged a step later.

    Args:
        folder: The record's.
        history: TRL's log.
        spreads: Whether TRL looks at each group's spread, and not at the batch's.
    """
    logged = {entry["step"]: entry for entry in history if "reward" in entry}
    with RunReader(folder) as run:
        steps = run.steps()
        assert sorted(logged) == [step + 1 for step in steps]
        for name in run.rewards:
            for step, mean in run.series(name):
                assert mean == pytest.approx(logged[step + 1][f"rewards/{name}/mean"], rel=1e-5, abs=1e-6)
        for step in steps:
            rewards = run.table((step, step)).rewards
            known = rewards[~np.isnan(rewards)]
            spread = np.ma.masked_invalid(rewards.reshape(-1, G)).std(axis=1, ddof=1).filled(np.nan)
            entry = logged[step + 1]
            assert known.mean() == pytest.approx(entry["reward"], rel=1e-5)
            assert known.std(ddof=1) == pytest.approx(entry["reward_std"], rel=1e-4)
            if spreads:
                assert np.isclose(spread, 0).mean() == pytest.approx(entry["frac_reward_zero_std"])


def check_rows(folder: Path, seen: list[trl_rows.Seen], weights: dict[str, float], divides: str) -> None:
    """Asserts that a record has the batches that TRL saw, in their order and each once."""
    for split in ("train", "eval"):
        rows = read(folder, split)
        for batch in (one for one in seen if one.split == split):
            same(batch, rows[: len(batch.completions)], weights, divides)
            rows = rows[len(batch.completions) :]
        assert [] == rows


@third_party_warnings
@pytest.mark.trainers
@pytest.mark.parametrize(
    "name", [name if name in SHORT else pytest.param(name, marks=pytest.mark.full) for name in EVERY]
)
def test_the_record_is_what_trl_saw(tiny: Path, tmp_path: Path, name: str, full: bool) -> None:
    """Completions, scores, advantages and metrics, in training and evaluation, over 30 steps (3 in short)."""
    steps = 30 if full else 3
    rewards = [hashed, unsure, rare]
    with RewardAdapter(rewards, weights=WEIGHTS, lane="inline", record=tmp_path / "run") as adapter:
        watch = Watch(adapter)
        options = {"eval_steps": max(1, steps // 3), "output_dir": str(tmp_path / "out"), **EVERY[name]}
        run = train(tiny, adapter, PROMPTS, steps=steps, eval_rows=PROMPTS[:8], callbacks=[watch], **options)
    check_rows(tmp_path / "run", watch.seen, WEIGHTS, _divides(name))
    check_log(tmp_path / "run", run.trainer.state.log_history)
    if name in ("accumulated", "scaled by the batch", "not scaled", "RLOO"):
        check_sums(tmp_path / "run", run.trainer.state.log_history, spreads=name != "scaled by the batch")
    cut = [row.truncated for row in read(tmp_path / "run")]
    assert np.mean(cut) == pytest.approx(np.mean(run.logged("completions/clipped_ratio")), abs=1e-6)


@third_party_warnings
@pytest.mark.trainers
def test_trls_own_table_of_completions_agrees(tiny: Path, tmp_path: Path, capsys: Any) -> None:
    """What ``log_completions`` writes of a step is what the record has of it."""
    pandas = pytest.importorskip("pandas")
    with RewardAdapter([hashed, rare], lane="inline", record=tmp_path / "run") as adapter:
        options = {"log_completions": True, "output_dir": str(tmp_path / "out")}
        train(tiny, adapter, PROMPTS, steps=2, **options)
    for step in (1, 2):
        table = pandas.read_parquet(tmp_path / "out" / "completions" / f"completions_{step:05}.parquet")
        rows = [row for row in read(tmp_path / "run") if row.step == step - 1]
        assert table["completion"].tolist() == [row.completion for row in rows]
        assert table["hashed"].tolist() == pytest.approx([row.scores["hashed"] for row in rows])
        assert table["advantage"].tolist() == pytest.approx([row.advantage for row in rows], abs=1e-4)


@third_party_warnings
@pytest.mark.trainers
def test_a_resumed_run_has_no_step_twice(tiny: Path, tmp_path: Path, full: bool) -> None:
    """Ctrl-C in the midst of a step, and on from the checkpoint before: each step is there as it was done last."""
    steps, saved, stop = (30, 5, 17) if full else (5, 2, 3)
    options = {
        "save_strategy": "steps", "save_steps": saved, "output_dir": str(tmp_path / "out"), "eval_steps": saved,
        "per_device_train_batch_size": 8, "gradient_accumulation_steps": 2,
    }  # fmt: skip
    seen: list[trl_rows.Seen] = []
    logs: list[dict[str, Any]] = []
    for stop_at in (stop, None):
        recorder = Recorder(tmp_path / "run", append=stop_at is None)
        with RewardAdapter([hashed, unsure, rare], weights=WEIGHTS, lane="inline", record=recorder) as adapter:
            watch = Watch(adapter, stop_at)
            resume = stop_at is None
            try:
                given = {"steps": steps, "eval_rows": PROMPTS[:8], "callbacks": [watch], "resume": resume, **options}
                run = train(tiny, adapter, PROMPTS, **given)
            except KeyboardInterrupt:
                assert stop in [one.step for one in watch.seen]
                assert stop in {row.step for row in _written(adapter, tmp_path / "run")}
        first = stop // saved * saved
        seen = [one for one in seen if one.step < first or (one.split == "eval" and one.step == first)] + watch.seen
        logs = run.trainer.state.log_history if resume else []
    check_rows(tmp_path / "run", seen, WEIGHTS, "reward")
    check_log(tmp_path / "run", logs)
    check_sums(tmp_path / "run", logs)


def _written(adapter: RewardAdapter, folder: Path) -> list[Any]:
    """Return the completions that a record has, all that was handed over included."""
    assert adapter.capture is not None
    assert adapter.capture.recorder.flush()
    return read(folder)


@third_party_warnings
@pytest.mark.full
@pytest.mark.trainers
@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, id="by the group"),
        pytest.param({"scale_rewards": "batch"}, id="by the batch"),
        pytest.param({"method": "RLOO", "beta": 0.05}, id="RLOO"),
    ],
)
def test_two_processes_record_one_run(tiny: Path, tmp_path: Path, options: dict[str, Any]) -> None:
    """Each its own rows, also of a group of which the other scored a part, and metrics once."""
    for file in tiny.iterdir():
        if file.is_file():
            (tmp_path / file.name).symlink_to(file)
    settings = {
        "steps": 30, "per_device_train_batch_size": 6, "per_device_eval_batch_size": 6, **options,
    }  # fmt: skip
    settings["eval_steps"] = settings["steps"] // 2
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=2", "--standalone",
               str(HELPERS / "trl_rows.py"), str(tmp_path), json.dumps(settings)]  # fmt: skip
    path = os.pathsep.join([str(HELPERS), *sys.path])
    env = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    ended = subprocess.run(command, env=env, capture_output=True, text=True, timeout=500, check=False)
    assert ended.returncode == 0, ended.stderr[-3000:]
    left = [json.loads((tmp_path / f"seen-{rank}.json").read_text()) for rank in (0, 1)]
    assert left[0]["seen"] == left[1]["seen"]
    batches = [trl_rows.Seen(**one) for one in left[0]["seen"]]
    divides = "nothing" if options else "reward"
    for split in ("train", "eval"):
        own = [[row for row in read(tmp_path / "run", split) if row.rank == rank] for rank in (0, 1)]
        for batch in (one for one in batches if one.split == split):
            rows = own[0][:6] + own[1][:6]
            assert [place // G for place in range(12)] == [row.group for row in rows]
            same(batch, rows, {"hashed": 0.7, "unsure": 0.3}, divides)
            own = [own[0][6:], own[1][6:]]
        assert [[], []] == own
    check_log(tmp_path / "run", left[0]["log"])
    with RunReader(tmp_path / "run") as run:
        assert [0, 1] == sorted(session["rank"] for session in run.sessions)
        assert {"trainer", "training"} <= run.sessions[1]["about"].keys()
