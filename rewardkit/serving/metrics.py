"""What the server tells Prometheus, at ``/metrics``.

Counting is done once a request, and so by plain numbers; they become Prometheus's text when it asks.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from rewardkit.serving.contract import RowFate, ToldRow
from rewardkit.types import Status

KIND = "text/plain; version=0.0.4; charset=utf-8"  # The type of what `render` returns
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
_ROWS = tuple(float(2**power) for power in range(12))

_FATES = [(fate, fate.value) for fate in RowFate]  # Python 3.11 takes long to find a member and its value
_STATUSES = [(status, status.value) for status in (Status.SCORED, Status.SKIPPED)]


@dataclass(slots=True)
class Buckets:
    """How measured values are spread: ``counts[i]`` values are at most ``bounds[i]``, the last ones are above all."""

    bounds: Sequence[float]
    counts: list[int]
    total: float = 0.0

    @classmethod
    def over(cls, bounds: Sequence[float]) -> Buckets:
        return cls(bounds, [0] * (len(bounds) + 1))

    def note(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def add(self, counts: Sequence[int], total: float) -> None:
        """Add the values of another spread over the same bounds."""
        self.counts = [own + other for own, other in zip(self.counts, counts, strict=True)]
        self.total += total

    def add_to(self, family: HistogramMetricFamily, labels: Sequence[str]) -> None:
        """Add it to a family of Prometheus's."""
        buckets, reached = [], 0
        for bound, count in zip([*map(repr, self.bounds), "+Inf"], self.counts, strict=True):
            reached += count
            buckets.append((bound, reached))
        family.add_metric(labels, buckets, self.total)


@dataclass(slots=True, eq=False)
class Counts:
    """The numbers of one server process, or of several: they can be added."""

    requests: Counter[tuple[str, int]] = field(default_factory=Counter)  # By route and status
    seconds: defaultdict[str, Buckets] = field(default_factory=lambda: defaultdict(lambda: Buckets.over(_SECONDS)))
    rollouts: Counter[str] = field(default_factory=Counter)  # By fate
    outcomes: Counter[tuple[str, str, str]] = field(default_factory=Counter)  # By reward, status and cause
    batches: Buckets = field(default_factory=lambda: Buckets.over(_ROWS))
    rows_inside: int = 0
    rows_gathering: int = 0

    def as_json(self) -> dict[str, Any]:
        """Return the numbers ready for JSON."""
        return {
            "requests": [[*key, count] for key, count in self.requests.items()],
            "seconds": [[route, spread.counts, spread.total] for route, spread in self.seconds.items()],
            "rollouts": dict(self.rollouts),
            "outcomes": [[*key, count] for key, count in self.outcomes.items()],
            "batches": [self.batches.counts, self.batches.total],
            "rows": [self.rows_inside, self.rows_gathering],
        }

    def add_json(self, numbers: Mapping[str, Any]) -> None:
        """Add the numbers of another process, as its :meth:`as_json` returns them."""
        for route, status, count in numbers["requests"]:
            self.requests[route, status] += count
        for route, counts, total in numbers["seconds"]:
            self.seconds[route].add(counts, total)
        self.rollouts.update(numbers["rollouts"])
        for reward, status, cause, count in numbers["outcomes"]:
            self.outcomes[reward, status, cause] += count
        self.batches.add(*numbers["batches"])
        inside, gathering = numbers["rows"]
        self.rows_inside += inside
        self.rows_gathering += gathering

    def collect(self) -> Iterator[Metric]:
        """Yield the numbers as Prometheus's library takes them."""
        requests = CounterMetricFamily("rewardkit_requests", "Requests answered.", labels=("route", "status"))
        for (route, status), count in self.requests.items():
            requests.add_metric((route, str(status)), count)
        about = "From a request's body to its answer."
        seconds = HistogramMetricFamily("rewardkit_request_seconds", about, labels=("route",))
        for route, spread in self.seconds.items():
            spread.add_to(seconds, (route,))
        about = "Rollouts answered, by what is known of them."
        rollouts = CounterMetricFamily("rewardkit_rollouts", about, labels=("fate",))
        for fate, count in self.rollouts.items():
            rollouts.add_metric((fate,), count)
        about = "What became of each reward's calls; cause is empty unless they failed."
        outcomes = CounterMetricFamily("rewardkit_outcomes", about, labels=("reward", "status", "cause"))
        for key, count in self.outcomes.items():
            outcomes.add_metric(key, count)
        batches = HistogramMetricFamily("rewardkit_batch_rows", "Rows that were scored together.", labels=())
        self.batches.add_to(batches, ())
        yield from (requests, seconds, rollouts, outcomes, batches)
        yield GaugeMetricFamily("rewardkit_rows_inside", "Rows that wait or are scored.", value=self.rows_inside)
        waiting = "Rows that wait for their group."
        yield GaugeMetricFamily("rewardkit_rows_gathering", waiting, value=self.rows_gathering)

    def render(self) -> bytes:
        """Return all as Prometheus reads it."""
        registry = CollectorRegistry()
        registry.register(self)
        return generate_latest(registry)


class Metrics:
    """The counters of one server; ``inside`` and ``gathering`` return the rows inside and those that await a group."""

    def __init__(self, inside: Callable[[], int], gathering: Callable[[], int]) -> None:
        self._counts = Counts()
        self._inside, self._gathering = inside, gathering

    def count_request(self, route: str, status: int, seconds: float) -> None:
        self._counts.requests[route, status] += 1
        if status == 200:
            self._counts.seconds[route].note(seconds)

    def count_rows(self, rows: Sequence[ToldRow]) -> None:
        counts = self._counts
        fates = [row.fate for row in rows]
        for fate, name in _FATES:
            if count := fates.count(fate):
                counts.rollouts[name] += count
        for reward in rows[0].outcomes if rows else ():
            outcomes = [row.outcomes[reward] for row in rows]
            statuses = [outcome.status for outcome in outcomes]
            for status, name in _STATUSES:
                if count := statuses.count(status):
                    counts.outcomes[reward, name, ""] += count
            for outcome in outcomes:
                if outcome.cause is not None:
                    counts.outcomes[reward, outcome.status.value, outcome.cause.value] += 1

    def count_batch(self, rows: int) -> None:
        self._counts.batches.note(rows)

    @property
    def counts(self) -> Counts:
        """The numbers of this moment."""
        self._counts.rows_inside, self._counts.rows_gathering = self._inside(), self._gathering()
        return self._counts
