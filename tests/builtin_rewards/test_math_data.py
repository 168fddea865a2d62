"""math_answer on GSM8K and MATH: what graders recorded, and what math-verify itself says."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from builtin_rewards.math import math_answer

WAYS = {
    "boxed": "So the result is $\\boxed{%s}$.",
    "tag": "<think>2 + 2 = 4</think>\n<answer>%s</answer>",
    "phrase": "He has 3 first. The answer is %s.",
    "hashes": "2 * 3 = 6\n#### %s",
    "letter": "2 * 3 = 6\nA: %s",
    "last number": "First there are 2, and then she has %s",
    "currency": "In total she makes $%s.",
    "words": "Therefore they have %s apples in total.",
    "bold": "The final answer is: **%s**",
    "latex": "The answer is $%s$ dollars",
    "equation": "Thus $x = %s$.",
    "decimal": "\\boxed{%s.00}",
    "percent": "<answer>%s%%</answer>",
    "bare": "%s",
}

SHARE = 5
"""One row in so many is tried in the short form."""

# Where math_answer and math-verify differ on the 500 pairs: gold, prediction, what math_answer says.
DIFFERENCES = [("12", "\\boxed{12^{\\mathrm{th}} grade}", 1.0)]


def lines(path: Path, full: bool = True) -> Iterator[dict[str, Any]]:
    """Return the rows of a file; in the short form every fifth."""
    with path.open(encoding="utf-8") as file:
        for line in itertools.islice(file, 0, None, 1 if full else SHARE):
            yield json.loads(line)


@pytest.fixture(scope="module")
def golds(data: Path, full: bool) -> list[str]:
    return [row["answer"].rpartition("####")[2].strip() for row in lines(data / "gsm8k" / "test.jsonl", full)]


def score(completion: str, gold: str) -> float | None:
    return math_answer.function(completion, gold).value  # type: ignore[no-any-return]


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_gsm8k_golds_in_every_way_of_writing(golds: list[str], way: str, full: bool) -> None:
    """Each scores 1 against itself and 0 against the next different gold; a percentage answers golds above 1."""
    assert (1319 if full else 264) == len(golds)
    if way == "percent":
        golds = [gold for gold in golds if gold != "1"]
    written = [WAYS[way] % gold for gold in golds]
    assert len(golds) == sum(score(text, gold) == 1.0 for text, gold in zip(written, golds, strict=True))
    shifted = golds[1:] + golds[:1]
    others = [
        (text, other)
        for text, gold, other in zip(written, golds, shifted, strict=True)
        if (value := float(gold.replace(",", ""))) != (wanted := float(other.replace(",", "")))
        and not (way == "percent" and value == 100 * wanted)
    ]
    assert len(others) == sum(score(text, other) == 0.0 for text, other in others)


@pytest.mark.slow
def test_gsm8k_rows_are_read_with_their_worked_solution(data: Path, full: bool) -> None:
    """A worked solution is right by itself."""
    for row in lines(data / "gsm8k" / "test.jsonl", full):
        assert 1.0 == score(row["answer"], row["answer"])


@pytest.mark.slow
def test_graded_gsm8k_solutions_get_their_recorded_flag(data: Path, full: bool) -> None:
    """Four models' solutions are right where their grader says so."""
    agree = total = 0
    for row in lines(data / "gsm8k" / "example_model_solutions.jsonl", full):
        gold = row["ground_truth"].rpartition("A:")[2].strip()
        for model in ("6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification"):
            graded = row[model]
            agree += (score(graded["solution"], gold) == 1.0) == graded["is_correct"]
            total += 1
    print(f"graded GSM8K solutions: {agree} of {total}")
    assert (5276 if full else 1056) == agree == total


def test_predictions_of_tora(data: Path) -> None:
    """As many are right as its authors count."""
    rows = list(lines(data / "gsm8k_predictions" / "tora-70b-v1.0.jsonl"))
    right = sum(score(f"\\boxed{{{row['pred'][0]}}}", row["gt"]) == 1.0 for row in rows)
    print(f"ToRA on GSM8K: {right} of {len(rows)}")
    assert (1112, 1319) == (right, len(rows))


@pytest.mark.slow
def test_graded_math_responses(data: Path) -> None:
    """All but one agree; there the grader did not read the gold's own thousands separator."""
    differ = []
    total = 0
    for row in lines(data / "math" / "qwen_math_cot_100.jsonl"):
        for prediction, response, flag in zip(row["pred"], row["code"], row["score"], strict=True):
            total += 1
            if (score(response, row["gt"]) == 1.0) != flag:
                differ.append((row["gt"], prediction, flag))
    print(f"graded MATH responses: {total - len(differ)} of {total}; {differ}")
    assert 800 == total
    assert [("10{,}000", "10000", False)] == differ


@pytest.mark.slow
def test_math_500_beside_math_verify(data: Path, full: bool) -> None:
    """Every pair that math-verify accepts is accepted, and the differences are the known ones.

    The short form takes every fifth pair, and those that differ.
    """
    library = pytest.importorskip("math_verify")
    rows = json.loads((data / "math" / "math500_qwen3_answers.json").read_text(encoding="utf-8"))
    known = [gold for gold, _, _ in DIFFERENCES]
    assert 500 == len(rows)
    rows = rows if full else [row for place, row in enumerate(rows) if not place % SHARE or row["answer"] in known]
    ours = theirs = 0
    differences = []
    for row in rows:
        gold, prediction = row["answer"], row["prediction"]
        mine = score(prediction, gold)
        parsed = [library.parse(text, parsing_timeout=None) for text in (f"${gold}$", prediction)]
        verdict = float(library.verify(*parsed, timeout_seconds=None))
        ours, theirs = ours + (mine == 1.0), theirs + (verdict == 1.0)
        if mine != verdict:
            differences.append((gold, prediction, mine))
    print(f"MATH-500 pairs accepted: {ours} of {len(rows)} by math_answer, {theirs} by math-verify; {differences}")
    assert ours >= theirs
    assert DIFFERENCES == differences


@pytest.mark.slow
def test_math_500_worked_solutions(data: Path) -> None:
    """A solution is right by its own gold, and its last box is the gold; one boxes a step as well."""
    refused = []
    for row in lines(data / "math" / "math500_prm800k_test.jsonl"):
        if score(row["solution"], row["answer"]) != 1.0:
            refused.append(row["answer"])
        assert 1.0 == score(f"\\boxed{{{row['answer']}}}", row["solution"])
    assert ["720"] == refused
