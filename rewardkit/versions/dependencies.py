"""What a function's source reaches: the definitions, constants and imported modules of the user's own that it uses.

Only source files are read; nothing is imported or run. What is chosen at run time, such as ``getattr(module, name)``,
is not seen, but a module that is used as a whole counts as a whole.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
from collections import deque
from pathlib import Path

from rewardkit.run_code import Sources
from rewardkit.versions.names_used import ImportTarget, Use
from rewardkit.versions.own_modules import Module, Place, find_below, find_from, is_own, read

MOST_BYTES = 2_000_000
"""Bytes of source that are parsed for one reward; further files count by their bytes. It bounds the time to seconds."""


class Dependencies:
    """Collects what definitions use, from one start or several.

    Args:
        sources: What the files are.
        home: Folder of an installed package that counts as own, since it holds the reward itself.

    Attributes:
        entries: What was found, in the order in which it was met: tuples of plain values without any path.
    """

    def __init__(self, sources: Sources, home: Path | None = None) -> None:
        self.entries: list[object] = []
        self._sources = sources
        self._home = home
        self._numbers: dict[int, int] = {}
        self._modules: list[Module] = []  # holds them, because their ids are keys
        self._seen: set[tuple[object, ...]] = set()
        self._bytes: dict[Path, int] = {}
        self._waiting: deque[tuple[Module, ast.AST]] = deque()

    def start(self, module: Module, node: ast.AST) -> list[str]:
        """Take in a definition of a module and all that it uses; return the names that the source does not bind.

        Source that is in no file, such as a notebook's cell, is followed to its imports alone: its other names are
        returned.
        """
        self._note(module, node)
        unknown = []
        for use in module.fragment(node).uses:
            is_followed = module.file is not None or use.target is not None
            if not (is_followed and self._follow(module, use)):
                unknown.append(use.name)
        self._follow_waiting()
        return unknown

    def start_module(self, module: Module) -> None:
        """Take in a whole module, and all that it uses."""
        self._take_whole(module)
        self._follow_waiting()

    def _follow_waiting(self) -> None:
        """Follow what the definitions use that wait; a name that nothing binds is noted as unknown."""
        while self._waiting:
            module, node = self._waiting.popleft()
            for use in module.fragment(node).uses:
                if not self._follow(module, use) and not hasattr(builtins, use.name):
                    self._add_once("unknown", self._number(module), use.name)

    def _follow(self, module: Module, use: Use) -> bool:
        """Take in what a name of a module leads to; return whether the module's source tells."""
        if not self._first_time("use", id(module), use):
            return True  # it was followed before, and packages may take a name from each other in a circle
        self._modules.append(module)
        if use.target is not None:
            self._import(module, use.target, use.attributes)
            return True
        if use.name == "globals" and not module.binds(use.name):
            self._take_whole(module)
            return True
        for target in module.imports.get(use.name, ()):
            self._import(module, target, use.attributes)
        for statement in module.bound(use.name):
            self._take(module, statement)
        if module.binds(use.name):
            return True
        return self._through_stars(module, use)

    def _through_stars(self, module: Module, use: Use) -> bool:
        """Follow a name through the module's ``from … import *``; return whether one of them has it."""
        are_bound = [self._through_star(module, star, use) for star in module.stars]  # all, for the last one binds it
        return any(are_bound)

    def _through_star(self, module: Module, star: ImportTarget, use: Use) -> bool:
        """Follow a name through one ``from … import *``; return whether the module that it names has it."""
        origin = find_from(module.file, star)
        source = self._own_module(origin)
        if source is None:
            self._add_once("foreign", star.module, star.level, use.name)
            return False
        if not self._first_time("star", id(source), use):
            return False  # two modules that take all of each other
        return self._follow(source, use)

    def _import(self, module: Module, target: ImportTarget, attributes: tuple[str, ...]) -> None:
        """Take in what an import leads to; one that leads to a module of others is noted by its name."""
        origin = find_from(module.file, target)
        if origin is None or (self._own_module(origin) is None and origin.file is not None):
            self._add_once("foreign", target.module, target.level, target.name)
        elif target.name is None:
            self._take_from(origin, attributes, target)
        else:
            self._take_from(origin, (target.name, *attributes), target)

    def _take_from(self, origin: Place, names: tuple[str, ...], target: ImportTarget) -> None:
        """Take in what a dotted name means below a module: one of its names, a submodule, or the whole."""
        source = self._own_module(origin)
        if not names:
            if source is not None:
                self._take_whole(source)
            return
        if source is not None and source.binds(names[0]):
            self._follow(source, Use(names[0], names[1:]))
            return
        below = find_below(origin, names[0])
        if below is not None:
            self._take_from(below, names[1:], target)
        elif source is None or not self._through_stars(source, Use(names[0], names[1:])):
            self._add_once("foreign", target.module, target.level, names)

    def _own_module(self, origin: Place | None) -> Module | None:
        """Return a place's module if it is the user's own and parsed; past :data:`MOST_BYTES` its bytes count alone."""
        if origin is None or origin.file is None or not is_own(origin.file, self._home):
            return None
        if origin.file not in self._bytes:
            if sum(self._bytes.values()) > MOST_BYTES:
                self._take_bytes(origin.file)
                return None
            self._bytes[origin.file] = len(self._sources.data(origin.file) or b"")
        module = read(origin.file, self._sources)
        if module is None:
            self._take_bytes(origin.file)
        return module

    def _take_bytes(self, file: Path) -> None:
        """Take in a file without looking into it."""
        if self._first_time("bytes", file):
            self.entries.append(("bytes", hashlib.sha256(self._sources.data(file) or b"").hexdigest()))

    def _take_whole(self, module: Module) -> None:
        for statement in module.statements:
            self._take(module, statement)

    def _take(self, module: Module, statement: ast.stmt) -> None:
        is_import = isinstance(statement, ast.Import | ast.ImportFrom)  # its names are followed where they are used
        if not is_import and self._note(module, statement):
            self._waiting.append((module, statement))

    def _note(self, module: Module, node: ast.AST) -> bool:
        """Add a piece of source to the entries, once; return whether it is new."""
        if not self._first_time("source", id(node)):
            return False
        self._modules.append(module)
        self.entries.append((self._number(module), module.fragment(node).digest))
        return True

    def _number(self, module: Module) -> int:
        """Return a module's number, in the order in which modules were met: entries bear no paths."""
        return self._numbers.setdefault(id(module), len(self._numbers))

    def _first_time(self, *key: object) -> bool:
        """Return whether a key was not met before, and remember it."""
        if key in self._seen:
            return False
        self._seen.add(key)
        return True

    def _add_once(self, *entry: object) -> None:
        """Add an entry unless it is there already."""
        if self._first_time(*entry):
            self.entries.append(entry)
