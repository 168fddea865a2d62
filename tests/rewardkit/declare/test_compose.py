"""Arithmetic with rewards: numbers beside rewards, and what is refused by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rewardkit import Composite, Outcome, RewardDefinitionError, Status, clip, gate, maximum, minimum, product, reward
from rewardkit.runtime.settings import weights_of

A, B = (reward(name=name)(lambda completion: 0.0) for name in "ab")
SCORES = {A: 0.25, B: 0.5}

FORMULAS: list[tuple[Any, float, str]] = [
    (1 - A, 0.75, "-1*a + 1"),
    (A + 0.1, 0.35, "a + 0.1"),
    (0.1 + A, 0.35, "a + 0.1"),
    (A - 0.1, 0.15, "a + -0.1"),
    (A - 1, -0.75, "a + -1"),
    (sum([A, B]), 0.75, "a + b"),
    (sum([A, B], 1), 1.75, "a + b + 1"),
    (sum([0.5 * A, 0.5 * B]) / 2, 0.1875, "0.25*a + 0.25*b"),
    (A / 2, 0.125, "0.5*a"),
    (2 * (1 - A), 1.5, "-2*a + 2"),
    (-(1 - A), -0.75, "a + -1"),
    (1 - (1 - A), 0.25, "a"),
    ((1 - A) - (1 - B), 0.25, "-1*a + b"),
    (product(1 - A, 1 - B), 0.375, "product(-1*a + 1, -1*b + 1)"),
    (A + 0, 0.25, "a"),
]


@pytest.mark.parametrize(("formula", "value", "name"), FORMULAS, ids=[name for _, _, name in FORMULAS])
def test_numbers_stand_beside_rewards(formula: Composite, value: float, name: str) -> None:
    """On either side, in sums, differences and brackets; ``sum`` takes a list of rewards."""
    combined = formula.combine({leaf: Outcome(Status.SCORED, SCORES[leaf]) for leaf in formula.leaves})
    assert (pytest.approx(value), name) == (combined.score, formula.name)


def test_a_number_alone_is_no_score() -> None:
    """Where every reward of a sum is skipped the sum is, whatever stands beside them; one that failed has none."""
    assert (Status.SKIPPED, None) == (1 - A).combine({A: Outcome(Status.SKIPPED, None)})[:2]
    assert (Status.FAILED, None) == (1 - A).combine({A: Outcome(Status.FAILED, None)})[:2]
    assert (
        pytest.approx(0.6)
        == (A + B + 0.1).combine({A: Outcome(Status.SKIPPED, None), B: Outcome(Status.SCORED, 0.5)}).score
    )


PRODUCT, SUM = product(A, B), A + B
WHOLES: dict[str, tuple[Composite, Composite, bool]] = {
    "a term": (PRODUCT, 0.5 * PRODUCT + A, True),
    "a term that has a name beside it": (PRODUCT.named("both"), (0.5 * PRODUCT + A).named("total"), True),
    "a name's own": (PRODUCT, PRODUCT.named("both"), True),
    "the weighted one": (PRODUCT, 0.1 * PRODUCT, True),
    "two levels down": (PRODUCT, clip(gate(A, maximum(PRODUCT, B)), 0, 1), True),
    "what is clipped": (SUM, clip(SUM, 0, 1), True),
    "a sum that was added": (SUM, 0.5 * SUM + PRODUCT, True),
    "a sum that was added and named": (SUM, (SUM + PRODUCT).named("total"), True),
    "a named sum": (named := SUM.named("style"), 0.5 * named + PRODUCT, True),
    "a sum with other weights": (SUM, A + 0.5 * B + PRODUCT, False),
    "a sum like it": (SUM, A + B, False),
    "a product like it": (PRODUCT, product(A, B) + A, False),
    "another name of the same": (PRODUCT.named("both"), PRODUCT.named("product"), False),
}


@pytest.mark.parametrize(("part", "whole", "contained"), WHOLES.values(), ids=WHOLES)
def test_what_counts_through_a_composition_beside_it_weighs_nothing(
    part: Composite, whole: Composite, contained: bool
) -> None:
    """At any depth, and a sum that was added to another, whose terms then stand among the other's."""
    assert contained is whole.contains(part)
    rewards = {"part": part, "whole": whole, "a": A}
    assert {"part": float(not contained), "whole": 1.0, "a": 0.0} == weights_of(rewards, None)


def test_numbers_count_for_the_version() -> None:
    """Another number is another reward."""
    assert 3 == len({formula.version for formula in (A + 0.1, A + 0.2, 1 - A)})


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: A * B, r"write product\(a, b\)"),
        (lambda: (1 - A) * B, r"write product\(-1\*a \+ 1, b\)"),
        (lambda: A * "2", "'2' in a composition: expected a finite number"),
        (lambda: A * True, "True in a composition"),
        (lambda: A + True, "True in a composition"),
        (lambda: A + float("nan"), "nan in a composition"),
        (lambda: float("inf") - A, "inf in a composition"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(make: Any, words: str) -> None:
    with pytest.raises(RewardDefinitionError, match=words):
        make()


@pytest.mark.parametrize("make", [lambda: A + "1", lambda: "1" - A, lambda: A / B, lambda: A / 0, lambda: 1 / A])
def test_other_operators_are_refused(make: Any) -> None:
    with pytest.raises(TypeError):
        make()


def test_a_reward_is_its_own_leaf_and_every_composition_can_be_made_of_other_leaves() -> None:
    """Leaves are found at any depth, each once; what is shared stays shared where all are changed."""
    composed = clip(0.5 * A + gate(A, B), 0, 1).named("all")
    assert A.leaves == (A,)
    assert composed.leaves == (A, B)
    slower = composed.map_leaves(lambda leaf: leaf.with_options(timeout_s=33.0))
    assert [leaf.name for leaf in slower.leaves] == ["a", "b"]
    assert {leaf.options.timeout_s for leaf in slower.leaves} == {33.0}
    assert slower.name == "all"
    assert A.map_leaves(lambda leaf: B) is B


def test_the_leaves_are_found_once() -> None:
    """A composition does not walk its parts again for each row."""
    one = 0.5 * reward(lambda completion: 1.0) + 1
    assert one.leaves is one.leaves


@pytest.mark.parametrize(
    ("formula", "silent", "wrong"),
    [
        (lambda a, b: 0.8 * a + 0.2 * b, 0.2, 0.2),
        (lambda a, b: product(a, b), 0.0, 0.0),
        (lambda a, b: minimum(a, b), 0.0, 0.0),
        (lambda a, b: maximum(a, b), 1.0, 1.0),
        (lambda a, b: gate(a, b), 0.0, 0.0),
        (lambda a, b: gate(a, b, otherwise=-1), -1.0, -1.0),
        (lambda a, b: b - a, 0.0, 1.0),
    ],
)
def test_silence_is_worth_no_more_than_a_wrong_answer(
    formula: Callable[..., Composite], silent: float, wrong: float
) -> None:
    """A skipped part counts as the worst it can give, the highest score under a minus; with nothing scored it skips."""
    leaf, style = reward(score_range=(0, 1))(lambda completion: None), reward(lambda completion: 1.0)
    composition = formula(leaf.with_options(name="leaf"), style.with_options(name="style"))
    first, second = composition.leaves if composition.leaves[0].name == "leaf" else composition.leaves[::-1]
    scored = Outcome(Status.SCORED, 1.0)
    skipped, failing = Outcome(Status.SKIPPED, None), Outcome(Status.SCORED, 0.0)
    assert silent == pytest.approx(composition.combine({first: skipped, second: scored}).score)
    assert wrong == pytest.approx(composition.combine({first: failing, second: scored}).score)
    assert silent <= wrong
    assert (Status.SKIPPED, None) == composition.combine({first: skipped, second: skipped})[:2]


def test_a_skipped_part_of_a_signed_range_counts_as_its_low_end() -> None:
    """Left out it would pay more than a wrong answer."""
    signed = reward(score_range=(-1, 1), name="signed")(lambda completion: None)
    composition = 0.5 * signed + 0.5 * A
    outcome = composition.combine({signed: Outcome(Status.SKIPPED, None), A: Outcome(Status.SCORED, 1.0)})
    assert (Status.SCORED, 0.0) == (outcome.status, outcome.score)
