"""The addends of a composition, and which wrong completions each of them pays.

A trainer pays the sum of what the addends give, so an addend that pays wrong answers in full is a fault of the whole,
also where its weight is smaller than the share that counts as paid. A factor, a minimum or a gate pays nothing by
itself: what it is made of counts together.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rewardkit.audit.engine import LeafOutcomes, Repeat, ScoredForm, ScoredProbe, Trials
from rewardkit.declare.compose import Composable, Gate, Named, Reduced, Scheduled, WeightedSum
from rewardkit.types import Outcome

_MOST = 16  # addends; a composition that multiplies out to more is judged as a whole


@dataclass(frozen=True, slots=True)
class AddendPay:
    """What was seen of one addend: the attacks that it wrongly pays, and the rows on which it pays by degrees."""

    name: str
    paid: frozenset[int] = frozenset()  # Indices among the attacks
    graded: frozenset[int] = frozenset()  # Indices of rows
    reads_answer: bool = False


def addends_of(reward: Composable) -> list[Composable]:
    """Return what a composition adds up, without weights, if there are 2 to 16 of that; otherwise nothing."""
    addends = list(itertools.islice(_addends(reward), _MOST + 1))
    with_leaves = list({id(addend): addend for addend in addends if addend.leaves}.values())
    return with_leaves if len(with_leaves) > 1 and len(addends) <= _MOST else []


def _addends(node: Composable) -> Iterator[Composable]:
    """Yield the addends of positive weight; a number that is added is a sum without terms."""
    match node:
        case Named():
            yield from _addends(node.inner)
        case WeightedSum():
            for weight, term in node.terms:
                if weight > 0:
                    yield from _addends(term)
            if node.constant > 0:
                yield WeightedSum((), node.constant)
        case Scheduled():
            yield from _addends(node.node)
        case Gate():
            addends = list(itertools.islice(_addends(node.then), _MOST + 1))
            yield from (replace(node, then=addend) for addend in addends) if len(addends) > 1 else (node,)
        case Reduced(reduce=reduce, nodes=nodes) if reduce is max or len(nodes) == 1:
            for part in nodes:
                yield from _addends(part)
        case Reduced(reduce=reduce, nodes=nodes) if reduce in (min, math.prod):
            factors = [list(itertools.islice(_addends(factor), _MOST + 1)) for factor in nodes]
            if all(len(own) == 1 for own in factors):
                yield node
            else:
                yield from (replace(node, nodes=combination) for combination in itertools.product(*factors))
        case _:
            yield node


def trials_of(trials: Trials, addend: Composable, leaves: LeafOutcomes) -> Trials:
    """Return the trials of a composition with what an addend of it earned in each."""

    def own(outcome: Outcome) -> Outcome:
        return addend.combine(leaves[id(outcome)][1]) if id(outcome) in leaves else outcome

    def each(outcomes: Mapping[int, Outcome]) -> dict[int, Outcome]:
        return {index: own(outcome) for index, outcome in outcomes.items()}

    return replace(
        trials,
        honest=[[ScoredForm(answer, own(outcome)) for answer, outcome in forms] for forms in trials.honest],
        base=[[own(outcome) for outcome in base] for base in trials.base],
        attacks=[ScoredProbe(row, probe, own(outcome)) for row, probe, outcome in trials.attacks],
        swapped=each(trials.swapped),
        rivals=each(trials.rivals),
        unrelated=each(trials.unrelated),
        again=[Repeat(row, form, own(first), own(second)) for row, form, first, second in trials.again],
    )


def payer_of(addends: Sequence[AddendPay], index: int) -> str | None:
    """Return the name of the first addend that wrongly pays an attack; ``None`` where no addend does."""
    return next((addend.name for addend in addends if index in addend.paid), None)
