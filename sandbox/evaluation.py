"""What a zygote reported of an evaluation and its children left, read as results.

The children's part was written by untrusted code, or by a process that it shared: nothing in it is believed
further than it harms its own completion.
"""

from __future__ import annotations

import dataclasses
import json
import os
import signal
from collections.abc import Mapping, Sequence
from typing import Any

from sandbox import plain
from sandbox.errors import NotPlainError
from sandbox.inside import CALLS, NO_MEMORY, PROGRAM, TOO_LARGE
from sandbox.jail.levels import Level
from sandbox.limits import Limits
from sandbox.results import CallValue, ExecutionResult, ExecutionStatus, printable
from sandbox.zygote import MAX_THREADS, PAIR, REASONS


class Evaluation:
    """What a zygote reported and its children left, to be read as results."""

    def __init__(
        self,
        kind: int,
        limits: Limits,
        report: tuple[Any, ...] | None,
        words: str,
        outputs: Mapping[str, bytes] | None = None,
        lines: Sequence[Mapping[str, Any]] = (),
        verdict: list[Mapping[str, Any]] | None = None,
    ) -> None:
        self._kind = kind
        self._limits = limits
        self._report = report
        self._words = words
        self._outputs = outputs or {"stdout": b"", "stderr": b""}
        self._lines = lines
        self.verdict = verdict or []
        self.judged: int = -1 if report is None else report[6]

    def results(self, count: int, level: Level) -> list[ExecutionResult]:
        """Gives the results of a program's runs, up to the one that ended the process; otherwise just one."""
        if self._report is None:
            lost = unrun(ExecutionStatus.INFRASTRUCTURE, self._words, level)
            values = [CallValue(ok=False, error=lost.error)] * count if self._kind == CALLS else None
            return [dataclasses.replace(lost, value=values)]
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
        starts = {line["run"]: line for line in self._lines if isinstance(line.get("run"), int)}
        ends = {line["ran"]: line for line in self._lines if isinstance(line.get("ran"), int)}
        results = []
        for number in range(count):
            start, end = starts.get(number), ends.get(number)
            if start is None and number:
                break
            begun = start or {}
            spans = [(_place(begun, name), _place(end, name) if end else None) for name in ("out", "err")]
            last = number + 1 not in starts
            if end is None or (last and self._reason):
                results.append(self._ended(end and end.get("raised"), level, spans[0], spans[1]))
                break
            results.append(self._ran(end, level, spans[0], spans[1]))
        return results

    @property
    def _reason(self) -> str:
        assert self._report is not None
        return REASONS[self._report[1]]

    @property
    def _cpu_s(self) -> float:
        assert self._report is not None
        return float(self._report[3] + self._report[4])

    def _ran(
        self, end: Mapping[str, Any], level: Level, out: tuple[int, int | None], err: tuple[int, int | None]
    ) -> ExecutionResult:
        """Gives the result of a run that came to its end and said so."""
        code = end.get("code")
        code = code if isinstance(code, int) and 0 <= code <= 255 else 1
        return self._result(code, None, end.get("raised"), level, out, err)

    def _ended(
        self, raised: Any, level: Level, out: tuple[int, int | None], err: tuple[int, int | None]
    ) -> ExecutionResult:
        """Gives the result of what ended with its process."""
        assert self._report is not None
        status = self._report[0]
        ended_by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
        code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
        if self._kind == PAIR and ended_by == signal.SIGKILL and not self._reason:
            ended_by, code = None, 1 if raised else 0  # the judge was done, and the zygote ended it
        return self._result(code, ended_by, raised, level, out, err)

    def _result(
        self,
        code: int | None,
        ended_by: int | None,
        raised: Any,
        level: Level,
        out: tuple[int, int | None],
        err: tuple[int, int | None],
    ) -> ExecutionResult:
        assert self._report is not None
        _, _, took, user_s, system_s, peak, _ = self._report
        stdout, stderr = _text(self._outputs["stdout"], *out), _text(self._outputs["stderr"], *err)
        most = self._limits.output_bytes
        ends = (("stdout", out[1]), ("stderr", err[1]))
        full = any(len(self._outputs[name]) > most and (end is None or end > most) for name, end in ends)
        status, error = self._judged(code, ended_by, raised, full)
        return ExecutionResult(
            status,
            code if ended_by is None else None,
            ended_by,
            stdout,
            stderr,
            full,
            None,
            error,
            raised.get("line") if isinstance(raised, dict) and isinstance(raised.get("line"), int) else None,
            took,
            user_s + system_s,
            peak * 1024,
            str(level),
        )

    def _judged(self, code: int | None, ended_by: int | None, raised: Any, full: bool) -> tuple[ExecutionStatus, str]:
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
        """Gives what each call came to; calls that are not reported ended with the process."""
        values: dict[int, CallValue] = {}
        for line in self._lines:
            number = line.get("call")
            if isinstance(number, int) and number not in values:
                values[number] = _value(line)
        missing = CallValue(ok=False, error=result.error or "the process ended before this call was answered")
        return [values.get(number, missing) for number in range(count)]


def _value(line: Mapping[str, Any]) -> CallValue:
    if "raised" in line:
        _, words = _raised(line["raised"])
        found = line["raised"].get("line") if isinstance(line["raised"], dict) else None
        return CallValue(ok=False, error=words, line=found if isinstance(found, int) else None)
    try:
        return CallValue(ok=True, value=plain.decode(line.get("value")))
    except (NotPlainError, RecursionError) as odd:
        return CallValue(ok=False, error=f"what it gave cannot be read: {odd}")


def _raised(raised: Any) -> tuple[Sequence[str], str]:
    """Gives the built-in types and the words of an exception that a child described, whatever it described."""
    if not isinstance(raised, dict):
        return (), ""
    kinds = raised.get("kinds")
    kinds = [kind for kind in kinds if isinstance(kind, str)] if isinstance(kinds, list) else []
    kind, message = str(raised.get("type"))[:200], str(raised.get("message", ""))[:2000]
    return kinds, printable(f"{kind}: {message}" if message else kind)


def json_lines(data: bytes) -> list[Mapping[str, Any]]:
    """Gives the JSON objects, one a line; what is none was not written by us and is left out."""
    found: list[Mapping[str, Any]] = []
    for line in data.split(b"\n"):
        try:
            message = json.loads(line) if line else None
        except (ValueError, RecursionError):
            continue
        if isinstance(message, dict):
            found.append(message)
    return found


def _text(data: bytes, start: int, end: int | None) -> str:
    return data[start:end].decode("utf-8", "replace")


def _place(line: Mapping[str, Any], name: str) -> int:
    value = line.get(name)
    return value if isinstance(value, int) and value >= 0 else 0


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def unrun(status: ExecutionStatus, words: str, level: Level) -> ExecutionResult:
    return ExecutionResult(status, None, None, "", "", False, None, words, None, 0.0, 0.0, 0, str(level))
