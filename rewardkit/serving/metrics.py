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
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "rewardkit_requests", "Requests answered.", ("route", "status"), registry=self._registry
        )
        self._seconds = Histogram(
            "rewardkit_request_seconds", "From a request's body to its answer.", ("route",), registry=self._registry
        )
        self._rollouts = Counter(
            "rewardkit_rollouts", "Rollouts answered, by what is known of them.", ("fate",), registry=self._registry
        )
        self._outcomes = Counter(
            "rewardkit_outcomes",
            "What became of each reward's calls; cause is empty unless they failed.",
            ("reward", "status", "cause"),
            registry=self._registry,
        )
        self._batch = Histogram(
            "rewardkit_batch_rows",
            "Rows that were scored together.",
            buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048),
            registry=self._registry,
        )
        # finding the counter of some labels takes longer than counting
        self._requests_of, self._seconds_of = cache(self._requests.labels), cache(self._seconds.labels)
        self._rollouts_of, self._outcomes_of = cache(self._rollouts.labels), cache(self._outcomes.labels)
        Gauge("rewardkit_rows_inside", "Rows that wait or are scored.", registry=self._registry).set_function(inside)
        Gauge("rewardkit_rows_gathering", "Rows that wait for their group.", registry=self._registry).set_function(
            gathering
        )

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
