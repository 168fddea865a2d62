"""Where a training run starts: at the beginning, at a checkpoint, or not at all because it has finished.

A run goes on only from a checkpoint of its own, made with the same rewards, settings and rows. The identity in a
checkpoint says whose it is (:mod:`trainer_adapter.run_identity`); one without an identity is used only if it is named.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rewardkit import ConfigError
from trainer_adapter.run_identity import FILE, OTHERWISE, RunIdentity, counted, differences, read_identity, refusal

_log = logging.getLogger("trainer_adapter")

STATE = "trainer_state.json"
"""The file that transformers writes last into a checkpoint: a checkpoint without it is not complete."""


@dataclass(frozen=True, slots=True)
class Start:
    """Where a run starts."""

    identity: RunIdentity  # What the run is started with
    checkpoint: Path | None = None  # Where it goes on; `None` for the beginning
    steps_done: int = 0  # Steps that the checkpoint, or the finished model, has
    finished: bool = False  # Whether nothing is left to do
    changed: Sequence[str] = ()  # Settings that differ from those of the run so far, and may differ


def choose_start(output_dir: Path, trained: Path, now: RunIdentity, resume: bool | str | Path) -> Start:
    """Return where a run starts whose finished model goes to ``trained``. Changes nothing.

    ``resume`` is ``True`` for the last checkpoint of this run, ``False`` for the beginning, or a checkpoint. Raises
    ConfigError where the run in the folder had other rewards, settings or rows, or its identity cannot be read.
    """
    if resume is False:
        return Start(now)
    written = read_identity(output_dir)
    if resume is not True:
        checkpoint = Path(resume)
        if not (checkpoint / STATE).is_file():
            raise ConfigError(f"resume={str(checkpoint)!r}: there is no checkpoint in it (no {STATE})")
        if written is not None and (written.finished_steps or _checkpoints_of(written, output_dir)):
            _check_differences(output_dir, written, now)
        return _from_named(checkpoint, now)
    if written is None:
        if whole_checkpoints(output_dir) or any(trained.glob("*.safetensors")):
            raise _missing_identity(output_dir)
        return Start(now)
    own = _checkpoints_of(written, output_dir)
    if not own and written.finished_steps is None:
        return Start(now)  # it never got as far as a checkpoint
    changed = _check_differences(output_dir, written, now)
    identity = now.model_copy(update={"run": written.run, "finished_steps": written.finished_steps})
    return _from_last(identity, own, trained, changed, output_dir)


def _from_last(
    identity: RunIdentity, own: Sequence[Path], trained: Path, changed: Sequence[str], folder: Path
) -> Start:
    """Return where a run goes on; raise ``ConfigError`` if it ended earlier than wanted and left no checkpoint."""
    checkpoint = own[-1] if own else None
    steps = 0 if checkpoint is None else state_of(checkpoint)["global_step"]
    wanted = identity.settings["train_steps"]
    done = identity.finished_steps if identity.finished_steps is not None and trained.is_dir() else 0
    if max(steps, done) >= wanted:
        return Start(identity, checkpoint, max(steps, done), finished=True)
    if checkpoint is None and done:
        raise ConfigError(
            f"{folder}: the run in it ended after {counted(done, 'step')} and left no checkpoint\n"
            f"(save_steps is null), so it cannot go on to {wanted:,}. Nothing was run or changed.\nPlease {OTHERWISE}"
        )
    return Start(identity, checkpoint, steps, changed=changed)


def _from_named(checkpoint: Path, now: RunIdentity) -> Start:
    """Return the start from a checkpoint that the caller names."""
    made = read_identity(checkpoint)
    changed: Sequence[str] = ()
    if made is None:
        _log.warning(
            "%s does not say with which rewards and settings it was made, so they cannot be compared", checkpoint
        )
    else:
        changed = _check_differences(checkpoint, made, now)
        now = now.model_copy(update={"run": made.run})
    steps = state_of(checkpoint)["global_step"]
    return Start(now, checkpoint, steps, finished=steps >= now.settings["train_steps"], changed=changed)


def _check_differences(where: Path, old: RunIdentity, now: RunIdentity) -> Sequence[str]:
    """Return the differences with which a run may go on; raise ``ConfigError`` that names all others."""
    refused, allowed = differences(old, now)
    if refused:
        raise refusal(where, "run", "rewards, settings", refused)
    return allowed


def _missing_identity(output_dir: Path) -> ConfigError:
    """Return the error of a folder without an identity; it names a copy in the checkpoints, if there is one."""
    copies = [copy for folder in whole_checkpoints(output_dir) if (copy := folder / FILE).is_file()]
    # The newest, not that of the most steps: a run started anew leaves the checkpoints of the run before.
    newest = max(copies, key=lambda copy: copy.stat().st_mtime_ns, default=None)
    where = "No checkpoint has a copy of it." if newest is None else f"Put it back: {newest} is a copy."
    return ConfigError(
        f"{output_dir}: {FILE} is missing: it says with which rewards, settings\n"
        f"and rows the run in it was started. Nothing was run or changed.\n{where}\nOtherwise {OTHERWISE}\n"
        "Python can go on from a checkpoint that you name: resume='.../checkpoint-100'."
    )


def whole_checkpoints(output_dir: Path) -> list[Path]:
    """Return the complete checkpoints in a folder, by step."""
    folders = [state.parent for state in output_dir.glob(f"checkpoint-*/{STATE}")]
    return sorted((folder for folder in folders if _step_of(folder) >= 0), key=_step_of)  # by number: 100 after 20


def _checkpoints_of(identity: RunIdentity, output_dir: Path) -> list[Path]:
    """Return the complete checkpoints of a run in a folder, by step."""
    folders = whole_checkpoints(output_dir)
    return [folder for folder in folders if (own := read_identity(folder)) is not None and own.run == identity.run]


def state_of(checkpoint: Path) -> dict[str, Any]:
    """Return the state that transformers wrote into a checkpoint; raise ``ConfigError`` if it cannot be read."""
    try:
        state: dict[str, Any] = json.loads((checkpoint / STATE).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as reason:
        raise ConfigError(f"{checkpoint}: its {STATE} cannot be read: {reason}") from reason
    match state:
        case {"global_step": int(), "log_history": list()}:
            return state
    raise ConfigError(f"{checkpoint}: its {STATE} cannot be read: there is no global_step or no log_history in it")


def _step_of(checkpoint: Path) -> int:
    step = checkpoint.name.removeprefix("checkpoint-")
    return int(step) if step.isdecimal() else -1
