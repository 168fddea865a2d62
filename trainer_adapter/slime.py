"""Rewards as slime calls them: ``custom_rm(args, sample)``, or ``group_rm(args, samples)`` with ``--group-rm``.

``--custom-rm-path`` names one of them in a module of the user's: ``custom_rm = slime_rm("rewards.py")``. With
``--reward-key`` the reward is an object that has the key, and the rest beside it. Every sample gets that as
``metadata["rewardkit"]`` as well.

======== ==========================================================================
scored   the total
skipped  0.0, ``remove_sample``: the sample is not trained on
failed   the total with the default in it
unknown  0.0, ``remove_sample``; without :func:`post_process` it still counts in
         the mean of its group
======== ==========================================================================
"""

from __future__ import annotations

import functools
import statistics
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, Unpack

from rewardkit import ConfigError, Rollout
from rewardkit.serving import ToldRow
from trainer_adapter.handover import RuntimeOptions
from trainer_adapter.trainer_rewards import TrainerAsks, TrainerOptions, TrainerRewards
from trainer_adapter.turns import behind_prompt, plain_text

__all__ = ["CustomRM", "custom_rm", "group_rm", "post_process", "slime_group_rm", "slime_rm"]

_ASKS = TrainerAsks(
    trainer="slime",
    setting="--custom-rm-path",
    columns=frozenset({"answer", "label"}),
    more="slime sends the label (also as answer; see --label-key) and the fields of --metadata-key: put it there",
    size="--n-samples-per-prompt, or take slime_group_rm with --group-rm",
    one_number="metadata of the sample has the turns' numbers",
)
_MARK = "rewardkit"
_CENTRED = ("grpo", "gspo", "cispo", "reinforce_plus_plus_baseline")
_SCALED = ("grpo", "gspo", "cispo")
CustomRM: TypeAlias = Callable[..., Awaitable[Any]]
"""What slime calls, with its settings and a sample or a list of them."""


def slime_rm(rewards: object = None, **options: Unpack[TrainerOptions]) -> CustomRM:
    """Return a ``custom_rm(args, sample)`` of some rewards.

    Args:
        rewards: As :class:`TrainerRewards` takes them.
        options: ``weights``, ``group_wait_s`` and ``group_size``, which is ``--n-samples-per-prompt`` where a reward
            scores groups; and the other options of :class:`rewardkit.Runtime`.

    Raises:
        RewardError: As :class:`TrainerRewards`.
    """
    return _custom_rm(TrainerRewards(rewards, asks=_ASKS, on_unknown="zero", **options))


def slime_group_rm(
    rewards: object = None,
    *,
    weights: Sequence[float] | Mapping[str, float] | None = None,
    **options: Unpack[RuntimeOptions],
) -> CustomRM:
    """Return a ``group_rm(args, samples)`` of some rewards, for ``--group-rm``: each call has whole groups."""
    return _custom_rm(
        TrainerRewards(rewards, asks=_ASKS, on_unknown="zero", weights=weights, whole_groups=True, **options)
    )


class _Sample(Protocol):
    """A sample of slime's, as far as it is read and written."""

    prompt: Any
    response: str
    label: object
    metadata: object
    remove_sample: bool

    def get_reward_value(self, args: object) -> float: ...


def _custom_rm(core: TrainerRewards) -> CustomRM:
    """Return slime's function of rewards: it takes a sample or a list of them, and answers in kind."""

    async def rm(args: object, sample: _Sample | list[_Sample], **keywords: object) -> Any:
        samples = sample if isinstance(sample, list) else [sample]
        _check(core, args, isinstance(sample, list))
        rollouts = [_rollout(core, sample) for sample in samples]
        rows = await core.ascore(rollouts)
        triples = zip(samples, rows, rollouts, strict=True)
        rewards = [_reward(core, args, sample, row, rollout) for sample, row, rollout in triples]
        return rewards if isinstance(sample, list) else rewards[0]

    return rm


def _check(core: TrainerRewards, args: object, is_group: bool) -> None:
    """Raise :class:`rewardkit.ConfigError` where slime's settings do not give whole groups."""
    count = getattr(args, "n_samples_per_prompt", core.group_size)
    if core.group_size is not None and count != core.group_size:
        raise ConfigError(
            f"slime: group_size={core.group_size}, but --n-samples-per-prompt is {count}; make them equal"
        )
    if core.groups and core.group_size is None and not is_group:
        raise ConfigError(
            f"slime: reward {core.groups[0]!r} scores whole groups, and slime sent one sample; add --group-rm, and in "
            "evaluation, which knows no groups, give another custom_rm_path in --eval-config"
        )


def _metadata(sample: _Sample) -> dict[str, Any]:
    return sample.metadata if isinstance(sample.metadata, dict) else {}


def _rollout(core: TrainerRewards, sample: _Sample) -> Rollout:
    truth = {} if sample.label is None else {"answer": sample.label, "label": sample.label}
    columns = {**_metadata(sample), **truth}
    columns.pop(_MARK, None)  # ours, of a scoring before; it would part the group
    messages = plain_text(getattr(sample, "messages", None))  # where a generate function leaves the conversation
    completion = behind_prompt(messages, sample.prompt) if isinstance(messages, list) and messages else []
    group = getattr(sample, "group_index", None)
    return core.rollout(sample.prompt, completion or sample.response, columns, group=group)


def _reward(core: TrainerRewards, args: object, sample: _Sample, row: ToldRow, rollout: Rollout) -> Any:
    """Return slime's reward of a sample, and leave in the sample what a number cannot say."""
    details = core.known(row)
    turns = core.credit(row, rollout)._asdict() if core.gives_credit else {}
    sample.metadata = {**_metadata(sample), _MARK: {**details, **turns}}
    if row.total is None:
        sample.remove_sample = True
    key = getattr(args, "reward_key", None)
    return {**details, key: core.number(row)} if key else core.number(row)


def post_process(args: Any, samples: Sequence[_Sample]) -> tuple[list[float], list[float]]:
    """Return slime's raw and normalised rewards, for ``--custom-reward-post-process-path``.

    They are slime's own, the mean of the group taken off and divided by its standard deviation + 1e-6 as the settings
    say, but samples without a total are left out of both and get 0.0. ``args`` is slime's ``argparse.Namespace``.
    """
    raw = [float(sample.get_reward_value(args)) for sample in samples]
    estimator = getattr(args, "advantage_estimator", None)
    if estimator not in _CENTRED or not getattr(args, "rewards_normalization", True):
        return raw, list(raw)
    is_scaled = estimator in _SCALED and bool(getattr(args, "grpo_std_normalization", True))
    groups: defaultdict[Any, list[int]] = defaultdict(list)
    for row, sample in enumerate(samples):
        index = getattr(sample, "group_index", None)
        key = row // args.n_samples_per_prompt if index is None else ("index", index)
        groups[key].append(row)
    normalised = [0.0] * len(raw)
    for group in groups.values():
        rows = [row for row in group if _has_total(samples[row])]
        values = [raw[row] for row in rows]
        mean = statistics.fmean(values) if values else 0.0
        scale = 1.0
        if is_scaled and len(values) > 1:
            scale = statistics.stdev(values) + 1e-6
        for row in rows:
            normalised[row] = (raw[row] - mean) / scale
    return raw, normalised


def _has_total(sample: _Sample) -> bool:
    details = _metadata(sample).get(_MARK, {})
    return not (details.get("unknown") or details.get("skipped"))


@functools.cache
def _default(group: bool) -> CustomRM:
    return slime_group_rm() if group else slime_rm()


async def custom_rm(args: object, sample: object, **keywords: object) -> Any:
    """Score as :func:`slime_rm` does, with the rewards that ``REWARDKIT_REWARDS`` names."""
    return await _default(False)(args, sample)


async def group_rm(args: object, samples: object, **keywords: object) -> Any:
    """Score as :func:`slime_group_rm` does, with the rewards that ``REWARDKIT_REWARDS`` names."""
    return await _default(True)(args, samples)
