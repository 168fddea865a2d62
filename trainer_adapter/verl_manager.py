"""verl's reward manager ``rewardkit``: verl's own, which also tells a reward the prompt and the group.

verl 0.9 loads this module as it starts, by the entry-point group ``verl.plugins``; earlier versions where
``reward.reward_manager`` names it. It alone imports verl. :func:`trainer_adapter.verl.verl_score` reads what it adds.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from trainer_adapter.verl_start import check_start

_log = logging.getLogger("trainer_adapter")

try:
    from verl.experimental.reward_loop.reward_manager import register
    from verl.experimental.reward_loop.reward_manager.naive import NaiveRewardManager
except Exception as error:
    # verl says at its debug level that a plugin does not load, and later that it knows no such manager.
    _log.warning(
        "verl: the reward manager 'rewardkit' is not registered, because this verl has no "
        "verl.experimental.reward_loop.reward_manager as 0.7.1 to 0.9 have it (%s: %s); without "
        "reward.reward_manager.name=rewardkit nothing needs it",
        type(error).__name__,
        error,
    )
    raise


@register("rewardkit")
class RewardkitRewardManager(NaiveRewardManager):  # type: ignore[misc] # verl ships no types
    """Hands on ``prompt``, the messages, and ``uid``, which the completions of one prompt share, in ``extra_info``."""

    def __init__(
        self, config: Mapping[str, Any], tokenizer: object, compute_score: object, *arguments: object, **options: object
    ) -> None:
        super().__init__(config, tokenizer, compute_score, *arguments, **options)
        check_start(compute_score, config)

    async def run_single(self, data: Any) -> dict[str, Any]:  # verl's DataProto
        """Score one sample, with the prompt and the group added to its ``extra_info``."""
        columns = data[-1:][0].non_tensor_batch
        info = columns.get("extra_info")
        if isinstance(info, dict):
            for name, source in (("prompt", "raw_prompt"), ("uid", "uid")):
                if columns.get(source) is not None:
                    info.setdefault(name, _plain(columns[source]))
        scored: dict[str, Any] = await super().run_single(data)
        return scored


def _plain(value: object) -> object:
    """Return a list for numpy's array of messages."""
    return value.tolist() if hasattr(value, "tolist") else value
