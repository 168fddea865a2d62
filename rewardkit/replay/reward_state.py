"""The rewards of a training between two changes, and which changes fit them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias

from rewardkit.declare.compose import Composable
from rewardkit.declare.spec import Kind
from rewardkit.errors import RewardDefinitionError
from rewardkit.record.changes import Action, RewardChange, Standing
from rewardkit.runtime.runtime import Runtime

Load: TypeAlias = Callable[[Mapping[str, Any], str], Composable]
"""Makes a reward of a change's body, under a name."""


def shadow_of(name: str) -> str:
    """Return the name under which another version of a reward is scored beside it."""
    return f"{name}_shadow"


@dataclass(frozen=True, slots=True)
class RewardState:
    """The rewards of a training between two changes.

    Attributes:
        rewards: The rewards by name.
        weights: Their weights by name.
        shadows: Names of those that the trainer does not see.
    """

    rewards: Mapping[str, Composable]
    weights: Mapping[str, float]
    shadows: frozenset[str] = frozenset()

    @property
    def standings(self) -> dict[str, Standing]:
        """How each reward stands, for the record."""
        return {
            name: Standing(reward.version, self.weights[name], name in self.shadows)
            for name, reward in self.rewards.items()
        }

    def after(self, change: RewardChange, load: Load) -> RewardState:
        """Return the rewards after a change.

        Args:
            change: The change.
            load: Makes a reward of a change's body, under a name.

        Raises:
            RewardError: It does not fit these rewards, or its reward cannot be loaded.
        """
        name, weight = change.reward, change.body.get("weight")
        check_change(change.action, name, self.rewards, self.shadows)
        match change.action:
            case Action.REPLACE:
                weight = self.weights[name] if weight is None else weight
                return self.without(shadow_of(name)).with_reward(name, load(change.body, name), weight)
            case Action.SHADOW:
                shadow = shadow_of(name)
                return replace(
                    self.with_reward(shadow, load(change.body, shadow), 0.0), shadows=self.shadows | {shadow}
                )
            case Action.ADD:
                return self.with_reward(name, load(change.body, name), 1.0 if weight is None else weight)
            case Action.WEIGHT:
                return replace(self, weights={**self.weights, name: change.body["weight"]})
            case Action.REMOVE:
                return self.without(shadow_of(name)).without(name)

    def with_reward(self, name: str, reward: Composable, weight: float) -> RewardState:
        """Return the same with a reward under a name, in the place of the one that has it."""
        return replace(self, rewards={**self.rewards, name: reward}, weights={**self.weights, name: float(weight)})

    def without(self, name: str) -> RewardState:
        """Return the rewards without one of them."""
        return RewardState(
            {key: reward for key, reward in self.rewards.items() if key != name},
            {key: weight for key, weight in self.weights.items() if key != name},
            self.shadows - {name},
        )


def check_change(action: Action, name: str, names: Mapping[str, object], shadows: frozenset[str]) -> None:
    """Raise RewardDefinitionError where a change does not fit the rewards; the trainer does not see the shadows."""
    if action is Action.ADD:
        if name in names:
            raise RewardDefinitionError(f"there is a reward {name!r} already; give the new one another name")
        return
    if name not in names:
        raise RewardDefinitionError(
            f"no reward {name!r}; the training has {', '.join(names)}; add a new one with --add"
        )
    if action is Action.SHADOW and name in shadows:
        raise RewardDefinitionError(f"{name!r} cannot have a shadow: it is one")
    if action is Action.SHADOW and (shadow := shadow_of(name)) in names and shadow not in shadows:
        raise RewardDefinitionError(f"{name!r} cannot have a shadow: {shadow!r} is a reward; remove that first")
    if action is Action.WEIGHT and name in shadows:
        raise RewardDefinitionError(f"{name!r} is a shadow, which the trainer does not see; it has no weight")
    if action is Action.REMOVE and set(names) - shadows == {name}:
        raise RewardDefinitionError(f"{name!r} is the only reward; a training needs one")


def group_rewards_of(rewards: Mapping[str, Composable]) -> list[str]:
    """Return the names of the rewards that score whole groups, or have a part that does."""
    return [name for name, reward in rewards.items() if any(leaf.spec.kind is Kind.GROUP for leaf in reward.leaves)]


class Changeable(Protocol):
    """What scores, and takes other rewards between two steps."""

    @property
    def runtime(self) -> Runtime:
        """What scores now."""

    @property
    def state(self) -> RewardState:
        """The rewards that it scores with now."""

    def check(self, state: RewardState) -> None:
        """Raise a :class:`~rewardkit.RewardError` for rewards with which the training would be wrong."""

    def put(self, runtime: Runtime, state: RewardState) -> None:
        """Score with this runtime and these rewards from now on; the old runtime is closed by the caller."""


def is_taken(action: Action, name: str, actions: Sequence[str], shadows: frozenset[str]) -> bool:
    """Return whether a training takes an action; a shadow, which the trainer does not see, can always be removed."""
    return action in actions or (action is Action.REMOVE and name in shadows)


def untaken_reason(action: Action | str, how: str | None = None) -> str:
    """Return why a training does not take an action, with the fix; ``how`` is the user's word for the action."""
    options = {Action.WEIGHT: "--weight", Action.ADD: "--add", Action.REMOVE: "--remove"}
    how = how or options.get(Action(action), action)
    return (
        f"{how} changes the trainer's own lists, which this training does not hand out: train with `rewardkit train`, "
        "or call adapter.attach(trainer) before trainer.train()"
    )
