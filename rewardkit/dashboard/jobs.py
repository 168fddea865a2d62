"""Trials and requests for changes that the dashboard has under way: one for each run, in a process of its own.

Importing a reward runs its file, which must not happen in the server: a file may hang, print or end its process. So
each job has a process (:mod:`rewardkit.dashboard.trial`) with a deadline, and can be cancelled.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import itertools
import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rewardkit.errors import UpdateRefusedError
from rewardkit.record.place import RecordPlace

TRY_S = 300.0  # Seconds that a trial has
ASK_S = 180.0  # Seconds that the checks of a change have, before the training is asked
_GRACE_S = 4.0  # Seconds that a job has to end after it is cancelled; then it is killed
_TAIL = 40  # Last lines of standard error that a job's state shows
_LINE_BYTES = 4096  # Bytes after which a line of standard error counts as two
_ANSWER_BYTES = 8_000_000  # Bytes of an answer of a job, at most
_PR_SET_PDEATHSIG = 1
_MARK = "REWARDKIT_TRIAL"  # The variable by which the processes that a job has started are found


@dataclass(frozen=True, slots=True)
class JobState:
    """How far a job is."""

    id: int  # Its number in this server
    kind: str  # `"try"` or `"ask"`
    about: Mapping[str, Any]  # What was asked for, for the page
    state: str = "running"  # `"running"`, `"done"`, `"failed"` or `"cancelled"`
    began: float = 0.0  # When it began, in seconds since 1970
    done: int = 0  # Calls done
    total: int = 0  # Calls to do; 0 until that is known
    failed: int = 0  # Calls that failed
    seconds: float = 0.0  # How long it has taken
    problem: str | None = None  # Why it failed
    details: str | None = None  # The same with its traceback
    printed: str = ""  # What the reward's file printed while it was imported
    result: Mapping[str, Any] | None = None  # What came of it

    def as_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


@dataclass(slots=True)
class _Job:
    """A process at work, and how far it is; ``lock`` guards the state."""

    state: JobState
    deadline_s: float
    process: subprocess.Popen[bytes] | None = None
    mark: str = field(default_factory=lambda: secrets.token_hex(16))
    start_s: float = field(default_factory=time.monotonic)
    lock: threading.Lock = field(default_factory=threading.Lock)
    printed: deque[str] = field(default_factory=lambda: deque(maxlen=_TAIL))

    def now(self) -> JobState:
        """Return the state with the seconds so far."""
        with self.lock:
            took = time.monotonic() - self.start_s
            return dataclasses.replace(self.state, seconds=took) if self.state.state == "running" else self.state

    def hear(self, line: bytes) -> None:
        """Update the state from a line of the process; one that is no message, as a reward may print, fails the job."""
        try:
            message = json.loads(line)
            if "result" in message:
                self.end("done", result=dict(message["result"]))
            elif "error" in message:
                self.end("failed", problem=str(message["error"]), details=str(message["details"]))
            else:
                done, total, failed = (int(message[key]) for key in ("done", "total", "failed"))
                with self.lock:
                    self.state = dataclasses.replace(self.state, done=done, total=total, failed=failed)
        except (ValueError, TypeError, LookupError, OverflowError, RecursionError):
            self.end("failed", problem="the file of the reward wrote into the answers of its trial")

    def end(self, state: str, **fields: Any) -> None:
        """Note the end of a job that runs; one that has ended stays as it is."""
        with self.lock:
            if self.state.state == "running":
                took = time.monotonic() - self.start_s
                printed = "".join(self.printed)
                self.state = dataclasses.replace(self.state, state=state, seconds=took, printed=printed, **fields)


class Jobs:
    """The jobs of a server, one at a time for each run."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards the two below
        self._jobs: dict[RecordPlace, _Job] = {}
        self._numbers = itertools.count(1)

    def of(self, record: RecordPlace) -> JobState | None:
        """Return the last job of a run; ``None`` for a run without one."""
        with self._lock:
            job = self._jobs.get(record.resolve())
        return None if job is None else job.now()

    def start(
        self, record: RecordPlace, job: Mapping[str, Any], about: Mapping[str, Any], deadline_s: float
    ) -> JobState:
        """Start a job, of which the page shows ``about``. Raises UpdateRefusedError if the run has one under way."""
        key = record.resolve()
        with self._lock:
            before = self._jobs.get(key)
            if before is not None and before.now().state == "running":
                noun = "a trial" if before.state.kind == "try" else "a change"
                raise UpdateRefusedError(
                    f"{noun} of {before.state.about.get('reward')!r} is under way in this run since "
                    f"{before.now().seconds:.0f} s; wait for it or cancel it"
                )
            state = JobState(next(self._numbers), job["kind"], dict(about), began=time.time())
            started = _Job(state, deadline_s)
            self._jobs[key] = started
        threading.Thread(target=_run, args=(started, job), name="rewardkit-trial", daemon=True).start()
        return started.now()

    def cancel(self, record: RecordPlace) -> JobState | None:
        """End the last job of a run, if it is under way, and return it; ``None`` for a run without one."""
        with self._lock:
            job = self._jobs.get(record.resolve())
        if job is None:
            return None
        job.end("cancelled", problem="cancelled; nothing was applied")
        threading.Thread(target=_stop, args=(job,), name="rewardkit-trial-end", daemon=True).start()
        return job.now()

    def close(self) -> None:
        """End all running jobs at once."""
        with self._lock:
            jobs = list(self._jobs.values())
        for job in jobs:
            job.end("cancelled", problem="the server was stopped; nothing was applied")
            if job.process is not None and job.process.poll() is None:
                _kill(job.process.pid, job.mark)


def _run(job: _Job, request: Mapping[str, Any]) -> None:
    """Run a job's process to its end or deadline, and note its answers; without a result the job has failed."""
    command = [sys.executable, "-m", "rewardkit.dashboard.trial"]
    pipe, variables = subprocess.PIPE, {**os.environ, _MARK: job.mark}
    try:
        process = subprocess.Popen(  # noqa: S603 - this package, in this Python
            command,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            start_new_session=True,  # it is killed as a group
            env=variables,
        )
    except OSError as error:
        job.end("failed", problem=f"cannot start {sys.executable}: {error}")
        return
    job.process = process
    assert process.stdin is not None
    assert process.stdout is not None
    reader = threading.Thread(target=_keep_printed, args=(process, job.printed), daemon=True)
    reader.start()
    threading.Thread(target=_end_rest, args=(process, job.mark), daemon=True).start()
    timer = threading.Timer(job.deadline_s, _expire, (job,))
    timer.daemon = True
    timer.start()
    try:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
        if job.now().state != "running":  # cancelled before it had a process
            _stop(job)
        while line := process.stdout.readline(_ANSWER_BYTES):
            job.hear(line)
    finally:
        timer.cancel()
        _stop(job)
        process.stdout.close()
        reader.join(1.0)  # what the process left behind may hold its pipe open
        last = next((line.strip() for line in reversed(job.printed) if line.strip()), "no reason is known")
        job.end("failed", problem=f"its process ended with exit status {process.returncode}: {last}")


def _keep_printed(process: subprocess.Popen[bytes], printed: deque[str]) -> None:
    """Move the lines of a process's stderr to ``printed`` until it ends."""
    assert process.stderr is not None
    with process.stderr as lines:
        while line := lines.readline(_LINE_BYTES):  # a line without end must not fill the memory
            printed.append(line.decode("utf-8", "replace")[:500])


def _end_rest(process: subprocess.Popen[bytes], mark: str) -> None:
    """End what a job's process leaves behind: its group, and what has left the group and has its variable."""
    process.wait()
    _kill(process.pid, mark)


def _kill(group: int, mark: str) -> None:
    """Kill a group of processes, and those that have left it and still have the job's variable."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
    variable = f"{_MARK}={mark}".encode()
    for environ in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if variable in environ.read_bytes().split(b"\0"):
                os.kill(int(environ.parent.name), signal.SIGKILL)


def _expire(job: _Job) -> None:
    """End a job whose deadline has passed."""
    job.end("failed", problem=f"not done after {job.deadline_s:.0f} s, which is all that it has; try fewer completions")
    _stop(job)


def _stop(job: _Job) -> None:
    """End a job's process by closing its input; kill its group where it does not end in time."""
    process = job.process
    if process is None:
        return
    with contextlib.suppress(OSError):
        assert process.stdin is not None
        process.stdin.close()  # tells it to end
    try:
        process.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def end_with_server() -> None:
    """Have the kernel kill this process once the server is gone: what it runs may leave Python no turn."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
