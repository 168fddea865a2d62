"""A language model that compares the completions of a prompt, two at a time: :class:`PairwiseJudge`, a group reward.

Owns what one comparison is, both orders of it, and what fails; what all of them are worth is in ``strengths``.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import statistics
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Never, Unpack

from builtin_rewards.judge.conversation import Turns
from builtin_rewards.judge.errors import JudgeError, JudgeUnavailableError
from builtin_rewards.judge.group import Group, GroupJudging
from builtin_rewards.judge.model import Question
from builtin_rewards.judge.prompted import PromptedReward, at_once, judging_options, prompting
from builtin_rewards.judge.rubric import preference_schema
from builtin_rewards.judge.settings import Settings, check
from builtin_rewards.judge.strengths import bradley_terry, expected_win_rates, rank_scores
from builtin_rewards.judge.verdict import Preference, read_preference
from rewardkit import Kind, RewardError, Score

_WORTH = {"A": 1.0, "B": 0.0, "tie": 0.5}
_PAIRS_A_GROUP = 6
"""Pairs of a group of 4. So many groups are compared at once that such groups keep all requests in flight; with more,
large ones would wait for each other until their calls' deadlines pass."""


class Match(NamedTuple):
    """Two completions, by their places; the result is 1.0 if the first won, 0.5 for a tie, ``None`` if it failed.

    It is flipped where the judge preferred whichever stood first, or second; known where it needed no judge.
    """

    first: int
    second: int
    result: float | None
    known: bool = False
    flipped: bool = False
    error: JudgeError | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Comparing(GroupJudging):
    """The function of a :class:`PairwiseJudge`: compares each completion of a group with each other."""

    field = "first"
    order: str
    score: str

    async def judged(self, group: Group) -> list[Score | RewardError]:
        said = await self.ask(self.questions(group), lambda _, reply, format: read_preference(reply, format))
        empty = self.empty(group)
        matches, wins = [], [[0.0] * len(group.answers) for _ in group.answers]
        for first, second in _pairs(len(group.answers)):
            side = group.answers[first], group.answers[second]
            known = _known(*side, empty)
            both = [said[order] for order in self._orders(*side)] if known is None else []
            match = _compared(first, second, both) if both else Match(first, second, known, known=True)
            matches.append(match)
            if match.result is not None:
                wins[first][second], wins[second][first] = match.result, 1 - match.result
        # In a thread: strengths of a large group take some hundred milliseconds.
        strengths = await asyncio.to_thread(bradley_terry, wins)
        scores = rank_scores(strengths) if self.score == "rank" else expected_win_rates(strengths)
        return [self._said(place, matches, scores[place], strengths[place]) for place in range(len(group.answers))]

    def questions(self, group: Group) -> dict[tuple[Turns, Turns], Question]:
        """Gives the questions by the two answers that they show, in their order; equal ones are one."""
        empty, schema = self.empty(group), preference_schema(self.reason_chars)
        sides = [(group.answers[first], group.answers[second]) for first, second in _pairs(len(group.answers))]
        asked = [order for side in sides if _known(*side, empty) is None for order in self._orders(*side)]
        return {(one, other): self.question(group, {"first": one, "second": other}, schema) for one, other in asked}

    def _orders(self, one: Turns, other: Turns) -> list[tuple[Turns, Turns]]:
        return [(one, other), (other, one)] if self.order == "both" else [(one, other)]

    def _said(
        self, place: int, matches: Sequence[Match], score: float | None, strength: float | None
    ) -> Score | RewardError:
        own = [match for match in matches if place in (match.first, match.second)]
        won = [m.result if m.first == place else 1 - m.result for m in own if m.result is not None]
        # What needs no judge says how a completion stands to its equals, and to those that say nothing: no more.
        asked = [match for match in own if not match.known]
        errors = [match.error for match in asked if match.error is not None]
        if strength is None or (asked and len(errors) == len(asked)):
            words = f"all {len(errors)} comparisons failed; the first: {errors[0]}"
            unavailable = all(isinstance(error, JudgeUnavailableError) for error in errors)
            return (JudgeUnavailableError if unavailable else JudgeError)(words, errors[0].fault)
        reason = f"{won.count(1.0)} won, {won.count(0.5)} drawn, {won.count(0.0)} lost of {len(own)}"
        flips = sum(match.flipped for match in own) / len(won)
        counts = {"matches": float(len(own)), "matches_lost": float(len(errors))}
        value = statistics.fmean(won) if self.score == "win_rate" else score
        return Score(value, reason, {"strength": strength, "flips": flips, **counts})


def _pairs(n: int) -> list[tuple[int, int]]:
    """Gives all pairs of n; each one is named first in half of its own, give or take one."""
    pairs = itertools.combinations(range(n), 2)
    return [(low, high) if (high - low) % 2 else (high, low) for low, high in pairs]


def _known(one: Turns, other: Turns, empty: Collection[Turns]) -> float | None:
    """Gives the result that needs no judge: equal answers, and answers that say nothing."""
    if one == other:
        return 0.5
    return None if one not in empty and other not in empty else (1 + (other in empty) - (one in empty)) / 2


def _compared(first: int, second: int, said: Sequence[Preference | JudgeError]) -> Match:
    """Gives the match that one or two verdicts make. Verdicts that contradict each other are a tie."""
    for one in said:
        if isinstance(one, JudgeError):
            return Match(first, second, None, error=one)
    worth = [_WORTH[one.winner] for one in said if isinstance(one, Preference)]
    results = {worth[0], 1 - worth[-1]} if len(worth) == 2 else {worth[0]}
    return Match(first, second, worth[0] if len(results) == 1 else 0.5, flipped=results == {0.0, 1.0})


class PairwiseJudge(PromptedReward):
    """A language model that compares the completions of a prompt with each other; a group reward, 0 to 1.

    All n (n - 1) / 2 pairs are compared, with ``order="both"`` each in both orders: a verdict that turns with the order
    is a tie and is counted. Equal completions tie, and one that says nothing loses, without being asked about; equal
    questions are asked once. A comparison that fails counts for nothing; a completion all of whose comparisons failed
    that were asked has failed, and none is ever given half a point for want of an answer.

    Metrics of a score: ``strength`` (Bradley-Terry, natural logarithm, the group's mean is 0), ``flips`` the share of
    its matches that turned with the order, ``matches`` and ``matches_lost``, and an even share of the group's costs.

    Args:
        order: ``"both"``, or ``"first"`` to ask once, in an order that is spread evenly over the group.
        score: ``"strength"``, the chance to win against the others by Bradley-Terry strengths; ``"win_rate"``, the
            share of matches won, ties half; ``"rank"``, from 0 for the last to 1 for the first.
        template: ``"preference"``, or a :class:`Template` with ``{first}`` and ``{second}``.
        settings: As for :class:`LLMJudge`; ``deadline_s`` is that of one question, from its turn on.

    Raises:
        JudgeSetupError: A setting makes no sense; names it and the fix.
    """

    kind = Kind.GROUP

    def __init__(
        self, model: str, *more: Never, order: str = "both", score: str = "strength", **settings: Unpack[Settings]
    ) -> None:
        check({"order": order, "score": score})
        shared = prompting(PairwiseJudge, model, settings, "preference", "preference", more)
        comparing = Comparing(**shared, order=order, score=score)
        pairs = at_once(comparing.model) / (2 if order == "both" else 1)
        groups = 1 + math.ceil(pairs / _PAIRS_A_GROUP)  # one more, for the others' last questions leave turns unused
        options = replace(judging_options(comparing, settings.get("default")), concurrency=groups)
        super().__init__(comparing, options)
