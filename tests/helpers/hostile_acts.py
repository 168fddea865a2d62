"""What a reward may do to the worker that runs it: acts by name, and rewards that commit those they are told to.

A script is text: acts with a space between, each ``name/detail@way``. The detail seeds the act's own choices; the way
says where it is committed: ``now``, in a ``thread`` that is waited for, ``later`` in a thread that is left over, in a
forked child (``fork``), or on the event loop, ``soon`` or in a ``task`` of its own.
"""

from __future__ import annotations

import _thread
import asyncio
import builtins
import contextlib
import ctypes
import faulthandler
import fcntl
import gc
import json
import locale
import logging
import math
import mmap
import multiprocessing
import os
import pickle
import pty
import queue
import random
import resource
import select
import selectors
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any, NoReturn

import pebble

from rewardkit import Reward, reward

DEFAULT = -1.0
LANES = ("serial", "threads", "loop")
WAYS = ("now", "thread", "later", "fork", "soon", "task")
PRINTING_EVERY, SLEEPING_EVERY = 7, 5
WAITING = "wait"
"""The completion of an innocent that takes its time, so that what others left running meets it."""
WAIT_S = 0.03

Loop = asyncio.AbstractEventLoop | None
Act = Callable[[random.Random, Loop], object]

# What acts and innocents use themselves, whatever has been patched.
_sleep, _asleep, _print = time.sleep, asyncio.sleep, print
_write, _pwrite, _listdir, _kill, _fork, _exit = os.write, os.pwrite, os.listdir, os.kill, os.fork, os._exit
_get_loop, _Thread, _Random, _float, _len = asyncio.get_running_loop, threading.Thread, random.Random, float, len
_libc, _libc_python = ctypes.CDLL(None), ctypes.pythonapi
_hoard: list[Any] = []
_PTRACE_TRACEME = 0
_LOW, _HIGH = 64, 1024


def score_of(lane: str, row: int) -> float:
    """Give the right score, which no other row or lane has."""
    return 10.0 * row + {"serial": 0, "threads": 1, "loop": 2}[lane]


# Descriptors.


def _frame(message: Any) -> bytes:
    body = json.dumps(message).encode()
    return struct.pack("<I", _len(body)) + body


JUNK = (
    b"a line of a log\n",
    b"\n" * 64,
    bytes(1),
    bytes(4096),
    bytes(1 << 17),
    b"\xff" * 64,
    b"\xff" * 70_000,
    struct.pack("d", math.nan) * 9000,
    struct.pack("d", math.inf) * 512,
    b'{"a": 1}\n',
    b"[1]\n[]\n",
    b"[1, 2, 3, 4]\n",
    b'["1", 0.1, "", 5.0]\n',
    b'[1000000000, 0.1, "", 5.0]\n',
    b'[-1, -1.0, "", 5.0]\n',
    b'[true, 0.1, "", [0, 1.0]]\n',
    b"[{}, {}, {}, {}]\n",
    b"[1e999, NaN, Infinity, -Infinity]\n",
    b"[" * 100_000 + b"\n",
    b"[[[[[[[[null]]]]]]]]\n",
    b"9" * 5000 + b"\n",
    b"\xff\xff\xff\xff",
    b"\x00\x00\x00\x00",
    b"\x01\x00\x00\x00",
    _frame([]),
    _frame({}),
    _frame(["done"]),
    _frame(["done", -1, False, 0]),
    _frame(["done", 10**9, False, 0]),
    _frame(["done", "1", None, None]),
    _frame(["wake"]),
    _frame(["wake", 1]),
    _frame(["ready"]),
    _frame(["emptied"]),
    _frame(["load_error"]),
    _frame(["load_error", "no reason"]),
    _frame(["ended", 0, 1, 0]),
    _frame(["unheard of", 1]),
    _frame("done"),
    _frame(None),
    struct.pack("<I", 2) + b"\xff\xfe",
    pickle.dumps(("run", 1, 0, 1, 0, [(0,)])),
    struct.pack("<I", 14) + b"not a pickle..",
)


def _descriptors(rng: random.Random) -> list[int]:
    """Give some of the descriptors that are open: all, the low ones, the high ones, or one."""
    present = sorted(number for number in map(int, _listdir("/proc/self/fd")) if 2 < number < _HIGH)
    kind = rng.randrange(4)
    if kind == 0:
        return present
    if kind == 1:
        return [number for number in present if number < _LOW]
    if kind == 2:
        return [number for number in present if number >= _LOW]
    return [rng.choice(present)] if present else []


def _to_each(rng: random.Random, act: Callable[[int], object]) -> None:
    for number in _descriptors(rng):
        with contextlib.suppress(OSError, ValueError):
            act(number)


def writes(rng: random.Random, loop: Loop) -> None:
    """Write junk, as to a log's descriptor that travelled as a number."""
    junk = rng.choice(JUNK)
    _to_each(rng, lambda number: _write(number, junk))


def writes_three(rng: random.Random, loop: Loop) -> None:
    """Write junk to the number 3."""
    with contextlib.suppress(OSError):
        _write(3, rng.choice(JUNK))


def writes_anywhere(rng: random.Random, loop: Loop) -> None:
    """Write junk at some place."""
    junk, place = rng.choice(JUNK), rng.choice((0, 8, 16, 24, 64, 80, 88, 4096, 1 << 16))
    _to_each(rng, lambda number: _pwrite(number, junk, place))


def writes_zeros(rng: random.Random, loop: Loop) -> None:
    """Write zeros to every number."""
    for number in range(3, _HIGH):
        with contextlib.suppress(OSError):
            _pwrite(number, bytes(1 << 16), 0)


def shortens(rng: random.Random, loop: Loop) -> None:
    """Cut files off."""
    size = rng.choice((0, 1, 4096))
    _to_each(rng, lambda number: os.ftruncate(number, size))


def lengthens(rng: random.Random, loop: Loop) -> None:
    """Make files longer."""
    _to_each(rng, lambda number: os.ftruncate(number, 1 << 26))


def seeks(rng: random.Random, loop: Loop) -> None:
    """Move the places where files are read and written."""
    place = rng.choice((0, 1, 1 << 20))
    _to_each(rng, lambda number: os.lseek(number, place, os.SEEK_SET))


def covers(rng: random.Random, loop: Loop) -> None:
    """Put /dev/null, or another descriptor, in the place of descriptors."""
    null = os.open(os.devnull, os.O_RDWR)
    source = null if rng.random() < 0.5 else rng.choice(_descriptors(rng) or [null])
    _to_each(rng, lambda number: os.dup2(source, number))


def closes(rng: random.Random, loop: Loop) -> None:
    """Close descriptors, in one of several ways."""
    way = rng.choice((os.close, _libc.close, socket.close, lambda number: open(number, "rb").close()))
    _to_each(rng, way)


def shuts_down(rng: random.Random, loop: Loop) -> None:
    """Shut sockets down."""

    def shut(number: int) -> None:
        with socket.socket(fileno=os.dup(number)) as one:
            one.shutdown(rng.choice((socket.SHUT_RD, socket.SHUT_WR, socket.SHUT_RDWR)))

    _to_each(rng, shut)


def reads(rng: random.Random, loop: Loop) -> None:
    """Read what was for the worker."""

    def read(number: int) -> None:
        if select.select([number], [], [], 0)[0]:
            os.read(number, 1 << 16)

    _to_each(rng, read)


def changes_flags(rng: random.Random, loop: Loop) -> None:
    """Have descriptors block, or not."""
    blocking = rng.random() < 0.5
    _to_each(rng, lambda number: os.set_blocking(number, blocking))


def locks(rng: random.Random, loop: Loop) -> None:
    """Lock files."""
    _to_each(rng, lambda number: fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB))


def opens_many(rng: random.Random, loop: Loop) -> None:
    """Open files until there are no more to be had."""
    with contextlib.suppress(OSError):
        for _ in range(3000):
            _hoard.append(os.open(os.devnull, os.O_RDONLY))


# Processes.


class ChildGoesOn(BaseException):
    """Raised by a child that ends by an error nobody expects."""


def _as_child(rng: random.Random) -> object:
    """Be the child of a fork, and end in one of several ways."""
    match rng.randrange(8):
        case 0 | 1:
            return None
        case 2:
            raise ValueError("the child")
        case 3:
            raise ChildGoesOn
        case 4:
            sys.exit(rng.choice((None, 0, 1)))
        case 5:
            _exit(rng.choice((0, 1)))
        case 6:
            os.setsid()
            _sleep(600)
        case _:
            _sleep(rng.choice((0.1, 1.0, 600.0)))
    return None


def forks(rng: random.Random, loop: Loop) -> None:
    """Fork a child that goes on in one of several ways."""
    if _fork() == 0:
        _as_child(rng)


def forks_twice(rng: random.Random, loop: Loop) -> None:
    """Fork a child that forks, and goes."""
    if _fork() == 0:
        if _fork() == 0:
            _as_child(rng)
        else:
            _exit(0)


def forks_many(rng: random.Random, loop: Loop) -> None:
    """Fork several."""
    for _ in range(rng.randrange(2, 6)):
        if _fork() == 0:
            _as_child(rng)
            return


def forks_and_waits(rng: random.Random, loop: Loop) -> None:
    """Fork, and wait for the child's end."""
    child = _fork()
    if child == 0:
        _as_child(rng)
    else:
        os.waitpid(child, 0)


def forks_terminal(rng: random.Random, loop: Loop) -> None:
    """Fork with a terminal."""
    if pty.fork()[0] == 0:
        _as_child(rng)


def forks_by_library(rng: random.Random, loop: Loop) -> None:
    """Have multiprocessing fork, and leave the child."""
    process = multiprocessing.get_context("fork").Process(target=_as_child, args=(rng,), daemon=rng.random() < 0.5)
    process.start()
    if rng.random() < 0.5:
        process.join(0.2)


def leaves_program(rng: random.Random, loop: Loop) -> None:
    """Leave a program running."""
    _hoard.append(subprocess.Popen(["sleep", "600"], start_new_session=rng.random() < 0.5))


def becomes_another(rng: random.Random, loop: Loop) -> None:
    """Become another program."""
    os.execv("/bin/sleep", ["sleep", rng.choice(("0", "600"))])


def exits(rng: random.Random, loop: Loop) -> None:
    """End the process."""
    _exit(rng.choice((0, 1, 70, 71, 255)))


def is_traced(rng: random.Random, loop: Loop) -> None:
    """Be traced by the parent, and stop at a signal."""
    _libc.ptrace(_PTRACE_TRACEME, 0, 0, 0)
    _kill(os.getpid(), rng.choice((signal.SIGUSR1, signal.SIGTRAP, signal.SIGCHLD)))


def leaves_group(rng: random.Random, loop: Loop) -> None:
    """Leave the group of processes."""
    with contextlib.suppress(OSError):
        os.setpgid(0, os.getppid())


# Signals.

SIGNALS = ("STOP", "TERM", "KILL", "ALRM", "SEGV", "USR1", "INT", "ABRT", "HUP", "PIPE", "CHLD", "TSTP", "QUIT", "BUS")


def signals_itself(rng: random.Random, loop: Loop) -> None:
    """Send itself a signal."""
    _kill(os.getpid(), signal.Signals[f"SIG{rng.choice(SIGNALS)}"])


def sets_alarm(rng: random.Random, loop: Loop) -> None:
    """Set an alarm and forget it."""
    if threading.current_thread() is threading.main_thread() and rng.random() < 0.5:
        signal.signal(signal.SIGALRM, _late)
    signal.setitimer(rng.choice((signal.ITIMER_REAL, signal.ITIMER_PROF)), rng.choice((0.001, 0.05, 0.5)))


def _late(*_: object) -> NoReturn:
    raise TimeoutError("an alarm that was forgotten")


def ignores_signals(rng: random.Random, loop: Loop) -> None:
    """Ignore or block every signal."""
    if threading.current_thread() is threading.main_thread() and rng.random() < 0.5:
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            with contextlib.suppress(OSError, ValueError):
                signal.signal(number, signal.SIG_IGN)
    else:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())


def is_stopped(rng: random.Random, loop: Loop) -> None:
    """Have another process stop this one, for a while or for ever."""
    worker, delay_s, stop_s = os.getpid(), rng.choice((0.001, 0.05)), rng.choice((0.1, 1.5, 600.0))
    if _fork() == 0:
        os.setsid()
        _sleep(delay_s)
        _kill(worker, signal.SIGSTOP)
        _sleep(stop_s)
        _kill(worker, signal.SIGCONT)
        _exit(0)


def signals_starter(rng: random.Random, loop: Loop) -> None:
    """Send the process that starts workers a signal."""
    _kill(os.getppid(), rng.choice((signal.SIGUSR1, signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD)))


def interrupts_main(rng: random.Random, loop: Loop) -> None:
    """Interrupt the main thread."""
    import _thread

    _thread.interrupt_main()


# Modules and clocks.


def _refuses(*_: object, **__: object) -> NoReturn:
    raise RuntimeError("patched")


def _returns_nothing(*_: object, **__: object) -> None:
    return None


def _stands_still(*_: object, **__: object) -> float:
    return 12345.0


def _says_text(*_: object, **__: object) -> str:
    return "now"


def _is_negative(*_: object, **__: object) -> float:
    return -1e9


def _is_not_a_number(*_: object, **__: object) -> float:
    return math.nan


def _is_infinite(*_: object, **__: object) -> float:
    return math.inf


CLOCKS = (_refuses, _stands_still, _says_text, _is_negative, _is_not_a_number, _is_infinite)


def freezes_clock(rng: random.Random, loop: Loop) -> None:
    """Replace clocks, as freezegun does."""
    for name in ("monotonic", "time", "perf_counter", "monotonic_ns", "time_ns"):
        if name == "monotonic" or rng.random() < 0.5:
            setattr(time, name, rng.choice(CLOCKS))
    if loop is not None and rng.random() < 0.3:
        loop.time = rng.choice(CLOCKS)  # type: ignore[method-assign]


_PATCHED: tuple[tuple[Any, str], ...] = (
    (os, "write"),
    (os, "close"),
    (os, "read"),
    (os, "getpid"),
    (os, "fstat"),
    (os, "ftruncate"),
    (os, "pread"),
    (json, "dumps"),
    (json, "loads"),
    (pickle, "loads"),
    (pickle, "dumps"),
    (struct.Struct, "pack"),
    (struct, "pack"),
    (struct, "unpack"),
    (socket.socket, "recv"),
    (socket.socket, "sendall"),
    (socket, "recv_fds"),
    (socket, "send_fds"),
    (select, "poll"),
    (select, "select"),
    (threading.Thread, "start"),
    (threading.Thread, "run"),
    (threading, "active_count"),
    (threading, "get_ident"),
    (threading, "Lock"),
    (queue.Queue, "get"),
    (queue.Queue, "put"),
    (queue, "SimpleQueue"),
    (selectors.EpollSelector, "select"),
    (mmap, "mmap"),
    (resource, "getpagesize"),
    (resource, "getrusage"),
    (gc, "collect"),
    (random, "seed"),
    (logging, "getLogger"),
    (pebble.ThreadPool, "schedule"),
    (asyncio, "Task"),
    (asyncio, "run"),
    (asyncio, "sleep"),
    (asyncio, "get_running_loop"),
    (builtins, "open"),
    (builtins, "print"),
)


def patches(rng: random.Random, loop: Loop) -> None:
    """Replace a function that the worker itself uses."""
    owner, name = rng.choice(_PATCHED)
    with contextlib.suppress(AttributeError, TypeError):
        setattr(owner, name, rng.choice((_refuses, _returns_nothing, _says_text)))


_NAMES: tuple[tuple[Any, str], ...] = (
    (builtins, "float"),
    (builtins, "repr"),
    (builtins, "max"),
    (builtins, "sum"),
    (math, "isfinite"),
    (math, "sqrt"),
    (json, "dumps"),
    (json.JSONEncoder, "encode"),
    (random, "random"),
    (time, "monotonic"),
    (sys, "unraisablehook"),
)


def patches_names(rng: random.Random, loop: Loop) -> None:
    """Replace a name by what returns something else, or by nothing."""
    owner, name = rng.choice(_NAMES)
    value = rng.choice((int, _returns_nothing, _says_text, _is_negative, None))
    setattr(owner, name, value)


def seeds(rng: random.Random, loop: Loop) -> None:
    """Seed what all draw from."""
    random.seed(rng.randrange(100))


def patches_builtins(rng: random.Random, loop: Loop) -> None:
    """Replace a function that everybody uses."""
    name = rng.choice(("len", "isinstance", "getattr", "range", "type", "int", "float", "str", "__import__", "min"))
    setattr(builtins, name, rng.choice((_refuses, _returns_nothing)))


def clears_modules(rng: random.Random, loop: Loop) -> None:
    """Forget modules."""
    if rng.random() < 0.5:
        sys.modules.clear()
    else:
        for name in [name for name in sys.modules if rng.random() < 0.3]:
            del sys.modules[name]


def empties_module(rng: random.Random, loop: Loop) -> None:
    """Take everything out of one module."""
    name = rng.choice(("time", "json", "asyncio.events", "sandbox.workers.capture", "sandbox.workers.worker", "select"))
    if name in sys.modules:
        vars(sys.modules[name]).clear()


def disables_collector(rng: random.Random, loop: Loop) -> None:
    """Switch the collector off, or have it run all the time."""
    gc.disable() if rng.random() < 0.5 else gc.set_threshold(1)


def sets_hooks(rng: random.Random, loop: Loop) -> None:
    """Replace the interpreter's hooks."""
    sys.excepthook = sys.unraisablehook = threading.excepthook = _refuses  # type: ignore[assignment]
    sys.displayhook = _refuses


def switches_rarely(rng: random.Random, loop: Loop) -> None:
    """Have threads take turns hardly ever."""
    sys.setswitchinterval(rng.choice((1e-6, 1000.0)))


def traces(rng: random.Random, loop: Loop) -> None:
    """Trace everything."""
    tracer = rng.choice((_refuses, _returns_nothing))
    rng.choice((sys.settrace, sys.setprofile, threading.settrace, threading.setprofile))(tracer)


def lowers_recursion(rng: random.Random, loop: Loop) -> None:
    """Allow hardly any recursion."""
    with contextlib.suppress(RecursionError):
        sys.setrecursionlimit(rng.choice((60, 120)))


def lowers_limits(rng: random.Random, loop: Loop) -> None:
    """Lower a limit of the process."""
    which, limit = rng.choice(
        (
            (resource.RLIMIT_NOFILE, 3),
            (resource.RLIMIT_FSIZE, 0),
            (resource.RLIMIT_FSIZE, 4096),
            (resource.RLIMIT_NPROC, 0),
            (resource.RLIMIT_STACK, 1 << 16),
        )
    )
    resource.setrlimit(which, (limit, resource.getrlimit(which)[1]))


def lowers_memory(rng: random.Random, loop: Loop) -> None:
    """Lower the limit of memory below what is held."""
    resource.setrlimit(rng.choice((resource.RLIMIT_AS, resource.RLIMIT_DATA)), (1 << 20, resource.RLIM_INFINITY))


def limits_processor(rng: random.Random, loop: Loop) -> None:
    """Have the kernel end the process after a second of work."""
    resource.setrlimit(resource.RLIMIT_CPU, (1, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def closes_streams(rng: random.Random, loop: Loop) -> None:
    """Do away with what prints go to."""
    match rng.randrange(4):
        case 0:
            sys.stdout = sys.stderr = None  # type: ignore[assignment]
        case 1:
            sys.stdout.close()
            sys.stderr.close()
        case 2:
            logging.shutdown()
        case _:
            logging.disable()
            logging.getLogger().handlers.clear()


def changes_surroundings(rng: random.Random, loop: Loop) -> None:
    """Change folder, environment, language, mask or priority."""
    match rng.randrange(5):
        case 0:
            os.chdir("/")
        case 1:
            os.environ.clear()
        case 2:
            with contextlib.suppress(locale.Error):
                locale.setlocale(locale.LC_ALL, "C")
        case 3:
            os.umask(0o777)
        case _:
            os.nice(19)


def plans_a_crash(rng: random.Random, loop: Loop) -> None:
    """Have the interpreter end the process in a moment."""
    faulthandler.dump_traceback_later(rng.choice((0.01, 0.2)), exit=True)


# Memory.


def crashes(rng: random.Random, loop: Loop) -> None:
    """Read where nothing is."""
    ctypes.string_at(0)


def grows(rng: random.Random, loop: Loop) -> None:
    """Grow until memory runs out."""
    hoard = []
    with contextlib.suppress(MemoryError):
        while True:
            hoard.append(bytearray(1 << 24))


def leaks(rng: random.Random, loop: Loop) -> None:
    """Keep much memory."""
    with contextlib.suppress(MemoryError):
        for _ in range(10):
            _hoard.append(bytearray(b"x") * (1 << 24))


def recurses(rng: random.Random, loop: Loop) -> None:
    """Call itself without end."""
    with contextlib.suppress(RecursionError):
        recurses(rng, loop)


def dies_in_del(rng: random.Random, loop: Loop) -> None:
    """Leave objects whose end raises, and a cycle of them for the collector."""

    class Bomb:
        def __del__(self) -> None:
            raise SystemExit(3)

    first, second = Bomb(), Bomb()
    first.other, second.other = second, first  # type: ignore[attr-defined]


class _Endless:
    """Garbage in a cycle, whose end blocks."""

    def __init__(self, seconds: float) -> None:
        self.me, self.seconds = self, seconds

    def __del__(self) -> None:
        _sleep(self.seconds)


def leaves_garbage(rng: random.Random, loop: Loop) -> None:
    """Leave garbage whose end blocks whoever is at work when it is collected."""
    for _ in range(rng.choice((1, 1, 3))):
        _Endless(rng.choice((0.1, 0.7, 600.0)))


def leaves_callback(rng: random.Random, loop: Loop) -> None:
    """Leave what the collector calls."""
    seconds = rng.choice((0.7, 600.0))
    if rng.random() < 0.5:
        gc.callbacks.insert(0, lambda *_: _sleep(seconds))
    else:
        target = type("Target", (), {})()
        target.me = target
        _hoard.append(weakref.ref(target, lambda _: _sleep(seconds)))


# Threads.


def _throw(kind: type[BaseException]) -> None:
    for number in sys._current_frames():
        if number != threading.get_ident():
            _libc_python.PyThreadState_SetAsyncExc(ctypes.c_ulong(number), ctypes.py_object(kind))


def raises_elsewhere(rng: random.Random, loop: Loop) -> None:
    """Raise an error in every other thread."""
    _throw(rng.choice((ValueError, KeyError, SystemExit)))


def leaves_low_thread(rng: random.Random, loop: Loop) -> None:
    """Leave a thread that ``threading`` does not know, which works, waits or raises an error elsewhere."""
    what, delay_s = rng.randrange(3), rng.choice((0.001, 0.02, 0.2))

    def run() -> None:
        _sleep(delay_s)
        match what:
            case 0:
                _throw(ValueError)
            case 1:
                _sleep(600)
            case _:
                sum(range(10**7))

    _thread.start_new_thread(run, ())


# The event loop.


def stops_loop(rng: random.Random, loop: Loop) -> None:
    """Stop the loop."""
    if loop is not None:
        loop.stop()


def cancels_everything(rng: random.Random, loop: Loop) -> None:
    """Cancel every task, or every other one."""
    if loop is None:
        return
    own = None
    with contextlib.suppress(RuntimeError):
        own = asyncio.current_task(loop)
    spared = {own} if rng.random() < 0.5 else set()
    for task in asyncio.all_tasks(loop) - spared:
        task.cancel()


def closes_loop(rng: random.Random, loop: Loop) -> None:
    """Close the loop, though it runs."""
    if loop is None:
        return
    if rng.random() < 0.5:
        loop._thread_id = None  # type: ignore[attr-defined]  # it refuses while it runs
    with contextlib.suppress(RuntimeError):
        loop.close()


def unsets_loop(rng: random.Random, loop: Loop) -> None:
    """Have this thread forget its loop."""
    if loop is None:
        return
    if rng.random() < 0.5:
        asyncio.set_event_loop(None)
    else:
        asyncio._set_running_loop(None)


def patches_loop(rng: random.Random, loop: Loop) -> None:
    """Replace a method of the loop."""
    if loop is not None:
        name = rng.choice(("call_at", "call_later", "call_soon", "time", "create_task", "_run_once", "add_reader"))
        setattr(loop, name, rng.choice((_refuses, _returns_nothing, _stands_still)))


def empties_loop(rng: random.Random, loop: Loop) -> None:
    """Throw away what the loop is to do."""
    if loop is None:
        return
    for name in ("_ready", "_scheduled"):
        if rng.random() < 0.6:
            getattr(loop, name).clear()


def deafens_loop(rng: random.Random, loop: Loop) -> None:
    """Have the loop listen to nothing."""
    if loop is None:
        return
    if rng.random() < 0.3:
        loop._selector.close()  # type: ignore[attr-defined]
    else:
        for number in _descriptors(rng):
            with contextlib.suppress(OSError, ValueError):
                loop.remove_reader(number)


def sets_up_loop(rng: random.Random, loop: Loop) -> None:
    """Set the loop's hooks."""
    if loop is not None:
        loop.set_exception_handler(rng.choice((_refuses, None)))
        loop.set_task_factory(rng.choice((None, _refuses)))
        loop.set_debug(rng.random() < 0.5)


def leaves_busy_task(rng: random.Random, loop: Loop) -> None:
    """Leave a task that works without end, a little at a time."""

    async def busy() -> None:
        while True:
            await _asleep(0)

    if loop is not None:
        _hoard.append(loop.create_task(busy()))


def leaves_deaf_task(rng: random.Random, loop: Loop) -> None:
    """Leave a task that cannot be cancelled."""

    async def deaf() -> None:
        while True:
            with contextlib.suppress(asyncio.CancelledError):
                await _asleep(600)

    if loop is not None:
        _hoard.append(loop.create_task(deaf()))


def blocks(rng: random.Random, loop: Loop) -> None:
    """Block the thread."""
    _sleep(rng.choice((0.05, 0.3, 600.0)))


def holds_interpreter(rng: random.Random, loop: Loop) -> None:
    """Let no other thread run."""
    9**9**9


# Errors.


def raises(rng: random.Random, loop: Loop) -> NoReturn:
    """Raise an error of some kind."""
    kinds = (
        ValueError,
        asyncio.CancelledError,
        KeyboardInterrupt,
        SystemExit,
        GeneratorExit,
        StopIteration,
        StopAsyncIteration,
        MemoryError,
        RecursionError,
        EOFError,
        BlockingIOError,
        InterruptedError,
        BrokenPipeError,
        TimeoutError,
        ChildGoesOn,
    )
    raise rng.choice(kinds)("an act")


def floods(rng: random.Random, loop: Loop) -> None:
    """Print much, also below Python."""
    for _ in range(50):
        _print("z" * 10_000)
    for number in (1, 2):
        with contextlib.suppress(OSError):
            _write(number, b"z" * 100_000)


KINDS: tuple[tuple[Act, ...], ...] = (
    (
        writes,
        writes,
        writes,
        writes_three,
        writes_anywhere,
        writes_anywhere,
        writes_zeros,
        shortens,
        lengthens,
        seeks,
        covers,
        closes,
        shuts_down,
        reads,
        changes_flags,
        locks,
        opens_many,
    ),
    (
        forks,
        forks,
        forks_twice,
        forks_many,
        forks_and_waits,
        forks_terminal,
        forks_by_library,
        leaves_program,
        becomes_another,
        exits,
        is_traced,
        leaves_group,
    ),
    (
        signals_itself,
        signals_itself,
        is_stopped,
        is_stopped,
        sets_alarm,
        ignores_signals,
        signals_starter,
        interrupts_main,
    ),
    (
        freezes_clock,
        freezes_clock,
        patches,
        patches,
        patches,
        patches_names,
        patches_names,
        seeds,
        patches_builtins,
        clears_modules,
        empties_module,
        disables_collector,
        sets_hooks,
        switches_rarely,
        traces,
        lowers_recursion,
        lowers_limits,
        lowers_memory,
        limits_processor,
        closes_streams,
        changes_surroundings,
        plans_a_crash,
    ),
    (crashes, grows, leaks, recurses, dies_in_del, leaves_garbage, leaves_garbage, leaves_callback),
    (leaves_low_thread, leaves_low_thread, raises_elsewhere),
    (
        stops_loop,
        stops_loop,
        cancels_everything,
        cancels_everything,
        closes_loop,
        unsets_loop,
        patches_loop,
        empties_loop,
        deafens_loop,
        sets_up_loop,
        leaves_busy_task,
        leaves_deaf_task,
    ),
    (blocks, raises, raises, floods, holds_interpreter),
)
ACTS: dict[str, Act] = {act.__name__: act for kind in KINDS for act in kind}
SPOILING = {"lowers_memory"}
"""Acts that take from the process what every function in it runs on; the innocents after them may fail."""


def draw_script(rng: random.Random) -> str:
    """Give a script of one to three acts."""
    acts = []
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3))):
        act = rng.choice(rng.choice(KINDS)).__name__
        way = rng.choice(WAYS) if rng.random() < 0.5 else "now"
        acts.append(f"{act}/{rng.randrange(1000)}@{way}")
    return " ".join(acts)


def spoils(script: str) -> bool:
    """Whether innocents in the same worker may fail after this script."""
    return any(step.partition("/")[0] in SPOILING for step in script.split())


def _commit(script: str, loop: Loop) -> None:
    for step in script.split():
        name, _, rest = step.partition("/")
        detail, _, way = rest.partition("@")
        _commit_one(ACTS[name], int(detail), way, loop)


def _commit_one(act: Act, detail: int, way: str, loop: Loop) -> None:
    rng = _Random(detail)
    if way == "now" or (way in ("soon", "task") and loop is None):
        act(rng, loop)
    elif way == "thread":
        thread = _Thread(target=act, args=(rng, loop), daemon=True)
        thread.start()
        thread.join()
    elif way == "later":
        _Thread(target=_after, args=(rng.choice((0.001, 0.02, 0.2)), act, rng, loop), daemon=True).start()
    elif way == "fork":
        if _fork() == 0:
            try:
                act(rng, loop)
            finally:
                if rng.random() < 0.5:
                    _exit(0)
    elif way == "soon":
        assert loop is not None
        loop.call_soon(act, rng, loop)
    else:
        assert loop is not None
        _hoard.append(loop.create_task(_in_task(act, rng, loop)))


async def _in_task(act: Act, rng: random.Random, loop: Loop) -> None:
    await _asleep(rng.choice((0, 0.02)))
    act(rng, loop)


def _after(delay_s: float, act: Act, rng: random.Random, loop: Loop) -> None:
    _sleep(delay_s)
    act(rng, loop)


def serial(completion: str, row: int) -> float:
    """Commit the script, or be an innocent: a number that no other row or lane has."""
    _behave(completion, row)
    return score_of("serial", row)


def threads(completion: str, row: int) -> float:
    """Do the same on threads."""
    _behave(completion, row)
    return score_of("threads", row)


async def loop(completion: str, row: int) -> float:
    """Do the same on an event loop."""
    if completion not in ("", WAITING):
        _commit(completion, _get_loop())
        await _asleep(0.01)
    elif row % PRINTING_EVERY == 0:
        _print(f"row {row}")
    elif completion == WAITING or row % SLEEPING_EVERY:
        await _asleep(WAIT_S if completion == WAITING else 0.01)
    return score_of("loop", row)


def _behave(completion: str, row: int) -> None:
    if completion not in ("", WAITING):
        _commit(completion, None)
    elif row % PRINTING_EVERY == 0:
        _print(f"row {row}")
    elif completion == WAITING or row % SLEEPING_EVERY == 0:
        _sleep(WAIT_S if completion == WAITING else 0.005)


def rewards(timeout_s: float, width: int) -> list[Reward[..., Any]]:
    """Give a reward for each lane; completions are scripts to commit, and ``""`` and ``"wait"`` innocents."""
    options: dict[str, Any] = {"timeout_s": timeout_s, "default": DEFAULT}
    return [reward(**options)(serial), reward(**options, concurrency=width)(threads), reward(**options)(loop)]
