"""Annotations that pydantic or numpy understands. Both are imported when the first such annotation is built.

Inside a pydantic model pydantic's own rules hold, not those of the other modules here.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, get_args
from uuid import UUID

from rewardkit.coercion.containers import collect, items_in
from rewardkit.coercion.literals import TextError, looks_structured, parse_container
from rewardkit.coercion.rule import SHOWN_CHARS, ColumnValueError, Convert, foreign_reason
from rewardkit.coercion.scalars import python_scalar, to_bool, to_float, to_int
from rewardkit.shown.text import shorten

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pydantic import ValidationError


def _validator(annotation: Any, expected: str) -> Convert:
    """Return a reader by pydantic's lax validation, its errors short; an odd annotation raises pydantic's own error."""
    from pydantic import TypeAdapter, ValidationError

    validate: Convert = TypeAdapter(annotation).validate_python

    def convert(value: object) -> object:
        try:
            return validate(value)
        except ValidationError as error:
            with contextlib.suppress(Exception):  # where that fails, what was complained of first stands
                return validate(_without_padding(value, error))
            detail, inner = _first_complaint(error)
            raise ColumnValueError(expected, shorten(value), detail, inner) from None
        except RecursionError:
            raise
        except Exception as error:  # the user's own validators
            raise ColumnValueError.of(expected, value, foreign_reason(error)) from error

    return convert


def _without_padding(value: object, error: ValidationError) -> object:
    """Return a value without the nulls that pydantic complains of, which Arrow pads structs with: their defaults hold.

    Raises ValueError where it complains of anything else.
    """
    complaints = error.errors(include_url=False, include_context=False)
    if any(complaint["input"] is not None or not complaint["loc"] for complaint in complaints):
        raise ValueError("not only nulls")
    value = copy.deepcopy(value)
    for complaint in complaints:
        holder: Any = value
        *path, name = complaint["loc"]
        for step in path:
            holder = holder[step]
        del holder[name]
    return value


def _first_complaint(error: ValidationError) -> tuple[str, bool]:
    """Return the first thing that pydantic complains of, in a few words, and whether it lies inside the value."""
    complaints = error.errors(include_url=False, include_context=False, include_input=False)
    complaint = complaints[0]
    location = [f"item {step}" if isinstance(step, int) else f"field {step!r}" for step in complaint["loc"]]
    if complaint["type"] == "missing":
        detail = f"{location.pop()} is missing"
    else:
        detail = complaint["msg"][:1].lower() + complaint["msg"][1 : 2 * SHOWN_CHARS]
    more = f"; {len(complaints) - 1} more" if len(complaints) > 1 else ""
    return ": ".join([*location, detail]) + more, bool(complaint["loc"])


def pydantic_convert(annotation: object, expected: str) -> Convert:
    """Return the reader of a type that only pydantic knows. A bracketed text is parsed first, then tried as it is."""
    validate = _validator(annotation, expected)

    def convert(value: object) -> object:
        value = python_scalar(value)
        if not isinstance(value, str):
            return validate(dict(value) if isinstance(value, Mapping) and not isinstance(value, dict) else value)
        if not looks_structured(value):
            return validate(value)
        try:
            return validate(parse_container(value))
        except TextError as error:
            reason = ColumnValueError.of(expected, value, str(error))
        except ColumnValueError as error:
            reason = error.seen_as(expected, value)
        try:
            return validate(value)
        except ColumnValueError:
            raise reason from None

    return convert


def simple_convert(annotation: object, expected: str) -> Convert:
    """Return the reader of a date, datetime, time, timedelta or UUID, from ISO text or a real one.

    A bare number is refused, though pydantic would count it from 1970: a column of years is not a column of dates.
    """
    validate = _validator(annotation, expected)

    def convert(value: object) -> object:
        value = python_scalar(value)
        if annotation is not UUID and (isinstance(value, int | float) or _is_number(value)):
            raise ColumnValueError.of(expected, value, "a bare number, not ISO 8601")
        return validate(value.strip() if isinstance(value, str) else value)

    return convert


def _is_number(value: object) -> bool:
    """Return whether pydantic might take a text for a number of seconds."""
    if not isinstance(value, str):
        return False
    try:
        float(value)
    except ValueError:
        return False
    return True


def reads_raw_value(metadata: tuple[object, ...]) -> bool:
    """Return whether a validator in an ``Annotated`` reads the column as it is, before anything is coerced."""
    from pydantic import BeforeValidator, Json, PlainValidator, WrapValidator

    return any(isinstance(entry, BeforeValidator | PlainValidator | WrapValidator | Json) for entry in metadata)


def constrained_convert(annotation: Any, convert_bare: Convert, expected: str) -> Convert:
    """Return the reader of an ``Annotated``: it reads the bare type, then checks the pydantic constraints."""
    try:
        check = _validator(annotation, expected)
    except Exception:  # pydantic cannot read the bare type (an ndarray): its constraints may hold for any value
        check = _validator(Annotated[(Any, *annotation.__metadata__)], expected)

    def convert(value: object) -> object:
        try:
            return check(convert_bare(value))
        except ColumnValueError as error:
            raise error.seen_as(expected, value) from None

    return convert


def is_decoded(annotation: type) -> bool:
    """Whether it is a class of what ``datasets`` decodes a column to: an image, a tensor, sound or video."""
    return annotation.__module__.partition(".")[0] in ("PIL", "torch", "torchcodec")


def instance_convert(kind: type, expected: str) -> Convert:
    """Return the reader of what only a real value can be; it is handed on as it is."""

    def convert(value: object) -> object:
        if not isinstance(value, kind):
            raise ColumnValueError.of(expected, value)
        return value

    return convert


def is_array(annotation: object) -> bool:
    """Whether it is numpy's ndarray, told without importing numpy."""
    return isinstance(annotation, type) and (annotation.__module__, annotation.__name__) == ("numpy", "ndarray")


def array_name(args: tuple[Any, ...]) -> str:
    """Return the readable name of an array annotation."""
    scalar = _scalar_type(args)
    return "ndarray" if scalar is None else f"NDArray[{scalar.__name__}]"


def _scalar_type(args: tuple[Any, ...]) -> type | None:
    """Return the element type of ``NDArray[...]``; None if it has no element type, or one that is not concrete."""
    import numpy as np

    scalar = (get_args(args[1]) or (None,))[0] if len(args) == 2 else None
    return scalar if isinstance(scalar, type) and scalar in np.sctypeDict.values() else None


def array_convert(args: tuple[Any, ...], expected: str) -> Convert:
    """Return the reader of a numpy array, of the element type that the annotation names, if any.

    A real array's numbers are not looked at, unless the element type changes; then none may lose digits to an int.
    """
    import numpy as np

    scalar = _scalar_type(args)
    dtype = None if scalar is None else np.dtype(scalar)

    def convert(value: object) -> object:
        try:
            array = value if isinstance(value, np.ndarray) else np.array(items_in(value, expected))
            return array if dtype is None or array.dtype == dtype else _cast(array, dtype, expected, value)
        except ColumnValueError:
            raise
        except (ValueError, TypeError, OverflowError) as error:  # numpy's first sentence says it; more may follow
            raise ColumnValueError.of(expected, value, foreign_reason(error).partition(". ")[0]) from error

    return convert


def _cast(array: NDArray[Any], dtype: Any, expected: str, value: object) -> NDArray[Any]:
    """Return the array with another element type; all but plain numbers is read by the rules for scalars."""
    import numpy as np

    readers: dict[str, Callable[[object], object]] = {"b": to_bool, "i": to_int, "u": to_int, "f": to_float}
    reader = readers.get(dtype.kind)
    if array.dtype.kind in "UOSc" and reader is not None:
        elements = collect(map(reader, array.ravel().tolist()), expected, value)
        return np.array(elements, dtype).reshape(array.shape)
    with np.errstate(invalid="ignore", over="ignore"):
        converted = array.astype(dtype)
    if dtype.kind in "iub" and not np.array_equal(converted, array):
        raise ColumnValueError.of(expected, value, f"not all of it is {dtype.name}")
    return converted
