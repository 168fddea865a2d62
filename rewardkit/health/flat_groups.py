"""Groups in which a reward has one score, for each reward by itself: why a sum of several is flat, or only seems not.

A second reward that differs inside groups hides that the first does not, and one that differs between prompts alone
lifts groups that fail off the lowest sum. So each reward is looked at before the sum is spoken of.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from rewardkit.health.evidence import Ranges
from rewardkit.health.measures import by_group
from rewardkit.record.table import CompletionTable, Floats

TOP = 0.99  # A completion is at the top from this share of the way between the lowest and the highest reward


class FlatShare(NamedTuple):
    """Shares of all groups of two scores or more.

    Attributes:
        share: Groups in which all scores are the same.
        best: Those of them in which all are the best that was seen; of a reward with one score for all, the best that
            its ``score_range`` allows.
        worst: Those in which all are the worst.
    """

    share: float
    best: float
    worst: float

    @property
    def text(self) -> str:
        """The share, and what it is made of where that says something: ``50% of groups (29% all worst)``."""
        parts = [f"{part:.0%} all {name}" for name, part in (("worst", self.worst), ("best", self.best)) if part > 0]
        return f"{self.share:.0%} of groups" + (f" ({', '.join(parts)})" if parts else "")


class FlatGroups:
    """Counts of one reward's groups, table after table; best and worst are known when all were added."""

    def __init__(self, declared: tuple[float, float] | None = None) -> None:
        self._declared = declared
        self._groups = 0
        self._flat_scores: list[Floats] = []
        self._low, self._high = np.inf, -np.inf
        self._sign = 1.0

    def add(self, table: CompletionTable, reward: str) -> None:
        """Add the groups of a table in which the reward has a weight."""
        weights = np.nan_to_num(table.weights[reward])
        scores = np.where(weights != 0, table.scores[reward], np.nan)
        if np.isnan(scores).all():
            return
        parts = by_group(scores, table.groups)
        self._groups += int((parts.counts > 1).sum())
        self._flat_scores.append(parts.means[parts.flat])
        self._low, self._high = min(self._low, np.nanmin(scores)), max(self._high, np.nanmax(scores))
        self._sign = float(np.sign(weights[np.abs(weights).argmax()]))

    @property
    def result(self) -> FlatShare | None:
        """The shares; ``None`` without groups."""
        if not self._groups:
            return None
        scores = np.concatenate(self._flat_scores)
        low, high = self._low, self._high
        if low >= high and self._declared is not None:  # one score for all: only the range says how good it is
            low, high = self._declared
        room = high - low
        if not (np.isfinite(room) and room > 0):
            return FlatShare(len(scores) / self._groups, 0.0, 0.0)
        way = (scores - low) / room
        way = way if self._sign > 0 else 1 - way
        best, worst = (float(mask.sum()) / self._groups for mask in (way >= TOP, way <= 1 - TOP))
        return FlatShare(len(scores) / self._groups, best, worst)


class FlatShares:
    """The same for all rewards that have a weight; ``ranges`` are those that they declare."""

    def __init__(self, ranges: Ranges) -> None:
        self._ranges = ranges
        self._rewards: dict[str, FlatGroups] = {}

    def add(self, table: CompletionTable) -> None:
        for reward in table.scores:
            self._rewards.setdefault(reward, FlatGroups(self._ranges.get(reward))).add(table, reward)

    @property
    def results(self) -> dict[str, FlatShare]:
        """The shares by reward; empty where only one has groups, because it is the sum."""
        shares = {reward: share for reward, groups in self._rewards.items() if (share := groups.result) is not None}
        return shares if len(shares) > 1 else {}


def flat_shares(table: CompletionTable, ranges: Ranges) -> dict[str, FlatShare]:
    """Return the shares of each reward in a table; see :attr:`FlatShares.results`."""
    shares = FlatShares(ranges)
    shares.add(table)
    return shares.results


def alone_words(shares: Mapping[str, FlatShare]) -> str:
    """Return in how many groups each reward alone gives no gradient, as the beginning of a sentence on their sum.

    ``""`` where there are no shares.
    """
    first, *others = [f"{reward}{{}} in {share.text}" for reward, share in shares.items()] or [""]
    parts = [first.format(" alone gives no gradient"), *(other.format(" alone") for other in others)]
    return f"{', '.join(parts)}; together, " if shares else ""
