"""What the detectors say of a run: flags with the completions that show them, and the diagnosis in words."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import threading
import time
from typing import Any, NamedTuple

from rewardkit.dashboard.query import Query
from rewardkit.dashboard.readers import DIAGNOSIS, OpenRun, RunCache
from rewardkit.dashboard.saving import Saved
from rewardkit.health.detectors import DETECTORS, FAMILIES, about
from rewardkit.record.place import RecordPlace, Stamp
from rewardkit.record.reader import RunReader

AGAIN_S = 10.0  # Seconds from the end of one diagnosis to the beginning of the next, at least
SHARE = 19.0
"""After a diagnosis the next waits this many times the processor time that it took: a twentieth of a core, at most."""
LOOK_S = 600.0  # Seconds after which a diagnosis is given up
_one_at_a_time = threading.Lock()


class Look(NamedTuple):
    """A look of the detectors at a run."""

    answer: dict[str, Any]  # `diagnosis` or `problem`, `step` and `processor_s`, as the process gave them
    version: Stamp  # The state of the record that was looked at
    seconds: float  # How long it took
    end_s: float  # When it ended, on the clock of this process


class Looking:
    """The newest diagnosis of a run. A new one is made in a process of its own, one at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: Look | None = None
        self._at_work = False

    @property
    def last(self) -> Look | None:
        """The newest diagnosis; ``None`` before there is one."""
        with self._lock:
            return self._last

    def newest(self, path: RecordPlace, version: Stamp) -> tuple[Look | None, bool]:
        """Return the newest diagnosis of a record and whether another is being made. Begin another where it is due."""
        with self._lock:
            if not self._at_work and self._is_due(version):
                self._at_work = True
                threading.Thread(
                    target=self.look, args=(path, version), name="rewardkit-diagnosis", daemon=True
                ).start()
            return self._last, self._at_work

    def _is_due(self, version: Stamp) -> bool:
        if self._last is None:
            return True
        wait = max(AGAIN_S, SHARE * self._last.answer["processor_s"])
        return version != self._last.version and time.monotonic() >= self._last.end_s + wait

    def look(self, path: RecordPlace, version: Stamp) -> None:
        """Make a diagnosis, which is the newest from then on."""
        with _one_at_a_time:
            start = time.monotonic()
            answer = _diagnose(path)
            now = time.monotonic()
        with self._lock:
            self._last = Look(answer, version, now - start, now)
            self._at_work = False


def _diagnose(path: RecordPlace) -> dict[str, Any]:
    """Run the detectors on a record in a process of their own; return its answer, or one that has the ``problem``."""
    command = [sys.executable, "-m", "rewardkit.dashboard.diagnosing"]
    variables = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    pipe, start, status = subprocess.PIPE, time.monotonic(), 0
    try:
        process = subprocess.run(  # noqa: S603 - this package, in this Python
            command, input=json.dumps(path.locator).encode(), stdout=pipe, stderr=subprocess.DEVNULL,
            env=variables, start_new_session=True, timeout=LOOK_S, check=False,
        )  # fmt: skip
        status = process.returncode
        answer: dict[str, Any] = json.loads(process.stdout)
        return answer
    except OSError as error:
        problem = f"cannot start {sys.executable}: {error}"
    except subprocess.TimeoutExpired:
        problem = f"the detectors were not done after {LOOK_S:.0f} s"
    except ValueError:
        problem = f"the detectors' process ended with exit status {status}"
    return {"diagnosis": None, "problem": problem, "step": None, "processor_s": time.monotonic() - start}


def flag_count(cache: RunCache, version: Stamp) -> int | None:
    """Return how many flags the newest diagnosis of a record has; ``None`` where this file has none."""
    look = cache.get(DIAGNOSIS, 0, Looking).last
    if look is None or look.answer["diagnosis"] is None or look.version[:2] != version[:2]:  # device and inode
        return None
    return len(look.answer["diagnosis"]["flags"])


def view(opened: OpenRun, query: Query) -> dict[str, Any]:
    """Return the newest diagnosis and its step, the flags of the training, and a description of each detector."""
    run = opened.run
    look, at_work = opened.cache.get(DIAGNOSIS, 0, Looking).newest(run.path, opened.version)
    versions = [{"reward": row.reward, "version": row.number, "first_step": row.first_step} for row in run.own_versions]
    flags = [event for event in run.events if event["kind"] == "flag"]
    answer: dict[str, Any] = {
        "looking": at_work,
        "families": dict(FAMILIES),
        "detectors": _detectors(),
        "versions": versions,
        "live": [event["body"] | {"time": event["time"], "event": event["id"]} for event in flags],
        "last_step": max(run.steps(), default=None),
        "audit": audit_of(run),
        "report": report_of(run),
        "diagnosis": None,
        "problem": None,
    }
    if look is None:
        return answer
    return answer | {
        "diagnosis": look.answer["diagnosis"],
        "problem": look.answer["problem"],
        "as_of_step": look.answer["step"],
        "seconds": look.seconds,
        "current": look.version == opened.version,
    }


def audit_of(run: RunReader) -> str:
    """Return the command that tries the run's best completions, changed, on its rewards."""
    newest = {version.reward: version.reference or "" for version in run.own_versions}
    files = {reference.rpartition(":")[0] for reference in newest.values()}
    file = files.pop() if len(files) == 1 else ""
    rewards = file if file.endswith(".py") else "rewards.py"
    return f"rewardkit audit {shlex.quote(rewards)} --run {shlex.quote(run.path.label)}"


def report_of(run: RunReader) -> str:
    """Return the command that writes the run's report, for those who have no access to this page."""
    return f"rewardkit show {shlex.quote(run.path.label)} --html report.html"


def _detectors() -> list[dict[str, Any]]:
    rows = []
    for name, detector in DETECTORS.items():
        docs = about(detector)
        row = {"name": name, "family": detector.family, "each": detector.each, "at_once": detector.at_once}
        rows.append(row | {"summary": docs.summary, **{part.lower(): text for part, text in docs.parts.items()}})
    return rows


def _without_place(answer: dict[str, Any]) -> dict[str, Any]:
    """Return an answer without the commands that name where the run lies, and with ``RUN`` for it in its texts."""
    label = shlex.split(answer["report"] or "rewardkit show RUN")[2]
    text = json.dumps(answer | {"audit": None, "report": None})
    for form in (shlex.quote(label), label) if "/" in label else ():
        text = text.replace(json.dumps(form)[1:-1], "RUN")
    without: dict[str, Any] = json.loads(text)
    return without


SAVED = (Saved("health", of_whole=True, shorten=_without_place),)
"""What a saved page has of this view: a part of a run has no health."""
