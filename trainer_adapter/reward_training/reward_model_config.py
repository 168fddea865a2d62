"""The training of a reward model as one object: data, base model and hyperparameters, in Python or YAML.

It checks values and translates them to TRL's and PEFT's names. Nothing here imports torch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, PlainValidator, model_validator

from builtin_rewards.reward_model import Aggregation, ModelKind, Shows
from rewardkit import ConfigError
from rewardkit.extending import RowHandling
from trainer_adapter.training_config import CheckedModel, Count, Number, TrainingConfig

_SAME_IN_TRL = ("lr_scheduler_type", "warmup_steps", "max_grad_norm", "seed", "logging_steps")
_LORA_RATE = 1e-4
_FULL_RATE = 2e-5


def _rows(value: object) -> object:
    is_rows = hasattr(value, "column_names") or (isinstance(value, Sequence) and not isinstance(value, bytes))
    if value is None or (value != "" and (isinstance(value, Path) or is_rows)):
        return value
    raise ValueError("expected a file of rows, a list of rows or a datasets.Dataset")


Rows = Annotated[Any, PlainValidator(_rows)]


class RunPairs(CheckedModel):
    """Pairs from the record of a run: of each group, completions that a trusted reward tells clearly apart."""

    prefix: ClassVar[str] = "from_run."

    run: str | Path = Field(description="The folder of the run, or its record, or its address in a database.")
    reward: str = Field(min_length=1, description="The trusted reward, by its name in the record.")
    min_gap: Number = Field(gt=0, description="By how much the scores of a pair differ at least, greater than 0.")
    pairs_per_group: Count | None = Field(default=None, ge=1)
    """The most pairs of a group, those of the widest gap first; null for all."""


class RewardModelConfig(TrainingConfig):
    """The training of one reward model: what it learns, from which rows, and where it goes.

    >>> config = RewardModelConfig(base_model="Qwen/Qwen3-0.6B", dataset="pairs.jsonl", output_dir="runs/rm")
    >>> config.kind, config.epochs
    ('bradley_terry', 1.0)

    Raises:
        ConfigError: A field is unknown, missing or wrong; names it, its value and what was expected.
    """

    paths: ClassVar[tuple[str, ...]] = ("dataset", "eval_dataset", "output_dir", "run")
    own_settings: ClassVar[Mapping[str, str]] = {
        **{name: name for name in (*_SAME_IN_TRL, "output_dir", "learning_rate", "max_length", "pad_token", "use_cpu")},
        "model_init_kwargs": "base_model",
        "center_rewards_coefficient": "center",
        "num_train_epochs": "epochs",
        "max_steps": "train_steps",
        "per_device_train_batch_size": "per_device_batch_size",
        "gradient_accumulation_steps": "batch_size",
        "save_strategy": "save_steps",
        "save_steps": "save_steps",
        "eval_strategy": "eval_dataset",
        "eval_steps": "eval_dataset",
        "remove_unused_columns": "dataset",
    }

    kind: ModelKind = "bradley_terry"
    """`bradley_terry` learns from pairs, `plackett_luce` from rankings, `orm` from completions that are right or wrong,
    `prm` from steps that are right, neutral or wrong."""
    dataset: Rows = None
    """JSON Lines, CSV or Parquet, a list of rows, or a `datasets.Dataset`."""
    from_run: RunPairs | None = None
    """Instead of `dataset`: pairs from a run's record (`run`, `reward`, `min_gap`)."""
    eval_dataset: Rows = None
    """Held-out rows; null holds out a share of the prompts of `dataset`."""
    output_dir: Path = Field(description="The folder of the weights; checkpoints are in `checkpoints` below it.")
    holdout: Number = Field(default=0.1, ge=0, lt=1)
    """Share of the prompts that is held out, without an `eval_dataset`."""
    max_length: Count | None = Field(default=None, ge=8)
    """Tokens of prompt and completion; null is 1024, or the model's most if fewer."""
    over_long: Literal["drop", "refuse"] = "drop"
    """What becomes of a completion that does not fit without its prompt: it is left out and counted, or the run is
    refused. A prompt is cut at its beginning, a completion never."""
    invalid_rows: RowHandling = "refuse"
    """What becomes of a row that cannot be read or made tokens: the run is refused, or the row is left out and counted
    (`drop`)."""
    group_size: Count | None = Field(default=None, ge=2)
    """Completions in one ranking; null is as many as a row, or a prompt, has."""
    step_separator: str = Field(default="\n", min_length=1)
    """What separates the steps of a completion that is one text."""
    shows: Shows = "answer"
    """What is read of what a model wrote: `answer` alone, or `all`, its thoughts too, as for steps in a thought."""
    aggregate: Aggregation | None = None
    """How tokens or steps become one score; null is `last` for `orm`, `min` for `prm`."""
    center: Number = Field(default=0.0, ge=0)
    """Weight of (chosen + rejected)² in the loss of pairs, which holds scores near 0."""
    epochs: Number = Field(default=1.0, gt=0, description="Passes over the data; more than one overfits quickly.")
    train_steps: Count | None = Field(default=None, ge=1, description="Optimizer steps, instead of `epochs`.")
    learning_rate: Number | None = Field(default=None, gt=0)
    """The highest learning rate; null is 1e-4 with an adapter and 2e-5 without."""
    batch_size: Count = Field(default=16, ge=1)
    """Prompts an optimizer step on each device; all pairs of a prompt are in one batch."""
    per_device_batch_size: Count | None = Field(default=None, ge=1)
    """Prompts a forward pass; divides `batch_size`. Null takes the most up to 8."""
    pad_token: str | None = Field(default=None, min_length=1)
    """The padding token, for a tokenizer without one; a token that it knows."""
    adapter: Literal["lora"] | None = Field(default=None, description="`lora`, or null to train all weights.")
    seed: Count = Field(default=42, ge=0, lt=2**32, description="Seed of the split, the shuffling and the new head.")
    logging_steps: Count = Field(default=10, ge=1, description="Steps whose metrics are averaged into one log entry.")
    bins: Count = Field(default=10, ge=1, description="Bins of the calibration error.")

    @model_validator(mode="after")
    def _check_fields(self) -> RewardModelConfig:
        """Refuse fields that contradict each other, or that the kind of model does not take."""
        if (self.dataset is None) == (self.from_run is None):
            raise ConfigError("dataset: expected rows in dataset, or a run's record in from_run, and not both")
        if self.from_run is not None and self.kind != "bradley_terry":
            raise ConfigError(f"from_run: a record gives pairs, and kind={self.kind!r} takes others; use bradley_terry")
        if self.group_size is not None and self.kind != "plackett_luce":
            raise ConfigError(f"group_size={self.group_size}: only kind='plackett_luce' has groups, not {self.kind!r}")
        if self.aggregate is not None and self.kind not in ("orm", "prm"):
            raise ConfigError(f"aggregate={self.aggregate!r}: kind={self.kind!r} has one score a text; leave it out")
        if self.center and self.kind != "bradley_terry":
            raise ConfigError(f"center={self.center}: only kind='bradley_terry' takes it, not {self.kind!r}")
        if self.per_device_batch_size is not None and self.batch_size % self.per_device_batch_size:
            raise ConfigError(
                f"per_device_batch_size={self.per_device_batch_size}: expected a divisor of batch_size="
                f"{self.batch_size}"
            )
        return self

    @classmethod
    def resolve(cls, data: Mapping[str, Any], base: Path | None) -> dict[str, Any]:
        """Return the fields, those of ``from_run`` too, with paths that start from a folder."""
        fields = super().resolve(data, base)
        if isinstance(fields.get("from_run"), Mapping):
            fields["from_run"] = super().resolve(fields["from_run"], base)
        return fields

    @property
    def aggregation(self) -> Aggregation | None:
        """How tokens or steps become one score; ``None`` where there is one logit a text."""
        return self.aggregate or {"orm": "last", "prm": "min"}.get(self.kind)  # type: ignore[return-value]

    @property
    def micro_batch(self) -> int:
        """Prompts in one forward pass."""
        return self.per_device_batch_size or max(n for n in range(1, 9) if self.batch_size % n == 0)

    def to_trl(self, *, has_cuda: bool = True) -> dict[str, Any]:
        """Return the keyword arguments of ``trl.RewardConfig``; ``trl`` comes last.

        Args:
            has_cuda: Whether the machine has a CUDA device, which decides for ``use_cpu=None``.
        """
        machine = self._machine_settings(has_cuda)
        arguments = {name: getattr(self, name) for name in _SAME_IN_TRL} | {
            "output_dir": str(self.output_dir / "checkpoints"),
            "num_train_epochs": self.epochs,
            "max_steps": self.train_steps or -1,
            "learning_rate": self.learning_rate or (_FULL_RATE if self.adapter is None else _LORA_RATE),
            "per_device_train_batch_size": self.micro_batch,
            "gradient_accumulation_steps": self.batch_size // self.micro_batch,
            "save_strategy": "no" if self.save_steps is None else "steps",
            "save_steps": self.save_steps or 500,
            "save_total_limit": 2,
            "eval_strategy": "no",
            "remove_unused_columns": False,
            "max_length": None,
            "bf16": not machine["use_cpu"],
            "activation_checkpointing": False,
        }
        return arguments | machine | dict(self.trl)

    @property
    def _lora_task(self) -> str:
        return "TOKEN_CLS" if self.kind in ("orm", "prm") else "SEQ_CLS"
