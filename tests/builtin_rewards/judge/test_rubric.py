"""What may be graded, how grades become a score, and the schema of a verdict."""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builtin_rewards.endpoint.errors import Fault, JudgeReplyError, JudgeSetupError
from builtin_rewards.judge.rubric import Criterion, Rubric, Scale, preference_schema

CORRECT = Criterion("correct", "Is it right?", weight=2)
CLEAR = Criterion("clear", "Is it plain?")
WEIGHTS = st.floats(min_value=0, exclude_min=True, allow_infinity=False)


@pytest.mark.parametrize(
    ("grades", "scale", "score"),
    [
        ({"correct": 5, "clear": 5}, (1, 5), 1.0),
        ({"correct": 1, "clear": 1}, (1, 5), 0.0),
        ({"correct": 4, "clear": 1}, (1, 5), 0.5),
        ({"clear": 1, "correct": 4}, (1, 5), 0.5),
        ({"correct": 0, "clear": 1}, (0, 1), 1 / 3),
        ({"correct": -1, "clear": 1}, (-1, 1), 1 / 3),
        ({"correct": 2.5, "clear": 2.5}, (1, 4), 0.5),
    ],
    ids=["best", "worst", "weighted", "other order", "two grades", "negative", "between grades"],
)
def test_score_is_the_weighted_mean_of_the_grades(
    grades: dict[str, float], scale: tuple[int, int], score: float
) -> None:
    """The score is sum(w * (g - low) / (high - low)) / sum(w), by hand."""
    assert score == pytest.approx(Rubric([CORRECT, CLEAR], scale).normalised(grades))


@given(st.lists(st.tuples(WEIGHTS, st.integers(1, 7)), min_size=1, max_size=6), st.randoms())
def test_score_lies_in_range_and_order_does_not_matter(graded: list[tuple[float, int]], chance: Any) -> None:
    """For any weights the score is in [0, 1], between the lowest and highest part, in whatever order criteria come."""
    criteria = [Criterion(f"c{place}", f"d{place}", weight) for place, (weight, _) in enumerate(graded)]
    grades = {f"c{place}": grade for place, (_, grade) in enumerate(graded)}
    score = Rubric(criteria, (1, 7)).normalised(grades)
    shuffled = chance.sample(criteria, len(criteria))
    parts = [(grade - 1) / 6 for _, grade in graded]
    assert 0.0 <= score <= 1.0
    assert min(parts) - 1e-9 <= score <= max(parts) + 1e-9
    assert score == Rubric(shuffled, (1, 7)).normalised(grades)


@pytest.mark.parametrize(
    ("grades", "fault"),
    [
        ({"correct": 3}, Fault.WRONG_SCHEMA),
        ({"correct": 3, "clear": 3, "kind": 3}, Fault.WRONG_SCHEMA),
        ({"correct": 3, "clear": "3"}, Fault.WRONG_SCHEMA),
        ({"correct": 3, "clear": True}, Fault.WRONG_SCHEMA),
        ({"correct": 3, "clear": 6}, Fault.OUT_OF_RANGE),
        ({"correct": 0, "clear": 3}, Fault.OUT_OF_RANGE),
        ({"correct": 3, "clear": math.nan}, Fault.WRONG_SCHEMA),
    ],
    ids=["missing", "unknown", "text", "bool", "above", "below", "nan"],
)
def test_odd_grades_are_no_score(grades: dict[str, Any], fault: Fault) -> None:
    """A grade that is missing, unknown or outside the scale is an error; none is moved into the scale."""
    with pytest.raises(JudgeReplyError) as caught:
        Rubric([CORRECT, CLEAR]).normalised(grades)
    assert fault == caught.value.fault


MET, NOT, NA = 1, 0, None
ARITHMETIC = [
    # Points, which are must-haves, grades, score. Positive points alone: the share that is met.
    ([1], "", [MET], 1),
    ([1], "", [NOT], 0),
    ([1, 1], "", [MET, NOT], 1 / 2),
    ([5, 3, 2], "", [MET, NOT, MET], 7 / 10),
    ([5, 3, 2], "", [NOT, NOT, MET], 2 / 10),
    ([0.5, 0.25], "", [NOT, MET], 1 / 3),
    ([1e308, 1e308], "", [MET, NOT], 1 / 2),
    # Negative points are taken off what is met, never added to what can be had.
    ([10, -5], "", [MET, NOT], 1),
    ([10, -5], "", [MET, MET], 1 / 2),
    ([10, -5], "", [NOT, MET], 0),
    ([10, -5], "", [NOT, NOT], 0),
    ([10, -10], "", [MET, MET], 0),
    ([10, -20], "", [MET, MET], 0),
    ([7, 3, -4], "", [MET, NOT, MET], 3 / 10),
    ([7, 3, -4], "", [MET, MET, MET], 6 / 10),
    ([2, -1, -1], "", [MET, MET, MET], 0),
    ([9, 1, -8], "", [NOT, MET, MET], 0),
    # What does not apply is in neither sum.
    ([1, 1], "", [MET, NA], 1),
    ([1, 1], "", [NOT, NA], 0),
    ([5, 3, 2], "", [NA, MET, NOT], 3 / 5),
    ([5, -3], "", [MET, NA], 1),
    ([5, -3], "", [NA, MET], None),
    ([5, 5], "", [NA, NA], None),
    # A must-have that fails caps the score, here at a quarter; a negative one fails where it is met.
    ([5, 5], "0", [NOT, MET], 1 / 4),
    ([5, 5], "0", [MET, NOT], 1 / 2),
    ([9, 1], "0", [NOT, MET], 1 / 10),
    ([5, 5], "0", [NA, MET], 1),
    ([5, 5, -1], "2", [MET, MET, MET], 1 / 4),
    ([5, 5, -1], "2", [MET, MET, NOT], 1),
    ([5, 5, 0], "2", [MET, MET, NOT], 1 / 4),
    ([5, 5, 0], "02", [MET, NOT, MET], 1 / 2),
    ([5, -5], "01", [NOT, MET], 0),
    # Also where nothing that could be had applies.
    ([5, -5], "1", [NA, MET], 0),
    ([5, -5], "1", [NA, NOT], None),
    ([5, 0], "1", [NA, NOT], 0),
]
"""By hand: HealthBench's arithmetic, with what it does not have."""


@pytest.mark.parametrize(("points", "must", "grades", "score"), ARITHMETIC)
def test_the_arithmetic_of_rubrics(
    points: list[float], must: str, grades: list[int | None], score: float | None
) -> None:
    """Points met over points to be had, in [0, 1]; on a longer scale a grade is met in part."""
    criteria = [Criterion(f"c{at}", f"d{at}", weight, must=str(at) in must) for at, weight in enumerate(points)]
    given = {f"c{at}": grade for at, grade in enumerate(grades)}
    rubric = Rubric(criteria, (0, 1), not_applicable=True, cap=0.25)
    assert (None if score is None else pytest.approx(score)) == rubric.normalised(given)
    wider = {name: None if grade is None else 1 + 4 * grade for name, grade in given.items()}
    assert rubric.normalised(given) == Rubric(criteria, (1, 5), not_applicable=True, cap=0.25).normalised(wider)


def test_what_does_not_apply_is_a_grade_only_where_that_may_be_said() -> None:
    """Then the schema and the prompt say so; otherwise it is no grade."""
    rubric = Rubric([CORRECT], (0, 1), not_applicable=True)
    score = rubric.json_schema()["properties"]["correct"]["properties"]["score"]
    assert {"type": ["integer", "null"], "enum": [0, 1, None]} == score
    assert "null where a criterion does not apply" in rubric.prompt_fields()["scale"]
    with pytest.raises(JudgeReplyError):
        Rubric([CORRECT], (0, 1)).normalised({"correct": None})


def test_criteria_may_be_plain_strings() -> None:
    """A word is its own name; a sentence is named by its place."""
    rubric = Rubric(["faithful", "Is it right?", CLEAR])
    assert ("faithful", "c2", CLEAR.name) == rubric.names
    assert "- c2: Is it right?" in rubric.prompt_fields()["criteria"]
    assert Rubric("faithful") == Rubric(["faithful"])
    assert Rubric([CLEAR]) == Rubric(CLEAR)  # type: ignore[arg-type]


SCALES: list[Any] = [(5, 1), (3, 3), (0, 0.5), (False, True), 5, (1, 2, 3), (0, 101)]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Rubric([]), "at least one"),
        (lambda: Rubric([CORRECT, CLEAR, CORRECT]), "named twice"),
        (lambda: Rubric([CORRECT, Criterion("right", "is it RIGHT?")]), "criteria 1 and 2 are the same"),
        (lambda: Rubric([5]), "not a Criterion"),
        (lambda: Rubric(["correct", " "]), "has no text"),
        (lambda: Criterion("is it right?", "d"), "is it right?"),
        *((lambda name=name: Criterion(name, "d"), "1 to 64") for name in ("", "x" * 65, "correct\n", "größe", 5)),
        (lambda: Criterion("correct", " "), "has no text"),
        (lambda: Criterion("correct", "d", 0), "weight=0"),
        (lambda: Rubric([Criterion("wrong", "d", -1)]), "none has a positive weight"),
        (lambda: Rubric([Criterion("gate", "d", 0, must=True)]), "none has a positive weight"),
        (lambda: Rubric([CORRECT], cap=2), "cap=2"),
        (lambda: Criterion("correct", "d", math.nan), "weight=nan"),
        (lambda: Criterion("correct", "d", math.inf), "weight=inf"),
        (lambda: Criterion("correct", "d", 10**400), "weight=1000"),
        (lambda: Criterion("correct", "d", "2"), "weight='2'"),
        (lambda: Criterion("correct", "d", must=1), "must=1"),
        (lambda: Rubric([f"c{n}" for n in range(101)]), "there are 101"),
        *((lambda scale=scale: Rubric([CORRECT], scale), "worst grade first") for scale in SCALES),
    ],
)
def test_senseless_rubrics_are_refused_when_made(make: Callable[[], object], words: str) -> None:
    """Each setting that makes no sense raises at once, and the message says what is wrong with it."""
    with pytest.raises(JudgeSetupError, match=words.replace("?", r"\?")):
        make()


def test_the_bounds_are_allowed() -> None:
    assert (0, 100) == Rubric([CORRECT], (0, 100)).scale
    assert 100 == len(Rubric([f"c{n}" for n in range(100)]).criteria)


def test_schema_is_strict_and_reasons_come_first() -> None:
    """Every object is closed and wants all it has, in the criteria's order, each reason before its score."""
    graded = {
        "type": "object",
        "properties": {"reason": {"type": "string"}, "score": {"type": "integer", "enum": [1, 2, 3]}},
        "required": ["reason", "score"],
        "additionalProperties": False,
    }
    expected = {
        "type": "object",
        "properties": {"correct": graded, "clear": graded},
        "required": ["correct", "clear"],
        "additionalProperties": False,
    }
    assert json.dumps(expected) == json.dumps(Rubric([CORRECT, CLEAR], (1, 3)).json_schema())
    verdict = {"reason": {"type": "string"}, "verdict": {"type": "string", "enum": ["A", "B", "tie"]}}
    closed = {"type": "object", "properties": verdict, "required": [*verdict], "additionalProperties": False}
    assert json.dumps(closed) == json.dumps(preference_schema())


def test_a_reason_can_be_bounded() -> None:
    """``reason_chars`` becomes ``maxLength``, in gradings and in comparisons."""
    schema = Rubric([CORRECT]).json_schema(reason_chars=160)
    assert 160 == schema["properties"]["correct"]["properties"]["reason"]["maxLength"]
    assert 160 == preference_schema(reason_chars=160)["properties"]["reason"]["maxLength"]


def test_words_for_the_prompt_show_no_weights() -> None:
    words = Rubric([CORRECT, CLEAR], (0, 10)).prompt_fields()
    assert {
        "criteria": "- correct: Is it right?\n- clear: Is it plain?",
        "scale": "whole numbers from 0 (not met at all) to 10 (met in full)",
    } == words


def test_rubrics_are_plain_values() -> None:
    """Equal settings are equal, pickle and hash; the scale is given as a tuple and has names."""
    rubric = Rubric([CORRECT, CLEAR])
    assert rubric == pickle.loads(pickle.dumps(rubric))
    assert hash(rubric) == hash(Rubric((CORRECT, CLEAR), (1, 5)))
    assert Scale(1, 5) == rubric.scale
    assert 5 == rubric.scale.high
