"""Rewards of an adapter that change while TRL trains: other scoring underneath, and the trainer's lists where they do.

A reward that only gets another version needs nothing of the trainer: TRL keeps the function that it was given, and what
the function asks is another runtime. Weights, rewards that come and rewards that go stand in lists of the trainer's,
which are changed together, before anything of the step is scored; so the trainer has to be known,
see :meth:`RewardAdapter.attach`.
"""

from __future__ import annotations

import logging
import math
import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeGuard

from rewardkit import ConfigError, RecordError, RewardDefinitionError, Runtime, Scorer
from rewardkit.changing import Action, RecordPlace, RewardState, Updates, group_rewards_of
from trainer_adapter.splitting import TrlTrainer

_log = logging.getLogger("trainer_adapter")
_LISTS = ("reward_funcs", "reward_func_names", "reward_processing_classes", "reward_weights")
_SCORING = (Action.REPLACE, Action.SHADOW)


class Adapted(Protocol):
    """What changes need of an adapter."""

    @property
    def runtime(self) -> Scorer: ...
    @property
    def names(self) -> list[str]: ...
    @property
    def reward_funcs(self) -> list[Any]: ...
    def take(self, runtime: Runtime, shadows: frozenset[str]) -> None: ...
    def check_weights(self, weights: Mapping[str, float]) -> None: ...


class AdapterUpdates:
    """The changes that an adapter's rewards take while a trainer uses them."""

    def __init__(self, adapter: Adapted, record_place: RecordPlace) -> None:
        self._adapter = adapter
        self._record_place = record_place
        self._updates: Updates | None = None
        self._trainer: Callable[[], TrlTrainer | None] = lambda: None
        self._check_groups: Callable[[Sequence[str]], None] | None = None
        self.state = RewardState(dict(adapter.runtime.rewards), dict(adapter.runtime.weights))
        """The rewards that score now."""
        self._initial_state = self.state  # the one that the trainer was made with

    @property
    def runtime(self) -> Runtime:
        """What scores now."""
        runtime = self._adapter.runtime.changeable
        assert runtime is not None  # no other is made into updates
        return runtime

    def attach(self, trainer: object) -> None:
        """Remember a trainer with lists of rewards, which may be changed from now on."""
        if _has_lists(trainer) and self._trainer() is not trainer:
            self._trainer = weakref.ref(trainer)
            self._initial_state = self.state

    def put_back(self, args: object) -> None:
        """Return to the trainer's own rewards, from which a further training in this process takes its changes.

        An unknown trainer, whose lists would have to change, has the rewards as they are now for its own.
        """
        if self.state is self._initial_state:
            return
        trainer = self._trainer()
        is_known = trainer is not None and trainer.args is args
        if not is_known and _weighed(self.state) != _weighed(self._initial_state):
            self._initial_state = self.state
            return
        self.end()
        old = self.runtime
        self.put(old.with_rewards(self._initial_state.rewards, self._initial_state.weights), self._initial_state)
        old.close()  # after the swap, so that no call meets closed workers

    def begin_training(self, args: object, step: int, check_groups: Callable[[Sequence[str]], None]) -> None:
        """Take part in a training that begins, or goes on after so many steps.

        ``check_groups`` raises where rewards of these names score whole groups and a process has parts of some.
        """
        self._check_groups = check_groups
        ranks = int(getattr(args, "world_size", 1) or 1)
        rank = int(getattr(args, "process_index", 0) or 0)
        self._join(rank, ranks, step, list(Action) if self._trainer() is not None else _SCORING)
        self.begin(step)

    def begin(self, step: int | None, *, trains: bool = True) -> None:
        """Begin a step, before anything of it is scored: the trainer's callback does, or else a step's first batch.

        An evaluation before a training, which may go on later, does not begin it (``trains=False``).
        """
        if step is None:  # a trainer that does not say its step takes no changes
            return
        if self._updates is None and self._check_groups is None and trains:
            rank, ranks = (int(os.environ.get(name, default)) for name, default in (("RANK", "0"), ("WORLD_SIZE", "1")))
            self._join(rank, ranks, step, _SCORING)
        if self._updates is not None:
            self._updates.begin(step)

    def end(self) -> None:
        """Take no more changes. A second call does nothing."""
        updates, self._updates = self._updates, None
        if updates is not None:
            updates.leave()

    def check(self, state: RewardState) -> None:
        """Refuse rewards with which the training would be wrong: weights, names and groups."""
        self._adapter.check_weights(state.weights)
        trainer = self._trainer()
        theirs = [] if trainer is None else trainer.reward_func_names
        for name in state.rewards:
            if name in theirs and name not in self.state.rewards:
                raise RewardDefinitionError(f"the trainer has another reward function {name!r}; give another name")
        if self._check_groups is not None:
            self._check_groups(group_rewards_of(state.rewards))

    def put(self, runtime: Runtime, state: RewardState) -> None:
        """Score with other rewards from now on, and bring the trainer's lists in line."""
        before, self.state = self.state, state
        runtime.weights, runtime.spared = dict(state.weights), state.shadows
        self._adapter.take(runtime, state.shadows)
        trainer = self._trainer()
        if trainer is not None:
            align(trainer, before, state, dict(zip(self._adapter.names, self._adapter.reward_funcs, strict=True)))

    def _join(self, rank: int, ranks: int, step: int, actions: Sequence[Action]) -> None:
        """Take part in changes from now on; where the record does not allow it, log that and change nothing."""
        self.end()
        updates = Updates(self._record_place, self, rank=rank, ranks=ranks)
        try:
            updates.join(step=step, actions=actions)
        except RecordError as reason:
            # A vote of this process is then missing, so no process changes anything.
            _log.error("%s; this training takes no changes of its rewards", reason)
        self._updates = updates  # one that has not joined does nothing


def _has_lists(trainer: object) -> TypeGuard[TrlTrainer]:
    return all(hasattr(trainer, name) for name in _LISTS)


def _weighed(state: RewardState) -> list[tuple[str, float]]:
    """Return the rewards that a trainer sees, with their weights."""
    return [(name, weight) for name, weight in state.weights.items() if name not in state.shadows]


def align(trainer: TrlTrainer, before: RewardState, after: RewardState, functions: Mapping[str, Any]) -> None:
    """Change a trainer's lists of reward functions, all together; it may have functions from elsewhere as well.

    ``functions`` has the function of each reward that the trainer is to call afterwards.
    """
    old, new = set(before.rewards) - before.shadows, set(after.rewards) - after.shadows
    names = list(trainer.reward_func_names)
    missing = sorted(old - set(names))
    if missing:
        raise ConfigError(f"the trainer has no reward function {missing[0]!r}; it has {', '.join(names)}")
    indices = [index for index, name in enumerate(names) if name not in old or name in new]
    new_names = [name for name in after.rewards if name in new - old]
    new_functions = [functions[name] for name in new_names]
    weights = [
        after.weights[names[index]] if names[index] in new else float(trainer.reward_weights[index])
        for index in indices
    ]
    weights += [after.weights[name] for name in new_names]
    classes = trainer.reward_processing_classes
    trainer.reward_func_names = [names[index] for index in indices] + new_names
    trainer.reward_funcs = [trainer.reward_funcs[index] for index in indices] + new_functions
    trainer.reward_processing_classes = [classes[index] for index in indices] + [None] * len(new_names)
    trainer.reward_weights = trainer.reward_weights.new_tensor(weights)
    logs = getattr(trainer, "_logs", {})
    logged = logs.get("rewards", {})
    for name in old - new:
        logged.pop(name, None)  # its column would stay short
    for name in new - old:  # TRL makes one table of the prompts and the scores that it logs
        if count := len(logs.get("prompt", ())):
            logged[name].extend([math.nan] * count)
