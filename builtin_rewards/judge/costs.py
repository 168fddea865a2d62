"""What judgements took, as metrics: :func:`cost_metrics`, and :func:`open_bill` for those that other judges ask for.

A member of a chain or jury that fails has no score to carry its costs. So each reply is also put on the bill of every
chain and jury that asked for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

from builtin_rewards.judge.model import ReadReply
from rewardkit.extending import COST_METRICS

Bill: TypeAlias = Sequence[ReadReply[Any]]

_NAMES = frozenset({*COST_METRICS, "cached"})
_bills: ContextVar[tuple[list[ReadReply[Any]], ...]] = ContextVar("bills", default=())


def charge(answer: ReadReply[Any]) -> None:
    """Put a reply on all bills that are open where it is asked for."""
    for bill in _bills.get():
        bill.append(answer)


@contextmanager
def open_bill() -> Iterator[Bill]:
    """Return the bill of the replies that the block and its tasks ask for; they stand on the caller's bill too."""
    bill: list[ReadReply[Any]] = []
    token = _bills.set((*_bills.get(), bill))
    try:
        yield bill
    finally:
        _bills.reset(token)


def cost_metrics(answers: Bill) -> dict[str, float]:
    """Return what replies took: requests, tokens, USD if the price is known, and the share that the cache had."""
    sent = [answer for answer in answers if answer.requests]
    used = [answer.reply.usage for answer in sent if answer.reply.usage is not None]
    costs = [answer.cost_usd for answer in sent if answer.cost_usd is not None]
    cached = 1 - len(sent) / len(answers) if answers else 0.0
    metrics = {"requests": float(sum(answer.requests for answer in sent)), "cached": cached}
    if len(used) == len(sent):
        metrics["prompt_tokens"] = float(sum(usage.prompt_tokens for usage in used))
        metrics["completion_tokens"] = float(sum(usage.completion_tokens for usage in used))
    return metrics | ({"cost_usd": sum(costs)} if len(costs) == len(sent) else {})


def with_costs(metrics: Mapping[str, float], bill: Bill) -> dict[str, float]:
    """Return metrics whose costs are replaced by the bill's, which include them; an empty bill changes nothing."""
    if not bill:
        return dict(metrics)
    return {name: value for name, value in metrics.items() if name not in _NAMES} | cost_metrics(bill)
