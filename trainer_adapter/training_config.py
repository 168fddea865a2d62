"""What the configurations of both trainings share: checked fields, LoRA, paths in a file, and settings of TRL's own.

Nothing here imports torch or TRL; :mod:`trainer_adapter.trl_settings` checks ``trl`` against the TRL that is installed.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, get_args

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

from rewardkit import ConfigError
from rewardkit.extending import read_yaml

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


def _refuse_bool(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("expected a number")
    return value


def _lora_targets(value: object) -> object:
    """Return ``None`` for ``all-linear``, and refuse other bare strings, which would be read letter by letter."""
    if isinstance(value, str) and value != "all-linear":
        raise ValueError("expected a list of module names, such as ['q_proj', 'v_proj'], or 'all-linear'")
    return None if isinstance(value, str) else value


def _trl_settings(value: object) -> dict[str, object]:
    """Return TRL's settings as a dictionary; raise ``ValueError`` for what JSON cannot hold."""
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise ValueError("expected a mapping of TRL's settings by their names")
    try:
        json.dumps(dict(value))  # the identity of a run is JSON
    except (TypeError, ValueError) as error:
        raise ValueError(f"expected numbers, text, lists and mappings ({error})") from None
    return dict(value)


Count = Annotated[int, BeforeValidator(_refuse_bool)]
Number = Annotated[float, BeforeValidator(_refuse_bool), Field(allow_inf_nan=False)]


class CheckedModel(BaseModel):
    """A frozen model that raises :class:`~rewardkit.ConfigError` for wrong values."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True, use_attribute_docstrings=True)
    prefix: ClassVar[str] = ""  # What stands before a field's name in errors

    @model_validator(mode="wrap")
    @classmethod
    def _complain(cls, data: object, handler: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            return handler(data)
        except ValidationError as error:
            complaints = [_complaint(cls, details) for details in error.errors()]
        raise ConfigError("; ".join(complaints))


class TrainingConfig(CheckedModel):
    """The fields that every training has."""

    paths: ClassVar[tuple[str, ...]] = ()  # Fields of paths that start from the file's folder
    own_settings: ClassVar[Mapping[str, str]] = {}
    """TRL's settings that a field of ours sets, with that field: ``trl`` does not take them."""

    base_model: str = Field(min_length=1)
    """A folder, a name on the Hugging Face hub, or `builtin:smollm2-135m`."""
    lr_scheduler_type: Literal["linear", "cosine", "constant", "constant_with_warmup"] = "linear"
    """How the learning rate changes after the warm-up."""
    warmup_steps: Count = Field(default=0, ge=0, description="Steps in which the learning rate rises from 0.")
    max_grad_norm: Number = Field(default=1.0, gt=0, description="Norm to which gradients are clipped, greater than 0.")
    adapter: Literal["lora"] | None = Field(default="lora", description="`lora`, or null to train all weights.")
    rank: Count = Field(default=16, ge=1, description="Rank of the adapter's matrices, 1 or more.")
    lora_alpha: Number | None = Field(default=None, gt=0)
    """The adapter is scaled by `lora_alpha / rank`; null is twice the rank."""
    lora_dropout: Number = Field(default=0.0, ge=0, lt=1)
    """Dropout before the adapter, 0 or more and below 1."""
    target_modules: Annotated[tuple[str, ...] | None, BeforeValidator(_lora_targets)] = Field(
        default=None, min_length=1
    )
    """Names of the layers adapted; null is every linear layer but the head."""
    use_cpu: bool | None = None
    """Whether to train on the CPU; null where there is no CUDA device."""
    seed: Count = Field(default=42, ge=0, lt=2**32, description="Seed of sampling, shuffling and the adapter's start.")
    save_steps: Count | None = Field(default=100, ge=1)
    """Steps from one checkpoint to the next; null saves none."""
    logging_steps: Count = Field(default=1, ge=1, description="Steps whose metrics are averaged into one log entry.")
    trl: Annotated[Mapping[str, object], PlainValidator(_trl_settings)] = Field(default={})
    """Other settings of TRL's own configuration by their names, such as `weight_decay`."""

    @model_validator(mode="after")
    def _refuse_own_settings(self) -> Self:
        """Refuse TRL's settings that a field of ours sets, but not a name among a field's that only a newer TRL has."""
        for name, value in self.trl.items():
            field = self.own_settings.get(name)
            if field is None:
                continue
            info = type(self).model_fields.get(field)
            choices = (
                [] if info is None else [choice for choice in get_args(info.annotation) if isinstance(choice, str)]
            )
            is_newer_name = name == field and choices and isinstance(value, str) and value not in choices
            if not is_newer_name:
                raise ConfigError(f"trl.{name}: rewardkit's own field {field!r} sets it; give {field!r} instead")
        return self

    @classmethod
    def from_dict(cls, data: object, *, where: str = "configuration", base: Path | None = None) -> Self:
        """Return the configuration in plain data.

        Args:
            data: A mapping with the fields.
            where: What errors call the data.
            base: Folder from which relative paths and ``file.py`` references start, and a ``base_model`` that starts
                with ``./`` or ``../``.

        Raises:
            ConfigError: A field is unknown, missing or wrong, or a file cannot be read.
        """
        if not isinstance(data, Mapping):
            raise ConfigError(f"{where}: expected a mapping, got {data!r}")
        try:
            return cls.model_validate(cls.resolve(data, base))
        except ConfigError as error:
            raise ConfigError(f"{where}: {error}") from error.__cause__

    @classmethod
    def from_yaml(cls, path: str | Path) -> Self:
        """Return the configuration in a YAML file; relative paths start from its folder. Raises as from_dict."""
        path = Path(path)
        return cls.from_dict(read_yaml(path), where=str(path), base=path.resolve().parent)

    @classmethod
    def resolve(cls, data: Mapping[str, Any], base: Path | None) -> dict[str, Any]:
        """Return the fields with paths that start from a folder."""
        fields = dict(data)
        if base is None:
            return fields
        for name in cls.paths:
            path = fields.get(name)
            if isinstance(path, str) and path and "://" not in path:  # an address has no folder
                fields[name] = str(base / path)
        if str(fields.get("base_model")).startswith(("./", "../")):
            fields["base_model"] = str(base / fields["base_model"])
        return fields

    def to_peft(self) -> dict[str, Any] | None:
        """Return the keyword arguments of ``peft.LoraConfig``; ``None`` where all weights are trained."""
        if self.adapter is None:
            return None
        return {
            "r": self.rank,
            "lora_alpha": 2 * self.rank if self.lora_alpha is None else self.lora_alpha,
            "lora_dropout": self.lora_dropout,
            "target_modules": "all-linear" if self.target_modules is None else list(self.target_modules),
            "task_type": self._lora_task,
        }

    @property
    def _lora_task(self) -> str:
        """PEFT's name of what the model does."""
        return "CAUSAL_LM"

    def _machine_settings(self, has_cuda: bool) -> dict[str, Any]:
        """Return what TRL is told of the machine, and that rewardkit shows the progress."""
        cpu = not has_cuda if self.use_cpu is None else self.use_cpu
        return {"use_cpu": cpu, "dataloader_pin_memory": not cpu, "disable_tqdm": True, "report_to": "none"}


def _complaint(model: type[CheckedModel], details: ErrorDetails) -> str:
    """Return one of pydantic's complaints in our words."""
    name = ".".join(map(str, details["loc"]))
    where = (model.prefix + name).rstrip(".")
    if details["type"] == "extra_forbidden":
        near = difflib.get_close_matches(name, model.model_fields, n=2)
        fields = f"the fields are {', '.join(sorted(model.model_fields))}"
        return f"unknown field {where!r}; " + (f"did you mean {' or '.join(map(repr, near))}?" if near else fields)
    if details["type"] == "missing":
        return f"field {where!r} is missing"
    field = model.model_fields.get(str(details["loc"][0])) if details["loc"] else None
    if field is not None and not field.repr:  # its value may be a secret
        return f"{where}: {details['msg'][0].lower()}{details['msg'][1:]}"
    message = details["msg"].removeprefix("Value error, ")
    message = re.sub(r"^Input should be (?=greater|less)", "expected a number ", message)
    message = re.sub(r"^(Input should be|(String|Tuple) should have)", "expected", message)
    return f"{where}={details['input']!r}: {message[0].lower()}{message[1:]}"
