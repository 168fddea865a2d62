"""Golds of two rows that mean the same to a reward, so that each is a right answer of the other's row.

A is paid in full under B, B under A, and neither on a third row, nor a third row's gold on theirs: then they are one
answer in two writings, as ``half`` and ``50%``, or ``[a, b]`` and ``[b, a]`` to a reward of sets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from rewardkit.audit.gold import other_gold
from rewardkit.audit.probe import Probe, first_of_each
from rewardkit.audit.rows import AuditRow

MOST_GOLDS = 5  # golds that are compared with each other: a row's own and those of its donors
_ROUNDING = 1e-6

Writer = Callable[[AuditRow], Probe | None]
"""Writes the answer of a row as the reward pays it on another; gives ``None`` where that row has no such answer."""


class EqualGolds(NamedTuple):
    """Two golds that a reward pays in each other's place, with the numbers of their rows."""

    line: int
    gold: str
    other_line: int
    other_gold: str


class PayLevels(NamedTuple):
    """What a right answer of a row earns, and the score above which a completion counts as paid."""

    full: float
    limit: float


class GoldTrial(NamedTuple):
    """The answer of one row tried on another, both by their indices among those that are compared."""

    answer: int
    target: int
    row: AuditRow
    probe: Probe


def compared_rows(row: AuditRow) -> list[AuditRow]:
    """Return the row and those of its donors whose golds are compared with its own, each gold once."""
    donors = first_of_each(row.donors, lambda donor: donor.gold and donor.gold.key)
    return [row, *donors[: MOST_GOLDS - 1]]


def own_trials(rows: Sequence[AuditRow], write: Writer) -> list[GoldTrial]:
    """Return the answers of the other rows on the first."""
    probes = [(answer, write(row)) for answer, row in enumerate(rows) if answer]
    return [GoldTrial(answer, 0, rows[0], probe) for answer, probe in probes if probe is not None]


def cross_trials(rows: Sequence[AuditRow], write: Writer) -> list[GoldTrial]:
    """Return the answers of all rows on all but the first; where there is no third row, a gold is made up for it."""
    probes = [write(row) for row in rows]
    trials = [
        GoldTrial(answer, target, row, probe)
        for answer, probe in enumerate(probes)
        for target, row in enumerate(rows)
        if target and probe is not None
    ]
    gold = rows[0].gold
    made = other_gold(gold) if len(rows) == 2 and gold is not None else None
    probe = write(replace(rows[0], gold=made, references=())) if made is not None else None
    return trials if probe is None else [*trials, GoldTrial(len(rows), 0, rows[0], probe)]


def equal_places(count: int, scores: Mapping[tuple[int, int], float | None], levels: PayLevels) -> list[int]:
    """Return the places of the rows, among ``count``, whose golds mean the same as the first's.

    Args:
        count: Rows that are compared.
        scores: What answers earned, by the indices of answer and row; that of one made up stands behind the others.
        levels: Those of the first row.
    """

    def is_full(answer: int, target: int) -> bool:
        score = scores.get((answer, target))
        return score is not None and score >= levels.full - _ROUNDING

    def is_apart(answer: int, target: int) -> bool:
        score = scores.get((answer, target), levels.full)
        return score is None or score <= levels.limit

    twins = [target for target in range(1, count) if is_full(target, 0) and is_full(0, target)]
    strangers = [target for target in range(1, count) if target not in twins]
    group = [0, *twins]
    are_one = all(is_full(a, b) for a in group for b in group if a != b)
    are_apart = all(is_apart(a, b) and is_apart(b, a) for a in group for b in strangers)
    has_third = bool(strangers) or (count == 2 and is_apart(count, 0))
    return twins if are_one and are_apart and has_third else []
