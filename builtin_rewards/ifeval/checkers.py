"""A verifiable instruction with its arguments, which are checked against what their names ask for."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from builtin_rewards.ifeval.kinds import KINDS, LEAST, LESS
from builtin_rewards.ifeval.language import known_languages
from builtin_rewards.reading.normalisation import shows
from builtin_rewards.reading.thoughts import unframed

_SHOWN_CHARS = 80


class UnusableInstructionError(ValueError):
    """An instruction's id is unknown, or its arguments cannot be used: a fault of the row."""


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


_Wanted = tuple[str, Callable[[Any], bool]]
_TEXT: _Wanted = ("a text that is not blank", _is_text)
_NUMBER: _Wanted = ("a whole number of at least 0", _is_number)
_PLACE: _Wanted = ("a whole number of at least 1", lambda value: _is_number(value) and value > 0)
_RELATION: _Wanted = (f"{LESS!r} or {LEAST!r}", lambda value: value in (LESS, LEAST))
_TEXTS: _Wanted = (
    "a list of texts that are not blank",
    lambda value: isinstance(value, list | tuple) and bool(value) and all(map(_is_text, value)),
)
_WANTED: Mapping[str, _Wanted] = {
    **dict.fromkeys(("keywords", "forbidden_words"), _TEXTS),
    **dict.fromkeys(("relation", "let_relation", "capital_relation"), _RELATION),
    **dict.fromkeys(("num_paragraphs", "nth_paragraph"), _PLACE),
    **dict.fromkeys(("frequency", "let_frequency", "capital_frequency", "num_words", "num_sentences"), _NUMBER),
    **dict.fromkeys(("num_placeholders", "num_bullets", "num_highlights", "num_sections"), _NUMBER),
    "letter": ("one character", lambda value: _is_text(value) and len(value.strip()) == 1),
    "language": ("a language that can be told", lambda value: _is_text(value) and value in known_languages()),
}
"""What an argument must be, by its name; those that are not named are texts."""


def _read_arguments(values: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return the named arguments, stripped, with ``3.0`` from a data set's table as ``3``.

    Raises:
        UnusableInstructionError: One is missing, ``None`` or of another kind.
    """
    read = {}
    for name in names:
        value = values.get(name)
        if value is None:
            raise UnusableInstructionError(f"argument {name!r} is missing")
        value = int(value) if isinstance(value, float) and value.is_integer() else value
        wanted, fits = _WANTED.get(name, _TEXT)
        if not fits(value):
            raise UnusableInstructionError(f"argument {name!r}: expected {wanted}, got {repr(value)[:_SHOWN_CHARS]}")
        read[name] = value.strip() if isinstance(value, str) else value
    return read


def _described(values: Mapping[str, Any]) -> str:
    """Return the arguments that are given on one line, cut to a width."""
    known = sorted((name, value) for name, value in values.items() if value is not None)
    line = ", ".join(f"{name}={repr(value)[:_SHOWN_CHARS]}" for name, value in known)
    return line if len(line) <= _SHOWN_CHARS else line[: _SHOWN_CHARS - 3] + "..."


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction of a row, ready to check texts.

    Attributes:
        kind: Its id without the prefix of a language, such as ``punctuation:no_comma``.
        details: Its arguments on one line, for a reason.
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
    """Return an instruction from its id, with or without the prefix ``en:``, and its arguments.

    Raises:
        UnusableInstructionError: The id is unknown, or an argument is missing or unusable.
    """
    kind = instruction_id.removeprefix("en:")
    if kind not in KINDS:
        raise UnusableInstructionError(f"unknown instruction {instruction_id[:_SHOWN_CHARS]!r}")
    try:
        given = _read_arguments(arguments, list(inspect.signature(KINDS[kind]).parameters)[1:])
    except UnusableInstructionError as fault:
        raise UnusableInstructionError(f"{kind}: {fault}") from None
    if given.get("nth_paragraph", 0) > given.get("num_paragraphs", 0):
        raise UnusableInstructionError(f"{kind}: {given['nth_paragraph']} of {given['num_paragraphs']} paragraphs")
    return Instruction(kind, _described(arguments), functools.partial(KINDS[kind], **given))


def loose_variants(text: str) -> Iterator[str]:
    """Return a text without its first line, its last line, both or neither, each with and without ``*``."""
    lines = text.split("\n")
    cut = ("\n".join(part).strip() for part in (lines[1:], lines[:-1], lines[1:-1]))
    variants = (text, *cut)
    yield from dict.fromkeys((*variants, *(variant.replace("*", "") for variant in variants)))
