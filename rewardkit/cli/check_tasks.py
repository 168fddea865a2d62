"""``rewardkit check TASKS``: whether tasks in Harbor's form accept their solutions and refuse what solves nothing."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from rewardkit.cli.exits import FAILED, NOT_JUDGED, finish
from rewardkit.cli.progress import told_progress
from rewardkit.cli.render import NONE, fold, screen, table
from rewardkit.errors import SuiteError
from rewardkit.harbor.examine import TaskExamination, examine_task
from rewardkit.harbor.harbor_verdict import HarborVerdict
from rewardkit.harbor.task import from_harbor
from rewardkit.shown.text import plain, shortened

_FOLDERS = 3  # that are graded of each task besides the changed solutions
_SHOWN = 10
_SHOWN_MUTANTS = 3
_NUMBERS_WIDTH = 48


def check_tasks(folders: Sequence[Path], mutants: int, *, as_json: bool) -> None:
    """Examine the tasks of folders, print a table of them, and end with the exit code."""
    examinations: list[TaskExamination] = []
    total = len(folders) * (_FOLDERS + mutants)
    with told_progress("check") as tick:
        for number, folder in enumerate(folders):
            graded = itertools.count(number * (_FOLDERS + mutants) + 1)
            on_graded = functools.partial(_count, tick, graded, total)
            examinations.append(_examined(folder, mutants, on_graded))
        tick(total, total, sum(not examination.is_ok for examination in examinations))
    code = 0 if all(examination.is_ok for examination in examinations) else FAILED
    if not code and all(examination.needs for examination in examinations):
        code = NOT_JUDGED
    result = {"tasks": [_as_json(examination) for examination in examinations]}
    finish(result, lambda: _print(examinations), as_json=as_json, code=code)


def _count(tick: Callable[[int, int], None], graded: Iterator[int], total: int) -> None:
    tick(next(graded), total)


def _examined(folder: Path, mutants: int, on_graded: Callable[[], None]) -> TaskExamination:
    try:
        return examine_task(from_harbor(folder), mutants, on_graded)
    except SuiteError as wrong:
        return TaskExamination(folder.name, error=str(wrong))


def _as_json(examination: TaskExamination) -> dict[str, Any]:
    verdicts = {
        name: verdict and {"status": verdict.status, "reason": verdict.reason(), "digest": verdict.digest}
        for name, verdict in (
            ("solution", examination.solution), ("start", examination.start), ("empty", examination.empty),
        )
    }  # fmt: skip
    return {
        "task": examination.task,
        "ok": examination.is_ok,
        **verdicts,
        "mutants": examination.mutants,
        "survivors": examination.survivors,
        "needs": list(examination.needs),
        "untried": examination.untried,
        "faults": [*([examination.error] if examination.error else []), *examination.faults()],
    }


def _print(examinations: Sequence[TaskExamination]) -> None:
    console = screen()
    console.fitted_table(functools.partial(_table, examinations, console.width), ["empty"])
    faulty = [examination for examination in examinations if not examination.is_ok]
    for examination in faulty[:_SHOWN]:
        for fault in [examination.error] if examination.error else examination.faults():
            console.say((f"{examination.task}: ", "bold"), plain(shortened(fault, 400)), fit="wrap")
    notes = [(examination.task, note) for examination in examinations if (note := _note(examination))]
    for task, note in notes[:_SHOWN]:
        console.say((f"{task}: ", "bold"), ("warning: ", "yellow"), plain(shortened(note, 400)), fit="wrap")
    if len(examinations) > 1:
        tried = sum(not examination.needs and not examination.error for examination in examinations)
        counts = f"{tried:,} of {len(examinations):,} tasks tried, {len(faulty):,} with a fault"
        console.say(f"{counts}; --json has all", fit="wrap")


def _note(examination: TaskExamination) -> str:
    """Return what a user should know of a task that is not at fault; ``""`` for nothing."""
    if examination.needs:
        return f"not tried, for it needs {'; '.join(examination.needs[:3])}"
    if examination.untried:
        return f"its solution was not tried: {examination.untried}"
    if examination.survivors:
        listed = "; ".join(examination.survivors[:_SHOWN_MUTANTS])
        return f"{len(examination.survivors)} of {examination.mutants} changed solutions pass: {listed}"
    return ""


def _table(examinations: Sequence[TaskExamination], width: int, left_out: Collection[str]) -> Table:
    names = ["task", "solution", "start", "empty", "mutants\npassing"]
    room = max(16, width - _NUMBERS_WIDTH)
    rows = []
    for examination in examinations:
        survivors = f"{len(examination.survivors)} of {examination.mutants}"
        cells: list[str | Text] = [
            Text(fold(shortened(examination.task, 60), room), style="bold"),
            _cell(examination.solution, wanted=True, is_tried=not examination.needs),
            _cell(examination.start, wanted=False),
            _cell(examination.empty, wanted=False),
            Text(survivors, style="yellow" if examination.survivors else "") if examination.mutants else NONE,
        ]
        rows.append([cell for name, cell in zip(names, cells, strict=True) if name not in left_out])
    return table(*(name for name in names if name not in left_out), left=1, rows=rows)


def _cell(verdict: HarborVerdict | None, *, wanted: bool, is_tried: bool = True) -> Text:
    if verdict is None:
        return Text(NONE if is_tried else "needs image")
    return Text(str(verdict.status), style="" if verdict.passed is wanted else "red")
