"""What is said beside flat groups that are no flag: never that nothing was found."""

from __future__ import annotations

import re
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from rewardkit.health import Watch, diagnose_rows
from rewardkit.health.coverage import summary_of
from rewardkit.health.evidence import Evidence
from rewardkit.health.examine import table_of
from rewardkit.health.gradient import unflagged_share, zero_variance
from rewardkit.record.table import CompletionTable
from rewardkit.score_batch import ScoreBatch
from rewardkit.types import Outcome, Rollout, Status


def _batch(flat: int, groups: int, size: int = 4) -> ScoreBatch:
    """Return scored groups, of which so many are flat and all worst; of the others half are right."""
    random = Random(groups)
    rollouts = [
        Rollout(f"{group}?", " ".join(f"w{random.randrange(10_000)}" for _ in range(9)), {})
        for group in range(groups)
        for _ in range(size)
    ]
    scores = [float(group >= flat and index % 2) for group in range(groups) for index in range(size)]
    outcomes = [Outcome(Status.SCORED, score, version="a" * 12) for score in scores]
    return ScoreBatch(rollouts, {"correct": outcomes}, {"correct": 1.0})


def _table(flat: int, groups: int, step: int = 0, size: int = 4) -> CompletionTable:
    table = table_of(_batch(flat, groups, size))
    return replace(table, steps=np.full(len(table), step))


SIZE = 8  # Completions of a group in the table
SAID: dict[str, tuple[int, int, bool, str]] = {
    "most of 8": (
        7,
        8,
        True,
        "7 of 8 groups give no gradient, too few groups for a flag: 10 groups like them would be",
    ),
    "all of 3": (3, 3, True, "3 of 3 groups give no gradient, too few groups for a flag: 8 groups like them would be"),
    "one": (
        1,
        1,
        True,
        "1 of 1 group gives no gradient, too few groups for a flag: 8 groups like them would be enough",
    ),
    "more than half": (30, 50, True, "30 of 50 groups give no gradient, and a flag begins above 80%"),
    "all of 3 rows' groups": (3, 3, False, "3 of 3 groups give no gradient, too few groups for a flag: 4 groups like"),
    "half": (25, 50, True, ""),
    "few": (1, 8, True, ""),
    "none": (0, 8, False, ""),
    "as many as chance makes": (
        38,
        40,
        True,
        "38 of 40 groups give no gradient, and in groups of this size a flag begins above 95%",
    ),
    "all of 40": (40, 40, True, ""),
    "most rows": (8, 10, False, ""),
}


@pytest.mark.parametrize("case", SAID)
def test_the_closing_words_tell_of_flat_groups(case: str) -> None:
    """Their count, and what would be enough; ``""`` where few are flat, and where that is a flag."""
    flat, groups, timed, words = SAID[case]
    evidence = Evidence(_table(flat, groups, size=SIZE) if timed else table_of(_batch(flat, groups, SIZE)))
    reason = unflagged_share(evidence, None)
    assert (words, bool(words)) == (reason[: len(words)], bool(reason))


@pytest.mark.parametrize("seed", range(120))
def test_a_high_share_is_a_flag_or_is_told(seed: int) -> None:
    """For groups at random: what is no flag is told with what would be one, and so many like them are one."""
    random = Random(seed)
    groups, size = random.randint(1, 40), random.choice((2, 4, 8))
    flat = random.randint(0, groups)
    timed = random.random() < 0.5
    table = _table(flat, groups, size=size) if timed else table_of(_batch(flat, groups, size))
    is_flag, reason = zero_variance(Evidence(table), None) is not None, unflagged_share(Evidence(table), None)
    assert (flat > groups / 2) is (is_flag or bool(reason))
    assert not (is_flag and reason)
    if match := re.search(r"([\d,]+) groups like them would be enough", reason):
        enough = int(match[1].replace(",", ""))
        assert enough > groups
        more = round(flat / groups * enough)
        table = _table(more, enough, size=size) if timed else table_of(_batch(more, enough, size))
        assert not unflagged_share(Evidence(table), None).endswith("would be enough")


def test_no_diagnosis_says_that_it_found_nothing_under_such_news() -> None:
    """Of rows and of a run; with several windows the one that was flat is named."""
    found_nothing = "and found nothing."
    few = diagnose_rows(_batch(1, 1))
    words = "1 of 1 group gives no gradient, too few groups for a flag: 4 groups like them would be enough."
    assert few.summary.endswith(f"; {words}"), few.summary
    assert diagnose_rows(_batch(1, 8)).summary.endswith(found_nothing)
    watch = Watch(every=2)
    for step in range(6):
        watch.observe(_table(int(step in (2, 3)), 1, step))
    watch.finish()
    summary = summary_of(watch.flags, watch.looked, watch.coverage)
    reason = "2 of 2 groups give no gradient, too few groups for a flag: 8 groups like them would be enough"
    assert summary.endswith(f"; in steps 2 to 3 {reason}."), summary
    assert {"steps": (2, 3), "reason": reason} == watch.coverage.as_row()["unflagged"]
