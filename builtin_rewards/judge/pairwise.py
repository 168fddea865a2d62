"""A language model that compares the completions of a prompt, two at a time: :class:`PairwiseJudge`, a group reward.

Owns comparisons and what they come to: Bradley-Terry strengths, win rates, ranks. A completion without any result has
no rating, ``None``, and never a middling one.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import statistics
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias, Unpack

from builtin_rewards.endpoint.errors import JudgeError, JudgeUnavailableError
from builtin_rewards.judge.conversation import Turns
from builtin_rewards.judge.group import Criteria, Group, GroupFunction
from builtin_rewards.judge.model import Question
from builtin_rewards.judge.prompted import PromptedReward, function_fields, judging_options, question_limit
from builtin_rewards.judge.rubric import preference_schema
from builtin_rewards.judge.settings import JudgeSettings, check
from builtin_rewards.judge.verdict import Preference, read_preference
from rewardkit import Kind, RewardError, Score

_FIELDS = ("first", "second")
_WORTH = {"A": 1.0, "B": 0.0, "tie": 0.5}  # of the answer that stands first
# As many groups of 4 as keep all requests in flight; more large groups would wait until their deadlines pass.
_PAIRS_A_GROUP = 6

Wins: TypeAlias = Sequence[Sequence[float]]  # how often the first index won against the second; a tie is half a win
Ratings: TypeAlias = list[float | None]

_TOLERANCE, _MAX_ITERATIONS = 1e-9, 20_000  # a step of log-strengths that ends them; the last ones are the likeliest
_SAME_STRENGTH = 1e-6  # strengths this near share a rank: more than the iterations leave, less than any result makes


class Match(NamedTuple):
    """Two completions by their places, and the result of the first."""

    first: int
    second: int
    result: float | None  # 1.0 if the first won, 0.5 for a tie, `None` if the comparison failed
    certain: bool = False  # no judge was needed
    flipped: bool = False  # the judge preferred the same place in both orders
    error: JudgeError | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class PairwiseFunction(GroupFunction):
    """The function of a :class:`PairwiseJudge`: compares each completion of a group with each other."""

    field = "first"
    order: str
    score: str

    async def score_group(self, group: Group) -> list[Score | RewardError]:
        """Return the scores; a completion has an error if all comparisons that were asked for failed."""
        verdicts = await self.ask(self.questions(group), lambda _, reply, format: read_preference(reply, format))
        empty, size = self.empty_answers(group), len(group.answers)
        matches, wins = [], [[0.0] * size for _ in range(size)]
        for first, second in _pairs(size):
            pair = group.answers[first], group.answers[second]
            result = _certain_result(*pair, empty)
            match = Match(first, second, result, certain=True)
            if result is None:
                match = _match_of(first, second, [verdicts[order] for order in self._orders(*pair)])
            matches.append(match)
            if match.result is not None:
                wins[first][second], wins[second][first] = match.result, 1 - match.result
        # In a thread: strengths of a large group take some hundred milliseconds.
        strengths = await asyncio.to_thread(bradley_terry, wins)
        scores = rank_scores(strengths) if self.score == "rank" else expected_win_rates(strengths)
        return [self._score(index, matches, scores[index], strengths[index]) for index in range(size)]

    def questions(self, group: Group) -> dict[tuple[Turns, Turns], Question]:
        """Return the questions by the two answers that they show, in their order; equal ones are one."""
        empty, schema = self.empty_answers(group), preference_schema(self.reason_chars)
        pairs = [(group.answers[first], group.answers[second]) for first, second in _pairs(len(group.answers))]
        uncertain = [pair for pair in pairs if _certain_result(*pair, empty) is None]
        orders = [order for pair in uncertain for order in self._orders(*pair)]
        return {order: self.question(group, dict(zip(_FIELDS, order, strict=True)), schema) for order in orders}

    def _orders(self, first: Turns, second: Turns) -> list[tuple[Turns, Turns]]:
        return [(first, second), (second, first)] if self.order == "both" else [(first, second)]

    def _score(
        self, index: int, matches: Sequence[Match], score: float | None, strength: float | None
    ) -> Score | RewardError:
        """Return a completion's score with its reason and metrics, or the error where all its comparisons failed."""
        own = [match for match in matches if index in (match.first, match.second)]
        wins = [m.result if m.first == index else 1 - m.result for m in own if m.result is not None]
        # Results that need no judge tell only how a completion compares with its equals and with empty ones.
        comparisons = [match for match in own if not match.certain]
        errors = [match.error for match in comparisons if match.error is not None]
        if strength is None or (comparisons and len(errors) == len(comparisons)):
            message = f"all {len(errors)} comparisons failed; the first: {errors[0]}"
            is_outage = all(isinstance(error, JudgeUnavailableError) for error in errors)
            return (JudgeUnavailableError if is_outage else JudgeError)(message, errors[0].fault)
        reason = f"{wins.count(1.0)} won, {wins.count(0.5)} drawn, {wins.count(0.0)} lost of {len(own)}"
        flips = sum(match.flipped for match in own) / len(wins)
        counts = {"matches": float(len(own)), "matches_lost": float(len(errors))}
        value = statistics.fmean(wins) if self.score == "win_rate" else score
        return Score(value, reason, {"strength": strength, "flips": flips, **counts})


def _pairs(n: int) -> list[tuple[int, int]]:
    """Return all pairs of n, in which each number stands first in half of its pairs, give or take one."""
    pairs = itertools.combinations(range(n), 2)
    return [(low, high) if (high - low) % 2 else (high, low) for low, high in pairs]


def _certain_result(first: Turns, second: Turns, empty: Collection[Turns]) -> float | None:
    """Return the result of two answers that need no judge: equal ones, and ones without content."""
    if first == second:
        return 0.5
    is_certain = first in empty or second in empty
    return (1 + (second in empty) - (first in empty)) / 2 if is_certain else None


def _match_of(first: int, second: int, verdicts: Sequence[Preference | JudgeError]) -> Match:
    """Return the match that one or two verdicts make. Verdicts that contradict each other are a tie."""
    results: list[float] = []  # of the first completion, in each order
    for is_swapped, verdict in enumerate(verdicts):
        if isinstance(verdict, JudgeError):
            return Match(first, second, None, error=verdict)
        worth = _WORTH[verdict.winner]
        results.append(1 - worth if is_swapped else worth)
    result = results[0] if len(set(results)) == 1 else 0.5
    return Match(first, second, result, flipped=set(results) == {0.0, 1.0})


def bradley_terry(wins: Wins) -> Ratings:
    """Return log-strengths θ, of mean 0, under which i beats j with probability 1 / (1 + exp(θ_j - θ_i)).

    They maximise the likelihood times a prior, by which each has also tied one match, spread evenly over the others: it
    keeps strengths finite, and changes no order if all meet. The iteration is λ_i ← w_i / Σ_j n_ij / (λ_i + λ_j), λ =
    exp θ, w_i the wins of i, n_ij the matches of i with j: Hunter, MM Algorithms for Generalized Bradley-Terry Models,
    Annals of Statistics 32(1) (2004), equation 3. If the better always wins, 8 take 270 iterations and 64 take 6,200.
    """
    import numpy as np

    counts = np.array(wins, dtype=float).reshape(len(wins), len(wins))
    rated = np.flatnonzero((counts + counts.T).sum(axis=1))
    ratings: Ratings = [None] * len(wins)
    if not len(rated):
        return ratings
    counts = counts[np.ix_(rated, rated)] + 0.5 / (len(rated) - 1)
    np.fill_diagonal(counts, 0)
    logs = np.zeros(len(rated))
    for _ in range(_MAX_ITERATIONS):
        strengths = np.exp(logs)
        new = np.log(counts.sum(axis=1) / ((counts + counts.T) / (strengths[:, None] + strengths)).sum(axis=1))
        new -= new.mean()
        step, logs = np.abs(new - logs).max(), new
        if step <= _TOLERANCE:
            break
    for index, log in zip(rated, logs.tolist(), strict=True):
        ratings[index] = log
    return ratings


def expected_win_rates(strengths: Sequence[float | None]) -> Ratings:
    """Return each one's mean of 1 / (1 + exp(θ_j - θ_i)) over the others with a strength; ``None`` without."""
    return _against_others(strengths, lambda ahead: 0.5 + math.tanh(ahead / 2) / 2)  # the same, and never too large


def rank_scores(strengths: Sequence[float | None]) -> Ratings:
    """Return each one's share of the others that are weaker, equals as half, from 0 to 1; ``None`` without others."""
    return _against_others(strengths, lambda ahead: 0.5 if abs(ahead) <= _SAME_STRENGTH else float(ahead > 0))


def _against_others(strengths: Sequence[float | None], beats: Callable[[float], float]) -> Ratings:
    """Return each one's mean of ``beats``, of how far it is ahead, over the others with a strength."""
    rated = [strength for strength in strengths if strength is not None]
    if len(rated) < 2:
        return [None] * len(strengths)
    # The sum is over all; its own part in it, one half, is taken off.
    return [
        None if own is None else (math.fsum(beats(own - other) for other in rated) - 0.5) / (len(rated) - 1)
        for own in strengths
    ]


class PairwiseJudge(PromptedReward):
    """A language model that compares the completions of a prompt with each other; a group reward, 0 to 1.

    All n (n - 1) / 2 pairs are compared. Equal completions tie and one without content loses, without being asked
    about; equal questions are asked once. A comparison that fails counts for nothing, and a completion fails if all of
    its comparisons failed that were asked.

    Metrics of a score: ``strength`` (Bradley-Terry, natural logarithm, the group's mean is 0), ``flips`` the share of
    its matches that turned with the order, ``matches`` and ``matches_lost``, and an even share of the group's costs.

    Args:
        criteria: What answers are compared by, each a :class:`Criterion` or a text; the judge sees their weights.
        criteria_column: The dataset column with the criteria of a row, as for :class:`LLMJudge`.
        order: ``"both"``, where a verdict that turns with the order is a tie, or ``"first"`` to ask once, in an order
            that is spread evenly over the group.
        score: ``"strength"``, the chance to win against the others by Bradley-Terry strengths; ``"win_rate"``, the
            share of matches won, ties half; ``"rank"``, from 0 for the last to 1 for the first.
        template: ``"preference"``, with criteria ``"preference_by_criteria"``, or a :class:`Template` with ``{first}``
            and ``{second}``, or also ``{criteria}``.
        settings: As for :class:`LLMJudge`; ``deadline_s`` is that of one question, from its turn on.

    Raises:
        JudgeSetupError: A setting is wrong; names it and the fix.
    """

    kind = Kind.GROUP

    def __init__(
        self,
        model: str,
        criteria: Criteria = None,
        *,
        criteria_column: str | None = None,
        order: str = "both",
        score: str = "strength",
        **settings: Unpack[JudgeSettings],
    ) -> None:
        check({"order": order, "score": score})
        default = "preference" if criteria is None and criteria_column is None else "preference_by_criteria"
        shared = function_fields(PairwiseJudge, model, settings, "preference", default)
        comparing = PairwiseFunction(**shared, order=order, score=score).compared_by(criteria, criteria_column)
        pairs = question_limit(comparing.model) / (2 if order == "both" else 1)
        groups = 1 + math.ceil(pairs / _PAIRS_A_GROUP)  # one more: the others' last questions leave turns unused
        options = replace(judging_options(comparing, settings.get("default")), concurrency=groups)
        super().__init__(comparing, options)
