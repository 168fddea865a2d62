"""Which modules of the user's own rewards import, at any depth and inside functions too: read, never run.

An installed package is not read. What identifies it is noted, so that another one is noticed.
"""

from __future__ import annotations

import logging
import re
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path

from rewardkit.run_code import FromText, InstalledPackage, RunCode, RunModule, Sources, digest_of_record
from rewardkit.transport import FILE_MODULES
from rewardkit.versions.own_modules import BUILTINS, Place, find_below, find_top, is_own, module_of

MOST_BYTES = 32 << 20
"""Bytes of all modules of a run; those beyond are read from the disk by each worker."""
_DYNAMIC = re.compile(rb"(?:import_module|__import__)\(\s*[\"']([A-Za-z_][\w.]*)[\"']")
_log = logging.getLogger("rewardkit")


def code_of(modules: Iterable[str], sources: Sources) -> RunCode:
    """Return the code that some modules need, themselves included, whose files are what ``sources`` has."""
    walk = _Walk(sources)
    for name in modules:
        walk.reach(name)
    return walk.finish()


class _Walk:
    """A walk from module to module along their imports."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._modules: dict[str, RunModule] = {}
        self._packages: dict[str, InstalledPackage] = {}
        self._locations: dict[str, Place | None] = {}
        self._records: dict[Path, list[Path]] = {}  # what installers noted, by the folder that they filled
        self._waiting: deque[str] = deque()
        self._bytes = 0

    def reach(self, name: str) -> None:
        """Take in a module by its dotted name, and the packages around it."""
        if name and name != "__main__" and name not in self._locations:
            self._locate(name)

    def finish(self) -> RunCode:
        """Return all that was reached, and what that imports."""
        while self._waiting:
            name = self._waiting.popleft()
            for target in _imports(name, self._modules[name]):
                self.reach(target)
        return RunCode(self._modules, self._packages)

    def _locate(self, name: str) -> Place | None:
        """Return where a module of the user's own lies; ``None`` for others."""
        if name not in self._locations:
            self._locations[name] = None  # meanwhile
            self._locations[name] = self._find(name)
        return self._locations[name]

    def _find(self, name: str) -> Place | None:
        """Find a module of the user's own and take in its text; ``None`` for another, whose package is noted."""
        if name.startswith(FILE_MODULES):
            loader = getattr(getattr(sys.modules.get(name), "__spec__", None), "loader", None)
            if isinstance(loader, FromText):
                self._take(name, RunModule(loader.path, loader.text))
            return None
        parent, _, tail = name.rpartition(".")
        above = self._locate(parent) if parent else None
        if parent and above is None:
            return None
        location = find_top(name) if above is None else find_below(above, tail)
        if location is None or location.file is None:
            return location
        if not is_own(location.file) or str(location.file).startswith(BUILTINS):
            self._note_package(name, location.file)
            return None
        text = self._sources.data(location.file)
        if text is not None:
            self._take(name, RunModule(str(location.file), text, location.file.name == "__init__.py"))
        return location

    def _take(self, name: str, module: RunModule) -> None:
        """Take in a module's text, unless all of them are too large."""
        self._bytes += len(module.text)
        if self._bytes > MOST_BYTES:
            self._bytes -= len(module.text)
            _log.warning(
                "%s: not kept for the run, whose modules have more than %s bytes: workers that start later read it "
                "from the disk", module.file, f"{MOST_BYTES:,}",
            )  # fmt: skip
            return
        self._modules[name] = module
        self._waiting.append(name)

    def _note_package(self, name: str, file: Path) -> None:
        """Note what identifies an installed package."""
        for folder in file.parents[: name.count(".") + 2]:
            if folder not in self._records:
                self._records[folder] = list(folder.glob("*.dist-info/RECORD"))
            record = _record_of(file.relative_to(folder), self._records[folder])
            digest = None if record is None else digest_of_record(str(record))
            if record is not None and digest is not None:
                distribution, _, version = record.parent.stem.partition("-")
                self._packages[name] = InstalledPackage(f"{distribution} {version}", str(record), digest)
                return


def _record_of(file: Path, records: list[Path]) -> Path | None:
    """Return which of the records has a file; those of a package's own name come first."""
    line = f"{file.as_posix()},".encode()
    name = file.parts[0].removesuffix(".py").lower()
    records = sorted(records, key=lambda record: record.parent.name.lower().partition("-")[0] != name)
    return next((record for record in records if line in record.read_bytes()), None)


def _imports(name: str, module: RunModule) -> Iterator[str]:
    """Return the dotted names of what a module imports, and of what may be modules in that."""
    yield from (match.decode() for match in _DYNAMIC.findall(module.text))
    parsed = module_of(Path(module.file), module.text)
    for target in () if parsed is None else parsed.every_import:
        base = ""
        if target.level:
            above = name.split(".")[: -target.level + module.is_package or None]
            if name.startswith(FILE_MODULES) or not above:
                continue  # an import that fails
            base = ".".join(above)
        dotted = ".".join(filter(None, (base, target.module)))
        yield dotted
        if target.name not in (None, "*"):
            yield f"{dotted}.{target.name}"
