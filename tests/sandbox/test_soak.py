"""Many evaluations with hostile ones among them: every result right and in order; nothing leaks."""

from __future__ import annotations

import gc
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from patience import LONG_S, alive, unshared_bytes, wait_for

from sandbox import ExecutionResult, ExecutionStatus, Limits, Sandbox, process

BATCH = 200
LIMITS = Limits(timeout_s=LONG_S, memory_bytes=128 << 20, output_bytes=1 << 16, file_bytes=2 << 20)
BRIEF = Limits(timeout_s=0.2, memory_bytes=128 << 20, output_bytes=1 << 16, file_bytes=2 << 20)

OK, NONZERO, TIMEOUT, MEMORY, OUTPUT_LIMIT, KILLED, FORBIDDEN, INFRASTRUCTURE = ExecutionStatus
HOSTILE: dict[str, tuple[str, ExecutionStatus, ...]] = {
    "loop": ("while True: pass", TIMEOUT),
    "ignored signals": (
        "import signal\nfor n in range(1, 32):\n    try: signal.signal(n, signal.SIG_IGN)\n    except OSError: pass\n"
        "while True: pass",
        TIMEOUT,
    ),
    "memory": ("x = bytes(1 << 40)", MEMORY),
    "growth": ("x = []\nwhile True: x.append(bytes(1 << 20))", MEMORY, TIMEOUT),
    "segfault": ("import ctypes; ctypes.string_at(0)", KILLED),
    "abort": ("import os; os.abort()", KILLED),
    "output": ("while True: print('x' * 1000)", OUTPUT_LIMIT, TIMEOUT),
    "fork": ("import os; os.fork()", FORBIDDEN),
    "exit": ("import os; os._exit(9)", NONZERO),
    "files": ("for n in range(100): open(f'f{n}', 'wb').write(bytes(100_000))", OK, NONZERO, OUTPUT_LIMIT, TIMEOUT),
    "deep": ("import os\nwhile True: os.mkdir('d'); os.chdir('d')", OUTPUT_LIMIT, NONZERO, TIMEOUT),
    "locked": ("import os; os.makedirs('a/b'); os.mkdir('a/b/c', 0); os.mkdir('d', 0)", OK, OUTPUT_LIMIT),
    "threads": (
        "import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(9,)).start()", TIMEOUT, NONZERO,
    ),
    "descriptors": ("import os\nwhile True: os.dup(0)", NONZERO),
    "recursion": ("def f(): f()\nf()", NONZERO),
    "kill": ("import os; os.kill(os.getppid(), 9)", FORBIDDEN),
    "closed": ("import os; os.closerange(0, 100)", OK, NONZERO, OUTPUT_LIMIT),
    "syntax": ("def", NONZERO),
}  # fmt: skip


def _hostile(number: int, every: int) -> str | None:
    """Return which hostile program an evaluation is, or none: one in so many is hostile."""
    if number % every != every // 2:
        return None
    return list(HOSTILE)[number // every % len(HOSTILE)]


def _evaluation(sandbox: Sandbox, number: int, hostile: str | None) -> Callable[[], ExecutionResult]:
    if hostile is not None:
        source, *ends = HOSTILE[hostile]
        return lambda: sandbox.run(source, limits=BRIEF if TIMEOUT in ends else LIMITS)
    if number % 3 == 0:
        return lambda: sandbox.call(f"def f(x): return x, {number}", "f", [(1,), ("a",)])
    if number % 3 == 1:
        files = {"f": str(number)}
        return lambda: sandbox.run(
            "import sys; print(open('f').read(), sys.stdin.read())", stdin=f"<{number}>", files=files
        )
    return lambda: sandbox.run(f"import os; print({number}, os.listdir()); open('left', 'w').close()")


def _check(number: int, hostile: str | None, result: ExecutionResult) -> None:
    if hostile is not None:
        assert result.status in HOSTILE[hostile][1:], (hostile, result)
        return
    assert OK == result.status, (number, result)
    if number % 3 == 0:
        assert [(1, number), ("a", number)] == [value.value for value in result.value or []]
    elif number % 3 == 1:
        assert f"{number} <{number}>\n" == result.stdout
    else:
        assert f"{number} []\n" == result.stdout


def _run(sandbox: Sandbox, first: int, every: int) -> None:
    numbers = {number: _hostile(number, every) for number in range(first, first + BATCH)}
    results = sandbox._many([_evaluation(sandbox, *each) for each in numbers.items()])
    for each, result in zip(numbers.items(), results, strict=True):
        _check(*each, result)


def _folders() -> list[Path]:
    return sorted(Path(tempfile.gettempdir()).glob(f"rewardkit-jail-*-{os.getpid()}-*"))


def _left_over() -> list[Path]:
    """Give what evaluations left: all below the one directory that a zygote keeps for them."""
    return [path for folder in _folders() for path in folder.rglob("*") if path.parent != folder or not path.is_dir()]


def _state() -> dict[str, Any]:
    me = psutil.Process()
    return {"descriptors": me.num_fds(), "children": len(me.children(recursive=False)), "folders": len(_folders())}


@pytest.mark.soak
@pytest.mark.parametrize("level", ["standard", "strict"])
def test_thousands_of_evaluations_leak_nothing(full: bool, level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """20,000 evaluations, 2% of them hostile (200 and 5% in short form): all right, in order; nothing is lost."""
    monkeypatch.setattr(process, "GRACE_S", LONG_S)  # on a machine that stands still, no zygote is ended for being late
    firsts, every = (range(0, 20_000, BATCH), 50) if full else ([BATCH], 20)
    me = psutil.Process()
    before, others = _state(), set(me.children(recursive=True))
    with Sandbox(level=level, workers=2, limits=LIMITS) as sandbox:
        _run(sandbox, 0, every)
        gc.collect()
        zygotes, settled, memory = sandbox.processes, _state(), unshared_bytes()
        for first in firsts:
            _run(sandbox, first, every)
        gc.collect()
        assert wait_for(lambda: settled == _state())
        assert unshared_bytes() < memory + 0.05 * me.memory_info().rss
        assert sorted(zygotes) == sorted(sandbox.processes), "a zygote was ended"
        assert wait_for(lambda: [] == _left_over())  # a zygote empties it after its report
        assert wait_for(lambda: len(set(me.children(recursive=True)) - others) <= 3 * len(zygotes))
        below = set(me.children(recursive=True)) - others
    assert wait_for(lambda: before == _state())
    assert [] == alive(below)
