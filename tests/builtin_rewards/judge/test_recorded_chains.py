"""What a record says of a chain: which link scored, and why the others did not, in every command that reads a run."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from rewardkit.cli.program import app

CHAIN = """\
from builtin_rewards.judge import Criterion, LLMJudge
from rewardkit import Score, reward
from rewardkit.testing import FakeJudge

def reply(question):
    return '{"correct": {"reason": "so", "score": 5}}' if "clear" in question.text else "I like it!"

@reward
def rule(completion: str) -> Score:
    return Score(0.5, metrics={"status": 3.0})

judge = LLMJudge("m", [Criterion("correct", "Is it right?")], client=FakeJudge(reply), name="judge")
chain = judge.fallback(rule, name="chain")
"""
ANSWERS = ["clear one", "a", "b", "c"]


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert 0 == result.exit_code, result.output
    return result.stdout


def run_json(*arguments: str) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(run(*arguments, "--json"))
    return parsed


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run of a chain whose judge reads one of four completions."""
    monkeypatch.chdir(tmp_path)
    Path("chain.py").write_text(CHAIN)
    _write_rows(ANSWERS)
    run("score", "chain.py:chain", "rows.jsonl", "--inline", "--record", "runs/one", "--out", "scored.jsonl")
    return tmp_path


def _write_rows(answers: Sequence[str]) -> None:
    Path("rows.jsonl").write_text("".join(json.dumps({"prompt": "?", "completion": text}) + "\n" for text in answers))


@pytest.mark.usefixtures("recorded")
def test_show_has_the_shares_and_kinds_that_score_printed() -> None:
    """As text and as JSON."""
    lines = run("show", "runs/one").splitlines()
    start = "  judge 25.0%, unanswered 3 (unreadable 3): the judge's reply cannot be read as a verdict"
    assert [True] == [line.startswith(start) for line in lines if "25.0%" in line]
    assert "  rule 75.0%" in lines

    links = run_json("show", "runs/one")["links"]
    assert ["judge", "rule"] == list(links["chain"])
    judge, rule = links["chain"].values()
    assert (0.25, 3, {"unreadable": 3}) == (judge["share"], judge["unanswered"], judge["kinds"])
    assert (0.75, 0, {}) == (rule["share"], rule["unanswered"], rule["kinds"])


WHERE = {
    "chain.link/rule=1": {"a", "b", "c"},
    "chain.link/judge=1": {"clear one"},
    "reward.chain.link/rule=0": {"clear one"},
    "chain.requests>1 and chain.link/rule=1": {"a", "b", "c"},
    "chain.grade/correct=none": {"a", "b", "c"},
    "chain.grade/correct=5": {"clear one"},
    "chain.status=failed": set(),
}


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize(("condition", "texts"), WHERE.items(), ids=WHERE)
def test_metrics_choose_completions(condition: str, texts: set[str]) -> None:
    """A reward's metric is ``REWARD.METRIC``; its status stays its status."""
    rows = run_json("show", "runs/one", "--where", condition)["completions"]
    assert texts == {row["completion"] for row in rows}


@pytest.mark.usefixtures("recorded")
def test_metrics_sort_completions_and_near_names_are_named() -> None:
    """A metric that no call has is refused with those that are like it."""
    rows = run_json("show", "runs/one", "--sort=-chain.grade/correct")["completions"]
    assert "clear one" == rows[0]["completion"]
    result = CliRunner().invoke(app, ["show", "runs/one", "--where", "chain.link/rul=1"])
    assert 2 == result.exit_code
    assert "nothing is called 'chain.link/rul'; near: chain.link/rule" in result.output


@pytest.mark.usefixtures("recorded")
def test_export_has_a_column_for_each_metric() -> None:
    """One whose name another column has stands below ``metric``."""
    run("export", "runs/one", "--to", "one.csv")
    with open("one.csv", newline="") as file:
        rows = {row["completion"]: row for row in csv.DictReader(file)}
    shares = {text: (row["chain.link/judge"], row["chain.link/rule"]) for text, row in rows.items()}
    assert {"clear one": ("1.0", "0.0"), **dict.fromkeys("abc", ("0.0", "1.0"))} == shares
    assert ("5.0", "") == (rows["clear one"]["chain.grade/correct"], rows["a"]["chain.grade/correct"])
    assert ("scored", "3.0") == (rows["a"]["chain.status"], rows["a"]["chain.metric.status"])


@pytest.mark.usefixtures("recorded")
def test_logs_have_the_unanswered_links_as_json() -> None:
    """With name, kind, message and requests, as their text has."""
    entries = run_json("logs", "runs/one")["entries"]
    kinds = [[(link["name"], link["kind"], link["requests"]) for link in entry["unanswered"]] for entry in entries]
    assert [[], *[[("judge", "unreadable", 2)]] * 3] == kinds


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize("target", ["runs/one", "scored.jsonl"])
def test_diagnose_names_a_chain_whose_later_links_scored_much(target: str) -> None:
    """Of a run, and of rows that were scored."""
    text = " ".join(run("diagnose", target).split())
    assert "chain: its first link, judge, gave 25% of the scores, and others rule 75%; rewardkit " in text
    assert {"chain": {"judge": 0.25, "rule": 0.75}} == run_json("diagnose", target)["fallbacks"]


PRICED = """\
from builtin_rewards.judge import Budget, Criterion, LLMJudge, Price, RetryPolicy
from rewardkit.testing import FakeJudge

judge = LLMJudge(
    "m", [Criterion("correct", "Is it right?")], client=FakeJudge(REPLY), name="judge", max_tokens=100,
    budget=Budget(usd=100), prices={"m": Price(1000, 1000)}, retry=RetryPolicy(attempts=1),
)
"""
REPLIES = {
    "known": ('\'{"correct": {"reason": "so", "score": 5}}\'', False),
    "without a reply": ("lambda question: TimeoutError('no reply')", True),
}


@pytest.mark.parametrize(("reply", "differs"), REPLIES.values(), ids=REPLIES)
def test_score_says_what_the_budget_counts_where_that_is_more(
    reply: str, differs: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request that may be billed and has no usage counts at its most."""
    monkeypatch.chdir(tmp_path)
    Path("priced.py").write_text(PRICED.replace("REPLY", reply))
    _write_rows(["a"])
    text = run("score", "priced.py", "rows.jsonl", "--inline", "--max-lost", "1")
    assert differs == ("USD more, because a request without usage counts at its most" in " ".join(text.split())), text
    assert run_json("score", "priced.py", "rows.jsonl", "--inline", "--max-lost", "1")["charged_usd"] > 0


@pytest.mark.parametrize(("clear", "is_named"), [(8, False), (7, True)], ids=["a fifth", "three tenths"])
def test_diagnose_says_nothing_of_a_fifth(
    clear: int, is_named: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A chain is there so that its later links answer now and then."""
    monkeypatch.chdir(tmp_path)
    Path("chain.py").write_text(CHAIN)
    _write_rows(["clear one"] * clear + ["a"] * (10 - clear))
    run("score", "chain.py:chain", "rows.jsonl", "--inline", "--record", "runs/one")
    assert is_named == bool(run_json("diagnose", "runs/one")["fallbacks"])
    assert is_named == ("its first link" in run("diagnose", "runs/one"))
