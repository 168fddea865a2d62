"""What scores are made of: tokens in batches of like length, one forward each, and the read-out of the right token."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from builtin_rewards.reading.thoughts import Shows
from builtin_rewards.reward_model.calibration import sigmoids
from builtin_rewards.reward_model.description import DESCRIPTION_FILE, ScoreReference
from builtin_rewards.reward_model.encoding import (
    EncodedText,
    TextForm,
    Turns,
    encode_messages,
    messages_of,
)
from builtin_rewards.reward_model.forward import ForwardPasses, Logits, caused_by, message_of
from builtin_rewards.reward_model.loading import CheckedFolder, LoadedMember, load_members
from rewardkit import ConfigError, DataError
from rewardkit.extending import message_text

NORMALIZATIONS = ("center", "reference", "quantile")
"""Subtract the mean of training, give the z-score, or the share of the reference that scores lower."""
REDUCTIONS = ("mean", "min", "lower")  # How the scores of several models become one; `lower` is mean - k * std
TRUNCATIONS = ("prompt", "completion", "error")
"""What is cut of a text that is too long: its prompt's beginning; then also its completion's end; or nothing."""
_CHUNK = 32  # Texts that a thread makes tokens of at a time
_THREADS = min(4, os.cpu_count() or 1)  # that make tokens of texts while the model computes others


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
        read: dict[Any, list[EncodedText | Exception]] = {}
        with self._scoring:
            member_scores = [self._member_scores(member, texts, read) for member in self.members]
        return [self._reduce_scores(scores) for scores in zip(*member_scores, strict=True)]

    def _member_scores(
        self, member: LoadedMember, texts: Sequence[Text], read: dict[Any, list[EncodedText | Exception]]
    ) -> list[TextScore | Exception]:
        """Return one model's score of each text, or the error; ``read`` has the tokens that other models have read."""
        folder = member.folder
        key = (
            id(member.tokenizer), member.max_length, member.vocabulary, folder.kind, self._form_of(member),
            folder.description.shows, folder.description.step_separator,
        )  # fmt: skip
        before = read.get(key)
        encoded: list[EncodedText | Exception] = []

        def readable_rows() -> Iterator[EncodedText]:
            for row in self._encoded(member, texts) if before is None else before:
                encoded.append(row)
                if not isinstance(row, Exception):
                    yield row

        logits = iter(self._logits(member, readable_rows()))
        read[key] = encoded
        return [
            row if isinstance(row, Exception) else self._score_or_error(member, row, next(logits)) for row in encoded
        ]

    def _encoded(self, member: LoadedMember, texts: Sequence[Text]) -> Iterator[EncodedText | Exception]:
        """Yield the tokens of texts in order, or their errors; of many, threads make them ahead."""
        first, rest = texts[:_CHUNK], texts[_CHUNK:]
        chunks = [rest[start : start + _CHUNK] for start in range(0, len(rest), _CHUNK)]

        def encode(chunk: Sequence[Text]) -> list[EncodedText | Exception]:
            return [self._encode_or_error(member, text) for text in chunk]

        # A tokenizer is set up by its first text, which no other thread may read meanwhile.
        yield from encode(first[:1])
        with ThreadPoolExecutor(_THREADS, "reward-model-tokens") as threads:  # it starts none without a chunk
            futures = [threads.submit(encode, chunk) for chunk in chunks]
            yield from encode(first[1:])
            for future in futures:
                yield from future.result()

    def _encode_or_error(self, member: LoadedMember, text: Text) -> EncodedText | Exception:
        """Return the tokens of a text, or the error of whatever refuses it: a text's fault is no other text's."""
        try:
            row = self._encode(member, text)
        except DataError as error:
            return error
        except Exception as error:  # templates, tokenizers and messages of other forms raise what they like
            return caused_by(error, DataError(f"it cannot be made tokens: {message_of(error)}"))
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
            return caused_by(error, DataError(f"its score cannot be read: {message_of(error)}"))
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

    def _logits(self, member: LoadedMember, rows: Iterable[EncodedText]) -> list[Logits]:
        """Return the logits of each row, in order; where the model fails on a row, the error stands in their place.

        Rows are taken one after the other, so that a GPU computes the first of them while later ones are made.
        """
        passes = ForwardPasses(member, self.settings.token_budget, self.settings.read_at)
        for row in rows:
            passes.add(row)
        return passes.finish()

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
