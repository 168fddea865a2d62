"""The tokens of a prompt with a completion, as reward models read them: one rule for training and for scoring.

The tokenizer's chat template joins the two where it has one. A tokenizer without a template that marks pairs, as
BERT's does, gets them as a pair; any other gets a transcript with the speakers' names. The form ``"plain"`` is for
checkpoints that others trained on pasted text. A text that is too long loses the beginning of its prompt, never any of
its completion. Thoughts are left out, and special tokens that a completion spells are text; see
:mod:`~builtin_rewards.reward_model.spelled_tokens`.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from builtin_rewards.reading.thoughts import Shows, leaves_thought_open, messages_without_thoughts, strip_frame
from builtin_rewards.reward_model.spelled_tokens import SpelledTokens
from rewardkit import DataError
from rewardkit.extending import message_text

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Turns: TypeAlias = str | Sequence[Mapping[str, Any]]  # A prompt or a completion: text, or chat messages
TextForm: TypeAlias = Literal["chat", "plain"]
"""How prompt and completion are joined: ``plain`` pastes them, as TRL's ``RewardTrainer`` does with rows of text."""
_Messages: TypeAlias = list[Any]
_NO_SPAN = (-1, -1)  # of a token without characters
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
        thoughts: Characters of thoughts that were left out.
    """

    ids: tuple[int, ...]
    prompt_length: int
    step_ends: tuple[int, ...] = ()
    cut: int = 0
    excess: int = 0
    thoughts: int = 0


class _Layout(NamedTuple):
    """A text's tokens, the characters that each stands for, and where its completion starts."""

    ids: list[int]
    spans: list[tuple[int, int]]
    text: str
    start: int  # in characters
    prompt_length: int  # in tokens
    margins: tuple[int, int]  # the tokens at both ends of the prompt that are never cut


def encode_text(
    tokenizer: PreTrainedTokenizerBase,
    prompt: Turns,
    completion: Turns,
    *,
    max_length: int | None = None,
    steps: Sequence[str] = (),
    form: TextForm = "chat",
    shows: Shows = "answer",
) -> EncodedText:
    """Return the tokens of a prompt with a completion.

    A special token that the completion, or an earlier turn of the assistant, spells is text: no turn begins or ends
    with it. Stop tokens at the completion's end are left out, and the form's own stand there.

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
        shows: ``"answer"`` leaves out the thoughts of the assistant's turns, ``"all"`` reads them too.

    Raises:
        DataError: The completion is empty, a step is not in it, two steps end in the same token, or the form is
            ``"plain"`` and there are several messages to join.
    """
    messages = messages_of(prompt, completion, shows)
    return encode_messages(tokenizer, messages, max_length=max_length, steps=steps, form=form)


class Messages(NamedTuple):
    """The messages of a prompt and a completion as they are read, and the characters of thoughts that are left out."""

    questions: _Messages
    answers: _Messages
    thoughts: int


def messages_of(prompt: Turns, completion: Turns, shows: Shows) -> Messages:
    """Return the messages of a prompt and a completion, without the assistant's thoughts unless ``shows="all"``."""
    questions = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt)
    answers = [{"role": "assistant", "content": completion}] if isinstance(completion, str) else list(completion)
    if shows == "all":
        return Messages(questions, answers, 0)
    questions, _ = messages_without_thoughts(questions)
    return Messages(questions, *messages_without_thoughts(answers, inside=leaves_thought_open(prompt)))


def encode_messages(
    tokenizer: PreTrainedTokenizerBase,
    messages: Messages,
    *,
    max_length: int | None = None,
    steps: Sequence[str] = (),
    form: TextForm = "chat",
) -> EncodedText:
    """Return the tokens of messages; see :func:`encode_text`."""
    questions, answers, thoughts = messages
    if not any(message_text(message).strip() or message.get("tool_calls") for message in answers):
        reason = ": nothing follows its thinking" if thoughts else ""
        raise DataError(f"the completion is empty{reason}")
    spelled = SpelledTokens.of(tokenizer)
    questions = [spelled.hide(message) if message.get("role") == "assistant" else message for message in questions]
    answers = [spelled.hide(_without_stop_tokens(tokenizer, message)) for message in answers]
    is_pair = tokenizer.cls_token is not None and tokenizer.sep_token is not None
    if form == "chat" and not tokenizer.chat_template and is_pair:
        layout = _pair(tokenizer, spelled, questions, answers)
    else:
        join = _paste if form == "plain" else _apply_template if tokenizer.chat_template else _write_transcript
        layout = _locate(tokenizer, spelled, *join(tokenizer, questions, answers), special=form == "plain")
    ids, prompt_length = layout.ids, layout.prompt_length
    if prompt_length >= len(ids):
        raise DataError("the completion has no tokens")
    step_ends = _step_ends(layout, steps, has_thoughts=thoughts > 0)
    excess = max(0, len(ids) - max_length) if max_length else 0
    head, tail = layout.margins
    cut = min(excess, max(0, prompt_length - head - tail))
    return EncodedText(
        ids=(*ids[:head], *ids[head + cut :]),
        prompt_length=prompt_length - cut,
        step_ends=tuple(end - cut for end in step_ends),
        cut=cut,
        excess=excess - cut,
        thoughts=thoughts,
    )


def _without_stop_tokens(tokenizer: PreTrainedTokenizerBase, message: Mapping[str, Any]) -> Mapping[str, Any]:
    content = message.get("content")
    if not isinstance(content, str):
        return message
    return {**message, "content": strip_frame(content).removesuffix(tokenizer.eos_token or "")}


def _pair(
    tokenizer: PreTrainedTokenizerBase, spelled: SpelledTokens, questions: _Messages, answers: _Messages
) -> _Layout:
    """Return prompt and completion apart, with the marks of a tokenizer for pairs such as BERT's around them."""
    question, text = (message_text(side[0]) if len(side) == 1 else _transcript(side) for side in (questions, answers))
    question_ids, _ = _tokens(tokenizer, spelled, question)
    answer_ids, spans = _tokens(tokenizer, spelled, text)
    text = spelled.restore(text)
    mark = tokenizer.sep_token_id
    ids = [tokenizer.cls_token_id, *question_ids, mark, *answer_ids, mark]
    prompt_length = len(question_ids) + 2
    return _Layout(ids, [*[_NO_SPAN] * prompt_length, *spans, _NO_SPAN], text, 0, prompt_length, margins=(1, 1))


def _locate(
    tokenizer: PreTrainedTokenizerBase, spelled: SpelledTokens, text: str, start: int, *, special: bool
) -> _Layout:
    """Return the tokens of one text whose completion starts at a character, with the length of its prompt."""
    ids, spans = _tokens(tokenizer, spelled, text, special=special)
    start, text = len(spelled.restore(text[:start])), spelled.restore(text)
    prompt_length = next((index for index, (_, last) in enumerate(spans) if last > start), len(ids))
    has_start_token = bool(ids) and ids[0] in {tokenizer.bos_token_id, tokenizer.cls_token_id}
    return _Layout(ids, spans, text, start, prompt_length, margins=(int(has_start_token), 0))


def _apply_template(tokenizer: PreTrainedTokenizerBase, questions: _Messages, answers: _Messages) -> tuple[str, int]:
    """Return the text by the chat template, and the completion's start; raise DataError if the template refuses it."""
    try:
        questions, answers = _parts_for_template(tokenizer, questions), _parts_for_template(tokenizer, answers)
        text = str(tokenizer.apply_chat_template([*questions, *answers], tokenize=False))
        opening = str(tokenizer.apply_chat_template(questions, tokenize=False, add_generation_prompt=True))
    except Exception as error:  # templates raise what they like
        raise DataError(f"the tokenizer's chat template refuses it: {error}") from error
    pairs = zip(text, opening, strict=False)
    return text, sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


def _parts_for_template(tokenizer: PreTrainedTokenizerBase, messages: _Messages) -> _Messages:
    """Return messages with their text in place of its parts, where the chat template would print the list of parts.

    Raises:
        DataError: A part is no text, and the template reads text alone.
    """
    if not any(isinstance(message.get("content"), list) for message in messages) or _reads_parts(tokenizer):
        return messages
    for part in (
        part for message in messages if isinstance(message.get("content"), list) for part in message["content"]
    ):
        if not isinstance(part, Mapping) or part.get("type", "text") != "text":
            kind = part.get("type") if isinstance(part, Mapping) else type(part).__name__
            raise DataError(f"it reads text alone, and a message has a part of the type {kind!r}")
    return [
        {**message, "content": message_text(message)} if isinstance(message.get("content"), list) else message
        for message in messages
    ]


def _reads_parts(tokenizer: PreTrainedTokenizerBase) -> bool:
    """Return whether the chat template reads the parts of a content; many paste it as if it were text."""
    parts: Any = [{"type": "text", "text": "a"}]
    try:
        return str(parts) not in str(
            tokenizer.apply_chat_template([{"role": "user", "content": parts}], tokenize=False)
        )
    except Exception:  # it joins the list with a text
        return False


def _write_transcript(tokenizer: PreTrainedTokenizerBase, questions: _Messages, answers: _Messages) -> tuple[str, int]:
    """Return a transcript with the speakers' names, and where the completion begins in it."""
    opening = f"{tokenizer.bos_token or ''}{_transcript(questions)}\n\n"
    text = _transcript(answers)
    if len(answers) == 1:
        opening += f"{_SPEAKERS.get(answers[0].get('role', ''), 'Assistant')}: "
        text = message_text(answers[0])
    return f"{opening}{text}{tokenizer.eos_token or ''}", len(opening)


def _paste(tokenizer: PreTrainedTokenizerBase, questions: _Messages, answers: _Messages) -> tuple[str, int]:
    """Return the texts of prompt and completion in one with the end token, and where the second begins."""
    if len(questions) > 1 or len(answers) > 1:
        raise DataError(
            f"{len(questions)} and {len(answers)} messages, and the form 'plain' pastes one prompt and one completion; "
            "give their text, or take the form 'chat'"
        )
    head, text = (message_text(side[0]) if side else "" for side in (questions, answers))
    end = tokenizer.eos_token or ""
    return head + (text if text.endswith(end) else text + end), len(head)


def _transcript(messages: _Messages) -> str:
    return "\n\n".join(f"{_SPEAKERS.get(turn['role'], turn['role'])}: {message_text(turn)}" for turn in messages)


def _tokens(
    tokenizer: PreTrainedTokenizerBase, spelled: SpelledTokens, text: str, *, special: bool = False
) -> tuple[list[int], list[tuple[int, int]]]:
    """Return a text's tokens and the characters of each, none for special ones; refuse a slow tokenizer."""
    if not tokenizer.is_fast:
        raise DataError("the tokenizer is a slow one, which does not say where its tokens are; give a fast one")
    try:
        ids, spans = spelled.encode(text, special=special)
    except Exception as error:  # half of a surrogate pair is no text to it, and its error does not say so
        raise DataError(_why_no_tokens(text, error)) from error
    return ids, [(first, last) if first < last else _NO_SPAN for first, last in spans]


def _why_no_tokens(text: str, error: Exception) -> str:
    """Return why a tokenizer refuses a text."""
    try:
        text.encode()
    except UnicodeEncodeError as reason:
        return f"it has {half_character(reason)}, which no tokenizer reads; write the whole character"
    return f"the tokenizer refuses it: {type(error).__name__}: {error}"


def half_character(error: UnicodeEncodeError) -> str:
    """Return what of a text UTF-8 cannot say."""
    return f"half of a surrogate pair, {error.object[error.start].encode('unicode_escape').decode()}"


def _step_ends(layout: _Layout, steps: Sequence[str], *, has_thoughts: bool) -> list[int]:
    """Return the index of each step's last token, in order; raise DataError for a step that is not there."""
    ends: list[int] = []
    start, spans = layout.start, layout.spans
    for number, step in enumerate(steps):
        content = step.strip()
        if not content:
            raise DataError(f"step {number} is empty")
        if (match := layout.text.find(content, start)) < 0:
            hint = "; its thoughts are left out, unless shows='all'" if has_thoughts else ""
            raise DataError(f"step {number} is not in the completion: {content[:60]!r}{hint}")
        start = match + len(content)
        end = max(index for index in range(layout.prompt_length, len(spans)) if 0 <= spans[index][0] < start)
        if ends and end <= ends[-1]:
            raise DataError(f"step {number} ends in the same token as the one before: {content[:60]!r}")
        ends.append(end)
    return ends
