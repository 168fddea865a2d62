"""Seccomp: which system calls a process may make, as programs of the kernel's packet filter (BPF).

For Python two filters are stacked. :func:`base_filter` is an allow-list that the zygote enters once.
:func:`child_filter` is a short deny-list that each evaluation enters: what the zygote alone may do.
:func:`program_filter` is the allow-list of a compiler, a runtime or a compiled program, which is entered alone.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Sequence

from sandbox.jail import kernel
from sandbox.jail.bpf import ALLOW, AND, ANY_BIT, AT_LEAST, EQUAL, ERRNO, Instruction, load, one_of, program, ret, tree

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

OF_PROGRAMS = (
    *("execve", "uname", "sysinfo", "sched_setaffinity", "capget", "fallocate", "truncate", "mlock", "get_mempolicy"),
    *("chmod", "fchmod", "fchmodat", "utimensat", "setrlimit"),
    *("timer_create", "timer_settime", "timer_gettime", "timer_delete"),
)
"""Calls that programs other than Python make besides the free ones. Landlock says what may be executed.

Ruby switches its threads by a timer; ``RLIMIT_SIGPENDING`` counts those. Modes and times can be changed of the scratch
directory's files alone: those are all that such a program owns."""
PRCTL_OPTIONS = (3, 15, 16, 38, 39, 0x53564D41)
"""Of ``prctl``: whether memory may be dumped, a thread's name, no new privileges, and names of memory (PR_SET_VMA)."""

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

_ALLOW, _REFUSE = [ret(ALLOW)], [ret(ERRNO | errno.EPERM)]

WAITS = {"poll": 1, "ppoll": 1, "select": 0, "pselect6": 0}
"""Calls that wait for several descriptors: which argument counts them, or is the highest and one more."""


def base_filter(machine: str = kernel.MACHINE) -> bytes:
    """Return the allow-list that the zygote and all its children are under."""
    actions = _actions(machine, (*PLAIN, *ZYGOTE_ONLY), (kernel.CLONE_OF_A_THREAD,), may_fork=True)
    return program(machine, tree(actions, _REFUSE))


def program_filter(machine: str = kernel.MACHINE, *, may_fork: bool = False, may_signal: bool = False) -> bytes:
    """Return the allow-list of a program other than Python.

    ``may_fork`` allows processes. ``may_signal`` allows signals, for a program whose namespace has no other processes
    than its own. ``setpgid`` and ``setsid`` are refused, so that the group by which it is ended stays whole.
    """
    signals = {"kill", "tkill", "tgkill"} if may_signal else set()
    processes = {"fork", "vfork", "wait4", "waitid"} if may_fork else set()
    threads = (kernel.CLONE_OF_A_THREAD, kernel.CLONE_OF_A_GO_THREAD)
    actions = _actions(machine, (*PLAIN, *OF_PROGRAMS, *signals, *processes), threads, may_fork=may_fork)
    actions[kernel.TABLES[machine]["prctl"]] = [load(0), *one_of(PRCTL_OPTIONS), *_REFUSE, *_ALLOW]
    return program(machine, tree(actions, _REFUSE))


def _actions(
    machine: str, plain: Iterable[str], threads: Sequence[int], *, may_fork: bool
) -> dict[int, Sequence[Instruction]]:
    """Return by its number what is done about a system call: those that are ``plain`` are free, others have rules.

    ``threads`` are the flags by which a thread may be made.
    """
    numbers = kernel.TABLES[machine]
    allow, refuse = _ALLOW, _REFUSE
    actions: dict[int, Sequence[Instruction]] = {numbers[name]: allow for name in plain if name in numbers}
    for name, argument in (("open", 1), ("openat", 2)):
        if name in numbers:
            flags = [load(argument), (ANY_BIT, 4, 0, _O_TMPFILE), (AND, 0, 0, _TRUNCATE_BITS)]
            actions[numbers[name]] = [*flags, *one_of(_TRUNCATE_UNWRITTEN), *allow, *refuse]
    # shared memory that is unmapped but for a page stays whole, and only that page is counted; huge pages are others'
    actions[numbers["mmap"]] = [
        load(3),
        (ANY_BIT, 3, 0, _MAP_HUGETLB),
        (AND, 0, 0, _MAP_SHARED_ANONYMOUS),
        (EQUAL, 1, 0, _MAP_SHARED_ANONYMOUS),
        *allow,
        *refuse,
    ]
    actions[numbers["clone"]] = [
        load(0),
        (ANY_BIT, 0, 1, kernel.CLONE_NEW_ANY),
        *refuse,
        (ANY_BIT, 1, 0, kernel.CLONE_THREAD),
        *(allow if may_fork else refuse),
        (AND, 0, 0, ~kernel.CLONE_DETACHED & 0xFFFFFFFF),
        *one_of(threads),
        *refuse,
        *allow,
    ]
    for name, (argument, allowed) in FLAGS.items():
        if name in numbers:
            actions[numbers[name]] = [load(argument), (ANY_BIT, 1, 0, ~allowed & 0xFFFFFFFF), *allow, *refuse]
    actions[numbers["getsockopt"]] = [
        load(1),
        (EQUAL, 0, len(SOCKET_OPTIONS) + 1, _SOL_SOCKET),
        load(2),
        *one_of(SOCKET_OPTIONS),
        *refuse,
        *allow,
    ]
    actions[numbers["fcntl"]] = [load(1), *one_of(FCNTL_COMMANDS), *refuse, *allow]
    actions[numbers["ioctl"]] = [load(1), *one_of(IOCTL_REQUESTS), *refuse, *allow]
    # a datagram socket could be made to send to any path; a stream pair knows only its other end
    actions[numbers["socketpair"]] = [
        load(0),
        (EQUAL, 0, 4, _AF_UNIX),
        load(1),
        (AND, 0, 0, _TYPE_BITS),
        (EQUAL, 0, 1, _SOCK_STREAM),
        *allow,
        *refuse,
    ]
    actions[numbers["prlimit64"]] = [load(0), (EQUAL, 1, 0, 0), *refuse, *allow]  # its own limits only
    actions[numbers["clone3"]] = [ret(ERRNO | errno.ENOSYS)]  # its flags are in memory; libc falls back to clone
    return actions


def child_filter(machine: str = kernel.MACHINE, *, may_fork: bool = False) -> bytes:
    """Return the deny-list of one evaluation, entered under :func:`base_filter`; ``may_fork`` allows processes.

    A call that waits for several descriptors holds all of them, closed ones too, for each thread anew; so one that may
    not fork waits for one, or by epoll. It has nobody to lock a file against: the kernel would only keep lists of its
    locks, so they are answered as if they were taken.
    """
    numbers = kernel.TABLES[machine]
    denied = set(ZYGOTE_ONLY) - ({"fork", "vfork", "wait4", "waitid"} if may_fork else set())
    refuse = [ret(ERRNO | errno.EPERM)]
    actions: dict[int, Sequence[Instruction]] = {numbers[name]: refuse for name in denied if name in numbers}
    if not may_fork:
        thread = [load(0), (ANY_BIT, 1, 0, kernel.CLONE_THREAD)]  # the base filter checks the other bits
        actions[numbers["clone"]] = [*thread, *refuse, ret(ALLOW)]
        for name, argument in WAITS.items():
            if name in numbers:
                actions[numbers[name]] = [load(argument), (AT_LEAST, 0, 1, 2), *refuse, ret(ALLOW)]
        locks = [load(1), *one_of((_F_SETLK, _F_SETLKW))]
        actions[numbers["fcntl"]] = [*locks, ret(ALLOW), ret(ERRNO)]
    return program(machine, tree(actions, [ret(ALLOW)]))
