"""``groups``, ``histogram`` and ``profile``: how a run's rewards spread over the data, the steps and the prompts."""

from __future__ import annotations

import bisect
import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from rewardkit.breakdown.data_column import DataColumn
from rewardkit.breakdown.data_rows import data_form, numbered_rows
from rewardkit.breakdown.grouped import completions_by_prompt, group_curves, group_means
from rewardkit.breakdown.histogram import histogram, shift
from rewardkit.breakdown.prompt_profile import LAST_GROUPS, PromptProfile, Rates, are_questions, prompt_profile
from rewardkit.breakdown.run_scores import Measured, RunScores, Scores, measure
from rewardkit.dashboard.as_json import plain
from rewardkit.dashboard.query import SPLITS, Query
from rewardkit.dashboard.readers import OpenRun
from rewardkit.dashboard.saving import Per, Saved, ViewQuery
from rewardkit.record.table import Mask, Whole

READ_S = 1.0  # Seconds of reading after which an answer says how far it came; the next one goes on from there
FIRST_PROMPTS = 200  # Prompts in which the columns of the data are looked for
MOST_COLUMNS = 200  # Columns that can be chosen
LINES = 8  # Groups that have a curve of their own
PAGE, MOST = 50, 200  # Prompts of a page unless asked otherwise, and at most
LINES_AT_ONCE, LINES_CHARS = 500, 4_000_000  # Lines of a data set in one answer, and about how many characters
PREVIEW = 240  # Characters of a prompt in a row
KINDS = ("all", "never_right", "in_between", "always_right", "unknown")
SORTS = ("prompt", "rate", "change", "counted", "passed", "skipped", "failed", "mean")
ORDERS = ("up", "down")
SAVED_COLUMNS, SAVED_REWARDS, SAVED_STEPS = 8, 8, 300
"""Columns, rewards and steps whose groups a saved page has, the first ones; the steps are chosen evenly."""


def columns(opened: OpenRun, query: Query) -> dict[str, Any]:
    """Return the columns of the data, by which completions can be grouped: those of the first prompts."""
    names: dict[str, None] = {}
    for prompt in itertools.islice(opened.run.prompts(), FIRST_PROMPTS):
        names |= dict.fromkeys(prompt.columns)
    return {"columns": list(names)[:MOST_COLUMNS], "columns_left": max(0, len(names) - MOST_COLUMNS)}


def groups(opened: OpenRun, query: Query) -> dict[str, Any]:
    """Return the groups of a split's completions by a column of the data, with means and curves.

    Query: ``column``, ``split``, ``reward`` whose scores are meant instead of the total. ``reading`` says what is not
    read yet: ask again.
    """
    name = query.text("column", "")
    scores, measured, reading = _measured(opened, query)
    column = opened.cache.get(("column", name), 0, lambda: DataColumn(name))
    done, prompts = column.read(opened.run, READ_S)
    if reading is None and done < prompts:
        reading = {"what": "prompts", "done": done, "of": prompts}
    grouping = column.grouping(completions_by_prompt(scores, measured, prompts), LINES)
    curves = group_curves(scores, measured, grouping)
    return {
        "column": name,
        "measure": measured.name,
        "values": grouping.values,
        "rest": grouping.rest,
        "are_ranges": grouping.are_ranges,
        "groups": [row._asdict() for row in group_means(scores, measured, grouping)],
        "steps": curves.steps,
        "curves": curves.means,
        "reading": reading,
    }


def histogram_view(opened: OpenRun, query: Query) -> dict[str, Any]:
    """Return how values spread over the steps of a split, and what moved between two slices of steps.

    Query: ``split``, ``reward`` whose scores are meant instead of the total, ``before`` and ``after``, the places of
    the slices that are compared; the first and the last one unless given.
    """
    scores, measured, reading = _measured(opened, query)
    spread = histogram(scores, measured)
    last = max(0, len(spread.slices) - 1)
    before = min(query.integer("before", 0, low=0), last)
    after = min(query.integer("after", last, low=0), last)
    change = shift(spread, before, after) if spread.slices else None
    return {
        "measure": measured.name,
        "bins": [part._asdict() for part in spread.bins],
        "slices": [part._asdict() for part in spread.slices],
        "counts": spread.counts.tolist(),
        "before": before,
        "after": after,
        "moved": None if change is None else change.moved,
        "distance": None if change is None else change.distance,
        "flows": [] if change is None else [flow._asdict() for flow in change.flows],
        "reading": reading,
    }


def profile(opened: OpenRun, query: Query) -> dict[str, Any]:
    """Return a page of the prompts of a split with their pass rates, and how many are of each kind.

    Query: ``split``, ``reward``, ``pass_at``, ``last`` (groups of each prompt), ``by`` (``row`` or
    ``question``), ``kind`` (one of ``KINDS``), ``keep``
    (a range of rates such as ``0.1..0.9``), ``sort`` (of ``SORTS``), ``order``, ``offset``, ``limit``.
    """
    prompts, questions, reading = _profiled(opened, query)
    chosen = _chosen(prompts, query)
    sort, down = query.choice("sort", SORTS, "rate"), query.choice("order", ORDERS, "up") == "down"
    ordered = _sorted(prompts, np.flatnonzero(chosen), sort, down=down)
    offset, limit = query.integer("offset", 0, low=0), query.integer("limit", PAGE, low=1, high=MOST)
    return {
        "passes": prompts.rule,
        "last": prompts.last,
        "by": "row" if questions is None else "question",
        "prompts": len(prompts.prompts),
        "kinds": prompts.counts(),
        "rates": _rate_counts(prompts),
        "several_versions": int((prompts.versions > 1).sum()),
        "exceeds_scale": prompts.exceeds_scale,
        "matched": len(ordered),
        "offset": offset,
        "limit": limit,
        "rows": _rows(opened, prompts, ordered[offset : offset + limit]),
        "reading": reading,
    }


def prompt_rows(opened: OpenRun, query: Query) -> dict[str, Any]:
    """Return lines of the data set that the chosen prompts are, from the row at ``offset`` on.

    Query: as for ``profile``, but for the order: rows stand in the order in which prompts were first seen. ``next`` is
    the offset of the next answer; ``None`` behind the last row. A line that came before may come again.
    """
    prompts, questions, reading = _profiled(opened, query)
    numbers = prompts.prompts[_chosen(prompts, query)].tolist()
    form = opened.cache.get("form", (opened.version, tuple(numbers)), lambda: data_form(opened.run, numbers, questions))
    offset, size = query.integer("offset", 0, low=0), 0
    part = form.prompts[offset : offset + LINES_AT_ONCE]
    following = offset + len(part)
    lines: list[str] = []
    for number, row in numbered_rows(opened.run, form._replace(prompts=part)):
        lines.append(json.dumps(row, ensure_ascii=False) + "\n")
        size += len(lines[-1])
        if size > LINES_CHARS:
            following = bisect.bisect_right(form.prompts, number)
            break
    return {
        "lines": lines,
        "next": following if following < len(form.prompts) else None,
        "done": following,
        "of": len(form.prompts),
        "reading": reading,
    }


def _profiled(opened: OpenRun, query: Query) -> tuple[PromptProfile, Whole | None, dict[str, Any] | None]:
    """Return the profile that a query asks for, the questions where they count and not rows, and what is not read."""
    scores, measured, reading = _measured(opened, query)
    questions = opened.run.questions if are_questions(scores, query.choice("by", ("row", "question"))) else None
    if questions is not None:
        scores = scores.by_question(questions)
    last, pass_at = query.integer("last", LAST_GROUPS, low=1), query.number("pass_at")
    return prompt_profile(scores, measured, last=last, pass_at=pass_at), questions, reading


def _chosen(prompts: PromptProfile, query: Query) -> Mask:
    """Return which prompts are of the kind and in the range of a query."""
    chosen = _of_kind(prompts, query.choice("kind", KINDS, "all"))
    keep = query.text("keep")
    return chosen if keep is None else chosen & Rates.of(keep, "keep").covers(prompts.rates)


def _measured(opened: OpenRun, query: Query) -> tuple[Scores, Measured, dict[str, Any] | None]:
    """Return what a query measures of its split, and how far the reading came where it is not done."""
    run_scores = opened.cache.get("scores", 0, RunScores)
    done, of = run_scores.read(opened.run, READ_S)
    scores = run_scores.of(query.choice("split", SPLITS, "train"))
    measured = measure(scores, opened.run.rewards, query.text("reward"))
    return scores, measured, {"what": "completions", "done": done, "of": of} if done < of else None


def _of_kind(prompts: PromptProfile, kind: str) -> Mask:
    match kind:
        case "never_right":
            return prompts.are_never_right
        case "in_between":
            return prompts.are_between
        case "always_right":
            return prompts.are_always_right
        case "unknown":
            return ~prompts.are_known
    return np.ones(len(prompts.prompts), np.bool_)


def _sorted(prompts: PromptProfile, indices: Whole, sort: str, *, down: bool) -> Whole:
    """Return indices of prompts in an order; those without a value stand last."""
    columns = {
        "prompt": prompts.prompts, "rate": prompts.rates, "change": prompts.changes.values, "mean": prompts.means,
    }  # fmt: skip
    values = np.asarray(columns.get(sort, getattr(prompts, sort, None)), np.float64)[indices]
    ordered: Whole = indices[np.argsort(-values if down else values, kind="stable")]
    return ordered


def _rate_counts(prompts: PromptProfile) -> list[int]:
    """Return how many prompts have a rate of 0, above 0 to 0.1, and so on to below 1, and of 1."""
    between = prompts.rates[prompts.are_between]
    tenths = np.clip(np.ceil(between * 10 - 1e-9).astype(np.int64) - 1, 0, 9)
    counts = np.bincount(tenths, minlength=10).tolist()
    return [int(prompts.are_never_right.sum()), *counts, int(prompts.are_always_right.sum())]


def _rows(opened: OpenRun, prompts: PromptProfile, indices: Sequence[int] | Whole) -> list[dict[str, Any]]:
    texts = {prompt.index: prompt.prompt for prompt in opened.run.prompts_by_index(prompts.prompts[indices].tolist())}
    return [prompts.row(index) | {"text": _preview(texts, int(prompts.prompts[index]))} for index in indices]


def _preview(texts: dict[int, Any], number: int) -> str | None:
    return plain(texts[number])[:PREVIEW] if number in texts else None


def _measures(opened: OpenRun, subject: ViewQuery) -> Iterator[dict[str, object]]:
    """Yield the requests of the total, and of each reward, in the splits in which something was scored at a step."""
    for split in SPLITS:
        if opened.run.steps(split):
            for reward in (None, *opened.run.rewards[:SAVED_REWARDS]):
                yield {"split": split, "reward": reward}


def _groupings(opened: OpenRun, subject: ViewQuery) -> Iterable[ViewQuery]:
    """Yield the requests of the groups by each column."""
    names = columns(opened, Query())["columns"][:SAVED_COLUMNS]
    return ({**request, "column": name} for request in _measures(opened, subject) for name in names)


def _rates(opened: OpenRun, subject: ViewQuery) -> Iterable[ViewQuery]:
    """Yield the requests of the pass rates, in long pages."""
    return ({**request, "limit": MOST} for request in _measures(opened, subject))


def _few_columns(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of which a saved page has the groups."""
    names = answer["columns"]
    return {"columns": names[:SAVED_COLUMNS], "columns_left": answer["columns_left"] + len(names[SAVED_COLUMNS:])}


def _thinned(answer: dict[str, Any]) -> dict[str, Any]:
    """Return groups with at most :data:`SAVED_STEPS` steps in their curves."""
    size = len(answer["steps"])
    indices = np.unique(np.linspace(0, size - 1, min(size, SAVED_STEPS)).round().astype(np.int64)).tolist()
    return answer | {
        "steps": [answer["steps"][index] for index in indices],
        "curves": [[line[index] for index in indices] for line in answer["curves"]],
    }


SAVED = (
    Saved("columns", Per.RUN, of_whole=True, shorten=_few_columns),
    Saved("groups", Per.RUN, _groupings, keys=("split", "column", "reward"), of_whole=True, shorten=_thinned),
    Saved("histogram", Per.RUN, _measures, keys=("split", "reward")),  # numbers alone
    Saved("profile", Per.RUN, _rates, keys=("split", "reward"), join="rows", of_whole=True),
)
"""What a saved page has of these views."""
