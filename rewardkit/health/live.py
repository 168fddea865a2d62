"""Health while a run runs: a thread reads the run's own record every few steps and asks the detectors."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from dataclasses import replace

from rewardkit.health.coverage import blind_spots_of, summary_of
from rewardkit.health.examine import metrics_of, prompts_of
from rewardkit.health.flag import Flag
from rewardkit.health.watch import WINDOW_STEPS, OnFlag, Watch
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
        on_flag: Called with each flag as it comes up, in the thread.

    Raises:
        RewardDefinitionError: ``every`` is below 1.
    """

    def __init__(self, recorder: Recorder, *, every: int = WINDOW_STEPS, on_flag: OnFlag | None = None) -> None:
        Watch(every=every)  # refuse a wrong number here, not in the thread
        self._recorder = recorder
        self._every = every
        self._on_flag = on_flag
        self._changed = threading.Condition()
        self._first: int | None = None
        self._begun = -1
        self._closed = False
        self._metrics: Mapping[str, float] = {}
        self._thread = threading.Thread(target=self._run, name="rewardkit-health", daemon=True)
        self._thread.start()

    @property
    def metrics(self) -> Mapping[str, float]:
        """``health/<detector>`` for each detector, as of the last look: on how many rewards its flag is up."""
        return self._metrics

    def begins(self, step: int) -> None:
        """Note that a step begins, so that those before it are recorded. Never waits.

        What was recorded before the first such step, of a run that goes on, is history: nothing of it is told again.
        """
        with self._changed:
            self._first = step if self._first is None else self._first
            self._begun = step
            self._changed.notify_all()

    def close(self, timeout_s: float = 10.0) -> None:
        """Look at the steps that no window had yet, and end the thread; give up after ``timeout_s``."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join(timeout_s)

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
            watch = Watch(
                texts=reader.texts,
                prompts=prompts_of(reader),
                every=self._every,
                on_flag=self._report,
                metrics=metrics_of(reader),
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
        """Record, log and hand on a flag, unless it is about steps before the first that begins here."""
        if flag.last_step is not None and self._first is not None and flag.last_step < self._first:
            return
        self._recorder.event("flag", flag.as_row(), flag.last_step)
        whose = "" if flag.reward is None else f" {flag.reward}:"
        _log.warning("health/%s, steps %s:%s %s %s", flag.detector, flag.steps, whose, flag.words, flag.action)
        if self._on_flag is not None:
            self._on_flag(flag)


def _log_coverage(watch: Watch, reader: RunReader) -> None:
    """Log what was looked at and found, and what cannot be seen."""
    coverage = watch.coverage
    if coverage.steps is None:
        return
    coverage = replace(coverage, duration_s=reader.duration_s(coverage.steps))
    _log.info("health checks: %s", summary_of(watch.flags, watch.looked, coverage))
    for line in blind_spots_of(watch.not_looked_at, coverage):
        _log.info("health checks cannot see: %s", line)
