"""TRL's GRPOTrainer with an advantage for each token: what the completion earned, and what its turn earned.

The loss of TRL takes advantages of shape (B, T) from subclasses (``GRPOTrainer._compute_loss``, TRL 1.16). Rewards
without ``credit`` make TRL's advantage of the completion, by TRL's own settings; a turn's advantage is added to it at
the turn's tokens. A reward with ``credit`` counts by its turns alone. This module imports TRL.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import torch
from accelerate.utils import gather_object  # type: ignore[import-untyped]
from trl import GRPOTrainer  # type: ignore[attr-defined]  # it is, lazily

from rewardkit import ConfigError
from rewardkit.advantages import gdpo_advantages, group_advantages
from rewardkit.credit import TurnNumbers, turn_advantages, turn_spans, turn_totals
from trainer_adapter.functions import AdaptedFunction
from trainer_adapter.splitting import generations_of

__all__ = ["COMPLETION_MESSAGES", "TurnCreditTrainer", "token_advantages"]

COMPLETION_MESSAGES = "completion_messages"
"""The field in which a ``rollout_func`` returns the messages of each completion, which TRL has as one text."""
_log = logging.getLogger("trainer_adapter")


class _Credited(NamedTuple):
    """A reward function whose reward gives each turn a number."""

    column: int  # Its index among the trainer's functions
    function: AdaptedFunction


def _credited(functions: Iterable[object]) -> list[_Credited]:
    """Return the functions whose rewards give credit now."""
    return [
        _Credited(index, function)
        for index, function in enumerate(functions)
        if isinstance(function, AdaptedFunction) and function.gives_credit
    ]


class TurnCreditTrainer(GRPOTrainer):
    """A GRPOTrainer whose advantages differ from turn to turn.

    ::

        adapter = RewardAdapter([right_tool, solved])  # right_tool is a @step_reward(credit="turns")
        trainer = TurnCreditTrainer(model, reward_funcs=adapter.reward_funcs, args=config, normalize="turn")

    The turns are the model's messages in the completion, and their tokens the runs of tokens that the model wrote: TRL
    masks those of tools, and a ``rollout_func`` says by ``env_mask`` which are not the model's. It returns the messages
    of its completions as ``completion_messages``. Where a completion has more or fewer messages than runs, the mean of
    its turns' advantages counts for all of its tokens, and a warning says so once. The advantages that TRL logs and a
    record has stay one a completion.

    Args:
        arguments: Those of GRPOTrainer.
        normalize: What a turn's number is compared with, see :data:`rewardkit.credit.NORMALIZATIONS`.
        returns: What a turn answers for, see :data:`rewardkit.credit.RETURNS`.
        discount: What a later turn's number counts less, for ``returns="to_go"``.
        keywords: Those of GRPOTrainer.

    Raises:
        ConfigError: No reward of an adapter gives credit.
        ObjectiveError: A setting is out of range.
    """

    takes_credit = True

    def __init__(
        self, *arguments: Any, normalize: str = "turn", returns: str = "own", discount: float = 1.0, **keywords: Any
    ) -> None:
        self._choices: dict[str, Any] = {"normalize": normalize, "returns": returns, "discount": discount}
        turn_advantages([], 1, **self._choices)
        functions = keywords.get("reward_funcs", arguments[1] if len(arguments) > 1 else None)
        if not _credited(functions if isinstance(functions, list) else [functions]):
            raise ConfigError(
                "TurnCreditTrainer: no reward gives each turn a number; declare one with @step_reward(credit='turns') "
                "and pass reward_funcs=adapter.reward_funcs of a RewardAdapter, or take TRL's GRPOTrainer"
            )
        super().__init__(*arguments, **keywords)
        self._rewards_per_func = torch.empty(0, 0)
        self._turns: list[tuple[TurnNumbers, ...]] = []
        self._has_warned = False

    def _calculate_rewards(
        self, inputs: list[dict[str, Any]], prompts: list[Any], completions: list[Any], completion_ids_list: list[Any]
    ) -> torch.Tensor:
        """Score as TRL does, with the messages of a ``rollout_func``, and remember what the turns earned."""
        if inputs and all(COMPLETION_MESSAGES in row for row in inputs):
            completions = [row.pop(COMPLETION_MESSAGES) for row in inputs]
        rewards: torch.Tensor = super()._calculate_rewards(inputs, prompts, completions, completion_ids_list)
        self._rewards_per_func = rewards
        columns = [
            credited.function.adapter.turns[credited.function.__name__] for credited in _credited(self.reward_funcs)
        ]
        self._turns = list(zip(*columns, strict=True))
        return rewards

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        """Generate and score as TRL does, and give each token the advantage of its turn."""
        output: dict[str, Any] = super()._generate_and_score_completions(inputs)
        mode = "train" if getattr(self.model, "training", True) else "eval"
        generations = int(generations_of(self.args, mode) or 1)
        mask = output["completion_mask"]
        mask = mask * output["tool_mask"] if "tool_mask" in output else mask
        first = self.accelerator.process_index * len(mask)
        own = slice(first, first + len(mask))
        turns = self._turn_advantages(generations)[own]
        outcome = self._outcome_advantages(generations)[own].to(mask.device)
        output["advantages"], unplaced = token_advantages(outcome, turns, mask)
        if unplaced and not self._has_warned:
            self._has_warned = True
            _log.warning(
                "%d of %d completions have another number of turns than of runs of the model's tokens; the mean of "
                "their turns counts for all of their tokens", unplaced, len(mask),
            )  # fmt: skip
        self._metrics[mode]["credit/unplaced"].append(unplaced / len(mask))
        return output

    def _turn_advantages(self, generations: int) -> list[list[float]]:
        """Return the turns' advantages of the completions of all processes."""
        rows: list[tuple[TurnNumbers, ...]] = gather_object(self._turns)
        weights = [float(self.reward_weights[credited.column]) for credited in _credited(self.reward_funcs)]
        totals = turn_totals(list(zip(*rows, strict=True)), weights, generations)
        for row, is_left_out in enumerate(torch.isnan(self._rewards_per_func).all(dim=1).tolist()):
            if is_left_out:  # by the adapter, because a part of its reward is not known
                totals[row] = [None] * len(totals[row])
        return turn_advantages(totals, generations, **self._choices)

    def _outcome_advantages(self, generations: int) -> torch.Tensor:
        """Return TRL's advantages of the rewards without credit, of the completions of all processes."""
        rewards = self._rewards_per_func
        with_credit = {credited.column for credited in _credited(self.reward_funcs)}
        columns = [index for index in range(rewards.shape[1]) if index not in with_credit]
        if not columns:
            return rewards.new_zeros(len(rewards))
        weights = self.reward_weights.to(rewards.device)[columns]
        if self.multi_objective_aggregation == "normalize_then_sum":
            unbound: Any = rewards[:, columns].unbind(dim=1)
            by_turns: torch.Tensor = gdpo_advantages(unbound, weights.tolist(), generations)
            return by_turns
        totals = (rewards[:, columns] * weights).nansum(dim=1)
        totals[torch.isnan(rewards[:, columns]).all(dim=1)] = torch.nan
        advantages: torch.Tensor = group_advantages(totals, generations, scale=self.scale_rewards)
        return advantages


def token_advantages(
    outcome: torch.Tensor, turns: Sequence[Sequence[float]], mask: torch.Tensor
) -> tuple[torch.Tensor, int]:
    """Return an advantage for each token, and how many completions have turns whose tokens are not known.

    Args:
        outcome: One a completion, shape (B,).
        turns: One a turn of each completion.
        mask: Which tokens the model wrote, shape (B, T).

    Returns:
        Shape (B, T): the completion's, and at the tokens of a turn the turn's added to it. Where a completion has more
        or fewer turns than runs of tokens, the mean of its turns' at all tokens, which count as unplaced.
    """
    advantages = outcome.unsqueeze(1).repeat(1, mask.shape[1])
    unplaced = 0
    for row, (numbers, own_mask) in enumerate(zip(turns, mask.tolist(), strict=True)):
        spans = turn_spans(own_mask)
        if not numbers or not spans:
            continue
        if len(spans) == len(numbers):
            for number, (start, end) in zip(numbers, spans, strict=True):
                advantages[row, start:end] += number
        else:
            unplaced += len(numbers) > 1
            advantages[row] += sum(numbers) / len(numbers)
    return advantages, unplaced
