"""Programs for the jail that hold up who supervises them: with threads unknown to Python, with forks and files."""

from __future__ import annotations

import platform

import pytest

RAW_THREADS = """
import ctypes, errno, json, mmap, os, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)
held = []

def endless(number, *arguments):
    # a thread without a stack that makes one system call for ever, beside the one that makes it
    registers = ("48bf", "48be", "48ba", "49ba", "49b8")
    loop = b"".join(bytes.fromhex(one) + struct.pack("<q", value) for one, value in zip(registers, arguments))
    loop += bytes.fromhex("b8") + struct.pack("<I", number) + bytes.fromhex("0f05")
    loop += bytes.fromhex("e9") + struct.pack("<i", -len(loop) - 5)
    memory = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, 7)
    memory.write(bytes.fromhex("b8380000000f0585c07401c3") + loop)
    held.append((memory, arguments))
    return ctypes.CFUNCTYPE(ctypes.c_long, *[ctypes.c_long] * 5)(ctypes.addressof(ctypes.c_char.from_buffer(memory)))

def start(threads, loops, flags=0x3D0F00):
    started = 0
    for number in range(threads):
        if loops[number % len(loops)](flags, 0, 0, 0, 0) < 0:
            break
        started += 1
    return started
"""
"""Return ``endless(number, *arguments)``, a loop of one system call in machine code, and ``start(threads, loops)``."""

EXCHANGE = """
outside = json.loads(sys.argv[1])["outside"]
loops = []
for number in range(8):
    names = [ctypes.create_string_buffer(f"{kind}{number}".encode()) for kind in "ab"]
    held.append(names)
    os.mkdir(f"a{number}")
    os.symlink(outside, f"b{number}")
    for inner in range(100):
        open(f"a{number}/f{inner}", "w").close()
    one, other = map(ctypes.addressof, names)
    loops.append(endless(316, -100, one, -100, other, 2))  # renameat2, RENAME_EXCHANGE
start(120, loops)
time.sleep(1000)
"""
"""Exchanges directories with links to what lies outside, by threads that go on while they are killed."""

SPIN = """
open("f", "w").close()  # so that what the directory holds is looked at
start(10_000, [endless(24)])  # sched_yield
time.sleep(1000)
"""
FILES = """
start(100, [endless(24)])
number = 0
while True:
    try:
        os.mkdir(f"d{number}", 0o300)
        open(f"d{number}/f", "w").close()
        number += 1
    except OSError:
        os.chdir("/")
        time.sleep(1000)
"""
FORKS = """
while True:
    try:
        os.fork()
    except OSError:
        pass
"""

needs_machine_code = pytest.mark.skipif(platform.machine() != "x86_64", reason="the threads are machine code")
