"""What rewards printed and how they failed: pages of entries, one entry whole, and the counts above them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from rewardkit.dashboard.messages import shown
from rewardkit.dashboard.query import SPLITS, Query
from rewardkit.dashboard.readers import NotThere, Opened
from rewardkit.dashboard.sums import summaries
from rewardkit.errors import RecordError
from rewardkit.record.log_pages import LogPlace, Wanted, newest
from rewardkit.record.reader import RunReader
from rewardkit.record.values import Completion, LogEntry, StepSummary
from rewardkit.types import Cause, Outcome, Status

BARS = 60
"""Parts of the run in the strip of a reward, at most."""
WORDS = 300
"""Characters of what an entry said that stand in its row."""
_STATUSES = tuple(Status)
_CAUSES = tuple(Cause)
_MOST_ROWS = 200


def view(opened: Opened, query: Query) -> dict[str, Any]:
    """Return a page of entries, or what ``what`` names: ``entry`` or ``counts``."""
    what = query.choice("what", ("page", "entry", "counts"), "page")
    if what == "entry":
        return _entry(opened.run, query)
    return _counts(opened, query) if what == "counts" else _page(opened.run, query)


def wanted_of(run: RunReader, query: Query) -> Wanted:
    """Return which entries a request wants.

    Raises:
        RecordError: This run cannot have such a filter; the message names it, its value and what is expected.
    """
    reward, number = query.text("reward"), query.whole("version", least=1)
    names = run.rewards
    if reward is not None and reward not in names:
        raise RecordError(f"reward={reward}: expected {', '.join(names) or 'nothing: the run has no rewards yet'}")
    first, last = query.whole("first"), query.whole("last")
    if first is not None and last is not None and first > last:
        raise RecordError(f"first={first}: expected a step up to last={last}")
    status, cause = query.choice("status", _STATUSES), query.choice("cause", _CAUSES)
    versions = None
    if reward is not None or number is not None:
        versions = tuple(
            one.id for one in run.versions if reward in (None, one.reward) and number in (None, one.number)
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
    wanted = wanted_of(run, query)
    backwards = query.choice("order", ("newest", "oldest"), "newest") == "newest"
    start = _place(query.text("from"))
    last_id = run.last_id
    head = newest(last_id)
    page = run.log_page(
        wanted,
        head if start is None and backwards else start,
        backwards=backwards,
        limit=query.whole("limit", 50, least=1, most=_MOST_ROWS),
    )
    place = max(page.place, head) if page.ended and not backwards else page.place  # all up to the head was looked at
    return {
        "entries": [_row(place, entry) for place, entry in page.entries],
        "next": _key(place),
        "ended": page.ended,
        "searched_to": page.step,
        "head": _key(head),
        "last_id": last_id,
    }


def _row(place: LogPlace, entry: LogEntry) -> dict[str, Any]:
    """Return what stands in the row of an entry."""
    kind, words = _said(entry.outcome)
    return {"key": _key(place), "kind": kind, "words": words, **_known(entry)}


def _known(entry: LogEntry) -> dict[str, Any]:
    outcome = entry.outcome
    return {
        **entry.call,
        "status": str(outcome.status),
        "score": outcome.score,
        "cause": None if outcome.cause is None else str(outcome.cause),
        "attempts": outcome.attempts,
        "seconds": outcome.duration_s,
        "cached": outcome.cached,
    }


def _said(outcome: Outcome) -> tuple[str, str]:
    """Return what a row shows of what a call said, and which of all it is: the fault before the output."""
    for kind, text in (("error", outcome.error), ("print", outcome.logs), ("reason", outcome.reason)):
        if text and text.strip():
            return kind, _one_line(text)
    unanswered = "; ".join(map(str, outcome.unanswered))
    if unanswered:
        return "unanswered", _one_line(unanswered)
    metrics = ", ".join(f"{name} {value}" for name, value in outcome.metrics.items())
    return ("metrics", _one_line(metrics)) if metrics else ("none", "")


def _one_line(text: str) -> str:
    lines = " \u21b5 ".join(line.strip() for line in text[: 4 * WORDS].splitlines() if line.strip())
    return lines if len(lines) <= WORDS and len(text) <= 4 * WORDS else f"{lines[:WORDS]}\u2026"


def _entry(run: RunReader, query: Query) -> dict[str, Any]:
    """Return all of one entry, with its completion."""
    place = _place(query.text("key"))
    if place is None:
        raise RecordError("key: expected an entry's key, such as 12:1")
    page = run.log_page(Wanted(), LogPlace(place.completion, place.version - 1), limit=1)
    found = run.by_id([place.completion])
    if not page.entries or page.entries[0][0] != place or not found:
        raise NotThere(
            f"{run.name}: no entry {_key(place)}; the run may have gone back to a checkpoint and taken it away"
        )
    entry, completion = page.entries[0][1], found[0]
    outcome = entry.outcome
    return {
        "key": _key(place),
        **_known(entry),
        "reason": outcome.reason,
        "error": outcome.error,
        "traceback": outcome.traceback,
        "metrics": dict(outcome.metrics),
        "logs": outcome.logs,
        "unanswered": [one._asdict() for one in outcome.unanswered],
        **_completion(completion),
    }


def _completion(one: Completion) -> dict[str, Any]:
    return {
        "prompt_index": one.prompt_index,
        "prompt": shown(one.prompt),
        "text": shown(one.completion),
        "tokens": one.tokens,
        "truncated": one.truncated,
        "total": one.total,
        "weighted": one.reward,
        "advantage": one.advantage,
    }


def _counts(opened: Opened, query: Query) -> dict[str, Any]:
    """Return, by version and cause, how many calls failed or were skipped, where, and the last error of each."""
    run, wanted = opened.run, wanted_of(opened.run, query)
    split = query.choice("split", SPLITS)
    rows = [one for each in ([split] if split else SPLITS) for one in summaries(opened, each)]
    steps = [one.step for one in rows if one.step is not None]
    span = (min(steps), max(steps)) if steps else None
    inside = [one for one in rows if _is_in(one, wanted)]
    return {
        "steps": span,
        "width": _width(span),
        "rewards": [_strip(name, number, rows, inside, span) for name, number in _versions(rows)],
        "faults": _faults(run, inside, wanted),
    }


def _is_in(one: StepSummary, wanted: Wanted) -> bool:
    if wanted.first is None and wanted.last is None:
        return True
    low = -math.inf if wanted.first is None else wanted.first
    high = math.inf if wanted.last is None else wanted.last
    return one.step is not None and low <= one.step <= high


def _versions(rows: Iterable[StepSummary]) -> list[tuple[str, int]]:
    """Return the versions, those of a reward together, in the order in which the rewards first scored."""
    names = list(dict.fromkeys(one.reward for one in rows))
    return sorted({(one.reward, one.version) for one in rows}, key=lambda pair: (names.index(pair[0]), pair[1]))


def _width(span: tuple[int, int] | None) -> int:
    """Return how many steps a bar of a strip stands for."""
    return 1 if span is None else max(1, math.ceil((span[1] - span[0] + 1) / BARS))


def _strip(
    reward: str,
    version: int,
    rows: Iterable[StepSummary],
    inside: Iterable[StepSummary],
    span: tuple[int, int] | None,
) -> dict[str, Any]:
    """Return a version's counts in the chosen steps, and its bars over the whole run."""
    width, bars = _width(span), defaultdict[int, list[int]](lambda: [0, 0, 0])
    for one in rows:
        if (one.reward, one.version) == (reward, version) and one.step is not None and span is not None:
            bar = bars[(one.step - span[0]) // width]
            for place, number in enumerate((one.scored, one.skipped, sum(one.failed.values()))):
                bar[place] += number
    chosen = [one for one in inside if (one.reward, one.version) == (reward, version)]
    return {
        "reward": reward,
        "version": version,
        "scored": sum(one.scored for one in chosen),
        "skipped": sum(one.skipped for one in chosen),
        "failed": _added(one.failed for one in chosen),
        "bars": [[place, *bar] for place, bar in sorted(bars.items())],
    }


def _added(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    found: dict[str, int] = defaultdict(int)
    for part in parts:
        for cause, number in part.items():
            found[cause] += number
    return dict(sorted(found.items(), key=lambda pair: (-pair[1], pair[0])))


def _faults(run: RunReader, inside: Iterable[StepSummary], wanted: Wanted) -> list[dict[str, Any]]:
    """Return the failures by reward, version and cause, the most frequent first, each with its newest error."""
    found: dict[tuple[str, int, str], dict[int | None, int]] = defaultdict(lambda: defaultdict(int))
    for one in inside:
        for cause, number in one.failed.items():
            found[one.reward, one.version, cause][one.step] += number
    ids = {(one.reward, one.number): one.id for one in run.versions}
    return [
        _fault(run, key, by_step, ids[key[0], key[1]], wanted.split)
        for key, by_step in sorted(found.items(), key=lambda pair: (-sum(pair[1].values()), pair[0]))
    ]


def _fault(
    run: RunReader, key: tuple[str, int, str], by_step: Mapping[int | None, int], version: int, split: str | None
) -> dict[str, Any]:
    reward, number, cause = key
    steps = [one for one in by_step if one is not None]
    last = max(steps, default=None)
    example = run.log_page(
        Wanted((version,), last, last, split, Status.FAILED, Cause(cause)), backwards=True, limit=1
    ).entries
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


def _place(key: str | None) -> LogPlace | None:
    """Return the place that a key names.

    Raises:
        RecordError: It is not a key.
    """
    if key is None:
        return None
    completion, _, version = key.partition(":")
    if not (completion.isdecimal() and version.isdecimal() and len(key) < 40):
        raise RecordError(f"key {key[:40]!r}: expected an entry's key, such as 12:1")
    return LogPlace(min(int(completion), 2**62), min(int(version), 2**62))


def _key(place: LogPlace) -> str:
    return f"{place.completion}:{place.version}"
