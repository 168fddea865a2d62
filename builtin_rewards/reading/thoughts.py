"""The text of a turn without thoughts and stop tokens: the one treatment, where rewards that read an answer begin."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from rewardkit.extending import THOUGHT_FIELDS, content_text, is_thought

Shows: TypeAlias = Literal["answer", "all"]
"""What a model of judgement is shown of what a model wrote: its answer alone, or its thoughts too."""

_PIPED = """
end im_end endoftext end_of_text end_of_turn end_of_sentence end_of_document eot_id eom_id eot eom eos EOT return call
END_OF_TURN_TOKEN END_RESPONSE end_of_solution assistant_end user observation pad finetune_right_pad_id
"""
_BARE_TOKENS = """
</s> <eos> <eod> <pad> <end_of_turn> <turn|> <eoa> <seed:eos> </longcat_s> [EOS] [EOT] [|endofturn|] [e~[
<\uff5cend\u2581of\u2581sentence\uff5c>
"""
# Of ChatML, Llama, Mistral, Gemma, Phi, Command, GLM, gpt-oss, DeepSeek, Kimi, Seed, EXAONE, InternLM, MiniMax,
# Granite, Apertus and OpenThinker.
_STOP_TOKENS = (*(f"<|{name}|>" for name in _PIPED.split()), *_BARE_TOKENS.split())
# Stop tokens and blanks at the end of a text, read from its end.
_PADDING = re.compile(rf"(?>\s*+(?:{'|'.join(re.escape(token[::-1]) for token in _STOP_TOKENS)}))++\s*+")

_NAMES = r"\s{0,3}(?:think|thinking|thoughts?|reasoning|scratchpad|seed:think|longcat_think)\s{0,3}>"
_MARK = re.compile(  # the marks of thoughts, none of them right behind a backtick, and whole code fences
    r"[<\[\u25c1`](?:(?<!`.)(?:"
    rf"(?P<opens>(?<=<)(?:\s{{0,3}}{_NAMES}|\|START_THINKING\|>|\|begin_of_thought\|>|\|channel\|>analysis\b"
    r"|\|channel>thought\b|\|inner_prefix\|>|unused94>)|(?<=\[)THINK\]|(?<=\u25c1)think\u25b7)"
    rf"|(?P<closes>(?<=<)(?:\s{{0,3}}/{_NAMES}|\|END_THINKING\|>|\|end_of_thought\|>|\|START_RESPONSE\|>"
    r"|\|begin_of_solution\|>|\|channel\|>final\b[^<>]{0,40}<\|message\|>|channel\|>|\|inner_suffix\|>|unused95>)"
    r"|(?<=\[)/THINK\]|(?<=\u25c1)/think\u25b7)"
    r"|(?P<speaks>(?<=<)(?:\|start\|>assistant\s[^<>]{0,80}<)?\|channel\|>commentary\b))"
    r"|(?P<fence>(?<=^`)``[^\n`]*\n(?>(?!```)[^\n]*\n)*+```[ \t]*$))",
    re.IGNORECASE | re.MULTILINE,
)
# Fields of a thought that hold its text.
_TEXT_FIELDS = (
    *("thinking", "reasoning", "reasoning_content", "text", "summary", "content", "reasoningContent", "reasoningText"),
)
_BARE_CHANNEL, _BARE_FINAL = "analysis", "assistantfinal"  # the rest of gpt-oss's channels without its special tokens


def strip_frame(text: str) -> str:
    """Return the text without a byte order mark and without stop tokens at its end, with the blanks around them."""
    text = text.removeprefix("\ufeff")
    padding = _PADDING.match(text[::-1])
    return text[: len(text) - padding.end()] if padding else text


def is_mark(text: str) -> bool:
    """Return whether a text is one mark of a thought's beginning or end."""
    return _MARK.fullmatch(text) is not None


def begins_in_thought(text: str) -> bool:
    """Return whether a text, apart from blanks, opens with the mark of a thought."""
    mark = _MARK.match(text.lstrip())
    return mark is not None and mark["opens"] is not None


def ends_in_thought(text: str) -> bool:
    """Return whether a text ends within a thought, as :func:`after_thinking` reads it."""
    return _answer_bounds(text, inside=False)[1] is not None


def ends_with_opening(text: str) -> bool:
    """Return whether a text, apart from blanks, ends with the mark that opens a thought, as rendered prompts do."""
    mark = next(reversed([*_MARK.finditer(text)]), None)
    return mark is not None and bool(mark["opens"]) and not text[mark.end() :].replace("<|message|>", "").strip()


def answer_start(text: str) -> int:
    """Return where the answer of :func:`after_thinking` begins."""
    return _answer_span(text, inside=False)[0]


def after_thinking(text: str, *, inside: bool = False) -> str:
    """Return the text after the last thought, up to a thought that never ends; all of it without a thought.

    A thought stands in ``<think>``, ``<reasoning>`` and like tags, in ``[THINK]``, in the marks of Kimi, Command,
    OpenThinker and Gemma, or in gpt-oss's channel ``analysis``. Its end counts without its beginning, which may be in
    the prompt: with ``inside`` it is there, and a text without an end is a thought as a whole. A mark right behind a
    backtick, or in a code fence outside a thought, does not count.
    """
    start, stop = _answer_span(text, inside)
    return text[start:stop]


def _answer_span(text: str, inside: bool) -> tuple[int, int]:
    """Return where the answer of :func:`after_thinking` begins and ends."""
    framed = strip_frame(text)
    offset = int(text.startswith("\ufeff"))
    if framed.startswith(_BARE_CHANNEL) and _BARE_FINAL in framed:
        cut = framed.rindex(_BARE_FINAL) + len(_BARE_FINAL)
        framed, offset, inside = framed[cut:], offset + cut, False
    start, opening = _answer_bounds(framed, inside)
    return offset + start, offset + (len(framed) if opening is None else opening)


def _answer_bounds(text: str, inside: bool) -> tuple[int, int | None]:
    """Return where the answer begins, and where a thought begins that never ends; ``None`` where each ends."""
    start, opening, position = 0, 0 if inside else None, 0
    if "<" not in text and "[" not in text and "\u25c1" not in text:
        return start, opening
    while (mark := _MARK.search(text, position)) is not None:
        position = mark.end()
        if mark["closes"]:
            start, opening = mark.end(), None
        elif mark["opens"]:
            opening = mark.start() if opening is None else opening
        elif mark["speaks"] and opening is not None:
            start, opening = mark.start(), None
        elif mark["fence"] and opening is not None:
            position = mark.start() + 1
    return start, opening


class AnswerMessage(NamedTuple):
    """An assistant's message without its thoughts, and how many characters these had."""

    message: dict[str, Any]
    thoughts: int


def without_thoughts(message: Mapping[str, Any], *, inside: bool = False) -> AnswerMessage:
    """Return an assistant's message without fields, blocks and text of thoughts, as :func:`after_thinking` reads it.

    ``inside`` says that it begins within a thought; see :func:`leaves_thought_open`.
    """
    fields = {name: value for name, value in message.items() if name not in THOUGHT_FIELDS}
    thoughts = sum(len(field_thought({name: message[name]})) for name in message.keys() - fields.keys())
    content = message.get("content")
    if is_thought(message):
        return AnswerMessage({**fields, "content": ""}, thoughts + len(thought_text(message)))
    blocks: list[Any] = [*content] if isinstance(content, list | tuple) else [content]
    hidden = [block for block in blocks if is_thought(block)]
    visible = [block for block in blocks if not is_thought(block)]
    text = "".join(_text_of(block) for block in visible)
    start, stop = _answer_span(text, inside)
    in_text = len(strip_frame(text)) - (stop - start)
    if in_text:
        answer = text[start:stop].strip()
        start = text.index(answer, start)
        stop = start + len(answer)
    if (start, stop) != (0, len(text)):
        visible = _sliced(visible, start, stop)
    thoughts += in_text + sum(len(thought_text(block)) or 1 for block in hidden)
    if isinstance(content, list | tuple):
        return AnswerMessage({**fields, "content": visible}, thoughts)
    return AnswerMessage(
        {**fields, **({"content": visible[0] if visible else ""} if "content" in fields else {})}, thoughts
    )


class AnswerMessages(NamedTuple):
    """Messages without the assistant's thoughts, and how many characters these had."""

    messages: list[Any]
    thoughts: int


def messages_without_thoughts(messages: Iterable[Mapping[str, Any]], *, inside: bool = False) -> AnswerMessages:
    """Return messages without the thoughts of the assistant's; ``inside`` says that the first begins within one."""
    result, thoughts = [], 0
    for number, message in enumerate(messages):
        if message.get("role", "assistant") == "assistant":
            message, chars = without_thoughts(message, inside=inside and not number)
            thoughts += chars
        result.append(message)
    return AnswerMessages(result, thoughts)


def _sliced(blocks: Sequence[Any], start: int, stop: int) -> list[Any]:
    """Return blocks with the characters of their joined text from start to stop; without those that lose all of it."""
    result, offset = list[Any](), 0
    for block in blocks:
        text = _text_of(block)
        part = text[max(0, start - offset) : max(0, stop - offset)]
        offset += len(text)
        if not text:
            result.append(block)
        elif part:
            result.append(part if isinstance(block, str) else {**block, "text": part})
    return result


def _text_of(block: object) -> str:
    text = block.get("text") if isinstance(block, Mapping) else block
    return text if isinstance(text, str) else ""


def thought_text(part: Mapping[str, Any]) -> str:
    """Return the text of a thought, a block or a message; empty where it has none, as a redacted one."""
    return _field_text(part, _TEXT_FIELDS)


def field_thought(message: Mapping[str, Any]) -> str:
    """Return the text of the first field of a message that holds a thought, or blocks of one; empty without."""
    return _field_text(message, THOUGHT_FIELDS, "\n")


def _field_text(part: Mapping[str, Any], fields: Sequence[str], separator: str = "") -> str:
    """Return the text of the first field that has one, as text, as a block of a thought, or as a list of them."""
    for name in fields:
        value = part.get(name)
        blocks = value if isinstance(value, list | tuple) else [value]
        texts = [thought_text(block) if isinstance(block, Mapping) else _text_of(block) for block in blocks]
        if text := separator.join(filter(None, texts)):
            return text
    return ""


def leaves_thought_open(prompt: object) -> bool:
    """Return whether a completion begins within a thought: the prompt's text ends with its mark, or its last turn."""
    if isinstance(prompt, str):
        return ends_with_opening(prompt)
    last = prompt[-1] if isinstance(prompt, Sequence) and prompt else None
    if not isinstance(last, Mapping) or last.get("role") != "assistant":
        return False
    return ends_in_thought(content_text(last.get("content")))
