"""Code that gives one output for every input: what is tried on which row, and what a reward may pay for it."""

from __future__ import annotations

from typing import Any

import pytest
from audited import audited

from rewardkit.audit.constant_outputs import CONSTANT_OUTPUT, constant_programs, is_constant_paid
from rewardkit.audit.programs import code_in
from rewardkit.audit.rows import row_of
from sandbox import Sandbox, why_not_run

ROWS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "a first output that is rare": ({"outputs": ["NO", "YES", "YES\n"]}, ["print('YES')", "print('NO')", "pass"]),
    "a first output that is frequent": ({"outputs": ["YES", "NO", "YES"]}, ["print('YES')", "pass"]),
    "outputs as JSON": ({"outputs": '["1\\n2\\n", "3"]'}, ["print('1\\n2')", "print('3')", "pass"][::2]),
    "a function": (
        {"outputs": [True, False, False], "entry_point": "odd"},
        [f"def odd(*arguments, **named):\n    return {value}" for value in (False, True, None)],
    ),
    "values as JSON texts": (
        {"outputs": ["[1]", "[1]"], "entry_point": "first"},
        [f"def first(*arguments, **named):\n    return {value}" for value in ([1], None)],
    ),
    "asserts": ({"tests": "assert f(1) == 2"}, []),
    "no tests": ({"outputs": []}, []),
    "outputs that are no list": ({"outputs": "5"}, []),
}  # fmt: skip


@pytest.mark.parametrize(("columns", "sources"), ROWS.values(), ids=ROWS)
def test_the_constants_of_a_row(columns: dict[str, Any], sources: list[str]) -> None:
    """The most frequent output, that of the first test and none are tried, each once."""
    probes = list(constant_programs(row_of(1, {"prompt": "Write it.", "reference": "pass", **columns}, None)))
    assert sources == [code_in(probe.text) for probe in probes]
    assert {CONSTANT_OUTPUT} >= {probe.rule for probe in probes}


@pytest.mark.parametrize("language", ["cpp", "javascript", "bash", "php"])
def test_constants_in_other_languages_print(language: str) -> None:
    if reason := why_not_run(language):
        pytest.skip(reason)
    columns = {"prompt": "Write it.", "language": language, "outputs": ["it's 5", "it's 5", "6"], "reference": "x"}
    first, *_, last = constant_programs(row_of(1, columns, None))
    with Sandbox(workers=1) as jail:
        outputs = [jail.run(code_in(probe.text), language=language).stdout for probe in (first, last)]
    assert ["it's 5\n", ""] == outputs


@pytest.mark.parametrize(
    ("score", "floor", "full", "share", "paid"),
    [
        (0.5, 0.0, 1.0, 0.5, True),  # exactly the share
        (0.49, 0.0, 1.0, 0.5, False),
        (0.5, 0.0, 1.0, 0.3, True),
        (0.0, 0.0, 1.0, 0.0, False),  # nothing is never paid
        (0.0, -1.0, 1.0, 0.5, True),
        (1.0, 1.0, 1.0, 0.5, False),  # where nothing earns as much, no constant is to blame
        (None, 0.0, 1.0, 0.5, False),
    ],
)
def test_a_constant_is_paid_from_the_share_on(
    score: float | None, floor: float, full: float, share: float, paid: bool
) -> None:
    assert paid is is_constant_paid(score, floor, full, share)


PALINDROME = {
    "prompt": "Read a word; print YES if it is a palindrome, else NO.",
    "inputs": ["abba\n", "abc\n", "a\n", "abcda\n"],
    "outputs": ["YES\n", "NO\n", "YES\n", "NO\n"],
    "reference": "s = input()\nprint('YES' if s == s[::-1] else 'NO')",
}
SUMS = {
    "prompt": "Read two numbers; print their sum.",
    "inputs": ["1 2", "3 4", "5 6"],
    "outputs": ["3", "7", "11"],
    "reference": "a, b = map(int, input().split())\nprint(a + b)",
}


@pytest.mark.slow
@pytest.mark.parametrize(("row", "flaws"), [(PALINDROME, [CONSTANT_OUTPUT]), (SUMS, [])], ids=["yes or no", "sums"])
def test_partial_credit_for_a_constant_is_wrongly_paid(row: dict[str, Any], flaws: list[str]) -> None:
    """Half of the tests expect YES; of sums each test expects another."""
    assert flaws == list(audited("builtin_rewards.code:code_tests", [row], full=False).flaws)
