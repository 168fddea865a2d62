"""Outcome-supervised reward models: every token of a completion is labelled with whether its end is right.

Cobbe et al. (2021, arXiv 2110.14168, section 4) and Uesato et al. (2022, arXiv 2211.14275). N counts rows, L is the
padded width.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from rewardkit import ObjectiveError
from trainer_adapter.objectives import arrays
from trainer_adapter.objectives.arrays import IGNORED, ArrayT, Reduction, refuse_labels, refuse_row


def orm_labels(
    prompt_lengths: ArrayT | Sequence[int],
    lengths: ArrayT | Sequence[int],
    correct: ArrayT | Sequence[bool],
    *,
    width: int | None = None,
    padding_side: Literal["right", "left"] = "right",
) -> ArrayT:
    """Return the label of each token, (N, L) int64: 1 or 0 on the completion, -100 on the prompt and the padding.

    Args:
        prompt_lengths: (N,), tokens of each prompt.
        lengths: (N,), tokens of prompt and completion together, without padding.
        correct: (N,), whether the completion's outcome is right: booleans, 0 or 1.
        width: L; the longest row's length by default.
        padding_side: Where the padding of the batch is.

    Raises:
        ObjectiveError: The lengths do not fit together, a completion is empty, or a label is not 0 or 1; the message
            names the row.

    Numbers instead of arrays are one row and give its labels, (L,).
    """
    xp = arrays.namespace(prompt_lengths, lengths, correct)
    columns = {"prompt_lengths": prompt_lengths, "lengths": lengths, "correct": correct}
    pattern: Any = next((column for column in columns.values() if arrays.namespace(column) is xp), np.empty(0))
    starts, ends, right = (arrays.numbers(name, column, pattern) for name, column in columns.items())
    arrays.same_shape(prompt_lengths=starts, lengths=ends, correct=right)
    if starts.ndim == 0:
        starts, ends, right = starts[None], ends[None], right[None]
        row: ArrayT = orm_labels(starts, ends, right, width=width, padding_side=padding_side)[0]
        return row
    if starts.ndim != 1:
        raise ObjectiveError(f"lengths of shape {tuple(starts.shape)}: expected (rows,)")
    refuse_row((starts < 0) | (ends <= starts), "has no completion: its length is not above its prompt's")
    refuse_row((starts % 1 != 0) | (ends % 1 != 0), "has a length that is not a whole number")
    refuse_row((right != 0) & (right != 1), "has a label that is not 0 or 1")
    if width is not None and not arrays.is_whole(width, 0):
        raise ObjectiveError(f"width={width!r}: expected a whole number, 0 or more")
    length = int(ends.max()) if width is None and len(ends) else int(width or 0)
    refuse_row(ends > length, f"is longer than the width {length}")
    index = arrays.beside(np.arange(length), starts)[None, :]
    if padding_side == "left":
        starts, ends = starts + length - ends, ends * 0 + length
    elif padding_side != "right":
        raise ObjectiveError(f"padding_side={padding_side!r}: expected 'right' or 'left'")
    is_completion = (index >= starts[:, None]) & (index < ends[:, None])
    value = arrays.cast(right, "int64")[:, None]
    labels: ArrayT = xp.where(is_completion, value, arrays.like(IGNORED, value))
    return labels


def orm_loss(logits: ArrayT, labels: ArrayT, *, reduction: Reduction = "mean") -> ArrayT:
    """Return the cross-entropy of right or wrong over the labelled tokens, a scalar.

    Args:
        logits: (N, L), the logit of "right" at each token; or (N, L, 2), logits of wrong and right.
        labels: (N, L), 1, 0 or -100 where nothing is learned, as :func:`orm_labels` makes them.
        reduction: ``"mean"`` over the labelled tokens of the batch, or ``"sum"``.

    Raises:
        ObjectiveError: The shapes do not fit, a label is something else, or no token is labelled.
    """
    xp, logit = arrays.floats(logits=logits)
    label = arrays.numbers("labels", labels, logit)
    dtype, logit = logit.dtype, arrays.wide(logit)
    if logit.ndim == label.ndim + 1 and logit.shape[-1] == 2:
        logit = logit[..., 1] - logit[..., 0]
    arrays.same_shape(logits=logit, labels=label)
    is_labelled = label != IGNORED
    refuse_labels(label, is_labelled & (label != 0) & (label != 1), "1, 0 or -100")
    zero = arrays.like(0.0, logit)
    logit, target = (xp.where(is_labelled, values, zero) for values in (logit, arrays.like(label, logit)))
    terms = xp.where(is_labelled, arrays.softplus(logit) - logit * target, zero)
    loss: ArrayT = arrays.reduce(terms, reduction, dtype, weight=int(is_labelled.sum()), what="labelled tokens")
    return loss
