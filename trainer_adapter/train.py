"""GRPO from a configuration: checks everything that can be checked cheaply, then trains with TRL.

Rewards and dataset are checked before the model loads, for a model can take minutes. What a run needs
besides, :mod:`trainer_adapter.dataset` and :mod:`trainer_adapter.models` get; scoring is
:class:`~trainer_adapter.RewardAdapter`'s.
"""

from __future__ import annotations

import difflib
import json
import logging
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rewardkit import ConfigError, DataError, MissingColumnError
from trainer_adapter.config import GRPOConfig
from trainer_adapter.dataset import Source, is_conversational, read_dataset
from trainer_adapter.grpo import RewardAdapter
from trainer_adapter.models import Loaded, check_model, contiguous_lm_head, load_model, needing_extra
from trainer_adapter.timing import BatchTiming, leaves_of

if TYPE_CHECKING:
    from transformers import TrainerCallback
    from trl import GRPOTrainer  # type: ignore[attr-defined]  # it is, lazily

    from trainer_adapter.dataset import Dataset

_log = logging.getLogger("trainer_adapter")


@dataclass(frozen=True, slots=True)
class TrainResult:
    """What a run leaves.

    Attributes:
        output_dir: The folder of checkpoints.
        trained: The folder of the adapter, or of the whole model where all its weights were trained.
        steps: Optimizer steps done, those before a resumed checkpoint included.
        log_history: TRL's metrics, a dictionary each log entry, in order.
        timings: Where the time of each scored batch of this run went, as far as the adapter keeps them.
        seconds: Wall-clock seconds of this run's training, loading aside.
    """

    output_dir: Path
    trained: Path
    steps: int
    log_history: Sequence[dict[str, Any]]
    timings: Sequence[BatchTiming]
    seconds: float


def train(
    config: GRPOConfig,
    dataset: Source,
    output_dir: str | Path,
    *,
    eval_dataset: Source | None = None,
    callbacks: Iterable[TrainerCallback] = (),
    resume: bool | str | Path = True,
) -> TrainResult:
    """Trains a model with GRPO on the configured rewards.

    Prints nothing: give a callback, such as transformers' ``ProgressCallback``, to watch a run. Ctrl-C
    leaves a checkpoint of the last whole step, from which the next call goes on.

    Args:
        config: Model, hyperparameters and rewards.
        dataset: A ``datasets.Dataset``, a list of rows, or a JSONL file, with ``prompt`` and the columns
            that the rewards read.
        output_dir: Where checkpoints and the trained adapter go.
        eval_dataset: Rows to evaluate on, in the same forms.
        callbacks: Further transformers callbacks.
        resume: ``True`` goes on from the last whole checkpoint in ``output_dir``, if there is one;
            ``False`` starts anew; a path goes on from that checkpoint. A run that has all its steps is
            not run again.

    Raises:
        ConfigError: The model or the checkpoint cannot be loaded, or the batch cannot be shared out.
        DataError: The dataset is wrong; names file and line, or row.
        MissingColumnError: A reward needs a column that the dataset lacks.
        ModuleNotFoundError: The extra ``train`` is not installed.
        RewardError: A reward cannot be loaded, or rewards failed as the configuration forbids.
    """
    output_dir = Path(output_dir)
    checkpoint = _checkpoint(output_dir, resume)
    if checkpoint is not None and _state(checkpoint)["global_step"] >= config.train_steps:
        return _finished(config, checkpoint, output_dir)
    check_model(config.base_model)
    with needing_extra():
        rows = read_dataset(dataset)
        eval_rows = None if eval_dataset is None else read_dataset(eval_dataset, what="evaluation set")
    adapter = RewardAdapter(
        config.reward_fns,
        weights=config.reward_weights,
        workers=config.workers,
        load_timeout_s=config.load_timeout_s,
        partial=config.partial,
    )
    _check_columns(adapter, rows, "dataset")
    if eval_rows is not None:
        _check_columns(adapter, eval_rows, "evaluation set")
    with adapter:
        trainer = _trainer(config, adapter, rows, eval_rows, output_dir, callbacks)
        began = time.monotonic()
        try:
            trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
        except KeyboardInterrupt:
            _save_interrupted(trainer, output_dir)
            raise
        seconds = time.monotonic() - began
        trained = _trained(config, output_dir)
        trainer.save_model(str(trained))
        state = trainer.state
        return TrainResult(
            output_dir, trained, state.global_step, list(state.log_history), list(adapter.timings), seconds
        )


def _finished(config: GRPOConfig, checkpoint: Path, output_dir: Path) -> TrainResult:
    """Gives the result of a run that has all its steps; TRL would take one more."""
    trained, state = _trained(config, output_dir), _state(checkpoint)
    return TrainResult(
        output_dir, trained if trained.is_dir() else checkpoint, state["global_step"], state["log_history"], [], 0.0
    )


def _trained(config: GRPOConfig, output_dir: Path) -> Path:
    return output_dir / ("adapter" if config.adapter else "model")


def _trainer(
    config: GRPOConfig,
    adapter: RewardAdapter,
    rows: Dataset,
    eval_rows: Dataset | None,
    output_dir: Path,
    callbacks: Iterable[TrainerCallback],
) -> GRPOTrainer:
    """Gives TRL's trainer with model, rewards and callbacks in place."""
    with needing_extra():
        import torch
        from peft import LoraConfig
        from transformers import PrinterCallback
        from trl import GRPOConfig as TrainerConfig  # type: ignore[attr-defined]
        from trl import GRPOTrainer  # type: ignore[attr-defined]

    processes = int(os.environ.get("WORLD_SIZE", "1"))
    arguments = config.to_trl(
        output_dir, has_cuda=torch.cuda.is_available(), processes=processes, evaluate=eval_rows is not None
    )
    lora = config.to_peft()
    loaded = load_model(config.base_model, config.base_dtype, on_cpu=arguments["use_cpu"])
    _check_template(config, loaded, rows)
    _check_targets(config, loaded)
    if arguments["use_cpu"]:
        contiguous_lm_head(loaded.model)
    trainer = GRPOTrainer(
        model=loaded.model,
        processing_class=loaded.tokenizer,
        reward_funcs=adapter.reward_funcs,
        args=TrainerConfig(**arguments, reward_weights=adapter.weights),
        train_dataset=rows,
        eval_dataset=eval_rows,
        peft_config=None if lora is None else LoraConfig(**lora),
        callbacks=[adapter.callback, *callbacks],
    )
    trainer.remove_callback(PrinterCallback)
    return trainer


def _check_columns(adapter: RewardAdapter, rows: Dataset, what: str) -> None:
    """Raise :class:`MissingColumnError` for the first column that a reward needs and the rows lack."""
    columns = [name for name in rows.column_names if name != "prompt"]
    needed = [
        (leaf.name, column)
        for reward in adapter.runtime.rewards.values()
        for leaf in leaves_of(reward)
        for column in leaf.spec.required_columns
    ]
    for name, column in needed:
        if column not in columns:
            near = difflib.get_close_matches(column, columns, n=2)
            has = ", ".join(map(repr, columns)) or "none"
            hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"it has {has}"
            raise MissingColumnError(f"reward {name!r} needs column {column!r}, which the {what} lacks; {hint}")


def _check_template(config: GRPOConfig, loaded: Loaded, rows: Dataset) -> None:
    if is_conversational(rows) and not loaded.tokenizer.chat_template:
        raise DataError(
            f"the prompts are chat messages, but base_model={config.base_model!r} has no chat template; "
            "give prompts as strings, or take an instruction-tuned model"
        )


def _check_targets(config: GRPOConfig, loaded: Loaded) -> None:
    """Raise for a target that no layer of the model has; PEFT passes over one beside others that fit."""
    layers = {f".{name}": getattr(module, "weight", None) for name, module in loaded.model.named_modules()}
    for target in config.target_modules or ():
        if not any(name.endswith(f".{target}") for name in layers):
            matrices = (name for name, weight in layers.items() if weight is not None and weight.ndim > 1)
            known = sorted({name.rpartition(".")[2] for name in matrices})
            near = difflib.get_close_matches(target, known, n=2)
            hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"it has {', '.join(known)}"
            raise ConfigError(f"target_modules: {config.base_model!r} has no layer {target!r}; {hint}")


def _checkpoint(output_dir: Path, resume: bool | str | Path) -> Path | None:
    """Gives the checkpoint to go on from. One without its state, which is written last, was never finished."""
    if isinstance(resume, bool):
        whole = [place.parent for place in output_dir.glob("checkpoint-*/trainer_state.json")] if resume else []
        return max((place for place in whole if _step_of(place) >= 0), key=_step_of, default=None)
    if not (Path(resume) / "trainer_state.json").is_file():
        raise ConfigError(f"resume={str(resume)!r}: there is no checkpoint in it (no trainer_state.json)")
    return Path(resume)


def _state(checkpoint: Path) -> dict[str, Any]:
    try:
        state: dict[str, Any] = json.loads((checkpoint / "trainer_state.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as reason:
        raise ConfigError(f"{checkpoint}: its trainer_state.json cannot be read: {reason}") from reason
    return state


def _step_of(checkpoint: Path) -> int:
    step = checkpoint.name.removeprefix("checkpoint-")
    return int(step) if step.isdecimal() else -1


def _save_interrupted(trainer: GRPOTrainer, output_dir: Path) -> None:
    """Leave a checkpoint of the last whole step, unless there is one."""
    step = trainer.state.global_step
    if step == 0 or (output_dir / f"checkpoint-{step}" / "trainer_state.json").is_file():
        return
    try:
        # Not public, but what the public ways to save leave out (optimizer, scheduler, random states) is
        # what resuming needs, and a callback's request to save is only heard at the end of the next step.
        trainer._save_checkpoint(trainer.model, trial=None)  # type: ignore[no-untyped-call]
    except Exception:  # the interrupt is what the caller must see
        _log.exception("interrupted after step %d, and its checkpoint could not be saved", step)
