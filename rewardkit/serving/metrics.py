"""What the server tells Prometheus, at ``/metrics``."""

from __future__ import annotations

from collections import Counter as Count
from collections.abc import Callable, Sequence
from functools import cache

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from rewardkit.serving.contract import ToldRow

KIND = "text/plain; version=0.0.4; charset=utf-8"  # The type of what `text` returns


class Metrics:
    """The counters of one server; ``inside`` and ``gathering`` return the rows inside and those that await a group."""

    def __init__(self, inside: Callable[[], int], gathering: Callable[[], int]) -> None:
        registry = self._registry = CollectorRegistry()
        requests = Counter("rewardkit_requests", "Requests answered.", ("route", "status"), registry=registry)
        about = "From a request's body to its answer."
        seconds = Histogram("rewardkit_request_seconds", about, ("route",), registry=registry)
        about = "Rollouts answered, by what is known of them."
        rollouts = Counter("rewardkit_rollouts", about, ("fate",), registry=registry)
        about = "What became of each reward's calls; cause is empty unless they failed."
        outcomes = Counter("rewardkit_outcomes", about, ("reward", "status", "cause"), registry=registry)
        sizes = [2**power for power in range(12)]
        self._batch = Histogram(
            "rewardkit_batch_rows", "Rows that were scored together.", buckets=sizes, registry=registry
        )
        # finding the counter of some labels takes longer than counting
        self._requests_of, self._seconds_of = cache(requests.labels), cache(seconds.labels)
        self._rollouts_of, self._outcomes_of = cache(rollouts.labels), cache(outcomes.labels)
        Gauge("rewardkit_rows_inside", "Rows that wait or are scored.", registry=registry).set_function(inside)
        waiting = Gauge("rewardkit_rows_gathering", "Rows that wait for their group.", registry=registry)
        waiting.set_function(gathering)

    def count_request(self, route: str, status: int, seconds: float) -> None:
        self._requests_of(route, str(status)).inc()
        if status == 200:
            self._seconds_of(route).observe(seconds)

    def count_rows(self, rows: Sequence[ToldRow]) -> None:
        for fate, count in Count([row.fate for row in rows]).items():
            self._rollouts_of(fate.value).inc(count)
        for name in rows[0].outcomes if rows else ():
            outcomes = [row.outcomes[name] for row in rows]
            for (status, cause), count in Count([(outcome.status, outcome.cause) for outcome in outcomes]).items():
                self._outcomes_of(name, status.value, cause or "").inc(count)

    def count_batch(self, rows: int) -> None:
        self._batch.observe(rows)

    def text(self) -> bytes:
        """Return all as Prometheus reads it."""
        return generate_latest(self._registry)
