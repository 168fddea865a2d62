"""The scratch directory of evaluations: how much it holds, and emptying it.

*Covered:* code may still exchange directories with links while this looks and removes. Every step goes by the
descriptor of a directory that was opened without following links, and by a single name in it, so nothing outside of
the directory is listed, changed or removed. Where the kernel has Landlock, the process that empties is under it: a
zygote is, and :func:`main` is the helper of a process that is not.

*Not covered:* directories of another user, and those nested deeper than :data:`_DEEPEST` where the kernel does not
let Landlocked processes move directories (before Linux 5.19). They stay.
"""

from __future__ import annotations

import errno
import os
import stat

from sandbox.jail import kernel, landlock

MOST_FILES = 16_384  # files and folders in it
_DEEPEST = 64  # directories in each other, each with a descriptor while it is looked at
_MOVED = ".moved-"
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_SYMLINK_NOFOLLOW = 0x100
_REPLACED = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
"""The errors of opening a directory that was removed, or exchanged with a file or link, after it was listed."""


def main(folder: int) -> None:
    """Empty the directory on a descriptor, with no right to any other file. Never returns."""
    code = 1
    try:
        if landlock.abi():
            landlock.restrict((), [folder])
        empty(folder)
        code = 0
    finally:
        os._exit(code)


def check_used(folder: int, most_bytes: int) -> None:
    """Raise ``OSError`` if all files below a directory are too large together, too many, or too deeply nested."""
    total = entries_count = 0

    def look(directory: int, depth: int) -> None:
        """Add up what lies in a directory, and raise as soon as it is too much."""
        nonlocal total, entries_count
        os.lseek(directory, 0, os.SEEK_SET)  # wherever it has been read up to
        with os.scandir(directory) as entries:
            for entry in entries:
                entries_count += 1
                try:
                    about = os.stat(entry.name, dir_fd=directory, follow_symlinks=False)
                except FileNotFoundError:  # gone again
                    continue
                if not stat.S_ISDIR(about.st_mode):
                    total += about.st_size
                elif (inner := _open_inner(directory, entry.name)) is not None:
                    try:
                        look(inner, depth + 1)
                    finally:
                        os.close(inner)
                if total > most_bytes or entries_count > MOST_FILES or depth > _DEEPEST:
                    raise OSError(errno.ENOSPC, "the scratch directory is full")

    look(folder, 0)


def _open_inner(parent: int, name: str) -> int | None:
    """Open a directory in another; return ``None`` if it is no longer a directory."""
    try:
        return os.open(name, _OPEN, dir_fd=parent)
    except OSError as error:
        if error.errno in _REPLACED:
            return None
        raise


def empty(folder: int) -> None:
    """Empty a directory, given as a descriptor, or raise ``OSError``; deep directories are moved up first."""
    mover = _Mover(folder)
    while names := _names(folder):
        for name in names:
            _remove(folder, name, mover, _DEEPEST)


def _names(folder: int) -> list[str]:
    """List a directory from its beginning, wherever its descriptor has been read up to."""
    os.lseek(folder, 0, os.SEEK_SET)
    return os.listdir(folder)


class _Mover:
    """Moves directories into one, each under a name that nothing there has."""

    def __init__(self, folder: int) -> None:
        self._folder = folder
        self._number = 0

    def move(self, parent: int, name: str) -> None:
        """Move a directory under the next name that is free; raise ``OSError`` where it cannot be moved."""
        while True:
            self._number += 1
            try:
                return os.rename(name, f"{_MOVED}{self._number}", src_dir_fd=parent, dst_dir_fd=self._folder)
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):  # code has used the name too
                    raise


def _remove(parent: int, name: str, mover: _Mover, depth: int) -> None:
    """Remove one entry of a directory; one that is gone is removed."""
    try:
        return os.unlink(name, dir_fd=parent)
    except FileNotFoundError:
        return
    except (IsADirectoryError, PermissionError):
        pass  # the second is what POSIX says of a directory
    try:
        return os.rmdir(name, dir_fd=parent)
    except OSError as error:
        if error.errno in _REPLACED:
            return
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
    _unlock(parent, name)
    if depth == 0:
        return mover.move(parent, name)
    inner = _open_inner(parent, name)
    if inner is None:
        return
    try:
        for entry in os.listdir(inner):
            _remove(inner, entry, mover, depth - 1)
    finally:
        os.close(inner)
    try:
        os.rmdir(name, dir_fd=parent)
    except OSError as error:
        if error.errno not in (*_REPLACED, errno.ENOTEMPTY, errno.EEXIST):  # what is left, the next round sees
            raise


def _unlock(parent: int, name: str) -> None:
    """Let a directory's owner do everything in it.

    One that cannot be opened is changed by its name, never through a link; before Linux 6.6 by an O_PATH descriptor.
    """
    try:
        inner = _open_inner(parent, name)
    except PermissionError:
        try:
            kernel.syscall("fchmodat2", parent, os.fsencode(name), 0o700, _SYMLINK_NOFOLLOW)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.EOPNOTSUPP):  # gone, or a link by now
                return
            if error.errno not in (errno.ENOSYS, errno.EPERM):
                raise
            path = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
            try:
                os.chmod(f"/proc/self/fd/{path}", 0o700)  # the directory that was opened, wherever names lead by now
            finally:
                os.close(path)
        return
    if inner is not None:
        try:
            os.fchmod(inner, 0o700)
        finally:
            os.close(inner)
