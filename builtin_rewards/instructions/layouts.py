"""Instructions about the form of a text: lists, marks, quotation marks, brackets, templates."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from builtin_rewards.instructions.counts import is_divided
from builtin_rewards.instructions.kind import InstructionKind
from builtin_rewards.instructions.tokens import split_sentences
from builtin_rewards.reading.markdown import is_rule
from builtin_rewards.reading.normalisation import plain_quotes

_HIGHLIGHTS = (re.compile(r"\*([^\n*]*)\*"), re.compile(r"\*\*([^\n*]*)\*\*"))
_POSTSCRIPTS = {"P.S.": r"p\.\s?s\.", "P.P.S": r"p\.\s?p\.\s?s"}
_OPTIONS = ("my answer is yes.", "my answer is no.", "my answer is maybe.")
_FENCES = ("```json", "```Json", "```JSON", "```")  # removed in this order, as IFEval's program does
_BULLET = re.compile(r"\s*(?:-(?!-)|\*(?!\*))")
_STAR = re.compile(r"\s*\*(?!\*)")
_NUMERAL = r"(?:\d+|[IVXLC]{2,}\b|[IVX]\b(?! [a-z]))"
_BRACKETS = {")": "(", "]": "[", "}": "{"}  # what each closes
_QUOTES = {mark: mark for mark in "'\""}
_LEVELS_OF_BRACKETS, _LEVELS_OF_QUOTES = 5, 3  # that IFBench asks for
_APOSTROPHE = re.compile(r"(?<=\w)'(?=\w)")
_LETTERED = re.compile(r"\W*a\W*b\W*c\W*", re.IGNORECASE)  # the options are letters, which leave no freedom
_THESIS = re.compile(r"<(i|em)>\s*[^\s<][^<]*</\1>\s*\S", re.IGNORECASE)
_TEMPLATE = ("My Answer:", "My Conclusion:", "Future Outlook:")
_PARTING = " \t\r\n!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"


def _passages_between(text: str, opening: str, closing: str) -> Iterator[str]:
    """Yield what stands on one line between an opening and the next closing, stripped; nothing for a blank one."""
    padding = opening + " \t"  # single characters: a further opening, as in ``[[``, is no content either
    for line in text.split("\n"):
        *parts, _ = line.split(closing)
        yield from filter(None, (part.partition(opening)[2].strip(padding) for part in parts))


def _is_json(text: str) -> bool:
    content = text.strip()
    for fence in _FENCES:
        content = content.removeprefix(fence)
    try:
        # Numbers stay text: turning long ones into integers is quadratic, and refused.
        json.loads(content.removesuffix("```").strip(), parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return False
    return True


def _nests(text: str, closing: Mapping[str, str], levels: int) -> bool:
    """Return whether marks stand in each other so many levels deep, all of them closed by their own mark."""
    openings: list[tuple[str, int]] = []  # each with the levels that are closed in it
    for char in text:
        if openings and closing.get(char) == openings[-1][0]:
            depth = openings.pop()[1] + 1
            if depth >= levels:
                return True
            if openings:
                openings[-1] = (openings[-1][0], max(openings[-1][1], depth))
        elif char in closing.values():
            openings.append((char, 0))
        elif char in closing:
            openings = []
    return False


def _is_option(text: str, options: str) -> bool:
    parts = options.split("/") if "/" in options else re.split(r",\s*(?:or\b)?|\bor\b", options)
    choices = [part.strip() for part in parts if part.strip()]
    if _LETTERED.match(options):
        return text.strip() in choices
    return text.strip(_PARTING).lower() in {choice.strip(_PARTING).lower() for choice in choices}


def _explains_quotes(text: str) -> bool:
    _, *parts = plain_quotes(text.replace("'\"'", "")).split('"')
    behind = parts[1::2]
    return bool(behind) and all(any(map(str.isalpha, part)) for part in behind)


def _has_sub_bullets(text: str) -> bool:
    lines = [line for line in text.split("\n") if not is_rule(line)]
    starts = [index for index, line in enumerate(lines) if _STAR.match(line)]
    ends = [*starts[1:], len(lines)]
    return bool(starts) and all(
        any(line.lstrip().startswith("-") for line in lines[start:end]) for start, end in zip(starts, ends, strict=True)
    )


def _has_bullets_below(text: str) -> bool:
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    first = next((index for index, line in enumerate(lines) if line.startswith("*")), len(lines))
    sentences = [sentence for line in lines[:first] for sentence in split_sentences(line)]
    ends = sum(sentence.rstrip("\"')*_").endswith(".") for sentence in sentences)
    return ends >= 2 and len(lines) - first >= 2 and all(line.startswith("*") for line in lines[first:])


def _fills_template(text: str, labels: Sequence[str]) -> bool:
    """Return whether labels stand in a text in their order, with something behind each."""
    for label, next_label in zip(labels, [*labels[1:], ""], strict=True):
        _, mark, text = text.partition(label)
        content = text.partition(next_label)[0] if next_label else text
        if not (mark and content.strip()):
            return False
    return True


IFEVAL: Mapping[str, InstructionKind] = {
    "detectable_content:number_placeholders": InstructionKind(
        "At least so many placeholders such as `[address]`, none of them blank.",
        lambda text, num_placeholders: sum(1 for _ in _passages_between(text, "[", "]")) >= num_placeholders,
    ),
    "detectable_content:postscript": InstructionKind(
        "The mark is there, in any case, `P.S.` also with a space inside.",
        lambda text, postscript_marker: bool(
            re.search(_POSTSCRIPTS.get(postscript_marker) or re.escape(postscript_marker.lower()), text.lower())
        ),
    ),
    "detectable_format:constrained_response": InstructionKind(
        "One of My answer is yes, no or maybe with its full stop, and no other of them.",
        lambda text: sum(option in text.lower() for option in _OPTIONS) == 1,
    ),
    "detectable_format:json_format": InstructionKind(
        "All of the text, or a fenced block that is all of it, is JSON.", _is_json
    ),
    "detectable_format:multiple_sections": InstructionKind(
        "At least so many times the mark with a number behind it, in digits or in Roman capitals.",
        lambda text, section_spliter, num_sections: (
            len(re.findall(re.escape(section_spliter) + r"\s?" + _NUMERAL, text)) >= num_sections
        ),
    ),
    "detectable_format:number_bullet_lists": InstructionKind(
        "Exactly so many lines begin with one `*` or one `-`; a line that only draws, such as `---`, does not count.",
        lambda text, num_bullets: (
            sum(bool(_BULLET.match(line)) and not is_rule(line) for line in text.split("\n")) == num_bullets
        ),
    ),
    "detectable_format:number_highlighted_sections": InstructionKind(
        "At least so many passages of one line, none of them blank, stand between `*` or `**`.",
        lambda text, num_highlights: (
            sum(bool(passage.strip()) for mark in _HIGHLIGHTS for passage in mark.findall(text)) >= num_highlights
        ),
    ),
    "detectable_format:title": InstructionKind(
        "A title in double angular brackets, such as `<<poem of joy>>`, on one line and not blank.",
        lambda text: any(_passages_between(text, "<<", ">>")),
    ),
    "startend:quotation": InstructionKind(
        "The whole text stands in double quotation marks, straight or curly.",
        lambda text: re.fullmatch(r'".*"', plain_quotes(text).strip(), re.DOTALL) is not None,
    ),
    "combination:two_responses": InstructionKind(
        "Two different responses are divided by `******`.",
        lambda text: is_divided(text, r"\*{6}", 2) and len({part.strip() for part in text.split("******")} - {""}) == 2,
    ),
}
IFBENCH: Mapping[str, InstructionKind] = {
    "format:list": InstructionKind(
        "The mark of the list stands at the beginning of a line or behind a blank, twice or more.",
        lambda text, sep: len(re.findall(rf"(?<!\S){re.escape(sep)}", text)) >= 2,
    ),
    "format:no_bullets_bullets": InstructionKind(
        "Two sentences or more end in a full stop, and then come only lines that begin with `*`, two or more.",
        _has_bullets_below,
    ),
    "format:no_whitespace": InstructionKind("There are no blanks.", lambda text: not any(map(str.isspace, text))),
    "format:options": InstructionKind(
        "The text is one of the options, which are parted by `/`, `,` or the word or; only where they are letters, its "
        "case and punctuation count.",
        _is_option,
    ),
    "format:output_template": InstructionKind(
        "`My Answer:`, `My Conclusion:` and `Future Outlook:` stand there in this order, with text behind each.",
        lambda text: _fills_template(text, _TEMPLATE),
    ),
    "format:parentheses": InstructionKind(
        "Brackets of any form stand in each other five levels deep, all closed.",
        lambda text: _nests(text, _BRACKETS, _LEVELS_OF_BRACKETS),
    ),
    "format:quote_unquote": InstructionKind(
        "There is a quoted phrase, and letters stand behind each before the next.", _explains_quotes
    ),
    "format:quotes": InstructionKind(
        "Double and single quotation marks stand in each other three levels deep, all closed.",
        lambda text: _nests(_APOSTROPHE.sub("", plain_quotes(text)), _QUOTES, _LEVELS_OF_QUOTES),
    ),
    "format:sub-bullets": InstructionKind(
        "Lines begin with one `*`, and below each, before the next, a line begins with `-`.", _has_sub_bullets
    ),
    "format:thesis": InstructionKind(
        "A passage in `<i>` or `<em>`, with text behind it.", lambda text: _THESIS.search(text) is not None
    ),
}
