"""What scores are made of: tokens in batches of like length, one forward each, and the read-out of the right token."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from builtin_rewards.reading.thoughts import Shows
from builtin_rewards.reward_model.calibration import sigmoids
from builtin_rewards.reward_model.description import DESCRIPTION_FILE, ScoreReference
from builtin_rewards.reward_model.encoding import (
    EncodedText,
    TextForm,
    Turns,
    encode_messages,
    message_text,
    messages_of,
)
from builtin_rewards.reward_model.loading import CheckedFolder, LoadedMember, load_members
from rewardkit import ConfigError, DataError, InfrastructureError

NORMALIZATIONS = ("center", "reference", "quantile")
"""Subtract the mean of training, give the z-score, or the share of the reference that scores lower."""
REDUCTIONS = ("mean", "min", "lower")  # How the scores of several models become one; `lower` is mean - k * std
TOKEN_BUDGETS = {"cuda": 16_384, "cpu": 2_048}
"""Tokens of one forward, by kind of device. Of 512 to 16,384 on a CPU 2,048 took the least time for texts of 5 to 250
words, half of what 16,384 took, whose activations no cache holds."""
TRUNCATIONS = ("prompt", "completion", "error")
"""What is cut of a text that is too long: its prompt's beginning; then also its completion's end; or nothing."""
Logits: TypeAlias = "np.ndarray[Any, Any] | Exception"
"""What a model gives a text: the numbers of its head, or the error in their place."""
_UNREAD = InfrastructureError("the model did not read this text")
_Error = TypeVar("_Error", bound=Exception)


class Text(NamedTuple):
    """A prompt with a completion, and the completion's steps where these are given."""

    prompt: Turns
    completion: Turns
    steps: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class TextScore:
    """The score of a text, and the numbers beside it."""

    value: float
    metrics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ScorerSettings:
    """What a scorer is made of; see :class:`RewardModelReward`, whose options these are."""

    folders: tuple[CheckedFolder, ...]
    device: str = "auto"
    dtype: str = "auto"
    max_length: int | None = None
    pad_token: str | None = None
    truncation: str = "prompt"
    read_at: str = "trained"
    normalize: str | None = None
    aggregate: str | None = None
    reduce: str = "mean"
    spread: float = 1.0
    steps: str = "separator"
    step_separator: str | None = None
    token_budget: int | None = None
    text_form: TextForm | None = None
    shows: Shows | None = None


class ModelScorer:
    """The loaded models of one reward."""

    def __init__(self, settings: ScorerSettings) -> None:
        self.settings = settings
        source = settings.folders, settings.device, settings.dtype, settings.max_length, settings.pad_token
        self.members = load_members(*source)
        # Members that share a base take turns with it: another thread would score with the adapter of this one.
        self._scoring = threading.Lock()

    def score(self, texts: Sequence[Text]) -> list[TextScore | Exception]:
        """Return the score of each text, or the error that tells why it has no score, in order."""
        with self._scoring:
            member_scores = [self._member_scores(member, texts) for member in self.members]
        return [self._reduce_scores(scores) for scores in zip(*member_scores, strict=True)]

    def _member_scores(self, member: LoadedMember, texts: Sequence[Text]) -> list[TextScore | Exception]:
        """Return one model's score of each text, or the error; where the model fails, that of all it was to read."""
        scores: list[TextScore | Exception] = []
        encoded: list[tuple[int, EncodedText]] = []
        for index, text in enumerate(texts):
            row = self._encode_or_error(member, text)
            if isinstance(row, Exception):
                scores.append(row)
            else:
                encoded.append((index, row))
                scores.append(TextScore(math.nan))  # until the model has read it
        logits = self._logits(member, [row for _, row in encoded])
        for (index, row), row_logits in zip(encoded, logits, strict=True):
            scores[index] = self._score_or_error(member, row, row_logits)
        return scores

    def _encode_or_error(self, member: LoadedMember, text: Text) -> EncodedText | Exception:
        """Return the tokens of a text, or the error of whatever refuses it: a text's fault is no other text's."""
        try:
            row = self._encode(member, text)
        except DataError as error:
            return error
        except Exception as error:  # templates, tokenizers and messages of other forms raise what they like
            return _caused_by(error, DataError(f"it cannot be made tokens: {_message(error)}"))
        if max(row.ids) >= member.vocabulary:
            return DataError(
                f"token {max(row.ids)} is beyond the {member.vocabulary} that {member.folder.path} has weights for; "
                "give it the tokenizer that it was trained with"
            )
        return row

    def _score_or_error(self, member: LoadedMember, row: EncodedText, logits: Logits) -> TextScore | Exception:
        """Return a text's score by its logits; the error where the model gave none, or a number that is not finite."""
        if isinstance(logits, Exception):
            return logits
        try:
            score = self._read_score(member, row, logits)
        except Exception as error:
            return _caused_by(error, DataError(f"its score cannot be read: {_message(error)}"))
        if not math.isfinite(score.value):
            return DataError(f"the model gives it the score {score.value}; dtype='float32' has the widest range")
        return score

    def _form_of(self, member: LoadedMember) -> TextForm:
        """Return the form of text that a checkpoint was trained on, or is guessed to be, of which the reward warns."""
        tokenizer = member.tokenizer
        has_chat_form = tokenizer.chat_template or (tokenizer.cls_token is not None and tokenizer.sep_token is not None)
        return "chat" if has_chat_form or (member.folder.path / DESCRIPTION_FILE).is_file() else "plain"

    def _encode(self, member: LoadedMember, text: Text) -> EncodedText:
        """Return the tokens of a text, cut by the rule; raise DataError where it has no content or does not fit."""
        shows = self.settings.shows or member.folder.description.shows
        messages = messages_of(text.prompt, text.completion, shows)
        texts = _assistant_texts(messages.answers)
        if not any(part.strip() for part in texts):
            behind = " behind its thoughts" if messages.thoughts else ""
            fix = "give default= a score for such completions, or filter them"
            raise DataError(f"the completion has no text{behind}; {fix}")
        steps = self._steps(member, text, texts) if member.folder.kind == "prm" else ()
        rule, limit = self.settings.truncation, member.max_length
        form = self.settings.text_form or self._form_of(member)
        row = encode_messages(member.tokenizer, messages, max_length=limit, steps=steps, form=form)
        if row.cut and rule == "error":
            raise DataError(
                f"{len(row.ids) + row.cut} tokens, of which {limit} fit; raise max_length or truncation='prompt'"
            )
        if not row.excess:
            return row
        if rule != "completion" or row.step_ends:
            raise DataError(
                f"the completion alone is {row.excess} tokens longer than the {limit} that fit; raise max_length, "
                "shorten completions, or cut their ends with truncation='completion'"
            )
        prompt_length = min(row.prompt_length, limit - 1)
        return EncodedText(row.ids[:limit], prompt_length, (), row.cut + row.excess, thoughts=row.thoughts)

    def _steps(self, member: LoadedMember, text: Text, texts: list[str]) -> tuple[str, ...]:
        """Return a completion's steps as the settings divide it, no blank ones; raise DataError if none is left."""
        if text.steps is not None:
            steps: Sequence[str] = text.steps
        elif self.settings.steps == "turns":
            steps = texts
        elif self.settings.steps == "whole":
            steps = texts[-1:]
        else:
            separator = self.settings.step_separator or member.folder.description.step_separator
            steps = [step for part in texts for step in part.split(separator)]
        steps = tuple(step for step in steps if step.strip())
        if not steps:
            raise DataError("the completion has no steps; see step_separator and steps")
        return steps

    def _logits(self, member: LoadedMember, rows: Sequence[EncodedText]) -> list[Logits]:
        """Return the logits of each row, in order: (1,) of a sequence head, (length, labels) of a head of tokens.

        Where the model fails on a row, the error stands in their place.
        """
        import torch

        results: list[Logits] = [_UNREAD] * len(rows)
        kind = member.model.device.type
        budget = self.settings.token_budget or TOKEN_BUDGETS.get(kind, TOKEN_BUDGETS["cuda"])
        member.activate()
        with torch.inference_mode():
            for batch in length_batches([len(row.ids) for row in rows], budget):
                logits = self._forward_in_parts(member, [rows[index] for index in batch])
                for index, row_logits in zip(batch, logits, strict=True):
                    results[index] = row_logits
        return results

    def _forward_in_parts(self, member: LoadedMember, rows: Sequence[EncodedText]) -> list[Logits]:
        """Return a batch's logits, in halves where the model fails on all; the error of a row on which it fails alone.

        A row alone has the logits that it has beside others, so that halves change no score.
        """
        import torch

        try:
            return [*self._forward(member, rows)]
        except torch.OutOfMemoryError as error:
            if len(rows) == 1:
                message = f"the device has no memory for a text of {len(rows[0].ids)} tokens: lower max_length"
                return [_caused_by(error, InfrastructureError(message))]
            torch.cuda.empty_cache()
        except Exception as error:
            if len(rows) == 1:
                return [_caused_by(error, InfrastructureError(f"the model failed: {_message(error)}"))]
        half = len(rows) // 2
        return [*self._forward_in_parts(member, rows[:half]), *self._forward_in_parts(member, rows[half:])]

    def _forward(self, member: LoadedMember, rows: Sequence[EncodedText]) -> list[np.ndarray[Any, Any]]:
        """Return a batch's logits, each as :meth:`_logits` returns it."""
        import torch

        model, width = member.classifier, max(len(row.ids) for row in rows)
        padding = member.tokenizer.pad_token_id
        ids = torch.tensor([[*row.ids, *[padding] * (width - len(row.ids))] for row in rows], device=model.device)
        lengths = torch.tensor([len(row.ids) for row in rows], device=model.device)
        mask = (torch.arange(width, device=model.device)[None, :] < lengths[:, None]).long()
        if member.folder.tokenwise:
            logits = model(input_ids=ids, attention_mask=mask).logits.float().cpu().numpy()
            return [row_logits[: len(row.ids)] for row_logits, row in zip(logits, rows, strict=True)]
        head = getattr(model, "score", None)
        if head is None:  # an encoder reads its first token, or all of them by the mask
            return list(model(input_ids=ids, attention_mask=mask).logits.float().cpu().numpy())
        # A decoder's own forward would read the token that transformers chooses.
        hidden = getattr(model, model.base_model_prefix)(input_ids=ids, attention_mask=mask, use_cache=False)[0]
        last = torch.tensor([self._read_position(member, row.ids) for row in rows], device=model.device)
        return list(head(hidden[torch.arange(len(rows), device=model.device), last]).float().cpu().numpy())

    def _read_position(self, member: LoadedMember, ids: Sequence[int]) -> int:
        """Return the index of the token that the head reads: the last, or as in training the last before padding."""
        end = len(ids) - 1
        if self.settings.read_at == "last" or member.pad_id is None:
            return end
        return next((index for index in range(end, -1, -1) if ids[index] != member.pad_id), end)

    def _read_score(self, member: LoadedMember, row: EncodedText, logits: np.ndarray[Any, Any]) -> TextScore:
        """Return a text's score by its logits, normalized as set, and what it was read from as metrics."""
        metrics = {"tokens": float(len(row.ids))}
        if row.cut:
            metrics["cut_tokens"] = float(row.cut)
        if row.thoughts:
            metrics["left_out/thoughts"] = float(row.thoughts)
        if not member.folder.tokenwise:
            value = float(logits[0])
            value = float(sigmoids(np.array(value))) if member.folder.kind == "orm" else value
        else:
            probabilities = _probabilities(member, row, logits.astype(np.float64))
            default = "min" if member.folder.kind == "prm" else "last"
            method = self.settings.aggregate or member.folder.description.aggregate or default
            value = _aggregate(probabilities, method)
            if member.folder.kind == "prm":
                metrics |= {"steps": float(len(probabilities)), "worst_step": float(probabilities.argmin())}
        if self.settings.normalize is None:
            return TextScore(value, metrics)
        return TextScore(normalize_score(value, member.folder, self.settings.normalize), {**metrics, "raw": value})

    def _reduce_scores(self, scores: Sequence[TextScore | Exception]) -> TextScore | Exception:
        """Return the one score of an ensemble's; an error where a member has no score."""
        error = next((score for score in scores if isinstance(score, Exception)), None)
        if error is not None:
            return error
        members = [score for score in scores if isinstance(score, TextScore)]
        if len(members) == 1:
            return members[0]
        values = np.array([score.value for score in members])
        deviation = float(values.std(ddof=1))
        metrics = {f"member/{index}": score.value for index, score in enumerate(members)} | {"std": deviation}
        value = float(values.min() if self.settings.reduce == "min" else values.mean())
        if self.settings.reduce == "lower":
            value -= self.settings.spread * deviation
        return TextScore(value, {**members[0].metrics, **metrics})


def length_batches(lengths: Sequence[int], token_budget: int) -> Iterator[list[int]]:
    """Yield the places of texts in batches of like lengths, longest first, each padded to ``token_budget`` at most."""
    order = sorted(range(len(lengths)), key=lambda index: -lengths[index])
    while order:
        size = max(1, token_budget // max(1, lengths[order[0]]))
        yield order[:size]
        order = order[size:]


def normalize_score(value: float, folder: CheckedFolder, method: str) -> float:
    """Return a score on the scale of its model's reference."""
    if method == "center":
        return value - folder.description.center
    reference = reference_of(folder)
    if method == "reference":
        return (value - reference.mean) / reference.std
    return float(np.interp(value, reference.quantiles, np.linspace(0, 1, len(reference.quantiles))))


def reference_of(folder: CheckedFolder) -> ScoreReference:
    """Return the stored scores that normalize a model's; ConfigError if they are missing or all the same."""
    reference = folder.description.reference
    if reference is None:
        raise ConfigError(
            f"{folder.path}: normalize needs the reference in reward_model.json, which rewardkit rm train writes; "
            "leave normalize out for raw scores"
        )
    if reference.std == 0:
        raise ConfigError(f"{folder.path}: all scores of its reference are the same, so nothing can be normalized")
    return reference


def _caused_by(cause: Exception, error: _Error) -> _Error:
    """Return an error that has another as its cause."""
    error.__cause__ = cause
    return error


def _message(error: Exception) -> str:
    """Return an error's type and message in a line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:400]}"


def _probabilities(member: LoadedMember, row: EncodedText, logits: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the probability of being right of each completion's token (``orm``) or step (``prm``)."""
    if member.folder.kind == "orm":
        return sigmoids(logits[row.prompt_length :, 0])
    steps = logits[list(row.step_ends)]
    steps = np.exp(steps - steps.max(-1, keepdims=True))
    return np.asarray(steps[:, -1] / steps.sum(-1))  # the last class is the right one, of two as of three


def _aggregate(probabilities: np.ndarray[Any, Any], method: str) -> float:
    if method == "last":
        return float(probabilities[-1])
    if method == "product":
        return float(probabilities.prod())
    return float(probabilities.min() if method == "min" else probabilities.mean())


def _assistant_texts(completion: Turns) -> list[str]:
    """Return the texts of a completion; of messages, only the assistant's."""
    if isinstance(completion, str):
        return [completion]
    turns = (turn for turn in completion if turn.get("role", "assistant") == "assistant")
    return [message_text(turn) for turn in turns if turn.get("content") is not None]
