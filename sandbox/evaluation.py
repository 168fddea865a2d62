"""What a zygote reported of an evaluation and its children left, read as results.

The children's part was written by untrusted code, or by a process that it shared: nothing in it is believed
further than it harms its own completion. How a process ended is told by its wait status and by nothing that it
wrote. What reading it may cost is bounded (:mod:`sandbox.effort`).
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import re
import signal
from collections.abc import Mapping, Sequence
from typing import Any

from sandbox import plain
from sandbox.effort import MAX_STEPS, STEPS_A_CALL, Effort
from sandbox.errors import NotPlainError
from sandbox.inside.runner import CALLS, NO_MEMORY, PROGRAM, TOO_LARGE
from sandbox.inside.zygote import MAX_THREADS, PAIR, REASONS
from sandbox.jail.levels import Level
from sandbox.limits import Limits
from sandbox.results import CallValue, ExecutionResult, ExecutionStatus, printable
from sandbox.workers.collector import CollectorPaused

MAX_VERDICT_LINES = 1 << 20  # lines that are read of a tester, who writes two for each assert at most
_LINES_A_RUN, _LINES_BESIDE = 2, 8
_MAX_LINE = 1 << 32
_UNNAMED = "an exception without a name"
Span = tuple[int, int | None]  # where a run's part of an output begins and ends; None for the output's end
_CALL = re.compile(rb'\{"call": ?([0-9]{1,6}),')


class Evaluation:
    """What a zygote reported and its children left, to be read as results."""

    def __init__(
        self,
        kind: int,
        limits: Limits,
        report: tuple[Any, ...] | None,
        words: str,
        outputs: Mapping[str, bytes] | None = None,
        results: bytes = b"",
        verdict: bytes = b"",
    ) -> None:
        self._kind = kind
        self._limits = limits
        self._report = report
        self._words = words
        self._outputs = outputs or {"stdout": b"", "stderr": b""}
        self._written = results
        self._effort = Effort()
        self._lines: Sequence[Mapping[str, Any]] = ()
        self.verdict = json_lines(verdict, MAX_VERDICT_LINES, Effort(math.inf))
        self.tested: int = -1 if report is None else report[6]

    @property
    def ended_itself(self) -> bool:
        """Whether the completion's process came to an end that nobody else made, whatever it said of itself."""
        return self._report is not None and os.WIFEXITED(self._report[0])

    def results(self, count: int, level: Level) -> list[ExecutionResult]:
        """Return the results of a program's runs, up to the one that ended the process; otherwise just one."""
        with CollectorPaused():  # which would walk through all that the caller has, for each few hundred parts read
            return self._read(count, level)

    def _read(self, count: int, level: Level) -> list[ExecutionResult]:
        if self._report is None:
            lost = unrun(ExecutionStatus.INFRASTRUCTURE, self._words, level)
            values = [CallValue(ok=False, error=lost.error)] * count if self._kind == CALLS else None
            return [dataclasses.replace(lost, value=values)]
        self._effort = Effort(MAX_STEPS + STEPS_A_CALL * count)
        self._lines = json_lines(self._written, _LINES_A_RUN * count + _LINES_BESIDE, self._effort)
        if self._kind == PROGRAM:
            return self._runs(count, level)
        raised = next((line["load"] for line in self._lines if isinstance(line.get("load"), dict)), None)
        if self._kind == PAIR:
            raised = next((line["load"] for line in self.verdict if isinstance(line.get("load"), dict)), None)
        result = self._ended(raised, level, (0, None), (0, None))
        if self._kind == CALLS:
            result = dataclasses.replace(result, value=self._values(count, result))
        return [result]

    def _runs(self, count: int, level: Level) -> list[ExecutionResult]:
        """Return the results of runs that shared a process: the last is told by its wait status, the others by it.

        What they wrote follows one another: none is shown what another wrote.
        """
        starts = {line["run"]: line for line in self._lines if type(line.get("run")) is int}
        ends = {line["ran"]: line for line in self._lines if type(line.get("ran")) is int}
        results = []
        out = err = 0
        for number in range(count):
            begun, end = starts.get(number, {}), ends.get(number)
            out, err = max(out, _place(begun, "out")), max(err, _place(begun, "err"))
            if end is None or number + 1 == count or number + 1 not in starts:
                results.append(self._ended(end and end.get("raised"), level, (out, None), (err, None)))
                break
            out_end, err_end = max(out, _place(end, "out")), max(err, _place(end, "err"))
            results.append(self._ran(end, level, (out, out_end), (err, err_end)))
            out, err = out_end, err_end
        return results

    @property
    def _reason(self) -> str:
        assert self._report is not None
        return REASONS[self._report[1]]

    @property
    def _cpu_s(self) -> float:
        assert self._report is not None
        return float(self._report[3] + self._report[4])

    def _ran(self, end: Mapping[str, Any], level: Level, out: Span, err: Span) -> ExecutionResult:
        """Return the result of a run that came to its end and said so."""
        code = end.get("code")
        code = code if isinstance(code, int) and 0 <= code <= 255 else 1
        return self._result(code, None, end.get("raised"), level, out, err)

    def _ended(self, raised: Any, level: Level, out: Span, err: Span) -> ExecutionResult:
        """Return the result of what ended with its process."""
        assert self._report is not None
        status = self._report[0]
        ended_by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
        code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
        if self._kind == PAIR and ended_by == signal.SIGKILL and not self._reason:
            ended_by, code = None, 1 if raised else 0  # the tester was done, and the zygote ended it
        return self._result(code, ended_by, raised, level, out, err)

    def _result(
        self, code: int | None, ended_by: int | None, raised: Any, level: Level, out: Span, err: Span
    ) -> ExecutionResult:
        assert self._report is not None
        _, _, took, user_s, system_s, peak, _ = self._report
        stdout, stderr = _text(self._outputs["stdout"], *out), _text(self._outputs["stderr"], *err)
        most = self._limits.output_bytes
        ends = (("stdout", out[1]), ("stderr", err[1]))
        full = any(len(self._outputs[name]) > most and (end is None or end > most) for name, end in ends)
        status, error = self._tested(code, ended_by, raised, full)
        return ExecutionResult(
            status,
            code if ended_by is None else None,
            ended_by,
            stdout,
            stderr,
            full,
            None,
            error,
            _line(raised),
            took,
            user_s + system_s,
            peak * 1024,
            str(level),
        )

    def _tested(self, code: int | None, ended_by: int | None, raised: Any, full: bool) -> tuple[ExecutionStatus, str]:
        limits = self._limits
        kinds, words = _raised(raised)
        if self._reason == "timeout" and ended_by is not None:
            return ExecutionStatus.TIMEOUT, f"not done within {limits.timeout_s:.3g} s"
        if self._reason == "scratch" and ended_by is not None:
            return ExecutionStatus.OUTPUT_LIMIT, f"more than {limits.file_bytes:,} bytes of files"
        if self._reason == "threads" and ended_by is not None:
            return ExecutionStatus.FORBIDDEN, f"more than {MAX_THREADS} threads"
        if ended_by == signal.SIGXCPU or (ended_by == signal.SIGKILL and self._cpu_s >= self._limits.whole_cpu_s):
            return ExecutionStatus.TIMEOUT, "its processor time is used up"
        if full or code == TOO_LARGE:
            return ExecutionStatus.OUTPUT_LIMIT, f"more than {limits.output_bytes:,} bytes of output"
        if ended_by == signal.SIGSYS:
            return ExecutionStatus.FORBIDDEN, "a system call of another architecture"
        if ended_by == signal.SIGKILL:
            return ExecutionStatus.MEMORY, "the kernel ended it, most likely for want of memory"
        if ended_by is not None:
            return ExecutionStatus.KILLED, f"ended by {_signal_name(ended_by)}"
        if "MemoryError" in kinds or code == NO_MEMORY:
            words = words or "MemoryError"
            return ExecutionStatus.MEMORY, f"{words} (it may have {limits.memory_bytes:,} bytes)"
        if "PermissionError" in kinds:
            return ExecutionStatus.FORBIDDEN, words
        if code:
            return ExecutionStatus.NONZERO, words or f"exit code {code}"
        return ExecutionStatus.OK, ""

    def _values(self, count: int, result: ExecutionResult) -> list[CallValue]:
        """Return what each call came to; calls that are not reported ended with the process."""
        values: dict[int, CallValue] = {}
        for line in self._lines:
            number = line.get("call")
            if type(number) is int and 0 <= number < count and number not in values:
                values[number] = _value(line, self._effort)
        missing = CallValue(ok=False, error=result.error or "the process ended before this call was answered")
        return [values.get(number, missing) for number in range(count)]


def _value(line: Mapping[str, Any], effort: Effort) -> CallValue:
    if "raised" in line:
        _, words = _raised(line["raised"])
        return CallValue(ok=False, error=words, line=_line(line["raised"]))
    try:
        return CallValue(ok=True, value=plain.decode(line.get("value"), effort))
    except (NotPlainError, RecursionError) as odd:
        return CallValue(ok=False, error=f"what it gave cannot be read: {odd}")


def _raised(raised: Any) -> tuple[Sequence[str], str]:
    """Return the built-in types and the words of an exception that a child described, whatever it described."""
    if not isinstance(raised, dict):
        return (), "" if raised is None else _UNNAMED
    kinds = raised.get("kinds")
    kinds = [kind for kind in kinds if isinstance(kind, str)] if isinstance(kinds, list) else []
    kind, message = (_words(raised.get(name)) for name in ("type", "message"))
    kind = kind or _UNNAMED
    return kinds, printable(f"{kind[:200]}: {message[:2000]}" if message else kind[:200])


def _words(said: Any) -> str:
    return said if isinstance(said, str) else ""


def _line(raised: Any) -> int | None:
    """Return the line at which an exception that a child described was raised."""
    line = raised.get("line") if isinstance(raised, dict) else None
    return line if type(line) is int and 0 <= line < _MAX_LINE else None


def json_lines(data: bytes, most: int, effort: Effort) -> list[Mapping[str, Any]]:
    """Return the JSON objects, one a line; other lines were not written by us and are left out.

    Nothing is read of more lines than may be there, or once the effort is spent; a line too long to be read still
    says which call it answers.
    """
    found: list[Mapping[str, Any]] = []
    for line in data.split(b"\n", most)[:most]:
        try:
            if line:
                effort.spend_on_json(line)
            message = json.loads(line) if line else None
        except NotPlainError as odd:
            call = _CALL.match(line)
            words = f"what it gave cannot be read: {odd}"
            message = {"call": int(call[1]), "raised": {"type": words}} if call else None
        except (ValueError, RecursionError):
            continue
        if isinstance(message, dict):
            found.append(message)
    return found


def _text(data: bytes, start: int, end: int | None) -> str:
    return data[start:end].decode("utf-8", "replace")


def _place(line: Mapping[str, Any], name: str) -> int:
    value = line.get(name)
    return value if type(value) is int and value >= 0 else 0


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def unrun(status: ExecutionStatus, words: str, level: Level) -> ExecutionResult:
    return ExecutionResult(status, None, None, "", "", False, None, words, None, 0.0, 0.0, 0, str(level))
