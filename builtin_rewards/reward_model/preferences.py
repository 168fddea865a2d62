"""Preferences: a prompt with the completions that were chosen and those that were rejected, read from rows of any form.

Owns the reading and the checks. A row is a pair, one chosen completion among several, or several that are all right.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

from rewardkit import DataError, Rollout
from rewardkit.extending import ROLES, read_rows, shorten

Spoken: TypeAlias = str | list[Mapping[str, Any]]
"""A prompt or a completion: text, or chat messages."""

_NOT_COLUMNS = ("prompt", "chosen", "rejected")
_SAID = re.compile(r"\n\n(Human|Assistant):")
_ROLE = {"Human": "user", "Assistant": "assistant"}


@dataclass(frozen=True, slots=True)
class PreferenceRow:
    """One row of a preference set.

    Attributes:
        where: Where it stands, for errors: ``pairs.jsonl:3``.
        prompt: What was asked.
        chosen: The completions that were chosen; more than one where several are right.
        rejected: The completions that were rejected.
        columns: The row's other columns.
    """

    where: str
    prompt: Spoken
    chosen: tuple[Spoken, ...]
    rejected: tuple[Spoken, ...]
    columns: Mapping[str, Any] = field(default_factory=dict)

    @property
    def rollouts(self) -> list[Rollout]:
        """All its completions as rollouts of one prompt, the chosen ones first."""
        example = {"row": self.where, **self.columns}  # no other row's completions join this group
        return [Rollout(self.prompt, one, example) for one in (*self.chosen, *self.rejected)]


def read_preferences(path: str | Path, *, limit: int | None = None) -> list[PreferenceRow]:
    """Return the preferences in a file of JSON Lines (plain or gzip), CSV or Parquet, in its order.

    Args:
        path: The file; ``-`` for standard input. Rows are as :func:`preferences_of` takes them.
        limit: Rows to read; ``None`` for all.

    Raises:
        DataError: There is no such file, it has no rows, or a row is wrong; names file, row and column.
    """
    rows = read_rows(path, needs=("chosen", "rejected"), limit=limit)
    return [_preference(row.values, f"{path}:{row.line}") for row in rows]


def preferences_of(rows: Iterable[Mapping[str, Any]]) -> list[PreferenceRow]:
    """Return the preferences that rows stand for.

    A row has ``chosen`` and ``rejected``: text or a conversation of messages, or a list of several of either (as
    RewardBench 2 has them). ``prompt`` is text or messages; without it chosen and rejected are whole conversations,
    messages or text of ``Human:`` and ``Assistant:`` (as hh-rlhf has them), and the prompt is what they begin with
    in common.

    Raises:
        DataError: A column is missing or empty, a side is of the wrong type, both sides are equal, or conversations
            have nothing in common; names row and column.
    """
    return [_preference(row, f"row {place}") for place, row in enumerate(rows)]


def _preference(row: Mapping[str, Any], where: str) -> PreferenceRow:
    for name in ("chosen", "rejected"):
        if name not in row:
            _refuse(where, name, f"is missing; it has {', '.join(map(repr, row)) or 'nothing'}")
    prompt: Any = row.get("prompt")
    chosen, rejected = (_sides(row[name], where, name) for name in ("chosen", "rejected"))
    if prompt is None or prompt == "":
        prompt, chosen, rejected = _split(chosen, rejected, where)
    else:
        prompt = _decoded(prompt, several=False)
        _check(prompt, where, "prompt")
        chosen, rejected = ([_without(prompt, one) for one in side] for side in (chosen, rejected))
    for one in chosen:
        if one in rejected:
            _refuse(where, "chosen", f"equals 'rejected': {shorten(one)}; a preference takes two that differ")
    columns = {str(name): value for name, value in row.items() if name not in _NOT_COLUMNS}
    return PreferenceRow(where, prompt, tuple(chosen), tuple(rejected), columns)


def _sides(value: Any, where: str, name: str) -> list[Any]:
    """Return the completions of one side: one, or several where the column holds a list of them."""
    value = _decoded(value)
    several = isinstance(value, Sequence) and not isinstance(value, str) and len(value) > 0
    listed = list(value) if several and not isinstance(value[0], Mapping) else [value]
    for one in listed:
        _check(one, where, name)
    return listed


def _decoded(value: Any, *, several: bool = True) -> Any:
    """Return what a cell of CSV spells: messages, or several texts or conversations; any other list is a text.

    Arrays of other libraries become lists.
    """
    if isinstance(value, str) and value.startswith("["):
        try:
            found = json.loads(value)
        except (ValueError, RecursionError):
            return value
        is_several = (
            several and isinstance(found, list) and ({type(one) for one in found} == {str} or all(map(_is_chat, found)))
        )
        return found if _is_chat(found) or (found and is_several) else value
    return value.tolist() if hasattr(value, "tolist") else value


def _is_chat(value: object) -> bool:
    return isinstance(value, list) and value != [] and all(isinstance(one, dict) and "role" in one for one in value)


def _check(value: Any, where: str, name: str) -> None:
    if value is None or value in ("", []) or (isinstance(value, str) and not value.strip()):
        _refuse(where, name, "is empty; a preference takes a prompt and completions on both sides")
    if isinstance(value, str):
        return
    if not isinstance(value, list):
        _refuse(where, name, f"expected text or a list of messages, got {shorten(value)}")
    for one in value:
        if not isinstance(one, Mapping) or one.get("role") not in ROLES:
            _refuse(where, name, f"expected messages with a role ({', '.join(ROLES)}), got {shorten(one)}")


def _without(prompt: Any, completion: Any) -> Any:
    """Return a completion without the prompt that a whole conversation repeats."""
    begins = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt)
    is_whole = isinstance(completion, list) and len(completion) > len(begins)
    same = is_whole and [_words(one) for one in completion[: len(begins)]] == [_words(one) for one in begins]
    return completion[len(begins) :] if same else completion


def _words(message: Mapping[str, Any]) -> tuple[Any, Any]:
    return message.get("role"), message.get("content")


def _split(chosen: list[Any], rejected: list[Any], where: str) -> tuple[Any, list[Any], list[Any]]:
    """Return the prompt that conversations have in common, and what follows it in each."""
    wholes = [_turns(one, where) for one in (*chosen, *rejected)]
    shared = 0
    while all(len(one) > shared + 1 and one[shared] == wholes[0][shared] for one in wholes):
        shared += 1
    if not shared:
        _refuse(where, "prompt", "is missing, and 'chosen' and 'rejected' do not begin with the same message")
    rests = [one[shared:] for one in wholes]
    return wholes[0][:shared], rests[: len(chosen)], rests[len(chosen) :]


def _turns(whole: Any, where: str) -> list[Any]:
    if not isinstance(whole, str):
        return list(whole)
    text = whole if whole.startswith("\n\n") else f"\n\n{whole.lstrip()}"
    before, *parts = _SAID.split(text)
    if before or len(parts) < 4:
        _refuse(where, "prompt", "is missing, and a side is text without turns of 'Human:' and 'Assistant:'")
    return [{"role": _ROLE[who], "content": said.strip()} for who, said in zip(parts[::2], parts[1::2], strict=True)]


def _refuse(where: str, column: str, what: str) -> NoReturn:
    raise DataError(f"{where}: column {column!r} {what}")
