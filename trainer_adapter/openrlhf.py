"""Rewards as OpenRLHF (0.11) calls them: ``reward_func(queries, prompts, labels)``, lists of one, from many threads.

``--reward.remote_url`` (``--remote_rm_url``) names a file of the user's with ``reward_func =
openrlhf_reward("rewards.py")``. OpenRLHF logs an error of a reward and goes on without a number, on which its next
step ends; so a total that is not known is 0.0, and ``extra_logs`` say so.

======== ======================================================================
scored   ``rewards`` is the total; ``scores`` is it within 0 to 1
skipped  0.0, ``extra_logs["skipped"]`` 1.0
failed   the total with the default in it, ``extra_logs["failed"]`` 1.0
unknown  0.0, ``extra_logs["unknown"]`` 1.0; never null
======== ======================================================================
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, Unpack

from rewardkit import DataError
from rewardkit.serving import completion_in
from trainer_adapter.trainer_rewards import TrainerAsks, TrainerOptions, TrainerRewards, check_lists
from trainer_adapter.trainer_versions import TrainerVersions

__all__ = ["RewardFunc", "openrlhf_reward", "reward_func"]

_ASKS = TrainerAsks(
    trainer="OpenRLHF",
    setting="--remote_rm_url",
    columns=frozenset({"answer", "label"}),
    more=None,
    size="--n_samples_per_prompt",
    tested=TrainerVersions("openrlhf", "0.11", "0.12"),
    one_number="TurnCreditTrainer, for TRL, takes one a turn",
)
RewardFunc: TypeAlias = Callable[[Sequence[str], Sequence[str], Sequence[Any]], dict[str, Any]]
"""What OpenRLHF calls."""


def openrlhf_reward(rewards: object = None, **options: Unpack[TrainerOptions]) -> RewardFunc:
    """Return OpenRLHF's ``reward_func`` of some rewards; the label is the column ``answer``, and ``label`` too.

    Args:
        rewards: As :class:`TrainerRewards` takes them.
        options: ``weights``, ``group_wait_s`` and ``group_size``, which is ``--n_samples_per_prompt`` where a reward
            scores groups; and the other options of :class:`rewardkit.Runtime`.

    Raises:
        RewardError: As :class:`TrainerRewards`.
    """
    core = TrainerRewards(rewards, asks=_ASKS, on_unknown="zero", **options)

    def reward_func(
        queries: Sequence[str], prompts: Sequence[str], labels: Sequence[Any], **keywords: object
    ) -> dict[str, Any]:
        """Return OpenRLHF's reply: rewards, scores from 0 to 1, and all that is known as logs."""
        _check_lists(queries=queries, prompts=prompts, labels=labels)
        rollouts = [
            core.rollout(prompt, completion_in(query, prompt), {"answer": label, "label": label})
            for query, prompt, label in zip(queries, prompts, labels, strict=True)
        ]
        rows = core.score(rollouts)
        logs = [core.known(row) for row in rows]
        columns = {name: [log[name] for log in logs] for name in (logs[0] if logs else ())}
        return _reply([core.number(row) for row in rows], columns)

    return reward_func


def _check_lists(**lists: Sequence[object]) -> None:
    """Raise ``DataError`` for lists of different lengths, and for a query or prompt that is not text."""
    check_lists("OpenRLHF", len(lists["queries"]), "queries", **lists)
    for name in ("queries", "prompts"):
        for index, value in enumerate(lists[name]):
            if not isinstance(value, str):
                raise DataError(f"OpenRLHF: {name}[{index}]: expected a string, got {type(value).__name__}")


def _reply(totals: Sequence[float], logs: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """Return numbers for one completion, as OpenRLHF asks, and lists for any other count."""
    scores = [min(1.0, max(0.0, total)) for total in totals]  # OpenRLHF filters samples by a score of 0 to 1
    if len(totals) != 1:
        return {"rewards": list(totals), "scores": scores, "extra_logs": dict(logs)}
    return {"rewards": totals[0], "scores": scores[0], "extra_logs": {name: column[0] for name, column in logs.items()}}


@functools.cache
def _default() -> RewardFunc:
    return openrlhf_reward()


def reward_func(
    queries: Sequence[str], prompts: Sequence[str], labels: Sequence[Any], **keywords: object
) -> dict[str, Any]:
    """Score as :func:`openrlhf_reward` does, with the rewards that ``REWARDKIT_REWARDS`` names."""
    return _default()(queries, prompts, labels)


if __name__ == "reward_func":  # OpenRLHF runs this file under that name; a mistake is an error now, not with each call
    _default()
