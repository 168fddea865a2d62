"""The members of chains, juries and cascades: another client in their servers' place, and what lost requests count."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from builtin_rewards.endpoint.errors import OR_FALLBACK
from builtin_rewards.judge import (
    Budget,
    Fallback,
    Fault,
    JudgeUnavailableError,
    Jury,
    LLMJudge,
    Price,
    RetryPolicy,
)
from builtin_rewards.matching import exact_match
from rewardkit import Reward, RewardDefinitionError, Score
from rewardkit.cli.listing import describe
from rewardkit.cli.program import app
from rewardkit.record.call_costs import sum_costs
from rewardkit.score_batch import shared_costs
from rewardkit.testing import FakeJudge
from rewardkit.types import COST_METRICS, UNMETERED

ROW = {"prompt": "2+2=", "completion": "It is 4.", "answer": "4"}
NOWHERE: dict[str, Any] = {"base_url": "http://127.0.0.1:9/v1", "verify": False}


def _judge(name: str = "judge", **settings: Any) -> LLMJudge:
    return LLMJudge("m", ["good"], name=name, **(NOWHERE | settings))


CHAINS = {
    "chain": _judge().fallback(exact_match),
    "chain of a jury": Fallback([Jury([_judge("a"), _judge("b")]), exact_match]),
    "jury": Jury([_judge("a"), _judge("b")]),
    "cascade": _judge().after(exact_match, margin=2),
}


@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
def test_all_judges_of_a_composed_judge_ask_another_client(chain: Reward[..., Any]) -> None:
    """The reward that is shipped is the one that is tested; its rewards without a client stay."""
    fake = FakeJudge.verdict(good=4)
    row: dict[str, Any] = dict(ROW)
    if "completions" in chain.spec.required_columns or chain.spec.kind == "group":
        row["completions"] = [row.pop("completion")] * 2
    scored: Any = chain.with_client(fake)(**row)
    values = [score.value for score in (scored if isinstance(scored, list) else [scored])]
    assert {0.75} == set(values)
    assert fake.asked


def test_a_chain_without_a_judge_has_no_client() -> None:
    chain = Fallback([exact_match, exact_match.with_options(name="other")])
    with pytest.raises(RewardDefinitionError, match="no judge is among 'exact_match', 'other'"):
        chain.with_client(FakeJudge.verdict(good=1))


def test_a_stand_in_spends_nothing_of_a_runs_budget(tmp_path: Path) -> None:
    """A judge with another client has no budget, so it neither counts in the run's ledger nor stops at its cap."""
    budget = Budget(requests=1, ledger=tmp_path / "spent.db")
    for judge in (_judge(budget=budget), _judge(budget=budget).fallback(exact_match)):
        faked = judge.with_client(FakeJudge.verdict(good=4))
        scores: list[Score] = [faked(**ROW) for _ in range(3)]
        assert [0.75] * 3 == [score.value for score in scores]
    assert 0 == budget.spent().requests


def test_requests_without_a_reply_count_among_the_tries() -> None:
    """A link that is never answered took requests, and neither tokens nor money."""
    lost = FakeJudge(ConnectionError("no route"))
    judge = LLMJudge("m", ["good"], client=lost, retry=RetryPolicy(attempts=1))
    score: Score = judge.fallback(exact_match)(**ROW)
    assert [1] == [link.requests for link in score.unanswered]
    costs = {name: score.metrics.get(name) for name in COST_METRICS}
    assert {"requests": 1.0, "prompt_tokens": 0.0, "completion_tokens": 0.0, "cost_usd": 0.0} == costs


class _Refused(Exception):
    """A client's error for a status of the server."""

    def __init__(self, status_code: int) -> None:
        super().__init__(f"HTTP {status_code}")
        self.status_code = status_code


GRADE = '{"good": {"reason": "so", "score": 5}}'
REPLIES: dict[str, tuple[list[Any], float]] = {  # by name: replies to the tries, and seconds of latency
    "answers": ([GRADE], 0.0),
    "broken off": ([ConnectionResetError("gone")] * 2, 0.0),
    "broken off once": ([ConnectionResetError("gone"), GRADE], 0.0),
    "not reached": ([ConnectionRefusedError("closed")] * 2, 0.0),
    "refused once": ([_Refused(429), GRADE], 0.0),
    "a gateway gave up": ([_Refused(504)] * 2, 0.0),
    "a gateway gave up once": ([_Refused(504), GRADE], 0.0),
    "silent": ([GRADE] * 2, 30.0),
    "unreadable": (["no verdict", GRADE], 0.0),
    "unreadable, then broken off": (["no verdict", *[ConnectionResetError("gone")] * 2], 0.0),
}


@pytest.mark.parametrize(("replies", "latency_s"), REPLIES.values(), ids=REPLIES)
def test_requests_that_may_be_billed_are_metered_or_named(replies: list[Any], latency_s: float, tmp_path: Path) -> None:
    """The ledger counts each at its most, so the metrics have as much money as the ledger where none is unmetered."""
    budget = Budget(requests=9, ledger=tmp_path / "ledger.db")
    settings = {"budget": budget, "prices": {"m": Price(1.0, 2.0)}, "deadline_s": 0.3 if latency_s else 30.0}
    retry = RetryPolicy(attempts=2, first_wait_s=0.001, longest_wait_s=0.001)
    judge = LLMJudge("m", ["good"], client=FakeJudge(replies, latency_s=latency_s), retry=retry, **settings)
    metrics = judge.fallback(exact_match)(**ROW).metrics
    spent = budget.spent()
    is_whole = metrics["cost_usd"] == pytest.approx(spent.usd)
    assert is_whole == (not metrics.get(UNMETERED, 0.0)), f"{metrics} of {spent}"
    assert is_whole == sum_costs([metrics])["cost_usd"].complete
    assert is_whole == ("cost_usd" in shared_costs([metrics], 1)) or not metrics["requests"]


@pytest.mark.parametrize("advising", [Fault.BUDGET, Fault.QUOTA, Fault.SERVER_ERROR, Fault.CONNECTION])
def test_a_chain_is_advised_what_it_lacks(advising: Fault) -> None:
    """A fallback is advised to a judge that has none, and a link that asks nobody to a chain of judges."""
    lost = FakeJudge(lambda _: JudgeUnavailableError(f"gone; raise it{OR_FALLBACK}", advising))
    alone = LLMJudge("m", ["good"], client=lost, name="first", retry=RetryPolicy(attempts=1))
    with pytest.raises(JudgeUnavailableError, match="give the judge a fallback"):
        alone(**ROW)
    with pytest.raises(JudgeUnavailableError) as caught:
        alone.fallback(alone.with_options(name="second"), default=0.25)(**ROW)
    assert "fallback" not in str(caught.value)
    assert "a constant reward, would answer" in str(caught.value)


CONSTANT_CHAIN = """
from builtin_rewards.judge import Budget, LLMJudge
from rewardkit import reward
from rewardkit.testing import FakeJudge

big = LLMJudge("m", ["good"], client=FakeJudge.verdict(good=5), budget=Budget(requests=2), name="big")
small = big.with_options(name="small")

@reward
def constant() -> float:
    return 0.25

defaulted = big.fallback(small, default=0.25, name="defaulted")
ended = big.fallback(small, constant, name="ended")
"""


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["defaulted"], 3),
        (["defaulted", "--max-lost", "1"], 0),
        (["defaulted", "--max-lost", "0.75"], 0),
        (["ended"], 0),
    ],
)
def test_a_default_carries_no_run_past_a_spent_budget(
    arguments: list[str], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A constant last link does, and so does the option that the command's error names."""
    monkeypatch.chdir(tmp_path)
    Path("chains.py").write_text(CONSTANT_CHAIN)
    Path("rows.jsonl").write_text("".join(f'{{"prompt": "?", "completion": "{n}"}}\n' for n in range(8)))
    name, *options = arguments
    result = CliRunner().invoke(app, ["score", f"chains.py:{name}", "rows.jsonl", "--inline", "--json", *options])
    assert code == result.exit_code, result.output
    if code:
        assert "(more than max_infrastructure_rate=0.5, in rewardkit score --max-lost)" in " ".join(
            result.stderr.split()
        )
        assert "fallback" not in " ".join(result.stderr.split())
    else:
        assert [8, 0.4375] == [json.loads(result.stdout)["totals"][key] for key in ("count", "mean")]


def test_a_chain_is_described_with_its_links() -> None:
    text = describe(CHAINS["chain"])["doc"]
    assert re.fullmatch(r"A chain of rewards .* It asks judge, exact_match\.", text)
