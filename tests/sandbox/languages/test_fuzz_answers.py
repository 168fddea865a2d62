"""Answers drawn at random, as a driver's descriptor can hold them: each is read or refused, in bounded time.

A failure names its seed: ``draw_answers(seed)`` gives the bytes again.
"""

from __future__ import annotations

import secrets
import time
from typing import Any

import pytest
from fuzz_answers import draw_answers

from sandbox.equality import same
from sandbox.errors import NotPlainError
from sandbox.languages.readings import as_returned
from sandbox.programs.calls import _values

FULL_S, SHORT_S = 600.0, 2.0
PROCESSOR_S = 2.0
"""More than the documented bound, which is a second of the caller's processor for what an evaluation left."""
EXPECTED = ([[1, 2], {"1": 2.0}], {1.0: (1, 2)}, {(1, 2), 3}, 10, 10.0, "10", None, True, [[]] * 50)


@pytest.mark.fuzz
def test_no_answer_stalls_the_client_or_raises_anything(full: bool) -> None:
    """Ten minutes in full: each call has a value or an error, compared with any expected one within the bound."""
    seed = secrets.randbits(32) if full else 0
    print(f"seeds from {seed}")
    deadline = time.monotonic() + (FULL_S if full else SHORT_S)
    while time.monotonic() < deadline:
        data, count = draw_answers(seed)
        began = time.thread_time()
        values = _values(data, [()] * count)
        for value in values:
            for expected in EXPECTED if value.ok else ():
                _compared(expected, value.value)
        assert time.thread_time() - began < PROCESSOR_S, seed
        assert count == len(values), seed
        seed += 1


def _compared(expected: Any, value: Any) -> bool | None:
    """Return whether a value is the expected one; ``None`` where that is too much work."""
    try:
        return same(value, as_returned(expected, value))
    except NotPlainError:
        return None


def test_a_seed_gives_its_answers_again() -> None:
    """No two are alike, and some of them are right answers, some none."""
    drawn = [draw_answers(seed) for seed in range(60)]
    assert drawn == [draw_answers(seed) for seed in range(60)]
    read = [value.ok for data, count in drawn for value in _values(data, [()] * count)]
    assert {True, False} == set(read)
