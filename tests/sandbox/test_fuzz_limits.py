"""Programs drawn at random that try to hold more than their limits, by the flags of calls that are allowed.

A failure names its seed: ``draw_hoarder(seed, REST_S)`` of ``tests/helpers/fuzz_jail.py`` draws the program again, and
:data:`KEPT` has seeds whose programs held more than they may where those flags were allowed.
"""

from __future__ import annotations

import dataclasses
import os
import secrets
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from fuzz_jail import draw_hoarder
from limit_meter import Holding, LimitMeter
from other_user import ask

from sandbox import Limits
from sandbox.inside.zygote import MAX_THREADS

FULL_S, TOGETHER = 150.0, 20
"""Seconds in full, in which each client runs so many programs."""
KEPT = (34, 40, 17, 22)
REST_S, SUSTAINED_S = 0.45, 0.25
"""Seconds that a program rests with what it holds, and that count: a look of the zygote's ends what is too much.

Where the machine was too busy for a look, the program runs again with ten times as much."""
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


class Run(NamedTuple):
    """How a program ended, whether the next one was right, and its largest holdings as shares of the limits."""

    seed: int
    acts: tuple[str, ...]
    status: str
    next_output: str
    shares: dict[str, float]

    @property
    def excess(self) -> dict[str, float]:
        """The shares that are too large."""
        return {name: share for name, share in self.shares.items() if share > MOST}


class Jails:
    """Clients of a level and user that run programs, with a meter beside them."""

    def __init__(self, readable: Path, level: str, meter: LimitMeter, *, as_nobody: bool) -> None:
        self._root, self._level, self._meter, self._as_nobody = str(readable), level, meter, as_nobody

    def run(self, seeds: Sequence[int], times: int = 1) -> list[Run]:
        """Run the programs of some seeds one after another, each with so many times the time to be measured in."""
        programs = [draw_hoarder(seed, REST_S * times) for seed in seeds]
        limits = dataclasses.replace(LIMITS, timeout_s=LIMITS.timeout_s * times)
        request = {"root": self._root, "level": self._level, "limits": dataclasses.asdict(limits)}
        request["sources"] = [program.source for program in programs]
        reply = ask([CLIENT], request, as_nobody=self._as_nobody)
        if "unavailable" in reply:
            pytest.skip(f"this machine does not give level {self._level!r}: {reply['unavailable']}")
        runs = []
        for seed, program, (began, ended, status, after) in zip(seeds, programs, reply["runs"], strict=True):
            shares = _shares(self._meter.sustained(began, ended, SUSTAINED_S * times))
            runs.append(Run(seed, program.acts, status, after, shares))
        return runs


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
    runs: list[Run] = []
    with LimitMeter() as meter:
        jails, has_group = Jails(readable, level, meter, as_nobody=as_nobody), meter.measures_memory
        for seeds in _draws(full, as_nobody):
            runs += [jails.run([run.seed], 10)[0] if run.excess else run for run in jails.run(seeds)]
            assert [] == [run for run in runs if run.excess or run.next_output != "42\n"]
    worst = {name: max(run.shares[name] for run in runs) for name in runs[0].shares}
    print(f"{len(runs)} programs at {level}: {worst}")
    assert worst["descriptors"] > 0, "nothing was measured"
    if not has_group:
        pytest.skip("every limit held, and memory was not measured: no memory control group can be made here")
    assert any(holding.memory_bytes for holding in meter.holdings), "no memory was measured"


def test_a_hoarder_is_drawn_again_by_its_seed() -> None:
    """What a failure names can be run again, and each program compiles."""
    programs = [draw_hoarder(seed, REST_S) for seed in range(50)]
    assert programs == [draw_hoarder(seed, REST_S) for seed in range(50)]
    assert 45 <= len({program.source for program in programs})
    for program in programs:
        compile(program.source, "main.py", "exec")
