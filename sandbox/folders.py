"""Private folders among the temporary files: each names its maker, and folders whose maker has ended are swept away.

*Covered:* the temporary directory is open to everyone, and what lies in a folder may have been made by untrusted code,
some of which may still run. A folder is swept only if it belongs to this user and nobody else may enter it, and what
it holds is removed by a helper that may touch nothing else (:mod:`sandbox.jail.scratch`).

*Not covered:* folders of another process namespace are not judged: containers may share one directory, but not their
process ids. Neither is a folder whose maker's process id is in use again; it goes once that one has ended.
"""

from __future__ import annotations

import contextlib
import glob
import os
import select
import signal
import stat
import sys
import tempfile
from pathlib import Path

__all__ = ["make", "of_user", "remove", "shared", "sweep"]

_HELPER = "import sys; sys.path.insert(0, {root!r}); from sandbox.jail import scratch; scratch.main({folder})"
_FOLDER = 3  # descriptor on which the helper is given the folder
_HELP_S = 5.0  # seconds that emptying a folder may take
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def make(kind: str) -> str:
    """Make a folder of this process, whose name begins with the kind."""
    return tempfile.mkdtemp(prefix=f"{_prefix(kind)}{os.getpid()}-")


def shared(kind: str, owner: int, name: str) -> str:
    """Make a folder that several processes of this user share, or return the one that is there.

    Args:
        kind: How its name begins.
        owner: The process whose end makes it a folder to be swept away.
        name: What tells it from other folders of that owner.

    Raises:
        PermissionError: Something that is not this user's alone has that name.
    """
    return _own(os.path.join(tempfile.gettempdir(), f"{_prefix(kind)}{owner}-{name}"))


def of_user(name: str) -> str:
    """Make a folder that all processes of this user share, or return the one that is there; it is never swept away.

    Raises:
        PermissionError: Something that is not this user's alone has that name.
    """
    return _own(os.path.join(tempfile.gettempdir(), f"{name}-{os.geteuid()}"))


def _own(folder: str) -> str:
    """Make a folder that this user alone may enter, or return the one that is there."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    about = os.lstat(folder)
    if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.geteuid() or stat.S_IMODE(about.st_mode) & 0o077:
        raise PermissionError(f"{folder} is not this user's own folder; remove it")
    return folder


def sweep(kind: str) -> None:
    """Remove the folders of that kind whose makers have ended."""
    prefix = _prefix(kind)
    for folder in glob.glob(os.path.join(glob.escape(tempfile.gettempdir()), f"{prefix}*")):
        number = os.path.basename(folder)[len(prefix) :].split("-")[0]
        if number.isdigit() and not os.path.exists(f"/proc/{number}"):
            remove(folder)


def remove(folder: str, *inner: str) -> None:
    """Remove a folder if it is this user's own, however deeply its contents are nested; otherwise leave it.

    ``inner`` names directories in it that are probably empty; removing these here spares a process that helps.
    """
    with contextlib.suppress(OSError):
        opened = os.open(folder, _OPEN)
        try:
            about = os.fstat(opened)
            if about.st_uid != os.geteuid() or stat.S_IMODE(about.st_mode) & 0o077:
                return
            os.fchmod(opened, 0o700)
            for name in inner:
                with contextlib.suppress(OSError):
                    os.rmdir(name, dir_fd=opened)
            if os.listdir(opened):
                _empty(opened)
        finally:
            os.close(opened)
        os.rmdir(folder)


def _empty(folder: int) -> None:
    """Have a directory emptied by a process that may do nothing else, for a bounded time."""
    root = str(Path(__file__).resolve().parent.parent)
    command = [sys.executable, "-I", "-S", "-B", "-c", _HELPER.format(root=root, folder=_FOLDER)]
    aside = max(folder, _FOLDER) + 1  # a descriptor that is duplicated onto itself would be closed
    actions = [(os.POSIX_SPAWN_DUP2, folder, aside), (os.POSIX_SPAWN_DUP2, aside, _FOLDER)]
    helper = os.posix_spawn(sys.executable, command, {}, file_actions=actions)
    try:
        pidfd = os.pidfd_open(helper)
        try:
            poll = select.poll()
            poll.register(pidfd, select.POLLIN)
            poll.poll(_HELP_S * 1000)
        finally:
            os.close(pidfd)
    finally:
        os.kill(helper, signal.SIGKILL)
        os.waitpid(helper, 0)


def _prefix(kind: str) -> str:
    """Return how the folders of this process namespace begin."""
    with contextlib.suppress(OSError):
        return f"{kind}{os.stat('/proc/self/ns/pid').st_ino}-"
    return f"{kind}0-"
