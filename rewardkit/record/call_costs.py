"""What calls took of a server, such as a judge's: requests, tokens and money, summed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rewardkit.types import COST_METRICS, UNMETERED


@dataclass(frozen=True, slots=True)
class Cost:
    """The sum that calls took; ``complete`` where it is known of all calls that took anything."""

    sum: float
    complete: bool


def sum_costs(metrics: Iterable[Mapping[str, float]]) -> dict[str, Cost]:
    """Return the sums of what calls took, from the metrics of each, by metric; without those that no call has.

    Tokens and money are incomplete where a call has requests without usage (the metric ``unmetered``).
    """
    calls = [call for call in metrics if any(name in call for name in COST_METRICS)]
    amounts = {name: [call[name] for call in calls if name in call] for name in COST_METRICS}
    is_metered = not any(call.get(UNMETERED) for call in calls)
    return {
        name: Cost(sum(values), len(values) == len(calls) and (is_metered or name == "requests"))
        for name, values in amounts.items()
        if values
    }


_LINK_METRIC = "link_"


def is_cost_metric(name: str) -> bool:
    """Whether a metric says what a call took, which link of a chain answered, or what one took."""
    return name in (*COST_METRICS, UNMETERED) or name.startswith("link/") or _link_cost(name) is not None


def sum_link_costs(metrics: Iterable[Mapping[str, float]]) -> dict[str, dict[str, Cost]]:
    """Return the sums of what the links of a chain took, by link and metric, from the metrics of each call."""
    by_link: dict[str, list[dict[str, float]]] = defaultdict(list)
    for call in metrics:
        own: dict[str, dict[str, float]] = defaultdict(dict)
        for name, value in call.items():
            if (split := _link_cost(name)) is not None:
                metric, link = split
                own[link][metric] = value
        for link, costs in own.items():
            by_link[link].append(costs)
    return {link: sums for link, calls in by_link.items() if (sums := sum_costs(calls))}


def _link_cost(name: str) -> tuple[str, str] | None:
    """Return the cost and the link in a metric's name; ``None`` for another metric."""
    metric, slash, link = name.removeprefix(_LINK_METRIC).partition("/")
    is_cost = slash and name.startswith(_LINK_METRIC) and metric in (*COST_METRICS, UNMETERED)
    return (metric, link) if is_cost else None
