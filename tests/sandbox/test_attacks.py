"""Every attack on the jail, each by its own name: none reaches its aim, and the next evaluation works.

All are tried at strict; those that use up their time are tried at standard with ``--full``, two of them always.

An attack is a program that runs in the jail. It prints ``BREACH`` where something succeeded that must not, and
``tried`` at its end, so that one that fails for another reason is no proof. What it aims at lies outside and is
looked at from outside: a file that everyone may read and write, sockets that listen, a process of the same user.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import platform
import socket
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest
from patience import wait_for

from sandbox import ExecutionResult, ExecutionStatus, Limits, Sandbox
from sandbox.jail import kernel

pytestmark = pytest.mark.slow  # a minute or two

SECRET = "what lies outside\n"
LIMITS = Limits(timeout_s=60, memory_bytes=256 << 20, output_bytes=1 << 18, file_bytes=4 << 20)
BRIEF = dataclasses.replace(LIMITS, timeout_s=1.0, cpu_s=2)
"""Of attacks that may use up their time."""
OK, NONZERO, TIMEOUT, MEMORY, OUTPUT_LIMIT, KILLED, FORBIDDEN = (
    ExecutionStatus(name) for name in ("ok", "nonzero", "timeout", "memory", "output_limit", "killed", "forbidden")
)

PRELUDE = """
import ctypes, errno, json, os, signal, socket, struct, sys, threading, time
W = json.loads(sys.argv[1])
N = W["numbers"]
libc = ctypes.CDLL(None, use_errno=True)

def call(name, *arguments):
    number = name if isinstance(name, int) else N[name]
    passed = [a if isinstance(a, (bytes, ctypes.Array)) or a is None else ctypes.c_long(a) for a in arguments]
    result = libc.syscall(ctypes.c_long(number), *passed)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result

def refused(*acts):
    for place, act in enumerate(acts):
        try:
            gained = act()
        except OSError as error:
            if error.errno in (errno.EFAULT, errno.EINVAL, errno.EBADF, errno.ESRCH):
                print("BREACH? the kernel looked at it:", place, error)
        else:
            print("BREACH", place, repr(gained)[:200])

def hidden(*acts):
    for place, act in enumerate(acts):
        try:
            print("BREACH", place, repr(act())[:200])
        except OSError:
            pass
"""
"""``refused`` is for acts of which the kernel must not even look at the arguments, ``hidden`` for any failure."""

EXTRA_NUMBERS = {
    "x86_64": {
        "modify_ldt": 154, "iopl": 172, "ioperm": 173, "chown": 92, "rt_sigqueueinfo": 129, "setuid": 105,
        "sched_setscheduler": 144, "swapon": 167, "reboot": 169, "sethostname": 170, "init_module": 175,
        "setxattr": 188, "io_setup": 206, "remap_file_pages": 216, "timer_create": 222, "clock_settime": 227,
        "mq_open": 240, "kexec_load": 246, "request_key": 249, "ioprio_set": 251, "inotify_init": 253,
        "migrate_pages": 256, "mknodat": 259, "fchownat": 260, "splice": 275, "vmsplice": 278, "move_pages": 279,
        "signalfd4": 289, "rt_tgsigqueueinfo": 297, "fanotify_init": 300, "name_to_handle_at": 303,
        "open_by_handle_at": 304, "process_vm_writev": 311, "kcmp": 312, "finit_module": 313, "sched_setattr": 314,
        "shmat": 30, "sendmsg": 46,
    },
    "aarch64": {
        "io_setup": 0, "setxattr": 5, "inotify_init1": 26, "mknodat": 33, "ioprio_set": 30, "fchownat": 54,
        "signalfd4": 74, "vmsplice": 75, "splice": 76, "kexec_load": 104, "init_module": 105, "timer_create": 107,
        "clock_settime": 112, "sched_setscheduler": 119, "rt_sigqueueinfo": 138, "reboot": 142, "setuid": 146,
        "sethostname": 161, "mq_open": 180, "shmat": 196, "sendmsg": 211, "request_key": 218, "swapon": 224,
        "remap_file_pages": 234, "migrate_pages": 238, "move_pages": 239, "rt_tgsigqueueinfo": 240,
        "fanotify_init": 262, "name_to_handle_at": 264, "open_by_handle_at": 265, "process_vm_writev": 271,
        "kcmp": 272, "finit_module": 273, "sched_setattr": 274,
    },
}  # fmt: skip
NEW_NUMBERS = {
    "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428, "move_mount": 429, "fsopen": 430,
    "fsconfig": 431, "fsmount": 432, "fspick": 433, "process_madvise": 440, "mount_setattr": 442, "memfd_secret": 447,
    "process_mrelease": 448, "futex_waitv": 449, "fchmodat2": 452, "map_shadow_stack": 453, "setxattrat": 463,
}  # fmt: skip
"""Of every machine alike."""


class Attack(NamedTuple):
    """A program for the jail, and how it may end: ``ok`` where it handles what it meets."""

    source: str
    ends: tuple[ExecutionStatus, ...] = (OK,)
    completes: bool = True

    @property
    def limits(self) -> Limits:
        """What it may use: little time where it may end by that."""
        return BRIEF if TIMEOUT in self.ends else LIMITS


ATTACKS: dict[str, Attack] = {}


def attack(name: str, source: str, *ends: ExecutionStatus) -> None:
    """Note an attack; one that is to end in another way than by itself does not come to its last line."""
    ATTACKS[name] = Attack(textwrap.dedent(source), ends or (OK,), not ends)


# Files.

attack("read-etc-passwd", "refused(lambda: open('/etc/passwd').read())")
attack("read-etc-shadow", "refused(lambda: open('/etc/shadow').read(), lambda: open('/etc/ssh/sshd_config').read())")
attack("list-homes", "hidden(lambda: os.listdir('/root'), lambda: os.listdir('/home'), lambda: os.listdir('/tmp'))")
attack("read-the-clients-folder", "hidden(lambda: os.listdir(W['client_folder']), lambda: open(W['tests']).read())")
attack("read-a-file-open-to-all", "hidden(lambda: open(W['secret']).read(), lambda: os.listdir(W['outside']))")
attack("write-a-file-open-to-all", "hidden(*[lambda m=m: open(W['secret'], m) for m in ('w', 'a', 'r+')])")
attack(
    "create-files-outside",
    """
    hidden(
        lambda: open(W["outside"] + "/new", "w"),
        lambda: open("/tmp/rewardkit-attack", "x"),
        lambda: open("/dev/shm/rewardkit-attack", "x"),
        lambda: open("/var/tmp/rewardkit-attack", "x"),
        lambda: os.open(W["outside"], os.O_TMPFILE | os.O_WRONLY),
    )
""",
)
attack("make-directories-outside", "hidden(lambda: os.mkdir(W['outside'] + '/d'), lambda: os.rmdir(W['empty']))")
attack(
    "symlink-then-read",
    """
    os.symlink(W["secret"], "link")
    hidden(lambda: open("link").read(), lambda: os.open("link", os.O_RDONLY))
""",
)
attack(
    "symlink-then-write",
    """
    os.symlink(W["secret"], "link")
    os.symlink(W["outside"] + "/new", "dangling")
    hidden(lambda: open("link", "a"), lambda: open("link", "w"), lambda: open("dangling", "w"))
""",
)
attack(
    "symlink-to-a-directory",
    """
    os.symlink(W["outside"], "folder")
    os.symlink("/", "root")
    hidden(lambda: os.listdir("folder"), lambda: open("folder/secret").read(), lambda: open("root/etc/passwd"),
           lambda: open("folder/new", "w"))
""",
)
attack(
    "hard-link-from-outside",
    """
    hidden(lambda: os.link(W["secret"], "link"), lambda: os.link(W["secret"], W["outside"] + "/second"))
    open("mine", "w").close()
    hidden(lambda: os.link("mine", W["outside"] + "/mine"))
""",
)
attack(
    "rename-across-the-border",
    """
    open("mine", "w").close()
    hidden(
        lambda: os.rename("mine", W["outside"] + "/mine"),
        lambda: os.rename("mine", W["secret"]),
        lambda: os.rename(W["secret"], "stolen"),
        lambda: os.rename(W["secret"], W["outside"] + "/moved"),
        lambda: call("renameat2", -100, b"mine\\0", -100, W["secret"].encode(), 2),
    )
""",
)
attack(
    "dot-dot",
    """
    deep = "../" * 40
    hidden(lambda: open(deep + "etc/passwd").read(), lambda: open(deep + W["secret"][1:]).read(),
           lambda: open("../rewardkit-attack", "w"), lambda: os.mkdir("../rewardkit-attack"))
""",
)
attack(
    "change-directory",
    """
    for folder in (W["outside"], "/etc", "/root", "/proc/1/root", "/proc/self/cwd"):
        try:
            os.chdir(folder)
        except OSError:
            continue
        hidden(lambda: os.listdir("."), lambda: open("secret").read(), lambda: open("passwd").read())
""",
)
attack(
    "path-descriptors",
    """
    for path in (W["outside"], "/", "/etc"):
        try:
            folder = os.open(path, os.O_PATH | os.O_DIRECTORY)
        except OSError:
            continue
        hidden(lambda: os.open("secret", os.O_RDONLY, dir_fd=folder), lambda: os.read(folder, 1),
               lambda: os.open("etc/passwd", os.O_RDONLY, dir_fd=folder), lambda: os.listdir(folder))
    hidden(lambda: call("openat2", -100, W["secret"].encode(), struct.pack("=QQQ", 0, 0, 0), 24))
""",
)
attack(
    "proc-self-mem",
    """
    hidden(lambda: open("/proc/self/mem", "r+b"), lambda: open("/proc/self/maps").read(),
           lambda: open("/proc/self/environ", "rb").read(), lambda: open("/proc/self/oom_score_adj", "w"))
""",
)
attack("proc-1", "hidden(*[lambda n=n: open('/proc/1/' + n, 'rb').read() for n in ('environ', 'maps', 'cmdline')])")
attack(
    "proc-of-the-client",
    """
    for process in (W["client"], W["victim"], os.getppid()):
        hidden(*[lambda n=n: open(f"/proc/{process}/{n}", "rb").read() for n in ("environ", "cmdline", "mem",
                "status")])
        hidden(lambda: os.listdir(f"/proc/{process}/fd"), lambda: os.listdir(f"/proc/{process}/root"))
""",
)
attack(
    "proc-self-fd",
    """
    # its own five it may open again; but nobody else's, and no other through them
    hidden(*[lambda n=n: os.open(f"/proc/self/fd/{n}", os.O_RDWR) for n in (3, *range(5, 20))])
    hidden(lambda: os.open("/proc/self/fd/0/../../environ", os.O_RDONLY), lambda: os.open("/proc/self/exe", os.O_RDWR))
    for process in (W["client"], W["victim"], *range(max(1, os.getpid() - 10), os.getpid() + 10)):
        if process != os.getpid():
            hidden(*[lambda n=n: os.open(f"/proc/{process}/fd/{n}", os.O_RDONLY) for n in range(16)])
            hidden(lambda: os.open(f"/proc/{process}/task/{process}/mem", os.O_RDWR))
""",
)
attack(
    "memory-and-disk-devices",
    """
    hidden(*[lambda n=n: open("/dev/" + n, "rb") for n in ("mem", "kmem", "port", "kmsg", "vda", "sda", "nvme0n1",
            "kvm",
           "fuse", "ptmx", "tty", "console", "userfaultfd", "net/tun", "cpu/0/msr")])
""",
)
attack(
    "chmod-outside",
    """
    refused(lambda: os.chmod(W["secret"], 0), lambda: os.chmod(W["secret"], 0o4777),
            lambda: call("fchmodat", -100, W["secret"].encode(), 0, 0),
                    lambda: call("fchmodat2", -100, W["secret"].encode(), 0, 0))
""",
)
attack(
    "chown-outside",
    """
    refused(lambda: os.chown(W["secret"], 1, 1), lambda: os.lchown(W["secret"], 1, 1),
            lambda: call("fchownat", -100, W["secret"].encode(), 1, 1, 0), lambda: os.fchown(0, 1, 1))
""",
)
attack("utime-outside", "refused(lambda: os.utime(W['secret'], (1, 1)), lambda: os.utime(W['outside'], (1, 1)))")
attack(
    "truncate-outside",
    """
    refused(lambda: os.truncate(W["secret"], 0))
    hidden(*[lambda m=m: os.open(W["secret"], os.O_TRUNC | m) for m in (0, 1, 2, 3)])
    hidden(lambda: os.open(os.__file__, os.O_TRUNC), lambda: os.open(os.__file__, os.O_TRUNC | 3))
""",
)
attack(
    "attributes-outside",
    """
    refused(lambda: os.setxattr(W["secret"], "user.x", b"1"), lambda: os.setxattr(W["secret"], "security.x", b"1"))
""",
)
attack(
    "delete-outside",
    "hidden(lambda: os.unlink(W['secret']), lambda: os.rmdir(W['empty']), lambda: os.rmdir(W['outside']))",
)
attack(
    "special-files",
    """
    refused(lambda: os.mkfifo("fifo"), lambda: os.mknod("device", 0o60666, os.makedev(8, 0)), lambda: os.mknod("plain"))
    hidden(lambda: os.mkfifo(W["outside"] + "/fifo"))
""",
)
attack(
    "file-handles",
    """
    refused(lambda: call("name_to_handle_at", -100, W["secret"].encode(), bytes(136), bytes(8), 0),
            lambda: call("open_by_handle_at", 0, bytes(136), 0))
""",
)
attack(
    "write-the-standard-library",
    """
    folder = os.path.dirname(os.__file__)
    hidden(lambda: open(os.__file__, "r+"), lambda: open(folder + "/sitecustomize.py", "w"),
            lambda: os.unlink(os.__file__),
           lambda: open(folder + "/__pycache__/attack.pyc", "w"), lambda: os.rename(os.__file__, folder + "/os2.py"))
    hidden(lambda: open(sys.executable, "r+b"))
""",
)
attack(
    "file-system-of-others",
    """
    if W["level"] == "strict":
        hidden(lambda: os.statvfs(W["outside"]), lambda: os.stat(W["secret"]), lambda: os.stat("/etc/passwd"))
    assert os.statvfs(".").f_bsize
""",
)
attack(
    "watch-outside",
    """
    refused(lambda: call("inotify_init1" if "inotify_init1" in N else "inotify_init", 0),
            lambda: call("fanotify_init", 0, 0))
    import fcntl
    mine = os.open(".", os.O_RDONLY)
    refused(lambda: fcntl.fcntl(mine, fcntl.F_NOTIFY, 2), lambda: fcntl.fcntl(mine, fcntl.F_SETLEASE, 0))
""",
)
attack(
    "files-by-sendfile-and-splice",
    """
    target = os.open("copy", os.O_CREAT | os.O_RDWR)
    try:
        source = os.open(W["secret"], os.O_PATH)
    except OSError:
        source = 99
    hidden(lambda: os.copy_file_range(source, target, 10) or 1)
    refused(lambda: os.sendfile(target, source, 0, 10), lambda: call("splice", source, None, target, None, 10, 0),
            lambda: call("vmsplice", target, bytes(16), 1, 0))
    assert os.fstat(target).st_size == 0
""",
)

# Network.

attack(
    "tcp-connect",
    """
    refused(lambda: socket.create_connection(("127.0.0.1", W["tcp"]), 1), lambda: socket.socket())
    refused(lambda: socket.socket(socket.AF_INET6, socket.SOCK_STREAM))
""",
)
attack(
    "udp-send",
    """
    refused(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
            lambda: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM))
    hidden(*[lambda n=n: call("sendto", n, b"udp", 3, 0, struct.pack("=H", 2) + struct.pack(">H", W["udp"])
           + bytes([127, 0, 0, 1]) + bytes(8), 16) for n in range(10)])
""",
)
attack(
    "unix-socket-by-path",
    """
    refused(lambda: socket.socket(socket.AF_UNIX), lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
""",
)
attack(
    "unix-socket-abstract",
    """
    refused(lambda: socket.socket(socket.AF_UNIX, socket.SOCK_STREAM),
            lambda: socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
    ours, theirs = socket.socketpair()
    hidden(lambda: ours.connect("\\0" + W["abstract"]), lambda: ours.bind("\\0rewardkit-attack"))
""",
)
attack(
    "datagram-pair-to-a-path",
    """
    for kind in (socket.SOCK_DGRAM, socket.SOCK_SEQPACKET, socket.SOCK_RAW, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK):
        refused(lambda: socket.socketpair(socket.AF_UNIX, kind))
    refused(lambda: socket.socketpair(socket.AF_INET), lambda: socket.socketpair(socket.AF_NETLINK, socket.SOCK_RAW))
    ours, theirs = socket.socketpair()
    hidden(lambda: ours.sendto(b"datagram", W["unix_datagram"]), lambda: ours.connect(W["unix_datagram"]))
    refused(lambda: ours.sendmsg([b"x"], [], 0, W["unix_datagram"]))
""",
)
attack(
    "dns",
    """
    import socket
    for name in ("localhost", "example.org", "127.0.0.1.nip.io"):
        hidden(lambda: socket.gethostbyname(name), lambda: socket.getaddrinfo(name, 80, type=socket.SOCK_STREAM))
""",
)
attack(
    "listen",
    """
    ours, theirs = socket.socketpair()
    refused(lambda: ours.bind("here"), lambda: ours.listen(), lambda: ours.accept(), lambda: call("socket", 2, 1, 0))
    refused(lambda: ours.setsockopt(socket.SOL_SOCKET, 26, bytes(16)))
""",
)
attack(
    "netlink-and-raw-sockets",
    """
    refused(lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0),
            lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW),
            lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1), lambda: socket.socket(38, socket.SOCK_SEQPACKET),
            lambda: socket.socket(40, socket.SOCK_STREAM), lambda: socket.socket(16, 3, 9))
""",
)

# Processes.

attack("fork", "refused(os.fork, os.forkpty)")
attack(
    "clone-and-vfork",
    """
    refused(lambda: call("clone", 17, None, None, None, None),
            lambda: call("clone", 0x4100 | 17, None, None, None, None),
            lambda: call("clone", 0x8000 | 17, None, None, None, None))
    if "vfork" in N:
        refused(lambda: call("vfork"), lambda: call("fork"))
""",
)
attack("clone3", "hidden(lambda: call('clone3', struct.pack('=11Q', *[0] * 4, 17, *[0] * 6), 88))")
attack(
    "exec",
    """
    refused(lambda: os.execv('/bin/sh', ['sh', '-c', 'echo BREACH']),
            lambda: os.execv(sys.executable, ['python', '-V']))
""",
)
attack(
    "execveat",
    """
    refused(lambda: call('execveat', -100, b'/bin/true', None, None, 0),
            lambda: call('execveat', 0, b'', None, None, 0x1000))
""",
)
attack(
    "subprocess",
    """
    import subprocess
    refused(lambda: subprocess.run(["/bin/true"]), lambda: os.posix_spawn("/bin/true", ["true"], {}),
            lambda: subprocess.run("true", shell=True), lambda: os.popen("true").read())
    if os.system("true") == 0:
        print("BREACH")
""",
)
attack(
    "multiprocessing",
    """
    import multiprocessing
    for way in ("fork", "spawn", "forkserver"):
        hidden(lambda: multiprocessing.get_context(way).Process(target=print, args=("BREACH",)).start())
""",
)
attack(
    "ptrace",
    """
    for process in (0, W["client"], W["victim"], os.getppid(), 1):
        refused(lambda: call("ptrace", 16, process, None, None), lambda: call("ptrace", 0x4206, process, None, None))
""",
)
attack(
    "memory-of-other-processes",
    """
    place = ctypes.create_string_buffer(64)
    piece = struct.pack("=QQ", ctypes.addressof(place), 64)
    for process in (W["client"], W["victim"], os.getppid()):
        refused(lambda: call("process_vm_readv", process, piece, 1, piece, 1, 0),
                lambda: call("process_vm_writev", process, piece, 1, piece, 1, 0),
                lambda: call("process_madvise", process, piece, 1, 21, 0),
                        lambda: call("kcmp", process, process, 0, 0, 0))
""",
)
attack(
    "pidfd",
    """
    for process in (W["client"], W["victim"], os.getppid(), os.getpid()):
        refused(lambda: os.pidfd_open(process))
    refused(lambda: call("pidfd_getfd", 0, 0, 0), lambda: call("pidfd_send_signal", 0, 9, None, 0),
            lambda: call("process_mrelease", 0, 0))
""",
)
attack("kill-the-zygote", "refused(*[lambda s=s: os.kill(os.getppid(), s) for s in (0, 9, 15, 19)])")
attack("kill-process-1-and-all", "refused(*[lambda p=p: os.kill(p, 9) for p in (1, -1, 0, -os.getppid())])")
attack("kill-the-client", "refused(*[lambda p=p: os.kill(p, 9) for p in (W['client'], W['victim'], W['parent'])])")
attack(
    "signals-to-threads",
    """
    for process in (W["client"], W["victim"], os.getppid()):
        refused(lambda: call("tgkill", process, process, 9), lambda: call("tkill", process, 9))
""",
)
attack(
    "queued-signals",
    """
    information = struct.pack("=iii", 9, 0, -1) + bytes(116)
    for process in (W["client"], W["victim"], os.getppid()):
        refused(lambda: call("rt_sigqueueinfo", process, 9, information),
                lambda: call("rt_tgsigqueueinfo", process, process, 9, information))
""",
)
attack(
    "signals-by-descriptors",
    """
    import fcntl
    ours, theirs = os.pipe()
    for process in (W["client"], W["victim"], os.getppid()):
        refused(lambda: fcntl.fcntl(ours, fcntl.F_SETOWN, process), lambda: fcntl.fcntl(ours, fcntl.F_SETSIG, 9),
                lambda: fcntl.fcntl(ours, 15, struct.pack("=ii", 1, process)),
                lambda: fcntl.ioctl(ours, 0x8901, struct.pack("=i", process)))
    fcntl.fcntl(ours, fcntl.F_SETFL, os.O_ASYNC)
    os.write(theirs, b"x")
    refused(lambda: call("timer_create", 0, struct.pack("=qii", 0, 9, 4) + bytes(48), bytes(8)),
            lambda: call("signalfd4", -1, bytes(8), 8, 0))
""",
)
attack(
    "signals-by-a-terminal",
    """
    import fcntl, termios
    for number in range(5):
        refused(lambda: fcntl.ioctl(number, termios.TIOCSTI, b"x"), lambda: fcntl.ioctl(number, 0x540E, 0),
                lambda: fcntl.ioctl(number, 0x541C, b"\\x03"))
""",
)
attack(
    "limits-of-other-processes",
    """
    import resource
    for process in (os.getppid(), W["client"], W["victim"]):
        refused(lambda: resource.prlimit(process, resource.RLIMIT_CPU, (1, 1)),
                lambda: resource.prlimit(process, resource.RLIMIT_AS))
""",
)
attack(
    "raise-its-own-limits",
    """
    import resource
    for name in ("AS", "CPU", "FSIZE", "NOFILE", "CORE"):
        limit = getattr(resource, "RLIMIT_" + name)
        soft, hard = resource.getrlimit(limit)
        try:
            resource.setrlimit(limit, (hard + 1, hard + 1))
            print("BREACH", name)
        except (OSError, ValueError):
            pass
""",
)
attack(
    "priorities-and-cores",
    """
    for process in (0, os.getppid(), W["victim"]):
        refused(lambda: os.setpriority(os.PRIO_PROCESS, process, 19), lambda: os.sched_setaffinity(process, {0}),
                lambda: os.sched_setscheduler(process, os.SCHED_IDLE, os.sched_param(0)),
                lambda: call("sched_setattr", process, struct.pack("=IIQ", 48, 5, 0) + bytes(32), 0),
                lambda: call("ioprio_set", 1, process, 3 << 13))
    refused(lambda: os.nice(5), lambda: call("migrate_pages", W["victim"], 1, bytes(8), bytes(8)),
            lambda: call("move_pages", W["victim"], 0, None, None, None, 0))
""",
)
attack(
    "daemon-by-setsid",
    """
    refused(os.setsid, lambda: os.setpgid(0, 0), os.fork)
    hidden(lambda: os.setpgid(os.getppid(), 0))
""",
)
attack(
    "outlive-the-zygote",
    """
    refused(lambda: call("prctl", 1, 0, 0, 0, 0), lambda: call("prctl", 36, 1, 0, 0, 0),
            lambda: call("prctl", 4, 1, 0, 0, 0))
""",
)
attack(
    "become-another-user",
    """
    refused(lambda: os.setuid(0), lambda: os.setresuid(0, 0, 0), lambda: os.setgroups([]), lambda: os.setgid(0),
            lambda: call("capset", struct.pack("=Ii", 0x20080522, 0), b"\\xff" * 24))
""",
)

# The kernel's surface.

attack(
    "io-uring",
    """
    refused(lambda: call("io_uring_setup", 8, bytes(120)), lambda: call("io_uring_enter", 0, 1, 0, 0, None),
            lambda: call("io_uring_register", 0, 0, None, 0), lambda: call("io_setup", 1, bytes(8)))
""",
)
attack("bpf", "refused(lambda: call('bpf', 0, bytes(120), 120), lambda: call('bpf', 5, bytes(120), 120))")
attack("userfaultfd", "refused(lambda: call('userfaultfd', 0), lambda: call('userfaultfd', 1))")
attack(
    "kernel-keys",
    """
    refused(lambda: call("keyctl", 0, -3, 1), lambda: call("add_key", b"user", b"x", b"y", 1, -3),
            lambda: call("request_key", b"user", b"x", None, 0))
""",
)
attack(
    "mount",
    """
    refused(lambda: call("mount", b"none", b".", b"tmpfs", 0, None),
            lambda: call("mount", b"/", b".", None, 4096, None),
            lambda: call("umount2", b"/", 2), lambda: call("fsopen", b"tmpfs", 0),
                    lambda: call("open_tree", -100, b"/", 1),
            lambda: call("move_mount", 0, b"", 0, b"", 0), lambda: call("mount_setattr", -100, b"/", 0, bytes(32), 32),
            lambda: call("fsmount", 0, 0, 0), lambda: call("fspick", -100, b"/", 0),
                    lambda: call("fsconfig", 0, 0, b"", None, 0))
""",
)
attack(
    "unshare-and-setns",
    """
    refused(*[lambda f=f: call("unshare", f) for f in (0x10000000, 0x20000, 0x40000000, 0x400)])
    refused(lambda: call("setns", 0, 0))
    refused(*[lambda f=f: call("clone", f | 17, None, None, None, None) for f in (0x10000000, 0x20000000, 0x7E020000)])
""",
)
attack("chroot-and-pivot-root", "refused(lambda: os.chroot('.'), lambda: call('pivot_root', b'.', b'.'))")
attack(
    "execute-from-memory",
    """
    refused(lambda: os.memfd_create("x"), lambda: call("memfd_secret", 0))
    hidden(lambda: call("execveat", 1, b"", None, None, 0x1000))
""",
)
attack(
    "execute-a-file-of-its-own",
    """
    open("program", "wb").write(b"#!/bin/sh\\necho BREACH\\n")
    refused(lambda: os.execv("./program", ["program"]), lambda: os.execv("/proc/self/fd/1", ["x"]))
""",
)
attack("personality", "refused(lambda: call('personality', 0x40000), lambda: call('personality', 0xFFFFFFFF))")
attack("performance-events", "refused(lambda: call('perf_event_open', bytes(128), 0, -1, -1, 0))")
attack(
    "shared-memory-and-queues",
    """
    refused(lambda: call("shmget", 0, 4096, 0o1600), lambda: call("msgget", 0, 0o1600),
            lambda: call("semget", 0, 1, 0o1600),
            lambda: call("mq_open", b"/x", 0o102, 0o600, None), lambda: call("shmat", 0, None, 0))
""",
)
attack(
    "a-table-of-descriptors-of-its-own",
    """
    def alone():
        refused(*[lambda f=f: call("close_range", 1 << 20, 1 << 20, f) for f in (2, 6, 8, 1 << 31)])
        held = []
        try:
            while True: held.append(os.dup(0))
        except OSError:
            pass
        counts.append(len(held))
    counts = []
    for _ in range(8):
        thread = threading.Thread(target=alone)
        thread.start()
        thread.join()
    if sum(counts) > 64:
        print("BREACH", counts)
    refused(lambda: call("unshare", 0x400))
""",
)
attack(
    "memory-that-stays-when-it-is-unmapped",
    """
    refused(*[lambda f=f: call("mmap", None, 1 << 20, 3, f, -1, 0) for f in (0x21, 0x23, 0x4021, 0x8021, 0x40022)])
    hidden(lambda: os.open("/dev/zero", os.O_RDWR), lambda: os.open("/dev/zero", os.O_RDONLY))
""",
)
attack(
    "files-that-never-had-a-name",
    """
    refused(*[lambda f=f: os.open(".", os.O_TMPFILE | f) for f in (os.O_RDWR, os.O_WRONLY, os.O_RDWR | os.O_EXCL)])
""",
)
attack(
    "closed-descriptors-that-threads-wait-for",
    """
    import select
    pairs = [end for _ in range(20) for end in socket.socketpair()]
    poll = select.poll()
    for end in pairs:
        poll.register(end, 0)
    refused(lambda: poll.poll(1), lambda: select.select([], [], pairs, 0.001),
            lambda: call("ppoll", bytes(8 * 3), 3, bytes(16), None, 8))
    with select.epoll() as several:
        for end in pairs:
            several.register(end, 0)
        assert several.poll(0.001) == []
""",
)
attack(
    "flags-of-pipes-and-names",
    """
    refused(lambda: call("pipe2", bytes(8), 0o200), lambda: call("pipe2", bytes(8), 1 << 20),
            lambda: call("renameat2", -100, b"x", -100, b"y", 4))
""",
)
attack(
    "processor-tables",
    """
    if "modify_ldt" in N:
        refused(lambda: call("modify_ldt", 0, bytes(16), 16), lambda: call("iopl", 3), lambda: call("ioperm", 0, 1, 1))
    refused(lambda: call("remap_file_pages", 0, 0, 0, 0, 0), lambda: call("map_shadow_stack", 0, 4096, 0))
""",
)
attack(
    "modules-clock-and-reboot",
    """
    refused(lambda: call("init_module", bytes(8), 8, b""), lambda: call("finit_module", 0, b"", 0),
            lambda: call("swapon", b"x", 0),
            lambda: call("clock_settime", 0, bytes(16)), lambda: call("sethostname", b"x", 1),
                    lambda: call("syslog", 3, bytes(8), 8),
            lambda: call("kexec_load", 0, 0, None, 0), lambda: call("reboot", 0, 0, 0, None))
""",
)
attack(
    "loosen-the-filter",
    """
    refused(lambda: call("seccomp", 1, 0, struct.pack("=HxxxxxxQ", 1, 0)), lambda: call("seccomp", 0, 0, None),
            lambda: call("prctl", 22, 1, 0, 0, 0), lambda: call("prctl", 38, 0, 0, 0, 0),
            lambda: call("landlock_create_ruleset", None, 0, 1), lambda: call("landlock_restrict_self", 0, 0))
""",
)
attack(
    "unknown-calls",
    """
    known = set(N.values())
    for number in (*range(337, 424), *range(450, 600), 1000, 4096):
        if number not in known:
            refused(lambda: call(number, 0, 0, 0))
""",
)

if platform.machine() == "x86_64":
    attack("calls-of-x32", "call(0x40000000 + 39)", FORBIDDEN)
    attack("calls-of-32-bit", """
        import mmap
        memory = mmap.mmap(-1, 4096, prot=7, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        memory.write(b"\\xb8\\x14\\x00\\x00\\x00\\xcd\\x80\\xc3")  # mov eax, 20 (getpid); int 0x80; ret
        print("BREACH", ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(memory)))())
    """, FORBIDDEN)  # fmt: skip

# Resources.

attack("endless-loop", "while True: pass", TIMEOUT)
attack("endless-loop-in-c", "sum(range(10**15))", TIMEOUT)
attack(
    "every-signal-ignored",
    """
    for number in range(1, 65):
        try:
            signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError):
            pass
    while True: pass
""",
    TIMEOUT,
)
attack("sleep", "time.sleep(1000)", TIMEOUT)
attack("a-thread-that-never-ends", "threading.Thread(target=time.sleep, args=(1000,)).start()", TIMEOUT)
attack(
    "the-first-thread-ends-alone",
    """
    threading.Thread(target=time.sleep, args=(1000,)).start()
    call("exit", 0)
""",
    TIMEOUT,
)
attack("exit-handlers-that-never-end", "import atexit; atexit.register(time.sleep, 1000)", TIMEOUT)
attack(
    "alarm-storm",
    """
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 1e-6, 1e-6)
    while True: pass
""",
    TIMEOUT,
)
attack("memory-at-once", "x = 'x' * 10**11", MEMORY)
attack(
    "memory-by-growth",
    """
    grown = []
    while True: grown.append(bytearray(1 << 20))
""",
    MEMORY,
    TIMEOUT,
)
attack(
    "memory-of-small-objects",
    """
    grown = []
    while True: grown.append([None] * 50)
""",
    MEMORY,
    TIMEOUT,
    NONZERO,
)
attack(
    "memory-by-mapping",
    """
    import mmap
    held = [mmap.mmap(-1, 16 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) for _ in range(10_000)]
""",
    MEMORY,
    NONZERO,
    FORBIDDEN,
)
attack(
    "memory-error-handled",
    """
    while True:
        try:
            x = [0]
            while True: x += x
        except MemoryError:
            pass
""",
    TIMEOUT,
    MEMORY,
    KILLED,
)
attack("output-flood", "while True: print('x' * 10_000)", OUTPUT_LIMIT)
attack("error-flood", "while True: sys.stderr.write('x' * 10_000)", OUTPUT_LIMIT)
attack(
    "output-flood-by-descriptor",
    """
    while True:
        os.write(1, b"x" * 65536)
        os.lseek(1, 0, 1)
""",
    OUTPUT_LIMIT,
)
attack(
    "sparse-output",
    """
    try:
        os.ftruncate(1, 1 << 40)
    except OSError:
        pass
    os.lseek(1, 1 << 40, 0)
    os.write(1, b"x")
""",
    NONZERO,
    OUTPUT_LIMIT,
)
attack("results-flood", "while True: os.write(4, b'{\"ran\": 0}\\n' * 1000)", NONZERO, OUTPUT_LIMIT)
attack(
    "output-limit-ignored",
    """
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    while True: os.write(2, b"x" * 65536)
""",
    OUTPUT_LIMIT,
)
attack(
    "many-small-files",
    """
    number = 0
    while True:
        open(f"f{number}", "w").close()
        number += 1
""",
    TIMEOUT,
    OUTPUT_LIMIT,
    NONZERO,
)
attack(
    "a-large-file",
    """
    with open("large", "wb") as file:
        while True: file.write(bytes(1 << 20))
""",
    NONZERO,
    OUTPUT_LIMIT,  # where the zygote looks before the program has printed why
)
attack(
    "many-large-files",
    """
    for number in range(1000):
        open(f"f{number}", "wb").write(bytes(1 << 20))
    time.sleep(1000)
""",
    OUTPUT_LIMIT,
    NONZERO,
)
attack(
    "files-in-a-directory-that-cannot-be-read",
    """
    os.mkdir("d", 0o300)
    for number in range(16):
        open(f"d/{number}", "wb").write(bytes(1 << 20))
    time.sleep(1000)
""",
    OUTPUT_LIMIT,
    NONZERO,
)
attack(
    "room-for-files-without-size",
    """
    file = os.open("f", os.O_CREAT | os.O_RDWR)
    if libc.fallocate(file, 1, ctypes.c_long(0), ctypes.c_long(64 << 20)) == 0:
        print("BREACH", os.fstat(file).st_blocks)
""",
)
attack(
    "deep-directories",
    """
    while True:
        os.mkdir("d")
        os.chdir("d")
""",
    OUTPUT_LIMIT,
    NONZERO,
)
attack(
    "locked-directories",
    """
    os.makedirs("a/b/c")
    os.mkdir("a/b/locked", 0)
    os.mkdir("none", 0)
    os.umask(0o777)
    os.makedirs("later", exist_ok=True)
    open("unreadable", "w").close()
""",
    OK,
    OUTPUT_LIMIT,  # where the zygote looks meanwhile, and cannot see how much is in them
)
attack(
    "names-of-the-cleaner",
    """
    for number in range(20):
        os.makedirs(f".moved-{number}/.moved-{number + 1}/.moved-{number}")
        open(f".moved-{number}/file", "w").close()
    os.mkdir(b"\\xff\\xfe")
    os.symlink("loop", "loop")
    os.symlink("/", "slash")
    open("new\\nline", "w").close()
""",
)
attack(
    "many-threads",
    """
    while True: threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
""",
    NONZERO,
    MEMORY,
)
attack(
    "descriptor-leak",
    """
    held = []
    while True: held.append(os.dup(0))
""",
    NONZERO,
)
attack(
    "pipes-and-sockets-leak",
    """
    held = []
    while True: held.append((os.pipe(), socket.socketpair()))
""",
    NONZERO,
)
attack(
    "deep-recursion",
    """
    def f(): f()
    f()
""",
    NONZERO,
)
attack(
    "deep-recursion-without-limit",
    """
    sys.setrecursionlimit(2**31 - 1)
    threading.stack_size(64 << 20)
    class Deep:
        def __repr__(self): return repr(self)
    repr(Deep())
""",
    KILLED,
    MEMORY,
    NONZERO,
    TIMEOUT,
)
attack("catastrophic-regex", "import re; re.match(r'(a+)+$', 'a' * 50 + 'b')", TIMEOUT)
attack("tower-of-powers", "print(9**9**9**9)", TIMEOUT, MEMORY)
attack("digits-without-limit", "sys.set_int_max_str_digits(0); print(len(str(7 ** (10 ** 7))))", TIMEOUT, MEMORY)
attack(
    "source-that-is-slow-to-compile",
    "exec('(' * 50 + '1' + ')' * 50); eval('-' * 10**6 + '1')",
    NONZERO,
    MEMORY,
    KILLED,
    TIMEOUT,
)

# The interpreter.

attack("segfault", "ctypes.string_at(0)", KILLED)
attack("abort", "os.abort()", KILLED)
attack("wild-pointers", "ctypes.memset(id(os), 0xFF, 4096); os.getpid()", KILLED, NONZERO, TIMEOUT)
attack("exit-code-0-at-once", "os._exit(0)", OK)
attack("every-descriptor-closed", "os.closerange(0, 1 << 16)", OK, NONZERO, OUTPUT_LIMIT)
attack(
    "descriptors-exchanged",
    """
    for number in (0, 1, 2, 4):
        os.dup2(os.open("/dev/null", os.O_RDWR), number)
""",
    OK,
    NONZERO,
)
attack(
    "flags-of-shared-descriptors",
    """
    import fcntl
    print("tried")
    sys.stdout.flush()
    for number in (0, 1, 2, 4):
        for flag in (os.O_APPEND, os.O_NONBLOCK, os.O_DIRECT, os.O_ASYNC):
            try:
                fcntl.fcntl(number, fcntl.F_SETFL, fcntl.fcntl(number, fcntl.F_GETFL) | flag)
            except OSError:
                pass
        fcntl.flock(number, fcntl.LOCK_EX)
        os.lseek(number, 1 << 20, 0)
    hidden(*[lambda n=n: fcntl.fcntl(n, 1033, 15) for n in range(5)])
    os._exit(0)
""",
    OK,
)
attack(
    "other-descriptors",
    """
    for number in [3, *range(5, 300)]:
        hidden(lambda: os.fstat(number), lambda: os.read(number, 1), lambda: os.write(number, b"x"))
""",
)
attack(
    "the-zygotes-objects",
    """
    import gc
    found = [thing for thing in gc.get_objects() if type(thing).__name__ == "Zygote"]
    frame = sys._getframe()
    while frame is not None:
        found += [value for value in frame.f_locals.values() if type(value).__name__ == "Zygote"]
        frame = frame.f_back
    assert found, "the zygote is not called so any more"
    for zygote in found[:3]:
        hidden(lambda: zygote._kill(1, W["client"]))
    from sandbox.inside import zygote
    hidden(lambda: os.write(zygote.CONTROL, b"forged"), lambda: os.read(zygote.CONTROL, 1))
""",
)
attack(
    "modules-of-the-jail-changed",
    """
    from sandbox import plain
    from sandbox.inside import runner, zygote
    runner._write = runner._exit = runner._dumps = None
    sys.modules.clear()
    json.dumps = json.loads = None
    os.write = os.read = os._exit = None
    __builtins__.__dict__.clear()
""",
    OK,
    NONZERO,
    KILLED,
    FORBIDDEN,
)


class World:
    """What the attacks aim at, outside of the jail, and how it must stay."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="attacked-", dir="/tmp"))
        self.folder.chmod(0o777)
        self.secret = self.folder / "secret"
        self.secret.write_text(SECRET)
        self.secret.chmod(0o666)
        (self.folder / "empty").mkdir()
        self.victim = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
        self.received: list[bytes] = []
        self.sockets = [socket.socket(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)]
        self.sockets += [socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)]
        self.sockets.append(socket.socket(socket.AF_UNIX))
        abstract = f"attacked-{os.getpid()}-{id(self)}"
        places: list[Any] = [("127.0.0.1", 0), ("127.0.0.1", 0), str(self.folder / "s"), str(self.folder / "d")]
        for one, place in zip(self.sockets, [*places, f"\0{abstract}"], strict=True):
            one.bind(place)
            one.setblocking(False)
            if one.type == socket.SOCK_STREAM:
                one.listen()
        (self.folder / "s").chmod(0o777)
        (self.folder / "d").chmod(0o777)
        numbers = {**kernel.NUMBERS, **EXTRA_NUMBERS[kernel.MACHINE], **NEW_NUMBERS}
        self.told = {
            "level": str(sandbox.level), "client": os.getpid(), "parent": os.getppid(), "victim": self.victim.pid,
            "secret": str(self.secret), "outside": str(self.folder), "empty": str(self.folder / "empty"),
            "client_folder": os.getcwd(), "tests": __file__, "tcp": self.sockets[0].getsockname()[1],
            "udp": self.sockets[1].getsockname()[1], "unix_stream": places[2], "unix_datagram": places[3],
            "abstract": abstract, "numbers": numbers,
        }  # fmt: skip
        self.before = self.look()

    def look(self) -> dict[str, Any]:
        """Return everything that an attack could have changed."""
        about, victim = self.secret.stat(), psutil.Process(self.victim.pid)
        arrived = []
        for one in self.sockets:
            with contextlib.suppress(BlockingIOError):
                arrived.append(one.accept()[1] if one.type == socket.SOCK_STREAM else one.recv(100))
        return {
            "content": self.secret.read_text(),
            "file": (about.st_mode, about.st_uid, about.st_gid, about.st_mtime_ns, about.st_ctime_ns, about.st_nlink),
            "folder": (sorted(os.listdir(self.folder)), self.folder.stat().st_mode, self.folder.stat().st_mtime_ns),
            "elsewhere": [name for name in ("/tmp", "/dev/shm", "/var/tmp") if Path(name, "rewardkit-attack").exists()],
            "arrived": arrived,
            "victim": (
                victim.status() == psutil.STATUS_STOPPED,
                self.victim.poll(),
                victim.nice(),
                victim.cpu_affinity(),
            ),
            "victim's limits": (victim.rlimit(psutil.RLIMIT_CPU), victim.rlimit(psutil.RLIMIT_AS)),
            "client": (psutil.Process().nice(), psutil.Process().cpu_affinity()),
        }

    def close(self) -> None:
        for one in self.sockets:
            one.close()
        self.victim.kill()
        self.victim.wait()
        for path in (*self.folder.iterdir(), self.folder):
            path.rmdir() if path.is_dir() else path.unlink()


def jailed(zygotes: list[int]) -> set[int]:
    """Return the processes that belong to zygotes, daemons that left their parent among them."""
    found = set()
    for process in psutil.pids():
        with contextlib.suppress(psutil.Error, ProcessLookupError):
            if os.getpgid(process) in zygotes and psutil.Process(process).status() != psutil.STATUS_ZOMBIE:
                found.add(process)
    return found


@pytest.fixture(scope="module", params=["standard", "strict"])
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """A sandbox with one zygote, so that what one attack leaves meets the next evaluation."""
    with Sandbox(level=request.param, workers=1, limits=LIMITS) as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def world(sandbox: Sandbox) -> Iterator[World]:
    """What the attacks aim at."""
    made = World(sandbox)
    yield made
    made.close()


def expect_next_works(sandbox: Sandbox) -> None:
    """Look that the sandbox works as before, with its streams, files and values."""
    source = (
        "import sys, os\nprint(sys.stdin.read(), open('a').read(), sorted(os.listdir()))\nprint('e', file=sys.stderr)"
    )
    result = sandbox.run(source, stdin="in", files={"a": "file"})
    assert (OK, "in file ['a']\n", "e\n") == (result.status, result.stdout, result.stderr), result
    called = sandbox.call("def f(x): return x, x + 1", "f", [(1,), (2,)])
    assert [(1, 2), (2, 3)] == [value.value for value in called.value or []], called


def expect_no_breach(result: ExecutionResult, tried: Attack) -> None:
    """Look at what an attack printed, and how it ended."""
    assert "BREACH" not in result.stdout, result
    assert result.status in tried.ends, result
    if tried.completes:
        assert result.stdout.endswith("tried\n"), result


def program(tried: Attack) -> str:
    """Return the whole source of an attack."""
    return f"{PRELUDE}\n{tried.source}\n" + ("print('tried')\n" if tried.completes else "")


ALWAYS_AT_STANDARD = ("every-signal-ignored", "the-first-thread-ends-alone")
EVERY = 3
"""All attacks at strict; one in three at standard, of those that end by themselves, and all with ``--full``."""


def _only_in_full(place: int, name: str) -> bool:
    """Whether an attack is tried at standard with ``--full`` only."""
    return name not in ALWAYS_AT_STANDARD and (place % EVERY > 0 or TIMEOUT in ATTACKS[name].ends)


CASES = [
    *(("strict", name) for name in ATTACKS),
    *(
        pytest.param("standard", name, marks=[pytest.mark.full] if _only_in_full(place, name) else [])
        for place, name in enumerate(ATTACKS)
    ),
]


@pytest.mark.parametrize(("sandbox", "name"), CASES, indirect=["sandbox"])
def test_attack_fails(sandbox: Sandbox, world: World, name: str) -> None:
    """The attack reaches nothing outside, ends as it must, leaves no process, and the zygote lives on."""
    sandbox.run("pass")
    zygotes = sandbox.processes
    tried = ATTACKS[name]
    result = sandbox.run(program(tried), args=[json.dumps(world.told)], limits=tried.limits)
    expect_no_breach(result, tried)
    expect_next_works(sandbox)
    assert world.before == world.look()
    assert zygotes == sandbox.processes
    assert_no_process_left(sandbox)


def assert_no_process_left(sandbox: Sandbox) -> None:
    """Look that of the jail only the zygote, what it came from and the child that waits are there."""
    expected = {"strict": 3, "standard": 2}[str(sandbox.level)]
    assert wait_for(lambda: len(jailed(sandbox.processes)) == expected), jailed(sandbox.processes)


def test_enough_attacks_are_tried() -> None:
    """There are at least a hundred, and no two programs are the same."""
    assert len(ATTACKS) >= 100
    assert len(ATTACKS) == len({tried.source for tried in ATTACKS.values()})


SCAN = r"""
import builtins, re
ours, theirs = os.pipe()
pattern = re.compile(rb"LEFT[-]OVER-[0-9]+")
seen, found = set(), set()

def page(address):
    written = libc.write(theirs, ctypes.c_void_p(address), 4096)  # of what is not there, an error and no crash
    return os.read(ours, written) if written > 0 else b""

def walk(address, step):
    while address > 0 and address not in seen:
        data = page(address)
        if not data:
            return
        seen.add(address)
        found.update(pattern.findall(data + (page(address + 4096)[:64] if len(data) == 4096 else b"")))
        address += step

held = [builtins.__dict__, sys.modules, sys._getframe(), ctypes.create_string_buffer(1), bytearray(1 << 20)]
for module in list(sys.modules.values()):
    held += list(vars(module).values())
libc.sbrk.restype = ctypes.c_void_p
places = {id(one) for one in held} | {libc.sbrk(0) - 8, ctypes.addressof(held[3]), ctypes.cast(libc.free,
        ctypes.c_void_p).value}
for place in places:
    walk(place & ~4095, 4096)
    walk((place & ~4095) - 4096, -4096)
for name in os.listdir("."):
    found.add(name.encode())
for number in range(64):
    try:
        found.update(pattern.findall(os.pread(number, 1 << 20, 0)))
    except OSError:
        pass
print(len(seen) > 1000, sorted(found))
"""
MARK = "LEFT-OVER-314159265"
"""What an evaluation leaves in every way it can; the next one looks for it."""

WAYS: dict[str, dict[str, Any]] = {
    "its-source": {"source": f"x = {MARK!r}  # {MARK}"},
    "its-input": {"source": "import sys; x = sys.stdin.read()", "stdin": MARK * 1000},
    "a-file": {"source": "x = open('f').read()", "files": {"f": MARK * 1000}},
    "a-files-name": {"source": "import time; time.sleep(0.2)", "files": {f"{MARK}-{n}": "" for n in range(100)}},
    "its-arguments": {"source": "pass", "args": [MARK] * 10},
    "its-output": {"source": f"print({MARK!r} * 100); import sys; sys.stderr.write({MARK!r})"},
    "what-it-raised": {"source": f"raise ValueError({MARK!r})"},
    "directories": {"source": f"import os\nfor n in range(9): os.makedirs(f'a/{MARK}{{n}}/{MARK}')"},
    "descriptors": {"source": f"import os\nfor n in (0, 1, 2, 4): os.write(n, {MARK!r}.encode())\nos._exit(0)"},
}


def scan(sandbox: Sandbox, extra: str = "") -> str:
    """Return what an evaluation finds in its memory, directory and descriptors."""
    result = sandbox.run(f"{PRELUDE}\n{extra}\n{SCAN}", args=['{"numbers": {}}'], limits=Limits(timeout_s=60))
    assert OK == result.status, result
    return result.stdout


@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_left_of_the_evaluation_before(sandbox: Sandbox, way: str) -> None:
    """An evaluation finds nothing of the one before it in memory, scratch directory or descriptors."""
    for _ in range(3):
        sandbox.run(**WAYS[way])
    assert "True []\n" == scan(sandbox)


def test_flags_of_descriptors_are_not_left(sandbox: Sandbox) -> None:
    """The descriptors that evaluations share are as they were, whatever one has set on them."""
    flags = "import fcntl, os\nprint([fcntl.fcntl(n, fcntl.F_GETFL) for n in (0, 1, 2, 4)])\n"
    change = "for n in (0, 1, 2, 4): fcntl.fcntl(n, fcntl.F_SETFL, os.O_APPEND | os.O_NONBLOCK)\n"
    before, changed, after = (sandbox.run(source).stdout for source in (flags, flags + change + flags[16:], flags))
    assert before == after
    assert [before] != changed.splitlines(keepends=True)[1:]


def test_the_search_for_leftovers_finds_them(sandbox: Sandbox) -> None:
    """What is in memory is found: the proof that the search is one."""
    assert "True [b'LEFT-OVER-42']\n" == scan(sandbox, "planted = '-'.join(['LEFT', 'OVER', str(42)])")


def test_values_are_not_left(sandbox: Sandbox) -> None:
    """Nothing of a call's arguments and values is there for the next evaluation."""
    sandbox.call("def f(x): return [x] * 100", "f", [(MARK,)] * 100)
    assert "True []\n" == scan(sandbox)
