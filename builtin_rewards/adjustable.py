"""Rewards with settings: the plain name is the reward with its defaults, and a call with settings makes another.

Runtime([length_between])              # the defaults
Runtime([length_between(10, 200)])     # other settings
length_between(completion="...")       # scores, as a plain function does
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from rewardkit import Reward, RewardOptions
from rewardkit.extending import shorten

_INPUTS = ("completion", "completions", "messages", "completion_ids")  # any of these by keyword makes a call score


class AdjustableReward(Reward[..., Any]):
    """A reward that is also its own factory, ``make``, whose parameters are the settings.

    A call with a keyword such as ``completion`` scores; one without a name does where settings must be named, too. A
    call with settings, or without arguments, returns a new
    reward of the same name; use ``.with_options(name=...)`` where one run has several.
    """

    def __init__(self, make: Callable[..., Reward[..., Any]]) -> None:
        default = make()
        super().__init__(default.spec.function, default.spec.kind, default.options, default.spec.hints)
        self.make: Callable[..., Reward[..., Any]] = make
        kinds = [parameter.kind for parameter in inspect.signature(make).parameters.values()]
        self._has_named_settings = all(kind is inspect.Parameter.KEYWORD_ONLY for kind in kinds)

    def __call__(self, *settings: Any, **arguments: Any) -> Any:
        """Score, or return a reward with other settings. Raises TypeError and ValueError for a wrong setting."""
        if any(name in arguments for name in _INPUTS):
            if settings:
                raise TypeError(f"{self.name}(): pass settings in one call, and what is scored, by name, in another")
            return super().__call__(**arguments)
        if settings and self._has_named_settings:
            return super().__call__(*settings, **arguments)
        try:
            inspect.signature(self.make).bind(*settings, **arguments)
        except TypeError as error:
            names = ", ".join(inspect.signature(self.make).parameters)
            hint = f"its settings are {names}. To score, name what is scored: {self.name}(completion=...)"
            raise TypeError(f"{self.name}: {error}; {hint}") from None
        return AdjustedReward(self, settings, arguments)

    def _having(self, options: RewardOptions) -> Reward[..., Any]:
        return AdjustedReward(self, (), {}, options)


class AdjustedReward(Reward[..., Any]):
    """A built-in reward with the caller's settings, which pickles as the family's name and the settings."""

    def __init__(
        self, family: AdjustableReward, settings: Any, arguments: dict[str, Any], options: RewardOptions | None = None
    ) -> None:
        try:
            reward = family.make(*settings, **arguments)
        except ValueError as error:
            raise ValueError(f"{family.name}: {error}") from error
        super().__init__(reward.spec.function, reward.spec.kind, options or reward.options, reward.spec.hints)
        self._made_of = (family, settings, arguments)
        self.changed_settings = dict(inspect.signature(family.make).bind(*settings, **arguments).arguments)

    def _having(self, options: RewardOptions) -> AdjustedReward:
        return AdjustedReward(*self._made_of, options)

    def __reduce__(self) -> tuple[Any, ...]:
        return AdjustedReward, (*self._made_of, self.options)


def require(holds: object, expected: str, **settings: object) -> None:
    """Raise a ValueError that names the settings and what is expected, unless the condition holds."""
    if not holds:
        raise ValueError(
            ", ".join(f"{name}={shorten(value)}" for name, value in settings.items()) + f": expected {expected}"
        )


def adjustable(make: Callable[..., Reward[..., Any]]) -> AdjustableReward:
    """Turn a factory whose settings all have defaults into the reward that it makes with these.

    Worker processes find the reward by the factory's name, which the function inside must have.
    """
    family = AdjustableReward(make)
    functools.update_wrapper(family, family.spec.function)
    family.__name__ = family.name
    return family
