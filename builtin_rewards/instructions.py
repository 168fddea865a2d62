"""The reward for instructions that a program can check: word counts, keywords, formats and the like (IFEval)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from builtin_rewards.adjustable import adjustable
from builtin_rewards.ifeval.checkers import Instruction, UnusableInstructionError, build_instruction
from builtin_rewards.reading.thoughts import after_thinking
from rewardkit import Reward, Score, reward

DEADLINE_S = 60.0
"""Seconds that one call may take; loading langdetect's profiles is part of a worker's first one."""
_NAMED = 10


def _build(ids: Sequence[str], kwargs: Sequence[Mapping[str, Any] | None] | None) -> list[Instruction]:
    if not ids:
        raise UnusableInstructionError("the row has no instructions: 'instruction_id_list' is missing or empty")
    given = [None] * len(ids) if kwargs is None else kwargs
    if len(given) != len(ids):
        raise UnusableInstructionError(f"{len(ids)} instructions and {len(given)} objects in 'kwargs'")
    return [build_instruction(one, arguments or {}) for one, arguments in zip(ids, given, strict=True)]


def _score(instructions: Sequence[Instruction], followed: Sequence[bool], *, all_or_nothing: bool) -> Score:
    verdicts: dict[str, list[bool]] = {}
    missed = []
    for one, right in zip(instructions, followed, strict=True):
        verdicts.setdefault(one.kind, []).append(right)
        if not right:
            missed.append(f"{one.kind} ({one.details})" if one.details else one.kind)
    reason = f"{sum(followed)} of {len(followed)} instructions followed"
    reason += f"; not followed: {', '.join(missed[:_NAMED])}" if missed else ""
    reason += f" and {len(missed) - _NAMED} more" if len(missed) > _NAMED else ""
    share = sum(followed) / len(followed)
    metrics = {kind: sum(rights) / len(rights) for kind, rights in verdicts.items()}
    return Score(float(not missed) if all_or_nothing else share, reason=reason, metrics=metrics)


@adjustable
def instructions(*, loose: bool = False, all_or_nothing: bool = False) -> Reward[..., Score]:
    """Settings of ``instructions``.

    Args:
        loose: An instruction is followed where the completion follows it, or would without its first line, its
            last line or both, or any of these without ``*``: an introduction, a farewell and bold type are forgiven.
        all_or_nothing: Score 1.0 if every instruction is followed and 0.0 otherwise, the paper's prompt-level accuracy.
    """

    @reward(timeout_s=DEADLINE_S, score_range=(0, 1))
    def instructions(
        completion: str,
        instruction_id_list: list[str] | None = None,
        kwargs: list[dict[str, Any] | None] | None = None,
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
            built = _build(instruction_id_list or (), kwargs)
        except UnusableInstructionError as fault:
            return Score(None, reason=f"the row's instructions cannot be used: {fault}")
        said = after_thinking(completion)
        followed = [one.followed_by(said, loose=loose) for one in built]
        return _score(built, followed, all_or_nothing=all_or_nothing)

    return instructions
