"""The configuration of a GRPO run: what it takes, what it refuses, what becomes of it in TRL and PEFT."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest

from rewardkit import ConfigError, RewardError, RewardFunctionsConfig, Runtime, reward
from trainer_adapter.config import GRPOConfig, SamplingParams

DOCS = Path(__file__).parents[2] / "docs" / "how-to" / "train-with-a-config.md"


@reward
def short(completion: str) -> float:
    """1 for a short completion."""
    return float(len(completion) < 5)


def config(**fields: Any) -> GRPOConfig:
    """Return a configuration that is right but for the fields given."""
    return GRPOConfig(**{"base_model": "some/model", "reward_fns": [short], **fields})


GOOD = {
    "nothing but what is required": {},
    "whole numbers as text, as some YAML writers leave them": {"train_steps": "60"},
    "1e-5, which YAML reads as text": {"learning_rate": "1e-5"},
    "full fine-tuning": {"adapter": None, "learning_rate": 1e-6},
    "no reference model": {"beta": 0},
    "sampling parameters as a mapping": {"sampling_params": {"temperature": 0.7, "max_tokens": 16}},
    "sampling parameters as an object": {"sampling_params": SamplingParams(min_p=0.1)},
    "weights in order": {"reward_weights": [0.5]},
    "weights by name": {"reward_weights": {"short": 2}},
    "every linear layer, in peft's word": {"target_modules": "all-linear"},
    "a few layers": {"target_modules": ["q_proj", "v_proj"]},
    "a plain function": {"reward_fns": lambda completion: 1.0},
    "one reward": {"reward_fns": short},
    "one reference": {"reward_fns": "rewards.py"},
    "a mapping": {"reward_fns": {"functions": {"brief": short}}},
    "a reward configuration": {"reward_fns": RewardFunctionsConfig({"brief": short})},
    "a composition": {"reward_fns": [0.5 * short + 0.5 * short]},
}


@pytest.mark.parametrize("fields", GOOD.values(), ids=list(GOOD))
def test_takes(fields: dict[str, Any]) -> None:
    """Each of these is a right configuration."""
    assert config(**fields).base_model == "some/model"


BAD = {
    "no steps": ({"train_steps": 0}, "train_steps=0: expected a number greater than or equal to 1"),
    "half a step": ({"train_steps": 1.5}, "train_steps=1.5: expected a valid integer"),
    "a truth value for a number": ({"train_steps": True}, "train_steps=True: expected a number"),
    "a word for a number": ({"beta": "low"}, "beta='low': expected a valid number"),
    "no rate": ({"learning_rate": 0}, "learning_rate=0: expected a number greater than 0"),
    "infinite rate": ({"learning_rate": float("inf")}, "learning_rate=inf: expected a finite number"),
    "epsilon that is no number": ({"epsilon": float("nan")}, "epsilon=nan: expected"),
    "negative beta": ({"beta": -0.1}, "beta=-0.1: expected a number greater than or equal to 0"),
    "a group of one": ({"num_generations": 1}, "num_generations=1: expected a number greater than or equal to 2"),
    "groups that do not fit": ({"num_generations": 6}, "effective_batch_size=64: expected a multiple of num_gener"),
    "micro-batch that does not fit": ({"per_device_batch_size": 7}, "per_device_batch_size=7: expected a divisor"),
    "no temperature": ({"sampling_params": {"temperature": 0}}, "sampling_params.temperature=0: expected"),
    "top_p above 1": ({"sampling_params": {"top_p": 1.5}}, "sampling_params.top_p=1.5: expected"),
    "sampling that is no mapping": ({"sampling_params": 3}, "sampling_params=3: expected"),
    "an unknown adapter": ({"adapter": "qlora"}, "adapter='qlora': expected 'lora'"),
    "no rank": ({"rank": 0}, "rank=0: expected"),
    "whole dropout": ({"lora_dropout": 1}, "lora_dropout=1: expected a number less than 1"),
    "one layer as text": ({"target_modules": "q_proj"}, "target_modules='q_proj': expected a list of module names"),
    "no layer": ({"target_modules": []}, "target_modules=[]: expected at least 1"),
    "an unknown type": ({"dtype": "float16"}, "dtype='float16': expected 'auto', 'bfloat16' or 'float32'"),
    "an unknown loss": ({"loss_type": "ppo"}, "loss_type='ppo': expected 'grpo'"),
    "an unknown schedule": ({"lr_scheduler_type": "step"}, "lr_scheduler_type='step': expected 'linear'"),
    "no model": ({"base_model": ""}, "base_model='': expected at least 1 character"),
    "no reward": ({"reward_fns": []}, "reward_fns=[]: expected"),
    "a number for a reward": ({"reward_fns": [3]}, "reward_fns: expected rewards, functions or references"),
    "a mapping without functions": ({"reward_fns": {"short": short}}, "reward_fns: unknown field 'short'"),
    "a weight that is a word": ({"reward_weights": ["much"]}, "reward_weights=['much']: expected finite numbers"),
    "weights as text": ({"reward_weights": "12"}, "reward_weights='12': expected a list of numbers"),
    "an unknown field with a near one": ({"train_step": 3}, "unknown field 'train_step'; did you mean 'train_steps'"),
    "an unknown field far from all": ({"zzz": 3}, "unknown field 'zzz'; the fields are adapter, base_model"),
    "an unknown sampling field": (
        {"sampling_params": {"max_token": 3}},
        "unknown field 'sampling_params.max_token'; did you mean 'max_tokens'?",
    ),
    "settings of TRL that are no mapping": ({"trl": ["beta"]}, "trl=['beta']: expected a mapping of TRL's settings"),
    "a setting of TRL that is no plain value": ({"trl": {"debug": {1}}}, "expected numbers, text, lists and mappings"),
    "a setting of TRL under its other name": (
        {"trl": {"max_steps": 3}},
        "trl.max_steps: rewardkit's own field 'train_steps' sets it; give 'train_steps' instead",
    ),
    "a setting of TRL of our name": ({"trl": {"beta": 0.1}}, "trl.beta: rewardkit's own field 'beta' sets it"),
    "a number of ours as text": ({"trl": {"save_steps": "5e1"}}, "trl.save_steps: rewardkit's own field 'save_steps'"),
    "a switch of ours as text": ({"trl": {"bf16": "yes"}}, "trl.bf16: rewardkit's own field 'dtype' sets it"),
    "a loss that we know among TRL's settings": ({"trl": {"loss_type": "grpo"}}, "trl.loss_type: rewardkit's own"),
    "sampling among TRL's settings": ({"trl": {"top_p": 0.9}}, "rewardkit's own field 'sampling_params.top_p' sets"),
    "two mistakes": ({"rank": 0, "seed": -1}, "rank=0: expected a number greater than or equal to 1; seed=-1"),
}


@pytest.mark.parametrize(("fields", "words"), BAD.values(), ids=list(BAD))
def test_refuses(fields: dict[str, Any], words: str) -> None:
    """A wrong value or field is a ConfigError that names field, value and what was expected."""
    with pytest.raises(ConfigError, match=re.escape(words)):
        config(**fields)


def test_names_what_is_missing() -> None:
    """Both required fields are named where they are missing."""
    with pytest.raises(ConfigError, match="field 'base_model' is missing; field 'reward_fns' is missing"):
        GRPOConfig.from_dict({})


def test_is_frozen() -> None:
    """A configuration does not change once it is checked."""
    with pytest.raises(ValueError, match="frozen"):
        config().train_steps = 3  # type: ignore[misc]


@pytest.mark.parametrize("data", [None, [], "text", 3], ids=repr)
def test_plain_data_is_a_mapping(data: Any) -> None:
    """Anything but a mapping is refused with its place."""
    with pytest.raises(ConfigError, match=r"^run 7: expected a mapping, got"):
        GRPOConfig.from_dict(data, where="run 7")


YAML = """
base_model: {model}
train_steps: 12
learning_rate: 5e-4
num_generations: 8
effective_batch_size: 16
scale_rewards: none
reward_fns:
  functions:
    brief: rewards.py:brief
reward_weights: {{brief: 0.5}}
sampling_params: {{max_tokens: 16}}
"""

REWARDS = """
from rewardkit import reward

@reward
def brief(completion: str) -> float:
    return float(len(completion) < 5)
"""


def write(folder: Path, text: str) -> Path:
    """Writes a configuration beside a file of rewards."""
    (folder / "rewards.py").write_text(REWARDS)
    path = folder / "run.yaml"
    path.write_text(text)
    return path


def test_yaml_starts_at_its_own_folder(tmp_path: Path) -> None:
    """Relative references in a YAML file start from the file's folder, not from the working folder."""
    found = GRPOConfig.from_yaml(write(tmp_path, YAML.format(model="./tiny")))
    with Runtime(found.reward_fns, lane="inline") as runtime:
        assert runtime.names == ["brief"]
    assert (found.base_model, found.learning_rate, found.scale_rewards) == (str(tmp_path / "tiny"), 5e-4, "none")


def test_yaml_takes_a_list_of_references(tmp_path: Path) -> None:
    """A list of files gives the rewards in them."""
    found = GRPOConfig.from_yaml(write(tmp_path, "base_model: m\nreward_fns: [rewards.py]\n"))
    with Runtime(found.reward_fns, lane="inline") as runtime:
        assert runtime.names == ["brief"]


BAD_YAML = {
    "not YAML": ("base_model: [", "not YAML"),
    "a list": ("- 1\n", "expected a mapping"),
    "an unknown field": (YAML.format(model="m") + "warmup: 3\n", "unknown field 'warmup'; did you mean 'warmup_steps'"),
    "an unknown field of the rewards": (
        "base_model: m\nreward_fns: {functions: {a: b.py}, package: [x]}\n",
        "unknown field 'package'",
    ),
}


@pytest.mark.parametrize(("text", "words"), BAD_YAML.values(), ids=list(BAD_YAML))
def test_yaml_mistakes_name_the_file(tmp_path: Path, text: str, words: str) -> None:
    """A mistake in a YAML file is a ConfigError that begins with the file's path."""
    path = write(tmp_path, text)
    with pytest.raises(ConfigError, match=f"^{re.escape(str(path))}: .*{re.escape(words)}"):
        GRPOConfig.from_yaml(path)


def test_yaml_that_is_not_there(tmp_path: Path) -> None:
    """An absent file is a ConfigError."""
    with pytest.raises(ConfigError, match="No such file"):
        GRPOConfig.from_yaml(tmp_path / "absent.yaml")


def test_trl_arguments() -> None:
    """The values go to TRL under its names."""
    given = config(
        train_steps=60, num_generations=8, sampling_params={"temperature": 0.7, "top_k": 5, "max_tokens": 16}, seed=1
    ).to_trl("runs/a")
    expected = {
        "output_dir": "runs/a",
        "max_steps": 60,
        "num_generations": 8,
        "max_completion_length": 16,
        "temperature": 0.7,
        "top_k": 5,
        "beta": 0.001,
        "seed": 1,
        "per_device_train_batch_size": 16,
        "gradient_accumulation_steps": 4,
        "eval_strategy": "no",
    }
    assert expected == {name: given[name] for name in expected}


BATCHES = {
    "largest divisor": ({"effective_batch_size": 64}, 1, (16, 4)),
    "small batch": ({"effective_batch_size": 8, "num_generations": 4}, 1, (8, 1)),
    "odd batch": ({"effective_batch_size": 54, "num_generations": 2}, 1, (9, 6)),
    "asked for": ({"effective_batch_size": 64, "per_device_batch_size": 2}, 1, (2, 32)),
    "shared by two": ({"effective_batch_size": 64}, 2, (16, 2)),
    "shared by eight": ({"effective_batch_size": 64}, 8, (8, 1)),
}


@pytest.mark.parametrize(("fields", "processes", "expected"), BATCHES.values(), ids=list(BATCHES))
def test_effective_batch(fields: dict[str, Any], processes: int, expected: tuple[int, int]) -> None:
    """Micro-batch, accumulation and processes make up the effective batch."""
    given = config(**fields).to_trl("x", processes=processes)
    assert expected == (given["per_device_train_batch_size"], given["gradient_accumulation_steps"])


@pytest.mark.parametrize("processes", [3, 5], ids=str)
def test_effective_batch_that_cannot_be_shared(processes: int) -> None:
    """An effective batch that the processes cannot share is refused."""
    with pytest.raises(ConfigError, match=f"expected a multiple of the {processes} processes"):
        config().to_trl("x", processes=processes)


DEVICES = {
    "decided by a GPU": ({}, True, (False, True, True)),
    "decided by none": ({}, False, (True, False, False)),
    "CPU beside a GPU": ({"use_cpu": True}, True, (True, False, False)),
    "float32 on a GPU": ({"dtype": "float32"}, True, (False, False, True)),
}


@pytest.mark.parametrize(("fields", "has_cuda", "expected"), DEVICES.values(), ids=list(DEVICES))
def test_device(fields: dict[str, Any], has_cuda: bool, expected: tuple[bool, bool, bool]) -> None:
    """Where nothing is asked for, a CUDA device is used where there is one."""
    given = config(**fields).to_trl("x", has_cuda=has_cuda)
    assert expected == (given["use_cpu"], given["bf16"], given["activation_checkpointing"])


def test_settings_of_trl_go_to_trl() -> None:
    """Settings without a field of ours are handed on, in place of our own choice too, and so is a loss that is new."""
    extra = {"importance_sampling_level": "sequence", "report_to": "tensorboard", "loss_type": "of_next_year"}
    assert extra.items() <= config(trl=extra).to_trl("x").items()


def test_a_webhook_of_the_configuration_stands_nowhere() -> None:
    """Not in its text, not in what is dumped of it, which the identity of a run is made of, nor in an error."""
    secret = config(on_flag="https://hooks.example.com/S3cret")
    assert "https://hooks.example.com/S3cret" == secret.on_flag
    assert "S3cret" not in repr(secret) + str(secret) + str(secret.model_dump())
    with pytest.raises(ConfigError, match="on_flag: ") as refused:
        config(on_flag=["https://hooks.example.com/S3cret"])
    assert "S3cret" not in str(refused.value)


def test_saving_and_evaluating() -> None:
    """Evaluation follows the checkpoints, and without checkpoints the end."""
    given = config(save_steps=5).to_trl("x", evaluate=True)
    assert tuple(given[n] for n in ("save_strategy", "save_steps", "eval_strategy", "eval_steps")) == (
        "steps",
        5,
        "steps",
        5,
    )
    given = config(save_steps=None, train_steps=7).to_trl("x", evaluate=True)
    assert tuple(given[n] for n in ("save_strategy", "eval_strategy", "eval_steps")) == ("no", "steps", 7)


def test_peft_arguments() -> None:
    """The adapter's values go to PEFT under its names; alpha is twice the rank unless given."""
    expected = {
        "r": 8,
        "lora_alpha": 16,
        "lora_dropout": 0.0,
        "target_modules": ["q_proj"],
        "task_type": "CAUSAL_LM",
    }
    assert expected == config(rank=8, target_modules=["q_proj"]).to_peft()
    assert config(adapter=None).to_peft() is None
    assert (config().to_peft() or {})["target_modules"] == "all-linear"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [({}, "auto"), ({"adapter": None}, "float32"), ({"adapter": None, "dtype": "bfloat16"}, "bfloat16")],
    ids=["adapter", "full", "asked for"],
)
def test_base_dtype(fields: dict[str, Any], expected: str) -> None:
    """Frozen weights are of the type that suits the machine; trained ones float32, unless asked for."""
    assert expected == config(**fields).base_dtype


@pytest.mark.trainers
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's, on import
def test_trl_and_peft_know_every_argument() -> None:
    """Each name that is handed on is a field of TRL's and PEFT's own configurations."""
    trl = pytest.importorskip("trl", reason="the extra train is not installed")
    peft = pytest.importorskip("peft", reason="the extra train is not installed")
    assert set(config().to_trl("x")) <= {field.name for field in dataclasses.fields(trl.GRPOConfig)}
    chosen_by_us = {name for name in config().to_trl("x") if name not in GRPOConfig.own_settings}
    assert {
        "activation_checkpointing", "dataloader_pin_memory", "disable_tqdm", "per_device_eval_batch_size", "report_to"
    } == chosen_by_us  # fmt: skip
    assert set(config().to_peft() or {}) <= {field.name for field in dataclasses.fields(peft.LoraConfig)}


@pytest.mark.parametrize("model", [GRPOConfig, SamplingParams], ids=lambda model: model.__name__)
def test_every_field_is_described(model: type[GRPOConfig | SamplingParams]) -> None:
    """Every field has a description, and a row in the how-to with the same default."""
    page = DOCS.read_text()
    for name, field in model.model_fields.items():
        assert field.description, name
        assert f"| `{name}` |" in page, name


def test_every_rewards_mistake_is_ours() -> None:
    """A ConfigError is a RewardError, so that one except clause catches all of rewardkit's."""
    with pytest.raises(RewardError):
        config(train_steps=0)
