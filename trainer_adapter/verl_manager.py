"""verl's reward manager ``rewardkit``: verl's own, which also tells a reward the prompt and the group.

verl 0.9 loads this module as it starts, by the entry-point group ``verl.plugins``; earlier versions where
``reward.reward_manager`` names it. It alone imports verl. :func:`trainer_adapter.verl.verl_score` reads what it adds.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from itertools import groupby
from typing import Any

from builtin_rewards.reading.transcript import read_parts, read_tokens, read_turns
from trainer_adapter.credit import CreditedNumber
from trainer_adapter.turns import VERL_MESSAGES
from trainer_adapter.verl_start import check_start, refuse_remote

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


_registry = sys.modules.get("verl.experimental.reward_loop.reward_manager.registry")
_managers: dict[str, type[Any]] = getattr(_registry, "REWARD_MANAGER", {})
if "remote" in _managers:  # so that what it refuses has our error, and not an assertion without a name
    _managers["remote"] = refuse_remote(_managers["remote"])


@register("rewardkit")
class RewardkitRewardManager(NaiveRewardManager):  # type: ignore[misc] # verl ships no types
    """Hands on ``prompt``, the messages, and ``uid``, which the completions of one prompt share, in ``extra_info``.

    Where a reward reads turns or tool calls, ``rewardkit_messages`` are those of the completion: the agent loop's, if
    its extra fields have ``messages``, else read from the tokens. A data set's own ``messages`` are not taken.
    """

    def __init__(
        self, config: Mapping[str, Any], tokenizer: object, compute_score: object, *arguments: object, **options: object
    ) -> None:
        super().__init__(config, tokenizer, compute_score, *arguments, **options)
        core = check_start(compute_score, config)
        self._reads_turns = core is not None and core.reads_turns

    async def run_single(self, data: Any) -> dict[str, Any]:  # verl's DataProto
        """Score one sample, with the prompt and the group added to its ``extra_info``."""
        row = data[-1:][0]
        columns = row.non_tensor_batch
        info = columns.get("extra_info")
        if isinstance(info, dict):
            for name, source in (("prompt", "raw_prompt"), ("uid", "uid")):
                if columns.get(source) is not None:
                    info.setdefault(name, _plain(columns[source]))
            if self._reads_turns:
                messages = _added(columns).get("messages")
                if messages is None:
                    messages = await self.loop.run_in_executor(None, self._messages, row)
                info[VERL_MESSAGES] = messages
        scored: dict[str, Any] = await super().run_single(data)
        number = scored["reward_score"]
        if isinstance(number, CreditedNumber):
            number.tokens = number.credit.token_rewards(_mask(row))
        return scored

    @classmethod
    def assemble_rm_scores(cls, data: Any, scores: list[float]) -> Any:
        """Return the scores by token: a turn's number at its last token, where the tokens of the turns are known."""
        rm_scores = super().assemble_rm_scores(data, scores)
        for row, number in enumerate(scores):
            tokens = getattr(number, "tokens", None)
            if tokens is not None:
                rm_scores[row, : len(tokens)] = rm_scores.new_tensor(tokens)
        return rm_scores

    def _messages(self, row: Any) -> list[dict[str, Any]] | None:
        """Return the messages of a completion; ``None`` where it is one turn without a call.

        The trainers before V1 say which tokens the model wrote; else the template's tokens tell the turns apart.
        """
        ids, mask = row.batch["responses"], row.batch.get("response_mask")
        ids = ids[: int(row.batch["attention_mask"][-ids.shape[-1] :].sum())]
        if mask is None:
            special_ids = {*getattr(self.tokenizer, "all_special_ids", ())}
            special_ids |= {*getattr(self.tokenizer, "added_tokens_decoder", ())}  # which the former leaves out
            if not special_ids:
                return read_turns(self._decode(ids))
            return read_tokens(ids.tolist(), self._decode, special_ids)
        tokens = zip(ids.tolist(), mask[: len(ids)].tolist(), strict=True)
        runs = [(bool(key), [token for token, _ in run]) for key, run in groupby(tokens, key=lambda pair: pair[1])]
        return read_parts((is_of_model, self._decode(run)) for is_of_model, run in runs) or None

    def _decode(self, ids: Any) -> str:
        text: str = self.tokenizer.decode(ids, skip_special_tokens=False)
        return text


def _mask(row: Any) -> list[int]:
    """Return which tokens of a response the model wrote: all of them, where verl does not say."""
    ids = row.batch["responses"]
    length = int(row.batch["attention_mask"][-ids.shape[-1] :].sum())
    mask = row.batch.get("response_mask")
    return [1] * length if mask is None else [int(key) for key in mask[:length].tolist()]


def _added(columns: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what an agent loop adds to a row, which no data set can."""
    fields = columns.get("tool_extra_fields")
    return fields if isinstance(fields, Mapping) else {}


def _plain(value: object) -> object:
    """Return a list for numpy's array of messages."""
    return value.tolist() if hasattr(value, "tolist") else value
