"""The reward for instructions that a program can check: word counts, keywords, formats and the like (IFEval)."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from builtin_rewards.adjustable import adjustable
from builtin_rewards.ifeval import KINDS, LEAST, LESS, known_languages
from builtin_rewards.reading.normalisation import shows
from builtin_rewards.reading.thoughts import after_thinking, strip_frame
from rewardkit import Reward, Score, reward
from rewardkit.extending import shorten, shortened

DEADLINE_S = 60.0  # Seconds that one call may take; loading langdetect's profiles is part of a worker's first one
_MAX_LISTED = 10
_SHOWN_CHARS = 80


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
_REQUIREMENTS: Mapping[str, _Requirement] = {  # by argument; any other one must be a text
    **dict.fromkeys(("keywords", "forbidden_words"), _TEXTS),
    **dict.fromkeys(("relation", "let_relation", "capital_relation"), _RELATION),
    **dict.fromkeys(("num_paragraphs", "nth_paragraph"), _POSITION),
    **dict.fromkeys(("frequency", "let_frequency", "capital_frequency", "num_words", "num_sentences"), _NUMBER),
    **dict.fromkeys(("num_placeholders", "num_bullets", "num_highlights", "num_sections"), _NUMBER),
    "letter": ("one character", lambda value: _is_text(value) and len(value.strip()) == 1),
    "language": ("a language that can be told", lambda value: _is_text(value) and value in known_languages()),
}


def _read_arguments(values: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return the named arguments, stripped, ``3.0`` of a table as ``3``; raise where one is missing or unusable."""
    arguments = {}
    for name in names:
        value = values.get(name)
        if value is None:
            raise UnusableInstructionError(f"argument {name!r} is missing")
        value = int(value) if isinstance(value, float) and value.is_integer() else value
        expected, fits = _REQUIREMENTS.get(name, _TEXT)
        if not fits(value):
            raise UnusableInstructionError(f"argument {name!r}: expected {expected}, got {shorten(value)}")
        arguments[name] = value.strip() if isinstance(value, str) else value
    return arguments


def _describe(values: Mapping[str, Any]) -> str:
    """Return the arguments that are given on one line, cut to a width."""
    arguments = sorted(name for name, value in values.items() if value is not None)
    line = ", ".join(f"{name}={shorten(values[name])}" for name in arguments)
    return shortened(line, _SHOWN_CHARS)


class Instruction(NamedTuple):
    """One instruction of a row: its id without the prefix of a language, its arguments on one line, and its check."""

    kind: str
    details: str
    check: Callable[[str], bool]

    def followed_by(self, text: str, *, loose: bool = False) -> bool:
        """Return whether a text follows it; loosely, whether any of its :func:`loose_variants` does."""
        text = strip_frame(text)
        return any(self.check(variant) for variant in (loose_variants(text) if loose else [text]) if shows(variant))


def build_instruction(instruction_id: str, arguments: Mapping[str, Any]) -> Instruction:
    """Return an instruction from its id, with or without ``en:``; raise UnusableInstructionError."""
    kind = instruction_id.removeprefix("en:")
    if kind not in KINDS:
        raise UnusableInstructionError(f"unknown instruction {shorten(instruction_id)}")
    try:
        checked = _read_arguments(arguments, list(inspect.signature(KINDS[kind]).parameters)[1:])
    except UnusableInstructionError as error:
        raise UnusableInstructionError(f"{kind}: {error}") from None
    if checked.get("nth_paragraph", 0) > checked.get("num_paragraphs", 0):
        raise UnusableInstructionError(f"{kind}: {checked['nth_paragraph']} of {checked['num_paragraphs']} paragraphs")
    return Instruction(kind, _describe(arguments), functools.partial(KINDS[kind], **checked))


def loose_variants(text: str) -> Iterator[str]:
    """Yield a text without its first line, its last line, both or neither, each with and without ``*``."""
    lines = text.split("\n")
    cut = ("\n".join(part).strip() for part in (lines[1:], lines[:-1], lines[1:-1]))
    variants = (text, *cut)
    yield from dict.fromkeys((*variants, *(variant.replace("*", "") for variant in variants)))


def _build(ids: Sequence[str], kwargs: Sequence[Mapping[str, Any] | None] | None) -> list[Instruction]:
    if not ids:
        raise UnusableInstructionError("the row has no instructions: 'instruction_id_list' is missing or empty")
    objects = [None] * len(ids) if kwargs is None else kwargs
    if len(objects) != len(ids):
        raise UnusableInstructionError(f"{len(ids)} instructions and {len(objects)} objects in 'kwargs'")
    return [build_instruction(kind, arguments or {}) for kind, arguments in zip(ids, objects, strict=True)]


def _score(instructions: Sequence[Instruction], results: Sequence[bool], *, all_or_nothing: bool) -> Score:
    verdicts: dict[str, list[bool]] = {}
    misses = []
    for instruction, is_followed in zip(instructions, results, strict=True):
        verdicts.setdefault(instruction.kind, []).append(is_followed)
        if not is_followed:
            misses.append(f"{instruction.kind} ({instruction.details})" if instruction.details else instruction.kind)
    reason = f"{sum(results)} of {len(results)} instructions followed"
    reason += f"; not followed: {', '.join(misses[:_MAX_LISTED])}" if misses else ""
    reason += f" and {len(misses) - _MAX_LISTED} more" if len(misses) > _MAX_LISTED else ""
    share = sum(results) / len(results)
    metrics = {kind: sum(rights) / len(rights) for kind, rights in verdicts.items()}
    return Score(float(not misses) if all_or_nothing else share, reason=reason, metrics=metrics)


@adjustable
def instructions(*, loose: bool = False, all_or_nothing: bool = False) -> Reward[..., Score]:
    """Return ``instructions`` with these settings.

    Args:
        loose: An instruction is followed where the completion follows it, or would without its first line, its
            last line or both, or any of these without ``*``: an introduction, a farewell and bold type are forgiven.
        all_or_nothing: Score 1.0 if every instruction is followed and 0.0 otherwise, the paper's prompt-level accuracy.
    """

    @reward(timeout_s=DEADLINE_S, score_range=(0, 1))
    def instructions(
        completion: str, instruction_id_list: list[str] | None = None, kwargs: list[dict[str, Any] | None] | None = None
    ) -> Score:
        """The share of a row's verifiable instructions that the completion follows, 0 to 1.

        Formula: instructions followed / instructions. Source: IFEval, arXiv 2311.07911, all its 25 kinds, strict or
        loose. Columns, as in its data set: ``instruction_id_list``, ids such as ``punctuation:no_comma``, also with the
        prefix ``en:``; ``kwargs``, for each the object of its arguments, such as ``{"num_words": 300, "relation": "at
        least"}``; arguments that are null, or that the kind does not have, are ignored. Metrics: each kind's share.

        A completion without visible characters follows nothing. Thoughts and stop tokens are not read. Where the
        paper's wording asks for more than its program, the wording holds: commas of all scripts are commas, blank
        placeholders do not count, of the constrained responses exactly one may be there, a text without a language is
        in none, and zero-width characters and look-alike letters do not hide what is forbidden. nltk's punkt splits
        sentences, with a list of abbreviations, and langdetect tells languages, with a fixed seed.

        ``None`` where the row has no instructions, an unknown one, or arguments that cannot be used.
        """
        try:
            checks = _build(instruction_id_list or (), kwargs)
        except UnusableInstructionError as error:
            return Score(None, reason=f"the row's instructions cannot be used: {error}")
        answer = after_thinking(completion)
        results = [check.followed_by(answer, loose=loose) for check in checks]
        return _score(checks, results, all_or_nothing=all_or_nothing)

    return instructions
