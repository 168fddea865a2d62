"""A folder that an agent left, held open from the beginning, so that what is read of it lies in it.

*Covered:* the agent may still run, and exchange any file or folder for a link, a pipe or another one, the folder itself
included. The folder is opened once, step by step from the folder of workspaces above it, and every later step goes by
its descriptor and one name, without following links. Nothing but plain files is opened for reading. What an entry is
comes from ``stat`` and not from the listing, which on some file systems does not say.

*Not covered:* hard links to files elsewhere, which are plain files here too, and a file system that does not answer.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import NamedTuple

from rewardkit.errors import WorkspaceError

MOST_FILES = 10_000  # Files and folders that a workspace may have where they are listed
MOST_DEPTH = 64  # Folders that may lie in one another
_STEP = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe would wait for its other end
_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)  # it was removed, or became a file or a link
_OWN = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)  # of this process, and of no entry
_CHUNK = 1 << 20
_LEAST_CHUNK = 1 << 12  # of a file that grows meanwhile, or whose size the system does not know
_KINDS = {stat.S_IFLNK: "a link", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}


class FolderContents(NamedTuple):
    """What lies in a folder: the names of its plain files, what cannot be looked into, with the reasons, and others."""

    files: list[str]
    unreadable: dict[str, str]
    others: dict[str, str]
    """Links, devices, pipes and sockets, each with its kind."""


class OpenFolder:
    """A folder that is open from now on.

    Args:
        path: Where it is, absolute and without links.
        root: The folder of workspaces in which it lies.

    Raises:
        OSError: It cannot be opened, or a step on the way to it is a link by now.
    """

    def __init__(self, path: str, root: str) -> None:
        self.path = path
        step = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for part in filter(None, path[len(root) :].split(os.sep)):
                inner = os.open(part, os.O_PATH | _STEP, dir_fd=step)
                os.close(step)
                step = inner
            self._descriptor = os.open(".", os.O_RDONLY | _STEP, dir_fd=step)
        finally:
            os.close(step)
        status = os.fstat(self._descriptor)
        self.identity = (status.st_dev, status.st_ino)
        """Device and inode, which no other folder has."""

    def __del__(self) -> None:
        with suppress(AttributeError, OSError):
            os.close(self._descriptor)

    def check(self) -> None:
        """Raise WorkspaceError where the folder has been deleted; what was in it then reads as if it had never been."""
        if not os.fstat(self._descriptor).st_nlink:
            raise WorkspaceError(
                f"workspace {self.path!r:.200}: it has been deleted; keep it until its completion has been scored"
            )

    def listing(self) -> FolderContents:
        """Return its files, with those of the folders in it, in no order.

        Raises:
            WorkspaceError: It cannot be listed itself, has more than :data:`MOST_FILES`, or is deeper than
                :data:`MOST_DEPTH`.
        """
        listing = FolderContents([], {}, {})
        waiting, count = [""], 0
        while waiting:
            folder = waiting.pop()
            try:
                with self._folder(folder.split("/")[:-1]) as descriptor:
                    for name, mode in _entries(descriptor, listing.unreadable, folder):
                        count += 1
                        if count > MOST_FILES:
                            raise WorkspaceError(f"workspace {self.path!r}: more than {MOST_FILES:,} files and folders")
                        if stat.S_ISREG(mode):
                            listing.files.append(name)
                        elif stat.S_ISDIR(mode):
                            self._check_depth(name)
                            waiting.append(f"{name}/")
                        else:
                            listing.others[name] = _KINDS.get(stat.S_IFMT(mode), "no plain file")
            except OSError as refused:
                if not folder or refused.errno in _OWN:
                    self.check()
                    raise WorkspaceError(f"workspace {self.path!r}: {reason_of(refused)}") from None
                if refused.errno not in _GONE:
                    listing.unreadable[folder] = reason_of(refused)
        return listing

    def _check_depth(self, name: str) -> None:
        if name.count("/") >= MOST_DEPTH:
            raise WorkspaceError(f"workspace {self.path!r}: folders more than {MOST_DEPTH} deep")

    def is_file(self, parts: Sequence[str]) -> bool:
        """Return whether a plain file is there; raise OSError where the system cannot tell."""
        *folders, last = parts
        try:
            with self._folder(folders) as folder:
                return stat.S_ISREG(os.stat(last, dir_fd=folder, follow_symlinks=False).st_mode)
        except OSError as refused:
            if refused.errno in _GONE:
                return False
            raise

    def read(self, parts: Sequence[str], most_bytes: int) -> bytes | None:
        """Return a plain file's content; ``None`` where it has more bytes than this. Raises OSError for other files."""
        *folders, last = parts
        with self._folder(folders) as folder:
            return _read(folder, last, most_bytes)

    @contextmanager
    def reading(self) -> Iterator[Callable[[str, int], bytes | None]]:
        """Give a function that reads as :meth:`read`, by a name with ``/``, and keeps the last file's folder open.

        Files of one folder that follow each other take half of the time so.
        """
        with ExitStack() as stack:
            opened: list[tuple[str, int]] = []

            def read(name: str, most_bytes: int) -> bytes | None:
                above, _, last = name.rpartition("/")
                if not opened or opened[0][0] != above:
                    stack.close()
                    opened[:] = []
                    opened.append((above, stack.enter_context(self._folder(above.split("/") if above else []))))
                return _read(opened[0][1], last, most_bytes)

            yield read

    @contextmanager
    def _folder(self, parts: Sequence[str]) -> Iterator[int]:
        """Open a folder in it step by step, so that no link is followed on the way."""
        descriptor = os.open(".", os.O_RDONLY | _STEP, dir_fd=self._descriptor)
        try:
            for part in parts:
                inner = os.open(part, os.O_RDONLY | _STEP, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = inner
            yield descriptor
        finally:
            os.close(descriptor)


def _read(folder: int, name: str, most_bytes: int) -> bytes | None:
    """Return a plain file's content; ``None`` where it has more bytes than this. Raises OSError for other files."""
    descriptor = os.open(name, _FILE, dir_fd=folder)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "no plain file")
        content = bytearray()
        chunk_bytes = min(_CHUNK, max(status.st_size + 1, _LEAST_CHUNK))
        while len(content) <= most_bytes:
            chunk = os.read(descriptor, min(chunk_bytes, most_bytes + 1 - len(content)))
            if not chunk:
                return bytes(content)
            content += chunk
        return None
    finally:
        os.close(descriptor)


def _entries(descriptor: int, unreadable: dict[str, str], folder: str) -> Iterator[tuple[str, int]]:
    """Yield name and mode of each entry of an open folder; those that are gone again are left out."""
    with os.scandir(descriptor) as entries:
        for entry in entries:
            name = f"{folder}{entry.name}"
            try:
                mode = os.stat(entry.name, dir_fd=descriptor, follow_symlinks=False).st_mode
            except OSError as refused:
                if refused.errno not in _GONE:
                    unreadable[name] = reason_of(refused)
                continue
            yield name, mode


def reason_of(error: OSError) -> str:
    """Return in words why the system refuses a file."""
    if error.errno == errno.ELOOP:
        return "a link, which is not followed"
    if error.errno == errno.ENOTDIR:
        return "a link, or no folder, on the way to it"
    if error.errno == errno.ENXIO:
        return "no plain file"
    text = error.strerror or type(error).__name__
    return text[:1].lower() + text[1:]
