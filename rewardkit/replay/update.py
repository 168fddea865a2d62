"""The side of a change that asks: it is checked and tried on the run's last completions, asked for, and waited for."""

from __future__ import annotations

import contextlib
import math
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from rewardkit.declare.compose import Composable
from rewardkit.declare.decorator import reward
from rewardkit.errors import RecordError, RewardDefinitionError, UpdateRefusedError
from rewardkit.loading.carried import carry, load
from rewardkit.loading.config import RewardFunctionsRuntimeConfig
from rewardkit.loading.registry import RewardLike, RewardSet, as_named
from rewardkit.record.changes import Action, ChangeState, RewardChange, Trainer, ask, change_of, changes_of, trainers_of
from rewardkit.record.reader import RunReader
from rewardkit.record.sqlite_file import explain
from rewardkit.record.store import RecordConnection, transaction
from rewardkit.record.values import Version
from rewardkit.replay.difference import Difference
from rewardkit.replay.reward_state import check_change, is_taken, shadow_of, untaken_reason
from rewardkit.replay.run_difference import Subject, of_run
from rewardkit.replay.single_scorer import obstacle
from rewardkit.replay.stored import Stored, choose
from rewardkit.runtime.runtime import Runtime

TRIED = 64  # Completions on which a new reward is tried, the last of the run
WAIT_S = 60.0  # Seconds for which an answer is waited for
_POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class RunningReward:
    """A reward as a training has it now.

    Attributes:
        version: The recorded version; ``None`` until it has scored.
    """

    name: str  # Its name
    digits: str  # The fingerprint of its version
    weight: float  # Its weight
    version: Version | None = field(default=None, repr=False)


@dataclass(slots=True)
class RunningRewards:
    """The rewards of a training, to be changed and handed back.

    Attributes:
        functions: The rewards by name. Another function, reward, reference or text under a name changes the reward, a
            new name adds one, and a name that is taken out removes one.
        runtime: What the workers have; it cannot be changed while they run.
    """

    functions: dict[str, RunningReward | RewardLike | Mapping[str, Any]]
    runtime: RewardFunctionsRuntimeConfig = field(default_factory=RewardFunctionsRuntimeConfig)


@dataclass(slots=True)
class RunConfig:
    """What of a training can be changed while it runs: from ``run.get_config()``, for ``run.update_config(config)``."""

    reward_fns: RunningRewards  # The rewards
    reward_weights: dict[str, float]  # Their weights by name


@dataclass(frozen=True, slots=True)
class Wish:
    """One change of a reward."""

    name: str  # The reward
    action: Action  # What to do
    like: RewardLike | Mapping[str, Any] | None = None  # The reward that comes in, in any form that a runtime takes
    weight: float | None = None  # Its weight; `None` keeps the one that there is


@dataclass(frozen=True, slots=True)
class Update:
    """A change that a training was asked for, and its answer.

    Attributes:
        difference: Its difference on the run's last completions; ``None`` where it was not tried.
    """

    name: str  # The reward
    action: Action  # What was asked
    state: ChangeState  # `"accepted"`, or `"asked"` where no answer came in time
    step: int | None  # The step from which on it holds, once it is accepted
    digits: str | None  # The new version; `None` where the change makes no version
    change: int  # Its number in the record
    difference: Difference | None = field(default=None, repr=False)
    notes: Sequence[str] = ()  # What else is to be known, each a sentence


@dataclass(frozen=True, slots=True)
class _Checked:
    """A change that was checked here."""

    wish: Wish
    body: Mapping[str, Any]
    difference: Difference | None
    notes: Sequence[str]


def trainers_in(run: RunReader) -> list[Trainer]:
    """Return the processes of a run's last training that took changes, by rank.

    Raises RecordError where the record cannot be read, or has no place for them.
    """
    with run._errors(), run._decoding():
        return trainers_of(run._connection)


def running(run: RunReader) -> Trainer:
    """Return the process that trains, of rank 0; UpdateRefusedError where it has ended, or takes no changes."""
    trainers = trainers_in(run)
    if not trainers:
        ended = "" if run.running else "the run has ended, and "
        raise UpdateRefusedError(
            f"{run.path}: {ended}no training has taken changes in it; `rewardkit train`, RewardAdapter(record=...) "
            "and LiveRuntime take them while they record"
        )
    lacking = sorted(set(range(trainers[0].ranks)) - {trainer.rank for trainer in trainers})
    if lacking:
        raise UpdateRefusedError(
            f"{run.path}: rank {lacking[0]} of the training's {trainers[0].ranks} processes takes no part; all of "
            "them record into the run, or it cannot change"
        )
    for trainer in trainers:
        if trainer.gone is not None:
            rank = f" (rank {trainer.rank})" if trainer.ranks > 1 else ""
            raise UpdateRefusedError(f"{run.path}: the training{rank} {trainer.gone}; nothing is changed")
    return trainers[0]


def config_of(run: RunReader) -> RunConfig:
    """Return a training's rewards with the changes asked for and to come; UpdateRefusedError if it takes no changes."""
    trainer = running(run)
    versions = {(version.reward, version.digits): version for version in run.versions}
    standing, digits = _standing(run, trainer), _digits(run, trainer)
    rewards = {
        name: RunningReward(name, digits[name], weight, versions.get((name, digits[name])))
        for name, (weight, _) in standing.items()
    }
    weights = {name: weight for name, (weight, shadow) in standing.items() if not shadow}
    return RunConfig(RunningRewards(dict(rewards)), weights)


def wishes(config: RunConfig, now: RunConfig, *, shadow: bool = False) -> list[Wish]:
    """Return the changes that lead from a training's rewards to those of a configuration.

    With ``shadow``, changed rewards are scored beside the old ones first. Raises RewardDefinitionError where the
    configuration says something that cannot be changed.
    """
    before, after, weights = now.reward_fns.functions, config.reward_fns.functions, config.reward_weights
    if config.reward_fns.runtime != now.reward_fns.runtime:
        raise RewardDefinitionError("reward_fns.runtime: packages and variables of workers that run cannot be changed")
    unknown = [name for name in weights if name not in after and name not in before]
    if unknown:
        raise RewardDefinitionError(f"reward_weights name {unknown[0]!r}, but the rewards are {', '.join(after)}")
    changes = []
    for name, like in after.items():
        weight = weights.get(name)
        same_weight = weight is None or weight == now.reward_weights.get(name)
        if isinstance(like, RunningReward):
            if like.name != name:
                raise RewardDefinitionError(f"functions[{name!r}] is the running {like.name!r}; give a function")
            if not same_weight:
                changes.append(Wish(name, Action.WEIGHT, None, weight))
        elif name not in before:
            changes.append(Wish(name, Action.ADD, like, weight))
        else:
            action = Action.SHADOW if shadow else Action.REPLACE
            changes.append(Wish(name, action, like, None if same_weight else weight))
    return [*changes, *(Wish(name, Action.REMOVE) for name in before if name not in after)]


def update(
    run: RunReader, wishes: Sequence[Wish], *, wait_s: float = WAIT_S, tried: int = TRIED, workers: int | None = None
) -> list[Update]:
    """Check changes, ask the training for them, and wait for its answer; where one check fails, nothing is asked.

    The changes take effect one after another; a new reward is tried on at most ``tried`` completions, by ``workers``
    processes. Raises UpdateRefusedError, which says why, where the training has ended or refused a change, and
    RewardError where a change does not pass its check.
    """
    if not wishes:
        raise RewardDefinitionError("nothing is changed: the configuration is the training's own")
    trainer = running(run)
    standing = _standing(run, trainer)
    checked = []
    for wish in wishes:
        _check_fit(wish, trainer, standing)
        checked.append(_check(run, wish, tried, workers))
        _apply_change(standing, wish.action, wish.name, wish.weight)
    running(run)  # a trial may take long
    with contextlib.closing(run.path.connect_to_write()) as connection:
        try:
            with transaction(connection):  # all are asked for, or none
                numbers = [ask(connection, change.wish.name, change.wish.action, change.body) for change in checked]
        except sqlite3.Error as reason:
            raise RecordError(f"{run.path}: {explain(reason)}; nothing is asked") from reason
        with run.path.errors():
            answers = _answers(connection, numbers, wait_s)
    if refused := next((answer for answer in answers if answer.state is ChangeState.REFUSED), None):
        raise UpdateRefusedError(
            f"{run.path}: the training refused to {refused.action} reward {refused.reward!r}, and goes on as before: "
            f"{refused.words}"
        )
    return [
        Update(
            change.wish.name, change.wish.action, answer.state, answer.step, change.body.get("digits"), answer.id,
            change.difference, change.notes,
        )
        for change, answer in zip(checked, answers, strict=True)
    ]  # fmt: skip


class _Standing(NamedTuple):
    weight: float
    shadow: bool


def _standing(run: RunReader, trainer: Trainer) -> dict[str, _Standing]:
    """Return each reward's weight and whether it is a shadow, as after all requested changes."""
    standing = {name: _Standing(reward.weight, reward.shadow) for name, reward in trainer.rewards.items()}
    for change in _pending_changes(run, trainer):
        _apply_change(standing, change.action, change.reward, change.body.get("weight"))
    return standing


def _digits(run: RunReader, trainer: Trainer) -> dict[str, str]:
    """Return each reward's version, as after all requested changes."""
    digits = {name: reward.digits for name, reward in trainer.rewards.items()}
    for change in _pending_changes(run, trainer):
        if "digits" in change.body:
            name = shadow_of(change.reward) if change.action is Action.SHADOW else change.reward
            digits[name] = change.body["digits"]
    return digits


def _pending_changes(run: RunReader, trainer: Trainer) -> list[RewardChange]:
    """Return the changes that are asked for and not yet applied, and those of the step that begins, oldest first."""
    return [
        change
        for change in changes_of(run._connection)
        if change.state in (ChangeState.ASKED, ChangeState.ACCEPTED)
        and (change.step is None or change.step >= trainer.step)
    ]


def _apply_change(standing: dict[str, _Standing], action: Action, name: str, weight: float | None) -> None:
    """Change ``standing``, the weight and shadow of each reward, as a change will do."""
    shadow = standing.get(shadow_of(name))
    if action is Action.SHADOW:
        standing[shadow_of(name)] = _Standing(0.0, shadow=True)
        return
    if action in (Action.REPLACE, Action.REMOVE) and shadow is not None and shadow.shadow:
        del standing[shadow_of(name)]
    if action is Action.REMOVE:
        standing.pop(name, None)
    else:
        weight_before = standing[name].weight if name in standing else 1.0
        standing[name] = _Standing(weight_before if weight is None else weight, shadow=False)


def _check_fit(wish: Wish, trainer: Trainer, standing: Mapping[str, _Standing]) -> None:
    """Raise RewardDefinitionError where a change does not fit the rewards, UpdateRefusedError where it is not taken."""
    shadows = frozenset(name for name, reward in standing.items() if reward.shadow)
    check_change(wish.action, wish.name, standing, shadows)
    changes_weight = wish.weight is not None and wish.action is not Action.ADD
    for action in (wish.action, *([Action.WEIGHT] if changes_weight else [])):
        if not is_taken(action, wish.name, trainer.actions, shadows):
            raise UpdateRefusedError(untaken_reason(action))
    if wish.weight is not None and not abs(wish.weight) < math.inf:
        raise RewardDefinitionError(f"weight of {wish.name!r} is {wish.weight!r}: expected a finite number")
    if wish.action is Action.WEIGHT and wish.weight is None:
        raise RewardDefinitionError(f"no weight is given for {wish.name!r}")


def _check(run: RunReader, wish: Wish, tried: int, workers: int | None) -> _Checked:
    """Import a change's reward, try it on the run's last completions and return it; RewardError where that fails."""
    weight = {} if wish.weight is None else {"weight": float(wish.weight)}
    if wish.like is None:
        return _Checked(wish, weight, None, ())
    name = shadow_of(wish.name) if wish.action is Action.SHADOW else wish.name
    with contextlib.redirect_stdout(sys.stderr):
        body = carry(wish.like, name)
        with tempfile.TemporaryDirectory(prefix="rewardkit-update-") as folder, _restoring_path():
            coming = load(body, name, Path(folder))
            body = {**body, "digits": coming.version, **weight}
            difference, notes = _trial(run, wish, coming, tried, workers)
    return _Checked(wish, body, difference, notes)


def _trial(
    run: RunReader, wish: Wish, coming: Composable, tried: int, workers: int | None
) -> tuple[Difference | None, list[str]]:
    """Return a new reward's difference from the training's version on the run's last completions, and notes.

    Raises UpdateRefusedError where every call failed, and MissingColumnError where the run lacks a column.
    """
    unable = obstacle(coming)
    if unable is not None:
        return None, [f"not tried: {unable}"]
    steps = run.steps()
    if not steps:
        return None, ["not tried: nothing is recorded yet"]
    stored = choose(run, (steps[-1], steps[-1]))
    new = Subject("new", rewards=RewardSet({wish.name: as_named(coming, wish.name)}))
    old = _current_subject(run, wish, stored)
    difference = of_run(run, old, new, stored, weight=wish.weight, limit=tried, workers=workers)
    numbers = difference.comparison
    if numbers.new.failed == numbers.completions:
        raise UpdateRefusedError(
            f"reward {wish.name!r} failed on all of the {numbers.completions} completions of step {steps[-1]} that it "
            f"was tried on: {_error(run, coming, int(stored.table.ids[0]))}"
        )
    notes = []
    if wish.action is Action.SHADOW:
        notes = ["as a shadow it changes nothing: this is what it would do in the place of the other"]
    return difference, notes


def _current_subject(run: RunReader, wish: Wish, stored: Stored) -> Subject:
    """Return the version that the training has, or one that skips everything for a reward that is new."""
    numbers = stored.table.versions.get(wish.name)
    last = 0 if numbers is None else int(numbers[-1])
    recorded = [version for version in run.versions if (version.reward, version.number) == (wish.name, last)]
    if recorded:
        return Subject(recorded[-1].label, version=recorded[-1])
    return Subject("none", rewards=RewardSet({wish.name: reward(_skip).with_options(name=wish.name)}))


def _skip(completion: str) -> float | None:
    """Skip every completion, in place of a reward that does not exist."""
    return None


def _error(run: RunReader, coming: Composable, completion: int) -> str:
    """Return the error of a reward on one completion, asked once more."""
    rollouts = [rollout for rollout in run.rollouts([completion]) if rollout is not None]
    with Runtime([coming], workers=1, max_infrastructure_rate=1.0) as runtime:
        outcomes = [outcome for column in runtime.score(rollouts).outcomes.values() for outcome in column]
    return next((outcome.error for outcome in outcomes if outcome.error), "no reason is known")


def _answers(connection: RecordConnection, numbers: Sequence[int], wait_s: float) -> list[RewardChange]:
    """Wait for the answers to changes, at most ``wait_s`` and until a process is gone; return the changes."""
    end = time.monotonic() + wait_s
    while True:
        answers = [change for change in (change_of(connection, number) for number in numbers) if change is not None]
        is_open = any(change.state is ChangeState.ASKED for change in answers)
        if not is_open or time.monotonic() >= end or any(trainer.gone for trainer in trainers_of(connection)):
            return answers
        time.sleep(_POLL_S)


@contextlib.contextmanager
def _restoring_path() -> Iterator[None]:
    """Restore ``sys.path`` at the end of the block."""
    before = list(sys.path)
    try:
        yield
    finally:
        sys.path[:] = before
