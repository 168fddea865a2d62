"""Levels of isolation, and how a zygote enters its own."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Sequence
from enum import StrEnum

from sandbox.jail import bpf, kernel, landlock, namespaces, seccomp

SHARED_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache", "/usr/share/zoneinfo")
"""Read-only in the jail, beside the standard library: what extension modules are linked with."""
DEVICES = ("/dev/null", "/dev/urandom")
"""Not ``/dev/zero``: mapped and shared it is memory that no limit counts."""


class Level(StrEnum):
    """The levels of isolation."""

    STRICT = "strict"  # namespaces, Landlock, seccomp and resource limits
    STANDARD = "standard"  # the same without namespaces: needs no privilege, and works inside Docker's default profile
    SECCOMP_ONLY = "seccomp-only"  # seccomp and resource limits: files can be read and, where the user may, written
    NONE = "none"  # resource limits alone. No isolation.


def enter(level: Level, readable: Sequence[str], mount_point: str, scratch_bytes: int) -> str:
    """Put this process, and with ``strict`` a first child in its place, into the jail; raise ``OSError`` if refused.

    ``readable`` are directories besides :data:`SHARED_LIBRARIES`; ``mount_point`` is an empty directory of ours: the
    scratch directory, of ``scratch_bytes`` where the kernel can bound it, or the new root. Return its name inside.
    """
    visible = [*readable, *SHARED_LIBRARIES]
    scratch = mount_point
    if level is Level.STRICT:
        to_nobody = namespaces.unshare()
        become_first()
        namespaces.new_root(mount_point, visible, DEVICES, scratch_bytes, namespaces.NOBODY if to_nobody else 0)
        namespaces.step_down(to_nobody)
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)  # becoming another user has cleared it
        scratch = namespaces.SCRATCH
    elif level is not Level.NONE:
        namespaces.drop_capabilities()
    os.chdir(scratch)
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)  # its files under /proc are then not its user's
    with contextlib.suppress(OSError):  # of a huge page that is unmapped but for 4 KiB all would stay for a while
        kernel.prctl(kernel.PR_SET_THP_DISABLE, 1)
    if level in (Level.STRICT, Level.STANDARD):
        landlock.restrict(visible, [scratch], DEVICES)
    if level is not Level.NONE:
        bpf.Installer(seccomp.base_filter()).enter()
    return scratch


def become_first() -> None:
    """Go on in a child, which is process 1 of the new namespace; this process waits for its end, and ends."""
    child = os.fork()
    if child == 0:
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
        return
    os.closerange(3, 1 << 16)
    _, status = os.waitpid(child, 0)
    os._exit(os.waitstatus_to_exitcode(status) & 0x7F)
