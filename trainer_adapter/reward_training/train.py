"""The training of a reward model, from rows to a folder of weights with a card of what is known of them.

Rows, lengths and tokens are checked before the model loads. :mod:`trainer_adapter.reward_training.trainer` trains.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import rewardkit
from builtin_rewards.reward_model import RewardModelDescription, ScoreReference, read_description, write_description
from rewardkit import ConfigError
from rewardkit.extending import InvalidRows
from trainer_adapter.reward_training.batches import EncodedGroup, Fitted, fit_groups, padding_id
from trainer_adapter.reward_training.figures import (
    RESAMPLES,
    HeldOutFigure,
    as_plain,
    outcome_figures,
    pair_figures,
    step_figures,
)
from trainer_adapter.reward_training.model import (
    TextScores,
    check_finite,
    load_backbone,
    load_tokenizer,
    score_texts,
    token_limit,
    without_bars,
)
from trainer_adapter.reward_training.reading import HeldOut, read_groups, split_groups
from trainer_adapter.reward_training.reward_model_config import RewardModelConfig
from trainer_adapter.reward_training.run_pairs import pairs_from_run
from trainer_adapter.reward_training.state import begin, counts_of, end, identity_of
from trainer_adapter.run_identity import counted, is_first_process
from trainer_adapter.trl_settings import check_settings

if TYPE_CHECKING:
    from transformers import PreTrainedModel, TrainerCallback

_log = logging.getLogger("trainer_adapter")
_REFERENCES = 2000  # Enough for quantiles; scoring all that was trained on would take long
_MEANINGS = {
    "accuracy": "share ordered or judged rightly; a tie is no win",
    "auc": "chance that a right completion scores above a wrong one",
    "brier": "mean squared distance of probability and outcome",
    "ece": "expected calibration error",
    "margin": "mean score of chosen less rejected",
    "right_f1": "F1 of finding right steps",
    "step_accuracy": "share of steps labelled rightly",
    "step_f1": "F1 of finding wrong steps",
    "tie_rate": "share of pairs with equal scores",
}


@dataclass(frozen=True, slots=True)
class RewardModelResult:
    """What a training made.

    Attributes:
        folder: The weights, the tokenizer, ``reward_model.json`` and the model card.
        kind: What the model learned.
        steps: Optimizer steps done, including those before a resumed checkpoint.
        seconds: Seconds of this call's training, without loading and measuring.
        training_prompts: Prompts trained on.
        heldout_prompts: Prompts measured on.
        prompts_cut: Completions whose prompt was cut at its beginning to fit.
        completions_dropped: Completions left out because they do not fit without their prompt.
        rows_dropped: Rows left out because they could not be read or made tokens, with ``invalid_rows="drop"``.
        figures: On held-out prompts, by name; empty where nothing was held out.
        reference: Scores of held-out completions, or of trained ones where nothing was held out.
        log_history: The trainer's metrics, a dictionary for each log entry.
        already_finished: Whether the training had ended before, so that nothing was run.
    """

    folder: Path
    kind: str
    steps: int
    seconds: float
    training_prompts: int
    heldout_prompts: int
    prompts_cut: int
    completions_dropped: int
    figures: Mapping[str, HeldOutFigure]
    reference: ScoreReference
    rows_dropped: int = 0
    log_history: Sequence[Mapping[str, Any]] = ()
    already_finished: bool = False


@dataclass(frozen=True, slots=True)
class _Prepared:
    training: Fitted
    measured: Fitted | None
    tokenizer: Any
    max_length: int
    pad_id: int


def train_reward_model(
    config: RewardModelConfig, *, callbacks: Iterable[TrainerCallback] = (), resume: bool = True
) -> RewardModelResult:
    """Train a reward model and measure it on held-out prompts.

    Prints nothing but the hub's bar of a download: pass a callback, such as transformers' ``ProgressCallback``, to
    watch. A training that was killed goes on from its last checkpoint when it is started again in the same way, and
    ends with the same weights (bit for bit where torch has the same number of threads: sums split otherwise round
    otherwise). Processes of torchrun or accelerate train together, and the first of them writes.

    Args:
        config: Data, base model and hyperparameters.
        callbacks: Further transformers callbacks.
        resume: Whether a training that the output folder holds goes on; ``False`` starts anew.

    Raises:
        ConfigError: The model cannot be loaded or does not fit, the folder holds another training, or the loss left
            the finite numbers.
        DataError: A row is wrong, or none is left; names row and column.
        ModuleNotFoundError: The extra ``train`` is not installed.
        RecordError: A run's record cannot be read.
    """
    with without_bars():
        return _train(config, list(callbacks), resume)


def _train(config: RewardModelConfig, callbacks: list[TrainerCallback], resume: bool) -> RewardModelResult:
    """Train, measure and describe a model; return what is known already where the training has ended."""
    check_settings("RewardConfig", config.trl)
    invalid = InvalidRows(config.invalid_rows)
    split = _read(config, invalid)
    prepared = _prepare(config, split, invalid)
    folder = config.output_dir
    identity = identity_of(config, [*split.training, *split.measured])
    start = begin(folder, identity, resume)
    if start.ended:
        return _result_of(folder, config)
    if start.checkpoint is not None:
        _log.info("goes on from %s", start.checkpoint)
    from trainer_adapter.reward_training.trainer import make_trainer

    backbone = load_backbone(config.base_model, config.kind, prepared.tokenizer, config.seed)
    trainer = make_trainer(config, backbone, prepared.training.groups, callbacks)
    start_s = time.monotonic()
    trainer.train(resume_from_checkpoint=None if start.checkpoint is None else str(start.checkpoint))
    seconds = time.monotonic() - start_s
    trained: Any = trainer.model
    check_finite(trained, "the trained model: lower learning_rate")  # before weights that give nan are saved
    trainer.save_model(str(folder))
    figures, reference = _measure(config, prepared, trained)
    result = RewardModelResult(
        folder=folder,
        kind=config.kind,
        steps=trainer.state.global_step,
        seconds=seconds,
        training_prompts=_prompts(prepared.training.groups),
        heldout_prompts=_prompts(prepared.measured.groups) if prepared.measured else 0,
        prompts_cut=prepared.training.prompts_cut,
        completions_dropped=prepared.training.completions_dropped,
        rows_dropped=invalid.count,
        figures=figures,
        reference=reference,
        log_history=list(trainer.state.log_history),
    )
    if is_first_process():
        _describe(config, prepared, result)
    names = ("steps", "training_prompts", "heldout_prompts", "prompts_cut", "completions_dropped", "rows_dropped")
    end(folder, identity, {name: getattr(result, name) for name in names})
    return result


def _read(config: RewardModelConfig, invalid: InvalidRows) -> HeldOut:
    """Return the groups to train on and to measure on."""
    options: dict[str, Any] = {
        "step_separator": config.step_separator,
        "group_size": config.group_size,
        "invalid": invalid,
    }
    source = config.dataset
    if (pairs := config.from_run) is not None:
        source = pairs_from_run(pairs.run, pairs.reward, min_gap=pairs.min_gap, pairs_per_group=pairs.pairs_per_group)
    groups = read_groups(config.kind, source, **options)
    if config.eval_dataset is None:
        return split_groups(groups, config.holdout, config.seed)
    measured = read_groups(config.kind, config.eval_dataset, **options, what="eval_dataset")
    shared = {group.key for group in groups} & {group.key for group in measured}
    if shared:
        _log.warning("%s of eval_dataset are in dataset, too: figures on them flatter", counted(len(shared), "prompt"))
    return HeldOut(groups, measured)


def _prepare(config: RewardModelConfig, split: HeldOut, invalid: InvalidRows) -> _Prepared:
    """Return the groups as tokens, with all that can be checked without the model's weights."""
    tokenizer = load_tokenizer(config.base_model)
    length = token_limit(config.base_model, config.max_length)
    refuse = config.over_long == "refuse"
    options: dict[str, Any] = {"refuse": refuse, "invalid": invalid, "shows": config.shows}
    training = fit_groups(tokenizer, split.training, length, **options)
    measured = fit_groups(tokenizer, split.measured, length, **options) if split.measured else None
    if invalid.count:
        _log.warning("%s left out as they are invalid; the first: %s", counted(invalid.count, "row"), invalid.first)
    for name, fitted in (("training", training), ("held-out", measured)):
        if fitted is not None and fitted.completions_dropped:
            _log.warning(
                "%s of the %s rows do not fit into %d tokens without their prompt and are left out",
                counted(fitted.completions_dropped, "completion"), name, length,
            )  # fmt: skip
    groups: list[EncodedGroup] = [*training.groups, *(measured.groups if measured else ())]
    pad_id = padding_id(tokenizer, groups, config.pad_token)
    return _Prepared(training, measured, tokenizer, length, pad_id)


def _measure(
    config: RewardModelConfig, prepared: _Prepared, model: PreTrainedModel
) -> tuple[dict[str, HeldOutFigure], ScoreReference]:
    """Return the figures on held-out prompts, and the reference of scores."""
    groups = prepared.measured.groups if prepared.measured else prepared.training.groups[:_REFERENCES]
    texts = [text for group in groups for text in group.texts]
    scores = score_texts(model, config.kind, texts, prepared.pad_id, config.aggregation)
    source = "completions of held-out prompts" if prepared.measured else "completions trained on: nothing was held out"
    reference = ScoreReference.of(scores.scores, source)
    return (_figures(config, groups, scores) if prepared.measured else {}), reference


def _figures(config: RewardModelConfig, groups: Sequence[EncodedGroup], scores: TextScores) -> dict[str, HeldOutFigure]:
    """Return the figures of the model's kind; ``scores`` are of the groups' texts, one group after another."""
    if config.kind == "prm":
        return step_figures(groups, scores, seed=config.seed)
    ends = np.cumsum([len(group.texts) for group in groups])
    by_group = np.split(scores.scores, ends[:-1])
    figures = outcome_figures if config.kind == "orm" else pair_figures
    return figures(groups, by_group, bins=config.bins, seed=config.seed)


def _describe(config: RewardModelConfig, prepared: _Prepared, result: RewardModelResult) -> None:
    """Write ``reward_model.json`` and the model card beside the weights."""
    is_of_pairs = config.kind in ("bradley_terry", "plackett_luce")
    description = RewardModelDescription(
        kind=config.kind,
        rewardkit=rewardkit.__version__,
        max_length=prepared.max_length,
        base=config.base_model,
        step_separator=config.step_separator,
        shows=config.shows,
        aggregate=config.aggregation,
        reference=result.reference,
        center=result.reference.mean if is_of_pairs else 0.0,
        evaluation=as_plain(result.figures),
    )
    facts = {
        "trained prompts": f"{result.training_prompts:,}",
        "held-out prompts": f"{result.heldout_prompts:,}",
        "optimizer steps": f"{result.steps:,}",
        "prompts cut at their beginning": f"{result.prompts_cut:,}",
        "completions left out as too long": f"{result.completions_dropped:,}",
        "rows left out as invalid": f"{result.rows_dropped:,}",
        "adapter": config.adapter or "none: all weights",
        "seed": str(config.seed),
    }
    _write_card(config.output_dir, description, result.figures, facts)
    write_description(config.output_dir, description)


def _result_of(folder: Path, config: RewardModelConfig) -> RewardModelResult:
    """Return the result of a training that has ended, from its folder."""
    description = read_description(folder)
    if description is None or description.reference is None:
        raise ConfigError(f"{folder}: the training in it ended, but its reward_model.json is gone; use --no-resume")
    figures = {name: HeldOutFigure(**values) for name, values in description.evaluation.items()}
    return RewardModelResult(
        folder=folder, kind=config.kind, seconds=0.0, figures=figures, reference=description.reference,
        already_finished=True, **counts_of(folder),
    )  # fmt: skip


def _prompts(groups: Sequence[EncodedGroup]) -> int:
    return len({group.group.key for group in groups})


def _write_card(
    folder: Path, description: RewardModelDescription, figures: Mapping[str, HeldOutFigure], facts: Mapping[str, str]
) -> Path:
    """Write the model's card and return its path; ``facts`` are further lines of the first table, by name."""
    rows = {
        "kind": description.kind,
        "base model": description.base,
        "max_length": str(description.max_length),
        **facts,
    }
    lines = [
        "---", "library_name: transformers", "tags: [reward-model, rewardkit]", "---", "",
        f"# Reward model ({description.kind})", "",
        f"Trained by rewardkit {description.rewardkit} on TRL's RewardTrainer.", "",
        "| | |", "|---|---|", *(f"| {name} | {_cell(value)} |" for name, value in rows.items()), "",
        "## Held-out prompts", "",
    ]  # fmt: skip
    if figures:
        lines += [
            f"95 % intervals by a bootstrap over prompts ({RESAMPLES:,} resamples).", "",
            "| figure | value | of | meaning |", "|---|---|---|---|",
            *(f"| {name} | {x} | {x.of:,} | {_MEANINGS.get(name, '')} |" for name, x in figures.items()), "",
        ]  # fmt: skip
    else:
        lines += ["Nothing was held out, so nothing is known of its accuracy.", ""]
    if (reference := description.reference) is not None:
        lines += [
            "## Scores", "",
            f"Of {reference.count:,} completions ({reference.source}): mean {reference.mean:.4g}, "
            f"standard deviation {reference.std:.4g}, median {reference.quantiles[50]:.4g}, "
            f"from {reference.quantiles[0]:.4g} to {reference.quantiles[-1]:.4g}.", "",
        ]  # fmt: skip
    lines += [
        "## Limits", "",
        "It is right about texts like those it was trained on. A policy that is trained against it leaves them, so",
        "its accuracy on the policy's own completions is to be measured again during training.", "",
    ]  # fmt: skip
    path = folder / "README.md"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def _cell(value: str) -> str:
    return value.replace("|", "\\|").replace("\n", "\\n")
