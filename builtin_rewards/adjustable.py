"""Rewards with settings: the plain name is the reward as most people want it, and a call with settings makes another.

Runtime([length_between])              # the usual setting
Runtime([length_between(10, 200)])     # one's own
length_between(completion="...")       # still the function it is, for tests
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from rewardkit import Reward, RewardOptions

_SCORED = ("completion", "completions", "messages", "completion_ids")


class AdjustableReward(Reward[..., Any]):
    """A reward that is also its own factory.

    Called by keyword with what rewards score (``completion``, ``completions``, ``messages``), it scores. Called
    with settings, or with nothing, it gives a new reward of the same name; ``.with_options(name=...)`` renames it,
    where one run has several.

    Attributes:
        make: The factory; its parameters are the settings.
    """

    def __init__(self, make: Callable[..., Reward[..., Any]]) -> None:
        usual = make()
        super().__init__(usual.spec.function, usual.spec.kind, usual.options, usual.spec.hints)
        self.make: Callable[..., Reward[..., Any]] = make

    def __call__(self, *settings: Any, **given: Any) -> Any:
        """Score, or give a reward with other settings; a wrong one is a TypeError, a senseless one a ValueError."""
        if any(name in given for name in _SCORED):
            if settings:
                raise TypeError(f"{self.name}(): what is scored is given by name, settings in a call of their own")
            return super().__call__(**given)
        try:
            inspect.signature(self.make).bind(*settings, **given)
        except TypeError as odd:
            known = ", ".join(inspect.signature(self.make).parameters)
            hint = f"its settings are {known}. To score, name what is scored: {self.name}(completion=...)"
            raise TypeError(f"{self.name}: {odd}; {hint}") from None
        return AdjustedReward(self, settings, given)

    def _having(self, options: RewardOptions) -> Reward[..., Any]:
        return AdjustedReward(self, (), {}, options)


class AdjustedReward(Reward[..., Any]):
    """A built-in reward with settings of one's own. It pickles as its family's name and the settings."""

    def __init__(
        self, family: AdjustableReward, settings: Any, given: dict[str, Any], options: RewardOptions | None = None
    ) -> None:
        try:
            made = family.make(*settings, **given)
        except ValueError as odd:
            raise ValueError(f"{family.name}: {odd}") from odd
        super().__init__(made.spec.function, made.spec.kind, options or made.options, made.spec.hints)
        self._made_of = (family, settings, given)

    def _having(self, options: RewardOptions) -> AdjustedReward:
        return AdjustedReward(*self._made_of, options)

    def __reduce__(self) -> tuple[Any, ...]:
        return AdjustedReward, (*self._made_of, self.options)


def require(holds: object, expected: str, **settings: object) -> None:
    """Raise ValueError for settings that make no sense; it names them, with what is expected."""
    if not holds:
        raise ValueError(", ".join(f"{name}={value!r}" for name, value in settings.items()) + f": expected {expected}")


def adjustable(make: Callable[..., Reward[..., Any]]) -> AdjustableReward:
    """Makes a factory whose settings all have defaults into the reward that it makes with them.

    The function inside must have the factory's own name, so that worker processes find the reward by it. Its
    docstring describes the reward; the factory's describes the settings, and both are shown.
    """
    made = AdjustableReward(make)
    functools.update_wrapper(made, made.spec.function)
    made.__name__ = made.name
    return made
