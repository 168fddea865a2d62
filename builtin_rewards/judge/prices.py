"""What tokens cost: a table of prices that the user sets.

It ships no prices, for they change. A model with no price has no cost; its tokens are still counted.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass

from builtin_rewards.judge.endpoint.values import Usage
from builtin_rewards.judge.errors import JudgeSetupError, is_number
from rewardkit.shown import one_line

_log = logging.getLogger("rewardkit")

_PER = 1_000_000
_DATE = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{8})\Z")


@dataclass(frozen=True, slots=True)
class Price:
    """What a model's tokens cost, in USD per million.

    Attributes:
        prompt: Of what it reads; at least 0.
        completion: Of what it writes; at least 0.
        cached: Of what it reads and the server had cached; at most ``prompt``. ``None``: as ``prompt``.
    """

    prompt: float
    completion: float
    cached: float | None = None

    def __post_init__(self) -> None:
        for name in ("prompt", "completion", "cached"):
            value = getattr(self, name)
            if not (name == "cached" and value is None) and not (is_number(value) and value >= 0):
                raise JudgeSetupError(f"Price({name}={value!r}): expected USD per million tokens, a finite number >= 0")
        if self.cached is not None and self.cached > self.prompt:
            raise JudgeSetupError(
                f"Price(cached={self.cached!r}): cached tokens cost no more than others, here {self.prompt!r}"
            )

    def cost(self, usage: Usage) -> float:
        """What that usage costs, in USD."""
        cached = min(usage.cached_tokens, usage.prompt_tokens)
        cheap = self.prompt if self.cached is None else self.cached
        fresh = usage.prompt_tokens - cached
        return (fresh * self.prompt + cached * cheap + usage.completion_tokens * self.completion) / _PER


def checked_prices(prices: Mapping[str, Price], model: str) -> dict[str, Price]:
    """Gives prices by model, as they were given. Where there are some and none is the model's, a warning says so.

    Raises:
        JudgeSetupError: It is no table of prices.
    """
    if not isinstance(prices, Mapping):
        raise JudgeSetupError(f'prices={prices!r}: expected {{"model": Price(prompt, completion)}}')
    for name, price in prices.items():
        if not isinstance(name, str) or not isinstance(price, Price):
            raise JudgeSetupError(
                f"prices={{{name!r}: {price!r}}}: expected a model's name with Price(prompt, completion)"
            )
    if prices and price_of(prices, model) is None:
        _log.warning(
            'no price is known for model "%s": its tokens are counted, its cost is not; '
            'set prices={"%s": Price(prompt, completion)}',
            one_line(model),
            one_line(model),
        )
    return dict(prices)


def price_of(prices: Mapping[str, Price], model: str) -> Price | None:
    """Gives a model's price; ``None`` if there is none.

    A model is looked up by its exact name, then without a date at its end: ``"gpt-x-2026-03-01"`` and
    ``"gpt-x-20260301"`` cost what ``"gpt-x"`` does, ``"gpt-x-mini"`` does not.
    """
    return prices.get(model) or prices.get(_DATE.sub("", model))
