"""Groups: the rollouts of one prompt."""

from __future__ import annotations

import io
import pickle
from collections.abc import Sequence

from rewardkit.blocks.nested import parts
from rewardkit.errors import DataError
from rewardkit.own_columns import is_own
from rewardkit.types import Rollout


def group_places(rollouts: Sequence[Rollout]) -> list[tuple[int, ...]]:
    """Return the places of each group's rollouts, groups in order of their first.

    A group has one prompt and one example: rollouts whose prompts agree but whose rows differ are
    of different groups.

    Raises:
        DataError: A row holds what cannot be compared by its bytes, such as a lock.
    """
    groups: dict[bytes, list[int]] = {}
    prompt: object = object()  # the last rollout's; the next one of its group mostly has the same objects
    example: object = object()
    group: list[int] = []
    for index, rollout in enumerate(rollouts):
        if rollout.prompt is not prompt or rollout.example is not example:
            prompt, example = rollout.prompt, rollout.example
            group = groups.setdefault(group_key(rollout, index), [])
        group.append(index)
    return [tuple(members) for members in groups.values()]


def group_numbers(rollouts: Sequence[Rollout]) -> list[int]:
    """Return the number of each rollout's group, from 0 in the order of :func:`group_places`."""
    numbers = [0] * len(rollouts)
    for number, group in enumerate(group_places(rollouts)):
        for index in group:
            numbers[index] = number
    return numbers


def group_key(rollout: Rollout, row: int = 0) -> bytes:
    """Return bytes that are equal for equal prompts and rows, whichever of their parts are one object.

    A column that is of the completion alone, such as its environment, does not count. Raises DataError for a row that
    cannot be compared by its bytes, such as one with a lock; the error names the row by its number.
    """
    try:
        columns = sorted(rollout.example.items(), key=lambda item: str(item[0]))
        return content_bytes((rollout.prompt, [item for item in columns if not is_own(*item)]))
    except Exception as reason:
        raise DataError(f"row {row} cannot be grouped: {reason}") from reason


def content_bytes(value: object) -> bytes:
    """Return bytes that are equal for equal values, whichever of their parts are one object.

    A value that is nested deeper than pickle goes has the bytes of its parts.

    Raises:
        Exception: The value cannot be pickled, or holds itself; pickling runs its own code, which may raise anything.
    """
    try:
        return _pickled(value)
    except RecursionError:
        return _pickled(list(parts(value)))


def _pickled(value: object) -> bytes:
    buffer = io.BytesIO()
    pickler = pickle.Pickler(buffer, protocol=5)
    pickler.fast = True  # no memo: equal strings are written out alike, be they one object or two
    pickler.dump(value)
    return buffer.getvalue()
