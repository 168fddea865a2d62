"""The values that pass through rewardkit."""

import functools
import pickle

import pytest

from rewardkit import Cause, Outcome, Status

TRAITS = {
    Cause.EXCEPTION: {"is_curable", "is_breakage"},
    Cause.TIMEOUT: {"is_curable", "is_by_chance", "ends_process"},
    Cause.BAD_RETURN: {"is_breakage"},
    Cause.COERCION: set(),
    Cause.CRASHED: {"is_curable", "is_by_chance", "is_breakage", "ends_process"},
    Cause.INFRASTRUCTURE: {"is_curable", "is_by_chance", "is_loss"},
}


@pytest.mark.parametrize("cause", Cause)
def test_a_cause_says_what_holds_of_it(cause: Cause) -> None:
    """Everything that sorts failures asks the cause."""
    names = [name for name, member in vars(Cause).items() if isinstance(member, functools.cached_property)]

    assert TRAITS[cause] == {name for name in names if getattr(cause, name)}


@pytest.mark.parametrize("cause", Cause)
def test_a_cause_is_a_string_and_pickles_as_itself(cause: Cause) -> None:
    """Records, servers and other processes carry it as text."""
    assert str(cause) == cause.value
    assert cause is pickle.loads(pickle.dumps(cause))
    assert cause is Cause(str(cause))


@pytest.mark.parametrize("cause", [None, *Cause], ids=str)
def test_only_infrastructure_loses_an_outcome(cause: Cause | None) -> None:
    """Of a lost call nothing is known of the completion."""
    status = Status.SCORED if cause is None else Status.FAILED

    assert (cause is Cause.INFRASTRUCTURE) is Outcome(status, None, cause=cause).is_lost
