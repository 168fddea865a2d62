"""A program made of a folder, and what it is not made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from sandbox.languages.language import Program

FOLDER = "project"
"""The folder of a jail's directory in which the files of a project lie."""


class Project(NamedTuple):
    """A folder's tests as a program.

    Attributes:
        language: The language's name.
        program: What is compiled or run.
        files: What lies beside it when it runs, by name.
        arguments: Its arguments.
    """

    language: str
    program: Program
    files: Mapping[str, bytes]
    arguments: tuple[str, ...] = ()


class ProjectError(ValueError):
    """A folder cannot be made into a program; the text says why."""


def placed(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return a project's files by their names in the jail's directory."""
    return {f"{FOLDER}/{name}": content for name, content in files.items()}
