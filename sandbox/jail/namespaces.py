"""Namespaces: a process tree, network, users and file system of its own."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable

from sandbox.jail import kernel
from sandbox.jail.scratch import MOST_FILES

_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 1, 2, 4, 8
_MS_REMOUNT, _MS_BIND, _MS_REC, _MS_PRIVATE = 32, 4096, 16384, 1 << 18
_MNT_DETACH = 2
_CAPABILITY_VERSION_3 = 0x20080522
_NOBODY = 65534
NOBODY = 1  # the same user in the new namespace
_CAPABILITIES = 64
SCRATCH = "/scratch"  # the evaluation's directory in the new file system
PROC = "/proc"
ARTEFACTS = "/store/artefacts"  # what compilers made, for root of the namespace alone
_SCRATCH_INODES = MOST_FILES + 16  # with those of the directory itself


def unshare() -> bool:
    """Give this process new namespaces, in which it is root and its next child process 1; raise ``OSError`` if refused.

    Return whether ``nobody`` is mapped too, as user 1, for :func:`step_down`: that needs a caller that is root outside.
    """
    user, group = os.getuid(), os.getgid()
    flags = kernel.CLONE_NEWUSER | kernel.CLONE_NEWPID | kernel.CLONE_NEWNET
    flags |= kernel.CLONE_NEWIPC | kernel.CLONE_NEWUTS | kernel.CLONE_NEWNS
    if user != 0:
        kernel.syscall("unshare", flags)
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"0 {user} 1")
        _write("/proc/self/gid_map", f"0 {group} 1")
        return False
    reader, writer = os.pipe()
    parent = os.getpid()
    helper = os.fork()
    if helper == 0:  # only a process outside may map a second user
        code = 1
        try:
            os.close(writer)
            if os.read(reader, 1):
                _write(f"/proc/{parent}/uid_map", f"0 0 1\n1 {_NOBODY} 1")
                _write(f"/proc/{parent}/gid_map", f"0 0 1\n1 {_NOBODY} 1")
                code = 0
        finally:
            os._exit(code)
    os.close(reader)
    try:
        kernel.syscall("unshare", flags)
        os.write(writer, b"x")
    finally:
        os.close(writer)
        _, status = os.waitpid(helper, 0)
    if status != 0:
        raise OSError("the users of the new namespace could not be mapped")
    return True


def step_down(to_nobody: bool) -> None:
    """Become nobody where that user is mapped, and give up every capability."""
    if to_nobody:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    drop_capabilities()


def drop_capabilities() -> None:
    """Give up every capability, for this process and all that it starts."""
    for capability in range(_CAPABILITIES):
        try:
            kernel.prctl(kernel.PR_CAPBSET_DROP, capability)
        except OSError:
            break  # the kernel has no more capabilities, or this user has none to give up
    kernel.syscall("capset", struct.pack("=Ii", _CAPABILITY_VERSION_3, 0), bytes(24))


def new_root(mount_point: str, readable: Iterable[str], devices: Iterable[str], scratch_bytes: int, owner: int) -> None:
    """Exchange the file system for one that holds :data:`SCRATCH` and, read-only, the ``readable`` paths that exist.

    It is built on ``mount_point``, an empty directory. The scratch directory belongs to ``owner``, a user and group of
    the new namespace. Raise ``OSError`` if a mount is refused.
    """
    _begin_root(mount_point, readable, devices)
    os.mkdir(mount_point + SCRATCH, 0o755)
    mount_scratch(mount_point + SCRATCH, scratch_bytes, owner)
    _enter_root(mount_point)


def new_root_of_programs(
    mount_point: str,
    readable: Iterable[str],
    devices: Iterable[str],
    artefacts: str,
    folders: Iterable[str],
    *,
    proc: bool,
) -> None:
    """Exchange the file system for one with the ``readable`` paths, and with empty ``folders`` for later mounts.

    The folder ``artefacts`` is bound to :data:`ARTEFACTS`, which only root of the namespace may enter. With ``proc``
    there is a ``/proc`` of the namespace, in which others' processes are hidden: the kernel allows that mount only
    while the machine's own is still there.
    """
    _begin_root(mount_point, readable, devices)
    os.mkdir(mount_point + os.path.dirname(ARTEFACTS), 0o700)
    os.mkdir(mount_point + ARTEFACTS, 0o700)
    _mount(artefacts, mount_point + ARTEFACTS, None, _MS_BIND)
    _mount(None, mount_point + ARTEFACTS, None, _MS_BIND | _MS_REMOUNT | _MS_RDONLY | _MS_NOSUID | _MS_NODEV)
    for folder in folders:
        os.makedirs(mount_point + folder, 0o755)
    if proc:
        os.mkdir(mount_point + PROC, 0o755)
        _mount("proc", mount_point + PROC, "proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC, "hidepid=invisible")
    _enter_root(mount_point)


def mount_scratch(folder: str, scratch_bytes: int, owner: int) -> None:
    """Mount an empty directory of so many bytes that belongs to ``owner``."""
    size = f"size={scratch_bytes},nr_inodes={_SCRATCH_INODES},mode=700"
    _mount("tmpfs", folder, "tmpfs", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC, size)
    os.chown(folder, owner, owner)


def mount_again(source: str, folder: str) -> None:
    """Mount a directory at another place too, read-only."""
    _mount(source, folder, None, _MS_BIND)
    _mount(None, folder, None, _MS_BIND | _MS_REMOUNT | _MS_RDONLY | _MS_NOSUID | _MS_NODEV)


def unmount(folder: str) -> None:
    """Unmount a directory, at once for all who do not use it."""
    kernel.syscall("umount2", os.fsencode(folder), _MNT_DETACH)


def _begin_root(mount_point: str, readable: Iterable[str], devices: Iterable[str]) -> None:
    _mount(None, "/", None, _MS_REC | _MS_PRIVATE)
    _mount("tmpfs", mount_point, "tmpfs", _MS_NOSUID | _MS_NODEV, "size=1m,mode=755")
    bound: list[str] = []
    for path in sorted(set(readable)):
        if not any(os.path.realpath(path).startswith(f"{folder}/") for folder in bound):
            _bind(mount_point, path, _MS_RDONLY | _MS_NOSUID | _MS_NODEV)
            bound += [path] if os.path.isdir(path) and not os.path.islink(path) else []
    for path in devices:
        _bind(mount_point, path, 0)


def _enter_root(mount_point: str) -> None:
    os.chdir(mount_point)
    kernel.syscall("pivot_root", b".", b".")
    kernel.syscall("umount2", b".", _MNT_DETACH)
    os.chdir("/")
    _mount(None, "/", None, _MS_REMOUNT | _MS_BIND | _MS_RDONLY | _MS_NOSUID | _MS_NODEV)


def _bind(mount_point: str, path: str, flags: int) -> None:
    """Bind a path into the new root; copy a link to a directory."""
    if not os.path.exists(path):
        return
    target = mount_point + path
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.islink(path) and os.path.isdir(path):
        if not os.path.lexists(target):
            os.symlink(os.readlink(path), target)
        return
    if os.path.isdir(path):
        os.makedirs(target, exist_ok=True)
    else:
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
    _mount(path, target, None, _MS_BIND | _MS_REC)
    if flags:
        _mount(None, target, None, _MS_BIND | _MS_REMOUNT | flags)


def _mount(source: str | None, target: str, kind: str | None, flags: int, data: str = "") -> None:
    try:
        names = (None if name is None else os.fsencode(name) for name in (source, target, kind))
        kernel.syscall("mount", *names, flags, data.encode())
    except OSError as error:
        raise OSError(error.errno, f"mount {source or ''} on {target}: {os.strerror(error.errno or 0)}") from None


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)
