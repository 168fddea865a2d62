"""A reward in the form that trainers call, and the scorings that such functions answer from.

The functions pickle with their adapter, so a trainer may call them in a process of its own. It may send them anew with
every batch: each pickle's settings make one adapter there, which finds the workers that the last ones started.
"""

from __future__ import annotations

import hashlib
import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

from trainer_adapter.credit import BatchTurns
from trainer_adapter.trainer_scores import Scores

_T = TypeVar("_T")
MOST_COPIES = 8  # Adapters from other processes that are kept ready, with their workers
MOST_SCORINGS = 16
"""Scorings that are remembered: a trainer that scores several groups at once asks for each one's rewards in turn."""


class Copies(Generic[_T]):
    """What was made of settings in this process, and what was pickled in it, by the settings' digest."""

    def __init__(self) -> None:
        self._here: weakref.WeakValueDictionary[tuple[int, bytes], _T] = weakref.WeakValueDictionary()
        self._newest: OrderedDict[tuple[int, bytes], _T] = OrderedDict()
        self._lock = threading.Lock()

    def put(self, settings: bytes, thing: _T) -> None:
        """Note that these settings stand for something that is here; it is kept by its owner alone."""
        with self._lock:
            self._here[_key(settings)] = thing

    def get(self, settings: bytes, make: Callable[[], _T]) -> _T:
        """Return what the settings stand for; make it where it is not here yet."""
        key = _key(settings)
        with self._lock:
            copy = self._here.get(key)
            if copy is None:
                copy = self._here[key] = self._newest[key] = make()
            if key in self._newest:
                self._newest.move_to_end(key)
            while len(self._newest) > MOST_COPIES:
                self._newest.popitem(last=False)
            return copy


def _key(settings: bytes) -> tuple[int, bytes]:
    """Return a key that a fork of this process does not share, because it can use nothing of its parent's."""
    return os.getpid(), hashlib.blake2b(settings, digest_size=16).digest()


class Answering(Protocol):
    """What a function needs of its adapter."""

    turns: BatchTurns

    def gives_credit(self, reward: str) -> bool: ...

    def answer(
        self,
        reward: str | None,
        prompts: Sequence[Any],
        completions: Sequence[Any],
        completion_ids: Sequence[Any] | None,
        keywords: Mapping[str, Any],
    ) -> Scores: ...


class AdaptedFunction:
    """One reward of an adapter, or with ``None`` its weighted total, as a function of a trainer's whole batch."""

    def __init__(self, adapter: Answering, reward: str | None) -> None:
        self.adapter, self.reward = adapter, reward
        self.__name__ = self.__qualname__ = "total" if reward is None else reward  # TRL logs under it

    def __call__(
        self,
        /,
        *,
        prompts: Sequence[Any],
        completions: Sequence[Any],
        completion_ids: Sequence[Any] | None = None,
        **keywords: object,
    ) -> Scores:
        """Return this reward's score of each completion; a trainer leaves ``None`` out of the sum."""
        return self.adapter.answer(self.reward, prompts, completions, completion_ids, keywords)

    @property
    def gives_credit(self) -> bool:
        """Whether its reward gives each turn of a completion a number."""
        return self.reward is not None and self.adapter.gives_credit(self.reward)

    def __repr__(self) -> str:
        return f"<reward function {self.__name__!r} of a RewardAdapter>"


class Scorings:
    """The scores of the last batches that have not been asked for yet, by the batch's digest."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[bytes, dict[str | None, Scores]] = OrderedDict()

    def has(self, digest: bytes, reward: str | None) -> bool:
        """Return whether a reward's scores of a batch wait to be asked for."""
        return reward in self._waiting.get(digest, ())

    def put(self, digest: bytes, scores: dict[str | None, Scores]) -> None:
        """Keep a batch's scores; the oldest of too many are dropped."""
        self._waiting[digest] = scores
        self._waiting.move_to_end(digest)  # a batch that is scored anew is the newest
        while len(self._waiting) > MOST_SCORINGS:
            self._waiting.popitem(last=False)

    def take(self, digest: bytes, reward: str | None) -> Scores:
        """Return a reward's scores, once."""
        return self._waiting[digest].pop(reward)

    def clear(self) -> None:
        """Forget all of them, because other rewards score from now on."""
        self._waiting.clear()
