"""What a returned value is: a score, a skip, or no score, with words that show it."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from rewardkit import Cause, Score, Unanswered, group_reward, reward
from rewardkit.runtime.attempt import finding_of
from rewardkit.runtime.finding import CallFinding, decode, encode

ONE = reward(name="one")(lambda completion: 0.0).spec
ALL = group_reward(name="all")(lambda completions: [0.0]).spec

SCORES: dict[str, tuple[Any, float]] = {
    "an int": (3, 3.0),
    "a bool": (True, 1.0),
    "a Fraction": (Fraction(1, 4), 0.25),
    "a Decimal": (Decimal("0.25"), 0.25),
    "a large int": (10**308, 1e308),
    "a numpy number": (np.float32(0.5), 0.5),
    "an array without a dimension": (np.array(2), 2.0),
}


@pytest.mark.parametrize(("value", "score"), SCORES.values(), ids=SCORES)
def test_every_kind_of_finite_number_is_a_score(value: Any, score: float) -> None:
    """Alone, in a Score, and in a group's list."""
    assert CallFinding(score) == finding_of(ONE, value, 1)
    assert CallFinding(score, metrics={"a": score}) == finding_of(ONE, Score(value, metrics={"a": value}), 1)
    assert CallFinding(rows=(CallFinding(score),)) == finding_of(ALL, [value], 1)


def test_what_did_not_answer_inside_a_reward_leaves_the_worker_as_data() -> None:
    """Beside a score and beside a skip, in words that any file takes; what is no record is ``bad_return``."""
    lost = Unanswered("judge", "empty", "half \ud83d", 2)
    record = Unanswered("judge", "empty", "half \\ud83d", 2)
    for value in (1.0, None):
        finding = finding_of(ONE, Score(value, unanswered=[lost]), 1)
        assert CallFinding(value, unanswered=(record,)) == finding == decode(json.loads(str(encode(finding))), 1)
    assert Cause.BAD_RETURN is finding_of(ONE, Score(1.0, unanswered=["judge"]), 1).cause  # type: ignore[list-item]
    odd = Unanswered(7, "half \ud83d", None, True)  # type: ignore[arg-type]
    finding = finding_of(ONE, Score(1.0, unanswered=[odd]), 1)
    assert CallFinding(1.0, unanswered=(Unanswered("7", "half \\ud83d", "None", 1),)) == finding
    assert finding == decode(json.loads(str(encode(finding))), 1)


TOO_LARGE: dict[str, tuple[Any, str]] = {
    "an int": (10**400, "int too large for a float (at most 1.8e308)"),
    "a negative int": (-(10**400), "int too large for a float"),
    "an int that cannot be written out": (10**6000, "int too large for a float"),
    "a Decimal": (Decimal("1e400"), "Decimal too large for a float"),
    "a Fraction": (Fraction(10**400), "Fraction too large for a float"),
    "an array of an int": (np.array(10**400, dtype=object), "too large for a float"),
    "a long double": (np.longdouble("1e400"), "too large for a float"),
    "infinity": (float("inf"), "inf"),
    "infinity below": (float("-inf"), "-inf"),
    "nan": (float("nan"), "nan"),
    "a Decimal without end": (Decimal("Infinity"), "Decimal Decimal('Infinity')"),
    "a Decimal that is none": (Decimal("NaN"), "Decimal Decimal('NaN')"),
    "a Decimal that signals": (Decimal("sNaN"), "Decimal Decimal('sNaN')"),
}


@pytest.mark.parametrize(("value", "words"), TOO_LARGE.values(), ids=TOO_LARGE)
def test_a_number_that_is_no_finite_float_is_told_as_what_it_is(value: Any, words: str) -> None:
    """A finite number that is too large is not called infinite; alone, in a Score, as a metric, in a group."""
    for finding in (finding_of(ONE, value, 1), finding_of(ONE, Score(value), 1), finding_of(ALL, [value], 1).rows[0]):
        error = finding.error or ""
        assert Cause.BAD_RETURN is finding.cause
        assert error.startswith("returned ")
        assert words in error
        assert error.endswith("; expected a finite number, a Score or None")
    assert words in str(finding_of(ONE, Score(1.0, metrics={"a": value}), 1).error)
