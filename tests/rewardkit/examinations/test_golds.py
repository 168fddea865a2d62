"""The examination of golds: what a reward pays besides the gold is found, and a reward that reads golds well is not."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import pytest

from builtin_rewards.matching import exact_match
from builtin_rewards.math import math_answer
from builtin_rewards.structured import json_fields
from builtin_rewards.tools import tool_call
from rewardkit import Outcome, Reward, Rollout, Runtime, reward
from rewardkit.audit.rows import row_of
from rewardkit.examinations.examination import ExaminationResult, examine, rows_to_examine
from rewardkit.examinations.golds import GoldExamination
from rewardkit.renderings.documents import difference

ROWS = ["5-x", "1/2", "12", "(2, 4)", "x^2-4", "5 cm", "ellipse", "[1, 3)"]


JSON_ROWS = ['{"city": "Oslo", "tags": [1, true, null]}', '[{"size": 2.5, "parts": {}}]']
WIDE_ROWS = [json.dumps({f"part_{n}": f"{row} {n}" for n in range(3)} | {"total": row + 0.5}) for row in range(12)]
CALL_ROWS = [
    '{"name": "add", "arguments": {"city": "5"}}',
    '[{"name": "a", "arguments": {}}, {"name": "b", "arguments": {"n": 1}}]',
]


@reward
def first_number(completion: str, answer: str) -> float:
    """Pay for a gold's first digit anywhere, as hand-written rewards do."""
    return float(answer[0] in completion)


@reward
def has_box(completion: str, answer: str) -> float:
    """Read the gold's column and compare nothing."""
    return float("boxed" in completion and bool(answer))


def _examined(scored: Reward[..., Any], golds: Sequence[str], column: str = "answer") -> ExaminationResult:
    rows = [row_of(line, {"prompt": "Solve it.", column: gold}, column) for line, gold in enumerate(golds, 1)]
    examination = GoldExamination()
    with Runtime([scored], workers=1) as runtime:

        def score(rollouts: Sequence[Rollout]) -> Sequence[Outcome]:
            return runtime.score(list(rollouts))[scored.name]

        return examine(examination, scored, rows_to_examine(examination, scored, rows, 100, column), len(rows), score)


@reward
def same_words(completion: str, answer: str) -> float:
    """Compare the words of JSON alone, as hand-written rewards do."""
    return float(sorted(re.findall(r"\w+", completion)) == sorted(re.findall(r"\w+", f"answer {answer} answer")))


@pytest.mark.parametrize(
    ("scored", "golds"),
    [(math_answer, ROWS), (json_fields, JSON_ROWS), (tool_call, CALL_ROWS)],
    ids=["math", "JSON", "calls"],
)
def test_a_reward_that_reads_golds_well_has_no_flaw(scored: Reward[..., Any], golds: Sequence[str]) -> None:
    result = _examined(scored, golds)
    assert ([], len(golds)) == ([flaw.flaw for flaw in result.flaws], result.rows)


def test_documents_that_a_reward_does_not_tell_apart_are_named() -> None:
    """Types and the order of a list are lost where only words are compared, and so are other writings of a number."""
    kinds = {flaw.flaw.kind for flaw in _examined(same_words, JSON_ROWS).flaws}
    assert {"paid_like_gold", "not_recognised"} == kinds


def test_what_a_reward_pays_besides_the_gold_is_named() -> None:
    """A gold that is paid for another answer is a flaw of its row, with the answer and what makes it another."""
    result = _examined(first_number, ["5-x"])
    assert ["paid_like_gold"] == [flaw.flaw.kind for flaw in result.flaws if flaw.flaw.kind == "paid_like_gold"]
    assert result.flaws[0].flaw.detail.startswith("the reward pays ")
    assert result.flaws[0].flaw.detail.endswith(" like the gold 5-x")
    assert not result.has_failures


def test_forms_that_a_reward_misses_are_named() -> None:
    """A reward that compares texts knows a gold in one form alone, and pays nothing else."""
    kinds = {flaw.flaw.kind for flaw in _examined(exact_match, ROWS).flaws}
    assert {"not_recognised"} == kinds


def test_golds_may_be_in_a_column_of_any_name() -> None:
    """The user names it by ``--gold``."""

    @reward
    def has_digit(completion: str, truth: str) -> float:
        return float(truth[0] in completion)

    assert ["paid_like_gold"] == [flaw.flaw.kind for flaw in _examined(has_digit, ["5-x"], "truth").flaws][:1]


@pytest.mark.parametrize("gold", ["0001-01-01", "9999-12-31"])
def test_days_at_the_ends_of_the_calendar_are_examined(gold: str) -> None:
    assert 1 == _examined(exact_match, [gold]).rows


@pytest.mark.parametrize(
    "golds", [["a long sentence that is no answer of a kind, but a text"], [""], ["(2, -\\infty)"], ["(\\infty, 2)"]]
)
def test_golds_of_no_known_kind_are_passed_over(golds: list[str]) -> None:
    assert 0 == _examined(math_answer, golds).rows


def test_a_reward_that_compares_nothing_is_passed_over() -> None:
    assert [] == list(_examined(has_box, ROWS).flaws)


@reward
def bare_json(completion: str, answer: str) -> float:
    """Take nothing but JSON, and compare it whole."""
    try:
        return float(json.loads(completion) == json.loads(answer))
    except (ValueError, RecursionError):
        return 0.0


@reward
def bare_json_without_its_end(completion: str, answer: str) -> float:
    """Take nothing but JSON, and look at all of its fields but the last."""
    try:
        values = json.loads(completion), json.loads(answer)
    except (ValueError, RecursionError):
        return 0.0
    last = [*values[1]][-1]
    return float(all(isinstance(value, dict) for value in values) and {**values[0], last: 0} == {**values[1], last: 0})


@pytest.mark.parametrize("scored", [bare_json, bare_json_without_its_end, exact_match], ids=lambda one: one.name)
def test_a_reward_that_wants_the_answer_alone_is_examined(scored: Reward[..., Any]) -> None:
    """The gold alone is a form like others."""
    assert 0 == _examined(scored, WIDE_ROWS).untold


def test_of_a_long_gold_the_difference_comes_first() -> None:
    """The path and both values stand before the gold, which is cut where it is long."""
    flaws = [flaw.flaw for flaw in _examined(bare_json_without_its_end, WIDE_ROWS).flaws]
    details = [flaw.detail for flaw in flaws if flaw.kind == "paid_like_gold"]
    assert details
    assert all(re.match(r"the reward pays a wrong answer \([a-z ,']+\): total is ", detail) for detail in details)


def test_every_form_that_is_missed_is_listed_the_plain_ones_first() -> None:
    """The one that the data has may be any of them."""
    (flaw,) = _examined(exact_match, ["3600"]).flaws
    listed = re.findall(r"(?:pay |, )(\S+|x = 3600) \(", flaw.flaw.detail)
    assert "3,600" in listed
    assert listed == sorted(listed, key=lambda form: "\\" in form)
    assert "more" not in flaw.flaw.detail


@pytest.mark.parametrize(
    ("gold", "other", "expected"),
    [
        ({"a": {"b": [1, 2]}}, {"a": {"b": [1, 3]}}, "a.b[1] is 3, not 2"),
        ({"a": True, "b": 2}, {"a": 1, "b": 2}, "a is 1, not true"),
        ({"a": 1, "b": 2}, {"a": 1}, "b is missing"),
        ({"a": 1}, {"a": 1, "b": 2}, "b is too many"),
        ({"a": 1, "b": 2}, {"a": 1, "bs": 2}, "b is missing, and bs is there"),
        ([1, 2], [1], "it is [1], not [1, 2]"),
    ],
)
def test_the_difference_of_json_is_its_path_and_both_values(gold: Any, other: Any, expected: str) -> None:
    assert expected == difference(json.dumps(gold), json.dumps(other))


def test_the_difference_of_texts_is_where_they_part() -> None:
    text = "a" * 200
    assert difference(text + "b", text + "c").strip("…").endswith("c")


@reward
def reads_messages(completion, answer: str) -> float:  # type: ignore[no-untyped-def]
    """Take text for messages, as a reward does that came from another trainer."""
    return float(completion[-1]["content"] == answer)


def test_rows_on_which_every_call_fails_say_so() -> None:
    """Nothing is known of them, and not because wrong answers are paid like right ones."""
    result = _examined(reads_messages, ROWS)
    assert (len(result.lines), len(result.lines)) == (len(result.failed), result.untold)
    assert result.failure.startswith("every completion failed, exception: TypeError: string indices must be integers")
    assert list(result.failed) == result.as_json()["failed_lines"]
    assert () == _examined(has_box, ROWS).failed


@reward(score_range=(0, 1))
def beyond(completion: str, answer: str) -> float:
    """Return what its range excludes for a right answer."""
    return 5.0 if completion == answer else 0.0


def test_rows_whose_right_answers_fail_are_not_said_to_be_paid_too_little() -> None:
    result = _examined(beyond, ROWS)
    assert list(result.lines) == list(result.failed)
    assert re.match(rf"\d+ of {result.trials} completions failed, bad_return: returned 5.0, outside", result.failure)
