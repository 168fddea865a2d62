"""Rows of preferences, rankings, outcomes and labelled steps, checked before a model loads.

Owns the forms that rows may have, the checks of their columns, and the split by prompt. Tokens are
:mod:`trainer_adapter.reward_training.batches`'s.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from builtin_rewards.reward_model import ModelKind, PreferenceRow, preferences_of, read_preferences
from rewardkit import DataError
from rewardkit.extending import read_rows, shorten

_TRUE, _FALSE = frozenset({"true", "1", "yes"}), frozenset({"false", "0", "no"})
_STEP_LABELS = {True: 1, False: -1}


class Pair(NamedTuple):
    """A preference between two completions of a group, by their places in it."""

    chosen: int
    rejected: int
    margin: float = 0.0


@dataclass(frozen=True, slots=True)
class LabelledGroup:
    """Completions of one prompt with what is known of them: the unit that a batch is made of."""

    where: str  # Where its first row stands, for errors
    prompt: Any  # What was asked: text, or chat messages
    completions: tuple[Any, ...]  # What was answered
    pairs: tuple[Pair, ...] = ()  # Which of them are preferred to which
    ranks: tuple[float, ...] = ()  # Their ranks, 0 best, one each; empty where there is no ranking
    correct: tuple[int, ...] = ()  # Whether each is right, 1 or 0; empty where that is not known
    steps: tuple[tuple[str, ...], ...] = ()  # The steps of each; empty where steps are not labelled
    step_labels: tuple[tuple[int, ...], ...] = ()  # Of each step +1 right, 0 neutral, -1 wrong

    @property
    def key(self) -> str:
        """The prompt as one text: groups of the same prompt are trained on, or held out, together."""
        return json.dumps(self.prompt, sort_keys=True, default=str)


class HeldOut(NamedTuple):
    """Groups to train on, and groups of other prompts to measure on."""

    training: list[LabelledGroup]
    measured: list[LabelledGroup]


def read_groups(
    kind: ModelKind, source: Any, *, step_separator: str = "\n", group_size: int | None = None, what: str = "dataset"
) -> list[LabelledGroup]:
    """Return the groups that rows stand for; errors call the rows ``what``, and name row and column.

    ``step_separator`` parts a completion that is one text. Without ``group_size`` a ranking has as many completions as
    a row, or a prompt, has.
    """
    if kind == "bradley_terry":
        return _paired(_preferences(source, what))
    rows = _rows(source, what)
    if kind == "plackett_luce":
        return _ranked(rows, group_size)
    if kind == "orm":
        return [_outcome(where, row) for where, row in rows]
    return [_stepwise(where, row, step_separator) for where, row in rows]


def split_groups(groups: Sequence[LabelledGroup], share: float, seed: int) -> HeldOut:
    """Return the groups, with a share of the prompts held out; a prompt is on one side with all its groups."""
    if not share:
        return HeldOut(list(groups), [])
    keys = sorted({one.key for one in groups})
    if len(keys) < 2:
        raise DataError(
            f"{len(keys)} prompt: nothing can be held out by prompt; give rows of more prompts, or holdout: 0"
        )
    random.Random(seed).shuffle(keys)  # noqa: S311 - a split, not a secret
    out = set(keys[: min(len(keys) - 1, max(1, round(share * len(keys))))])
    return HeldOut([one for one in groups if one.key not in out], [one for one in groups if one.key in out])


def _preferences(source: Any, what: str) -> list[PreferenceRow]:
    if isinstance(source, str | Path):
        return read_preferences(source)
    rows = [row for _, row in _rows(source, what)]
    try:
        return preferences_of(rows)
    except DataError as wrong:
        raise DataError(f"{what}, {wrong}") from None


def _rows(source: Any, what: str) -> list[tuple[str, Mapping[str, Any]]]:
    if isinstance(source, str | Path):
        return [(f"{source}:{row.line}", row.values) for row in read_rows(source, for_trainer=False)]
    found = []
    for number, row in enumerate(source):
        if not isinstance(row, Mapping):
            raise DataError(f"{what}, row {number}: expected a dictionary, got {shorten(row)}")
        found.append((f"{what}, row {number}", row))
    if not found:
        raise DataError(f"{what}: it has no rows")
    return found


def _paired(rows: Sequence[PreferenceRow]) -> list[LabelledGroup]:
    """Return a group a prompt, with all pairs of its rows; a completion that several pairs share stands once."""
    prompts: dict[str, tuple[PreferenceRow, list[Any], dict[str, int], list[Pair]]] = {}
    for row in rows:
        margin = _margin(row)
        found = prompts.setdefault(_text(row.prompt), (row, [], {}, []))
        _, completions, places, pairs = found
        for name, side in (("chosen", row.chosen), ("rejected", row.rejected)):
            for one in side:
                _check_said(one, row.where, name)
        for one in (*row.chosen, *row.rejected):
            if places.setdefault(_text(one), len(completions)) == len(completions):
                completions.append(one)
        pairs.extend(
            Pair(places[_text(won)], places[_text(lost)], margin) for won in row.chosen for lost in row.rejected
        )
    return [
        LabelledGroup(first.where, first.prompt, tuple(completions), pairs=tuple(pairs))
        for first, completions, _, pairs in prompts.values()
    ]


def _margin(row: PreferenceRow) -> float:
    value = row.columns.get("margin")
    if value is None or value == "":
        return 0.0
    return _number(value, row.where, "margin")


def _number(value: Any, where: str, column: str) -> float:
    """Return a finite number; text is read as one."""
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        _refuse(where, column, f"expected a finite number, got {shorten(value)}")
    return number


def _ranked(rows: Sequence[tuple[str, Mapping[str, Any]]], size: int | None) -> list[LabelledGroup]:
    listed = "completions" in rows[0][1]
    groups = [_listed(where, row) for where, row in rows] if listed else _by_prompt(rows)
    return [part for one in groups for part in _parts(one, size)]


def _listed(where: str, row: Mapping[str, Any]) -> LabelledGroup:
    prompt, completions = _said(row, "prompt", where), _list(row, "completions", where)
    for number, one in enumerate(completions):
        _check_said(one, where, f"completions[{number}]")
    column = _one_of(row, ("ranks", "scores"), where)
    ranks = [_rank(one, where, column) for one in _list(row, column, where)]
    if len(ranks) != len(completions):
        _refuse(where, column, f"has {len(ranks)} values for {len(completions)} completions")
    return LabelledGroup(where, prompt, tuple(completions), ranks=tuple(ranks))


def _by_prompt(rows: Sequence[tuple[str, Mapping[str, Any]]]) -> list[LabelledGroup]:
    groups: dict[str, LabelledGroup] = {}
    for where, row in rows:
        prompt, completion = _said(row, "prompt", where), _said(row, "completion", where)
        column = _one_of(row, ("rank", "score"), where)
        rank = _rank(row[column], where, column)
        so_far = groups.get(_text(prompt)) or LabelledGroup(where, prompt, ())
        groups[_text(prompt)] = replace(
            so_far, completions=(*so_far.completions, completion), ranks=(*so_far.ranks, rank)
        )
    return list(groups.values())


def _rank(value: Any, where: str, column: str) -> float:
    """Return a rank, 0 best; a score is turned round, because only the order counts."""
    number = _number(value, where, column)
    return number if column.startswith("rank") else -number


def _parts(group: LabelledGroup, size: int | None) -> list[LabelledGroup]:
    """Return a ranking, or its parts of the size that is asked for; refuse one in which nothing can be learned."""
    count = len(group.completions)
    if size is not None and count % size:
        _refuse(group.where, "prompt", f"has {count} completions, which group_size={size} does not divide")
    size = size or count
    found = [
        replace(group, completions=group.completions[at : at + size], ranks=group.ranks[at : at + size])
        for at in range(0, count, size)
    ]
    for one in found:
        if len(set(one.ranks)) < 2:
            words = "only one completion" if len(one.ranks) == 1 else "the same rank for all completions"
            _refuse(one.where, "prompt", f"has {words}: there is no ranking to learn; leave it out")
    return found


def _outcome(where: str, row: Mapping[str, Any]) -> LabelledGroup:
    prompt, completion = _said(row, "prompt", where), _said(row, "completion", where)
    column = _one_of(row, ("correct", "label"), where)
    value = row[column]
    word = str(value).strip().lower()
    if isinstance(value, float) and value in (0.0, 1.0):
        word = str(int(value))
    if word not in _TRUE | _FALSE:
        _refuse(where, column, f"expected true or false, 1 or 0, got {shorten(value)}")
    return LabelledGroup(where, prompt, (completion,), correct=(int(word in _TRUE),))


def _stepwise(where: str, row: Mapping[str, Any], separator: str) -> LabelledGroup:
    prompt = _said(row, "prompt", where)
    column = _one_of(row, ("steps", "completions", "completion"), where)
    if column == "completion":
        whole = _said(row, column, where)
        if not isinstance(whole, str):
            _refuse(where, column, f"expected text, got {shorten(whole)}; give the steps as a list in 'steps'")
        steps = [part for part in whole.split(separator) if part.strip()]
    else:
        steps = _list(row, column, where)
        whole = separator.join(map(str, steps))
    for number, step in enumerate(steps):
        if not isinstance(step, str) or not step.strip():
            _refuse(where, column, f"step {number} is empty or no text: {shorten(step)}")
    name = _one_of(row, ("labels", "step_labels"), where)
    labels = [_step_label(one, where, name, number) for number, one in enumerate(_list(row, name, where))]
    if len(labels) != len(steps):
        _refuse(where, name, f"has {len(labels)} labels for {len(steps)} steps")
    return LabelledGroup(where, prompt, (whole,), steps=(tuple(steps),), step_labels=(tuple(labels),))


def _step_label(value: Any, where: str, column: str, number: int) -> int:
    if isinstance(value, bool):
        return _STEP_LABELS[value]
    words = value.strip().lower() if isinstance(value, str) else value
    if words in ("true", "false"):
        return _STEP_LABELS[words == "true"]
    try:
        found = float(words)
    except (TypeError, ValueError):
        found = math.nan
    if found not in (-1, 0, 1):
        _refuse(where, column, f"of step {number}: expected +1, 0, -1, true or false, got {shorten(value)}")
    return int(found)


def _one_of(row: Mapping[str, Any], names: Sequence[str], where: str) -> str:
    """Return the first of the columns that a row has."""
    for name in names:
        if row.get(name) is not None:
            return name
    others = f" (or {', '.join(map(repr, names[1:]))})" if len(names) > 1 else ""
    has = ", ".join(repr(name) for name, value in row.items() if value is not None)
    _refuse(where, names[0], f"is missing{others}; it has {has or 'nothing'}")


def _said(row: Mapping[str, Any], name: str, where: str) -> Any:
    _one_of(row, (name,), where)
    value, found = row[name], _decoded(row[name])
    if not isinstance(value, str) or (found and all(isinstance(one, Mapping) and "role" in one for one in found)):
        value = found  # else it is an answer that happens to spell a list, such as [2, 3]
    _check_said(value, where, name)
    return value


def _check_said(value: Any, where: str, name: str) -> None:
    if isinstance(value, str):
        if not value.strip():
            _refuse(where, name, "is empty")
        return
    if not (isinstance(value, list) and value and all(isinstance(one, Mapping) and "role" in one for one in value)):
        _refuse(where, name, f"expected text or a list of chat messages, got {shorten(value)}")
    if not has_text(value):
        _refuse(where, name, "is empty: its messages have no text; leave the row out")


def has_text(said: str | Sequence[Mapping[str, Any]]) -> bool:
    """Return whether a text, or some message, says anything or calls a tool."""
    messages = [{"content": said}] if isinstance(said, str) else said
    return any(str(one.get("content") or "").strip() or one.get("tool_calls") for one in messages)


def _list(row: Mapping[str, Any], name: str, where: str) -> list[Any]:
    _one_of(row, (name,), where)
    value = _decoded(row[name])
    if not isinstance(value, list) or not value:
        _refuse(where, name, f"expected a list that is not empty, got {shorten(value)}")
    return value


def _decoded(value: Any) -> Any:
    """Return the list that a cell of CSV spells; arrays and tuples as lists."""
    if isinstance(value, str) and value.startswith("["):
        try:
            found = json.loads(value)
        except (ValueError, RecursionError):
            return value
        return found if isinstance(found, list) else value
    if isinstance(value, tuple):
        return list(value)
    return value.tolist() if hasattr(value, "tolist") else value


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _refuse(where: str, column: str, what: str) -> NoReturn:
    raise DataError(f"{where}: column {column!r} {what}")
