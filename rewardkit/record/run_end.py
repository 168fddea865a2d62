"""How a run ends, as a reader sees it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from rewardkit.record.sessions import is_alive
from rewardkit.shown.text import shortened

STOPPED = "stopped"  # The kind of the event of an error that ends a run
_ERROR_CHARS = 400


class RunState(StrEnum):
    """How far a run is."""

    RUNNING = "running"
    """A process records in it."""
    FINISHED = "finished"
    """Its recorder was closed, or its program came to its end."""
    STOPPED = "stopped"
    """An error ended it."""
    KILLED = "killed"
    """No end was written, and its process is gone or has given no sign for too long."""
    UNREADABLE = "unreadable"
    """Its record cannot be read."""


class RunEnd(NamedTuple):
    """How far a run is, and why it went no further."""

    state: RunState
    reason: str | None = None  # The error that ended it, or what is known of a killed process; `None` otherwise

    def as_json(self) -> dict[str, Any]:
        """Return it as the fields ``state`` and ``state_reason``."""
        return {"state": str(self.state), "state_reason": self.reason}

    @property
    def text(self) -> str:
        """The state in words, with its reason."""
        if self.state is RunState.STOPPED:
            return f"stopped by {self.reason}"
        return str(self.state)


def run_end(sessions: Sequence[Mapping[str, Any]], events: Sequence[Mapping[str, Any]]) -> RunEnd:
    """Return how far a run is, from its sessions and events, both in the order of recording.

    The last start decides: the last session of rank 0 that trained or scored, and those of other ranks after it.
    """
    if any(map(is_alive, sessions)):
        return RunEnd(RunState.RUNNING)
    own = [session for session in sessions if session["purpose"] == "run"]
    start = max((session["id"] for session in own if session["rank"] == 0), default=0)
    last = {session["id"]: session for session in own if session["id"] >= start}
    for event in events:
        if event["kind"] == STOPPED and event["body"].get("session") in last:
            return RunEnd(RunState.STOPPED, str(event["body"].get("error", "an error")))
    for session in last.values():
        if session["ended"] is None:
            return RunEnd(RunState.KILLED, _last_known(session))
    return RunEnd(RunState.FINISHED)


def _last_known(session: Mapping[str, Any]) -> str:
    about = session["about"]
    host, seen = about.get("machine", {}).get("host", "another machine"), time.localtime(session["seen"])
    process = f"process {about['process']} of {host}" if "process" in about else "its process"
    return f"no end was written; {process} gave its last sign at {time.strftime('%Y-%m-%d %H:%M', seen)}"


def error_text(error: BaseException | None) -> str:
    """Return an error in words; an empty text for no error, an exit with 0 and the end of a generator."""
    if error is None or isinstance(error, GeneratorExit) or (isinstance(error, SystemExit) and not error.code):
        return ""
    message = " ".join(str(error).split())
    return shortened(f"{type(error).__name__}: {message}" if message else type(error).__name__, _ERROR_CHARS)
