"""How a run of a database is named, and that no password is ever shown."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import pytest

from rewardkit.errors import RecordError
from rewardkit.record.address import address_of, is_address, run_address
from rewardkit.record.places import place_of_record, place_of_runs, run_path


@pytest.mark.parametrize(
    ("text", "shown", "name"),
    [
        ("postgresql://me:hunter22@host/db?run=one", "postgresql://me@host/db?run=one", "one"),
        ("postgres://me@host:5433/db?run=one", "postgresql://me@host:5433/db?run=one", "one"),
        ("postgresql:///db?host=/run/pg&run=one", "postgresql:///db?host=/run/pg&run=one", "one"),
        ("postgresql://host/db?run=a%20b&sslmode=require", "postgresql://host/db?sslmode=require&run=a%20b", "a b"),
        ("postgresql://me@host/db?password=hunter22&run=one", "postgresql://me@host/db?run=one", "one"),
        ("postgresql://me:hun%40ter22@a:1,b:2/db?run=one", "postgresql://me@a:1,b:2/db?run=one", "one"),
        ("postgresql://[::1]:5432/db?run=one", "postgresql://[::1]:5432/db?run=one", "one"),
        ("postgresql://me:hunter22@host/db", "postgresql://me@host/db", None),
    ],
)
def test_an_address_is_shown_without_its_password(text: str, shown: str, name: str | None) -> None:
    """Whatever of it is shown, printed or pickled into an error, the password is not in it."""
    found = address_of(text)
    assert (shown, name) == (str(found), found.name)
    assert "hunter22" not in f"{found!r}{found}"
    assert "ter22" not in f"{found!r}{found}"
    assert address_of(found.locator) == found
    assert pickle.loads(pickle.dumps(found)) == found
    if "hunter22" in text:
        assert "hunter22" not in found.redact("said of hunter22 by the server")
        assert "hunter22" in found.locator


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://me:qx@zv/kj@host/db?run=one", "postgresql://me:qx/zv@host/db?run=one",
        "postgresql://me:qx?zv@host/db?run=one", "postgresql://me:qx#zv@host/db?run=one",
        "postgresql://me:qx@host:kj/db?run=one", "postgresql://me:qx@host/db\x00?run=one",
        "postgresql://[me:qx@host/db?run=one", "postgresql://me:qx@host/db?run=one&run=two",
    ],
)  # fmt: skip
def test_an_address_that_is_none_is_refused_and_nothing_of_it_is_shown(text: str) -> None:
    """A password with a letter of its own meaning may have landed anywhere, so the words hold no part of it."""
    with pytest.raises(RecordError) as refused:
        place_of_record(text)
    assert not any(part in str(refused.value) for part in ("qx", "zv", "kj", "host"))


@pytest.mark.parametrize("name", ["", ".x", "pg_one", "a/b", "information_schema", "x" * 64, "a\nb", 'a"b'])
def test_a_run_that_no_schema_can_be_named_after_is_refused(name: str) -> None:
    """A name goes into SQL as a schema's, of at most 63 bytes."""
    with pytest.raises(RecordError, match="not a run's name"):
        address_of("postgresql://host/db").of_run(name)


def test_a_plus_is_a_plus() -> None:
    """A query of libpq's is no form of a browser: a plus in a password is no space."""
    found = address_of("postgresql://me@host/db?password=a+b&run=c+d")
    assert ("c+d", ("a+b",)) == (found.name, found.secrets)
    assert found.server.endswith("password=a%2Bb")


def test_an_address_without_a_run_says_what_lacks() -> None:
    """Who records or reads names a run; a list of runs takes the database alone."""
    with pytest.raises(RecordError, match=r"postgresql://me@host/db: names no run; expected .*db\?run=NAME"):
        run_address("postgresql://me:pass@host/db")


@pytest.mark.parametrize("scheme", ["mysql", "postgre", "PostgreSQL", "sqlite", "s3", "postgresql+psycopg"])
def test_an_address_of_something_else_is_refused(scheme: str) -> None:
    """It is no folder's name, which would have the password in it."""
    for take in (is_address, place_of_record, place_of_runs, run_path):
        with pytest.raises(RecordError, match=rf"^{re.escape(scheme)}://: a record lies in a folder, or at"):
            take(f"{scheme}://me:hunter22@host/db?run=one")


def test_a_servers_address_is_no_run() -> None:
    """Whoever gives one learns what a run is."""
    with pytest.raises(RecordError, match=r"^http://: the address of a server is not a run; a record lies in a folder"):
        run_path("http://127.0.0.1:8000")


def test_what_is_no_address_is_a_path() -> None:
    """A path that was made of an address has lost a slash, and is refused."""
    assert not is_address("runs/one")
    assert not is_address("a:b")
    assert not is_address(Path("runs/one"))
    with pytest.raises(RecordError, match="given as text"):
        place_of_record(Path("postgresql://host/db?run=one"))
