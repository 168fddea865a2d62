"""What tokens cost: a table of prices that the user sets. It ships none, because they change."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass

from builtin_rewards.judge.errors import JudgeSetupError, is_number
from builtin_rewards.judge.messages import Usage
from rewardkit.extending import shortened

_log = logging.getLogger("rewardkit")

_TABLE = '{"%s": Price(prompt, completion)}'
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
        cached = self.prompt if self.cached is None else self.cached
        for name, value in (("prompt", self.prompt), ("completion", self.completion), ("cached", cached)):
            if not is_number(value) or value < 0:
                raise JudgeSetupError(f"Price({name}={value!r}): expected USD per million tokens, a finite number >= 0")
        if cached > self.prompt:
            raise JudgeSetupError(f"Price(cached={cached!r}): expected at most the price of others, {self.prompt!r}")

    def cost(self, usage: Usage) -> float:
        """Return what a usage costs, in USD."""
        cached = min(usage.cached_tokens, usage.prompt_tokens)
        cheap = self.prompt if self.cached is None else self.cached
        fresh = usage.prompt_tokens - cached
        return (fresh * self.prompt + cached * cheap + usage.completion_tokens * self.completion) / 1_000_000


def check_prices(prices: Mapping[str, Price], model: str) -> dict[str, Price]:
    """Return prices by model, or raise JudgeSetupError; warn if there are prices and none is the model's."""
    is_table = isinstance(prices, Mapping)
    if not is_table or not all(isinstance(n, str) and isinstance(price, Price) for n, price in prices.items()):
        raise JudgeSetupError(f"prices={prices!r}: expected {_TABLE % 'model'}")
    if prices and price_of(prices, model) is None:
        message = 'no price is known for model "%s": its tokens are counted, its cost is not; set prices=%s'
        _log.warning(message, shortened(model), _TABLE % shortened(model))
    return dict(prices)


def price_of(prices: Mapping[str, Price], model: str) -> Price | None:
    """Return a model's price by its name, else by that without its date (``-2026-03-01``, ``-20260301``)."""
    return prices.get(model) or prices.get(_DATE.sub("", model))
