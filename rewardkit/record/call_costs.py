"""What calls took of a server, such as a judge's: requests, tokens and money, summed."""

from __future__ import annotations

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
