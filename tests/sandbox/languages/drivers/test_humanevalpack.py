"""HumanEvalPack by its own tests, in another process than the completion: right ones pass, and no buggy one."""

import json
from pathlib import Path

import pytest
from bare_drivers import TOOLCHAINS, DoesNotCompileError, judging

from sandbox.languages.language import Suite

ROWS = 164
NOT_JUDGED = {
    ("cpp", 22): "boost/any.hpp is not on the machine",
    ("cpp", 137): "boost/any.hpp is not on the machine",
    ("cpp", 162): "programs are not linked with libcrypto",
    ("javascript", 162): "the module js-md5 is not on the machine",
}
"""Rows whose solutions do not run on the bare machine either, by its compiler without further options."""
_FILES = {"cpp": "humanevalpack_cpp.jsonl", "javascript": "humanevalpack_js.jsonl"}


def _judged(data: Path, language: str, number: int) -> tuple[bool | None, bool | None]:
    """Return whether a row's own tests accept its canonical and its buggy solution."""
    rows = (data / "humanevalpack" / _FILES[language]).read_text().splitlines()
    row = json.loads(rows[number])
    suite = Suite(row["test"], row["entry_point"], row["declaration"])
    # A declaration may go on into the function's body, which a solution has whole: then the prompt is its beginning.
    goes_on = row["declaration"].rstrip().splitlines()[-1].startswith(" ")
    head = row["prompt"] if goes_on else row["declaration"]
    with judging(language, suite) as judge:
        return judge(head + row["canonical_solution"]), judge(head + row["buggy_solution"])


@pytest.mark.slow
@pytest.mark.cases(4)
@pytest.mark.parametrize("number", range(ROWS))
@pytest.mark.parametrize("language", ["javascript", "cpp"])
def test_a_row_accepts_its_solution_and_not_the_buggy_one(data: Path, language: str, number: int):
    """The canonical solution passes the row's tests, and the buggy one does not."""
    missing = TOOLCHAINS[language].missing()
    if missing or (language, number) in NOT_JUDGED:
        pytest.skip(NOT_JUDGED.get((language, number)) or f"{missing} is not on this machine")
    try:
        assert (True, False) == _judged(data, language, number)
    except DoesNotCompileError as error:
        pytest.fail(f"the tests do not compile: {error}")
