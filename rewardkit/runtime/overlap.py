"""Rewards that are scored while the rest of their batch is still being generated."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

from rewardkit.errors import ConfigError

RolloutFunction = TypeVar("RolloutFunction", covariant=True)


class Overlapping(Protocol[RolloutFunction]):
    """What can score completions while a trainer generates others, such as ``trainer_adapter.RewardAdapter``."""

    def overlapping(self, *, waves: int) -> RolloutFunction: ...


def overlap(adapter: Overlapping[RolloutFunction], *, waves: int = 1) -> RolloutFunction:
    """Return a ``rollout_func`` for TRL's GRPOTrainer that has completions scored as soon as each is finished.

    ::

        adapter = RewardAdapter([correct, judged])
        trainer = GRPOTrainer(
            model, reward_funcs=adapter.reward_funcs, args=args, rollout_func=rewardkit.overlap(adapter)
        )
        adapter.attach(trainer)

    It generates as the trainer does, with transformers or vLLM, and a completion that has ended goes to the rewards'
    workers at once. Scores, order, groups and the record are those of a training without it.

    Args:
        adapter: The adapter whose functions the trainer has.
        waves: In how many parts of whole groups a batch is generated, one after another. One part keeps the trainer's
            own generation; more make rewards begin earlier where completions are equally long, and pay where
            generating half of a batch takes half of the time, as on CPUs.

    Raises:
        ConfigError: It is not an adapter, or ``waves`` is not a whole number above 0.
    """
    if isinstance(waves, bool) or not isinstance(waves, int) or waves < 1:
        raise ConfigError(f"overlap(waves={waves!r}): expected a whole number, 1 or more")
    overlapping: Any = getattr(adapter, "overlapping", None)
    if overlapping is None:
        raise ConfigError(f"overlap({adapter!r}): expected a RewardAdapter, whose functions the trainer has")
    function: RolloutFunction = overlapping(waves=waves)
    return function
