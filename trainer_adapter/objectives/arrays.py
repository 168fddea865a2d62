"""What numpy and torch spell differently, so that each objective is written once for both.

It owns the choice of the namespace and the elementary functions that need care for large values. What is computed with
them belongs to the other modules of this folder. Nothing here imports torch: an argument that is a tensor shows that
torch is loaded, and :func:`namespace` takes it from there.
"""

from __future__ import annotations

import functools
import math
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from rewardkit import ObjectiveError
from rewardkit.extending import shorten

if TYPE_CHECKING:
    import torch

IGNORED = -100  # The label of a token that is not learned from, as in `torch.nn.functional.cross_entropy`
ArrayT = TypeVar("ArrayT", NDArray[Any], "torch.Tensor")
"""An array of numpy or a tensor of torch; what is returned is of the same kind."""
Reduction: TypeAlias = Literal["mean", "sum"]
"""How the terms of a loss become one number."""


class Array(Protocol):
    """What numpy's arrays and torch's tensors have in common, as far as the objectives use it."""

    @property
    def device(self) -> Any: ...
    @property
    def dtype(self) -> Any: ...
    @property
    def ndim(self) -> int: ...
    @property
    def shape(self) -> Any: ...
    def __add__(self, other: object) -> Any: ...
    def __array__(self) -> NDArray[Any]: ...
    def __and__(self, other: object) -> Any: ...
    def __eq__(self, other: object) -> Any: ...
    def __ge__(self, other: object) -> Any: ...
    def __getitem__(self, index: object) -> Any: ...
    def __len__(self) -> int: ...
    def __neg__(self) -> Any: ...
    def __sub__(self, other: object) -> Any: ...
    def __truediv__(self, other: object) -> Any: ...
    def any(self) -> Any: ...
    def nonzero(self) -> Any: ...
    def reshape(self, *shape: int) -> Any: ...
    def sum(self, *, axis: Any = None, keepdims: bool = False) -> Any: ...


def namespace(*values: object) -> ModuleType:
    """Return ``torch`` if one of the values is a tensor, and ``numpy`` otherwise."""
    torch = sys.modules.get("torch")
    return torch if torch is not None and any(isinstance(value, torch.Tensor) for value in values) else np


def floats(**values: object) -> tuple[Any, ...]:
    """Return the namespace of the named values, and each as an array of one floating dtype on one device.

    Arrays of floats decide the dtype. Lists and integers take it, or get the default of the namespace: float64 in
    numpy, ``torch.get_default_dtype()`` in torch. An error names a value that holds something else than numbers.
    """
    xp = namespace(*values.values())
    if xp is np:
        arrays = {name: _array(name, value) for name, value in values.items()}
        dtypes = [
            array.dtype
            for name, array in arrays.items()
            if isinstance(values[name], np.ndarray | np.generic) and array.dtype.kind == "f"
        ]
        dtype = np.result_type(*dtypes) if dtypes else np.dtype(np.float64)  # lists alone decide nothing
        return np, *(array.astype(dtype, copy=False) for array in arrays.values())
    device = next(value.device for value in values.values() if isinstance(value, xp.Tensor))
    tensors = {name: _tensor(name, value, xp, device) for name, value in values.items()}
    dtypes = [
        tensor.dtype
        for name, tensor in tensors.items()
        if isinstance(values[name], xp.Tensor) and tensor.is_floating_point()
    ]
    dtype = functools.reduce(xp.promote_types, dtypes) if dtypes else xp.get_default_dtype()
    return xp, *(tensor.to(dtype) for tensor in tensors.values())


def like(value: object, array: Array) -> Any:
    """Return the value in the namespace, the dtype and on the device of the array."""
    xp = namespace(array)
    if xp is np:
        return np.asarray(value, dtype=array.dtype)
    return xp.as_tensor(value, dtype=array.dtype, device=array.device)


def beside(value: object, array: Array) -> Any:
    """Return the value in the namespace and on the device of the array, with its own dtype."""
    xp = namespace(array)
    return np.asarray(value) if xp is np else xp.as_tensor(value, device=array.device)


def numbers(name: str, value: object, array: Array) -> Any:
    """Return an argument in the namespace and on the device of an array, with its own dtype; refuse all but numbers."""
    xp = namespace(array)
    return _array(name, value) if xp is np else _tensor(name, value, xp, array.device)


def wide(array: Array) -> Any:
    """Return the array, one of half precision as float32: sums and differences of logits need its digits."""
    return cast(array, "float32") if array.dtype.itemsize < 4 else array


def cast(array: Array, dtype: Any) -> Any:  # torch and numpy share no type of dtypes
    """Return the array with another dtype, given as a name or as a dtype of the array's namespace."""
    xp = namespace(array)
    if xp is np:
        return np.asarray(array).astype(dtype)[()]  # an array of no axes becomes a scalar
    return xp.as_tensor(array, dtype=getattr(xp, dtype) if isinstance(dtype, str) else dtype)


def softplus(x: Array) -> Any:
    """Return ``log(1 + exp(x))``, exact to the last digits for any x, with its gradient in torch."""
    xp = namespace(x)
    return np.logaddexp(0, x) if xp is np else -xp.nn.functional.logsigmoid(-x)  # its softplus is linear above 20


def sigmoid(x: Array) -> Any:
    """Return ``1 / (1 + exp(-x))`` without overflow."""
    xp = namespace(x)
    if xp is not np:
        return xp.sigmoid(x)
    small = np.exp(-np.abs(x))  # at most 1, so it cannot overflow
    return np.where(x >= 0, 1 / (1 + small), small / (1 + small))[()]


def logsumexp(x: Array) -> Any:
    """Return ``log(sum(exp(x)))`` along the last axis without overflow."""
    xp = namespace(x)
    return np.logaddexp.reduce(x, axis=-1) if xp is np else xp.logsumexp(x, dim=-1)


def take_along(x: Array, index: Array) -> Any:
    """Return the entries of x that the indices name along the last axis."""
    xp = namespace(x)
    return np.take_along_axis(np.asarray(x), np.asarray(index), -1) if xp is np else xp.take_along_dim(x, index, dim=-1)


def segment_sum(values: Array, index: Array, segments: int) -> Any:
    """Return the sums of the values, one a segment: ``index`` has each value's segment, all of one axis."""
    xp = namespace(values)
    if xp is np:
        return np.bincount(index, weights=values, minlength=segments).astype(values.dtype)  # bincount sums in float64
    return like(np.zeros(segments), values).index_add(0, index, values)


def reduce(terms: Array, reduction: str, dtype: object, weight: int | None = None, what: str = "terms") -> Any:
    """Return the weighted mean or sum of a loss's terms, of any shape, as a scalar of the dtype.

    The mean divides by ``weight``, or by the number of terms. Raises ObjectiveError for another reduction, or a mean
    of nothing, whose message calls the terms ``what``.
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


def check_number(name: str, value: object, low: float, high: float = math.inf, *, open_at: float = math.inf) -> None:
    """Refuse a setting that is text or a boolean, or lies outside ``low`` to ``high``.

    The range does not contain its end ``open_at``, and never infinity.
    """
    try:
        number = math.nan if isinstance(value, str | bytes | bool) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, RuntimeError):  # torch raises the last for a tensor of several numbers
        number = math.nan
    if not low <= number <= high or number in (open_at, math.inf):
        above = f"a number above {low:g}" if open_at == low else f"a number of {low:g} or more"
        expected = above if high == math.inf else f"a number from {low:g} to {high:g}"
        raise ObjectiveError(f"{name}={value!r}: expected {expected}")


def is_whole(value: object, lowest: int) -> bool:
    """Return whether the value is a whole number, the lowest or above; a boolean is not."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and int(value) >= lowest


def same_shape(**arrays: Array) -> None:
    """Refuse arrays of different shapes, by name: broadcasting (P,) against (P, 1) makes P * P pairs unseen."""
    if len({tuple(array.shape) for array in arrays.values()}) > 1:
        shapes = ", ".join(f"{name} {tuple(array.shape)}" for name, array in arrays.items())
        raise ObjectiveError(f"expected one shape, got {shapes}")


def _array(name: str, value: Any) -> NDArray[Any]:
    """Return a value as an array of numbers; ``None`` in a list is ``nan``."""
    try:
        array = np.asarray(value)
        if array.dtype.kind == "O":
            array = array.astype(np.float64)  # None becomes nan
    except (TypeError, ValueError, RuntimeError) as error:  # ragged rows, objects, a tensor that has a gradient
        raise ObjectiveError(f"{name}={shorten(value, 60)}: expected an array of numbers ({error})") from error
    if array.dtype.kind not in "biuf":
        raise ObjectiveError(f"{name}={shorten(value, 60)}: expected an array of numbers, got {array.dtype}")
    return array


def _tensor(name: str, value: object, xp: ModuleType, device: object) -> Any:
    try:
        tensor = xp.as_tensor(value, device=device)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ObjectiveError(f"{name}={shorten(value, 60)}: expected an array of numbers ({error})") from error
    if tensor.is_complex():
        raise ObjectiveError(f"{name}={shorten(value, 60)}: expected an array of real numbers, got {tensor.dtype}")
    return tensor


def refuse_row(is_wrong: Array, complaint: str) -> None:
    """Raise :class:`~rewardkit.ObjectiveError` for the first row that is marked as wrong."""
    if bool(is_wrong.any()):
        raise ObjectiveError(f"row {int(is_wrong.nonzero()[0][0])} {complaint}")


def refuse_labels(labels: Array, is_wrong: Array, expected: str) -> None:
    """Raise :class:`~rewardkit.ObjectiveError` for the first label that is marked as wrong."""
    if bool(is_wrong.any()):
        raise ObjectiveError(f"label {labels[is_wrong].reshape(-1)[0].item()!r}: expected {expected}")
