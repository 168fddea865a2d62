"""The members of chains, juries and cascades: another client in their servers' place, and what lost requests count."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from builtin_rewards.judge import Budget, Fallback, Jury, LLMJudge, RetryPolicy
from builtin_rewards.matching import exact_match
from rewardkit import Reward, RewardDefinitionError, Score
from rewardkit.cli.listing import describe
from rewardkit.testing import FakeJudge
from rewardkit.types import COST_METRICS

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


def test_a_chain_is_described_with_its_links() -> None:
    text = describe(CHAINS["chain"])["doc"]
    assert re.fullmatch(r"A chain of rewards .* It asks judge, exact_match\.", text)
