"""Rewards for trainers that ask for one completion, or one group, at a time: the core of every thin adapter.

It owns where rewards come from, that a process holds them once, that single calls become batches, and what is checked
before the first call. Each trainer's own shapes are in its module, such as :mod:`trainer_adapter.verl`. What a total
that is not known means is rewardkit's table, see :class:`rewardkit.serving.RowFate`.
"""

from __future__ import annotations

import atexit
import hashlib
import math
import os
import pickle
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, Unpack, get_args

from rewardkit import (
    ConfigError,
    DataError,
    MissingColumnError,
    RewardDefinitionError,
    RewardError,
    RewardFailedError,
    RewardFunctionsConfig,
    RewardLoadError,
    Rollout,
)
from rewardkit.serving import JoinedRuntime, PartsScorer, ToldRow, is_address, scorer_of, told_rows
from sandbox import default_workers, local_ranks
from trainer_adapter.credit import TurnCredit, crediting, tell_of_one_number, turn_credit
from trainer_adapter.handover import RuntimeOptions
from trainer_adapter.trainer_versions import TrainerVersions
from trainer_adapter.turns import Text, as_turns, named_parameters, plain_text, reads_turns

VARIABLE = "REWARDKIT_REWARDS"  # The environment variable that names the rewards where nothing else does
GROUP_COLUMN = "rewardkit_group"
"""The column that tells groups apart, where a trainer says which completions are of one."""
GROUP_WAIT_S = 120.0
MOST_ROWS = 2**30
"""Rows that may be inside at once: in effect all of them, for a trainer holds its rows anyway, and cannot ask later."""


class TrainerOptions(RuntimeOptions, total=False):
    """The options that the adapter of a trainer passes on to :class:`TrainerRewards`."""

    weights: Sequence[float] | Mapping[str, float] | None  # Each reward's weight in the total
    group_size: int | None  # Completions of a prompt, where a reward scores groups
    group_wait_s: float  # Seconds until a group is scored as it is


OnUnknown: TypeAlias = Literal["raise", "zero"]
"""What becomes of an unknown total: an error that the trainer sees, or 0.0 with ``unknown`` 1.0 beside it."""


@dataclass(frozen=True, slots=True)
class TrainerAsks:
    """How a trainer asks for rewards, in the words of its own settings.

    Attributes:
        trainer: Its name.
        setting: The setting that leads to the rewards.
        columns: The columns that it always sends.
        more: How a dataset's further columns get to the rewards; ``None`` where they cannot.
        size: The setting that says how many completions a prompt has.
        tested: The versions that its adapter is tested with; another that is installed is warned of.
        workers: Worker processes of a process that scores here, by default; ``None`` for the runtime's own number.
        one_number: What takes each turn's number instead, where the trainer takes one number a completion.
    """

    trainer: str
    setting: str = "the setting that names the reward function"
    columns: frozenset[str] = frozenset()
    more: str | None = "send it with each completion"
    size: str = "the number of completions of a prompt"
    tested: TrainerVersions | None = None
    workers: int | None = None
    one_number: str | None = None


class TrainerRewards:
    """A set of rewards as a trainer's own reward function uses it, from any thread and any event loop.

    Calls of one moment are scored together. A process holds equal rewards once, with one set of workers, also where
    it makes them several times or unpickles them. Nothing starts before the first call.

    >>> from trainer_adapter import TrainerRewards
    >>> rewards = TrainerRewards("builtin_rewards.matching:exact_match")
    >>> row = rewards.score_one("2+2=", "4", {"answer": "4"})
    >>> rewards.number(row), row.flags
    (1.0, {'unknown': 0.0, 'skipped': 0.0, 'failed': 0.0})
    >>> rewards.close()

    Args:
        rewards: What a :class:`rewardkit.Runtime` takes, or a :class:`rewardkit.serving.RemoteRuntime`. A text is
            references separated by commas, a YAML file, or the address of a server that scores. ``None`` takes the
            variable ``REWARDKIT_REWARDS``.
        asks: The trainer, or its name.
        on_unknown: ``"raise"`` or ``"zero"``, see :data:`OnUnknown`.
        weights: Each reward's weight in the total.
        group_size: Completions of a prompt, at least 1, that wait for each other where a reward scores groups.
        group_wait_s: Seconds until a group is scored as it is.
        whole_groups: Whether each call has whole groups, so that none needs to wait.
        options: The other options of :class:`rewardkit.Runtime`. ``workers`` is, where a trainer has several processes
            on a host, by default its share of the cores, of more than 4 the half, 4 to 16.

    Raises:
        RewardLoadError: A file does not import, or a reference names nothing.
        ConfigError: The rewards cannot be used with this trainer: the message names its setting.
        RewardDefinitionError: An option's value is wrong.
    """

    def __init__(
        self,
        rewards: object = None,
        *,
        asks: TrainerAsks | str = "the trainer",
        on_unknown: OnUnknown = "raise",
        weights: Sequence[float] | Mapping[str, float] | None = None,
        group_size: int | None = None,
        group_wait_s: float = GROUP_WAIT_S,
        whole_groups: bool = False,
        **options: Unpack[RuntimeOptions],
    ) -> None:
        self.asks = TrainerAsks(asks) if isinstance(asks, str) else asks
        if self.asks.tested is not None:
            self.asks.tested.warn_of_another(self.asks.trainer, self.asks.setting)
        _check_options(on_unknown, group_size, group_wait_s)
        self._on_unknown = on_unknown
        runtime = self._runtime_of(rewards, weights, options)
        self.names = tuple(runtime.rewards)
        """The rewards' names, in order."""
        leaves = [leaf for reward in runtime.rewards.values() for leaf in reward.leaves]
        tell_of_one_number(runtime.rewards, self.asks.trainer, self.asks.one_number)
        columns = [leaf.spec.wanted_columns for leaf in leaves]
        self.columns: frozenset[str] | None = None
        """The columns that the rewards read; ``None`` for all of them."""
        if None not in columns:
            self.columns = frozenset().union(*filter(None, columns))
        self.named = frozenset(name for leaf in leaves for name in named_parameters(leaf))
        """What the rewards name as parameters, such as ``prompt``, which some trainers do not send."""
        self.required = [name for leaf in leaves for name in leaf.spec.required_columns]
        """The columns without which no reward can be called."""
        self.reads_turns = any(map(reads_turns, leaves))
        """Whether a reward reads turns or tool calls, so that those which stand in a text are read."""
        self._check_columns(self.required)
        self.gives_credit = bool(crediting(runtime.rewards))
        """Whether a reward gives each turn of a completion a number."""
        self.groups = [name for name, reward in runtime.rewards.items() if reward.scores_groups]
        """The names of the rewards that score whole groups."""
        if self.groups and group_size is None and not whole_groups:
            raise ConfigError(
                f"{self.asks.trainer}: reward {self.groups[0]!r} scores the completions of a prompt together, and "
                f"{self.asks.trainer} sends one at a time; give group_size=, equal to {self.asks.size}"
            )
        self.group_size = group_size if self.groups else None  # without rewards of groups no row need wait
        self._waits = None if whole_groups else self.group_size, group_wait_s
        self._runtime: PartsScorer | None = runtime
        self._owner = os.getpid()  # a fork has the object without its threads
        try:
            self._settings: bytes | None = pickle.dumps(runtime)
        except Exception:  # rewards that run in this process alone
            self._settings = None
        identity = repr(id(self)).encode() if self._settings is None else self._settings
        self._key = hashlib.blake2b(identity + repr(self._waits).encode(), digest_size=16).digest()

    def _runtime_of(
        self, rewards: object, weights: Sequence[float] | Mapping[str, float] | None, options: RuntimeOptions
    ) -> PartsScorer:
        """Return what scores, not started; an error names the trainer's setting."""
        if rewards is None:
            rewards = os.environ.get(VARIABLE)
        if not rewards:
            raise ConfigError(
                f"{self.asks.trainer}: no rewards are named; set the environment variable {VARIABLE} of the trainer's "
                f"processes, or name them in the file of {self.asks.setting}"
            )
        defaults: dict[str, Any] = {"max_infrastructure_rate": 1.0, "workers": self.asks.workers}
        if local_ranks() > 1:
            defaults["workers"] = self.asks.workers or default_workers(among_ranks=True)
        if options.get("workers") is None:
            options.pop("workers", None)
        try:
            return scorer_of(_from_text(rewards), weights=weights, defaults=defaults, **options)
        except (RewardLoadError, ConfigError) as error:
            hint = f"the rewards are named in the file of {self.asks.setting}, or by {VARIABLE}"
            raise type(error)(f"{self.asks.trainer}: {error}; {hint}") from error

    def _check_columns(self, needed: Sequence[str]) -> None:
        """Raise ``ConfigError`` for a column that a trainer with columns of its own alone never sends."""
        if self.asks.more is not None:
            return  # what comes is seen with the first completion
        missing = [name for name in needed if name not in self.asks.columns]
        if missing:
            raise ConfigError(
                f"{self.asks.trainer}: a reward needs column {missing[0]!r}, and {self.asks.trainer} sends only "
                f"{' and '.join(sorted(self.asks.columns))}; take the column from there, or put both into one"
            )

    def score_one(
        self, prompt: Text, completion: Text, columns: Mapping[str, Any] | None = None, *, group: object = None
    ) -> ToldRow:
        """Return what is known of one completion; may be called from many threads at once.

        Args:
            prompt: A string, or a list of messages.
            completion: The same.
            columns: The dataset's row.
            group: What the completions of one group have in common beside prompt and columns.

        Raises:
            MissingColumnError: A reward needs a column that is not there.
        """
        return self.score([self.rollout(prompt, completion, columns, group=group)])[0]

    async def ascore_one(
        self, prompt: Text, completion: Text, columns: Mapping[str, Any] | None = None, *, group: object = None
    ) -> ToldRow:
        """Score as :meth:`score_one` does, from code on any event loop."""
        return (await self.ascore([self.rollout(prompt, completion, columns, group=group)]))[0]

    def score(self, rollouts: Sequence[Rollout]) -> list[ToldRow]:
        """Return what is known of each rollout, in their order."""
        try:
            return told_rows(self.joined.score(rollouts))
        except MissingColumnError as error:
            raise self._missing(error) from error

    async def ascore(self, rollouts: Sequence[Rollout]) -> list[ToldRow]:
        """Score as :meth:`score` does, from code on any event loop."""
        try:
            return told_rows(await self.joined.ascore(rollouts))
        except MissingColumnError as error:
            raise self._missing(error) from error

    def rollout(
        self, prompt: Text, completion: Text, columns: Mapping[str, Any] | None = None, *, group: object = None
    ) -> Rollout:
        """Return a rollout with the columns that the rewards read, so that no other tells a group's rows apart.

        Where a reward reads turns or tool calls, those that stand in a text are messages.
        """
        example = dict(columns or {})
        has_all = all(name in example for name in self.required)  # else the error names the columns that there are
        if has_all and self.columns is not None:
            example = {name: value for name, value in example.items() if name in self.columns}
        if self.groups and group is not None:
            example[GROUP_COLUMN] = group
        completion = plain_text(completion)
        return Rollout(plain_text(prompt), as_turns(completion) if self.reads_turns else completion, example)

    def number(self, row: ToldRow) -> float:
        """Return the total, and 0.0 for none.

        Raises:
            RewardFailedError: The total is unknown, and ``on_unknown`` is ``"raise"``.
        """
        if self._on_unknown == "raise":
            self.check_known(row)
        return float(row.number)

    def credit(self, row: ToldRow, rollout: Rollout) -> TurnCredit:
        """Return the total by turns, for a trainer that takes a reward a turn or a token.

        Where there is no total, no turn has a number either.

        Raises:
            RewardFailedError: As :meth:`number`.
        """
        outcomes = {} if row.total is None else row.outcomes
        return turn_credit(self.number(row), outcomes, self.joined.weights, rollout.completion)

    def check_known(self, row: ToldRow) -> None:
        """Raise :class:`rewardkit.RewardFailedError` if a reward failed and nothing stands in for it."""
        if row.flags["unknown"]:
            raise RewardFailedError(f"{self.asks.trainer}: the reward of a completion is unknown: {row.why}")

    def known(self, row: ToldRow) -> dict[str, float]:
        """Return all that is known of a row as numbers, always under the same names: its ``logs``."""
        return row.logs

    @property
    def joined(self) -> JoinedRuntime:
        """What scores in this process; made when it is first asked for, and ended with the process."""
        key = os.getpid(), self._key
        with _LOCK:
            joined = _OPEN.get(key)
            if joined is None:
                size, wait_s = self._waits
                joined = _OPEN[key] = JoinedRuntime(
                    self._own_runtime(), group_size=size, group_wait_s=wait_s, most_rows=MOST_ROWS
                )
                atexit.register(joined.close)  # no trainer tells a reward function that it is done
            return joined

    def _own_runtime(self) -> PartsScorer:
        """Return the runtime, or one like it in a fork, which can use nothing of its parent's."""
        if self._runtime is not None and (self._settings is None or self._owner == os.getpid()):
            return self._runtime
        assert self._settings is not None  # an object without settings does not pickle, so it has its runtime
        copy: PartsScorer = pickle.loads(self._settings)  # noqa: S301 - pickled by this class
        return copy

    def close(self) -> None:
        """End the workers of this process. A second call does nothing, and the next scoring needs new rewards."""
        _close((os.getpid(), self._key))

    def __getstate__(self) -> dict[str, Any]:
        """Pickle as the settings; where they are unpickled, the first call makes a runtime."""
        if self._settings is None:
            raise RewardDefinitionError(f"{self.asks.trainer}: rewards that run in the caller's process cannot travel")
        return {**self.__dict__, "_runtime": None}

    def _missing(self, error: MissingColumnError) -> RewardError:
        return MissingColumnError(f"{self.asks.trainer}: {error}; {self.asks.more or 'it sends no other columns'}")


def _check_options(on_unknown: str, group_size: int | None, group_wait_s: float) -> None:
    """Raise :class:`rewardkit.RewardDefinitionError` for the first option with a wrong value."""
    if on_unknown not in get_args(OnUnknown):
        raise RewardDefinitionError(f"on_unknown={on_unknown!r}: expected 'raise' or 'zero'")
    if group_size is not None and (isinstance(group_size, bool) or group_size < 1):
        raise RewardDefinitionError(f"group_size={group_size!r}: expected a whole number, 1 or more")
    if not 0 < group_wait_s < math.inf:
        raise RewardDefinitionError(f"group_wait_s={group_wait_s!r}: expected a number of seconds above 0")


def check_lists(trainer: str, rows: int, noun: str, **lists: Sequence[object]) -> None:
    """Raise DataError, which names the list, where one is no list or its length is not ``rows``.

    ``noun`` is what a row is called in the message, in the plural: ``"completions"``.
    """
    for name, values in lists.items():
        if isinstance(values, str | bytes) or not isinstance(values, Sequence):
            raise DataError(f"{trainer}: {name}: expected a list, got {type(values).__name__}")
        if len(values) != rows:
            raise DataError(f"{trainer}: {name}: {len(values)} for {rows} {noun}")


def close_all() -> None:
    """End the workers of all such rewards in this process."""
    for key in [key for key in list(_OPEN) if key[0] == os.getpid()]:
        _close(key)


_OPEN: dict[tuple[int, bytes], JoinedRuntime] = {}
_LOCK = threading.Lock()


def _close(key: tuple[int, bytes]) -> None:
    with _LOCK:
        joined = _OPEN.pop(key, None)
    if joined is not None:
        atexit.unregister(joined.close)
        joined.close()


def _from_text(rewards: object) -> object:
    """Return rewards as a runtime takes them: a text is a YAML file, or references separated by commas."""
    if isinstance(rewards, Path):
        rewards = str(rewards)
    if not isinstance(rewards, str) or is_address(rewards):
        return rewards
    if Path(rewards).suffix in (".yaml", ".yml"):
        return RewardFunctionsConfig.from_yaml(rewards)
    return [part.strip() for part in rewards.split(",")]
