"""Verdicts by content: of equal folders that the workers of one runtime have, the first is graded and the others wait.

*Covered:* the key has the digest of the folder and of the tests, and all that decides a verdict besides: expected
names, packages with their versions, settings, limits, the jail's level, the versions of Python and pytest. A verdict is
kept when a grading has come to its end; what the jail or the machine made fail is graded again. The folder of verdicts
is this user's alone, belongs to the process that began the workers, and is swept away after that process has ended.

*Not covered:* another process of this user can write there, as it can change the user's own programs. A pass that is
taken from here is the draw of canaries of the first grading, with its bound, and no further one.
"""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import fcntl
import functools
import hashlib
import itertools
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path

from rewardkit.errors import InfrastructureError
from rewardkit.jailed.jail import LEVEL_VARIABLE
from rewardkit.suites.suite_verdict import SuiteResult, SuiteStatus, SuiteVerdict
from rewardkit.versions.own_version import own_version
from sandbox import folders
from sandbox.workers import INSIDE, stopped

VERDICTS_VARIABLE = "REWARDKIT_VERDICTS"
"""Environment variable: ``keep``, the default, or ``off``, which grades each folder anew."""
MOST_VERDICTS = 4096
"""Verdicts that are kept; of more, those go that were not used for the longest time."""
_FOLDERS = "rewardkit-verdicts-"
_WAIT_S = 600.0  # seconds that one call waits for another that grades the same folder
_LOOK_S = 0.02
_SWEEP_EVERY = 64  # verdicts that a process keeps between two looks at their number
_writes = itertools.count(1)


def graded_once(parts: tuple[object, ...], grade: Callable[[], SuiteVerdict]) -> SuiteVerdict:
    """Return the verdict that was kept under a key, or grade and keep it; ``parts`` are values of which the key is.

    Raises:
        InfrastructureError: The variable names neither of the two; or what ``grade`` raises, and then nothing is kept.
    """
    folder = _folder()
    if folder is None:
        return grade()
    with contextlib.ExitStack() as stack:
        try:
            descriptor = stack.enter_context(_locked(folder / _key(parts)))
        except OSError:  # no room, or no right: it is graded without
            return grade()
        verdict = _read(descriptor)
        if verdict is not None:
            os.utime(descriptor)
            return dataclasses.replace(verdict, cached=True)
        verdict = grade()
        if _is_lasting(verdict):
            _write(descriptor, verdict, folder)
        return verdict


def _key(parts: tuple[object, ...]) -> str:
    return hashlib.sha256(repr(parts).encode("utf-8", "backslashreplace")).hexdigest()


def machine_parts() -> tuple[str, ...]:
    """Return what of the machine decides a verdict: the versions of Python, pytest and rewardkit, the jail's level."""
    return sys.version, _version("pytest"), own_version(), os.environ.get(LEVEL_VARIABLE, "")


@functools.cache
def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _is_lasting(verdict: SuiteVerdict) -> bool:
    """Return whether another grading would say the same: a run that was cut off may have met a slow machine."""
    return verdict.status is not SuiteStatus.FAILED or not verdict.error


def _folder() -> Path | None:
    """Return the folder that the workers of one runtime share, or this process's own; ``None`` where none is to be."""
    value = os.environ.get(VERDICTS_VARIABLE, "") or "keep"
    if value not in ("keep", "off"):
        raise InfrastructureError(f"{VERDICTS_VARIABLE}={value!r:.80}: expected 'keep' or 'off'")
    if value == "off":
        return None
    is_worker = bool(os.environ.get(INSIDE))
    try:
        return _shared_folder(os.getppid() if is_worker else os.getpid(), is_own=not is_worker)
    except OSError:
        return None


@functools.lru_cache(maxsize=4)
def _shared_folder(owner: int, *, is_own: bool) -> Path:
    """Make the folder of a process, all of whose workers have it; one of this very process goes when that exits."""
    folders.sweep(_FOLDERS)
    folder = Path(folders.shared(_FOLDERS, owner, "graded"))
    if is_own:

        @atexit.register
        def remove() -> None:
            if os.getpid() == owner:  # and not a forked child, which inherits this
                shutil.rmtree(folder, ignore_errors=True)

    return folder


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[int]:
    """Open a verdict's file for one call at a time, or after a long wait without; raise OSError where that fails.

    The clock of the call stands still while it waits: the time is that of the call that grades.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        if not _try_lock(descriptor):
            with stopped():
                until = time.monotonic() + _WAIT_S
                while not _try_lock(descriptor) and time.monotonic() < until:
                    time.sleep(_LOOK_S)
        yield descriptor
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read(descriptor: int) -> SuiteVerdict | None:
    """Return the verdict of a file; ``None`` for one that is empty, or was cut off as it was written."""
    try:
        values = json.loads(os.pread(descriptor, os.fstat(descriptor).st_size, 0))
        results = tuple(SuiteResult(**result) for result in values.pop("results"))
        groups = {group: tuple(names) for group, names in values.pop("groups").items()}
        status = SuiteStatus(values.pop("status"))
        return SuiteVerdict(status, results, groups, **{**values, "weak": tuple(values["weak"])})
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def _write(descriptor: int, verdict: SuiteVerdict, folder: Path) -> None:
    data = json.dumps(dataclasses.asdict(verdict)).encode()
    with contextlib.suppress(OSError):  # a full disk: it is graded again
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, data, 0)
    if next(_writes) % _SWEEP_EVERY == 0:
        _sweep(folder)


def _sweep(folder: Path) -> None:
    """Remove what was not used for the longest time, where there is too much."""
    used: list[tuple[float, str]] = []
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            with contextlib.suppress(OSError):
                used.append((entry.stat().st_mtime, entry.path))
    for _, path in sorted(used)[: -MOST_VERDICTS * 3 // 4] if len(used) > MOST_VERDICTS else []:
        with contextlib.suppress(OSError):
            os.unlink(path)
