"""What a training in a folder was started with, and where it goes on: the same settings and rows, or not at all."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rewardkit import ConfigError
from trainer_adapter.resuming import whole_checkpoints
from trainer_adapter.reward_training.reading import LabelledGroup
from trainer_adapter.reward_training.reward_model_config import RewardModelConfig
from trainer_adapter.run_identity import change_line, model_identity, refusal, write_whole

STATE_FILE = "reward_training.json"  # The file in an output folder that says what the training in it was started with
_NOT_COMPARED = frozenset({
    "dataset", "eval_dataset", "from_run", "output_dir", "save_steps", "logging_steps", "use_cpu", "base_model",
    "invalid_rows",  # which rows are left is in their digest
})  # fmt: skip


class TrainingStart(NamedTuple):
    """Where a training starts: at a checkpoint, at the beginning (``None``), or not at all because it has ended."""

    checkpoint: Path | None
    ended: bool


def identity_of(config: RewardModelConfig, groups: Sequence[LabelledGroup]) -> dict[str, Any]:
    """Return what a training is started with: the settings that take effect, and a digest of its rows."""
    settings: dict[str, Any] = json.loads(config.model_dump_json(exclude=set(_NOT_COMPARED)))
    if not config.trl:
        del settings["trl"]  # a training that an earlier release began has no such setting
    digest = hashlib.sha256()
    for group in groups:
        labels = (group.pairs, group.ranks, group.correct, group.step_labels)
        digest.update(repr((group.prompt, group.completions, *labels)).encode())  # in order
    rows = f"{len(groups)} groups, digest {digest.hexdigest()[:12]}"
    return {**settings, "base_model": model_identity(config.base_model), "dataset": rows}


def begin(folder: Path, identity: dict[str, Any], resume: bool) -> TrainingStart:
    """Return where a training in a folder starts, and write down what it is started with.

    With ``resume=False`` the checkpoints of a training before are removed. Raises ConfigError, with what differs,
    where the training in the folder had other settings or rows.
    """
    path, checkpoints = folder / STATE_FILE, folder / "checkpoints"
    state = _read(path)
    if state is not None and resume:
        _compare(folder, state["identity"], identity)
        if state.get("ended"):
            return TrainingStart(None, ended=True)
        complete = whole_checkpoints(checkpoints)
        return TrainingStart(complete[-1] if complete else None, ended=False)
    if state is None and any(folder.glob("*.safetensors")):
        raise ConfigError(f"{folder}: there are weights of something else in it; give another output_dir")
    if state is not None:
        shutil.rmtree(checkpoints, ignore_errors=True)  # else the trainer would go on from one of them
    write_whole(path, {"format": 1, "identity": identity, "ended": False})
    return TrainingStart(None, ended=False)


def end(folder: Path, identity: dict[str, Any], counts: dict[str, Any]) -> None:
    """Write down that the training has ended, and its numbers of steps, prompts and completions."""
    write_whole(folder / STATE_FILE, {"format": 1, "identity": identity, "ended": True, "told": counts})


def counts_of(folder: Path) -> dict[str, Any]:
    """Return the numbers of a training that has ended; nothing where no training was begun."""
    state = _read(folder / STATE_FILE)
    return {} if state is None else dict(state["told"])


def _compare(folder: Path, old: dict[str, Any], new: dict[str, Any]) -> None:
    """Raise ``ConfigError``, with a line for each setting that differs."""
    names = sorted(name for name in {*old, *new} if old.get(name) != new.get(name))
    if names:
        lines = [change_line(name, old.get(name), new.get(name)) for name in names]
        raise refusal(folder, "training", "settings", lines)


def _read(path: Path) -> dict[str, Any] | None:
    """Return the state in a file, ``None`` without the file; raise ``ConfigError`` for anything else in it."""
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as reason:
        raise ConfigError(f"{path}: cannot be read: {reason}; give another output_dir") from reason
    if not isinstance(state, dict) or not isinstance(state.get("identity"), dict):
        raise ConfigError(f"{path}: is not the state of a reward model's training; give another output_dir")
    return state
