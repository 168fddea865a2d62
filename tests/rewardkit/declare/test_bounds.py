"""The range of a composition: what its leaves can give bounds it, and where it is not known, what helps is said."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from rewardkit import Composable, Composite, Reward, clip, gate, maximum, minimum, product, reward, scheduled
from rewardkit.declare.bounds import UNBOUNDED, extremes
from rewardkit.loading.registry import resolve_set
from rewardkit.record.description import describe
from rewardkit.serving.remote_reward import RemoteReward, signature_of

Range = tuple[float, float] | None


def _leaf(name: str, score_range: Range) -> Reward[..., Any]:
    return reward(name=name, score_range=score_range)(lambda completion: 0.0)


A, B = _leaf("a", (0, 1)), _leaf("b", (0, 1))
SIGNED, OPEN, HALF = _leaf("signed", (-1, 2)), _leaf("open", None), _leaf("half", (0, math.inf))
MANY = [_leaf(f"m{index}", (0, 1)) for index in range(13)]
_MOVING = scheduled(A, lambda step: step)

RANGES: dict[str, tuple[Composable, Range, tuple[str, ...]]] = {
    "a reward": (SIGNED, (-1, 2), ()),
    "a reward without a range": (OPEN, None, ("open",)),
    "a reward with half a range": (HALF, (0, math.inf), ("half",)),
    "a sum": (0.8 * A + 0.2 * B, (0, 1), ()),
    "a named sum": ((0.8 * A + 0.2 * SIGNED).named("both"), (-0.2, 1.2), ()),
    "a penalty": (A - 0.5 * SIGNED, (-1, 1.5), ()),
    "one minus": (1 - A, (0, 1), ()),
    "a sum with a part of no weight": (A + 0 * OPEN, (0, 1), ()),
    "a sum without a range": (A + OPEN, None, ("open",)),
    "a sum that is too large": (1e308 * A + 1e308 * B, None, ()),
    "a sum of many": (sum(MANY[1:], MANY[0]), (0, 13), ()),
    "a gate": (gate(A, SIGNED), (-1, 2), ()),
    "a gate by an open reward": (gate(OPEN, A, otherwise=-1), (-1, 1), ()),
    "a gate before an open reward": (gate(A, OPEN), None, ("open",)),
    "a gate that always passes": (gate(A, SIGNED, threshold=0, otherwise=-9), (-1, 2), ()),
    "a gate that never passes": (gate(A, OPEN, threshold=2, otherwise=-9), (-9, -9), ()),
    "a product": (product(SIGNED, A), (-1, 2), ()),
    "a product of two signs": (product(SIGNED, 1 - SIGNED + 0 * A), None, ()),
    "a product without a range": (product(A, OPEN), None, ("open",)),
    "the least": (minimum(A, SIGNED), (-1, 1), ()),
    "the least of an open reward": (minimum(A, OPEN), (-math.inf, 1), ("open",)),
    "the most": (maximum(A, SIGNED), (0, 2), ()),
    "the most of many": (maximum(*MANY), None, ()),
    "a clip": (clip(OPEN, -1, 1), (-1, 1), ()),
    "a clip of many": (clip(maximum(*MANY), 0, 1), (0, 1), ()),
    "a clip inside": (clip(OPEN, 0, 1) + HALF, (0, math.inf), ("half",)),
    "a weight that moves": (_MOVING, None, ()),
    "a clip of a weight that moves": (clip(_MOVING, 0, 1), (0, 1), ()),
    "a part twice": (A + A, (0, 2), ()),
    "a part against itself": (A - A, None, ()),
    "its own square": (product(SIGNED, SIGNED), None, ()),
    "a leaf in two parts that go one way": (0.8 * A + 0.2 * gate(A, B), (0, 1), ()),
    "a leaf in two parts that go two ways": (A - 0.1 * gate(A, B), None, ()),
}


@pytest.mark.parametrize("case", RANGES)
def test_the_range_follows_from_the_parts(case: str) -> None:
    """It is what the parts can give, not known where a part has none that counts, and the part is named."""
    composed, score_range, missing = RANGES[case]
    assert (pytest.approx(score_range), missing) == (composed.score_range, composed.parts_without_range)


NAMES = ("a", "b", "c", "d")
ENDS = ((0, 1), (-1, 1), (0, 5), (-2, 0), None)
NUMBERS = (-1, -0.25, 0.5, 1, 2)


def _drawn(random: Random, leaves: list[Reward[..., Any]], depth: int) -> Composable:
    """Return a composition of these leaves, of every kind by chance."""
    if not depth or random.random() < 0.25:
        return random.choice(leaves)
    first, second = (_drawn(random, leaves, depth - 1) for _ in range(2))
    weight, bound = random.choice(NUMBERS), random.choice(NUMBERS)
    kinds: list[Callable[[], Composable]] = [
        lambda: weight * first + bound * second,
        lambda: first - second + bound,
        lambda: minimum(first, second),
        lambda: maximum(first, second),
        lambda: product(first, second),
        lambda: gate(first, second, threshold=bound, otherwise=weight),
        lambda: clip(first, min(weight, bound), max(weight, bound)),
        lambda: (weight * first).named("named"),
        lambda: scheduled(first, lambda step: 1.0),
    ]
    return random.choice(kinds)()


def _case(seed: int) -> Composite:
    random = Random(seed)
    composed = _drawn(random, [_leaf(name, random.choice(ENDS)) for name in NAMES], 3)
    return composed if isinstance(composed, Composite) else 1 * composed


def _is_known_throughout(node: Composable) -> bool:
    parts = node.parts if isinstance(node, Composite) else ()
    return node.score_range is not None and all(map(_is_known_throughout, parts))


@pytest.mark.parametrize("seed", range(200))
def test_no_scores_of_the_leaves_leave_the_range(seed: int) -> None:
    """Whatever the leaves give, the score is inside the range; where all parts have one, some scores give its ends."""
    composed, random = _case(seed), Random(seed)
    low, high = composed.score_range or UNBOUNDED
    ends = [leaf.score_range or (-1e6, 1e6) for leaf in composed.leaves]
    draws = [tuple(random.uniform(*pair) for pair in ends) for _ in range(60)]
    scores = [
        composed.value(dict(zip(composed.leaves, draw, strict=True)), None)
        for draw in [*itertools.product(*ends), *draws]
    ]
    assert low - 1e-6 <= min(scores)
    assert max(scores) <= high + 1e-6
    if _is_known_throughout(composed):
        assert (pytest.approx(low), pytest.approx(high)) == (min(scores), max(scores))


@pytest.mark.parametrize("seed", range(200))
def test_what_is_said_to_help_gives_a_range(seed: int) -> None:
    """Where the named parts declare a range the whole has one; where none is named, a clip gives it one."""
    composed: Composable = _case(seed)
    missing = composed.parts_without_range
    if missing:
        assert all(leaf.score_range is None for leaf in composed.leaves if leaf.name in missing)
        composed = composed.map_leaves(
            lambda leaf: leaf.with_options(score_range=(0, 1)) if leaf.name in missing else leaf
        )
        assert () == composed.parts_without_range
    if composed.score_range is None:
        assert (0, 1) == clip(composed, 0, 1).score_range


def test_ends_that_make_no_number_bound_nothing() -> None:
    """The difference of infinite ends, the product with 0, and more scores than combinations can be tried of."""
    infinite = (-math.inf, math.inf)
    assert UNBOUNDED == extremes(math.fsum, [infinite, infinite]) == extremes(math.prod, [(0, 1), infinite])
    assert UNBOUNDED == extremes(max, [(0, 1)] * 13)
    assert (0, 1) == extremes(max, [(0, 1)] * 12)


@pytest.mark.parametrize("case", RANGES)
def test_a_record_and_a_server_tell_the_range(case: str) -> None:
    """What a run records of a reward, and what a client makes of a server's, have finite ends and the same parts."""
    composed, score_range, missing = RANGES[case]
    ends = None if score_range is None or not all(map(math.isfinite, score_range)) else list(score_range)
    settings = describe(resolve_set([composed]).rewards[composed.name]).settings
    assert f'"parts_without_range": {list(missing)}'.replace("'", '"') in settings
    served = RemoteReward(composed.name, "0" * 12, signature_of(composed), lambda examples: [])
    if len(composed.leaves) > 1:
        assert (None if ends is None else tuple(ends), missing) == (
            served.score_range and pytest.approx(served.score_range),
            served.parts_without_range,
        )
