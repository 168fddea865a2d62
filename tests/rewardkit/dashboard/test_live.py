"""What changes in a run reaches all who look at it: as a stream, and for those who ask."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from patience import wait_for
from recorded import batch
from served import Served, recorded_run, serving, states

from rewardkit.dashboard import live
from rewardkit.dashboard.live import Live
from rewardkit.dashboard.readers import Readers, RunCaches
from rewardkit.dashboard.workers import BusyError
from rewardkit.record.recorder import Recorder
from rewardkit.record.runs_folder import RunsFolder

RECORDS = """
import sys, time
from rewardkit.record.recorder import Recorder
recorder = Recorder(sys.argv[1], append=True)
recorder.flush()
time.sleep(600)
"""


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A folder of one run."""
    recorded_run(tmp_path / "runs" / "one")
    return tmp_path / "runs"


@pytest.fixture
def served(runs: Path) -> Iterator[Served]:
    """That folder's dashboard, entered."""
    with serving(runs) as found:
        yield found.enter()


@pytest.fixture
def watching(runs: Path) -> Iterator[Live]:
    """What watches that folder, without a server."""
    found = Live(lambda: Readers(RunsFolder(runs), RunCaches()))
    yield found
    found.close(60)
    assert not found.running


def _until(found: Iterator[dict[str, Any]], **wanted: Any) -> dict[str, Any]:
    """Return the first state with these values."""
    return next(one for one in found if wanted.items() <= one.items())


def test_a_stream_tells_each_change(served: Served, runs: Path) -> None:
    """At once how the run stands, then what is written, and that its process ended."""
    with served.stream("one") as lines:
        found = states(lines)
        first = next(found)
        assert {"state": "finished", "problem": None, "last_id": 24, "last_step": 2}.items() <= first.items()
        with contextlib.closing(Recorder(runs / "one", append=True)) as recorder:
            began = _until(found, state="running")
            recorder.record(batch(8), step=3)
            written = _until(found, last_id=32, last_step=3)
        ended = _until(found, state="finished", last_id=32)
        assert first["data_version"] < began["data_version"] < written["data_version"] < ended["data_version"]


def test_a_stream_and_a_question_say_the_same(served: Served) -> None:
    """Number by number, so that a page that asks instead sees no change where there is none."""
    with served.stream("one") as lines:
        streamed = next(states(lines))
        assert [streamed] * 8 == [served.told("/runs/one/state") for _ in range(8)]


def test_a_run_is_deleted_and_replaced_while_it_is_watched(served: Served, runs: Path) -> None:
    """The stream says each, and goes on by itself."""
    with served.stream("one") as lines:
        found = states(lines)
        next(found)
        shutil.rmtree(runs / "one")
        gone = _until(found, state="missing")
        assert "there is no record" in gone["problem"]
        (runs / "one").mkdir()
        (runs / "one" / "record.db").write_bytes(b"noise" * 999)
        assert "not a record" in _until(found, state="unreadable")["problem"]
        (runs / "one" / "record.db").unlink()
        recorded_run(runs / "one", steps=1)
        assert gone["data_version"] < _until(found, last_id=8, problem=None)["data_version"]


def test_a_run_that_is_not_begun_is_waited_for(served: Served, runs: Path) -> None:
    """Its stream begins with that, and the first completions come by themselves."""
    with served.stream("later") as lines:
        found = states(lines)
        assert "missing" == next(found)["state"]
        recorded_run(runs / "later", steps=2)
        assert 1 == _until(found, last_id=16)["last_step"]


def test_a_process_that_dies_is_seen(served: Served, runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though it writes nothing any more."""
    monkeypatch.setattr(live, "_AGAIN_S", 0.1)
    child = subprocess.Popen([sys.executable, "-c", RECORDS, str(runs / "one")], stdout=subprocess.PIPE)
    with child, served.stream("one") as lines:
        found = states(lines)
        _until(found, state="running")
        child.kill()
        _until(found, state="killed")


def test_two_browsers_see_the_same(served: Served, runs: Path) -> None:
    """One that leaves does not end the other's stream."""
    with served.stream("one") as kept:
        found = states(kept)
        with served.stream("one") as left:
            assert next(states(left)) == next(found)
        recorded_run(runs / "one", steps=1, first=3)
        assert 3 == _until(found, last_id=32)["last_step"]


def test_a_quiet_stream_says_that_it_is_there(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """With comments, which a browser passes over."""
    monkeypatch.setattr(live, "HEARTBEAT_S", 0.1)
    with served.stream("one") as lines:
        assert 3 == sum(1 for _ in zip(range(3), (line for line in lines if line.startswith(":")), strict=False))


def test_streams_are_counted_and_given_back(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """One too many is told to ask instead; whoever leaves makes room."""
    monkeypatch.setattr(live, "MOST_STREAMS", 2)
    with served.stream("one") as first, served.stream("one") as second:
        assert next(states(first)) == next(states(second))
        answer = served.ask("/api/runs/one/live")
        assert (503, True) == (answer.status, "too many streams" in answer.told["error"])
        assert "finished" == served.told("/runs/one/state")["state"]
    monkeypatch.setattr(live, "HEARTBEAT_S", 0.1)
    assert wait_for(lambda: not served.dashboard.live.full())


def test_one_browser_has_a_few_streams_and_another_its_own(served: Served) -> None:
    """Its windows share six connections; over plain HTTP they cannot agree who takes how many, so the server counts."""
    with contextlib.ExitStack() as stack:
        for _ in range(live.MOST_OF_BROWSER):
            next(states(stack.enter_context(served.stream("one"))))
        assert 503 == served.ask("/api/runs/one/live").status
        assert "finished" == served.told("/runs/one/state")["state"]
        assert not served.dashboard.live.full("another browser")


def test_a_head_of_a_stream_ends(served: Served) -> None:
    """It has no body to wait for."""
    assert 200 == served.ask("/api/runs/one/live", "HEAD").status


def test_streams_end_with_the_server(runs: Path) -> None:
    """Those who listen see the end, and nothing waits for them."""
    with contextlib.ExitStack() as stack:
        with serving(runs) as served:
            streams = [stack.enter_context(served.enter().stream("one")) for _ in range(live.MOST_OF_BROWSER)]
            for lines in streams:
                next(states(lines))
        assert [[]] * live.MOST_OF_BROWSER == [list(states(lines)) for lines in streams]


def test_what_nobody_asks_for_is_forgotten(watching: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run is watched for a while after the last question, and the numbers go on afterwards."""
    first = asyncio.run(watching.state("one"))
    assert {"one"} == watching.watched
    monkeypatch.setattr(live, "_FORGET_S", 0.0)
    assert first == asyncio.run(watching.state("one"))
    assert wait_for(lambda: not watching.watched)
    assert first["data_version"] < asyncio.run(watching.state("one"))["data_version"]


def test_only_so_many_runs_are_watched(watching: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """One more is told so."""
    monkeypatch.setattr(live, "MOST_WATCHED", 2)

    async def many() -> list[Any]:
        return await asyncio.gather(*(watching.state(f"run{place}") for place in range(3)), return_exceptions=True)

    found = asyncio.run(many())
    assert [False, False, True] == [isinstance(one, BusyError) for one in found]
    assert "missing" == found[0]["state"]


def test_a_record_with_nonsense_in_it_does_not_end_the_watch(
    watching: Live, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told as damaged, and the others are watched on."""
    recorded_run(runs / "two")

    def nonsense(opened: Any) -> dict[str, Any]:
        if opened.run.name == "two":
            raise AttributeError("'list' object has no attribute 'get'")
        return known(opened)

    known = live._state_of_run
    monkeypatch.setattr(live, "_state_of_run", nonsense)
    broken = asyncio.run(watching.state("two"))
    assert ("unreadable", True) == (broken["state"], "damaged: AttributeError" in broken["problem"])
    assert "finished" == asyncio.run(watching.state("one"))["state"]


def test_no_clock_on_the_wall_is_waited_by(watching: Live, monkeypatch: pytest.MonkeyPatch, runs: Path) -> None:
    """A clock that is set back by years holds up nothing."""
    first = asyncio.run(watching.state("one"))
    monkeypatch.setattr(live.time, "time", lambda: 0.0)
    recorded_run(runs / "one", steps=1, first=3)

    async def changed() -> dict[str, Any]:
        async for one in watching.states("one"):
            if one is not None and one["last_id"] == 32:
                return one
        raise AssertionError

    assert first["data_version"] < asyncio.run(changed())["data_version"]
