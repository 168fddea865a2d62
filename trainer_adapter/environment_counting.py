"""Counting the reward of TRL's environments once, where it is one of ours: TRL counts it by itself.

TRL adds a reward function of its own, of weight 1, for each class of environments with a ``get_reward``.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from rewardkit.extending import ENVIRONMENT_COLUMN
from trainer_adapter.environment_values import LeafRewards
from trainer_adapter.splitting import TrlTrainer

_LISTS = ("reward_funcs", "reward_func_names", "reward_processing_classes")
_log = logging.getLogger("trainer_adapter")


def take_over(trainer: TrlTrainer, rewards: Iterable[LeafRewards], *, begun: bool, recorded: bool) -> None:
    """Let the reward of a trainer's environments count with our weight alone, where it is one of our rewards.

    Once a trainer has ``begun`` to call its functions, its own one stays, and answers with nothing. The log says where
    a record lacks the environment's reward because it is not one of ours.
    """
    functions = getattr(trainer, "reward_funcs", [])
    theirs = [index for index, function in enumerate(functions) if _is_of_trl(function)]
    if not theirs:
        return
    parameters = {parameter.name for reward in rewards for leaf in reward.leaves for parameter in leaf.spec.parameters}
    if ENVIRONMENT_COLUMN not in parameters:
        if recorded:
            _log.warning(
                "the reward of the environment %s counts in this training and is in no record: TRL asks for it by "
                "itself; add trainer_adapter.environments:environment_reward to the rewards",
                ", ".join(trainer.reward_func_names[index] for index in theirs),
            )
    elif begun:
        for index in theirs:
            functions[index] = _no_scores  # TRL walks its lists right now, so their length must stay
    else:
        ours = [index for index in range(len(functions)) if index not in theirs]
        for name in _LISTS:
            values = getattr(trainer, name)
            values[:] = [values[index] for index in ours]
        trainer.reward_weights = trainer.reward_weights[ours]


def _is_of_trl(function: object) -> bool:
    """Whether it is what TRL made of an environment's ``get_reward``."""
    return getattr(function, "__name__", "") == "get_reward" and str(getattr(function, "__module__", "")).startswith(
        "trl."
    )


def _no_scores(completions: Sequence[object], **_: object) -> list[None]:
    return [None] * len(completions)
