"""A fuzzer of the worker lanes: innocent calls among hostile ones, drawn from a seed.

    python tests/helpers/fuzz_workers.py 17                   # one session, that of seed 17
    python tests/helpers/fuzz_workers.py 100 --seeds 50       # those of seeds 100 to 149
    python tests/helpers/fuzz_workers.py --script "loop: forks/3@now | exits/1@later"

It needs the project's folder and this one in PYTHONPATH.

A session is a runtime that scores some batches and is closed. Told is whatever is wrong: a batch that does not end, an
innocent without its own score, a guilty call with another's, and what is left afterwards. It runs in a process of its
own, for what workers do may end that.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import itertools
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import psutil
from hostile_acts import DEFAULT, LANES, PRINTING_EVERY, WAITING, draw_script, rewards, score_of, spoils

from rewardkit import Outcome, Rollout, Runtime, Status

DEADLINE_S = 1.0
PATIENT = 10
"""How many times its deadline a call gets where innocents did not keep the first: the machine may stand still."""
GRACE_S = 120.0
"""Seconds that a batch may take beyond its calls' own; only one that hangs takes them all."""
REPLACED_S = 8.0
"""Seconds that a guilty call may cost besides its deadline, each time it is run."""
RUNS = 3
"""Times that a call may be run: with others, alone, and once more."""
LEFT_S = 60.0
"""Seconds until everything that a closed runtime leaves has to be gone."""
MEMORY_BYTES = 1 << 29
MARK = "REWARDKIT_FUZZ"
"""Set in the environment of what a session starts, by which its processes are known."""
SHARED = ("psm_", "rewardkit")
"""How names of files in shared memory begin that Python or this project makes; servers of other tests make more."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Some rollouts.

    Attributes:
        guilty: The scripts of those that are guilty, by place.
        size: How many there are; all others are innocent.
        waiting_every: One in so many innocents takes its time.
    """

    guilty: dict[int, str]
    size: int
    waiting_every: int = 10**9

    def completion(self, place: int) -> str:
        """Give what is scored at a place."""
        return self.guilty.get(place, "" if place % self.waiting_every else WAITING)

    @property
    def bound_s(self) -> float:
        """Seconds in which the batch must have ended, its calls' own deadlines apart."""
        return GRACE_S + RUNS * REPLACED_S * len(self.guilty)


AFTERWARDS = Batch({}, 20, 1)
"""Innocents who meet what the guilty left running."""


@dataclass(frozen=True, slots=True)
class Session:
    """A runtime's life.

    Attributes:
        batches: What it scores, one after another.
        lanes: The lanes that it has.
        workers: Processes of the serial lane.
        width: Calls at once in the lane of threads.
        deadline_s: What each call may take.
    """

    batches: tuple[Batch, ...]
    lanes: tuple[str, ...] = LANES
    workers: int = 2
    width: int = 4
    deadline_s: float = DEADLINE_S

    def __str__(self) -> str:
        scripts = [", ".join(f"{place}: {script}" for place, script in one.guilty.items()) for one in self.batches]
        sizes = "/".join(str(one.size) for one in self.batches)
        shape = f"{'+'.join(self.lanes)}, {self.workers} workers, {self.width} threads, {sizes} rows"
        return f"{shape}: " + " | ".join(scripts)


class Told(NamedTuple):
    """What was told of one row's call."""

    row: int
    lane: str
    outcome: Outcome


def draw(seed: int) -> Session:
    """Give a seed's session."""
    rng = random.Random(seed)
    batches = []
    for _ in range(rng.choice((1, 2, 2, 3))):
        size = rng.choice((8, 20, 50, 300))
        places = rng.sample(range(size), rng.choice((1, 1, 2, 3)))
        waiting_every = 10**9 if size > 50 else rng.choice((1, 2, 10, 10**9))
        batches.append(Batch({place: draw_script(rng) for place in sorted(places)}, size, waiting_every))
    batches.append(AFTERWARDS)
    lanes = LANES if rng.random() < 0.4 else (rng.choice(LANES),)
    return Session(tuple(batches), lanes, rng.choice((1, 2, 2)), rng.choice((2, 4, 8)))


def of_script(script: str) -> Session:
    """Give a session that commits scripts one after another, each among innocents: ``lane: one | another``."""
    before, _, after = script.partition(":")
    lanes, scripts = ((before,), after) if before in LANES else (LANES, script)
    return Session((*(Batch({5: one.strip()}, 20) for one in scripts.split("|")), AFTERWARDS), lanes)


def check(session: Session) -> list[str]:
    """Run a session, with more time where innocents ran out of theirs, and give what is wrong."""
    wrong = _run(session)
    if wrong and all("timeout" in one for one in wrong):
        return _run(replace(session, deadline_s=PATIENT * session.deadline_s))
    return wrong


def _run(session: Session) -> list[str]:
    os.environ[MARK] = f"{os.getpid()}-{time.monotonic_ns()}"
    with tempfile.TemporaryDirectory() as folder:
        outside, tempfile.tempdir, os.environ["TMPDIR"] = os.environ.get("TMPDIR"), folder, folder
        try:
            with contextlib.closing(_Watched(session)) as watched:
                return list(watched.run()) + list(watched.left(Path(folder)))
        finally:
            tempfile.tempdir = None
            os.environ.pop("TMPDIR")
            if outside is not None:
                os.environ["TMPDIR"] = outside


class _Watched:
    """A session on its way; whatever it waits for has a bound."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._descriptors = _descriptors()
        self._shared = _shared_files()
        self._threads = set(threading.enumerate())
        chosen = [one for one in rewards(session.deadline_s, session.width) if one.name in session.lanes]
        self._runtime = Runtime(chosen, workers=session.workers, memory_bytes=MEMORY_BYTES, max_infrastructure_rate=1.0)

    def run(self) -> Iterator[str]:
        """Score the batches and give what is wrong."""
        first, spoiled = 0, False
        for number, batch in enumerate(self._session.batches):
            spoiled = spoiled or any(spoils(script) for script in batch.guilty.values())
            told, error, ended = self._score(batch, first)
            for words in _wrong(batch, first, self._session.lanes, told, ended and error is None, spoiled):
                yield f"batch {number}: {words}"
            if error is not None:
                yield f"batch {number}: the batch ended with {type(error).__name__}: {error}"
            if not ended:
                yield f"batch {number}: HANG\n{self._state()}"
            if error is not None or not ended:
                return
            first += batch.size

    def _score(self, batch: Batch, first: int) -> tuple[list[Told], BaseException | None, bool]:
        """Score a batch; give what was told of its rows, the error that ended it, and whether it ended."""
        rows = range(first, first + batch.size)
        rollouts = [Rollout("p", batch.completion(row - first), {"row": str(row)}) for row in rows]
        told: list[Told] = []
        errors: list[BaseException] = []

        def score() -> None:
            try:
                for finished in self._runtime.stream(rollouts):
                    told.append(Told(finished.row, finished.reward, finished.outcome))
            except BaseException as error:
                errors.append(error)

        deadlines = self._session.deadline_s * (1 + RUNS * len(batch.guilty))
        ended = _bounded(score, batch.bound_s + deadlines)
        return told, errors[0] if errors else None, ended

    def left(self, folder: Path) -> Iterator[str]:
        """Close the runtime and give what is left of it."""
        if not _bounded(self._runtime.close, 3 * LEFT_S):
            yield f"HANG in close\n{self._state()}"
            return
        if not _soon(lambda: not _processes()):
            yield f"processes are left: {_shown()}"
        if not _soon(lambda: self._descriptors == _descriptors()):
            yield f"descriptors are left: {sorted(_descriptors() - self._descriptors)}"
        if not _soon(lambda: set(threading.enumerate()) <= self._threads):
            yield f"threads are left: {sorted(one.name for one in set(threading.enumerate()) - self._threads)}"
        files = [str(path) for path in folder.rglob("*")] + sorted(_shared_files() - self._shared)
        if files:
            yield f"files are left: {files}"

    def _state(self) -> str:
        """Give what the pool and its threads are at."""
        with tempfile.TemporaryFile() as file:
            faulthandler.dump_traceback(file)
            file.seek(0)
            stacks = file.read().decode()
        pool = self._runtime._pool
        fields = {} if pool is None else {name: value for name, value in vars(pool).items() if "warden" in name}
        slots = [] if pool is None else [str(slot)[:2000] for slot in pool._slots]
        return "\n".join([f"{time.monotonic()}: {fields}", *slots, *_shown(), stacks])

    def close(self) -> None:
        """Kill what is left."""
        for process in _processes():
            with contextlib.suppress(psutil.Error):
                process.kill()


def _wrong(
    batch: Batch, first: int, lanes: Sequence[str], told: Sequence[Told], ended: bool, spoiled: bool
) -> Iterator[str]:
    """Give what is wrong with what was told of a batch."""
    outcomes: dict[tuple[str, int], Outcome] = {}
    for row, lane, outcome in told:
        if (lane, row) in outcomes:
            yield f"{lane} row {row} was told twice"
        outcomes[lane, row] = outcome
    missing = [(lane, row) for lane in lanes for row in range(batch.size) if (lane, row) not in outcomes]
    if missing:
        yield f"{len(missing)} of {len(lanes) * batch.size} have no outcome: {missing[:8]}"
    elif not ended:
        yield "every outcome was told, and the batch did not end"
    for (lane, row), outcome in outcomes.items():
        right = score_of(lane, first + row)
        if row in batch.guilty:
            if outcome.status is Status.SCORED and outcome.score != right:
                yield f"{lane} row {row} is guilty and has {outcome.score}, not its own {right}"
        elif outcome.status is Status.SCORED:
            if outcome.score != right:
                yield f"{lane} row {row} is innocent and has {outcome.score}, not {right}"
        elif outcome.score not in (None, DEFAULT):
            yield f"{lane} row {row} failed and has {outcome.score}"
        elif not spoiled:
            yield f"{lane} row {row} is innocent and failed: {outcome.cause}: {outcome.error}"
        if row not in batch.guilty and not spoiled:
            own = f"row {first + row}\n" if (first + row) % PRINTING_EVERY == 0 else ""
            if outcome.logs not in ("", own):
                yield f"{lane} row {row} is innocent and has another's output: {outcome.logs[:80]!r}"


def _bounded(act: Callable[[], object], most_s: float) -> bool:
    """Do something in a thread that is waited for so long; give whether it ended."""
    thread = threading.Thread(target=act, daemon=True, name="fuzz")
    thread.start()
    thread.join(most_s)
    return not thread.is_alive()


def _soon(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + LEFT_S
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _descriptors() -> set[int]:
    return {int(name) for name in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{name}")}


def _shared_files() -> set[str]:
    return {name for name in os.listdir("/dev/shm") if name.startswith(SHARED)}


def environment(**more: str) -> dict[str, str]:
    """Give the environment for a fuzzer, without the mark of another."""
    return {**{name: value for name, value in os.environ.items() if name != MARK}, **more}


def processes_of(fuzzer: int) -> list[psutil.Process]:
    """Give the processes that a fuzzer's sessions started, wherever they are now, by their environment."""
    found = []
    mark = f"{MARK}={fuzzer}-".encode()
    for name in os.listdir("/proc"):
        if name.isdecimal() and int(name) != fuzzer:
            with contextlib.suppress(OSError, psutil.Error):
                if any(one.startswith(mark) for one in Path("/proc", name, "environ").read_bytes().split(b"\0")):
                    found.append(psutil.Process(int(name)))
    return found


def _processes() -> list[psutil.Process]:
    """Give the processes that are left of this process's sessions: by descent and by their environment."""
    return list({*psutil.Process().children(recursive=True), *processes_of(os.getpid())})


def _shown() -> list[str]:
    """Give what is to be known of those processes; some may end meanwhile."""
    shown = []
    for one in _processes():
        with contextlib.suppress(psutil.Error):
            shown.append(str((one.pid, one.ppid(), one.status(), one.cmdline()[:3])))
    return shown


def _seeds(options: argparse.Namespace) -> Iterator[int]:
    began = time.monotonic()
    for seed in itertools.count(options.seed):
        if options.for_s is None and seed >= options.seed + options.seeds:
            return
        if options.for_s is not None and time.monotonic() - began > options.for_s:
            return
        yield seed


def main() -> int:
    """Run sessions and tell of each; the exit code is 1 where something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seed", type=int, nargs="?", default=0, help="the first session's seed")
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds, each one more than the one before it")
    parser.add_argument("--for", dest="for_s", type=float, help="seconds after which no session is begun")
    parser.add_argument("--script", action="append", help="what is committed, in place of what a seed draws")
    options = parser.parse_args()
    faulthandler.enable()
    bad = 0
    if options.script:
        plans: Iterable[tuple[str, Session]] = [(f"script {one!r}", of_script(one)) for one in options.script]
    else:
        plans = ((f"seed {seed}", draw(seed)) for seed in _seeds(options))
    for name, session in plans:
        print(f"{name}: begins: {session}", flush=True)
        began = time.monotonic()
        wrong = check(session)
        took = time.monotonic() - began
        bad += bool(wrong)
        words = "WRONG\n" + "\n".join(wrong) if wrong else "right"
        print(f"{name}: ended after {took:.1f} s: {words}", flush=True)
        if any("HANG" in one for one in wrong):
            os._exit(1)  # threads that never end
    return bool(bad)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.exit(main())
