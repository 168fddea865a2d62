"""The best of n completions of a prompt by any reward: what is chosen, what it costs in KL, what more would gain."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from builtin_rewards.reward_model.encoding import Turns
from rewardkit import DataError, Outcome, RewardDefinitionError, Rollout, Runtime, Status
from rewardkit.extending import group_places, shorten
from rewardkit.statistics import Interval, best_of_n_kl, best_of_n_weights, mean_interval


@dataclass(frozen=True, slots=True)
class BestChoice:
    """The best of n completions of one prompt.

    Attributes:
        prompt: What was asked.
        completion: The chosen completion; ``None`` if none of the n was scored.
        score: Its score; ``None`` if none was scored.
        place: Its place among the completions, from 0.
        ties: The places of all completions that have this score, in their order; the first of them is chosen.
        outcomes: What became of each completion, also of those beyond n.
        expected: The unbiased estimate of the best score of k completions, for k from 1 to n, over all completions
            that were scored; ``None`` for a k above their number.
        kl: The most by which choosing moves the policy, in nats: log n - (n - 1) / n.
    """

    prompt: Turns
    completion: Turns | None
    score: float | None
    place: int | None
    ties: tuple[int, ...]
    outcomes: tuple[Outcome, ...]
    expected: tuple[float | None, ...]
    kl: float

    @property
    def failed(self) -> int:
        """How many completions could not be scored; they never win."""
        return sum(outcome.status is Status.FAILED for outcome in self.outcomes)

    @property
    def scores(self) -> list[float | None]:
        """The scores; ``None`` for a completion that failed, whatever stands in for it, or was skipped."""
        return _scores_of(self.outcomes)


@dataclass(frozen=True, slots=True)
class BestOfNCurve:
    """What the best of n is expected to score, for n from 1 on, over prompts.

    Attributes:
        n: 1, 2, 3 and so on.
        expected: For each n the mean over the prompts, with its 95 % interval and how many prompts it is of.
        kl: For each n the bound of the divergence in nats.
    """

    n: tuple[int, ...]
    expected: tuple[Interval, ...]
    kl: tuple[float, ...]


class BestOfN:
    """Picks the best of n completions by a reward. Made by :func:`best_of_n`; use it in a ``with`` statement."""

    def __init__(self, reward: object, n: int, *, lane: str = "worker", workers: int | None = None) -> None:
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise RewardDefinitionError(f"best_of_n: n={n!r}: expected a number of completions, 1 or more")
        self.n = n
        self._runtime = Runtime([reward], lane=lane, workers=workers, max_infrastructure_rate=1.0)

    def __call__(self, prompt: Turns, completions: Sequence[Turns], **columns: Any) -> BestChoice:
        """Return the best of the first n completions of a prompt; ``columns`` are those of its row.

        Raises:
            DataError: There are fewer than n completions.
        """
        return self.choices([Rollout(prompt, completion, columns) for completion in completions])[0]

    def choices(self, rollouts: Iterable[Rollout]) -> list[BestChoice]:
        """Return the best of each prompt's first n rollouts, prompts in order of their first; all are scored together.

        Rollouts are of one prompt if prompt and row are equal.

        Raises:
            DataError: There are no rollouts, or a prompt has fewer than n.
        """
        rows = list(rollouts)
        if not rows:
            raise DataError("best_of_n: no completions to choose from")
        groups = group_places(rows)
        for group in groups:
            if len(group) < self.n:
                raise DataError(
                    f"best_of_n: prompt {shorten(rows[group[0]].prompt)} has {len(group)} completions, fewer than "
                    f"n={self.n}; generate more of them, or choose a smaller n"
                )
        (outcomes,) = self._runtime.score(rows).outcomes.values()
        return [_choice([rows[i] for i in group], [outcomes[i] for i in group], self.n) for group in groups]

    def close(self) -> None:
        """End the workers."""
        self._runtime.close()

    def __enter__(self) -> BestOfN:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def best_of_n(reward: object, n: int, *, lane: str = "worker", workers: int | None = None) -> BestOfN:
    """Return what picks the best of n completions of a prompt by a reward.

    Args:
        reward: Any reward: learned, judged, programmed, of groups, a composition, or a reference to one.
        n: How many completions it chooses from.
        lane: Where the reward runs, as for :class:`~rewardkit.Runtime`.
        workers: Worker processes, as there.

    Raises:
        RewardDefinitionError: ``n`` is not a whole number from 1 on.

    Example:
        >>> from rewardkit import reward
        >>> @reward
        ... def longest(completion: str) -> float:
        ...     return float(len(completion))
        >>> with best_of_n(longest, 3, lane="inline") as pick:
        ...     choice = pick("Say more.", ["a", "abc", "ab"])
        >>> choice.completion, choice.score, round(choice.kl, 3)
        ('abc', 3.0, 0.432)
    """
    return BestOfN(reward, n, lane=lane, workers=workers)


def best_of_n_curve(
    scores: Sequence[Sequence[float | None]], n: int, *, chosen_by: Sequence[Sequence[float | None]] | None = None
) -> BestOfNCurve:
    """Return what the best of 1 to n completions is expected to score, over prompts; unbiased for each.

    With ``chosen_by`` the best is that of another reward: the curve of a gold reward where a proxy chooses, as Gao et
    al. draw it (arXiv 2210.10760, section 2). Equal scores of the proxy share their weight.

    Args:
        scores: For each prompt the scores of its completions; ``None`` for one without. The more there are beyond
            n, the narrower the interval.
        n: The last point of the curve.
        chosen_by: For each prompt the scores by which the best is chosen; by default ``scores``.

    Raises:
        DataError: The two do not fit each other, or no prompt has n completions with scores.
    """
    choice_scores = scores if chosen_by is None else chosen_by
    if [len(row) for row in scores] != [len(row) for row in choice_scores]:
        raise DataError("best_of_n_curve: scores and chosen_by differ in their prompts, or in a prompt's completions")
    rows = []
    for proxies, golds in zip(choice_scores, scores, strict=True):
        pairs = zip(proxies, golds, strict=True)
        scored_pairs = [(proxy, gold) for proxy, gold in pairs if proxy is not None and gold is not None]
        if len(scored_pairs) >= n:
            rows.append(scored_pairs)
    if n < 1 or not rows:
        raise DataError(f"best_of_n_curve: n={n}: no prompt has so many completions with scores")
    sizes = tuple(range(1, n + 1))
    means = [mean_interval([_expected(row, size) for row in rows]) for size in sizes]
    return BestOfNCurve(sizes, tuple(means), tuple(best_of_n_kl(size) for size in sizes))


def _scores_of(outcomes: Sequence[Outcome]) -> list[float | None]:
    """Return the scores; ``None`` for a completion that failed, whatever stands in for it, or was skipped."""
    return [outcome.score if outcome.status is Status.SCORED else None for outcome in outcomes]


def _choice(rollouts: Sequence[Rollout], outcomes: Sequence[Outcome], n: int) -> BestChoice:
    """Return the best of a prompt's first n completions; ``expected`` is over all of them."""
    scores = _scores_of(outcomes)
    best = max((score for score in scores[:n] if score is not None), default=None)
    ties = tuple(index for index, score in enumerate(scores[:n]) if score is not None and score == best)
    pairs = [(score, score) for score in scores if score is not None]
    return BestChoice(
        prompt=rollouts[0].prompt,
        completion=rollouts[ties[0]].completion if ties else None,
        score=best,
        place=ties[0] if ties else None,
        ties=ties,
        outcomes=tuple(outcomes),
        expected=tuple(_expected(pairs, k) if k <= len(pairs) else None for k in range(1, n + 1)),
        kl=best_of_n_kl(n),
    )


def _expected(pairs: Sequence[tuple[float, float]], n: int) -> float:
    """Return the expected second number of pairs, chosen by the best first of n; equal firsts share their weight."""
    ranking = sorted(pairs, key=lambda pair: pair[0])
    weights = best_of_n_weights(len(ranking), n)
    proxies, values = np.array(ranking, dtype=float).T
    _, groups = np.unique(proxies, return_inverse=True)
    group_means = np.bincount(groups, values) / np.bincount(groups)
    return float(weights @ group_means[groups])
