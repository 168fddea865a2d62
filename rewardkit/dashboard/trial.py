"""What the dashboard runs in a process of its own: a reward tried on stored completions, or a training asked for it.

``python -m rewardkit.dashboard.trial`` reads its job as one line of JSON, and writes lines of JSON: how far it is, and
at last what came of it. It ends when its standard input does, and where it is too busy for that, the kernel ends it
with the server. What the reward prints goes to standard error.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rewardkit.dashboard.jobs import end_with_server
from rewardkit.errors import RewardError
from rewardkit.loading.registry import RewardSet, resolve_set
from rewardkit.record.changes import Action
from rewardkit.replay.difference import Difference
from rewardkit.replay.recorded_run import Run
from rewardkit.replay.run_difference import of_run, subject_of
from rewardkit.replay.stored import choose
from rewardkit.replay.update import Wish, update
from rewardkit.shown.text import shortened

SHOWN = 8  # Completions that a trial names: those whose scores change most
_TEXT_CHARS = 4000
_TICK_S = 0.1
_GRACE_S = 2.0  # Seconds that a trial has to end its workers once it is told to end

Tell = Callable[[Mapping[str, Any]], None]


def main() -> None:
    """Do the job that comes on standard input."""
    end_with_server()
    job = json.loads(sys.stdin.readline())
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the reward prints must not mix with the answers
    threading.Thread(target=_end_with_input, daemon=True).start()

    def tell(message: Mapping[str, Any]) -> None:
        print(json.dumps(message), file=answers, flush=True)

    try:
        tell(result_of(job, tell))
    except KeyboardInterrupt:
        os._exit(130)


def result_of(job: Mapping[str, Any], tell: Tell) -> dict[str, Any]:
    """Do a job and return ``{"result": ...}``, or ``{"error": ..., "details": ...}`` where it raised an error."""
    sys.path += [folder for folder in job.get("folders", ()) if folder not in sys.path]
    try:
        with Run.open(job["run"]) as run:
            return {"result": _try(run, job, tell) if job["kind"] == "try" else _ask(run, job)}
    except RewardError as error:
        details = str(error).replace(f"{Path(job['run']).resolve().parent}/", "")
        return {"error": in_one_line(details), "details": details}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {in_one_line(str(error))}", "details": str(error)}


def in_one_line(text: str) -> str:
    """Return an error's first and last lines as one, with the line number in a file that does not import."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) < 2:
        return text.strip()
    file = lines[0].partition(" does not import")[0].strip("'")
    places = re.findall(rf'File "{re.escape(file)}", line (\d+)', text)
    where = f" (line {places[-1]})" if places else ""
    return f"{lines[0]} {lines[-1]}{where}"


def difference_row(difference: Difference) -> dict[str, Any]:
    """Return a difference ready for the page, with the beginnings of long texts."""
    row = {**difference.as_json(), "notes": difference.told_notes}
    for example in row["examples"]:
        for name in ("prompt", "completion"):
            text = example[name]
            if not isinstance(text, str):
                text = json.dumps(text, ensure_ascii=False, default=repr)
            example[name] = shortened(text, _TEXT_CHARS)
        example["example"] = {
            name: value if isinstance(value, int | float | None) else shortened(str(value), _TEXT_CHARS)
            for name, value in example["example"].items()
        }
    return row


def _try(run: Run, job: Mapping[str, Any], tell: Tell) -> dict[str, Any]:
    """Return what changes where one version takes the place of another on stored completions."""
    name = job["reward"]

    def load(reference: str) -> RewardSet:
        return resolve_set({name: reference})

    steps = job.get("steps")
    stored = choose(run, None if steps is None else (steps[0], steps[1]), job.get("split") or "train")
    old, new = (subject_of(run, version, load) for version in (job["old"], job["new"]))
    options = {name: job.get(name) for name in ("weight", "limit", "workers")}
    return difference_row(of_run(run, old, new, stored, tick=_Ticks(tell), examples=SHOWN, **options))


def _ask(run: Run, job: Mapping[str, Any]) -> dict[str, Any]:
    """Check a change on the run's last completions, and ask the training for it; its answer is in the record."""
    wish = Wish(job["reward"], Action(job["action"]), job.get("new"), job.get("weight"))
    (answer,) = update(run, [wish], wait_s=0.0, workers=job.get("workers"))
    difference = None if answer.difference is None else difference_row(answer.difference)
    return {"change": answer.change, "notes": list(answer.notes), "difference": difference}


class _Ticks:
    """Tells how far the scoring is, not more often than a person can see."""

    def __init__(self, tell: Tell) -> None:
        self._tell, self._last_s = tell, 0.0

    def __call__(self, done: int, total: int, failed: int = 0) -> None:
        now = time.monotonic()
        if now - self._last_s >= _TICK_S or done == total:
            self._last_s = now
            self._tell({"done": done, "total": total, "failed": failed})


def _end_with_input() -> None:
    """Wait for the end of standard input, whose writer is gone then; interrupt the main thread, and end the process."""
    while os.read(0, 1024):
        pass
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)  # lets it end its workers
    time.sleep(_GRACE_S)
    os._exit(130)


if __name__ == "__main__":
    main()
