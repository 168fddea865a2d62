"""Completions that try to pass tests of any form without the answer: none does, and none makes a row be skipped."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from code_sections import sections

from builtin_rewards.code import code_tests
from sandbox import Limits, Sandbox

pytestmark = pytest.mark.slow  # a minute


ATTACKS = sections("forging_completions.txt")
FORMS = sections("token_tests.txt")


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(workers=1) as made:
        yield made


@pytest.mark.parametrize("attack", ATTACKS)
def test_no_form_of_tests_is_forged(sandbox: Sandbox, attack: str, full: bool) -> None:
    """No check of any form passes, with an entry point and without: the score is 0.0, and neither more nor None."""
    quick = code_tests(limits=Limits(timeout_s=3.0))
    number = list(ATTACKS).index(attack)
    forged = {}
    for form, tests in FORMS.items() if full else list(FORMS.items())[number % 3 :: 3]:
        for entry_point in (None, "solve") if form != "printed" else (None,):
            score = quick(completion=ATTACKS[attack], tests=tests, entry_point=entry_point, sandbox=sandbox)
            if score.value != 0.0:
                forged[form, entry_point] = score
    assert {} == forged
