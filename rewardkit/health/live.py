"""Health while a run runs: a thread reads the run's own record every few steps and asks the detectors."""

from __future__ import annotations

import logging
import shlex
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rewardkit.health.alerts import (
    ALERT,
    ALERT_FAILED,
    Alerts,
    FlagKey,
    FlagTarget,
    alert_of,
    noted_flags,
    payload_of,
)
from rewardkit.health.coverage import blind_spots_of, summary_of
from rewardkit.health.evidence import TextsOf, nothing
from rewardkit.health.examine import errors_of, metrics_of, prompts_of
from rewardkit.health.flag import Flag
from rewardkit.health.score_ranges import ranges_of
from rewardkit.health.watch import WINDOW_STEPS, Watch
from rewardkit.record.reader import RunReader
from rewardkit.record.recorder import Recorder

LATE_STEPS = 1
"""Steps that must have begun after a window before it is looked at: other processes record at their own pace."""
_log = logging.getLogger("rewardkit")


class LiveHealth:
    """Looks at a run's record while it grows, in a thread of its own; the run does not wait for it.

    Each flag that comes up is an event of the record, and is logged as a warning, once. At the end the log says what
    was looked at and what cannot be seen. Nothing that happens in the thread reaches the run: a fault is logged, and
    ends the looking.

    Args:
        recorder: The run's recorder.
        every: Steps from one look to the next, 1 or more.
        on_flag: A function, called with each flag as it comes up, in the thread; or a URL or a command that is told,
            see :class:`~rewardkit.health.Alert`. Each flag of a run is told once, also where the run goes on later.

    Raises:
        RewardDefinitionError: ``every`` is below 1.
        ConfigError: ``on_flag`` is no function, address or command.
    """

    def __init__(self, recorder: Recorder, *, every: int = WINDOW_STEPS, on_flag: FlagTarget | None = None) -> None:
        Watch(every=every)  # refuse a wrong number here, not in the thread
        self._recorder = recorder
        self._every = every
        self._alert = alert_of(on_flag)
        self._on_flag = on_flag if self._alert is None and callable(on_flag) else None
        self._alerts: Alerts | None = None
        self._texts: TextsOf = nothing
        self._reported: set[FlagKey] = set()
        self._alerted: set[FlagKey] = set()
        self._changed = threading.Condition()
        self._begun = -1
        self._closed = False
        self._metrics: Mapping[str, float] = {}
        self._thread = threading.Thread(target=self._run, name="rewardkit-health", daemon=True)
        if recorder.rank == 0:  # one process looks at what all of them record
            self._thread.start()

    @property
    def metrics(self) -> Mapping[str, float]:
        """``health/<detector>`` for each detector, as of the last look: on how many rewards its flag is up."""
        return self._metrics

    def begins(self, step: int) -> None:
        """Note that a step begins, so that those before it are recorded. Never waits."""
        with self._changed:
            self._begun = step
            self._changed.notify_all()

    def close(self, timeout_s: float = 10.0) -> None:
        """Look at the steps that no window had yet, send the alerts, and end; give up after ``timeout_s``."""
        end = time.monotonic() + timeout_s
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
        if self._alerts is not None:
            self._alerts.close(max(0.0, end - time.monotonic()))

    def _run(self) -> None:
        try:
            self._look()
        except Exception:
            _log.exception("%s: the health checks ended; the run goes on without them", self._recorder.path)

    def _look(self) -> None:
        """Run the detectors on the steps that are done, a window at a time, until the run ends."""
        last, closed = self._window(-1)
        self._recorder.flush()
        with RunReader(self._recorder.path) as reader:
            self._reported, self._alerted = (noted_flags(reader, kind) for kind in ("flag", ALERT))
            self._texts = reader.texts
            watch = Watch(
                texts=reader.texts,
                prompts=prompts_of(reader),
                errors=errors_of(reader),
                every=self._every,
                on_flag=self._report,
                metrics=metrics_of(reader),
                **ranges_of(reader)._asdict(),
            )
            last_look = -1
            while True:
                watch.observe(reader.table((last_look + 1, last)))
                watch.finish()
                self._metrics = watch.metrics()
                if closed:
                    _log_coverage(watch, reader)
                    return
                last_look = last
                last, closed = self._window(last_look)
                self._recorder.flush()

    def _window(self, last_look: int) -> tuple[int, bool]:
        """Wait for the next window's steps or the run's end; return the last step to look at, and if the run ended."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._begun > last_look + self._every + LATE_STEPS)
            return (self._begun, True) if self._closed else (last_look + self._every, False)

    def _report(self, flag: Flag) -> None:
        """Record and log a flag, and hand it on, unless the run's record says that this was done before."""
        key = flag.detector, flag.reward
        if key not in self._reported:
            self._reported.add(key)
            self._recorder.event("flag", flag.as_row(), flag.last_step)
            whose = "" if flag.reward is None else f" {flag.reward}:"
            _log.warning("health/%s, steps %s:%s %s %s", flag.detector, flag.steps, whose, flag.words, flag.action)
        if key not in self._alerted and (self._alert is not None or self._on_flag is not None):
            self._alerted.add(key)
            # noted first, so that no crash makes it go out twice
            self._recorder.event(ALERT, {"detector": flag.detector, "reward": flag.reward}, flag.last_step)
            self._hand_on(flag)

    def _hand_on(self, flag: Flag) -> None:
        if self._on_flag is not None:
            self._on_flag(flag)
        if self._alert is None:
            return
        texts = dict(zip(flag.rows, self._texts(flag.rows), strict=True)) if self._alert.texts else None
        if self._alerts is None:
            self._alerts = Alerts(self._alert, self._note_failure)
        self._alerts.put(payload_of(flag, self._recorder.path.label, texts))

    def _note_failure(self, payload: Mapping[str, Any]) -> None:
        """Note that an alert did not go out, so that `diagnose`, or the run when it goes on, tells of the flag."""
        self._recorder.event(ALERT_FAILED, {"detector": payload["flag"], "reward": payload["reward"]})


def _log_coverage(watch: Watch, reader: RunReader) -> None:
    """Log what was looked at and found, and what cannot be seen."""
    coverage = watch.coverage
    if coverage.steps is None:
        return
    coverage = replace(coverage, duration_s=reader.duration_s(coverage.steps))
    _log.info("health checks: %s", summary_of(watch.flags, watch.looked, coverage))
    for line in blind_spots_of(watch.not_looked_at, coverage, shlex.quote(reader.path.label)):
        _log.info("health checks cannot see: %s", line)
