"""Rewards as OpenEnv's environments call them: a ``Rubric``, by ``(action, observation)``, with a child a reward.

======== ===================================================================
scored   the total; each child's ``last_score`` is its reward's score
skipped  0.0; the child's ``last_score`` is ``None``
failed   the total with the default in it
unknown  an error of the step; or with ``on_unknown="zero"`` 0.0
======== ===================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, Unpack

from rewardkit import ConfigError
from rewardkit.extending import to_json
from rewardkit.serving import ToldRow
from trainer_adapter.trainer_rewards import OnUnknown, TrainerAsks, TrainerOptions, TrainerRewards
from trainer_adapter.trainer_versions import TrainerVersions
from trainer_adapter.turns import Text

__all__ = ["ReadStep", "openenv_async_rubric", "openenv_rubric"]

_ASKS = TrainerAsks(
    trainer="OpenEnv",
    setting="the environment's rubric",
    more="OpenEnv sends the fields of action and observation and their metadata: put it there, or give read=",
    size="the completions of a prompt",
    tested=TrainerVersions("openenv", "0.10", "0.11"),
    one_number="TurnCreditTrainer, for TRL, takes one a turn",
)
ReadStep: TypeAlias = Callable[[Any, Any], tuple[Text, Text, Mapping[str, Any]]]
"""What makes prompt, completion and columns of an action and its observation."""
_COMPLETION_FIELDS = ("completion", "response", "answer", "message", "content", "text", "code")
_OWN_FIELDS = ("done", "reward", "metadata")


def openenv_rubric(
    rewards: object = None,
    *,
    read: ReadStep | None = None,
    on_unknown: OnUnknown = "raise",
    **options: Unpack[TrainerOptions],
) -> Any:  # of OpenEnv's Rubric, which ships no types
    """Return a ``Rubric`` of OpenEnv's of some rewards.

    Args:
        rewards: As :class:`TrainerRewards` takes them.
        read: What makes prompt, completion and columns of an action and its observation. By default the completion is
            the action's field ``completion``, ``response``, ``answer``, ``message``, ``content``, ``text`` or ``code``,
            or its JSON; the prompt is a field or metadata of that name; columns are the other fields and the metadata.
        on_unknown: ``"raise"`` or ``"zero"``.
        options: ``weights``, ``group_size`` and the other options of :class:`TrainerRewards`.

    Raises:
        RewardError: As :class:`TrainerRewards`; ConfigError where OpenEnv is not installed.
    """
    core = TrainerRewards(rewards, asks=_ASKS, on_unknown=on_unknown, **options)
    rubric_class, read_parts = _rubric_class(), read or _read_step

    class RewardkitRubric(rubric_class):  # type: ignore[misc, valid-type] # a class of OpenEnv's
        def forward(self, action: object, observation: object) -> float:
            """Return the total of a step."""
            return _note_scores(self, core, core.score_one(*read_parts(action, observation)))

    return _with_children(RewardkitRubric(), core, rubric_class)


def openenv_async_rubric(
    rewards: object = None,
    *,
    read: ReadStep | None = None,
    on_unknown: OnUnknown = "raise",
    **options: Unpack[TrainerOptions],
) -> Any:  # of OpenEnv's Rubric, which ships no types
    """Return a rubric as :func:`openenv_rubric` does, for environments whose steps are async."""
    core = TrainerRewards(rewards, asks=_ASKS, on_unknown=on_unknown, **options)
    rubric_class, read_parts = _rubric_class(), read or _read_step

    class RewardkitAsyncRubric(rubric_class):  # type: ignore[misc, valid-type] # a class of OpenEnv's
        async def forward(self, action: object, observation: object) -> float:
            """Return the total of a step."""
            return _note_scores(self, core, await core.ascore_one(*read_parts(action, observation)))

    return _with_children(RewardkitAsyncRubric(), core, rubric_class)


def _rubric_class() -> type[Any]:
    try:
        from openenv.core.rubrics import Rubric
    except ImportError as error:
        raise ConfigError(f"OpenEnv is not installed: pip install openenv ({error})") from error
    rubric_class: type[Any] = Rubric
    return rubric_class


def _with_children(rubric: Any, core: TrainerRewards, rubric_class: type[Any]) -> Any:
    """Give a rubric a child for each reward, whose ``last_score`` is that of the last step."""

    class RewardScore(rubric_class):  # type: ignore[misc] # a class of OpenEnv's
        def forward(self, action: object, observation: object) -> float | None:
            """Return the score of the last step; the rubric above it scores."""
            score: float | None = self.last_score
            return score

    for name in core.names:
        setattr(rubric, name, RewardScore())
    return rubric


def _note_scores(rubric: Any, core: TrainerRewards, row: ToldRow) -> float:
    """Return the total of a step, and leave each reward's score in its child."""
    children = dict(rubric.named_children())
    for name, outcome in row.outcomes.items():
        children[name].last_score = outcome.score
    return core.number(row)


def _read_step(action: Any, observation: Any) -> tuple[Text, Text, dict[str, Any]]:
    """Return prompt, completion and columns of a step, by the names of its fields."""
    taken, seen = _fields(action), _fields(observation)
    completion = next((taken[name] for name in _COMPLETION_FIELDS if isinstance(taken.get(name), str | list)), None)
    columns = {**taken, **seen, **_metadata(action), **_metadata(observation)}
    return columns.pop("prompt", ""), to_json(taken) if completion is None else completion, columns


def _fields(value: Any) -> dict[str, Any]:
    """Return the fields of an action or observation that are not OpenEnv's own."""
    dump = getattr(value, "model_dump", None)
    fields = dump() if callable(dump) else dict(value) if isinstance(value, Mapping) else {"value": value}
    return {name: field for name, field in fields.items() if name not in _OWN_FIELDS}


def _metadata(value: Any) -> Mapping[str, Any]:
    metadata = value.get("metadata") if isinstance(value, Mapping) else getattr(value, "metadata", None)
    return metadata if isinstance(metadata, Mapping) else {}
