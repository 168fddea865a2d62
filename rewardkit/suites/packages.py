"""The installed packages that a task's tests may import, found by the names of their distributions."""

from __future__ import annotations

import functools
import importlib.metadata as metadata
import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from rewardkit.errors import SuiteError

_NAME = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")
_MODULE_FILES = (".py", ".so")


class InstalledPackages(NamedTuple):
    """Where installed packages lie.

    Attributes:
        places: Each top-level module's file and, of a package, its folder, by name.
        about: The folders of the distributions' metadata.
        readable: Everything that code must be able to read for them.
    """

    places: dict[str, list[str]]
    about: list[str]
    readable: list[str]


@functools.lru_cache(maxsize=256)
def installed_packages(names: tuple[str, ...]) -> InstalledPackages:
    """Return what distributions consist of, with all that they require.

    Raises:
        SuiteError: One that is named is not installed, or is installed as a link to its sources.
    """
    packages = InstalledPackages({}, [], [])
    waiting, seen = list(names), set[str]()
    while waiting:
        name = waiting.pop()
        plain = re.sub(r"[-_.]+", "-", name).lower()
        if plain in seen:
            continue
        seen.add(plain)
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            if name in names:
                raise SuiteError(f"package {name!r:.80}: not installed here; pip install it, or leave it out") from None
            continue  # something that it requires elsewhere, or for an extra
        _add(packages, distribution, name)
        waiting += _required(distribution)
    return packages


def missing_packages(names: Iterable[str]) -> list[str]:
    """Return the names of distributions that are not installed here, or that the jail cannot read."""
    missing = []
    for name in names:
        try:
            installed_packages((name,))
        except SuiteError:
            missing.append(name)
    return missing


def _required(distribution: metadata.Distribution) -> list[str]:
    """Return the names of what a distribution requires, extras aside; markers are not read: what is absent is left."""
    requirements = [
        text for text in distribution.requires or () if "extra ==" not in text.replace("extra==", "extra ==")
    ]
    return [match[1] for text in requirements if (match := _NAME.match(text))]


def _add(packages: InstalledPackages, distribution: metadata.Distribution, name: str) -> None:
    tops = {file.parts[0] for file in distribution.files or () if file.parts[0] not in ("..", "__pycache__")}
    site = Path(str(distribution.locate_file("")))
    count = len(packages.places)
    for top in sorted(tops):
        path = site / top
        if top.endswith((".dist-info", ".egg-info")):
            packages.about.append(str(path))
        elif path.is_dir():
            initial = path / "__init__.py"
            packages.places[top] = [str(initial) if initial.exists() else "", str(path)]
        elif top.endswith(_MODULE_FILES):
            packages.places[top.split(".")[0]] = [str(path)]
        else:
            continue
        packages.readable.append(str(path))
    if len(packages.places) == count and f"{sys.prefix}{os.sep}" in f"{site}{os.sep}":
        raise SuiteError(
            f"package {name!r:.80}: installed as a link to its sources, which the jail cannot read; pip install it"
        )


def module_names(packages: Iterable[str]) -> list[str]:
    """Return the names of the modules that distributions bring."""
    return list(installed_packages(tuple(packages)).places)
