"""The directory in which evaluations run: how much it holds, and that the next one finds it as if new.

What code has put there is listed and removed in children (:mod:`sandbox.jail.scratch`), so that no name of it stays in
the memory that later evaluations inherit.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time

from sandbox.inside.children import Children, wait_readable
from sandbox.jail import kernel, scratch

FOLDER = "work"  # the directory of evaluations, in one that they may not change
CLEAN_S = 2.0  # seconds that emptying it may take; after that the zygote ends, and its client empties it

_CHECK_S = 0.05  # seconds between two looks at what it holds
_NO_ENTRIES = 48  # bytes of a listing that has only the directory itself and the one above
_O_NOATIME = getattr(os, "O_NOATIME", 0)


class WorkFolder:
    """The directory of evaluations, made in ``above``, the scratch directory of the jail."""

    def __init__(self, above: str, children: Children) -> None:
        self.path = os.path.join(above, FOLDER)
        self._children = children
        self._above = os.open(above, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._folder = -1
        self._names = ctypes.create_string_buffer(512)
        self._checker: tuple[int, int] | None = None
        self._checked_at = 0.0
        self._make()

    def _make(self) -> None:
        """Make the directory of the next evaluations, and let them change nothing of the one above."""
        os.fchmod(self._above, 0o700)
        os.mkdir(FOLDER, 0o700, dir_fd=self._above)
        os.fchmod(self._above, 0o500)
        if self._folder >= 0:
            os.close(self._folder)
        options = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW | _O_NOATIME
        self._folder = os.open(FOLDER, options, dir_fd=self._above)
        self._list = kernel.Prepared("getdents64", self._folder, ctypes.addressof(self._names), 512)
        self._shape = self._marks()[:2]
        self._forget_times()

    def is_within(self, most_bytes: int) -> bool:
        """Return whether no check has found more than ``most_bytes``; start the next one, in a child, when due."""
        if self._checker is not None:
            process, pidfd = self._checker
            if not wait_readable(pidfd, 0):
                return True
            self._checker = None
            os.close(pidfd)
            return self._children.reap(process)[0] == 0
        # by its marks: to list a directory is to wait for all the threads that change it
        if time.monotonic() - self._checked_at >= _CHECK_S and self._marks() != self._made:
            self._checked_at = time.monotonic()
            try:
                self._checker = self._children.fork_to(lambda: scratch.check_used(self._folder, most_bytes))
            except OSError:  # there cannot be another process: the names that the check reads stay in this one
                self._children.worn = True
                try:
                    scratch.check_used(self._folder, most_bytes)
                except OSError:
                    return False
        return True

    def end_check(self) -> None:
        """End a check that is under way."""
        if self._checker is not None:
            (process, pidfd), self._checker = self._checker, None
            self._children.end(process, pidfd)

    def is_untouched(self) -> bool:
        """Return whether nothing was put there or removed, by the directory's times, which a child cannot set."""
        return self._marks() == self._made

    def is_as_made(self) -> bool:
        """Return whether the directory is empty and has not grown; if so, reset its times."""
        if not self._is_empty() or self._marks()[:2] != self._shape:
            return False
        self._forget_times()
        return True

    def clean(self) -> bool:
        """Make the directory as new; return whether that was possible."""
        if not self.empty():
            return False
        if not self.is_as_made():  # it has grown
            self.remove()
            self._make()
        return True

    def empty(self) -> bool:
        """Empty the directory; return whether that was done in time, and nothing stayed in this process either."""
        if self._children.worn:
            return False
        if self._is_empty():
            return True
        process, pidfd = self._children.fork_to(lambda: scratch.empty(self._folder))
        try:
            if not wait_readable(pidfd, CLEAN_S):
                os.kill(process, signal.SIGKILL)
        finally:
            os.close(pidfd)
        return self._children.reap(process)[0] == 0

    def remove(self) -> None:
        """Remove the directory, which is empty."""
        os.fchmod(self._above, 0o700)
        os.rmdir(FOLDER, dir_fd=self._above)

    def _forget_times(self) -> None:
        """Reset the directory's times, so that any later change shows, however soon it comes."""
        os.utime(self._folder, ns=(0, 0))
        self._made = self._marks()

    def _marks(self) -> tuple[int, ...]:
        """Return the directory's size, links and times, which an evaluation can change and a later one could see."""
        about = os.fstat(self._folder)
        return about.st_size, about.st_nlink, about.st_atime_ns, about.st_mtime_ns, about.st_ctime_ns

    def _is_empty(self) -> bool:
        """Return whether the directory is empty; no name of a file in it stays in memory."""
        os.lseek(self._folder, 0, os.SEEK_SET)
        try:
            return self._list() <= _NO_ENTRIES and self._list() == 0
        except OSError:  # a name that has no room
            return False
        finally:
            ctypes.memset(self._names, 0, len(self._names))
