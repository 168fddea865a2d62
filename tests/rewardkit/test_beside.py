"""What ``rewardkit score`` tells beside scores: the links of a chain, and what calls took."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rewardkit import Outcome, Status
from rewardkit.cli.beside import Cost, Link, costs, links
from rewardkit.cli.program import app


def scored(reason: str | None = None, cached: bool = False, **metrics: float) -> Outcome:
    """A score of 1.0 with metrics; ``_`` in a name stands for ``/``."""
    told = {name.replace("link_", "link/"): value for name, value in metrics.items()}
    return Outcome(Status.SCORED, 1.0, reason, told, cached=cached)


def test_a_link_has_its_share_and_the_most_frequent_reason_for_not_answering() -> None:
    """Numbers in a reason make no kind of their own, and the words are the first's."""
    reasons = ["answered by c; a: cut; off; b: 1 spent", "so (answered by c; a: gone (x); b: 2 spent)", "answered by a"]
    shares = [(0, 0, 1), (0, 0, 1), (1, 0, 0)]
    found = links([scored(said, link_a=a, link_b=b, link_c=c) for said, (a, b, c) in zip(reasons, shares, strict=True)])
    assert {
        "a": Link(1 / 3, 2, "cut; off"),
        "b": Link(0.0, 2, "1 spent"),
        "c": Link(2 / 3, 0, None),
    } == found


def test_a_link_whose_reason_cannot_be_read_is_counted() -> None:
    """A reason may be cut short, or be missing."""
    assert {"a": Link(0.0, 1, None), "b": Link(1.0, 0, None)} == links([scored(None, link_a=0, link_b=1)])


def test_costs_are_summed_once() -> None:
    """What a cache had took nothing; a sum of which a part is not known says so; other rewards have none."""
    took = [scored(requests=2, cost_usd=0.5), scored(requests=1), scored(requests=9, cached=True), scored(length=3)]
    assert {"requests": Cost(3, True), "cost_usd": Cost(0.5, False)} == costs(took)
    assert ({}, {}) == (costs([scored(length=3)]), links([scored(length=3)]))


def test_metrics_are_in_the_summary_and_costs_below_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a reward inside a composition as well; what has neither links nor costs adds nothing to the table."""
    monkeypatch.chdir(tmp_path)
    Path("r.py").write_text(
        "from rewardkit import Score, reward\n"
        "@reward\ndef asks(completion): return Score(1.0, None, {'requests': 2.0, 'cost_usd': 0.25})\n"
        "@reward\ndef size(completion): return Score(1.0, None, {'length': len(completion)})\n"
        "both = (asks + size).named('both')\n"
    )
    Path("d.jsonl").write_text('{"prompt": "?", "completion": "a"}\n{"prompt": "?", "completion": "abc"}\n')
    arguments = ["score", "r.py:both", "d.jsonl", "--inline"]
    out = CliRunner().invoke(app, arguments).stdout
    assert "  asks  4 requests, 0.5000 USD\n" in out
    assert "size" not in out
    told = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).stdout)
    assert {"count": 2, "mean": 2.0, "std": 1.0, "min": 1.0, "max": 3.0} == told["metrics"]["size"]["length"]
    assert {"asks": {"requests": {"sum": 4, "complete": True}, "cost_usd": {"sum": 0.5, "complete": True}}} == told[
        "costs"
    ]
