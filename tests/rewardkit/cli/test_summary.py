"""What ``rewardkit score`` tells beside scores: the links of a chain, and what calls took."""

from __future__ import annotations

import json
import statistics
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rewardkit import Cause, Outcome, Status, Unanswered
from rewardkit.cli.program import app
from rewardkit.cli.summary import Cost, Link, costs, costs_text, link_text, links
from rewardkit.record.reader import RunReader


def scored(*unanswered: Unanswered, cached: bool = False, **metrics: float) -> Outcome:
    """A score of 1.0 with metrics; ``_`` in a name stands for ``/``."""
    told = {name.replace("link_", "link/"): value for name, value in metrics.items()}
    return Outcome(Status.SCORED, 1.0, None, told, cached=cached, unanswered=unanswered)


def test_a_link_has_its_share_and_the_most_frequent_reason_for_not_answering() -> None:
    """Reasons of one kind count together, and the words are the first's; no word of them is read."""
    lost = [Unanswered("a", "deadline", "late; b: off"), Unanswered("b", "budget", "1 spent")]
    more = [Unanswered("a", "empty", "gone (x)"), Unanswered("b", "budget", "2 spent")]
    outcomes = [scored(*one, link_a=0, link_b=0, link_c=1) for one in (lost, more)]
    assert {
        "a": Link(1 / 3, 2, "late; b: off", {"deadline": 1, "empty": 1}),
        "b": Link(0.0, 2, "1 spent", {"budget": 2}),
        "c": Link(2 / 3, 0, None),
    } == links([*outcomes, scored(link_a=1, link_b=0, link_c=0)])


def test_the_line_of_a_link_has_its_faults_by_kind() -> None:
    """Different faults are not told by one message alone."""
    kinds = ["deadline", "empty", "deadline", "unreadable"]
    outcomes = [scored(Unanswered("a", kind, f"{kind} it is"), link_a=0, link_b=1) for kind in kinds]
    line = link_text("a", links(outcomes)["a"])
    assert "a 0.0%, unanswered 4 (deadline 2, empty 1, unreadable 1): deadline it is" == line


def test_a_link_has_what_it_took() -> None:
    """Each its own, by the chain's metrics; what a cache had is not counted twice, and failed calls make it a least."""
    spent = {"link_requests/a/b": 2.0, "link_cost_usd/a/b": 0.5, "link_requests/c": 1.0, "link_other/c": 7.0}
    metrics = {"link/a/b": 0.0, "link/c": 1.0, "link/d": 0.0, **spent}
    call = Outcome(Status.SCORED, 1.0, None, metrics)
    chain = links([call, call, call._replace(cached=True)])
    requests = {"requests": Cost(4.0, True), "cost_usd": Cost(1.0, True)}
    assert {"a/b": requests, "c": {"requests": Cost(2.0, True)}, "d": {}} == {
        name: link.costs for name, link in chain.items()
    }
    failed = links([call, Outcome(Status.FAILED, None, cause=Cause.INFRASTRUCTURE)])
    assert {"requests": Cost(1.0, False)} == failed["c"].costs


def test_metrics_are_printed_on_request_and_what_links_took_by_score_and_show(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The means of ``--metrics`` are those of ``--json``; costs and links have lines of their own in any case."""
    monkeypatch.chdir(tmp_path)
    Path("r.py").write_text(
        "from rewardkit import Score, reward\n@reward\ndef asks(completion):\n"
        "    part = {'link/a': 0.0, 'link/b': 1.0, 'link_requests/a': 2.0, 'link_requests/b': 1.0}\n"
        "    return Score(1.0, None, {'requests': 3.0, 'field/total': float(completion), **part})\n"
    )
    Path("d.jsonl").write_text("".join(f'{{"prompt": "?", "completion": "{text}"}}\n' for text in (0, 1)))
    arguments = ["score", "r.py", "d.jsonl", "--inline"]
    plain = CliRunner().invoke(app, arguments).stdout
    out = CliRunner().invoke(app, [*arguments, "--metrics", "--record", "runs/one"]).stdout
    assert ["asks", "field/total", "2", "0.5000", "0.0000", "1.0000"] in [line.split() for line in out.splitlines()]
    assert "field/total" not in plain
    assert "link_requests" not in out
    for text in (plain, out):
        assert "      a 0.0%\n        took 4 requests\n      b 100.0%\n        took 2 requests\n" in text
    shown = CliRunner().invoke(app, ["show", "one"]).stdout
    assert "asks took 6 requests\n  a 0.0%\n    took 4 requests\n  b 100.0%\n    took 2 requests\n" in shown
    shown = json.loads(CliRunner().invoke(app, ["show", "one", "--json"]).stdout)
    assert {"asks": {"requests": {"sum": 6.0, "complete": True}}} == shown["costs"]
    assert {"requests": {"sum": 4.0, "complete": True}} == shown["link_costs"]["asks"]["a"]


def test_costs_are_summed_once() -> None:
    """What a cache had took nothing; a sum of which a part is not known says so; other rewards have none."""
    took = [scored(requests=2, cost_usd=0.5), scored(requests=1), scored(requests=9, cached=True), scored(length=3)]
    assert {"requests": Cost(3, True), "cost_usd": Cost(0.5, False)} == costs(took)
    assert ({}, {}) == (costs([scored(length=3)]), links([scored(length=3)]))


def test_a_sum_is_complete_where_all_that_was_asked_is_in_it() -> None:
    """A call that failed has no metrics, and a request without usage is in neither tokens nor money."""
    paid, failed = scored(requests=2, cost_usd=0.5), Outcome(Status.FAILED, None, cause=Cause.INFRASTRUCTURE)
    unmetered = scored(requests=1, cost_usd=0.0, unmetered=1)
    stating = Outcome(Status.FAILED, None, metrics={"requests": 1.0, "cost_usd": 0.25}, cause=Cause.BAD_RETURN)
    assert {"requests": Cost(3, True), "cost_usd": Cost(0.75, True)} == costs([paid, stating])
    assert {"requests": Cost(2, False), "cost_usd": Cost(0.5, False)} == costs([paid, failed])
    assert {"requests": Cost(3, True), "cost_usd": Cost(0.5, False)} == costs([paid, unmetered])
    assert "3 requests; at least 0.5000 USD" == costs_text(costs([paid, unmetered]))
    assert "0 requests" == costs_text(costs([failed]))


def test_show_says_at_least_where_a_call_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As score does, of the same rows."""
    monkeypatch.chdir(tmp_path)
    Path("r.py").write_text(
        "from rewardkit import Score, reward\n@reward\ndef asks(completion):\n"
        "    if completion == 'bad': raise ValueError('no reply')\n"
        "    return Score(1.0, None, {'requests': 2.0, 'cost_usd': 0.25})\n"
    )
    Path("d.jsonl").write_text("".join(f'{{"prompt": "?", "completion": "{text}"}}\n' for text in ("a", "b", "bad")))
    out = CliRunner().invoke(app, ["score", "r.py", "d.jsonl", "--inline", "--record", "runs/one"]).stdout
    assert "  asks  at least 4 requests, 0.5000 USD\n" in out
    assert "asks took at least 4 requests, 0.5000 USD\n" in CliRunner().invoke(app, ["show", "one"]).stdout


@pytest.mark.parametrize("width", [40, 60, 80, 120])
@pytest.mark.parametrize("fails", [False, True])
def test_no_figure_of_what_calls_took_is_cut(
    fails: bool, width: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a screen of any width; that something is not known of failed calls is printed where calls failed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", str(width))
    Path("r.py").write_text(
        "from rewardkit import Score, reward\n@reward\ndef helpful(completion):\n"
        "    if completion == 'bad': raise ValueError('no reply')\n"
        "    tokens = {'prompt_tokens': 2345.0, 'completion_tokens': 142.0}\n"
        "    return Score(1.0, None, {'requests': 18.0, **tokens, 'cost_usd': 0.0023})\n"
    )
    texts = ["a", "b", "bad" if fails else "c"]
    Path("d.jsonl").write_text("".join(f'{{"prompt": "?", "completion": "{text}"}}\n' for text in texts))
    out = CliRunner().invoke(app, ["score", "r.py", "d.jsonl", "--inline"]).stdout
    figures = "36 requests, 4,690 prompt tokens, 284 completion tokens, 0.0046 USD"
    if not fails:
        figures = "54 requests, 7,035 prompt tokens, 426 completion tokens, 0.0069 USD"
    least = "at least " if fails else ""
    unknown = "; what failed calls took is not known" if fails else ""
    assert f"links and costs (with all tries{unknown}) helpful {least}{figures}" in " ".join(out.split())
    assert fails is ("at least" in out)


@pytest.mark.parametrize("scores", [[0.0, 1.0, 1.0], [0.25, 0.5], [2.0]])
def test_a_standard_deviation_is_the_same_in_all_commands(
    scores: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``score`` prints that which the record has, which ``show``, ``diff`` and the dashboard print."""
    monkeypatch.chdir(tmp_path)
    Path("r.py").write_text("from rewardkit import reward\n@reward\ndef own(completion): return float(completion)\n")
    Path("same.py").write_text(Path("r.py").read_text() + "# another file\n")
    Path("d.jsonl").write_text("".join(f'{{"prompt": "?", "completion": "{score}"}}\n' for score in scores))
    told = json.loads(CliRunner().invoke(app, ["score", "r.py", "d.jsonl", "--record", "runs/one", "--json"]).stdout)
    diff = ["diff", "r.py:own", "same.py:own", "--data", "d.jsonl", "--json"]
    compared = json.loads(CliRunner().invoke(app, diff).stdout)
    with RunReader("runs/one") as reader:
        recorded = [summary.std for summary in reader.summaries("own")]
    std = statistics.stdev(scores) if len(scores) > 1 else None
    assert [std] * 3 == pytest.approx([told["totals"]["std"], told["rewards"]["own"]["scores"]["std"], *recorded])
    assert std == pytest.approx(compared["old"]["std"])


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
    assert {"count": 2, "mean": 2.0, "std": 2**0.5, "min": 1.0, "max": 3.0} == told["metrics"]["size"]["length"]
    assert {"asks": {"requests": {"sum": 4, "complete": True}, "cost_usd": {"sum": 0.5, "complete": True}}} == told[
        "costs"
    ]


def test_an_error_of_some_length_is_printed_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its last words say what helps; on 80 columns, of a failure and of a link."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("rewardkit.cli.render.PIPED_WIDTH", 80)
    Path("r.py").write_text(
        "from rewardkit import Score, Unanswered, reward\nlong = 'word ' * 40 + 'lower max_tokens'\n"
        "@reward\ndef fails(completion): raise ValueError(long)\n@reward\ndef chain(completion):\n"
        "    return Score(1.0, None, {'link/a': 0.0, 'link/b': 1.0}, (Unanswered('a', 'budget', long),))\n"
    )
    Path("d.jsonl").write_text('{"prompt": "?", "completion": "a"}\n')
    out = CliRunner().invoke(app, ["score", "r.py", "d.jsonl", "--inline"]).stdout
    assert 2 == " ".join(out.split()).count("lower max_tokens")
