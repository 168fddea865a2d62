"""Rewards as Atropos calls them: a ``RewardFunction``, for a list of completions with keywords.

Atropos' base class turns any exception into 0.0 for the whole list. This one does not: what is unknown is an error.

======== ===================================================================
scored   the total, times the function's weight
skipped  0.0
failed   the total with the default in it
unknown  an error; or with ``on_unknown="zero"`` 0.0, for that completion
======== ===================================================================
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from rewardkit import ConfigError
from trainer_adapter.handover import RuntimeOptions
from trainer_adapter.list_calls import list_rollouts
from trainer_adapter.trainer_rewards import OnUnknown, TrainerAsks, TrainerRewards
from trainer_adapter.trainer_versions import TrainerVersions

__all__ = ["atropos_reward"]

_ASKS = TrainerAsks(
    trainer="Atropos",
    setting="the environment's reward function",
    more="Atropos sends the keywords with which the environment calls it: name it there",
    size="the environment's group_size",
    tested=TrainerVersions("atroposlib", "0.4", "0.5"),
    one_number="TurnCreditTrainer, for TRL, takes one a turn",
)


def atropos_reward(
    rewards: object = None,
    *,
    weight: float = 1.0,
    name: str | None = None,
    on_unknown: OnUnknown = "raise",
    weights: Sequence[float] | Mapping[str, float] | None = None,
    **options: Unpack[RuntimeOptions],
) -> Any:  # of atroposlib's RewardFunction, which ships no types
    """Return a ``RewardFunction`` of Atropos' of some rewards; each call has the completions of one prompt.

    Its keywords are columns: lists with a value for each completion, or one value for all; ``prompt`` is the prompt.

    Args:
        rewards: As :class:`TrainerRewards` takes them.
        weight: Atropos' own weight of the function.
        name: Its name in Atropos' logs; the rewards' names by default.
        on_unknown: ``"raise"`` or ``"zero"``.
        weights: Each reward's weight in the total.
        options: The other options of :class:`rewardkit.Runtime`.

    Raises:
        RewardError: As :class:`TrainerRewards`; ConfigError where Atropos is not installed.
    """
    try:
        from atroposlib.envs.reward_fns.reward_function import RewardFunction
    except ImportError as error:
        raise ConfigError(f"Atropos is not installed: pip install atroposlib ({error})") from error
    core = TrainerRewards(rewards, asks=_ASKS, on_unknown=on_unknown, weights=weights, whole_groups=True, **options)

    class RewardkitAtroposReward(RewardFunction):  # type: ignore[misc] # atroposlib ships no types
        def compute(self, completions: Sequence[Any], **keywords: object) -> list[float]:
            """Return a number for each completion, without the function's weight."""
            prompt = keywords.pop("prompt", "")
            prompts = prompt if isinstance(prompt, list) and _is_of_each(prompt, len(completions)) else None
            rollouts = list_rollouts(core, completions, keywords, prompts or [prompt] * len(completions))
            return [core.number(row) for row in core.score(rollouts)]

        def __call__(self, completions: Sequence[Any], **keywords: object) -> list[float]:
            """Return a number for each completion; an error stays one."""
            numbers = self.compute(completions, **keywords)
            weighted = [number * self.weight for number in numbers]
            if self.wandb_logger:
                self.log_metrics(numbers, weighted)
            return weighted

    return RewardkitAtroposReward(weight=weight, name=name or "_".join(core.names))


def _is_of_each(prompt: list[Any], rows: int) -> bool:
    """Return whether a list is a prompt for each completion, and not the messages of one."""
    return len(prompt) == rows and not any(isinstance(part, Mapping) for part in prompt)
