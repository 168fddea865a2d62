"""``check`` of rows without a right answer that it can score: it says why, and what is true of the data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from rewardkit import group_reward, reward
from rewardkit.audit.rows import row_of
from rewardkit.cli.program import app
from rewardkit.examinations.without_answers import own_completions, why_no_answers
from rewardkit.rows.reader import Row

BARE = {"prompt": "1+1="}
GOLD = {"prompt": "1+1=", "answer": "2"}
REFERENCE = {"prompt": "1+1=", "reference": "It is 2."}
TESTS = {"prompt": "Add.", "solution": "def f(): return 2", "tests": "assert ("}
NO_ANSWERS = "no right completions in a column 'reference', and no golds; --gold names their column"

REASONS: dict[str, tuple[list[dict[str, Any]], dict[int, str], str]] = {
    "nothing": ([BARE], {}, f"the data has {NO_ANSWERS}"),
    "a column is missing": ([GOLD, GOLD], {1: "kind", 2: "kind"}, "it cannot be called: column 'kind' is missing"),
    "a column is missing without answers": ([BARE], {1: "answer"}, "it cannot be called: column 'answer' is missing"),
    "a gold that cannot be read": ([GOLD], {1: "answer"}, "it cannot be called: column 'answer' cannot be read"),
    "another column": ([TESTS], {1: "tests"}, "it cannot be called: column 'tests' cannot be read"),
    "a reference": ([REFERENCE], {1: "kind"}, "it cannot be called: column 'kind' is missing"),
    "some rows": (
        [{**GOLD, "answer": None}, GOLD],
        {2: "answer"},
        "it cannot be called on the rows that have right answers: column 'answer' cannot be read",
    ),
    "rows without answers": ([{**GOLD, "answer": None}] * 2, {2: "answer"}, f"the data has {NO_ANSWERS}"),
}  # fmt: skip


@pytest.mark.parametrize("name", REASONS)
def test_the_reason_is_true(name: str) -> None:
    """It speaks of the data only where a reward can be called on the rows that have answers."""
    values, misfits, reason = REASONS[name]
    rows = [Row(line, row) for line, row in enumerate(values, 1)]
    gold = next((column for column in ("answer", "solution") if column in values[0]), None)
    assert reason == why_no_answers(rows, misfits, gold, len(rows))


def test_of_the_rest_of_a_data_set_nothing_is_said() -> None:
    """Where the first rows have an empty column of golds, later ones may hold some."""
    rows = [Row(1, {**GOLD, "answer": None})]
    assert f"the first 1 rows have {NO_ANSWERS}" == why_no_answers(rows, {}, "answer", 30)
    assert f"the data has {NO_ANSWERS}" == why_no_answers([Row(1, BARE)], {}, None, 30)


@reward
async def graded(completion: str) -> float:
    return 1.0


@group_reward
async def ranked(completions: list[str]) -> list[float]:
    return [1.0] * len(completions)


TURN = [{"role": "assistant", "content": "It is 2."}]
OWN: dict[str, tuple[Any, list[dict[str, Any]], int, list[list[str]]]] = {
    "one a row": (graded, [{"completion": "2"}, {"completion": "3"}], 1, [["2"], ["3"]]),
    "messages": (graded, [{"completion": TURN}], 1, [["It is 2."]]),
    "several a row": (graded, [{"completions": ["2", TURN]}], 1, [["2"]]),
    "none": (graded, [{"answer": "2"}, {"completion": " "}], 1, []),
    "a group of the row's": (ranked, [{"completions": ["2", "3"]}, {"completions": ["4", "5"]}], 2, [["2", "3"]]),
    "a group of other rows'": (ranked, [{"completion": "2"}, {"completion": "3"}], 2, [["2", "3"]]),
    "a group of too few": (ranked, [{"completion": "2"}], 3, [["2", "2 (2)", "2 (3)"]]),
}


@pytest.mark.parametrize("name", OWN)
def test_completions_of_the_data_are_scored_as_they_are(name: str) -> None:
    """For what a call costs, as many as right answers would be."""
    leaf, rows, size, expected = OWN[name]
    answers = own_completions(leaf, [row_of(1, {"prompt": "1+1=", **row}, None) for row in rows], size)
    texts = [[str(rollout.completion) for rollout in answer.rollouts] for answer in answers]
    assert expected == [[text if "content" not in text else "It is 2." for text in group] for group in texts]


JUDGES = (
    "from rewardkit import Score, reward\n"
    "@reward\n"
    "async def judged(completion: str) -> Score:\n"
    "    assert completion != 'bad'\n"
    "    if completion == 'late':\n"
    "        return Score(0.5, metrics={'requests': 2, 'unmetered': 1, 'prompt_tokens': 10})\n"
    "    return Score(0.5, metrics={'judge_requests': 1, 'requests': 1, 'prompt_tokens': len(completion)})\n"
    "@reward\n"
    "def tested(completion: str, tests: list[int], answer: str = '') -> float:\n"
    "    return 1.0\n"
)


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "judges.py").write_text(JUDGES)
    return tmp_path


def _check(work: Path, name: str, rows: list[dict[str, Any]], *options: str) -> tuple[int, str]:
    (work / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = CliRunner().invoke(app, ["check", f"judges.py:{name}", "rows.jsonl", "--workers", "1", *options])
    return result.exit_code, " ".join(result.output.split())


def test_a_judge_without_labels_is_told_what_it_takes(work: Path) -> None:
    """The file's completions are scored, at most 16, and are no right answers; a call that fails is a failing row."""
    rows = [{"prompt": f"{n}?", "completion": "x" * 10} for n in range(40)]
    code, out = _check(work, "judged", rows, "--json")
    (check,) = json.loads(out)["rewards"]
    assert (0, {}, []) == (code, check["scores"], check["warnings"])
    assert {"requests": 1000.0, "prompt_tokens": 10000.0}.items() <= check["per_1000"].items()
    assert check["p50_s"] is not None
    code, out = _check(work, "judged", [*rows, {"prompt": "last", "completion": "bad"}][-3:])
    assert (1, True) == (code, "line 3: scoring its completion: exception: " in out)
    assert "1,000 completions take at least 666.7 requests, 6,667 prompt_tokens" in out
    late = [*rows, {"prompt": "last", "completion": "late"}][-4:]
    code, out = _check(work, "judged", late)
    assert (0, True) == (code, "1,000 completions take 1,250 requests; at least 10,000 prompt_tokens" in out)
    (check,) = json.loads(_check(work, "judged", late, "--json")[1])["rewards"]
    assert ["prompt_tokens"] == check["at_least"]
    code, out = _check(work, "judged", rows, "--rows", "0")
    assert (0, False) == (code, "1,000 completions take" in out)
    code, out = _check(work, "judged", [{"prompt": "1?"}])
    assert "what 1,000 completions take is not known: no right answer and no completion was found to score" in out


def test_a_column_that_cannot_be_read_is_no_lack_of_answers(work: Path) -> None:
    """Another line speaks of golds in 'answer', so this one says why they are not scored."""
    code, out = _check(work, "tested", [{"prompt": "1?", "answer": "2", "tests": "no list"}])
    assert (1, True) == (code, "right answers: it cannot be called: column 'tests' cannot be read" in out)
    assert "the data has no" not in out
