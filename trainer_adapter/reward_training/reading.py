"""Rows of preferences, rankings, outcomes and labelled steps, checked before a model loads.

Owns the forms that rows may have, the checks of their columns, and the split by prompt. Tokens are
:mod:`trainer_adapter.reward_training.batches`'s.
"""

from __future__ import annotations

import json
import math
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from builtin_rewards.reward_model import ModelKind, PreferenceRow, preferences_of, read_preferences
from rewardkit import DataError
from rewardkit.extending import InvalidRows, read_rows, shorten, why_no_text

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
        return _key(self.prompt)


class HeldOut(NamedTuple):
    """Groups to train on, and groups of other prompts to measure on."""

    training: list[LabelledGroup]
    measured: list[LabelledGroup]


def read_groups(
    kind: ModelKind,
    source: Any,
    *,
    step_separator: str = "\n",
    group_size: int | None = None,
    what: str = "dataset",
    invalid: InvalidRows | None = None,
) -> list[LabelledGroup]:
    """Return the groups that rows stand for; errors call the rows ``what``, and name row and column.

    ``step_separator`` parts a completion that is one text. Without ``group_size`` a ranking has as many completions as
    a row, or a prompt, has. A row that is wrong is refused, unless ``invalid`` leaves it out.
    """
    invalid = invalid or InvalidRows()
    groups: list[LabelledGroup] = []
    if kind == "bradley_terry":
        groups = _pair_groups(_preferences(source, what, invalid), invalid)
    elif kind == "plackett_luce":
        groups = _ranking_groups(_rows(source, what, invalid), group_size, invalid)
    else:
        for where, row in _rows(source, what, invalid):
            with invalid.leave_out():
                is_outcome = kind == "orm"
                groups.append(_outcome_group(where, row) if is_outcome else _step_group(where, row, step_separator))
    invalid.check_rest(len(groups), str(source) if isinstance(source, str | Path) else what)
    return groups


def split_groups(groups: Sequence[LabelledGroup], share: float, seed: int) -> HeldOut:
    """Return the groups, with a share of the prompts held out; a prompt is on one side with all its groups."""
    if not share:
        return HeldOut(list(groups), [])
    keys = sorted({group.key for group in groups})  # sorted, so that the split depends on the seed alone
    if len(keys) < 2:
        raise DataError(
            f"{len(keys)} prompt: nothing can be held out by prompt; give rows of more prompts, or holdout: 0"
        )
    random.Random(seed).shuffle(keys)  # noqa: S311 - a split, not a secret
    held_out = set(keys[: min(len(keys) - 1, max(1, round(share * len(keys))))])
    return HeldOut(
        [group for group in groups if group.key not in held_out], [group for group in groups if group.key in held_out]
    )


def _preferences(source: Any, what: str, invalid: InvalidRows) -> list[PreferenceRow]:
    """Return rows of pairs; errors say where they stand: in a file by line, in a list by number."""
    if isinstance(source, str | Path):
        return read_preferences(source, invalid=invalid)
    rows = [row for _, row in _rows(source, what, invalid)]
    try:
        return preferences_of(rows, invalid=invalid, what=what)
    except DataError as error:
        raise DataError(str(error) if str(error).startswith(f"{what}: ") else f"{what}, {error}") from None


def _rows(source: Any, what: str, invalid: InvalidRows) -> list[tuple[str, Mapping[str, Any]]]:
    """Return rows, each with where it stands; raise ``DataError`` where a list has none, or an entry is no row."""
    if isinstance(source, str | Path):
        rows_of_file = read_rows(source, for_trainer=False, invalid=invalid)
        return [(f"{source}:{row.line}", row.values) for row in rows_of_file]
    rows: list[tuple[str, Mapping[str, Any]]] = []
    for number, row in enumerate(source):
        with invalid.leave_out():
            if not isinstance(row, Mapping):
                raise DataError(f"{what}, row {number}: expected a dictionary, got {shorten(row)}")
            rows.append((f"{what}, row {number}", row))
    invalid.check_rest(len(rows), what)
    if not rows:
        raise DataError(f"{what}: it has no rows")
    return rows


def _pair_groups(rows: Sequence[PreferenceRow], invalid: InvalidRows) -> list[LabelledGroup]:
    """Return a group a prompt, with all pairs of its rows; a completion that several pairs share stands once."""
    firsts: dict[str, PreferenceRow] = {}
    completions, pairs = defaultdict[str, list[Any]](list), defaultdict[str, list[Pair]](list)
    indices = defaultdict[str, dict[str, int]](dict)  # of each prompt's completions, by their keys
    for row, margin in _with_margins(rows, invalid):
        prompt = _key(row.prompt)
        firsts.setdefault(prompt, row)
        for side in (row.chosen, row.rejected):
            for completion in side:
                if (key := _key(completion)) not in indices[prompt]:
                    indices[prompt][key] = len(completions[prompt])
                    completions[prompt].append(completion)
        winners = [indices[prompt][_key(completion)] for completion in row.chosen]
        losers = [indices[prompt][_key(completion)] for completion in row.rejected]
        pairs[prompt] += [Pair(winner, loser, margin) for winner in winners for loser in losers]
    return [
        LabelledGroup(first.where, first.prompt, tuple(completions[prompt]), pairs=tuple(pairs[prompt]))
        for prompt, first in firsts.items()
    ]


def _with_margins(rows: Sequence[PreferenceRow], invalid: InvalidRows) -> list[tuple[PreferenceRow, float]]:
    """Return rows with their margins, 0 without one; a margin that is no number and completions that are empty fail."""
    valid_rows = []
    for row in rows:
        with invalid.leave_out():
            value = row.columns.get("margin")
            margin = 0.0 if value is None or value == "" else _number(value, row.where, "margin")
            for name, side in (("chosen", row.chosen), ("rejected", row.rejected)):
                for completion in side:
                    _check_turns(completion, row.where, name)
            valid_rows.append((row, margin))
    return valid_rows


def _number(value: Any, where: str, column: str) -> float:
    """Return a finite number, also from text; raise ``DataError`` for anything else."""
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        _refuse(where, column, f"expected a finite number, got {shorten(value)}")
    return number


def _ranking_groups(
    rows: Sequence[tuple[str, Mapping[str, Any]]], size: int | None, invalid: InvalidRows
) -> list[LabelledGroup]:
    """Return the rankings of rows in the form of the first row: all completions of a prompt each, or one."""
    is_listed = "completions" in rows[0][1]
    groups: list[LabelledGroup] = [] if is_listed else _groups_by_prompt(rows, invalid)
    for where, row in rows if is_listed else ():
        with invalid.leave_out():
            groups.append(_group_of_lists(where, row))
    parts: list[LabelledGroup] = []
    for group in groups:
        with invalid.leave_out(1 if is_listed else len(group.completions)):
            parts += _parts(group, size)
    return parts


def _group_of_lists(where: str, row: Mapping[str, Any]) -> LabelledGroup:
    """Return the group of a row that lists its completions, and their ranks or scores."""
    prompt, completions = _turns(row, "prompt", where), _list(row, "completions", where)
    for number, completion in enumerate(completions):
        _check_turns(completion, where, f"completions[{number}]")
    column = _one_of(row, ("ranks", "scores"), where)
    ranks = [_rank(value, where, column) for value in _list(row, column, where)]
    if len(ranks) != len(completions):
        _refuse(where, column, f"has {len(ranks)} values for {len(completions)} completions")
    return LabelledGroup(where, prompt, tuple(completions), ranks=tuple(ranks))


def _groups_by_prompt(rows: Sequence[tuple[str, Mapping[str, Any]]], invalid: InvalidRows) -> list[LabelledGroup]:
    """Return a group a prompt, of rows with one completion each."""
    groups: dict[str, LabelledGroup] = {}
    for where, row in rows:
        with invalid.leave_out():
            prompt, completion = _turns(row, "prompt", where), _turns(row, "completion", where)
            column = _one_of(row, ("rank", "score"), where)
            rank = _rank(row[column], where, column)
            key = _key(prompt)
            group = groups.get(key) or LabelledGroup(where, prompt, ())
            groups[key] = replace(group, completions=(*group.completions, completion), ranks=(*group.ranks, rank))
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
    cuts = [slice(start, start + size) for start in range(0, count, size)]
    parts = [replace(group, completions=group.completions[cut], ranks=group.ranks[cut]) for cut in cuts]
    for part in parts:
        if len(set(part.ranks)) < 2:
            problem = "only one completion" if len(part.ranks) == 1 else "the same rank for all completions"
            _refuse(part.where, "prompt", f"has {problem}: there is no ranking to learn; leave it out")
    return parts


def _outcome_group(where: str, row: Mapping[str, Any]) -> LabelledGroup:
    """Return the group of a row whose one completion is right or wrong."""
    prompt, completion = _turns(row, "prompt", where), _turns(row, "completion", where)
    column = _one_of(row, ("correct", "label"), where)
    value = row[column]
    word = str(value).strip().lower()
    if isinstance(value, float) and value in (0.0, 1.0):
        word = str(int(value))
    if word not in _TRUE | _FALSE:
        _refuse(where, column, f"expected true or false, 1 or 0, got {shorten(value)}")
    return LabelledGroup(where, prompt, (completion,), correct=(int(word in _TRUE),))


def _step_group(where: str, row: Mapping[str, Any], separator: str) -> LabelledGroup:
    """Return the group of a row whose one completion has labelled steps: a list, or text with separators."""
    prompt = _turns(row, "prompt", where)
    column = _one_of(row, ("steps", "completions", "completion"), where)  # "completions" is TRL's name of the steps
    if column == "completion":
        whole = _turns(row, column, where)
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
    labels = [_step_label(value, where, name, number) for number, value in enumerate(_list(row, name, where))]
    if len(labels) != len(steps):
        _refuse(where, name, f"has {len(labels)} labels for {len(steps)} steps")
    return LabelledGroup(where, prompt, (whole,), steps=(tuple(steps),), step_labels=(tuple(labels),))


def _step_label(value: Any, where: str, column: str, number: int) -> int:
    """Return the label that a cell spells, +1, 0 or -1; raise ``DataError`` for any other."""
    if isinstance(value, bool):
        return _STEP_LABELS[value]
    cell = value.strip().lower() if isinstance(value, str) else value
    if cell in ("true", "false"):
        return _STEP_LABELS[cell == "true"]
    try:
        label = float(cell)
    except (TypeError, ValueError):
        label = math.nan  # no label, as every other number
    if label not in (-1, 0, 1):
        _refuse(where, column, f"of step {number}: expected +1, 0, -1, true or false, got {shorten(value)}")
    return int(label)


def _one_of(row: Mapping[str, Any], names: Sequence[str], where: str) -> str:
    """Return the first of the columns that a row has; raise ``DataError`` if it lacks them all."""
    for name in names:
        if row.get(name) is not None:
            return name
    others = f" (or {', '.join(map(repr, names[1:]))})" if len(names) > 1 else ""
    has = ", ".join(repr(name) for name, value in row.items() if value is not None)
    _refuse(where, names[0], f"is missing{others}; it has {has or 'nothing'}")


def _turns(row: Mapping[str, Any], name: str, where: str) -> Any:
    """Return a column's text, or the chat messages that it has or spells."""
    _one_of(row, (name,), where)
    value, content = row[name], _decode_cell(row[name])
    if not isinstance(value, str) or _is_chat(content):
        value = content  # else it is an answer that happens to spell a list, such as [2, 3]
    _check_turns(value, where, name)
    return value


def _is_chat(value: object) -> bool:
    return (
        isinstance(value, list) and value != [] and all(isinstance(turn, Mapping) and "role" in turn for turn in value)
    )


def _check_turns(value: Any, where: str, name: str) -> None:
    """Raise ``DataError`` for what is neither text nor chat messages, or says nothing."""
    if isinstance(value, str):
        if not value.strip():
            _refuse(where, name, "is empty")
        return
    if not _is_chat(value):
        _refuse(where, name, f"expected text or a list of chat messages, got {shorten(value)}")
    if problem := why_no_text(value):
        _refuse(where, name, f"has no messages that can be read: {problem}")
    if not has_text(value):
        _refuse(where, name, "is empty: its messages have no text; leave the row out")


def has_text(turns: str | Sequence[Mapping[str, Any]]) -> bool:
    """Return whether a text, or some message, says anything or calls a tool."""
    messages = [{"content": turns}] if isinstance(turns, str) else turns
    return any(str(message.get("content") or "").strip() or message.get("tool_calls") for message in messages)


def _list(row: Mapping[str, Any], name: str, where: str) -> list[Any]:
    """Return the list that a column has or spells; raise ``DataError`` for an empty one, too."""
    _one_of(row, (name,), where)
    value = _decode_cell(row[name])
    if not isinstance(value, list) or not value:
        _refuse(where, name, f"expected a list that is not empty, got {shorten(value)}")
    return value


def _decode_cell(value: Any) -> Any:
    """Return the list that a cell of CSV spells; arrays and tuples as lists."""
    if isinstance(value, str) and value.startswith("["):
        try:
            return json.loads(value)  # a list, because of the bracket
        except (ValueError, RecursionError):
            return value
    if isinstance(value, tuple):
        return list(value)
    return value.tolist() if hasattr(value, "tolist") else value


def _key(value: object) -> str:
    """Return a prompt or a completion as one text, equal for equal ones."""
    return json.dumps(value, sort_keys=True, default=str)


def _refuse(where: str, column: str, what: str) -> NoReturn:
    raise DataError(f"{where}: column {column!r} {what}")
