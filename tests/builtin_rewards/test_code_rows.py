"""Rows in the forms of KodCode, BigCodeBench, LeetCode and APPS: right solutions score 1.0 and wrong ones less."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from code_rows import FORMS

from builtin_rewards.code import code_tests
from sandbox import Sandbox


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_rows_of_data_sets_are_judged_in_their_form(form: str, full: bool) -> None:
    """Of fifty rows each right solution passes every check, and each wrong one fails some, and none is skipped."""
    rows = list(FORMS[form]())
    assert 50 == len(rows)
    odd = {}
    with Sandbox(workers=1) as sandbox:
        for row in rows if full else [*rows[:8], *rows[-10::2]]:
            right, wrong = (
                code_tests(completion=completion, sandbox=sandbox, **row.columns)
                for completion in (row.right, row.wrong)
            )
            if right.value != 1.0 or wrong.value is None or wrong.value == 1.0:
                odd[row.name] = (right, wrong)
    assert {} == odd


MISPLACED = {
    "a list of cases": '[{"input": "1", "output": "2"}]',
    "APPS's object": '{"inputs": ["1"], "outputs": ["2"]}',
    "as Python writes it": "[{'input': '1', 'output': '2'}]",
}


def test_inputs_and_outputs_in_the_tests_name_their_columns() -> None:
    """Data are no tests: the row is skipped, and the reason says which columns to use. A list of asserts is tests."""
    listed = "['assert f(1) == {\"input\": 1}']"
    with Sandbox(workers=1) as sandbox:
        scores = [code_tests(completion="print(2)", tests=text, sandbox=sandbox) for text in MISPLACED.values()]
        right = code_tests(completion="def f(x): return {'input': x}", tests=listed, sandbox=sandbox)
    assert [None] * len(MISPLACED) == [score.value for score in scores]
    assert all("name the columns 'inputs' and 'outputs'" in (score.reason or "") for score in scores)
    assert 1.0 == right.value


FAULTY_ROWS = [
    ({"inputs": [1], "outputs": [1]}, "stdin=1: expected text; programs read and write text, and arguments"),
    ({"inputs": [1], "outputs": [2], "entry_point": "f"}, "arguments=1: expected a list of all arguments, such as [1]"),
    ({"tests": '{"test": "assert f(1) == 2"}'}, "'tests' holds an object with 'test', and not the text of tests"),
    ({"tests": "assert f(1 == 2"}, "SyntaxError: '(' was never closed (tests.py, line 1)"),
]
WRONG_CODE = [
    ("I cannot do that.", "; the completion has no fenced block, so all of it counts as code"),
    ("This adds.\n\ndef f(x):\n    return x\n", "; the completion has no fenced block, so all of it counts as code"),
    ("```python\ndef f(x:\n```", "SyntaxError: '(' was never closed (main.py, line 1)"),
    ("def f(x): return x\n", "f(1) gave 1"),
    ("import numpy\ndef f(x): return x\n", "No module named 'numpy' (the jail's profile 'numpy' has it)"),
]


@pytest.fixture(scope="module")
def jail() -> Iterator[Sandbox]:
    with Sandbox(workers=1) as sandbox:
        yield sandbox


@pytest.mark.parametrize(("row", "words"), FAULTY_ROWS)
def test_a_row_at_fault_says_what_to_write(jail: Sandbox, row: dict[str, Any], words: str) -> None:
    """It is skipped, and its reason ends without a place that is said twice."""
    score = code_tests(completion="print(input())", sandbox=jail, **row)
    assert (None, True) == (score.value, words in (score.reason or "")), score.reason
    assert "(line 1)" not in (score.reason or "")


@pytest.mark.parametrize(("completion", "words"), WRONG_CODE)
def test_wrong_code_says_how_it_was_read(jail: Sandbox, completion: str, words: str) -> None:
    """Prose without a fence is read as code, and only then does the reason say that."""
    score = code_tests(completion=completion, sandbox=jail, tests="assert f(1) == 2")
    assert (0.0, True) == (score.value, (score.reason or "").endswith(words)), score.reason
