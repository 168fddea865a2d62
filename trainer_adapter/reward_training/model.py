"""The model that is trained: a base model with a new head, its tokenizer, and the scores that it gives."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from builtin_rewards.reward_model import Aggregation, EncodedText, ModelKind
from rewardkit import ConfigError
from trainer_adapter.models import check_model, model_folder, needing_extra
from trainer_adapter.objectives import PRM_CLASSES, aggregate

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

DEFAULT_LENGTH = 1024  # The most tokens of a text, unless `max_length` or the model says otherwise
_TOKENS_A_BATCH = 8192
_FEWEST_WORDS = 3  # of no file transformers makes a tokenizer of its special tokens and a mark or two
_RIGHT = PRM_CLASSES.index(1)


class Backbone(NamedTuple):
    """A model with the head of its kind, and its tokenizer."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase


class TextScores(NamedTuple):
    """A model's score of each text, and of models of steps the likeliest class of each step."""

    scores: np.ndarray[Any, Any]  # (N,), in the order of the texts
    step_labels: list[list[int]]  # For each text the labels, +1, 0 or -1, of its steps; empty lists for other kinds


def load_tokenizer(base_model: str) -> PreTrainedTokenizerBase:
    """Return a base model's tokenizer; raise ``ConfigError`` if it is missing, without words or slow."""
    check_model(base_model)
    with needing_extra():
        from transformers import AutoTokenizer
    with _as_config_error(base_model):
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(model_folder(base_model))
    if len(tokenizer) - len(tokenizer.all_special_tokens) < _FEWEST_WORDS:
        raise ConfigError(
            f"base_model={base_model!r}: there is no tokenizer in it, or one without words; save it beside the weights "
            "with save_pretrained"
        )
    if not tokenizer.is_fast:
        raise ConfigError(
            f"base_model={base_model!r}: its tokenizer is a slow one, which does not say where tokens are"
        )
    return tokenizer


def token_limit(base_model: str, max_length: int | None) -> int:
    """Return the most tokens of a text: ``max_length``, or at most 1024; raise if the model has fewer positions."""
    from transformers import AutoConfig

    with _as_config_error(base_model):
        config = AutoConfig.from_pretrained(model_folder(base_model)).get_text_config()
    positions = getattr(config, "max_position_embeddings", None) or max_length or DEFAULT_LENGTH
    if config.model_type in ("roberta", "xlm-roberta", "camembert"):
        positions -= 2  # its positions begin after the padding's
    if max_length is not None and max_length > positions:
        raise ConfigError(
            f"max_length={max_length}: base_model={base_model!r} has places for {positions} tokens at most"
        )
    return max_length or min(DEFAULT_LENGTH, positions)


def load_backbone(base_model: str, kind: ModelKind, tokenizer: PreTrainedTokenizerBase, seed: int) -> Backbone:
    """Return a base model with the head of its kind: new and seeded, unless the checkpoint has one that fits.

    Another head, or weights that are not finite, are refused by name.
    """
    from transformers import AutoModelForSequenceClassification, AutoModelForTokenClassification, set_seed

    tokenwise = kind in ("orm", "prm")
    maker = AutoModelForTokenClassification if tokenwise else AutoModelForSequenceClassification
    labels = len(PRM_CLASSES) if kind == "prm" else 1
    _check_head(base_model, kind, "TokenClassification" if tokenwise else "SequenceClassification")
    set_seed(seed)  # the new head is drawn from it
    with _as_config_error(base_model), _quiet():
        import torch

        model = maker.from_pretrained(model_folder(base_model), num_labels=labels, dtype=torch.float32)
    check_finite(model, f"base_model={base_model!r}")
    model.config.get_text_config().pad_token_id = tokenizer.pad_token_id
    model.config.pad_token_id = tokenizer.pad_token_id
    model.config.problem_type = None
    return Backbone(model, tokenizer)


def _check_head(base_model: str, kind: str, fitting: str) -> None:
    """Raise ConfigError for a classifier of another sort, whose head would be taken though it was trained otherwise."""
    from transformers import AutoConfig

    with _as_config_error(base_model):
        names = AutoConfig.from_pretrained(model_folder(base_model)).architectures or []
    for name in names:
        if name.endswith(("ForTokenClassification", "ForSequenceClassification")) and not name.endswith(fitting):
            raise ConfigError(
                f"base_model={base_model!r}: its head is {name}'s, and kind={kind!r} takes ...For{fitting}; give a "
                "base model without a head, or one of that sort"
            )


def check_finite(model: PreTrainedModel, what: str) -> None:
    """Raise :class:`~rewardkit.ConfigError` for the first weight that has a value which is not finite."""
    for name, weight in model.named_parameters():
        if not bool(weight.isfinite().all()):
            raise ConfigError(f"{what}: the weight {name} has values that are not finite (nan or inf)")


def score_texts(
    model: PreTrainedModel, kind: ModelKind, texts: Sequence[EncodedText], pad_id: int, how: Aggregation | None
) -> TextScores:
    """Return a model's scores of texts, in evaluation mode and without gradients, batched by length.

    The score is a logit of ``bradley_terry`` and ``plackett_luce``, and a probability of being right, 0 to 1, of
    ``orm`` (over the completion's tokens) and ``prm`` (over its steps), which ``how`` makes one of.
    """
    import torch

    scores = np.full(len(texts), np.nan)  # a text that no batch reached would show
    labels: list[list[int]] = [[] for _ in texts]
    was_training = model.training  # the caller may go on training
    model.train(False)
    try:
        with torch.inference_mode():
            for batch in _by_length(texts):
                logits = _logits(model, [texts[index] for index in batch], pad_id)
                for index, row in zip(batch, logits, strict=True):
                    scores[index], labels[index] = _read_out(kind, row, texts[index], how)
    finally:
        model.train(was_training)
    return TextScores(scores, labels)


def _read_out(
    kind: ModelKind, logits: torch.Tensor, text: EncodedText, how: Aggregation | None
) -> tuple[float, list[int]]:
    """Return a text's score, and of a model of steps each step's likeliest label."""
    if kind in ("bradley_terry", "plackett_luce"):
        return float(logits[0]), []
    if kind == "orm":
        probabilities = logits[text.prompt_length : len(text.ids), 0].sigmoid()
        return _one_score(probabilities, how), []
    steps = logits[list(text.step_ends)]
    likeliest = [PRM_CLASSES[index] for index in steps.argmax(-1).tolist()]
    return _one_score(steps.softmax(-1)[:, _RIGHT], how), likeliest


def _one_score(probabilities: torch.Tensor, how: Aggregation | None) -> float:
    """Return the one score of a text's probabilities: their mean, unless ``how`` says otherwise."""
    rows = np.asarray(probabilities.double().cpu())[None, :]
    return float(aggregate(rows, np.ones_like(rows), how or "mean")[0])


def _logits(model: PreTrainedModel, texts: Sequence[EncodedText], pad_id: int) -> Any:
    """Return the logits of texts, padded on the right: (N, labels), or (N, L, labels) of a model of tokens."""
    import torch

    width = max(len(text.ids) for text in texts)
    ids = torch.tensor([[*text.ids, *[pad_id] * (width - len(text.ids))] for text in texts], device=model.device)
    mask = torch.tensor([[1] * len(text.ids) + [0] * (width - len(text.ids)) for text in texts], device=model.device)
    return model(input_ids=ids, attention_mask=mask).logits.float().cpu()


def _by_length(texts: Sequence[EncodedText]) -> Iterator[list[int]]:
    """Yield the indices of texts in batches of like lengths, each of some eight thousand tokens at most."""
    order = sorted(range(len(texts)), key=lambda index: -len(texts[index].ids))
    while order:
        size = max(1, _TOKENS_A_BATCH // len(texts[order[0]].ids))
        yield order[:size]
        order = order[size:]


@contextlib.contextmanager
def _as_config_error(base_model: str) -> Iterator[None]:
    from safetensors import SafetensorError

    try:
        yield
    except (OSError, ValueError, RuntimeError, KeyError, SafetensorError) as reason:
        message = " ".join(str(reason).split())
        if "mismatch" in message:
            message = f"its head has another number of outputs; give a base model without one ({message[:300]})"
        raise ConfigError(f"base_model={base_model!r}: cannot be loaded: {message}") from reason


@contextlib.contextmanager
def without_bars() -> Iterator[None]:
    """Keep transformers from drawing bars for the weights that it reads and writes; downloads keep the hub's bar."""
    with needing_extra():
        from huggingface_hub import utils
        from transformers.utils import logging
    bars: Any = logging
    hub: Any = utils
    has_bars, has_hub_bars = bars.is_progress_bar_enabled(), not hub.are_progress_bars_disabled()
    bars.disable_progress_bar()
    if has_hub_bars:
        hub.enable_progress_bars()
    try:
        yield
    finally:
        if has_bars:
            bars.enable_progress_bar()
            if not has_hub_bars:
                hub.disable_progress_bars()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep transformers from warning that the head is new, which it is meant to be."""
    logger = logging.getLogger("transformers")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
