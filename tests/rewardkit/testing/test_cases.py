"""Tables of cases: what they may say, what is refused, what a run makes of them, and what a failure shows."""

from __future__ import annotations

import asyncio
import os
import pickle
import time
from pathlib import Path
from typing import Any

import pytest

from rewardkit import (
    Cause,
    ConfigError,
    DataError,
    InfrastructureError,
    MissingColumnError,
    Rollout,
    RuntimeClosedError,
    Score,
    group_reward,
    reward,
)
from rewardkit.loading.registry import resolve
from rewardkit.rows import read_rows
from rewardkit.testing import CaseResult, FakeJudge, Runtimes, Table, cases, read_table, rollouts_from_rows
from rewardkit.testing.table import table_of
from rewardkit.testing.verdict import Bench


@reward(score_range=(0, 1))
def correct(completion: str, answer: int, note: str | None = None) -> Score | None:
    """1 if the completion is the answer."""
    if note == "skip":
        return None
    print("judging", completion)
    if completion == "boom":
        raise ValueError("cannot read this")
    if completion == "half":
        return Score(0.5, reason="half of it")
    return Score(float(completion == str(answer)), reason=f"expected {answer}")


@reward(timeout_s=0.3)
def sleepy(completion: str) -> float:
    """Sleeps when told to."""
    if completion == "die":
        os._exit(3)
    time.sleep(30 if completion == "sleep" else 0)
    return 1.0


@group_reward
def unlike(completions: list[str]) -> list[float]:
    """1 for a completion that the group has once."""
    return [1.0 / completions.count(one) for one in completions]


@reward
def lost(completion: str) -> float:
    """Reaches nobody."""
    raise InfrastructureError("the judge is down")


@reward
def where_in_training(completion: str, step: int | None, completion_ids: list[int] | None) -> float:
    """Reads what is no column."""
    return float((step or 0) + len(completion_ids or []))


ROWS: list[dict[str, Any]] = [
    {"id": "right", "prompt": "2+2=", "completion": "4", "answer": "4", "expect": 1.0},
    {"id": "wrong", "prompt": "2+2=", "completion": "5", "answer": 4, "expect": 0},
    {"id": "near enough", "completion": "half", "answer": 4, "expect": 0.5000001},
    {"id": "tolerant", "completion": "half", "answer": 4, "expect": {"score": 0.45, "tolerance": 0.1}},
    {"id": "range", "completion": "half", "answer": 4, "expect": [0.25, 0.75]},
    {"id": "skipped", "completion": "4", "answer": 4, "note": "skip", "expect": None},
    {"id": "raises", "completion": "boom", "answer": 4, "expect": {"failed": "exception"}},
    {"id": "bad row", "completion": "4", "answer": "four", "expect": {"failed": "coercion"}},
    {"id": "messages", "completion": [{"role": "assistant", "content": "4"}], "answer": 4, "expect": 1.0},
]

test_a_table_in_python = cases(correct, ROWS)

test_a_group_has_a_list_of_expectations = cases(
    unlike,
    [
        {"completions": ["a", "b", "a"], "expect": [0.5, 1.0, [0.4, 0.6]]},
        {"completion": "a", "expect": 1.0},
    ],
)

test_what_kills_a_call_is_told_by_a_worker = cases(
    sleepy,
    [
        {"completion": "sleep", "expect": {"failed": "timeout"}},
        {"completion": "die", "expect": {"failed": "crashed"}},
        {"completion": "", "expect": 1.0},
    ],
)

test_calls_lost_to_infrastructure_can_be_expected = cases(
    lost, [{"completion": "", "expect": {"failed": "infrastructure"}}]
)

test_step_and_token_ids_are_given = cases(
    where_in_training, [{"completion": "a", "step": 3, "completion_ids": [7, 8], "expect": 5.0}]
)

test_compositions_have_cases_too = cases(0.5 * correct, [{"completion": "4", "answer": 4, "expect": 0.5}])


class TestInAClass:
    """A table in a class, as a static method."""

    test_a_table = staticmethod(cases(correct, ROWS[:1], lane="worker"))


def _verdict(one: Any, row: dict[str, Any]) -> CaseResult:
    with Bench(resolve(one), "inline") as bench:
        return bench.run(table_of([row]).cases[0])


@pytest.mark.parametrize(
    ("completion", "note"), [("5", None), ("4", "skip"), ("boom", None)], ids=["scored", "skipped", "failed"]
)
@pytest.mark.parametrize(
    ("status", "expect"),
    [("scored", 0.0), ("skipped", None), ("failed", {"failed": "exception"})],
    ids=["expect-0", "expect-skipped", "expect-failed"],
)
def test_a_score_of_0_a_skip_and_a_failure_are_never_taken_for_one_another(
    completion: str, note: str | None, status: str, expect: Any
) -> None:
    """Each of the three is only as expected where just that is expected, though a failure's default is 0."""
    verdict = _verdict(correct, {"completion": completion, "answer": 4, "note": note, "expect": expect})
    assert (verdict.outcomes[0].status == status) == verdict.passed


def test_another_cause_is_not_as_expected() -> None:
    """A case that expects a timeout does not hold where the reward raised."""
    verdict = _verdict(correct, {"completion": "boom", "answer": 4, "expect": {"failed": "bad_return"}})
    assert not verdict.passed


def test_a_diff_shows_completion_expected_got_reason_and_logs() -> None:
    """All that is needed to see what went wrong, prompt and columns included."""
    row = {"id": "x", "prompt": "2+2=", "completion": "5\n\ud800", "answer": 4, "expect": 1.0}
    assert _verdict(correct, row).diff().splitlines() == [
        "cases[0]: case 'x' of reward 'correct'",
        "  prompt        '2+2='",
        "  column        answer = 4",
        r"  completion    '5\n\ud800'",
        "- expected      scored 1.0 (within 1e-06)",
        "+ got           scored 0.0",
        "  reason        expected 4",
        "  logs          │ judging 5",
        r"  logs          │ \ud800",
    ]


def test_a_diff_of_a_failure_shows_the_error_and_its_line() -> None:
    """Cause, error and the reward's own frames."""
    said = _verdict(correct, {"completion": "boom", "answer": 4, "expect": 1.0}).diff()
    assert "+ got           failed (exception): ValueError: cannot read this" in said
    assert "in correct" in said
    assert "judging boom" in said


def test_a_diff_of_a_group_shows_which_completion_differs() -> None:
    """The others are shown on a line each."""
    said = _verdict(unlike, {"completions": ["a", "b"], "expect": [1.0, 0.0]}).diff().splitlines()
    assert said[1:] == [
        "  completion 0  'a': scored 1.0, as expected",
        "  completion 1  'b'",
        "- expected      scored 0.0 (within 1e-06)",
        "+ got           scored 1.0",
    ]


def test_a_long_completion_is_shortened_in_a_diff() -> None:
    """A million characters do not fill the screen."""
    said = _verdict(correct, {"completion": "ab" * 500_000, "answer": 4, "expect": 1.0}).diff()
    assert "'ab' * 500,000" in said
    assert len(said) < 2_000


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        pytest.param({"completion": "four is the answer"}, "four is the answer", id="text"),
        pytest.param({"completion": ""}, "empty", id="empty"),
        pytest.param({"completion": " \n"}, r"whitespace ' \n'", id="whitespace"),
        pytest.param({"completion": "a\0b\n c"}, r"a\x00b c", id="control"),
        pytest.param({"completion": "x" * 99}, "x" * 39 + "…", id="long"),
        pytest.param({"completion": "a", "id": 7}, "7", id="number"),
    ],
)
def test_an_id_is_given_or_the_completion_shortened(row: dict[str, Any], expected: str) -> None:
    """Ids can be read, also where the completion cannot."""
    assert expected == table_of([{**row, "expect": 1}]).cases[0].id


def test_completions_that_look_alike_get_a_number() -> None:
    """Every id of a table is another, also beside one that is given."""
    rows = [{"completion": "a"}, {"completion": "a"}, {"completion": "b", "id": "a #2"}, {"completion": "a"}]
    assert ["a", "a #3", "a #2", "a #4"] == [case.id for case in table_of([{**row, "expect": 1} for row in rows]).cases]


YAML = """\
# A table.
reward: rewards.py:correct
tolerance: 0.01
cases:
- id: first   # the usual one
  completion: 4
  answer: no
  time: 12:30
  zip: 010
  expect: 1e-2
- &base
  completion: "a\\0\\uD800"
  tags: [x, 2, 1.5, true, null]
  example: {id: 3, expect: never}
  expect: null
- <<: *base
  completion: |
    two
    lines
- completions: [4, "5"]
  expect:
  - 1.0
  -
"""


def test_a_yaml_table_keeps_text_as_text(tmp_path: Path) -> None:
    """Completions are always text, and of columns only what YAML 1.2 calls a number or a truth value is not."""
    (tmp_path / "t.yaml").write_text(YAML)
    table = read_table(tmp_path / "t.yaml")
    first, second, third, fourth = table.cases
    assert f"{tmp_path.resolve()}/rewards.py:correct" == table.reward
    assert Rollout("", "4", {"answer": "no", "time": "12:30", "zip": "010"}) == first.rollouts[0]
    assert (0.01, 0.01) == (first.expected[0].lowest, first.expected[0].tolerance)
    assert {"tags": ["x", 2, 1.5, True, None], "id": 3, "expect": "never"} == second.rollouts[0].example
    assert ("a\0\ud800", "two\nlines\n") == (second.rollouts[0].completion, third.rollouts[0].completion)
    assert second.expected == third.expected
    assert ["4", "5"] == [one.completion for one in fourth.rollouts]
    assert ["scored", "skipped"] == [one.status for one in fourth.expected]
    assert [5, 11, 16, 20] == [int(case.where.rpartition(":")[2]) for case in table.cases]


def test_a_jsonl_table_may_begin_with_its_reward(tmp_path: Path) -> None:
    """The first line has the settings where it names a reward and no completion; blank lines are passed over."""
    text = '\ufeff{"reward": "m:correct", "tolerance": 0}\n\n{"completion": "4", "answer": 4, "expect": 1}\n'
    (tmp_path / "t.jsonl").write_text(text)
    table = read_table(tmp_path / "t.jsonl")
    assert "m:correct" == table.reward
    assert f"{tmp_path}/t.jsonl:3" == table.cases[0].where
    assert 0.0 == table.cases[0].expected[0].tolerance


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("t.txt", "", "expected a table of cases, a file that ends with .jsonl, .yaml, .yml"),
        ("t.yaml", "a: [", "not YAML"),
        ("t.yaml", "4", "expected a list of cases"),
        ("t.yaml", "", "expected a list of cases"),
        ("t.yaml", "[]", "no cases in it"),
        ("t.yaml", "reward: a\n", "t.yaml:1: 'cases': expected a list of cases"),
        ("t.yaml", "cases: 4\n", "t.yaml:1: 'cases': expected a list of cases"),
        ("t.yaml", "- 4\n", "t.yaml:1: expected a case"),
        ("t.yaml", "\nrewards: a\ncases: [{a: b}]", "t.yaml:2: 'rewards': no such setting; a table has reward"),
        ("t.yaml", "reward: 4\ncases: [{a: b}]", "t.yaml:1: 'reward': expected a reference"),
        ("t.yaml", "reward: a\ntolerance: -1\ncases: [4]", "t.yaml:3: expected a case"),
        ("t.yaml", "tolerance: -1\ncases: [{completion: a}]", "t.yaml:1: 'tolerance': expected a number, 0 or more"),
        ("t.yaml", "- completion: a\n  completion: b", "t.yaml:2: 'completion': the case has this key twice"),
        ("t.yaml", "- completion: a\n  tests:\n    a: 1\n    a: 2", "t.yaml:4: 'a': the case has this key twice"),
        ("t.yaml", "- completion: a\n  expect: yes", "t.yaml:2: 'expect': expected a score, [lowest, highest]"),
        ("t.yaml", "- completion: [a]\n  expect: 1", "t.yaml:1: 'completion': expected a string or a list of messages"),
        ("t.yaml", "- completions: a\n  expect: 1", "t.yaml:1: 'completions': expected a list of completions"),
        ("t.yaml", "- ? [a]\n  : b", "expected a key that is a word"),
        ("t.jsonl", "", "no cases in it"),
        ("t.jsonl", "{", "t.jsonl:1: not JSON"),
        ("t.jsonl", "[]", "t.jsonl:1: expected a JSON object, got '[]'"),
        ("t.jsonl", '{"completion": NaN}', "t.jsonl:1: NaN is not a JSON number"),
        ("t.jsonl", '{"a": 1, "a": 2}', "key 'a' stands there twice"),
        ("t.jsonl", '{"completion": "a", "n": [1e999]}', "t.jsonl:1: 1e999 is too large for a number"),
        ("t.jsonl", '\n{"completion": "a"}', "t.jsonl:2: 'expect' is missing; it has 'completion'"),
        ("t.jsonl", '{"completion": "a", "score": 1}', "'score' would be a column"),
        ("t.jsonl", '{"expect": 1}', "t.jsonl:1: expected 'completion', or 'completions' for a group; it has 'expect'"),
        ("t.jsonl", '{"completion": "a", "completions": ["a"], "expect": 1}', "expected 'completion', or"),
        ("t.jsonl", '{"completion": 4, "expect": 1}', "'completion': expected a string or a list of messages"),
        ("t.jsonl", '{"completion": "a", "messages": [], "expect": 1}', "'messages': made of prompt and completion"),
        ("t.jsonl", '{"completion": "a", "expect": true}', "'expect': expected a score"),
        ("t.jsonl", '{"completion": "a", "expect": [1, 0]}', "expected the lowest score first"),
        ("t.jsonl", '{"completion": "a", "expect": [1]}', "expected [lowest, highest], got 1 values"),
        ("t.jsonl", '{"completion": "a", "expect": {"failed": "slow"}}', "failed: expected one of exception, timeout"),
        ("t.jsonl", '{"completion": "a", "expect": {"score": 1, "tolerance": -1}}', "tolerance: expected a number"),
        ("t.jsonl", '{"completion": "a", "expect": {"scores": 1}}', "'expect': expected a score"),
        ("t.jsonl", '{"completions": ["a", "b"], "expect": [1]}', "expected a list of 2, one a completion"),
        ("t.jsonl", '{"completions": [], "expect": []}', "expected a list of completions"),
        ("t.jsonl", '{"completion": "a", "completion_ids": "x", "expect": 1}', "expected a list of whole numbers"),
        ("t.jsonl", '{"completion": "a", "example": 1, "expect": 1}', "'example': expected a mapping of columns"),
        ("t.jsonl", '{"completion": "a", "b": 1, "example": {"b": 1}, "expect": 1}', "'b': stands beside 'example'"),
        ("t.jsonl", '{"completion": "a", "id": "", "expect": 1}', "'id': expected some text"),
        ("t.jsonl", '{"id": 1, "completion": "", "expect": 1}\n' * 2, "t.jsonl:2: 'id': '1' is the id of"),
        ("t.jsonl", "[" * 100_000, "nested too deeply"),
        ("t.yaml", "[" * 500, "nested too deeply"),
    ],
)  # fmt: skip
def test_a_wrong_table_is_refused_with_file_line_and_key(tmp_path: Path, name: str, text: str, said: str) -> None:
    """The message names what is wrong and where; nothing was run."""
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError) as refused:
        read_table(tmp_path / name)
    assert str(refused.value).startswith(str(tmp_path / name))
    assert said in str(refused.value)


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"[]",
        b"4 ",
        b'{"a": 1, "a": 2}',
        b'{"n": NaN}',
        b'{"n": 1e999}',
        b'"\xff"',
        b'{"prompt": "\\ud83d"}',
        b"[" * 9999,
    ],
    ids=repr,
)
def test_a_table_refuses_a_line_in_the_words_of_a_data_set(tmp_path: Path, line: bytes) -> None:
    """Both are read by one reader: file, line, value and fix are the same."""
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'{"completion": "4", "expect": 1}\n' + line)
    with pytest.raises(DataError) as of_rows:
        read_rows(path)
    with pytest.raises(DataError) as of_table:
        read_table(path)
    assert str(of_rows.value) == str(of_table.value)


def test_a_file_that_is_not_there_or_not_text_is_refused(tmp_path: Path) -> None:
    """The message names the file."""
    with pytest.raises(DataError, match="No such file"):
        read_table(tmp_path / "t.yaml")
    (tmp_path / "t.yaml").write_bytes(b"\xff")
    with pytest.raises(DataError, match="not UTF-8"):
        read_table(tmp_path / "t.yaml")


def test_a_case_that_lacks_a_column_is_refused_before_any_is_run() -> None:
    """The message names the place, the column and near names."""
    with pytest.raises(MissingColumnError, match=r"cases\[1\]: reward 'correct' needs column 'answer'.*'anwser'"):
        cases(correct, [ROWS[0], {"completion": "4", "anwser": 4, "expect": 1}])


def test_mistakes_of_the_caller_are_told() -> None:
    """A lane that cannot run a case, a row that is none, a tolerance below 0."""
    with pytest.raises(ConfigError, match="'expect': a case that fails with 'timeout' or 'crashed' needs the lane"):
        cases(sleepy, [{"completion": "", "expect": {"failed": "timeout"}}], lane="inline")
    with pytest.raises(DataError, match=r"cases\[0\]: expected a dict, got str"):
        cases(sleepy, ["a"])  # type: ignore[list-item]
    with pytest.raises(ConfigError, match="tolerance: expected a number"):
        cases(sleepy, [{"completion": "", "expect": 1}], tolerance=-1)


def test_a_table_can_be_given_a_tolerance() -> None:
    """It stands in for the table's own, not for a case's."""
    table: Table = table_of([{"completion": "", "expect": 1}, ROWS[3]], tolerance=0)
    assert [0.0, 0.1] == [case.expected[0].tolerance for case in table.cases]


# stand-ins


@pytest.mark.parametrize(
    ("script", "replies"),
    [
        pytest.param("0.5", ["0.5", "0.5"], id="one"),
        pytest.param(1.0, ["1.0", "1.0"], id="number"),
        pytest.param(["a", 2], ["a", "2"], id="in turn"),
        pytest.param({"Q1": "one", "Q": "other"}, ["one", "other"], id="by text"),
        pytest.param(lambda asked: asked.text[::-1], ["1Q", "2Q"], id="function"),
    ],
)
def test_a_fake_judge_replies_from_its_script(script: Any, replies: list[str]) -> None:
    """One reply for all, in turn, by what the request holds, or made by a function; it records what it was asked."""
    judge = FakeJudge(script)

    @reward
    async def judged(prompt: str, completion: str) -> Score:
        reply = await judge.chat.completions.create(
            model="m", temperature=0, messages=[{"role": "user", "content": [{"type": "text", "text": prompt}]}]
        )
        assert reply.usage.total_tokens == 2
        return Score(0.0, reason=reply.choices[0].message.content)

    with Bench(judged, "inline") as bench:
        rows = [{"id": place, "prompt": f"Q{place}", "completion": "", "expect": 0} for place in (1, 2)]
        verdicts = [bench.run(case) for case in table_of(rows).cases]
    assert replies == [verdict.outcomes[0].reason for verdict in verdicts]
    assert ["Q1", "Q2"] == [asked.text for asked in judge.asked]
    assert ("m", {"temperature": 0}) == (judge.asked[0].model, judge.asked[0].options)


@pytest.mark.parametrize(
    ("script", "cause", "said"),
    [
        pytest.param(TimeoutError("no answer"), Cause.EXCEPTION, "TimeoutError: no answer", id="error"),
        pytest.param(ConnectionError, Cause.EXCEPTION, "ConnectionError", id="class"),
        pytest.param(InfrastructureError("down"), Cause.INFRASTRUCTURE, "down", id="infrastructure"),
        pytest.param([], Cause.EXCEPTION, "has 0 replies and was asked 1 times", id="used up"),
        pytest.param({"x": "1"}, Cause.EXCEPTION, "has replies for 'x'; asked: 'Q'", id="no such"),
    ],
)
def test_a_fake_judge_fails_on_cue(script: Any, cause: Cause, said: str) -> None:
    """An error in the script is raised; a script without a reply says so."""
    judge = FakeJudge(script)

    @reward
    async def judged(completion: str) -> float:
        await judge.chat.completions.create(messages=[{"role": "user", "content": "Q"}])
        return 1.0

    with Bench(judged, "inline") as bench:
        (outcome,) = bench.run(table_of([{"completion": "", "expect": 0}]).cases[0]).outcomes
    assert cause is outcome.cause
    assert said in (outcome.error or "")
    assert "Q" == judge.asked[0].text


@pytest.mark.parametrize(("latency_s", "at_once"), [(0.0, True), (0.01, False)])
def test_a_fake_judge_takes_its_time(latency_s: float, at_once: bool) -> None:
    """With a latency a request is in flight while others go on."""
    judge = FakeJudge("a", latency_s=latency_s)

    async def asked() -> bool:
        reply = asyncio.create_task(judge.chat.completions.create(messages=[{"role": "user", "content": "Q"}]))
        await asyncio.sleep(0)
        early = reply.done()
        assert (await reply).choices[0].message.content == "a"
        return early

    assert at_once == asyncio.run(asked())


def test_a_fake_judge_travels() -> None:
    """A copy replies from the same script."""
    judge = pickle.loads(pickle.dumps(FakeJudge(["a"])))
    assert judge.chat.completions.create.__self__ is judge


def test_rows_become_rollouts(tmp_path: Path) -> None:
    """From dictionaries, groups among them, or from a file."""
    rows = [
        {"prompt": "2+2=", "completion": "4", "answer": 4},
        {"completions": ["a", "b"], "completion_ids": [[1], [2]]},
    ]
    assert rollouts_from_rows(rows) == [
        Rollout("2+2=", "4", {"answer": 4}),
        Rollout("", "a", {}, [1]),
        Rollout("", "b", {}, [2]),
    ]
    (tmp_path / "r.jsonl").write_text('{"prompt": "", "completion": "4"}\n')
    assert [Rollout("", "4")] == rollouts_from_rows(tmp_path / "r.jsonl")


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({}, "row 0: expected 'completion', or 'completions' for a group; it has nothing"),
        ({"completions": "a"}, "row 0: 'completions': expected a list of completions, got 'a'"),
        ({"completion": 4}, "row 0: 'completion': expected a string or a list of messages with 'role', got 4"),
        ({"completion": ["4"]}, "row 0: 'completion': expected a string or a list of messages with 'role', got ['4']"),
        ({"completions": ["a"], "completion_ids": []}, "row 0: 'completion_ids': expected a list of whole numbers a"),
    ],
)
def test_a_row_that_is_no_rollout_is_refused(row: dict[str, Any], said: str) -> None:
    """The message names the row."""
    with pytest.raises(DataError) as refused:
        rollouts_from_rows([row])
    assert said in str(refused.value)


def test_runtimes_are_shared_until_closed() -> None:
    """Equal requests get one runtime, others another; one that a test closed is made anew."""
    made = Runtimes("inline")
    first = made([correct])
    assert first is made(correct) is made([correct])
    assert first is not made([correct], weights=[2.0])
    assert ["a", "b"] == made({"a": correct, "b": unlike}).names
    assert ["correct", "unlike"] == made(correct, unlike).names
    first.close()
    again = made([correct])
    assert again is not first
    made.close()
    with pytest.raises(RuntimeClosedError):
        again.score([])
