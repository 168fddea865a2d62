"""What the detectors say of a run: flags with the completions that show them, and the diagnosis in words."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import subprocess
import sys
import threading
import time
from typing import Any, NamedTuple

from rewardkit.dashboard.folder import Stamp
from rewardkit.dashboard.query import Query
from rewardkit.dashboard.readers import DIAGNOSIS, Kept, Opened
from rewardkit.health.about import FAMILIES, about
from rewardkit.health.detectors import DETECTORS
from rewardkit.record.reader import RunReader
from rewardkit.record.stores import RecordPlace, opening_words

AGAIN_S = 10.0
"""Seconds from the end of one diagnosis to the beginning of the next, at least."""
SHARE = 19.0
"""After a diagnosis the next waits this many times the processor time that it took: a twentieth of a core, at most."""
LOOK_S = 600.0
"""Seconds after which a diagnosis is given up."""
_one_at_a_time = threading.Lock()


class Looked(NamedTuple):
    """What a diagnosis told.

    Attributes:
        told: ``diagnosis`` or ``problem``, ``step`` and ``processor_s``, as the process told them.
        version: The state of the record that was looked at.
        seconds: How long the looking took.
        ended: When it ended, on the clock of this process.
    """

    told: dict[str, Any]
    version: Stamp
    seconds: float
    ended: float


class Looking:
    """The newest diagnosis of a run. A new one is made in a process of its own, one at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._looked: Looked | None = None
        self._at_work = False

    @property
    def looked(self) -> Looked | None:
        """The newest diagnosis; ``None`` before there is one."""
        with self._lock:
            return self._looked

    def newest(self, path: RecordPlace, version: Stamp) -> tuple[Looked | None, bool]:
        """Return the newest diagnosis and whether another one is being made, which is begun where it is due.

        Args:
            path: The record.
            version: Its state now.
        """
        with self._lock:
            if not self._at_work and self._is_due(version):
                self._at_work = True
                threading.Thread(
                    target=self._look, args=(path, version), name="rewardkit-diagnosis", daemon=True
                ).start()
            return self._looked, self._at_work

    def _is_due(self, version: Stamp) -> bool:
        if self._looked is None:
            return True
        wait = max(AGAIN_S, SHARE * self._looked.told["processor_s"])
        return version != self._looked.version and time.monotonic() >= self._looked.ended + wait

    def _look(self, path: RecordPlace, version: Stamp) -> None:
        with _one_at_a_time:
            began = time.monotonic()
            told = _told_by_process(path)
            now = time.monotonic()
        with self._lock:
            self._looked = Looked(told, version, now - began, now)
            self._at_work = False


def _told_by_process(path: RecordPlace) -> dict[str, Any]:
    """Return what a separate process finds in a record; it delays no answer, and frees its memory when it ends."""
    command = [sys.executable, "-m", "rewardkit.dashboard.diagnosing"]
    pipe, alone = subprocess.PIPE, {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    began = time.monotonic()
    try:
        process = subprocess.Popen(  # noqa: S603 - this package, in this Python
            command,
            bufsize=0,  # what a process that has ended did not take is not written again as its pipe is closed
            stdin=pipe,
            stdout=pipe,
            stderr=subprocess.DEVNULL,
            env=os.environ | alone,
            start_new_session=True,
        )
    except OSError as reason:
        return _nothing(f"cannot start {sys.executable}: {reason}", 0.0)
    timer = threading.Timer(LOOK_S, process.kill)
    timer.daemon = True
    timer.start()
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(json.dumps(opening_words(path)).encode() + b"\n")
        words = process.stdout.read()
    timer.cancel()
    try:
        told: dict[str, Any] = json.loads(words)
    except ValueError:
        ended = f"the detectors' process ended with exit status {process.returncode}"
        return _nothing(ended, time.monotonic() - began)
    return told


def _nothing(problem: str, seconds: float) -> dict[str, Any]:
    return {"diagnosis": None, "problem": problem, "step": None, "processor_s": seconds}


def flags_found(kept: Kept, version: Stamp) -> int | None:
    """Return how many flags the newest diagnosis of a run has; ``None`` for a file without a diagnosis.

    Args:
        kept: What is kept of the run.
        version: The state of its file now.
    """
    looked = kept.get(DIAGNOSIS, 0, Looking).looked
    if looked is None or looked.told["diagnosis"] is None or looked.version[:2] != version[:2]:  # device and inode
        return None
    return len(looked.told["diagnosis"]["flags"])


def view(opened: Opened, query: Query) -> dict[str, Any]:
    """Return what the detectors say, as of which step, what the training flagged, and what each detector is."""
    run = opened.run
    looking = opened.kept.get(DIAGNOSIS, 0, Looking)
    looked, at_work = looking.newest(run.path, opened.version)
    told: dict[str, Any] = {
        "looking": at_work,
        "families": dict(FAMILIES),
        "detectors": _detectors(),
        "versions": [
            {"reward": one.reward, "version": one.number, "first_step": one.first_step} for one in run.own_versions
        ],
        "live": [
            one["body"] | {"time": one["time"], "event": one["id"]} for one in run.events if one["kind"] == "flag"
        ],
        "last_step": max(run.steps(), default=None),
        "audit": audit_of(run),
        "report": report_of(run),
        "diagnosis": None,
        "problem": None,
    }
    if looked is None:
        return told
    return told | {
        "diagnosis": looked.told["diagnosis"],
        "problem": looked.told["problem"],
        "as_of_step": looked.told["step"],
        "seconds": looked.seconds,
        "current": looked.version == opened.version,
    }


def audit_of(run: RunReader) -> str:
    """Return the command that tries the run's best completions, changed, on its rewards."""
    newest = {one.reward: one for one in run.own_versions}
    files = {(one.reference or "").rpartition(":")[0] for one in newest.values()}
    file = files.pop() if len(files) == 1 else ""
    rewards = file if file.endswith(".py") else "rewards.py"
    return f"rewardkit audit {shlex.quote(rewards)} --run {shlex.quote(run.given)}"


def report_of(run: RunReader) -> str:
    """Return the command that writes the run's report, for those who have no access to this page."""
    return f"rewardkit show {shlex.quote(run.given)} --html report.html"


def _detectors() -> list[dict[str, Any]]:
    """Return what each detector says of itself."""
    return [
        {
            "name": name,
            "family": one.family,
            "each": one.each,
            "at_once": one.at_once,
            "summary": told.summary,
            **{part.lower(): words for part, words in told.parts.items()},
        }
        for name, one in DETECTORS.items()
        for told in [about(one)]
    ]
