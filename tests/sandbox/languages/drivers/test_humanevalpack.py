"""HumanEvalPack by its own tests, in another process than the completion: right ones pass, and no buggy one."""

from pathlib import Path

import pytest
from bare_drivers import TOOLCHAINS, DoesNotCompileError, judging
from humanevalpack import NOT_JUDGED, read_rows

ROWS = 164


@pytest.mark.slow
@pytest.mark.cases(2)
@pytest.mark.parametrize("number", range(ROWS))
@pytest.mark.parametrize("language", ["javascript", "cpp"])
def test_a_row_accepts_its_solution_and_not_the_buggy_one(data: Path, language: str, number: int):
    """The canonical solution passes the row's tests, and the buggy one does not."""
    missing = TOOLCHAINS[language].missing()
    if missing or (language, number) in NOT_JUDGED:
        pytest.skip(NOT_JUDGED.get((language, number)) or f"{missing} is not on this machine")
    row = read_rows(data, language)[number]
    try:
        with judging(language, row.suite) as judge:
            assert [True, False] == [judge(row.canonical), judge(row.buggy)]
    except DoesNotCompileError as error:
        pytest.fail(f"the tests do not compile: {error}")
