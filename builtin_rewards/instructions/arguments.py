"""The arguments of a row's instructions: what each must be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from builtin_rewards.instructions.kind import LEAST, LESS
from builtin_rewards.instructions.languages import known_languages
from rewardkit.extending import shorten


class UnusableInstructionError(ValueError):
    """An instruction's id is unknown, or its arguments cannot be used: a fault of the row."""


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


_Requirement = tuple[str, Callable[[Any], bool]]
_TEXT: _Requirement = ("a text that is not blank", _is_text)
_NUMBER: _Requirement = ("a whole number of at least 0", _is_number)
_POSITION: _Requirement = ("a whole number of at least 1", lambda value: _is_number(value) and value > 0)
_RELATION: _Requirement = (f"{LESS!r} or {LEAST!r}", lambda value: value in (LESS, LEAST))
_TEXTS: _Requirement = (
    "a list of texts that are not blank",
    lambda value: isinstance(value, list | tuple) and bool(value) and all(map(_is_text, value)),
)
_NUMBERS = (
    "frequency let_frequency capital_frequency num_words num_sentences num_placeholders num_bullets num_highlights "
    "num_sections min_words max_words n_start n_end percentage"
)
_REQUIREMENTS: Mapping[str, _Requirement] = {  # by argument; any other one must be a text
    **dict.fromkeys(("keywords", "forbidden_words"), _TEXTS),
    **dict.fromkeys(("relation", "let_relation", "capital_relation"), _RELATION),
    **dict.fromkeys(("num_paragraphs", "nth_paragraph", "N", "small_n", "n", "m"), _POSITION),
    **dict.fromkeys(_NUMBERS.split(), _NUMBER),
    "letter": ("one character", lambda value: _is_text(value) and len(value.strip()) == 1),
    "language": ("a language that can be told", lambda value: _is_text(value) and value in known_languages()),
}
# Pairs of arguments of which the first must not be the larger one.
_IN_ORDER = (("nth_paragraph", "num_paragraphs"), ("min_words", "max_words"), ("n_start", "n_end"))


def read_arguments(values: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return the named arguments, stripped, ``3.0`` of a table as ``3``; raise where one is missing or unusable."""
    arguments: dict[str, Any] = {}
    for name in names:
        value = values.get(name)
        if value is None:
            raise UnusableInstructionError(f"argument {name!r} is missing")
        value = int(value) if isinstance(value, float) and value.is_integer() else value
        expected, fits = _REQUIREMENTS.get(name, _TEXT)
        if not fits(value):
            raise UnusableInstructionError(f"argument {name!r}: expected {expected}, got {shorten(value)}")
        arguments[name] = value.strip() if isinstance(value, str) else value
    for low, high in _IN_ORDER:
        if low in arguments and high in arguments and arguments[low] > arguments[high]:
            raise UnusableInstructionError(f"{low} {arguments[low]} is more than {high} {arguments[high]}")
    return arguments
