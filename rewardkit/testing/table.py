"""Tables of cases: what a reward should make of given completions, from a file or a Python list."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rewardkit.declare.compose import Composable
from rewardkit.errors import ConfigError, DataError, MissingColumnError
from rewardkit.runtime.names import columns_read
from rewardkit.runtime.plan import check_rollouts
from rewardkit.shown.text import counted, meant, shortened
from rewardkit.testing.expectation import TOLERANCE, Expectation, parse_expectation, parse_tolerance
from rewardkit.testing.source import SETTINGS, Entry, Source, parse, read_text
from rewardkit.types import Cause, Rollout, Text

_KEYS = ("id", "prompt", "completion", "completions", "completion_ids", "example", "step", "epoch", "expect")
_FOREIGN_KEYS = {
    **dict.fromkeys(("name", "title", "case", "test", "label", "description"), "id"),
    **dict.fromkeys(("expected", "score", "scores", "want", "should_be", "gold_score"), "expect"),
    **dict.fromkeys(("response", "output", "generation", "text"), "completion"),
    **dict.fromkeys(("question", "query", "input", "instruction"), "prompt"),
}
"""What other tables of cases call a key, and what it is called here."""
_ID_CHARS = 40
_ENDING = tuple(cause for cause in Cause if cause.ends_process)


@dataclass(frozen=True, slots=True)
class Case:
    """One row of a table.

    Attributes:
        id: Its name in reports, unique in the table: its own ``id``, or its completion, shortened.
        entry: The case as written.
        rollouts: The one rollout, or with ``completions`` the rollouts of a group.
        expected: The expectation for each rollout.
        group: Whether it was given as ``completions``.
        step: Optimizer steps done, for rewards that ask.
        epoch: Passes over the data done, for rewards that ask.
    """

    id: str
    entry: Entry
    rollouts: tuple[Rollout, ...]
    expected: tuple[Expectation, ...]
    group: bool = False
    step: int | None = None
    epoch: float | None = None

    @property
    def where(self) -> str:
        """File and line, or the place in a Python list."""
        return self.entry.where

    @property
    def needs_worker(self) -> bool:
        """Whether it expects what only a worker process survives to tell."""
        return any(expectation.cause in _ENDING for expectation in self.expected)


@dataclass(frozen=True, slots=True)
class Table:
    """Cases, and the reward that they are for.

    Attributes:
        name: The file, or words for a Python list.
        cases: The cases, at least one.
        reward: A reference to the reward, relative to the file's folder made absolute; ``None`` if not named.
        path: The file; ``None`` for a Python list.
        text: The file's text.
    """

    name: str
    cases: tuple[Case, ...]
    reward: str | None = None
    path: Path | None = None
    text: str = ""

    def check(self, reward: Composable) -> None:
        """Check that a reward can score each case of the table.

        Raises:
            DataError: A case lacks a column that the reward needs; names file and line.
        """
        for case in self.cases:
            try:
                check_rollouts(reward.leaves, case.rollouts, whose="the case")
            except MissingColumnError as missing:
                raise MissingColumnError(f"{case.where}: {missing}") from None

    def unread(self, reward: Composable) -> list[str]:
        """Return a sentence for each key of the cases that is a column and that the reward does not read.

        It names the key that was meant, where one is near: a key of cases, a setting, or a column with a default.
        """
        columns = columns_read(reward.leaves)
        if columns is None:
            return []
        cases: dict[str, list[Case]] = {}
        for case in self.cases:
            for key in case.rollouts[0].example:
                if key not in columns:
                    cases.setdefault(key, []).append(case)
        return [
            f"{_cases_with(own)}: {key!r} is read by no reward{_key_meant(key, own[0], columns)}"
            for key, own in cases.items()
        ]

    def lane(self, request: str | None) -> str:
        """Return the lane to run in: the one asked for, or ``inline`` unless a case needs a worker process.

        Raises:
            ConfigError: The lane asked for cannot run a case.
        """
        needy = next((case for case in self.cases if case.needs_worker), None)
        if request == "inline" and needy is not None:
            causes = " or ".join(map(repr, map(str, _ENDING)))
            raise ConfigError(f"{needy.where}: 'expect': a case that fails with {causes} needs the lane 'worker'")
        return request or ("inline" if needy is None else "worker")


def read_table(path: str | Path, *, tolerance: float | None = None) -> Table:
    """Return the table of cases in a YAML or JSON Lines file.

    Args:
        path: The file, in UTF-8.
        tolerance: How far a score may be from the expected one, instead of what the file says.

    Raises:
        DataError: It is not a table of cases; names file, line and key.
    """
    path = Path(path)
    text = read_text(path)
    source = parse(path, text)
    settings = source.settings
    unknown = [key for key in settings.values if key not in SETTINGS]
    if unknown:
        settings.refuse(unknown[0], f"no such setting; a table has {', '.join(SETTINGS)}{meant(unknown[0], SETTINGS)}")
    reward = settings.values.get("reward")
    if not isinstance(reward, str | None):
        settings.refuse("reward", f"expected a reference such as my_rewards.py:correct, got {reward!r}")
    cases = _cases(str(path), source, _tolerance(settings, tolerance))
    return Table(str(path), cases, None if reward is None else _beside(path, reward), path, text)


def table_of(rows: Iterable[Mapping[str, Any]], *, tolerance: float | None = None) -> Table:
    """Return the table of a Python list of cases.

    Raises DataError, which names place and key, where a row is not a case.
    """
    rows = list(rows)
    for index, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise DataError(f"cases[{index}]: expected a dict, got {type(row).__name__}")
    entries = [Entry(f"cases[{index}]", dict(row)) for index, row in enumerate(rows)]
    settings = Entry("cases", {})
    return Table("cases", _cases("cases", Source(settings, entries), _tolerance(settings, tolerance)))


def _tolerance(settings: Entry, request: float | None) -> float:
    try:
        return parse_tolerance(settings.values.get("tolerance", TOLERANCE) if request is None else request)
    except ValueError as wrong:
        if request is not None:
            raise ConfigError(f"tolerance: {wrong}") from None
        settings.refuse("tolerance", str(wrong))


def _beside(path: Path, reference: str) -> str:
    """Return a reference with the path of its file made absolute, from the table's folder."""
    file, colon, name = reference.partition(":")
    if file.endswith(".py") and not Path(file).is_absolute():
        return f"{path.resolve().parent / file}{colon}{name}"
    return reference


def _cases(name: str, source: Source, tolerance: float) -> tuple[Case, ...]:
    if not source.entries:
        raise DataError(f"{name}: no cases in it")
    ids = _ids(source.entries)
    return tuple(_case(entry, label, tolerance) for entry, label in zip(source.entries, ids, strict=True))


def _ids(entries: Sequence[Entry]) -> list[str]:
    """Return an id for each case; completions that look alike when shortened get a number."""
    entries_by_id: dict[str, Entry] = {}
    labels: list[str | None] = [None] * len(entries)
    for index, entry in enumerate(entries):
        if "id" not in entry.values:
            continue
        label = shortened(str(entry.values["id"]), 4 * _ID_CHARS)
        if not label:
            entry.refuse("id", "expected some text")
        if label in entries_by_id:
            entry.refuse("id", f"{label!r} is the id of {entries_by_id[label].where} too")
        entries_by_id[label] = entry
        labels[index] = label
    taken_ids = Counter(entries_by_id)
    return [
        _free(_default_id(entry.values), taken_ids) if own is None else own
        for entry, own in zip(entries, labels, strict=True)
    ]


def _free(label: str, taken: Counter[str]) -> str:
    """Return the label, or with a number where it is taken, and note that it is taken now."""
    free = label
    while taken[free]:
        taken[label] += 1
        free = f"{label} #{taken[label]}"
    taken[free] += 1
    return free


def _default_id(values: Mapping[str, Any]) -> str:
    """Return the id of a case without one: its completion, shortened, or words for one of whitespace alone."""
    completion = values.get("completion", values.get("completions", ""))
    if isinstance(completion, str) and not completion.strip():
        return "empty" if not completion else f"whitespace {completion[:8]!a}"
    return shortened(completion if isinstance(completion, str) else str(completion), _ID_CHARS)


def _case(entry: Entry, label: str, tolerance: float) -> Case:
    """Return the case that an entry has; DataError, which names place and key, where something in it is wrong."""
    values = entry.values
    if "messages" in values:
        entry.refuse("messages", "made of prompt and completion; give these, as strings or lists of messages")
    rollouts = rollouts_of(entry, _example(entry))
    group = "completions" in values
    expected = _expectations(entry, len(rollouts), tolerance, group=group)
    return Case(label, entry, rollouts, expected, group, values.get("step"), values.get("epoch"))


def rollouts_of(entry: Entry, example: Mapping[str, Any]) -> tuple[Rollout, ...]:
    """Return the rollout of an entry's ``completion``, or those of its ``completions``, with these columns.

    Raises DataError, which names place and key, where it has neither or both, or one is not text.
    """
    values = entry.values
    if ("completion" in values) == ("completions" in values):
        entry.refuse(None, f"expected 'completion', or 'completions' for a group; it has {_names(values)}")
    key = "completions" if "completions" in values else "completion"
    texts = values[key] if key == "completions" else [values[key]]
    if not isinstance(texts, list | tuple) or not texts:
        entry.refuse("completions", f"expected a list of completions, got {texts!r}")
    prompt = _text(entry, "prompt", values.get("prompt", ""))
    ids = _completion_ids(entry, len(texts), group=key == "completions")
    return tuple(Rollout(prompt, _text(entry, key, text), example, own) for text, own in zip(texts, ids, strict=True))


def _text(entry: Entry, key: str, value: object) -> Text:
    """Return a prompt or a completion: a string or a list of messages; DataError for anything else."""
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple) and not value:
        entry.refuse(key, "expected a string or a list of messages with 'role'; an empty list holds no message")
    if not isinstance(value, list | tuple) or not all(
        isinstance(message, Mapping) and isinstance(message.get("role"), str) for message in value
    ):
        entry.refuse(key, f"expected a string or a list of messages with 'role', got {shortened(repr(value), 60)}")
    return list(value)


def _example(entry: Entry) -> dict[str, Any]:
    """Return the columns: every key that has no other meaning, and what stands under ``example``."""
    flat = {key: value for key, value in entry.values.items() if key not in _KEYS}
    nested = entry.values.get("example", {})
    if not isinstance(nested, Mapping):
        entry.refuse("example", f"expected a mapping of columns, got {nested!r}")
    twice = [key for key in nested if key in flat]
    if twice:
        entry.refuse(twice[0], "stands beside 'example' and in it; a column has one value")
    return {**flat, **nested}


def _completion_ids(entry: Entry, completions: int, *, group: bool) -> list[list[int] | None]:
    """Return the token ids of each completion, ``None`` for each where the case has none."""
    value = entry.values.get("completion_ids")
    if value is None:
        return [None] * completions
    ids = value if group else [value]
    is_whole = isinstance(ids, list) and len(ids) == completions
    if not is_whole or not all(isinstance(own, list) and all(type(token) is int for token in own) for own in ids):
        entry.refuse("completion_ids", f"expected a list of whole numbers{' a completion' if group else ''}")
    return list(ids)


def _expectations(entry: Entry, completions: int, tolerance: float, *, group: bool) -> tuple[Expectation, ...]:
    """Return the expectation of each completion; DataError where one is missing or cannot be read."""
    if "expect" not in entry.values:
        similar_keys = [key for key in entry.values if key in ("expected", "score", "scores", "reward")]
        hint = f"; {similar_keys[0]!r} would be a column" if similar_keys else ""
        entry.refuse(None, f"'expect' is missing; it has {_names(entry.values)}{hint}")
    value = entry.values["expect"]
    if group and (not isinstance(value, list | tuple) or len(value) != completions):
        entry.refuse("expect", f"expected a list of {completions}, one a completion, got {value!r}")
    try:
        return tuple(parse_expectation(expected, tolerance) for expected in (value if group else [value]))
    except ValueError as wrong:
        entry.refuse("expect", str(wrong))


def _cases_with(cases: Sequence[Case]) -> str:
    more = f" and {counted(len(cases) - 1, 'more case')}" if len(cases) > 1 else ""
    return f"{cases[0].where}{more}"


def _key_meant(key: str, case: Case, columns: Collection[str]) -> str:
    """Return which key was meant in a case by one that nothing reads, or a near column; ``""`` where none is near."""
    if key in SETTINGS:
        return f"; {key!r} is a setting of the table, beside 'cases'"
    free = [name for name in (*_KEYS, *columns) if name not in case.entry.values]
    meaning = _FOREIGN_KEYS.get(key)
    if meaning in free:
        return f"; here that is {meaning!r}"
    near = next(iter(difflib.get_close_matches(key, free, n=1)), None)
    if near is None or near in _KEYS:
        return meant(key, free)
    return f"; a reward reads the near name {near!r}: use one name in case and reward"


def _names(values: Mapping[str, Any]) -> str:
    return ", ".join(repr(key) for key in values) or "nothing"
