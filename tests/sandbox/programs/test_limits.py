"""Each limit, in every language that runs on this machine: a program that uses up one thing ends by it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import pytest
from limit_programs import FILLS_MEMORY, PRINTS, SHARES_MEMORY, SPINS, STARTS_THREADS, WAITS

from sandbox import LANGUAGES, ExecutionStatus, Limits, Sandbox, why_not_run
from sandbox.errors import LanguageUnavailableError

Test = TypeVar("Test", bound=Callable[..., Any])
LIMITS = Limits(timeout_s=1.0, memory_bytes=256 << 20, output_bytes=1 << 16)


@pytest.fixture(scope="module")
def jail() -> Iterator[Sandbox]:
    with Sandbox(workers=2) as sandbox:
        yield sandbox


def each_language(programs: Mapping[str, str]) -> Callable[[Test], Test]:
    """Run a test in each language that has a program for it; without ``--full`` in six, others for each limit."""
    return lambda test: pytest.mark.cases(6)(pytest.mark.parametrize("language", sorted(programs))(test))


def run(jail: Sandbox, source: str, language: str, limits: Limits = LIMITS) -> ExecutionStatus:
    """Return how a program ends; skip the test where its language does not run here."""
    try:
        jail.run(LANGUAGES[language].hello, language=language)
    except LanguageUnavailableError as error:
        pytest.skip(str(error))
    result = jail.run(source, language=language, limits=limits)
    innocent = jail.run(LANGUAGES[language].hello, language=language)
    assert (ExecutionStatus.OK, "hello\n") == (innocent.status, innocent.stdout)
    return result.status


@each_language(SPINS)
def test_a_program_that_spins_is_ended_by_the_clock(jail: Sandbox, language: str) -> None:
    """In each language, and the next one is right."""
    assert ExecutionStatus.TIMEOUT == run(jail, SPINS[language], language)


@each_language(WAITS)
def test_a_program_that_waits_is_ended_by_the_clock(jail: Sandbox, language: str) -> None:
    """Also one that does nothing else."""
    assert ExecutionStatus.TIMEOUT == run(jail, WAITS[language], language)


@each_language(FILLS_MEMORY)
def test_a_program_that_fills_its_memory_fails_for_want_of_it(jail: Sandbox, language: str) -> None:
    """Whatever its runtime makes of that."""
    limits = Limits(timeout_s=20.0, memory_bytes=256 << 20)
    assert ExecutionStatus.MEMORY == run(jail, FILLS_MEMORY[language], language, limits)


@each_language(SHARES_MEMORY)
def test_memory_that_no_limit_of_the_kernels_counts_is_counted(jail: Sandbox, language: str) -> None:
    """Where it can be had at all."""
    limits = Limits(timeout_s=5.0, memory_bytes=256 << 20)
    ends = (ExecutionStatus.MEMORY, ExecutionStatus.TIMEOUT)
    assert run(jail, SHARES_MEMORY[language], language, limits) in ends


@each_language(PRINTS)
def test_a_program_that_prints_without_end_is_ended(jail: Sandbox, language: str) -> None:
    """By its output, before its time is up."""
    limits = Limits(timeout_s=20.0, output_bytes=1 << 16)
    assert ExecutionStatus.OUTPUT_LIMIT == run(jail, PRINTS[language], language, limits)


@each_language(STARTS_THREADS)
def test_no_program_has_threads_or_processes_without_end(jail: Sandbox, language: str) -> None:
    """It fails."""
    assert ExecutionStatus.OK != run(jail, STARTS_THREADS[language], language)


@pytest.mark.parametrize("level", ["strict", "standard"])
@pytest.mark.parametrize("count", [64, 40_000], ids=["large", "many"])
def test_no_program_fills_the_disk(level: str, count: int) -> None:
    """Neither with large files nor with many, also where no file system of its own bounds its directory."""
    if reason := why_not_run("perl"):
        pytest.skip(reason)
    size = (64 << 20) // count
    source = f"""my $made = 0;
    for (1 .. {count}) {{ if (open(my $f, '>', "f$_")) {{ $made++ if print $f 'x' x {size} and close $f }} }}
    select undef, undef, undef, 1; print $made;"""
    with Sandbox(workers=1, level=level) as jail:
        result = jail.run(source, language="perl")
        if level == "strict":
            assert int(result.stdout) < count / 2
        else:
            assert (ExecutionStatus.OUTPUT_LIMIT, "") == (result.status, result.stdout)
        assert ExecutionStatus.OK == jail.run('open my $f, ">", "f"; print "x" if -e "f1";', language="perl").status
