"""A GRPO run as one object: model, adapter, hyperparameters and rewards, in Python or YAML.

It checks values and translates them to TRL's and PEFT's names. Nothing here imports torch.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, PlainValidator, model_validator

from rewardkit import Composable, ConfigError, RewardFunctionsConfig
from rewardkit.serving import is_address
from trainer_adapter.training_config import CheckedModel, Count, Number, TrainingConfig

MICRO_BATCH = 16  # The most completions in one forward pass, unless `per_device_batch_size` says otherwise


def _weights(value: object) -> object:
    """Return weights as a tuple or a dictionary; raise ``ValueError`` for what is no finite number."""
    numbers = list(value.values()) if isinstance(value, Mapping) else value
    if value is None:
        return None
    if isinstance(numbers, str) or not isinstance(numbers, Sequence):
        raise ValueError("expected a list of numbers, or a mapping of rewards' names to numbers")
    for number in numbers:
        if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):
            raise ValueError(f"expected finite numbers, got {number!r}")
    return dict(value) if isinstance(value, Mapping) else tuple(numbers)


def _reward_functions(value: Any, base: Path | None = None) -> Any:
    """Return the rewards in a form that a runtime takes, with relative file references resolved from ``base``."""
    if isinstance(value, RewardFunctionsConfig):
        return value
    if isinstance(value, Mapping):
        return RewardFunctionsConfig.from_dict(value, where="reward_fns", base=base)
    if isinstance(value, str | Composable) or callable(value):
        value = [value]
    if isinstance(value, Sequence) and len(value) == 1 and is_address(value[0]):
        return value[0]
    if not isinstance(value, Sequence) or not value:
        raise ConfigError(f"reward_fns={value!r}: expected a mapping with 'functions', or a list of rewards")
    for reward in value:
        if not isinstance(reward, str | Composable) and not callable(reward):
            raise ConfigError(
                f"reward_fns: expected rewards, functions or references such as 'file.py', got {reward!r}"
            )
    numbered = {str(number): reward for number, reward in enumerate(value)}
    return tuple(RewardFunctionsConfig.from_dict({"functions": numbered}, base=base).functions.values())


def _record(value: object) -> bool | str:
    """Return whether or where to record, a path as text."""
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if not isinstance(value, bool | str) or value == "":
        raise ValueError("expected true, false or the path of a folder")
    return value


_SAME_IN_TRL = (
    "learning_rate", "lr_scheduler_type", "warmup_steps", "max_grad_norm", "num_generations",
    "beta", "epsilon", "loss_type", "scale_rewards", "seed", "logging_steps",
)  # fmt: skip
_SAMPLING_IN_TRL = ("temperature", "top_p", "top_k", "min_p")


class SamplingParams(CheckedModel):
    """How completions are sampled in training."""

    prefix: ClassVar[str] = "sampling_params."

    temperature: Number = Field(default=1.0, gt=0)
    """Divides the logits; greater than 0. Higher is more random."""
    top_p: Number = Field(default=1.0, gt=0, le=1)
    """Share of probability sampled from, 0 to 1; 1 is all of it."""
    top_k: Count = Field(default=0, ge=0, description="Most likely tokens sampled from; 0 is all of them.")
    min_p: Number | None = Field(default=None, ge=0, le=1)
    """Least probability relative to the likeliest token's, 0 to 1; null is 0."""
    max_tokens: Count = Field(default=512, ge=1, description="Tokens of one completion, 1 or more.")


class GRPOConfig(TrainingConfig):
    """One GRPO run: what it trains, how, and on which rewards.

    >>> config = GRPOConfig(base_model="builtin:smollm2-135m", reward_fns=["rewards.py"], train_steps=60)
    >>> config.to_trl("runs/first")["max_steps"]
    60

    Raises:
        ConfigError: A field is unknown, missing or wrong; names it, its value and what was expected.
    """

    paths: ClassVar[tuple[str, ...]] = ("record",)
    own_settings: ClassVar[Mapping[str, str]] = {
        **{name: name for name in _SAME_IN_TRL},
        **{name: f"sampling_params.{name}" for name in _SAMPLING_IN_TRL},
        "max_completion_length": "sampling_params.max_tokens",
        "output_dir": "output_dir",
        "model_init_kwargs": "base_model",
        "reward_weights": "reward_weights",
        "max_steps": "train_steps",
        "num_train_epochs": "train_steps",
        "per_device_train_batch_size": "per_device_batch_size",
        "gradient_accumulation_steps": "effective_batch_size",
        "save_strategy": "save_steps",
        "save_steps": "save_steps",
        "eval_strategy": "eval_steps",
        "eval_steps": "eval_steps",
        "use_cpu": "use_cpu",
        "bf16": "dtype",
    }

    reward_fns: Annotated[Any, PlainValidator(_reward_functions)]
    """`functions` (names to references such as `rewards.py:correct`) and `runtime` (`packages`, `env`); or a list of
    rewards or references; or the address of a server that scores."""
    reward_weights: Annotated[Mapping[str, float] | Sequence[float] | None, PlainValidator(_weights)] = None
    """Weights in the total, a list in the rewards' order or by name; null is 1 for each, or where a server scores what
    it has there."""
    train_steps: Count = Field(default=1000, ge=1, description="Optimizer steps, 1 or more.")
    learning_rate: Number = Field(default=2e-5, gt=0)
    """The highest learning rate, greater than 0. The default suits LoRA on 1B and larger models; a full fine-tuning
    needs about 1e-6, a tiny model with LoRA up to 1e-3."""
    num_generations: Count = Field(default=16, ge=2)
    """Completions a prompt, 2 or more: the size of a group."""
    effective_batch_size: Count = Field(default=64, ge=2)
    """Completions an optimizer step, over all devices; a multiple of `num_generations`. The dataset has
    `effective_batch_size / num_generations` rows or more."""
    per_device_batch_size: Count | None = Field(
        default=None,
        ge=1,
        description="Completions a forward pass on one device; divides `effective_batch_size`. "
        f"Null takes the largest divisor up to {MICRO_BATCH}.",
    )
    beta: Number = Field(default=0.001, ge=0)
    """Weight of the KL divergence from the base model, 0 or more; 0 leaves it out."""
    epsilon: Number = Field(default=0.2, gt=0)
    """How far the probability ratio may leave 1 before it is clipped."""
    loss_type: Literal["grpo", "dr_grpo", "dapo", "bnpo", "cispo", "sapo", "luspo", "vespo"] = "dapo"
    """How the loss is summed over tokens; TRL's names."""
    scale_rewards: Literal["group", "batch", "none"] = "group"
    """Over what rewards are divided by their standard deviation."""
    sampling_params: SamplingParams = Field(default_factory=lambda: SamplingParams())
    """How completions are sampled; see below."""
    dtype: Literal["auto", "bfloat16", "float32"] = "auto"
    """Type of the base weights. `auto` is bfloat16 under an adapter where the machine has instructions for it, and
    float32 otherwise: a CPU without them is ten times slower, and trained weights lose small updates."""
    eval_steps: Count | None = Field(default=None, ge=1)
    """Steps from one evaluation to the next, where there is an evaluation set; null evaluates at each checkpoint, or at
    the end only where none is saved."""
    partial: Literal["leave_out", "sum"] = "leave_out"
    """What becomes of a completion for which a reward failed without a default: `leave_out` of the group, or `sum` the
    other rewards."""
    record: Annotated[bool | str, PlainValidator(_record)] = True
    """Whether every scored completion is recorded, in `record.db` in the output folder; or the folder of the record, or
    its address in a database, as `postgresql://user@host/database?run=NAME`."""
    picture_side: Count = Field(default=1024, ge=0)
    """The longer side of a recorded picture in pixels, at most: larger ones are scaled. 0 keeps none."""
    health_every: Count = Field(default=10, ge=0)
    """Steps from one look of the health checks at the record to the next; 0 for no checks."""
    on_flag: str | None = Field(default=None, repr=False, exclude=True)
    """A URL that gets each flag of the health checks as JSON, or a command that gets it on its standard input; `$NAME`
    takes it from the environment. It stands in no record and no identity of the run."""
    overlap: Count = Field(default=0, ge=0)
    """Parts in which a batch is generated while completions that have ended are scored, such as 1; 0 scores a batch
    when all of it is generated."""
    turn_normalize: Literal["turn", "group", "batch", "none"] = "turn"
    """What a turn's number is compared with, where a reward gives credit."""
    turn_returns: Literal["own", "to_go"] = "own"
    """What a turn answers for, where a reward gives credit: its `own` number, or those of later turns, too."""
    turn_discount: Number = Field(default=1.0, ge=0, le=1)
    """What the number of each later turn counts less with `turn_returns: to_go`, 0 to 1."""
    workers: Count | None = Field(default=None, ge=1)
    """Processes that score one training process's rewards; null is its share of the cores, of more than 4 the
    half, 4 to 16."""
    load_timeout_s: Number = Field(default=60.0, gt=0)
    """Seconds that a process may take to load the rewards before it is given up."""
    lane: Literal["worker", "ray"] = "worker"
    """Where rewards run: `worker` for processes of this machine, `ray` for those of a Ray cluster too."""
    ray_address: str | None = None
    """With `lane: ray`: `auto` for the cluster of this machine, or its head's `HOST:PORT`."""

    @model_validator(mode="after")
    def _check_batch_sizes(self) -> GRPOConfig:
        batch, group, micro = self.effective_batch_size, self.num_generations, self.per_device_batch_size
        if batch % group:
            raise ConfigError(f"effective_batch_size={batch}: expected a multiple of num_generations={group}")
        if micro is not None and batch % micro:
            raise ConfigError(f"per_device_batch_size={micro}: expected a divisor of effective_batch_size={batch}")
        return self

    @classmethod
    def resolve(cls, data: Mapping[str, Any], base: Path | None) -> dict[str, Any]:
        """Return the fields with paths, and references to rewards, that start from a folder."""
        fields = super().resolve(data, base)
        if "reward_fns" in fields:
            fields["reward_fns"] = _reward_functions(fields["reward_fns"], base)
        return fields

    @property
    def base_dtype(self) -> Literal["auto", "bfloat16", "float32"]:
        """The type of the base weights; ``"auto"`` leaves it to the machine."""
        return "float32" if self.dtype == "auto" and self.adapter is None else self.dtype

    def to_trl(
        self, output_dir: str | Path, *, has_cuda: bool = True, processes: int = 1, evaluate: bool = False
    ) -> dict[str, Any]:
        """Return the keyword arguments of ``trl.GRPOConfig``, all but ``reward_weights``; ``trl`` comes last.

        Args:
            output_dir: Folder of checkpoints.
            has_cuda: Whether the machine has a CUDA device, which decides for ``use_cpu=None``.
            processes: Training processes that share the effective batch.
            evaluate: Whether there is an evaluation set.

        Raises:
            ConfigError: So many processes cannot share the effective batch.
        """
        machine = self._machine_settings(has_cuda)
        cpu = machine["use_cpu"]
        micro, accumulation = self._micro_batch(processes)
        arguments: dict[str, Any] = {name: getattr(self, name) for name in _SAME_IN_TRL}
        arguments |= {name: getattr(self.sampling_params, name) for name in _SAMPLING_IN_TRL}
        arguments |= {
            "output_dir": str(output_dir),
            "max_steps": self.train_steps,
            "max_completion_length": self.sampling_params.max_tokens,
            "per_device_train_batch_size": micro,
            "gradient_accumulation_steps": accumulation,
            "per_device_eval_batch_size": self.num_generations,  # TRL wants whole groups
            "save_strategy": "no" if self.save_steps is None else "steps",
            "save_steps": self.save_steps or self.train_steps,
            "eval_strategy": "steps" if evaluate else "no",
            "eval_steps": self.eval_steps or self.save_steps or self.train_steps,
            "bf16": not cpu and self.dtype != "float32",
            "activation_checkpointing": not cpu,  # saves memory for time; on a CPU time is what is short
        }
        return arguments | machine | dict(self.trl)

    def _micro_batch(self, processes: int) -> tuple[int, int]:
        """Return completions a forward pass, and forward passes an optimizer step, on each of the processes."""
        share, rest = divmod(self.effective_batch_size, processes)
        if rest:
            raise ConfigError(
                f"effective_batch_size={self.effective_batch_size}: expected a multiple of the {processes} processes"
            )
        micro = self.per_device_batch_size or max(size for size in range(1, MICRO_BATCH + 1) if share % size == 0)
        if share % micro:
            raise ConfigError(
                f"per_device_batch_size={micro}: expected a divisor of {share}, the share of each of {processes} "
                f"processes in effective_batch_size={self.effective_batch_size}"
            )
        return micro, share // micro
