"""What functions without a result give: one argument, whether a call had something to change in it or not."""

from typing import Any

import pytest

from sandbox.languages.in_place import with_changed_arguments
from sandbox.languages.wire import DriverAnswer

_RAISED = DriverAnswer(error="no")
_SORTED = DriverAnswer(changed=((0, [1, 2]),))


@pytest.mark.parametrize(
    ("answers", "calls", "values"),
    [
        ([_SORTED, DriverAnswer()], [[[2, 1]], [[3, 4]]], [[1, 2], [3, 4]]),
        ([_SORTED, DriverAnswer(())], [[[2, 1]], [(3, {4})]], [[1, 2], [3, {4}]]),
        ([DriverAnswer(changed=((1, "b"),)), DriverAnswer(changed=((0, 9), (1, "c")))], [[1, 2]] * 2, ["b", 9]),
        ([_SORTED, _RAISED, DriverAnswer()], [[[2, 1]]] * 3, [[1, 2], None, [2, 1]]),
        ([_SORTED, DriverAnswer(), DriverAnswer(5)], [[[2, 1]]] * 3, [[1, 2], None, 5]),
        ([DriverAnswer(), DriverAnswer()], [[[1]], [[2]]], [None, None]),
        ([DriverAnswer(changed=((7, 1),)), DriverAnswer(), DriverAnswer()], [[1], [1], []], [1, None, None]),
        ([DriverAnswer(changed=((-1, 1),)), DriverAnswer()], [[1], [1]], [1, None]),
        ([DriverAnswer(0, changed=((0, 1),)), DriverAnswer(False)], [[2], [2]], [0, False]),
        ([], [], []),
    ],
)
def test_the_argument_that_any_call_changes_is_the_value_of_all(
    answers: list[DriverAnswer], calls: list[list[Any]], values: list[Any]
) -> None:
    """Where any call has a result, a call that changed nothing has none."""
    assert repr(values) == repr([answer.value for answer in with_changed_arguments(answers, calls)])
