"""HumanEval's problems in Java, Go and Rust: right solutions pass by values and by a suite, wrong ones by neither."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from translated_humaneval import LANGUAGES, PROBLEMS, TranslatedRow, make_rows

from sandbox import CheckReport, FunctionCheck, Limits, Sandbox, check_functions, check_suite, why_not_run

_LIMITS = Limits(timeout_s=5.0)


@pytest.fixture(scope="module")
def jail() -> Iterator[Sandbox]:
    with Sandbox(workers=1) as sandbox:
        yield sandbox


def _is_passed(report: CheckReport) -> bool:
    return all(check.status == "passed" for check in report.checks)


def _judged(row: TranslatedRow, source: str, jail: Sandbox) -> tuple[bool, bool]:
    """Return whether a program passes by values, and by the suite."""
    checks = [FunctionCheck(*pair, float_tol=1e-9) for pair in zip(row.inputs, row.outputs, strict=True)]
    by_values = check_functions(jail, source, row.name, checks, limits=_LIMITS, language=row.language)
    by_suite = check_suite(jail, source, row.suite, row.language, limits=_LIMITS)
    return _is_passed(by_values), _is_passed(by_suite)


@pytest.mark.slow
@pytest.mark.cases(3)
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", sorted(PROBLEMS))
def test_right_solutions_pass_in_both_forms_and_wrong_ones_in_neither(
    data: Path, jail: Sandbox, name: str, language: str
) -> None:
    """The verdicts by values and by a suite agree with what is known of both solutions."""
    if reason := why_not_run(language):
        pytest.skip(reason)
    (row,) = make_rows(data, jail, [name], language)
    assert ((True, True), (False, False)) == (_judged(row, row.right, jail), _judged(row, row.wrong, jail))
