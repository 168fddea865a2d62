"""System call numbers and filters of both machines; a small interpreter here runs the filters for every number."""

from __future__ import annotations

import errno
import re
import struct
from pathlib import Path

import pytest

from sandbox.jail import kernel, seccomp

MACHINES = ["x86_64", "aarch64"]
ALLOW, EPERM, ENOSYS, KILL = "allow", "EPERM", "ENOSYS", "kill"
DONE = "done"  # answered without the kernel, as if the call had succeeded
HEADERS = {
    "x86_64": [Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"), Path("/usr/include/asm/unistd_64.h")],
    "aarch64": [
        Path("/usr/aarch64-linux-gnu/include/asm-generic/unistd.h"),  # Debian's linux-libc-dev-arm64-cross
        Path("/usr/include/asm-generic/unistd.h"),
    ],
}
OTHER_ARCHITECTURES = (0x40000003, 0x40000028, 0xC0000015, 0xC00000F3, 0, 0x8000003E)
"""i386, arm, ppc64le, riscv64, none, and one that exists nowhere."""

# From the manual pages and the kernel's tables, typed in again: a slip in the module is not repeated here.
ANCHORS = {
    "x86_64": {
        "read": 0, "openat": 257, "clone": 56, "execve": 59, "kill": 62, "ptrace": 101, "prctl": 157, "mount": 165,
        "seccomp": 317, "bpf": 321, "io_uring_setup": 425, "pidfd_open": 434, "clone3": 435,
        "landlock_create_ruleset": 444, "landlock_add_rule": 445, "landlock_restrict_self": 446, "prlimit64": 302,
        "pivot_root": 155, "capset": 126, "unshare": 272, "fcntl": 72, "ioctl": 16, "socketpair": 53, "umount2": 166,
    },
    "aarch64": {
        "read": 63, "openat": 56, "clone": 220, "execve": 221, "kill": 129, "ptrace": 117, "prctl": 167, "mount": 40,
        "seccomp": 277, "bpf": 280, "io_uring_setup": 425, "pidfd_open": 434, "clone3": 435,
        "landlock_create_ruleset": 444, "landlock_add_rule": 445, "landlock_restrict_self": 446, "prlimit64": 261,
        "pivot_root": 41, "capset": 91, "unshare": 97, "fcntl": 25, "ioctl": 29, "socketpair": 199, "umount2": 39,
    },
}  # fmt: skip


def defined(header: Path) -> dict[str, int]:
    """Return the numbers that a C header defines."""
    found = re.findall(r"^#define __NR(?:3264)?_(\w+)\s+(\d+)$", header.read_text(), re.MULTILINE)
    numbers = {name: int(number) for name, number in found}
    # what the generic header calls otherwise on machines of 64 bits
    renamed = {"umount": "umount2", "fstatat": "newfstatat", "fadvise64_64": "fadvise64"}
    return {**numbers, **{new: numbers[old] for old, new in renamed.items() if old in numbers and new not in numbers}}


def run(program: bytes, number: int, arguments: tuple[int, ...] = (), arch: int | None = None) -> str:
    """Return what a filter answers to a call, as the kernel's interpreter of classic BPF would."""
    given = (*arguments, *[0] * (6 - len(arguments)))
    data = struct.pack("<iIQ6Q", number if number < 1 << 31 else number - (1 << 32), arch or 0, 0, *given)
    steps = list(struct.iter_unpack("=HBBI", program))
    accumulator, place = 0, 0
    while True:
        code, if_true, if_false, operand = steps[place]
        place += 1
        if code == 0x20:
            assert operand % 4 == 0
            (accumulator,) = struct.unpack_from("<I", data, operand)
        elif code == 0x05:
            place += operand
        elif code == 0x15:
            place += if_true if accumulator == operand else if_false
        elif code == 0x35:
            place += if_true if accumulator >= operand else if_false
        elif code == 0x45:
            place += if_true if accumulator & operand else if_false
        elif code == 0x54:
            accumulator &= operand
        else:
            assert code == 0x06, f"an instruction that is not known here: {code:#x}"
            errors = {0: DONE, errno.EPERM: EPERM, errno.ENOSYS: ENOSYS}
            return {0x7FFF0000: ALLOW, 0x80000000: KILL}.get(operand) or errors[operand & 0xFFFF]


class Filter:
    """A filter with its machine's names."""

    def __init__(self, machine: str, program: bytes) -> None:
        self.numbers = kernel.TABLES[machine]
        self._program = program
        self._arch = kernel.AUDIT_ARCH[machine]

    def __call__(self, name: str | int, *arguments: int) -> str:
        return run(self._program, name if isinstance(name, int) else self.numbers[name], arguments, self._arch)


@pytest.fixture(params=MACHINES)
def machine(request: pytest.FixtureRequest) -> str:
    """Each machine."""
    return str(request.param)


@pytest.fixture
def base(machine: str) -> Filter:
    """What the zygote and its children are under."""
    return Filter(machine, seccomp.base_filter(machine))


@pytest.fixture
def child(machine: str) -> Filter:
    """What an evaluation that may not fork is under, besides."""
    return Filter(machine, seccomp.child_filter(machine))


@pytest.fixture
def forking(machine: str) -> Filter:
    """What an evaluation that may fork is under, besides."""
    return Filter(machine, seccomp.child_filter(machine, may_fork=True))


CHECKED = {
    *("fcntl", "ioctl", "socketpair", "prlimit64", "clone", "clone3", "open", "openat"),
    *("sendto", "recvfrom", "getsockopt", "mmap", "close_range", "pipe2", "renameat2"),
}
"""Calls whose answer hangs on their arguments; clone3 is as if it were not there."""


def test_numbers_are_those_of_the_kernels_headers(machine: str) -> None:
    """Every number is the one that the installed C headers have."""
    header = next((one for one in HEADERS[machine] if one.exists()), None)
    if header is None:
        pytest.skip(f"no C headers of {machine} here")
    known = defined(header)
    table = kernel.TABLES[machine]
    compared = {name for name in table if name in known}
    assert {name: known[name] for name in compared} == {name: table[name] for name in compared}
    assert len(compared) >= len(table) - 5, sorted(set(table) - compared)


def test_numbers_are_the_known_ones(machine: str) -> None:
    """Every number that the jail itself needs is the one of the kernel's tables; no two names share one."""
    table = kernel.TABLES[machine]
    assert ANCHORS[machine] == {name: table[name] for name in ANCHORS[machine]}
    assert len(table) == len(set(table.values()))


def test_architectures_are_the_kernels() -> None:
    """What seccomp is told to expect: the ELF machine, 64 bits, little-endian."""
    assert {"x86_64": 62 | 0xC0000000, "aarch64": 183 | 0xC0000000} == kernel.AUDIT_ARCH


@pytest.mark.parametrize("include", ["/usr/include", "/usr/aarch64-linux-gnu/include"])
def test_flags_in_the_filters_are_those_of_both_machines(include: str) -> None:
    """Some flags of arm64 have other bits than those of x86_64: none that a filter looks at is among them."""
    folder = Path(include)
    own = folder / "x86_64-linux-gnu/asm" if (folder / "x86_64-linux-gnu").exists() else folder / "asm"
    files = [folder / "asm-generic" / name for name in ("fcntl.h", "mman-common.h", "ioctls.h")]
    if not all(file.exists() for file in files):
        pytest.skip(f"no C headers in {include}")
    values = {}
    for file in (*files, *filter(Path.exists, (own / "fcntl.h", own / "mman.h"))):  # a machine's own come last
        lines = re.findall(r"^#define\s+(\w+)\s+(0x[0-9a-fA-F]+|\d+)\s*(?:/\*.*)?$", file.read_text(), re.MULTILINE)
        values.update({name: int(text, 8 if text[:2].isdigit() and text[0] == "0" else 0) for name, text in lines})
    looked_at = {
        "__O_TMPFILE": seccomp._O_TMPFILE, "O_TRUNC": 0o1000, "O_WRONLY": 1, "O_RDWR": 2, "O_NONBLOCK": 0o4000,
        "O_CLOEXEC": 0o2000000, "MAP_ANONYMOUS": 0x20, "MAP_HUGETLB": seccomp._MAP_HUGETLB, "TCGETS": 0x5401,
        "TIOCGWINSZ": 0x5413, "FIONREAD": 0x541B, "FIONBIO": 0x5421, "FIONCLEX": 0x5450, "FIOCLEX": 0x5451,
    }  # fmt: skip
    assert looked_at == {name: values[name] for name in looked_at}


def test_calls_of_other_architectures_end_the_process(machine: str) -> None:
    """A call by another architecture's convention, whatever its number, is the end."""
    for program in (seccomp.base_filter(machine), seccomp.child_filter(machine)):
        for arch in OTHER_ARCHITECTURES:
            assert {KILL} == {run(program, number, (), arch) for number in (0, 1, 20, 39, 435)}


def test_calls_of_x32_end_the_process() -> None:
    """x86_64's other numbers, and negative ones, are the end."""
    for program in (seccomp.base_filter("x86_64"), seccomp.child_filter("x86_64")):
        numbers = (0x40000000, 0x40000000 + 39, 0x40000000 + 520, 0x7FFFFFFF, 0xFFFFFFFF)
        assert {KILL} == {run(program, number, (), kernel.AUDIT_ARCH["x86_64"]) for number in numbers}


def test_allowed_calls_are_allowed_and_all_others_refused(base: Filter) -> None:
    """Of all numbers there may be, exactly the named ones are allowed."""
    free = {base.numbers[name] for name in (*seccomp.PLAIN, *seccomp.ZYGOTE_ONLY) if name in base.numbers}
    checked = {base.numbers[name] for name in CHECKED if name in base.numbers}
    for number in (*range(2000), 1 << 16, 0x3FFFFFFF):
        if number not in checked:
            assert (ALLOW if number in free else EPERM) == base(number), number


def test_every_allowed_name_is_known_on_some_machine() -> None:
    """No name is misspelt: each is in one of the tables."""
    known = set().union(*kernel.TABLES.values())
    assert set() == {*seccomp.PLAIN, *seccomp.ZYGOTE_ONLY} - known


DANGEROUS = """
    socket connect bind listen accept sendmsg recvmsg setsockopt execve execveat ptrace mount umount2 unshare setns
    chroot pivot_root bpf perf_event_open userfaultfd keyctl add_key io_uring_setup process_vm_readv pidfd_getfd
    memfd_create tgkill tkill personality sched_setaffinity setsid setpgid landlock_create_ruleset
    landlock_restrict_self capset truncate fallocate shmget semget msgget openat2 setrlimit syslog
    chown mknod sendfile
"""


def test_dangerous_calls_are_not_allowed(base: Filter) -> None:
    """The calls that attacks use get an error, each by name."""
    refused = {name: base(name) for name in DANGEROUS.split() if name in base.numbers}
    assert {EPERM} == set(refused.values()), refused
    assert ENOSYS == base("clone3")


def test_an_evaluation_may_not_supervise(machine: str, child: Filter, forking: Filter) -> None:
    """What the zygote needs is refused to its children, and everything else left to the other filter."""
    for name in seccomp.ZYGOTE_ONLY:
        if name in child.numbers:
            assert EPERM == child(name), name
            waits = name in ("fork", "vfork", "wait4", "waitid")
            assert (ALLOW if waits else EPERM) == forking(name), name
    checked = (*seccomp.ZYGOTE_ONLY, "clone", "fcntl", *seccomp.WAITS)
    zygotes = {child.numbers[name] for name in checked if name in child.numbers}
    assert {ALLOW} == {child(number) for number in range(600) if number not in zygotes}


def test_one_descriptor_is_waited_for(child: Filter, forking: Filter) -> None:
    """Each of many threads would hold all that it waits for, closed ones too; where there are processes, they wait."""
    for name, place in {"poll": 1, "ppoll": 1, "select": 0, "pselect6": 0}.items():
        if name in child.numbers:
            answers = [child(name, *[0] * place, count) for count in (0, 1, 2, 64, 0x7FFFFFFF, 0xFFFFFFFF)]
            assert [ALLOW] * 2 + [EPERM] * 4 == answers, name
            assert ALLOW == forking(name, *[0] * place, 64)
    assert {ALLOW} == {child(name) for name in ("epoll_wait", "epoll_pwait") if name in child.numbers}


def test_locks_of_one_process_are_not_kept(child: Filter, forking: Filter) -> None:
    """Whoever is alone has every lock of a region; the kernel keeps no list, and is asked for nothing else."""
    assert {6, 7} == {command for command in range(1100) if child("fcntl", 3, command) == DONE}
    assert {ALLOW, DONE} == {child("fcntl", 3, command) for command in range(1100)}
    assert {ALLOW} == {forking("fcntl", 3, command) for command in range(1100)}


FLAGS = {
    "close_range": (2, {0x4}),
    "pipe2": (1, {0o4000, 0o2000000}),
    "renameat2": (4, {0x1, 0x2}),
}
"""Calls with flags: the argument that has them, and the bits that are allowed."""


@pytest.mark.parametrize("name", FLAGS)
def test_flags_that_are_allowed(base: Filter, name: str) -> None:
    """No flag of an allowed call gives a table of descriptors of its own, a queue of the kernel's, or a device."""
    place, allowed = FLAGS[name]
    assert ALLOW == base(name, *[0] * place, sum(allowed))
    assert allowed == {1 << bit for bit in range(32) if base(name, *[0] * place, 1 << bit) == ALLOW}
    assert EPERM == base(name, *[0] * place, 0x2 << 8 | max(allowed))


def test_no_memory_that_nobody_counts(base: Filter) -> None:
    """Mapped memory is private, or a file's: of shared memory without a file all stays that was ever mapped."""
    for others in (0, 0x10, 0x100, 0x800, 0x4000, 0x8000, 0x100000):
        assert {ALLOW} == {base("mmap", 0, 4096, 3, kind | others) for kind in (0x1, 0x2, 0x3, 0x22, 0x28)}
        assert {EPERM} == {base("mmap", 0, 4096, 3, kind | others) for kind in (0x21, 0x23, 0x40022, 0x40002, 0x40001)}


def test_no_file_without_a_name(base: Filter) -> None:
    """O_TMPFILE makes a file that no look at the directory sees."""
    for name, place in (("open", 1), ("openat", 2)):
        if name in base.numbers:
            assert EPERM == base(name, *[0] * place, 0o20200002)
            assert ALLOW == base(name, *[0] * place, 0o200000)


def test_threads_but_no_processes(child: Filter, forking: Filter) -> None:
    """Of clone, an evaluation that may not fork gets threads alone."""
    thread = 0x3D0F00  # as glibc asks for one
    assert ALLOW == child("clone", thread)
    assert ALLOW == child("clone", kernel.CLONE_THREAD)
    for flags in (0, 17, 0x4100 | 17, 0x1200011, 0x8000 | 17, kernel.CLONE_THREAD >> 1, thread & ~kernel.CLONE_THREAD):
        assert EPERM == child("clone", flags), hex(flags)
        assert ALLOW == forking("clone", flags), hex(flags)


def test_a_thread_shares_all_that_threads_share(base: Filter) -> None:
    """With a table of descriptors, a folder or a memory of its own a thread is none, and is refused."""
    thread = 0x3D0F00
    for flags in (thread, thread | 0x400000):  # as glibc and as musl ask for one
        assert ALLOW == base("clone", flags), hex(flags)
        for bit in range(32):
            if 1 << bit not in (kernel.CLONE_THREAD, kernel.CLONE_DETACHED):
                assert EPERM == base("clone", flags ^ 1 << bit), hex(flags ^ 1 << bit)


def test_flags_of_messages(base: Filter) -> None:
    """Those of plain sending and receiving; nothing out of band, no files, no zero copies."""
    allowed = {0x2, 0x20, 0x40, 0x80, 0x100, 0x4000, 0x8000}
    for name in ("sendto", "recvfrom"):
        assert ALLOW == base(name, 3, 0, 0, 0)
        assert allowed == {1 << bit for bit in range(32) if base(name, 3, 0, 0, 1 << bit) == ALLOW}
        assert EPERM == base(name, 3, 0, 0, 0x41)


def test_options_of_sockets(base: Filter) -> None:
    """What a socket is, and not who is at its other end: neither SO_PEERCRED nor SO_PEERPIDFD."""
    assert {3, 4, 7, 8, 30, 38, 39} == {option for option in range(300) if base("getsockopt", 3, 1, option) == ALLOW}
    assert {1} == {level for level in range(300) if base("getsockopt", 3, level, 3) == ALLOW}


def test_no_namespaces_by_clone(base: Filter) -> None:
    """Whatever else is asked for: with a namespace among it, clone is refused."""
    for bit in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):
        for others in (0, 17, 0x3D0F00 & ~bit, 0x1200011):
            assert EPERM == base("clone", others | bit), hex(others | bit)
    for flags in (17, 0x1200011, 0x3D0F00, 0x3D0F00 | kernel.CLONE_DETACHED, 0x4111):
        assert ALLOW == base("clone", flags), hex(flags)


def test_fcntl_commands(base: Filter) -> None:
    """Duplicates, flags and locks; no owner of signals, no leases, no notices, no seals."""
    allowed = {0, 1, 2, 3, 4, 5, 6, 7, 1030, 1032, 1034}
    assert allowed == {command for command in range(1100) if base("fcntl", 0, command) == ALLOW}
    for command in (8, 10, 15, 1024, 1026, 1031, 1033):
        assert EPERM == base("fcntl", 0, command)
    assert EPERM == base("fcntl", 3, 8, 3)  # it is the command that counts, not the descriptor


@pytest.mark.slow
def test_ioctl_requests(base: Filter, full: bool) -> None:
    """Harmless ones alone, whatever the upper half of the register holds; the kernel takes the lower.

    In full all numbers are tried, else those around the allowed ones and a sample.
    """
    tried = range(0x10000) if full else {*range(0x5300, 0x5500), *range(0, 0x10000, 23)}
    allowed = {0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451}
    assert allowed == {request for request in tried if base("ioctl", 0, request) == ALLOW}
    for request in (0x5412, 0x541C, 0x540E, 0x8901, 0x5452, 0xC0189436, 0x40086602):
        assert EPERM == base("ioctl", 0, request), hex(request)
    assert ALLOW == base("ioctl", 0, 0x5401 | 1 << 32)
    assert EPERM == base("ioctl", 0, 0x5412 | 0x5401 << 32)


def test_socket_pairs(base: Filter) -> None:
    """Stream pairs of unix sockets alone: the others could be made to send elsewhere."""
    for flags in (0, 0o4000, 0o2000000, 0o2004000):
        assert ALLOW == base("socketpair", 1, 1 | flags, 0)
        for kind in (2, 3, 4, 5, 6, 10):
            assert EPERM == base("socketpair", 1, kind | flags, 0), kind
    assert {EPERM} == {base("socketpair", family, 1, 0) for family in (0, 2, *range(3, 50))}


def test_limits_of_itself_alone(base: Filter) -> None:
    """No process may see or set another's limits, not even by its own number."""
    assert ALLOW == base("prlimit64", 0, 7)
    assert {EPERM} == {base("prlimit64", process, 7) for process in (1, 2, 1000, 0xFFFFFFFF)}


def test_no_truncation_by_opening(base: Filter) -> None:
    """O_TRUNC needs O_WRONLY or O_RDWR beside it: the kernel of an older Landlock asks for no right without."""
    for name, place in (("open", 1), ("openat", 2)):
        if name not in base.numbers:
            continue
        for other in (0, 0o100, 0o2000000, 0o200000, 0x7FFF0000 & ~0o20001003):
            answers = {mode: base(name, *[0] * place, 0o1000 | mode | other) for mode in (0, 1, 2, 3)}
            assert {0: EPERM, 1: ALLOW, 2: ALLOW, 3: EPERM} == answers
            assert {ALLOW} == {base(name, *[0] * place, mode | (other & ~0o1000)) for mode in (0, 1, 2, 3)}


def test_filters_are_as_short_as_the_kernel_wants(machine: str) -> None:
    """A program has at most 4096 instructions, and no conditional jump of more than 255."""
    for program in (seccomp.base_filter(machine), seccomp.child_filter(machine, may_fork=True)):
        assert len(program) % 8 == 0
        assert len(program) // 8 <= 4096
