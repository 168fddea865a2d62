"""Runs the controls and the acts on a harness, and counts.

The harness is loaded by processes of its own, in its own Python; what is lost with one of them is tried again with a
new one. Whatever a target does, each act has a deadline, and at the end nothing of the run is left.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import queue
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .containment import namespace_command
from .figures import ActOutcome, HarnessFigures, fault_of_controls
from .forging_acts import ForgingAct, read_acts
from .secret_task import SecretTask

MOST_TRIES = 5
_BY_CHANCE = frozenset(["gc", "process", "thread"])  # families that hang on memory and time, tried so often at once
_LAST_TRIES = 3  # of the right completion behind the acts: that it was late once, as on a busy machine, shows nothing
_ENTRY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "__main__.py")
_LATE_S = 15.0


@dataclass(frozen=True)
class ExaminationPlan:
    """How a harness is examined.

    Attributes:
        target: What is examined, as :mod:`.targets` reads it.
        python: The interpreter that has the harness.
        seed: What the task is drawn from.
        tries: How often each act is tried; one that differs, or hangs on chance, is tried ``MOST_TRIES`` times.
        workers: Acts at once.
        deadline_s: Seconds for one act.
        load_s: Seconds for the harness to load.
        most_s: Seconds for the whole run; acts that are left then are not tried.
        chosen: Beginnings of names; empty for all acts.
    """

    target: Mapping[str, str]
    python: str = sys.executable
    seed: int = 0
    tries: int = 2
    workers: int = 2
    deadline_s: float = 25.0
    load_s: float = 120.0
    most_s: float = 600.0
    chosen: tuple[str, ...] = ()


class TargetError(Exception):
    """The target could not be loaded, or is lost."""


class GradingProcess:
    """The process that has loaded the harness; started anew where it is lost."""

    def __init__(self, plan: ExaminationPlan, task: SecretTask, folder: str, namespaces: list[str]) -> None:
        self._plan = plan
        self._task = task
        self._folder = folder
        self._namespaces = namespaces
        self._process: subprocess.Popen[str] | None = None
        self._is_over = False
        self.description: dict[str, Any] = {}

    def start(self) -> None:
        """Start it and wait until the harness is loaded.

        Raises:
            TargetError: It does not load.
        """
        self.close()
        if self._is_over:
            raise TargetError("the run is over")
        own = tempfile.mkdtemp(prefix="process-", dir=self._folder)
        request = {
            "target": dict(self._plan.target), "task": self._task.to_json(), "folder": own,
            "namespaces": bool(self._namespaces),
        }  # fmt: skip
        is_own = bool(self._plan.target.get("own_isolation"))
        home = os.environ.get("HOME", own) if is_own else own  # where the jails' compiled programs lie
        environment = {**os.environ, "TMPDIR": own, "HOME": home, "HF_HUB_OFFLINE": "1", "REWARDKIT_WORKSPACES": own}
        environment["PATH"] = f"{os.path.dirname(os.path.abspath(self._plan.python))}:{environment.get('PATH', '')}"
        command = [*self._namespaces, self._plan.python, "-B", _ENTRY, "--serve", json.dumps(request)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=own,
            env=environment, start_new_session=True, errors="replace",
        )  # fmt: skip
        description = self._read_line(self._plan.load_s)
        if description is None:
            raise TargetError(f"the target does not load within {self._plan.load_s:g} s, or its process ended")
        if "fault" in description:
            raise TargetError(f"the target does not load: {description['fault']}")
        self.description = description

    def grade(self, text: str, files: Mapping[str, str], deadline_s: float = 0.0) -> dict[str, Any]:
        """Return the verdict on a completion; ``passed`` is ``None`` where the harness gives no verdict."""
        if self._process is None or self._process.poll() is not None:
            self.start()
        assert self._process is not None
        assert self._process.stdin is not None
        deadline_s = deadline_s or self._plan.deadline_s
        answer = None
        with contextlib.suppress(OSError):
            request = {"text": text, "files": dict(files), "deadline_s": deadline_s}
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            answer = self._read_line(deadline_s + _LATE_S)
        if answer is None:
            self.close()
            return {"passed": None, "detail": "no verdict: the harness's process was lost or is late", "seconds": 0.0}
        return answer

    def _read_line(self, most_s: float) -> dict[str, Any] | None:
        assert self._process is not None
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], most_s)
        line = self._process.stdout.readline() if ready else ""
        try:
            answer: dict[str, Any] = json.loads(line)
        except ValueError:
            return None
        return answer

    def close_for_good(self) -> None:
        """End it, whoever waits for it, and start no other in its place."""
        self._is_over = True
        self.close()

    def close(self) -> None:
        """End it and all that it started."""
        process, self._process = self._process, None
        if process is None:
            return
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(2)  # it ends by itself when nothing more can come
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def examine(plan: ExaminationPlan, report: Callable[[str], None] = lambda line: None) -> HarnessFigures:
    """Run the suite on a harness; whatever the harness does, return figures or say why not."""
    folder = tempfile.mkdtemp(prefix="integrity-")
    started = time.monotonic()
    examination = _Examination(plan, folder, report)
    try:
        with _tidy_at_signals():
            figures = examination.run()
    finally:
        examination.close()
        shutil.rmtree(folder, ignore_errors=True)
    from dataclasses import replace

    return replace(figures, seconds=round(time.monotonic() - started, 1))


@contextlib.contextmanager
def _tidy_at_signals() -> Iterator[None]:
    """End at SIGTERM and SIGHUP as at an exception, so that processes and the folder go too."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


class _Examination:
    def __init__(self, plan: ExaminationPlan, folder: str, report: Callable[[str], None]) -> None:
        self._plan = plan
        self._folder = folder
        self._report = report
        self._end = time.monotonic() + plan.most_s
        self._task = SecretTask.draw(plan.seed)
        self._namespaces = [] if plan.target.get("own_isolation") else namespace_command()
        self._processes: list[GradingProcess] = []

    def run(self) -> HarnessFigures:
        first = self._process()
        try:
            first.start()
        except TargetError as fault:
            first.close()
            name = self._plan.target.get("name", "") or next(iter(self._plan.target.values()))
            shape, language = self._plan.target.get("shape", "call"), self._plan.target.get("language", "python")
            return HarnessFigures(name, shape, language, seed=self._plan.seed, no_figure=str(fault))
        description = first.description
        text, files = self._control("right", description)
        answer = first.grade(text, files, self._plan.load_s)  # compilers and libraries may take their time at first
        controls = [self._outcome("right", [answer])]
        if answer["passed"]:
            controls = [
                self._outcome(name, [first.grade(text, files) for _ in range(2 if name == "right" else 1)])
                for name, text, files in self._controls(description)
            ]
        no_figure = fault_of_controls(controls)
        outcomes: list[ActOutcome] = []
        not_tried: dict[str, str] = {}
        if not no_figure:
            acts, not_tried = self._acts(description)
            outcomes = self._try_all(acts, description, first, not_tried)
            text, files = self._control("right", description)
            if not any(first.grade(text, files)["passed"] is True for _ in range(_LAST_TRIES)):
                no_figure = "after the acts the right completion does not pass any more"
        first.close()
        isolation = description["isolation"] or _isolation(bool(self._namespaces), description["files"])
        return HarnessFigures(
            description["name"], description["shape"], description["language"], description["versions"],
            description["note"], isolation, self._plan.seed, tuple(controls), tuple(outcomes), not_tried, no_figure,
            warning=description["warning"],
        )  # fmt: skip

    def _process(self) -> GradingProcess:
        process = GradingProcess(self._plan, self._task, self._folder, self._namespaces)
        self._processes.append(process)
        return process

    def close(self) -> None:
        """End all processes of the run, also where a signal has ended it and they stand still."""
        for process in self._processes:
            process.close_for_good()

    def _controls(self, description: Mapping[str, Any]) -> Iterable[tuple[str, str, dict[str, str]]]:
        for name in ("right", "wrong", "hang"):
            yield name, *self._control(name, description)

    def _control(self, name: str, description: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
        shape = description["shape"]
        text: str = getattr(self._task, name)("call" if shape == "folder" else shape, description["language"])
        if shape == "text":
            return self._task.framed(text, description["frame"]), {}
        return ("", {"solution.py": text}) if shape == "folder" else (text, {})

    def _acts(self, description: Mapping[str, Any]) -> tuple[list[ForgingAct], dict[str, str]]:
        acts = [act for act in read_acts(description["language"]) if act.is_for(description["shape"])]
        if self._plan.chosen:
            acts = [act for act in acts if act.name.startswith(self._plan.chosen)]
        missing = {need: _is_missing(need, self._plan.python) for act in acts for need in act.needs}
        not_tried = {act.name: f"needs {need}" for act in acts for need in act.needs if missing[need]}
        return [act for act in acts if act.name not in not_tried], not_tried

    def _try_all(
        self, acts: list[ForgingAct], description: Mapping[str, Any], first: GradingProcess, not_tried: dict[str, str]
    ) -> list[ActOutcome]:
        waiting: queue.SimpleQueue[ForgingAct] = queue.SimpleQueue()
        for act in acts:
            waiting.put(act)
        outcomes: dict[str, ActOutcome] = {}
        faults: list[str] = []

        def work(process: GradingProcess) -> None:
            try:
                while time.monotonic() < self._end:
                    try:
                        act = waiting.get_nowait()
                    except queue.Empty:
                        return
                    outcomes[act.name] = self._try(act, description, process)
                    self._report(f"{len(outcomes)} of {len(acts)}: {act.name}: {outcomes[act.name].state}")
            except TargetError as fault:
                faults.append(str(fault))
            finally:
                if process is not first:
                    process.close()

        others = [self._process() for _ in range(max(1, self._plan.workers) - 1)]
        threads = [threading.Thread(target=work, args=(process,)) for process in (first, *others)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for act in acts:
            if act.name not in outcomes:
                not_tried[act.name] = faults[0] if faults else f"the run's {self._plan.most_s:g} s were over"
        return [outcomes[act.name] for act in acts if act.name in outcomes]

    def _try(self, act: ForgingAct, description: Mapping[str, Any], process: GradingProcess) -> ActOutcome:
        shape, entry = description["shape"], self._task.entry_point
        files = act.files_for(entry) if shape == "folder" else None
        text = "" if files else act.text_for(shape, entry) or ""
        if shape == "text":
            text = self._task.framed(text.rstrip("\n"), description["frame"])
        is_by_chance = self._plan.tries > 1 and act.family in _BY_CHANCE
        tries = max(self._plan.tries, MOST_TRIES) if is_by_chance else self._plan.tries
        answers = [process.grade(text, files or {}) for _ in range(tries)]
        while len({answer["passed"] is True for answer in answers}) > 1 and len(answers) < MOST_TRIES:
            answers.append(process.grade(text, files or {}))
        return self._outcome(act.name, answers)

    @staticmethod
    def _outcome(name: str, answers: list[dict[str, Any]]) -> ActOutcome:
        verdicts = tuple(answer["passed"] for answer in answers)
        return ActOutcome(name, verdicts, max(row["seconds"] for row in answers), answers[-1]["detail"])


def _isolation(has_namespaces: bool, files: str) -> str:
    if not has_namespaces:
        return "limits and sessions, no namespaces"
    return "namespaces, read-only files" if not files else f"namespaces, files not read-only ({files})"


def _is_missing(need: str, python: str) -> bool:
    if shutil.which(need):
        return False
    if python == sys.executable:
        return importlib.util.find_spec(need) is None
    trial = [python, "-c", f"import importlib.util, sys; sys.exit(importlib.util.find_spec({need!r}) is None)"]
    return subprocess.run(trial, capture_output=True, timeout=60, check=False).returncode != 0
