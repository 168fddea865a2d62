"""Acts by which a jailed program tries to hold more than its limits, by calls that are allowed, with flags at random.

Each draws a few lines, which need :data:`PRELUDE` and that of ``fuzz_jail``. What they reach stays held until the
program ends, so that it can be measured from outside.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from sandbox.jail import kernel

PRELUDE = f"""
import select, socket, struct
N = {kernel.NUMBERS!r}
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
threading.stack_size(1 << 16)
hoard = []
def call(name, *arguments):
    passed = [a if isinstance(a, (bytes, ctypes.Array)) else ctypes.c_long(a) for a in arguments]
    result = libc.syscall(ctypes.c_long(N.get(name, 9999)), *passed)
    if result < 0 and result > -4096:
        raise OSError(ctypes.get_errno(), name)
    return result
def aside(act, *arguments):
    try:
        threading.Thread(target=quietly, args=(lambda: act(*arguments),), daemon=True).start()
    except (RuntimeError, MemoryError):
        pass
def fill(descriptor):
    os.set_blocking(descriptor, False)
    quietly(lambda: [os.write(descriptor, bytes(1 << 16)) for _ in range(64)])
    os.set_blocking(descriptor, True)
def pair(flags=0):
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM | flags)
    return [ours.detach(), theirs.detach()]
def pipe(flags=0):
    return list(os.pipe2(flags))
def hoards(make, most):
    for _ in range(most):
        try:
            ends = make()
        except OSError:
            return
        hoard.append(ends)
        for end in ends:
            quietly(lambda: fill(end))
"""


def _flags(dice: random.Random, known: tuple[int, ...] = ()) -> int:
    """Draw flags: known ones together, any single bit, or any bits at all."""
    drawn = (
        sum(flag for flag in known if dice.random() < 0.5),
        dice.choice(known or (0,)),
        1 << dice.randrange(32),
        dice.getrandbits(32),
    )
    return dice.choice(drawn)


def _maker(dice: random.Random) -> str:
    flags = _flags(dice, (0o4000, 0o2000000))
    makers = (
        "pair", "pair", "pipe", f"lambda: pair({flags & 0o2004000})", f"lambda: pipe({flags})",
        "lambda: [os.dup(0)]", f"lambda: [call('eventfd2', 0, {flags})]", f"lambda: [call('epoll_create1', {flags})]",
        f"lambda: [fcntl.fcntl(0, {dice.choice((0, 1030))}, {dice.randrange(64)})]",
        f"lambda: [os.open('file', os.O_CREAT | os.O_RDWR | {flags})]",
    )  # fmt: skip
    return dice.choice(makers)


def _own_tables(dice: random.Random) -> str:
    """Threads that ask for a table of descriptors of their own, and fill it."""
    first = dice.choice((3, 64, 1 << 20))
    asks = (
        f"call('close_range', {first}, {first}, {_flags(dice, (2, 4))})",
        "call('close_range', 1 << 20, 1 << 20, 2)",
        f"call('unshare', {_flags(dice, (0x400, 0x10000000))})",
        f"call('clone3', bytes(88), {dice.choice((64, 88))})",
    )
    act = f"(quietly(lambda: {dice.choice(asks)}), hoards({_maker(dice)}, 60), time.sleep(9))"
    return f"for _ in range({dice.randint(1, 16)}):\n    aside(lambda: {act})\n    time.sleep(0.005)"


def _closed_but_waited_for(dice: random.Random) -> str:
    """Threads that wait for descriptors, which are then closed."""
    waits = (
        "poll(ends)",
        "select.select([], [], ends, 9)",
        "call('ppoll', b''.join(struct.pack('=ihh', end, 0, 0) for end in ends), len(ends), 0, 0, 8)",
        "call('pselect6', 64, 0, 0, 0, 0, 0)",
        "os.read(ends[0], 1 << 30)",
        "os.write(ends[0], bytes(1 << 20))",
        "socket.socket(fileno=ends[0]).recv(1 << 20, 0x100)",
        "[fcntl.flock(end, 2) for end in ends]",
        "watch(ends)",
    )
    return f"""
def poll(ends):
    several = select.poll()
    [several.register(end, 0) for end in ends]
    several.poll(9000)
def watch(ends):
    several = select.epoll({_flags(dice, (0o2000000,)) & 0o2000000})
    [several.register(end, {_flags(dice, (1, 4, 1 << 31, 1 << 28))}) for end in ends]
    several.poll(9)
for _ in range({dice.choice((4, 30, 40))}):
    ends = []
    for _ in range({dice.choice((1, 10, 27))}):
        quietly(lambda: ends.extend(({_maker(dice)})()))
    [quietly(lambda: fill(end)) for end in ends]
    if ends:
        aside(lambda ends: {dice.choice(waits)}, ends)
    time.sleep(0.003)
    [quietly(lambda: os.close(end)) for end in ends]"""


def _memory_unmapped(dice: random.Random) -> str:
    """Memory that is mapped, touched, and given back but for a little."""
    size = dice.choice((2 << 20, 8 << 20, 32 << 20))
    kinds = (0x21, 0x22, 0x01, 0x02, 0x23, 0x28, 0x40022, 0x8021, 0x100022, _flags(dice, (1, 2, 0x20, 0x4000, 0x8000)))
    gives = (
        f"call('munmap', at + 4096, {size - 4096})",
        f"call('mremap', at, {size}, 4096, {_flags(dice, (1, 4)) & ~2})",
        f"call('mremap', at, 0, 4096, 1) and call('munmap', at, {size})",
        f"call('madvise', at, {size}, {dice.choice((4, 8, 9, 14, 15, 20, 21, 22, 23, 25))})",
        "None",
    )
    advice = f"quietly(lambda: call('madvise', at, {size}, {dice.choice((12, 14, 14, 23, 25))}))"
    source = dice.choice(("-1", "-1", "-1", "os.open('/dev/zero', os.O_RDWR)", "1", "4"))
    return f"""
def map_one():
    at = call('mmap', 0, {size}, 3, {dice.choice(kinds)}, {source}, 0)
    {dice.choice((advice, "pass"))}
    if call('madvise', at, {size}, 23) == 0:
        {dice.choice(gives)}
for _ in range({min(60, (640 << 20) // size)}):
    quietly(map_one)"""


def _files(dice: random.Random) -> str:
    """Files, named or not, that are written in every way there is."""
    size = dice.choice((1 << 20, 4 << 20, 16 << 20))
    flags = _flags(dice, (0o2000, 0o100000, 0o20000000 | 0o200000, 0o4000000, 0o1000000))
    writes = (
        f"os.write(file, bytes({size}))",
        f"os.pwrite(file, b'x', {size})",
        f"os.pwritev(file, [bytes({size})], 0, {_flags(dice, (1, 2, 4, 8, 16))})",
        f"os.ftruncate(file, {size})",
        f"os.posix_fallocate(file, 0, {size})",
        f"libc.fallocate(file, {_flags(dice, (1, 2, 8, 16))}, ctypes.c_long(0), ctypes.c_long({size}))",
        f"call('copy_file_range', 1, 0, file, 0, {size}, {_flags(dice)})",
        f"os.sendfile(file, 1, 0, {size})",
    )
    name = dice.choice(("f'f{n}'", "f'f{n}'", "'.'"))
    return f"""
os.write(1, b'x' * 1000)
for n in range({dice.choice((3, 30))}):
    def write_one():
        file = os.open({name}, os.O_CREAT | os.O_RDWR | {flags})
        hoard.append(file)
        {dice.choice(writes)}
    quietly(write_one)"""


def _streams(dice: random.Random) -> str:
    """The files of output and results, as large as they will become."""
    place, size = dice.choice((0, 1, 1, 2, 4, 4)), dice.choice((1 << 20, 4 << 20, 1 << 40))
    acts = (f"os.pwrite({place}, bytes(1 << 20), {size - (1 << 20)})", f"os.ftruncate({place}, {size})")
    return f"quietly(lambda: {dice.choice(acts)})"


def _locks(dice: random.Random) -> str:
    """Lists that the kernel keeps: locks of regions, watched descriptors, large pipes."""
    command = dice.choice((6, 6, 7, 36, 37, 38, 1024, 1031, dice.randrange(1040)))
    return f"""
file = os.open('locks', os.O_CREAT | os.O_RDWR)
quietly(lambda: [fcntl.fcntl(file, {command}, struct.pack('=hhqqi4x', 1, 0, (1 << 40) - 2 * n, 1, 0))
                 for n in range(9000)])
for _ in range(9):
    quietly(lambda: fcntl.fcntl(os.pipe()[1], 1031, {1 << dice.randrange(12, 31)}))"""


def _threads(dice: random.Random) -> str:
    """Threads, some without any memory of their own to speak of."""
    return f"for _ in range({dice.choice((20, 150, 200))}):\n    aside(time.sleep, 9)"


def _makes_anew(dice: random.Random) -> str:
    """Calls that would make what no limit counts, or loosen one."""
    flags = _flags(dice)
    asks = (
        f"call('memfd_create', b'x', {flags})", f"call('shmget', 0, 64 << 20, 0o1600 | {flags})",
        "call('io_uring_setup', 4096, bytes(120))", f"call('userfaultfd', {flags})", f"call('msgget', 0, {flags})",
        f"call('keyctl', {dice.randrange(30)}, {flags}, 0, 0, 0)", f"call('prctl', {dice.randrange(70)}, {flags})",
        f"call('arch_prctl', {0x1000 + dice.randrange(0x30)}, {flags})", f"call('personality', {flags})",
        f"call('fcntl', {dice.randrange(7)}, {dice.randrange(1040)}, {flags})",
        f"call('setsockopt', pair()[0], 1, {dice.choice((7, 8, 32, 33))}, struct.pack('i', 1 << 30), 4)",
        f"call('socketpair', 1, {dice.randrange(1, 6)} | {flags & ~0xF}, 0, bytes(8))",
        f"call('prlimit64', 0, {dice.randrange(16)}, struct.pack('qq', 1 << 40, 1 << 40), 0)",
        f"call('renameat2', -100, b'file', -100, b'other', {flags})", f"call('membarrier', {flags}, 0, 0)",
    )  # fmt: skip
    return "\n".join(f"quietly(lambda: hoard.append({ask}))" for ask in dice.sample(asks, 5))


HOARDS: dict[str, Callable[[random.Random], str]] = {
    "own tables": _own_tables,
    "closed but waited for": _closed_but_waited_for,
    "memory unmapped": _memory_unmapped,
    "files": _files,
    "streams": _streams,
    "locks": _locks,
    "threads": _threads,
    "makes anew": _makes_anew,
}
"""What a program may do to hold more than it may, by name: each draws a few lines."""
