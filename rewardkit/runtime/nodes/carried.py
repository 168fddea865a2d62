"""The files of one's own that travel to other machines: reward files, and the modules and packages that they import.

A path leads nowhere on another machine, or to another file. So the text travels, lies there under a folder named by
its digest, and is imported as it is here. Installed packages do not travel; they are to be on every machine.
"""

from __future__ import annotations

import ast
import hashlib
import os
import shutil
import sys
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rewardkit.errors import RewardTransportError
from rewardkit.transport import FILE_MODULES
from rewardkit.versions.names_used import ImportTarget
from rewardkit.versions.own_modules import BUILTINS, find_from, home_of, is_own

MOST_BYTES = 32 << 20
"""Bytes of all files that travel."""
_FOLDER = "rewardkit_carried"  # of reward files, which no import finds by name


@dataclass(slots=True)
class Carried:
    """Files that travel.

    Attributes:
        files: Their content, by the path below the folder in which they will lie.
        places: Of reward files, that path by the one here.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)


def carried_with(functions: Iterable[object]) -> Carried:
    """Return the files that functions need on another machine.

    Raises:
        RewardTransportError: They are more than 32 MB; names the largest package.
    """
    carried = Carried()
    waiting: deque[Path] = deque()
    for function in functions:
        for module in _modules_of(function):
            file = Path(module.__file__)
            if module.__name__.startswith(FILE_MODULES):
                digest = hashlib.sha256(str(file).encode()).hexdigest()[:12]
                carried.places[str(file)] = f"{_FOLDER}/{digest}/{file.name}"
                _add(carried, carried.places[str(file)], file)
            elif module.__name__ != "__main__":
                _take(carried, file)
            waiting.append(file)
    met: set[Path] = set()
    while waiting:
        file = waiting.popleft()
        if file not in met:
            met.add(file)
            for found in _imported_by(file):
                _take(carried, found)
                waiting.append(found)
    return carried


def _modules_of(function: Any) -> Iterator[Any]:
    """Return the modules of one's own that a function is from, or the object that is called like one."""
    inner = getattr(function, "func", function)
    for name in {getattr(inner, "__module__", None), type(inner).__module__}:
        module = sys.modules.get(name or "")
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and file.endswith(".py") and _travels(Path(file)):
            yield module


def _travels(file: Path) -> bool:
    return is_own(file) and not os.path.realpath(file).startswith(BUILTINS)


def _imported_by(file: Path) -> Iterator[Path]:
    """Return the files of one's own that a file imports, also inside its functions."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        for target in _targets(node):
            place = find_from(file, target)
            if place is not None and place.file is not None and _travels(place.file):
                yield place.file


def _targets(node: ast.AST) -> Iterator[ImportTarget]:
    if isinstance(node, ast.Import):
        yield from (ImportTarget(alias.name) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield ImportTarget(node.module or "", node.level)
        dotted = f"{node.module}." if node.module else ""
        yield from (ImportTarget(dotted + alias.name, node.level) for alias in node.names if alias.name != "*")


def _take(carried: Carried, file: Path) -> None:
    """Take a module, or the whole package that it is in: a package may read its own files."""
    home = home_of(file)
    if home.is_file():
        _add(carried, _below_path(home), home)
        return
    top = _below_path(home)
    if f"{top}/__init__.py" in carried.files:
        return
    for one in sorted(home.rglob("*")):
        if one.is_file() and "__pycache__" not in one.parts:
            _add(carried, f"{top}/{one.relative_to(home)}", one)


def _below_path(home: Path) -> str:
    """Return a module's or package's place below the folder on ``sys.path`` that it was found in.

    For one inside folders without ``__init__.py`` that is not its name alone.
    """
    entries = {os.path.realpath(entry or os.getcwd()) for entry in sys.path}
    for folder in home.parents:
        if str(folder) in entries:
            return str(home.relative_to(folder))
    return home.name


def _add(carried: Carried, place: str, file: Path) -> None:
    try:
        carried.files[place] = file.read_bytes()
    except OSError as reason:
        raise RewardTransportError(f"{file} cannot travel to other machines: {reason.strerror or reason}") from reason
    held = sum(map(len, carried.files.values()))
    if held > MOST_BYTES:
        raise RewardTransportError(
            f"the reward's own files cannot travel to other machines: with {file} they have {held:,} bytes, more than "
            f"{MOST_BYTES:,}. Install their package on every machine"
        )


def unpack(files: Mapping[str, bytes], folder: Path) -> Path:
    """Write files that travelled below a folder, once for the same content, and return where they lie."""
    digest = hashlib.sha256()
    for place, content in sorted(files.items()):
        digest.update(f"{place}\0{len(content)}\0".encode())
        digest.update(content)
    home = folder / digest.hexdigest()[:24]
    if home.is_dir():
        return home
    folder.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix="new-", dir=folder))
    try:
        for place, content in files.items():
            (fresh / place).parent.mkdir(parents=True, exist_ok=True)
            (fresh / place).write_bytes(content)
        fresh.rename(home)
    except OSError:
        if not home.is_dir():  # another process wrote the same meanwhile
            raise
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return home
