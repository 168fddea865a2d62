"""The memory of a process that forks: a fork, and what its child does first, cost by the mapping and by the page.

A page that a child writes is copied for it, and Python writes to a page of each object that it only looks at. So what a
child takes anew has to lie side by side.
"""

from __future__ import annotations

import ctypes

from sandbox.jail import kernel

_libc = ctypes.CDLL(None)
_PROT_READ, _PROT_WRITE, _PROT_EXEC = 1, 2, 4
_LARGEST_HOLE, _LARGEST_SMALL, _LEAST = 64 << 10, 1048, 24  # bytes; of small sizes glibc has lists, 16 bytes apart
_LARGEST_OBJECT = 512  # bytes; larger ones Python takes from the C library
_POOL_BYTES, _POOL_HEAD = 1 << 14, 48  # of Python's pools, each of blocks of one size (obmalloc.c)
_MOST_POOLS = 64  # that have room left
_LEFT = 256 << 10  # bytes that are left free at the heap's end


def merge_mappings() -> None:
    """Let this process's libraries take two mappings each instead of five: a fork and its end cost by the mapping.

    Read-only data becomes executable or writable like what is beside it. Untrusted code may map such memory anyway.
    """
    mappings: list[tuple[int, int, str, str]] = []  # start, end, mode and file
    with open("/proc/self/maps") as file:
        for line in file:
            fields = line.split()
            if len(fields) == 6 and fields[5].startswith("/"):
                address, mode, _, _, _, name = fields
                start, _, end = address.partition("-")
                mappings.append((int(start, 16), int(end, 16), mode, name))
    with_code = {name for _, _, mode, name in mappings if mode == "r-xp"}
    following = [*mappings[1:], (0, 0, "", "")]
    for (first, last, mode, name), (next_first, _, next_mode, next_name) in zip(mappings, following, strict=False):
        if mode == "r--p" and name in with_code:
            is_before_data = (next_first, next_mode, next_name) == (last, "rw-p", name)
            right = _PROT_WRITE if is_before_data else _PROT_EXEC
            kernel.syscall("mprotect", first, last - first, _PROT_READ | right)


class _HeapState(ctypes.Structure):
    """What ``mallinfo2`` returns; ``keepcost`` are the free bytes at the heap's end."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks"),
            "keepcost",
        )
    )


def fill_holes() -> None:
    """Take the free blocks between those in use for ever, so that later ones lie side by side at the memory's end.

    A child then writes to a page for each 4 KiB that it takes and not to one for each few blocks. Of the C library's
    memory only glibc's is filled.
    """
    allocate = ctypes.pythonapi.PyObject_Malloc
    allocate.restype, allocate.argtypes = ctypes.c_void_p, (ctypes.c_size_t,)
    for size in range(16, _LARGEST_OBJECT + 1, 16):
        for _ in range(_MOST_POOLS * _POOL_BYTES // size):
            if allocate(size) % _POOL_BYTES == _POOL_HEAD:  # the first of a new pool
                break
    if not hasattr(_libc, "mallinfo2"):
        return
    state, end, allocate = _libc.mallinfo2, _libc.sbrk, _libc.malloc
    state.restype, state.argtypes = _HeapState, ()
    end.restype, end.argtypes = ctypes.c_void_p, (ctypes.c_ssize_t,)
    allocate.restype, allocate.argtypes = ctypes.c_void_p, (ctypes.c_size_t,)
    rest = end(0) - state().keepcost
    size = _LARGEST_HOLE
    while size >= _LEAST:
        while (allocate(size) or rest) < rest:
            continue
        size = size - 16 if size <= _LARGEST_SMALL else max(_LARGEST_SMALL, size * 3 // 4)


def give_back() -> None:
    """Return the C library's free memory to the kernel, so that forks need not copy its tables. Only glibc can.

    What is left at the end serves a child that may have no more memory, until it has said so.
    """
    trim = getattr(_libc, "malloc_trim", None)
    if trim is not None:
        trim(ctypes.c_size_t(_LEFT))
