"""The prompts of a run, one prompt through the epochs, the completions of a step, and one completion."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rewardkit.dashboard.as_json import attributes, call_fields, output_fields, plain, text_json
from rewardkit.dashboard.prompt_index import PromptIndex
from rewardkit.dashboard.query import SPLITS, Query
from rewardkit.dashboard.readers import NotThere, OpenRun
from rewardkit.dashboard.views.completion_table import table
from rewardkit.dashboard.views.pictures import column_pictures, with_pictures
from rewardkit.dashboard.views.questions import is_per_question, question_columns
from rewardkit.record.as_text import value_text
from rewardkit.record.batch_rows import LETTERS
from rewardkit.record.table import CompletionTable, Floats, Whole
from rewardkit.record.values import RecordedPrompt
from rewardkit.shown.text import beginning
from rewardkit.types import Outcome, Status

PAGE, MOST = 50, 200  # Rows of a page unless asked otherwise, and at most
GROUPS = 10  # Prompts on a page of a step's completions
ENDS = 4  # Completions of a prompt that such a page shows from either end
EPOCH_IDS = 2000  # Completions of one epoch that the arrows go through
PREVIEW = 240  # Characters of a text in a row of a table
MOST_COLUMNS, MOST_OF_PROMPT = 40, 200
"""Columns of a row of data that the table of prompts shows, and that stand beside one prompt."""
TEXT_CHARS = 20_000  # Characters of a column's value, a reason, an error or an output that stand beside a completion
SORTS = ("index", "text", "length", "epochs", "completions", "best", "mean", "first_mean", "last_mean", "change")
ORDERS = ("up", "down")
SEVERAL = "several"  # What stands in a column that differs between the rows of a question
_STATUS = {letter: status for status, letter in LETTERS.items()}

Mask = NDArray[np.bool_]


def prompts(opened: OpenRun, query: Query) -> dict[str, Any]:
    """Return a page of the table of prompts.

    Query: ``sort`` (a name of ``SORTS``, or ``column:`` and a column), ``order``, ``search`` in the text, ``column``
    and ``value`` to filter by, ``reward`` whose scores are meant instead of the totals, ``per`` (``prompt``, or
    ``question``: all rows with one prompt, as in a scored file unless asked otherwise), ``offset``, ``limit``.
    ``reading`` says what is not read yet: ask again.
    """
    run, prompt_index = opened.run, opened.cache.get("prompts", 0, PromptIndex)
    rewards = run.rewards
    reward = query.choice("reward", rewards) if query.text("reward") else None
    sort, down = query.text("sort", "index"), query.choice("order", ORDERS, "up") == "down"
    search, column, value = query.text("search"), query.text("column"), query.text("value")
    offset, limit = query.integer("offset", 0, low=0), query.integer("limit", PAGE, low=1, high=MOST)
    per_question = is_per_question(opened, query)
    if sort not in SORTS and not sort.startswith("column:"):
        query.choice("sort", SORTS, "index")  # says what is expected
    with prompt_index.lock:
        index = prompt_index.of(reward, per_question=per_question)
        reading = [index.update(run)]
        if sort in ("text", "length") or sort.startswith("column:") or (column and value):
            reading.append(index.read_texts(run))
        order = index.order(sort, descending=down)
        if column and value:
            order = order[index.column_mask(column, value)[order]]
        if search:
            mask, progress = index.search(run, search)
            reading.append(progress)
            order = order[mask[order]]
        page = order[offset : offset + limit]
        numbers = _prompt_numbers(index, page)
        total = len(index)
        several = bool((index.epochs > 1).any())
        names = dict.fromkeys(index.column_names)
    texts = _prompts(opened, page)
    if per_question:
        texts = {number: _without_differing(opened, prompt, index.questions) for number, prompt in texts.items()}
    names |= dict.fromkeys(itertools.chain.from_iterable(text.columns for text in texts.values()))
    columns = list(names)[:MOST_COLUMNS]
    rows = [
        row | _prompt_text(texts.get(row["index"])) | {"columns": _row_columns(texts.get(row["index"]), columns)}
        for row in numbers
    ]
    return {
        "total": total,
        "matched": len(order),
        "offset": offset,
        "limit": limit,
        "several_epochs": several,
        "per": "question" if per_question else "prompt",
        "rewards": rewards,
        "reward": reward,
        "columns": columns,
        "columns_left": len(names) - len(columns),
        "reading": next((progress._asdict() for progress in reading if progress.unfinished), None),
        "rows": rows,
    }


def _without_differing(opened: OpenRun, prompt: RecordedPrompt, questions: Whole) -> RecordedPrompt:
    """Return a prompt with ``several`` in the columns that differ between the rows of its question."""
    columns = question_columns(opened, np.flatnonzero(questions == prompt.index).tolist())
    return RecordedPrompt(prompt.index, prompt.prompt, columns.shared | dict.fromkeys(columns.differing, SEVERAL))


def _prompt_numbers(index: PromptIndex, page: Whole) -> list[dict[str, Any]]:
    """Return the numbers of the prompts on a page, a row each."""
    means = {name: getattr(index, name) for name in ("mean", "first_mean", "last_mean", "change")}
    return [
        {
            "index": int(number),
            "completions": int(index.completions[number]),
            "epochs": int(index.epochs[number]),
            "first_epoch": _epoch(index.first_epoch[number]),
            "last_epoch": _epoch(index.last_epoch[number]),
            "best": _number(index.best[number]),
            **{name: _number(values[number]) for name, values in means.items()},
        }
        for number in page
    ]


def _prompt_text(prompt: RecordedPrompt | None) -> dict[str, Any]:
    if prompt is None:
        return {"text": None, "length": None}
    text = plain(prompt.prompt)
    return {"text": text[:PREVIEW], "length": len(text)}


def _row_columns(prompt: RecordedPrompt | None, names: Sequence[str]) -> dict[str, str]:
    columns = {} if prompt is None else prompt.columns
    return {name: value_text(columns[name])[:PREVIEW] for name in names if name in columns}


def _prompts(opened: OpenRun, indices: Iterable[int]) -> dict[int, RecordedPrompt]:
    """Return prompts by their indices; those that stand side by side are read at once."""
    return {prompt.index: prompt for prompt in opened.run.prompts_by_index([int(index) for index in indices])}


def prompt(opened: OpenRun, query: Query) -> dict[str, Any]:
    """Return one prompt: its row, its epochs, the two completions to compare first, and a page of all completions.

    Query: ``prompt``, ``sort`` (``id``, ``step``, ``epoch``, ``total`` or ``reward``, ``plain_sum``, ``advantage``,
    ``tokens``, or a key of ``rewards``), ``order``, the filters of :func:`completions`, ``per`` as in :func:`prompts`,
    ``offset``, ``limit``, ``rest`` for the whole text.
    """
    run = opened.run
    number, per_question = query.integer("prompt", 0, low=0), is_per_question(opened, query)
    recorded = run.prompt(number)
    table, epochs, splits = opened.cache.get(
        ("prompt", number, per_question), opened.version, lambda: _of_prompt(opened, number, per_question=per_question)
    )
    columns = question_columns(opened, [number, *table.prompts.tolist()])
    shared = dict(itertools.islice(columns.shared.items(), MOST_OF_PROMPT))
    differing = columns.differing[:MOST_COLUMNS]
    rewards = _rewards(opened, table)
    down = query.choice("order", ORDERS, "down") == "down"
    sort = query.choice("sort", (*_COLUMNS, *(key.key for key in rewards)), "id")
    offset, limit = query.integer("offset", 0, low=0), query.integer("limit", PAGE, low=1, high=MOST)
    matches = np.flatnonzero(_Filter.of(query, run.rewards).mask(table))
    values = _values(table, epochs, rewards, sort)[matches]
    ordered = matches[np.argsort(-values if down else values, kind="stable")]  # equal ones as they were recorded
    page = ordered[offset : offset + limit]
    best, other = _pair_to_compare(table, epochs)
    return {
        "index": number,
        "prompt": with_pictures(run, text_json(recorded.prompt, full=query.integer("rest", 0) == 1)),
        "columns": {name: value_text(value)[:TEXT_CHARS] for name, value in shared.items()},
        "columns_left": max(0, len(columns.shared) + len(columns.differing) - len(shared) - len(differing)),
        "pictures": column_pictures(run, shared),
        "per": "question" if per_question else "prompt",
        "prompts": list(columns.rows),
        **_neighbours(opened, number, per_question=per_question),
        "differing": differing,
        "completions": len(table),
        "epochs": _epochs(table, epochs),
        "left": other,
        "right": best,
        "rewards": [key._asdict() for key in rewards],
        "matched": len(ordered),
        "offset": offset,
        "limit": limit,
        "rows": [
            row | {"columns": _row_columns(columns.rows.get(row["prompt"]), differing)}
            for row in _rows(opened, table, page, rewards, epochs, splits)
        ],
    }


def _neighbours(opened: OpenRun, number: int, *, per_question: bool) -> dict[str, int | None]:
    """Return the prompt or question before one and the next, and its place among all of them, from 0."""
    run = opened.run
    key = ("questions", per_question)
    questions = opened.cache.get(
        key, opened.version, lambda: run.questions if per_question else np.arange(run.prompt_count)
    )
    firsts = np.unique(questions)
    index = int(np.searchsorted(firsts, questions[number]))
    return {
        "before": int(firsts[index - 1]) if index > 0 else None,
        "next": int(firsts[index + 1]) if index + 1 < len(firsts) else None,
        "place": index,
        "of": len(firsts),
    }


def completions(opened: OpenRun, query: Query) -> dict[str, Any]:
    """Return a page of a step's completions by prompt; without a step, of the table of all completions.

    Query: ``step``, ``split``, ``reward``, ``status``, ``min`` and ``max`` of its score (of the total without a
    reward), ``first`` (``best``, ``worst`` or ``spread``) and ``offset`` among a step's prompts.
    """
    step = query.integer("step", low=0)
    if step is None:
        return table(opened, query)
    return _of_step(opened, query, step, query.choice("split", SPLITS, "train"))


def _of_step(opened: OpenRun, query: Query, step: int, split: str) -> dict[str, Any]:
    """Return a page of a step's prompts, each with its best and worst completions, and the steps beside it."""
    run = opened.run
    whole = opened.cache.get(("step", step, split), opened.version, lambda: run.table((step, step), split))
    mask = _Filter.of(query, run.rewards).mask(whole)
    rows_of_step = whole if mask.all() else whole.where(mask)
    rewards = _rewards(opened, rows_of_step)
    groups = _groups(rows_of_step, query.choice("first", ("best", "worst", "spread"), "best"))
    offset = query.integer("offset", 0, low=0)
    page = groups[offset : offset + GROUPS]
    texts = _prompts(opened, [number for number, _ in page])
    extremes = [_extremes(places) for _, places in page]
    rows = iter(_rows(opened, rows_of_step, np.concatenate([np.zeros(0, np.int64), *extremes]), rewards))
    steps = run.steps(split)
    index = int(np.searchsorted(steps, step))
    return {
        "step": step,
        "split": split,
        "before": steps[index - 1] if index > 0 else None,
        "next": next((later for later in steps[index : index + 2] if later > step), None),
        "rewards": [key._asdict() for key in rewards],
        "completions": len(rows_of_step),
        "matched": len(groups),
        "offset": offset,
        "limit": GROUPS,
        "groups": [
            {
                "prompt": number,
                **_prompt_text(texts.get(number)),
                "best": _number(_edge(np.fmax, rows_of_step.rewards[places])),
                "worst": _number(_edge(np.fmin, rows_of_step.rewards[places])),
                "completions": len(places),
                "rows": list(itertools.islice(rows, len(extreme))),
            }
            for (number, places), extreme in zip(page, extremes, strict=True)
        ],
    }


def completion(opened: OpenRun, query: Query) -> dict[str, Any]:
    """Return a completion with its rewards' outcomes. Query: ``id``, and ``rest`` for the whole text."""
    number = query.integer("id", 0)
    rows = opened.run.by_id([number])
    if not rows:
        raise NotThere(f"{opened.run.name}: no completion {number}")
    row, weights = rows[0], opened.run.weights_of(number)
    return {
        **attributes(
            row, "id", "step", "epoch", "split", "rank", "tokens", "truncated", "total", "reward", "plain_sum",
            "advantage",
        ),
        "prompt": row.prompt_index,
        "columns": _row_columns(RecordedPrompt(row.prompt_index, "", row.columns), [*row.columns][:MOST_OF_PROMPT]),
        "completion": with_pictures(opened.run, text_json(row.completion, full=query.integer("rest", 0) == 1)),
        "scores": [
            _score(name, row.versions[name], outcome) | {"weight": weights.get(name)}
            for name, outcome in row.outcomes.items()
        ],
    }  # fmt: skip


def _score(name: str, version: int, outcome: Outcome) -> dict[str, Any]:
    output = {
        key: (beginning(value, TEXT_CHARS) or None) if isinstance(value, str) else value  # the logs show all of it
        for key, value in output_fields(outcome).items()
    }
    return {"reward": name, "version": version, "key": f"{name}_v{version}", **call_fields(outcome), **output}


class _Key(NamedTuple):
    """A column of scores: one reward in one version."""

    key: str
    reward: str
    version: int


class _Filter(NamedTuple):
    """Which completions are wanted, by one reward's outcome or by the total."""

    reward: str | None
    status: Status | None
    low: float | None
    high: float | None

    @classmethod
    def of(cls, query: Query, rewards: Sequence[str]) -> _Filter:
        """Return the filter of a query; a status needs a reward."""
        reward = query.choice("reward", rewards)
        status = query.choice("status", tuple(Status))
        return cls(reward, Status(status) if status and reward else None, query.number("min"), query.number("max"))

    def mask(self, table: CompletionTable) -> Mask:
        """Return which completions of a table are wanted; one without a score is not, where a score is asked for."""
        nothing = np.full(len(table), np.nan)
        values = table.rewards if self.reward is None else table.scores.get(self.reward, nothing)
        mask = np.ones(len(table), np.bool_)
        if self.reward is not None:
            status = table.status.get(self.reward, np.full(len(table), ""))
            is_bounded = self.low is not None or self.high is not None
            wanted = Status.SCORED if self.status is None and is_bounded else self.status  # a default is no score
            mask &= status != "" if wanted is None else status == LETTERS[wanted]
        if self.low is not None:
            mask &= values >= self.low
        if self.high is not None:
            mask &= values <= self.high
        return mask


def _all_versions(opened: OpenRun) -> list[_Key]:
    return [_Key(f"{row.reward}_v{row.number}", row.reward, row.number) for row in opened.run.versions]


def _rewards(opened: OpenRun, table: CompletionTable) -> list[_Key]:
    pairs = {(name, int(number)) for name, column in table.versions.items() for number in np.unique(column)}
    return [key for key in _all_versions(opened) if (key.reward, key.version) in pairs]


def _of_prompt(opened: OpenRun, number: int, *, per_question: bool) -> tuple[CompletionTable, Floats, list[str]]:
    """Return the completions of a prompt, or of its question, their epochs (``nan`` where unknown) and their splits."""
    run = opened.run
    table = run.table(split=None, question=number) if per_question else run.table(split=None, prompt=number)
    recorded = run.moments(number, whole_question=per_question)
    moments = {completion_id: (epoch, split) for completion_id, epoch, split in recorded}
    pairs = [moments.get(int(completion_id), (None, "train")) for completion_id in table.ids]
    return table, np.array([np.nan if epoch is None else epoch for epoch, _ in pairs]), [split for _, split in pairs]


def _pair_to_compare(table: CompletionTable, epochs: Floats) -> tuple[int | None, int | None]:
    """Return the ids of two to compare: the best of the first and last epoch, or the worst and best of the only one."""
    if not len(table):
        return None, None
    epoch = np.floor(np.nan_to_num(epochs, nan=-1.0))
    ranked = _ranking(table)
    right = next(row for row in ranked if epoch[row] == epoch.max())
    first_rows = [row for row in ranked if epoch[row] == epoch.min()]
    other = first_rows[0] if epoch.min() < epoch.max() else first_rows[-1]
    return int(table.ids[right]), int(table.ids[other])


def _ranking(table: CompletionTable) -> Whole:
    """Return a table's rows from the best to the worst: by total, equal ones in the order of recording."""
    ranked: Whole = np.lexsort((table.ids, -np.nan_to_num(table.rewards, nan=-np.inf)))
    return ranked


def _epochs(table: CompletionTable, epochs: Floats) -> list[dict[str, Any]]:
    """Return a prompt's epochs with their best completion and mean total; an epoch that is not known comes first."""
    epoch_of = np.floor(np.nan_to_num(epochs, nan=-1.0)).astype(np.int64)
    ranked = _ranking(table)
    rows = []
    for epoch in np.unique(epoch_of):
        ids = table.ids[epoch_of == epoch]
        best = next(row for row in ranked if epoch_of[row] == epoch)
        totals = table.rewards[epoch_of == epoch]
        rows.append(
            {
                "epoch": _epoch(epoch),
                "completions": len(ids),
                "ids": ids[:EPOCH_IDS].tolist(),
                "best": int(table.ids[best]),
                "mean": None if np.isnan(totals).all() else float(np.nanmean(totals)),
            }
        )
    return rows


_COLUMNS = ("id", "step", "epoch", "total", "reward", "plain_sum", "advantage", "tokens")


def _values(table: CompletionTable, epochs: Floats, rewards: Sequence[_Key], sort: str) -> Floats:
    """Return what completions are sorted by; ``nan`` where there is no value."""
    key = next((candidate for candidate in rewards if candidate.key == sort), None)
    if key is not None:
        is_own = (table.versions[key.reward] == key.version) & (table.status[key.reward] == "s")
        return np.where(is_own, table.scores[key.reward], np.nan)
    columns: Mapping[str, Any] = {
        "id": table.ids, "step": table.steps, "epoch": epochs, "total": table.rewards, "reward": table.rewards,
        "plain_sum": table.plain_sums, "advantage": table.advantages, "tokens": table.tokens,
    }  # fmt: skip
    return np.asarray(columns[sort], np.float64)


def _groups(table: CompletionTable, first: str) -> list[tuple[int, Whole]]:
    """Return a step's prompts in the order of ``first``, each with its completions' rows from best to worst."""
    ranked = _ranking(table)
    ordered = ranked[np.argsort(table.prompts[ranked], kind="stable")]
    starts = np.flatnonzero(np.diff(table.prompts[ordered], prepend=-1))
    if not len(starts):
        return []
    prompts, totals = table.prompts[ordered[starts]], table.rewards[ordered]
    low, high = np.fmin.reduceat(totals, starts), np.fmax.reduceat(totals, starts)
    value = {"best": -high, "worst": low, "spread": low - high}[first]
    parts = np.split(ordered, starts[1:])  # one array a prompt
    return [(int(prompts[group]), parts[group]) for group in np.lexsort((prompts, np.nan_to_num(value, nan=np.inf)))]


def _extremes(places: Whole) -> Whole:
    """Return the best and the worst of places that stand in this order, all where there are few."""
    return places if len(places) <= 2 * ENDS else np.concatenate([places[:ENDS], places[-ENDS:]])


def _edge(edge: Any, values: Floats) -> float:
    """Return the least or greatest value; ``nan`` where none is known."""
    return float(edge.reduce(values))


def _rows(
    opened: OpenRun,
    table: CompletionTable,
    places: Whole,
    rewards: Sequence[_Key],
    epochs: Floats | None = None,
    splits: Sequence[str] | None = None,
) -> list[dict[str, Any]]:
    """Return the rows of completions at these places of a table, in their order."""
    ids: list[int] = table.ids[places].tolist()
    columns = {
        "id": ids,
        "step": [None if step < 0 else step for step in table.steps[places].tolist()],
        "epoch": [None] * len(ids) if epochs is None else _numbers(epochs[places]),
        "split": [None if splits is None else splits[row] for row in places],
        "prompt": table.prompts[places].tolist(),
        "text": [None if text is None else text[:PREVIEW] for text in opened.run.texts(ids)],
        "total": _numbers(table.rewards[places]),
        "reward": _numbers(table.rewards[places]),
        "plain_sum": _numbers(table.plain_sums[places]),
        "advantage": _numbers(table.advantages[places]),
        "tokens": [None if tokens is None else int(tokens) for tokens in _numbers(table.tokens[places])],
        "truncated": [None if flag is None else bool(flag) for flag in _numbers(table.truncated[places])],
        "scores": _scores(table, places, rewards),
    }
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _scores(table: CompletionTable, places: Whole, rewards: Sequence[_Key]) -> list[dict[str, Any]]:
    """Return each completion's scores by the key of reward and version, without those that did not score it."""
    cells_of: list[dict[str, Any]] = [{} for _ in places]
    for key in rewards:
        name = key.reward
        columns = (table.versions[name], table.status[name], table.causes[name])
        values = zip(
            _numbers(table.scores[name][places]), *(column[places].tolist() for column in columns), strict=True
        )
        for cells, (score, version, status, cause) in zip(cells_of, values, strict=True):
            if version == key.version and status:
                cells[key.key] = {"score": score, "status": _STATUS[status], "cause": cause or None}
    return cells_of


def _numbers(values: Floats) -> list[float | None]:
    """Return numbers for JSON, in which every number is finite."""
    return [value if math.isfinite(value) else None for value in values.tolist()]


def _number(value: Any) -> float | None:
    """Return a number for JSON, in which every number is finite."""
    return float(value) if np.isfinite(value) else None


def _epoch(value: Any) -> int | None:
    return None if value < 0 else int(value)
