"""Checkers: programs of a row that say how right an output is, each asked in a jail of its own.

A checker is the row's and sees input, output and expected output; the completion's process sees none of it. It is first
asked about the expected outputs themselves: where it cannot judge these, it is at fault, whatever a completion writes.
After that, an output that it cannot judge is the completion's fault.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from sandbox.errors import CheckError
from sandbox.languages.names import PYTHON
from sandbox.reports import preview
from sandbox.results import ExecutionResult, ExecutionStatus
from sandbox.shared_time import SharedTime

if TYPE_CHECKING:
    from sandbox.client import Sandbox
    from sandbox.limits import Limits

_FUNCTION = re.compile(r"^def[ \t]+check[ \t]*\(", re.MULTILINE)
_FILES = ("input.txt", "expected.txt", "output.txt")  # arguments of a checker that is a program, in this order
_WORDS = {"yes": 1.0, "no": 0.0, "true": 1.0, "false": 0.0}
_TESTLIB_FILES = ("input.txt", "output.txt", "expected.txt")  # of testlib's checkers
_TESTLIB: dict[int | None, float] = {0: 1.0, 1: 0.0, 2: 0.0}  # exit codes of testlib: right, wrong, badly formed
_MAX_PROVED = 4_096
_NO_TIME = "no time was left for it"
_proved: set[bytes] = set()  # digests of checkers with the expected outputs that they could judge


class Checker(NamedTuple):
    """A row's program that judges outputs."""

    source: str
    language: str = PYTHON


class CheckedOutput(NamedTuple):
    """What a checker sees."""

    stdin: str
    output: str
    expected: str


class CheckerAnswer(NamedTuple):
    """What a checker says of an output: the share that is right, 0 to 1; ``None`` with the fault for no answer."""

    share: float | None
    fault: str = ""
    is_lost: bool = False  # whether the sandbox itself failed


def prove_checker(
    sandbox: Sandbox,
    checker: Checker,
    inputs: Sequence[str],
    expected: Sequence[str],
    limits: Limits,
    output_timeout_s: float | None = None,
) -> None:
    """Ask a checker about the expected outputs themselves, once for each checker and outputs in this process.

    Raises:
        CheckError: It does not compile, hangs, raises or gives no answer; the message names the check.
    """
    proof = repr((tuple(checker), inputs, expected, output_timeout_s))
    digest = hashlib.blake2b(proof.encode("utf-8", "surrogatepass")).digest()
    if digest in _proved:
        return
    outputs = [CheckedOutput(stdin, right, right) for stdin, right in zip(inputs, expected, strict=True)]
    for number, answer in enumerate(ask_checker(sandbox, checker, outputs, limits, output_timeout_s)):
        if answer.is_lost:
            return
        if answer.share is None:
            raise CheckError(f"the checker cannot judge the expected output of check {number}: {answer.fault}")
        if not answer.share and checker.language != PYTHON:  # its exit code 1 may mean that it broke
            raise CheckError(f"the checker says that the expected output of check {number} itself is wrong")
    if len(_proved) >= _MAX_PROVED:
        _proved.clear()
    _proved.add(digest)


def ask_checker(
    sandbox: Sandbox,
    checker: Checker,
    outputs: Sequence[CheckedOutput],
    limits: Limits,
    output_timeout_s: float | None = None,
) -> Iterator[CheckerAnswer]:
    """Yield what a checker says of each output; all together have the limits' time.

    With ``output_timeout_s`` it has so many seconds for each output, and a process for each.

    A checker defines ``check(input, output, expected)``, which returns a bool or a share; else it is a program with the
    arguments ``input.txt``, ``expected.txt`` and ``output.txt``, whose last line is yes, no or a share. In a language
    other than Python it is a program with testlib's order of arguments, ``input.txt``, ``output.txt`` and
    ``expected.txt``, and may say by its exit code alone what testlib's do: 0 for right, 1 and 2 for wrong.
    """
    is_function = checker.language == PYTHON and _FUNCTION.search(checker.source)
    ask = partial(_ask_function if is_function else _ask_program, sandbox, checker)
    if output_timeout_s is not None:
        yield from _ask_each(ask, outputs, SharedTime(limits, output_timeout_s))
        return
    deadline = time.monotonic() + limits.timeout_s
    answered = 0
    while answered < len(outputs):
        answers = ask(outputs[answered:], limits.until(deadline))
        yield from answers
        answered += len(answers)
        if time.monotonic() >= deadline:
            yield from [CheckerAnswer(None, _NO_TIME)] * (len(outputs) - answered)
            return


def _ask_each(
    ask: Callable[[Sequence[CheckedOutput], Limits], list[CheckerAnswer]],
    outputs: Sequence[CheckedOutput],
    shared: SharedTime,
) -> Iterator[CheckerAnswer]:
    """Yield the answer to each output, asked for alone while any of the time is left."""
    for output in outputs:
        if shared.is_spent:
            yield CheckerAnswer(None, _NO_TIME)
            continue
        began = time.monotonic()
        yield ask([output], shared.next_limits())[0]
        shared.spend(time.monotonic() - began)


def _ask_function(
    sandbox: Sandbox, checker: Checker, outputs: Sequence[CheckedOutput], limits: Limits
) -> list[CheckerAnswer]:
    calls = [[output.stdin, output.output, output.expected] for output in outputs]
    return _answers(sandbox.call(checker.source, "check", calls, limits=limits), len(outputs))


def _answers(execution: ExecutionResult, count: int) -> list[CheckerAnswer]:
    """Return the answers to calls up to the first without one."""
    if execution.status is ExecutionStatus.INFRASTRUCTURE:
        return [CheckerAnswer(None, execution.error, True)] * count
    answers = []
    for value in execution.value or []:
        answers.append(_share(value.value) if value.ok else CheckerAnswer(None, value.error))
        if not value.ok:  # it may have ended the process
            break
    return answers or [CheckerAnswer(None, execution.error)] * count


def _ask_program(
    sandbox: Sandbox, checker: Checker, outputs: Sequence[CheckedOutput], limits: Limits
) -> list[CheckerAnswer]:
    """Return the answer of a checker that is a program to the first output."""
    output = outputs[0]
    files = dict(zip(_FILES, (output.stdin, output.expected, output.output), strict=True))
    if checker.language == PYTHON:
        execution = sandbox.run(checker.source, files=files, args=_FILES, limits=limits)
    else:
        built = sandbox.build(checker.source, checker.language, limits=limits)
        if isinstance(built, ExecutionResult):
            return [CheckerAnswer(None, built.error, built.status is ExecutionStatus.INFRASTRUCTURE)]
        execution = sandbox.run(
            checker.source, files=files, args=_TESTLIB_FILES, limits=limits, language=checker.language
        )
        if not execution.stdout.strip() and execution.exit_code in _TESTLIB:
            return [CheckerAnswer(_TESTLIB[execution.exit_code])]
    if execution.status is not ExecutionStatus.OK:
        return [CheckerAnswer(None, execution.error, execution.status is ExecutionStatus.INFRASTRUCTURE)]
    lines = execution.stdout.split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return [_printed_share(last)]


def _printed_share(text: str) -> CheckerAnswer:
    share = _WORDS.get(text.lower())
    try:
        return _share(float(text)) if share is None else CheckerAnswer(share)
    except ValueError:
        return _nonsense("printed", text)


def _share(value: object) -> CheckerAnswer:
    if isinstance(value, bool | int | float) and 0 <= value <= 1:
        return CheckerAnswer(float(value))
    return _nonsense("returned", value)


def _nonsense(verb: str, value: object) -> CheckerAnswer:
    return CheckerAnswer(None, f"it {verb} {preview(value)}: expected yes, no or a share from 0 to 1")
