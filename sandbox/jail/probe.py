"""Attacks that a disposable child tries before a level is trusted: a level is proved, not assumed."""

from __future__ import annotations

import json
import os
import secrets
import tempfile
from collections.abc import Callable

from sandbox.jail import kernel
from sandbox.jail.levels import Level

FILES, SYSTEM = "files", "system"  # which part of the jail an attack is on: Landlock and namespaces, or seccomp

ATTACKS: dict[str, tuple[str, str]] = {
    "read a file outside": (FILES, "open('/etc/passwd').read()"),
    "read another process": (FILES, "open(f'/proc/{os.getppid()}/environ', 'rb').read()"),
    "write its own memory by /proc": (FILES, "open('/proc/self/mem', 'r+b')"),
    "write outside its directory": (FILES, "write(outside)"),
    "list home directories": (FILES, "os.listdir('/home')"),
    "open a TCP socket": (SYSTEM, "socket.socket(socket.AF_INET, socket.SOCK_STREAM)"),
    "open a UDP socket": (SYSTEM, "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)"),
    "open a unix socket": (SYSTEM, "socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)"),
    "start a process": (SYSTEM, "os.fork() or os._exit(0)"),
    "execute a program": (SYSTEM, "exec_denied()"),
    "signal the process that started it": (SYSTEM, "os.kill(os.getppid(), 0)"),
    "trace a process": (SYSTEM, "call('ptrace', 0, 0, 0, 0)"),
    "make an anonymous file to execute": (SYSTEM, "os.memfd_create('x')"),
    "make namespaces": (SYSTEM, "call('unshare', 0x10000000)"),
    "mount a file system": (SYSTEM, "call('mount', b'none', b'/', b'tmpfs', 0, None)"),
    "set up io_uring": (SYSTEM, "call('io_uring_setup', 1, bytes(120))"),
    "load a BPF program": (SYSTEM, "call('bpf', 5, bytes(120), 120)"),
    "use the kernel's keys": (SYSTEM, "call('keyctl', 0, -3, 1)"),
    "handle page faults": (SYSTEM, "call('userfaultfd', 1)"),
    "give a thread a table of descriptors of its own": (SYSTEM, "call('close_range', 1 << 20, 1 << 20, 2)"),
    "map memory that stays when it is unmapped": (SYSTEM, "call('mmap', 0, 4096, 3, 0x21, -1, 0)"),
    "wait for several descriptors at once": (SYSTEM, "call('pselect6', 2, None, None, None, bytes(16), None)"),
    "raise its limits": (SYSTEM, "resource.setrlimit(resource.RLIMIT_NOFILE, (1 << 15, 1 << 15))"),
}
"""Attacks by what they would achieve: the part of the jail, and an expression that raises where it holds."""

_PROBE = """
import ctypes, errno, json, os, resource, socket
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
numbers = {numbers!r}
def call(name, *arguments):
    passed = [ctypes.c_char_p(a) if isinstance(a, bytes) else ctypes.c_long(a or 0) for a in arguments]
    if libc.syscall(ctypes.c_long(numbers[name]), *passed) < 0:
        raise OSError(ctypes.get_errno(), name)
outside = {outside!r}
def write(path):
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    try:
        os.unlink(path)
    except OSError:
        pass
def exec_denied():
    try:
        os.execv("/nonexistent", ["x"])
    except OSError as error:
        if error.errno in (errno.EPERM, errno.EACCES):
            raise
succeeded = []
for name, attack in {attacks!r}.items():
    try:
        eval(attack)
    except (OSError, ValueError):
        continue
    succeeded.append(name)
print(json.dumps(succeeded))
"""


def attacks_on(level: Level) -> dict[str, str]:
    """Return the attacks that must fail at a level."""
    if level is Level.NONE:
        return {}
    parts = (SYSTEM,) if level is Level.SECCOMP_ONLY else (FILES, SYSTEM)
    return {name: attack for name, (part, attack) in ATTACKS.items() if part in parts}


def succeeded(run: Callable[[str], str], level: Level) -> list[str]:
    """Try the attacks on a level and return those that succeeded; ``run`` runs a program and returns its output."""
    attacks = attacks_on(level)
    if not attacks:
        return []
    name = f"rewardkit-probe-{secrets.token_hex(8)}"  # at random, so that nobody can be there first
    outside = os.path.join(tempfile.gettempdir(), name)
    names: list[str] = json.loads(run(_PROBE.format(numbers=kernel.NUMBERS, attacks=attacks, outside=outside)))
    return names
