"""Alerts: each flag of a run calls a URL or a command, once; whoever raises flags never waits for it.

Covered: an alert has a deadline, also where the other side sends a byte now and then; redirects are not followed; what
a completion says stays here unless it is asked for; the target, which may be a secret as a webhook's address is, stands
in no record, log, error or page.

Not covered: what the command that is called does, and who else on this machine may read its arguments.
"""

from __future__ import annotations

import base64
import contextlib
import json
import logging
import math
import os
import queue
import shlex
import shutil
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import unquote, urlsplit, urlunsplit

from rewardkit.errors import ConfigError
from rewardkit.health.flag import Flag, OnFlag
from rewardkit.record.notes import add_notes
from rewardkit.record.reader import RunReader

ALERT = "alert"  # The kind of the event that notes that an alert goes out, without the target
ALERT_FAILED = "alert_failed"  # And of the one that takes this back
FlagKey: TypeAlias = tuple[str, str | None]
"""What tells the flags of a run apart: the detector's name and the reward's."""
TEXT_CHARS = 400  # Characters of a completion that an alert has where texts are asked for
MOST_TEXTS = 3  # Completions of a flag whose texts an alert has then
GIVE_UP = 3  # Alerts in a row that find no answer, after which no more are sent
_log = logging.getLogger("rewardkit")


@dataclass(frozen=True)
class Alert:
    """Where flags are told: a URL that gets JSON by POST, or a command that gets it on its standard input.

    A target such as ``"$SLACK_HOOK"`` is read from the environment.

    Args:
        target: An address that begins with ``http://`` or ``https://``; or a command, as text that is split as a shell
            does, or as a list of its arguments. No shell runs it.
        texts: Whether the beginnings of completions that show the flag go along, and what it quotes of them.
        timeout_s: Seconds that one alert may take, greater than 0.

    Raises:
        ConfigError: There is no target, its environment variable is not set, or the seconds are wrong. The words leave
            the target out.
    """

    target: str | Sequence[str] = field(repr=False)
    texts: bool = False
    timeout_s: float = 10.0
    _resolved: str | Sequence[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if isinstance(self.timeout_s, bool) or not 0 < self.timeout_s < math.inf:
            raise ConfigError(f"on_flag: timeout_s={self.timeout_s!r}: expected a number of seconds above 0")
        object.__setattr__(self, "_resolved", _resolve(self.target))

    @property
    def label(self) -> str:
        """What logs call the target: the server of an address, or the program of a command."""
        if isinstance(self._resolved, str):
            return f"the webhook at {urlsplit(self._resolved).hostname}"
        return f"the command {os.path.basename(self._resolved[0])}"

    @property
    def secrets(self) -> dict[str, str]:
        """What no record may have of the target: its addresses."""
        parts = [self._resolved] if isinstance(self._resolved, str) else self._resolved
        return {f"on_flag {number}": part for number, part in enumerate(parts, 1) if "://" in part}

    def send(self, payload: Mapping[str, Any]) -> str | None:
        """Tell the target; return why that failed in a few words, ``None`` where it did not. Takes at most its time."""
        target, body = self._resolved, json.dumps(_finite(payload), allow_nan=False).encode()
        return self._post(target, body) if isinstance(target, str) else self._run(target, body)

    def _post(self, url: str, body: bytes) -> str | None:
        """Post the body in a thread of its own, because a server may send a byte now and then for ever."""
        results: list[str | None] = []
        thread = threading.Thread(
            target=lambda: results.append(_post(url, body, self.timeout_s)), name="rewardkit-alert-post", daemon=True
        )
        thread.start()
        thread.join(self.timeout_s)
        return results[0] if results else f"no answer within {self.timeout_s:g} s"

    def _run(self, arguments: Sequence[str], body: bytes) -> str | None:
        quiet = subprocess.DEVNULL
        try:
            process = subprocess.Popen(  # noqa: S603 - the user's command
                arguments, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet, start_new_session=True
            )
        except (OSError, ValueError) as error:
            return f"cannot be started: {type(error).__name__}"
        try:
            process.communicate(body, self.timeout_s)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return f"not done within {self.timeout_s:g} s"
        return None if process.returncode == 0 else f"exit status {process.returncode}"


def _resolve(target: object) -> str | list[str]:
    """Return an address, or the arguments of a command; raise ConfigError, in words without the target."""
    if isinstance(target, str) and target.startswith("$"):
        name = target[1:]
        target = os.environ.get(name, "")
        if not target:
            raise ConfigError(f"on_flag: the environment variable {name} is not set")
    if isinstance(target, str) and target.lower().startswith(("http://", "https://")):
        with contextlib.suppress(ValueError):  # a port that is no number
            parts = urlsplit(target)
            if parts.hostname and parts.port != 0 and target.isascii() and target.isprintable() and " " not in target:
                return target
        raise ConfigError("on_flag: expected an address such as 'https://host/path', in ASCII and without spaces")
    try:
        arguments = shlex.split(target) if isinstance(target, str) else [str(part) for part in target]  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        arguments = []
    if not arguments or shutil.which(arguments[0]) is None:
        raise ConfigError(
            "on_flag: expected a function, an address that begins with https://, or a command that is on PATH"
        )
    return arguments


class _Stay(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: what was to go to one server goes to no other."""

    def redirect_request(self, *arguments: object) -> None:
        return None


def _post(url: str, body: bytes, timeout_s: float) -> str | None:
    """Post JSON to an address; return why that failed, without the address."""
    parts = urlsplit(url)
    user, _, server = parts.netloc.rpartition("@")
    headers = {"content-type": "application/json", "user-agent": "rewardkit"}
    if user:
        headers["authorization"] = "Basic " + base64.b64encode(unquote(user).encode()).decode()
    bare = urlunsplit(parts._replace(netloc=server, fragment=""))
    request = urllib.request.Request(bare, body, headers, method="POST")  # noqa: S310 - http or https
    try:
        with urllib.request.build_opener(_Stay).open(request, timeout=timeout_s):
            return None
    except urllib.error.HTTPError as error:
        error.close()
        return f"it answered {error.code}" + (", a redirect, which is not followed" if 300 <= error.code < 400 else "")
    except Exception as error:  # whatever a server sends must not reach who raised the flag
        cause = error.reason if isinstance(error, urllib.error.URLError) else error
        if isinstance(cause, TimeoutError):  # The socket's wait ended just before the thread's
            return f"no answer within {timeout_s:g} s"
        return f"cannot be reached: {type(cause).__name__}"


class Alerts:
    """Sends alerts in a thread of its own, in their order; a failure is logged once, and after three it gives up.

    Args:
        alert: The target.
        failed: Called with each alert that did not go out, in the thread, or by :meth:`close`.
    """

    def __init__(self, alert: Alert, failed: Callable[[Mapping[str, Any]], None] = lambda payload: None) -> None:
        self._alert = alert
        self._report_failure = failed
        self._waiting: queue.SimpleQueue[Mapping[str, Any] | None] = queue.SimpleQueue()
        self._failed = 0  # In a row
        self._has_failed = False
        self._thread = threading.Thread(target=self._run, name="rewardkit-alerts", daemon=True)
        self._thread.start()

    def put(self, payload: Mapping[str, Any]) -> None:
        """Hand over an alert. Never waits."""
        self._waiting.put(payload)

    def close(self, timeout_s: float = 10.0) -> bool:
        """Wait until all alerts are out, for at most so long; return whether they are."""
        self._waiting.put(None)
        self._thread.join(timeout_s)
        with contextlib.suppress(queue.Empty):  # what the thread has not come to
            while (payload := self._waiting.get_nowait()) is not None:
                self._report_failure(payload)
        return not self._thread.is_alive() and not self._has_failed

    def _run(self) -> None:
        while (payload := self._waiting.get()) is not None:
            if self._failed >= GIVE_UP:
                self._report_failure(payload)
                continue
            try:
                reason = self._alert.send(payload)
            except Exception as error:
                reason = type(error).__name__
            self._failed = 0 if reason is None else self._failed + 1
            if reason is not None:
                self._report_failure(payload)
            if reason is not None and not self._has_failed:
                self._has_failed = True
                _log.warning("on_flag: %s: %s; the run goes on, and says this once", self._alert.label, reason)


FlagTarget: TypeAlias = OnFlag | Alert | str | Sequence[str]
"""What ``on_flag`` takes: a function of a flag; or an :class:`Alert`, or its target alone."""


def alert_of(on_flag: FlagTarget | None) -> Alert | None:
    """Return what ``on_flag`` calls besides functions: an :class:`Alert`; ``None`` for a function and for ``None``."""
    if on_flag is None or isinstance(on_flag, Alert):
        return on_flag
    return Alert(on_flag) if isinstance(on_flag, str) or not callable(on_flag) else None


def noted_flags(run: RunReader, kind: str) -> set[FlagKey]:
    """Return the flags, by detector and reward, of which a run's record has an event of a kind: ``flag``, ``alert``.

    An alert of which the record says later that it failed does not count.
    """
    noted: set[FlagKey] = set()
    for event in run.events:
        body = event["body"]
        key = str(body.get("detector")), body.get("reward")
        if event["kind"] == kind:
            noted.add(key)
        elif event["kind"] == ALERT_FAILED and kind == ALERT:
            noted.discard(key)
    return noted


class Told(NamedTuple):
    """What became of the alerts of some flags."""

    sent: int  # Flags that the target was told of
    before: int  # Flags of which the record says that an alert went out before
    reason: str | None  # Why the others could not be sent; `None` without any


def tell(alert: Alert, run: RunReader, flags: Sequence[Flag]) -> Told:
    """Tell a target of a run's flags and wait for it, without those that the record says it was told of.

    What finds no answer is told by the next call.

    Raises:
        RecordError: The record cannot be written, so that nothing would say that the alerts went out.
    """
    noted = noted_flags(run, ALERT)
    new = [flag for flag in flags if (flag.detector, flag.reward) not in noted]
    add_notes(run.path, ALERT, [{"detector": flag.detector, "reward": flag.reward} for flag in new])
    failed, reason, in_a_row = [], None, 0
    for flag in new:
        if in_a_row >= GIVE_UP:
            failed.append(flag)
            continue
        texts = dict(zip(flag.rows, run.texts(flag.rows), strict=True)) if alert.texts else None
        failure = alert.send(payload_of(flag, run.path.label, texts))
        in_a_row = 0 if failure is None else in_a_row + 1
        failed += [] if failure is None else [flag]
        reason = reason or failure
    if failed:
        add_notes(run.path, ALERT_FAILED, [{"detector": flag.detector, "reward": flag.reward} for flag in failed])
    return Told(len(new) - len(failed), len(flags) - len(new), reason)


def payload_of(flag: Flag, run: str, texts: Mapping[int, str | None] | None = None) -> dict[str, Any]:
    """Return what an alert says of a flag; ``texts`` of completions by id go along where there are any.

    ``text`` has it all in a line, which is what Slack, Mattermost and Google Chat show.
    """
    whose = "" if flag.reward is None else f" of {flag.reward}"
    when = f", steps {flag.steps}" if flag.steps else ""
    payload: dict[str, Any] = {
        "run": run,
        "flag": flag.detector,
        "reward": flag.reward,
        "steps": [list(span) for span in flag.spans],
        "message": flag.words,
        "value": flag.value,
        "threshold": flag.threshold,
        "action": flag.action,
        "completions": list(flag.rows),
        "time": time.time(),
        "text": f"{run}: {flag.detector}{whose}{when}: {flag.words}",
    }
    if texts is not None:
        present = [(number, text) for number, text in texts.items() if text is not None][:MOST_TEXTS]
        payload["quote"] = flag.quote
        payload["texts"] = [{"completion": number, "text": text[:TEXT_CHARS]} for number, text in present]
    return payload


def _finite(payload: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in payload.items()
    }
