"""What a hostile evaluation left is read with bounded work, and is its own failure where that does not suffice."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hostile_leavings import OUTPUTS, WRITES, evaluations
from patience import LONG_S

from sandbox import (
    CheckStatus,
    ExecutionStatus,
    FunctionCheck,
    Limits,
    ProgramCheck,
    Sandbox,
    check_functions,
    check_programs,
    plain,
)
from sandbox.effort import MAX_STEPS, Effort
from sandbox.errors import NotPlainError
from sandbox.evaluation import json_lines

LIMITS = Limits(timeout_s=LONG_S)
PRIME = (1 << 61) - 1


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """One at the best level."""
    with Sandbox(workers=1, limits=LIMITS) as sandbox:
        yield sandbox


def _alike(count: int, start: int = 1) -> list[Any]:
    return [{"int": hex(start + number * PRIME)} for number in range(count)]


def _chain(bits: int, count: int, others: int) -> list[Any]:
    """Numbers that a hash table of so many places looks for in one row of them."""
    row, at = [], 0
    for _ in range(count):
        row.append(at)
        at = (5 * at + 1) % (1 << bits)
    return row + [one << bits for one in range(1, others)]


SLOW = {
    "many-parts": ([0] * 1_100_000, "too many parts"),
    "many-lists": ([[]] * 400_000, "too many parts"),
    "many-tuples": ([{"tuple": []}] * 300_000, "too many parts"),
    "many-sets": ([{"set": []}] * 200_000, "too many parts"),
    "deep-lists": ([functools.reduce(lambda v, _: [v], range(98), 0)] * 5_000, "too many parts"),
    "alike-sets-in-sets": (
        {"set": [{"frozenset": [{"frozenset": [c, *_alike(30, 5)]} for c in _alike(30, 9)] + [d]} for d in _alike(40)]},
        "too many parts",
    ),
    "alike-tuples-of-sets": (
        {"set": [{"tuple": [{"tuple": [{"frozenset": _alike(100)}, a]}, b]} for a in _alike(10) for b in _alike(19)]},
        "too many parts",
    ),
    "a-row-of-keys": ({"dict": [[one, 0] for one in _chain(17, 40_000, 45_000)]}, "slow to tell apart"),
}


@pytest.mark.parametrize(("tree", "words"), SLOW.values(), ids=SLOW)
def test_a_value_that_is_slow_to_read_is_refused(tree: Any, words: str) -> None:
    """Work is paid for before it is done, so that values made to be slow end in the named error."""
    with pytest.raises(NotPlainError, match=words):
        plain.loads(json.dumps(tree, separators=(",", ":")))


HONEST = {
    "a-mebibyte-of-numbers": [7] * ((1 << 20) // 3),
    "rows-of-numbers": [[row, row + 1, row + 2] for row in range(40_000)],
    "pairs": [(number, -number) for number in range(35_000)],
    "a-large-dict": {number: str(number) for number in range(40_000)},
    "multiples": {number << 20: None for number in range(30_000)},
    "points": {(x, y) for x in range(-115, 115) for y in range(-115, 115)},
    "sets-of-sets": {frozenset({x, -x, (x, -2), (x, -1)}) for x in range(6_000)},
    "a-text-of-commas": ",[{" * 349_000,
    "special-floats": [float("inf"), -0.0] * 30_000,
}


@pytest.mark.parametrize("value", HONEST.values(), ids=HONEST)
def test_honest_values_up_to_the_default_limit_are_read(value: Any) -> None:
    """What fits into the default ``output_bytes`` as the jail writes it is read whole."""
    text = plain.dumps(value)
    assert len(text) <= Limits().output_bytes
    assert value == plain.loads(text)


def test_one_budget_is_for_all_values_of_an_evaluation() -> None:
    """Two values that could be read each by itself are not both read."""
    effort = Effort()
    tree = [0] * (MAX_STEPS * 2 // 3)
    assert tree == plain.decode(tree, effort)
    with pytest.raises(NotPlainError, match="too many parts"):
        plain.decode(tree, effort)


def test_lines_that_nobody_asked_for_are_not_read() -> None:
    """Of a million lines as many are looked at as an honest child could have written."""
    assert [{}] * 5 == json_lines(b"{}\n" * 1_000_000, 5, Effort())
    assert [{"a": 1}] == json_lines(b'\n{"a":1}\n[1]\nx', 9, Effort())
    assert [] == json_lines(b"[" * 1_000_000, 9, Effort())


@pytest.mark.slow
def test_no_hostile_leavings_pass_or_count_as_infrastructure(sandbox: Sandbox, full: bool) -> None:
    """Whatever a completion writes instead of an answer is its own failure, and the next one is checked rightly."""
    acts = evaluations(sandbox, LIMITS)
    for place, (name, act) in enumerate(acts.items()):
        if name.startswith("value") and not full and place % 4 in (1, 2):
            continue  # of each value and the same value in a list one, in turn
        report = act()
        assert (0, False) == (report.passed, report.execution.status is ExecutionStatus.INFRASTRUCTURE), (name, report)
        assert all(check.reason for check in report.checks), (name, report)
        assert check_functions(sandbox, "def f(x): return x", "f", [FunctionCheck([1], 1)]).all_passed, name


def test_a_value_that_cannot_be_read_fails_its_own_call_alone(sandbox: Sandbox) -> None:
    """A call that gives too much is told so in words; the call before it is passed."""
    source = f"""{WRITES}
def f(x):
    if x == 1:
        return 1
    say('{{"call":1,"value":[' + '[],' * 900_000 + '0]}}' + chr(10))
"""
    report = check_functions(sandbox, source, "f", [FunctionCheck([n], n) for n in (1, 2)])
    assert [CheckStatus.PASSED, CheckStatus.ERROR] == [check.status for check in report.checks]
    assert "too many parts" in report.checks[1].reason


def test_runs_do_not_show_what_other_runs_wrote(sandbox: Sandbox) -> None:
    """A program that tells of a thousand runs which all wrote the same shows it once."""
    source = OUTPUTS["runs of its own that overlap"]
    executions = sandbox.run_inputs(source, [""] * 1000)
    assert sum(len(one.stdout) for one in executions) <= 2 << 20
    report = check_programs(sandbox, source, [ProgramCheck("", "y")] * 20)
    assert 0 == report.passed


@pytest.mark.parametrize(
    "told",
    ["{}", "[]", "1", '""', '{"type":[],"message":{},"line":1e999}', '{"type":"","message":"","kinds":{}}',
     '{"type":"E","line":true,"kinds":[[]]}', '{"type":"E","line":' + "9" * 4_000 + "}"],
)  # fmt: skip
def test_an_exception_told_in_odd_ways_has_words(sandbox: Sandbox, told: str) -> None:
    """However a completion describes its error, the check says that there was one, at no line or a real one."""
    source = f"{WRITES}\ndef f(x):\n    say({told!r}.join(('{{\"call\":0,\"raised\":', '}}\\n')))\n"
    report = check_functions(sandbox, source, "f", [FunctionCheck([1], None)])
    assert [CheckStatus.ERROR] == [check.status for check in report.checks]
    assert report.checks[0].reason
    (value,) = sandbox.call(source, "f", [[1]]).value or []
    assert not value.ok
    assert value.line is None
