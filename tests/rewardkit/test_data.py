"""Reading rollouts from JSON Lines files."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from rewardkit import DataError, Rollout
from rewardkit.data import Row, read_rollouts, read_rows

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


WRONG = {
    "empty": ("", ": no rows in it"),
    "blank": ("\n \n", ": no rows in it"),
    "not-json": (f"{GOOD}\n{{'prompt'}}\n", ":2: not JSON: Expecting property name enclosed in double quotes at col"),
    "cut-off": (GOOD[:-1], ":1: not JSON"),
    "two-objects": (GOOD + GOOD, ":1: not JSON: Extra data"),
    "nan": (GOOD[:-1] + ', "x": NaN}', ":1: not JSON: NaN is not a JSON number; write null"),
    "long-number": (GOOD[:-1] + f', "x": {"9" * 5000}}}', ":1: not JSON: Exceeds the limit"),
    "deep": ("[" * 100_000, ":1: nested too deeply"),
    "array": ("[1, 2]", ":1: expected a JSON object, got '[1, 2]'"),
    "string": (f'{GOOD}\n\n"text"', ":3: expected a JSON object, got '\"text\"'"),
    "no-prompt": ('{"completion": "4"}', ":1: 'prompt' is missing; it has 'completion'"),
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
    "compressed": (gzip.compress(GOOD.encode()), ": compressed with gzip; unpack it first"),
    "encoding": (f"{GOOD}\n".encode() + b'{"prompt": "\xff"}', ":2: not UTF-8"),
}


@pytest.mark.parametrize(("text", "said"), WRONG.values(), ids=WRONG)
def test_a_wrong_file_is_refused_naming_file_line_and_mistake(tmp_path: Path, text: str | bytes, said: str) -> None:
    """Each mistake is a DataError that begins with the file and, where there is one, the line."""
    path = _file(tmp_path, text)
    with pytest.raises(DataError) as wrong:
        read_rollouts(path)
    assert f"{path}{said}" in str(wrong.value)


@pytest.mark.parametrize("place", ["absent.jsonl", "."], ids=["absent", "folder"])
def test_a_file_that_is_not_there_is_a_data_error(tmp_path: Path, place: str) -> None:
    """No file, or a folder in its place, is the caller's mistake like any other."""
    with pytest.raises(DataError, match=r"No such file|Is a directory"):
        read_rollouts(tmp_path / place)
