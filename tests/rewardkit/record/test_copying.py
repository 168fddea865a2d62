"""Rows as PostgreSQL's binary COPY takes them: what is written by a column at a time is read back as it was."""

from __future__ import annotations

import math
from typing import Any

import pytest
from databases import Server

from rewardkit.record import copying, server
from rewardkit.record.address import address_of
from rewardkit.record.server import quoted


def test_a_row_is_its_number_of_fields_and_each_with_its_length() -> None:
    """As the format says, byte for byte."""
    columns = [copying.fields("INTEGER", [1, None]), copying.fields("TEXT", ["é", ""])]
    one = b"\0\2" + b"\0\0\0\x08" + b"\0" * 7 + b"\1" + b"\0\0\0\2\xc3\xa9"
    other = b"\0\2" + b"\xff\xff\xff\xff" + b"\0\0\0\0"
    assert b"".join(copying.stream(2, columns)) == copying.HEAD + one + other + copying.TAIL
    assert b"".join(copying.stream(2, [copying.joined(columns)])) == copying.HEAD + one + other + copying.TAIL
    assert b"".join(copying.stream(2, [[]])) == copying.HEAD + copying.TAIL


@pytest.mark.parametrize(
    ("kind", "values"),
    [("INTEGER", [2**63]), ("INTEGER", ["one"]), ("REAL", ["one"]), ("TEXT", ["\ud800"])],
    ids=["beyond 64 bits", "a word for a whole number", "a word for a number", "half a surrogate"],
)
def test_what_a_column_cannot_hold_is_refused(kind: str, values: list[Any]) -> None:
    """Before anything of it is sent."""
    with pytest.raises((OverflowError, ValueError)):
        copying.fields(kind, values)


@pytest.mark.postgres
def test_what_is_copied_is_read_back(postgres: Server) -> None:
    """Numbers at their bounds, none, empty and odd texts; more rows than go in one piece."""
    numbers = [0, -(2**63), 2**63 - 1, None, True]
    reals = [0.5, math.inf, -0.0, None, 3]
    texts = ["", "a\x00b", "\U0001f600 'quoted' \\", None, "x" * 70_000]
    blobs = [b"", b"\0\xff", b"PGCOPY\n", None, b"y" * 70_000]
    parts = [
        copying.fields(kind, some * 200)
        for kind, some in (("INTEGER", numbers), ("REAL", reals), ("TEXT", texts), ("BLOB", blobs))
    ]
    connection = server.connected(address_of(postgres.url()))
    connection.execute("CREATE TEMPORARY TABLE odd (n bigint, r double precision, t text, b bytea)")
    with connection.cursor() as cursor, cursor.copy(f"COPY {quoted('odd')} FROM STDIN (FORMAT BINARY)") as copy:
        for some in copying.stream(4, parts):
            copy.write(some)
    found = [tuple(row) for row in connection.execute("SELECT n, r, t, b FROM odd", binary=True).fetchall()]
    connection.close()
    upright = [one if one is None else one.replace("\x00", "\N{REPLACEMENT CHARACTER}") for one in texts]
    assert found == [*zip(numbers, reals, upright, blobs, strict=True)] * 200
