"""A PostgreSQL server of one's own, made in a folder and ended with the tests that need it."""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil
import pytest

PLACES = "/usr/lib/postgresql"
"""Where Debian puts the programs of each release."""
START_S = 120
GUARDED = "guarded"
"""The name of a database that asks for passwords; it has to be made."""
FAST = "-c fsync=off -c full_page_writes=off"
"""What nothing but the loss of the machine's power would punish."""


def programs() -> Path | None:
    """Return the folder with ``initdb`` and ``pg_ctl``, those of the newest release; ``None`` where there is none."""
    found = sorted(Path(PLACES).glob("*/bin/pg_ctl"), key=lambda one: int(one.parts[-3]))
    on_path = shutil.which("pg_ctl")
    if not found and on_path is not None:
        found = [Path(on_path).resolve()]
    return found[-1].parent if found and (found[-1].parent / "initdb").exists() else None


def lacking() -> str | None:
    """Return why no server can be had here; ``None`` where one can."""
    try:
        import psycopg  # noqa: F401
    except ImportError:
        return "psycopg is not installed"
    return "PostgreSQL's initdb and pg_ctl are not installed" if programs() is None else None


def need_server() -> None:
    """Skip the test where no server can be had, or fail where one is required."""
    why = lacking()
    if why is not None and os.environ.get("REWARDKIT_REQUIRE_REAL") == "1":
        pytest.fail(why)
    if why is not None:
        pytest.skip(why)


class Server:
    """A server that listens on a socket in its folder, and on no port.

    Args:
        folder: Where it is made; short, for a socket's path has at most 107 bytes.
        options: Settings, as ``-c name=value``.
    """

    def __init__(self, folder: Path, options: str = FAST) -> None:
        found = programs()
        assert found is not None
        self.bin, self.folder = found, folder
        self._options = options
        self._user = "postgres" if os.geteuid() == 0 else None
        if self._user is not None:  # initdb refuses root
            owner = pwd.getpwnam(self._user)
            os.chown(folder, owner.pw_uid, owner.pw_gid)
            folder.chmod(0o755)
        with contextlib.suppress(FileExistsError):
            (folder / "log").touch()
        if self._user is not None:
            os.chown(folder / "log", owner.pw_uid, owner.pw_gid)
        self._call("initdb", "-D", str(folder / "data"), "-U", "tester", "--auth=trust", "-E", "UTF8", "--no-sync")
        rules = folder / "data" / "pg_hba.conf"
        rules.write_text(f"local {GUARDED} all scram-sha-256\n{rules.read_text()}")

    def _call(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [str(self.bin / program), *arguments], user=self._user, group=self._user, cwd="/",
            extra_groups=None if self._user is None else [], env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
            capture_output=True, text=True, timeout=START_S,
        )  # fmt: skip
        assert done.returncode == 0, f"{program}: {done.stdout}{done.stderr}"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        options = f"-c listen_addresses='' -k {self.folder} {self._options}"
        data, log = str(self.folder / "data"), str(self.folder / "log")
        command = [str(self.bin / "pg_ctl"), "-D", data, "-l", log, "-w", "-t", str(START_S), "-o", options, "start"]
        subprocess.run(  # its output goes to the log: a pipe would stay open as long as the server runs
            command, user=self._user, group=self._user, cwd="/", extra_groups=None if self._user is None else [],
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            check=True, timeout=START_S,
        )  # fmt: skip

    def stop(self, how: str = "fast") -> None:
        """End it: ``"fast"``, or ``"immediate"`` as if it was killed."""
        self._call("pg_ctl", "-D", str(self.folder / "data"), "-w", "-t", str(START_S), "-m", how, "stop")

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Stop all its processes where they are, and let them go on."""
        first = psutil.Process(int((self.folder / "data" / "postmaster.pid").read_text().split()[0]))
        first.suspend()
        stopped = [first, *first.children()]  # none is born any more
        try:
            for one in stopped[1:]:
                with contextlib.suppress(psutil.NoSuchProcess):
                    one.suspend()
            yield
        finally:
            for one in stopped:
                with contextlib.suppress(psutil.NoSuchProcess):
                    one.resume()

    def url(self, run: str | None = None, user: str = "tester", password: str = "", database: str = "postgres") -> str:
        """Return the address of a run, or of the database."""
        who = f"{user}:{quote(password, safe='')}" if password else user
        more = "" if run is None else f"&run={quote(run, safe='')}"
        return f"postgresql://{who}@/{database}?host={quote(str(self.folder), safe='')}{more}"

    def sql(self, words: str, database: str = "postgres") -> list[tuple[object, ...]]:
        """Run statements as the database's owner, and return the rows of the last."""
        import psycopg

        with psycopg.connect(self.url(database=database), autocommit=True) as connection:
            cursor = connection.execute(words)
            return cursor.fetchall() if cursor.description else []


@contextlib.contextmanager
def serving(folder: Path, options: str = FAST) -> Iterator[Server]:
    """Yield a server that runs, and end it; skip the test where none can be had."""
    need_server()
    one = Server(folder, options)
    one.start()
    try:
        yield one
    finally:
        one.stop("immediate")


def run_name(words: str) -> str:
    """Return a name for a run of a test, of any words."""
    return re.sub(r"[^a-z0-9]+", "-", words.lower())[-50:].strip("-")


class DatabasePlace(str):
    """The address of a run in which ``place / "one"`` is another run, as with the path of a folder."""

    __slots__ = ()

    def __truediv__(self, name: str) -> DatabasePlace:
        return DatabasePlace(f"{self}-{quote(name, safe='')}")


STORES = (pytest.param("sqlite", id="sqlite"), pytest.param("postgres", id="postgres", marks=pytest.mark.postgres))
"""The stores; a fixture of a module that makes a record is parametrised with them as well."""


def place_on(store: str, request: pytest.FixtureRequest, folder: Path) -> Any:
    """Return the place of a run in a store: a folder, or the address of a schema that nobody else uses."""
    if store == "sqlite":
        return folder
    server = request.getfixturevalue("postgres")
    return DatabasePlace(server.url(f"{run_name(folder.name)[-30:]}-{abs(hash(str(folder))) % 10**6}"))
