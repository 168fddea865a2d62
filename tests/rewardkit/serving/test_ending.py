"""A real server that is overloaded, told to end at each moment of its life, or killed."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest
from patience import alive, wait_for
from serve_processes import STACKS, WAIT_S, Serving, command, serving, use_stack

pytestmark = pytest.mark.slow  # each test starts and ends a server
REWARDS = """
import time
from rewardkit import group_reward, reward

@reward(timeout_s=30)
def right(completion: str, answer: str) -> float:
    if completion == "slow":
        time.sleep(1.5)
    if completion == "hang":
        time.sleep(25)
    return float(completion == answer)
"""
GROUPS = """
@group_reward
def shortest(completions: list[str]) -> list[float]:
    return [float(len(one) == min(map(len, completions))) for one in completions]
"""
SLOW_IMPORT = """
import pathlib, time
seen = pathlib.Path({!r})
if seen.exists():
    time.sleep(50)
seen.touch()
"""
"""A file that workers load slowly: the command itself has loaded it once."""


@pytest.fixture(autouse=True, params=STACKS)
def _stacks(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run each test on both stacks."""
    with use_stack(request.param):
        yield


@pytest.fixture
def rewards(tmp_path: Path) -> Path:
    path = tmp_path / "rewards_that_end.py"
    path.write_text(REWARDS)
    return path


def _body(said: str, rows: int = 1) -> dict[str, list[str]]:
    return {"query": [f"p{said}"] * rows, "prompts": ["p"] * rows, "labels": ["4"] * rows}


def _asked(served: Serving, said: str, rows: int = 1) -> tuple[int, Any]:
    reply = served.ask("POST", "/get_reward", _body(said, rows))
    return reply.status, reply.json


def _ends(served: Serving, act: Callable[[], object]) -> int:
    """Do what ends a server, and return its exit code once no process of it is left."""
    there = [*served.children(), psutil.Process(served.process.pid)]
    assert len(there) > 1
    act()
    code = served.process.wait(WAIT_S)
    assert [] == alive(there)
    return code


def test_overload_and_then_the_end_lose_no_request_that_was_taken(rewards: Path, full: bool) -> None:
    """Of many clients each is answered by its scores or by 503 with Retry-After, until the server is gone."""
    answers: list[tuple[int, bool]] = []
    is_loaded, is_told = threading.Event(), threading.Event()

    def client(served: Serving) -> None:
        while True:
            try:
                reply = served.ask("POST", "/get_reward", _body("4", 8))
            except OSError:  # it listens no more
                assert is_told.is_set()
                return
            is_right = reply.json["rewards"] == [1.0] * 8 if reply.status == 200 else "retry-after" in reply.headers
            answers.append((reply.status, is_right))
            if len(answers) > (20_000 if full else 1_500):
                is_loaded.set()

    with serving(rewards, "--max-rows", "64") as served, ThreadPoolExecutor(32) as threads:
        clients = [threads.submit(client, served) for _ in range(32)]
        assert is_loaded.wait(10 * WAIT_S)

        def end() -> None:
            is_told.set()
            served.process.terminate()

        assert 0 == _ends(served, end)
        for one in clients:
            one.result(WAIT_S)
    assert {200, 503} == {status for status, _ in answers}
    assert all(is_right for _, is_right in answers)


def test_what_is_taken_is_answered_and_no_more_is(rewards: Path) -> None:
    """A slow row is waited for; probes and requests that come then are told that it ends, while connections last."""
    with serving(rewards) as served, ThreadPoolExecutor(1) as threads:
        slow = threads.submit(_asked, served, "slow")
        assert wait_for(lambda: b"rewardkit_rows_inside 1.0" in served.ask("GET", "/metrics").body)
        served.process.terminate()
        assert wait_for(lambda: served.ask("GET", "/readyz").status == 503)
        assert 200 == served.ask("GET", "/livez").status
        late = served.ask("POST", "/get_reward", _body("4"))
        assert (503, "1", "the server is ending" in late.json["error"]) == (
            late.status,
            late.headers["retry-after"],
            True,
        )
        assert (200, [0.0]) == ((told := slow.result())[0], told[1]["rewards"])
        assert 0 == _ends(served, lambda: None)


def test_the_end_of_a_session_cuts_no_request_off(rewards: Path) -> None:
    """What was taken is answered, as at the other signals."""
    with serving(rewards) as served, ThreadPoolExecutor(1) as threads:
        slow = threads.submit(_asked, served, "slow")
        assert wait_for(lambda: b"rewardkit_rows_inside 1.0" in served.ask("GET", "/metrics").body)
        assert 0 == _ends(served, lambda: served.process.send_signal(signal.SIGHUP))
        assert (200, [0.0]) == ((told := slow.result())[0], told[1]["rewards"])


def test_a_group_that_waits_is_answered_at_the_end(rewards: Path) -> None:
    """Its rows are scored as those of a late group, at once."""
    rewards.write_text(REWARDS + GROUPS)
    with serving(rewards, "--group-size", "4", "--group-wait", "600") as served, ThreadPoolExecutor(2) as threads:
        waiting = [threads.submit(_asked, served, "4") for _ in range(2)]
        assert wait_for(lambda: b"rewardkit_rows_gathering 2.0" in served.ask("GET", "/metrics").body)
        assert 0 == _ends(served, served.process.terminate)
        for status, told in (one.result() for one in waiting):
            assert (200, [1.0], [1.0]) == (status, told["extra_logs"]["reward/right"], told["extra_logs"]["unknown"])


@pytest.mark.cases(2)
@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_it_at_once(rewards: Path, second: signal.Signals) -> None:
    """Rows that are being scored are given up."""
    with serving(rewards) as served, ThreadPoolExecutor(1) as threads:
        hanging = threads.submit(served.ask, "POST", "/get_reward", _body("hang"))
        assert wait_for(lambda: b"rewardkit_rows_inside 1.0" in served.ask("GET", "/metrics").body)

        def end() -> None:
            served.process.terminate()
            assert wait_for(lambda: served.ask("GET", "/readyz").status == 503)
            served.process.send_signal(second)

        assert (0 if second == signal.SIGTERM else 130) == _ends(served, end)
        assert isinstance(hanging.exception(WAIT_S), OSError | json.JSONDecodeError) or hanging.result().status >= 500


@pytest.mark.cases(2)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_before_it_is_ready_ends_it(rewards: Path, tmp_path: Path, number: signal.Signals) -> None:
    """It does not finish loading first, and leaves no worker."""
    rewards.write_text(SLOW_IMPORT.format(str(tmp_path / "seen")) + REWARDS)
    with command(rewards) as starting:
        assert wait_for(starting.children)
        code = _ends(starting, lambda: starting.process.send_signal(number))
        assert (0 if number == signal.SIGTERM else 130) == code


def test_a_server_that_is_killed_leaves_no_worker(rewards: Path) -> None:
    """Its workers end by themselves, also one that is in the middle of a call."""
    with serving(rewards) as served, ThreadPoolExecutor(1) as threads:
        hanging = threads.submit(served.ask, "POST", "/get_reward", _body("hang"))
        assert wait_for(lambda: b"rewardkit_rows_inside 1.0" in served.ask("GET", "/metrics").body)
        assert -signal.SIGKILL == _ends(served, served.process.kill)
        assert hanging.exception(WAIT_S) is not None
