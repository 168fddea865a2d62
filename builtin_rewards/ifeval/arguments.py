"""The arguments of a verifiable instruction, held to what their names ask for: what is odd is named, never guessed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from builtin_rewards.ifeval.language import known_languages

LESS, LEAST = "less than", "at least"
_SHOWN_CHARS = 80


class UnusableInstructionError(ValueError):
    """An instruction's id is unknown, or its arguments cannot be used: the row is at fault, not the completion."""


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


def read_arguments(values: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Gives the arguments of some names; texts without blanks around, ``3.0`` of a data set's table as ``3``.

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


def described(values: Mapping[str, Any]) -> str:
    """Gives the arguments that are there on one line, cut to a width, for a reason."""
    known = sorted((name, value) for name, value in values.items() if value is not None)
    line = ", ".join(f"{name}={repr(value)[:_SHOWN_CHARS]}" for name, value in known)
    return line if len(line) <= _SHOWN_CHARS else line[: _SHOWN_CHARS - 3] + "..."
