"""A change of a training's rewards takes effect at one step in all of its processes, or nowhere."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from databases import STORES, Server, place_on
from patience import LONG_S

from rewardkit import RecordError, Rollout, Run, Runtime, UpdateRefusedError, reward
from rewardkit.loading.carried import carry
from rewardkit.record import changes, silence
from rewardkit.record.changes import Action, ChangeState, RewardChange
from rewardkit.record.places import place_of_record
from rewardkit.record.recorder import Recorder
from rewardkit.record.schema import TABLES
from rewardkit.record.sqlite_file import Connection
from rewardkit.record.store import RecordConnection
from rewardkit.replay import updates
from rewardkit.replay.live_runtime import LiveRuntime

HELPER = Path(__file__).parents[2] / "helpers" / "stepping.py"
ROWS = [Rollout("2+2=", completion, {"answer": "4"}) for completion in ("4", "5", "4", "44")]


@reward
def brief(completion: str) -> float:
    """The first version: the completion's length."""
    return float(len(completion))


@reward
def other(completion: str) -> float:
    """A reward beside it."""
    return 0.5


def text(score: str, name: str = "brief", top: str = "") -> dict[str, Any]:
    """Return a carried reward of a file with this expression."""
    source = f"{top}\n\ndef {name}(completion: str) -> float:\n    return {score}\n"
    return {"kind": "file", "reference": f"/nowhere/mine.py:{name}", "text": source}


@pytest.fixture(params=STORES)
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The place of a run in each store; files that changes bring lie in this folder where the run is in a database."""
    monkeypatch.chdir(tmp_path)
    return place_on(request.param, request, tmp_path)


@contextlib.contextmanager
def record(run: Any) -> Iterator[RecordConnection]:
    """Give a connection to a run's record."""
    with contextlib.closing(place_of_record(run).connect_to_write()) as connection:
        yield connection


def until(claim: Callable[[], Any]) -> Any:
    """Wait until a claim holds, which it does in the end."""
    end = time.monotonic() + 60
    while not (found := claim()):
        assert time.monotonic() < end, "it never came to hold"
        time.sleep(0.02)
    return found


def decided(connection: RecordConnection, number: int) -> RewardChange:
    """Wait for a change's answer."""

    def answer() -> RewardChange | None:
        found = changes.change_of(connection, number)
        assert found is not None
        return found if found.state is not ChangeState.ASKED else None

    answered: RewardChange = until(answer)
    return answered


@pytest.mark.parametrize("seed", range(0, 1000, 100))
def test_no_order_of_events_lets_a_process_pass_the_step(seed: int) -> None:
    """Whatever the order of steps, votes and requests, each process begins each step with the same changes."""
    for more in range(30):
        _play(random.Random(seed + more))


def _play(drawn: random.Random) -> None:
    ranks, steps = drawn.choice([1, 2, 3]), 12
    begun: dict[tuple[int, int], tuple[int, ...]] = {}
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None, factory=Connection)) as connection:
        connection.row_factory = sqlite3.Row
        connection.executescript(TABLES)
        joined = [
            changes.join(connection, rank=rank, ranks=ranks, step=-1, actions=[], rewards={}, anew=True)[0]
            for rank in range(ranks)
        ]
        step, voted, known = [-1] * ranks, [0] * ranks, [dict[int, int]() for _ in range(ranks)]

        def hear(rank: int, change: RewardChange | None) -> None:
            assert change is not None
            if change.state is not ChangeState.ASKED:
                voted[rank] = 0
            if change.state is ChangeState.ACCEPTED and change.step is not None:
                known[rank][change.id] = change.step

        while min(step) < steps - 1:
            rank = drawn.randrange(ranks)
            match drawn.randrange(4):
                case 0 if drawn.random() < 0.5:
                    changes.ask(connection, "brief", Action.WEIGHT, {"weight": 1.0})
                case 1 if not voted[rank] and (asked := changes.next_open(connection)) is not None:
                    voted[rank] = asked.id
                    words = "cannot" if drawn.random() < 0.2 else None
                    hear(rank, changes.vote(connection, asked.id, joined[rank], step[rank], words))
                case 2 if voted[rank]:
                    hear(rank, changes.change_of(connection, voted[rank]))
                case 3 if step[rank] < steps - 1:
                    step[rank] += 1
                    if voted[rank]:
                        hear(rank, changes.begin(connection, voted[rank], joined[rank], step[rank]))
                    applied = tuple(number for number, at in known[rank].items() if at <= step[rank])
                    begun[rank, step[rank]] = applied
    for at in range(steps):
        assert len({begun[rank, at] for rank in range(ranks)}) == 1


@pytest.mark.cases(1)
@pytest.mark.soak
def test_processes_of_different_speeds_change_at_the_same_steps(place: Any, tmp_path: Path, full: bool) -> None:
    """While requests come in, good ones and broken ones, every process has the same rewards in each of its steps."""
    ranks, steps = (4, 6000) if full else (3, 400) if isinstance(place, Path) else (2, 200)
    run = place / "run"
    command = [sys.executable, str(HELPER), str(run), str(tmp_path)]
    numbers: list[int] = []
    with record(run) as connection:
        processes = [subprocess.Popen([*command, str(rank), str(ranks), str(steps), "0.04"]) for rank in range(ranks)]
        try:
            until(lambda: len(changes.trainers_of(connection)) == ranks)
            while any(process.poll() is None for process in processes):
                place = len(numbers)
                body = text(f"{place} / 7", "first", "import nothing_of_this_name" if place % 4 == 3 else "")
                weight = ("first", Action.WEIGHT, {"weight": float(place)})
                asked = weight if place % 5 == 2 else ("first", Action.REPLACE, body)
                numbers.append(changes.ask(connection, *asked))
                time.sleep(random.random() * 0.4)
            assert [0] * ranks == [process.wait(60) for process in processes]
        finally:
            for process in processes:
                process.kill()
                process.wait()
        answers = [changes.change_of(connection, number) for number in numbers]
    files = [tmp_path / f"told-{rank}.jsonl" for rank in range(ranks)]
    told = [[json.loads(line) for line in file.read_text().splitlines()] for file in files]
    assert [len(lines) for lines in told] == [steps] * ranks
    for lines in zip(*told, strict=True):
        assert all(before == after for _, before, after in lines)
        assert len({json.dumps(before) for _, before, _ in lines}) == 1
    versions = list(dict.fromkeys(json.dumps(before) for _, before, _ in told[0]))
    at = {one.step for one in answers if one is not None and one.state is ChangeState.ACCEPTED}
    assert len(versions) == 1 + len({step for step in at if step is not None and step < steps}) > 1


def test_a_change_takes_effect_at_its_step_and_becomes_a_version(place: Any) -> None:
    """Steps before it have the old version, it and those after the new one; the event says when."""
    with LiveRuntime(Runtime([brief, other], workers=1, record=place)) as live, record(place) as connection:
        live.score(ROWS, step=0)
        number = changes.ask(connection, "brief", Action.REPLACE, text("-1.0"))
        change = decided(connection, number)
        assert change.step == 1
        for step in (1, 2):
            live.score(ROWS, step=step)
            live.score(ROWS, step=step)
    with Run.open(place) as run:
        assert {(one.step, one.versions["brief"]) for one in run.completions()} == {(0, 1), (1, 2), (2, 2)}
        assert run.series("brief") == [(0, 1.25), (1, -1.0), (2, -1.0)]
        old, new = (one for one in run.versions if one.reward == "brief")
        assert (old.first_step, new.first_step) == (0, 1)
        assert new.module == text("-1.0")["text"]
        (event,) = run.events
        assert (event["kind"], event["step"], event["body"]["state"]) == ("change", 1, "accepted")


def test_a_broken_change_leaves_everything_as_it_was(tmp_path: Path) -> None:
    """A file that does not import, or that workers cannot load, is refused with the reason; the old version goes on."""
    only_here = (
        "import os, sys\nif os.environ.get('REWARDKIT_WORKER') or 'pytest' not in sys.modules:\n    raise OSError('no')"
    )
    with LiveRuntime(Runtime([brief], workers=1, record=tmp_path)) as live, record(tmp_path) as connection:
        live.score(ROWS, step=0)
        processes = live.runtime.processes
        broken = decided(connection, changes.ask(connection, "brief", Action.REPLACE, text("0.0", top="1 / 0")))
        workers = decided(connection, changes.ask(connection, "brief", Action.REPLACE, text("0.0", top=only_here)))
        unknown = decided(connection, changes.ask(connection, "brif", Action.REPLACE, text("0.0")))
        batch = live.score(ROWS, step=1)
        assert live.runtime.processes == processes
    assert batch.scores == {"brief": [1.0, 1.0, 1.0, 2.0]}
    assert {broken.state, workers.state, unknown.state} == {ChangeState.REFUSED}
    assert "/nowhere/mine.py does not import" in str(broken.words)
    assert "ZeroDivisionError" in str(broken.words)
    assert "OSError: no" in str(workers.words)
    assert "no reward 'brif'; the training has brief" in str(unknown.words)
    with Run.open(tmp_path) as run:
        assert ["refused"] * 3 == [event["body"]["state"] for event in run.events]
        assert [one.label for one in run.versions] == ["brief@1"]


def test_a_loop_takes_weights_shadows_and_further_rewards(tmp_path: Path) -> None:
    """A shadow counts nothing and ends where its reward is replaced; a reward that is added counts with its weight."""
    with LiveRuntime(Runtime([brief, other], workers=1, record=tmp_path)) as live, record(tmp_path) as connection:

        def after(step: int, *wanted: tuple[str, Action, dict[str, Any]]) -> Any:
            for one in wanted:
                assert decided(connection, changes.ask(connection, *one)).state is ChangeState.ACCEPTED
            return live.score(ROWS[:1], step=step)

        assert after(0).totals == [1.5]
        batch = after(1, ("brief", Action.SHADOW, text("9.0")), ("other", Action.WEIGHT, {"weight": 3.0}))
        assert (batch.scores, batch.totals) == ({"brief": [1.0], "other": [0.5], "brief_shadow": [9.0]}, [2.5])
        batch = after(2, ("brief", Action.REPLACE, text("9.0") | {"weight": 2.0}))
        assert (batch.scores, batch.totals) == ({"brief": [9.0], "other": [0.5]}, [19.5])
        batch = after(3, ("more", Action.ADD, text("4.0") | {"weight": 0.5}), ("other", Action.REMOVE, {}))
        assert (batch.scores, batch.totals) == ({"brief": [9.0], "more": [4.0]}, [20.0])


def test_a_run_that_goes_on_has_its_changes_and_one_begun_anew_has_not(place: Any) -> None:
    """What was accepted holds from its step on again; a training that begins at 0 begins with its own rewards."""

    def live() -> LiveRuntime:
        from rewardkit import Recorder

        return LiveRuntime(Runtime([brief], lane="inline", record=Recorder(place, append=True)))

    with live() as runtime, record(place) as connection:
        runtime.score(ROWS[:1], step=3)
        change = decided(connection, changes.ask(connection, "brief", Action.REPLACE, text("7.0")))
        assert change.step == 4
    resumed = live().start(step=3)
    assert [resumed.score(ROWS[:1], step=step).totals for step in (3, 4)] == [[1.0], [7.0]]
    resumed.close()
    later = live().start(step=9)
    assert later.score(ROWS[:1], step=9).totals == [7.0]
    later.close()
    with live() as runtime:
        assert runtime.score(ROWS[:1], step=9).totals == [1.0]
    with Run.open(place) as run:
        assert [one.state for one in run.changes] == [ChangeState.DROPPED]


def test_a_training_that_was_killed_is_not_asked(tmp_path: Path) -> None:
    """Who asks is told that the process is gone, or that nobody ever took changes."""
    run = tmp_path / "run"
    with record(run):
        process = subprocess.Popen([sys.executable, str(HELPER), str(run), str(tmp_path), "0", "1", "100000", "0.01"])
        with Run.open(run) as reader:
            until(lambda: changes.trainers_of(reader._connection))
            assert list(reader.get_config().reward_fns.functions) == ["first"]
            process.send_signal(signal.SIGKILL)
            process.wait()
            with pytest.raises(UpdateRefusedError, match=f"is gone: its process {process.pid} was last heard of"):
                reader.get_config()
    with Runtime([brief], lane="inline", record=tmp_path / "other") as runtime:
        runtime.score(ROWS)
    with Run.open(tmp_path / "other") as reader, pytest.raises(UpdateRefusedError, match="no training has taken"):
        reader.get_config()


def test_a_step_that_begins_does_not_wait_for_a_file_that_others_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A look gives way at once and comes again; a lock that others hold for a while is nothing to be told of."""
    waits: list[int] = []

    def note(connection: sqlite3.Connection, *said: Any) -> bool:
        waits.extend(connection.execute("PRAGMA busy_timeout").fetchone())
        return noted(connection, *said)

    noted = changes.note
    monkeypatch.setattr(changes, "note", note)
    monkeypatch.setattr(updates, "SAY_S", 0.0)
    with record(tmp_path) as held, LiveRuntime(Runtime([brief], lane="inline", record=Recorder(tmp_path, append=True))):
        until(lambda: waits)
        held.execute("BEGIN IMMEDIATE")
        looked = len(waits)
        until(lambda: len(waits) > looked + 2)
        held.execute("ROLLBACK")
        until(lambda: len(waits) > looked + 5)
    assert {updates.BUSY_MS} == {*waits}
    assert not [one for one in caplog.records if one.levelname == "ERROR"]


@pytest.mark.postgres
def test_a_server_that_freezes_holds_up_no_step(
    own_postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Steps go on at once, with a vote that is open one of them waits a while; the change comes when it can."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(silence, "SILENT_S", 0.5)
    monkeypatch.setattr(silence, "CONNECT_S", 2)
    monkeypatch.setattr(updates, "BUSY_S", 1.5)
    url = f"{own_postgres.url('frozen')}&connect_timeout=2"
    looks: list[int] = []
    real = changes.next_open
    monkeypatch.setattr(changes, "next_open", lambda connection: (looks.append(1), real(connection))[1])
    with LiveRuntime(Runtime([brief], lane="inline", record=url)) as live:
        live.score(ROWS, step=0)
        until(lambda: looks)
        with own_postgres.frozen():
            until(lambda: "cannot be asked for changes of rewards" in caplog.text)
            monkeypatch.setattr(updates, "BUSY_S", 3600.0)  # a step that waited would do so for an hour
            assert _all_scored(live, range(1, 30))
            monkeypatch.setattr(updates, "BUSY_S", 1.5)
        with record(url) as connection:
            number = changes.ask(connection, "brief", Action.REPLACE, text("7.0"))
            assert decided(connection, number).step == 30
        until(lambda: live._updates._accepted)
        assert live.score(ROWS[:1], step=30).totals == [7.0]
        monkeypatch.setattr(changes, "vote", lambda *given: changes.change_of(given[0], given[1]))  # none is cast
        with record(url) as connection:
            changes.ask(connection, "brief", Action.REPLACE, text("8.0"))
        until(lambda: live._updates._voted is not None)
        with own_postgres.frozen():
            live.score(ROWS, step=31)
            monkeypatch.setattr(updates, "BUSY_S", 3600.0)
            assert _all_scored(live, range(32, 60))
        assert live.runtime.recorder is not None
    assert live.runtime.recorder.lost == 0
    with Run.open(url) as run:
        assert [step for step, _ in run.series("brief")] == list(range(60))


def _all_scored(live: LiveRuntime, steps: range) -> bool:
    """Return whether a thread scores all these steps."""
    thread = threading.Thread(target=lambda: [live.score(ROWS, step=step) for step in steps], daemon=True)
    thread.start()
    thread.join(LONG_S)
    return not thread.is_alive()


def test_a_training_is_there_where_the_machine_does_not_tell_processes_apart(
    place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without /proc its last word counts, as that of a process on another machine."""
    monkeypatch.setattr(changes, "born", lambda pid: None)
    with record(place) as connection:
        changes.join(connection, rank=0, ranks=1, step=-1, actions=[], rewards={}, anew=True)
        (trainer,) = changes.trainers_of(connection)
        assert trainer.gone is None
        assert "last heard of" in str(dataclasses.replace(trainer, seen=trainer.seen - changes.SILENT_S - 1).gone)


def test_a_loop_without_a_record_takes_no_changes() -> None:
    """Changes come through a record."""
    with Runtime([brief], lane="inline") as runtime, pytest.raises(RecordError, match="needs a record"):
        LiveRuntime(runtime)


def test_a_file_is_carried_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its text is what counts, not what the file says later; a secret in it is refused."""
    file = tmp_path / "mine.py"
    file.write_text("def brief(completion: str) -> float:\n    return 3.0\n")
    body = carry(f"{file}:brief", "brief")
    file.write_text("broken(")
    assert body["text"].endswith("return 3.0\n")
    monkeypatch.setenv("JUDGE_API_KEY", "sk-very-secret")
    file.write_text("KEY = 'sk-very-secret'\n")
    with pytest.raises(Exception, match="the value of JUDGE_API_KEY stands in it"):
        carry(f"{file}:brief", "brief")
