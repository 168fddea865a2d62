"""Rewards as verl (0.7.1 and later) calls them: ``compute_score``, one completion a call, from many coroutines at once.

``reward.custom_reward_function.path`` names a file of the user's with ``compute_score = verl_score("rewards.py")``.
This module does not import verl. :mod:`trainer_adapter.verl_manager` does, and registers a reward manager.

Every reply has the same keys, all floats, because verl takes those of the first sample for all: ``score``, ``unknown``,
``skipped``, ``failed``, and for each reward ``reward/<name>`` and ``failed/<name>``.

======== =========================================================================
scored   ``score`` is the total
skipped  ``score`` 0.0, ``skipped`` 1.0
failed   ``score`` is the total with the default in it, ``failed`` 1.0
unknown  an error, by which verl drops the sample's group; or with
         ``on_unknown="zero"`` ``score`` 0.0 and ``unknown`` 1.0
======== =========================================================================
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Mapping
from typing import Any, Protocol, Unpack

from rewardkit import DataError
from trainer_adapter.credit import CreditedNumber
from trainer_adapter.trainer_rewards import OnUnknown, TrainerAsks, TrainerOptions, TrainerRewards
from trainer_adapter.trainer_versions import TrainerVersions
from trainer_adapter.turns import VERL_MESSAGES, behind_prompt, plain_text

__all__ = ["ComputeScore", "compute_score", "verl_score"]

_ASKS = TrainerAsks(
    trainer="verl",
    setting="reward.custom_reward_function.path",
    columns=frozenset({"data_source", "ground_truth", "answer"}),
    more="verl sends data_source, ground_truth (also as answer) and the fields of the data's extra_info: put it there",
    size="actor_rollout_ref.rollout.n",
    tested=TrainerVersions("verl", "0.7.1", "0.10"),
    workers=1,  # because verl scores in 8 processes
    one_number="the manager 'rewardkit' places them at tokens, where verl's controller assembles the scores",
)
_IDENTITY = ("uid", "index")
_VARYING = frozenset(
    {"num_turns", "rollout_reward_scores", "turn_scores", "tool_rewards", "num_cached_tokens", "kv_transfer_params"}
    | {"global_steps", "min_global_steps", "max_global_steps"}
    | {"spec_num_draft_tokens", "spec_num_accepted_tokens", "spec_num_verify_steps"}
)
"""What verl, its agent loops and its engines add to ``extra_info``, other for each completion of a prompt."""
_MESSAGES = "raw_prompt"  # What agent loops of the trainers before V1 add: the prompt's messages


class ComputeScore(Protocol):
    """What verl calls; it must be a coroutine function."""

    def __call__(
        self,
        data_source: str,
        solution_str: str,
        ground_truth: object,
        extra_info: Mapping[str, Any] | None = None,
        **keywords: object,
    ) -> Awaitable[dict[str, float]]: ...


def verl_score(
    rewards: object = None,
    *,
    on_unknown: OnUnknown = "raise",
    prompt: str = "prompt",
    **options: Unpack[TrainerOptions],
) -> ComputeScore:
    """Return verl's ``compute_score`` of some rewards.

    Args:
        rewards: As :class:`TrainerRewards` takes them.
        on_unknown: ``"raise"``: verl marks the group as failed. ``"zero"``: 0.0 with ``unknown`` 1.0.
        prompt: The field of ``extra_info`` that has the prompt. Without it verl's messages are the prompt, which
            trainer V1 does not send unless the manager is ``rewardkit``.
        options: ``weights``, ``group_wait_s`` and ``group_size``, which is ``actor_rollout_ref.rollout.n`` where a
            reward scores groups; and the other options of :class:`rewardkit.Runtime`. ``workers`` is by default 1,
            because verl scores in ``reward.num_workers`` processes, 8 by default, each with workers of its own.

    Raises:
        RewardError: As :class:`TrainerRewards`.
    """
    core = TrainerRewards(rewards, asks=_ASKS, on_unknown=on_unknown, **options)

    async def compute_score(
        data_source: str,
        solution_str: str,
        ground_truth: object,
        extra_info: Mapping[str, Any] | None = None,
        **keywords: object,
    ) -> dict[str, float]:
        """Return the total as ``score``, and all else that is known of the completion."""
        if extra_info is not None and not isinstance(extra_info, Mapping):
            raise DataError(f"verl: extra_info: expected a mapping, got {type(extra_info).__name__}")
        info = dict(extra_info or {})
        if prompt not in info and info.get(_MESSAGES) is not None:
            info[prompt] = list(info[_MESSAGES])
        columns = {**info, "data_source": data_source, "ground_truth": ground_truth, "answer": ground_truth}
        if "prompt" in core.named and prompt not in info:
            raise DataError(
                f"verl: a reward reads the prompt, and extra_info has no field {prompt!r}; name its field with "
                "verl_score(prompt=...), or set reward.reward_manager.name=rewardkit"
            )
        completion = _completion(info.pop(VERL_MESSAGES, None), info.get(prompt), solution_str)
        columns.pop(VERL_MESSAGES, None)
        group = None
        if core.groups:
            group = _group(info, prompt)
            columns, info = _shared(columns), _shared(info)  # rows of one group must be equal in their columns
        if "extra_info" in core.named:  # its field ``answer`` need not be the ground truth, which the column is
            columns["extra_info"] = info
        rollout = core.rollout(info.get(prompt, ""), completion, columns, group=group)
        (row,) = await core.ascore([rollout])
        score = core.number(row)
        if core.gives_credit:
            score = CreditedNumber.of(score, core.credit(row, rollout))
        return {"score": score, **core.known(row)}

    compute_score.__dict__["rewardkit"] = core  # for the check at the start
    return compute_score


def _completion(messages: object, prompt: object, text: str) -> Any:
    """Return the completion: of an agent loop's messages those behind the prompt, else the text."""
    messages = plain_text(messages)
    if not isinstance(messages, list | tuple) or not messages:
        return text
    return behind_prompt(messages, plain_text(prompt)) or text


def _shared(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that are the same for all completions of a prompt."""
    return {name: value for name, value in fields.items() if name not in _VARYING}


def _group(info: Mapping[str, Any], prompt: str) -> str:
    """Return what tells the completions of one prompt from others; empty where the prompt itself does."""
    identity = [str(info[name]) for name in _IDENTITY if info.get(name) is not None]
    if not identity and prompt not in info:
        raise DataError(
            f"verl: nothing in extra_info tells which completions are of one prompt; put {_IDENTITY[1]!r} or "
            f"{prompt!r} into the dataset's extra_info, or set reward.reward_manager.name=rewardkit"
        )
    return "/".join(identity)


@functools.cache
def _from_settings(settings: tuple[tuple[str, Any], ...]) -> ComputeScore:
    return verl_score(**dict(settings))


async def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: object,
    extra_info: Mapping[str, Any] | None = None,
    *,
    rewards: str | None = None,
    on_unknown: OnUnknown = "raise",
    prompt: str = "prompt",
    group_size: int | None = None,
    workers: int | None = None,
    **keywords: object,
) -> dict[str, float]:
    """Score as :func:`verl_score` does, with rewards that ``reward_kwargs`` or ``REWARDKIT_REWARDS`` names.

    For ``reward.custom_reward_function.path=pkg://trainer_adapter.verl``, where no file of one's own is wanted.
    """
    settings: dict[str, Any] = {"rewards": rewards, "on_unknown": on_unknown, "prompt": prompt}
    settings |= {"group_size": group_size, "workers": workers}
    score = _from_settings(tuple(settings.items()))
    return await score(data_source, solution_str, ground_truth, extra_info)
