"""PairwiseJudge on a fake model: both orders, ties, failures that are no half points, and the order of a group."""

from __future__ import annotations

import asyncio
import functools
import itertools
import json
import pickle
import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from virtual_time import virtual

from builtin_rewards.judge import (
    JudgeError,
    JudgeReplyError,
    JudgeSetupError,
    JudgeUnavailableError,
    Load,
    PairwiseJudge,
    RetryPolicy,
    Template,
)
from rewardkit import Cause, DataError, Outcome, RewardError, Rollout, Runtime, Score, Status
from rewardkit.testing import Asked, FakeJudge

Slow = functools.partial(FakeJudge, latency_s=0.02)
"""A fake model that takes a moment, so that questions are in flight together."""


def says(winner: str) -> str:
    """Return a verdict."""
    return json.dumps({"reason": "so", "verdict": winner})


def pair(question: Asked) -> tuple[int, int]:
    """Return the numbers of the two answers that were shown: those of ``answer 7``."""
    first, second = re.findall(r"answer (\d+)", question.text)
    return int(first), int(second)


def higher(question: Asked) -> str:
    """Prefers the higher number, in whichever order."""
    first, second = pair(question)
    return says("A" if first > second else "B")


def judge(script: Any = higher, **settings: Any) -> PairwiseJudge:
    """Return a judge on a fake model, by default one that prefers the higher number."""
    policy = RetryPolicy(attempts=1)
    return PairwiseJudge("m", **{"client": FakeJudge(script), "retry": policy, "prices": {}, **settings})


def asked(made: PairwiseJudge) -> list[Asked]:
    """Return what the judge's fake model was asked."""
    assert isinstance(made.model.client, FakeJudge)
    return made.model.client.asked


def answers(*numbers: int) -> list[str]:
    """Return completions with these numbers."""
    return [f"answer {number}" for number in numbers]


def compare(made: PairwiseJudge, completions: Sequence[str], **columns: Any) -> list[Score | RewardError]:
    """Return what became of a group."""
    came: list[Score | RewardError] = made(prompt="p", completions=list(completions), **columns)
    return came


def scores(made: PairwiseJudge, completions: Sequence[str]) -> list[Score]:
    """Return the scores of a group in which nothing failed."""
    came = compare(made, completions)
    assert all(isinstance(one, Score) for one in came), came
    return [one for one in came if isinstance(one, Score)]


def values(made: PairwiseJudge, completions: Sequence[str]) -> list[float | None]:
    """Return the numbers of :func:`scores`."""
    return [one.value for one in scores(made, completions)]


@pytest.mark.parametrize(
    ("score", "expected"),
    [("win_rate", [0.0, 1.0, 0.5]), ("rank", [0.0, 1.0, 0.5])],
    ids=["win rate", "rank"],
)
def test_better_completions_score_higher(score: str, expected: list[float]) -> None:
    """Each against each, in both orders: six questions for three completions."""
    made = judge(score=score)
    assert expected == values(made, answers(1, 9, 5))
    assert sorted(itertools.permutations((1, 5, 9), 2)) == sorted(map(pair, asked(made)))


def test_strengths_are_in_order() -> None:
    """Scores by strength lie in (0, 1), their mean is one half, and strengths have the mean 0."""
    came = scores(judge(), answers(3, 1, 4, 2))
    order = sorted(range(4), key=lambda place: came[place].value or 0.0)

    assert [1, 3, 0, 2] == order
    assert all(0 < (one.value or 0.0) < 1 for one in came)
    assert pytest.approx(0.0, abs=1e-6) == sum(one.metrics["strength"] for one in came)
    assert order == sorted(range(4), key=lambda place: came[place].metrics["strength"])


@pytest.mark.parametrize("always", ["A", "B"])
def test_a_verdict_that_turns_with_the_order_is_a_tie_and_is_counted(always: str) -> None:
    """A judge that prefers a place and not an answer tells nothing."""
    came = scores(judge(says(always), score="win_rate"), answers(1, 2, 3))
    assert [(0.5, 1.0)] * 3 == [(one.value, one.metrics["flips"]) for one in came]
    assert "0 won, 2 drawn, 0 lost of 2" == came[0].reason


def test_a_tie_said_in_one_order_only_is_a_tie_and_no_flip() -> None:
    """The judge is undecided, and does not contradict itself."""

    def undecided(question: Asked) -> str:
        first, second = pair(question)
        return says("tie" if first > second else "B")

    came = scores(judge(undecided, score="win_rate"), answers(1, 2))
    assert [(0.5, 0.0)] * 2 == [(one.value, one.metrics["flips"]) for one in came]


def test_order_first_asks_once() -> None:
    """Half the price, and the places are spread over the group."""
    made = judge(order="first", score="win_rate")
    assert [0.0, 1 / 3, 2 / 3, 1.0] == pytest.approx(values(made, answers(1, 2, 3, 4)))
    firsts = [pair(question)[0] for question in asked(made)]

    assert 6 == len(firsts)
    assert all(1 <= firsts.count(number) <= 2 for number in (1, 2, 3, 4))


# Failures ------------------------------------------------------------------------------------------------------------


def failing_for(number: int, error: Any) -> Callable[[Asked], Any]:
    """Prefers the higher number, and fails where one number is shown."""
    return lambda question: error if number in pair(question) else higher(question)


@pytest.mark.parametrize(
    ("error", "kind", "cause"),
    [(ConnectionError("gone"), JudgeUnavailableError, Cause.INFRASTRUCTURE), ("x", JudgeError, Cause.EXCEPTION)],
    ids=["outage", "unreadable"],
)
def test_a_completion_all_of_whose_comparisons_failed_has_failed(
    error: Any, kind: type[JudgeError], cause: Cause
) -> None:
    """It has its own failure, never half a point; the others are scored by their own matches."""
    made = judge(failing_for(5, error), score="win_rate")
    came = compare(made, answers(1, 5, 9))

    assert isinstance(came[1], kind)
    assert "all 2 comparisons failed; the first: " in str(came[1])
    assert [0.0, 1.0] == [one.value for one in (came[0], came[2]) if isinstance(one, Score)]

    with Runtime([made], lane="inline") as runtime:
        column = runtime.score([Rollout("p", text) for text in answers(1, 5, 9)])["preference"]
    assert [Status.SCORED, Status.FAILED, Status.SCORED] == [outcome.status for outcome in column]
    assert (cause, None) == (column[1].cause, column[1].score)


def test_a_match_that_failed_in_one_order_counts_for_nothing() -> None:
    """Half of an answer is none; all that was asked was paid and is counted, the unreadable reply too."""

    def one_way(question: Asked) -> Any:
        return higher(question) if pair(question) == (1, 2) else "x"

    came = compare(judge(one_way), answers(1, 2))
    assert [True, True] == [isinstance(one, JudgeError) for one in came]

    def mostly(question: Asked) -> Any:
        return "x" if pair(question) == (2, 1) else higher(question)

    counted = scores(judge(mostly, score="win_rate", reasks=0), answers(1, 2, 3))
    assert [0.0, 0.0, 1.0] == [one.value for one in counted]
    assert [1.0, 1.0, 0.0] == [one.metrics["matches_lost"] for one in counted]
    assert pytest.approx(6.0) == sum(one.metrics["requests"] for one in counted)


def test_a_server_that_is_down_fails_the_whole_group() -> None:
    """Every completion, with nothing to stand in."""
    came = compare(judge(ConnectionError("gone")), answers(1, 2, 3))
    assert [JudgeUnavailableError] * 3 == [type(one) for one in came]


@pytest.mark.parametrize("score", ["strength", "win_rate", "rank"])
@pytest.mark.parametrize(
    ("completions", "scored"),
    [(["answer 1", "answer 1", "answer 2"], [False] * 3), ([":", "answer 1", "answer 2"], [True, False, False])],
    ids=["equal", "says nothing"],
)
def test_what_needs_no_judge_is_no_score_in_an_outage(completions: list[str], scored: list[bool], score: str) -> None:
    """A tie with an equal and a win over nothing stand in for no verdict; what says nothing has lost all the same."""
    came = compare(judge(ConnectionError("gone"), score=score), completions)
    assert scored == [isinstance(one, Score) for one in came]
    for one in came:
        assert isinstance(one, JudgeUnavailableError) or (one.value or 0.0) < 0.5


def test_questions_that_wait_for_their_turn_have_their_whole_deadline() -> None:
    """A group's questions take many round trips of the server, and more time than one may; none is lost."""
    made = judge(client=Slow(higher), load=Load(concurrency=1), deadline_s=0.5, score="win_rate")
    came = virtual(made.function(prompt="p", completions=answers(*range(8))))
    assert [place / 7 for place in range(8)] == pytest.approx([one.value for one in came])


def test_a_group_that_is_cancelled_leaves_nothing_running() -> None:
    """Nothing is asked any more when the deadline of the whole passes."""
    made = judge(client=FakeJudge(higher, latency_s=60), load=Load(concurrency=4))

    async def cancelled() -> set[Any]:
        before = asyncio.all_tasks()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(made.function(prompt="p", completions=answers(*range(6))), 0.5)
        return asyncio.all_tasks() - before

    assert set() == virtual(cancelled())
    assert [] == asked(made)


@pytest.mark.parametrize(("order", "groups"), [("both", 15), ("first", 28)])
def test_as_many_groups_are_compared_at_once_as_keep_the_server_busy(order: str, groups: int) -> None:
    """160 questions for 128 requests: 12 of a group of four, or 6; with more groups a large one would be late."""
    assert groups == judge(order=order, load=Load(concurrency=128)).spec.concurrency


def test_a_reply_that_cannot_be_read_says_what_came() -> None:
    """The first comparison's words are in the failure."""
    came = compare(judge('{"reason": "so", "verdict": "C"}'), answers(1, 2))
    assert all("verdict" in str(one) and not isinstance(one, JudgeReplyError) for one in came)


# What needs no judge -------------------------------------------------------------------------------------------------


def test_equal_completions_tie_unasked() -> None:
    """Two of them are asked about against the third, and not against each other."""
    made = judge(score="win_rate")
    assert [0.25, 0.25, 1.0] == values(made, answers(1, 1, 2))
    assert {(1, 2), (2, 1)} == set(map(pair, asked(made)))


def test_equal_completions_are_compared_once() -> None:
    """Their equal questions are one question, which costs one request."""
    slow = Slow(higher)
    came = scores(judge(client=slow, score="win_rate"), answers(1, 2, 1, 1, 2))
    assert (2, 2.0) == (len(slow.asked), sum(one.metrics["requests"] for one in came))


@pytest.mark.parametrize("order", ["both", "first"])
def test_equal_completions_fail_together(order: str) -> None:
    """One question that fails is the failure of all that asked it."""
    made = judge(ConnectionError("gone"), order=order)
    assert {JudgeUnavailableError} == set(map(type, compare(made, answers(1, 1, 2, 2))))


def test_a_group_of_equal_completions_is_not_asked_about() -> None:
    """All are as good as each other."""
    made = judge()
    assert [0.5] * 4 == pytest.approx(values(made, answers(1, 1, 1, 1)))
    assert [] == asked(made)


def test_a_completion_that_says_nothing_loses_unasked() -> None:
    """Against any that says something; two that say nothing tie."""
    made = judge(score="win_rate")
    assert [0.25, 1.0, 0.25] == values(made, [":", "answer 1", "Thought process:"])
    assert [] == asked(made)


def test_the_prefilter_can_be_left_out() -> None:
    """Then every pair is asked about."""
    made = judge(says("A"), prefilter=False)
    values(made, [":", "answer 1"])
    assert 2 == len(asked(made))


@pytest.mark.parametrize("completions", [[], ["answer 1"]], ids=["none", "one"])
def test_a_single_completion_is_skipped(completions: list[str]) -> None:
    """It has nothing to be compared with."""
    came = compare(judge(), completions)
    assert [None] * len(completions) == [one.value for one in came if isinstance(one, Score)]


def test_a_row_without_its_reference_is_skipped() -> None:
    """All of its completions."""
    template = Template("own", "1", "", "{reference}: {first} or {second}")
    made = judge(template=template, reference="answer")
    came = compare(made, answers(1, 2), answer=None)
    assert [Score(None, "the row has nothing in column 'answer'")] * 2 == came


# Groups --------------------------------------------------------------------------------------------------------------


def test_a_group_of_sixteen_is_in_order() -> None:
    """By 120 comparisons in both orders, which is what the group took."""
    made = judge()
    numbers = [(7 * place) % 16 for place in range(16)]
    came = scores(made, answers(*numbers))

    assert 240 == len(asked(made)) == round(sum(one.metrics["requests"] for one in came))
    assert [15.0] * 16 == [one.metrics["matches"] for one in came]
    assert sorted(range(16), key=lambda place: came[place].value or 0.0) == sorted(range(16), key=numbers.__getitem__)


@pytest.mark.parametrize("lane", ["inline", "worker"])
def test_groups_of_a_run_are_compared_apart(lane: str) -> None:
    """Each prompt's completions among themselves; every score belongs to its completion."""
    made = judge(score="rank")
    rollouts = [Rollout(f"p{group}", f"answer {number}") for group in range(3) for number in (2, 0, 1)]
    with Runtime([made], lane=lane) as runtime:
        column: Sequence[Outcome] = runtime.score(rollouts)["preference"]
    assert [1.0, 0.0, 0.5] * 3 == [outcome.score for outcome in column]


# Settings ------------------------------------------------------------------------------------------------------------


def test_it_pickles_as_its_settings() -> None:
    """The copy's version is the same, and another setting makes another."""
    made = judge(says("A"), score="rank", order="first")
    copy = pickle.loads(pickle.dumps(made))

    assert (made.version, made.options, made.kind) == (copy.version, copy.options, copy.kind)
    others = [judge(), judge(order="first"), judge(score="rank"), judge(prefilter=False)]
    assert 4 == len({other.version for other in others})


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "order": ({"order": "second"}, "order='second': expected one of both, first"),
    "a ListwiseJudge's": ({"repeats": 3}, "PairwiseJudge has no setting 'repeats'; ListwiseJudge has"),
    "of two others": ({"scale": (1, 5)}, "no setting 'scale'; LLMJudge has and ListwiseJudge has"),
    "a tournament": ({"tournament": "swiss"}, "no setting 'tournament'"),
    "score": ({"score": "elo"}, "score='elo': expected one of strength, win_rate, rank"),
    "template of the other kind": ({"template": "rubric"}, "'rubric' is for an LLMJudge, and this is a PairwiseJudge"),
    "unused reference": ({"reference": "answer"}, "reference"),
    "reserved column": ({"columns": {"prompt": "completions"}}, "prompt"),
    "max_chars": ({"max_chars": 0}, "max_chars=0"),
    "model": ({"model": ""}, "model='': expected the model's name"),
}


@pytest.mark.parametrize(("settings", "words"), BAD.values(), ids=BAD)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], words: str) -> None:
    """When the judge is made."""
    given = {"model": "m", "client": FakeJudge("x"), **settings}
    with pytest.raises(JudgeSetupError, match=words):
        PairwiseJudge(**given)


def test_a_fake_verdict_is_one_that_there_is() -> None:
    """A fake that says anything else would have every comparison fail."""
    with pytest.raises(DataError, match="verdict 'C': a comparison has one of 'A', 'B' and 'tie'"):
        FakeJudge.verdict("C")


HOSTILE = {"megabyte": "x" * 1_000_000, "lone surrogate": "half \ud800", "nul": "a\x00b", "field": "{second} {first}"}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_completions_are_compared_as_text(text: str) -> None:
    """They are cut or shown in escapes."""
    assert [0.5, 0.5] == values(judge(says("tie")), [text, "answer 1"])
