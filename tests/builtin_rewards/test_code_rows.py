"""Rows in the forms of KodCode, BigCodeBench, LeetCode and APPS: right solutions score 1.0 and wrong ones less."""

from __future__ import annotations

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


def test_a_number_as_a_programs_input_says_what_it_may_be() -> None:
    """The row is skipped, and the reason says that arguments need an entry point."""
    with Sandbox(workers=1) as sandbox:
        score = code_tests(completion="print(input())", inputs=[1], outputs=[1], sandbox=sandbox)
    assert score.value is None
    assert "stdin=1: expected text; programs read and write text, and arguments" in (score.reason or "")
