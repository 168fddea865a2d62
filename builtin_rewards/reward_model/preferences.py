"""Preferences, read from rows of any form: a prompt with the completions chosen and those rejected."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from builtin_rewards.reward_model.public_sets import refuse_column, usual_rows
from rewardkit import DataError, Rollout
from rewardkit.extending import ROLES, InvalidRows, read_rows, shorten, why_no_text

_log = logging.getLogger("rewardkit")

Turns: TypeAlias = str | list[Mapping[str, Any]]  # A prompt or a completion: text, or chat messages

_NOT_COLUMNS = ("prompt", "chosen", "rejected")
_TURN = re.compile(r"\n\n(Human|Assistant):")
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
    prompt: Turns
    chosen: tuple[Turns, ...]
    rejected: tuple[Turns, ...]
    columns: Mapping[str, Any] = field(default_factory=dict)

    @property
    def rollouts(self) -> list[Rollout]:
        """All its completions as rollouts of one prompt, the chosen ones first."""
        example = {"row": self.where, **self.columns}  # no other row's completions join this group
        return [Rollout(self.prompt, completion, example) for completion in (*self.chosen, *self.rejected)]


def read_preferences(
    path: str | Path, *, limit: int | None = None, invalid: InvalidRows | None = None
) -> list[PreferenceRow]:
    """Return the preferences in a file of JSON Lines (plain or gzip), CSV or Parquet, in its order.

    Args:
        path: The file; ``-`` for standard input. Rows are as :func:`preferences_of` takes them.
        limit: Rows to read; ``None`` for all.
        invalid: What becomes of a row that is wrong; by default it is refused.

    Raises:
        DataError: There is no such file, it has no rows, or a row is wrong; names file, row and column.
    """
    invalid = invalid or InvalidRows()
    rows = read_rows(path, limit=limit, for_trainer=False, invalid=invalid)  # a prompt may be missing
    return _valid_preferences([(f"{path}:{row.line}", row.values) for row in rows], str(path), invalid)


def preferences_of(
    rows: Iterable[Mapping[str, Any]], *, invalid: InvalidRows | None = None, what: str = "rows"
) -> list[PreferenceRow]:
    """Return the preferences that rows stand for.

    A row has ``chosen`` and ``rejected``: text or a conversation of messages, or a list of several of either (as
    RewardBench 2 has them). ``prompt`` is text or messages; without it chosen and rejected are whole conversations,
    messages or text of ``Human:`` and ``Assistant:`` (as hh-rlhf has them), and the prompt is what they begin with
    in common. Rows of JudgeBench, PPE, HelpSteer2 and 3, LLMBar and RMB are taken in their own columns; of these a row
    that prefers neither completion is left out, and a warning says how many were.

    Args:
        rows: The rows.
        invalid: What becomes of a row that is wrong; by default it is refused.
        what: The rows' name in errors.

    Raises:
        DataError: A column is missing or empty, a side is of the wrong type, both sides are equal, or conversations
            have nothing in common; names row and column.
    """
    placed = [(f"row {index}", row) for index, row in enumerate(rows)]
    return _valid_preferences(placed, what, invalid or InvalidRows())


def _valid_preferences(
    rows: Iterable[tuple[str, Mapping[str, Any]]], label: str, invalid: InvalidRows
) -> list[PreferenceRow]:
    """Return rows, each with where it stands, as preferences, without those that are left out."""
    preferences, undecided = list[PreferenceRow](), 0
    for where, row in rows:
        with invalid.leave_out():
            parts = usual_rows(where, row)
            preferences += [_preference(part.values, part.where) for part in parts]
            undecided += not parts
    invalid.check_rest(len(preferences), label)
    if undecided and not preferences:
        raise DataError(f"{label}: no row prefers a completion to another")
    if undecided:
        _log.warning(f"{label}: {undecided:,} of the rows prefer no completion to another, and are left out")
    return preferences


def _preference(row: Mapping[str, Any], where: str) -> PreferenceRow:
    """Return a row as a preference; raise DataError with its place and the wrong column."""
    for name in ("chosen", "rejected"):
        if name not in row:
            refuse_column(where, name, f"is missing; it has {', '.join(map(repr, row)) or 'nothing'}")
    prompt: Any = row.get("prompt")
    chosen, rejected = (_sides(row[name], where, name) for name in ("chosen", "rejected"))
    if prompt is None or prompt == "":
        prompt, chosen, rejected = _split_prompt(chosen, rejected, where)
    else:
        prompt = _decode_cell(prompt, several=False)
        _check(prompt, where, "prompt")
        chosen, rejected = ([_strip_prompt(prompt, completion) for completion in side] for side in (chosen, rejected))
    for completion in chosen:
        if completion in rejected:
            refuse_column(
                where, "chosen", f"equals 'rejected': {shorten(completion)}; a preference takes two that differ"
            )
    columns = {str(name): value for name, value in row.items() if name not in _NOT_COLUMNS}
    return PreferenceRow(where, prompt, tuple(chosen), tuple(rejected), columns)


def _sides(value: object, where: str, name: str) -> list[Any]:
    """Return the completions of one side, one or a list's; raise DataError for an empty or wrong one."""
    content = _decode_cell(value)
    is_list = isinstance(content, Sequence) and not isinstance(content, str) and len(content) > 0
    is_several = is_list and not isinstance(content[0], Mapping)  # messages are one completion
    completions = [*content] if is_several else [content]
    for completion in completions:
        _check(completion, where, name)
    return completions


def _decode_cell(value: object, *, several: bool = True) -> Any:
    """Return what a cell of CSV spells: messages, or several texts or conversations; any other list is a text."""
    if isinstance(value, str) and value.startswith("["):
        try:
            content = json.loads(value)
        except (ValueError, RecursionError):
            return value
        if _is_chat(content):
            return content
        is_list = several and isinstance(content, list) and len(content) > 0
        return content if is_list and ({*map(type, content)} == {str} or all(map(_is_chat, content))) else value
    return value.tolist() if hasattr(value, "tolist") else value


def _is_chat(value: object) -> bool:
    return isinstance(value, list) and value != [] and all(isinstance(turn, dict) and "role" in turn for turn in value)


def _check(value: object, where: str, name: str) -> None:
    """Raise DataError for a prompt or completion that is empty, or neither text nor messages."""
    if value is None or value in ("", []) or (isinstance(value, str) and not value.strip()):
        refuse_column(where, name, "is empty; a preference takes a prompt and completions on both sides")
    if isinstance(value, str):
        return
    if not isinstance(value, list):
        refuse_column(where, name, f"expected text or a list of messages, got {shorten(value)}")
    for message in value:
        if not isinstance(message, Mapping) or message.get("role") not in ROLES:
            refuse_column(where, name, f"expected messages with a role ({', '.join(ROLES)}), got {shorten(message)}")
    if problem := why_no_text(value):
        refuse_column(where, name, f"has no messages that can be read: {problem}")


def _strip_prompt(prompt: Turns, completion: Turns) -> Any:
    """Return a completion without the prompt that a whole conversation repeats."""
    opening = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt)
    if not isinstance(completion, list) or len(completion) <= len(opening):
        return completion
    pairs = zip(completion, opening, strict=False)
    repeats = all(turn.get(key) == other.get(key) for turn, other in pairs for key in ("role", "content"))
    return completion[len(opening) :] if repeats else completion


def _split_prompt(chosen: list[Any], rejected: list[Any], where: str) -> tuple[Any, list[Any], list[Any]]:
    """Return the prompt that conversations have in common, and what follows it in each; raise DataError without it."""
    conversations = [_turns(conversation, where) for conversation in (*chosen, *rejected)]
    length = 0
    while all(len(turns) > length + 1 and turns[length] == conversations[0][length] for turns in conversations):
        length += 1
    if not length:
        refuse_column(where, "prompt", "is missing, and 'chosen' and 'rejected' do not begin with the same message")
    endings = [turns[length:] for turns in conversations]
    return conversations[0][:length], endings[: len(chosen)], endings[len(chosen) :]


def _turns(conversation: Turns, where: str) -> list[Any]:
    """Return a conversation's messages; raise DataError for a text without turns of both speakers."""
    if not isinstance(conversation, str):
        return list(conversation)
    text = conversation if conversation.startswith("\n\n") else f"\n\n{conversation.lstrip()}"
    preamble, *parts = _TURN.split(text)
    if preamble or len(parts) < 4:
        refuse_column(where, "prompt", "is missing, and a side is text without turns of 'Human:' and 'Assistant:'")
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return [{"role": _ROLE[speaker], "content": content.strip()} for speaker, content in pairs]
