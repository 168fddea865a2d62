"""Fallback: the first link that can answer does, the score says which, and nothing is scored where none can."""

from __future__ import annotations

import asyncio
import functools
import json
import math
import pickle
import re
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from patience import in_time
from typer.testing import CliRunner
from virtual_time import virtual

from builtin_rewards.judge import (
    BudgetSpentError,
    Criterion,
    Fallback,
    Fault,
    JudgeError,
    JudgeSetupError,
    JudgeUnavailableError,
    Jury,
    LLMJudge,
    Load,
    PairwiseJudge,
    Price,
    RetryPolicy,
)
from rewardkit import (
    Cause,
    InfrastructureError,
    Outcome,
    Reward,
    Rollout,
    Runtime,
    Score,
    Status,
    group_reward,
    reward,
)
from rewardkit.cli.program import app
from rewardkit.testing import FakeJudge

Late = functools.partial(FakeJudge, latency_s=0.02)
"""A fake model that takes a moment, so that questions are in flight together."""

ONCE = RetryPolicy(attempts=1)
PRICES = {"m": Price(1.0, 2.0)}
GRADE_5 = '{"correct": {"reason": "so", "score": 5}}'


def judge(script: Any, name: str = "judge", **settings: Any) -> LLMJudge:
    """Return a judge whose fake model follows a script; a number is a grade."""
    said = json.dumps({"correct": {"reason": "so", "score": script}}) if isinstance(script, int) else script
    settings = {"client": FakeJudge(said), "retry": ONCE, "prices": {}, **settings}
    return LLMJudge("m", [Criterion("correct", "Is it right?")], name=name, **settings)


def down(name: str = "judge", **settings: Any) -> LLMJudge:
    """Return a judge whose server is gone."""
    return judge(ConnectionError("gone"), name, **settings)


@reward
def exact(completion: str, answer: str) -> float:
    """1.0 for the very answer."""
    return float(completion == answer)


@reward
def near(completion: str, answer: float) -> float:
    """How near a number is; its column is coerced."""
    return 1 / (1 + abs(float(completion) - answer))


@reward(score_range=(0, 1))
def raises(completion: str) -> float:
    """Always raises."""
    raise ValueError("no sum in it")


@reward
def not_applicable(completion: str) -> float | None:
    """Says that it does not apply."""
    return None


@reward
async def waits_forever(completion: str) -> float:
    """Never answers, without holding anybody up."""
    await asyncio.sleep(3600)
    return 1.0


@reward
def loops_forever(completion: str) -> float:
    """Never answers, and holds up whoever calls it, for a completion that says so."""
    while completion == "loop":
        pass
    return 0.5


def score(chain: Reward[..., Any], completion: Any = "4", **columns: Any) -> Score:
    """Return the score of one completion."""
    scored: Score = chain(**{"prompt": "2+2=", "completion": completion, "answer": "4", **columns})
    return scored


def outcomes(
    chain: Reward[..., Any], completions: Sequence[str] = ("4",), lane: str = "inline", answer: Any = "4"
) -> list[Outcome]:
    """Return what became of each completion in a run."""
    with Runtime([chain], lane=lane, max_infrastructure_rate=1.0) as runtime:
        return list(runtime.score([Rollout("2+2=", text, {"answer": answer}) for text in completions])[chain.name])


def test_the_first_link_that_can_answer_does() -> None:
    """Its score, its reason and its metrics are the chain's; later links are not asked."""
    second = judge(1, "second")
    scored = score(judge(5).fallback(second, exact))

    assert 1.0 == scored.value
    assert "correct 5 of 5: so (answered by judge)" == scored.reason
    assert {"link/judge": 1.0, "link/second": 0.0, "link/exact": 0.0} == links(scored)
    assert 5.0 == scored.metrics["grade/correct"]
    assert isinstance(second.model.client, FakeJudge)
    assert [] == second.model.client.asked


def links(scored: Score | Outcome) -> dict[str, float]:
    """Return the shares of the links among the metrics."""
    return {name: value for name, value in scored.metrics.items() if name.startswith("link/")}


def test_what_each_link_took_adds_up_to_what_the_chain_took() -> None:
    """Unreadable replies and requests without any are those of their own link; one that was not reached has none."""
    prices = {"m": Price(1.0, 1.0)}
    chain = down("gone").fallback(judge("no verdict", "odd", prices=prices), judge(5, "last", prices=prices), exact)
    metrics = score(chain).metrics
    for cost in ("requests", "prompt_tokens", "completion_tokens", "cost_usd"):
        parts = {name: value for name, value in metrics.items() if name.startswith(f"link_{cost}/")}
        assert pytest.approx(metrics[cost]) == sum(parts.values())
    asked = {name: value for name, value in metrics.items() if name.startswith("link_requests/")}
    assert {"link_requests/gone": 1.0, "link_requests/odd": 2.0, "link_requests/last": 1.0} == asked
    assert not [name for name in score(judge(5).fallback(exact)).metrics if name.endswith("/exact") and "_" in name]


@pytest.mark.parametrize("lane", ["inline", "worker"])
def test_an_outcome_records_why_the_earlier_links_failed(lane: str) -> None:
    """Each with its name, the kind of its failure, its error's words and its requests; the reason is made of them."""
    (outcome,) = outcomes(down().fallback(judge("no verdict", "second"), raises, exact), lane=lane)

    assert (1.0, {"link/judge": 0.0, "link/second": 0.0, "link/raises": 0.0, "link/exact": 1.0}) == (
        outcome.score,
        links(outcome),
    )
    kinds = [(one.name, one.kind, one.requests) for one in outcome.unanswered]
    assert [("judge", "connection", 1), ("second", "unreadable", 2), ("raises", "ValueError", 0)] == kinds
    judge_down, unread, raised = (one.message for one in outcome.unanswered)
    assert judge_down.startswith("the client FakeJudge, model 'm': ConnectionError: gone")
    assert unread.startswith("the judge's reply cannot be read as a verdict")
    assert "ValueError: no sum in it" == raised
    assert "; ".join(["answered by exact", *map(str, outcome.unanswered)]) == outcome.reason


def test_a_link_that_does_not_apply_ends_the_chain() -> None:
    """It was had and said so: the completion is skipped, and no later link is asked."""
    (outcome,) = outcomes(down().fallback(not_applicable, exact))

    assert (Status.SKIPPED, None) == (outcome.status, outcome.score)
    assert 1.0 == outcome.metrics["link/not_applicable"] == sum(links(outcome).values())
    assert str(outcome.reason).startswith("answered by not_applicable; judge: ")


IMAGE = [{"role": "assistant", "content": [{"type": "image_url", "image_url": {"url": "http://x/y.png"}}]}]


@pytest.mark.parametrize("jury", [False, True], ids=["judge", "jury"])
def test_a_judge_that_cannot_see_hands_on(jury: bool) -> None:
    """To one with eyes; of several without the completion is skipped, and beside a failure the call fails."""
    blind, other = judge(5, "blind"), judge(5, "other")
    first = Jury([blind, other], name="blind") if jury else blind
    seeing = judge(4, "seeing", images=True)

    scored = score(first.fallback(seeing), IMAGE)
    assert (0.75, {"link/blind": 0.0, "link/seeing": 1.0}) == (scored.value, links(scored))
    assert "answered by seeing; blind: " in str(scored.reason)
    assert [("blind", "unseen", True)] == [(n, kind, "images=True" in why) for n, kind, why, _ in scored.unanswered]

    within = score(Fallback([first, other], name="inner").fallback(seeing), IMAGE)
    assert ["inner", "blind", "other"] == [one.name for one in within.unanswered]

    none = score(first.fallback(other), IMAGE)
    assert (None, 1.0, {0.0}) == (none.value, none.metrics["unseen"], set(links(none).values()))
    nested = score(Fallback([first, other]).with_options(name="inner").fallback(seeing), IMAGE)
    assert 0.75 == nested.value
    with pytest.raises(JudgeUnavailableError, match=r"blind: .*images=True.*; seeing: the client"):
        score(first.fallback(down("seeing", images=True)), IMAGE)


def test_a_metric_of_a_plain_reward_hands_nothing_on() -> None:
    """Only judges say ``unseen`` of what they cannot see; of another reward it is a metric as any."""

    @reward
    def plain(completion: str) -> Score:
        return Score(None, "does not apply", {"unseen": 1.0})

    scored = score(Fallback([plain, judge(5, "other")]), "4")
    assert (None, {"link/plain": 1.0, "link/other": 0.0}) == (scored.value, links(scored))


@pytest.mark.parametrize("why", ["reference", "turn"])
def test_a_skip_that_is_about_the_row_ends_the_chain(why: str) -> None:
    """Nobody else has the reference or the turn either."""
    settings = {"reference": "answer"} if why == "reference" else {}
    columns = {"answer": "None"} if why == "reference" else {"completion": [{"role": "user", "content": "4"}]}
    scored = score(judge(5, **settings).fallback(not_applicable, exact), **{"completion": "4", **columns})
    assert (None, 1.0) == (scored.value, scored.metrics["link/judge"])


@pytest.mark.parametrize("default", [None, 0.0, 0.25])
def test_the_default_stands_in_only_where_every_link_failed(default: float | None) -> None:
    """It is a failure all the same; ``None`` leaves the completion out."""
    chain = down().fallback(raises, default=default)
    (outcome,) = outcomes(chain)
    (answered,) = outcomes(down().fallback(exact, default=default))

    assert (Status.FAILED, default, {}) == (outcome.status, outcome.score, outcome.metrics)
    assert (Status.SCORED, 1.0) == (answered.status, answered.score)


def test_all_links_unreachable_is_an_outage_and_anything_else_is_not() -> None:
    """The cause tells whose fault it was, and the error names every link."""
    (outage,) = outcomes(down().fallback(down("second")))
    (mixed,) = outcomes(down().fallback(judge("no verdict", "second")))

    assert (Cause.INFRASTRUCTURE, Cause.EXCEPTION) == (outage.cause, mixed.cause)
    assert all(f"{name}: the client FakeJudge" in str(outage.error) for name in ("judge", "second"))
    assert 1 == outage.attempts


def test_links_see_columns_as_they_would_alone() -> None:
    """One takes the column as text, the next as a number; each coerces for itself."""
    chain = judge("no verdict", reference="answer").fallback(near)
    assert 0.5 == score(chain, "3.0", answer="4").value
    assert {"answer"} == set(chain.spec.required_columns)


def test_a_column_that_a_link_cannot_read_is_that_links_failure() -> None:
    """The next link may well do with it."""
    scored = score(down().fallback(near, exact), "4", answer="four")

    assert (0.0, 1.0) == (scored.value, scored.metrics["link/exact"])
    assert "near: CoercionError" in str(scored.reason)


NONSENSE: dict[str, tuple[Any, str]] = {
    "not a number": (math.nan, "returned nan; expected a finite number"),
    "out of its range": (7.0, r"returned 7\.0, outside score_range=\(0\.0, 1\.0\)"),
    "words": ("0.5 or so", "returned str '0.5 or so'; expected a finite number"),
    "a number in words": ("0.5", r"returned str '0\.5'; expected a finite number"),
    "a score in a score": (Score(Score(0.5)), "returned a Score inside a Score"),  # type: ignore[arg-type]
    "a metric that is none": (Score(0.5, None, {"size": math.inf}), "returned metric 'size'=float inf; expected"),
}


@pytest.mark.parametrize(("value", "words"), NONSENSE.values(), ids=NONSENSE)
def test_a_link_that_raises_nothing_but_says_nonsense_has_failed(value: Any, words: str) -> None:
    """What is no score in a run is none in a chain: the next link answers."""

    @reward(score_range=(0, 1))
    def odd(completion: str) -> Any:
        return value

    scored = score(Fallback([odd, exact]))
    assert (1.0, 1.0) == (scored.value, scored.metrics["link/exact"])
    assert re.search(f"odd: ValueError: {words}", str(scored.reason))
    assert [Status.FAILED] == [outcome.status for outcome in outcomes(odd)]


@pytest.mark.parametrize("value", [True, 1, Decimal(1), np.float32(1), np.array(1.0)], ids=repr)
def test_a_link_may_return_any_number(value: Any) -> None:
    """As a reward may in a run."""

    @reward
    def number(completion: str) -> Any:
        return value

    assert (1.0, 1.0) == (score(Fallback([number, raises])).value, outcomes(number)[0].score)


def test_a_chain_has_as_many_calls_under_way_as_its_first_judge_takes() -> None:
    """With more, judgements would wait for their server until their deadlines pass, and hand on for nothing."""
    few, many = (judge(5, load=Load(concurrency=at_once)) for at_once in (2, 512))
    for first in (few, many):
        for chain in (first.fallback(exact), Fallback([exact, first])):
            assert first.spec.concurrency == chain.spec.concurrency, chain
    assert few.spec.concurrency < many.spec.concurrency


@pytest.mark.parametrize("jury", [False, True], ids=["judge", "jury"])
def test_a_link_that_takes_fewer_calls_is_waited_for(jury: bool) -> None:
    """In an outage of the first all its calls come to the second: the deadline of each begins with its turn."""
    slow = judge(5, "slow", client=Late(GRADE_5), load=Load(concurrency=1), deadline_s=1.5)
    second = Jury([slow, exact], name="slow") if jury else slow
    chain = down(load=Load(concurrency=64)).fallback(second.with_options(timeout_s=2.0))

    async def all_of_them() -> list[Score]:
        return await asyncio.gather(*(chain(prompt="p", completion=str(at), answer=str(at)) for at in range(150)))

    assert [(1.0, 1.0)] * 150 == [(one.value, one.metrics["link/slow"]) for one in virtual(all_of_them())]


def test_a_chain_has_time_for_all_its_calls_at_each_link() -> None:
    """Where the second takes 5 calls in place of 80, the last one has its turn after fifteen others."""
    first = judge(5, load=Load(concurrency=64)).with_options(timeout_s=10)
    second = judge(5, "second", load=Load(concurrency=4)).with_options(timeout_s=20)
    assert 10 + 16 * 20 + 5 + 1.0 == first.fallback(second, exact.with_options(timeout_s=5)).options.timeout_s


def costs(made: Reward[..., Any]) -> dict[str, float]:
    """Return what a score says that it took."""
    names = ("requests", "prompt_tokens", "completion_tokens", "cost_usd")
    return {name: value for name, value in score(made).metrics.items() if name in names}


@pytest.mark.parametrize("last", ["judge", "jury", "chain", "plain"])
def test_a_chain_says_what_its_failed_links_took(last: str) -> None:
    """An unreadable reply is paid as a verdict is; what is asked inside of a link is counted once."""
    lost, answers = (judge(script, name, prices=PRICES, reasks=0) for script, name in (("{}", "lost"), (5, "answers")))
    ends: dict[str, Reward[..., Any]] = {
        "judge": answers,
        "jury": Jury([answers, exact]),
        "chain": answers.fallback(near, name="inner"),
        "plain": exact,
    }
    verdict = costs(judge(5, prices=PRICES))
    unread = {"completion_tokens": 1.0, "cost_usd": (verdict["prompt_tokens"] + 2) / 1e6}
    answered = dict.fromkeys(verdict, 0.0) if last == "plain" else verdict
    whole = {name: answered[name] + unread.get(name, value) for name, value in verdict.items()}
    assert whole == pytest.approx(costs(lost.fallback(ends[last])))


def test_a_chain_with_a_judge_without_a_price_has_no_cost() -> None:
    """That of the link which answered is not all it took."""
    chain = judge("{}", "free", prices={"other": Price(1.0, 2.0)}).fallback(judge(5, "paid", prices=PRICES))
    assert {"requests", "prompt_tokens", "completion_tokens"} == set(costs(chain))


def test_a_chain_in_which_nothing_was_asked_has_no_costs() -> None:
    """And a metric of that name which a reward of one's own gives is left alone."""

    @reward
    def own(completion: str) -> Score:
        return Score(1.0, None, {"requests": 3.0})

    assert {} == costs(Fallback([raises, exact]))
    assert {"requests": 3.0} == costs(Fallback([raises, own]))


def test_a_link_has_its_own_deadline() -> None:
    """An async link that never answers costs its ``timeout_s`` and hands on."""
    scored = score(Fallback([waits_forever.with_options(timeout_s=0.05), exact]))

    assert 1.0 == scored.metrics["link/exact"]
    assert "waits_forever: no answer within its timeout_s=0.05" in str(scored.reason)


def test_a_link_that_loops_costs_its_own_call() -> None:
    """The worker is ended at the chain's deadline; the other completions have their scores."""

    def score_all(time_s: float) -> list[Outcome]:
        links = [down(deadline_s=0.1).with_options(timeout_s=0.2), loops_forever.with_options(timeout_s=time_s)]
        return outcomes(Fallback(links), ["a", "b", "loop", "c"], "worker")

    came = in_time(score_all, lambda came: 1 == [one.cause for one in came].count(Cause.TIMEOUT), 0.3)
    assert [0.5, 0.5, None, 0.5] == [outcome.score for outcome in came]
    assert (Status.FAILED, Cause.TIMEOUT) == (came[2].status, came[2].cause)


def test_a_jury_may_be_a_link_and_a_chain_a_juror() -> None:
    """They nest; the inner one's metrics come along."""
    jury = Jury([judge(5, "a"), judge(3, "b"), down("c").fallback(exact, name="c")], reduce="mean")
    scored = score(down("first").fallback(jury, name="whole"))

    assert pytest.approx((1 + 0.5 + 1) / 3) == scored.value
    assert (1.0, 3.0) == (scored.metrics["link/jury"], scored.metrics["jurors"])
    assert score(Jury([down("x").fallback(exact, name="x"), judge(5, "y")])).value == 1.0


def test_a_chain_may_be_a_link() -> None:
    """A failure inside is told with both names, and the shares are those of the outer one's links."""
    inner = down("inner").fallback(raises, name="both")
    scored = score(Fallback([inner, exact]))
    assert "both: none of 2 links answered: inner: the client FakeJudge" in str(scored.reason)
    assert {"link/both": 0.0, "link/exact": 1.0} == links(scored)


@given(st.lists(st.sampled_from(["scores", "skips", "fails"]), min_size=2, max_size=5))
def test_the_links_shares_sum_to_one(acts: list[str]) -> None:
    """For every answer exactly one link answered: the first that did not fail."""

    def link(place: int, act: str) -> Reward[..., Any]:
        @reward(name=f"link{place}")
        def acting(completion: str) -> float | None:
            if act == "fails":
                raise ValueError("x")
            return None if act == "skips" else place / 10

        return acting

    chain = Fallback([link(place, act) for place, act in enumerate(acts)])
    first = next((place for place, act in enumerate(acts) if act != "fails"), None)
    if first is None:
        with pytest.raises(JudgeError):
            score(chain)
        return
    scored = score(chain)

    assert (None if acts[first] == "skips" else first / 10) == scored.value
    assert 1.0 == sum(links(scored).values()) == scored.metrics[f"link/link{first}"]


def test_a_spent_budget_hands_on() -> None:
    """No call is made, and the reason says why."""

    def spent(_: Any) -> Any:
        return BudgetSpentError("the cap is reached", Fault.BUDGET)

    scored = score(judge(spent).fallback(exact))
    assert (1.0, "answered by exact; judge: the cap is reached") == (scored.value, scored.reason)
    assert [("judge", "budget", "the cap is reached")] == [one[:3] for one in scored.unanswered]


@pytest.mark.parametrize("lane", ["inline", "worker"])
def test_a_chain_scores_a_run(lane: str) -> None:
    """With a judge that is down, a plain reward scores every completion of the batch as it would alone."""
    texts = [str(number) for number in range(20)]
    came = outcomes(down().fallback(exact), texts, lane)
    assert [float(text == "4") for text in texts] == [outcome.score for outcome in came]
    assert {1.0} == {outcome.metrics["link/exact"] for outcome in came}


def test_a_chain_pickles_with_its_links() -> None:
    """Its version and options stay, and the version changes with a link's."""
    chain = judge(5).fallback(exact, default=0.5)
    copy = pickle.loads(pickle.dumps(chain))

    assert (chain.version, chain.options, 1.0) == (copy.version, copy.options, score(copy).value)
    assert chain.version != judge(5, scale=(1, 7)).fallback(exact, default=0.5).version
    assert chain.version != judge(5).fallback(near, default=0.5).version


def test_a_chain_is_called_as_its_first_link() -> None:
    """Unless it is named; its deadline has room for those of all links."""
    chain = judge(5).fallback(exact)
    assert ("judge", 100.0 + 10.0 + 1.0) == (chain.name, chain.options.timeout_s)
    assert "whole" == judge(5).fallback(exact, name="whole").name


def test_a_column_with_a_default_is_not_required() -> None:
    """A row without it is scored by the link's own default."""

    @reward
    def lenient(completion: str, answer: str = "4") -> float:
        return float(completion == answer)

    chain = down().fallback(lenient)
    with Runtime([chain], lane="inline") as runtime:
        (outcome,) = runtime.score([Rollout("p", "4")])["judge"]
    assert 1.0 == outcome.score


def test_links_that_read_the_whole_row_get_it() -> None:
    """``example``, and ``**columns``."""

    @reward
    def row(completion: str, example: dict[str, Any]) -> float:
        return float(completion == example["answer"])

    @reward
    def rest(completion: str, **columns: str) -> float:
        return float(completion == columns["answer"])

    for link in (row, rest):
        (outcome,) = outcomes(down().fallback(link))
        assert 1.0 == outcome.score, link.name


@group_reward
def grouped(completions: list[str]) -> list[float]:
    """Scores a group."""
    return [0.0] * len(completions)


BAD: dict[str, tuple[Any, str]] = {
    "no link": (lambda: judge(5).fallback(), "a fallback is made of at least 2 rewards, got 1"),
    "plain function": (lambda: judge(5).fallback(len), "is not a reward; decorate the function with @reward"),
    "a constant": (lambda: judge(5).fallback(0.5), "0.5 is not a reward; a constant is a function with @reward"),
    "group reward": (lambda: judge(5).fallback(grouped), "'grouped' scores groups"),
    "pairwise": (lambda: judge(5).fallback(_pairs()), "'preference' scores groups"),
    "composition": (lambda: judge(5).fallback(0.5 * exact + 0.5 * near), "is a composition"),
    "same name": (lambda: judge(5).fallback(judge(4)), r"two are named 'judge'; rename one with \.with_options"),
    "nothing": (lambda: Fallback([]), "a fallback is made of at least 2 rewards, got 0"),
}


def _pairs() -> PairwiseJudge:
    return PairwiseJudge("m", client=FakeJudge("x"))


@pytest.mark.parametrize(("make", "words"), BAD.values(), ids=BAD)
def test_chains_that_make_no_sense_are_refused(make: Any, words: str) -> None:
    """When they are made, in words that name the fix."""
    with pytest.raises(JudgeSetupError, match=words):
        make()


def test_a_chains_failure_is_not_tried_again_by_the_runtime() -> None:
    """Its links made their tries; each was asked once more by nobody."""
    first, second = down(), down("second")
    outcomes(first.fallback(second))
    assert [1, 1] == [len(one.model.client.asked) for one in (first, second)]  # type: ignore[union-attr]


def test_an_infrastructure_error_of_a_plain_link_is_an_outage() -> None:
    """As it would be alone."""

    @reward
    def unreachable(completion: str) -> float:
        raise InfrastructureError("no database")

    with pytest.raises(JudgeUnavailableError, match="unreachable: InfrastructureError: no database"):
        score(down().fallback(unreachable))


CHAIN = """\
from builtin_rewards.judge import Budget, Criterion, LLMJudge
from builtin_rewards.matching import exact_match
from rewardkit.testing import FakeJudge

def judge(name, said, **settings):
    return LLMJudge("m", [Criterion("correct", "Is it right?")], client=FakeJudge(said), name=name, **settings)

bad = judge("bad", "I like it!")
good = judge("good", '{"correct": {"reason": "so", "score": 5}}', budget=Budget(requests=2))
chain = bad.fallback(good, exact_match, default=None)
"""


def test_score_shows_the_share_of_each_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And why the earlier ones did not answer, such as a spent budget, on 80 columns; the file's links do not count."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("rewardkit.cli.render.PIPED_WIDTH", 80)
    Path("chains.py").write_text(CHAIN)
    Path("rows.jsonl").write_text(
        "".join(f'{{"prompt": "?", "completion": "{n}", "answer": "{n}"}}\n' for n in range(8))
    )
    out = CliRunner().invoke(app, ["score", "chains.py", "rows.jsonl", "--workers", "1"]).stdout
    assert re.search(r"^  bad  18 requests, .* tokens$", out, re.MULTILINE)
    told = " ".join(out.split())
    assert "bad 0.0%, unanswered 8 (unreadable 8): the judge's reply cannot be read as a verdict" in told
    assert 'good 25.0%, unanswered 6 (budget 6): judge "good" was not asked: the cap ' in told
    assert "exact_match 75.0%\n" in out
    assert 1 == sum(line.startswith("bad ") for line in out.splitlines())
    assert 80 >= max(map(len, out.splitlines()))


@pytest.mark.parametrize(("name", "rewards"), [("judge", ["judge", "correct"]), ("_judge", ["correct"])])
def test_a_copy_as_a_link_leaves_the_original_in_its_file(
    name: str, rewards: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is a reward of its own there, unless its variable begins with an underscore."""
    monkeypatch.chdir(tmp_path)
    Path("copied.py").write_text(
        "from builtin_rewards.judge import LLMJudge\nfrom builtin_rewards.matching import exact_match\n"
        "from rewardkit.testing import FakeJudge\n"
        f'{name} = LLMJudge("m", ["correct"], client=FakeJudge.verdict(correct=5))\n'
        f'chain = {name}.with_options(name="small").fallback(exact_match, name="correct")\n'
    )
    Path("rows.jsonl").write_text('{"prompt": "?", "completion": "4", "answer": "4"}\n')
    out = CliRunner().invoke(app, ["score", "copied.py", "rows.jsonl", "--inline", "--json"]).stdout
    assert rewards == list(json.loads(out)["rewards"])
