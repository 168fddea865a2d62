"""Process-supervised reward models: each step of a completion is labelled at its last token.

Lightman et al. (2023, arXiv 2305.20050) and Uesato et al. (2022, arXiv 2211.14275). A step is right (+1), neutral (0)
or wrong (-1); the classes of the model are these in ascending order, :data:`PRM_CLASSES`. N counts rows, L is the
padded width.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from rewardkit import ObjectiveError
from trainer_adapter.objectives import arrays
from trainer_adapter.objectives.arrays import IGNORED, ArrayT, Reduction, refuse_labels

PRM_CLASSES = (-1, 0, 1)
"""The step label that each class of the model stands for: class 0 is wrong, 1 neutral, 2 right."""
_EXPECTED = {"step label": "+1 for right, 0 for neutral, -1 for wrong", "step end": "a whole number"}


def prm_labels(
    step_ends: Sequence[Sequence[int]] | ArrayT,
    step_labels: Sequence[Sequence[int]] | ArrayT,
    *,
    width: int | None = None,
) -> ArrayT:
    """Return the class of each token, (N, L) int64: 0, 1 or 2 at a step's last token, -100 elsewhere.

    Args:
        step_ends: For each row the places of its steps' last tokens, ascending; rows may have different numbers.
        step_labels: For each row as many labels: +1 right, 0 neutral, -1 wrong; no booleans.
        width: L; by default up to the last end of all rows.

    Ends and labels of one row, numbers instead of lists, give that row's labels, (L,).

    Raises:
        ObjectiveError: Ends and labels do not match, ends do not ascend or lie outside, or a label is another number;
            the message names the row.
    """
    for name, rows in (("step_ends", step_ends), ("step_labels", step_labels)):
        if isinstance(rows, str | bytes) or not hasattr(rows, "__len__") or getattr(rows, "ndim", 1) == 0:
            raise ObjectiveError(f"{name}={rows!r}: expected a list for each row")
    if width is not None and not arrays.is_whole(width, 0):
        raise ObjectiveError(f"width={width!r}: expected a whole number, 0 or more")
    xp = arrays.namespace(step_ends, step_labels, *step_ends, *step_labels)
    if _is_row(step_ends) and _is_row(step_labels):
        row: ArrayT = prm_labels([step_ends], [step_labels], width=width)[0]  # type: ignore[list-item]
        return row
    if len(step_ends) != len(step_labels):
        raise ObjectiveError(f"step_ends has {len(step_ends)} rows, step_labels {len(step_labels)}")
    ends = [_integers(row, number, "step end") for number, row in enumerate(step_ends)]
    labels = [_integers(row, number, "step label") for number, row in enumerate(step_labels)]
    last = max((row[-1] for row in ends if row), default=-1)
    columns = last + 1 if width is None else width
    table = np.full((len(ends), columns), IGNORED, dtype=np.int64)
    for number, (row_ends, row_labels) in enumerate(zip(ends, labels, strict=True)):
        _check(number, row_ends, row_labels, columns)
        table[number, row_ends] = [PRM_CLASSES.index(label) for label in row_labels]
    if xp is np:
        return table  # type: ignore[return-value]
    device = next((rows.device for rows in (step_ends, step_labels) if isinstance(rows, xp.Tensor)), None)
    classes: ArrayT = xp.as_tensor(table, device=device)
    return classes


def prm_loss(logits: ArrayT, labels: ArrayT, *, reduction: Reduction = "mean") -> ArrayT:
    """Return the cross-entropy over the labelled steps, a scalar.

    Args:
        logits: (N, L, C), one a class; C is 3 for the classes of :func:`prm_labels`.
        labels: (N, L), the class, or -100 where nothing is learned.
        reduction: ``"mean"`` over the labelled steps of the batch, or ``"sum"``.

    Raises:
        ObjectiveError: The shapes do not fit, a label is not a class, or no step is labelled.
    """
    xp, logit = arrays.floats(logits=logits)
    label = arrays.numbers("labels", labels, logit)
    dtype, logit = logit.dtype, arrays.wide(logit)
    if logit.ndim < 1 or tuple(logit.shape[:-1]) != tuple(label.shape):
        raise ObjectiveError(f"logits {tuple(logit.shape)}: expected the shape of labels {tuple(label.shape)} + (C,)")
    is_labelled, classes = label != IGNORED, logit.shape[-1]
    refuse_labels(label, is_labelled & ((label < 0) | (label >= classes)), f"-100 or 0 to {classes - 1}")
    zero = arrays.like(0.0, logit)
    logit = xp.where(is_labelled[..., None], logit, zero)
    target = arrays.cast(xp.where(is_labelled, label, arrays.like(0, label)), "int64")
    terms = arrays.logsumexp(logit) - arrays.take_along(logit, target[..., None])[..., 0]
    terms = xp.where(is_labelled, terms, zero)
    loss: ArrayT = arrays.reduce(terms, reduction, dtype, weight=int(is_labelled.sum()), what="labelled steps")
    return loss


def aggregate(token_probs: ArrayT, mask: ArrayT, how: Literal["mean", "min", "product", "last"] = "mean") -> ArrayT:
    """Return one score a row of the probabilities where the mask is true, (N,).

    Lightman et al. (2023, section 2.6) take the product of the steps' probabilities of being right, and compare the
    minimum (appendix F.2); Cobbe et al. (2021) take the last token's.

    Args:
        token_probs: (N, L); what the mask leaves out is not read, ``nan`` included.
        mask: (N, L), true or 1 where there is a step or a token to count.
        how: ``"mean"``, ``"min"``, ``"product"``, or ``"last"``, the last place of the mask.

    Returns:
        (N,); ``nan`` for a row whose mask is empty: it has no score, and none is invented.

    Raises:
        ObjectiveError: The shapes differ, or there is no such ``how``.
    """
    if how not in ("mean", "min", "product", "last"):
        raise ObjectiveError(f"how={how!r}: expected 'mean', 'min', 'product' or 'last'")
    xp, prob = arrays.floats(token_probs=token_probs)
    keep = arrays.numbers("mask", mask, prob) != 0
    arrays.same_shape(token_probs=prob, mask=keep)
    if prob.ndim < 1:
        raise ObjectiveError("token_probs is one number: expected (rows, tokens)")
    if not prob.shape[-1]:  # numpy has no minimum and no last token of nothing
        unknown: ArrayT = arrays.like(np.full(prob.shape[:-1], np.nan), prob)
        return unknown
    dtype, prob = prob.dtype, arrays.wide(prob)
    count = keep.sum(-1)
    if how == "mean":
        value = xp.where(keep, prob, arrays.like(0.0, prob)).sum(-1) / xp.where(count > 0, count, arrays.like(1, count))
    elif how == "min":
        value = xp.amin(xp.where(keep, prob, arrays.like(float("inf"), prob)), axis=-1)
    elif how == "product":
        value = xp.prod(xp.where(keep, prob, arrays.like(1.0, prob)), axis=-1)
    else:
        last = (keep * (arrays.beside(np.arange(keep.shape[-1]), prob) + 1)).argmax(-1)
        value = arrays.take_along(xp.where(keep, prob, arrays.like(0.0, prob)), last[..., None])[..., 0]
    score: ArrayT = arrays.cast(xp.where(count > 0, value, arrays.like(float("nan"), prob)), dtype)
    return score


def _is_row(values: Iterable[object]) -> bool:
    """Return whether these are the numbers of one row, and not rows."""
    numbers = list(values)
    return bool(numbers) and all(np.ndim(value) == 0 and not isinstance(value, str) for value in numbers)  # type: ignore[arg-type]


def _integers(values: Any, row: int, noun: str) -> list[int]:
    """Return the whole numbers of a row; refuse booleans, because a step that is false would pass as neutral."""
    numbers = values.tolist() if hasattr(values, "tolist") else list(values) if np.ndim(values) else values
    if not isinstance(numbers, list):
        raise ObjectiveError(f"row {row}: {noun}s {numbers!r}: expected a list")
    plain = [number.item() if hasattr(number, "item") else number for number in numbers]
    for number in plain:
        if isinstance(number, bool) or not isinstance(number, int | float) or number != number // 1:
            raise ObjectiveError(f"row {row}: {noun} {number!r}: expected {_EXPECTED[noun]}")
    return [int(number) for number in plain]


def _check(row: int, ends: list[int], labels: list[int], width: int) -> None:
    """Raise ``ObjectiveError`` for a row whose step ends do not ascend within the width, or with wrong labels."""
    if len(ends) != len(labels):
        raise ObjectiveError(f"row {row} has {len(ends)} step ends and {len(labels)} labels")
    if any(later <= earlier for earlier, later in pairwise(ends)):
        raise ObjectiveError(f"row {row}: step ends {ends} do not ascend")
    if ends and not (ends[0] >= 0 and ends[-1] < width):
        raise ObjectiveError(f"row {row}: step ends {ends} lie outside the width {width}")
    for label in labels:
        if label not in PRM_CLASSES:
            raise ObjectiveError(f"row {row}: step label {label!r}: expected {_EXPECTED['step label']}")
