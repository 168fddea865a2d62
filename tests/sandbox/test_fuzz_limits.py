"""Programs drawn at random that try to hold more than their limits, by the flags of calls that are allowed.

A failure names its seed: ``draw_hoarder(seed, REST_S)`` of ``tests/helpers/fuzz_jail.py`` draws the program again, and
:data:`KEPT` has seeds whose programs held more than they may where those flags were allowed.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from fuzz_jail import draw_hoarder
from limit_meter import Holding, LimitMeter
from other_user import ask, readable_copy

from sandbox import Limits
from sandbox.inside.zygote import MAX_THREADS

FULL_S, TOGETHER = 150.0, 20
"""Seconds in full, in which each client runs so many programs."""
KEPT = (34, 40, 17, 22)
REST_S, SUSTAINED_S = 0.45, 0.25
"""Seconds that a program rests with what it holds, and that count: a look of the zygote's ends what is too much."""
MOST = 1.2
LIMITS = Limits(timeout_s=3.0, memory_bytes=256 << 20, output_bytes=1 << 18, open_files=64, file_bytes=4 << 20)

CLIENT = """
import json, sys, time
request = json.load(sys.stdin)
sys.path.insert(0, request["root"])
from sandbox import Limits, Sandbox
from sandbox.errors import SandboxUnavailableError
limits, reply = Limits(**request["limits"]), {"runs": []}
try:
    with Sandbox(level=request["level"], workers=1, limits=limits) as sandbox:
        sandbox.run("import time; time.sleep(0.1)")
        for source in request["sources"]:
            began = time.monotonic()
            result = sandbox.run(source)
            ended = time.monotonic()
            time.sleep(0.05)
            after = sandbox.run("print(6 * 7)", limits=Limits(timeout_s=60))
            reply["runs"].append([began, ended, result.status, after.stdout])
except SandboxUnavailableError as error:
    reply["unavailable"] = str(error)
print(json.dumps(reply))
"""


@pytest.fixture(scope="module")
def readable(root: Path) -> Iterator[Path]:
    """A copy of the package that everyone may read."""
    with readable_copy(root) as folder:
        yield folder


def _run(readable: Path, level: str, seeds: Sequence[int], *, as_nobody: bool) -> list[Any]:
    """Run the programs of some seeds one after another; return for each when it began and ended, and how."""
    sources = [draw_hoarder(seed, REST_S).source for seed in seeds]
    request = {"root": str(readable), "level": level, "limits": asdict(LIMITS), "sources": sources}
    reply = ask([CLIENT], request, as_nobody=as_nobody)
    if "unavailable" in reply:
        pytest.skip(f"this machine does not give level {level!r}: {reply['unavailable']}")
    return list(reply["runs"])


def _shares(holding: Holding) -> dict[str, float]:
    """Return what was held of each limit, as a share of it."""
    return {
        "descriptors": holding.descriptors / LIMITS.open_files,
        "threads": holding.threads / MAX_THREADS,
        "output": holding.output_bytes / LIMITS.output_bytes,
        "files": holding.file_bytes / LIMITS.file_bytes,
        "memory": holding.memory_bytes / LIMITS.memory_bytes,
    }


def _draws(full: bool, as_nobody: bool) -> Iterator[Sequence[int]]:
    """Yield seeds by the client that runs them: half of those kept, or all and then new ones until the time is up."""
    yield KEPT if full else KEPT[as_nobody::2]
    until = time.monotonic() + FULL_S
    first = secrets.randbits(31)
    while full and time.monotonic() < until:
        yield range(first, first + TOGETHER)
        first += TOGETHER


@pytest.mark.fuzz
@pytest.mark.parametrize("as_nobody", [False, True], ids=["own-user", "nobody"])
@pytest.mark.parametrize("level", ["strict", "standard"])
def test_no_program_holds_more_than_its_limits(readable: Path, level: str, as_nobody: bool, full: bool) -> None:
    """Whatever flags it passes, a program holds at most 1.2 times what it may for longer than a look takes."""
    if os.getuid() != 0:
        pytest.skip("only root can look into a jail from outside")
    worst = dict.fromkeys(_shares(Holding(*[0] * 6)), 0.0)
    programs = 0
    with LimitMeter() as meter:
        for seeds in _draws(full, as_nobody):
            runs = _run(readable, level, seeds, as_nobody=as_nobody)
            for seed, (began, ended, status, after) in zip(seeds, runs, strict=True):
                program = (f"seed {seed}", draw_hoarder(seed, REST_S).acts, status)
                assert "42\n" == after, program
                shares = _shares(meter.sustained(began, ended, SUSTAINED_S))
                assert {} == {name: share for name, share in shares.items() if share > MOST}, program
                worst = {name: max(share, worst[name]) for name, share in shares.items()}
                programs += 1
    print(f"{programs} programs at {level}: {worst}")
    assert worst["descriptors"] > 0, "nothing was measured"


def test_a_hoarder_is_drawn_again_by_its_seed() -> None:
    """What a failure names can be run again, and each program compiles."""
    programs = [draw_hoarder(seed, REST_S) for seed in range(50)]
    assert programs == [draw_hoarder(seed, REST_S) for seed in range(50)]
    assert 45 <= len({program.source for program in programs})
    for program in programs:
        compile(program.source, "main.py", "exec")
