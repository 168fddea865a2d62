"""Linux system calls that Python does not offer, and their numbers, for x86_64 and aarch64.

Numbers are from the kernel's ``arch/x86/entry/syscalls/syscall_64.tbl`` and ``include/uapi/asm-generic/unistd.h``.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys

_COMMON = """
    pidfd_send_signal 424 io_uring_setup 425 pidfd_open 434 clone3 435 close_range 436 openat2 437 pidfd_getfd 438
    faccessat2 439 epoll_pwait2 441 landlock_create_ruleset 444 landlock_add_rule 445 landlock_restrict_self 446
    fchmodat2 452
"""  # from 424 on, all machines have the same numbers


def _table(text: str) -> dict[str, int]:
    tokens = (text + _COMMON).split()
    return dict(zip(tokens[::2], map(int, tokens[1::2]), strict=True))


X86_64 = _table("""
    read 0 write 1 open 2 close 3 stat 4 fstat 5 lstat 6 poll 7 lseek 8 mmap 9 mprotect 10 munmap 11 brk 12
    rt_sigaction 13 rt_sigprocmask 14 rt_sigreturn 15 ioctl 16 pread64 17 pwrite64 18 readv 19 writev 20 access 21
    pipe 22 select 23 sched_yield 24 mremap 25 msync 26 mincore 27 madvise 28 shmget 29 dup 32 dup2 33 pause 34
    nanosleep 35 getitimer 36 alarm 37 setitimer 38 getpid 39 sendfile 40 socket 41 connect 42 accept 43 sendto 44
    recvfrom 45 sendmsg 46 recvmsg 47 shutdown 48 bind 49 listen 50 getsockname 51 getpeername 52 socketpair 53
    setsockopt 54 getsockopt 55 clone 56 fork 57 vfork 58 execve 59 exit 60 wait4 61 kill 62 uname 63 semget 64
    msgget 68 fcntl 72 flock 73 fsync 74 fdatasync 75 truncate 76 ftruncate 77 getdents 78 getcwd 79 chdir 80
    fchdir 81 rename 82 mkdir 83 rmdir 84 creat 85 link 86 unlink 87 symlink 88 readlink 89 chmod 90 fchmod 91
    umask 95 gettimeofday 96 getrlimit 97 getrusage 98 sysinfo 99 times 100 ptrace 101 getuid 102 syslog 103
    getgid 104 geteuid 107 getegid 108 setpgid 109 getppid 110 getpgrp 111 setsid 112 getgroups 115 getresuid 118
    getresgid 120 getpgid 121 getsid 124 capset 126 rt_sigpending 127 rt_sigtimedwait 128 rt_sigsuspend 130
    sigaltstack 131 mknod 133 personality 135 statfs 137 fstatfs 138 setpriority 141 sched_getparam 143
    sched_getscheduler 145 sched_get_priority_max 146 sched_get_priority_min 147 pivot_root 155 prctl 157
    arch_prctl 158 setrlimit 160 chroot 161 mount 165 umount2 166 gettid 186 tkill 200 time 201 futex 202
    sched_setaffinity 203 sched_getaffinity 204 epoll_create 213 getdents64 217 set_tid_address 218
    restart_syscall 219 fadvise64 221 clock_gettime 228 clock_getres 229 clock_nanosleep 230 exit_group 231
    epoll_wait 232 epoll_ctl 233 tgkill 234 waitid 247 add_key 248 keyctl 250 openat 257 mkdirat 258 newfstatat 262
    unlinkat 263 renameat 264 linkat 265 symlinkat 266 readlinkat 267 fchmodat 268 faccessat 269 pselect6 270
    ppoll 271 unshare 272 set_robust_list 273 get_robust_list 274 utimensat 280 epoll_pwait 281 fallocate 285
    eventfd2 290 epoll_create1 291 dup3 292 pipe2 293 preadv 295 pwritev 296 perf_event_open 298 prlimit64 302
    setns 308 getcpu 309 process_vm_readv 310 renameat2 316 seccomp 317 getrandom 318 memfd_create 319 bpf 321
    execveat 322 userfaultfd 323 membarrier 324 copy_file_range 326 preadv2 327 pwritev2 328 statx 332 rseq 334
    capget 125 mlock 149 get_mempolicy 239 timer_create 222 timer_settime 223 timer_gettime 224 timer_delete 226
""")
AARCH64 = _table("""
    getcwd 17 eventfd2 19 epoll_create1 20 epoll_ctl 21 epoll_pwait 22 dup 23 dup3 24 fcntl 25 ioctl 29 flock 32
    mkdirat 34 unlinkat 35 symlinkat 36 linkat 37 renameat 38 umount2 39 mount 40 pivot_root 41 statfs 43
    fstatfs 44 truncate 45 ftruncate 46 fallocate 47 faccessat 48 chdir 49 fchdir 50 chroot 51 fchmod 52
    fchmodat 53 openat 56 close 57 pipe2 59 getdents64 61 lseek 62 read 63 write 64 readv 65 writev 66 pread64 67
    pwrite64 68 preadv 69 pwritev 70 sendfile 71 pselect6 72 ppoll 73 readlinkat 78 newfstatat 79 fstat 80 fsync 82
    fdatasync 83 utimensat 88 capset 91 personality 92 exit 93 exit_group 94 waitid 95 set_tid_address 96
    unshare 97 futex 98 set_robust_list 99 get_robust_list 100 nanosleep 101 getitimer 102 setitimer 103
    clock_gettime 113 clock_getres 114 clock_nanosleep 115 syslog 116 ptrace 117 sched_getscheduler 120
    sched_getparam 121 sched_setaffinity 122 sched_getaffinity 123 sched_yield 124 sched_get_priority_max 125
    sched_get_priority_min 126 restart_syscall 128 kill 129 tkill 130 tgkill 131 sigaltstack 132 rt_sigsuspend 133
    rt_sigaction 134 rt_sigprocmask 135 rt_sigpending 136 rt_sigtimedwait 137 rt_sigreturn 139 setpriority 140
    getresuid 148 getresgid 150 times 153 setpgid 154 getpgid 155 getsid 156 setsid 157 getgroups 158 uname 160
    getrlimit 163 setrlimit 164 getrusage 165 umask 166 prctl 167 getcpu 168 gettimeofday 169 getpid 172
    getppid 173 getuid 174 geteuid 175 getgid 176 getegid 177 gettid 178 sysinfo 179 msgget 186 semget 190
    shmget 194 socket 198 socketpair 199 bind 200 listen 201 accept 202 connect 203 getsockname 204 getpeername 205
    sendto 206 recvfrom 207 setsockopt 208 getsockopt 209 shutdown 210 sendmsg 211 recvmsg 212 brk 214 munmap 215
    mremap 216 add_key 217 keyctl 219 clone 220 execve 221 mmap 222 fadvise64 223 mprotect 226 msync 227
    mincore 232 madvise 233 perf_event_open 241 wait4 260 prlimit64 261 setns 268 process_vm_readv 270
    renameat2 276 seccomp 277 getrandom 278 memfd_create 279 bpf 280 execveat 281 userfaultfd 282 membarrier 283
    copy_file_range 285 preadv2 286 pwritev2 287 statx 291 rseq 293 capget 90 mlock 228
    get_mempolicy 236 timer_create 107 timer_gettime 108 timer_settime 110 timer_delete 111
""")
TABLES = {"x86_64": X86_64, "aarch64": AARCH64}
AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}  # seccomp_data.arch (AUDIT_ARCH_* of linux/audit.h)

MACHINE = platform.machine()
NUMBERS = TABLES.get(MACHINE, {})

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, PR_SET_THP_DISABLE = 1, 4, 24, 38, 41
CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWUSER = 0x20000, 0x4000000, 0x8000000, 0x10000000
CLONE_NEWPID, CLONE_NEWNET, CLONE_THREAD = 0x20000000, 0x40000000, 0x10000
CLONE_NEW_ANY = 0x7E020000  # the bits of clone that ask for a namespace
CLONE_OF_A_THREAD = 0x3D0F00  # the bits by which glibc and musl make a thread, which shares all with the others
CLONE_OF_A_GO_THREAD = 0xD0F00  # those by which Go makes one (runtime/os_linux.go, cloneFlags)
CLONE_DETACHED = 0x400000  # a bit that musl sets besides, and that the kernel ignores

_libc = ctypes.CDLL(None, use_errno=True)


def supported() -> bool:
    """Return whether this is a system whose calls are known here."""
    return sys.platform == "linux" and bool(NUMBERS)


def why_unsupported() -> str:
    """Return why no jail can be made on a system whose calls are not known, and what to do."""
    return (
        f"untrusted code can be run on Linux on x86_64 and aarch64 only, not on {sys.platform} {MACHINE}: use a "
        "container or a virtual machine with Linux, or score on a Linux machine with `rewardkit serve`"
    )


class Prepared:
    """A system call made ready, so that a child touches few pages; its arguments are numbers or bytes."""

    __slots__ = ("_arguments", "_name")

    def __init__(self, name: str, *arguments: int | bytes | None) -> None:
        self._name = name
        passed = [ctypes.c_char_p(a) if isinstance(a, bytes) else ctypes.c_long(a or 0) for a in arguments]
        self._arguments = (ctypes.c_long(NUMBERS[name]), *passed)

    def __call__(self) -> int:
        """Make the call and return its result; raise ``OSError``, which names the call, where it fails."""
        result: int = _libc.syscall(*self._arguments)
        if result < 0:
            code = ctypes.get_errno()
            raise OSError(code, f"{self._name}: {os.strerror(code)}")
        return result


def syscall(name: str, *arguments: int | bytes | None) -> int:
    return Prepared(name, *arguments)()


def prctl(option: int, *arguments: int) -> None:
    """Make a ``prctl`` call; raise ``OSError`` where it fails."""
    syscall("prctl", option, *arguments, *[0] * (4 - len(arguments)))


def no_new_privileges() -> None:
    """Give up, for ever, that a program gains privileges by being executed; seccomp and Landlock ask for it."""
    prctl(PR_SET_NO_NEW_PRIVS, 1)


_pair = (ctypes.c_int * 2)()
_AF_UNIX, _SOCK_STREAM_CLOEXEC = 1, 1 | os.O_CLOEXEC
_make_pair = Prepared("socketpair", _AF_UNIX, _SOCK_STREAM_CLOEXEC, 0, ctypes.addressof(_pair)) if NUMBERS else None


def socket_pair() -> tuple[int, int]:
    """Return two connected stream sockets, without the cost of :mod:`socket` in a process and its forks."""
    assert _make_pair is not None
    _make_pair()
    return _pair[0], _pair[1]
