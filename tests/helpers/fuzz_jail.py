"""Hostile programs for the jail, drawn from a seed: they write whatever comes to hand to every channel that they have.

A program's acts stand where a completion can stand: at its beginning, in the function that is called, in threads beside
it, at its end. The same seed gives the same program.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import hostile_hoards
from hostile_leavings import OUTPUTS, PEERS, VALUES

DESCRIPTORS = range(7)
"""What a child begins with, and a little more: streams, request, results, its peer, the socket it was started on."""

PRELUDE = """
import ctypes, fcntl, json, mmap, os, resource, signal, sys, threading, time
PRIME = (1 << 61) - 1
def alike(count, start=1):
    return [{"int": hex(start + n * PRIME)} for n in range(count)]
def write(descriptor, data):
    try:
        while data:
            data = data[os.write(descriptor, data):]
    except OSError:
        pass
def say(text, descriptor=4):
    write(descriptor, text.encode("utf-8", "surrogatepass"))
def answer(text):
    for number in range(4):
        say('{"call":%d,"value":' % number + text + "}\\n")
def value(tree):
    answer(json.dumps(tree, separators=(",", ":")))
def frame(data, descriptor=5):
    write(descriptor, len(data).to_bytes(4, "little") + data)
def quietly(act):
    try:
        return act()
    except (OSError, ValueError, TypeError, OverflowError, AttributeError, MemoryError, RuntimeError):
        pass
"""

NAMES = (
    "call", "value", "raised", "run", "ran", "out", "err", "code", "check", "passed", "plan", "done", "calls", "load",
    "loaded", "names", "number", "function", "arguments", "keywords", "gone", "stopped", "fault", "tests_fault",
    "missing", "type", "kinds", "message", "line", "last", "why", "int", "float", "tuple", "set", "frozenset", "dict",
    "str", "bytes", "bytearray", "complex",
)  # fmt: skip
"""Words that the jail's own messages are made of."""


class Program(NamedTuple):
    """A hostile completion.

    Attributes:
        source: It; defines ``solve``.
        acts: What it does, by name, for whoever reads of a failure.
    """

    source: str
    acts: tuple[str, ...]


def draw_program(seed: int) -> Program:
    """Give the program of a seed."""
    dice = random.Random(seed)
    names: list[str] = []

    def acts(most: int) -> str:
        lines = []
        for _ in range(dice.randint(0, most)):
            name = dice.choice(list(ACTS))
            names.append(name)
            lines += ACTS[name](dice).splitlines()
        return "\n".join(f"    {line}" for line in [*lines, "pass"])

    parts = [
        PRELUDE + hostile_hoards.PRELUDE,
        f"def begin():\n{acts(2)}",
        f"def inside(n):\n{acts(3)}",
        f"def beside():\n{acts(2)}",
    ]
    parts.append("def solve(n):\n    inside(n)\n    return " + dice.choice(RETURNS))
    if dice.random() < 0.3:
        parts.append("for _ in range(3):\n    threading.Thread(target=beside, daemon=True).start()")
    if dice.random() < 0.2:
        parts.append("import atexit\natexit.register(beside)")
    parts.append("begin()")
    if dice.random() < 0.3:
        parts.append("solve(0)")
    if dice.random() < 0.15:
        names.append("ends")
        parts.append(_ends(dice))
    return Program("\n".join(parts) + "\n", tuple(names))


def draw_hoarder(seed: int, rest_s: float) -> Program:
    """Draw a program that tries to hold more than it may, and then rests with what it has."""
    dice = random.Random(seed)
    names = dice.choices(list(hostile_hoards.HOARDS), k=dice.randint(1, 3))
    acts = [hostile_hoards.HOARDS[name](dice) for name in names]
    parts = [PRELUDE + hostile_hoards.PRELUDE]
    for act in acts:
        lines = "\n".join(f"    {line}" for line in act.splitlines())
        parts.append(f"def act():\n{lines}\nquietly(act)")
    return Program("\n".join([*parts, f"time.sleep({rest_s})\nos._exit(0)\n"]), tuple(names))


def draw_tree(dice: random.Random, depth: int = 0) -> Any:
    """Give a random tree of JSON in which the jail's words and wrong types stand side by side."""
    kind = dice.randrange(9 if depth < 5 else 5)
    if kind < 5:
        return dice.choice(SCALARS)
    if kind == 5:
        return [draw_tree(dice, depth + 1) for _ in range(dice.randrange(5))]
    return {dice.choice(NAMES): draw_tree(dice, depth + 1) for _ in range(dice.choice((0, 1, 1, 1, 2, 4)))}


SCALARS: tuple[Any, ...] = (
    None, True, False, 0, 1, 2, -1, 1 << 31, 1 << 63, 10**400, 0.5, float("nan"), float("inf"), "", "f", "solve",
    "x" * 999, "\ud800", "nan", "0x" + "f" * 99, "StopIteration", "MemoryError", "PermissionError", "zz", "\x1b[2J",
)  # fmt: skip
RETURNS = (
    "True", "n", "None", "float('nan')", "[n] * 300_000", "'x' * 2_000_000", "b'\\xff' * 300_000", "{n: n}", "solve",
    "{frozenset({(i, -1)}) for i in range(5_000)}", "(n for n in ())", "1 / 0", "10 ** 5_000", "inside(n)",
    "{i * PRIME for i in range(190)}", "[[[[n]]]]", "sys.stdout", "os._exit(0)", "'\\ud800'",
)  # fmt: skip


def _bytes(dice: random.Random) -> str:
    size = dice.choice((0, 1, 3, 4, 5, 100, 4_095, 70_000, 1_200_000))
    pattern = dice.randbytes(dice.choice((1, 1, 2, 7, 64)))
    return f"({pattern!r} * {size // len(pattern) + 1})[:{size}]"


def _writes(dice: random.Random) -> str:
    return f"write({dice.choice(DESCRIPTORS)}, {_bytes(dice)})"


def _writes_everywhere(dice: random.Random) -> str:
    return f"for place in range(64):\n    write(place, {_bytes(dice)})"


def _forges_lines(dice: random.Random) -> str:
    lines = "\n".join(json.dumps(draw_tree(dice)) for _ in range(dice.randint(1, 6)))
    return f"say({lines!r} + chr(10), {dice.choice((4, 4, 4, 1, 2, 5))})"


def _forges_results(dice: random.Random) -> str:
    told: list[dict[str, Any]] = []
    for number in range(dice.randint(1, 5)):
        told.append({"call": number, "value": draw_tree(dice)})
        told.append({"ran": number, "out": dice.choice((0, 1, 1 << 40, -1, "0")), "err": 0, "code": 0, "raised": None})
        told.append({"run": number + 1, "out": dice.choice((0, 5, 1 << 40)), "err": 0})
        told.append({"check": number, "passed": True})
    told += [{"done": True, "calls": 9}, {"load": draw_tree(dice)}]
    lines = "".join(json.dumps(one) + "\n" for one in dice.sample(told, len(told)))
    return f"say({lines!r}, {dice.choice((4, 4, 4, 5))})"


def _sends_frames(dice: random.Random) -> str:
    bodies = [
        json.dumps({"loaded": True, "names": ["solve", "f"]}).encode(),
        json.dumps({"number": dice.randint(0, 3), "value": draw_tree(dice), "arguments": draw_tree(dice)}).encode(),
        json.dumps({"number": 1, "raised": draw_tree(dice)}).encode(),
        json.dumps(draw_tree(dice)).encode(),
        dice.randbytes(30),
    ]
    return "\n".join(f"frame({dice.choice(bodies)!r})" for _ in range(dice.randint(1, 4)))


def _breaks_a_frame(dice: random.Random) -> str:
    length = dice.choice((0, 1, 1 << 20, (1 << 20) + 1, (1 << 31) - 1, (1 << 32) - 1))
    return f"write(5, {length.to_bytes(4, 'little')!r} + {_bytes(dice)})"


def _is_slow_to_read(dice: random.Random) -> str:
    return dice.choice(list(VALUES.values()))


def _is_slow_output(dice: random.Random) -> str:
    source = dice.choice(list(OUTPUTS.values()))
    return f"exec({source!r}, {{}})"


def _is_slow_to_judge(dice: random.Random) -> str:
    return f"{dice.choice(list(PEERS.values()))}\nframe(data)"


def _changes_files(dice: random.Random) -> str:
    place = dice.choice(DESCRIPTORS)
    size = dice.choice((0, 1, 1 << 20, 1 << 40))
    acts = (
        f"os.ftruncate({place}, {size})",
        f"os.lseek({place}, {size}, 0)",
        f"os.pwrite({place}, {_bytes(dice)}, {size})",
        f"os.posix_fallocate({place}, 0, {max(1, size)})",
        f"fcntl.fcntl({place}, fcntl.F_SETFL, {dice.choice(('os.O_APPEND', 'os.O_NONBLOCK', '0'))})",
        f"fcntl.flock({place}, fcntl.LOCK_EX | fcntl.LOCK_NB)",
        f"fcntl.fcntl({place}, 1033, {dice.choice((1, 2, 4, 8, 15))})",
        f"mmap.mmap({place}, 4096)[:] ",
    )
    return "\n".join(f"quietly(lambda: {act})" for act in dice.sample(acts, 3))


def _moves_descriptors(dice: random.Random) -> str:
    one, other = dice.choice(DESCRIPTORS), dice.choice(DESCRIPTORS)
    acts = (
        f"os.close({one})",
        f"os.dup2({one}, {other})",
        f"os.dup2(os.pipe()[{dice.randrange(2)}], {one})",
        "os.closerange(0, 64)",
        f"os.read({one}, 1 << 20) if {one} != 5 else None",
        f"os.set_blocking({one}, False)",
    )
    return f"quietly(lambda: {dice.choice(acts)})"


def _fills_scratch(dice: random.Random) -> str:
    return dice.choice(
        (
            "for n in range(40):\n    quietly(lambda: open(f'f{n}', 'wb').write(bytes(30_000)))",
            "for n in range(40):\n    quietly(lambda: (os.mkdir('d'), os.chdir('d')))",
            "quietly(lambda: os.symlink('/', 'root'))\nquietly(lambda: os.mkfifo('pipe'))",
            "quietly(lambda: (os.makedirs('a/b'), os.chmod('a', 0)))",
        )
    )


def _breaks_python(dice: random.Random) -> str:
    return dice.choice(
        (
            'json.dumps = json.loads = lambda *a, **k: \'{"call":0,"value":true}\'',
            "os.write = lambda d, data: len(data)",
            "sys.modules.clear()",
            "sys.setrecursionlimit(60)",
            "time.monotonic = time.time = lambda: 0.0",
            "sys.stdout = sys.stderr = None",
            "__builtins__.__dict__.clear() if hasattr(__builtins__, '__dict__') else None",
            "signal.signal(signal.SIGTERM, signal.SIG_IGN)",
            "quietly(lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3)))",
            "import gc; gc.disable(); gc.set_threshold(1)",
            "threading.Thread = None",
        )
    )


def _ends(dice: random.Random) -> str:
    return dice.choice(
        (
            "os._exit(0)", "os._exit(81)", "os._exit(80)", "sys.exit(0)", "raise SystemExit(3)", "os.abort()",
            "raise KeyboardInterrupt", "ctypes.string_at(0)", "raise MemoryError", "raise PermissionError",
            "quietly(lambda: os.kill(0, 9))",
            "libc = ctypes.CDLL(None)\nlibc.syscall(231, 0)", "signal.setitimer(signal.ITIMER_REAL, 0.001)",
            "kept = [bytes(1 << 20) for _ in range(400)]", "time.sleep(0.02)", "raise BaseException('\\ud800')",
            "signal.setitimer(signal.ITIMER_VIRTUAL, 0.001)\nfor _ in range(10**6): pass",
        )
    )  # fmt: skip


def _hangs(dice: random.Random) -> str:
    return dice.choice(("while True: pass", "time.sleep(99)", "os.read(5, 1)", "threading.Event().wait()"))


def _kills_a_thread(dice: random.Random) -> str:
    return "threading.Thread(target=lambda: ctypes.CDLL(None).syscall(60, 0)).start()\ntime.sleep(0.005)"


ACTS: dict[str, Callable[[random.Random], str]] = {
    "writes": _writes,
    "writes more": _writes,
    "writes everywhere": _writes_everywhere,
    "forges lines": _forges_lines,
    "forges results": _forges_results,
    "sends frames": _sends_frames,
    "breaks a frame": _breaks_a_frame,
    "is slow to read": _is_slow_to_read,
    "is slow output": _is_slow_output,
    "is slow to judge": _is_slow_to_judge,
    "changes files": _changes_files,
    "moves descriptors": _moves_descriptors,
    "fills scratch": _fills_scratch,
    "breaks python": _breaks_python,
    "ends": _ends,
    "hangs": _hangs,
    "kills a thread": _kills_a_thread,
    **hostile_hoards.HOARDS,
}
"""What a program may do, by name: each draws a few lines."""
