"""A trained reward model as a reward, whose settings pickle and whose weights load once: :class:`RewardModelReward`."""

from __future__ import annotations

import asyncio
import functools
import hashlib
import logging
import math
import os
import threading
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, get_args

from builtin_rewards.reading.thoughts import Shows
from builtin_rewards.reward_model.batcher import Batcher
from builtin_rewards.reward_model.description import DESCRIPTION_FILE, Aggregation
from builtin_rewards.reward_model.encoding import TextForm
from builtin_rewards.reward_model.loading import DTYPES, check_folder
from builtin_rewards.reward_model.model_reward import ModelFunction, ModelReward, check_choice, rebuild
from builtin_rewards.reward_model.scorer import (
    NORMALIZATIONS,
    REDUCTIONS,
    TRUNCATIONS,
    ModelScorer,
    ScorerSettings,
    Text,
    TextScore,
    reference_of,
)
from rewardkit import ConfigError, DataError, InfrastructureError, RewardOptions, Rollout, Score
from rewardkit.extending import ColumnValueError, build_coercer

TIMEOUT_S = 300.0  # Seconds that a call may take: it waits for those before it
LOAD_TIMEOUT_S = 900.0  # Seconds that loading may take: tens of gigabytes from a slow disk
CONCURRENCY = 512  # Calls in flight at once: what batches are made of
_log = logging.getLogger("rewardkit")
_STEPS = ("separator", "turns", "whole")
_list_of_texts = build_coercer(list[str])


@dataclass(frozen=True, eq=False)
class ScoringFunction(ModelFunction):
    """The function of a loaded reward model: its settings, and how long a call may wait for a batch."""

    settings: ScorerSettings
    wait_ms: float
    steps_column: str | None = None

    @property
    def hints(self) -> dict[str, Any]:
        column = {} if self.steps_column is None else {self.steps_column: list[str]}
        return {**super().hints, **column}

    @property
    def version(self) -> str:
        """The settings with the weights' sizes and times of change, and what is written beside them."""
        digest = hashlib.sha256(self.key.encode())
        for folder in self.settings.folders:
            for path in sorted({*folder.path.glob("*.*"), *folder.base.glob("*.*")}):
                small = path.suffix in (".json", ".jinja", ".txt")
                digest.update(path.name.encode() + (path.read_bytes() if small else _digest_part(path)))
        return digest.hexdigest()

    @functools.cached_property
    def key(self) -> str:
        """What two rewards that share their loaded models have in common."""
        settings = asdict(self.settings)
        return repr((sorted((name, repr(value)) for name, value in settings.items()), self.steps_column))

    def load(self) -> None:
        """Load the models, so that a fault of theirs is reported before the first call."""
        self.scorer()

    @property
    def load_timeout_s(self) -> float:
        return LOAD_TIMEOUT_S

    def scorer(self) -> ModelScorer:
        """Return the loaded models: those of an equal reward in this process, where there is one."""
        return _models.scorer(self)

    async def __call__(self, **columns: Any) -> Score | None:
        steps = columns[self.steps_column] if self.steps_column else None
        if self.steps_column and steps is None:
            return None
        text = Text(columns.get("prompt", ""), columns["completion"], None if steps is None else tuple(steps))
        score = await asyncio.wrap_future(_models.queue.submit((self, text), self.wait_ms / 1000))
        return Score(score.value, None, score.metrics)


class _Models:
    """The loaded models of this process, and the one queue and thread that score for all of them."""

    def __init__(self, *, lost: bool = False) -> None:
        self.lost = lost  # a fork of a process with models and several threads: torch's did not come along
        self.outlive_fork = True
        self._scorers: dict[str, ModelScorer] = {}
        self._loading = threading.Lock()
        self.queue: Batcher[tuple[ScoringFunction, Text], TextScore] = Batcher(_score_queued)

    @property
    def is_used(self) -> bool:
        """Whether something was loaded, or another thread is about to: a fork would keep its lock for ever."""
        return self.lost or self._loading.locked() or bool(self._scorers) or self.queue.is_used

    def scorer(self, function: ScoringFunction) -> ModelScorer:
        if self.lost:
            raise InfrastructureError(
                f"{function.name}: this process is a fork of one that had loaded a reward model, and no thread came "
                "along; score in the process that loaded it, with a Runtime, or start processes by 'spawn'"
            )
        with self._loading:
            if function.key not in self._scorers:
                self._scorers[function.key] = ModelScorer(function.settings)
            return self._scorers[function.key]


def _score_queued(requests: Sequence[tuple[ScoringFunction, Text]]) -> list[TextScore | Exception]:
    """Return the score of each text by its model, one model after the other; the fault of one is no other's."""
    indices: dict[str, list[int]] = defaultdict(list)
    for index, (function, _) in enumerate(requests):
        indices[function.key].append(index)
    results: dict[int, TextScore | Exception] = {}
    for group in indices.values():
        try:
            scores = requests[group[0]][0].scorer().score([requests[index][1] for index in group])
        except Exception as error:
            scores = [error] * len(group)
        results |= zip(group, scores, strict=True)
    return [results[index] for index in range(len(requests))]


def _has_one_thread() -> bool:
    try:
        return len(os.listdir("/proc/self/task")) == 1
    except OSError:
        return False  # it cannot be known here


_models = _Models()


def _before_fork() -> None:
    """Note whether a child may use the models: it has only the thread that forks."""
    _models.outlive_fork = not _models.is_used or _has_one_thread()


def _in_fork() -> None:
    global _models
    if not _models.outlive_fork:
        _models = _Models(lost=True)


os.register_at_fork(before=_before_fork, after_in_child=_in_fork)


def _digest_part(path: Path) -> bytes:
    """Return what stands for a large file: its size, and its first and last bytes, where training changes weights."""
    size, width = path.stat().st_size, 1 << 16
    with path.open("rb") as file:
        head = file.read(width)
        file.seek(max(0, size - width))
        return b"%d" % size + head + file.read(width)


class RewardModelReward(ModelReward[ScoringFunction]):
    """A trained reward model, or several, whose score is a reward as any other.

    A runtime loads it once, in a worker process of its own, and batches concurrent calls by length. A completion that
    cannot be scored fails; no score is made up. docs/reference/reward_model.md has all options.

    Args:
        path_or_id: A folder that ``rewardkit rm train`` or TRL's ``RewardTrainer`` wrote, a checkpoint or an adapter
            (LoRA), or several: an ensemble, whose adapters of one base share it.
        device: ``"auto"`` takes a GPU where there is one.
        dtype: ``"auto"`` is bfloat16 on a GPU and float32 on a CPU; or a dtype's name.
        max_length: The most tokens; by default those of training.
        truncation: ``"prompt"`` cuts the prompt's beginning, ``"completion"`` then also the completion's end,
            ``"error"`` nothing. What still does not fit fails.
        normalize: ``"reference"`` is the z-score against the stored scores, ``"quantile"`` the share of them below,
            ``"center"`` subtracts their mean; ``None`` is the raw score.
        aggregate: ``"mean"``, ``"min"``, ``"product"`` or ``"last"`` over tokens or steps; by default as trained.
        reduce: ``"mean"``, ``"min"`` or ``"lower"`` (mean - ``spread`` * standard deviation) of an ensemble.
        spread: The factor of ``"lower"``, 0 or more.
        steps: What a step is of a model of steps: a part of the text between separators (``"separator"``), an
            assistant's turn (``"turns"``), or all (``"whole"``, with :func:`~rewardkit.step_reward`).
        step_separator: What stands between steps; by default as trained.
        steps_column: The dataset column with the list of a completion's steps.
        read_at: ``"trained"`` reads the token that transformers reads, the last that is not the checkpoint's padding
            token; ``"last"`` the very last one of the text.
        text_form: ``"chat"`` joins prompt and completion by the chat template, as a pair or as a transcript;
            ``"plain"`` pastes them, as TRL's ``RewardTrainer`` does with rows of text. By default ``"chat"``, but
            ``"plain"`` for another's checkpoint whose tokenizer has neither a template nor marks of pairs.
        shows: ``"answer"`` scores a completion without its thoughts, ``"all"`` with them; by default as trained, which
            is the answer alone unless the training says ``all``.
        pad_token: The padding token, for a tokenizer that names no such token.
        base: The base of an adapter, where it is no longer where its file says.
        token_budget: Tokens of one forward at most; by default 16,384 on a GPU and 2,048 on a CPU.
        wait_ms: Milliseconds without a new call after which a batch begins.
        name: By default the folder's name.
        timeout_s: Seconds of one call, its wait for a batch included.
        default: The score of a call that failed; ``None`` leaves its completion out.
        concurrency: Calls in flight at once.

    Raises:
        ConfigError: There is no such folder, its head is not a reward model's, or an option is wrong.
    """

    def __init__(
        self,
        path_or_id: str | Path | Sequence[str | Path],
        *,
        device: str = "auto",
        dtype: str = "auto",
        max_length: int | None = None,
        truncation: str = "prompt",
        normalize: str | None = None,
        aggregate: str | None = None,
        reduce: str = "mean",
        spread: float = 1.0,
        steps: str = "separator",
        step_separator: str | None = None,
        steps_column: str | None = None,
        read_at: str = "trained",
        text_form: TextForm | None = None,
        shows: Shows | None = None,
        pad_token: str | None = None,
        base: str | None = None,
        token_budget: int | None = None,
        wait_ms: float = 5.0,
        name: str | None = None,
        timeout_s: float = TIMEOUT_S,
        default: float | None = None,
        concurrency: int = CONCURRENCY,
    ) -> None:
        paths = [path_or_id] if isinstance(path_or_id, str | Path) else list(path_or_id)
        if not paths:
            raise ConfigError("path_or_id=[]: name a reward model's folder, or several")
        check_choice("dtype", dtype, DTYPES)
        check_choice("truncation", truncation, TRUNCATIONS)
        check_choice("normalize", normalize, (None, *NORMALIZATIONS))
        check_choice("aggregate", aggregate, (None, *get_args(Aggregation)))
        check_choice("reduce", reduce, REDUCTIONS)
        check_choice("steps", steps, _STEPS)
        check_choice("read_at", read_at, ("trained", "last"))
        check_choice("text_form", text_form, (None, *get_args(TextForm)))
        check_choice("shows", shows, (None, *get_args(Shows)))
        _check_minimum("max_length", max_length, 1)
        _check_minimum("token_budget", token_budget, 1)
        _check_minimum("wait_ms", wait_ms, 0)
        _check_minimum("spread", spread, 0)
        folders = tuple(check_folder(str(path), base) for path in paths)
        for folder in folders:
            if normalize in ("reference", "quantile"):
                reference_of(folder)
            if text_form is None and not (folder.path / DESCRIPTION_FILE).is_file():
                _warn_of_guess(folder.path)
        settings = ScorerSettings(
            folders=folders, device=device, dtype=dtype, max_length=max_length, pad_token=pad_token,
            truncation=truncation, read_at=read_at, normalize=normalize, aggregate=aggregate, reduce=reduce,
            spread=spread, steps=steps, step_separator=step_separator, token_budget=token_budget,
            text_form=text_form, shows=shows,
        )  # fmt: skip
        options = RewardOptions(
            name=name or folders[0].path.resolve().name, timeout_s=timeout_s, default=default,
            score_range=_range(settings), concurrency=concurrency,
        )  # fmt: skip
        super().__init__(ScoringFunction(options.name, settings, wait_ms, steps_column), options)

    def score_batch(self, rollouts: Sequence[Rollout]) -> list[float | Exception]:
        """Score rollouts in this process, on its device, batched by length, and return their scores in order.

        Where a rollout cannot be scored, the error that tells why stands in the place of its score, with the rollout's
        number as its note: the fault of one costs no other's score, and no score is made up.

        Raises:
            ConfigError: A model cannot be loaded.
            InfrastructureError: This process was forked from one that had loaded a reward model.
        """
        scorer, column = self._scoring.scorer(), self._scoring.steps_column
        texts = [_text_of(rollout, column) for rollout in rollouts]
        scores = iter(scorer.score([text for text in texts if isinstance(text, Text)]))
        results = [text if isinstance(text, Exception) else next(scores) for text in texts]
        return [_value_or_error(result, index) for index, result in enumerate(results)]

    def showing(self, shows: Shows) -> RewardModelReward:
        """Return the same reward, which scores the answer alone or with ``"all"`` thoughts."""
        settings = replace(self._scoring.settings, shows=shows)
        return rebuild(type(self), replace(self._scoring, settings=settings), self.options)


def _text_of(rollout: Rollout, column: str | None) -> Text | DataError:
    """Return a rollout's text, its steps read as a run reads them; an error where it has none or they are no list."""
    if column is None:
        return Text(rollout.prompt, rollout.completion)
    if rollout.example.get(column) is None:
        return DataError(f"it has no steps in the column {column!r} that steps_column names")
    try:
        steps: Any = _list_of_texts(rollout.example[column])
    except ColumnValueError as error:
        return DataError(error.describe(column, None))
    return Text(rollout.prompt, rollout.completion, tuple(steps))


def _value_or_error(result: TextScore | Exception, index: int) -> float | Exception:
    """Return the number of a score; an error with a note of the rollout that it is of."""
    if not isinstance(result, Exception):
        return result.value
    result.add_note(f"in rollout {index}")
    return result


def _range(settings: ScorerSettings) -> tuple[float, float] | None:
    """Return the range of scores: that of probabilities, or none."""
    if settings.normalize is not None:
        return (0.0, 1.0) if settings.normalize == "quantile" else None
    are_probabilities = all(folder.kind in ("orm", "prm") for folder in settings.folders)
    return (0.0, 1.0) if are_probabilities and settings.reduce != "lower" else None


def _warn_of_guess(folder: Path) -> None:
    """Warn of a folder that does not say on which form of rows its model was trained."""
    _log.warning(
        "%s: it does not say on which form of rows it was trained (it has no %s), so the form is a guess: prompt and "
        "completion are joined as the tokenizer joins a chat or a pair, and pasted where it does neither; say so with "
        "text_form='chat', or with text_form='plain' where TRL's RewardTrainer had rows of text, which score otherwise",
        folder, DESCRIPTION_FILE,
    )  # fmt: skip


def _check_minimum(option: str, value: float | None, lowest: int) -> None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if value is not None and (not is_number or value < lowest):
        raise ConfigError(f"{option}={value!r}: expected a number, {lowest} or more")
