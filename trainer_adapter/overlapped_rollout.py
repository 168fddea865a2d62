"""TRL's generation with rewards beside it: a ``rollout_func`` that hands over each completion as it ends.

TRL gives a ``rollout_func`` the prompts alone. The columns are read from what the trainer generates for, so the trainer
is known beforehand, by :meth:`RewardAdapter.attach`; a batch before that is scored when all of it is there.
"""

from __future__ import annotations

import itertools
import logging
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from rewardkit import ConfigError, Rollout, Runtime, Scorer
from sandbox import local_ranks
from trainer_adapter.columns import FrozenBatch
from trainer_adapter.generation import completions_of, watched
from trainer_adapter.ranks import Ranks, owners

_log = logging.getLogger("trainer_adapter")
_NEEDED = ("_generate_and_score_completions", "_tokenize_prompts", "_generate_single_turn", "_log_metric")
BEGUN_EARLY = "overlap/begun_early"
"""Metric: the share of a process's completions, 0 to 1, whose rewards were begun before the last one had ended."""
_OWN_FIELDS = ("prompt", "completion", "completion_ids")  # Fields of a row that are no columns for TRL


class EarlyBatch(Protocol):
    """What takes the rollouts of a batch that is still being generated."""

    def add(self, rollouts: Mapping[int, Rollout], groups: Sequence[Sequence[int]]) -> None: ...


class OverlappedAdapter(Protocol):
    """What the generation needs of its adapter."""

    @property
    def runtime(self) -> Scorer: ...
    @property
    def ranks(self) -> Ranks: ...
    @property
    def group_rewards(self) -> list[str]: ...
    def begin_early(self, step: int | None, epoch: float | None) -> EarlyBatch | None: ...


class OverlappedRollout:
    """TRL's ``rollout_func`` of an adapter, which :func:`rewardkit.overlap` makes.

    Args:
        adapter: The adapter whose functions the trainer has.
        waves: In how many parts a batch is generated.
    """

    def __init__(self, adapter: OverlappedAdapter, waves: int) -> None:
        self._adapter = adapter
        self._waves = waves
        self._attached: Callable[[], Any] = lambda: None  # The trainer whose columns are read
        self._inputs: Sequence[Mapping[str, Any]] | None = None
        self._logged: set[str] = set()

    def attach(self, trainer: Any) -> None:
        """Read the columns of each batch that a trainer generates for, from now on; a second call changes nothing.

        Raises:
            ConfigError: The trainer generates in another way than GRPOTrainer of TRL 1.16.
        """
        if self._attached() is trainer:
            return
        for name in _NEEDED:
            if not hasattr(trainer, name):
                raise ConfigError(
                    f"overlap: {type(trainer).__name__} has no {name}; take TRL's GRPOTrainer, 1.16 or later"
                )
        generate_and_score = trainer._generate_and_score_completions

        def noted(inputs: Sequence[Mapping[str, Any]]) -> Any:
            self._inputs = inputs
            try:
                return generate_and_score(inputs)
            finally:
                self._inputs = None

        trainer._generate_and_score_completions = noted
        self._attached = weakref.ref(trainer)

    def __call__(self, prompts: list[Any], trainer: Any) -> dict[str, Any]:
        """Return what TRL asks of a ``rollout_func``: prompt ids, completion ids and log probabilities."""
        if self._attached() is not trainer:
            self.attach(trainer)
            self._log_once("the first batch is scored when all of it is there; adapter.attach(trainer) spares that")
        generations = trainer.num_generations if trainer.model.training else trainer.num_generations_eval
        early = self._early(trainer, prompts, generations)
        prompt_ids: list[Any] = []
        completion_ids: list[Any] = []
        logprobs: list[Any] = []
        for wave in self._wave_slices(trainer, len(prompts), generations):
            own_prompts, first = prompts[wave], wave.start
            ids, images, fields = trainer._tokenize_prompts(own_prompts)

            def add(ended: Mapping[int, list[int]], first: int = first, ids: Any = ids) -> None:
                if early is not None:
                    early.add({first + index: (ids[index], own) for index, own in ended.items()})

            with watched(trainer, add):
                own_ids, own_logprobs = trainer._generate_single_turn(ids, images, fields, generations)
            if early is not None and wave.stop == len(prompts):
                trainer._log_metric(BEGUN_EARLY, early.ended / len(prompts))
            add(dict(enumerate(own_ids)))
            prompt_ids += ids
            completion_ids += own_ids
            logprobs += own_logprobs or ()
        return {"prompt_ids": prompt_ids, "completion_ids": completion_ids, "logprobs": logprobs or None}

    def _wave_slices(self, trainer: Any, rows: int, generations: int) -> list[slice]:
        """Return the parts of a batch, of whole groups each; one part where groups are split, or rows have tools."""
        groups, rest = divmod(rows, generations)
        waves = min(self._waves, groups)
        if self._waves > 1 and (rest or getattr(trainer, "environment_factories", None) is not None):
            self._log_once("a batch whose groups are split between processes, or with environments, is generated whole")
            waves = 1
        if waves <= 1:
            return [slice(0, rows)]
        starts = [groups * wave // waves * generations for wave in range(waves + 1)]
        return [slice(start, stop) for start, stop in itertools.pairwise(starts)]

    def _early(self, trainer: Any, prompts: Sequence[Any], generations: int) -> _EarlyRows | None:
        """Return what takes completions as they end; ``None`` where none can be scored before the others."""
        inputs, runtime, ranks = self._inputs, self._adapter.runtime.changeable, self._adapter.ranks
        if inputs is None:
            return None
        if runtime is None:
            self._log_once("rewards of a server are asked when all completions are there")
            return None
        if getattr(trainer, "environments", None):
            self._log_once("rewards of environments are asked when all completions are there")
            return None
        if ranks.count > local_ranks() and _has_one_host(runtime):
            self._log_once("a reward needs one host for all completions, and is asked when all of them are there")
            return None
        rows = [*range(len(prompts))]
        if ranks.count > 1 and self._adapter.group_rewards:
            own = owners([len(prompts)] * ranks.count, generations)[ranks.rank]
            rows = [row for row in rows if own[row] == ranks.rank]
        batch = self._adapter.begin_early(trainer.state.global_step, trainer.state.epoch)
        return None if batch is None else _EarlyRows(trainer, batch, prompts, inputs, rows, generations, ranks.rank)

    def _log_once(self, message: str) -> None:
        if message not in self._logged:
            self._logged.add(message)
            _log.info("overlap: %s", message)


def _has_one_host(runtime: Runtime) -> bool:
    return any(leaf.on_one_host for reward in runtime.rewards.values() for leaf in reward.leaves)


class _EarlyRows:
    """The completions of one batch, of which each is handed over once."""

    def __init__(
        self,
        trainer: Any,
        batch: EarlyBatch,
        prompts: Sequence[Any],
        inputs: Sequence[Mapping[str, Any]],
        rows: Sequence[int],
        generations: int,
        rank: int,
    ) -> None:
        self._trainer = trainer
        self._batch = batch
        self._prompts = prompts
        self._inputs = inputs
        self._places = {row: index for index, row in enumerate(rows)}  # In the batch that this process scores
        first = rank * len(prompts)  # The row of all processes' batch
        by_group: dict[int, list[int]] = {}
        for row in range(len(prompts)):
            by_group.setdefault((first + row) // generations, []).append(row)
        self._groups = {row: group for group in by_group.values() if len(group) == generations for row in group}
        self._ended: set[int] = set()

    @property
    def ended(self) -> int:
        """How many completions have been handed over."""
        return len(self._ended)

    def add(self, ended: Mapping[int, tuple[Any, list[int]]]) -> None:
        """Hand over completions that have ended, by their rows, each with the token ids of prompt and completion."""
        rows = [row for row in ended if row in self._places and row not in self._ended]
        if not rows:
            return
        self._ended.update(rows)
        prompts, ids = [self._prompts[row] for row in rows], [ended[row][1] for row in rows]
        completions = completions_of(self._trainer, prompts, [ended[row][0] for row in rows], ids)
        columns = {
            name: [self._inputs[row][name] for row in rows] for name in self._inputs[0] if name not in _OWN_FIELDS
        }
        rollouts = FrozenBatch(prompts, completions, ids, columns).rollouts()
        final = {
            self._places[row]: rollout for row, rollout in zip(rows, rollouts, strict=True) if not _calls_tools(rollout)
        }
        groups = {
            id(group): group for row in rows if (group := self._groups.get(row)) and self._ended.issuperset(group)
        }
        self._batch.add(final, [[self._places[row] for row in group] for group in groups.values()])


def _calls_tools(rollout: Rollout) -> bool:
    """Return whether a completion goes on with the answers of tools."""
    messages = rollout.completion
    return not isinstance(messages, str) and any(message.get("tool_calls") for message in messages)
