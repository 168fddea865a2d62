"""The tests of a folder by Node.js's own runner, in one process."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path

from sandbox.languages.javascript import OPTIONS
from sandbox.languages.language import Program
from sandbox.projects.project import FOLDER, Project, placed

_MAIN, _REPORTER = "rewardkit-main.mjs", "rewardkit-reporter.mjs"


def node_project(files: Mapping[str, bytes], modules: Sequence[str], mark: str) -> Project:
    """Return the program that runs files of tests, which ``node --test`` would each give a process of its own.

    Args:
        files: All files, by name.
        modules: Those that have tests.
        mark: What stands before each line on a test.
    """
    options = (*OPTIONS, f"--test-reporter={{scratch}}/{_REPORTER}")
    program = Program(
        {name: _text(name) for name in (_MAIN, _REPORTER)},
        command=("{node}", *options, f"{{scratch}}/{_MAIN}"),
    )
    return Project("javascript", program, placed(files), (FOLDER, mark, *modules))


@functools.cache
def _text(name: str) -> str:
    return Path(__file__).with_name(name.removeprefix("rewardkit-")).read_text(encoding="utf-8")
