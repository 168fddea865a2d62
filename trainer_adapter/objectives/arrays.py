"""What numpy and torch spell differently, so that each objective is written once for both.

It owns the choice of the namespace and the elementary functions that need care for large values. What is computed with
them belongs to the other modules of this folder. Nothing here imports torch: an argument that is a tensor shows that
torch is loaded, and :func:`namespace` takes it from there.
"""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from rewardkit import ObjectiveError

if TYPE_CHECKING:
    import torch

ArrayT = TypeVar("ArrayT", NDArray[Any], "torch.Tensor")
"""An array of numpy or a tensor of torch; what is returned is of the same kind."""
Reduction: TypeAlias = Literal["mean", "sum"]
"""How the terms of a loss become one number."""


def namespace(*values: Any) -> Any:
    """Return ``torch`` if one of the values is a tensor, and ``numpy`` otherwise."""
    torch = sys.modules.get("torch")
    return torch if torch is not None and any(isinstance(value, torch.Tensor) for value in values) else np


def floats(**values: Any) -> tuple[Any, ...]:
    """Return the namespace of the named values, and each as an array of one floating dtype on one device.

    Arrays of floats decide the dtype. Lists and integers take it, or get the default of the namespace: float64 in
    numpy, ``torch.get_default_dtype()`` in torch.

    Raises:
        ObjectiveError: A value holds something else than numbers; names it.
    """
    given = list(values.values())
    xp = namespace(*given)
    if xp is np:
        arrays = [_array(name, value) for name, value in values.items()]
        known = [
            array.dtype
            for value, array in zip(given, arrays, strict=True)
            if isinstance(value, np.ndarray | np.generic) and array.dtype.kind == "f"
        ]
        dtype = np.result_type(*known) if known else np.dtype(np.float64)
        return np, *(array.astype(dtype, copy=False) for array in arrays)
    device = next(value.device for value in given if isinstance(value, xp.Tensor))
    tensors = [_tensor(name, value, xp, device) for name, value in values.items()]
    known = [
        one.dtype
        for value, one in zip(given, tensors, strict=True)
        if isinstance(value, xp.Tensor) and one.is_floating_point()
    ]
    dtype = known[0] if known else xp.get_default_dtype()
    for other in known[1:]:
        dtype = xp.promote_types(dtype, other)
    return xp, *(one.to(dtype) for one in tensors)


def like(value: Any, array: Any) -> Any:
    """Return the value in the namespace, the dtype and on the device of the array."""
    xp = namespace(array)
    if xp is np:
        return np.asarray(value, dtype=array.dtype)
    return xp.as_tensor(value, dtype=array.dtype, device=array.device)


def beside(value: Any, array: Any) -> Any:
    """Return the value in the namespace and on the device of the array, with its own dtype."""
    xp = namespace(array)
    return np.asarray(value) if xp is np else xp.as_tensor(value, device=array.device)


def numbers(name: str, value: Any, array: Any) -> Any:
    """Return an argument in the namespace and on the device of an array, with its own dtype.

    Raises:
        ObjectiveError: It holds something else than numbers; names it.
    """
    xp = namespace(array)
    return _array(name, value) if xp is np else _tensor(name, value, xp, array.device)


def wide(array: Any) -> Any:
    """Return the array, one of half precision as float32: sums and differences of logits need its digits."""
    return cast(array, "float32") if itemsize(array) < 4 else array


def cast(array: Any, dtype: Any) -> Any:
    """Return the array with another dtype, which a name or a dtype of its namespace tells."""
    xp = namespace(array)
    if xp is np:
        return np.asarray(array).astype(dtype)[()]
    return array.to(getattr(xp, dtype) if isinstance(dtype, str) else dtype)


def itemsize(array: Any) -> int:
    """Return the bytes of one number of the array."""
    size = array.element_size() if namespace(array) is not np else array.dtype.itemsize
    return int(size)


def softplus(x: Any) -> Any:
    """Return ``log(1 + exp(x))``, exact to the last digits for any x, with its gradient in torch."""
    xp = namespace(x)
    return np.logaddexp(0, x) if xp is np else -xp.nn.functional.logsigmoid(-x)


def sigmoid(x: Any) -> Any:
    """Return ``1 / (1 + exp(-x))`` without overflow."""
    xp = namespace(x)
    if xp is not np:
        return xp.sigmoid(x)
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + small), small / (1 + small))[()]


def logsumexp(x: Any, axis: int = -1) -> Any:
    """Return ``log(sum(exp(x)))`` along an axis without overflow."""
    xp = namespace(x)
    return np.logaddexp.reduce(x, axis=axis) if xp is np else xp.logsumexp(x, dim=axis)


def take_along(x: Any, index: Any, axis: int = -1) -> Any:
    """Return the entries of x that the indices name along an axis."""
    xp = namespace(x)
    return np.take_along_axis(x, index, axis) if xp is np else xp.take_along_dim(x, index, dim=axis)


def segment_sum(values: Any, index: Any, segments: int) -> Any:
    """Return the sums of the values, one a segment: ``index`` has each value's segment, all of one axis."""
    xp = namespace(values)
    if xp is np:
        return np.bincount(index, weights=values, minlength=segments).astype(values.dtype)
    return xp.zeros(segments, dtype=values.dtype, device=values.device).index_add(0, index, values)


def reduced(terms: Any, reduction: str, dtype: Any, weight: Any = None, what: str = "terms") -> Any:
    """Return the weighted mean or sum of a loss's terms as a scalar of the dtype.

    Args:
        terms: One a term, of any shape.
        reduction: ``"mean"`` or ``"sum"``.
        dtype: Of the result.
        weight: What the mean divides by; the number of terms without it.
        what: What is averaged, for the error.

    Raises:
        ObjectiveError: There is nothing to average, or no such reduction.
    """
    if reduction not in ("mean", "sum"):
        raise ObjectiveError(f"reduction={reduction!r}: expected 'mean' or 'sum'")
    total = terms.sum()
    if reduction == "mean":
        count = int(np.prod(terms.shape)) if weight is None else weight
        if count == 0:
            raise ObjectiveError(f"no {what}: a mean needs some; take reduction='sum' where a shard may be empty")
        total = total / count
    return cast(total, dtype)


def check_number(name: str, value: object, least: float, most: float = math.inf, *, open_at: float = math.inf) -> None:
    """Refuse a setting that is not a number, or lies outside its range.

    Args:
        name: The setting.
        value: What was given: a number, or an array of one.
        least: The lowest value.
        most: The highest; infinity itself is never allowed.
        open_at: The end that the range does not contain.

    Raises:
        ObjectiveError: It is text or a boolean, or outside.
    """
    try:
        number = math.nan if isinstance(value, str | bytes | bool) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, RuntimeError):  # torch raises the last for a tensor of several numbers
        number = math.nan
    if not least <= number <= most or number in (open_at, math.inf):
        above = f"a number above {least:g}" if open_at == least else f"a number of {least:g} or more"
        expected = above if most == math.inf else f"a number from {least:g} to {most:g}"
        raise ObjectiveError(f"{name}={value!r}: expected {expected}")


def is_whole(value: object, lowest: int) -> bool:
    """Return whether the value is a whole number, the lowest or above; a boolean is not."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and int(value) >= lowest


def same_shape(**arrays: Any) -> None:
    """Refuse arrays of different shapes: broadcasting (P,) against (P, 1) makes P * P pairs unseen.

    Raises:
        ObjectiveError: The shapes differ; the message has each name and shape.
    """
    if len({tuple(array.shape) for array in arrays.values()}) > 1:
        shapes = ", ".join(f"{name} {tuple(array.shape)}" for name, array in arrays.items())
        raise ObjectiveError(f"expected one shape, got {shapes}")


def _array(name: str, value: Any) -> NDArray[Any]:
    """Return a value as an array of numbers; ``None`` in a list is ``nan``."""
    try:
        array = np.asarray(value)
        if array.dtype.kind == "O":
            array = array.astype(np.float64)
    except (TypeError, ValueError, RuntimeError) as exc:  # ragged rows, objects, a tensor that has a gradient
        raise ObjectiveError(f"{name}={_shortened(value)}: expected an array of numbers ({exc})") from exc
    if array.dtype.kind not in "biuf":
        raise ObjectiveError(f"{name}={_shortened(value)}: expected an array of numbers, got {array.dtype}")
    return array


def _tensor(name: str, value: Any, xp: Any, device: Any) -> Any:
    if isinstance(value, xp.Tensor):
        found = value.to(device)
    else:
        try:
            found = xp.as_tensor(value, device=device)
        except (TypeError, ValueError, RuntimeError) as exc:
            raise ObjectiveError(f"{name}={_shortened(value)}: expected an array of numbers ({exc})") from exc
    if found.is_complex():
        raise ObjectiveError(f"{name}={_shortened(value)}: expected an array of real numbers, got {found.dtype}")
    return found


def _shortened(value: object) -> str:
    words = " ".join(repr(value).split())
    return words if len(words) <= 60 else f"{words[:57]}..."
