"""What judgements took, as metrics: :func:`cost_metrics`, and :func:`billed` for those that other judges ask for.

A member of a chain or jury that fails gives no score that could say what it took, so each answer is put on the bill of
whoever asked for it, at whatever depth.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

from builtin_rewards.judge.model import Answer
from rewardkit.types import COST_METRICS

Bill: TypeAlias = Sequence[Answer[Any]]

_NAMES = frozenset({*COST_METRICS, "cached"})
_bills: ContextVar[tuple[list[Answer[Any]], ...]] = ContextVar("bills", default=())


def charge(answer: Answer[Any]) -> None:
    """Puts an answer on the bills that are kept where it is asked for."""
    for bill in _bills.get():
        bill.append(answer)


@contextmanager
def billed() -> Iterator[Bill]:
    """Return the bill of what is asked in the block and in the tasks begun there; it is on that of the caller too."""
    bill: list[Answer[Any]] = []
    before = _bills.set((*_bills.get(), bill))
    try:
        yield bill
    finally:
        _bills.reset(before)


def cost_metrics(answers: Bill) -> dict[str, float]:
    """Return what answers took: requests, tokens, USD where it is known, and the share that the cache had."""
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
    """Return metrics with what a bill came to in place of their own costs, a part of it; unchanged by an empty one."""
    if not bill:
        return dict(metrics)
    return {name: value for name, value in metrics.items() if name not in _NAMES} | cost_metrics(bill)
