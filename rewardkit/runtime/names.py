"""What other libraries call the things that a reward takes, and what they are called here."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from rewardkit.declare.decorator import Reward
from rewardkit.declare.spec import ColumnMisfit, Kind

_NAMES = {
    "here that is 'completion', the text of what the model wrote": (
        "solution_str response response_str output model_output generation generated generated_text prediction pred "
        "predict_str answer_text completion_text"
    ),
    "here that is 'completions', a list, in a @group_reward": (
        "solution_strs responses outputs generations predictions predicts generated_texts"
    ),
    "here that is 'prompt'": "prompts prompt_str question query instruction input input_text",
    "here that is 'messages', prompt and completion as one list of chat messages": (
        "state trajectory conversation chat history turns dialog"
    ),
    "here that is 'completion_ids', the token ids of what the model wrote": (
        "response_ids token_ids tokens output_ids generated_ids"
    ),
    "here that is 'example', the row as a dictionary; a column of it is a parameter of the column's own name": (
        "extra_info extra_infos info row sample item doc record data_item non_tensor_batch"
    ),
    "here a right answer is a column of your data: name the parameter, or a judge's reference=, after it": (
        "ground_truth ground_truths reward_model gold gt label target reference expected"
    ),
    "here that is a column of your data: name the parameter after one that there is": (
        "data_source data_sources task dataset dataset_name"
    ),
    "here that is 'step', the optimizer steps done, or 'epoch'": "trainer_state global_step global_steps training_step",
    "here numbers to log are returned: Score(value, metrics={...})": "log_metric log_extra metrics",
    "here a reward reads the completion itself: call your parser inside it": "parser format_parser",
    "only a trainer with environments passes them: TRL's environment_factory": "environments",
    "mark a bound method instead: reward(an_object.its_method)": "self cls",
}
_MEANINGS = {name: meaning for meaning, names in _NAMES.items() for name in names.split()}

_ONE_NAME = "use one name in data and reward"

_NEAR, _VERY_NEAR = 0.6, 0.8
"""How alike a column's name is that is offered: where the name asked for has a meaning elsewhere, hardly another."""


def columns_read(leaves: Iterable[Reward[..., Any]]) -> frozenset[str] | None:
    """Return the columns that rewards and those inside them read; ``None`` where one may read any."""
    wanted = [reward.spec.wanted_columns for leaf in leaves for reward in (leaf, *leaf.inner)]
    columns = [names for names in wanted if names is not None]
    return frozenset().union(*columns) if len(columns) == len(wanted) else None


def hint_at(column: str, names: Sequence[str], kind: Kind) -> str:
    """Return a hint for a column that a reward needs and the data lacks: near names, else its name in this project."""
    suggestion, meaning = near_name(column, names, kind), meaning_of(column, kind)
    if suggestion is not None:
        return suggestion
    has = f"it has {', '.join(map(repr, names)) or 'no columns'}"
    if meaning is None:
        return f"{has}; {_ONE_NAME}" if names else has
    return f"{meaning}; {has}"


def near_name(column: str, names: Sequence[str], kind: Kind) -> str | None:
    """Return a sentence on names in the data near the column of a reward; ``None`` where no name is near.

    Either of the two may be misspelt, so it says which side has which name.
    """
    near = near_columns(column, names, kind)
    return f"the data has the near name {' or '.join(map(repr, near))}: {_ONE_NAME}" if near else None


def near_columns(column: str, names: Iterable[str], kind: Kind) -> list[str]:
    """Return the names in the data that are near the column of a reward, the nearest first, at most 3."""
    cutoff = _NEAR if meaning_of(column, kind) is None else _VERY_NEAR
    return difflib.get_close_matches(column, list(names), n=3, cutoff=cutoff)


def missing_columns(reward: Reward[..., Any], examples: Sequence[Mapping[str, Any]]) -> Iterator[ColumnMisfit]:
    """Yield the columns that a reward needs and rows lack, in the rows' order, each with what may be meant."""
    kind, hints = reward.spec.kind, dict[tuple[str, ...], str]()  # rows mostly have the same columns
    for row, example in enumerate(examples):
        for column in reward.spec.required_columns:
            if column in example:
                continue
            key = (column, *map(str, example))
            if key not in hints:
                hint = near_name(column, key[1:], kind) or meaning_of(column, kind)
                hints[key] = f"column {column!r} is missing{'' if hint is None else f'; {hint}'}"
            yield ColumnMisfit(row, column, hints[key])


def unread_columns(
    leaves: Sequence[Reward[..., Any]], columns: Collection[str], others: Collection[str]
) -> dict[str, str | None]:
    """Return the data's columns that no reward reads, each with a sentence on a parameter near it; ``None`` without.

    ``others`` are columns that something else reads. A parameter that the data has a column for is near none. Where
    one has a default, nothing else tells that its name and the column's differ.
    """
    read = columns_read(leaves)
    if read is None:
        return {}
    unread: dict[str, str | None] = {name: None for name in columns if name not in read and name not in others}
    for reward in (reward for leaf in leaves for reward in (leaf, *leaf.inner)):
        for parameter in reward.spec.parameters:
            if not parameter.column or parameter.name in columns:
                continue
            for name in near_columns(parameter.name, unread, reward.spec.kind):
                owner = f"the reward {reward.name!r}"
                needs = f"{owner} needs the near name {parameter.name!r}"
                keeps = f"{owner} has a parameter of the near name {parameter.name!r}, which keeps its default"
                unread[name] = unread[name] or f"{needs if parameter.required else keeps}: {_ONE_NAME}"
    return unread


def meaning_of(column: str, kind: Kind) -> str | None:
    """Return a sentence on a name of another library and its name here; ``None`` for other names."""
    meaning = _MEANINGS.get(column)
    if meaning is None:
        return None
    if kind is Kind.GROUP and "'completion'" in meaning:
        meaning = "here that is 'completions', the texts of what the model wrote"
    return meaning
