"""Seccomp: which system calls a process may make, as programs of the kernel's packet filter (BPF).

Two filters are stacked. :func:`base_filter` is an allow-list that the zygote enters once; its tree is
searched by bisection, since the kernel runs a new filter for every call number when it is installed.
:func:`child_filter` is a short deny-list that each evaluation enters: what the zygote alone may do.
"""

from __future__ import annotations

import ctypes
import errno
import struct
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from sandbox.jail import kernel

ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_LOAD, _JUMP, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x05, 0x15, 0x35, 0x45, 0x54, 0x06
_NUMBER_AT, _ARCH_AT, _ARGUMENTS_AT = 0, 4, 16
_X32_BIT = 0x40000000
_LIMIT = 255  # a conditional jump is at most so long

Instruction = tuple[int, int, int, int]  # code, jump if true, jump if false, operand

_PLAIN = """
    read write open close stat fstat lstat poll lseek mprotect munmap brk rt_sigaction rt_sigprocmask
    rt_sigreturn rt_sigpending rt_sigtimedwait rt_sigsuspend pread64 pwrite64 readv writev access pipe select
    sched_yield mremap msync mincore madvise dup dup2 dup3 pause nanosleep getitimer alarm setitimer getpid
    shutdown getsockname getpeername exit
    flock fsync fdatasync ftruncate getdents getdents64 getcwd chdir fchdir rename renameat
    mkdir mkdirat rmdir creat link linkat unlink unlinkat symlink symlinkat readlink readlinkat umask
    gettimeofday getrlimit getrusage times getuid getgid geteuid getegid getppid getpgrp getpgid getsid
    getgroups getresuid getresgid sigaltstack statfs fstatfs sched_getparam sched_getscheduler
    sched_get_priority_max sched_get_priority_min arch_prctl gettid time futex sched_getaffinity epoll_create
    epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2 set_tid_address restart_syscall fadvise64
    clock_gettime clock_getres clock_nanosleep exit_group openat newfstatat faccessat faccessat2 pselect6 ppoll
    set_robust_list get_robust_list eventfd2 preadv preadv2 pwritev pwritev2 getcpu getrandom
    membarrier copy_file_range statx rseq
"""
PLAIN = frozenset(_PLAIN.split())
"""Calls that are free: they act on the process itself, on descriptors it has, or on files, which Landlock guards.

Not among them: ``truncate``, which Landlock guards from its third version on only; ``fallocate``, whose room
no limit counts; ``sendfile``, by which pipes and sockets hold pages of files that are gone; ``sendmsg`` and
``setsockopt``, which open much of the kernel and which one process does not need;
``uname`` and ``sysinfo``, which tell of the host.
"""

ZYGOTE_ONLY = (
    *("kill", "wait4", "waitid", "pidfd_open", "pidfd_send_signal", "seccomp", "prctl", "setpriority"),
    *("fchmod", "fchmodat2", "utimensat", "fork", "vfork"),
)
"""Calls that the zygote needs to supervise; an evaluation gets EPERM."""

FCNTL_COMMANDS = (*range(8), 1030, 1032, 1034)
"""Duplicate, flags, locks, pipe size and seals; not F_SETOWN or F_SETSIG, by which a signal could be sent."""
IOCTL_REQUESTS = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
"""Is it a terminal, its size, bytes to read, non-blocking, close-on-exec."""
_MESSAGE_FLAGS = 0x2 | 0x20 | 0x40 | 0x80 | 0x100 | 0x4000 | 0x8000
"""MSG_PEEK, MSG_TRUNC, MSG_DONTWAIT, MSG_EOR, MSG_WAITALL, MSG_NOSIGNAL, MSG_MORE; not MSG_OOB."""
FLAGS = {
    "sendto": (3, _MESSAGE_FLAGS),
    "recvfrom": (3, _MESSAGE_FLAGS),
    "close_range": (2, 0x4),
    "pipe2": (1, 0o2004000),
    "renameat2": (4, 0x3),
}
"""Calls with flags: which argument has them, and those that are allowed.

Not CLOSE_RANGE_UNSHARE, which gives a thread a table of descriptors, and so a limit, of its own."""
_SOL_SOCKET, SOCKET_OPTIONS = 1, (3, 4, 7, 8, 30, 38, 39)
"""Of sockets may be read: type, error, sizes of both buffers, whether it listens, protocol, domain.

Neither who the other end is (such as SO_PEERPIDFD) nor the kernel's counters."""
_TRUNCATE_BITS, _TRUNCATE_UNWRITTEN = 0o1003, (0o1000, 0o1003)
"""O_TRUNC without writing: before its third version Landlock takes that for reading, or for nothing."""
_O_TMPFILE = 0o20000000  # a file that no directory has from the beginning, so nobody sees how large it is
_AF_UNIX, _SOCK_STREAM, _TYPE_BITS = 1, 1, 0xF
_MAP_SHARED_ANONYMOUS, _MAP_HUGETLB = 0x1 | 0x20, 0x40000
_F_SETLK, _F_SETLKW = 6, 7

WAITS = {"poll": 1, "ppoll": 1, "select": 0, "pselect6": 0}
"""Calls that wait for several descriptors: which argument counts them, or is the highest and one more."""


def base_filter(machine: str = kernel.MACHINE) -> bytes:
    """Return the allow-list that the zygote and all its children are under."""
    numbers = kernel.TABLES[machine]
    actions: dict[int, Sequence[Instruction]] = {}
    allow, refuse = [_ret(ALLOW)], [_ret(ERRNO | errno.EPERM)]
    for name in (*PLAIN, *ZYGOTE_ONLY):
        if name in numbers:
            actions[numbers[name]] = allow
    for name, argument in (("open", 1), ("openat", 2)):
        if name in numbers:
            flags = [_load(argument), (_ANY_BIT, 4, 0, _O_TMPFILE), (_AND, 0, 0, _TRUNCATE_BITS)]
            actions[numbers[name]] = [*flags, *_one_of(_TRUNCATE_UNWRITTEN), *allow, *refuse]
    # shared memory that is unmapped but for a page stays whole, and only that page is counted; huge pages are others'
    actions[numbers["mmap"]] = [
        _load(3),
        (_ANY_BIT, 3, 0, _MAP_HUGETLB),
        (_AND, 0, 0, _MAP_SHARED_ANONYMOUS),
        (_EQUAL, 1, 0, _MAP_SHARED_ANONYMOUS),
        *allow,
        *refuse,
    ]
    actions[numbers["clone"]] = [
        _load(0),
        (_ANY_BIT, 4, 0, kernel.CLONE_NEW_ANY),
        (_ANY_BIT, 0, 2, kernel.CLONE_THREAD),
        (_AND, 0, 0, ~kernel.CLONE_DETACHED & 0xFFFFFFFF),
        (_EQUAL, 0, 1, kernel.CLONE_OF_A_THREAD),
        *allow,
        *refuse,
    ]
    for name, (argument, allowed) in FLAGS.items():
        if name in numbers:
            actions[numbers[name]] = [_load(argument), (_ANY_BIT, 1, 0, ~allowed & 0xFFFFFFFF), *allow, *refuse]
    actions[numbers["getsockopt"]] = [
        _load(1),
        (_EQUAL, 0, len(SOCKET_OPTIONS) + 1, _SOL_SOCKET),
        _load(2),
        *_one_of(SOCKET_OPTIONS),
        *refuse,
        *allow,
    ]
    actions[numbers["fcntl"]] = [_load(1), *_one_of(FCNTL_COMMANDS), *refuse, *allow]
    actions[numbers["ioctl"]] = [_load(1), *_one_of(IOCTL_REQUESTS), *refuse, *allow]
    # a datagram socket could be made to send to any path; a stream pair knows only its other end
    actions[numbers["socketpair"]] = [
        _load(0),
        (_EQUAL, 0, 4, _AF_UNIX),
        _load(1),
        (_AND, 0, 0, _TYPE_BITS),
        (_EQUAL, 0, 1, _SOCK_STREAM),
        *allow,
        *refuse,
    ]
    actions[numbers["prlimit64"]] = [_load(0), (_EQUAL, 1, 0, 0), *refuse, *allow]  # its own limits only
    actions[numbers["clone3"]] = [_ret(ERRNO | errno.ENOSYS)]  # its flags are in memory; libc falls back to clone
    return _program(machine, _tree(actions, refuse))


def child_filter(machine: str = kernel.MACHINE, *, may_fork: bool = False) -> bytes:
    """Return the deny-list of one evaluation, entered under :func:`base_filter`; ``may_fork`` allows processes.

    A call that waits for several descriptors holds all of them, closed ones too, for each thread anew; so one that may
    not fork waits for one, or by epoll. It has nobody to lock a file against: the kernel would only keep lists of its
    locks, so they are answered as if they were taken.
    """
    numbers = kernel.TABLES[machine]
    denied = set(ZYGOTE_ONLY) - ({"fork", "vfork", "wait4", "waitid"} if may_fork else set())
    refuse = [_ret(ERRNO | errno.EPERM)]
    actions: dict[int, Sequence[Instruction]] = {numbers[name]: refuse for name in denied if name in numbers}
    if not may_fork:
        thread = [_load(0), (_ANY_BIT, 1, 0, kernel.CLONE_THREAD)]  # the base filter checks the other bits
        actions[numbers["clone"]] = [*thread, *refuse, _ret(ALLOW)]
        for name, argument in WAITS.items():
            if name in numbers:
                actions[numbers[name]] = [_load(argument), (_AT_LEAST, 0, 1, 2), *refuse, _ret(ALLOW)]
        locks = [_load(1), *_one_of((_F_SETLK, _F_SETLKW))]
        actions[numbers["fcntl"]] = [*locks, _ret(ALLOW), _ret(ERRNO)]
    return _program(machine, _tree(actions, [_ret(ALLOW)]))


def _ret(value: int) -> Instruction:
    return (_RETURN, 0, 0, value)


def _load(argument: int) -> Instruction:
    """Load the lower half of a call's argument; both machines are little-endian."""
    return (_LOAD, 0, 0, _ARGUMENTS_AT + 8 * argument)


def _one_of(values: Iterable[int]) -> list[Instruction]:
    """Skip the instruction that follows these if the loaded value is one of some."""
    ordered = sorted(values)
    return [(_EQUAL, len(ordered) - index, 0, value) for index, value in enumerate(ordered)]


def _tree(actions: Mapping[int, Sequence[Instruction]], other: Sequence[Instruction]) -> list[Instruction]:
    """Return instructions that find a call's action by bisection; the call's number is loaded."""
    steps: dict[int, Sequence[Instruction]] = {0: other}  # from this number on, this action
    for number in sorted(actions):
        steps[number], steps[number + 1] = actions[number], other
    changes: list[tuple[int, Sequence[Instruction]]] = [(0, steps[0])]  # the steps that change the action
    for (_, action_before), (number, action) in pairwise(steps.items()):
        if action is not action_before:
            changes.append((number, action))
    return _bisect(changes)


def _bisect(steps: Sequence[tuple[int, Sequence[Instruction]]]) -> list[Instruction]:
    """Return instructions that jump to the action of the last step whose number is not above the loaded one."""
    if len(steps) == 1:
        ((_, action),) = steps
        return list(action)
    middle = len(steps) // 2
    below, above = _bisect(steps[:middle]), _bisect(steps[middle:])
    number, _ = steps[middle]
    if len(below) <= _LIMIT:
        return [(_AT_LEAST, len(below), 0, number), *below, *above]
    return [(_AT_LEAST, 0, 1, number), (_JUMP, 0, 0, len(below)), *below, *above]


def _program(machine: str, tree: Sequence[Instruction]) -> bytes:
    head: list[Instruction] = [
        (_LOAD, 0, 0, _ARCH_AT),
        (_EQUAL, 1, 0, kernel.AUDIT_ARCH[machine]),
        _ret(KILL),
        (_LOAD, 0, 0, _NUMBER_AT),
    ]
    if machine == "x86_64":  # the x32 calls have numbers of their own
        head += [(_AT_LEAST, 0, 1, _X32_BIT), _ret(KILL)]
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in (*head, *tree))


class Installer:
    """A filter of :func:`base_filter` or :func:`child_filter` made ready, so that entering it is a single call."""

    def __init__(self, program: bytes) -> None:
        self._buffer = ctypes.create_string_buffer(program, len(program))
        head = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(self._buffer))
        self._enter = kernel.Prepared("seccomp", 1, 0, head)

    def enter(self, *, prepared: bool = False) -> None:
        """Enter the filter for ever, or raise ``OSError``; if ``prepared``, privileges were given up before."""
        if not prepared:
            kernel.no_new_privileges()
        self._enter()
