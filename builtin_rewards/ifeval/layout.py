"""Verifiable instructions on layout: placeholders, lists, sections, titles, JSON, quotes, how a text starts and ends.

Each function reads its arguments and gives a checker, which says whether a text that is not blank follows the
instruction. All checkers take time linear in the text: where a regular expression would look for an end again from
every start, the text is scanned by hand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from builtin_rewards.ifeval.arguments import Arguments, Checker

_HIGHLIGHTS = (re.compile(r"\*([^\n*]*)\*"), re.compile(r"\*\*([^\n*]*)\*\*"))
_QUOTED = re.compile(r'\s*".*"\s*', re.DOTALL)
_POSTSCRIPTS = {"P.S.": re.compile(r"p\.\s?s\."), "P.P.S": re.compile(r"p\.\s?p\.\s?s")}
_OPTIONS = ("my answer is yes.", "my answer is no.", "my answer is maybe.")
_FENCES = ("```json", "```Json", "```JSON", "```")


def number_placeholders(arguments: Arguments) -> Checker:
    """At least so many placeholders such as ``[address]``; blank ones do not count."""
    wanted = arguments.number("num_placeholders")
    return lambda text: sum(bool(held.strip("[ \t")) for held in _held(text, "[", "]")) >= wanted


def _held(text: str, opening: str, closing: str) -> Iterator[str]:
    """Gives what stands on one line between an opening and the next closing."""
    for line in text.split("\n"):
        *parts, _ = line.split(closing)
        yield from (part.partition(opening)[2] for part in parts)


def postscript(arguments: Arguments) -> Checker:
    """The marker of a postscript, such as ``P.S.``, in any case and with spaces between its letters."""
    marker = arguments.text("postscript_marker").strip()
    pattern = _POSTSCRIPTS.get(marker) or re.compile(re.escape(marker.lower()))
    return lambda text: pattern.search(text.lower()) is not None


def number_bullet_lists(arguments: Arguments) -> Checker:
    """Exactly so many bullet points: lines that start with ``*`` (not ``**``) or ``-``."""
    wanted = arguments.number("num_bullets")
    return lambda text: sum(_is_bullet(line.lstrip()) for line in text.split("\n")) == wanted


def _is_bullet(line: str) -> bool:
    return line.startswith("-") or (line.startswith("*") and line[1:2] != "*")


def constrained_response(arguments: Arguments) -> Checker:
    """One of ``My answer is yes.``, ``My answer is no.`` and ``My answer is maybe.``, and no other of them."""
    return lambda text: sum(option in text.lower() for option in _OPTIONS) == 1


def number_highlighted_sections(arguments: Arguments) -> Checker:
    """At least so many passages of one line marked ``*so*`` or ``**so**``; blank ones do not count."""
    wanted = arguments.number("num_highlights")
    return lambda text: sum(bool(held.strip()) for mark in _HIGHLIGHTS for held in mark.findall(text)) >= wanted


def multiple_sections(arguments: Arguments) -> Checker:
    """At least so many sections, each with a mark and a number, such as ``Section 1``."""
    wanted = arguments.number("num_sections")
    mark = re.compile(re.escape(arguments.text("section_spliter").strip()) + r"\s?\d+")
    return lambda text: sum(1 for _ in mark.finditer(text)) >= wanted


def json_format(arguments: Arguments) -> Checker:
    """All of the text is JSON, or a fenced block of it."""
    return _is_json


def _is_json(text: str) -> bool:
    bare = text.strip()
    for fence in _FENCES:
        bare = bare.removeprefix(fence)
    try:
        # Numbers stay text: turning long ones into integers is quadratic, and refused.
        json.loads(bare.removesuffix("```").strip(), parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return False
    return True


def title(arguments: Arguments) -> Checker:
    """A title in double angular brackets, such as ``<<poem of joy>>``, on one line and not blank."""
    return lambda text: any(held.strip("< \t") for held in _held(text, "<<", ">>"))


def two_responses(arguments: Arguments) -> Checker:
    """Two different responses, divided by ``******``."""

    def check(text: str) -> bool:
        parts = [part.strip() for part in text.split("******")]
        responses = [part for part in parts if part]
        return all(parts[1:-1]) and len(responses) == 2 and responses[0] != responses[1]

    return check


def repeat_prompt(arguments: Arguments) -> Checker:
    """The request word for word at the start, in any case."""
    request = arguments.text("prompt_to_repeat").strip().lower()
    return lambda text: text.strip().lower().startswith(request)


def end_checker(arguments: Arguments) -> Checker:
    """The phrase at the end, in any case; quotation marks after it do not count."""
    phrase = arguments.text("end_phrase").strip().lower()
    return lambda text: text.strip().strip('"').lower().endswith(phrase)


def quotation(arguments: Arguments) -> Checker:
    """All of the text in double quotation marks."""
    return lambda text: _QUOTED.fullmatch(text) is not None
