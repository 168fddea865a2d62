"""A language model that compares the completions of a prompt with each other: a group reward.

Owns :class:`PairwiseJudge`: what one comparison is, both orders of it, and how a tournament's matches become scores.
Which completions meet is the tournament's work, what the matches are worth that of the strengths.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias, Unpack

from builtin_rewards.judge.conversation import Turns, turns_of
from builtin_rewards.judge.costs import cost_metrics
from builtin_rewards.judge.errors import JudgeError, JudgeReplyError, JudgeSetupError, JudgeUnavailableError
from builtin_rewards.judge.model import Answer, JudgeModel, Question
from builtin_rewards.judge.prompt import MAX_CHARS, Template
from builtin_rewards.judge.prompted import (
    Prompted,
    PromptedReward,
    at_once,
    chosen_template,
    filled_by,
    judging_options,
)
from builtin_rewards.judge.rubric import preference_schema
from builtin_rewards.judge.settings import Asking
from builtin_rewards.judge.strengths import bradley_terry, expected_win_rates, rank_scores, win_rates
from builtin_rewards.judge.tournament import Match, Plan, play, round_robin, swiss
from builtin_rewards.judge.verdict import Preference, read_preference
from rewardkit import CoercionError, Kind, RewardError, Score

_ORDERS = ("both", "first")
_TOURNAMENTS: dict[str, Plan] = {"round_robin": round_robin, "swiss": swiss}
_SCORES = ("strength", "win_rate", "rank")
_WORTH = {"A": 1.0, "B": 0.0, "tie": 0.5}
_ROUNDS = 8
"""Rounds of a tournament that fit a call's deadline; a Swiss one of 256 completions has so many."""
_PAIRS_A_GROUP = 6
"""Pairs of a group of 4. So many groups are compared at once that such groups keep all requests in flight; with more,
large ones would wait for each other until their calls' deadlines pass."""
_Asked: TypeAlias = asyncio.Future[Answer[Preference | JudgeReplyError]]


@dataclass(frozen=True, slots=True)
class Comparison(Match):
    """Two completions that were compared, in one order or in both.

    Attributes:
        known: Whether its result needed no judge.
        flipped: Whether the judge preferred whichever stood first, or whichever stood second.
        answers: What was said, readable or not, for what it cost.
        error: Why the comparison failed.
    """

    known: bool = False
    flipped: bool = False
    answers: tuple[Answer[Preference | JudgeReplyError], ...] = ()
    error: JudgeError | None = None


class _Scores(NamedTuple):
    """What matches come to, by completion; ``None`` for one that was in no match that counts."""

    scores: Sequence[float | None]
    strengths: Sequence[float | None]


@dataclass(frozen=True, eq=False, kw_only=True)
class Comparing(Prompted):
    """The function of a :class:`PairwiseJudge`: compares the completions of a group."""

    order: str
    tournament: str
    score: str

    @property
    def rounds(self) -> int:
        return _ROUNDS

    async def __call__(self, **columns: Any) -> list[Score | RewardError]:
        prompt = self.columns.asked(columns)
        read = [_read(one) for one in columns["completions"]]
        answers = [() if isinstance(one, CoercionError) else one for one in read]
        missing = self.columns.missing(columns)
        said: list[Score | RewardError] = [
            one if isinstance(one, CoercionError) else Score(None, missing or self.unseen(prompt, one)) for one in read
        ]
        seen = [place for place, score in enumerate(said) if isinstance(score, Score) and score.reason is None]
        if len(seen) == 1:
            said[seen[0]] = Score(None, "a single completion has nothing to be compared with")
        if len(seen) < 2:
            return said
        group = _Group(self, prompt, [answers[place] for place in seen], self.columns.values(columns))
        matches = await play(_TOURNAMENTS[self.tournament], len(seen), group.compare)
        # In a thread: strengths of a large group take some hundred milliseconds.
        worth = await asyncio.to_thread(self._worth, len(seen), matches)
        left_out = self.left_out(prompt)
        for own, place in enumerate(seen):
            short = self.shortened(self.view(prompt, {"first": answers[place]}), group.values)
            said[place] = self._said(own, matches, worth, left_out | short)
        return said

    def rendered(self, columns: Mapping[str, Any]) -> tuple[Question, ...]:
        if len(columns["completions"]) < 2:
            raise JudgeSetupError(
                "a PairwiseJudge compares two completions, and this is one; give two rollouts of a prompt, or "
                "completions=[first, second]"
            )
        prompt = self.columns.asked(columns)
        first, second = (turns_of(one, "completion") for one in columns["completions"][:2])
        group = _Group(self, prompt, [first, second], self.columns.values(columns))
        asked = not self.columns.missing(columns) and not self.unseen(prompt, first, second)
        return (group.question(first, second),) if asked and group.known(first, second) is None else ()

    def _worth(self, n: int, matches: Sequence[Comparison]) -> _Scores:
        strengths = bradley_terry(n, matches)
        made = {"strength": expected_win_rates, "rank": rank_scores}
        scores = win_rates(n, matches) if self.score == "win_rate" else made[self.score](strengths)
        return _Scores(scores, strengths)

    def _said(
        self, place: int, matches: Sequence[Comparison], worth: _Scores, left_out: Mapping[str, float]
    ) -> Score | RewardError:
        own = [match for match in matches if place in (match.first, match.second)]
        score, strength = worth.scores[place], worth.strengths[place]
        counted = [match for match in own if match.result is not None]
        # What needs no judge says how a completion stands to its equals, and to those that say nothing: no more.
        asked = [match for match in own if not match.known]
        if score is None or strength is None or (asked and all(match.result is None for match in asked)):
            return _no_match(asked or matches)
        won = [
            match.result if match.first == place else 1 - match.result for match in counted if match.result is not None
        ]
        reason = f"{won.count(1.0)} won, {won.count(0.5)} drawn, {won.count(0.0)} lost of {len(own)}"
        flips = sum(match.flipped for match in counted)
        # Each match's cost is shared by its two completions, so that a group's sum is what it took.
        half = {name: value / 2 for name, value in cost_metrics([one for m in own for one in m.answers]).items()}
        half.pop("cached")
        matches_of = {"matches": float(len(own)), "matches_lost": float(len(own) - len(counted))}
        metrics = {"strength": strength, "flips": flips / len(counted), **matches_of, **half, **left_out}
        return Score(score, reason, metrics)


@dataclass(frozen=True, slots=True)
class _Group:
    """The completions of one prompt in a tournament."""

    comparing: Comparing
    prompt: Turns
    answers: Sequence[Turns]
    values: Mapping[str, str]
    asked: dict[tuple[Turns, Turns], _Asked] = field(default_factory=dict)

    async def compare(self, first: int, second: int) -> Comparison:
        one, other = self.answers[first], self.answers[second]
        known = self.known(one, other)
        if known is not None:
            return Comparison(first, second, known, known=True)
        orders = [(one, other), (other, one)] if self.comparing.order == "both" else [(one, other)]
        came = await asyncio.gather(*(self.ask(*pair) for pair in orders), return_exceptions=True)
        answers = tuple(each for each in came if isinstance(each, Answer))
        said = [each.value if isinstance(each, Answer) else each for each in came]
        for each in said:
            if isinstance(each, JudgeError):
                return Comparison(first, second, None, answers=answers, error=each)
            if isinstance(each, BaseException):
                raise each
        return _compared(first, second, [each for each in said if isinstance(each, Preference)], answers)

    async def ask(self, first: Turns, second: Turns) -> Answer[Preference | JudgeReplyError]:
        """Asks which is better; of completions that are equal to these once, which costs once."""
        known = self.asked.get((first, second))
        if known is not None:
            return (await known)._replace(requests=0)
        asked = asyncio.ensure_future(self.comparing.attempt(self.question(first, second), read_preference))
        self.asked[first, second] = asked
        return await asked

    def question(self, first: Turns, second: Turns) -> Question:
        """Gives the question which of two answers is better, in this order."""
        comparing = self.comparing
        view = comparing.view(self.prompt, {"first": first, "second": second})
        filled = view.template.fill({**view.values, **self.values}, max_chars=comparing.max_chars, images=view.images)
        return Question(filled, preference_schema(comparing.reason_chars), comparing.prompt_version)

    def known(self, one: Turns, other: Turns) -> float | None:
        """Gives the result that needs no judge: equal answers, and answers that say nothing."""
        if one == other:
            return 0.5
        reference = self.values.get("reference")
        empty = [self.comparing.says_nothing(answer, reference) is not None for answer in (one, other)]
        return None if not any(empty) else (1 + empty[1] - empty[0]) / 2


def _read(completion: object) -> Turns | CoercionError:
    """Gives a completion's turns, or why it has none: one that cannot be read leaves the others to compete."""
    try:
        return turns_of(completion, "completion")  # type: ignore[arg-type]  # it looks
    except CoercionError as wrong:
        return wrong


def _compared(
    first: int, second: int, said: Sequence[Preference], answers: tuple[Answer[Preference | JudgeReplyError], ...]
) -> Comparison:
    """Gives the match that one or two verdicts make. Verdicts that contradict each other are a tie."""
    results = [_WORTH[preference.winner] for preference in said]
    if len(results) == 1:
        return Comparison(first, second, results[0], answers=answers)
    forward, backward = results[0], 1 - results[1]
    flipped = {forward, backward} == {0.0, 1.0}
    agreed = forward if forward == backward else 0.5
    return Comparison(first, second, agreed, flipped=flipped, answers=answers)


def _no_match(asked: Sequence[Comparison]) -> RewardError:
    """Gives the failure of a completion all of whose comparisons that were asked failed, or of one left without any."""
    errors = [match.error for match in asked if match.error is not None]
    words = f"all {len(errors)} comparisons failed; the first: {errors[0]}"
    unavailable = all(isinstance(error, JudgeUnavailableError) for error in errors)
    return (JudgeUnavailableError if unavailable else JudgeError)(words, errors[0].fault)


class PairwiseJudge(PromptedReward):
    """A language model that compares the completions of a prompt; a group reward with scores in [0, 1].

    With ``order="both"`` each pair is asked in both orders: a verdict that turns with the order is a tie and is
    counted. Equal completions tie, and one that says nothing loses, without being asked about; questions that come out
    equal, for a group has equal completions, are asked once. A comparison that fails counts for nothing; a completion
    all of whose comparisons failed that were asked has failed, and none is ever given half a point for want of an
    answer.

    Metrics of a score: ``strength`` (Bradley-Terry, natural logarithm, the group's mean is 0), ``flips`` the share of
    its matches that turned with the order, ``matches`` and ``matches_lost``, and half of what its matches took:
    ``requests``, ``prompt_tokens``, ``completion_tokens``, ``cost_usd``.

    Args:
        model: The model's name, as its server knows it.
        order: ``"both"``, or ``"first"`` to ask once, in an order that is spread evenly over the group.
        tournament: ``"round_robin"``, n (n - 1) / 2 pairs, or ``"swiss"``, about (n / 2) log2 n pairs in rounds.
        score: ``"strength"``, the chance to win against the others by Bradley-Terry strengths; ``"win_rate"``, the
            share of matches won, ties half; ``"rank"``, from 0 for the last to 1 for the first.
        reference: The dataset column with the right answer, for templates with ``{reference}``.
        template: ``"preference"``, or a :class:`Template` with ``{first}`` and ``{second}``.
        columns: Dataset columns for further fields; by default those of the fields' own names.
        prefilter: Whether answers that say nothing lose without being asked about.
        max_chars: Characters kept of each text shown to the judge.
        reason_chars: ``maxLength`` of the reason in the schema, for small local models; some providers refuse it.
        images: Whether the model takes images; where it does not, a completion with one is skipped.
        default: The score that stands in for a failed completion; ``None`` leaves it out of the baseline.
        name: The reward's name.
        asking: As for :class:`LLMJudge`; ``deadline_s`` is that of one question, from its turn on.

    Raises:
        JudgeSetupError: A setting makes no sense; names it and the fix.
    """

    kind = Kind.GROUP

    def __init__(
        self,
        model: str,
        *,
        order: str = "both",
        tournament: str = "round_robin",
        score: str = "strength",
        reference: str | None = None,
        template: str | Template | None = None,
        columns: Mapping[str, str] | None = None,
        prefilter: bool = True,
        max_chars: int = MAX_CHARS,
        reason_chars: int | None = None,
        images: bool = False,
        default: float | None = None,
        name: str = "preference",
        **asking: Unpack[Asking],
    ) -> None:
        for setting, value, known in (
            ("order", order, _ORDERS),
            ("tournament", tournament, tuple(_TOURNAMENTS)),
            ("score", score, _SCORES),
        ):
            if value not in known:
                raise JudgeSetupError(f"{setting}={value!r}: expected one of {', '.join(known)}")
        chosen = chosen_template(template, "preference", pairwise=True)
        filling = filled_by(chosen, reference, columns, group=True)
        asked = JudgeModel.of(model, asking)  # last, for it looks for a key
        comparing = Comparing(
            name=name,
            model=asked,
            template=chosen,
            columns=filling,
            prefilter=prefilter,
            max_chars=max_chars,
            reason_chars=reason_chars,
            images=images,
            order=order,
            tournament=tournament,
            score=score,
        )
        pairs = at_once(asked) / (2 if order == "both" else 1)
        groups = 1 + math.ceil(pairs / _PAIRS_A_GROUP)  # one more, for the others' last questions leave turns unused
        options = replace(judging_options(comparing, default), concurrency=groups)
        super().__init__(comparing, options)
