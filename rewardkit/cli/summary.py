"""What a scored batch comes to: numbers for each reward, failures, links of chains, and what the calls took."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from rewardkit.cli.render import number
from rewardkit.record.call_costs import Cost, sum_costs, sum_link_costs
from rewardkit.record.values import MeasuredCall
from rewardkit.runtime.row_names import row_name, without_place
from rewardkit.score_batch import ScoreBatch
from rewardkit.shown.text import shortened
from rewardkit.types import COST_METRICS, Outcome, Status, Unanswered

_NUMBERS = re.compile(r"\d+")
_LINK = "link/"
_NAME_CHARS = 28
_COSTS = {
    "requests": "requests", "prompt_tokens": "prompt tokens", "completion_tokens": "completion tokens",
    "cost_usd": "USD",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Spread:
    """How many numbers there are, and how they lie; ``std`` (``ddof=1``) takes two, and without any all are None."""

    count: int
    mean: float | None = None
    std: float | None = None
    min: float | None = None
    max: float | None = None


@dataclass(frozen=True, slots=True)
class RewardSummary:
    """One reward's outcomes in numbers."""

    weight: float
    scores: Spread  # Of those handed on, where a failed call counts with its default
    scored: int
    skipped: int
    failed: Mapping[str, int]  # Calls by cause
    p50_s: float | None  # Seconds of a call; `None` for a composition and where no call was timed
    p95_s: float | None
    skip_reason: str | None = None  # The most frequent reason of skipped calls; `None` where none says one


@dataclass(frozen=True, slots=True)
class Failure:
    """Failures of one reward with one cause and one error, numbers in it aside; row, error and logs of the first."""

    reward: str
    row: int  # Counted from 0
    name: str  # What names the row to a person: its line in the file, or its place, and its id
    cause: str
    error: str
    calls: int  # How many rows failed so
    logs: str


@dataclass(frozen=True, slots=True)
class Link:
    """One link of a chain: the share of the chain's scores that it gave, how often it did not answer, what it took."""

    share: float
    unanswered: int
    error: str | None  # The first of the most frequent kind; `None` where it always answered
    kinds: Mapping[str, int] = field(default_factory=dict)  # How often it did not answer, by kind
    costs: Mapping[str, Cost] = field(default_factory=dict)  # Empty where it asked no server


@dataclass(frozen=True, slots=True)
class Summary:
    """What ``rewardkit score`` tells of so many rows in so many seconds; metrics, links and costs of plain rewards."""

    rows: int
    seconds: float
    rewards: Mapping[str, RewardSummary]
    totals: Spread  # Without the rows that have none
    failures: Sequence[Failure] = field(default_factory=tuple)  # The most frequent kind first
    metrics: Mapping[str, Mapping[str, Spread]] = field(default_factory=dict)
    links: Mapping[str, Mapping[str, Link]] = field(default_factory=dict)
    costs: Mapping[str, Mapping[str, Cost]] = field(default_factory=dict)
    charged_usd: float | None = None  # What budgets counted meanwhile; `None` without any

    @property
    def uncertain_usd(self) -> float:
        """How much more USD budgets counted than the replies are known to cost, at least 0."""
        replies_usd = sum(spent["cost_usd"].sum for spent in self.costs.values() if "cost_usd" in spent)
        return max(0.0, (self.charged_usd or 0.0) - replies_usd)

    def as_json(self, failures: int) -> dict[str, Any]:
        """Return it ready for JSON, with so many kinds of failure."""
        return {**asdict(self), "failures": [asdict(failure) for failure in self.failures[:failures]]}


def summarize(
    batch: ScoreBatch,
    leaves: Mapping[str, Sequence[Outcome | None]],
    seconds: float,
    compositions: frozenset[str],
    label: Callable[[int], str] = "row {}".format,
) -> Summary:
    """Return the summary of a batch that took ``seconds`` of wall-clock time.

    ``leaves`` are the outcomes of the plain rewards, where failures and metrics are read; ``compositions`` are the
    names in the batch whose calls take no time of their own. ``label`` returns what failures call a row, such as its
    line.
    """
    weights = batch.weights
    rewards = {name: _of_reward(weights[name], calls, timed=name not in compositions) for name, calls in batch.items()}
    calls = {name: [outcome for outcome in column if outcome is not None] for name, column in leaves.items()}
    return Summary(
        rows=len(batch.rollouts),
        seconds=seconds,
        rewards=rewards,
        totals=_spread(batch.totals),
        failures=_failures(leaves, batch, label),
        metrics={name: spreads for name, column in calls.items() if (spreads := _metrics(column))},
        links={name: chain for name, column in calls.items() if (chain := links(column))},
        costs={name: spent for name, column in calls.items() if (spent := costs(column))},
    )


def _of_reward(weight: float, outcomes: Sequence[Outcome], *, timed: bool) -> RewardSummary:
    """Return a reward's outcomes in numbers; a call that was not made, or came from the cache, has no time."""
    statuses = Counter(outcome.status for outcome in outcomes)
    failed = Counter(str(outcome.cause) for outcome in outcomes if outcome.status is Status.FAILED)
    calls = [outcome for outcome in outcomes if outcome.attempts and not outcome.cached] if timed else []
    times = [call.duration_s for call in calls]
    skips = Counter(outcome.reason for outcome in outcomes if outcome.status is Status.SKIPPED and outcome.reason)
    p50_s, p95_s = map(float, np.percentile(times, [50, 95])) if times else (None, None)
    return RewardSummary(
        weight=weight,
        scores=_spread(outcome.score for outcome in outcomes),
        scored=statuses[Status.SCORED],
        skipped=statuses[Status.SKIPPED],
        failed=dict(failed.most_common()),
        p50_s=p50_s,
        p95_s=p95_s,
        skip_reason=max(skips, key=skips.__getitem__) if skips else None,
    )


def _spread(numbers: Iterable[float | None]) -> Spread:
    values = np.array([number for number in numbers if number is not None], dtype=float)
    if not values.size:
        return Spread(0)
    with np.errstate(over="ignore"):  # scores near the largest float: their spread is infinite, and says so
        std = float(values.std(ddof=1)) if values.size > 1 else None
        return Spread(len(values), float(values.mean()), std, float(values.min()), float(values.max()))


def _metrics(outcomes: Sequence[Outcome]) -> dict[str, Spread]:
    names = dict.fromkeys(name for outcome in outcomes for name in outcome.metrics)
    return {name: _spread(outcome.metrics.get(name) for outcome in outcomes) for name in names}


def _failures(
    leaves: Mapping[str, Sequence[Outcome | None]], batch: ScoreBatch, label: Callable[[int], str]
) -> list[Failure]:
    """Return the failures by reward, cause and error, the most frequent first; numbers in an error make no kind."""
    kinds: dict[tuple[str, str, str], list[tuple[int, Outcome]]] = {}
    for name, column in leaves.items():
        for row, outcome in enumerate(column):
            if outcome is not None and outcome.status is Status.FAILED:
                kind = (name, str(outcome.cause), _NUMBERS.sub("#", outcome.error or ""))
                kinds.setdefault(kind, []).append((row, outcome))
    failures = []
    for (name, cause, _), calls in sorted(kinds.items(), key=lambda pair: -len(pair[1])):
        row, first = calls[0]
        row_text = row_name(label(row), batch.rollouts[row].example)
        error = without_place(first.error or "")
        failures.append(Failure(name, row, row_text, cause, error, len(calls), first.logs))
    return failures


def links(outcomes: Sequence[Outcome]) -> dict[str, Link]:
    """Return the links of a chain by name, in order; ``{}`` for a reward that is no chain."""
    return links_of([(outcome.metrics, outcome.unanswered) for outcome in outcomes], link_costs(outcomes))


def links_of(
    calls: Iterable[tuple[Mapping[str, float], Sequence[Unanswered]]], spent: Mapping[str, Mapping[str, Cost]]
) -> dict[str, Link]:
    """Return the links of a chain from the metrics and the unanswered links of its calls, and from what each took."""
    chained = [(shares, unanswered) for metrics, unanswered in calls if (shares := _shares(metrics))]
    kinds: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for _, unanswered in chained:
        for link in unanswered:
            kinds[link.name][link.kind].append(link.message)
    return {
        name: Link(
            share=sum(shares.get(name, 0.0) for shares, _ in chained) / len(chained),
            unanswered=sum(map(len, kinds[name].values())),
            error=max(kinds[name].values(), key=len)[0] if kinds[name] else None,
            kinds=dict(Counter({kind: len(errors) for kind, errors in kinds[name].items()}).most_common()),
            costs=spent.get(name, {}),
        )
        for name in dict.fromkeys(name for shares, _ in chained for name in shares)
    }


def recorded_links(
    calls: Mapping[str, Sequence[MeasuredCall]], spending: Mapping[str, Spending]
) -> dict[str, dict[str, Link]]:
    """Return the links of each recorded chain, by reward and link."""
    chains = {
        name: links_of(
            [(call.metrics, call.unanswered) for call in own], spending[name].links if name in spending else {}
        )
        for name, own in calls.items()
    }
    return {name: chain for name, chain in chains.items() if chain}


def link_text(name: str, link: Link) -> str:
    """Return a line on a link: its share of the scores, and how often it failed by kind, with the commonest reason."""
    kinds = ", ".join(f"{kind} {count:,}" for kind, count in link.kinds.items())
    unanswered = f", unanswered {link.unanswered:,} ({kinds})" if link.unanswered else ""
    reason = f": {link.error}" if link.error else ""
    return f"{shortened(name, _NAME_CHARS)} {link.share:.1%}{unanswered}{reason}"


def _shares(metrics: Mapping[str, float]) -> dict[str, float]:
    """Return the shares of a score that the links of a chain have, by name; nothing where it is no chain's."""
    return {name.removeprefix(_LINK): value for name, value in metrics.items() if name.startswith(_LINK)}


def costs(outcomes: Sequence[Outcome]) -> dict[str, Cost]:
    """Return the sums of what calls cost, by metric; cached calls are left out, and so is a metric that no call has.

    Where a call failed and does not say what it took no sum is complete: it may have asked a server.
    """
    return _sums([outcome for outcome in outcomes if not outcome.cached])


def link_costs(outcomes: Sequence[Outcome]) -> dict[str, dict[str, Cost]]:
    """Return the sums of what each link of a chain took, by link and metric, complete where :func:`costs` are."""
    calls = [outcome for outcome in outcomes if not outcome.cached]
    sums = sum_link_costs(call.metrics for call in calls)
    return {link: incomplete(own) for link, own in sums.items()} if _are_silent(calls) else sums


def forecast(outcomes: Sequence[Outcome]) -> dict[str, Cost]:
    """Return what 1,000 calls take where so many took what they did, by metric; ``{}`` where none asked a server.

    Sums that are not complete, as :func:`costs` says, are the least that the calls take.
    """
    calls = [outcome for outcome in outcomes if outcome.metrics.get("requests") or outcome.status is Status.FAILED]
    return {metric: replace(cost, sum=1000 * cost.sum / len(outcomes)) for metric, cost in _sums(calls).items()}


def _sums(calls: Sequence[Outcome]) -> dict[str, Cost]:
    sums = sum_costs(call.metrics for call in calls)
    return incomplete(sums) if _are_silent(calls) else sums


def _are_silent(calls: Sequence[Outcome]) -> bool:
    """Whether a call failed and does not say what it took."""
    return any(call.status is Status.FAILED and not call.metrics.keys() & COST_METRICS for call in calls)


def incomplete(costs: Mapping[str, Cost]) -> dict[str, Cost]:
    """Return sums of which a part is not known."""
    return {metric: replace(cost, complete=False) for metric, cost in costs.items()}


@dataclass(frozen=True, slots=True)
class Spending:
    """What the calls of a reward took of a server, and of a chain what each link took."""

    costs: Mapping[str, Cost]
    links: Mapping[str, Mapping[str, Cost]]


def spending_of(calls: Mapping[str, Sequence[Mapping[str, float]]], failing: Collection[str]) -> dict[str, Spending]:
    """Return what the calls of each reward took, without those that took nothing; ``failing`` ones took at least it."""
    spending = {}
    for name, metrics in calls.items():
        if costs := sum_costs(metrics):
            links = sum_link_costs(metrics)
            if name in failing:
                costs, links = incomplete(costs), {link: incomplete(own) for link, own in links.items()}
            spending[name] = Spending(costs, links)
    return spending


def costs_text(costs: Mapping[str, Cost]) -> str:
    """Return what calls took in words: ``4 requests; at least 80 prompt tokens, 12 completion tokens, 0.0012 USD``.

    Sums that are complete come first, and "at least" stands once before all others.
    """
    if not costs:
        return "0 requests"
    complete = ", ".join(_cost(metric, cost) for metric, cost in costs.items() if cost.complete)
    partial = ", ".join(_cost(metric, cost) for metric, cost in costs.items() if not cost.complete)
    return "; ".join(filter(None, [complete, partial and f"at least {partial}"]))


def _cost(metric: str, cost: Cost) -> str:
    amount, unit = number(cost.sum) if metric == "cost_usd" else f"{cost.sum:,.0f}", _COSTS[metric]
    return f"{amount} {unit.removesuffix('s') if amount == '1' else unit}"
