"""A record in PostgreSQL: writers that are killed, many at once, a server that goes away, and what is refused."""

from __future__ import annotations

import contextlib
import logging
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from databases import GUARDED, Server, serving
from patience import LONG_S, wait_for
from recorded import batch

from rewardkit.errors import RecordError
from rewardkit.record import database_place, postgres_connection, silence
from rewardkit.record.address import address_of
from rewardkit.record.database_place import DatabasePlace, runs_of
from rewardkit.record.places import place_of_record, place_of_runs
from rewardkit.record.reader import RunReader
from rewardkit.record.recorder import Recorder
from rewardkit.record.schema import VERSION

pytestmark = pytest.mark.postgres
HELPERS = Path(__file__).parents[2] / "helpers"
SIZE = 40
WRITES = f"""
import sys
sys.path.insert(0, {str(HELPERS)!r})
from recorded import batch
from rewardkit.record.recorder import Recorder
url, rank, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
one = Recorder(url, append=True, rank=rank)
for step in range(steps):
    one.record(batch({SIZE}, mark=f"{{rank}}-{{step}}"), step=step)
    if step % 3 == 2 and one.flush():
        print(step, flush=True)
assert one.close()
"""
ODD = (
    'SELECT (SELECT count(*) FROM (SELECT 1 FROM "{0}".completion GROUP BY batch HAVING count(*) <> {1}) a),'
    ' (SELECT count(*) FROM (SELECT 1 FROM "{0}".completion GROUP BY batch HAVING max(id) - min(id) <> {1} - 1) a),'
    ' (SELECT count(*) FROM "{0}".batch LEFT JOIN (SELECT DISTINCT batch FROM "{0}".completion) a'
    "   ON a.batch = batch.id WHERE a.batch IS NULL),"
    ' (SELECT 2 * count(*) FROM "{0}".batch) - (SELECT count(*) FROM "{0}".summary),'
    ' (SELECT count(*) FROM "{0}".completion LEFT JOIN "{0}".text ON text.id = completion WHERE body IS NULL)'
)
"""Batches that are not whole, that have numbers of others between theirs, without completions, sums or texts."""
WRITERS = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'rewardkit'"


def refusal(act: Callable[[], object]) -> str:
    """Return the one line with which something is refused."""
    with pytest.raises(RecordError) as refused:
        act()
    assert "\n" not in str(refused.value)
    return str(refused.value)


def closes_unwritten(recorder: Recorder, timeout_s: float) -> bool:
    """Return whether closing ends, and says that something is not written."""
    closed: list[bool] = []
    threading.Thread(target=lambda: closed.append(recorder.close(timeout_s)), daemon=True).start()
    return wait_for(lambda: closed) and closed == [False]


def marks(url: str) -> list[str]:
    """Return the mark of each batch of a run, in order."""
    with RunReader(url) as found:
        rows = [(one.batch, str(one.completion).partition(":")[0]) for one in found.completions()]
    return [mark for _, mark in dict.fromkeys(rows)]


@pytest.mark.slow
def test_a_killed_writer_leaves_no_part_of_a_step(full: bool) -> None:
    """After SIGKILL at random moments all that was acknowledged is there, and each batch is whole."""
    folder = Path(tempfile.mkdtemp(prefix="rk-pg-"))
    chance = random.Random(18)
    try:
        with serving(folder, "") as one:
            url, acknowledged = one.url("killed"), {}
            for turn in range(50 if full else 5):
                command = [sys.executable, "-c", WRITES, url, str(turn), "100000"]
                with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
                    assert child.stdout is not None
                    first = child.stdout.readline()  # it writes by now
                    time.sleep(chance.uniform(0.0, 0.3))
                    child.kill()
                    told = [first, *child.stdout.read().split("\n")]
                acknowledged[turn] = max(int(line) for line in told if line.strip())
                wait_for(
                    lambda: (
                        one.sql("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'rewardkit'") == [(0,)]
                    )
                )
                assert one.sql(ODD.format("killed", SIZE)) == [(0, 0, 0, 0, 0)]
            there: dict[int, list[int]] = {}
            for mark in marks(url):
                turn, step = map(int, mark.split("-"))
                there.setdefault(turn, []).append(step)
            for turn, last in acknowledged.items():
                assert there[turn] == list(range(len(there[turn])))
                assert there[turn][-1] >= last
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_writers_side_by_side_lose_nothing_and_a_reader_misses_nothing(postgres: Server) -> None:
    """Several processes write one run; who reads on after the last number sees each completion once, in order."""
    url = postgres.url("ranks")
    Recorder(url).close()
    children = [subprocess.Popen([sys.executable, "-c", WRITES, url, str(rank), "12"], stdout=-3) for rank in range(3)]
    seen: list[int] = []
    with RunReader(url) as reader:
        while any(child.poll() is None for child in children):
            seen += [one.id for one in reader.completions(after=seen[-1] if seen else 0)]
            time.sleep(0.01)
        assert [child.wait() for child in children] == [0] * 3
        seen += [one.id for one in reader.completions(after=seen[-1] if seen else 0)]
        found = list(reader.completions())
        assert seen == [one.id for one in found]
        assert len(found) == 3 * 12 * SIZE
        assert all(str(one.completion).startswith(f"{one.rank}-{one.step}:") for one in found)
        assert {one.prompt_index for one in found} == {0}
        assert [one.scored for one in reader.summaries("exact")] == [3 * SIZE] * 12
    assert postgres.sql(ODD.format("ranks", SIZE)) == [(0, 0, 0, 0, 0)]
    assert postgres.sql('SELECT count(*) FROM "ranks".text') == [(len(found) + 2,)]


def test_texts_are_written_side_by_side(postgres: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """No writer waits for another one's texts, which are most of a step: each is among its own when the other is."""
    url, real = postgres.url("beside"), postgres_connection.ServerConnection.insert_all
    met = threading.Barrier(2, timeout=60)

    def insert_all(self: postgres_connection.ServerConnection, table: str, rows: Any) -> None:
        if table == "text" and not self.is_alone:
            met.wait()
        real(self, table, rows)

    with Recorder(url) as one, Recorder(url, append=True) as other:
        monkeypatch.setattr(postgres_connection.ServerConnection, "insert_all", insert_all)
        one.record(batch(mark="one"), step=0)
        other.record(batch(mark="other"), step=0)
        assert one.flush()
        assert other.flush()
        monkeypatch.setattr(postgres_connection.ServerConnection, "insert_all", real)
    assert (one.lost, other.lost, met.broken) == (0, 0, False)
    assert sorted(marks(url)) == ["one", "other"]


def test_a_server_that_goes_away_loses_nothing(own_postgres: Server, caplog: pytest.LogCaptureFixture) -> None:
    """What is recorded meanwhile waits in memory, and is written once the server is back; that is told twice."""
    url = own_postgres.url("gone")
    with caplog.at_level(logging.INFO, "rewardkit"), Recorder(url) as one:
        one.record(batch(mark="before"), step=0)
        assert one.flush()
        own_postgres.stop("immediate")
        for step in range(1, 4):
            one.record(batch(mark=f"away{step}"), step=step)
        wait_for(lambda: one.trouble is not None)
        assert not one.flush(0.1)
        own_postgres.start()
        assert one.flush()
        one.record(batch(mark="after"), step=4)
    assert (one.lost, one.trouble) == (0, None)
    assert marks(url) == ["before", "away1", "away2", "away3", "after"]
    told = [one.getMessage() for one in caplog.records]
    assert ["cannot be written" in words for words in told] == [True, False], told
    assert "is written again" in told[1]


def test_a_server_that_freezes_is_given_up_and_loses_nothing(
    own_postgres: Server, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody waits for it for ever: neither who records nor who opens, reads or closes a record."""
    monkeypatch.setattr(silence, "CONNECT_S", 2)
    url = f"{own_postgres.url('frozen')}&connect_timeout=2"
    one, other = Recorder(url), Recorder(f"{own_postgres.url('also')}&connect_timeout=2")
    reader = RunReader(url)
    for recorder in (one, other):
        recorder.record(batch(mark="before"), step=0)
        assert recorder.flush()
    with own_postgres.frozen():
        monkeypatch.setattr(silence, "SILENT_S", 0.5)  # not before: a slow server that lives is not silent
        one.record(batch(mark="frozen"), step=1)
        with ThreadPoolExecutor() as asking:
            read, opened = asking.map(refusal, (reader.count, lambda: Recorder(url, append=True)))
        assert "has said nothing for" in read
        assert "timeout expired" in opened
        assert wait_for(lambda: one.trouble is not None)
        monkeypatch.setattr(silence, "SILENT_S", 3600.0)
        other.record(batch(mark="frozen"), step=1)
        assert closes_unwritten(other, 0.1)
        assert other.lost == 8
        monkeypatch.setattr(silence, "SILENT_S", LONG_S)
    assert one.flush()
    one.close()
    assert (one.lost, marks(url)) == (0, ["before", "frozen"])
    assert 1 == sum("cannot be written: the server has said nothing" in each.getMessage() for each in caplog.records)


def test_a_way_to_the_server_that_swallows_words_is_given_up(
    postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server lives, and says that it works on nothing of this writer's."""
    url = postgres.url("swallowed")
    with Relay(postgres, tmp_path) as relay, Recorder(relay.url("swallowed")) as one:
        for step in range(4):
            assert one.flush()
            if step % 2 == 0:
                one.record(batch(SIZE, mark=f"s{step}"), step=step)
                continue
            relay.swallow()
            one.record(batch(SIZE, mark=f"s{step}"), step=step)
            monkeypatch.setattr(silence, "SILENT_S", 0.1)  # until it is given up: a slow way is not a silent one
            assert wait_for(relay.is_given_up)
            monkeypatch.setattr(silence, "SILENT_S", LONG_S)
        assert one.flush()
    assert marks(url) == [f"s{step}" for step in range(4)]
    assert postgres.sql(ODD.format("swallowed", SIZE)) == [(0, 0, 0, 0, 0)]


def test_what_the_server_works_on_is_waited_for(postgres: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often it is asked whether it still does, it says so, and the answer arrives."""
    asked: list[bool] = []
    real = silence._works
    monkeypatch.setattr(silence, "_works", lambda *arguments: (asked.append(real(*arguments)), asked[-1])[1])
    address = address_of(postgres.url())
    waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'advisory'"
    with (
        contextlib.closing(postgres_connection.connect(address)) as holder,
        contextlib.closing(postgres_connection.connect(address)) as slow,
        ThreadPoolExecutor() as threads,
    ):
        holder.execute("SELECT pg_advisory_lock(7)")
        answer = threads.submit(lambda: slow.execute("SELECT 1 FROM pg_advisory_lock(7)").fetchone())
        try:
            assert wait_for(lambda: postgres.sql(waits) == [(1,)])
            monkeypatch.setattr(
                silence, "SILENT_S", 0.1
            )  # not before: a statement that has not arrived is not worked on
            assert wait_for(lambda: len(asked) > 1)
            monkeypatch.setattr(silence, "SILENT_S", LONG_S)
        finally:
            holder.execute("SELECT pg_advisory_unlock(7)")
        assert (1,) == answer.result(LONG_S)
    assert {True} == {*asked}


def test_a_process_that_is_stopped_in_a_step_holds_up_the_others_for_a_while(
    postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server ends its transaction, which kept the others away; nothing of it is there."""
    url = postgres.url("stopped")
    Recorder(url).close()
    monkeypatch.setitem(database_place._PATIENCE, "idle_in_transaction_session_timeout", 0.5)
    with contextlib.closing(place_of_record(url).connect_to_write()) as stopped:
        stopped.begin()
        stopped.alone()
        stopped.insert("event", {"time": 0.0, "kind": "told", "body": "{}"})
        with Recorder(url, append=True) as one:
            one.record(batch(mark="other"), step=0)
            assert one.flush()
        with pytest.raises(postgres_connection.ServerError) as ended:
            stopped.commit()
        assert ended.value.may_pass
    with RunReader(url) as run:
        assert (run.count(), run.events) == (8, [])


class Relay:
    """A way to a server that may take words of the connections that it has, and hand none on."""

    def __init__(self, to: Server, folder: Path) -> None:
        self._to, self._folder, self._lost = to, folder, 0
        self._listener = socket.socket(socket.AF_UNIX)
        self._ends: list[socket.socket] = []
        self._swallowed: set[socket.socket] = set()
        self._silenced: set[socket.socket] = set()
        """Ends of which words were swallowed, as long as they are open."""

    def url(self, run: str | None = None) -> str:
        """Return the address of a run through this."""
        return self._to.url(run).replace(quote(str(self._to.folder), safe=""), quote(str(self._folder), safe=""))

    def swallow(self) -> None:
        """Lose the words of the connections that there are; those of later ones are handed on."""
        self._swallowed |= set(self._ends)
        self._silenced.clear()
        self._lost = 0

    def is_given_up(self) -> bool:
        """Whether words were swallowed, and the connections that they came by are closed."""
        return self._lost > 0 and not self._silenced

    def __enter__(self) -> Relay:
        self._listener.bind(str(self._folder / ".s.PGSQL.5432"))
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._listener.close()
        for one in self._ends:
            one.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.socket(socket.AF_UNIX)
                far.connect(str(self._to.folder / ".s.PGSQL.5432"))
                self._ends += [near, far]
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=self._hand_on, args=(one, other), daemon=True).start()

    def _hand_on(self, one: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while words := one.recv(65536):
                if one not in self._swallowed:
                    other.sendall(words)
                else:
                    self._silenced.add(one)
                    self._lost += 1
            self._silenced.discard(one)
            other.shutdown(socket.SHUT_WR)


def test_a_server_that_stays_away_ends_the_record_in_bounded_time(own_postgres: Server) -> None:
    """Closing gives up on it after its time, and says what was lost."""
    one = Recorder(own_postgres.url("away"))
    one.record(batch(mark="before"), step=0)
    assert one.flush()
    own_postgres.stop("immediate")
    one.record(batch(mark="away"), step=1)
    assert closes_unwritten(one, 0.5)
    assert one.lost == 8
    own_postgres.start()
    assert marks(own_postgres.url("away")) == ["before"]


@pytest.mark.parametrize("kept", [True, False])
def test_a_commit_of_which_nothing_is_heard_is_written_once(
    postgres: Server, monkeypatch: pytest.MonkeyPatch, kept: bool
) -> None:
    """Where the way to the server is lost while a transaction ends, the server is asked whether it was kept."""
    url, real = postgres.url(f"commit-{kept}".lower()), postgres_connection.ServerConnection.commit
    lost: list[int] = []

    def commit(self: postgres_connection.ServerConnection) -> None:
        if len(lost) < 2 and self.execute("SELECT count(*) FROM batch WHERE step = 1").fetchone()[0]:
            lost.append(1)
            if kept:
                real(self)
            self._session.close()
            raise postgres_connection.ServerError("server closed the connection unexpectedly")
        real(self)

    monkeypatch.setattr(postgres_connection.ServerConnection, "commit", commit)
    with Recorder(url) as one:
        for step in range(3):
            one.record(batch(mark=f"s{step}"), step=step)
    assert lost
    assert marks(url) == ["s0", "s1", "s2"]


def test_connections_that_are_cut_lose_nothing(postgres: Server) -> None:
    """Who ends a writer's connections, as an administrator may, costs no batch and doubles none."""
    url = postgres.url("cut")
    stop = threading.Event()

    def cut() -> None:
        while not stop.wait(0.05):
            postgres.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'rewardkit'")

    thread = threading.Thread(target=cut)
    with Recorder(url) as one:
        thread.start()
        for step in range(40):
            one.record(batch(SIZE, mark=f"s{step}"), step=step)
            time.sleep(0.01)
        stop.set()
        thread.join()
    assert one.lost == 0
    assert marks(url) == [f"s{step}" for step in range(40)]
    assert postgres.sql(ODD.format("cut", SIZE)) == [(0, 0, 0, 0, 0)]


def test_tables_that_are_taken_away_are_made_anew(postgres: Server) -> None:
    """A run whose schema was dropped while it is written goes on in a new one."""
    url = postgres.url("dropped")
    with Recorder(url) as one:
        one.record(batch(mark="before"), step=0)
        assert one.flush()
        postgres.sql("DROP SCHEMA dropped CASCADE")
        one.record(batch(mark="after"), step=1)
    assert one.lost == 0
    assert marks(url) == ["after"]


def test_what_cannot_be_reached_is_named_and_no_password_is_shown(
    postgres: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """No server, no database, a wrong password, no run: each is one line without the password."""
    postgres.sql("DROP ROLE IF EXISTS guest")
    postgres.sql("CREATE ROLE guest LOGIN PASSWORD 'right-one'")
    if not postgres.sql(f"SELECT 1 FROM pg_database WHERE datname = '{GUARDED}'"):
        postgres.sql(f"CREATE DATABASE {GUARDED}")
    nowhere = "postgresql://me:hunter22@/db?host=/nonexistent&run=one"
    for act in (RunReader, Recorder):
        words = refusal(lambda act=act: act(nowhere))  # type: ignore[misc]
        assert words.startswith("postgresql://me@/db?host=/nonexistent&run=one: connection")
        assert "hunter22" not in words
    wrong = postgres.url("one", "guest", "hunter22", GUARDED)
    assert "password authentication failed" in refusal(lambda: Recorder(wrong))
    assert "hunter22" not in refusal(lambda: Recorder(wrong))
    assert 'database "absent" does not exist' in refusal(lambda: Recorder(postgres.url("one", database="absent")))
    assert "there is no record; `rewardkit runs` lists" in refusal(lambda: RunReader(postgres.url("absent")))
    assert "invalid URI query parameter" in refusal(lambda: Recorder(f"{postgres.url('one')}&odd=1"))
    assert "hunter22" not in caplog.text


def test_who_may_not_write_is_told_so(postgres: Server) -> None:
    """A user without rights is refused in a line; with the right to read, a run of another can be read."""
    url = postgres.url("others")
    with Recorder(url) as one:
        one.record(batch(mark="there"), step=0)
    postgres.sql("DROP ROLE IF EXISTS other")
    postgres.sql("CREATE ROLE other LOGIN")
    theirs = postgres.url("others", "other")
    assert "permission denied" in refusal(lambda: RunReader(theirs))
    assert "permission denied" in refusal(lambda: Recorder(theirs, append=True))
    assert "permission denied" in refusal(lambda: Recorder(postgres.url("new", "other")))
    postgres.sql("GRANT USAGE ON SCHEMA others TO other; GRANT SELECT ON ALL TABLES IN SCHEMA others TO other")
    assert marks(theirs) == ["there"]
    assert "permission denied" in refusal(lambda: Recorder(theirs, append=True))
    postgres.sql("DROP OWNED BY other; DROP ROLE other")


def test_a_schema_of_something_else_is_left_alone(postgres: Server) -> None:
    """Neither read nor written nor removed; one that is empty is taken, as an administrator makes it."""
    postgres.sql("CREATE SCHEMA theirs; CREATE TABLE theirs.precious (x int); CREATE SCHEMA prepared")
    url = postgres.url("theirs")
    for act in (RunReader, Recorder, lambda run: place_of_record(run).move_aside()):
        assert "holds something else" in refusal(lambda act=act: act(url))  # type: ignore[operator]
    assert postgres.sql("SELECT count(*) FROM theirs.precious") == [(0,)]
    Recorder(postgres.url("prepared")).close()
    with RunReader(postgres.url("prepared")) as run:
        assert run.count() == 0


def test_a_record_of_a_newer_release_is_refused(postgres: Server) -> None:
    """Its tables may mean something else; nothing is written there."""
    url = postgres.url("newer")
    Recorder(url).close()
    postgres.sql(f"UPDATE newer.rewardkit SET version = {VERSION + 1}")
    assert "newer release" in refusal(lambda: RunReader(url))
    assert "newer release" in refusal(lambda: Recorder(url, append=True))


def test_an_older_record_is_brought_up_to_date_once(postgres: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several that open it at once, one takes the step to the next version, in PostgreSQL's words."""
    url = postgres.url("older")
    Recorder(url).close()
    script = "CREATE TABLE added (id INTEGER PRIMARY KEY, x TEXT DEFAULT 'a;b'); INSERT INTO added DEFAULT VALUES;"
    monkeypatch.setattr(database_place, "MIGRATIONS", {VERSION: script})
    monkeypatch.setattr(database_place, "VERSION", VERSION + 1)
    found: list[str] = []

    def act() -> None:
        try:
            with RunReader(url) as run:
                run.count()
        except RecordError as reason:
            found.append(str(reason))

    threads = [threading.Thread(target=act) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == []
    assert postgres.sql("SELECT x FROM older.added") == [("a;b",)]
    assert postgres.sql("SELECT version FROM older.rewardkit") == [(VERSION + 1,)]


def test_several_that_make_a_run_at_once_make_it_once(postgres: Server) -> None:
    """All ranks of a training may be the first; one whose looks fall around another's making finds no foreign run."""
    url = postgres.url("at-once")
    found: list[str] = []
    ready = threading.Barrier(5)

    def act(rank: int) -> None:
        ready.wait(60)
        with Recorder(url, append=True) as one:
            one.record(batch(2, mark=str(rank)), step=0)
        found.append(str(one.lost))

    threads = [threading.Thread(target=act, args=(rank,)) for rank in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["0"] * 5
    assert sorted(marks(url)) == list("01234")


def test_a_run_made_between_two_looks_is_not_foreign(postgres: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever statement another's making falls behind, the run is found as ours."""
    import psycopg

    url = postgres.url("between")
    made: list[str] = []
    execute = psycopg.Connection.execute

    def making(connection: Any, statement: Any, *rest: Any, **options: Any) -> Any:
        answer = execute(connection, statement, *rest, **options)
        if "pg_class" in str(statement) and not made:
            made.append(url)
            with Recorder(url, append=True) as other:
                other.record(batch(2, mark="other"), step=0)
        return answer

    monkeypatch.setattr(psycopg.Connection, "execute", making)
    with Recorder(url, append=True) as one:
        one.record(batch(2, mark="own"), step=1)
    assert made
    assert one.lost == 0
    assert sorted(marks(url)) == ["other", "own"]


def test_a_list_that_is_broken_off_is_an_error(postgres: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that goes away in the middle leaves no list without its runs; a run that goes away is left out."""
    import psycopg

    with Recorder(postgres.url("broken"), append=True) as one:
        one.record(batch(2), step=0)
    database = postgres_address(postgres)
    execute, meanwhile = psycopg.Connection.execute, ["ALTER SCHEMA broken RENAME TO mended"]

    def acting(connection: Any, statement: Any, *rest: Any, **options: Any) -> Any:
        if ".written" in str(statement) and "broken" in str(statement) and meanwhile:
            postgres.sql(meanwhile.pop())
        return execute(connection, statement, *rest, **options)

    monkeypatch.setattr(psycopg.Connection, "execute", acting)
    assert "broken" not in runs_of(database)
    postgres.sql("ALTER SCHEMA mended RENAME TO broken")
    meanwhile.append("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'rewardkit'")
    assert "terminating connection" in refusal(lambda: runs_of(database))
    assert "broken" in runs_of(database)


def test_a_run_is_set_aside_listed_and_removed(postgres: Server) -> None:
    """A second run of a name keeps the first under another; the list has both, and other schemas are no runs."""
    url = postgres.url("aside")
    for mark in ("first", "second"):
        with Recorder(url, anew=True) as one:
            one.record(batch(mark=mark), step=0)
    database = postgres_address(postgres)
    old = next(name for name in place_of_runs(database.locator).names() if name.startswith("aside-"))
    assert (marks(url), marks(database.of_run(old).locator)) == (["second"], ["first"])
    assert DatabasePlace(database.of_run(old)).size() > 0
    DatabasePlace(database.of_run(old)).remove()
    assert [name for name in place_of_runs(database.locator).names() if name.startswith("aside")] == ["aside"]
    assert "information_schema" not in place_of_runs(database.locator).names()
    assert DatabasePlace(database.of_run("never")).move_aside() is None


@pytest.mark.parametrize(
    "name", ["a'; DROP SCHEMA x; --", "100%s{x}$1", "\u65e5" * 21, "a?b&c=d#e", "select", "x" * 63], ids=range(6)
)
def test_a_run_of_any_name_is_recorded_listed_set_aside_and_removed(postgres: Server, name: str) -> None:
    """A name is a schema's and nothing else; beside a long one there is room for the time at which it was set aside."""
    url, database = postgres.url(name), address_of(postgres.url())
    with Recorder(url) as one:
        one.record(batch(), step=0)
        one.metrics(0, {"100%s'\x00": 1.0})
    assert name in place_of_runs(database.locator).names()
    aside = place_of_record(url).move_aside()
    assert aside is not None
    assert name not in place_of_runs(database.locator).names()
    with RunReader(aside.locator) as run:
        assert (run.count(), run.metrics("100%s'\N{REPLACEMENT CHARACTER}")) == (8, [(0, 1.0)])
    aside.remove()
    assert not [one for one in place_of_runs(database.locator).names() if one.startswith(name[:10])]


def test_a_password_reaches_no_record(postgres: Server) -> None:
    """A configuration with the address in it is recorded without the password."""
    url = postgres.url("secret", password="hunter22-and-more")
    with Recorder(url, about={"configuration": {"record": url}}) as one:
        one.event("told", {"place": url})
    with RunReader(url) as run:
        assert "hunter22" not in str((run.sessions, run.events))
        assert "hunter22" not in f"{run!r}{run.path}{run.path.label}"


def test_a_text_without_a_place_in_postgresql_is_recorded_all_the_same(postgres: Server) -> None:
    """PostgreSQL's texts hold no NUL: completions keep it, for they are bytes; a reason has U+FFFD in its place."""
    odd = batch(1)
    said = odd.outcomes["exact"][0]._replace(reason="a\x00b", error="\ud800", logs="c\x00d")
    made = type(odd)(odd.rollouts, {**odd.outcomes, "exact": [said]}, odd.weights)
    with Recorder(postgres.url("odd")) as one:
        one.record(made, step=0)
    with RunReader(postgres.url("odd")) as run:
        (found,) = run.completions()
    assert (found.outcomes["exact"].reason, found.outcomes["exact"].logs) == ("a\N{REPLACEMENT CHARACTER}b", "c\x00d")


def test_a_question_ends_when_its_time_is_over(postgres: Server) -> None:
    """What takes longer than the dashboard waits is ended by the server, or not begun."""
    url = postgres.url("slow")
    Recorder(url).close()
    with RunReader(url) as run:
        run.within(0.2)
        assert "takes too long" in refusal(lambda: run._rows("SELECT pg_sleep(5)"))
        time.sleep(0.2)
        assert "takes too long" in refusal(run.count)
        run.within(60)
        assert run.count() == 0
    assert "this reader is closed" in refusal(run.count)


def test_a_reader_sees_that_something_was_written(postgres: Server) -> None:
    """The number moves with each transaction of any writer of this run, and stays where others write elsewhere."""
    url = postgres.url("watched")
    with Recorder(url) as one, Recorder(postgres.url("elsewhere")) as other, RunReader(url) as run:
        one.flush()
        seen = [run.data_version]
        other.record(batch(), step=0)
        assert other.flush()
        seen.append(run.data_version)
        one.record(batch(), step=0)
        assert one.flush()
        seen.append(run.data_version)
    assert seen[0] == seen[1] < seen[2]


def postgres_address(one: Server) -> Any:
    """Return the address of a server's database."""
    return address_of(one.url())
