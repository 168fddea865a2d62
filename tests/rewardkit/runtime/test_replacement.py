"""Workers that take the place of others: what they load, what holds for them, and how long loading may take."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from patience import LONG_S, in_time, wait_for

from rewardkit import Cause, Outcome, RewardDefinitionError, RewardLoadError, Rollout, Runtime, Status
from sandbox.workers import link
from sandbox.workers import pool as pool_module
from sandbox.workers.nursery import IDLE_S, ForkRequest, Nursery
from sandbox.workers.slot import AWAY_S, State
from sandbox.workers.wire import Channel, channel_pair

linux = pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="needs Linux")
ROWS, CRASHES = 40, 3
LOADS_LONG_S = link.NURSERY_FROM_S
LANES = {
    "serial": ("", "def", "time.sleep"),
    "threads": (", concurrency=4", "def", "time.sleep"),
    "asyncio": ("", "async def", "await asyncio.sleep"),
}
MODULE = """
import asyncio, mmap, os, random, signal, socket, subprocess, sys, tempfile, threading, time
from pathlib import Path
from rewardkit import reward

HERE = Path(__file__).parent

class UsesCard:
    initial_seed = staticmethod(lambda: 1 << 40)
    manual_seed = staticmethod(lambda seed: None)
    class cuda:
        is_initialized = staticmethod(lambda: True)

def note(name):
    with open(HERE / name, "a") as file:
        file.write(f"{{os.getpid()}}\\n")

note("loads")
time.sleep({load_s})
if "REWARDKIT_INSIDE_WORKER" in os.environ:
    {at_load}

@reward(timeout_s={timeout_s}, default=-1.0{options})
{kind} scored(completion: str) -> float:
    {pause}(0.005)
    if completion == "bad":
        {act}
    {also}
    return float(len(completion))
"""


def _write(folder: Path, *, lane: str = "serial", act: str = "os._exit(3)", **changes: Any) -> str:
    """Write a module whose loading is noted; return the reference to its reward."""
    options, kind, pause = LANES[lane]
    texts = {"at_load": "pass", "also": "", "timeout_s": LONG_S, "options": options, "kind": kind, "pause": pause}
    (folder / "rewards.py").write_text(MODULE.format(**{**texts, "load_s": 0, "act": act, **changes}))
    return f"{folder / 'rewards.py'}:scored"


@pytest.fixture(autouse=True)
def _every_load_counts_as_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module need not sleep to be loaded by what forks replacements."""
    monkeypatch.setattr(link, "NURSERY_FROM_S", 0.0)


def _rollouts(crashes: int = CRASHES) -> list[Rollout]:
    bad = {5 + 7 * number for number in range(crashes)}
    return [Rollout("p", "bad" if n in bad else "x" * (n + 1)) for n in range(ROWS)]


def _expect_right(rollouts: list[Rollout], outcomes: Any, cause: Cause | None = Cause.CRASHED) -> None:
    for rollout, outcome in zip(rollouts, outcomes, strict=True):
        if rollout.completion == "bad":
            assert cause == outcome.cause, outcome
        else:
            assert (Status.SCORED, float(len(rollout.completion))) == (outcome.status, outcome.score), outcome


def _loads(folder: Path) -> int:
    return len((folder / "loads").read_text().split())


def _others(runtime: Runtime) -> list[psutil.Process]:
    """Return the processes beside the workers that the warden has started."""
    warden = psutil.Process(runtime.processes[0]).parent()
    assert warden is not None
    return [child for child in warden.children() if child.pid not in runtime.processes]


def _are_all_the_wardens(runtime: Runtime) -> bool:
    """Whether every worker's parent is a child of this process; a worker may be replaced while this looks."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return all(psutil.Process(one).parent() in psutil.Process().children() for one in runtime.processes)
    return False


@pytest.mark.cases(1)
@linux
@pytest.mark.parametrize("lane", LANES)
def test_replacements_load_the_rewards_once_for_all(tmp_path: Path, lane: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many workers are replaced, the rewards are loaded by the first workers and once more."""
    monkeypatch.setattr(link, "NURSERY_FROM_S", LOADS_LONG_S)
    reference, rollouts = _write(tmp_path, lane=lane, load_s=1.5 * LOADS_LONG_S), _rollouts()
    with Runtime([reference], workers=2) as runtime:
        for _ in range(2):
            _expect_right(rollouts, runtime.score(rollouts)["scored"])
        here, workers = 1, 2 if lane == "serial" else 1
        assert here + workers + 1 == _loads(tmp_path)
        assert wait_for(lambda: _are_all_the_wardens(runtime))


@linux
def test_workers_that_do_not_die_cost_no_process(tmp_path: Path) -> None:
    """Until a worker is replaced there is none that forks others."""
    reference, rollouts = _write(tmp_path), _rollouts(0)
    with Runtime([reference], workers=2) as runtime:
        _expect_right(rollouts, runtime.score(rollouts)["scored"])
        wait_for(lambda: len(runtime.processes) == 2)
        assert [] == _others(runtime)


HINDRANCES = {
    "a thread": "threading.Thread(target=time.sleep, args=(600,), daemon=True).start()",
    "a descriptor": "kept = open(__file__)",
    "a socket": "kept = socket.socket()",
    "a child": "kept = subprocess.Popen(['sleep', '600'])",
    "shared memory": "kept = mmap.mmap(-1, 4096)",
    "a hook that hangs": "os.register_at_fork(after_in_child=lambda: time.sleep(600))",
    "a card in use": "sys.modules['torch'] = UsesCard",
    "a temporary folder": "kept = tempfile.mkdtemp(dir=HERE)",
    "no loading a second time": "if len((HERE / 'loads').read_text().split()) == 3: os._exit(0)",
}


@pytest.mark.cases(4)
@linux
@pytest.mark.parametrize("name", HINDRANCES)
def test_what_a_fork_would_share_is_loaded_anew(tmp_path: Path, name: str) -> None:
    """A module that leaves more behind than memory of its own is loaded by every worker itself."""
    reference, rollouts = _write(tmp_path, at_load=HINDRANCES[name]), _rollouts(1)
    with Runtime([reference], workers=1) as runtime:
        _expect_right(rollouts, runtime.score(rollouts)["scored"])
        assert [] == _others(runtime)
    assert 1 + 1 + 1 + 1 <= _loads(tmp_path)


HARMS = {"killed": signal.SIGKILL, "stopped": signal.SIGSTOP}


@pytest.mark.cases(1)
@linux
@pytest.mark.parametrize("name", HARMS)
def test_workers_are_replaced_without_what_should_fork_them(tmp_path: Path, name: str) -> None:
    """Where the process that has loaded the rewards is killed or stopped, workers load them themselves."""
    reference, rollouts = _write(tmp_path), _rollouts()
    with Runtime([reference], workers=2) as runtime:
        _expect_right(rollouts, runtime.score(rollouts)["scored"])
        for _ in range(2 if name == "killed" else 1):  # one that was stopped is waited for
            wait_for(lambda: len(runtime.processes) == 2)
            for other in _others(runtime):
                with contextlib.suppress(psutil.NoSuchProcess):
                    other.send_signal(HARMS[name])
            _expect_right(rollouts, runtime.score(rollouts)["scored"])


@linux
def test_a_replacement_ends_as_any_worker_does(tmp_path: Path) -> None:
    """Its signals, memory limit, children and exit code are those of a worker that loaded everything itself."""
    act = "Path(HERE / 'act').exists() and exec(Path(HERE / 'act').read_text())"
    reference, rollouts = _write(tmp_path, act=act), [Rollout("p", "bad")]
    acts = {
        "os._exit(4)": (Cause.CRASHED, "exited with code 4"),
        "os.abort()": (Cause.CRASHED, "SIGABRT"),
        "import ctypes; ctypes.string_at(0)": (Cause.CRASHED, "SIGSEGV"),
        "bytearray(1 << 40)": (Cause.EXCEPTION, "MemoryError (a worker may hold 0.5 GiB"),
        "os.fork() or (os.setsid(), time.sleep(600)); os._exit(5)": (Cause.CRASHED, "exited with code 5"),
        "os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)": (Cause.INFRASTRUCTURE, "SIGTERM"),
        "os.kill(os.getppid(), signal.SIGKILL); time.sleep(60)": (Cause.INFRASTRUCTURE, "3 times"),
    }
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    with Runtime([reference], workers=1, memory_bytes=1 << 29, max_infrastructure_rate=1) as runtime:
        (tmp_path / "act").write_text("os._exit(1)")
        runtime.score(rollouts)
        for text, (cause, words) in acts.items():
            (tmp_path / "act").write_text(text)
            (outcome,) = runtime.score(rollouts)["scored"]
            assert cause == outcome.cause, outcome
            assert words in (outcome.error or "")
    assert before >= {child.pid for child in psutil.Process().children(recursive=True)}


@linux
@pytest.mark.parametrize("source", ["random", "numpy.random"])
@pytest.mark.parametrize("seeded", [False, True])
def test_replacements_draw_the_random_numbers_of_a_fresh_load(tmp_path: Path, source: str, seeded: bool) -> None:
    """Each worker has numbers of its own, unless the module chooses a seed: then each begins as the first one did."""
    at_load = f"import {source}; " + f"{source}.seed(7)" * seeded
    also = f"with open(HERE / 'drawn', 'a') as file: file.write(f'{{{source}.random()}} ')"
    reference = _write(tmp_path, at_load=at_load, also=also)
    with Runtime([reference], workers=1) as runtime:
        for _ in range(4):
            runtime.score([Rollout("p", "x"), Rollout("p", "bad")])
    drawn = (tmp_path / "drawn").read_text().split()
    assert 4 == len(drawn)
    assert (1 if seeded else 4) == len(set(drawn))


@linux
def test_what_forks_workers_is_ended_when_it_has_not_been_needed_for_long() -> None:
    """Its memory is given back ten minutes after the last birth, and not while one is awaited."""
    ours, theirs = channel_pair()
    nursery = Nursery(0, ours, load_timeout_s=5.0)
    try:
        began = time.monotonic()
        assert not nursery.idle(began + 1e6)  # it loads: that has a limit of its own
        assert (False, True) == (nursery.late(began), nursery.late(began + 6))
        Channel(theirs).send_json(["fit"])
        assert [] == nursery.hear()
        assert (False, True) == (nursery.idle(began + 4 + IDLE_S), nursery.idle(began + 6 + IDLE_S))
        nursery.ask(ForkRequest(0, 1, "serial", 1, [theirs.fileno()]))
        assert (False, True) == (nursery.idle(began + 1e6), nursery.late(began + 1e6))
    finally:
        ours.close()
        theirs.close()


def test_a_load_limit_is_a_number_of_seconds() -> None:
    """What is no finite number above 0 is refused as the runtime is made."""
    for wrong in (0, -1, float("inf"), float("nan"), True, "60", None):
        with pytest.raises(RewardDefinitionError, match="load_timeout_s="):
            Runtime([lambda completion: 1.0], load_timeout_s=wrong)  # type: ignore[arg-type]


def test_a_first_load_that_takes_too_long_names_the_option(tmp_path: Path) -> None:
    """The error says how long it took, which reward it is, and how it is given longer."""
    only_there = f"os.getpid() == {os.getpid()} or time.sleep(600)"
    with (
        Runtime([_write(tmp_path, at_load=only_there)], workers=1, load_timeout_s=1.5) as runtime,
        pytest.raises(
            RewardLoadError,
            match=r"longer than 1.5 s: 'scored'.*load_timeout_s=..., on the command line with --load-timeout",
        ),
    ):
        runtime.score(_rollouts(0))


STALLS = {
    "hangs": "time.sleep(600)",
    "raises": "raise OSError('the file server does not answer')",
    "exits": "os._exit(9)",
}


@pytest.mark.cases(1)
@pytest.mark.parametrize("name", STALLS)
def test_a_replacement_that_cannot_load_is_tried_again(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What loaded before is given two more chances, and a batch is not lost with a machine that stalls for once."""
    monkeypatch.setattr(link, "NURSERY_FROM_S", 1e9)
    at_load = f"if (HERE / 'stall').exists():\n        (HERE / 'stall').unlink()\n        {STALLS[name]}"
    reference = _write(tmp_path, at_load=at_load, act="(HERE / 'stall').touch(); os._exit(3)")
    rollouts = _rollouts(1)

    def score(load_timeout_s: float) -> list[Outcome]:
        """Return nothing where the machine stood still for as long as the very first load may take."""
        (tmp_path / "stall").unlink(missing_ok=True)
        with (
            contextlib.suppress(RewardLoadError),
            Runtime([reference], workers=1, load_timeout_s=load_timeout_s) as runtime,
        ):
            return list(runtime.score(rollouts)["scored"])
        return []

    _expect_right(rollouts, in_time(score, bool, 2.0))


@linux
def test_a_load_during_which_the_pool_stood_still_has_its_time_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a paused container the worker that loads stands still with the pool that waits for it."""
    reference = _write(tmp_path, at_load="while not (HERE / 'go').exists(): time.sleep(0.01)")
    turn, stood = pool_module.WorkerPool._turn, []

    def stands_still(pool: pool_module.WorkerPool) -> None:
        (slot,) = pool._slots
        if slot.state is State.STARTING and slot.process and not stood:
            stood.append(slot.process)
            slot.check_at = time.monotonic() - AWAY_S
            pool._command(lambda: None)
            turn(pool)
            (tmp_path / "go").touch()
        turn(pool)

    monkeypatch.setattr(pool_module.WorkerPool, "_turn", stands_still)
    with Runtime([reference], workers=1) as runtime:
        assert [1.0] == runtime.score([Rollout("p", "x")]).totals
        assert stood == runtime.processes


@linux
def test_a_call_that_kills_what_forks_workers_costs_itself_alone(tmp_path: Path) -> None:
    """A worker may end its sisters' source; the warden forks the next ones itself."""
    act = (
        "[os.kill(int(one), 9) for one in Path(f'/proc/{os.getppid()}/task/{os.getppid()}/children').read_text()"
        ".split() if int(one) != os.getpid()]; os._exit(3)"
    )
    reference, rollouts = _write(tmp_path, act=act), _rollouts()
    with Runtime([reference], workers=1) as runtime:
        outcomes: list[Outcome] = list(runtime.score(rollouts)["scored"])
    _expect_right(rollouts, outcomes)


def test_many_crashes_at_once_are_all_replaced(tmp_path: Path) -> None:
    """Threads that score at the same time with several workers, all of which die again and again, lose nothing."""
    reference, rollouts = _write(tmp_path), _rollouts()
    with Runtime([reference], workers=3) as runtime:
        results: list[Any] = []
        threads = [threading.Thread(target=lambda: results.append(runtime.score(rollouts)["scored"])) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert 3 == len(results)
    for outcomes in results:
        _expect_right(rollouts, outcomes)
