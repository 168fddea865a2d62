"""Columns that are of one completion and not of its prompt: what its environment is, has scored, and has left behind.

They tell no groups apart, and are not recorded with the prompt. A group reward gets a list of them, one a completion.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import TYPE_CHECKING, Any

from rewardkit.errors import RewardDefinitionError

if TYPE_CHECKING:
    import asyncio

ENVIRONMENT_COLUMN = "environment_reward"
"""What an environment has scored a completion with."""
ENVIRONMENTS_COLUMN = "environments"
"""The environment itself, a live object of the trainer's process; TRL's word for it."""
WORKSPACE_COLUMN = "workspace"
"""The folder that an environment has left."""

_live: weakref.WeakValueDictionary[int, LiveObject] = weakref.WeakValueDictionary()
_lock = threading.Lock()  # protects _live: two threads may hand in one object at once


class OwnText(str):
    """A column's text that is of one completion, whatever the column's name: no other row of the group has it."""

    __slots__ = ()


class OwnFault(OwnText):
    """Stands for a value of one completion that could not be had: the text says why, and a call that reads it fails."""

    __slots__ = ()


class LiveObject:
    """An object that is not copied: it travels as a ticket, which gives the object itself in its own process alone.

    Args:
        value: The object; it stays in memory as long as this does.
        loop: The event loop, of another thread, on which the object's coroutines run; ``None`` for any.
    """

    def __init__(self, value: object, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self._value = value
        self.loop = loop

    @classmethod
    def of(cls, value: object, loop: asyncio.AbstractEventLoop | None = None) -> LiveObject:
        """Return the live object of a value, the same while it is in use, so that its tickets are equal."""
        if isinstance(value, LiveObject):
            return value
        with _lock:
            ticket = _live.get(id(value))
            if ticket is None:
                ticket = _live[id(value)] = cls(value, loop)
            return ticket

    def __reduce__(self) -> tuple[Any, ...]:
        return _redeemed, (os.getpid(), id(self._value))

    @property
    def value(self) -> Any:
        """The object.

        Raises:
            RewardDefinitionError: It is in another process than this one.
        """
        if isinstance(self._value, _Elsewhere):
            raise RewardDefinitionError(
                f"{ENVIRONMENTS_COLUMN!r}: this environment lives in another process of the training; a group whose "
                "completions are split over processes cannot be scored by it: take a per_device_train_batch_size that "
                "num_generations divides"
            )
        return self._value


class _Elsewhere:
    """Stands for an object of another process."""


def _redeemed(process: int, number: int) -> LiveObject:
    """Return the live object of a ticket; in another process, or when it is gone, one without its value."""
    ticket = _live.get(number) if process == os.getpid() else None
    return LiveObject(_Elsewhere()) if ticket is None else ticket


def is_own(column: object, value: object) -> bool:
    """Whether a column is of a completion and not of its prompt."""
    return column in (ENVIRONMENT_COLUMN, ENVIRONMENTS_COLUMN) or isinstance(value, OwnText)
