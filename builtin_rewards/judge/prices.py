"""What tokens cost: a table of prices that the user sets.

It ships no prices, for they change. A model with no price has no cost; its tokens are still counted.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from builtin_rewards.judge.endpoint.values import Usage
from builtin_rewards.judge.errors import JudgeSetupError
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
            if name == "cached" and value is None:
                continue
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not number or not math.isfinite(value) or value < 0:
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


@dataclass(frozen=True, slots=True)
class PriceTable:
    """Prices by model.

    A model is looked up by its exact name, then without a date at its end: ``"gpt-x-2026-03-01"`` and
    ``"gpt-x-20260301"`` cost what ``"gpt-x"`` does, ``"gpt-x-mini"`` does not.

    Attributes:
        prices: The price of each model; empty by default.
    """

    prices: Mapping[str, Price] = field(default_factory=dict)
    _said: set[str] = field(default_factory=set, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.prices, Mapping):
            raise JudgeSetupError(f'prices={self.prices!r}: expected {{"model": Price(prompt, completion)}}')
        for model, price in self.prices.items():
            if not isinstance(model, str) or not isinstance(price, Price):
                raise JudgeSetupError(
                    f"prices={{{model!r}: {price!r}}}: expected a model's name with Price(prompt, completion)"
                )
        object.__setattr__(self, "prices", dict(self.prices))

    def find(self, model: str) -> Price | None:
        """The model's price; ``None`` if there is none, which is logged once per model."""
        price = self.prices.get(model) or self.prices.get(_DATE.sub("", model))
        if price is None and model not in self._said:
            self._said.add(model)
            _log.warning(
                'no price is known for model "%s": its tokens are counted, its cost is not; '
                'set prices={"%s": Price(prompt, completion)}',
                one_line(model),
                one_line(model),
            )
        return price

    def cost(self, usage: Usage, model: str) -> float | None:
        """What that usage of the model costs, in USD; ``None`` if the model has no price."""
        price = self.find(model)
        return None if price is None else price.cost(usage)
