"""What rewards printed and how they failed: pages of entries, one entry whole, and the counts above them."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from rewardkit.dashboard.as_json import attributes, call_fields, output_fields, text_json
from rewardkit.dashboard.query import SPLITS, Query
from rewardkit.dashboard.readers import NotThere, OpenRun, summaries
from rewardkit.dashboard.saving import Per, Saved, ViewQuery
from rewardkit.dashboard.views.pictures import with_pictures
from rewardkit.errors import RecordError
from rewardkit.record.log_pages import LogPlace, Wanted, newest
from rewardkit.record.reader import RunReader
from rewardkit.record.values import Completion, LogEntry, StepSummary
from rewardkit.shown.text import shortened
from rewardkit.types import Cause, Outcome, Status

BARS = 60  # Parts of the run in the strip of a reward, at most
WORDS = 300  # Characters of what an entry said that stand in its row
_STATUSES = tuple(Status)
_MOST_ROWS = 200


def view(opened: OpenRun, query: Query) -> dict[str, Any]:
    """Return a page of entries, or what ``what`` names: ``entry`` or ``counts``."""
    part = query.choice("what", ("page", "entry", "counts"), "page")
    if part == "entry":
        return _entry(opened.run, query)
    return _counts(opened, query) if part == "counts" else _page(opened.run, query)


def filters_of(run: RunReader, query: Query) -> Wanted:
    """Return which entries a request wants. Raises RecordError for a filter that this run cannot have."""
    reward, number = query.text("reward"), query.integer("version", low=1)
    names = run.rewards
    if reward is not None and reward not in names:
        raise RecordError(f"reward={reward}: expected {', '.join(names) or 'nothing: the run has no rewards yet'}")
    first, last = query.integer("first"), query.integer("last")
    if first is not None and last is not None and first > last:
        raise RecordError(f"first={first}: expected a step up to last={last}")
    status, cause = query.choice("status", _STATUSES), query.choice("cause", tuple(Cause))
    versions = None
    if reward is not None or number is not None:
        versions = tuple(
            version.id
            for version in run.versions
            if reward in (None, version.reward) and number in (None, version.number)
        )
    return Wanted(
        versions=versions,
        first=first,
        last=last,
        split=query.choice("split", SPLITS),
        status=None if status is None else Status(status),
        cause=None if cause is None else Cause(cause),
        text=query.text("text"),
    )


def _page(run: RunReader, query: Query) -> dict[str, Any]:
    """Return a page of entries, and where the next one and what is recorded from now on begin."""
    filters = filters_of(run, query)
    backwards = query.choice("order", ("newest", "oldest"), "newest") == "newest"
    start = _position(query.text("from"))
    last_id = run.last_id
    head = newest(last_id)
    page = run.log_page(
        filters,
        head if start is None and backwards else start,
        backwards=backwards,
        limit=query.integer("limit", 50, low=1, high=_MOST_ROWS),
    )
    position = max(page.end, head) if page.ended and not backwards else page.end  # all up to the head was looked at
    return {
        "entries": [_row(position, entry) for position, entry in page.entries],
        "next": _key(position),
        "ended": page.ended,
        "searched_to": page.step,
        "head": _key(head),
        "last_id": last_id,
    }


def _row(position: LogPlace, entry: LogEntry) -> dict[str, Any]:
    kind, text = _summary(entry.outcome)
    return {"key": _key(position), "kind": kind, "words": text, **entry.call, **call_fields(entry.outcome)}


def _summary(outcome: Outcome) -> tuple[str, str]:
    """Return the kind and the text of a call's row: an error comes before output, and output before a reason."""
    for kind, text in (("error", outcome.error), ("print", outcome.logs), ("reason", outcome.reason)):
        if text and text.strip():
            return kind, _one_line(text)
    unanswered = "; ".join(map(str, outcome.unanswered))
    if unanswered:
        return "unanswered", _one_line(unanswered)
    metrics = ", ".join(f"{name} {value}" for name, value in outcome.metrics.items())
    return ("metrics", _one_line(metrics)) if metrics else ("none", "")


def _one_line(text: str) -> str:
    return shortened(" \u21b5 ".join(line for line in text[: 8 * WORDS].splitlines() if line.strip()), WORDS)


def _entry(run: RunReader, query: Query) -> dict[str, Any]:
    """Return one entry whole, with its completion; NotThere where the record has it no longer."""
    position = _position(query.text("key"))
    if position is None:
        raise RecordError("key: expected an entry's key, such as 12:1")
    page = run.log_page(Wanted(), LogPlace(position.completion, position.version - 1), limit=1)
    entries = [entry for at, entry in page.entries if at == position]
    completions = run.by_id([position.completion])
    if not entries or not completions:
        raise NotThere(
            f"{run.name}: no entry {_key(position)}; the run may have gone back to a checkpoint and taken it away"
        )
    entry, completion = entries[0], completions[0]
    fields = {**entry.call, **call_fields(entry.outcome), **output_fields(entry.outcome)}
    return {"key": _key(position), **fields, **_completion(run, completion)}


def _completion(run: RunReader, completion: Completion) -> dict[str, Any]:
    return {
        **attributes(completion, "prompt_index", "tokens", "truncated", "total", "plain_sum", "advantage"),
        "prompt": with_pictures(run, text_json(completion.prompt)),
        "text": with_pictures(run, text_json(completion.completion)),
    }


def _counts(opened: OpenRun, query: Query) -> dict[str, Any]:
    """Return, by version and cause, how many calls failed or were skipped, where, and the last error of each.

    Each version also has bars over the whole run.
    """
    run, filters = opened.run, filters_of(opened.run, query)
    rows = [row for split in ([filters.split] if filters.split else SPLITS) for row in summaries(opened, split)]
    steps = [row.step for row in rows if row.step is not None]
    span = (min(steps), max(steps)) if steps else None
    rows_in_steps = [row for row in rows if _is_in(row, filters)]
    return {
        "steps": span,
        "width": _width(span),
        "rewards": [_strip(name, number, rows, rows_in_steps, span) for name, number in _versions(rows)],
        "faults": _faults(run, rows_in_steps, filters),
    }


def _is_in(row: StepSummary, filters: Wanted) -> bool:
    """Whether a row's step is among those that are wanted."""
    if filters.first is None and filters.last is None:
        return True
    low = -math.inf if filters.first is None else filters.first
    high = math.inf if filters.last is None else filters.last
    return row.step is not None and low <= row.step <= high


def _versions(rows: Iterable[StepSummary]) -> list[tuple[str, int]]:
    """Return the versions, those of a reward together, in the order in which the rewards first scored."""
    names = list(dict.fromkeys(row.reward for row in rows))
    return sorted({(row.reward, row.version) for row in rows}, key=lambda pair: (names.index(pair[0]), pair[1]))


def _width(span: tuple[int, int] | None) -> int:
    """Return how many steps a bar of a strip stands for."""
    return 1 if span is None else max(1, math.ceil((span[1] - span[0] + 1) / BARS))


def _strip(
    reward: str, version: int, rows: Iterable[StepSummary], inside: Iterable[StepSummary], span: tuple[int, int] | None
) -> dict[str, Any]:
    """Return a version's counts in the chosen steps, and its bars over the whole run."""
    width, bars = _width(span), defaultdict[int, list[int]](lambda: [0, 0, 0])
    for row in rows:
        if (row.reward, row.version) == (reward, version) and row.step is not None and span is not None:
            bar = bars[(row.step - span[0]) // width]
            for index, number in enumerate((row.scored, row.skipped, sum(row.failed.values()))):
                bar[index] += number
    own_rows = [row for row in inside if (row.reward, row.version) == (reward, version)]
    failed = sum((Counter(row.failed) for row in own_rows), Counter[str]())
    return {
        "reward": reward,
        "version": version,
        "scored": sum(row.scored for row in own_rows),
        "skipped": sum(row.skipped for row in own_rows),
        "failed": dict(sorted(failed.items(), key=lambda pair: (-pair[1], pair[0]))),
        "bars": [[index, *bar] for index, bar in sorted(bars.items())],
    }


def _faults(run: RunReader, inside: Iterable[StepSummary], filters: Wanted) -> list[dict[str, Any]]:
    """Return the failures by reward, version and cause, the most frequent first, each with its newest error."""
    counts: dict[tuple[str, int, str], dict[int | None, int]] = defaultdict(lambda: defaultdict(int))
    for row in inside:
        for cause, number in row.failed.items():
            counts[row.reward, row.version, cause][row.step] += number
    ids = {(version.reward, version.number): version.id for version in run.versions}
    return [
        _fault(run, (reward, number, cause), by_step, ids[reward, number], filters.split)
        for (reward, number, cause), by_step in sorted(
            counts.items(), key=lambda pair: (-sum(pair[1].values()), pair[0])
        )
    ]


def _fault(
    run: RunReader, key: tuple[str, int, str], by_step: Mapping[int | None, int], version: int, split: str | None
) -> dict[str, Any]:
    """Return a kind of failure with its count by step, and the newest entry of it as an example."""
    reward, number, cause = key
    steps = [step for step in by_step if step is not None]
    last = max(steps, default=None)
    filters = Wanted((version,), last, last, split, Status.FAILED, Cause(cause))
    example = run.log_page(filters, backwards=True, limit=1).entries
    return {
        "reward": reward,
        "version": number,
        "cause": cause,
        "count": sum(by_step.values()),
        "first_step": min(steps, default=None),
        "last_step": last,
        "steps": len(by_step),
        "example": _row(*example[0]) if example else None,
    }


def _position(key: str | None) -> LogPlace | None:
    """Return the place that a key names. Raises RecordError where it is not a key."""
    if key is None:
        return None
    completion, _, version = key.partition(":")
    if not (completion.isdecimal() and version.isdecimal() and len(key) < 40):
        raise RecordError(f"key {key[:40]!r}: expected an entry's key, such as 12:1")
    return LogPlace(min(int(completion), 2**62), min(int(version), 2**62))  # SQLite's integers have 64 bits


def _key(position: LogPlace) -> str:
    return f"{position.completion}:{position.version}"


def _further(answer: Mapping[str, Any], rows: int) -> ViewQuery | None:
    return None if answer["ended"] else {"from": answer["next"]}


def _of_step(opened: OpenRun, subject: ViewQuery) -> Iterable[ViewQuery]:
    step = subject.get("step")
    yield {"order": "oldest", "limit": _MOST_ROWS, "first": step, "last": step, "step": None}


def _all_counts(opened: OpenRun, subject: ViewQuery) -> Iterable[ViewQuery]:
    yield {"what": "counts"}


SAVED = (
    Saved("logs", Per.RUN, _all_counts, keys=("what",)),
    Saved("logs", Per.STEP, _of_step, join="entries", further=_further, own="completion", gathered=True),
)
"""What a saved page has of this view; it makes an entry of its row, its completion and its prompt."""
