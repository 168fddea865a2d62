"""A connection to a record in PostgreSQL, and what the errors of the server and of psycopg mean."""

from __future__ import annotations

import contextlib
import functools
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rewardkit.errors import RecordError
from rewardkit.record import silence
from rewardkit.record.address import RunAddress
from rewardkit.record.dialect import columns, storable_value, tables, to_postgres
from rewardkit.record.soundness import SHAPES, STATUS
from rewardkit.record.store import Values

if TYPE_CHECKING:
    import psycopg

DEFAULTS = {
    "application_name": "rewardkit", "connect_timeout": silence.CONNECT_S, "keepalives_idle": 30,
    "keepalives_interval": 10, "keepalives_count": 3, "tcp_user_timeout": 60_000, "client_encoding": "utf8",
}  # fmt: skip
"""What an address need not say: a server that is gone is noticed within a minute, also where no word of it comes."""
BLOCKS = {"text": 1024}
"""Numbers that one value of a table's sequence stands for, where rows are added while others add theirs."""
_CLOSED = "this reader is closed; open the run again"
_COPIED = {"INTEGER": "int8", "REAL": "float8", "TEXT": "text", "BLOB": "bytea"}
_EXPLANATIONS = {
    "57014": "the answer takes too long; there is too much in it for this question",
    "55P03": "another process writes to it for long",
    "25006": "can be read and not written",
}
_LOCKS = frozenset(("55P03", "40P01", "40001"))  # Codes of a wait for others that was ended
_PASSING = frozenset(("42501", "42P01"))
"""Codes of what somebody can mend beside the training: a right that is missing, tables that were taken away."""


class ServerError(RecordError):
    """The server failed a statement with a ``code`` of five letters, or did not answer, and the code is empty."""

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        self.code = code

    def __reduce__(self) -> tuple[type[ServerError], tuple[str, str]]:
        return type(self), (str(self), self.code)

    @property
    def is_lock(self) -> bool:
        """Whether another process was waited for."""
        return self.code in _LOCKS

    @property
    def may_pass(self) -> bool:
        """Whether the server is at fault and not the statement."""
        return self.code in _PASSING or self.code[:2] not in ("22", "23", "42", "0A")


@contextlib.contextmanager
def server_errors(run: RunAddress) -> Iterator[None]:
    """Raise psycopg's errors as :class:`ServerError`, with the run's name and without its password."""
    import psycopg

    try:
        yield
    except psycopg.Error as error:
        code = error.sqlstate or ""
        is_closed = isinstance(error, psycopg.OperationalError) and str(error) == "the connection is closed"
        message = _CLOSED if is_closed else _EXPLANATIONS.get(code, " ".join(str(error).split()))
        raise ServerError(run.redact(f"{run}: {message}"), code) from None  # psycopg's own may hold the address


def psycopg_errors() -> type[Exception]:
    """Return the class of psycopg's errors for a statement that the server refuses."""
    import psycopg

    error_type: type[Exception] = psycopg.DatabaseError
    return error_type


def connect(run: RunAddress) -> psycopg.Connection[Any]:
    """Return a connection that commits each statement; RecordError without psycopg, or if the server refuses."""
    try:
        import psycopg
        from psycopg.conninfo import conninfo_to_dict
    except ImportError as missing:
        raise RecordError(
            f"{run}: a record in a database needs psycopg: pip install 'psycopg[binary]' ({missing})"
        ) from missing
    try:
        settings = conninfo_to_dict(run.server)
    except psycopg.Error as error:
        raise RecordError(run.redact(f"{run}: {' '.join(str(error).split())}")) from None
    with server_errors(run):
        session = silence.connect({**DEFAULTS, **settings})
    session.adapters.register_loader("numeric", _SumLoader)
    session.row_factory = _named_rows
    return session


class ServerConnection:
    """A connection to a run's schema, with what :class:`~rewardkit.record.store.RecordConnection` asks for.

    The session's search path is the schema. ``lock`` is the number of the lock that keeps other writers of the run
    away, and ``writer`` the number under which it notes that it has written; 0 for one that only reads.
    """

    def __init__(self, run: RunAddress, session: psycopg.Connection[Any], lock: int, writer: int = 0) -> None:
        self.cache: dict[str, Any] = {}
        self.number = ""
        """The number of the last transaction, by which the server knows what became of it."""
        self._address, self._session, self._lock, self._writer = run, session, lock, writer
        self._alone = False
        self._deadline: float | None = None
        self._limit = 0.0

    @property
    def in_transaction(self) -> bool:
        return not self._session.closed and self._session.info.transaction_status != 0

    @property
    def is_alone(self) -> bool:
        return self._alone

    @property
    def is_lost(self) -> bool:
        """Whether the server, or the way to it, is gone."""
        return bool(self._session.closed)

    @property
    def stamp(self) -> int:
        """A number that changes when something is written; the same for all connections."""
        return int(self._run("SELECT coalesce(sum(count), 0) FROM written").fetchone()[0])

    def execute(self, statement: str, values: Values = (), /) -> psycopg.Cursor[Any]:
        """Run one statement, which is written as for SQLite."""
        with self._asking():
            return self._session.execute(self._fill(statement, values), binary=True)

    def tuples(self, query: str, values: Values = (), /) -> list[tuple[Any, ...]]:
        from psycopg.rows import tuple_row

        with self._asking():
            cursor = self._session.cursor(row_factory=tuple_row)
            cursor.execute(self._fill(query, values), binary=True)
            rows: list[tuple[Any, ...]] = cursor.fetchall()
            return rows

    def begin(self) -> None:
        """Begin a transaction, and note that it writes; :attr:`number` is its own from now on."""
        statements = (
            f"BEGIN; UPDATE written SET count = count + 1 WHERE id = {self._writer:d}"  # noqa: S608 - a number of ours
            " RETURNING pg_current_xact_id()::text"
        )
        with self._asking():
            try:
                cursor = self._session.execute(statements)
                cursor.nextset()
                row = cursor.fetchone()
                if row is None:
                    raise ServerError(f"{self._address}: its tables were made anew", "42P01")
            except BaseException:
                if self.in_transaction:
                    self._session.execute("ROLLBACK")
                raise
        self.number = str(row[0])

    def alone(self) -> None:
        if not self._alone:
            self._run("SELECT pg_advisory_xact_lock(%s)", (self._lock,))
            self._alone = True

    def transaction_status(self, number: str) -> str | None:
        """Return what became of a transaction: ``"committed"``, ``"aborted"``, ``"in progress"``, ``None`` if old."""
        status: str | None = self._run("SELECT pg_xact_status(%s::xid8)", (number,)).fetchone()[0]
        return status

    def commit(self) -> None:
        self._alone = False
        self._run("COMMIT")

    def rollback(self) -> None:
        self._alone = False
        self._run("ROLLBACK")

    def make(self, script: str) -> None:
        for statement in tables(script):
            self._run(statement)

    def has_table(self, name: str) -> bool:
        return self._run("SELECT to_regclass(%s) IS NOT NULL", (quoted(name),)).fetchone()[0] is True

    def reserve(self, table: str, count: int) -> Sequence[int]:
        """Return numbers for further rows, greater than all before.

        A block of them is one value of the table's sequence; where a table has no blocks, only a transaction that is
        alone may ask, because the sequence is moved in two steps.
        """
        name, block = f'"{table}"', BLOCKS.get(table)
        if block is None:
            assert self._alone
            query = "SELECT setval(s, nextval(s) + %s - 1) FROM pg_get_serial_sequence(%s, 'id') AS s"
            last = int(self._run(query, (count, name)).fetchone()[0])
            return range(last - count + 1, last + 1)
        query = "SELECT nextval(pg_get_serial_sequence(%s, 'id')) FROM generate_series(1, %s)"
        starts = [int(first) for (first,) in self._run(query, (name, -(-count // block))).fetchall()]
        return [number for first in starts for number in range(first, first + block)][:count]

    def insert(self, table: str, row: Mapping[str, Any]) -> int:
        marks = ", ".join(["%s"] * len(row))
        statement = f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks}) RETURNING id"  # noqa: S608 - names of ours
        return int(self._run(statement, _storable(tuple(row.values()))).fetchone()[0])

    def insert_all(self, table: str, rows: Sequence[Sequence[Any]]) -> None:
        """Write rows by one binary COPY, each with all columns of the table in their order."""
        if not rows:
            return
        types = [column.kind for column in columns()[table]]
        texts = [index for index, kind in enumerate(types) if kind == "TEXT"]
        target = f'COPY "{table}" FROM STDIN (FORMAT BINARY)'
        with self._asking(), self._session.cursor() as cursor, cursor.copy(target) as copy:
            copy.set_types([_COPIED[kind] for kind in types])
            for row in rows:
                has_nul = any(row[index] and "\x00" in row[index] for index in texts)
                copy.write_row([storable_value(value) for value in row] if has_nul else row)

    def insert_batch(self, row: Mapping[str, Any], count: int) -> tuple[int, Sequence[int]]:
        assert self._alone
        marks = ", ".join(["%s"] * len(row))
        statement = (
            f"INSERT INTO batch ({', '.join(row)}) VALUES ({marks}) RETURNING id, (SELECT setval(s, nextval(s) + %s)"  # noqa: S608 - names of ours
            " FROM pg_get_serial_sequence('completion', 'id') AS s)"
        )
        more = max(0, count - 1)
        number, last = self._run(statement, (*_storable(tuple(row.values())), more)).fetchone()
        return int(number), range(int(last) - more, int(last) + 1)[:count]

    def change_all(self, statement: str, rows: Sequence[Sequence[Any]], /) -> None:
        with self._asking(), self._session.cursor() as cursor:
            cursor.executemany(to_postgres(statement), [_storable(row) for row in rows])

    def wait_at_most(self, seconds: float) -> None:
        self._run(f"SET lock_timeout = {round(1000 * seconds)}")

    def end_questions(self, seconds: float) -> None:
        self._deadline = time.monotonic() + seconds
        if seconds != self._limit:
            self._limit = seconds
            self._run(f"SET statement_timeout = {max(1, round(1000 * seconds))}")

    def remember(self, size: int) -> None:
        """Do nothing: the server remembers."""

    def unsound(self) -> str | None:
        """Return the column in which no recorder has written what stands there; ``None`` where all is sound."""
        kinds = {"object": dict, "array": list}
        for (table, column), shape in SHAPES.items():
            for (text,) in self.tuples(f"SELECT DISTINCT {column} FROM {table} WHERE {column} IS NOT NULL"):  # noqa: S608 - names of ours
                try:
                    is_sound = isinstance(json.loads(text), kinds[shape])
                except (ValueError, RecursionError):
                    is_sound = False
                if not is_sound:
                    return f"{table}.{column}"
        row = self._run("SELECT 1 FROM completion WHERE status !~ %s LIMIT 1", (f"^[{STATUS}]*$",)).fetchone()
        return None if row is None else "completion.status"

    def close(self) -> None:
        self._session.close()

    def _run(self, statement: str, values: Values = ()) -> psycopg.Cursor[Any]:
        with self._asking():
            return self._session.execute(statement, values, binary=True)

    def _fill(self, statement: str, values: Values) -> bytes:
        """Return a statement with its values filled in: the server cannot infer the type of one in ``? IS NULL``."""
        from psycopg import ClientCursor

        filled: str = ClientCursor(self._session).mogrify(to_postgres(statement), _storable(values))
        return filled.encode()

    @contextlib.contextmanager
    def _asking(self) -> Iterator[None]:
        """Raise what the server says as ServerErrors within the block, and one where the time to ask is over."""
        if self._deadline is not None and time.monotonic() > self._deadline:
            raise ServerError(f"{self._address}: {_EXPLANATIONS['57014']}", "57014")
        with server_errors(self._address):
            yield


def _storable(values: Values) -> Values:
    if isinstance(values, Mapping):
        return {name: storable_value(value) for name, value in values.items()}
    return [storable_value(value) for value in values]


class _Row(tuple[Any, ...]):
    """A row that is read by position and by name; of two columns of one name the first counts, as in SQLite."""

    _positions: Mapping[str, int]

    def __getitem__(self, key: Any) -> Any:
        return tuple.__getitem__(self, self._positions[key] if isinstance(key, str) else key)

    def keys(self) -> list[str]:
        """Return the names of the columns, for ``dict(row)``."""
        return list(self._positions)


@functools.lru_cache(maxsize=512)
def _row_type(names: tuple[str, ...]) -> type[_Row]:
    return type("_NamedRow", (_Row,), {"_positions": {name: names.index(name) for name in dict.fromkeys(names)}})


def _named_rows(cursor: Any) -> Any:
    """Return what makes rows of a cursor's results, read by position and by name."""
    columns = cursor.description
    return tuple if columns is None else _row_type(tuple(column.name for column in columns))


class _SumLoader:
    """Reads a sum: a whole number where it is one of whole numbers, else a float, as SQLite has them."""

    format = 1  # binary

    def __init__(self, oid: int, context: Any = None) -> None:
        from psycopg.types.numeric import NumericBinaryLoader

        self._inner = NumericBinaryLoader(oid, context)

    def load(self, data: Any) -> int | float:
        number = self._inner.load(data)
        return int(number) if number.as_tuple().exponent == 0 else float(number)


def quoted(name: str) -> str:
    """Return a name as SQL has it."""
    return '"' + name.replace('"', '""') + '"'
