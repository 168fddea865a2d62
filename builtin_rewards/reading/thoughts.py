"""The text of a turn without thoughts and stop tokens: the one treatment, where rewards that read an answer begin."""

from __future__ import annotations

import re

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
_BARE_CHANNEL, _BARE_FINAL = "analysis", "assistantfinal"  # the rest of gpt-oss's channels without its special tokens


def strip_frame(text: str) -> str:
    """Return the text without a byte order mark and without stop tokens at its end, with the blanks around them."""
    text = text.removeprefix("\ufeff")
    padding = _PADDING.match(text[::-1])
    return text[: len(text) - padding.end()] if padding else text


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


def after_thinking(text: str, *, inside: bool = False) -> str:
    """Return the text after the last thought, up to a thought that never ends; all of it without a thought.

    A thought stands in ``<think>``, ``<reasoning>`` and like tags, in ``[THINK]``, in the marks of Kimi, Command,
    OpenThinker and Gemma, or in gpt-oss's channel ``analysis``. Its end counts without its beginning, which may be in
    the prompt: with ``inside`` it is there, and a text without an end is a thought as a whole. A mark right behind a
    backtick, or in a code fence outside a thought, does not count.
    """
    text = strip_frame(text)
    if text.startswith(_BARE_CHANNEL) and _BARE_FINAL in text:
        text = text.rpartition(_BARE_FINAL)[2]
        inside = False
    start, opening = _answer_bounds(text, inside)
    return text[start:opening]


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
