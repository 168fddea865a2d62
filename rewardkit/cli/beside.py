"""What scores bring beside themselves, by metrics of known names: which link of a chain answered, what calls took."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rewardkit.types import COST_METRICS, Outcome

_LINK = "link/"


@dataclass(frozen=True, slots=True)
class Link:
    """One link of a chain.

    Attributes:
        share: Share of the chain's scores that it gave, 0 to 1.
        unanswered: How often it did not answer, and a later one did.
        error: Why, in the words of the first of the most frequent kind; ``None`` where it always answered.
    """

    share: float
    unanswered: int
    error: str | None


@dataclass(frozen=True, slots=True)
class Cost:
    """What the calls that did not fail took of one thing; those that the cache had took nothing.

    Attributes:
        sum: All that is known.
        complete: Whether it is known of each call that took anything.
    """

    sum: float
    complete: bool


def links(outcomes: Sequence[Outcome]) -> dict[str, Link]:
    """Return the links of a chain by name, in order; none for another reward."""
    chained = [(shares, outcome.unanswered) for outcome in outcomes if (shares := _shares(outcome))]
    kinds: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for _, unanswered in chained:
        for one in unanswered:
            kinds[one.name][one.kind].append(one.message)
    return {
        name: Link(
            share=sum(shares.get(name, 0.0) for shares, _ in chained) / len(chained),
            unanswered=sum(map(len, kinds[name].values())),
            error=max(kinds[name].values(), key=len)[0] if kinds[name] else None,
        )
        for name in dict.fromkeys(name for shares, _ in chained for name in shares)
    }


def _shares(outcome: Outcome) -> dict[str, float]:
    return {name.removeprefix(_LINK): value for name, value in outcome.metrics.items() if name.startswith(_LINK)}


def costs(outcomes: Sequence[Outcome]) -> dict[str, Cost]:
    """Return what the calls took, by metric; nothing for a reward that takes nothing."""
    made = [outcome.metrics for outcome in outcomes if not outcome.cached]
    took: list[Mapping[str, float]] = [metrics for metrics in made if any(name in metrics for name in COST_METRICS)]
    found = {name: [metrics[name] for metrics in took if name in metrics] for name in COST_METRICS}
    return {name: Cost(sum(known), len(known) == len(took)) for name, known in found.items() if known}
