"""Labels and right answers among the completions: texts that are alike because they are right."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from rewardkit.health.evidence import Evidence
from rewardkit.health.measures import by_group
from rewardkit.record.table import Floats, Mask

FEW_CELLS = 0.1  # Share of a text's groups in which it must be above the others, and below
CLEARLY = 0.1  # Share of a reward's range by which it is above or below
MOST_NOISE = 0.25  # Variance of one text's scores inside groups, over that of its means between them, at most
ANSWER_CHARS = 200  # A longer text is no answer alone
VERDICTS = 3  # Different scores of a check, at most
SORTED = 0.2  # By how much likelier two completions of one group are one text than two of different groups


def plain_text(text: str) -> str:
    """Return a text as it is compared with others: without case, and with single blanks."""
    return " ".join(text.split()).casefold()


def label_texts(window: Evidence, baseline: Evidence | None) -> frozenset[str]:
    """Return the plain texts that are labels, as the completions of a window, the one before and the baseline say.

    A text is one where some paid reward puts it above the other completions of the group under one prompt and below
    them under another, surely: its scores differ between groups, and hardly inside them. Where groups have one text
    each by now, nothing is above or below; then those texts are labels that sort the prompts, which two completions of
    one group share far more often than two of different groups.
    """
    return window.cached("labels", lambda: _labels(window, baseline))


def _labels(window: Evidence, baseline: Evidence | None) -> frozenset[str]:
    shared = _shared_texts(window)
    if not shared:
        return frozenset()
    parts = [part for part in (window, window.before, baseline) if part is not None]
    cells: dict[str, dict[str, list[_Cell]]] = defaultdict(lambda: defaultdict(list))
    for part in parts:
        for reward in part.paid:
            for text, cell in _cells(part, reward):
                cells[reward][text].append(cell)
    labels = {text for by_text in cells.values() for text in shared if _is_label(by_text.get(text, []))}
    return frozenset(labels if labels else shared if _sorts_prompts(window, shared) else ())


def plain_texts(evidence: Evidence) -> list[str]:
    """Return the sampled texts as :func:`plain_text` has them."""
    return evidence.cached("plain texts", lambda: [plain_text(text) for text in evidence.sampled().texts])


def _shared_texts(window: Evidence) -> set[str]:
    """Return the sampled texts that stand under several prompts."""
    prompts_of: dict[str, set[int]] = defaultdict(set)
    for text, prompt in zip(plain_texts(window), window.sampled().table.prompts.tolist(), strict=True):
        prompts_of[text].add(prompt)
    return {text for text, prompts in prompts_of.items() if len(prompts) > 1}


class _Cell(NamedTuple):
    """One text in one group, by one reward."""

    above: float  # How far its mean is above the other completions', in shares of the reward's range
    variance: float  # The variance of its scores there; `nan` of a single one


def _cells(part: Evidence, reward: str) -> Iterator[tuple[str, _Cell]]:
    """Yield each sampled text of a group with what a reward says of it; of a group of one, against the range's middle.

    Nothing where the reward has one score.
    """
    table, texts = part.sampled().table, plain_texts(part)
    scores = table.scores[reward] if reward in table.scores else np.full(len(table), np.nan)
    scored = np.flatnonzero(np.isfinite(scores))
    span = float(np.ptp(scores[scored])) if len(scored) else 0.0
    if not 0 < span < np.inf:
        return
    shares = (scores[scored] - scores[scored].min()) / span
    groups = by_group(shares, table.groups[scored])
    middles: Floats = np.where(groups.counts > 1, groups.means, 0.5)
    own: dict[tuple[int, str], list[float]] = defaultdict(list)
    for index, group, share in zip(scored.tolist(), groups.places.tolist(), shares.tolist(), strict=True):
        own[group, texts[index]].append(share)
    for (group, text), values in own.items():
        variance = float(np.var(values, ddof=1)) if len(values) > 1 else np.nan
        yield text, _Cell(float(np.mean(values)) - float(middles[group]), variance)


def _is_label(cells: list[_Cell]) -> bool:
    """Return whether a text is surely above the others in some of its groups, and below them in some."""
    above = np.array([cell.above for cell in cells])
    least = max(1.0, FEW_CELLS * len(cells))
    if min((above > CLEARLY).sum(), (above < -CLEARLY).sum()) < least:
        return False
    inside = np.array([cell.variance for cell in cells])
    inside = inside[~np.isnan(inside)]
    return not len(inside) or float(inside.mean()) <= MOST_NOISE * float(above.var())


def _sorts_prompts(window: Evidence, shared: set[str]) -> bool:
    """Return whether two completions of one group share a text far more often than two of different groups."""
    table, texts = window.sampled().table, plain_texts(window)
    kinds = {text: kind for kind, text in enumerate(sorted(shared))}
    chosen = np.array([row for row, text in enumerate(texts) if text in kinds], dtype=np.int64)
    _, groups = np.unique(table.groups[chosen], return_inverse=True)
    counts = np.zeros((int(groups.max()) + 1, len(kinds)))
    np.add.at(counts, (groups, np.array([kinds[texts[row]] for row in chosen])), 1)
    sizes, totals = counts.sum(axis=1), counts.sum(axis=0)
    pairs_inside = float((sizes * (sizes - 1)).sum())
    pairs_across = float(sizes.sum() ** 2 - (sizes**2).sum())
    if not pairs_inside or not pairs_across:
        return False
    inside = float((counts * (counts - 1)).sum()) / pairs_inside
    across = float((totals**2).sum() - (counts**2).sum()) / pairs_across
    return inside - across >= SORTED


def right_answers(evidence: Evidence, window: Evidence, baseline: Evidence | None) -> Mask:
    """Return which sampled completions are a right answer and no more.

    They have 200 characters or fewer, and the best score of each paid check that reads the text: one with two or three
    different scores, of which equal texts under one prompt have the same.
    """
    sample = evidence.sampled()
    short: Mask = np.array([len(text) <= ANSWER_CHARS for text in plain_texts(evidence)], dtype=bool)
    if not short.any():
        return short
    best = window.cached("best of checks", lambda: _best_of_checks([window] + ([] if baseline is None else [baseline])))
    right: Mask = short & bool(best)
    for check, score in best.items():
        right &= np.isclose(sample.table.scores.get(check, np.full(len(sample.texts), np.nan)), score)
    return right


def _best_of_checks(parts: Sequence[Evidence]) -> Mapping[str, float]:
    """Return by paid check that reads the text its best score, by its weight's sign."""
    best = {}
    for reward in parts[0].paid:
        columns = [part.sampled().table.scores.get(reward, np.empty(0)) for part in parts]
        values = np.unique(np.round(np.concatenate([column[np.isfinite(column)] for column in columns]), 6))
        if 2 <= len(values) <= VERDICTS and all(_reads_texts(part, reward) for part in parts):
            best[reward] = float(values[-1] if parts[0].weights[reward] > 0 else values[0])
    return best


def _reads_texts(part: Evidence, reward: str) -> bool:
    """Return whether equal texts of a group have hardly different scores, as far as there are such texts."""
    table, cells = part.sampled().table, defaultdict(list)
    scores = table.scores.get(reward, np.full(len(table), np.nan))
    for group, text, score in zip(table.groups.tolist(), plain_texts(part), scores.tolist(), strict=True):
        if np.isfinite(score):
            cells[group, text].append(score)
    inside = [float(np.var(own)) for own in cells.values() if len(own) > 1]
    return not inside or float(np.mean(inside)) <= MOST_NOISE * float(np.nanvar(scores))
