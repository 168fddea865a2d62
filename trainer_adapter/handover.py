"""What a trainer was handed, checked before its first step: our functions with their weights, and its data sets.

A trainer that was handed something else would sum with the wrong weights, or stop at its first evaluation, hours later.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, runtime_checkable

from rewardkit import ConfigError, DataError, MissingColumnError, Reward, RewardDefinitionError
from rewardkit.extending import ENVIRONMENT_COLUMN, ENVIRONMENTS_COLUMN, WORKSPACE_COLUMN, hint_at
from rewardkit.rows import rename_hint
from trainer_adapter.environment_values import LeafRewards, check_workspaces
from trainer_adapter.overlapped_rollout import OverlappedRollout
from trainer_adapter.splitting import TrlTrainer

if TYPE_CHECKING:
    from rewardkit.health import FlagTarget

_OF_ENVIRONMENTS = frozenset({ENVIRONMENT_COLUMN, ENVIRONMENTS_COLUMN, WORKSPACE_COLUMN})
_ENVIRONMENTS = ("environments", "environment_factories")  # What a trainer with environments has, by TRL's version
_ADDING_COLUMNS = ("_prepare_inputs", "_generate_and_score_completions", "_calculate_rewards")
"""Methods in which a subclass of TRL's trainers may hand rewards more than the columns of its data set."""
_KEPT = ("prompt", "image", "images")  # The columns that TRL's trainers keep with `remove_unused_columns=True`


@runtime_checkable
class _Rows(Protocol):
    """Rows that can be asked for by number."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> object: ...


class RuntimeOptions(TypedDict, total=False):
    """The options that an adapter passes on to :class:`rewardkit.Runtime`."""

    workers: int | None
    lane: str
    ray_address: str | None
    memory_bytes: int | None
    load_timeout_s: float
    cache_entries: int
    max_infrastructure_rate: float
    on_failure: str


def check_health_settings(every: object, on_flag: FlagTarget | None) -> tuple[int, FlagTarget | None]:
    """Return the steps between two health checks and what is told of flags, a URL or a command as an ``Alert``.

    Raises:
        RewardDefinitionError: The steps are no whole number, 0 or more.
        ConfigError: ``on_flag`` is no function, address or command.
    """
    if isinstance(every, bool) or not isinstance(every, int) or every < 0:
        raise RewardDefinitionError(f"health_every={every!r}: expected a number of steps, or 0")
    if on_flag is None or callable(on_flag):
        return every, on_flag
    from rewardkit.health import Alert  # it brings numpy along

    return every, on_flag if isinstance(on_flag, Alert) else Alert(on_flag)


def check_handover(trainer: TrlTrainer, rewards: Mapping[str, LeafRewards], weights: Mapping[str, float]) -> None:
    """Check the functions and the data sets of a trainer; ``weights`` are those of the functions, by name.

    Raises:
        ConfigError: A function has another weight than its reward, or the trainer drops a column that a reward reads.
        DataError: A data set has no prompts, or a workspace that it names is missing, or lies where none may.
        MissingColumnError: A data set lacks a column that a reward needs.
    """
    check_function_weights(trainer, weights)
    for rows, what in _data_sets(trainer):
        columns = _columns_of(rows)
        if columns is not None:
            _check_prompt(columns, what)
            _check_kept(trainer, rewards.values(), columns, what)
            if not _adds_columns(trainer):
                has_environments = any(getattr(trainer, name, None) is not None for name in _ENVIRONMENTS)
                check_columns(rewards.values(), columns, what, _OF_ENVIRONMENTS if has_environments else frozenset())
        check_workspaces(rewards.values(), rows, what)


def check_function_weights(trainer: TrlTrainer, weights: Mapping[str, float]) -> None:
    """Raise :class:`~rewardkit.ConfigError` where a trainer weighs a function otherwise than the adapter.

    Each function has its reward's weight wherever it stands; a function from elsewhere has any.
    """
    names = getattr(trainer, "reward_func_names", None)
    if names is None or getattr(trainer, "reward_weights", None) is None:
        return check_listed_weights(trainer.args, weights)
    repeated = next((name for name in weights if list(names).count(name) > 1), None)
    if repeated is not None:
        raise ConfigError(f"the trainer has two reward functions {repeated!r}, and would count both; hand over one")
    theirs = dict(zip(names, map(float, trainer.reward_weights), strict=False))
    for name in theirs.keys() & weights.keys():
        if not math.isclose(theirs[name], weights[name], rel_tol=1e-6, abs_tol=1e-30):  # TRL's are of float32
            raise _wrong_weights(theirs.values(), names, weights)


def check_listed_weights(args: object, weights: Mapping[str, float]) -> None:
    """Raise as :func:`check_function_weights` does, by settings alone, where no trainer is there to ask."""
    listed = getattr(args, "reward_weights", None)
    if listed is None and hasattr(args, "reward_weights"):  # TRL then sums with weights of 1
        listed = [1.0] * len(weights)
    # Lists of equal length are about the same rewards; a longer one is also about functions from elsewhere.
    if listed is not None and len(listed) == len(weights) and list(listed) != list(weights.values()):
        raise _wrong_weights(listed, list(weights), weights)


def _wrong_weights(theirs: Iterable[float], names: Sequence[str], weights: Mapping[str, float]) -> ConfigError:
    """Return the error that lists the trainer's weights and ours, both in the order of ``names``."""
    expected = [f"{weights[name]:g}" if name in weights else "its own" for name in names]
    fix = "reward_funcs=adapter.reward_funcs to the trainer and reward_weights=adapter.weights to its config"
    listed = ", ".join(f"{weight:g}" for weight in theirs)
    return ConfigError(
        f"the trainer has reward_weights=[{listed}] for {', '.join(names)}, whose weights are {', '.join(expected)}; "
        f"pass {fix}, or both in another order"
    )


def check_columns(
    rewards: Iterable[LeafRewards], columns: Sequence[str], what: str, extra: frozenset[str] = frozenset()
) -> None:
    """Raise :class:`~rewardkit.MissingColumnError` for the first column that a reward needs and the rows lack.

    Errors call the rows ``what``; ``extra`` are columns that come from elsewhere.
    """
    has = [name for name in columns if name != "prompt"]
    for leaf in _leaves(rewards):
        missing = next((name for name in leaf.spec.required_columns if name not in has and name not in extra), None)
        if missing is not None:
            hint = hint_at(missing, has, leaf.spec.kind)
            raise MissingColumnError(f"reward {leaf.name!r} needs column {missing!r}, which the {what} lacks; {hint}")


def _check_prompt(columns: Sequence[str], what: str) -> None:
    if "prompt" not in columns:
        has = ", ".join(map(repr, columns))
        raise DataError(f"{what}: column 'prompt' is missing; it has {has}{rename_hint('prompt', columns)}")


def _check_kept(trainer: TrlTrainer, rewards: Iterable[LeafRewards], columns: Sequence[str], what: str) -> None:
    """Raise where a trainer drops columns of its data set that a reward reads."""
    if not getattr(trainer.args, "remove_unused_columns", False):
        return
    dropped = [name for name in columns if name not in (getattr(trainer, "_signature_columns", None) or _KEPT)]
    for leaf in _leaves(rewards):
        wanted = leaf.spec.wanted_columns
        lost = next((name for name in dropped if wanted is None or name in wanted), None)
        if lost is not None:
            raise ConfigError(
                f"reward {leaf.name!r} reads column {lost!r} of the {what}, which the trainer drops, because its "
                "config has remove_unused_columns=True; pass remove_unused_columns=False"
            )


def _leaves(rewards: Iterable[LeafRewards]) -> Iterator[Reward[..., Any]]:
    return (leaf for reward in rewards for leaf in getattr(reward, "leaves", ()))


def _data_sets(trainer: TrlTrainer) -> Iterator[tuple[object, str]]:
    """Yield the rows to train on and those of each evaluation, with what errors call them."""
    yield getattr(trainer, "train_dataset", None), "dataset"
    evaluation = getattr(trainer, "eval_dataset", None)
    if isinstance(evaluation, Mapping):
        yield from ((rows, f"evaluation set {name!r}") for name, rows in evaluation.items())
    else:
        yield evaluation, "evaluation set"


def _columns_of(rows: object) -> list[str] | None:
    """Return the columns of rows; ``None`` where they do not say, as those of some streams."""
    names = getattr(rows, "column_names", None)
    is_transformed = isinstance(names, list) and getattr(rows, "format", {}).get("type") == "custom"
    if isinstance(names, list) and not is_transformed:
        return names
    first = rows[0] if isinstance(rows, _Rows) and len(rows) else None
    return list(first) if isinstance(first, Mapping) else None


def _adds_columns(trainer: TrlTrainer) -> bool:
    """Whether rewards may get columns that the data set lacks: of a rollout function, or of a subclass of TRL's."""
    methods = [method for name in _ADDING_COLUMNS if (method := getattr(type(trainer), name, None)) is not None]
    is_plain = all(getattr(method, "__module__", "").startswith(("trl.", "transformers.")) for method in methods)
    rollout = getattr(trainer, "rollout_func", None)
    return not (rollout is None or isinstance(rollout, OverlappedRollout)) or not is_plain
