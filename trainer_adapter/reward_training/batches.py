"""Groups as tokens, and batches of whole groups as tensors.

A batch holds whole groups, so all pairs of a prompt are in one batch and a completion that several pairs share is read
once. N counts the completions of a batch, L is its padded length, P counts its groups, K the completions of the
largest one, M its pairs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from builtin_rewards.reward_model import EncodedText, ModelKind, Shows, encode_text
from rewardkit import ConfigError, DataError
from rewardkit.extending import InvalidRows
from trainer_adapter.objectives import orm_labels, prm_labels
from trainer_adapter.reward_training.reading import LabelledGroup, Pair

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class EncodedGroup:
    """A group with the tokens of its completions; a completion that did not fit is in neither."""

    group: LabelledGroup
    texts: tuple[EncodedText, ...]


class Fitted(NamedTuple):
    """Groups that fit, and what was cut or left out so that they do."""

    groups: list[EncodedGroup]  # What is trained on
    prompts_cut: int  # Completions whose prompt lost its beginning
    completions_dropped: int  # Completions left out because they do not fit without their prompt
    groups_dropped: int  # Groups left out because of that: no pair, ranking or completion was left


def fit_groups(
    tokenizer: PreTrainedTokenizerBase,
    groups: Sequence[LabelledGroup],
    max_length: int,
    *,
    refuse: bool = False,
    invalid: InvalidRows | None = None,
    shows: Shows = "answer",
) -> Fitted:
    """Return groups as tokens, of which no text has more than ``max_length``; thoughts only with ``shows="all"``.

    A prompt is cut at its beginning. A completion that does not fit without it is left out, or a DataError. One that
    cannot be made tokens is a DataError, unless ``invalid`` leaves its rows out.
    """
    encoded: list[EncodedGroup] = []
    invalid = invalid or InvalidRows()
    prompts_cut = completions_dropped = groups_dropped = 0
    for whole in groups:
        group, texts = _encode_group(tokenizer, whole, max_length, invalid, shows)
        if group is None:
            continue
        fits = [index for index, text in enumerate(texts) if not text.excess]
        if refuse and len(fits) < len(texts):
            index, text = next((index, text) for index, text in enumerate(texts) if text.excess)
            raise DataError(
                f"{group.where}: completion {index} has {text.excess} tokens too many for max_length={max_length} even "
                "without its prompt; raise max_length, leave the row out, or set over_long: drop"
            )
        completions_dropped += len(texts) - len(fits)
        prompts_cut += sum(bool(texts[index].cut) for index in fits)
        part = _only(group, fits)
        if part is None:
            groups_dropped += 1
        else:
            encoded.append(EncodedGroup(part, tuple(texts[index] for index in fits)))
    if not encoded and not any((completions_dropped, groups_dropped)):
        invalid.check_rest(0, "dataset")
    if not encoded:
        raise DataError(
            f"no row is left: of {len(groups)} groups none has completions that fit into max_length={max_length} "
            "tokens; raise max_length"
        )
    return Fitted(encoded, prompts_cut, completions_dropped, groups_dropped)


def _encode_group(
    tokenizer: PreTrainedTokenizerBase, group: LabelledGroup, max_length: int, invalid: InvalidRows, shows: Shows
) -> tuple[LabelledGroup | None, list[EncodedText]]:
    """Return a group with the tokens of its completions, without those left out; ``None`` where nothing is left."""
    texts: dict[int, EncodedText] = {}
    errors: list[DataError] = []
    for index in range(len(group.completions)):
        try:
            texts[index] = _encode(tokenizer, group, index, max_length, shows)
        except DataError as error:
            errors.append(error)
    rest = _only(group, [*texts])
    if errors:
        lost_pairs = len(group.pairs) - len(rest.pairs if rest else ())
        invalid.add(errors[0], lost_pairs or len(errors))
    return rest, [*texts.values()]


def _encode(
    tokenizer: PreTrainedTokenizerBase, group: LabelledGroup, index: int, max_length: int, shows: Shows
) -> EncodedText:
    steps, completion = group.steps[index] if group.steps else (), group.completions[index]
    try:
        return encode_text(tokenizer, group.prompt, completion, max_length=max_length, steps=steps, shows=shows)
    except DataError as error:
        raise DataError(f"{group.where}: {error}") from error.__cause__


def _only(group: LabelledGroup, indices: Sequence[int]) -> LabelledGroup | None:
    """Return a group with some of its completions; ``None`` where they have nothing to learn from."""
    if len(indices) == len(group.completions):
        return group  # as it is: most groups fit
    new = {old: index for index, old in enumerate(indices)}
    pairs = tuple(
        Pair(new[pair.chosen], new[pair.rejected], pair.margin)
        for pair in group.pairs
        if pair.chosen in new and pair.rejected in new
    )

    def take(values: tuple[_T, ...]) -> tuple[_T, ...]:
        return tuple(values[index] for index in indices if values)

    part = replace(
        group,
        completions=take(group.completions),
        pairs=pairs,
        ranks=take(group.ranks),
        correct=take(group.correct),
        steps=take(group.steps),
        step_labels=take(group.step_labels),
    )
    has_lost_its_pairs = bool(group.pairs) and not pairs
    has_no_ranking = bool(group.ranks) and len(set(part.ranks)) < 2
    return None if not indices or has_lost_its_pairs or has_no_ranking else part


def padding_id(tokenizer: PreTrainedTokenizerBase, groups: Sequence[EncodedGroup], pad_token: str | None) -> int:
    """Return the token to pad with, and set it in the tokenizer: one with which no text ends.

    A sequence classifier of transformers reads the last token that is not the padding token. Where texts end with the
    padding token, as with ``pad = eos``, it would read another place, so another token of the tokenizer's is taken.
    """
    if pad_token is not None:
        if pad_token not in tokenizer.get_vocab():
            raise ConfigError(
                f"pad_token={pad_token!r}: the tokenizer does not know it; name a token of its vocabulary"
            )
        tokenizer.pad_token = pad_token
    if tokenizer.pad_token_id is None:
        tokens = ", ".join(map(repr, tokenizer.all_special_tokens)) or "none"
        raise ConfigError(
            f"the tokenizer has no padding token; name one in pad_token (its special tokens are {tokens})"
        )
    last = {text.ids[-1] for group in groups for text in group.texts}  # where a classifier reads the score
    if tokenizer.pad_token_id in last:
        used = tokenizer.pad_token
        free = [
            token for token, number in zip(tokenizer.all_special_tokens, tokenizer.all_special_ids, strict=True)
            if number not in last
        ]  # fmt: skip
        if not free or pad_token is not None:
            raise ConfigError(
                f"texts end with the padding token {used!r}, so the model would read another place than their end; "
                "name a token that ends no text in pad_token"
            )
        tokenizer.pad_token = free[0]
    return int(tokenizer.pad_token_id)


def batch_of(kind: ModelKind, groups: Sequence[EncodedGroup], pad_id: int) -> dict[str, np.ndarray[Any, Any]]:
    """Return the arrays of a batch, padded on the right.

    Returns:
        ``input_ids``, ``attention_mask`` (N, L) and ``group`` (N,); of pairs ``pairs`` (M, 2), ``pair_group`` (M,) and
        ``margins`` (M,); of rankings ``places`` and ``ranks`` (P, K), ``nan`` where there is no completion; of outcomes
        and steps ``token_labels`` (N, L).
    """
    texts = [text for group in groups for text in group.texts]
    width = max(len(text.ids) for text in texts)
    ids = np.full((len(texts), width), pad_id, dtype=np.int64)
    mask = np.zeros((len(texts), width), dtype=np.int64)
    for row, text in enumerate(texts):
        ids[row, : len(text.ids)] = text.ids
        mask[row, : len(text.ids)] = 1
    sizes = [len(group.texts) for group in groups]
    starts = np.cumsum([0, *sizes[:-1]])
    batch = {"input_ids": ids, "attention_mask": mask, "group": np.repeat(np.arange(len(groups)), sizes)}
    if kind == "bradley_terry":
        batch |= _pairs(groups, starts)
    elif kind == "plackett_luce":
        batch |= _rankings(groups, starts, max(sizes))
    else:
        batch["token_labels"] = token_labels(kind, groups, width)
    return batch


def token_labels(kind: ModelKind, groups: Sequence[EncodedGroup], width: int) -> np.ndarray[Any, Any]:
    """Return the label of each token, (N, width): of outcomes 1, 0 or -100, of steps their class or -100."""
    texts = [text for group in groups for text in group.texts]
    if kind == "prm":
        step_labels = [list(labels) for group in groups for labels in group.group.step_labels]
        return np.asarray(prm_labels([list(text.step_ends) for text in texts], step_labels, width=width))
    lengths = np.asarray([len(text.ids) for text in texts])
    prompts = np.asarray([text.prompt_length for text in texts])
    correct = np.asarray([is_right for group in groups for is_right in group.group.correct])
    return np.asarray(orm_labels(prompts, lengths, correct, width=width))


def _pairs(groups: Sequence[EncodedGroup], starts: Iterable[int]) -> dict[str, Any]:
    """Return the arrays of all pairs, which name completions by their places in the batch."""
    pairs, numbers, margins = [], [], []
    for number, (group, start) in enumerate(zip(groups, starts, strict=True)):
        for pair in group.group.pairs:
            pairs.append((start + pair.chosen, start + pair.rejected))
            numbers.append(number)
            margins.append(pair.margin)
    return {
        "pairs": np.asarray(pairs, dtype=np.int64),
        "pair_group": np.asarray(numbers, dtype=np.int64),
        "margins": np.asarray(margins, dtype=np.float32),
    }


def _rankings(groups: Sequence[EncodedGroup], starts: Iterable[int], width: int) -> dict[str, Any]:
    """Return the places of each group's completions in the batch, and their ranks."""
    places = np.zeros((len(groups), width), dtype=np.int64)
    ranks = np.full((len(groups), width), np.nan, dtype=np.float32)  # nan: no completion stands there
    for row, (group, start) in enumerate(zip(groups, starts, strict=True)):
        size = len(group.texts)
        places[row, :size] = np.arange(start, start + size)
        # Dense whole numbers, because float32 might not tell the ranks of the rows apart.
        ranks[row, :size] = np.unique(np.asarray(group.group.ranks), return_inverse=True)[1]
    return {"places": places, "ranks": ranks}
