"""Tries a task on what must pass and what must fail: its solution, its start, nothing, and its solution changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from rewardkit.errors import SuiteError
from rewardkit.examinations.code_mutants import code_mutants
from rewardkit.harbor.harbor_verdict import HarborVerdict
from rewardkit.harbor.task import HarborTask
from rewardkit.jailed.sealed import SealedWorkspace
from rewardkit.suites.suite_verdict import SuiteStatus


@dataclass(slots=True)
class TaskExamination:
    """What was seen of a task.

    Attributes:
        task: Its name.
        needs: What it needs that only an image has; it is not tried then.
        solution: What became of its solution; ``None`` where it is missing or cannot be run.
        start: What became of the folder as the agent finds it.
        empty: What became of an empty folder.
        mutants: How many changed solutions were tried.
        survivors: Those that pass: the file, and what was changed.
        untried: Why the solution was not tried; ``""`` where it was.
        error: Why the task could not be read.
    """

    task: str
    needs: tuple[str, ...] = ()
    solution: HarborVerdict | None = None
    start: HarborVerdict | None = None
    empty: HarborVerdict | None = None
    mutants: int = 0
    survivors: list[str] = field(default_factory=list)
    untried: str = ""
    error: str = ""

    @property
    def is_ok(self) -> bool:
        """Whether nothing says that the task is at fault."""
        return not self.error and not self.faults()

    def faults(self) -> list[str]:
        """Return what makes the task useless for training, in words; what was not tried is no fault."""
        faults = [] if self.solution is None or self.solution.passed else [f"its solution: {self.solution.reason()}"]
        for verdict, folder in ((self.start, "what the agent finds"), (self.empty, "an empty folder")):
            if verdict is not None and verdict.passed:
                faults.append(f"{folder} passes")
        verdicts = [verdict for verdict in (self.solution, self.start, self.empty) if verdict is not None]
        unsuitable = [verdict.error for verdict in verdicts if verdict.status is SuiteStatus.UNSUITABLE]
        return list(dict.fromkeys([*faults, *unsuitable[:1]]))


def examine_task(task: HarborTask, most_mutants: int, on_graded: Callable[[], None] = lambda: None) -> TaskExamination:
    """Grade a task's solution, its start, an empty folder, and so many changed solutions.

    Args:
        task: The task.
        most_mutants: Changed solutions to try.
        on_graded: Called after each folder that was graded.
    """
    examination = TaskExamination(task.name, task.needs)
    if task.needs:
        return examination

    def graded(files: Mapping[str, bytes], confidence: float = 1e-3) -> HarborVerdict:
        verdict = task.grade(SealedWorkspace(files), confidence=confidence)
        on_graded()
        return verdict

    examination.start = graded(task.start)
    examination.empty = graded({})
    try:
        solved = task.solved().files
    except SuiteError as wrong:
        examination.untried = str(wrong)
        return examination
    examination.solution = graded(solved)
    if examination.solution.passed:
        for name, label, source in _changed_solutions(task.start, solved, most_mutants):
            examination.mutants += 1
            if graded({**solved, name: source.encode()}, confidence=1.0).passed:
                examination.survivors.append(f"{name}: {label}")
    return examination


def _changed_solutions(
    start: Mapping[str, bytes], solved: Mapping[str, bytes], most: int
) -> Iterator[tuple[str, str, str]]:
    """Yield a file's name, what is changed in it and its text, for the files that the solution wrote, each in turn."""
    names = [name for name, content in solved.items() if name.endswith(".py") and start.get(name) != content]
    for name in names:
        share = -(-most // len(names))
        for mutant in code_mutants(solved[name].decode("utf-8", "replace"), share):
            yield name, mutant.label, mutant.source
