"""Rewards of length: a range, DAPO's penalty near the limit, and the cosine that weighs length by correctness."""

from __future__ import annotations

import math
from typing import Any

from builtin_rewards.adjustable import adjustable, require
from builtin_rewards.matching import normalized_match
from builtin_rewards.reading.normalisation import fold
from rewardkit import Kind, Reward, Score, reward

UNITS = ("words", "characters", "tokens")
_ARGUMENTS = {"completion", "completion_ids", "answer"}  # what cosine_length can hand on
_NO_TOKENS = Score(None, reason="the caller gave no completion_ids, so tokens cannot be counted")


def measure_length(text: str, token_ids: list[int] | None, unit: str) -> int | None:
    """Return a completion's length without invisible characters, or ``None`` for tokens that are not given."""
    if unit == "tokens":
        return None if token_ids is None else len(token_ids)
    text = fold(text)
    return len(text.split()) if unit == "words" else len(text.strip())


@adjustable
def length_between(lo: int = 10, hi: int = 400, *, unit: str = "words") -> Reward[..., Score]:
    """Return ``length_between`` with these settings.

    Args:
        lo: The least length that scores 1.0; from 0 to ``hi``.
        hi: The greatest length that scores 1.0; at least 1.
        unit: ``words`` (parted by blanks), ``characters``, which suits languages without blanks, or ``tokens``.
    """
    require(0 <= lo <= hi and hi >= 1, "0 <= lo <= hi, and hi at least 1", lo=lo, hi=hi)
    require(unit in UNITS, f"one of {', '.join(UNITS)}", unit=unit)

    @reward(score_range=(0, 1))
    def length_between(completion: str, completion_ids: list[int] | None = None) -> Score:
        """1.0 if the completion's length is between lo and hi, both included; less the farther it is outside.

        Formula, with n the length: n / lo below lo, 1 - (n - hi) / hi above hi and never under 0.0. No columns.
        ``None`` where the unit is tokens and the caller gave no ``completion_ids``.
        """
        # audit: skip long the length is what it pays for; what fills it, another reward must judge
        length = measure_length(completion, completion_ids, unit)
        if length is None:
            return _NO_TOKENS
        score = length / lo if length < lo else max(0.0, 1 - max(0, length - hi) / hi)
        return Score(score, reason=f"{length} {unit}, wanted {lo} to {hi}", metrics={"length": length})

    return length_between


@adjustable
def soft_overlong_punishment(l_max: int = 20_480, l_cache: int = 4_096) -> Reward[..., Score]:
    """Return ``soft_overlong_punishment`` with these settings; the defaults are DAPO's.

    Args:
        l_max: The greatest length in tokens; beyond it the penalty is whole.
        l_cache: How many tokens before ``l_max`` the penalty begins; above 0, up to ``l_max``.
    """
    require(0 < l_cache <= l_max, "0 < l_cache <= l_max", l_max=l_max, l_cache=l_cache)
    free = l_max - l_cache

    @reward(score_range=(-1, 0))
    def soft_overlong_punishment(completion_ids: list[int] | None) -> Score:
        """A penalty from 0 to -1 for a completion that comes near the greatest length, or passes it.

        Formula, with n the tokens: 0 for n <= l_max - l_cache; ((l_max - l_cache) - n) / l_cache up to l_max; -1
        beyond. Source: DAPO, arXiv 2503.14476, eq. 13. It is meant to be added to a reward for correctness. No
        columns. ``None`` where the caller gave no ``completion_ids``.
        """
        if completion_ids is None:
            return _NO_TOKENS
        length = len(completion_ids)
        penalty = 0.0 if length <= free else -1.0 if length > l_max else (free - length) / l_cache
        return Score(penalty, reason=f"{length} tokens, free up to {free}", metrics={"length": length})

    return soft_overlong_punishment


def _argument_names(correct: Reward[..., Any]) -> set[str]:
    """Return the arguments that a reward takes of those that ``cosine_length`` has; a ValueError for a wrong reward."""
    is_valid = isinstance(correct, Reward) and correct.spec.kind is Kind.SINGLE and not correct.spec.is_async
    require(is_valid, "a reward of one completion that is not async", correct=correct)
    columns = ", ".join({parameter.name for parameter in correct.spec.parameters if parameter.required} - _ARGUMENTS)
    require(not columns, f"a reward whose only column is 'answer'; this one asks for {columns}", correct=correct)
    return {parameter.name for parameter in correct.spec.parameters} & _ARGUMENTS


@adjustable
def cosine_length(
    correct: Reward[..., Any] = normalized_match,
    *,
    max_length: int = 16_384,
    unit: str = "tokens",
    threshold: float = 0.5,
    r0_correct: float = 2.0,
    rl_correct: float = 1.0,
    r0_wrong: float = -10.0,
    rl_wrong: float = 0.0,
    exceeded: float = -10.0,
) -> Reward[..., Score]:
    """Return ``cosine_length`` with these settings.

    Args:
        correct: The reward that says whether the completion is right; it asks for no column besides ``answer``.
        max_length: The length at which a completion counts as cut off, at least 1.
        unit: ``tokens``, ``words`` or ``characters``.
        threshold: The least score of ``correct`` that counts as right.
        r0_correct: Score of a right completion of no length.
        rl_correct: Score of a right completion of nearly ``max_length``.
        r0_wrong: Score of a wrong completion of no length.
        rl_wrong: Score of a wrong completion of nearly ``max_length``.
        exceeded: Score of a completion of ``max_length`` or more.
    """
    # The usual numbers are those of the paper's appendix E.5.3, whose runs have a context of 16,384 tokens.
    names = _argument_names(correct)
    require(unit in UNITS, f"one of {', '.join(UNITS)}", unit=unit)
    require(max_length >= 1, "at least 1", max_length=max_length)
    bounds = (r0_correct, rl_correct, r0_wrong, rl_wrong, exceeded)
    require(all(map(math.isfinite, (*bounds, threshold))), "finite numbers", scores=bounds, threshold=threshold)

    @reward(score_range=(min(bounds), max(bounds)), timeout_s=max(10.0, correct.options.timeout_s))
    def cosine_length(completion: str, answer: Any, completion_ids: list[int] | None = None) -> Score:
        """A score that falls with length for right completions and rises with it for wrong ones.

        Formula, with n the length and N ``max_length``: rN + (r0 - rN) (1 + cos(pi n / N)) / 2, with r0 and rN those
        for right or for wrong completions; the score for exceeding where n >= N. Source: arXiv 2502.03373, section 4.2
        and appendix C.1. Columns: ``answer``, as the setting ``correct`` reads it. ``None`` where ``correct`` skips the
        row, or where the unit is tokens and the caller gave no ``completion_ids``.
        """
        # audit: skip long,bomb the formula punishes a wrong answer less the longer it is, up to the limit
        length = measure_length(completion, completion_ids, unit)
        if length is None:
            return _NO_TOKENS
        arguments = {"completion": completion, "answer": answer, "completion_ids": completion_ids}
        result = correct(**{name: arguments[name] for name in names})
        value = result.value if isinstance(result, Score) else result
        if value is None:
            return Score(None, reason=f"{correct.name} skipped the row: {getattr(result, 'reason', None)}")
        is_right = value >= threshold
        start, end = (r0_correct, rl_correct) if is_right else (r0_wrong, rl_wrong)
        curve = end + (start - end) * (1 + math.cos(math.pi * length / max_length)) / 2
        score = exceeded if length >= max_length else min(max(curve, min(bounds)), max(bounds))
        reason = f"{'right' if is_right else 'wrong'} by {correct.name}, {length} {unit} of {max_length}"
        return Score(score, reason=reason, metrics={"length": length, "correct": float(is_right)})

    return cosine_length
