"""The settings of a runtime: which rewards are run, what each weighs, and options that make no sense."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from rewardkit.declare.compose import Composable, Composite
from rewardkit.declare.decorator import Reward
from rewardkit.errors import RewardDefinitionError, RuntimeClosedError


class RuntimeLane(StrEnum):
    """Where rewards run."""

    WORKER = "worker"
    """In isolated worker processes; ``async def`` rewards and those with ``concurrency`` in one of their own."""
    INLINE = "inline"  # In the caller's process: for unit tests and debuggers. No isolation, no deadlines.
    RAY = "ray"
    """In worker processes of this machine and of the other nodes of a Ray cluster; ``async def`` rewards here alone."""


class OnFailure(StrEnum):
    """What a failed call means for the batch."""

    DEFAULT = "default"  # The reward's `default` stands in, and the outcome says so
    RAISE = "raise"  # The batch stops with `RewardFailedError`


def check_isolated(leaves: Iterable[Reward[..., Any]]) -> None:
    """Raise :class:`RewardDefinitionError` for a reward that no worker process can run."""
    for leaf in leaves:
        if any(reward.spec.wants_environments for reward in (leaf, *leaf.inner)):
            raise RewardDefinitionError(
                f"reward {leaf.name!r} takes 'environments', the trainer's live objects, which no worker process has; "
                "use lane='inline', which runs rewards in the trainer's process without isolation or deadlines, or "
                "read what the environment leaves behind: 'environment_reward', a number, or 'workspace', a folder"
            )


def leaves_of(rewards: Iterable[Composable]) -> list[Reward[..., Any]]:
    """Return the plain rewards in a set, each once; raise RewardDefinitionError where two have one name."""
    leaves = dict.fromkeys(leaf for reward in rewards for leaf in reward.leaves)
    names = [leaf.name for leaf in leaves]
    for name in names:
        if names.count(name) > 1:
            raise RewardDefinitionError(
                f"two rewards are named {name!r}; give one another name: @reward(name=...), or "
                ".with_options(name=...) where it is not yours"
            )
    return list(leaves)


def signs_of(rewards: Mapping[str, Composable], weights: Mapping[str, float]) -> dict[Reward[..., Any], int]:
    """Return the sign of each weighted leaf: 1 where higher scores are paid more, -1 where less, 0 where both."""
    signs: dict[Reward[..., Any], set[int]] = {}
    for name, reward in rewards.items():
        if weights[name]:
            for leaf, sign in reward.uses(-1 if weights[name] < 0 else 1):
                signs.setdefault(leaf, set()).add(sign)
    return {leaf: sum(values) for leaf, values in signs.items()}


def weights_of(
    rewards: Mapping[str, Composable], weights: Sequence[float] | Mapping[str, float] | None
) -> dict[str, float]:
    """Return each reward's weight by name; raise RewardDefinitionError where those given do not match."""
    names = list(rewards)
    if weights is None:
        wholes = [reward for reward in rewards.values() if isinstance(reward, Composite)]
        return {name: float(not any(whole.contains(own) for whole in wholes)) for name, own in rewards.items()}
    if not isinstance(weights, Mapping):
        if len(weights) != len(names):
            raise RewardDefinitionError(f"{len(weights)} weights for {len(names)} rewards ({', '.join(names)})")
        weights = dict(zip(names, weights, strict=True))
    unknown = sorted(set(weights) - set(names))
    if unknown:
        raise RewardDefinitionError(f"weights name {unknown[0]!r}, but the rewards are {', '.join(names)}")
    for name, weight in weights.items():
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not abs(weight) < math.inf:
            raise RewardDefinitionError(f"weight of {name!r} is {weight!r}: expected a finite number")
    return {name: float(weights.get(name, 1.0)) for name in names}


def check_open(owner: int, *, closed: bool) -> None:
    """Raise :class:`RuntimeClosedError` for a runtime that is closed, or that another process, its owner, made."""
    if closed:
        raise RuntimeClosedError("this runtime is closed; make a new one")
    if os.getpid() != owner:  # a fork has none of its threads and workers
        raise RuntimeClosedError("this runtime belongs to the process that made it, not to a fork of it")


def require(
    option: str,
    value: object,
    holds: Callable[[Any], bool],
    expected: str,
    kind: type | tuple[type, ...] = (int, float),
) -> Any:
    """Return an option's value; raise RewardDefinitionError where it is of another kind or does not hold."""
    if isinstance(value, bool) or not isinstance(value, kind) or not holds(value):
        raise RewardDefinitionError(f"{option}={value!r}: expected {expected}")
    return value


def choice(option: str, value: str, choices: type[StrEnum]) -> StrEnum:
    """Return the choice that an option names; raise RewardDefinitionError where it names none."""
    names = list(map(str, choices))
    return choices(require(option, value, names.__contains__, f"one of {str(names)[1:-1]}", str))


def after_jails(rewards: Iterable[Reward[..., Any]]) -> Callable[[], None] | None:
    """Return a function that removes the folders of killed workers' jails; ``None`` if no reward has a jail."""
    if not any(leaf.spec.jailed for reward in rewards for leaf in (reward, *reward.inner)):
        return None
    from sandbox import remove_stale_folders  # not at the end: at exit it can no longer be imported

    return remove_stale_folders
