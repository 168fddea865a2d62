"""Detectors of what changes from one step to the next while the reward rises: lengths, the format, a word.

They compare up to five steps before a place with up to five behind it, in the window and the one before. A policy that
learns changes over many steps; one that has found a way around the reward changes within two or three.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import NamedTuple

import numpy as np

from rewardkit.health.evidence import Evidence, join_tables, lengths
from rewardkit.health.flag import Detection
from rewardkit.health.measures import line, without_nan
from rewardkit.record.table import CompletionTable, Floats, Whole

SIDE_STEPS = 5  # Steps on either side of a place that are compared
LEAST_STEPS = 3  # Of them, at least
LEAST_GROUPS = 6  # Groups on either side, at least
TEXTS_A_STEP = 24  # Completions of a step whose texts are read, spread over its groups
READ_CHARS = 1_200  # Characters of a text that are read, half of them from each end
LEAST_ERRORS = 6.0  # Standard errors by which the two sides differ, at least
SUDDEN = 0.6  # Share of the change that lies within two steps, at least
RISE = 0.25  # Standard deviations of single completions by which the reward rises, at least
TREND_STEPS = 10  # Steps on either side of a place through which a line is drawn
RISE_ERRORS = 3.2  # Standard errors by which it rises, at least
DATA_MOVED = 0.5  # Share of rows whose column has another value, from which the data explains a jump
MOST_KINDS = 20  # Values of a column that names kinds of rows, such as a level, at most
LEAST_HOLDERS = 0.05  # Share of the texts that have a word, from which it is looked at

_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|\w+|[^\w\s]")
FORMATS: Mapping[str, re.Pattern[str]] = {
    "boxed answers": re.compile(r"\\boxed\b"),
    "tags": re.compile(r"</[A-Za-z][\w-]{0,30}>"),
    "fences of code": re.compile(r"```"),
    "headings": re.compile(r"^#{1,6} ", re.MULTILINE),
    "lists": re.compile(r"^\s*(?:[-*•]|\d{1,3}[.)]) ", re.MULTILINE),
    "bold text": re.compile(r"\*\*\S"),
    "formulas": re.compile(r"\$[^$\n]+\$|\\[(\[]"),
    "objects of JSON": re.compile(r"\{\s*\"\w+\"\s*:"),
    "tables": re.compile(r"^\|.*\|\s*$", re.MULTILINE),
    "several paragraphs": re.compile(r"\n\s*\n"),
}
"""Marks of a format, by what a completion with one has."""


class _Jump(NamedTuple):
    """A change between two steps, of one of several series."""

    errors: float  # The difference of the two sides, in standard errors
    series: int  # The place of the series among all
    step: int  # The first step behind it
    before: float  # The mean of the steps before
    after: float  # The mean of those behind

    @property
    def change(self) -> float:
        return self.after - self.before


def length_jump(window: Evidence, baseline: Evidence | None) -> Detection | None:
    """Completions become much longer or shorter from one step to the next, and the reward rises with it.

    Formula: means of the groups' logarithmic lengths, of up to 5 steps before a place and behind it. Flagged where the
    length changes by half (or to two thirds) there, by 6 standard errors (Welch), with 0.6 of the change within two
    steps, and the weighted reward (from worst to best) or a paid reward rises by 0.25 standard deviations of single
    completions and 3.2 standard errors more than its slopes on both sides surely explain. Not where the rows change
    there too: another value in most of a column, or prompts of another length.

    Source: own; a policy that learns changes slowly, and an exploit spreads within a few steps (arXiv 2503.11926).
    Limits: a limit of tokens that is raised in one step is flagged where the reward rises with it.
    """
    recent = _recent(window)
    sizes = np.log1p(lengths(recent.evidence))
    jump = _best_jump(recent, recent.evidence.table, sizes[:, None], np.array([np.log(1.5)]))
    if jump is None:
        return None
    ratio = float(np.exp(jump.change))
    message = f"completions are {ratio:.2g} times as long from step {jump.step} on, and the reward rises with it"
    action = f"Read the best completions of step {jump.step} and after: are they paid for what they say?"
    bound, old = 1.5 if ratio > 1 else 1 / 1.5, float(np.expm1(jump.before))
    return Detection(ratio, bound, message, action, baseline=old, rows=_best_after(window, jump.step))


def format_jump(window: Evidence, baseline: Evidence | None) -> Detection | None:
    r"""Completions take on or drop a format from one step to the next, and the reward rises with it.

    Formula: the share of completions with ``\boxed``, tags, fences of code, headings, lists, bold text, formulas,
    objects of JSON, tables or several paragraphs, of up to 24 texts a step. Flagged where the share of one changes by
    0.3, with the other conditions of length_jump.

    Source: own, as length_jump.
    Limits: what a format reward asks for is learned within a few steps where a model nearly knows it, and flagged.
    """
    recent = _recent(window)
    if not _rising(recent):
        return None
    sample = _texts_of(recent)
    has = np.array([[pattern.search(text) is not None for pattern in FORMATS.values()] for text in sample.texts], float)
    jump = _best_jump(recent, sample.table, has, np.full(len(FORMATS), 0.3)) if len(has) else None
    if jump is None:
        return None
    name = list(FORMATS)[jump.series]
    message = f"completions with {name} go from {jump.before:.0%} to {jump.after:.0%} at step {jump.step}"
    message += ", and the reward rises with it"
    action = f"Compare completions of step {jump.step} with those before: is the form paid, or what is in it?"
    rows = _best_after(window, jump.step)
    return Detection(abs(jump.change), 0.3, message, action, baseline=jump.before, rows=rows)


def token_jump(window: Evidence, baseline: Evidence | None) -> Detection | None:
    """A word or sign spreads from one step to the next, and the reward rises with it.

    Formula: for each word, number, sign or ideograph, the share of completions that have it, and its share of all words
    and signs of a completion, of up to 24 texts a step. Flagged where the first rises by 0.4, or the second by 0.05 and
    to three times as much, with the other conditions of length_jump. What stands in most of these completions' prompts
    is left out.

    Source: own, as length_jump.
    Limits: of a text the first and last 600 characters are read. An exploit in other words each time is not seen.
    """
    recent = _recent(window)
    if not _rising(recent):
        return None
    vocabulary = _words_of(recent)
    for values, bound, subject, whole in (
        (vocabulary.has, 0.4, "completions that have a certain word or sign go", ""),
        (vocabulary.shares, 0.05, "a word or sign goes", " of all words"),
    ):
        for jump in _jumps(recent, vocabulary.table, values, np.full(len(vocabulary.names), bound)):
            if jump.change < 0 or (whole and jump.after < 3 * jump.before) or vocabulary.is_in_prompts(recent, jump):
                continue
            message = f"{subject} from {jump.before:.0%} to {jump.after:.0%}{whole} at step {jump.step}"
            message += ", and the reward rises with it"
            action = f"Read completions of step {jump.step} and after that have it: what does the reward pay for?"
            rows = _best_after(window, jump.step, vocabulary.ids_with(jump.series))
            quote = vocabulary.names[jump.series]
            return Detection(jump.change, bound, message, action, baseline=jump.before, rows=rows, quote=quote)
    return None


def has_two_sides(window: Evidence) -> bool:
    """Return whether there are enough steps before and behind a place."""
    return window.timed and len(_recent(window).steps) >= 2 * LEAST_STEPS


@dataclass(frozen=True)
class _Recent:
    """A window with the one before."""

    evidence: Evidence
    steps: Whole  # The steps of both
    new: int  # How many of them are the window's

    @property
    def places(self) -> range:
        """The places between steps that this window tells of, and the window before could not."""
        count = len(self.steps)
        return range(max(LEAST_STEPS, count - self.new - LEAST_STEPS + 1), count - LEAST_STEPS + 1)

    def side(self, split: int) -> tuple[slice, slice]:
        """Return the places of the steps before a place and behind it."""
        return slice(max(0, split - SIDE_STEPS), split), slice(split, min(len(self.steps), split + SIDE_STEPS))


def _recent(window: Evidence) -> _Recent:
    def work() -> _Recent:
        new = len(np.unique(window.table.steps))
        if window.before is None or not len(window.before.table):
            return _Recent(window, np.unique(window.table.steps), new)
        table = join_tables([window.before.table, window.table])
        return _Recent(replace(window, table=table, before=None, _cache={}), np.unique(table.steps), new)

    return window.cached("recent", work)


class _Groups(NamedTuple):
    """Means of groups of completions, of several series: shape (groups, series)."""

    values: Floats
    places: Whole  # Of each group, the place of its step
    by_step: Floats  # Means of the groups of a step; shape (steps, series)


def _group_means(recent: _Recent, table: CompletionTable, values: Floats) -> _Groups:
    is_number = ~np.isnan(values).any(axis=1)
    groups, steps = table.groups[is_number], table.steps[is_number]
    _, firsts, sizes = np.unique(groups, return_index=True, return_counts=True)
    places = np.searchsorted(recent.steps, steps[firsts])
    if not len(firsts):
        return _Groups(np.empty((0, values.shape[1])), places, np.full((len(recent.steps), values.shape[1]), np.nan))
    starts = np.r_[0, np.cumsum(sizes)[:-1]]
    means = np.add.reduceat(values[is_number][np.argsort(groups, kind="stable")], starts, axis=0) / sizes[:, None]
    by_step = [means[places == at].mean(axis=0) if (places == at).any() else None for at in range(len(recent.steps))]
    unknown = np.full(values.shape[1], np.nan)
    return _Groups(means, places, np.array([unknown if row is None else row for row in by_step]))


def _jumps(recent: _Recent, table: CompletionTable, values: Floats, least: Floats) -> list[_Jump]:
    """Return the jumps of series (completions, series) by ``least`` at which the reward rises, the sharpest first."""
    groups = _group_means(recent, table, values)
    jumps = [jump for split in _rising(recent) for jump in _jumps_at(recent, groups, split, least)]
    jumps.sort(reverse=True)
    return [jump for jump in jumps if not _data_moves(recent, jump.step)]


def _best_jump(recent: _Recent, table: CompletionTable, values: Floats, least: Floats) -> _Jump | None:
    return next(iter(_jumps(recent, table, values, least)), None)


def _jumps_at(recent: _Recent, groups: _Groups, split: int, least: Floats) -> list[_Jump]:
    """Return the jumps at one place, whatever the reward does there."""
    sides = [groups.values[(groups.places >= side.start) & (groups.places < side.stop)] for side in recent.side(split)]
    if min(map(len, sides)) < LEAST_GROUPS:
        return []
    before, after = (side.mean(axis=0) for side in sides)
    change = after - before
    ends = [at for at in (split - 1, split, split + 1) if 1 <= at < len(recent.steps) - 1]
    steepest = np.max([(groups.by_step[at + 1] - groups.by_step[at - 1]) * np.sign(change) for at in ends], axis=0)
    errors = np.abs(change) / _error(sides)
    fits = (np.abs(change) >= least) & (errors >= LEAST_ERRORS) & (steepest >= SUDDEN * np.abs(change))
    return [
        _Jump(float(errors[series]), int(series), int(recent.steps[split]), float(before[series]), float(after[series]))
        for series in np.flatnonzero(fits)
    ]


def _error(sides: Sequence[Floats]) -> Floats:
    """Return the standard errors of the difference of two means (Welch), which a few equal values do not make 0."""
    every = np.concatenate(sides)
    floor = (0.05 * (every.max(axis=0) - every.min(axis=0)) + 1e-9) ** 2
    error: Floats = np.sqrt(sum(np.maximum(side.var(axis=0, ddof=1), floor) / len(side) for side in sides))
    return error


def _rising(recent: _Recent) -> list[int]:
    """Return the places at which the total or a paid reward rises; of most windows none, and then no text is read."""

    def work() -> list[int]:
        pays = _pays(recent.evidence)
        means = [_group_means(recent, recent.evidence.table, pay[:, None]) for pay in pays]
        return [split for split in recent.places if any(map(_rises, repeat(recent), pays, means, repeat(split)))]

    return recent.evidence.cached("rising", work)


def _pays(evidence: Evidence) -> list[Floats]:
    """Return the weighted reward of completions, and each paid reward's scores with the sign of its weight."""
    if len(evidence.paid) < 2:
        return [evidence.share_of_best()]
    scores = [np.sign(evidence.weights[name]) * evidence.table.scores[name] for name in evidence.paid]
    return [evidence.share_of_best(), *scores]


def _rises(recent: _Recent, pay: Floats, groups: _Groups, split: int) -> bool:
    """Return whether what is paid rises at a place, more than it does on either side of it."""
    evidence = recent.evidence
    sides = [groups.values[(groups.places >= side.start) & (groups.places < side.stop)] for side in recent.side(split)]
    single = without_nan(pay[evidence.table.steps < recent.steps[split]])
    if min(map(len, sides)) < LEAST_GROUPS or not len(single) or single.std() <= 0:
        return False
    rise = float(sides[1].mean() - sides[0].mean()) - _steady_rise(groups.by_step[:, 0], split)
    return bool(rise >= RISE * single.std() and rise >= RISE_ERRORS * _error(sides)[0])


def _steady_rise(means: Floats, split: int) -> float:
    """Return by how much the sides surely differ if the reward goes on as it does on either side of a place."""
    parts = (means[max(0, split - TREND_STEPS) : split], means[split : split + TREND_STEPS])
    lines = [line(part) for part in parts if len(part) >= LEAST_STEPS and not np.isnan(part).any()]
    slopes = [fitted.slope - fitted.error for fitted in lines]
    return SIDE_STEPS * max(0.0, sum(slopes) / max(len(slopes), 1))


def _data_moves(recent: _Recent, step: int) -> bool:
    """Return whether the rows change at a step: most values of a column, or the prompts' lengths by half."""
    return recent.evidence.cached(f"data moves at {step}", lambda: _compare_rows(recent, step))


def _compare_rows(recent: _Recent, step: int) -> bool:
    table = recent.evidence.table
    sides = []
    for side in recent.side(int(np.searchsorted(recent.steps, step))):
        places = np.flatnonzero(np.isin(table.steps, recent.steps[side]))
        _, firsts = np.unique(table.groups[places], return_index=True)
        rows = recent.evidence.prompts(table.ids[places[firsts]].tolist())
        sides.append([row for row in rows if row is not None])
    if not all(sides):
        return False
    first, second = (float(np.median([len(row.prompt) for row in side])) for side in sides)
    if max(first, second) > 1.5 * max(min(first, second), 20.0):
        return True
    names = {name for side in sides for row in side for name in row.columns}
    return any(_moved([[repr(row.columns.get(name)) for row in side] for side in sides]) for name in names)


def _moved(sides: Sequence[Sequence[str]]) -> bool:
    """Return whether half of a column's values are others, where it has so few that they name kinds of rows."""
    first, second = (Counter(side) for side in sides)
    names = first.keys() | second.keys()
    apart = sum(abs(first[name] / first.total() - second[name] / second.total()) for name in names) / 2
    return len(names) <= MOST_KINDS and apart > DATA_MOVED


class _StepTexts(NamedTuple):
    """Some completions of each step, with their texts."""

    table: CompletionTable
    texts: list[str]


def _texts_of(recent: _Recent) -> _StepTexts:
    def work() -> _StepTexts:
        table = recent.evidence.table
        rows: list[int] = []
        for step in recent.steps:
            own = np.flatnonzero(table.steps == step)
            rows += own[np.unique(np.linspace(0, len(own) - 1, TEXTS_A_STEP).astype(int))].tolist()
        texts = recent.evidence.texts(table.ids[rows].tolist())
        places = np.array([row for row, text in zip(rows, texts, strict=True) if text is not None], dtype=np.int64)
        return _StepTexts(table.where(places), [_ends(text) for text in texts if text is not None])

    return recent.evidence.cached("step texts", work)


def _ends(text: str) -> str:
    half = READ_CHARS // 2
    return text if len(text) <= READ_CHARS else f"{text[:half]}\n{text[-half:]}"


class _Words(NamedTuple):
    """The words and signs of some completions that one of twenty has or more: shape (completions, words)."""

    table: CompletionTable
    names: list[str]
    has: Floats  # 1 where a completion has it
    shares: Floats  # Its share of all words and signs of the completion

    def ids_with(self, word: int) -> Whole:
        """Return the completions that have a word."""
        ids: Whole = self.table.ids[self.has[:, word] > 0]
        return ids

    def is_in_prompts(self, recent: _Recent, jump: _Jump) -> bool:
        """Return whether a word stands in the prompts of most completions that have it from a jump on."""
        ids = self.table.ids[(self.has[:, jump.series] > 0) & (self.table.steps >= jump.step)].tolist()
        rows = [row for row in recent.evidence.prompts(ids) if row is not None]
        with_word = sum(self.names[jump.series] in _WORD.findall(row.prompt.casefold()) for row in rows)
        return 2 * with_word > len(rows)


def _words_of(recent: _Recent) -> _Words:
    sample = _texts_of(recent)
    counts = [Counter(_WORD.findall(text.casefold())) for text in sample.texts]
    holders = Counter(word for count in counts for word in count)
    names = [word for word, number in holders.items() if number >= LEAST_HOLDERS * len(counts)]
    columns, numbers = {word: column for column, word in enumerate(names)}, np.zeros((len(counts), len(names)))
    for row, count in enumerate(counts):
        for word in count.keys() & columns.keys():
            numbers[row, columns[word]] = count[word]
    sizes = np.array([max(count.total(), 1) for count in counts], dtype=float)
    return _Words(sample.table, names, (numbers > 0).astype(float), numbers / sizes[:, None])


def _best_after(window: Evidence, step: int, ids: Whole | None = None) -> Whole:
    """Return the best paid completions of the window from a step on; only those with ``ids`` where there are any."""
    table = window.table
    rows = np.flatnonzero(table.steps >= step)
    if ids is not None and np.isin(table.ids[rows], ids).any():
        rows = rows[np.isin(table.ids[rows], ids)]
    order: Whole = rows[np.argsort(-np.nan_to_num(table.rewards[rows], nan=-np.inf), kind="stable")]
    return order
