"""Rewards as ms-swift calls them: a class after its ``ORM``, or ``AsyncORM``, that scores a process's whole batch.

A file that ``--external_plugins`` names has ``orms["mine"] = swift_orm("rewards.py")``, and ``--reward_funcs mine``
takes it; ``ORM`` itself takes the rewards that ``REWARDKIT_REWARDS`` names. This module does not import swift, which
asks for no base class.

======== =========================================================================
scored   the total
skipped  ``default``
failed   the total with the reward's own default in it
unknown  ``default``, and a warning in the log, once: ms-swift knows no "unknown"
======== =========================================================================
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from rewardkit import ConfigError, DataError, Rollout
from rewardkit.serving import ToldRow
from trainer_adapter.columns import Frozen
from trainer_adapter.handover import RuntimeOptions
from trainer_adapter.trainer_rewards import GROUP_COLUMN, TrainerAsks, TrainerRewards
from trainer_adapter.trainer_versions import TrainerVersions
from trainer_adapter.turns import behind_prompt

__all__ = ["ORM", "AsyncORM", "swift_async_orm", "swift_orm"]

_ASKS = TrainerAsks(
    trainer="ms-swift",
    setting="--reward_funcs",
    more="ms-swift sends the columns of --dataset: name it there, or map another to it with --columns",
    size="--num_generations",
    tested=TrainerVersions("ms-swift", "4.6", "4.7"),
    one_number="TurnCreditTrainer, for TRL, takes one a turn",
)
_log = logging.getLogger("trainer_adapter")


class _SwiftRewards:
    """What both classes share: ms-swift's keywords to rollouts, and rows to numbers. ms-swift makes the instance."""

    rewards: TrainerRewards | None = None  # `None` for those that the environment variable names
    default: float = 0.0
    size: int | None = None  # Completions of a group, where a reward scores groups

    def __init__(self, args: object = None, **keywords: object) -> None:
        self.args = args
        count = getattr(args, "num_generations", None)
        if self.rewards is None:
            self.rewards = TrainerRewards(asks=_ASKS, on_unknown="zero", whole_groups=count is not None)
            self.size = count
        self._core = self.rewards
        if self.size is not None and count is not None and count != self.size:
            raise ConfigError(f"ms-swift: group_size={self.size}, but --num_generations is {count}; make them equal")
        self._has_warned = False

    def _rollouts(self, completions: Sequence[Any], keywords: Mapping[str, Any]) -> list[Rollout]:
        """Return a call's rollouts; its columns are the keywords that have a value for each completion."""
        rows = len(completions)
        columns: dict[str, Sequence[Any]] = {
            name: values
            for name, values in keywords.items()
            if isinstance(values, list | tuple) and len(values) == rows
        }
        conversations = columns.pop("messages", [""] * rows)
        ids, infos = (columns.get(name, [None] * rows) for name in ("response_token_ids", "rollout_infos"))
        turn_counts = list(map(_turn_count, ids, infos))
        groups = columns.get("prompt_id", [None] * rows)
        if self._core.groups and self._core.columns is None and "prompt_id" in columns:
            columns = _same_in_groups(columns, groups)
        rollouts = [
            self._core.rollout(
                *_parted(conversations[row], completions[row], turn_counts[row]),
                {name: values[row] for name, values in columns.items()},
                group=groups[row],
            )
            for row in range(rows)
        ]
        self._check_whole(rollouts)
        return rollouts

    def _check_whole(self, rollouts: Sequence[Rollout]) -> None:
        """Raise :class:`rewardkit.DataError` where a process has a part of a group that a reward scores."""
        if self.size is None or not self._core.groups:
            return
        counts = Counter(repr(rollout.example.get(GROUP_COLUMN, rollout.prompt)) for rollout in rollouts)
        if any(count % self.size for count in counts.values()):
            raise DataError(
                f"ms-swift: reward {self._core.groups[0]!r} scores whole groups of {self.size}, and a process has a "
                "part of one; make --per_device_train_batch_size times --steps_per_generation a multiple of "
                "--num_generations"
            )

    def _numbers(self, rows: Sequence[ToldRow]) -> list[float]:
        """Return each row's total, or the default where it has none; log once that some are unknown."""
        unknown = [row for row in rows if row.flags["unknown"]]
        if unknown and not self._has_warned:
            self._has_warned = True
            _log.warning(
                "%d of %d rewards are unknown, and ms-swift takes %g for each: %s; this is logged once",
                len(unknown),
                len(rows),
                self.default,
                unknown[0].why,
            )
        return [self.default if row.total is None else float(row.total) for row in rows]


class ORM(_SwiftRewards):
    """A reward function of ms-swift, of the rewards that ``REWARDKIT_REWARDS`` names or :func:`swift_orm` is given."""

    def __call__(self, completions: Sequence[Any], **columns: Any) -> list[float]:
        """Return a number for each completion."""
        return self._numbers(self._core.score(self._rollouts(completions, columns)))


class AsyncORM(_SwiftRewards):
    """A reward function as :class:`ORM` is, which ms-swift awaits beside others; :func:`swift_async_orm`."""

    async def __call__(self, completions: Sequence[Any], **columns: Any) -> list[float]:
        """Return a number for each completion."""
        return self._numbers(await self._core.ascore(self._rollouts(completions, columns)))


class _SwiftOptions(RuntimeOptions, total=False):
    """The options of a class for ms-swift that go on to :class:`TrainerRewards`."""

    weights: Sequence[float] | Mapping[str, float] | None  # Each reward's weight in the total


def swift_orm(
    rewards: object = None, *, default: float = 0.0, group_size: int | None = None, **options: Unpack[_SwiftOptions]
) -> type[ORM]:
    """Return a class for ms-swift's ``orms``: the weighted total of some rewards.

    Args:
        rewards: As :class:`TrainerRewards` takes them.
        default: The number that ms-swift gets for a completion without a total.
        group_size: ``--num_generations``, where a reward scores groups; a call has those of a process.
        options: ``weights``, and the other options of :class:`rewardkit.Runtime`.

    Raises:
        RewardError: As :class:`TrainerRewards`.
    """
    return type("RewardkitORM", (ORM,), _members(rewards, default, group_size, options))


def swift_async_orm(
    rewards: object = None, *, default: float = 0.0, group_size: int | None = None, **options: Unpack[_SwiftOptions]
) -> type[AsyncORM]:
    """Return a class as :func:`swift_orm` does, which ms-swift awaits."""
    return type("RewardkitAsyncORM", (AsyncORM,), _members(rewards, default, group_size, options))


def _members(rewards: object, default: float, size: int | None, options: _SwiftOptions) -> dict[str, Any]:
    core = TrainerRewards(rewards, asks=_ASKS, on_unknown="zero", whole_groups=size is not None, **options)
    return {"rewards": core, "default": float(default), "size": size}


def _same_in_groups(columns: Mapping[str, Sequence[Any]], groups: Sequence[Any]) -> dict[str, Sequence[Any]]:
    """Return the columns that all completions of a prompt share; what ms-swift adds to each would part its group."""
    leader_of: dict[Any, int] = {}  # the first row of each group
    leaders = [leader_of.setdefault(group, row) for row, group in enumerate(groups)]
    shared = {}
    for name, values in columns.items():
        contents = [Frozen.of(value).content for value in values]  # values that are not comparable by == too
        if all(contents[row] == contents[leader] for row, leader in enumerate(leaders)):
            shared[name] = values
    return shared


def _parted(conversation: Any, completion: Any, turns: int) -> tuple[Any, Any]:
    """Return prompt and completion of a conversation; the completion is messages where the model took several turns."""
    if not isinstance(conversation, list) or not conversation or conversation[-1].get("role") != "assistant":
        return conversation or "", completion  # an empty list is no prompt
    behind = behind_prompt(conversation, "", turns)
    prompt = conversation[: len(conversation) - len(behind)] or ""
    return prompt, behind if len(behind) > 1 and behind[-1].get("content") == completion else completion


def _turn_count(ids: object, infos: object) -> int:
    """Return how many turns the model took, by the token ids of each or by what ms-swift says; 1 without both."""
    if isinstance(ids, list | tuple) and ids and all(isinstance(turn, list | tuple) for turn in ids):
        return len(ids)
    count = infos.get("num_turns") if isinstance(infos, Mapping) else None
    return count if isinstance(count, int) and count > 0 else 1
