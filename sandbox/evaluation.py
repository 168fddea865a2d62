"""Evaluations: a zygote's report and the output of its children, read as results.

The children's part was written by untrusted code, or by a process that it shared: it is believed only as far as it
harms its own completion. The wait status alone decides how a process ended, and nothing that it wrote. What reading
may cost is bounded (:mod:`sandbox.effort`).
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import re
import signal
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sandbox import plain
from sandbox.effort import MAX_STEPS, STEPS_A_CALL, Effort
from sandbox.errors import NotPlainError
from sandbox.inside.runner import CALLS, CUT_OFF, NO_MEMORY, PROGRAM, TOO_LARGE
from sandbox.inside.zygote import MAX_THREADS, PAIR, REASONS
from sandbox.jail.levels import Level
from sandbox.jail.scratch import MOST_FILES
from sandbox.limits import Limits
from sandbox.results import LATE, CallValue, ExecutionResult, ExecutionStatus, printable
from sandbox.workers.collector import CollectorPaused

MAX_VERDICT_LINES = 1 << 20  # lines that are read of a tester, which writes at most two for each assert
_LINES_A_RUN, _LINES_BESIDE = 2, 8
_MAX_LINE = 1 << 32
_UNNAMED = "an exception without a name"
Span = tuple[int, int | None]  # begin and end of a run's part of an output; None for the output's end
_CALL = re.compile(rb'\{"call": ?([0-9]{1,6}),')


class ZygoteReport(NamedTuple):
    """A zygote's report of an evaluation."""

    status: int  # the wait status of the completion's process
    reason: int  # why the zygote ended it, an index in REASONS
    duration_s: float
    user_s: float
    system_s: float
    peak_kib: int
    tester_status: int  # -1 where there was no tester


_NO_REPORT = ZygoteReport(-1, 0, 0.0, 0.0, 0.0, 0, -1)


class Evaluation:
    """A zygote's report and its children's output, to be read as results; without a report, ``failure`` says why."""

    def __init__(
        self,
        kind: int,
        limits: Limits,
        report: ZygoteReport | None,
        failure: str,
        outputs: Mapping[str, bytes] | None = None,
        results: bytes = b"",
        verdict: bytes = b"",
    ) -> None:
        self._kind = kind
        self._limits = limits
        self._lost = report is None
        self._report = report or _NO_REPORT
        self._failure = failure
        self._outputs = outputs or {"stdout": b"", "stderr": b""}
        self._results = results
        self._level = Level.NONE
        self.verdict = json_lines(verdict, MAX_VERDICT_LINES, Effort(math.inf))
        self.tester_status = self._report.tester_status

    @property
    def ended_itself(self) -> bool:
        """Whether the completion's process ended by itself, whatever it reported."""
        return not self._lost and os.WIFEXITED(self._report.status)

    def results(self, count: int, level: Level) -> list[ExecutionResult]:
        """Return results of this level: a program's runs up to the one that ended the process, otherwise one."""
        self._level = level
        with CollectorPaused():  # it would walk through all objects of the caller for each few hundred parts read
            return self._read(count)

    def _read(self, count: int) -> list[ExecutionResult]:
        if self._lost:
            lost = unrun(ExecutionStatus.INFRASTRUCTURE, self._failure, self._level)
            values = [CallValue(ok=False, error=lost.error)] * count if self._kind == CALLS else None
            return [dataclasses.replace(lost, value=values)]
        effort = Effort(MAX_STEPS + STEPS_A_CALL * count)
        lines = json_lines(self._results, _LINES_A_RUN * count + _LINES_BESIDE, effort)
        if self._kind == PROGRAM:
            return self._runs(lines, count)
        reports = self.verdict if self._kind == PAIR else lines
        raised = next((line["load"] for line in reports if isinstance(line.get("load"), dict)), None)
        result = self._result_of_end(raised, (0, None), (0, None))
        if self._kind == CALLS:
            result = dataclasses.replace(result, value=_values(lines, count, result.error, effort))
        return [result]

    def _runs(self, lines: Sequence[Mapping[str, Any]], count: int) -> list[ExecutionResult]:
        """Return the results of runs that shared a process; the wait status shows only the last one's end."""
        starts = {line["run"]: line for line in lines if type(line.get("run")) is int}
        ends = {line["ran"]: line for line in lines if type(line.get("ran")) is int}
        results = []
        out = err = 0
        for number in range(count):
            start, end = starts.get(number, {}), ends.get(number)
            out, err = max(out, _position(start, "out")), max(err, _position(start, "err"))
            if end is None or number + 1 == count or number + 1 not in starts:
                results.append(self._result_of_end(end and end.get("raised"), (out, None), (err, None)))
                break
            out_end, err_end = max(out, _position(end, "out")), max(err, _position(end, "err"))
            code = end.get("code")
            code = code if isinstance(code, int) and 0 <= code <= 255 else 1
            results.append(self._result(code, None, end.get("raised"), (out, out_end), (err, err_end)))
            out, err = out_end, err_end
        return results

    def _result_of_end(self, raised: object, out: Span, err: Span) -> ExecutionResult:
        """Return the result of a run or call that ended with its process."""
        status = self._report.status
        ended_by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
        code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
        if self._kind == PAIR and ended_by == signal.SIGKILL and not self._report.reason:
            ended_by, code = None, 1 if raised else 0  # the tester was done, and the zygote ended it
        return self._result(code, ended_by, raised, out, err)

    def _result(self, code: int | None, ended_by: int | None, raised: object, out: Span, err: Span) -> ExecutionResult:
        report = self._report
        most = self._limits.output_bytes
        spans = (("stdout", out), ("stderr", err))
        stdout, stderr = (self._outputs[name][slice(*span)].decode("utf-8", "replace") for name, span in spans)
        full = any(len(self._outputs[name]) > most and (end is None or end > most) for name, (_, end) in spans)
        status, error = self._status(code, ended_by, raised, full)
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
            report.duration_s,
            report.user_s + report.system_s,
            report.peak_kib * 1024,
            str(self._level),
        )

    def _status(
        self, code: int | None, ended_by: int | None, raised: object, full: bool
    ) -> tuple[ExecutionStatus, str]:
        limits, reason = self._limits, REASONS[self._report.reason]
        kinds, message = _exception(raised)
        cpu_s = self._report.user_s + self._report.system_s
        if reason == "timeout" and ended_by is not None:
            return ExecutionStatus.TIMEOUT, f"{LATE} {limits.timeout_s:.3g} s"
        if reason == "scratch" and ended_by is not None:
            return (
                ExecutionStatus.OUTPUT_LIMIT,
                f"more than {limits.file_bytes:,} bytes of files, or {MOST_FILES:,} of them",
            )
        if reason == "threads" and ended_by is not None:
            return ExecutionStatus.FORBIDDEN, f"more than {MAX_THREADS} threads"
        if ended_by == signal.SIGXCPU or (ended_by == signal.SIGKILL and cpu_s >= limits.whole_cpu_s):
            return ExecutionStatus.TIMEOUT, "its processor time is used up"
        if full or code == TOO_LARGE or (reason == "output" and ended_by is not None):
            return ExecutionStatus.OUTPUT_LIMIT, f"more than {limits.output_bytes:,} bytes of output"
        if ended_by == signal.SIGSYS:
            return ExecutionStatus.FORBIDDEN, "a system call of another architecture"
        if ended_by == signal.SIGKILL:
            return ExecutionStatus.MEMORY, "the kernel ended it, most likely for want of memory"
        if ended_by is not None:
            name = signal.Signals(ended_by).name if ended_by in list(signal.Signals) else f"signal {ended_by}"
            return ExecutionStatus.KILLED, f"ended by {name}"
        if "MemoryError" in kinds or code == NO_MEMORY:
            return ExecutionStatus.MEMORY, f"{message or 'MemoryError'} (it may have {limits.memory_bytes:,} bytes)"
        if "PermissionError" in kinds:
            return ExecutionStatus.FORBIDDEN, message
        if code == CUT_OFF and not message:
            return ExecutionStatus.NONZERO, "it closed the files through which it answers"
        if code:
            return ExecutionStatus.NONZERO, message or f"exit code {code}"
        return ExecutionStatus.OK, ""


def _values(lines: Sequence[Mapping[str, Any]], count: int, error: str, effort: Effort) -> list[CallValue]:
    """Return each call's value, or ``error`` for a call without a report, before which the process ended."""
    values: dict[int, CallValue] = {}
    for line in lines:
        number = line.get("call")
        if type(number) is int and 0 <= number < count and number not in values:
            values[number] = _value(line, effort)
    missing = CallValue(ok=False, error=error or "the process ended before this call was answered")
    return [values.get(number, missing) for number in range(count)]


def _value(line: Mapping[str, Any], effort: Effort) -> CallValue:
    if "raised" in line:
        return CallValue(ok=False, error=_exception(line["raised"])[1], line=_line(line["raised"]))
    try:
        return CallValue(ok=True, value=plain.decode(line.get("value"), effort))
    except (NotPlainError, RecursionError) as error:
        return CallValue(ok=False, error=f"what it gave cannot be read: {error}")


def _exception(raised: object) -> tuple[Sequence[str], str]:
    """Return the built-in types and the text of an exception that a child described, whatever it described."""
    if not isinstance(raised, dict):
        return (), "" if raised is None else _UNNAMED
    kinds = raised.get("kinds")
    kinds = [kind for kind in kinds if isinstance(kind, str)] if isinstance(kinds, list) else []
    name, message = (text if isinstance(text, str) else "" for text in (raised.get("type"), raised.get("message")))
    name = (name or _UNNAMED)[:200]
    return kinds, printable(f"{name}: {message[:2000]}" if message else name)


def _line(raised: object) -> int | None:
    line = raised.get("line") if isinstance(raised, dict) else None
    return line if type(line) is int and 0 <= line < _MAX_LINE else None


def json_lines(data: bytes, most: int, effort: Effort) -> list[Mapping[str, Any]]:
    """Return the objects of JSON lines; a call's line beyond the effort becomes an error, other bad lines drop out."""
    messages: list[Mapping[str, Any]] = []
    for line in data.split(b"\n", most)[:most]:
        try:
            if line:
                effort.spend_on_json(line)
            message = json.loads(line) if line else None
        except NotPlainError as error:
            call = _CALL.match(line)
            raised = {"type": f"what it gave cannot be read: {error}"}
            message = {"call": int(call[1]), "raised": raised} if call else None
        except (ValueError, RecursionError):
            continue
        if isinstance(message, dict):
            messages.append(message)
    return messages


def _position(line: Mapping[str, Any], name: str) -> int:
    value = line.get(name)
    return value if type(value) is int and value >= 0 else 0


def unrun(status: ExecutionStatus, error: str, level: Level) -> ExecutionResult:
    return ExecutionResult(status, None, None, "", "", False, None, error, None, 0.0, 0.0, 0, str(level))
