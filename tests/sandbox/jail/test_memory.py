"""The memory of a process that forks."""

from __future__ import annotations

import json
import subprocess
import sys

_SCRIPT = """
import ctypes, json, sys
from sandbox.jail import memory

kept = [bytes(size) for size in range(40, 3000, 7) for _ in range(30)]
del kept[::2]  # leaves holes everywhere
if sys.argv[1] == "filled":
    memory.fill_holes()
libc, python = ctypes.CDLL(None), ctypes.pythonapi
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
python.PyObject_Malloc.restype, python.PyObject_Malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
taken = {"C": [libc.malloc(size) for size in range(24, 3000, 16)]}
taken["Python"] = [python.PyObject_Malloc(64) for _ in range(200)]
print(json.dumps({name: len({address >> 12 for address in blocks}) for name, blocks in taken.items()}))
"""


def _pages(how: str) -> dict[str, int]:
    """Return how many pages new blocks of the C library and of Python are in, in a process with holes."""
    command = [sys.executable, "-c", _SCRIPT, how]
    pages: dict[str, int] = json.loads(subprocess.run(command, capture_output=True, check=True, timeout=60).stdout)
    return pages


def test_new_blocks_lie_side_by_side_where_holes_are_filled() -> None:
    """277 kB of blocks are in the pages that they need, and not in one of many others each.

    A few pages more are others' that began before; how many depends on the environment that a process starts with.
    """
    filled, as_left = _pages("filled"), _pages("as left")
    blocks = sum(size + 16 for size in range(24, 3000, 16)) // 4096
    assert filled["C"] <= blocks + 4
    assert filled["Python"] <= 200 * 64 // 4096 + 6
    assert all(as_left[kind] > filled[kind] for kind in filled)


def test_a_process_whose_holes_are_filled_goes_on() -> None:
    """It takes and gives back memory as before."""
    script = "from sandbox.jail import memory; memory.fill_holes(); print(sum(len(str(n)) for n in range(100_000)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, text=True, timeout=60)
    assert "488890" == done.stdout.strip()
