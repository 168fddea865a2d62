"""Jury: several judges become one score, those that fail are left out, and too few are a failure."""

from __future__ import annotations

import asyncio
import json
import pickle
from collections.abc import Sequence
from typing import Any

import pytest
from patience import LONG_S

from builtin_rewards.judge import (
    Budget,
    Criterion,
    JudgeError,
    JudgeReplyError,
    JudgeSetupError,
    JudgeUnavailableError,
    Jury,
    LLMJudge,
    Load,
    Price,
    Reduction,
    RetryPolicy,
)
from rewardkit import Cause, Reward, Rollout, Runtime, Score, Status, group_reward, reward
from rewardkit.testing import FakeJudge


def judge(script: Any, name: str, **settings: Any) -> LLMJudge:
    """Return a judge whose fake model follows a script; a number is a grade."""
    said = json.dumps({"correct": {"reason": "so", "score": script}}) if isinstance(script, int) else script
    settings = {"client": FakeJudge(said), "retry": RetryPolicy(attempts=1), "prices": {}, **settings}
    return LLMJudge("m", [Criterion("correct", "Is it right?")], name=name, **settings)


OUT = ConnectionError("gone")


def jury(scripts: Sequence[Any], **settings: Any) -> Jury:
    """Return a jury of judges a, b, c ... that follow these scripts."""
    return Jury([judge(script, "abcdefg"[place]) for place, script in enumerate(scripts)], **settings)


def score(made: Reward[..., Any], **columns: Any) -> Score:
    """Return the score of one completion."""
    scored: Score = made(**{"prompt": "2+2=", "completion": "It is 4.", **columns})
    return scored


@pytest.mark.parametrize(
    ("reduce", "grades", "expected"),
    [
        ("median", (1, 4, 5), 0.75),
        ("median", (1, 3, 4, 5), 0.625),
        ("mean", (1, 4, 5), 7 / 12),
        ("majority", (4, 4, 1), 0.75),
        ("min", (5, 2, 4), 0.25),
    ],
    ids=["median", "median of four", "mean", "majority", "min"],
)
def test_scores_become_one(reduce: str, grades: tuple[int, ...], expected: float) -> None:
    """In the way that was chosen; the reason has every juror's score."""
    scored = score(jury(grades, reduce=reduce))

    assert pytest.approx(expected) == scored.value
    assert f"{reduce} of a {(grades[0] - 1) / 4:.3g} (correct {grades[0]} of 5: so); b " in str(scored.reason)


def test_an_even_jury_without_a_majority_gives_no_score() -> None:
    """Nobody's vote is doubled: the completion is skipped."""
    scored = score(jury((5, 1), reduce="majority"))
    assert (None, "no majority: a 1 (correct 5 of 5: so); b 0 (correct 1 of 5: so)") == (scored.value, scored.reason)


def test_of_a_long_reason_the_beginning_is_shown() -> None:
    """So that those of all jurors are readable; one that gives none has its score alone."""

    @reward
    def talks(completion: str) -> Score:
        return Score(1.0, "x" * 10_000)

    @reward
    def skips(completion: str) -> Score:
        return Score(None, "no unit tests")

    scored = score(Jury([talks, skips, exact]), answer="It is 5.")
    assert f"median of talks 1 ({'x' * 400}); skips does not apply (no unit tests); exact 0" == scored.reason


@pytest.mark.parametrize(
    ("scripts", "requests"), [((5, 4, 3), 3.0), ((5, 4, "{}"), 4.0), ((5, 4, OUT), 3.0)], ids=["all", "unread", "lost"]
)
def test_a_jury_says_what_its_jurors_took(scripts: tuple[Any, ...], requests: float) -> None:
    """All requests are counted, also those to which no verdict came, or no reply."""
    budget, prices = Budget(requests=100), {"m": Price(1.0, 2.0)}
    made = Jury([judge(script, str(at), budget=budget, prices=prices) for at, script in enumerate(scripts)])
    took, spent = score(made).metrics, budget.spent()

    assert requests == took["requests"]
    assert "cached" in took
    if OUT not in scripts:
        assert spent.tokens == took["prompt_tokens"] + took["completion_tokens"]
        assert took["cost_usd"] == pytest.approx(spent.usd)


@pytest.mark.parametrize(
    ("threshold", "grades", "expected"),
    [(0.75, (4, 5, 1), 1.0), (0.75, (3, 5, 1), 0.0), (0.75, (4, 1), None), (0.0, (1, 1, 1), 1.0)],
    ids=["accepts", "rejects", "tie", "everything"],
)
def test_a_majority_may_be_over_verdicts(threshold: float, grades: tuple[int, ...], expected: float | None) -> None:
    """A juror accepts from the threshold on, and the jury's score is 1.0 or 0.0."""
    assert expected == score(jury(grades, reduce="majority", threshold=threshold)).value


@pytest.mark.parametrize(
    ("settings", "expected"), [({"reduce": "mean"}, 0.1), ({"reduce": "majority", "threshold": 0.5}, 0.0)], ids=str
)
def test_a_score_is_in_the_range_of_the_jury(settings: dict[str, Any], expected: float) -> None:
    """A mean of equal scores is that score, and a majority's verdict is 0.0 whatever the jurors' lowest score is."""

    @reward(score_range=(0.05, 0.1))
    def tenth(completion: str) -> float:
        return 0.1

    made = Jury([tenth.with_options(name=name) for name in "abc"], **settings)
    with Runtime([made], lane="inline") as runtime:
        (outcome,) = runtime.score([Rollout("p", "x")])["jury"]
    assert (Status.SCORED, expected) == (outcome.status, outcome.score)


@pytest.mark.parametrize("lost", [OUT, "no verdict"], ids=["outage", "unreadable"])
def test_a_lost_juror_is_left_out(lost: Any) -> None:
    """It is no low score: the median of 5 and 4 stays, and metrics and reason tell of it."""
    scored = score(jury((5, lost, 4)))

    assert 0.875 == scored.value
    assert (2.0, 1.0) == (scored.metrics["jurors"], scored.metrics["jurors_lost"])
    cause = ("connection", 1) if lost == OUT else ("unreadable", 2)
    assert [cause] == [(one.kind, one.requests) for one in scored.unanswered]
    assert "juror/b" not in scored.metrics
    assert "b failed (b: " in str(scored.reason)


@pytest.mark.parametrize(
    ("scripts", "quorum", "answered"),
    [
        ((5, OUT, OUT), None, False),
        ((5, 4, OUT), None, True),
        ((5, 4, OUT, OUT), None, False),
        ((5, OUT, OUT), 1, True),
        ((5, 4, OUT), 3, False),
    ],
    ids=["one of three", "two of three", "two of four", "one suffices", "all are needed"],
)
def test_too_few_jurors_are_a_failure(scripts: tuple[Any, ...], quorum: int | None, answered: bool) -> None:
    """By default more than half must answer; no score stands in for the rest."""
    if answered:
        assert score(jury(scripts, quorum=quorum)).value is not None
        return
    with pytest.raises(JudgeUnavailableError, match=f"of {len(scripts)} jurors answered: .*gone"):
        score(jury(scripts, quorum=quorum))


def test_the_cause_of_a_lost_jury_is_that_of_its_lost_jurors() -> None:
    """An outage only where all lost ones could not be had."""
    juries = [jury((5, OUT, OUT)), jury((5, OUT, "x"), name="other")]
    with Runtime(juries, lane="inline", max_infrastructure_rate=1.0) as runtime:
        batch = runtime.score([Rollout("p", "It is 4.")])
    (outage,), (mixed,) = batch["jury"], batch["other"]
    assert (Cause.INFRASTRUCTURE, Cause.EXCEPTION) == (outage.cause, mixed.cause)
    assert [(Status.FAILED, None)] * 2 == [(one.status, one.score) for one in (outage, mixed)]


@pytest.mark.parametrize(
    ("grades", "agreement"),
    [((4, 4, 4), 1.0), ((4, 4, 1), 1 / 3), ((1, 3, 5), 0.0)],
    ids=["all", "one pair of three", "none"],
)
def test_agreement_is_the_share_of_pairs_that_agree(grades: tuple[int, ...], agreement: float) -> None:
    """Beside the spread and each juror's own score."""
    metrics = score(jury(grades)).metrics

    assert pytest.approx(agreement) == metrics["agreement"]
    assert [(grade - 1) / 4 for grade in grades] == [metrics[f"juror/{name}"] for name in "abc"]
    assert (agreement == 1.0) == (metrics["spread"] == 0.0)


def test_one_juror_alone_agrees_with_nobody() -> None:
    """No agreement is told where there is no pair."""
    assert "agreement" not in score(jury((5, OUT, OUT), quorum=1)).metrics


@reward
def exact(completion: str, answer: str) -> float:
    """1.0 for the very answer."""
    return float(completion == answer)


@reward
def not_applicable(completion: str) -> float | None:
    """Says that it does not apply."""
    return None


def test_jurors_may_be_plain_rewards() -> None:
    """Each gets its own columns."""
    made = Jury([judge(5, "a"), judge(5, "b"), exact], reduce="mean")
    scored = score(made, completion="It is 4.", answer="It is 5.")
    assert pytest.approx(2 / 3) == scored.value
    assert {"answer"} == set(made.spec.required_columns)


def test_a_juror_that_does_not_apply_has_answered() -> None:
    """It counts for the quorum and not for the score; where none applies the completion is skipped."""
    scored = score(Jury([not_applicable, judge(5, "a"), judge(3, "b")]))
    assert (0.75, 2.0, 0.0) == (scored.value, scored.metrics["jurors"], scored.metrics["jurors_lost"])

    none = score(Jury([not_applicable, not_applicable.with_options(name="other")]))
    assert (None, "no juror says that it applies: not_applicable does not apply; other does not apply") == (
        none.value,
        none.reason,
    )


def test_jurors_are_asked_at_the_same_time() -> None:
    """A jury takes as long as its slowest juror."""
    together = asyncio.Barrier(3)

    def waiting(name: str) -> Reward[..., Any]:
        @reward(name=name)
        async def juror(completion: str) -> float:
            await asyncio.wait_for(together.wait(), 60)
            return 1.0

        return juror

    assert 1.0 == score(Jury([waiting(name) for name in "abc"])).value


def test_a_jury_has_as_many_calls_under_way_as_its_jurors_take() -> None:
    """As the one that takes least; those that ask one server share what it takes. Plain rewards take part in any."""
    few, many = (judge(5, str(at_once), load=Load(concurrency=at_once)) for at_once in (8, 512))
    one = FakeJudge("so")
    shared = [judge(5, name, client=one, load=Load(concurrency=8)) for name in "abc"]

    assert 10 == few.spec.concurrency == Jury([many, few, exact]).spec.concurrency
    assert many.spec.concurrency == Jury([many, exact]).spec.concurrency
    assert 3 == Jury([*shared, many]).spec.concurrency
    assert 1 == Jury([judge(5, name, client=one, load=Load(concurrency=1)) for name in "abc"]).spec.concurrency


def test_a_juror_has_its_own_deadline() -> None:
    """One that never answers is lost; the others' scores stand."""

    @reward(timeout_s=0.05)
    async def forever(completion: str) -> float:
        await asyncio.sleep(LONG_S)  # a juror that is waited for is not lost
        return 0.0

    scored = score(Jury([forever, judge(5, "a"), judge(5, "b")]))
    assert (1.0, 1.0) == (scored.value, scored.metrics["jurors_lost"])


def test_a_jury_in_a_chain_hands_on_where_too_few_answered() -> None:
    """And the reason says which jurors failed."""
    scored = score(jury((5, OUT, "x")).fallback(exact), answer="It is 4.")

    assert 1.0 == scored.value == scored.metrics["link/exact"]
    assert "jury: 1 of 3 jurors answered: b: the client FakeJudge" in str(scored.reason)


def test_a_jury_pickles_and_runs_in_a_worker() -> None:
    """Its version changes with its jurors, its reduction and its quorum."""
    made = jury((5, 4, 1))
    copy = pickle.loads(pickle.dumps(made))
    with Runtime([made]) as runtime:
        (outcome,) = runtime.score([Rollout("p", "It is 4.")])["jury"]

    assert (made.version, made.options) == (copy.version, copy.options)
    assert 0.75 == outcome.score
    others = [jury((5, 4, 1), reduce="mean"), jury((5, 4, 1), quorum=3), jury((5, 4))]
    assert 4 == len({made.version, *(other.version for other in others)})


@group_reward
def grouped(completions: list[str]) -> list[float]:
    """Scores a group."""
    return [0.0] * len(completions)


BAD: dict[str, tuple[Any, str]] = {
    "one juror": (lambda: jury((5,)), "a jury is made of at least 2 rewards, got 1"),
    "same name": (lambda: Jury([judge(5, "a"), judge(5, "a")]), "two are named 'a'; rename one"),
    "group reward": (lambda: Jury([judge(5, "a"), grouped]), "'grouped' scores groups"),
    "plain function": (lambda: Jury([judge(5, "a"), len]), "is not a reward; decorate"),
    "reduction": (lambda: jury((5, 4), reduce="mode"), "reduce='mode': expected one of median, mean, majority, min"),
    "threshold": (lambda: jury((5, 4), threshold=0.5), "threshold=0.5: only a majority has one"),
    "threshold off": (lambda: jury((5, 4), reduce="majority", threshold=2), "threshold=2: .* from 0 to 1"),
    "threshold in words": (lambda: jury((5, 4), reduce="majority", threshold="0.5"), "threshold='0.5': .* a number"),
    "quorum": (lambda: jury((5, 4), quorum=3), "quorum=3: expected 1 to 2, the number of jurors"),
    "no quorum": (lambda: jury((5, 4), quorum=0), "quorum=0: expected 1 to 2"),
}


@pytest.mark.parametrize(("make", "words"), BAD.values(), ids=BAD)
def test_juries_that_make_no_sense_are_refused(make: Any, words: str) -> None:
    """When they are made, in words that name the fix."""
    with pytest.raises(JudgeSetupError, match=words):
        make()


def test_a_reduction_may_be_given_as_itself() -> None:
    """The enumeration's members and their words are the same."""
    assert 0.25 == score(jury((5, 2, 4), reduce=Reduction.MIN)).value


def test_an_unreadable_jury_is_no_outage() -> None:
    """All jurors replied with no verdict."""
    with pytest.raises(JudgeError) as caught:
        score(jury(("x", "y")))
    assert not isinstance(caught.value, JudgeUnavailableError | JudgeReplyError)
