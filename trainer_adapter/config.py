"""A GRPO run as one object: model, adapter, hyperparameters and rewards, in Python or YAML.

It checks values and translates them to TRL's and PEFT's names. Nothing here imports torch.
"""

from __future__ import annotations

import difflib
import math
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PlainValidator,
    ValidationError,
    model_validator,
)

from rewardkit import Composable, ConfigError, RewardFunctionsConfig
from rewardkit.extending import read_yaml

MICRO_BATCH = 16
"""The most completions in one forward pass, unless ``per_device_batch_size`` says otherwise."""


def _not_a_bool(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("expected a number")
    return value


def lora_targets(value: object) -> object:
    """Return ``None`` for ``all-linear``, and refuse other bare strings, which would be read letter by letter."""
    if isinstance(value, str) and value != "all-linear":
        raise ValueError("expected a list of module names, such as ['q_proj', 'v_proj'], or 'all-linear'")
    return None if isinstance(value, str) else value


def _weights(value: object) -> object:
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
    if not isinstance(value, Sequence) or not value:
        raise ConfigError(f"reward_fns={value!r}: expected a mapping with 'functions', or a list of rewards")
    for like in value:
        if not isinstance(like, str | Composable) and not callable(like):
            raise ConfigError(f"reward_fns: expected rewards, functions or references such as 'file.py', got {like!r}")
    numbered = {str(number): like for number, like in enumerate(value)}
    return tuple(RewardFunctionsConfig.from_dict({"functions": numbered}, base=base).functions.values())


def _record(value: object) -> bool | str:
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if not isinstance(value, bool | str) or value == "":
        raise ValueError("expected true, false or the path of a folder")
    return value


Count = Annotated[int, BeforeValidator(_not_a_bool)]
Number = Annotated[float, BeforeValidator(_not_a_bool), Field(allow_inf_nan=False)]


class CheckedModel(BaseModel):
    """A frozen model that raises :class:`~rewardkit.ConfigError` for wrong values."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)
    place: ClassVar[str] = ""

    @model_validator(mode="wrap")
    @classmethod
    def _complain(cls, data: Any, handler: ModelWrapValidatorHandler[Any]) -> Any:
        try:
            return handler(data)
        except ValidationError as wrong:
            words = [_complaint(cls, problem) for problem in wrong.errors()]
        raise ConfigError("; ".join(words))


class SamplingParams(CheckedModel):
    """How completions are sampled in training."""

    place: ClassVar[str] = "sampling_params."

    temperature: Number = Field(
        default=1.0, gt=0, description="Divides the logits; greater than 0. Higher is more random."
    )
    top_p: Number = Field(
        default=1.0, gt=0, le=1, description="Share of probability sampled from, 0 to 1; 1 is all of it."
    )
    top_k: Count = Field(default=0, ge=0, description="Most likely tokens sampled from; 0 is all of them.")
    min_p: Number | None = Field(
        default=None, ge=0, le=1, description="Least probability relative to the likeliest token's, 0 to 1; null is 0."
    )
    max_tokens: Count = Field(default=512, ge=1, description="Tokens of one completion, 1 or more.")


class GRPOConfig(CheckedModel):
    """One GRPO run: what it trains, how, and on which rewards.

    >>> config = GRPOConfig(base_model="builtin:smollm2-135m", reward_fns=["rewards.py"], train_steps=60)
    >>> config.to_trl("runs/first")["max_steps"]
    60

    Raises:
        ConfigError: A field is unknown, missing or wrong; names it, its value and what was expected.
    """

    base_model: str = Field(
        min_length=1, description="A folder, a name on the Hugging Face hub, or `builtin:smollm2-135m`."
    )
    reward_fns: Annotated[Any, PlainValidator(_reward_functions)] = Field(
        description="`functions` (names to references such as `rewards.py:correct`) and `runtime` (`packages`, `env`); "
        "or a list of rewards or references."
    )
    reward_weights: Annotated[Mapping[str, float] | Sequence[float] | None, PlainValidator(_weights)] = Field(
        default=None, description="Weights in the total, a list in the rewards' order or by name; null is 1 for each."
    )
    train_steps: Count = Field(default=1000, ge=1, description="Optimizer steps, 1 or more.")
    learning_rate: Number = Field(
        default=2e-5,
        gt=0,
        description="The highest learning rate, greater than 0. The default suits LoRA on 1B and larger models; "
        "a full fine-tuning needs about 1e-6, a tiny model with LoRA up to 1e-3.",
    )
    lr_scheduler_type: Literal["linear", "cosine", "constant", "constant_with_warmup"] = Field(
        default="linear", description="How the learning rate changes after the warm-up."
    )
    warmup_steps: Count = Field(default=0, ge=0, description="Steps in which the learning rate rises from 0.")
    max_grad_norm: Number = Field(default=1.0, gt=0, description="Norm to which gradients are clipped, greater than 0.")
    num_generations: Count = Field(
        default=16, ge=2, description="Completions a prompt, 2 or more: the size of a group."
    )
    effective_batch_size: Count = Field(
        default=64,
        ge=2,
        description="Completions an optimizer step, over all devices; a multiple of `num_generations`. "
        "The dataset has `effective_batch_size / num_generations` rows or more.",
    )
    per_device_batch_size: Count | None = Field(
        default=None,
        ge=1,
        description="Completions a forward pass on one device; divides `effective_batch_size`. "
        f"Null takes the largest divisor up to {MICRO_BATCH}.",
    )
    beta: Number = Field(
        default=0.001, ge=0, description="Weight of the KL divergence from the base model, 0 or more; 0 leaves it out."
    )
    epsilon: Number = Field(
        default=0.2, gt=0, description="How far the probability ratio may leave 1 before it is clipped."
    )
    loss_type: Literal["grpo", "dr_grpo", "dapo", "bnpo", "cispo", "sapo", "luspo", "vespo"] = Field(
        default="dapo", description="How the loss is summed over tokens; TRL's names."
    )
    scale_rewards: Literal["group", "batch", "none"] = Field(
        default="group", description="Over what rewards are divided by their standard deviation."
    )
    sampling_params: SamplingParams = Field(
        default_factory=lambda: SamplingParams(), description="How completions are sampled; see below."
    )
    adapter: Literal["lora"] | None = Field(default="lora", description="`lora`, or null to train all weights.")
    rank: Count = Field(default=16, ge=1, description="Rank of the adapter's matrices, 1 or more.")
    lora_alpha: Number | None = Field(
        default=None, gt=0, description="The adapter is scaled by `lora_alpha / rank`; null is twice the rank."
    )
    lora_dropout: Number = Field(
        default=0.0, ge=0, lt=1, description="Dropout before the adapter, 0 or more and below 1."
    )
    target_modules: Annotated[tuple[str, ...] | None, BeforeValidator(lora_targets)] = Field(
        default=None, min_length=1, description="Names of the layers adapted; null is every linear layer but the head."
    )
    dtype: Literal["auto", "bfloat16", "float32"] = Field(
        default="auto",
        description="Type of the base weights. `auto` is bfloat16 under an adapter where the machine has instructions "
        "for it, and float32 otherwise: a CPU without them is ten times slower, and trained weights lose small "
        "updates.",
    )
    use_cpu: bool | None = Field(
        default=None, description="Whether to train on the CPU; null where there is no CUDA device."
    )
    seed: Count = Field(default=42, ge=0, lt=2**32, description="Seed of sampling, shuffling and the adapter's start.")
    save_steps: Count | None = Field(
        default=100, ge=1, description="Steps from one checkpoint to the next; null saves none."
    )
    eval_steps: Count | None = Field(
        default=None,
        ge=1,
        description="Steps from one evaluation to the next, where there is an evaluation set; "
        "null evaluates at each checkpoint, or at the end only where none is saved.",
    )
    logging_steps: Count = Field(default=1, ge=1, description="Steps whose metrics are averaged into one log entry.")
    partial: Literal["leave_out", "sum"] = Field(
        default="leave_out",
        description="What becomes of a completion for which a reward failed without a default: `leave_out` of the "
        "group, or `sum` the other rewards.",
    )
    record: Annotated[bool | str, PlainValidator(_record)] = Field(
        default=True,
        description="Whether every scored completion is recorded, in `record.db` in the output folder; or the folder "
        "of the record, or its address in a database, as `postgresql://user@host/database?run=NAME`.",
    )
    health_every: Count = Field(
        default=10,
        ge=0,
        description="Steps from one look of the health checks at the record to the next; 0 for no checks.",
    )
    workers: Count | None = Field(
        default=None,
        ge=1,
        description="Processes that score one training process's rewards; null is its share of the cores, at most 4.",
    )
    load_timeout_s: Number = Field(
        default=60.0, gt=0, description="Seconds that a process may take to load the rewards before it is given up."
    )
    lane: Literal["worker", "ray"] = Field(
        default="worker",
        description="Where rewards run: `worker` for processes of this machine, `ray` for those of a Ray cluster too.",
    )
    ray_address: str | None = Field(
        default=None,
        description="With `lane: ray`: `auto` for the cluster of this machine, or its head's `HOST:PORT`.",
    )

    @model_validator(mode="after")
    def _divides(self) -> GRPOConfig:
        batch, group, micro = self.effective_batch_size, self.num_generations, self.per_device_batch_size
        if batch % group:
            raise ConfigError(f"effective_batch_size={batch}: expected a multiple of num_generations={group}")
        if micro is not None and batch % micro:
            raise ConfigError(f"per_device_batch_size={micro}: expected a divisor of effective_batch_size={batch}")
        return self

    @classmethod
    def from_dict(cls, data: Any, *, where: str = "configuration", base: Path | None = None) -> GRPOConfig:
        """Return the configuration in plain data.

        Args:
            data: A mapping with the fields.
            where: What errors call the data.
            base: Folder from which relative ``file.py`` references, a ``base_model`` that starts with ``./`` or ``../``
                and ``record`` start.

        Raises:
            ConfigError: A field is unknown, missing or wrong, or a file cannot be read.
        """
        if not isinstance(data, Mapping):
            raise ConfigError(f"{where}: expected a mapping, got {data!r}")
        data = dict(data)
        try:
            if "reward_fns" in data:
                data["reward_fns"] = _reward_functions(data["reward_fns"], base)
            if base is not None and str(data.get("base_model")).startswith(("./", "../")):
                data["base_model"] = str(base / data["base_model"])
            record = data.get("record")
            if base is not None and isinstance(record, str) and record and "://" not in record:
                data["record"] = str(base / record)
            return cls.model_validate(data)
        except ConfigError as wrong:
            raise ConfigError(f"{where}: {wrong}") from wrong.__cause__

    @classmethod
    def from_yaml(cls, path: str | Path) -> GRPOConfig:
        """Return the configuration in a YAML file; relative references start from its folder. Raises as from_dict."""
        path = Path(path)
        return cls.from_dict(read_yaml(path), where=str(path), base=path.resolve().parent)

    @property
    def base_dtype(self) -> Literal["auto", "bfloat16", "float32"]:
        """The type of the base weights; ``"auto"`` leaves it to the machine."""
        return "float32" if self.dtype == "auto" and self.adapter is None else self.dtype

    def to_trl(
        self, output_dir: str | Path, *, has_cuda: bool = True, processes: int = 1, evaluate: bool = False
    ) -> dict[str, Any]:
        """Return the keyword arguments of ``trl.GRPOConfig``, all but ``reward_weights``.

        Args:
            output_dir: Folder of checkpoints.
            has_cuda: Whether the machine has a CUDA device, which decides for ``use_cpu=None``.
            processes: Training processes that share the effective batch.
            evaluate: Whether there is an evaluation set.

        Raises:
            ConfigError: So many processes cannot share the effective batch.
        """
        cpu = not has_cuda if self.use_cpu is None else self.use_cpu
        micro, accumulation = self._micro_batch(processes)
        arguments: dict[str, Any] = {name: getattr(self, name) for name in _SAME_IN_TRL}
        arguments |= {name: getattr(self.sampling_params, name) for name in ("temperature", "top_p", "top_k", "min_p")}
        return arguments | {
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
            "use_cpu": cpu,
            "bf16": not cpu and self.dtype != "float32",
            "activation_checkpointing": not cpu,  # saves memory for time; on a CPU time is what is short
            "dataloader_pin_memory": not cpu,
            "disable_tqdm": True,
            "report_to": "none",
        }

    def to_peft(self) -> dict[str, Any] | None:
        """Return the keyword arguments of ``peft.LoraConfig``; ``None`` where all weights are trained."""
        if self.adapter is None:
            return None
        return {
            "r": self.rank,
            "lora_alpha": 2 * self.rank if self.lora_alpha is None else self.lora_alpha,
            "lora_dropout": self.lora_dropout,
            "target_modules": "all-linear" if self.target_modules is None else list(self.target_modules),
            "task_type": "CAUSAL_LM",
        }

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


_SAME_IN_TRL = (
    "learning_rate", "lr_scheduler_type", "warmup_steps", "max_grad_norm", "num_generations",
    "beta", "epsilon", "loss_type", "scale_rewards", "seed", "logging_steps",
)  # fmt: skip


def _complaint(model: type[CheckedModel], problem: Any) -> str:
    """Return one of pydantic's complaints in our words."""
    name = ".".join(map(str, problem["loc"]))
    where = (model.place + name).rstrip(".")
    if problem["type"] == "extra_forbidden":
        near = difflib.get_close_matches(name, model.model_fields, n=2)
        known = f"the fields are {', '.join(sorted(model.model_fields))}"
        return f"unknown field {where!r}; " + (f"did you mean {' or '.join(map(repr, near))}?" if near else known)
    if problem["type"] == "missing":
        return f"field {where!r} is missing"
    words = str(problem["msg"]).removeprefix("Value error, ")
    words = re.sub(r"^Input should be (?=greater|less)", "expected a number ", words)
    words = re.sub(r"^(Input should be|(String|Tuple) should have)", "expected", words)
    return f"{where}={problem['input']!r}: {words[0].lower()}{words[1:]}"
