"""Which calls a batch needs, and the bytes that travel to the workers, once a batch."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rewardkit.decorator import Reward
from rewardkit.errors import DataError, MissingColumnError
from rewardkit.forms import why_no_text
from rewardkit.runtime.cache import Key
from rewardkit.runtime.names import hint_at
from rewardkit.spec import CallContext, RewardSpec
from rewardkit.types import Rollout


def check_rollouts(rewards: Iterable[Reward[..., Any]], rollouts: Sequence[Rollout]) -> None:
    """Refuse rollouts that are none, or that lack a column which a reward needs, before anything runs.

    Raises:
        DataError: Something in the batch is no rollout.
        MissingColumnError: Names reward, column, row and near names.
    """
    for place, rollout in enumerate(rollouts):
        if (
            type(rollout) is Rollout
            and type(rollout.example) is dict
            and type(rollout.prompt) is str
            and type(rollout.completion) is str
        ):
            continue  # the usual case, told without the slow checks of abstract types
        if not isinstance(rollout, Rollout):
            raise DataError(f"row {place}: expected a Rollout, got {type(rollout).__name__}")
        if not isinstance(rollout.example, Mapping):
            raise DataError(f"row {place}: expected a dict as example, got {type(rollout.example).__name__}")
        for what, text in (("prompt", rollout.prompt), ("completion", rollout.completion)):
            if not isinstance(text, str | list | tuple):
                raise DataError(f"row {place}: expected a string or messages as {what}, got {type(text).__name__}")
            wrong = why_no_text(text)
            if wrong is not None:
                raise DataError(f"row {place}: {what}: {wrong}")
    for reward in rewards:
        for column in reward.spec.required_columns:
            for place, rollout in enumerate(rollouts):
                if column not in rollout.example:
                    raise MissingColumnError(_missing(reward, column, place, rollout.example))


def _missing(reward: Reward[..., Any], column: str, place: int, example: Mapping[str, Any]) -> str:
    hint = hint_at(column, [str(name) for name in example], reward.spec.kind)
    return f"reward {reward.name!r} needs column {column!r}, which example {place} lacks; {hint}"


def segments_of(rewards: Sequence[Reward[..., Any]], rollouts: Sequence[Rollout], first: int = 0) -> list[bytes]:
    """Return each rollout's bytes, holding only what some reward reads.

    Args:
        rewards: The rewards.
        rollouts: Rollouts in a row.
        first: The first one's place in the batch.

    Raises:
        DataError: A row holds what cannot travel to a worker process.
    """
    wanted = _wanted_columns(rewards)
    with_ids = any(reward.spec.wants_completion_ids for reward in rewards)
    segments: list[bytes] = []
    dumps = pickle.dumps
    for rollout in rollouts:
        example = rollout.example
        if wanted is not None:
            example = {column: example[column] for column in wanted if column in example} if wanted else {}
        ids = rollout.completion_ids if with_ids else None
        try:
            segments.append(dumps((rollout.prompt, rollout.completion, example, ids), 5))
        except Exception as reason:
            raise DataError(f"row {first + len(segments)} cannot travel to a worker process: {reason}") from reason
    return segments


def _wanted_columns(rewards: Sequence[Reward[..., Any]]) -> frozenset[str] | None:
    wanted: frozenset[str] = frozenset()
    for reward in rewards:
        columns = reward.spec.wanted_columns
        if columns is None:
            return None
        wanted |= columns
    return wanted


def cache_key(number: int, spec: RewardSpec, rollouts: Sequence[Rollout], context: CallContext) -> Key:
    """Return the key of a call: the reward, its version, and what the call would read.

    Args:
        number: The reward's place in the runtime, for two rewards may have one version.
        spec: The reward.
        rollouts: The call's rollouts.
        context: The call's context, part of the key only where the reward reads it.
    """
    named = {parameter.name for parameter in spec.parameters}
    wanted = spec.wanted_columns
    read: list[Any] = [context.step if "step" in named else None, context.epoch if "epoch" in named else None]
    for rollout in rollouts:
        example = sorted((str(c), v) for c, v in rollout.example.items() if wanted is None or c in wanted)
        conversation = "messages" in named
        read.append(
            (
                rollout.prompt if conversation or "prompt" in named else None,
                rollout.completion if conversation or {"completion", "completions"} & named else None,
                rollout.completion_ids if "completion_ids" in named else None,
                example,
            )
        )
    return number, spec.version, hashlib.blake2b(pickle.dumps(read, protocol=5), digest_size=16).digest()
