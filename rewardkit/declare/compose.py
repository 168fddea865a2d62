"""Rewards made of rewards: weighted sums, gates, clips, products, schedules.

A composition is a tree whose leaves are rewards. The runtime scores the leaves, each once, and
:meth:`Composite.combine` makes one outcome of theirs:

* a leaf that failed with nothing to stand in makes the whole fail, also with nothing to stand in;
* a leaf that failed with a default is counted by its default, and the whole says that it failed;
* a skipped leaf is counted by the worst score it can give, 0.0 where its range is not declared, so that nothing is
  earned by what it was not asked about; where all leaves are skipped the whole is skipped.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from rewardkit.declare.bounds import UNBOUNDED, Bounds, extremes, finite
from rewardkit.errors import RewardDefinitionError
from rewardkit.function import Versioned
from rewardkit.types import Outcome, Status
from rewardkit.versions.fingerprint import Fingerprint

if TYPE_CHECKING:
    from rewardkit.declare.decorator import Reward

Values = Mapping["Reward[..., Any]", float]  # The leaves' scores, or what they are counted by


class Composable(Versioned):
    """What can be added, weighted and gated: a reward, or a composition of rewards."""

    @property
    def name(self) -> str:
        """What tables, logs and metrics call it."""
        raise NotImplementedError

    @property
    def leaves(self) -> tuple[Reward[..., Any], ...]:
        """The rewards in it, each once, from left to right; a reward's only leaf is the reward itself."""
        raise NotImplementedError

    @property
    def scores_groups(self) -> bool:
        """Whether it scores the completions of a prompt together, or has a part that does."""
        return any(leaf.spec.kind == "group" for leaf in self.leaves)

    @property
    def credit(self) -> str | None:
        """How each turn of a completion has a number of its own; ``None`` for all but step rewards of that kind."""
        return None

    @property
    def score_range(self) -> Bounds | None:
        """Lowest and highest score that it can give, perhaps infinite; ``None`` where that is not known.

        A reward's is its option; a composition's follows from those of its parts.
        """
        raise NotImplementedError

    @property
    def parts_without_range(self) -> tuple[str, ...]:
        """Names of the rewards that have to declare their range before the whole has a finite one.

        Empty where it has one, and where no declaration gives it one, as with a weight that moves: :func:`clip` does.
        """
        raise NotImplementedError

    def uses(self, sign: int = 1) -> Iterator[tuple[Reward[..., Any], int]]:
        """Yield each use of a leaf with 1 where a higher score of it pays more and -1 where it pays less."""
        raise NotImplementedError

    def map_leaves(self, change: Callable[[Reward[..., Any]], Reward[..., Any]]) -> Composable:
        """Return the same with other leaves: ``change`` is called once for each and returns what takes its place."""
        raise NotImplementedError

    def combine(self, outcomes: Mapping[Reward[..., Any], Outcome], step: int | None = None) -> Outcome:
        """Return the one outcome that the leaves' outcomes make at a step of training."""
        raise NotImplementedError

    def __mul__(self, weight: float) -> WeightedSum:
        if isinstance(weight, Composable):
            raise RewardDefinitionError(
                f"{self.name} * {weight.name}: a reward is weighted by a number; for the product of two rewards write "
                f"product({self.name}, {weight.name})"
            )
        scale, own = _finite(weight), _sum_of(self)
        return WeightedSum(tuple((scale * weight, part) for weight, part in own.terms), scale * own.constant)

    __rmul__ = __mul__

    def __truediv__(self, divisor: float) -> WeightedSum:
        if not isinstance(divisor, int | float) or not divisor:
            return NotImplemented
        return self * (1 / _finite(divisor))

    def __neg__(self) -> WeightedSum:
        return self * -1.0

    def __add__(self, other: Composable | float) -> WeightedSum:
        if not isinstance(other, Composable | int | float):
            return NotImplemented
        own, added = _sum_of(self), _sum_of(other)
        return WeightedSum((*own.terms, *added.terms), own.constant + added.constant)

    __radd__ = __add__

    def __sub__(self, other: Composable | float) -> WeightedSum:
        if not isinstance(other, Composable | int | float):
            return NotImplemented
        return self + -_sum_of(other)

    def __rsub__(self, other: float) -> WeightedSum:
        return -self + other


class Composite(Composable):
    """A composition of rewards. Subclasses say how leaves' scores become one."""

    def value(self, values: Values, step: int | None) -> float:
        """Return the score from the leaves' scores."""
        raise NotImplementedError

    def _settings(self) -> dict[str, Any]:
        """Return the fields: each composition is a dataclass."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    @property
    def parts(self) -> tuple[Composable, ...]:
        """What it is directly made of: the rewards and compositions among its settings."""
        return tuple(part for value in self._settings().values() for part in _parts(value))

    def contains(self, part: Composable) -> bool:
        """Return whether another reward or composition counts through this one, as a part at any depth."""
        bare = part.inner if isinstance(part, Named) else part
        return self._has_summand(bare) or any(
            own in (part, bare) or (isinstance(own, Composite) and own.contains(part)) for own in self.parts
        )

    def _has_summand(self, part: Composable) -> bool:
        """Return whether a sum was added to this one, whose terms then stand among this one's."""
        return False

    @property
    def version(self) -> str:
        """Fingerprint of the parts and of how they are put together, 12 hexadecimal digits."""
        return Fingerprint(type(self).__name__, *self._settings().values()).digits

    @functools.cached_property
    def leaves(self) -> tuple[Reward[..., Any], ...]:
        return tuple(dict.fromkeys(leaf for part in self.parts for leaf in part.leaves))

    def uses(self, sign: int = 1) -> Iterator[tuple[Reward[..., Any], int]]:
        return (use for part in self.parts for use in part.uses(sign))

    def bounds(self, parts: Mapping[Composable, Bounds]) -> Bounds:
        """Return the lowest and highest score where each part gives any score within its own bounds."""
        return UNBOUNDED

    @functools.cached_property
    def score_range(self) -> Bounds | None:
        """Lowest and highest score, from the parts' ranges; ``None`` where parts that share a leaf leave it open."""
        low, high = self.bounds({part: part.score_range or UNBOUNDED for part in self.parts})
        if (low, high) == UNBOUNDED or not low <= high or not self._reaches(low, high):  # nan is no bound
            return None
        return low, high

    def _reaches(self, low: float, high: float) -> bool:
        """Return whether some scores of the leaves give the bounds that its parts have, each by itself."""
        if sum(len(part.leaves) for part in self.parts) == len(self.leaves):
            return True  # no part shares a leaf with another
        ends = extremes(
            lambda scores: self.value(dict(zip(self.leaves, scores, strict=True)), None),
            [leaf.score_range or UNBOUNDED for leaf in self.leaves],
        )
        return all(math.isclose(end, bound, abs_tol=1e-12) for end, bound in zip(ends, (low, high), strict=True))

    @property
    def parts_without_range(self) -> tuple[str, ...]:
        if finite(self.score_range) is not None:
            return ()
        return tuple(dict.fromkeys(name for part in self.parts for name in part.parts_without_range))

    @functools.cached_property
    def _worst(self) -> dict[Reward[..., Any], float]:
        """What a skip of each leaf is counted by."""
        return {leaf: leaf.options.worst(sign) or 0.0 for leaf, sign in self.uses()}

    def map_leaves(self, change: Callable[[Reward[..., Any]], Reward[..., Any]]) -> Composite:
        changed = functools.cache(change)
        return replace(self, **{name: _change_leaves(value, changed) for name, value in self._settings().items()})  # type: ignore[type-var]

    if not TYPE_CHECKING:  # a type checker would take every attribute to be there

        def __getattr__(self, name: str) -> Any:
            """Raise AttributeError; where it is taken for a function, as by TRL, say what to write instead."""
            if name in ("__call__", "__name__"):
                raise AttributeError(
                    f"composition {self.name!r} is not a function; hand a trainer the functions of an adapter: "
                    "reward_funcs=RewardAdapter([...]).reward_funcs, from trainer_adapter"
                )
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    def named(self, name: str) -> Composite:
        """Return the same composition under another name."""
        return Named(self, name)

    def combine(self, outcomes: Mapping[Reward[..., Any], Outcome], step: int | None = None) -> Outcome:
        """Return the one outcome that the leaves' outcomes make, by the rules above."""
        parts = {leaf: outcomes[leaf] for leaf in self.leaves}
        failures = [outcome for outcome in parts.values() if outcome.status is Status.FAILED]
        without_score = [failure for failure in failures if failure.score is None]
        failed = next(iter([*without_score, *failures]), None)
        score = None
        if not without_score and any(outcome.status is not Status.SKIPPED for outcome in parts.values()):
            values = {leaf: self._worst[leaf] if o.score is None else o.score for leaf, o in parts.items()}
            score = self.value(values, step)
            if not math.isfinite(score):
                raise RewardDefinitionError(f"composition {self.name!r} gave {score!r}; scores are finite numbers")
        status = Status.FAILED if failed else Status.SKIPPED if score is None else Status.SCORED
        return Outcome(
            status=status,
            score=score,
            reason="; ".join(f"{leaf.name}: {o.reason}" for leaf, o in parts.items() if o.reason) or None,
            metrics={leaf.name: o.score for leaf, o in parts.items() if o.score is not None},
            cause=failed.cause if failed else None,
            error="; ".join(f"{leaf.name}: {o.error}" for leaf, o in parts.items() if o.error) or None,
            attempts=max(o.attempts for o in parts.values()),
            duration_s=max(o.duration_s for o in parts.values()),
            version="+".join(o.version for o in parts.values()),
        )


def _parts(value: object) -> tuple[Composable, ...]:
    """Return the rewards and compositions in a setting: a part, a tuple of parts, or pairs of a weight and a part."""
    if isinstance(value, Composable):
        return (value,)
    return tuple(part for element in value for part in _parts(element)) if isinstance(value, tuple) else ()


def _change_leaves(value: object, change: Callable[[Reward[..., Any]], Reward[..., Any]]) -> Any:
    """Return a composition's setting after changing each leaf in it."""
    if isinstance(value, Composable):
        return value.map_leaves(change)
    return tuple(_change_leaves(element, change) for element in value) if isinstance(value, tuple) else value


def _value(node: Composable, values: Values, step: int | None) -> float:
    if isinstance(node, Composite):
        return node.value(values, step)
    return values[node]  # type: ignore[index]  # a leaf


def _finite(number: float) -> float:
    if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):
        raise RewardDefinitionError(f"{number!r} in a composition: expected a finite number")
    return float(number)


def _sum_of(node: Composable | float) -> WeightedSum:
    """Return a part or a number as a sum; a number is a sum without terms."""
    if not isinstance(node, Composable):
        return WeightedSum((), _finite(node))
    return node if type(node) is WeightedSum else WeightedSum(((1.0, node),))


@dataclass(frozen=True, eq=False)
class Named(Composite):
    """A composition under a name of the author's choosing."""

    inner: Composite
    label: str

    @property
    def name(self) -> str:
        return self.label

    def contains(self, part: Composable) -> bool:
        return part is self.inner or self.inner.contains(part)  # another name of the same is beside it, not in it

    def value(self, values: Values, step: int | None) -> float:
        return self.inner.value(values, step)

    def bounds(self, parts: Mapping[Composable, Bounds]) -> Bounds:
        return parts[self.inner]


@dataclass(frozen=True, eq=False)
class WeightedSum(Composite):
    """Σ weight · score over the parts, and a constant."""

    terms: tuple[tuple[float, Composable], ...]
    constant: float = 0.0

    @property
    def name(self) -> str:
        terms = [part.name if weight == 1 else f"{weight:g}*{part.name}" for weight, part in self.terms]
        return " + ".join([*terms, *([f"{self.constant:g}"] if self.constant else [])])

    def _has_summand(self, part: Composable) -> bool:
        if not isinstance(part, WeightedSum) or not 0 < len(part.terms) < len(self.terms):
            return False
        own = {term: weight for weight, term in self.terms}
        factors = [own[term] / weight for weight, term in part.terms if term in own and weight]
        return len(factors) == len(part.terms) and all(math.isclose(factor, factors[0]) for factor in factors)

    def uses(self, sign: int = 1) -> Iterator[tuple[Reward[..., Any], int]]:
        return (use for weight, part in self.terms if weight for use in part.uses(sign if weight > 0 else -sign))

    def value(self, values: Values, step: int | None) -> float:
        return math.fsum([*(weight * _value(part, values, step) for weight, part in self.terms), self.constant])

    def bounds(self, parts: Mapping[Composable, Bounds]) -> Bounds:
        ends = [sorted(weight * end for end in parts[part]) for weight, part in self.terms if weight]
        try:
            low, high = (math.fsum([*(pair[end] for pair in ends), self.constant]) for end in (0, -1))
        except OverflowError:
            return UNBOUNDED
        return low, high


@dataclass(frozen=True, eq=False)
class Reduced(Composite):
    """One number from the scores of the parts."""

    label: str
    reduce: Callable[[Sequence[float]], float]
    nodes: tuple[Composable, ...]

    @property
    def name(self) -> str:
        return f"{self.label}({', '.join(node.name for node in self.nodes)})"

    def value(self, values: Values, step: int | None) -> float:
        return self.reduce([_value(node, values, step) for node in self.nodes])

    def bounds(self, parts: Mapping[Composable, Bounds]) -> Bounds:
        return extremes(self.reduce, [parts[node] for node in self.nodes])


@dataclass(frozen=True, eq=False)
class Gate(Composite):
    """The second part's score where the first part passes, another number where it does not."""

    condition: Composable
    then: Composable
    threshold: float
    otherwise: float

    @property
    def name(self) -> str:
        return f"gate({self.condition.name}, {self.then.name})"

    def value(self, values: Values, step: int | None) -> float:
        is_passed = _value(self.condition, values, step) >= self.threshold
        return _value(self.then, values, step) if is_passed else self.otherwise

    def bounds(self, parts: Mapping[Composable, Bounds]) -> Bounds:
        lowest, highest = parts[self.condition]
        passing = parts[self.then] if highest >= self.threshold else ()
        scores = [*passing, *((self.otherwise,) if lowest < self.threshold else ())]
        return min(scores), max(scores)


@dataclass(frozen=True, eq=False)
class Scheduled(Composite):
    """A part whose weight depends on the training step."""

    node: Composable
    weight_at: Callable[[int], float]

    @property
    def name(self) -> str:
        return f"scheduled({self.node.name})"

    def value(self, values: Values, step: int | None) -> float:
        return _finite(self.weight_at(step or 0)) * _value(self.node, values, step)


def minimum(*nodes: Composable) -> Composite:
    """Return a composition that scores the lowest score of the parts that are not skipped."""
    return Reduced("minimum", min, _require_rewards(nodes, "minimum"))


def maximum(*nodes: Composable) -> Composite:
    """Return a composition that scores the highest score of the parts that are not skipped."""
    return Reduced("maximum", max, _require_rewards(nodes, "maximum"))


def product(*nodes: Composable) -> Composite:
    """Return a composition that scores the product of the scores of the parts that are not skipped."""
    return Reduced("product", math.prod, _require_rewards(nodes, "product"))


def clip(node: Composable, lowest: float, highest: float) -> Composite:
    """Return a composition that scores the part's score, moved into the range from ``lowest`` to ``highest``."""
    if not lowest <= highest:
        raise RewardDefinitionError(f"clip({lowest!r}, {highest!r}): expected the lower bound first")
    low, high = _finite(lowest), _finite(highest)
    return Reduced("clip", lambda present: min(high, max(low, present[0])), _require_rewards((node,), "clip"))


def gate(condition: Composable, then: Composable, *, threshold: float = 0.5, otherwise: float = 0.0) -> Composite:
    """Return a composition: ``then``'s score where ``condition`` scores at least ``threshold``, else ``otherwise``.

    Both parts are scored.
    """
    _require_rewards((condition, then), "gate")
    return Gate(condition, then, _finite(threshold), _finite(otherwise))


def scheduled(node: Composable, weight_at: Callable[[int], float]) -> Composite:
    """Return a composition that scores the part's score times ``weight_at(step)``; the step is 0 outside training."""
    return Scheduled(_require_rewards((node,), "scheduled")[0], weight_at)


def _require_rewards(nodes: Sequence[Composable], what: str) -> tuple[Composable, ...]:
    if not nodes:
        raise RewardDefinitionError(f"{what}(): expected at least one reward")
    for node in nodes:
        if not isinstance(node, Composable):
            raise RewardDefinitionError(f"{what}({node!r}): expected a reward; decorate the function with @reward")
    return tuple(nodes)
