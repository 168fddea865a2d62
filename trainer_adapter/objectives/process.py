"""Process-supervised reward models: each step of a completion is labelled at its last token.

Lightman et al. (2023, arXiv 2305.20050) and Uesato et al. (2022, arXiv 2211.14275). A step is right (+1), neutral (0)
or wrong (-1); the classes of the model are these in ascending order, :data:`PRM_CLASSES`. N counts rows, L is the
padded width.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from rewardkit import ObjectiveError
from trainer_adapter.objectives.arrays import (
    ArrayT,
    Reduction,
    beside,
    cast,
    floats,
    is_whole,
    like,
    logsumexp,
    namespace,
    numbers,
    reduced,
    same_shape,
    take_along,
    wide,
)
from trainer_adapter.objectives.labels import IGNORED, refuse_labels

PRM_CLASSES = (-1, 0, 1)
"""The step label that each class of the model stands for: class 0 is wrong, 1 neutral, 2 right."""


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
    for name, given in (("step_ends", step_ends), ("step_labels", step_labels)):
        if isinstance(given, str | bytes) or not hasattr(given, "__len__") or getattr(given, "ndim", 1) == 0:
            raise ObjectiveError(f"{name}={given!r}: expected a list for each row")
    if width is not None and not is_whole(width, 0):
        raise ObjectiveError(f"width={width!r}: expected a whole number, 0 or more")
    xp = namespace(step_ends, step_labels, *step_ends, *step_labels)
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
    for number, (places, marks) in enumerate(zip(ends, labels, strict=True)):
        _check(number, places, marks, columns)
        table[number, places] = [PRM_CLASSES.index(mark) for mark in marks]
    if xp is np:
        return table  # type: ignore[return-value]
    device = next((one.device for one in (step_ends, step_labels) if isinstance(one, xp.Tensor)), None)
    found: ArrayT = xp.as_tensor(table, device=device)
    return found


def prm_loss(logits: ArrayT, labels: ArrayT, *, reduction: Reduction = "mean") -> ArrayT:
    """Return the cross-entropy over the labelled steps, a scalar.

    Args:
        logits: (N, L, C), one a class; C is 3 for the classes of :func:`prm_labels`.
        labels: (N, L), the class, or -100 where nothing is learned.
        reduction: ``"mean"`` over the labelled steps of the batch, or ``"sum"``.

    Raises:
        ObjectiveError: The shapes do not fit, a label is not a class, or no step is labelled.
    """
    xp, logit = floats(logits=logits)
    label = numbers("labels", labels, logit)
    dtype, logit = logit.dtype, wide(logit)
    if logit.ndim < 1 or tuple(logit.shape[:-1]) != tuple(label.shape):
        raise ObjectiveError(f"logits {tuple(logit.shape)}: expected the shape of labels {tuple(label.shape)} + (C,)")
    known = label != IGNORED
    refuse_labels(label, known & ((label < 0) | (label >= logit.shape[-1])), f"-100 or 0 to {logit.shape[-1] - 1}")
    zero = like(0.0, logit)
    logit = xp.where(known[..., None], logit, zero)
    target = cast(xp.where(known, label, like(0, label)), "int64")
    terms = logsumexp(logit) - take_along(logit, target[..., None])[..., 0]
    terms = xp.where(known, terms, zero)
    found: ArrayT = reduced(terms, reduction, dtype, weight=int(known.sum()), what="labelled steps")
    return found


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
    xp, prob = floats(token_probs=token_probs)
    keep = numbers("mask", mask, prob) != 0
    same_shape(token_probs=prob, mask=keep)
    if prob.ndim < 1:
        raise ObjectiveError("token_probs is one number: expected (rows, tokens)")
    dtype, prob = prob.dtype, wide(prob)
    prob, keep = _with_a_column(xp, prob, keep)
    count = keep.sum(-1)
    if how == "mean":
        value = xp.where(keep, prob, like(0.0, prob)).sum(-1) / xp.where(count > 0, count, like(1, count))
    elif how == "min":
        value = xp.amin(xp.where(keep, prob, like(float("inf"), prob)), axis=-1)
    elif how == "product":
        value = xp.prod(xp.where(keep, prob, like(1.0, prob)), axis=-1)
    else:
        place = beside(np.arange(keep.shape[-1]), prob) + 1
        last = (keep * place).argmax(-1)
        value = take_along(xp.where(keep, prob, like(0.0, prob)), last[..., None])[..., 0]
    found: ArrayT = cast(xp.where(count > 0, value, like(float("nan"), prob)), dtype)
    return found


def _with_a_column(xp: Any, prob: Any, keep: Any) -> tuple[Any, Any]:
    if prob.shape[-1]:
        return prob, keep
    shape = (*prob.shape[:-1], 1)
    return like(np.zeros(shape), prob), beside(np.zeros(shape, dtype=bool), prob)


def _is_row(values: Any) -> bool:
    """Whether these are the numbers of one row, and not rows."""
    return len(values) > 0 and all(np.ndim(one) == 0 and not isinstance(one, str) for one in values)


def _integers(values: Any, row: int, what: str) -> list[int]:
    """Return the whole numbers of a row; refuse booleans, because a step that is false would pass as neutral."""
    found = values.tolist() if hasattr(values, "tolist") else list(values) if np.ndim(values) else values
    if not isinstance(found, list):
        raise ObjectiveError(f"row {row}: {what}s {found!r}: expected a list")
    plain = [one.item() if hasattr(one, "item") else one for one in found]
    for one in plain:
        if isinstance(one, bool) or not isinstance(one, int | float) or one != one // 1:
            expected = "+1 for right, 0 for neutral, -1 for wrong" if what == "step label" else "a whole number"
            raise ObjectiveError(f"row {row}: {what} {one!r}: expected {expected}")
    return [int(one) for one in plain]


def _check(row: int, places: list[int], marks: list[int], columns: int) -> None:
    if len(places) != len(marks):
        raise ObjectiveError(f"row {row} has {len(places)} step ends and {len(marks)} labels")
    if any(later <= earlier for earlier, later in pairwise(places)):
        raise ObjectiveError(f"row {row}: step ends {places} do not ascend")
    if places and not (places[0] >= 0 and places[-1] < columns):
        raise ObjectiveError(f"row {row}: step ends {places} lie outside the width {columns}")
    for mark in marks:
        if mark not in PRM_CLASSES:
            raise ObjectiveError(f"row {row}: step label {mark!r}: expected +1 for right, 0 for neutral, -1 for wrong")
