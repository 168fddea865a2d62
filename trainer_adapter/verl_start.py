"""What verl's manager checks before the first completion: that the rewards load, and that the data has their columns.

Without it a wrong reward file that ``reward_kwargs`` names, or a missing column, is an error of each completion, which
trainer V1 notes and draws the group anew.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rewardkit import ConfigError
from trainer_adapter.trainer_rewards import TrainerRewards
from trainer_adapter.verl import compute_score, verl_score

_ADDED = frozenset({"prompt", "uid"})  # Fields of `extra_info` that the manager adds


def check_start(function: object, config: Mapping[str, Any]) -> TrainerRewards | None:
    """Load and return the rewards of a ``compute_score`` of ours; raise ``ConfigError`` if data lacks their columns.

    ``function`` is what verl's manager has: the function, or verl's ``partial`` of it and its ``reward_kwargs``.
    """
    core = _rewards_of(function)
    if core is None:
        return None
    data = config.get("data") or {}
    files = data.get("train_files") or []
    for file in [files] if isinstance(files, str) else list(files):
        fields = _fields(str(file))
        if fields is not None:
            _check(core, str(file), fields)
    return core


def refuse_remote(manager: type[Any]) -> type[Any]:
    """Return verl's manager ``remote`` as one that refuses rewards of ours by a ``ConfigError``; it takes any others.

    It calls a function in processes of its own and takes no coroutine function, which ours is.
    """

    class RefusingRemoteManager(manager):  # type: ignore[misc] # a class of verl's
        def __init__(
            self, config: object, tokenizer: object, compute_score: object, *arguments: object, **options: object
        ) -> None:
            if _rewards_of(compute_score) is not None:
                raise ConfigError(
                    "verl: reward.reward_manager.name=remote takes no compute_score that is a coroutine function, as "
                    "rewardkit's is; take naive, dapo, gdpo or rewardkit: rewards run in worker processes there too"
                )
            super().__init__(config, tokenizer, compute_score, *arguments, **options)

    return RefusingRemoteManager


def _rewards_of(function: object) -> TrainerRewards | None:
    """Return the rewards of a function that :mod:`trainer_adapter.verl` has made; ``None`` for any other.

    verl wraps a function as ``partial(caller, function, reward_kwargs)``.
    """
    scorer, reward_kwargs = function, dict[str, Any]()
    if isinstance(function, functools.partial) and len(function.args) == 2:
        scorer, reward_kwargs = function.args
    made = verl_score(**_options(reward_kwargs)) if scorer is compute_score else scorer
    core: TrainerRewards | None = getattr(made, "rewardkit", None)
    return core


def _options(reward_kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keyword-only options of :func:`compute_score`, with their defaults."""
    parameters = inspect.signature(compute_score).parameters.values()
    return {p.name: reward_kwargs.get(p.name, p.default) for p in parameters if p.kind is p.KEYWORD_ONLY}


def _check(core: TrainerRewards, file: str, fields: Sequence[str]) -> None:
    """Raise ``ConfigError`` for the first column that a reward needs and neither verl nor the file's rows have."""
    missing = [name for name in core.required if name not in {*fields, *core.asks.columns, *_ADDED}]
    if missing:
        raise ConfigError(
            f"verl: a reward needs column {missing[0]!r}, and extra_info in {file}, of data.train_files, has only "
            f"{', '.join(sorted(fields)) or 'no fields'}; {core.asks.more}"
        )


def _fields(file: str) -> list[str] | None:
    """Return the fields of ``extra_info`` in a parquet file; ``None`` where its schema does not have them."""
    if not file.endswith(".parquet") or not Path(file).is_file():
        return None
    import pyarrow
    import pyarrow.parquet

    schema = pyarrow.parquet.read_schema(file)
    if "extra_info" not in schema.names:
        return []
    info = schema.field("extra_info").type
    return [field.name for field in info] if pyarrow.types.is_struct(info) else None
