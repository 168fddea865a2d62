"""Functions in other languages, called by values, and their test suites.

*Covered:* what a call should return is in no jail. A completion owns its process and both descriptors of the driver, so
it can write any line; it gains by none that it did not compute. Its answers count only where it wrote exactly one line
for each call and ended by itself with exit code 0, and they are read when all of its processes have ended. A suite runs
in a jail of its own with a stub of the function, and passes only if it ends by itself with exit code 0.

*Not covered:* a completion that has learnt the answers by heart. It sees the arguments of later calls early.
"""

from __future__ import annotations

import dataclasses
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from sandbox.effort import MAX_STEPS, STEPS_A_CALL, Effort
from sandbox.errors import CheckError, LanguageUnavailableError, NotPlainError
from sandbox.evaluation import unrun
from sandbox.inside.zygote import output_room
from sandbox.languages.catalogue import SourceError, prepared_source
from sandbox.languages.in_place import with_changed_arguments
from sandbox.languages.language import CannotCallError, CannotDriveError, Driver, Language, Program, Suite
from sandbox.languages.wire import DriverAnswer, decode_answer, encode_call
from sandbox.limits import Limits
from sandbox.programs.engine import MAX_ATTEMPTS, Artefact, Programs
from sandbox.results import CallValue, ExecutionResult, ExecutionStatus, SuiteRun
from sandbox.shared_time import SharedTime
from sandbox.workers.wire import anonymous_file

_UNANSWERED = "the process ended before this call was answered"


def build_source(
    programs: Programs, language: Language, source: str, limits: Limits, *, needs_main: bool = True
) -> Artefact | ExecutionResult:
    """Compile a completion's source as a program of its own, or have it checked where nothing is compiled.

    With ``needs_main=False`` functions alone compile too.
    """
    programs.prove(language)
    built = _build_program(programs, language, source, limits)
    main = language.main
    if isinstance(built, ExecutionResult) and main and not needs_main and main.message in built.stderr + built.error:
        with_main = _build_program(programs, language, source + main.text, limits)
        return built if isinstance(with_main, ExecutionResult) else with_main
    if isinstance(built, ExecutionResult) or language.check is None:
        return built
    problem = programs.check(language, built, limits)
    return built if problem is None else problem


def _build_program(programs: Programs, language: Language, source: str, limits: Limits) -> Artefact | ExecutionResult:
    try:
        text = prepared_source(language, source)
    except SourceError as error:
        return unrun(ExecutionStatus.NONZERO, str(error), programs.level)
    return programs.build(language, Program({language.source_name: text}), limits)


def run_inputs(
    programs: Programs,
    language: Language,
    source: str,
    inputs: Sequence[str],
    files: Mapping[str, str | bytes],
    arguments: Sequence[str],
    limits: Limits,
    run_timeout_s: float | None = None,
) -> list[ExecutionResult]:
    """Run a program once for each input, each time in a process of its own; all share the time of ``limits``.

    With ``run_timeout_s``, the seconds of each run, those after a late one are run too while any of the time is left.
    """
    programs.prove(language)
    built = _build_program(programs, language, source, limits)
    if isinstance(built, ExecutionResult):
        return [built] * len(inputs)
    contents = {
        name: content if isinstance(content, bytes) else content.encode("utf-8", "surrogateescape")
        for name, content in files.items()
    }
    results: list[ExecutionResult] = []
    shared = SharedTime(limits, limits.timeout_s if run_timeout_s is None else run_timeout_s)
    for text in inputs:
        rest = shared.next_limits()
        stdin = text.encode("utf-8", "surrogatepass")
        results.append(programs.run(language, built, rest, stdin=stdin, files=contents, arguments=arguments))
        shared.charge(results[-1], language.start_s)
        if shared.ends_with(results[-1]):
            break
    return results + results[-1:] * (len(inputs) - len(results))


def call_function(
    programs: Programs, language: Language, source: str, function: str, calls: Sequence[Any], limits: Limits
) -> ExecutionResult:
    """Call a function once for each of some arguments; the result's ``value`` has a value for each call.

    Raises:
        CheckError: The name is not one of a function.
        NotPlainError: An argument is no value of the language.
    """
    builder = _proved_builder(programs, language)
    requests = b"".join(_encoded(number, call) for number, call in enumerate(calls))
    built = _build_answerer(programs, language, source, function, limits, calls)
    if isinstance(built, ExecutionResult):
        return _without_values(built, len(calls))
    result, data = _ask(programs, builder, built, requests, limits)
    if result.status is not ExecutionStatus.OK:
        return _without_values(result, len(calls))
    return dataclasses.replace(result, value=_values(data, calls))


def call_each(
    programs: Programs,
    language: Language,
    source: str,
    function: str,
    calls: Sequence[Any],
    limits: Limits,
    shared: SharedTime,
) -> list[ExecutionResult]:
    """Call a function as :func:`call_function` does, each time in a process of its own, in the time that calls share.

    Each result's ``value`` has the one value of its call. Calls for which no time is left get the last result.
    """
    builder = _proved_builder(programs, language)
    requests = [_encoded(number, call) for number, call in enumerate(calls)]
    built = _build_answerer(programs, language, source, function, limits, calls)
    if isinstance(built, ExecutionResult):
        return [_without_values(built, 1)] * len(calls)
    results: list[ExecutionResult] = []
    answers: list[DriverAnswer] = []
    for request in requests:
        result, data = _ask(programs, builder, built, request, shared.next_limits())
        shared.charge(result, builder.start_s)
        is_ok = result.status is ExecutionStatus.OK
        answers += _answers(data, 1) if is_ok else [DriverAnswer(error=result.error or _UNANSWERED)]
        results.append(result)
        if shared.ends_with(result):
            break
    values = map(_value_of, with_changed_arguments(answers, calls[: len(answers)]))
    results = [dataclasses.replace(result, value=[value]) for result, value in zip(results, values, strict=True)]
    return results + results[-1:] * (len(calls) - len(results))


def _proved_builder(programs: Programs, language: Language) -> Language:
    """Return the language that builds and runs a driver's programs, after both have run in the jail."""
    builder = language.driver_language or language
    for needed in (language, builder):
        programs.prove(needed)
    return builder


def _ask(
    programs: Programs, builder: Language, answerer: Artefact, requests: bytes, limits: Limits
) -> tuple[ExecutionResult, bytes]:
    """Run an answerer on the lines of some calls; return its result and the lines that it wrote."""
    room = output_room(limits.output_bytes)["results"]
    with _memory_file("calls", requests) as questions, _memory_file("answers") as answers:
        result = programs.run(builder, answerer, limits, streams=(questions, answers))
        data = os.pread(answers, room + 1, 0)
    if result.status is ExecutionStatus.OK and len(data) > room:
        problem = f"more than {room:,} bytes of values"
        result = dataclasses.replace(result, status=ExecutionStatus.OUTPUT_LIMIT, error=problem)
    return result, data


def _encoded(number: int, call: Any) -> bytes:
    if isinstance(call, dict):
        raise NotPlainError(f"call {number}: keyword arguments have no meaning in other languages; give a list")
    try:
        return encode_call(call)
    except NotPlainError as error:
        raise NotPlainError(f"call {number}: {error}") from None


def _build_answerer(
    programs: Programs, language: Language, source: str, function: str, limits: Limits, calls: Sequence[Any] = ()
) -> Artefact | ExecutionResult:
    driver = _driver_of(language)
    try:
        program = driver.answerer(prepared_source(language, source), function, calls)
    except CannotDriveError as error:
        raise CheckError(str(error)) from None
    except (SourceError, CannotCallError) as error:
        return unrun(ExecutionStatus.NONZERO, str(error), programs.level)
    return programs.build(language.driver_language or language, program, limits)


def _driver_of(language: Language) -> Driver:
    if language.driver is None:
        raise LanguageUnavailableError(
            f"functions in {language.name} cannot be called by values; give inputs and outputs of programs",
            language.name,
        )
    return language.driver


def _without_values(result: ExecutionResult, count: int) -> ExecutionResult:
    return dataclasses.replace(result, value=[CallValue(ok=False, error=result.error or _UNANSWERED)] * count)


def _values(data: bytes, calls: Sequence[Sequence[Any]]) -> list[CallValue]:
    """Return the value of each call; an error for all where there is not exactly one line for each."""
    return [_value_of(answer) for answer in with_changed_arguments(_answers(data, len(calls)), calls)]


def _answers(data: bytes, count: int) -> list[DriverAnswer]:
    lines = data.split(b"\n")
    if lines[-1] or len(lines) - 1 != count:
        return [DriverAnswer(error=f"{len(lines) - 1} answers to {count} calls")] * count
    effort = Effort(MAX_STEPS + STEPS_A_CALL * count)
    return [_answer(line, effort) for line in lines[:-1]]


def _value_of(answer: DriverAnswer) -> CallValue:
    if answer.error is None:
        return CallValue(ok=True, value=answer.value)
    return CallValue(ok=False, error=answer.error[:2_000] or "it raised")


def _answer(line: bytes, effort: Effort) -> DriverAnswer:
    try:
        return decode_answer(line, effort)
    except (NotPlainError, RecursionError) as error:
        return DriverAnswer(error=f"what it gave cannot be read: {error}")


def run_suite(programs: Programs, language: Language, source: str, suite: Suite, limits: Limits) -> SuiteRun:
    """Run a suite in a jail of its own, whose function is the completion's in another.

    Raises:
        CheckError: The suite is at fault: it cannot be driven, or does not compile.
    """
    programs.prove(language)
    driver = _driver_of(language)
    try:
        tests, function = driver.tester(suite), driver.function_name(suite)
    except CannotDriveError as error:
        raise CheckError(str(error)) from None
    tester = programs.build(language, tests, limits)
    if isinstance(tester, ExecutionResult):
        if tester.status is ExecutionStatus.INFRASTRUCTURE:
            return SuiteRun(tester, tester)
        raise CheckError(f"the tests do not compile: {tester.error}")
    answerer = _build_answerer(programs, language, source, function, limits)
    if isinstance(answerer, ExecutionResult):
        return SuiteRun(answerer, None)
    for _ in range(MAX_ATTEMPTS):
        run = _run_pair(programs, language, answerer, tester, limits)
        if not run.is_lost:
            break
    return run


def _run_pair(programs: Programs, language: Language, answerer: Artefact, tester: Artefact, limits: Limits) -> SuiteRun:
    """Run the completion and its tester beside each other; the tester's end ends the completion."""
    answered: list[ExecutionResult] = []
    with ExitStack() as open_ends:
        to_answerer, from_tester = os.pipe()
        to_tester, from_answerer = os.pipe()
        stop = os.eventfd(0, os.EFD_CLOEXEC)
        ends = _Ends([to_answerer, from_tester, to_tester, from_answerer, stop])
        open_ends.callback(ends.close)

        def answer() -> None:
            streams = (to_answerer, from_answerer)
            try:
                answered.append(programs.run(language, answerer, limits, streams=streams, attempts=1, stop=stop))
            except Exception as error:  # it must not be lost in a thread
                answered.append(unrun(ExecutionStatus.INFRASTRUCTURE, f"{error}", programs.level))
            finally:
                ends.close(*streams)  # so that the tester sees the end of an answerer that is gone

        thread = threading.Thread(target=answer, name="rewardkit-answerer", daemon=True)
        thread.start()
        verdict = programs.run(language, tester, limits, streams=(from_tester, to_tester), attempts=1, is_second=True)
        with suppress(OSError):
            os.eventfd_write(stop, 1)
        thread.join()
    return SuiteRun(answered[0], verdict)


class _Ends:
    """Descriptors that are closed once each, by whichever thread is first."""

    def __init__(self, descriptors: list[int]) -> None:
        self._open = set(descriptors)
        self._lock = threading.Lock()  # protects the set

    def close(self, *descriptors: int) -> None:
        """Close these descriptors, or all that are open."""
        with self._lock:
            closing = self._open & set(descriptors) if descriptors else set(self._open)
            self._open -= closing
            for descriptor in closing:
                os.close(descriptor)


@contextmanager
def _memory_file(name: str, content: bytes = b"") -> Iterator[int]:
    descriptor = anonymous_file(name)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(descriptor, view) :]
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)
