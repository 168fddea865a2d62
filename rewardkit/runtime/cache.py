"""Outcomes of deterministic rewards, kept in memory; the least recently used are dropped first."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Sequence

from rewardkit.blocks.nested import dumps
from rewardkit.declare.spec import CallContext, RewardSpec
from rewardkit.types import Outcome, Rollout, Status

CACHE_ENTRIES = 100_000  # Calls whose outcomes a runtime keeps

Key = tuple[int, str, bytes]


class OutcomeCache:
    """The outcomes of calls by key, one outcome a rollout. Failures are never kept."""

    def __init__(self, entries: int = CACHE_ENTRIES) -> None:
        self._entries = entries
        self._calls: OrderedDict[Key, tuple[Outcome, ...]] = OrderedDict()
        self._lock = threading.Lock()  # protects _calls: scoring threads look up, the pool's thread stores

    def get(self, key: Key) -> tuple[Outcome, ...] | None:
        """Return the outcomes, marked as cached, or ``None``."""
        with self._lock:
            outcomes = self._calls.get(key)
            if outcomes is not None:
                self._calls.move_to_end(key)
        return None if outcomes is None else as_cached(outcomes)

    def put(self, key: Key, outcomes: tuple[Outcome, ...]) -> None:
        """Store the outcomes of a call that did not fail, and drop the ones used longest ago above the limit."""
        if any(outcome.status is Status.FAILED for outcome in outcomes):
            return
        with self._lock:
            self._calls[key] = outcomes
            self._calls.move_to_end(key)
            while len(self._calls) > self._entries:
                self._calls.popitem(last=False)


def as_cached(outcomes: tuple[Outcome, ...]) -> tuple[Outcome, ...]:
    """Return the outcomes marked as taken from another call."""
    return tuple(outcome._replace(cached=True) for outcome in outcomes)


def cache_key(
    number: int, spec: RewardSpec, rollouts: Sequence[Rollout], context: CallContext, machine: str = ""
) -> Key:
    """Return the key of a call: the reward, its version, and what the call would read.

    The reward's number in the runtime is part of the key, because two rewards may have one version. ``machine`` is a
    digest of what the call would find on the machine besides, such as the compilers of a jail.
    """
    names = {parameter.name for parameter in spec.parameters}
    wanted, takes_messages = spec.wanted_columns, "messages" in names
    inputs: list[object] = [context.step if "step" in names else None, context.epoch if "epoch" in names else None]
    inputs.append(machine)
    for rollout in rollouts:
        example = sorted(
            (str(column), value) for column, value in rollout.example.items() if wanted is None or column in wanted
        )
        inputs.append(
            (
                rollout.prompt if takes_messages or "prompt" in names else None,
                rollout.completion if takes_messages or {"completion", "completions"} & names else None,
                rollout.completion_ids if "completion_ids" in names else None,
                example,
            )
        )
    return number, spec.version, hashlib.blake2b(dumps(inputs), digest_size=16).digest()
