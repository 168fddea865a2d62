"""Rewards that take a Sandbox: one jail a process, in every lane, and its own faults are never scores."""

from __future__ import annotations

import asyncio
import glob
import os
import pickle
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from patience import LONG_S, alive, in_time
from slow_start import DEADLINE_S, SlowStart, slow_python

from rewardkit import (
    Cause,
    InfrastructureError,
    Outcome,
    Rollout,
    Runtime,
    Score,
    Status,
    group_reward,
    reward,
    reward_from_source,
)
from rewardkit.jailed.jail import shared_sandbox
from sandbox import ExecutionStatus, Limits, Sandbox

pytestmark = [
    pytest.mark.slow,  # a minute, for there are processes to be killed and waited for
    pytest.mark.usefixtures("shared_jail"),
]

ROOT = Path(__file__).parents[3]


@reward
def runs(completion: str, jail: Sandbox, unused: int = 0) -> Score:
    """Whether the completion runs; says which process answered."""
    status = jail.run(completion).status
    return Score(float(status is ExecutionStatus.OK), metrics={"zygote": jail.processes[0], "worker": os.getpid()})


@reward(concurrency=3)
def runs_on_threads(completion: str, sandbox: Sandbox | None = None) -> float:
    """The same on threads, of a parameter with a default."""
    assert sandbox is not None
    return float(sandbox.run(completion).status is ExecutionStatus.OK)


@reward(concurrency=3)
async def runs_on_a_loop(completion: str, sandbox: Sandbox) -> float:
    """The same on an event loop."""
    result = await asyncio.to_thread(sandbox.run, completion)
    return float(result.status is ExecutionStatus.OK)


@group_reward
def all_run(completions: list[str], sandbox: Sandbox) -> list[float]:
    """The same for a group."""
    return [float(result.status is ExecutionStatus.OK) for result in sandbox.run_many(completions)]


REWARDS = [runs, runs_on_threads, runs_on_a_loop, all_run]
ROWS = [Rollout("p", text) for text in ("print(1)", "1/0", "import os; os._exit(0)", "import socket; socket.socket()")]


def test_a_sandbox_is_no_column() -> None:
    """Whatever its name, the parameter is filled by the runtime; a dataset need not have it."""
    assert (("completion", "jail"), ()) == (tuple(p.name for p in runs.spec.parameters[:2]), runs.spec.required_columns)
    assert frozenset({"unused"}) == runs.spec.wanted_columns


@pytest.mark.parametrize("lane", ["inline", "worker"])
def test_every_lane_fills_it(lane: str) -> None:
    """Serial, threads, event loop and inline lanes give each reward a jail that works, and scores are right."""
    with Runtime(REWARDS, lane=lane, workers=2) as runtime:
        scores = runtime.score(ROWS).scores
    assert {one.name: [1.0, 0.0, 1.0, 0.0] for one in REWARDS} == {
        name: list(map(_no_none, s)) for name, s in scores.items()
    }


def _no_none(score: float | None) -> float:
    assert score is not None
    return score


def test_it_is_filled_where_the_reward_is_called_as_a_function() -> None:
    """Left out it is this process's own, by position or by keyword of the others; one that is given is taken."""
    assert 1.0 == runs(completion="print(1)").value
    assert 0.0 == runs("1/0").value
    with Sandbox(workers=1) as own:
        assert own.processes == [int(runs("1", jail=own).metrics["zygote"])]
    assert own.processes == []


def test_one_process_has_one_jail_for_all_calls() -> None:
    """Calls of one worker are evaluated by one zygote, not the caller's; it fits in a worker with little memory."""
    with Runtime([runs], workers=1, memory_bytes=512 << 20) as runtime:
        batches = [runtime.score(ROWS), runtime.score(ROWS)]
    outcomes = [outcome for batch in batches for outcome in batch["runs"]]
    assert [[1.0, 0.0, 1.0, 0.0]] * 2 == [batch.scores["runs"] for batch in batches]
    assert 1 == len({(outcome.metrics["worker"], outcome.metrics["zygote"]) for outcome in outcomes})
    assert outcomes[0].metrics["zygote"] not in shared_sandbox().processes


def test_a_reward_that_closes_its_jail_gets_another() -> None:
    """Leaving a with statement keeps it open; closing it costs no later call."""

    @reward
    def careless(completion: str, sandbox: Sandbox) -> float:
        with sandbox as same:
            same.run("1")
        status = sandbox.run("1").status
        sandbox.close()
        return float(status is ExecutionStatus.OK)

    with Runtime([careless], workers=1) as runtime:
        assert [1.0] * 4 == runtime.score(ROWS).scores["careless"]


def test_annotations_that_are_strings_are_known() -> None:
    """A reward that travels by value keeps its parameter, and pickles."""

    def local(completion: str, box: Sandbox) -> float:
        return float(box.run(completion).status is ExecutionStatus.OK)

    marked = reward(local)
    assert marked.spec.jailed
    assert runs is pickle.loads(pickle.dumps(runs))
    with Runtime([marked], workers=1) as runtime:
        assert [1.0, 0.0, 1.0, 0.0] == runtime.score(ROWS).scores["local"]


def test_importing_rewardkit_loads_no_sandbox_client() -> None:
    """Whoever needs no jail does not pay for one, not even where annotations are read."""
    probe = (
        "import sys, rewardkit\n"
        "@rewardkit.reward\ndef one(completion: str, n: int | None = None) -> float:\n    return 1.0\n"
        "one(completion='a')\n"
        "print([m for m in sys.modules if m in ('sandbox.client', 'sandbox.restricted', 'RestrictedPython')])"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True, cwd=ROOT)
    assert "[]" == done.stdout.strip()


def test_the_level_is_the_one_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """REWARDKIT_SANDBOX_LEVEL holds for the workers that are started under it."""

    @reward
    def level(completion: str, sandbox: Sandbox) -> Score:
        return Score(1.0, reason=sandbox.run("1").level)

    monkeypatch.setenv("REWARDKIT_SANDBOX_LEVEL", "standard")
    with Runtime([level], workers=1) as runtime:
        assert "standard" == runtime.score(ROWS[:1])["level"][0].reason


def _only(runtime: Runtime, row: Rollout = ROWS[0]) -> Outcome:
    with runtime:
        (outcomes,) = runtime.score([row]).outcomes.values()
    return outcomes[0]


@pytest.mark.parametrize(
    ("variable", "words"),
    [
        ("REWARDKIT_SANDBOX_LEVEL", "REWARDKIT_SANDBOX_LEVEL='firm': expected one of auto, strict, standard"),
        ("REWARDKIT_SANDBOX_PROFILE", "REWARDKIT_SANDBOX_PROFILE='firm': expected one of python, numpy"),
    ],
)
def test_a_setting_that_makes_no_sense_is_infrastructure(
    monkeypatch: pytest.MonkeyPatch, variable: str, words: str
) -> None:
    """It is no completion's fault: nothing is scored, and the message names the variable and the choices."""
    monkeypatch.setenv(variable, "firm")
    outcome = _only(Runtime([runs], workers=1, max_infrastructure_rate=1.0))
    assert (Cause.INFRASTRUCTURE, None, 3) == (outcome.cause, outcome.score, outcome.attempts)
    assert words in (outcome.error or "")


def test_a_jail_that_cannot_be_started_is_infrastructure() -> None:
    """No jail, no score."""
    script = (
        "import sys\n"
        "from rewardkit import Rollout, Runtime\n"
        "sys.path.insert(0, 'tests/rewardkit/jailed')\n"
        "from sandbox import Sandbox\n"
        "def runs(completion: str, sandbox: Sandbox) -> float:\n    return 1.0\n"
        "sys.executable = '/nonexistent'\n"
        "with Runtime([runs], lane='inline', max_infrastructure_rate=1.0) as runtime:\n"
        "    outcome = runtime.score([Rollout('p', 'c')])['runs'][0]\n"
        "print(outcome.cause, outcome.score, outcome.attempts, outcome.error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT)
    assert "infrastructure None 3 no jail for rewards" == done.stdout[:41], done.stderr


MOMENTS = 50
"""Evaluations for which a process may live on after SIGKILL was sent to it, or to its parent."""


def test_a_jail_that_fails_again_and_again_is_infrastructure() -> None:
    """A result of status infrastructure never reaches the reward, which would take it for a wrong answer."""

    @reward
    def naive(completion: str, sandbox: Sandbox) -> float:
        for zygote in sandbox.processes:  # none is left at the second attempt
            os.kill(zygote, signal.SIGKILL)
        sys.executable = "/nonexistent"
        results = [sandbox.run(completion) for _ in range(MOMENTS)]
        return float(results[-1].status is ExecutionStatus.OK)

    outcome = _only(Runtime([naive], workers=1, max_infrastructure_rate=1.0))
    assert (Status.FAILED, Cause.INFRASTRUCTURE, None) == (outcome.status, outcome.cause, outcome.score)


WAYS: dict[str, Callable[[Sandbox], object]] = {
    "run": lambda sandbox: sandbox.run("1"),
    "call": lambda sandbox: sandbox.call("def f(): return 1", "f", [()]),
    "run_asserts": lambda sandbox: sandbox.run_asserts("def f(): return 1", "assert f() == 1", entry_point="f"),
    "run_dialog": lambda sandbox: sandbox.run_dialog("1", "def interact(*_): return True", "", ""),
    "run_many": lambda sandbox: sandbox.run_many(["1", "2"]),
    "call_many": lambda sandbox: sandbox.call_many([("def f(): return 1", "f", [()])]),
}


def test_every_way_into_a_failing_jail_raises() -> None:
    """Each method of the Sandbox that a reward is given raises InfrastructureError; the jail is then made anew."""
    ways = WAYS

    @reward(timeout_s=LONG_S)
    def tries(completion: str, how: str, sandbox: Sandbox) -> float:
        executable, sys.executable = sys.executable, "/nonexistent"
        os.kill(sandbox.processes[0], signal.SIGKILL)
        try:
            for _ in range(MOMENTS):
                ways[how](sandbox)
        except InfrastructureError:
            return 1.0
        finally:
            sys.executable = executable
        return 0.0

    @reward(timeout_s=LONG_S)
    def works_after(completion: str, sandbox: Sandbox) -> float:
        return float(sandbox.run("1").status is ExecutionStatus.OK)

    with Runtime([tries, works_after], workers=1) as runtime:
        batches = [runtime.score([Rollout("p", "c", {"how": how})]) for how in WAYS]
    assert [{"tries": (1.0,), "works_after": (1.0,)}] * len(WAYS) == [
        {name: tuple(scores) for name, scores in batch.scores.items()} for batch in batches
    ]


def _slow(python: str) -> Any:
    slow = SlowStart(python)

    def slows(completion: str) -> float:
        """Brings that into the worker which it shares."""
        return float(slow is None)

    return reward(slows)


def _serial(python: str, act: Callable[[Sandbox], float], time_s: float) -> Any:
    slow = SlowStart(python)

    @reward(timeout_s=time_s)
    def first(completion: str, sandbox: Sandbox) -> float:
        return act(sandbox) if slow is None else -1.0

    return first


def _on_threads(python: str, act: Callable[[Sandbox], float], time_s: float) -> Any:
    slow = SlowStart(python)

    @reward(timeout_s=time_s, concurrency=4)
    def first(completion: str, sandbox: Sandbox) -> float:
        return act(sandbox) if slow is None else -1.0

    return first


def _on_a_loop(python: str, act: Callable[[Sandbox], float], time_s: float) -> Any:
    slow = SlowStart(python)

    @reward(timeout_s=time_s, concurrency=4)
    async def first(completion: str, sandbox: Sandbox) -> float:
        return act(sandbox) if slow is None else -1.0

    return first


def _beside_a_loop(python: str, act: Callable[[Sandbox], float], time_s: float) -> Any:
    slow = SlowStart(python)

    @reward(timeout_s=time_s, concurrency=4)
    async def first(completion: str, sandbox: Sandbox) -> float:
        return await asyncio.to_thread(act, sandbox) if slow is None else -1.0

    return first


def _as_text(python: str, act: Callable[[Sandbox], float], time_s: float) -> Any:
    return reward_from_source("def first(completion):\n    return 1.0\n", timeout_s=time_s)


LANES = [_serial, _on_threads, _on_a_loop, _beside_a_loop]


def _run_one(sandbox: Sandbox) -> float:
    return float(sandbox.run("1").status is ExecutionStatus.OK)


def _run_after_its_death(sandbox: Sandbox) -> float:
    for zygote in sandbox.processes:
        os.kill(zygote, signal.SIGKILL)
    return _run_one(sandbox)


@pytest.mark.cases(3)
@pytest.mark.parametrize(
    ("made", "act"),
    [*((lane, _run_one) for lane in [*LANES, _as_text]), *((lane, _run_after_its_death) for lane in LANES)],
)
def test_the_start_of_a_jail_is_no_calls_time(made: Any, act: Callable[[Sandbox], float], tmp_path: Path) -> None:
    """A jail that takes longer to start than a call may take, at first or anew, costs no call its score."""
    tempo = DEADLINE_S

    def scored(time_s: float) -> list[Outcome]:
        nonlocal tempo
        tempo = time_s
        python = slow_python(tmp_path, time_s)
        rewards = [_slow(python), made(python, act, time_s)]
        rows = ROWS if act is _run_one else ROWS[:1]
        with Runtime(rewards, workers=1, max_infrastructure_rate=1.0) as runtime:
            return list(runtime.score(rows)["first"])

    outcomes = in_time(scored, lambda found: all(one.score == 1.0 for one in found), DEADLINE_S)
    assert [(1.0, None)] * len(outcomes) == [(one.score, one.error) for one in outcomes]
    assert outcomes[0].duration_s <= tempo


def _all_folders() -> set[str]:
    return set(glob.glob(os.path.join(tempfile.gettempdir(), "rewardkit-jail-*")))


def test_no_jail_outlives_its_worker() -> None:
    """A worker that is killed at its deadline, with an evaluation under way, takes its zygote along."""

    @reward(timeout_s=LONG_S)
    def has(completion: str, sandbox: Sandbox) -> Score:
        return Score(1.0, metrics={"zygote": sandbox.processes[0]})

    @reward(timeout_s=1.0)
    def hangs(completion: str, sandbox: Sandbox) -> float:
        if completion == "hang":
            sandbox.run("while True: pass", limits=Limits(timeout_s=600))
        return 1.0

    with Runtime([has, hangs], workers=1) as runtime:
        (first,) = runtime.score([Rollout("p", "c")])["has"]
        zygote = psutil.Process(int(first.metrics["zygote"]))
        inside = [zygote, *zygote.children(recursive=True)]
        (hung,) = runtime.score([Rollout("p", "hang")])["hangs"]
        left = alive(inside)
        (last,) = runtime.score([Rollout("p", "c")])["has"]
    assert (Cause.TIMEOUT, 1.0, []) == (hung.cause, last.score, left)


def test_closing_a_runtime_leaves_no_process_and_no_directory() -> None:
    """After close() the workers' zygotes are gone, and what they had in the directory for temporary files."""
    with Runtime([runs, runs_on_threads], workers=2) as runtime:
        runtime.score(ROWS * 3)
        workers = [psutil.Process(worker) for worker in runtime.processes]
        inside = [process for worker in workers for process in worker.children(recursive=True)]
        own = {one for one in _all_folders() if int(one.split("-")[-2]) in runtime.processes}
        assert len(workers) <= len(own) <= len(inside)
    assert ([], set()) == (alive(inside), own & _all_folders())


def test_no_jail_outlives_a_caller_that_is_killed() -> None:
    """SIGKILL of the process that owns the runtime ends its workers and their zygotes."""
    script = (
        "import time\n"
        "from rewardkit import Rollout, Runtime\n"
        "from sandbox import Sandbox\n"
        "def runs(completion: str, sandbox: Sandbox) -> float:\n    return float(sandbox.processes[0])\n"
        "runtime = Runtime([runs], workers=1).start()\n"
        "print(int(runtime.score([Rollout('p', 'c')]).totals[0]), flush=True)\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, cwd=ROOT) as caller:
        assert caller.stdout is not None
        zygote = psutil.Process(int(caller.stdout.readline()))
        everything = [*psutil.Process(caller.pid).children(recursive=True)]
        assert zygote in everything
        caller.kill()
    assert [] == alive(everything)
