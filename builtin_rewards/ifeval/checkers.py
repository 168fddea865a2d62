"""A verifiable instruction with its arguments, and what of a text the loose check looks at."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from builtin_rewards.ifeval.arguments import UnusableInstructionError, described, read_arguments
from builtin_rewards.ifeval.kinds import KINDS
from builtin_rewards.reading.turn import unframed
from builtin_rewards.reading.typography import shows


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction of a row, ready to check texts.

    Attributes:
        kind: Its id without a language's prefix, such as ``punctuation:no_comma``.
        details: Its arguments on one line, for a reason; empty where it has none.
        check: Whether a text that is not blank follows it.
    """

    kind: str
    details: str
    check: Callable[[str], bool]

    def followed_by(self, text: str, *, loose: bool = False) -> bool:
        """Whether a text follows it; loosely, whether any of its :func:`loose_variants` does."""
        text = unframed(text)
        return any(self.check(variant) for variant in (loose_variants(text) if loose else [text]) if shows(variant))


def build_instruction(instruction_id: str, arguments: Mapping[str, Any]) -> Instruction:
    """Gives an instruction from its id, with or without the prefix ``en:``, and its arguments.

    Raises:
        UnusableInstructionError: The id is unknown, or an argument is missing or unusable.
    """
    kind = instruction_id.removeprefix("en:")
    if kind not in KINDS:
        raise UnusableInstructionError(f"unknown instruction {instruction_id[:80]!r}")
    try:
        given = read_arguments(arguments, list(inspect.signature(KINDS[kind]).parameters)[1:])
    except UnusableInstructionError as fault:
        raise UnusableInstructionError(f"{kind}: {fault}") from None
    if given.get("nth_paragraph", 0) > given.get("num_paragraphs", 0):
        raise UnusableInstructionError(f"{kind}: {given['nth_paragraph']} of {given['num_paragraphs']} paragraphs")
    return Instruction(kind, described(arguments), functools.partial(KINDS[kind], **given))


def loose_variants(text: str) -> Iterator[str]:
    """Gives a text, then it without its first line, its last line, and both; and the four without ``*``; each once."""
    lines = text.split("\n")
    cut = ("\n".join(part).strip() for part in (lines[1:], lines[:-1], lines[1:-1]))
    variants = (text, *cut)
    yield from dict.fromkeys((*variants, *(variant.replace("*", "") for variant in variants)))
