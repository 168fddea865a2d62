"""Damaged tables are refused, whatever byte of them is wrong; nothing that a file holds ends the process."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

from rewardkit import DataError
from rewardkit.rows import read_rows

_READ_DAMAGED = """
import random, sys
from pathlib import Path
from rewardkit.errors import DataError
from rewardkit.rows import read_rows

source, refusals = Path(sys.argv[1]), 0
original = source.read_bytes()
for seed in range(200):
    drawn, damaged = random.Random(seed), bytearray(original)
    for _ in range(drawn.randint(1, 4)):
        damaged[drawn.randrange(8, len(damaged))] = drawn.randrange(256)
    source.write_bytes(damaged)
    try:
        read_rows(source)
    except DataError:
        refusals += 1
print(refusals)
"""


def _write(path: Path, kind: str) -> Path:
    rows = [{"prompt": f"p{n}", "completion": "c" * n, "tests": [1, n], "meta": {"id": str(n)}} for n in range(20)]
    table = pyarrow.Table.from_pylist(rows)
    if kind == "parquet":
        parquet.write_table(table, path)
        return path
    new = pyarrow.ipc.new_file if kind == "file" else pyarrow.ipc.new_stream
    with new(path, table.schema) as writer:
        writer.write_table(table)
    return path


@pytest.mark.parametrize("kind", ["parquet", "file", "stream"])
def test_no_damaged_byte_ends_the_process(tmp_path: Path, kind: str) -> None:
    """Of 200 tables with up to four wrong bytes each is read or is a DataError: pyarrow alone would crash on some."""
    path = _write(tmp_path / "rows.table", kind)
    done = subprocess.run([sys.executable, "-c", _READ_DAMAGED, str(path)], capture_output=True, text=True)
    assert (0, "") == (done.returncode, done.stderr)
    assert int(done.stdout) > 50


def test_a_table_packed_with_gzip_says_to_unpack_it(tmp_path: Path) -> None:
    """Only text formats are read packed; a packed table is named as what it is."""
    path = _write(tmp_path / "rows.parquet", "parquet")
    path.write_bytes(gzip.compress(path.read_bytes()))
    with pytest.raises(DataError, match=r"rows.parquet: a table packed with gzip; unpack it first: gunzip"):
        read_rows(path)
