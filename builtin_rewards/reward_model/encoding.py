"""The tokens of a prompt with a completion, as reward models read them: one rule for training and for scoring.

The tokenizer's chat template joins the two where it has one. A tokenizer without a template that marks pairs, as
BERT's does, gets them as a pair; any other gets a transcript with the speakers' names. The form ``"plain"`` is for
checkpoints that others trained on pasted text. A text that is too long loses the beginning of its prompt, never any of
its completion.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from rewardkit import DataError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Turns: TypeAlias = str | Sequence[Mapping[str, Any]]
"""A prompt or a completion: text, or chat messages."""
TextForm: TypeAlias = Literal["chat", "plain"]
"""How prompt and completion are joined: ``plain`` pastes them, as TRL's ``RewardTrainer`` does with rows of text."""
_SPEAKERS = {"user": "Human", "assistant": "Assistant", "system": "System", "tool": "Tool"}


@dataclass(frozen=True, slots=True)
class EncodedText:
    """The tokens of a prompt with a completion.

    Attributes:
        ids: All tokens, special ones included.
        prompt_length: How many of them, at the beginning, are the prompt's.
        step_ends: The place in ``ids`` of each step's last token; empty where no steps were given.
        cut: Tokens of the prompt that were left out at its beginning.
        excess: Tokens by which the text is still too long, without any of its prompt; 0 where it fits.
    """

    ids: tuple[int, ...]
    prompt_length: int
    step_ends: tuple[int, ...] = ()
    cut: int = 0
    excess: int = 0


@dataclass(frozen=True, slots=True)
class _Part:
    """Tokens with the characters that each stands for, from ``start`` of the first text."""

    ids: list[int]
    spans: list[tuple[int, int]]


def encode_text(
    tokenizer: PreTrainedTokenizerBase,
    prompt: Turns,
    completion: Turns,
    *,
    max_length: int | None = None,
    steps: Sequence[str] = (),
    form: TextForm = "chat",
) -> EncodedText:
    """Return the tokens of a prompt with a completion.

    Args:
        tokenizer: A fast one: only these say which characters a token stands for.
        prompt: What was asked.
        completion: What was answered.
        max_length: The most tokens; the prompt is cut from its beginning to fit. A completion that does not fit alone
            stays whole, and ``excess`` says by how much.
        steps: The parts of the completion's text that are steps, in order.
        form: ``"chat"`` joins the two by the chat template, as a pair or as a transcript. ``"plain"`` is the prompt's
            text, the completion's and the end token, with the tokenizer's own special tokens: what TRL's
            ``RewardTrainer`` makes of rows of text.

    Raises:
        DataError: The completion is empty, a step is not in it, two steps end in the same token, or the form is
            ``"plain"`` and there are several messages to join.
    """
    questions = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt)
    answers = [{"role": "assistant", "content": completion}] if isinstance(completion, str) else list(completion)
    if not any(_message_text(message).strip() or message.get("tool_calls") for message in answers):
        raise DataError("the completion is empty")
    if form == "plain":
        head, text, start = _paste(tokenizer, questions, answers)
    elif tokenizer.chat_template:
        head, text, start = _apply_template(tokenizer, questions, answers)
    else:
        head, text, start = _without_template(tokenizer, questions, answers)
    if head is None:
        part = _tokens(tokenizer, text, special=form == "plain")
        prompt_length = _reach(part, start)
        ids, spans = part.ids, part.spans
        head_length = int(bool(ids) and ids[0] in {tokenizer.bos_token_id, tokenizer.cls_token_id})
    else:
        question_part, answer_part = _tokens(tokenizer, head), _tokens(tokenizer, text)
        opening, between, closing = _marks(tokenizer)
        ids = [*opening, *question_part.ids, *between, *answer_part.ids, *closing]
        prompt_length, head_length = len(opening) + len(question_part.ids) + len(between), len(opening)
        gap = [(-1, -1)]
        spans = [*gap * prompt_length, *answer_part.spans, *gap * len(closing)]
        start = 0
    if prompt_length >= len(ids):
        raise DataError("the completion has no tokens")
    ends = _step_ends(text, start, spans, prompt_length, steps)
    excess = max(0, len(ids) - max_length) if max_length else 0
    marks = 1 if head is not None else 0  # the mark between prompt and completion stays
    cut = min(excess, max(0, prompt_length - head_length - marks))
    return EncodedText(
        ids=(*ids[:head_length], *ids[head_length + cut :]),
        prompt_length=prompt_length - cut,
        step_ends=tuple(end - cut for end in ends),
        cut=cut,
        excess=excess - cut,
    )


def _apply_template(tokenizer: Any, questions: list[Any], answers: list[Any]) -> tuple[None, str, int]:
    """Return the text by the chat template, and where the completion begins in it."""
    try:
        text = tokenizer.apply_chat_template([*questions, *answers], tokenize=False)
        opening = tokenizer.apply_chat_template(questions, tokenize=False, add_generation_prompt=True)
    except Exception as error:  # templates raise what they like
        raise DataError(f"the tokenizer's chat template refuses it: {error}") from error
    pairs = zip(text, opening, strict=False)
    return None, text, sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


def _without_template(tokenizer: Any, questions: list[Any], answers: list[Any]) -> tuple[str | None, str, int]:
    """Return prompt and completion apart, for a tokenizer that marks pairs, or else one transcript and its start."""
    text = _message_text(answers[0]) if len(answers) == 1 else _transcript(answers)
    if tokenizer.cls_token is not None and tokenizer.sep_token is not None:
        head = _message_text(questions[0]) if len(questions) == 1 else _transcript(questions)
        return head, text, 0
    bos = tokenizer.bos_token or ""
    speaker = "" if len(answers) != 1 else f"{_SPEAKERS.get(answers[0].get('role', ''), 'Assistant')}: "
    opening = f"{bos}{_transcript(questions)}\n\n{speaker}"
    return None, f"{opening}{text}{tokenizer.eos_token or ''}", len(opening)


def _paste(tokenizer: Any, questions: list[Any], answers: list[Any]) -> tuple[None, str, int]:
    """Return the texts of prompt and completion, one after the other with the end token, and where the second begins.

    Raises:
        DataError: Either has several messages, which pasting would run together.
    """
    if len(questions) > 1 or len(answers) > 1:
        raise DataError(
            f"{len(questions)} and {len(answers)} messages, and the form 'plain' pastes one prompt and one completion; "
            "give their text, or take the form 'chat'"
        )
    head, text = (_message_text(side[0]) if side else "" for side in (questions, answers))
    end = tokenizer.eos_token or ""
    return None, head + (text if text.endswith(end) else text + end), len(head)


def _transcript(messages: list[Any]) -> str:
    return "\n\n".join(f"{_SPEAKERS.get(turn['role'], turn['role'])}: {_message_text(turn)}" for turn in messages)


def _message_text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, str) or content is None:
        return content or ""
    return "".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))


def _marks(tokenizer: Any) -> tuple[list[int], list[int], list[int]]:
    return [tokenizer.cls_token_id], [tokenizer.sep_token_id], [tokenizer.sep_token_id]


def _tokens(tokenizer: Any, text: str, *, special: bool = False) -> _Part:
    """Return the tokens of a text, perhaps with the special ones that the tokenizer adds, which have no characters."""
    if not tokenizer.is_fast:
        raise DataError("the tokenizer is a slow one, which does not say where its tokens are; give a fast one")
    encoding = tokenizer(text, add_special_tokens=special, return_offsets_mapping=True, truncation=False, verbose=False)
    spans = [(first, last) if first < last else (-1, -1) for first, last in encoding["offset_mapping"]]
    return _Part(list(encoding["input_ids"]), spans)


def _reach(part: _Part, start: int) -> int:
    """Return how many tokens stand before the first that holds a character from ``start`` on."""
    indices = (index for index, (first, last) in enumerate(part.spans) if last > start)
    return next(indices, len(part.ids))


def _step_ends(
    text: str, start: int, spans: list[tuple[int, int]], prompt_length: int, steps: Sequence[str]
) -> list[int]:
    """Return the place of the last token of each step, found in the text one after the other."""
    ends: list[int] = []
    for number, step in enumerate(steps):
        content = step.strip()
        if not content:
            raise DataError(f"step {number} is empty")
        if (match := text.find(content, start)) < 0:
            raise DataError(f"step {number} is not in the completion: {content[:60]!r}")
        start = match + len(content)
        end = max(index for index in range(prompt_length, len(spans)) if 0 <= spans[index][0] < start)
        if ends and end <= ends[-1]:
            raise DataError(f"step {number} ends in the same token as the one before: {content[:60]!r}")
        ends.append(end)
    return ends
