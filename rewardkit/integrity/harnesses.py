"""What a harness is for the suite: it is handed a task and a completion, and says whether that passes.

Harnesses of other projects stand in :mod:`.ready` and this house's own in :mod:`.own_verdicts`; a harness of one's own
is a function, a command line or an address, see :mod:`.targets`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from .secret_task import SecretTask


class GradedText(NamedTuple):
    """A completion as a harness is handed it.

    Attributes:
        text: Its text; empty where a folder is graded.
        files: The files that an agent left, by name; they lie in the folder too.
        folder: A folder for it alone, which is the current one.
    """

    text: str
    files: Mapping[str, str]
    folder: str


class HarnessVerdict(NamedTuple):
    """What a harness says of a completion.

    Attributes:
        passed: Whether it passes.
        detail: What else the harness says, in a few words.
    """

    passed: bool
    detail: str = ""


class Grade(Protocol):
    """Grades one completion; what it raises is no verdict."""

    def __call__(self, completion: GradedText, /) -> HarnessVerdict: ...


@dataclass(frozen=True)
class Harness:
    """A harness that the suite can examine.

    Attributes:
        name: By which it is asked for.
        build: Loads it for a task, and returns what grades.
        shape: What it is handed, one of ``SHAPES``.
        language: What its completions are written in.
        packages: Distributions whose versions the report has, the first being its own.
        note: Which function decides, and how a pass is read.
        warning: What the project itself says of hostile code, with where.
        is_inline: Whether it isolates completions itself, and must not be forked once it is loaded.
        has_own_walls: Whether it makes namespaces of its own, for which the suite's leave no room.
        frame: For texts: how an answer is written, with ``ANSWER`` for it.
    """

    name: str
    build: Callable[[SecretTask], Grade]
    shape: str = "call"
    language: str = "python"
    packages: tuple[str, ...] = ()
    note: str = ""
    warning: str = ""
    is_inline: bool = False
    has_own_walls: bool = False
    frame: str = "ANSWER"
