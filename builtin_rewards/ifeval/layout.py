"""Verifiable instructions on layout: placeholders, lists, sections, titles, JSON, quotes, how a text starts and ends.

Each function says whether a text that is not blank follows the instruction. All take time linear in the text: where a
regular expression would look for an end again from every start, the text is scanned by hand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

_HIGHLIGHTS = (re.compile(r"\*([^\n*]*)\*"), re.compile(r"\*\*([^\n*]*)\*\*"))
_QUOTED = re.compile(r'\s*".*"\s*', re.DOTALL)
_POSTSCRIPTS = {"P.S.": r"p\.\s?s\.", "P.P.S": r"p\.\s?p\.\s?s"}
_OPTIONS = ("my answer is yes.", "my answer is no.", "my answer is maybe.")
_FENCES = ("```json", "```Json", "```JSON", "```")


def number_placeholders(text: str, num_placeholders: int) -> bool:
    """At least so many placeholders such as ``[address]``; blank ones do not count."""
    return sum(bool(held.strip("[ \t")) for held in _held(text, "[", "]")) >= num_placeholders


def _held(text: str, opening: str, closing: str) -> Iterator[str]:
    """Gives what stands on one line between an opening and the next closing."""
    for line in text.split("\n"):
        *parts, _ = line.split(closing)
        yield from (part.partition(opening)[2] for part in parts)


def postscript(text: str, postscript_marker: str) -> bool:
    """The marker of a postscript, such as ``P.S.``, in any case and with spaces between its letters."""
    marker = _POSTSCRIPTS.get(postscript_marker) or re.escape(postscript_marker.lower())
    return re.search(marker, text.lower()) is not None


def number_bullet_lists(text: str, num_bullets: int) -> bool:
    """Exactly so many bullet points: lines that start with ``*`` (not ``**``) or ``-``."""
    starts = [line.lstrip()[:2] for line in text.split("\n")]
    return sum(start != "**" and start.startswith(("-", "*")) for start in starts) == num_bullets


def constrained_response(text: str) -> bool:
    """One of ``My answer is yes.``, ``My answer is no.`` and ``My answer is maybe.``, and no other of them."""
    return sum(option in text.lower() for option in _OPTIONS) == 1


def number_highlighted_sections(text: str, num_highlights: int) -> bool:
    """At least so many passages of one line marked ``*so*`` or ``**so**``; blank ones do not count."""
    return sum(bool(held.strip()) for mark in _HIGHLIGHTS for held in mark.findall(text)) >= num_highlights


def multiple_sections(text: str, section_spliter: str, num_sections: int) -> bool:
    """At least so many sections, each with a mark and a number, such as ``Section 1``."""
    return len(re.findall(re.escape(section_spliter) + r"\s?\d+", text)) >= num_sections


def json_format(text: str) -> bool:
    """All of the text is JSON, or a fenced block of it."""
    bare = text.strip()
    for fence in _FENCES:
        bare = bare.removeprefix(fence)
    try:
        # Numbers stay text: turning long ones into integers is quadratic, and refused.
        json.loads(bare.removesuffix("```").strip(), parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return False
    return True


def title(text: str) -> bool:
    """A title in double angular brackets, such as ``<<poem of joy>>``, on one line and not blank."""
    return any(held.strip("< \t") for held in _held(text, "<<", ">>"))


def two_responses(text: str) -> bool:
    """Two different responses, divided by ``******``."""
    parts = [part.strip() for part in text.split("******")]
    responses = [part for part in parts if part]
    return all(parts[1:-1]) and len(responses) == 2 and responses[0] != responses[1]


def repeat_prompt(text: str, prompt_to_repeat: str) -> bool:
    """The request word for word at the start, in any case."""
    return text.strip().lower().startswith(prompt_to_repeat.lower())


def end_checker(text: str, end_phrase: str) -> bool:
    """The phrase at the end, in any case; quotation marks after it do not count."""
    return text.strip().strip('"').lower().endswith(end_phrase.lower())


def quotation(text: str) -> bool:
    """All of the text in double quotation marks."""
    return _QUOTED.fullmatch(text) is not None
