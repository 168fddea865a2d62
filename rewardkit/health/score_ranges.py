"""What is known of the scores that rewards can give, from the rewards or from a record, and what is said without it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rewardkit.declare.bounds import finite
from rewardkit.declare.compose import Composable
from rewardkit.health.evidence import Ranges, Undeclared
from rewardkit.record.reader import RunReader


class ScoreRanges(NamedTuple):
    """The ranges of rewards; a reward that is in neither mapping is one of which nothing is recorded."""

    ranges: Ranges  # By reward, its lowest and highest score
    undeclared: Undeclared  # By reward without them, the rewards that declare no range, itself or parts of it


def ranges_of(run: RunReader) -> ScoreRanges:
    """Return the ranges of the newest version of each reward in a run."""
    newest = {version.reward: version.settings for version in run.own_versions}
    return _score_ranges({name: _recorded(name, settings) for name, settings in newest.items()})


def declared_ranges(rewards: Mapping[str, Composable]) -> ScoreRanges:
    """Return the ranges of rewards by name, and of their parts."""
    leaves = {leaf.name: leaf for reward in rewards.values() for leaf in reward.leaves}
    every: Mapping[str, Composable] = {**leaves, **rewards}
    return _score_ranges({name: (reward.score_range, reward.parts_without_range) for name, reward in every.items()})


_Declared = tuple[Sequence[float] | None, Sequence[str]] | None


def _recorded(name: str, settings: Mapping[str, Any]) -> _Declared:
    """Return range and parts without one as a record has them; ``None`` where it has neither."""
    if "score_range" in settings:
        return settings["score_range"], settings.get("parts_without_range", ())
    options = settings.get("options")  # of a record that has no more
    return None if options is None else (options.get("score_range"), [name])


def _score_ranges(declared: Mapping[str, _Declared]) -> ScoreRanges:
    ranges, undeclared = {}, {}
    for name, facts in declared.items():
        if facts is None:
            continue
        bounds, parts = facts
        ends = None if bounds is None else finite((float(bounds[0]), float(bounds[1])))
        if ends is None:
            undeclared[name] = tuple(parts)
        else:
            ranges[name] = ends
    return ScoreRanges(ranges, undeclared)
