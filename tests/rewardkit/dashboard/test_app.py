"""The addresses: the page's files, the list of runs, a run's views, and every way in which there is no answer."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import math
import shutil
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from patience import wait_for
from served import WRITE_TOKEN, Served, recorded_run, serving

from rewardkit.dashboard import app
from rewardkit.dashboard import readers as readers_module
from rewardkit.dashboard.app import json_bytes
from rewardkit.dashboard.panels import ROOT
from rewardkit.dashboard.query import Query
from rewardkit.dashboard.readers import (
    CACHE_S,
    DIAGNOSIS,
    Missing,
    NotThere,
    OpenRun,
    Readers,
    RunCache,
    RunCaches,
    Unreadable,
)
from rewardkit.dashboard.views.runs import MOST_POINTS
from rewardkit.dashboard.workers import MOST_LATE, BusyError, Workers
from rewardkit.errors import RecordError
from rewardkit.record.recorder import Recorder
from rewardkit.record.runs_folder import RunsFolder
from rewardkit.record.sqlite_file import FILE
from rewardkit.record.sums import thin


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A folder of one run."""
    recorded_run(tmp_path / "runs" / "one")
    return tmp_path / "runs"


@pytest.fixture
def served(runs: Path) -> Iterator[Served]:
    """That folder's dashboard, entered."""
    with serving(runs, write=True) as found:
        yield found.enter()


def _view(monkeypatch: pytest.MonkeyPatch, function: Any) -> None:
    monkeypatch.setitem(app.VIEWS, "tried", function)


def test_the_page_is_served_from_its_files(served: Served) -> None:
    """The page at each address of a view, its modules with their types, packed where the browser takes it."""
    index = served.ask("/")
    assert (200, "text/html; charset=utf-8") == (index.status, index.headers["content-type"])
    assert {index.body} == {served.ask(one).body for one in ("/runs", "/runs/one/graphs?step=3", "/runs/a%20b")}
    types = {"/app.js": "text/javascript; charset=utf-8", "/style.css": "text/css; charset=utf-8"}
    assert types == {path: served.ask(path).headers["content-type"] for path in types}
    packed = served.ask("/app.js", headers={"Accept-Encoding": "gzip"})
    assert served.ask("/app.js").body == (
        gzip.decompress(packed.body) if "content-encoding" in packed.headers else packed.body
    )
    assert 304 == served.ask("/app.js", headers={"If-None-Match": packed.headers["etag"]}).status


def test_every_file_of_the_page_has_a_type(served: Served) -> None:
    """A browser that is told not to guess needs each."""
    files = [f"/{path.relative_to(ROOT).as_posix()}" for path in ROOT.rglob("*") if path.is_file()]
    assert {"/index.html", "/app.js", "/style.css"} <= set(files)
    types = {path: served.ask(path).headers["content-type"] for path in files}
    assert [] == [path for path, kind in types.items() if kind == "application/octet-stream"]
    kinds = {path.rpartition(".")[2]: kind for path, kind in types.items()}
    assert "text/javascript; charset=utf-8" == kinds["js"]


def test_the_list_has_each_run(served: Served, runs: Path) -> None:
    """What it holds, with a small curve of each reward, and why one cannot be read."""
    recorded_run(runs / "two", steps=100)
    (runs / "empty").mkdir()
    (runs / "empty" / FILE).touch()
    (runs / "noise").mkdir()
    (runs / "noise" / FILE).write_bytes(b"x" * 5000)
    told = served.told("/runs")
    found = {one["name"]: one for one in told["runs"]}
    assert (str(runs), True, {"one", "two", "empty", "noise"}) == (told["folder"], told["there"], set(found))
    assert (24, 3, 0, 2, "finished") == tuple(
        found["one"][key] for key in ("completions", "steps", "first_step", "last_step", "state")
    )
    assert [("exact", 1.0, [[0, 1.0], [1, 1.0], [2, 1.0]]), ("other", 0.5, [[0, 0.5], [1, 0.5], [2, 0.5]])] == [
        (one["name"], one["last"], one["series"]) for one in found["one"]["rewards"]
    ]
    assert (MOST_POINTS, 0, 99) == (
        len(series := found["two"]["rewards"][0]["series"]), series[0][0], series[-1][0]
    )  # fmt: skip
    assert ("unreadable", None) == (found["empty"]["state"], found["empty"]["completions"])
    assert "the file is empty" in found["empty"]["problem"]
    assert "not a record" in found["noise"]["problem"]


def test_the_list_follows_the_folder(tmp_path: Path) -> None:
    """A folder that is not there yet, is empty, gets runs, loses them, and goes again."""
    folder = tmp_path / "later"
    with serving(folder) as found:
        served = found.enter()
        assert {"folder": str(folder), "there": False, "whole": True, "runs": []} == served.told("/runs")
        folder.mkdir()
        assert (True, []) == (served.told("/runs")["there"], served.told("/runs")["runs"])
        recorded_run(folder / "one")
        assert [24] == [one["completions"] for one in served.told("/runs")["runs"]]
        recorded_run(folder / "one", first=3)
        assert [48] == [one["completions"] for one in served.told("/runs")["runs"]]
        shutil.rmtree(folder)
        assert (False, []) == (served.told("/runs")["there"], served.told("/runs")["runs"])


def test_a_runs_own_folder_shows_that_run(runs: Path) -> None:
    """Under its name, as in a folder of runs."""
    with serving(runs / "one") as found:
        served = found.enter()
        assert ["one"] == [one["name"] for one in served.told("/runs")["runs"]]
        assert 24 == served.told("/runs/one/overview")["completions"]
        assert 404 == served.ask("/api/runs/two/overview").status


def test_the_overview_tells_what_every_tab_needs(served: Served, runs: Path) -> None:
    """Sizes, steps, rewards, versions, metrics, sessions, and whether something may be written."""
    with contextlib.closing(Recorder(runs / "one", append=True)) as recorder:
        recorder.metrics(3, {"kl": 0.5, "loss": math.nan})
    told = served.told("/runs/one/overview")
    assert ("one", str(runs / "one"), 24, 1, 0, True) == tuple(
        told[key] for key in ("name", "path", "completions", "prompts", "left_out", "can_write")
    )
    assert {"train": [0, 2, 3], "eval": []} == told["steps"]
    assert {"train": ["kl", "loss"], "eval": []} == told["metrics"]
    assert [("exact", 1, 1.0, 24, 0, {}), ("other", 1, 0.5, 24, 0, {})] == [
        tuple(one[key] for key in ("name", "version", "last", "scored", "skipped", "failed")) for one in told["rewards"]
    ]
    assert [(1, "exact", 1, "run"), (2, "other", 1, "run")] == [
        tuple(one[key] for key in ("id", "reward", "number", "origin")) for one in told["versions"]
    ]
    assert "timeout" in told["causes"]


def test_an_empty_run_is_told_as_it_is(served: Served, runs: Path) -> None:
    """A run that has begun and recorded nothing has no rewards and no steps, and no fault."""
    with contextlib.closing(Recorder(runs / "begun")) as recorder:
        recorder.event("flag", {"words": "nothing"})
        assert recorder.flush()
        told = served.told("/runs/begun/overview")
        assert (0, [], {"train": [], "eval": []}, "running") == (
            told["completions"], told["rewards"], told["steps"], told["state"]
        )  # fmt: skip
    assert "finished" == served.told("/runs/begun/overview")["state"]
    assert [1] == [one["flags"] for one in served.told("/runs")["runs"] if one["name"] == "begun"]


def test_the_list_of_runs_has_the_flags_that_health_has(served: Served, runs: Path) -> None:
    """A run at which no detector looked has no number of flags; one at which they looked has theirs."""
    recorded_run(runs / "looked", steps=4)

    def flags() -> Any:
        return next(one["flags"] for one in served.told("/runs")["runs"] if one["name"] == "looked")

    assert flags() is None
    assert wait_for(lambda: served.told("/runs/looked/health")["diagnosis"] is not None)
    assert flags() == len(served.told("/runs/looked/health")["diagnosis"]["flags"])
    shutil.rmtree(runs / "looked")
    recorded_run(runs / "looked", steps=2)
    assert flags() is None


def _gone(run: Path) -> None:
    shutil.rmtree(run)


def _emptied(run: Path) -> None:
    shutil.rmtree(run)
    run.mkdir()
    (run / FILE).touch()


def _damaged(run: Path) -> None:
    shutil.rmtree(run)
    run.mkdir()
    (run / FILE).write_bytes(b"SQLite format 3\x00" + b"\xff" * 9000)


def _foreign(run: Path) -> None:
    shutil.rmtree(run)
    run.mkdir()
    with contextlib.closing(sqlite3.connect(run / FILE)) as connection:
        connection.execute("CREATE TABLE x (y)")
        connection.commit()


def _newer(run: Path) -> None:
    with contextlib.closing(sqlite3.connect(run / FILE)) as connection:
        connection.execute("PRAGMA user_version = 99")
    shutil.copytree(run, run.with_name("copy"))
    shutil.rmtree(run)
    run.with_name("copy").rename(run)


BROKEN = {
    "deleted": (_gone, 404, "missing", "there is no record"),
    "emptied": (_emptied, 503, "unreadable", "the file is empty"),
    "damaged": (_damaged, 503, "unreadable", "record.db: "),
    "foreign": (_foreign, 503, "unreadable", "not a record of rewardkit"),
    "newer": (_newer, 503, "unreadable", "written by a newer release"),
}


@pytest.mark.parametrize(("spoil", "status", "state", "words"), BROKEN.values(), ids=BROKEN)
def test_a_run_that_breaks_while_it_is_shown_is_told_and_comes_back(
    served: Served, runs: Path, spoil: Any, status: int, state: str, words: str
) -> None:
    """With a status, a state and words; another run in its place is shown without a restart."""
    assert [24] * 8 == [served.told("/runs/one/overview")["completions"] for _ in range(8)]
    spoil(runs / "one")
    for _ in range(8):  # each thread of the server
        answer = served.ask("/api/runs/one/overview")
        assert (status, state) == (answer.status, answer.told["state"])
        assert words in answer.told["error"]
        assert "Traceback" not in answer.told["error"]
    shutil.rmtree(runs / "one", ignore_errors=True)
    recorded_run(runs / "one", steps=5)
    assert [40] * 8 == [served.told("/runs/one/overview")["completions"] for _ in range(8)]


def test_a_run_is_replaced_while_it_is_shown(served: Served, runs: Path) -> None:
    """By another one that goes on being written: nothing of it is lost when the old one is closed."""
    assert 24 == served.told("/runs/one/overview")["completions"]
    shutil.rmtree(runs / "one")
    with contextlib.closing(Recorder(runs / "one")) as recorder:
        recorded_run(runs / "other", steps=1)
        assert recorder.flush()
        assert [0] * 8 == [served.told("/runs/one/overview")["completions"] for _ in range(8)]
        assert (runs / "one" / f"{FILE}-wal").exists()
    assert "finished" == served.told("/runs/one/overview")["state"]


def test_every_thread_sees_what_was_written(served: Served, runs: Path) -> None:
    """What was kept of a run before is not told of it afterwards, whichever thread answers."""
    for steps in range(3, 9):
        with ThreadPoolExecutor(8) as pool:
            told = list(pool.map(lambda _: served.told("/runs/one/overview")["completions"], range(8)))
        assert [8 * steps] * 8 == told
        recorded_run(runs / "one", steps=1, first=steps)


def test_wrong_parameters_and_names_are_told(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """400 for what cannot be asked, 404 for what is not there, each in words."""

    def tried(opened: OpenRun, query: Query) -> dict[str, Any]:
        if query.integer("step", low=0) is None:
            raise NotThere("no completion 7; it has those from 1 to 24")
        return {"completions": len(list(opened.run.completions(reward=query.text("reward"))))}

    _view(monkeypatch, tried)
    assert {"completions": 24} == served.told("/runs/one/tried?step=1&reward=exact")
    for address, status, words in (
        ("tried?step=x", 400, "step=x: expected a whole number of 0 or more"),
        ("tried?step=1&reward=nope", 400, "one: no reward 'nope'; it has exact, other"),
        ("tried", 404, "no completion 7; it has those from 1 to 24"),
        ("absent", 404, "no view 'absent'; there are overview"),
    ):
        answer = served.ask(f"/api/runs/one/{address}")
        assert status == answer.status
        assert answer.told["error"].startswith(words)


def test_a_fault_of_our_own_stays_in_the_terminal(
    served: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The browser is told its class; where it came from stands in the log."""

    def tried(opened: OpenRun, query: Query) -> dict[str, Any]:
        raise ZeroDivisionError("a secret place")

    _view(monkeypatch, tried)
    answer = served.ask("/api/runs/one/tried")
    assert (500, True) == (answer.status, "ZeroDivisionError" in answer.told["error"])
    assert b"secret" not in answer.body
    assert b"Traceback" not in answer.body
    assert "a secret place" in caplog.text


def test_an_answer_that_takes_too_long_is_given_up(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others are answered meanwhile, and the words say what to do."""
    over = threading.Event()

    def tried(opened: OpenRun, query: Query) -> dict[str, Any]:
        return {"waited": over.wait(60)}

    _view(monkeypatch, tried)
    monkeypatch.setattr(app, "VIEW_S", 0.2)
    try:
        answer = served.ask("/api/runs/one/tried")
        assert (503, "busy") == (answer.status, answer.told["state"])
        monkeypatch.setattr(app, "VIEW_S", 30.0)
        assert 24 == served.told("/runs/one/overview")["completions"]
    finally:
        over.set()


def test_what_never_ends_takes_no_thread_from_the_others() -> None:
    """Some have another thread in their place, and more of them than that do not start threads without end."""
    over = threading.Event()
    workers = Workers(2, lambda: Readers(RunsFolder(Path()), RunCaches()), "endless")

    def threads() -> int:
        return sum(one.name == "endless" for one in threading.enumerate())

    async def asked(wait_s: float) -> Any:
        endless = [workers.ask(lambda readers: over.wait(60), 0.1) for _ in range(2)]
        given_up = await asyncio.gather(*endless, return_exceptions=True)
        assert all(isinstance(one, BusyError) for one in given_up)
        return await workers.ask(lambda readers: "answered", wait_s)

    try:
        assert asyncio.run(asked(60)) == "answered"
        assert asyncio.run(asked(60)) == "answered"
        with pytest.raises(BusyError):
            asyncio.run(asked(0.1))
        assert threads() == 2 + MOST_LATE
    finally:
        over.set()
        workers.close(60)
    for one in [one for one in threading.enumerate() if one.name == "endless"]:
        one.join(60)
    assert threads() == 0


def test_too_many_questions_at_once_are_refused() -> None:
    """More than can wait are told so, and the threads go on."""
    over = threading.Event()
    workers = Workers(1, lambda: Readers(RunsFolder(Path()), RunCaches()), "tried")

    async def many() -> list[Any]:
        asked = [asyncio.ensure_future(workers.ask(lambda readers: over.wait(60), 60)) for _ in range(100)]
        await asyncio.sleep(0)
        over.set()
        return await asyncio.gather(*asked, return_exceptions=True)

    try:
        found = asyncio.run(many())
    finally:
        workers.close(60)
    assert {True, False} == {isinstance(one, BusyError) for one in found}
    assert True in found


def test_json_holds_what_rewards_and_models_make_of_it() -> None:
    """No NaN, no half of a surrogate pair, numpy's numbers as numbers."""
    value = {
        "nan": math.nan,
        "inf": [-math.inf],
        "half": "a\ud800b",
        "whole": np.int64(3),
        "array": np.array([1.5, math.nan]),
    }
    assert {"nan": None, "inf": [None], "half": "a\ufffdb", "whole": 3, "array": [1.5, None]} == json.loads(
        json_bytes(value)
    )
    assert "Ä\u202e\x1b\x00" == json.loads(json_bytes("Ä\u202e\x1b\x00"))
    with pytest.raises(TypeError, match="object is not JSON"):
        json_bytes({"x": object()})


def test_actions_need_the_write_token(runs: Path, served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without --write there is none; with it, the header must have the token that was printed."""

    def acted(opened: OpenRun, body: Mapping[str, Any]) -> dict[str, Any]:
        return {"run": opened.run.name, **body}

    monkeypatch.setitem(app.ACTIONS, "act", acted)
    headers = {"X-Write-Token": WRITE_TOKEN}
    assert {"run": "one", "x": 1} == served.ask("/api/runs/one/change/act", "POST", headers, {"x": 1}).told
    assert 404 == served.ask("/api/runs/two/change/act", "POST", headers, {}).status
    assert 404 == served.ask("/api/runs/one/change/nothing", "POST", headers, {}).status
    for wrong in ({}, {"X-Write-Token": ""}, {"X-Write-Token": "wrong"}):
        answer = served.ask("/api/runs/one/change/act", "POST", wrong, {})
        assert (403, True) == (answer.status, answer.told["error"].startswith("wrong write token"))
    assert 405 == served.ask("/api/runs/one/overview", "PUT").status
    with serving(runs) as other:
        refused = other.enter().ask("/api/runs/one/change/act", "POST", headers, {})
        assert (403, True) == (refused.status, "--write" in refused.told["error"])
        assert other.told("/runs/one/overview")["can_write"] is False


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"[]", 400),
        (b"{", 400),
        (b"\xff", 400),
        (b"[" * 100_000, 400),
        (b'"' + b"x" * 2_100_000 + b'"', 413),
    ],
)
def test_a_body_is_a_small_json_object(
    served: Served, monkeypatch: pytest.MonkeyPatch, body: bytes, status: int
) -> None:
    """Anything else is refused before anything is done."""
    monkeypatch.setitem(app.ACTIONS, "act", lambda opened, body: {})
    assert status == served.ask("/api/runs/one/change/act", "POST", {"X-Write-Token": WRITE_TOKEN}, body).status


def test_a_body_that_never_ends_is_given_up(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that says more than it sends is answered all the same."""
    monkeypatch.setattr(app, "BODY_S", 0.2)
    monkeypatch.setitem(app.ACTIONS, "act", lambda opened, body: {})
    headers = {"X-Write-Token": WRITE_TOKEN, "Content-Length": "1000"}
    assert 408 == served.ask("/api/runs/one/change/act", "POST", headers, b"{").status


def test_a_value_is_kept_until_the_run_changes(tmp_path: Path) -> None:
    """Computed once for one version, and a failure is not kept."""
    run = recorded_run(tmp_path / "one")
    readers = Readers(RunsFolder(tmp_path), RunCaches())
    opened, made = readers.get("one"), iter(range(9))
    try:
        assert 0 == opened.cache.get("x", 1, lambda: next(made)) == opened.cache.get("x", 1, lambda: next(made))
        assert 1 == opened.cache.get("x", 2, lambda: next(made))
        with pytest.raises(RecordError):
            opened.cache.get("y", 1, lambda: list(opened.run.completions(reward="nope")))
        assert [] == opened.cache.get("y", 1, list)
        shutil.rmtree(run)
        with pytest.raises(Missing):
            readers.get("one")
        recorded_run(tmp_path / "one")
        assert 2 == readers.get("one").cache.get("x", 2, lambda: next(made))
    finally:
        readers.close()


def test_what_is_kept_is_bounded() -> None:
    """The values least recently asked for make room."""
    kept = RunCache()
    for place in range(200):
        kept.get(place, 0, lambda place=place: place)  # type: ignore[misc]
    assert -1 == kept.get(0, 0, lambda: -1)
    assert 199 == kept.get(199, 0, lambda: -1)


def test_what_nobody_asks_for_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept of a run goes after a while, that of a run which is looked at stays, and so does a diagnosis."""
    now = [1000.0]
    monkeypatch.setattr(readers_module.time, "monotonic", lambda: now[0])
    shared = RunCaches()
    for name in ("left", "looked at"):
        for key in ("curves", DIAGNOSIS):
            shared.of(name, (1,)).get(key, 0, lambda: "old")
    now[0] += CACHE_S - 1
    shared.of("looked at", (1,))
    now[0] += 2
    shared.expire()
    assert shared.of("looked at", (1,)).get("curves", 0, lambda: "new") == "old"
    assert shared.of("left", (1,)).get("curves", 0, lambda: "new") == "new"
    assert shared.of("left", (1,)).get(DIAGNOSIS, 0, lambda: "new") == "old"


def test_a_long_answer_is_packed_where_the_browser_takes_it(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says the same; a short one, and one for somebody who takes no gzip, is sent as it is."""
    _view(monkeypatch, lambda opened, query: {"words": "many " * query.integer("count", 0)})
    packed = {"Accept-Encoding": "gzip, br"}
    long = "/api/runs/one/tried?count=10000"
    answer, plain = served.ask(long, headers=packed), served.ask(long)
    assert answer.headers["content-encoding"] == "gzip"
    assert len(answer.body) < len(plain.body) / 10
    assert gzip.decompress(answer.body) == plain.body
    assert "content-encoding" not in plain.headers
    assert "content-encoding" not in served.ask("/api/runs/one/tried?count=1", headers=packed).headers


def test_few_runs_are_held_open(tmp_path: Path) -> None:
    """A look at many runs does not hold all their files."""
    recorded_run(tmp_path / "run0", steps=1)
    for place in range(1, 20):
        shutil.copytree(tmp_path / "run0", tmp_path / f"run{place}")
    readers = Readers(RunsFolder(tmp_path), RunCaches())
    first = readers.get("run0").run
    for place in range(1, 20):
        readers.get(f"run{place}")
    with pytest.raises(RecordError, match="this reader is closed"):
        first.count()
    (tmp_path / "odd" / FILE).mkdir(parents=True)
    with pytest.raises(Unreadable, match=r"record\.db: "):
        readers.get("odd")
    readers.close()


def test_a_series_keeps_its_ends() -> None:
    """However many points it has."""
    for count in (0, 1, MOST_POINTS, MOST_POINTS + 1, 1000):
        series = [(step, step / 2) for step in range(count)]
        found = thin(series, MOST_POINTS)
        assert min(count, MOST_POINTS) == len(found)
        assert (series[:1], series[-1:]) == (found[:1], found[-1:])
        assert sorted(set(found)) == found


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE session SET about = '17'",
        "UPDATE session SET began = 'never'",
        "UPDATE session SET seen = x'ff'",
        "UPDATE version SET reward = x'ff'",
        "UPDATE batch SET step = 'x'",
        "UPDATE session SET about = '" + "[" * 100_000 + "'",
        "CREATE VIEW more AS SELECT 1",
    ],
)
def test_a_crafted_run_is_unreadable_and_the_others_are_listed(served: Served, runs: Path, statement: str) -> None:
    """Whatever stands in its columns: the list says why, and each view answers 503 or what it can."""
    recorded_run(runs / "crafted")
    with contextlib.closing(sqlite3.connect(runs / "crafted" / FILE)) as file:
        file.execute(statement)
        file.commit()
    found = {one["name"]: one for one in served.told("/runs")["runs"]}
    assert {"one", "crafted"} == set(found)
    assert found["one"]["state"] in ("finished", "running")
    for view in app.VIEWS:
        answer = served.ask(f"/api/runs/crafted/{view}")
        assert answer.status in (200, 400, 404, 503), (view, answer)
        assert b"own" not in answer.body or 200 == answer.status


def test_a_view_that_stumbles_over_a_wrong_value_names_its_column(served: Served, runs: Path) -> None:
    """The run is damaged, and it is no fault of the view's."""
    recorded_run(runs / "crafted")
    with contextlib.closing(sqlite3.connect(runs / "crafted" / FILE)) as file:
        file.execute("UPDATE completion SET epoch = x'ff'")
        file.commit()
    answer = served.ask("/api/runs/crafted/prompt")
    assert (503, "unreadable") == (answer.status, answer.told["state"])
    assert answer.told["error"].endswith("damaged: completion.epoch holds what no recorder writes")
