"""The identity of a training run: what it was started with, in a file in its output folder and in its checkpoints.

This module also compares two identities; :mod:`trainer_adapter.resuming` decides what a difference leads to.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rewardkit import ConfigError, RewardFunctionsConfig, Scorer
from rewardkit.extending import decode, shortened
from rewardkit.rows import JSON_FEATURE
from trainer_adapter.config import GRPOConfig

if TYPE_CHECKING:
    from trainer_adapter.dataset import Dataset

FILE = "rewardkit-run.json"  # The name of the identity's file in an output folder and in a checkpoint
MAY_CHANGE = frozenset({
    "train_steps", "save_steps", "eval_steps", "logging_steps", "record", "picture_side", "health_every",
    "workers", "load_timeout_s", "lane", "ray_address", "overlap", "per_device_batch_size", "use_cpu",
})  # fmt: skip
"""Settings that may change when a run goes on: how long it lasts, what it saves, logs and records, what it runs on."""
MOST_ROWS = 200_000  # The most rows that the digest of a dataset covers; in a larger dataset, rows at equal distances
OTHERWISE = "give another output folder, or start anew in this one\n(--no-resume, in Python resume=False)."
_WEIGHTS = (".safetensors", ".bin", ".gguf", ".json")

Version = Annotated[str, Field(pattern="^[0-9a-f]{12}$")]


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 step``, ``1,000 steps``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


class DatasetIdentity(BaseModel):
    """The rows that a run is trained on: how many, and a digest of their columns and values in order."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    rows: int = Field(ge=1)
    digest: Version

    def __str__(self) -> str:
        return f"{counted(self.rows, 'row')}, digest {self.digest}"


class RunIdentity(BaseModel):
    """What a run was started with."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    format: Literal[1] = 1  # The version of the file's format
    run: str = Field(min_length=1, default_factory=lambda: secrets.token_hex(8))  # Its checkpoints share it
    settings: dict[str, Any]  # The configuration's fields that take effect, by name
    rewards: dict[str, Version]
    dataset: DatasetIdentity
    finished_steps: Annotated[int, Field(ge=1)] | None = None  # `None` until it has written its model


class Differences(NamedTuple):
    """Differences between two identities, each a line ``name: old -> new``: those refused, and those allowed."""

    refused: Sequence[str]
    allowed: Sequence[str]


def identity_of(config: GRPOConfig, runtime: Scorer, rows: Dataset) -> RunIdentity:
    """Return the identity of a run that starts now."""
    versions = {name: _digest(reward.version) for name, reward in runtime.rewards.items()}
    return RunIdentity(settings=_settings(config, runtime.weights), rewards=versions, dataset=dataset_identity(rows))


def _digest(version: str) -> str:
    """Return a version as 12 hexadecimal digits; a user's own kind of reward may have a version of any form."""
    is_plain = len(version) == 12 and set(version) <= set("0123456789abcdef")
    return version if is_plain else hashlib.sha256(version.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _record_without_password(record: bool | str) -> bool | str:
    """Return where a run is recorded, without the password of a database: an identity lies in files."""
    if isinstance(record, bool) or "://" not in record:
        return record
    from rewardkit.changing import place_of_record  # it brings numpy along

    return place_of_record(record).label


def _settings(config: GRPOConfig, weights: Mapping[str, float]) -> dict[str, Any]:
    """Return the settings that take effect, with defaults that depend on other fields filled in."""
    settings: dict[str, Any] = config.model_dump(exclude={"reward_fns", "reward_weights", "sampling_params"})
    settings["record"] = _record_without_password(config.record)
    settings["base_model"] = model_identity(config.base_model)
    settings["dtype"] = config.base_dtype
    lora = config.to_peft()
    if lora is None:
        for name in ("rank", "lora_alpha", "lora_dropout", "target_modules"):
            del settings[name]
    else:
        settings["lora_alpha"] = None if lora["lora_alpha"] == 2 * config.rank else lora["lora_alpha"]
    settings |= {f"sampling_params.{name}": value for name, value in config.sampling_params.model_dump().items()}
    settings |= {f"reward_weights.{name}": float(weight) for name, weight in weights.items()}
    runtime = config.reward_fns.runtime if isinstance(config.reward_fns, RewardFunctionsConfig) else None
    settings["reward_fns.runtime.packages"] = [] if runtime is None else sorted(runtime.packages)
    settings["reward_fns.runtime.env"] = [] if runtime is None else sorted(runtime.env)  # values may be secrets
    plain: dict[str, Any] = json.loads(json.dumps(settings))
    return plain


def model_identity(base_model: str) -> str:
    """Return a model's name; for a folder, its last part and a digest of its files."""
    folder = Path(base_model)
    if base_model.startswith("builtin:") or not folder.is_dir():
        return base_model
    digest = hashlib.sha256()
    for file in sorted(file for file in folder.iterdir() if file.suffix in _WEIGHTS and file.is_file()):
        content = file.read_bytes() if file.suffix == ".json" and file.name != FILE else b""  # weights: their size
        digest.update(repr((file.name, file.stat().st_size, content)).encode())
    return f"{folder.resolve().name} ({digest.hexdigest()[:12]})"


def dataset_identity(rows: Dataset) -> DatasetIdentity:
    """Return the number and the digest of rows."""
    count = len(rows)
    step = -(-count // MOST_ROWS)  # rounded up
    chosen = (rows if step == 1 else rows.select(range(0, count, step))).with_format("arrow")
    json_columns = [name for name, feature in rows.features.items() if getattr(feature, "_type", "") == JSON_FEATURE]
    digest = hashlib.sha256(repr((count, sorted(rows.column_names))).encode("utf-8", "surrogatepass"))
    for start in range(0, len(chosen), 1_000):
        for row in chosen[start : start + 1_000].to_pylist():
            for name in json_columns:  # earlier releases had messages and texts as they are, all else as JSON
                if row[name] is not None and (name == "prompt" or row[name].startswith('"')):
                    row[name] = decode(row[name])
            digest.update(repr(sorted(row.items())).encode("utf-8", "surrogatepass"))
    return DatasetIdentity(rows=count, digest=digest.hexdigest()[:12])


def differences(old: RunIdentity, new: RunIdentity) -> Differences:
    """Return how a new run differs from one whose identity was written.

    A setting that the identity lacks counts as equal: the release that wrote it did not have the setting. Without
    ``trl`` it is a run without settings of TRL's own.
    """
    refused: list[str] = []
    allowed: list[str] = []
    for name, value in {"trl": {}, **old.settings}.items():
        now = new.settings.get(name)
        if now == value or (name.startswith("reward_weights.") and name not in new.settings):
            continue  # a reward that is gone is reported below
        (allowed if name in MAY_CHANGE else refused).append(change_line(name, value, now))
    for name in {**old.rewards, **new.rewards}:
        before, after = old.rewards.get(name), new.rewards.get(name)
        if before is None:
            refused.append(f"reward {name!r}: not there -> version {after}")
        elif before != after:
            refused.append(f"reward {name!r}: version {before} -> {after or 'not there'}")
    if old.dataset != new.dataset:
        refused.append(f"dataset: {old.dataset} -> {new.dataset}")
    return Differences(refused, allowed)


def change_line(name: str, old: object, new: object) -> str:
    """Return the line of a setting that differs."""
    before, after = (value if isinstance(value, str) else json.dumps(value) for value in (old, new))
    return f"{name}: {before} -> {after}"


def read_identity(folder: Path) -> RunIdentity | None:
    """Return the identity in a folder, ``None`` without such a file; raise ``ConfigError`` for a damaged one."""
    file = folder / FILE
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as reason:
        raise _unreadable(file, str(reason)) from reason
    if not isinstance(data, dict):
        raise _unreadable(file, f"expected a JSON object, got {shortened(json.dumps(data), 80)}")
    written = data.get("format")
    if isinstance(written, int) and written != 1:
        raise _unreadable(file, f"it is of format {written}, and this release reads format 1")
    try:
        return RunIdentity.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise _unreadable(file, f"{where + ': ' if where else ''}{first['msg'].lower()}") from error


def _unreadable(file: Path, reason: str) -> ConfigError:
    return ConfigError(
        f"{file}: the identity of a training run cannot be read:\n  {reason}\n"
        "It says whether the rewards are still the same. Nothing was run or changed.\n"
        "Put it back from a checkpoint, where there is a copy, give another output folder,\n"
        "or start anew in this one (--no-resume, in Python resume=False)."
    )


def refusal(where: Path, noun: str, parts: str, lines: Sequence[str]) -> ConfigError:
    """Return the error that a run or training cannot go on, with a line for each difference."""
    return ConfigError(
        f"{where}: the {noun} in it was started with other {parts} or rows:\n"
        + "".join(f"  {line}\n" for line in lines)
        + f"Nothing was run or changed. To go on, put these back.\nOtherwise {OTHERWISE}"
    )


def own_rank() -> int:
    """Return this process's rank among those of a training, as a launcher such as torchrun says it."""
    return int(os.environ.get("RANK", "0"))


def is_first_process() -> bool:
    """Return whether this is the first of a training's processes, or the only one; it writes all but the weights."""
    return own_rank() == 0


def write_whole(file: Path, content: Mapping[str, Any]) -> None:
    """Write JSON into a file, whole or not at all. Only the first of several training processes writes."""
    if not is_first_process():
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_name(f".{file.name}.{os.getpid()}")  # a rename in one folder is atomic
    try:
        fresh.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
        fresh.replace(file)
    finally:
        fresh.unlink(missing_ok=True)


def write_identity(folder: Path, identity: RunIdentity) -> None:
    """Write an identity into a folder, or into a checkpoint."""
    write_whole(folder / FILE, identity.model_dump())
