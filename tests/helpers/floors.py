"""Prints the lowest versions that ``pyproject.toml`` accepts as pip's constraints: ``make test-floors`` installs them.

The versions that it names must be there, since pip takes ``==`` by its word.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(?:\[[\w,]+\])?>=(?P<floor>[\w.]+)")
RAISED = {"numpy": "2.0"}  # py3langid of the extra `rewards` needs it; the core alone works from the floor on


def floors(pyproject: Path, extras: Iterable[str]) -> Iterator[str]:
    """Yield a constraint for each dependency of the core and of some extras."""
    project = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]
    optional = project["optional-dependencies"]
    requirements = {*project["dependencies"], *(line for extra in extras for line in optional[extra])}
    for requirement in sorted(requirements):
        match = _REQUIREMENT.match(requirement)
        if match is not None:
            yield f"{match['name']}=={RAISED.get(match['name'], match['floor'])}"


if __name__ == "__main__":
    print(*floors(Path(__file__).parents[2] / "pyproject.toml", sys.argv[1:]), sep="\n")
