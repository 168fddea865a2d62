"""Functions of each language, called by values: each value that the language has goes in and comes out."""

from typing import Any

import pytest
from bare_drivers import TOOLCHAINS, answer_lines, answering, call_function, driver_of
from driver_tables import CALLS, RAISES, Calls

from sandbox.languages.in_place import with_changed_arguments
from sandbox.languages.language import CannotDriveError
from sandbox.languages.wire import DriverAnswer


def _needs(language: str) -> None:
    missing = TOOLCHAINS[language].missing()
    if missing:
        pytest.skip(f"{missing} is not on this machine")


def _shown(answer: DriverAnswer) -> Any:
    return RAISES if answer.error is not None else answer.value


@pytest.mark.slow
@pytest.mark.cases(16)
@pytest.mark.parametrize("table", CALLS, ids=lambda table: f"{table.language}: {table.id}")
def test_calls_are_answered_by_the_functions_own_types(table: Calls):
    """Each call's answer is what the function gives, or that it raised."""
    _needs(table.language)
    calls = [arguments for arguments, _ in table.calls]
    answers = call_function(table.language, answering(table.language, table.source, table.entry_point, calls), calls)
    answers = with_changed_arguments(answers, calls)
    assert repr([value for _, value in table.calls]) == repr([_shown(answer) for answer in answers])


_CHANGES = {
    "cpp": "#include <vector>\nint f(std::vector<int>& x, const int& y, int z) { x.push_back(y); return z; }",
    "javascript": "function f(x, y, z) { x.push(y); return z }",
    "java": "import java.util.*; class A { int f(List<Integer> x, int y, int z) { x.add(y); return z; } }",
    "rust": "fn f(x: &mut Vec<i32>, y: i32, z: i32) -> i32 { x.push(y); z }",
}


@pytest.mark.slow
@pytest.mark.parametrize("language", sorted(_CHANGES))
def test_changed_arguments_come_back_where_they_are_asked_for(language: str):
    """A tester's request gets the arguments that the call changed; a client's does not."""
    _needs(language)
    program = answering(language, _CHANGES[language], "f")
    lines = answer_lines(language, program, b'{"a":[[1],2,3]}\n[[1],2,3]\n')
    assert [b'{"v":3,"a":[[0,[1,2]]]}\n', b'{"v":3}\n'] == lines


@pytest.mark.parametrize("language", sorted(_CHANGES))
@pytest.mark.parametrize("name", ["", "f(", "f;system", "a.b.c", "1f", "f\n", "\u00e9"])
def test_an_entry_point_is_a_name(language: str, name: str):
    """What is no name is no program either."""
    with pytest.raises(CannotDriveError):
        driver_of(language).answerer("", name)
