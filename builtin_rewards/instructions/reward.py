"""The reward for instructions that a program can check: word counts, keywords, formats and the like."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from builtin_rewards.adjustable import adjustable
from builtin_rewards.instructions.arguments import UnusableInstructionError, read_arguments
from builtin_rewards.instructions.kinds import KINDS
from builtin_rewards.reading.normalisation import shows
from builtin_rewards.reading.thoughts import after_thinking, strip_frame
from rewardkit import Reward, Score, reward
from rewardkit.extending import shorten, shortened

DEADLINE_S = 60.0  # Seconds that one call may take; loading langdetect's profiles is part of a worker's first one
_MAX_LISTED = 10
_SHOWN_CHARS = 80


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
        checked = read_arguments(arguments, KINDS[kind].parameters)
    except UnusableInstructionError as error:
        raise UnusableInstructionError(f"{kind}: {error}") from None
    return Instruction(kind, _describe(arguments), functools.partial(KINDS[kind].check, **checked))


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

        Formula: instructions followed / instructions, strict or loose. Sources: IFEval (Zhou et al., arXiv 2311.07911)
        and IFBench (Pyatkin et al., arXiv 2507.02833), all kinds of both; a table below has the rule of each. Columns,
        as in their data sets: ``instruction_id_list``, ids such as ``punctuation:no_comma``, also with the prefix
        ``en:``; ``kwargs``, for each the object of its arguments, such as ``{"num_words": 300, "relation": "at
        least"}``; arguments that are null, or that the kind does not have, are ignored. Metrics: each kind's share.

        A completion without visible characters follows nothing. Thoughts and stop tokens are not read. nltk's punkt
        splits sentences, with a list of abbreviations. Where the wording of an instruction asks for more than the
        paper's program checks, the wording holds. Of IFEval: keywords are words, not parts of words; a line that only
        draws is no bullet; commas of all scripts are commas; blank placeholders do not count; exactly one of the
        constrained responses may be there; a text without a language is in none; zero-width characters and look-alike
        letters do not hide what is forbidden. Of IFBench: conjunctions, names and palindromes that repeat count once, a
        name is a whole word, what compares sentences, lines or every Nth word needs two of them (or one Nth word), and
        so do balances and bullets need one; three sentences of equal length have different words; a template keeps its
        order. Where the program refuses what the wording allows, the wording holds too: marks around a first word,
        Roman numbers of sections, curly quotation marks, minor words of a title, a last word that belongs to a span,
        marks that are no words, capitals and short texts whose language langdetect, but not py3langid, mistakes.

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
