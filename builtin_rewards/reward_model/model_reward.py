"""What the rewards of loaded and of served models share: their function is their settings, which they pickle as.

How a text is scored is the function's: :mod:`~builtin_rewards.reward_model.learned` has that of loaded models,
:mod:`~builtin_rewards.reward_model.remote_model` that of served ones.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from rewardkit import ConfigError, Kind, Reward, RewardOptions
from rewardkit.extending import RewardFunction, Versioned, finished


@dataclass(frozen=True, eq=False)
class ModelFunction(RewardFunction, Versioned):
    """The function of a reward model, which has the reward's name: an object with its settings, which pickles."""

    name: str

    @property
    def hints(self) -> dict[str, Any]:
        return {"prompt": object, "completion": object}

    @property
    def __signature__(self) -> inspect.Signature:
        kind, needed = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.empty
        defaults = {name: "" if name == "prompt" else needed for name in self.hints}
        return inspect.Signature([inspect.Parameter(name, kind, default=value) for name, value in defaults.items()])

    async def __call__(self, **columns: Any) -> Any:
        raise NotImplementedError


F = TypeVar("F", bound=ModelFunction)


class ModelReward(Reward[..., Any], Generic[F]):
    """A reward of single completions whose function is its settings: it is renamed, and pickles, as these."""

    def __init__(self, function: F, options: RewardOptions) -> None:
        self._scoring = function
        super().__init__(function, Kind.SINGLE, options)

    def __call__(self, *arguments: object, **columns: object) -> Any:
        """Score one completion, and return the score, or an awaitable of it inside an event loop."""
        return finished(super().__call__(*arguments, **columns))

    def _having(self, options: RewardOptions) -> ModelReward[F]:
        return rebuild(type(self), replace(self._scoring, name=options.name), options)

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuild, (type(self), self._scoring, self.options)


R = TypeVar("R", bound=ModelReward[Any])


def rebuild(kind: type[R], function: ModelFunction, options: RewardOptions) -> R:
    """Return a reward of a kind by its function, without the settings that its class takes."""
    reward = kind.__new__(kind)
    ModelReward.__init__(reward, function, options)
    return reward


def check_choice(option: str, value: object, choices: Sequence[object]) -> None:
    """Raise ConfigError for an option with a value that is not among the choices."""
    if value not in choices:
        raise ConfigError(f"{option}={value!r}: expected one of {', '.join(map(repr, choices))}")
