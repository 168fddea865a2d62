"""Reading rollouts from files of JSON Lines, CSV and Parquet."""

from __future__ import annotations

import csv
import datetime
import gzip
import io
import json
import math
import random
import re
import sys
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

from rewardkit import DataError, Rollout
from rewardkit.rows import files
from rewardkit.rows.reader import Row, listed_rows, read_rollouts, read_rows

GOOD = '{"prompt": "2+2=", "completion": "4", "answer": "4"}'


def _file(folder: Path, text: str | bytes) -> Path:
    path = folder / "data.jsonl"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_a_line_becomes_a_rollout_with_its_columns_as_example(tmp_path: Path) -> None:
    """Prompt, completion and token ids are the rollout's own; every other key is a column, of its JSON type."""
    row = {"prompt": "p", "completion": "c", "completion_ids": [1, 2], "answer": "4", "tests": [1, {"a": None}]}
    expected = [Rollout("p", "c", {"answer": "4", "tests": [1, {"a": None}]}, [1, 2])]
    assert expected == read_rollouts(_file(tmp_path, json.dumps(row)))


def test_messages_are_kept_as_they_are(tmp_path: Path) -> None:
    """A conversational prompt or completion stays a list of messages, whatever their content is."""
    prompt = [{"role": "user", "content": "hi"}]
    completion = [{"role": "assistant", "content": None, "tool_calls": [{"id": 1}]}]
    path = _file(tmp_path, json.dumps({"prompt": prompt, "completion": completion}))
    assert [Rollout(prompt, completion)] == read_rollouts(path)


def test_blank_lines_a_byte_order_mark_and_windows_line_ends_are_passed_over(tmp_path: Path) -> None:
    """What editors and Windows put around the rows does not count, and line numbers stay those of the file."""
    path = _file(tmp_path, f"\ufeff{GOOD}\r\n\r\n  \n{GOOD}\n")
    assert [Row(1, json.loads(GOOD)), Row(4, json.loads(GOOD))] == read_rows(path)


def test_only_a_newline_ends_a_line(tmp_path: Path) -> None:
    """A line separator inside a JSON string is text: it does not tear the row apart."""
    path = _file(tmp_path, '{"prompt": "a\u2028b\u0085c", "completion": "d"}\n')
    assert read_rollouts(path)[0].prompt == "a\u2028b\u0085c"


def test_keys_may_come_in_any_order(tmp_path: Path) -> None:
    """Rows have the same keys if the sets are equal."""
    path = _file(tmp_path, f'{GOOD}\n{{"answer": "4", "completion": "5", "prompt": "2+3="}}')
    assert [rollout.completion for rollout in read_rollouts(path)] == ["4", "5"]


def test_limit_reads_no_further(tmp_path: Path) -> None:
    """Lines after the last row asked for are not looked at, so they may be wrong."""
    assert len(read_rollouts(_file(tmp_path, f"{GOOD}\nnot json"), limit=1)) == 1


def test_a_hundred_thousand_lines_are_read(tmp_path: Path) -> None:
    """A large file is read as a small one is."""
    assert len(read_rollouts(_file(tmp_path, f"{GOOD}\n" * 100_000))) == 100_000


def _flipped(packed: bytes) -> bytes:
    """The same with a wrong byte in its middle."""
    return packed[:20] + bytes([packed[20] ^ 255]) + packed[21:]


ROW = json.loads(GOOD)


def _parquet(rows: list[dict[str, Any]]) -> bytes:
    """The rows as Parquet, of as many row groups as rows."""
    held = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist(rows), held, row_group_size=1)
    return held.getvalue()


@pytest.mark.parametrize("name", ["rows.jsonl.gz", "rows.jsonl", "rows"])
def test_a_file_packed_with_gzip_is_read_whatever_its_name(tmp_path: Path, name: str) -> None:
    """Its first bytes say what it is; several packed parts one after another are one file."""
    path = tmp_path / name
    path.write_bytes(gzip.compress(f"{GOOD}\n".encode()) + gzip.compress(f"\n{GOOD}\n".encode()))
    assert [Row(1, ROW), Row(3, ROW)] == read_rows(path)


@pytest.mark.parametrize("name", ["rows.parquet", "rows.jsonl"])
def test_parquet_is_read_whatever_its_name(tmp_path: Path, name: str) -> None:
    """Texts, messages, token ids and typed columns come as Python's values, and a limit reads no further."""
    when = datetime.datetime(2026, 1, 2, 3, 4)
    row: dict[str, Any] = {
        "prompt": [{"role": "user", "content": "2+2="}],
        "completion": [{"role": "assistant", "content": "4"}],
        "completion_ids": [1, 2],
        "answer": 4,
        "when": when,
        "price": Decimal("1.50"),
        "note": None,
    }
    path = tmp_path / name
    path.write_bytes(_parquet([row, row, row]))
    expected = Rollout(
        row["prompt"], row["completion"], {k: row[k] for k in ("answer", "when", "price", "note")}, [1, 2]
    )  # type: ignore[arg-type]
    assert [expected] * 3 == read_rollouts(path)
    assert [1, 2] == [one.line for one in read_rows(path, limit=2)]


def test_parquet_without_rows_or_columns_or_numbers_is_refused(tmp_path: Path) -> None:
    """The same mistakes as in JSON Lines, with the row in place of the line."""
    path = tmp_path / "rows.parquet"
    for rows, said in (
        ([{**ROW, "x": None}, {**ROW, "x": [math.nan]}], ":2: column 'x': holds nan or an infinity; write null"),
        ([{"prompt": "p"}], ":1: 'completion' is missing; it has 'prompt'"),
        ([{"prompt": "p", "completion": [{"content": "4"}]}], ":1: 'completion': expected messages with 'role'"),
        (
            [{"prompt": "p", "completion": datetime.date(2026, 1, 2)}],
            """:1: 'completion': expected a string or a list""",
        ),
    ):
        path.write_bytes(_parquet(rows))
        with pytest.raises(DataError) as wrong:
            read_rollouts(path)
        assert f"{path}{said}" in str(wrong.value)
    path.write_bytes(_parquet([ROW])[:-20])
    with pytest.raises(DataError, match="damaged: Parquet cannot be read after row 0"):
        read_rollouts(path)


def test_parquet_without_its_library_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names the file, the library and the command."""
    path = tmp_path / "rows.parquet"
    path.write_bytes(_parquet([ROW]))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(DataError, match=r"rows.parquet: a Parquet file, which .* pyarrow reads: pip install pyarrow$"):
        read_rollouts(path)


@pytest.mark.parametrize("pack", [str.encode, lambda text: gzip.compress(text.encode()), lambda text: _parquet([ROW])])
def test_standard_input_is_read_as_a_file_is(monkeypatch: pytest.MonkeyPatch, pack: Any) -> None:
    """A dash stands for it, and a pipe that gives its bytes one by one cannot go back."""

    class Trickle(io.RawIOBase):
        held = io.BytesIO(pack(f"{GOOD}\n"))

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:
            return self.held.readinto(memoryview(buffer)[:1])

    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BufferedReader(Trickle(), 1), closed=False))
    assert [Row(1, ROW)] == read_rows("-")


def test_a_mistake_in_standard_input_is_told_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors name it in place of a file."""
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"{"), closed=False))
    with pytest.raises(DataError, match=r"^standard input:1: not JSON"):
        read_rows("-")
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(DataError, match=r"^standard input: closed"):
        read_rows("-")


def test_a_small_file_that_unpacks_to_a_huge_line_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line has a limit, so what is held in memory has one; blank lines without end cost nothing but time."""
    monkeypatch.setattr(files, "MAX_LINE_BYTES", 1000)
    path = tmp_path / "rows.jsonl.gz"
    path.write_bytes(gzip.compress(f"{GOOD}\n".encode() + b"\n" * 100_000 + b"x" * 1001))
    with pytest.raises(DataError, match=":100002: longer than 1,000 bytes"):
        read_rows(path)


WRONG = {
    "empty": ("", ": no rows in it"),
    "blank": ("\n \n", ": no rows in it"),
    "not-json": (f"{GOOD}\n{{'prompt'}}\n", ":2: not JSON: Expecting property name enclosed in double quotes at col"),
    "cut-off": (GOOD[:-1], ":1: not JSON"),
    "two-objects": (GOOD + GOOD, ":1: not JSON: Extra data"),
    "nan": (GOOD[:-1] + ', "x": NaN}', ":1: NaN is not a JSON number; write null"),
    "long-number": (
        GOOD[:-1] + f', "x": {"9" * 5000}}}',
        ":1: an integer of more than 4,300 digits is too long; write it as text",
    ),
    "deep": ("[" * 100_000, ":1: nested too deeply"),
    "array": ("[1, 2]", ":1: expected a JSON object, got '[1, 2]'"),
    "list": ('[\n{"prompt": "p"}]', ":1: not JSON: Expecting value at column 1: '['; rows are one object a"),
    "string": (f'{GOOD}\n\n"text"', ":3: expected a JSON object, got '\"text\"'"),
    "no-prompt": ('{"completion": "4"}', ":1: 'prompt' is missing; it has 'completion'"),
    "completions": (
        '{"prompt": "4", "completions": ["1"]}',
        ":1: 'completion' is missing; it has 'prompt', 'completions'; write a row for each of 'completions'",
    ),
    "no-completion": ('{"prompt": "4", "a": 1}', ":1: 'completion' is missing; it has 'prompt', 'a'"),
    "nothing": ("{}", ":1: 'prompt' is missing; it has nothing"),
    "null-completion": (
        '{"prompt": "p", "completion": null}',
        ":1: 'completion': expected a string or a list of messages, got 'null'",
    ),
    "no-message": (
        '{"prompt": [], "completion": ""}',
        ":1: 'prompt': expected a string or a list of messages; an empty list",
    ),
    "no-role": ('{"prompt": [{"content": "x"}], "completion": ""}', ":1: 'prompt': expected messages with 'role'"),
    "ids": ('{"prompt": "", "completion": "", "completion_ids": [1.5]}', ":1: 'completion_ids': expected a list"),
    "lacks": (f'{GOOD}\n{{"prompt": "", "completion": ""}}', ":2: lacks 'answer', which line 1 has"),
    "adds": (f'\n{GOOD}\n{GOOD[:-1]}, "hint": ""}}', ":3: has 'hint', which line 2 lacks"),
    "misspelt": (
        f"{GOOD}\n" + GOOD.replace("answer", "anwser"),
        ":2: lacks 'answer', which line 1 has; has 'anwser', which line 1 lacks; all rows need the same keys",
    ),
    "key-twice": (f'{GOOD}\n{GOOD[:-1]}, "answer": "5"}}', ":2: key 'answer' stands there twice"),
    "key-twice-inside": (GOOD[:-1] + ', "x": [{"a": 1, "a": 2}]}', ":1: key 'a' stands there twice"),
    "nan-inside": (
        GOOD[:-1] + ', "x": [{"a": [NaN]}]}',
        ":1: NaN is not a JSON number; write null",
    ),
    "infinity": (GOOD[:-1] + ', "x": -Infinity}', ":1: -Infinity is not a JSON number; write null"),
    "endless": (
        f'{GOOD}\n{GOOD[:-1]}, "x": 1e999}}',
        ":2: 1e999 is too large for a number; write it as text",
    ),
    "endless-inside": (
        GOOD[:-1] + ', "x": [[-1e400]]}',
        ":1: -1e400 is too large for a number; write it as text",
    ),
    "truncated": (gzip.compress(GOOD.encode())[:-9], ": damaged: gzip cannot unpack the first line: "),
    "truncated-later": (
        gzip.compress(f"{GOOD}\n{GOOD}".encode())[:-9],
        ": damaged: gzip cannot unpack it after line 1: ",
    ),
    "parquet-of-no-row": (_parquet([]), ": no rows in it: the table of this Parquet file is empty"),
    "garbage-behind": (gzip.compress(GOOD.encode()) + b"more", ": damaged: gzip cannot unpack the first line: Not a"),
    "flipped": (_flipped(gzip.compress(GOOD.encode())), ": damaged: gzip cannot unpack the first line: "),
    "wrong-inside": (gzip.compress(f"{GOOD}\n{{".encode()), ":2: not JSON"),
    "zstd": (b"\x28\xb5\x2f\xfd" + b"x" * 20, ": compressed with zstd; unpack it first: unzstd "),
    "zip": (b"PK\x03\x04" + b"x" * 20, ": compressed with zip; unpack it first: unzip "),
    "parquet-cut-off": (b"PAR1" + b"x" * 20, ": damaged: Parquet cannot be read after row 0: "),
    "encoding": (f"{GOOD}\n".encode() + b'{"prompt": "\xff"}', ":2: not UTF-8"),
}


@pytest.mark.parametrize(("text", "said"), WRONG.values(), ids=WRONG)
def test_a_wrong_file_is_refused_naming_file_line_and_mistake(tmp_path: Path, text: str | bytes, said: str) -> None:
    """Each mistake is a DataError that begins with the file and, where there is one, the line."""
    path = _file(tmp_path, text)
    with pytest.raises(DataError) as wrong:
        read_rollouts(path)
    assert f"{path}{said}" in str(wrong.value)


def _csv(folder: Path, text: str | bytes, name: str = "rows.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_csv_becomes_rollouts_whose_cells_are_strings(tmp_path: Path) -> None:
    """Prompt and completion are the rollout's own; other cells are strings, an empty one the empty string."""
    path = _csv(tmp_path, "prompt,completion,answer,hint\n2+2=,4,4,\n2+3=,,5,007\n")
    expected = [
        Rollout("2+2=", "4", {"answer": "4", "hint": ""}),
        Rollout("2+3=", "", {"answer": "5", "hint": "007"}),
    ]
    assert expected == read_rollouts(path)


def test_csv_from_spreadsheets_is_read(tmp_path: Path) -> None:
    """A byte order mark, Windows line ends, semicolons, and empty lines below the table do not count."""
    path = _csv(tmp_path, "\ufeffprompt;completion;answer\r\n2+2=;4, or so;4\r\n;;\r\n\r\n2+3=;5;5\r\n")
    expected = [("2+2=", "4, or so"), ("2+3=", "5")]
    assert expected == [(one.prompt, one.completion) for one in read_rollouts(path)]
    assert [2, 5] == [row.line for row in read_rows(path)]


@pytest.mark.parametrize("name", ["rows.tsv", "rows.csv", "ROWS.CSV"])
def test_a_tab_parts_cells_where_the_header_has_tabs(tmp_path: Path, name: str) -> None:
    """The header decides what stands between cells."""
    rollout = read_rollouts(_csv(tmp_path, "prompt\tcompletion\na,b;c\td\n", name))[0]
    assert ("a,b;c", "d") == (rollout.prompt, rollout.completion)


def test_a_quoted_cell_holds_line_breaks_delimiters_and_quotes(tmp_path: Path) -> None:
    """Its text is kept as it is, and a row's number is that of the line on which it begins."""
    path = _csv(tmp_path, 'prompt,completion\n"a, ""b""\nc\r\n\nd","<think>\n</think>"\nsecond,4\n')
    assert [('a, "b"\nc\r\n\nd', "<think>\n</think>"), ("second", "4")] == [
        (one.prompt, one.completion) for one in read_rollouts(path)
    ]
    assert [2, 7] == [row.line for row in read_rows(path)]


def test_messages_are_json_in_a_cell(tmp_path: Path) -> None:
    """A list of messages becomes one; other JSON, and text in brackets, stays the text that a model wrote."""
    said = [{"role": "user", "content": 'a "b", c'}]
    turned = [{"content": "4", "role": "assistant"}]
    texts = ["[1, 2]", '[{"name": "Ann"}]', "[{", "[citation needed]"]
    rows = [[json.dumps(said), json.dumps(turned), "[1, 2]"], *([json.dumps(said), text, ""] for text in texts)]
    held = io.StringIO()
    csv.writer(held).writerows([["prompt", "completion", "completion_ids"], *rows])
    found = read_rollouts(_csv(tmp_path, held.getvalue()))
    assert [said] * 5 == [one.prompt for one in found]
    assert [turned, *texts] == [one.completion for one in found]
    assert [[1, 2], None] == [one.completion_ids for one in found[:2]]


def test_a_cell_of_csv_may_be_long(tmp_path: Path) -> None:
    """A completion of a megabyte is read, and the library's limit on cells is as it was."""
    before = csv.field_size_limit()
    assert "x" * 10**6 == read_rollouts(_csv(tmp_path, f"prompt,completion\np,{'x' * 10**6}\n"))[0].completion
    assert before == csv.field_size_limit()


def test_csv_may_be_packed_and_come_from_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name tells it also behind .gz; without a name, a header with a prompt does."""
    text = b"prompt,completion\np,c\n"
    assert [Rollout("p", "c")] == read_rollouts(_csv(tmp_path, gzip.compress(text), "rows.csv.gz"))
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text), closed=False))
    assert [Rollout("p", "c")] == read_rollouts("-")


WRONG_CSV: dict[str, tuple[str | bytes, str]] = {
    "nothing": ("", ": no rows in it; expected a header, and a row below it for each completion"),
    "header-alone": ("prompt,completion\n", ": no rows in it; expected a header"),
    "no-completion": ("prompt,answer\np,4\n", ":2: 'completion' is missing; it has 'prompt', 'answer'"),
    "short": ("prompt,completion,answer\np,c,4\np,c\n", ":3: 2 cells, where the header has 3 columns: 'answer' is mi"),
    "long": ("prompt,completion\np,I think, it is 4\n", ":2: 3 cells, where the header has 2 columns: 'it is 4' st"),
    "twice": ("prompt,completion,prompt\np,c,p\n", ":1: column 'prompt' stands in the header twice"),
    "index": (",prompt,completion\n0,p,c\n", ":1: column 1 has no name; pandas writes its index so"),
    "open": ('prompt,completion\np,c\n"p","c\np,c\n', ":3: column 'completion': a quote is opened and not closed"),
    "behind": ('prompt,completion\n"p"x,c\n', ":2: ',' expected after '\"'; a cell with"),
    "python": (
        "prompt,completion\np,c\n\"[{'role': 'user', 'content': 'hi'}]\",c\n",
        ":3: column 'prompt': expected the messages as JSON (json.dumps), got \"[{'role': 'user'",
    ),
    "no-message": ('prompt,completion\np,"[{""role"": 4}]"\n', ":2: 'completion': expected messages with 'role'"),
    "ids": ("prompt,completion,completion_ids\np,c,1 2\n", ":2: column 'completion_ids': expected a list of whole nu"),
    "ids-of-text": ("prompt,completion,completion_ids\np,c,7\n", ":2: 'completion_ids': expected a list of whole"),
    "utf-16": ("prompt,completion\np,c\n".encode("utf-16"), ":1: in UTF-16; save it in UTF-8"),
    "latin": (
        b"prompt,completion\np,caf\xe9\n",
        ":2: not UTF-8: invalid continuation byte at byte 5; save it in UTF-8",
    ),
    "json-lines": (f"{GOOD}\n", ":1: begins with JSON, and not with a header of CSV; name a file of JSON Lines .jsonl"),
    "old-mac": ("prompt,completion\rp,c\r", ":1: a carriage return stands outside quotes; end each line with \\n"),
    "workbook": (b"PK\x03\x04" + b"x" * 20, ": a workbook or another zip file, and no CSV; save it as CSV UTF-8"),
}


@pytest.mark.parametrize(("text", "said"), WRONG_CSV.values(), ids=WRONG_CSV)
def test_wrong_csv_is_refused_naming_row_and_column(tmp_path: Path, text: str | bytes, said: str) -> None:
    """Each mistake is a DataError of one line that begins with the file and, where there is one, the row's line."""
    path = _csv(tmp_path, text)
    with pytest.raises(DataError) as wrong:
        read_rollouts(path)
    assert f"{path}{said}" in str(wrong.value)
    assert 1 == len(str(wrong.value).splitlines())


def test_a_file_that_is_not_what_its_name_says_is_told_as_such(tmp_path: Path) -> None:
    """CSV in a file of another name, and text in one of Parquet, are named in one line."""
    text = "prompt,completion\np,c\n"
    with pytest.raises(DataError, match=r"rows.jsonl:1: not JSON: .*; this is CSV, which is read from a file named"):
        read_rollouts(_csv(tmp_path, text, "rows.jsonl"))
    with pytest.raises(DataError, match=r"rows.parquet:1: not JSON: .*; despite its name this is not Parquet"):
        read_rollouts(_csv(tmp_path, text, "rows.parquet"))
    with pytest.raises(DataError, match=r"rows.jsonl:1: not JSON"):
        read_rollouts(_csv(tmp_path, "prompt,comp\rletion\np,c\n", "rows.jsonl"))  # a header that no CSV reader takes


@pytest.mark.parametrize("place", ["absent.jsonl", "."], ids=["absent", "folder"])
def test_a_file_that_is_not_there_is_a_data_error(tmp_path: Path, place: str) -> None:
    """No file, or a folder in its place, is the caller's mistake like any other."""
    with pytest.raises(DataError, match=r"No such file|a folder that Dataset.save_to_disk did not write"):
        read_rollouts(tmp_path / place)


MANY_WRONG = {
    "keys": ("rows.jsonl", ['{"prompt": "p", "answer": 1}', *['{"prompt": "p"}'] * 11], "lacks 'answer'"),
    "JSON": ("rows.jsonl", ['{"prompt": "p"}', *["no JSON"] * 11], "not JSON"),
    "prompts": ("rows.jsonl", ['{"prompt": "p"}', *['{"prompt": ""}'] * 11], "got an empty string"),
    "kinds": ("rows.jsonl", ['{"prompt": "p"}', *['{"prompt": [{"role": "user", "content": "p"}]}'] * 11], "unlike"),
    "cells": ("rows.csv", ["prompt,answer", "p,1", *["p"] * 11], "cells, where"),
}


@pytest.mark.parametrize("name", MANY_WRONG)
def test_all_rows_that_are_wrong_are_named(tmp_path: Path, name: str) -> None:
    """The error has the mistake of the first, and the lines of the others, of many the first of them."""
    file, lines, mistake = MANY_WRONG[name]
    first = next(number for number, line in enumerate(lines, 1) if line == lines[-1])
    for wrong, rest in (
        (lines[:first], ""),
        (lines[: first + 2], f"; 2 more rows like it: line {first + 1}, "),
    ):
        (tmp_path / file).write_text("\n".join(wrong) + "\n")
        with pytest.raises(DataError) as refused:
            read_rows(tmp_path / file)
        assert (True, True) == (mistake in str(refused.value), rest in str(refused.value))
        assert bool(rest) is ("more row" in str(refused.value))
    (tmp_path / file).write_text("\n".join(lines) + "\n")
    with pytest.raises(DataError, match=r"; 10 more rows like it: line [0-9, ]+, …$"):
        read_rows(tmp_path / file)


RIGHT = {"prompt": "p", "completion": "c", "answer": 1}
WRONG = {
    "no JSON": "{nothing",
    "a key twice": '{"prompt": "p", "prompt": "q"}',
    "no object": "[1]",
    "no keys": "{}",
    "no column": '{"prompt": "p", "completion": "c"}',
    "a column more": '{"prompt": "p", "completion": "c", "answer": 1, "note": 2}',
    "an empty prompt": '{"prompt": "", "completion": "c", "answer": 1}',
    "a prompt that is a number": '{"prompt": 4, "completion": "c", "answer": 1}',
    "no column and an empty prompt": '{"prompt": "", "completion": "c"}',
    "messages among texts": '{"prompt": [{"role": "user", "content": "p"}], "completion": "c", "answer": 1}',
    "half a pair": '{"prompt": "\\ud800", "completion": "c", "answer": 1}',
}
TAKEN_AS_ROLLOUTS = ("an empty prompt", "messages among texts")


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("read", [read_rows, read_rollouts], ids=["rows", "rollouts"])
def test_one_reading_names_the_rows_of_every_kind_of_mistake(tmp_path: Path, seed: int, read: Any) -> None:
    """Every line that is wrong is named, and no other; a row with two mistakes has both, so that one run is enough."""
    draw = random.Random(seed)
    names = ["", *(name for name in draw.choices(["", *WRONG], k=14))]
    lines = [WRONG.get(name, json.dumps(RIGHT)) for name in names]
    (tmp_path / "rows.jsonl").write_text("".join(f"{line}\n" for line in lines))
    passes = {"", *(TAKEN_AS_ROLLOUTS if read is read_rollouts else ())}
    wrong = {number for number, name in enumerate(names, 1) if name not in passes}
    with pytest.raises(DataError) as refused:
        read(tmp_path / "rows.jsonl")
    message = str(refused.value)
    firsts = re.findall(r"rows\.jsonl:(\d+): ", message)
    others = ", ".join(re.findall(r"like it: line ([0-9, ]+)", message))
    assert wrong == {int(number) for number in (*firsts, *re.findall(r"\d+", others))}
    assert ("no column and an empty prompt" not in names) or ("lacks 'answer'" in message)
    if read is read_rows and not {"an empty prompt", "no column and an empty prompt"}.isdisjoint(names):
        assert "got an empty string" in message


def test_of_many_kinds_of_mistakes_the_first_are_told(tmp_path: Path) -> None:
    """The error stays short: ten kinds, and the lines of the rows with others."""
    lines = [json.dumps(RIGHT), *(json.dumps({**RIGHT, chr(97 + n): 1}) for n in range(14))]
    (tmp_path / "rows.jsonl").write_text("\n".join(lines))
    with pytest.raises(DataError) as refused:
        read_rows(tmp_path / "rows.jsonl")
    *told, rest = str(refused.value).splitlines()
    assert (10, "and 4 more rows with other mistakes: line 12, 13, 14, 15") == (len(told), rest)


def test_what_ends_a_file_does_not_hide_the_rows_before_it(tmp_path: Path) -> None:
    """A packed file that is cut off has rows, of which one may be wrong."""
    text = "".join(f"{line}\n" for line in [json.dumps(RIGHT), WRONG["no column"], *[json.dumps(RIGHT)] * 2000])
    (tmp_path / "rows.jsonl.gz").write_bytes(gzip.compress(text.encode())[:-20])
    with pytest.raises(DataError) as refused:
        read_rows(tmp_path / "rows.jsonl.gz")
    assert ["lacks 'answer'", "damaged"] == [
        word for word in ("lacks 'answer'", "damaged") if word in str(refused.value)
    ]


def test_rows_of_a_list_are_all_looked_at() -> None:
    """What is no dictionary, has other keys or no prompt is named at once."""
    with pytest.raises(DataError) as refused:
        listed_rows([{"prompt": "p"}, 4, {"prompt": ""}, {"question": "q"}], "rows")  # type: ignore[list-item]
    assert {"rows:2", "rows:3", "rows:4"} == set(re.findall(r"rows:\d+", str(refused.value)))
