"""A batch of completions as the objectives compute with it: checked, of full precision, its padding not read.

B counts completions, T the tokens of the longest one.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any, Literal, TypeAlias

import numpy as np

from rewardkit import ObjectiveError
from trainer_adapter.objectives import arrays
from trainer_adapter.objectives.arrays import Array

Level: TypeAlias = Literal["token", "sequence"]
"""Of what the ratio of probabilities is: of each token (GRPO), or of the whole completion (GSPO)."""

_LARGEST_LOG_RATIO = 60.0
_MASKED = "expected a log-probability; mask a token without one"


@dataclass(frozen=True, slots=True)
class TokenBatch:
    """Log-probabilities and advantages of completions, half precision as float32, 0 where there is no token."""

    xp: ModuleType  # numpy or torch
    dtype: Any  # That of the result
    is_token: Any  # (B, T), booleans
    logps: Any  # (B, T), with the gradient
    old_logps: Any  # (B, T), constants, as all that follows
    advantages: Any  # (B, 1) or (B, T)

    @property
    def log_ratio(self) -> Any:
        """The log-ratio of each token's probabilities, (B, T)."""
        return self.logps - self.old_logps

    def ratio(self, level: Level) -> Any:
        """Return the ratio of probabilities, at most exp(60): (B, T), or (B, 1) of whole completions."""
        if level not in ("token", "sequence"):
            raise ObjectiveError(f"level={level!r}: expected 'token' or 'sequence'")
        away = row_mean(self.log_ratio, self.is_token) if level == "sequence" else self.log_ratio
        return ratio_of(away)

    def result(self, terms: Array) -> Any:
        """Return a term a token in the dtype of the batch, 0 where there is no token."""
        return arrays.cast(self.xp.where(self.is_token, terms, arrays.like(0.0, terms)), self.dtype)


def token_batch(logps: object, old_logps: object, advantages: object, mask: object) -> TokenBatch:
    """Return a checked batch; ``old_logps=None`` are those of this very policy.

    Raises:
        ObjectiveError: Shapes do not fit, or what is read is not finite.
    """
    _, new, advantage = arrays.floats(logps=logps, advantages=advantages)
    if new.ndim != 2:
        raise ObjectiveError(f"logps of shape {tuple(new.shape)}: expected (completions, tokens)")
    old = constant(new) if old_logps is None else arrays.cast(arrays.numbers("old_logps", old_logps, new), new.dtype)
    arrays.same_shape(logps=new, old_logps=old)
    is_token = tokens(mask, new)
    advantage = per_completion("advantages", advantage, new)
    refuse_infinite("advantages", advantage, is_token, "a completion without a reward has 0")
    refuse_infinite("logps", new, is_token, _MASKED)
    refuse_infinite("old_logps", old, is_token, _MASKED)
    advantage = arrays.wide(constant(advantage))
    xp = arrays.namespace(new)
    if advantage.shape == is_token.shape:
        advantage = xp.where(is_token, advantage, arrays.like(0.0, advantage))
    logps_only, old_only = (only_tokens(values, is_token) for values in (new, constant(old)))
    return TokenBatch(xp, new.dtype, is_token, logps_only, old_only, advantage)


def ratio_of(log_ratio: Array) -> Any:
    """Return the ratio of probabilities of its logarithm; one above exp(60) counts as that."""
    xp = arrays.namespace(log_ratio)
    return xp.exp(xp.clip(log_ratio, None, _LARGEST_LOG_RATIO))


def per_completion(name: str, values: Array, logps: Array) -> Any:
    """Return what there is one of a completion, (B,), as (B, 1), and what there is one of a token as it is, (B, T)."""
    rows = logps.shape[0]
    if tuple(values.shape) not in ((rows,), (rows, 1), tuple(logps.shape)):
        raise ObjectiveError(f"{name} of shape {tuple(values.shape)}: expected ({rows},) or {tuple(logps.shape)}")
    return values if values.ndim == 2 else values[:, None]


def refuse_infinite(name: str, values: Array, is_token: Array, fix: str = _MASKED) -> None:
    """Refuse a value that is not finite where it would be read: one of them makes the whole loss ``nan``."""
    bad = ~arrays.namespace(values).isfinite(values) & is_token
    if bool(bad.any()):
        row, token = divmod(int(arrays.cast(bad, "int8").reshape(-1).argmax()), is_token.shape[1])
        is_one_a_row = values.shape != is_token.shape
        at, value = (f"{row}", values[row, 0]) if is_one_a_row else (f"{row}, {token}", values[row, token])
        raise ObjectiveError(f"{name}[{at}] is {value.item()!r}, not finite: {fix}")


def tokens(mask: object, logps: Array) -> Any:
    """Return where there is a token, as booleans: everywhere without a mask."""
    if mask is None:
        return arrays.namespace(logps).ones_like(logps) == 1
    marks = arrays.numbers("mask", mask, logps)
    arrays.same_shape(logps=logps, mask=marks)
    if not bool(((marks == 0) | (marks == 1)).all()):
        raise ObjectiveError("mask: expected 1 on the tokens of a completion and 0 on its padding")
    return marks == 1


def only_tokens(values: Array, is_token: Array) -> Any:
    """Return the values of the tokens, half precision as float32, and 0 in place of the padding's."""
    full = arrays.wide(values)
    return arrays.namespace(full).where(is_token, full, arrays.like(0.0, full))


def row_mean(values: Array, is_token: Array) -> Any:
    """Return the mean over the tokens of each row, (B, 1), of values that are 0 elsewhere; 0 without tokens."""
    count = is_token.sum(axis=1, keepdims=True)
    return values.sum(axis=1, keepdims=True) / arrays.namespace(values).where(count > 0, count, count + 1)


def constant(values: Array) -> Any:
    """Return the values without a gradient."""
    return values if arrays.namespace(values) is np else values[...].detach()
