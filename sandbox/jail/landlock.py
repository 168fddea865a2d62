"""Landlock: which files a process may open; network, and signals to processes outside, are denied."""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Iterable

from sandbox.jail import kernel

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_CHAR, _MAKE_SOCK, _MAKE_FIFO, _MAKE_BLOCK, _MAKE_SYM = 1 << 6, 1 << 9, 1 << 10, 1 << 11, 1 << 12
_ALL_OF_ABI_1 = (1 << 13) - 1
_REFER, _TRUNCATE, _IOCTL_DEVICE = 1 << 13, 1 << 14, 1 << 15  # ABI 2, 3, 5
_BIND_TCP, _CONNECT_TCP = 1 << 0, 1 << 1  # ABI 4
_SCOPE_ABSTRACT_UNIX, _SCOPE_SIGNAL = 1 << 0, 1 << 1  # ABI 6
_FILE_RIGHTS = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEVICE
_PATH_BENEATH = 1


def abi() -> int:
    """Return the kernel's Landlock version; 0 where it lacks Landlock or Landlock is switched off."""
    try:
        return kernel.syscall("landlock_create_ruleset", None, 0, 1)
    except (OSError, KeyError):
        return 0


def restrict(readable: Iterable[str], writable: Iterable[str | int] = (), devices: Iterable[str] = ()) -> None:
    """Put this process under Landlock, for ever; raise ``OSError`` if the kernel has none, or refuses.

    Existing ``readable`` paths may be read, ``devices`` also written; in ``writable`` directories (or descriptors) all
    is allowed but to execute and to make special files.
    """
    ruleset = rules(readable, writable, devices)
    try:
        enter(ruleset)
    finally:
        os.close(ruleset)


def enter(ruleset: int) -> None:
    """Put this process under the rules on a descriptor, for ever."""
    kernel.no_new_privileges()
    kernel.syscall("landlock_restrict_self", ruleset, 0)


def rules(
    readable: Iterable[str],
    writable: Iterable[str | int] = (),
    devices: Iterable[str] = (),
    executable: Iterable[str] = (),
) -> int:
    """Return the descriptor of rules as :func:`restrict` has them, under which ``executable`` paths may be executed.

    A rule holds for what is mounted below its path later, too, but not for what is mounted on the path itself.
    """
    version = abi()
    if version < 1:
        raise OSError(errno.ENOSYS, "Landlock is not there, or not in the kernel's lsm= list")
    handled = _ALL_OF_ABI_1
    handled |= _REFER if version >= 2 else 0
    handled |= _TRUNCATE if version >= 3 else 0
    handled |= _IOCTL_DEVICE if version >= 5 else 0
    attributes = struct.pack("=Q", handled)
    if version >= 4:
        attributes += struct.pack("=Q", _BIND_TCP | _CONNECT_TCP)
    if version >= 6:
        attributes += struct.pack("=Q", _SCOPE_ABSTRACT_UNIX | _SCOPE_SIGNAL)
    ruleset = kernel.syscall("landlock_create_ruleset", attributes, len(attributes), 0)
    special = _EXECUTE | _MAKE_CHAR | _MAKE_BLOCK | _MAKE_SOCK | _MAKE_FIFO
    sets: tuple[tuple[Iterable[str | int], int], ...] = (
        (readable, _READ_FILE | _READ_DIR),
        (executable, _READ_FILE | _READ_DIR | _EXECUTE),
        (writable, handled & ~special),
        (devices, _READ_FILE | _WRITE_FILE),
    )
    try:
        for paths, rights in sets:
            for path in paths:
                _add(ruleset, path, rights & handled)
    except BaseException:
        os.close(ruleset)
        raise
    return ruleset


def _add(ruleset: int, path: str | int, rights: int) -> None:
    """Allow rights beneath a path or a descriptor, if it exists; a file takes only those that files have."""
    try:
        descriptor = os.dup(path) if isinstance(path, int) else os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return
    try:
        if not os.path.isdir(path):
            rights &= _FILE_RIGHTS
        kernel.syscall("landlock_add_rule", ruleset, _PATH_BENEATH, struct.pack("=Qi", rights, descriptor), 0)
    finally:
        os.close(descriptor)
