"""GRPO from a configuration: checks everything that can be checked cheaply, then trains with TRL.

Rewards and dataset are checked before the model loads, because a model can take minutes.
"""

from __future__ import annotations

import difflib
import logging
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rewardkit import ConfigError, DataError, RewardFunctionsConfig, overlap
from trainer_adapter.config import GRPOConfig
from trainer_adapter.credit import crediting
from trainer_adapter.dataset import Source, read_dataset
from trainer_adapter.environment_values import check_workspaces
from trainer_adapter.grpo import BatchTiming, RewardAdapter
from trainer_adapter.handover import check_columns
from trainer_adapter.models import Loaded, check_model, contiguous_lm_head, load_model, needing_extra
from trainer_adapter.resuming import STATE, Start, choose_start, state_of
from trainer_adapter.run_identity import RunIdentity, counted, identity_of, own_rank, read_identity, write_identity
from trainer_adapter.trl_settings import check_settings, make_config

if TYPE_CHECKING:
    from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
    from trl import GRPOTrainer  # type: ignore[attr-defined]  # it is, lazily

    from rewardkit import Recorder
    from rewardkit.changing import RecordPlace
    from trainer_adapter.dataset import Dataset

_log = logging.getLogger("trainer_adapter")


@dataclass(frozen=True, slots=True)
class TrainResult:
    """The result of a run.

    Attributes:
        output_dir: The folder of checkpoints.
        trained: The folder of the adapter, or of the whole model if all its weights were trained.
        steps: Optimizer steps done, including those before a resumed checkpoint.
        log_history: TRL's metrics, a dictionary for each log entry, in order.
        timings: How long the trainer waited for each of this run's last 100,000 scored batches.
        seconds: Seconds of this run's training, without loading.
        already_finished: Whether the run had all its steps before, so that nothing was run.
        record: The folder of the run's record, or its address in a database without a password, which
            ``rewardkit show`` takes; ``None`` where nothing is recorded.
    """

    output_dir: Path
    trained: Path
    steps: int
    log_history: Sequence[dict[str, Any]]
    timings: Sequence[BatchTiming]
    seconds: float
    already_finished: bool = False
    record: RecordPlace | None = None


def train(
    config: GRPOConfig,
    dataset: Source,
    output_dir: str | Path,
    *,
    eval_dataset: Source | None = None,
    callbacks: Iterable[TrainerCallback] = (),
    resume: bool | str | Path = True,
) -> TrainResult:
    """Train a model with GRPO on the configured rewards.

    Prints nothing: pass a callback, such as transformers' ``ProgressCallback``, to watch a run. Ctrl-C leaves a
    checkpoint of the last whole step, which a note of the ``KeyboardInterrupt`` names; the next call goes on from it.
    A call with other rewards, settings or rows than those of the run in the output folder is refused.

    Args:
        config: Model, hyperparameters and rewards.
        dataset: A ``datasets.Dataset``, a list of rows, or a file of rows, with ``prompt`` and the columns that the
            rewards read.
        output_dir: Folder of the checkpoints and of what is trained.
        eval_dataset: Rows to evaluate on, in the same forms.
        callbacks: Further transformers callbacks.
        resume: ``True`` goes on from the last whole checkpoint of the run in ``output_dir``, if there is one;
            ``False`` starts anew; a path goes on from that checkpoint. A run that has all its steps is not run again.

    Raises:
        ConfigError: The model or the checkpoint cannot be loaded, the processes cannot share the batch, or the run in
            ``output_dir`` had other rewards, settings or rows.
        DataError: The dataset is wrong, or too small for one step.
        MissingColumnError: A reward needs a column that the dataset lacks.
        ModuleNotFoundError: The extra ``train`` is not installed.
        RecordError: The record cannot be written.
        RewardError: A reward cannot be loaded, or rewards failed as the configuration forbids.
    """
    output_dir = Path(output_dir)
    check_model(config.base_model)
    check_settings("GRPOConfig", config.trl)
    adapter = _adapter(config)
    called = str(dataset) if isinstance(dataset, str | Path) else "dataset"
    rows, eval_rows = _read(config, adapter, dataset, eval_dataset, called)
    trained = output_dir / ("adapter" if config.adapter else "model")
    start = choose_start(output_dir, trained, identity_of(config, adapter.runtime, rows), resume)
    record = _record_of(config, output_dir)
    if start.finished:
        return _finished(start, trained, output_dir, record)
    _log_start(start, config)
    with adapter:
        writer = _identity_writer(start.identity)
        trainer = _trainer(config, adapter, rows, eval_rows, output_dir, [writer, *callbacks])
        if record is not None:
            adapter.record_in(_recorder(record, config, start, output_dir))
        adapter.attach(trainer)
        seconds = _run(trainer, start, output_dir, resume is True)
        state = trainer.state
        if state.global_step == 0:
            raise DataError(f"{called}: the trainer took no step on its {counted(len(rows), 'row')}; nothing was saved")
        trainer.save_model(str(trained))
        write_identity(output_dir, start.identity.model_copy(update={"finished_steps": state.global_step}))
        log, timings = list(state.log_history), list(adapter.timings)
        return TrainResult(output_dir, trained, state.global_step, log, timings, seconds, record=record)


def _adapter(config: GRPOConfig) -> RewardAdapter:
    same = ("workers", "load_timeout_s", "lane", "ray_address", "partial", "health_every", "on_flag")
    options = {name: getattr(config, name) for name in same}
    return RewardAdapter(config.reward_fns, weights=config.reward_weights, **options)


def _read(
    config: GRPOConfig, adapter: RewardAdapter, dataset: Source, eval_dataset: Source | None, called: str
) -> tuple[Dataset, Dataset | None]:
    """Return the rows to train on and to evaluate on, with the columns that the rewards read."""
    with needing_extra():
        rows = read_dataset(dataset)
        eval_rows = None if eval_dataset is None else read_dataset(eval_dataset, what="evaluation set")
    _check_rows(adapter, rows, "dataset")
    if eval_rows is not None:
        _check_rows(adapter, eval_rows, "evaluation set")
    _check_enough(config, rows, called)
    return rows, eval_rows


def _run(trainer: GRPOTrainer, start: Start, output_dir: Path, resumes: bool) -> float:
    """Train, and return the seconds that it took; an interrupt leaves a checkpoint of the last whole step."""
    write_identity(output_dir, start.identity)
    start_s = time.monotonic()
    try:
        trainer.train(resume_from_checkpoint=None if start.checkpoint is None else str(start.checkpoint))
    except KeyboardInterrupt as stop:
        stop.add_note(_save_interrupted(trainer, start, output_dir, resumes))
        raise
    return time.monotonic() - start_s


def _finished(start: Start, trained: Path, output_dir: Path, record: RecordPlace | None) -> TrainResult:
    """Return the result of a run that already has all its steps."""
    log = [] if start.checkpoint is None else state_of(start.checkpoint)["log_history"]
    folder = trained if trained.is_dir() or start.checkpoint is None else start.checkpoint
    return TrainResult(output_dir, folder, start.steps_done, log, [], 0.0, already_finished=True, record=record)


def _record_of(config: GRPOConfig, output_dir: Path) -> RecordPlace | None:
    """Return the folder of the run's record, or its address; ``None`` where nothing is recorded."""
    from rewardkit.changing import place_of_record  # it brings numpy along

    if isinstance(config.record, bool):
        return place_of_record(output_dir) if config.record else None
    return place_of_record(config.record)


def _recorder(record: RecordPlace, config: GRPOConfig, start: Start, output_dir: Path) -> Recorder:
    """Return what records the run: further in the record of the run that goes on, else in a new one."""
    from rewardkit import Recorder

    goes_on = start.checkpoint is not None and start.checkpoint.resolve().parent == output_dir.resolve()
    fns = config.reward_fns
    return Recorder(
        record,
        append=goes_on,
        anew=not goes_on,
        rank=own_rank(),
        about={"configuration": start.identity.model_dump(exclude={"format"})},
        env=fns.runtime.env if isinstance(fns, RewardFunctionsConfig) else {},
        picture_side=config.picture_side,
    )


def _log_start(start: Start, config: GRPOConfig) -> None:
    """Log that a run goes on, and which of its settings have changed."""
    if not start.changed:
        if start.checkpoint is not None:
            _log.info("goes on from step %s, of %s", f"{start.steps_done:,}", start.checkpoint)
        return
    message = f"goes on from step {start.steps_done:,} with other settings: {'; '.join(start.changed)}"
    schedule = config.trl.get("lr_scheduler_type", config.lr_scheduler_type)
    if any(line.startswith("train_steps") for line in start.changed) and schedule in ("linear", "cosine"):
        message += f"\nfrom here on the learning rate is that of a run of {counted(config.train_steps, 'step')}"
    _log.warning(message)


def _identity_writer(identity: RunIdentity) -> TrainerCallback:
    """Return the callback that writes the run's identity into every checkpoint."""
    from transformers import TrainerCallback

    class IdentityWriter(TrainerCallback):
        def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object) -> None:
            assert args.output_dir is not None
            write_identity(Path(args.output_dir) / f"checkpoint-{state.global_step}", identity)

    return IdentityWriter()


def _trainer(
    config: GRPOConfig,
    adapter: RewardAdapter,
    rows: Dataset,
    eval_rows: Dataset | None,
    output_dir: Path,
    callbacks: Iterable[TrainerCallback],
) -> GRPOTrainer:
    """Return TRL's trainer with model, rewards and callbacks in place."""
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
    arguments |= check_settings("GRPOConfig", config.trl) | {"reward_weights": adapter.weights}
    trainer_config = make_config(TrainerConfig, arguments)
    lora = config.to_peft()
    loaded = load_model(config.base_model, config.base_dtype, on_cpu=arguments["use_cpu"])
    _check_loaded(config, loaded, rows)
    if arguments["use_cpu"]:
        contiguous_lm_head(loaded.model)
    trainer_class = GRPOTrainer
    choices: dict[str, Any] = {}
    if config.overlap:
        choices["rollout_func"] = overlap(adapter, waves=config.overlap)
    if crediting(adapter.runtime.rewards):
        from trainer_adapter.credit_trainer import TurnCreditTrainer

        trainer_class = TurnCreditTrainer
        choices |= {name: getattr(config, f"turn_{name}") for name in ("normalize", "returns", "discount")}
    trainer = trainer_class(
        model=loaded.model,
        processing_class=loaded.tokenizer,
        reward_funcs=adapter.reward_funcs,
        args=trainer_config,
        train_dataset=rows,
        eval_dataset=eval_rows,
        peft_config=None if lora is None else LoraConfig(**lora),
        callbacks=[adapter.callback, *callbacks],
        **choices,
    )
    trainer.remove_callback(PrinterCallback)
    return trainer


def _check_rows(adapter: RewardAdapter, rows: Dataset, what: str) -> None:
    """Raise where a reward needs a column that the rows lack, or cannot take a workspace that they name."""
    rewards = adapter.runtime.rewards.values()
    check_columns(rewards, rows.column_names, what)
    check_workspaces(rewards, rows, what)


def _check_enough(config: GRPOConfig, rows: Dataset, called: str) -> None:
    """Raise if the rows do not make up one step: TRL drops a batch that is not full, and would train nothing."""
    prompts = config.effective_batch_size // config.num_generations
    if len(rows) < prompts:
        raise DataError(
            f"{called}: {counted(len(rows), 'row')}, but a step takes {prompts:,} prompts (effective_batch_size "
            f"{config.effective_batch_size} / num_generations {config.num_generations}); "
            "give more rows, or make the batch smaller"
        )


def _check_loaded(config: GRPOConfig, loaded: Loaded, rows: Dataset) -> None:
    """Raise if chat prompts meet a model without a template, or a target names no layer, which PEFT may ignore."""
    if not isinstance(rows[0]["prompt"], str) and not loaded.tokenizer.chat_template:
        raise DataError(
            f"the prompts are chat messages, but base_model={config.base_model!r} has no chat template; "
            "give prompts as strings, or take an instruction-tuned model"
        )
    layers = {f".{name}": getattr(module, "weight", None) for name, module in loaded.model.named_modules()}
    for target in config.target_modules or ():
        if not any(name.endswith(f".{target}") for name in layers):
            matrices = (name for name, weight in layers.items() if weight is not None and weight.ndim > 1)
            names = sorted({name.rpartition(".")[2] for name in matrices})
            near = difflib.get_close_matches(target, names, n=2)
            hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"it has {', '.join(names)}"
            raise ConfigError(f"target_modules: {config.base_model!r} has no layer {target!r}; {hint}")


def _save_interrupted(trainer: GRPOTrainer, start: Start, output_dir: Path, resumes: bool) -> str:
    """Save a checkpoint of the last whole step, and return a message that says where the next start goes on."""
    step = trainer.state.global_step or start.steps_done
    if step == 0:
        return "stopped before the first step was done; a new start begins at the beginning"
    stopped = f"stopped after step {step:,}"
    if step == start.steps_done:
        return f"{stopped}; started again in the same way, it goes on from {start.checkpoint}"
    checkpoint = output_dir / f"checkpoint-{step}"
    try:
        written = read_identity(checkpoint) if (checkpoint / STATE).is_file() else None
        if written is None or written.run != start.identity.run:  # else the trainer has just saved it
            # Not public. But the public ways leave out what resuming needs (optimizer, scheduler, random states),
            # and a callback's request to save takes effect only at the end of the next step.
            trainer._save_checkpoint(trainer.model, trial=None)  # type: ignore[no-untyped-call]
            write_identity(checkpoint, start.identity)
    except Exception:  # the interrupt is what the caller must see
        _log.exception("interrupted after step %d, and its checkpoint could not be saved", step)
        return (
            f"{stopped}, which could not be saved; a new start goes on from the checkpoint before it, if there is one"
        )
    how = "in the same way" if resumes else "to resume"
    return f"{stopped}; started again {how}, it goes on from {checkpoint}"
