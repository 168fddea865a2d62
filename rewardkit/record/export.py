"""A record as a flat table: one row a completion, under names that TRL and its users know."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rewardkit.record.call_metrics import STRETCH
from rewardkit.record.reader import RunReader
from rewardkit.record.values import Completion, RecordedPrompt
from rewardkit.types import Text

BEFORE = ("step", "prompt", "completion")
AFTER = (
    "advantage", "reward", "total", "plain_sum", "epoch", "split", "rank", "prompt_index", "batch", "group", "tokens",
    "truncated", "id",
)  # fmt: skip
DETAILS = ("status", "reason", "cause", "error", "version")  # What each reward has beside its score, as `NAME.status`
_BASE_KINDS = {
    "prompt": "text", "completion": "text", "split": "text", "truncated": "bool",
    "advantage": "float", "reward": "float", "total": "float", "plain_sum": "float", "epoch": "float",
}  # fmt: skip
_INT64 = range(-(2**63), 2**63)


class ExportColumn(NamedTuple):
    """One column of an exported record."""

    name: str  # Its name, which no other column has
    kind: str  # `"int"`, `"float"`, `"bool"` or `"text"`; any of them may be `None`
    value: Callable[[Completion], Any]  # Returns a completion's value


def export_columns(run: RunReader) -> list[ExportColumn]:
    """Return the columns of a record: TRL's and the record's own, then each reward's and its metrics, then the data's.

    A reward's score has the reward's name, as in TRL's own table of completions, unless another column has that name:
    then it is ``reward.NAME``. Its metrics are ``NAME.METRIC``, or ``NAME.metric.METRIC`` where another column has that
    name. A column of the data is ``column.NAME``, as a number, a truth value or a text where all rows agree, else as
    JSON.
    """
    rewards = reward_names(run.rewards)
    kinds = _kinds(run.prompts())
    base = {name: ExportColumn(name, _BASE_KINDS.get(name, "int"), _base(name)) for name in (*BEFORE, *AFTER)}
    details = {"version": "int"}
    taken = {*base, *rewards.values(), *(f"{name}.{detail}" for name in rewards.values() for detail in DETAILS)}
    return [
        *(base[name] for name in BEFORE),
        *(ExportColumn(title, "float", _score(reward)) for reward, title in rewards.items()),
        *(base[name] for name in AFTER),
        *(
            ExportColumn(f"{title}.{detail}", details.get(detail, "text"), _detail(reward, detail))
            for reward, title in rewards.items()
            for detail in DETAILS
        ),
        *_metric_columns(run, rewards, taken),
        *(
            ExportColumn(_free(f"column.{name}", taken), "text" if kind == "json" else kind, _of_data(name, kind))
            for name, kind in kinds.items()
        ),
    ]


def export_rows(run: RunReader, columns: Sequence[ExportColumn], last: int) -> Iterator[dict[str, Any]]:
    """Yield a row for each completion up to the ``id`` ``last``; read ``last`` before the columns: a run may grow."""
    for completion in run.completions():
        if completion.id > last:
            return
        yield {column.name: column.value(completion) for column in columns}


def reward_names(rewards: Sequence[str]) -> dict[str, str]:
    """Return the names of rewards' columns, by reward; each differs from the names of the other columns."""
    taken = {*BEFORE, *AFTER}
    titles = {}
    for name in rewards:
        title = name
        while not taken.isdisjoint((title, *(f"{title}.{detail}" for detail in DETAILS))):
            title = f"reward.{title}"
        taken |= {title, *(f"{title}.{detail}" for detail in DETAILS)}
        titles[name] = title
    return titles


def _metric_columns(run: RunReader, rewards: Mapping[str, str], taken: set[str]) -> list[ExportColumn]:
    """Return a column for each metric of each reward, and add their names to ``taken``."""
    columns = []
    for reward, title in rewards.items():
        stretches = (run.metrics_of(reward, start, start + STRETCH) for start in range(0, run.last_id, STRETCH))
        for metric in dict.fromkeys(name for rows in stretches for _, metrics in rows for name in metrics):
            name, parent = f"{title}.{metric}", title
            while name in taken:
                parent = f"{parent}.metric"
                name = f"{parent}.{metric}"
            taken.add(name)
            columns.append(ExportColumn(name, "float", _metric(reward, metric)))
    return columns


def _metric(reward: str, metric: str) -> Callable[[Completion], float | None]:
    return lambda row: row.outcomes[reward].metrics.get(metric) if reward in row.outcomes else None


def _free(name: str, taken: set[str]) -> str:
    """Return a name behind ``column.`` until it is free, and add it to ``taken``."""
    while name in taken:
        name = f"column.{name}"
    taken.add(name)
    return name


def _base(name: str) -> Callable[[Completion], Any]:
    if name in ("prompt", "completion"):
        return lambda completion: _as_text(getattr(completion, name))
    return lambda completion: getattr(completion, name)


def _as_text(text: Text | None) -> str | None:
    """Return a text, and messages as JSON, both of which UTF-8 can say."""
    return None if text is None else sayable(text) if isinstance(text, str) else _json(text)


def _score(reward: str) -> Callable[[Completion], float | None]:
    return lambda completion: completion.outcomes[reward].score if reward in completion.outcomes else None


def _detail(reward: str, name: str) -> Callable[[Completion], Any]:
    """Return what reads a detail of a reward's outcome, or its version; ``None`` where there is no outcome."""

    def value(completion: Completion) -> Any:
        outcome = completion.outcomes.get(reward)
        if outcome is None:
            return None
        if name == "version":
            return completion.versions[reward]
        detail = getattr(outcome, name)
        return None if detail is None else sayable(str(detail))

    return value


def _of_data(name: str, kind: str) -> Callable[[Completion], Any]:
    """Return what reads a column of the data, as a value of the kind that the column has in all rows."""

    def value(completion: Completion) -> Any:
        cell = completion.columns.get(name)
        if cell is None:
            return None
        if kind == "json":
            return _json(cell)
        return float(cell) if kind == "float" else sayable(cell) if kind == "text" else cell

    return value


def _kinds(prompts: Iterable[RecordedPrompt]) -> dict[str, str]:
    """Return the kind of each column of the data."""
    kinds_of: dict[str, set[str]] = {}
    for prompt in prompts:
        for name, value in prompt.columns.items():
            kinds_of.setdefault(name, set()).update(() if value is None else (_kind(value),))
    return {name: _joint(kinds) for name, kinds in kinds_of.items()}


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int" if value in _INT64 else "json"
    return "float" if isinstance(value, float) else "text" if isinstance(value, str) else "json"


def _joint(kinds: set[str]) -> str:
    if kinds == {"int", "float"}:
        return "float"
    return kinds.pop() if len(kinds) == 1 else "json" if kinds else "text"


def _json(value: object) -> str:
    return sayable(json.dumps(value, ensure_ascii=False))


def sayable(text: str) -> str:
    """Return a text with halves of surrogate pairs, which UTF-8 cannot say, written out."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def lists_by_column(columns: Sequence[ExportColumn], rows: Iterable[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return the values of rows as lists, by column."""
    lists: dict[str, list[Any]] = {column.name: [] for column in columns}
    for row in rows:
        for name, value in row.items():
            lists[name].append(value)
    return lists
